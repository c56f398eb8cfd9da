"""Cutting planes as in the thesis (Kloft 2011, Algorithm D.1), around or inside training.

The semi-infinite program ``min eta`` over ``eta >= L(s) - theta'a(s) / 2`` for all feasible s,
``theta >= 0, ||theta||_q <= 1``, is solved with finitely many s: each gives a cut. The minimum of
all cuts is found by replacing the ball by its second-order expansion, a quadratically constrained
program, and expanding again at its solution until the weights no longer change
(:class:`multikernel.solvers.joint.masters.BallMaster`; at p = 1 the ball is the simplex and the
program linear, as in Sonnenburg et al. 2006). Every step goes to this minimum, without the level
method and the Newton steps of :mod:`multikernel.solvers.joint.cutting_plane`:

- the *wrapper* trains a predictor to the optimum for every cut;
- the *interleaved* form (chunking) cuts after every small step of the predictor, if the cut
  reaches the others at the current weights.

Two details differ from the printed algorithm: weights are divided by ``||theta||_q``, not by its
q-th power, which is on the sphere only if q = 1; and a step of the expansion is shortened if it
does not reduce the model, which proves the conjecture of the thesis that the expansions converge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._threads import one_blas_thread
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...weighting.joint import regulariser_of
from ..certificate import Found, Report, centred_outputs
from .chunking import find_by_chunking
from .cuts import CutModel
from .cutting_plane import find_by_cutting_planes, require_range
from .warm_start import WarmStart


def find_by_cutting_plane_wrapper(
    grams: Grams,
    target: Target,
    weighting: Any,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of lp-norm learning, 1 <= p <= 2: one training run per cut.

    Parameters are those of :func:`multikernel.solvers.joint.cutting_plane.find_by_cutting_planes`.
    """
    return find_by_cutting_planes(
        grams,
        target,
        weighting,
        learner,
        stabilise=False,
        summary=summary,
        warm=warm,
        report=report,
    )


def find_by_cutting_plane_chunking(
    grams: Grams,
    target: Target,
    weighting: Any,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
    **options: Any,
) -> Found:
    """Kernel weights and predictor of lp-norm learning, 1 <= p <= 2: a cut after every chunk.

    ::

        repeat   improve the coefficients of a few samples      (chunking)
                 if the cut L - theta'a / 2 reaches all others at theta:
                     add it, theta = minimum of all cuts

    Parameters and ``options`` are those of
    :func:`multikernel.solvers.joint.chunking.find_by_chunking`.
    """
    require_range(weighting.p)
    rule = regulariser_of(weighting, grams, target, summary)
    return find_by_chunking(
        grams,
        target,
        weighting,
        learner,
        weight_step=MinimumOfCuts(weighting.p, rule.start() > 0, target, learner),
        method="cutting planes with chunking",
        summary=summary,
        warm=warm,
        report=report,
        **options,
    )


class MinimumOfCuts:
    """Weight steps of chunking that go to the minimum of all cuts."""

    def __init__(self, p: float, usable: np.ndarray, target: Target, learner: Learner) -> None:
        self.model, self.usable, self.loss = CutModel(p), usable, learner.loss
        self.C = learner.costs(target)
        self.Y, _ = centred_outputs(target, learner)
        self.lower = -np.inf
        self.added: list[list[Any]] = []

    def state(self) -> list[list[Any]]:
        """All cuts, in order."""
        return self.added

    def restore(self, state: list[list[Any]]) -> None:
        """Add the cuts again, since the state of a linear program cannot be stored completely."""
        for constant, forms, old in state:
            self._add(constant, forms, old)

    def _add(self, constant: float, forms: np.ndarray, old: np.ndarray) -> np.ndarray:
        """The minimum of the model with one more cut."""
        self.added.append([constant, forms, old])
        with one_blas_thread(len(self.usable)):
            low = self.model.add(constant, forms, old)
        self.lower = max(self.lower, low.value)
        return low.theta

    def __call__(self, theta: np.ndarray, a: np.ndarray, s: np.ndarray) -> np.ndarray:
        constant = float(self.loss.dual(s, self.Y, self.C).sum())
        old, forms = theta[self.usable], a[self.usable]
        if not self.model.is_moved_by(constant, forms, old):
            return theta
        new = np.zeros_like(theta)
        new[self.usable] = self._add(constant, forms, old)
        return new
