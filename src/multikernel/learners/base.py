"""What a learner is: it predicts with one fixed kernel."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import Loss


class Learner(Protocol):
    """Anything that trains predictors on a combined Gram operator."""

    #: the methods of the operator that `fit` calls; of names in a tuple any one is enough
    needs: ClassVar[tuple[str | tuple[str, ...], ...]]
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


def require_offers(learner: Learner, gram: CombinedGram) -> None:
    """Raise if an operator does not offer the methods that a learner needs."""
    offers = gram.offers
    for need in learner.needs:
        any_of = (need,) if isinstance(need, str) else need
        if not offers.intersection(any_of):
            raise TypeError(
                f"{type(learner).__name__} needs {' or '.join(f'{name}()' for name in any_of)} of "
                f"the combined kernel, but {type(gram).__name__} offers only "
                f"{', '.join(sorted(offers))}. Use another learner, or another engine."
            )
