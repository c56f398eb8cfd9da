"""What a learner is: it predicts with one fixed kernel."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import Loss


class Learner(Protocol):
    """Anything that trains machines on a combined Gram operator."""

    kind: str
    #: the loss l of ``1/2 ||f||^2 + sum_i C_i l(f(x_i) + b, y_i)``
    loss: Loss

    #: whether the intercept is free
    fit_intercept: bool

    def costs(self, target: Target) -> np.ndarray:
        """The factors C_i of the loss, shape (n,)."""
        ...

    @property
    def unit(self) -> float:
        """What that objective is multiplied by to give the learner's own."""
        ...

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train one machine per column of the target, perhaps from near coefficients."""
        ...
