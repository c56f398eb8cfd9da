"""Voted kernel regularisation: a linear program over all (kernel, sample) columns.

Cortes, Goyal, Kuznetsov and Mohri, *Kernel Extraction via Voted Risk Minimization*, eq. (1):

    min_alpha  F = sum_i c_i max(0, 1 - y_i f(x_i)) + sum_kj Lambda_k |alpha_kj|,
    f(x) = sum_kj alpha_kj y_j K_k(x, x_j) + b,   Lambda_k = lambda r_k + beta,   c_i = 1/m,

with b = 0 unless an intercept is fitted. Its dual is

    max_z  sum_i z_i   s.t.  0 <= z_i <= c_i,  |sum_i z_i y_i K_k(x_i, x_j)| <= Lambda_k  (all k, j)

(and ``sum_i z_i y_i = 0`` with an intercept). For any z within its box, ``t z`` with
``t = min(1, min_kj Lambda_k / |sum_i z_i y_i K_k(x_i, x_j)|)`` is feasible, so
``t sum_i z_i`` bounds the optimum from below. This is the certificate of every solution here; it
costs one pass over the kernels. Coefficients are stored as ``alpha_kj y_j``, so that y_j drops out
of f.

There are three solvers: column generation (:mod:`.generation`), the same program with all columns
from the start in HiGHS, and the paper's coordinate descent (:mod:`.descent`), which may stall;
column generation then continues from its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...problem import relative_gap
from .columns import KernelColumns
from .terms import Terms

Report = Callable[[dict[str, Any]], None]
SOLVERS = ("auto", "columns", "lp", "descent")


@dataclass(frozen=True)
class VotedProblem:
    """One binary problem: columns, labels -1/+1, and the factor c_i of each sample's loss."""

    columns: KernelColumns
    y: np.ndarray
    costs: np.ndarray
    fit_intercept: bool = False

    def objective(
        self, penalties: np.ndarray, terms: Terms, values: np.ndarray, intercept: float
    ) -> float:
        """F of a function with these values on the sample; they do not include the intercept."""
        slack = np.maximum(0.0, 1.0 - self.y * (values + intercept))
        return float(self.costs @ slack + penalties[terms.kernels] @ np.abs(terms.coef))

    def values(self, terms: Terms) -> np.ndarray:
        """f on the sample, without the intercept."""
        samples = self.columns.grams.points(np.arange(self.columns.n))
        return self.columns.expand([terms]).values(samples)[:, 0]

    def feasible(self, z: np.ndarray) -> np.ndarray:
        """Multipliers near z within their box and, with an intercept, with y'z = 0."""
        z = np.clip(z, 0.0, self.costs)
        if self.fit_intercept:
            for sign in (1.0, -1.0):
                side = self.y == sign
                excess = sign * float(self.y @ z)
                if excess > 0:
                    # Shrink the class with the larger sum, so that nothing leaves the box.
                    z[side] *= max(0.0, 1.0 - excess / z[side].sum())
        return z


@dataclass(frozen=True)
class DualBound:
    """A feasible dual point and the lower bound that it proves.

    Attributes
    ----------
    z : array of shape (n,)
        Feasible multipliers ``t z``.
    value : float
        ``t sum_i z_i``.
    ratios : array of shape (p, n)
        ``|K_k'(z y)|_j / Lambda_k`` before z was scaled; above one, the column is violated.
    """

    z: np.ndarray
    value: float
    ratios: np.ndarray


@dataclass(frozen=True)
class VotedSolution:
    """The result of a solver and its certificate.

    Attributes
    ----------
    terms : Terms
        The non-zero coefficients.
    intercept : float
    objective : float
        F of these terms and this intercept.
    bound : float
        A lower bound of F over all functions.
    gap : float
        ``(objective - bound) / objective``.
    z : array of shape (n,)
        The feasible dual point that proves the bound.
    n_iter : int
    history : list of dict
    """

    terms: Terms
    intercept: float
    objective: float
    bound: float
    gap: float
    z: np.ndarray
    n_iter: int
    history: list[dict[str, Any]] = field(default_factory=list)


def lower_bound(
    problem: VotedProblem, penalties: np.ndarray, z: np.ndarray, prices: np.ndarray | None = None
) -> DualBound:
    """The dual value of z, scaled until no column is violated; one pass over the kernels.

    ``prices`` are ``K_k'(z y)`` if they are known already; z must then be feasible except for
    the constraints of the columns.
    """
    if prices is None:
        z = problem.feasible(z)
        prices = problem.columns.price(z * problem.y)
    products = np.abs(prices)
    size = np.broadcast_to(penalties[:, None], products.shape)
    ratios = np.divide(products, size, out=np.zeros_like(products), where=size > 0)
    ratios[(size == 0) & (products > 0)] = np.inf
    t = 1.0 / max(1.0, float(ratios.max()))
    return DualBound(t * z, t * float(z.sum()), ratios)


def gap_of(problem: VotedProblem, objective: float, bound: float) -> float:
    """``(objective - bound) / objective``; differences within rounding count as zero."""
    size = np.array([float(problem.costs.sum())])
    return float(relative_gap(np.array([objective]), np.array([bound]), size)[0])


def largest_penalty(problem: VotedProblem) -> np.ndarray:
    """``max_j |sum_i c_i y_i K_k(x_i, x_j)|`` for every kernel, shape (p,).

    ``alpha = 0`` is optimal if every Lambda_k is at least this; without an intercept, only then.
    (With an intercept c is scaled to balance the classes, which is one choice of several.)
    """
    z = problem.feasible(problem.costs)
    return np.asarray(np.abs(problem.columns.price(z * problem.y)).max(axis=1))


def solve(
    problem: VotedProblem,
    penalties: np.ndarray,
    solver: str = "auto",
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    report: Report | None = None,
) -> VotedSolution:
    """Minimise F.

    Parameters
    ----------
    problem : VotedProblem
    penalties : array of shape (p,)
        Lambda_k; positive, except for kernels that are zero on the sample.
    solver : {"auto", "columns", "lp", "descent"}
        ``"auto"`` is ``"columns"``, with all columns from the start if they are few.
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Limit on rounds of column generation, and on steps of coordinate descent before it.
    report : callable, optional
        Called with each entry of the history when it is added.
    """
    from .descent import descend
    from .generation import ColumnPool

    check_penalties(problem, penalties)
    pool = ColumnPool(problem, whole={"lp": True, "auto": None}.get(solver, False))
    if solver != "descent":
        return pool.solve(penalties, tol=tol, max_iter=max_iter, report=report)
    found = descend(problem, penalties, tol=tol, max_iter=max_iter, report=report)
    if found.gap <= tol:
        return found
    pool.add(found.terms.kernels, found.terms.points)
    end = pool.solve(penalties, tol=tol, max_iter=max_iter, report=report)
    return VotedSolution(
        end.terms,
        end.intercept,
        end.objective,
        end.bound,
        end.gap,
        end.z,
        found.n_iter + end.n_iter,
        found.history + end.history,
    )


def check_penalties(problem: VotedProblem, penalties: np.ndarray) -> None:
    """Raise an error for kernels without a penalty: only z = 0 is feasible for their columns."""
    free = np.flatnonzero(~(penalties > 0))
    if not len(free):
        return
    # The product with a random vector is zero only for zero columns.
    products = problem.columns.price(np.random.default_rng(0).standard_normal(len(problem.y)))
    for k in free.tolist():
        if not penalties[k] == 0 or np.any(products[k] != 0):
            raise ValueError(
                f"Kernel {problem.columns.names[k]!r} has the penalty lambda r_k + beta = "
                f"{penalties[k]:g}; it must be positive. Use a positive sparsity_penalty (1e-8 is "
                "small for kernels of size one)."
            )
