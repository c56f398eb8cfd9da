"""What a weighting is: the rule that turns grams and targets into kernel weights."""

from __future__ import annotations

import inspect

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import Grams, Summary
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

    #: whether the weights depend on `Grams.summary`
    needs_summary: bool = False

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        """Weights of shape (p,); zero for kernels that are constant on the sample.

        ``summary`` holds the statistics of the sample, if they are known; a rule that needs them
        asks the grams otherwise.
        """
        raise NotImplementedError


def start_weights(
    rule: Weighting,
    grams: Grams,
    target: Target,
    learner: Learner,
    summary: Summary | None = None,
) -> np.ndarray:
    """``rule.start``, also of rules whose method takes no summary."""
    if "summary" in inspect.signature(rule.start).parameters:
        return rule.start(grams, target, learner, summary=summary)
    return rule.start(grams, target, learner)


def summary_for(rule: Weighting, grams: Grams, target: Target, known: Summary | None) -> Summary:
    """The statistics that a rule needs: the known ones, or those of a pass made now."""
    if known is not None and (known.M is not None or not rule.needs_products):
        return known
    return grams.summary(target.Y, products=rule.needs_products)


def normalised(weights: np.ndarray) -> np.ndarray:
    """Scaled to sum to one in absolute value."""
    return weights / np.abs(weights).sum()
