"""Kernel matrices that are computed once, for the folds of a cross-validation."""

from __future__ import annotations

from copy import copy as shallow_copy
from typing import Any

import numpy as np

from .blocks import BlockGrams, RawCross
from .dense import DenseCross, DenseGrams, PoolRows


class StoredGrams(DenseGrams):
    """Raw matrices of other grams, computed once, for many samples of one pool (folds).

    New inputs are still evaluated by the original grams.
    """

    def __init__(self, origin: BlockGrams) -> None:
        raw = np.empty((origin.p, origin.n, origin.n), dtype=origin.dtype)

        def fill(rows: slice) -> None:
            raw[:, rows] = origin.raw_block(rows)

        origin.map(fill)
        super().__init__(
            list(raw),
            np.arange(origin.n),
            None,
            None,
            origin.names,
            origin.budget,
            known_psd=origin.known_psd,
            sample_weight=origin.sample_weight,
            n_jobs=origin.n_jobs,
        )
        self.origin = origin

    def corrected(self, center: bool, normalize: str | None) -> BlockGrams:
        if center != self.origin.center:
            raise ValueError("These matrices were stored for kernels that are (not) to be centred.")
        return super().corrected(center, normalize)

    def removed_diagonals(self) -> np.ndarray:
        return self.origin.removed_diagonals()[:, self.sample]

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> StoredCross:
        return StoredCross(self, rows, kernels)

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> StoredGrams:
        new = shallow_copy(self)
        DenseGrams.__init__(
            new,
            self.matrices,
            self.sample[rows],
            None,
            None,
            self.names,
            self.budget,
            known_psd=self.known_psd,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )
        new.center, new.how = False, None
        if copy:
            new._copy_sample()
        return new


class StoredCross(DenseCross):
    """Training samples are looked up; the original grams evaluate new inputs."""

    def __init__(self, grams: StoredGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        super().__init__(grams, rows, kernels)
        self.evaluated = grams.origin.raw_cross(grams.sample[rows], kernels)

    def slim(self, diagonals: bool) -> RawCross:
        return self.evaluated.slim(diagonals)  # only training samples are looked up

    def encode(self, X: Any) -> Any:
        return self.evaluated.encode(X)

    def block(self, points: Any) -> np.ndarray:
        if isinstance(points, PoolRows):
            return super().block(points)
        return self.evaluated.block(points)

    def apply(self, points: Any, V: np.ndarray) -> np.ndarray:
        if isinstance(points, PoolRows):
            return super().apply(points, V)
        return self.evaluated.apply(points, V)

    def combined(self, points: Any, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        if isinstance(points, PoolRows):
            return super().combined(points, kernel_weights, V)
        return self.evaluated.combined(points, kernel_weights, V)

    def diagonals(self, points: Any) -> np.ndarray:
        if isinstance(points, PoolRows):
            return super().diagonals(points)
        return self.evaluated.diagonals(points)

    def gradients(
        self, X: Any, kernel_weights: np.ndarray, V: np.ndarray, steps: np.ndarray
    ) -> np.ndarray | None:
        return self.evaluated.gradients(X, kernel_weights, V, steps)
