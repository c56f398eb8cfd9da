"""Shared by the tests of the joint solvers."""

from __future__ import annotations

import numpy as np

from multikernel.problem import Solution
from multikernel.solvers.joint.cutting_plane import find_by_cutting_planes
from multikernel.solvers.joint.learn import combined_alignment
from multikernel.solvers.joint.warm_start import WarmStart


def solve_cutting_planes(grams, target, weighting, learner, *, warm=None, **options) -> Solution:
    """Cutting planes alone, with the alignments that `learn` adds."""
    summary = grams.summary(target.Y, products=False)
    warm = None if warm is None else WarmStart(np.asarray(warm))
    found = find_by_cutting_planes(grams, target, weighting, learner, warm=warm, **options)
    alignment = combined_alignment(found, summary, target)
    return Solution(
        found.kernel_weights, found.machine, alignment, summary.alignments, found.history
    )


def runs_to(history, tol):
    """How many training runs brought the relative gap below tol; None if it never was."""
    return next((i for i, entry in enumerate(history, 1) if entry["gap"] <= tol), None)
