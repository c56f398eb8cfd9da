"""Kernel weights of the same problem on a few of the samples, as a start for all of them.

There are few weights and many samples, so a small part of the work brings the weights most of the
way. The certificate is computed on all samples in the end.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...weighting.base import Weighting, start_weights
from ...weighting.joint import JointWeighting
from ..certificate import Stopped
from . import features
from .cutting_plane import newton_start
from .find import find
from .warm_start import WarmStart, mix_with_start

#: From this many samples on, weights are first learned on a subsample.
MIN_SAMPLES = 800
#: A subsample is one sample in ten, but at most `SUBSAMPLE` samples, unless these are fewer than
#: one in 24.
ONE_IN, SUBSAMPLE, AT_LEAST_ONE_IN = 10, 200, 24


@dataclass(frozen=True)
class SubsampledStart:
    """Weights of the kernels as normalised on the subsample, and of the kernels as built, (p,)."""

    weights: np.ndarray
    raw_weights: np.ndarray


def subsampled_start(
    grams: Grams, target: Target, weighting: Weighting, learner: Learner
) -> SubsampledStart | None:
    """The start, or None where a subsample would not help.

    Losses of the subsample count for as many samples as they stand for.
    """
    if (
        not isinstance(weighting, JointWeighting)
        or not weighting.supports_subsampled_start
        or grams.n < MIN_SAMPLES
        or features.is_for(grams, target, weighting, learner)
    ):
        return None
    size = max(min(grams.n // ONE_IN, SUBSAMPLE), grams.n // AT_LEAST_ONE_IN)
    rows = np.sort(np.random.default_rng(0).permutation(grams.n)[:size])
    few = target.take(rows)
    part = grams.take(rows, few.weights, copy=True).corrected(grams.center, grams.how)
    factor = grams.n / size * np.ones(size)
    few = replace(few, costs=factor if few.costs is None else factor * few.costs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            weights = _learned_weights(part, few, weighting, learner)
            weights = mix_with_start(weights, start_weights(weighting, part, few, learner))
            return SubsampledStart(weights, weights * part.scales)
    except Stopped:
        # The iterate answers another question: it must not be handed over.
        raise KeyboardInterrupt from None
    except ValueError:
        # The full problem either shows the same error or does without this start.
        return None


def _learned_weights(
    part: Grams, few: Target, weighting: JointWeighting, learner: Learner
) -> np.ndarray:
    again = subsampled_start(part, few, weighting, learner)
    warm = None if again is None else WarmStart(again.weights)
    if weighting.method(part.p) == "cutting-planes":
        weights = newton_start(part, few, weighting, learner, warm=warm)
        if weights is not None:
            return weights
    return find(part, few, weighting, learner, warm=warm).weights
