"""The interface of learners, which train a predictor with one fixed kernel."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import Loss


class Learner(Protocol):
    """Minimises ``1/2 ||f||^2 + sum_i C_i l(f(x_i) + b, y_i)`` on a combined Gram operator.

    The operator must offer the methods in `needs`.
    """

    #: Methods of the operator that `fit` calls; a tuple lists alternatives.
    needs: ClassVar[tuple[str | tuple[str, ...], ...]]
    kind: str
    #: The loss l.
    loss: Loss
    #: Whether b is free; it is zero otherwise.
    fit_intercept: bool

    def costs(self, target: Target) -> np.ndarray:
        """The factors C_i, shape (n,)."""
        ...

    @property
    def unit(self) -> float:
        """The ratio of the learner's own objective to the objective above."""
        ...

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train one predictor per column of the target.

        ``start``, of shape (n, t), holds the coefficients of a similar problem.
        """
        ...


class LeftOutLearner(Learner, Protocol):
    """A learner that can predict training samples as if they had been left out."""

    #: Up to this many samples, every sample is left out; of more, only a part.
    max_left_out: int

    def left_out(
        self, gram: CombinedGram, target: Target, machine: Machine, rows: np.ndarray
    ) -> np.ndarray:
        """Values at some samples as if they had been left out, shape (len(rows), t)."""
        ...


def require_offers(learner: Learner, gram: CombinedGram) -> None:
    """Raise TypeError if the operator lacks a method that the learner needs."""
    offers = gram.offers
    for need in learner.needs:
        any_of = (need,) if isinstance(need, str) else need
        if not offers.intersection(any_of):
            raise TypeError(
                f"{type(learner).__name__} needs {' or '.join(f'{name}()' for name in any_of)} of "
                f"the combined kernel, but {type(gram).__name__} offers only "
                f"{', '.join(sorted(offers))}. Use another learner, or another engine."
            )
