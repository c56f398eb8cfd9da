"""Combinations of matrices that need not be symmetric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .operators import EigenvalueBounds
from .protocol import CombinedGram, as_positions

if TYPE_CHECKING:
    from .dense import DenseGrams


class AsymmetricCombined(CombinedGram):
    """``sum_k w_k K_k``: entries and products, but no passes that need a symmetric matrix."""

    def __init__(self, grams: DenseGrams, kernel_weights: np.ndarray) -> None:
        self.grams, self.kernel_weights, self.n = grams, kernel_weights, grams.n
        self.room = grams.budget.bytes

    @property
    def offers(self) -> frozenset[str]:
        return frozenset({"matvec", "diagonal", "rows", "columns", "submatrix"})

    def _entries(self, rows: slice | np.ndarray, columns: slice | np.ndarray) -> np.ndarray:
        rows, columns = as_positions(rows, self.n), as_positions(columns, self.n)
        out = np.zeros((len(rows), len(columns)))
        for k in np.flatnonzero(self.kernel_weights).tolist():
            out += self.kernel_weights[k] * self.grams.entries(k, rows, columns)
        return out

    def rows(self, index: slice | np.ndarray) -> np.ndarray:
        return self._entries(index, slice(None))

    def columns(self, index: slice | np.ndarray) -> np.ndarray:
        return self._entries(slice(None), index)

    def submatrix(self, index: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        return self._entries(index, index).astype(dtype, copy=False)

    def matvec(self, V: np.ndarray) -> np.ndarray:
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        parts = self.grams.map(lambda panel: self.rows(panel) @ V2)
        return np.concatenate(parts, axis=0).reshape(np.shape(V))

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.kernel_weights @ self.grams.raw_diagonals())

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        raise asymmetry_error("Solving with a combination")

    def lowest_eigenvalue(self, *, rough: bool = False) -> EigenvalueBounds:
        raise asymmetry_error("The spectrum of a combination")

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        raise asymmetry_error("The norm of a centred combination")


def asymmetry_error(what: str) -> ValueError:
    """The error raised by a pass that needs symmetric matrices."""
    return ValueError(
        f"{what} needs symmetric kernels, and these were not required to be symmetric. Build the "
        "grams with symmetric=True; if a matrix is not symmetric, use (K + K.T) / 2."
    )
