"""The interface of weighting rules, which compute kernel weights from Gram matrices and targets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target


class Weighting(BaseEstimator):  # type: ignore[misc]
    """Base class of weighting rules; their parameters work with ``clone`` and in a grid search.

    The weights of two-stage rules sum to one. Only their direction matters, and if the kernels have
    equal size, C or alpha of the learner has the same effect with every rule.
    """

    #: Whether weights may be negative, so that the combination may fail to be a kernel.
    signed_weights: bool = False
    #: Whether the p x p inner products of the kernels are needed.
    needs_products: bool = False
    #: Whether the weights depend on the target; rules without this serve samples without labels.
    needs_target: bool = True
    #: Whether the weights depend on the learner and its C or alpha.
    needs_learner: bool = False
    #: Whether the weights depend on `Grams.summary`.
    needs_summary: bool = False
    #: Whether the weights depend on single samples, and not on sums over all of them alone.
    reads_samples: bool = False
    #: Whether the rule is for kernels of one feature each only.
    needs_features: bool = False

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        """Kernel weights of shape (p,); zero for kernels that are constant on the sample.

        ``summary`` holds the statistics of the sample, if they are known. Otherwise rules that need
        them compute them.
        """
        raise NotImplementedError

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """Kernel weights as `start` returns them, and entries for the history of the fit."""
        return start_weights(self, grams, target, learner, summary), []


def start_weights(
    rule: Weighting,
    grams: Grams,
    target: Target,
    learner: Learner,
    summary: Summary | None = None,
) -> np.ndarray:
    """``rule.start(...)``, without the summary if the rule does not accept it."""
    if "summary" in inspect.signature(rule.start).parameters:
        return rule.start(grams, target, learner, summary=summary)
    return rule.start(grams, target, learner)


def summary_for(rule: Weighting, grams: Grams, target: Target, known: Summary | None) -> Summary:
    """The statistics that a rule needs: the known ones if they suffice, else computed now."""
    if known is not None and (known.M is not None or not rule.needs_products):
        return known
    return grams.summary(target.Y, products=rule.needs_products)


def normalised(kernel_weights: np.ndarray) -> np.ndarray:
    """Weights scaled so that their absolute values sum to one."""
    return kernel_weights / np.abs(kernel_weights).sum()
