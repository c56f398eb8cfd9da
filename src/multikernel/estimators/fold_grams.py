"""Gram matrices of the training parts of a cross-validation, and the samples held out from them.

Kernels that do not depend on the sample are evaluated once, and every training part is a view of
the result. Kernels that learn widths, scales or ranks from the sample learn them from each training
part separately, so that held-out samples have no influence on them.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np

from ..grams.protocol import Expansion, Grams
from ..kernels.bank import as_bank


class FoldGrams(Protocol):
    """Source of the kernel values for the folds of a search."""

    def part(
        self, train: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Grams, np.ndarray | None]:
        """The bank on a training part, not yet centred or normalised.

        The second result is the mask (p, n) of the kernels that each sample has; None unless
        ``missing="absent"``.
        """

    def held_out(self, expansion: Expansion, test: np.ndarray) -> Any:
        """Held-out samples, encoded for an expansion on the training part."""


class OneEvaluation:
    """Kernels fixed beforehand: one evaluation serves all folds."""

    def __init__(self, grams: Grams, has: np.ndarray | None) -> None:
        self.grams, self.has = grams, has

    def part(
        self, train: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Grams, np.ndarray | None]:
        has = None if self.has is None else self.has[:, train]
        return self.grams.take(train, sample_weight), has

    def held_out(self, expansion: Expansion, test: np.ndarray) -> Any:
        return self.grams.points(test)


class GramsPerFold:
    """Kernels that learn from the training sample, separately for every training part."""

    def __init__(self, estimator: Any, X: Any, keep: np.ndarray) -> None:
        self.estimator, self.X, self.keep = estimator, X, keep

    def fold_estimator(self) -> Any:
        """A shallow copy of the estimator, so that a fold can set attributes."""
        return copy.copy(self.estimator)

    def part(
        self, train: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Grams, np.ndarray | None]:
        fold = self.fold_estimator()
        grams: Grams = fold._make_grams(self.X, self.keep[train], sample_weight)
        return grams.stored(fold.center), fold._pop_has_kernels()

    def held_out(self, expansion: Expansion, test: np.ndarray) -> Any:
        return expansion.encode(self.X[self.keep[test]])


def fold_grams(estimator: Any, X: Any, keep: np.ndarray, grams: Grams) -> FoldGrams:
    """The kernels for the folds of a search; ``grams`` are those of the whole sample."""
    if learns_from_sample(estimator):
        return GramsPerFold(estimator, X, keep)
    return OneEvaluation(grams, estimator.__dict__.get("_has_kernels"))


def learns_from_sample(estimator: Any) -> bool:
    """Whether the bank that an estimator has just made depends on the training sample."""
    if estimator._is_precomputed:
        return False
    return estimator.kernels is None or estimator.bank_ != as_bank(estimator.kernels)
