"""Kernel weights learned on a subsample, as a start for the whole sample.

A problem has few kernel weights and many samples, so weights learned on a subsample are close to
the final ones and cost little. The certificate is always computed on all samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._quiet import ignoring
from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...weighting.base import Weighting, start_weights
from ...weighting.joint import JointWeighting
from ..certificate import Stopped
from . import features, primal
from .cutting_plane import newton_start
from .find import find
from .warm_start import WarmStart, mix_with_start

#: From this many samples on, weights are first learned on a subsample.
MIN_SAMPLES = 800
#: A subsample holds one in this many samples ...
SAMPLES_PER_DRAW = 10
#: ... but at most this many in all, ...
MAX_SUBSAMPLE = 200
#: ... unless that is less than one in this many.
MAX_SAMPLES_PER_DRAW = 24


@dataclass(frozen=True)
class SubsampledStart:
    """Kernel weights learned on a subsample, for normalised and for raw kernels.

    Attributes
    ----------
    kernel_weights : array of shape (p,)
        For kernels normalised on the subsample.
    raw_weights : array of shape (p,)
        For kernels without normalisation.
    """

    kernel_weights: np.ndarray
    raw_weights: np.ndarray


def subsampled_start(
    grams: Grams, target: Target, weighting: Weighting, learner: Learner
) -> SubsampledStart | None:
    """The start, or None if a subsample would not help.

    The loss of each sample in it is multiplied by the number of samples that it represents.
    """
    if (
        not isinstance(weighting, JointWeighting)
        or not weighting.supports_subsampled_start
        or grams.n < MIN_SAMPLES
        or features.is_for(grams, target, weighting, learner)
        or primal.is_for(grams, target, weighting, learner)
    ):
        return None
    size = max(min(grams.n // SAMPLES_PER_DRAW, MAX_SUBSAMPLE), grams.n // MAX_SAMPLES_PER_DRAW)
    rows = np.sort(np.random.default_rng(0).permutation(grams.n)[:size])
    few = target.take(rows)
    part = grams.take(rows, few.sample_weight, copy=True).corrected(grams.center, grams.how)
    factor = grams.n / size * np.ones(size)
    few = replace(few, costs=factor if few.costs is None else factor * few.costs)
    try:
        with ignoring(ConvergenceWarning):
            learned = _learned_weights(part, few, weighting, learner)
            kernel_weights = mix_with_start(learned, start_weights(weighting, part, few, learner))
            return SubsampledStart(kernel_weights, kernel_weights * part.scales)
    except Stopped:
        # The iterate solves the problem of the subsample: it must not be returned.
        raise KeyboardInterrupt from None
    except ValueError:
        # The full problem raises the same error, or is solved without this start.
        return None


def _learned_weights(
    part: Grams, few: Target, weighting: JointWeighting, learner: Learner
) -> np.ndarray:
    """Kernel weights of the subsample; a large one starts from a still smaller subsample."""
    again = subsampled_start(part, few, weighting, learner)
    warm = None if again is None else WarmStart(again.kernel_weights)
    if weighting.method(part.p) == "cutting-planes":
        kernel_weights = newton_start(part, few, weighting, learner, warm=warm)
        if kernel_weights is not None:
            return kernel_weights
    return find(part, few, weighting, learner, warm=warm).kernel_weights
