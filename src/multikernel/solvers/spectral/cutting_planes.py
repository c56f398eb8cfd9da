"""The largest margin by the cutting planes of l1 multiple kernel learning."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._quiet import ignoring
from ...grams.engines import build
from ...grams.planning import plan_matrices
from ...learners.svm import SVM
from ...problem import Target
from ...weighting.lp_norm import LpNorm
from ..joint.cutting_plane import find_by_cutting_planes
from ..joint.warm_start import WarmStart
from .hulls import KernelMatrices
from .problem import (
    MAX_SMO_STEPS,
    UPPER_BOUNDS,
    Labels,
    MarginSolution,
    NotSeparableError,
    not_separable,
    train,
)


def cutting_planes(
    hull: KernelMatrices, labels: Labels, *, tol: float, max_iter: int = 500
) -> MarginSolution:
    """Kernel weights and classifier by cutting planes; margins ``"1-norm"`` and ``"hard"``.

    A hard margin is solved with upper bounds on alpha, which are raised until no alpha is at its
    bound.
    """
    if labels.margin == "2-norm":
        raise ValueError(
            "solver='cutting_plane' is for the margins '1-norm' and 'hard'; got margin='2-norm'. "
            "Use solver='gradient' or 'conic'."
        )
    stack = np.moveaxis(hull.stack, 0, -1)
    grams = build(plan_matrices(len(labels.y), hull.p), stack).corrected(False, None)
    unit = max(float(np.mean(grams.diagonals())), 1e-300)
    boxes = [b / unit for b in UPPER_BOUNDS] if np.isinf(labels.box) else [labels.box]
    target = Target(labels.y[:, None], "classification")
    warm: WarmStart | None = None
    count = 0
    for box in boxes:
        with ignoring(ConvergenceWarning):
            # The gap is part of the result; the caller checks it.
            learner = SVM(C=box, tol=1e-5, max_iter=MAX_SMO_STEPS if np.isinf(labels.box) else -1)
            found = find_by_cutting_planes(
                grams,
                target,
                LpNorm(1.0, tol=0.1 * tol, max_iter=max_iter),
                learner,
                warm=warm,
            )
        warm = WarmStart(found.kernel_weights)
        count += len(found.history)
        if np.abs(found.machine.coef).max() < box * (1 - 1e-9):
            break
    kernel_weights = found.kernel_weights / found.kernel_weights.sum()
    machine = train(hull.combine(kernel_weights), labels, np.abs(found.machine.coef[:, 0]))
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    # The cuts together may prove a better bound than the last classifier alone.
    lower = found.machine.objective * (1.0 - found.machine.gap) if np.isfinite(labels.box) else 0.0
    for alpha in (machine.alpha, np.abs(found.machine.coef[:, 0])):
        alpha = labels.feasible(alpha)
        lower = max(lower, labels.dual(alpha, float(hull.forms(labels.y * alpha).max())))
    return MarginSolution(kernel_weights, machine, lower, count, list(found.history))
