"""Gram matrices of the training parts of a cross-validation, and the samples held out from them.

Kernels that hold nothing of the sample are evaluated once, and every training part is a view of
the result. Kernels that take widths, scales or ranks from the sample take them from each training
part anew, so that no held-out sample has a say in them.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np

from ..grams.protocol import Expansion, Grams
from ..kernels.bank import as_bank


class FoldGrams(Protocol):
    """Where the folds of a search read kernel values."""

    def part(
        self, train: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Grams, np.ndarray | None]:
        """The bank on a training part, not yet centred or normalised.

        Second, which of its samples have which kernels, shape (p, n); None unless
        ``missing="absent"``.
        """

    def held_out(self, expansion: Expansion, test: np.ndarray) -> Any:
        """Held-out samples in the form that a function on the training part reads."""


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
    """Kernels that learn from their training sample: every training part has kernels of its own."""

    def __init__(self, estimator: Any, X: Any, keep: np.ndarray) -> None:
        self.estimator, self.X, self.keep = estimator, X, keep

    def fold_estimator(self) -> Any:
        """A copy whose attributes may be set by a fold."""
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
    """How the folds of a search get their kernels; ``grams`` are those of the whole sample."""
    if learns_from_sample(estimator):
        return GramsPerFold(estimator, X, keep)
    return OneEvaluation(grams, estimator.__dict__.get("_has_kernels"))


def learns_from_sample(estimator: Any) -> bool:
    """Whether the kernels of an estimator whose bank was just made took something from X."""
    if estimator._is_precomputed:
        return False
    return estimator.kernels is None or estimator.bank_ != as_bank(estimator.kernels)
