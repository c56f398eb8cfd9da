"""A rule that returns given kernel weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting


class GivenWeights(Weighting):
    """Given weights of shape (p,), for example learned by another rule on a part of the sample.

    Parameters
    ----------
    kernel_weights : array of shape (p,)
    history : list of dict, optional
        Entries for the history of the fit, about how the weights were found.
    """

    needs_target = False

    def __init__(self, kernel_weights: Any, history: Any = ()) -> None:
        self.kernel_weights = kernel_weights
        self.history = history

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return np.asarray(self.kernel_weights, dtype=np.float64)

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        return self.start(grams, target, learner), list(self.history)
