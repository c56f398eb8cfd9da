"""Kernel weights and predictor of one problem: the solver for each weighting rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._journal import Answers, recall
from ...grams.protocol import CombinedGram, Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...weighting.base import Weighting
from ...weighting.joint import JointWeighting
from ...weighting.lp_norm import LpNorm
from ..certificate import Found, Report
from . import features, primal
from .alternation import find_by_alternation
from .chunking import find_by_chunking
from .cutting_plane import find_by_cutting_planes
from .definiteness import require_psd
from .interior_point import find_by_interior_point
from .lbfgs import find_by_lbfgs
from .observed_margins import find_by_observed_margins
from .penalty_cuts import find_by_penalty_cuts
from .taylor_cuts import find_by_cutting_plane_chunking, find_by_cutting_plane_wrapper
from .unsquared import find_unsquared
from .warm_start import WarmStart

#: The solvers by the names that ``JointWeighting.method`` returns.
SOLVERS: dict[str, Callable[..., Found]] = {
    "alternation": find_by_alternation,
    "cutting-planes": find_by_cutting_planes,
    "interior-point": find_by_interior_point,
    "chunking": find_by_chunking,
    "cutting-planes-wrapper": find_by_cutting_plane_wrapper,
    "cutting-planes-chunking": find_by_cutting_plane_chunking,
    "lbfgs": find_by_lbfgs,
    "primal": primal.find_by_primal,
    "penalty-cuts": find_by_penalty_cuts,
    "observed-margins": find_by_observed_margins,
}


def find(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor, without checks of the sample and without alignments.

    Parameters
    ----------
    summary : Summary, optional
        The statistics of this sample, if they are known; otherwise rules compute what they need.
    warm : WarmStart, optional
        The start of a joint rule.
    report : callable, optional
        Receives every entry of the history of a joint rule.
    """
    if not isinstance(weighting, JointWeighting):

        def weigh() -> Answers:
            kernel_weights, history = weighting.weigh(grams, target, learner, summary)
            return {"kernel_weights": kernel_weights, "history": history}

        weighed = recall(report, "weigh", (), weigh)
        kernel_weights, history = weighed["kernel_weights"], weighed["history"]
        gram = combine_checked(grams, kernel_weights, weighting)
        return Found(kernel_weights, learner.fit(gram, target), gram, history)
    if isinstance(weighting, LpNorm) and not weighting.squared:
        return find_unsquared(grams, target, weighting, learner, find, warm=warm, report=report)
    if features.is_for(grams, target, weighting, learner):
        return features.find_by_features(
            grams, target, weighting, learner, warm=warm, report=report
        )
    by_primal = primal.is_for(grams, target, weighting, learner)
    solve = primal.find_by_primal if by_primal else SOLVERS[weighting.method(grams.p)]
    warm = None if weighting.fixed_weights else warm
    return solve(grams, target, weighting, learner, summary=summary, warm=warm, report=report)


def combine_by_rule(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    summary: Summary | None = None,
) -> tuple[np.ndarray, CombinedGram]:
    """The weights of a two-stage rule, and the combination, checked to be positive semidefinite."""
    kernel_weights, _ = weighting.weigh(grams, target, learner, summary)
    return kernel_weights, combine_checked(grams, kernel_weights, weighting)


def combine_checked(grams: Grams, kernel_weights: np.ndarray, weighting: Weighting) -> CombinedGram:
    """The combination with the weights of a two-stage rule, checked to be positive semidefinite."""
    gram = grams.combine(kernel_weights)
    require_psd(grams, kernel_weights, gram, warn=weighting.signed_weights)
    return gram
