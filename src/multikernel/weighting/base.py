"""What a weighting is: the rule that turns grams and targets into kernel weights."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import Grams
from ..learners.base import Learner
from ..problem import Target


class Weighting(BaseEstimator):  # type: ignore[misc]
    """A rule with parameters; ``clone``, ``repr`` and ``weighting__q`` in a grid search work.

    Two-stage rules return weights that sum to one: only their direction means anything, and with
    kernels of equal size the learner's C or alpha then keeps its meaning from rule to rule.
    """

    #: whether weights may be negative, so that the combination may fail to be a kernel
    signed_weights: bool = False
    #: whether the p x p products of the kernels are needed
    needs_products: bool = False
    #: whether the weights depend on the learner and its C or alpha
    needs_learner: bool = False

    def start(self, grams: Grams, target: Target, learner: Learner) -> np.ndarray:
        """Weights of shape (p,); zero for kernels that are constant on the sample."""
        raise NotImplementedError


def normalised(weights: np.ndarray) -> np.ndarray:
    """Scaled to sum to one in absolute value."""
    return weights / np.abs(weights).sum()
