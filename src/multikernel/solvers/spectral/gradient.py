"""The largest margin by projected gradient steps (Bousquet & Herrmann 2002, section 4).

The algorithm of the paper trains a classifier, takes a step along the gradient (6), ``-a_k / 2``,
and projects back on the simplex. Here the steps are those of Barzilai and Borwein with a line
search (the spectral projected gradient of Birgin, Martinez & Raydan, SIAM J. Optim. 10, 2000). The
iteration ends at a proven duality gap, which the paper does not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificate import Report, history_entry, record, relative_to
from .hulls import Hull
from .problem import (
    Labels,
    MarginSolution,
    NotSeparableError,
    Trained,
    not_separable,
    train,
)

#: Fraction of the predicted decrease that a step must achieve ...
ARMIJO_FACTOR = 1e-4
#: ... relative to the largest of this many recent objectives.
LINE_SEARCH_MEMORY = 5


def onto_simplex(v: np.ndarray) -> np.ndarray:
    """``argmin ||d - v||`` over ``d >= 0``, ``sum d = 1``."""
    v = v - v.max()  # so that the 1 below is not lost to rounding
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    d = np.maximum(v - excess[last], 0.0)
    return np.asarray(d / d.sum())


def projected_gradient(
    hull: Hull,
    labels: Labels,
    *,
    tol: float = 1e-4,
    max_iter: int = 500,
    report: Report | None = None,
) -> MarginSolution:
    """Kernel weights and classifier by projected gradient steps, to a duality gap of ``tol``.

    ::

        d     <- 1/p
        alpha <- classifier on sum_k d_k K_k,   a_k <- s'K_k s
        until   primal - (1'alpha - max_k a_k / 2) <= tol primal
            direction <- project(d + step a / 2) - d
            d         <- d + t direction, t halved until the objective has decreased enough
            step      <- |move|^2 / <move, change of gradient>

    Raises
    ------
    NotSeparableError
        With a hard margin, if the mean of the kernels does not separate the samples.

    Examples
    --------
    Two samples and two orthogonal kernels of rank one. With ``y = (1, -1)`` only the second one
    separates them.

    >>> import numpy as np
    >>> from multikernel.solvers.spectral.gradient import projected_gradient
    >>> from multikernel.solvers.spectral.hulls import RankOneKernels
    >>> from multikernel.solvers.spectral.problem import Labels
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = projected_gradient(RankOneKernels(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(found.weights.round(6), round(found.machine.norm, 6))
    [0. 1.] 1.0
    """

    def visit(d: np.ndarray, start: np.ndarray | None) -> tuple[Trained, np.ndarray]:
        machine = train(hull.combine(d), labels, start)
        return machine, hull.forms(machine.s)

    d = np.full(hull.p, 1.0 / hull.p)
    machine, a = visit(d, None)
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    best, best_d, lower = machine, d, -np.inf
    recent = [machine.primal]
    history: list[dict[str, Any]] = []
    step = 1.0 / max(float(np.abs(a).max()), 1e-300)
    for _ in range(max_iter):
        lower = max(lower, labels.dual(machine.alpha, float(a.max())))
        gap = relative_to(best.primal, max(best.primal - lower, 0.0))
        record(history, history_entry(machine.primal, gap, d, machine.s), report)
        if gap <= tol:
            break
        direction = onto_simplex(d + step * 0.5 * a) - d
        slope = -0.5 * float(a @ direction)
        if slope >= 0:
            break  # d is stationary to rounding
        t = 1.0
        while True:
            there = onto_simplex(d + t * direction)
            moved, a_there = visit(there, machine.alpha)
            if moved.primal <= max(recent) + ARMIJO_FACTOR * t * slope or t < 1e-8:
                break
            lower = max(lower, labels.dual(moved.alpha, float(a_there.max())))
            t *= 0.5
        if not np.isfinite(moved.primal):
            break
        move, change = there - d, -0.5 * (a_there - a)
        curvature = float(move @ change)
        size = float(move @ move)
        step = size / curvature if curvature > 1e-12 * size else 10.0 * step
        d, machine, a = there, moved, a_there
        recent = [*recent, machine.primal][-LINE_SEARCH_MEMORY:]
        if machine.primal < best.primal:
            best, best_d = machine, d
    return MarginSolution(best_d, best, lower, len(history), history)
