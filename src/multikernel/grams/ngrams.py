"""Rank-one grams whose features are made from X, such as counts of n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np

from .protocol import Expansion
from .rankone import RankOneExpansion, RankOneGrams


class NgramGrams(RankOneGrams):
    """Rank-one grams; ``columns`` is the object that computes the features of new samples."""

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        return NgramExpansion(self, kernel_weights, self._inner(kernel_weights, coef))


class NgramExpansion(RankOneExpansion):
    """A linear function of the features."""

    def encode(self, X: Any) -> Any:
        return self.columns(X)  # type: ignore[operator]

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        raise TypeError("Counts of n-grams are not functions of numeric columns.")
