"""Voted kernels along a grid of lambda and beta, with one pool of columns for all penalties.

Other penalties only move the bounds of the master's rows, so each solve starts from the basis of
the previous one. Often there is nothing to solve: given a solution at penalties ``Lambda'`` with
the feasible dual point z', ``t z'`` with ``t = min(1, min_k Lambda_k / Lambda'_k)`` is feasible at
``Lambda``. If that proves the earlier coefficients optimal to the tolerance, they are reused. This
happens if the penalties are so large that all coefficients are zero, and if they are so small that
the loss is zero and only their proportions matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...problem import relative_gap
from .generation import ColumnPool
from .problem import VotedProblem, VotedSolution, check_penalties


def solve_grid(
    problem: VotedProblem,
    grid: Sequence[np.ndarray],
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> list[VotedSolution]:
    """Solutions for many vectors of penalties Lambda (p,), in the order of the grid."""
    pool = ColumnPool(problem)
    Lambda = np.array(grid, dtype=np.float64).reshape(len(grid), problem.columns.p)
    found: list[VotedSolution] = []
    losses, bounds = np.empty(len(grid)), np.empty(len(grid))
    norms = np.empty_like(Lambda)  # sum_j |alpha_kj|
    for i, penalties in enumerate(Lambda):
        check_penalties(problem, penalties)
        solution = None
        if i:
            solution = _known(
                problem,
                penalties,
                Lambda[:i],
                found,
                losses[:i] + norms[:i] @ penalties,
                bounds[:i],
                tol,
            )
        if solution is None:
            solution = pool.solve(penalties, tol=tol, max_iter=max_iter)
        found.append(solution)
        terms = solution.terms
        norms[i] = np.bincount(terms.kernels, np.abs(terms.coef), minlength=problem.columns.p)
        losses[i] = max(solution.objective - float(penalties @ norms[i]), 0.0)
        bounds[i] = solution.bound
    return found


def _known(
    problem: VotedProblem,
    penalties: np.ndarray,
    before: np.ndarray,
    found: Sequence[VotedSolution],
    objectives: np.ndarray,
    bounds: np.ndarray,
    tol: float,
) -> VotedSolution | None:
    """The best earlier solution if it is optimal to the tolerance at these penalties, else None.

    Parameters
    ----------
    penalties : array of shape (p,)
    before : array of shape (n_found, p)
        The penalties of the earlier solutions.
    objectives : array of shape (n_found,)
        F of the earlier coefficients at the new penalties.
    bounds : array of shape (n_found,)
        Lower bounds of F at the earlier penalties.
    """
    ratios = np.divide(penalties, before, out=np.ones_like(before), where=before > 0)
    t = np.minimum(1.0, ratios.min(axis=1))
    scale = np.full(len(t), float(problem.costs.sum()))
    gaps = relative_gap(objectives, t * bounds, scale)
    best = int(np.argmin(gaps))
    if gaps[best] > tol:
        return None
    return replace(
        found[best],
        objective=float(objectives[best]),
        bound=float(t[best] * bounds[best]),
        gap=float(gaps[best]),
        z=t[best] * found[best].z,
        n_iter=0,
        history=[],
    )
