"""Features of some kernels of a bank: by landmarks, by random frequencies, by sketches, or exact.

Each part computes the features of its kernels, ``K_k(x, z) ~ phi_k(x)'phi_k(z)``, row by row: the
features of a sample never depend on the other samples of its chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from ...kernels.base import Kernel
from ...kernels.vectors import Polynomial
from ..memory import MemoryBudget
from ..protocol import Stateful, require_sizes
from ..rankone import take_feature_columns
from ..shared import SharedCross, SharedGrams

#: Eigenvalues of a kernel among landmarks below this part of the largest are rounding errors.
RELATIVE_EIGENVALUE = 1e-12


class FeaturePart(Protocol):
    """Makes the features of some kernels, side by side."""

    kind: str
    #: number of features of each kernel
    widths: list[int]

    def features(self, X: Any) -> np.ndarray:
        """The features of X, shape (n, sum(widths))."""
        ...

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        """``K_k(x, x)`` of the kernels themselves, shape (p, n)."""
        ...


class LandmarkPart(Stateful):
    """``phi_k(x) = R_k'K_k(L, x)`` with ``R_k R_k'`` the pseudo-inverse of ``K_k(L, L)``."""

    kind = "landmarks"

    def __init__(self, kernels: Sequence[Kernel], rows: Any, shared: bool) -> None:
        self.kernels, self.rows = list(kernels), rows
        self.cross = _cross(self.kernels, rows) if shared else None
        self.roots = [inverse_root(K) for K in self._blocks(rows)]
        self.widths = [root.shape[1] for root in self.roots]

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LandmarkPart:
        roots, rows = state["roots"], state["rows"]
        fit = len(roots) == len(state["kernels"]) == len(state["widths"])
        require_sizes(fit, "kernels of the landmarks")
        shapes = [(rows.shape[0], width) for width in state["widths"]]
        require_sizes([root.shape for root in roots] == shapes, "landmarks")
        return super().from_state(state)

    def _blocks(self, X: Any) -> list[np.ndarray]:
        """``K_k(x, L)`` of every kernel, float64."""
        if self.cross is not None:
            return list(self.cross.block(self.cross.encode(X)))
        return [np.asarray(kernel(X, self.rows), dtype=np.float64) for kernel in self.kernels]

    def features(self, X: Any) -> np.ndarray:
        out = np.empty((X.shape[0], sum(self.widths)))
        start = 0
        for K, root in zip(self._blocks(X), self.roots, strict=True):
            np.matmul(K, root, out=out[:, start : start + root.shape[1]])
            start += root.shape[1]
        return out

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        if self.cross is not None:
            return self.cross.diagonals(self.cross.encode(X))
        return np.stack([np.asarray(kernel.diag(X), dtype=np.float64) for kernel in self.kernels])


def _cross(kernels: Sequence[Any], rows: Any) -> SharedCross:
    """The compiled evaluation of kernels of a distance or dot product against landmarks."""
    names = [str(k) for k in range(len(kernels))]
    grams = SharedGrams.evaluate(kernels, rows, names, MemoryBudget.of(None))
    return grams.raw_cross(np.arange(grams.n), np.arange(grams.p))


def inverse_root(K: np.ndarray) -> np.ndarray:
    """R with ``R R'`` the pseudo-inverse of a positive semidefinite K, shape (m, rank).

    If K is zero, R is one column of zeros: sums over the features of each kernel need at least one.
    """
    values, vectors = eigh(0.5 * (K + K.T), check_finite=False)
    # Eigenvalues in descending order: the first features matter most.
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[0] > 0:
        return np.zeros((len(K), 1))
    kept = values > RELATIVE_EIGENVALUE * float(values[0])
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


class FourierPart(Stateful):
    """Cosines and sines of random frequencies for kernels of ``x - z`` on the same columns.

    ``phi_k(x) = sqrt(1/m) [cos(W_k'x), sin(W_k'x)]`` with the m columns of ``W_k``. Kernels of
    the Euclidean distance share the directions of their frequencies.
    """

    kind = "frequencies"

    def __init__(
        self, kernels: Sequence[Any], origin: np.ndarray, frequencies: Sequence[np.ndarray]
    ) -> None:
        self.kernels, self.origin = list(kernels), origin
        self.frequencies = list(frequencies)
        self.widths = [2 * W.shape[1] for W in self.frequencies]

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FourierPart:
        shapes = [W.shape for W in state["frequencies"]]
        fit = [2 * m for _, m in shapes] == list(state["widths"])
        require_sizes(fit and len(shapes) == len(state["kernels"]), "frequencies of the kernels")
        require_sizes({d for d, _ in shapes} <= {len(state["origin"])}, "columns of frequencies")
        return super().from_state(state)

    def features(self, X: Any) -> np.ndarray:
        # Relative to the mean of the sample, angles are small and keep their digits.
        Z = as_dense(self.kernels[0].select(X)) - self.origin
        out = np.empty((Z.shape[0], sum(self.widths)))
        start = 0
        for W in self.frequencies:
            m = W.shape[1]
            angles = Z @ W
            np.cos(angles, out=out[:, start : start + m])
            np.sin(angles, out=out[:, start + m : start + 2 * m])
            out[:, start : start + 2 * m] *= np.sqrt(1.0 / m)
            start += 2 * m
        return out

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        return np.ones((len(self.kernels), len(features)))


class SketchPart(Stateful):
    """A tensor sketch of one polynomial kernel (Pham & Pagh 2013).

    With the constant as one more column, ``K(x, z) = <u(x), u(z)>^degree``. The sketch of a power
    is the circular convolution of count sketches of the factors.
    """

    kind = "sketches"

    def __init__(self, kernel: Polynomial, n_columns: int, width: int, seed: Any) -> None:
        random = np.random.default_rng(seed)
        self.kernels, self.widths = [kernel], [width]
        shape = (kernel.degree, n_columns + 1)
        self.buckets = random.integers(0, width, size=shape)
        self.signs = random.choice([-1.0, 1.0], size=shape)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SketchPart:
        buckets, signs, width = state["buckets"], state["signs"], state["widths"][0]
        require_sizes(buckets.shape == signs.shape and len(state["widths"]) == 1, "sketches")
        require_sizes(bool(np.all((buckets >= 0) & (buckets < width))), "buckets of sketches")
        return super().from_state(state)

    def features(self, X: Any) -> np.ndarray:
        kernel, width = self.kernels[0], self.widths[0]
        Z = np.sqrt(kernel.gamma) * as_dense(kernel.select(X))
        U = np.column_stack([Z, np.full(len(Z), np.sqrt(kernel.coef0))])
        product: Any = 1.0
        for buckets, signs in zip(self.buckets, self.signs, strict=True):
            to = sp.csr_array((signs, (np.arange(len(buckets)), buckets)), (len(buckets), width))
            product = product * np.fft.rfft(U @ to, axis=1)
        return np.asarray(np.fft.irfft(product, n=width, axis=1))

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        return np.asarray(self.kernels[0].diag(X), dtype=np.float64)[None]


class ColumnsPart(Stateful):
    """Linear kernels: the columns themselves, exactly."""

    kind = "columns"

    def __init__(self, kernels: Sequence[Kernel], widths: Sequence[int]) -> None:
        self.kernels, self.widths = list(kernels), list(widths)

    def features(self, X: Any) -> np.ndarray:
        columns = [as_dense(kernel.select(X)) for kernel in self.kernels]  # type: ignore[attr-defined]
        return np.concatenate(columns, axis=1)

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        starts = np.concatenate([[0], np.cumsum(self.widths)])[:-1]
        return np.asarray(np.add.reduceat(features**2, starts, axis=1).T)


class SinglePart(Stateful):
    """Kernels of one feature each, a column of X or the count of an n-gram, exactly."""

    kind = "single features"

    def __init__(self, columns: np.ndarray | None, counts: Any = None) -> None:
        self.columns, self.counts = columns, counts
        self.widths = [1] * (len(counts) if columns is None else len(columns))

    def features(self, X: Any) -> np.ndarray:
        if self.columns is None:
            return as_dense(self.counts(X))
        return as_dense(take_feature_columns(X, self.columns))

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        return np.asarray(features.T**2)


def as_dense(Z: Any) -> np.ndarray:
    """A dense float64 array."""
    return np.asarray(Z.toarray() if sp.issparse(Z) else Z, dtype=np.float64)
