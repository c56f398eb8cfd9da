"""The interface of joint rules: kernel weights and predictor solve one convex problem.

Each rule holds the parameters of a regulariser (:mod:`multikernel.problem.regularisers`).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from ..problem.regularisers import Regulariser
from .base import Weighting


class JointWeighting(Weighting):
    """Base class of rules whose kernel weights and predictor solve one convex problem."""

    needs_learner = True
    #: Relative duality gap to reach.
    tol: float
    #: Limit on training runs.
    max_iter: int

    #: Whether only the solver computes the duality gap: the objective is not loss plus regulariser.
    certifies_itself = False

    @property
    def fixed_weights(self) -> bool:
        """Whether the regulariser determines the weights without data."""
        return False

    @property
    def supports_subsampled_start(self) -> bool:
        """Whether weights learned on a subsample are a good start for the whole sample."""
        return not self.fixed_weights

    def check(self) -> None:
        self.method(n_kernels=1)

    def method(self, n_kernels: int) -> str:
        """The solver's name, a key of ``multikernel.solvers.joint.find.SOLVERS``."""
        return "alternation"

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        """The regulariser on this sample; ``summary`` holds the sample's statistics, if known."""
        raise NotImplementedError

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return regulariser_of(self, grams, target, summary).start()


def regulariser_of(
    rule: JointWeighting, grams: Grams, target: Target, summary: Summary | None = None
) -> Regulariser:
    """``rule.regulariser(...)``, without the summary if the rule does not accept it."""
    if "summary" in inspect.signature(rule.regulariser).parameters:
        return rule.regulariser(grams, target, summary=summary)
    return rule.regulariser(grams, target)


def check_exponent(owner: str, name: str, value: Any, below: float = np.inf) -> None:
    """Raise ValueError unless ``1 <= value < below``; infinity is allowed without ``below``."""
    if not value >= 1 or (below < np.inf and not value < below):
        upper = "" if below == np.inf else f" and below {below:g}"
        raise ValueError(f"{owner}: {name} must be at least 1{upper}; got {value!r}.")
