"""The interface of weighting rules, which compute kernel weights from Gram matrices and targets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._options import is_flag
from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target


class Weighting(BaseEstimator):  # type: ignore[misc]
    """Base class of weighting rules; their parameters work with ``clone`` and in a grid search.

    Absolute weights of two-stage rules other than `LeaveOneOut` sum to one: only their direction
    matters, and if the kernels have equal size, C or alpha of the learner has the same effect with
    every such rule.
    """

    #: Whether weights may be negative, so that the combination may fail to be a kernel.
    signed_weights: bool = False
    #: Whether the p x p inner products of the kernels are needed.
    needs_products: bool = False
    #: Whether the weights depend on the target; if not, the rule works without labels.
    needs_target: bool = True
    #: Whether the weights depend on the learner and its C or alpha.
    needs_learner: bool = False
    #: Whether the weights depend on `Grams.summary`.
    needs_summary: bool = False
    #: Whether the weights depend on individual samples, not just on sums over the sample.
    reads_samples: bool = False
    #: Whether the weights include the ridge constant, so that ``alpha=1`` is a good choice.
    includes_ridge: bool = False
    #: Whether every kernel must have a single feature.
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

    def check(self) -> None:
        """Raise an error for invalid parameters; called before a fit."""


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


def check_parameters(rule: Weighting) -> None:
    """Raise ValueError if a parameter of a library rule has the wrong type.

    The expected type is that of the default. Ranges of ``tol`` and ``max_iter`` are checked too;
    rules check names and other ranges themselves.
    """
    if not type(rule).__module__.startswith("multikernel."):
        return
    for name, parameter in inspect.signature(type(rule).__init__).parameters.items():
        default = parameter.default
        if name in ("cv", "random_state") or isinstance(default, str):
            continue
        value: Any = getattr(rule, name, None)
        if isinstance(default, bool):
            good, what = is_flag(value), "True or False"
        elif isinstance(default, int):
            good, what = _is_number(value, (int, np.integer)), "a whole number"
        elif isinstance(default, float) or name == "q":
            good = _is_number(value, (int, float, np.integer, np.floating))
            good, what = good or (default is None and value is None), "a number"
        else:
            continue
        if name == "tol":
            good, what = good and bool(np.all(value >= 0)), "a number, zero or larger"
        if name == "max_iter":
            good, what = good and value >= 1, "a whole number of at least 1"
        if not good:
            raise ValueError(f"{type(rule).__name__}: {name} must be {what}; got {value!r}.")
    rule.check()


def _is_number(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, (bool, np.timedelta64))


def summary_for(rule: Weighting, grams: Grams, target: Target, known: Summary | None) -> Summary:
    """The statistics that a rule needs: the known ones if they suffice, else computed here."""
    if known is not None and (known.M is not None or not rule.needs_products):
        return known
    return grams.summary(target.Y, products=rule.needs_products)


def normalised(kernel_weights: np.ndarray) -> np.ndarray:
    """Weights scaled so that their absolute values sum to one."""
    return kernel_weights / np.abs(kernel_weights).sum()
