"""The free spectrum (all combinations of kernels of rank one) by linear programs.

For ``K = sum_j d_j v_j v_j'`` with weights d on the simplex, the smallest norm of a function ``f =
V beta`` is ``||beta||_1``. The largest margin is therefore a support vector machine with the 1-norm
of the coefficients of the eigenvectors,

    min 1/2 ||beta||_1^2 + C sum_i max(0, 1 - y_i (f_i + b)),          d_j = |beta_j| / ||beta||_1

and ``min ||beta||_1`` for a hard margin. Both are solved by linear programs at levels of the
multiplier (:mod:`multikernel.solvers.levels`); with ``s = y alpha`` they are

    g(l) = max_alpha 1'alpha  over  |V'(y alpha)| <= l,  y'alpha = 0,  0 <= alpha <= C
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.losses import Hinge
from ..certificate import relative_to
from ..levels import LEVEL_PRECISION, LevelPrograms, Plane, highest, mixture
from .hulls import RankOneKernels
from .problem import (
    Labels,
    MarginSolution,
    NotSeparableError,
    evaluate,
    not_separable,
    train,
)


def plane(beta: np.ndarray, V: np.ndarray, labels: Labels) -> Plane:
    """The plane of beta: its 1-norm and its hinge loss with the best intercept."""
    F, Y, C = (V @ beta)[:, None], labels.y[:, None], np.full(len(labels.y), labels.C)
    hinge = Hinge()
    loss = float(hinge.value(F, Y, C, hinge.intercept(F, Y, C))[0])
    return Plane(beta, float(np.abs(beta).sum()), loss)


class Duals:
    """``max 1'alpha``, ``-l <= V'(y alpha) <= l``, for a sequence of l."""

    def __init__(self, V: np.ndarray, labels: Labels) -> None:
        n = len(labels.y)
        self.y, self.p = labels.y, V.shape[1]
        self.used = np.flatnonzero(np.abs(V).max(axis=0, initial=0.0) > 0)
        signs = sp.diags_array(labels.y)
        self.programs = LevelPrograms(np.ones(n), np.full(n, labels.box), signs, balanced=True)
        self.programs.add(V[:, self.used].T)

    def solve(self, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """alpha and beta, or None if ``1'alpha`` is unbounded."""
        answer = self.programs.solve(level)
        if answer is None:
            return None
        s, slopes = answer
        beta = np.zeros(self.p)
        beta[self.used] = slopes
        return self.y * s, beta


def free_spectrum(
    hull: RankOneKernels, labels: Labels, *, tol: float = 1e-4, max_iter: int = 500
) -> MarginSolution:
    """Kernel weights and classifier over all combinations of kernels of rank one.

    Margins ``"1-norm"`` and ``"hard"``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.solvers.spectral.hulls import RankOneKernels
    >>> from multikernel.solvers.spectral.problem import Labels
    >>> from multikernel.solvers.spectral.lp import free_spectrum
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = free_spectrum(RankOneKernels(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(found.weights, found.machine.norm)
    [0. 1.] 1.0
    """
    if labels.margin == "2-norm":
        raise ValueError(
            "solver='lp' is for the margins '1-norm' and 'hard'; got margin='2-norm', whose loss "
            "is not linear. Use solver='gradient' or 'conic'."
        )
    V = hull.V
    duals = Duals(V, labels)
    if labels.margin == "hard":
        answer = duals.solve(1.0)
        if answer is None:
            raise NotSeparableError(not_separable(hull.p))
        return _certified(hull, labels, *answer, [])
    planes = [plane(np.zeros(hull.p), V, labels)]
    level = 0.5 * np.sqrt(2.0 * planes[0].loss)
    best = -np.inf
    history: list[dict[str, Any]] = []
    for _ in range(max_iter):
        answer = duals.solve(level)
        if answer is None:
            raise RuntimeError(
                "HiGHS could not solve the linear program of the free spectrum. Use "
                "solver='gradient' or 'conic'."
            )
        alpha, beta = answer
        planes.append(plane(beta, V, labels))
        best = max(best, float(alpha.sum()) - 0.5 * level**2)
        last, (level, top) = level, highest(planes)
        gap = relative_to(top, max(top - best, 0.0))
        history.append({"objective": top, "gap": gap, "active": int(np.count_nonzero(beta))})
        # alpha and beta match only at the best l. It takes few steps, so tol is not used.
        if abs(level - last) <= LEVEL_PRECISION * level or gap <= LEVEL_PRECISION**2:
            break
    found = _certified(hull, labels, alpha, mixture(planes, level), history)
    if found.gap > tol:
        machine = train(hull.combine(found.weights), labels, alpha)
        found = replace(found, machine=machine)
    return found


def _certified(
    hull: RankOneKernels,
    labels: Labels,
    alpha: np.ndarray,
    beta: np.ndarray,
    history: list[dict[str, Any]],
) -> MarginSolution:
    """The solution with weights proportional to ``|beta|``, with both bounds of the optimum."""
    alpha = labels.feasible(alpha)
    size = float(np.abs(beta).sum())
    d = np.abs(beta) / size if size > 0 else np.full(hull.p, 1.0 / hull.p)
    forms = hull.forms(labels.y * alpha)
    lower = labels.dual(alpha, float(forms.max()))
    machine = evaluate(hull.combine(d), alpha, labels)
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    return MarginSolution(d, machine, lower, max(len(history), 1), history)
