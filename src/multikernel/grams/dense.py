"""Grams of kernels that are only known as matrices or as functions: explicit n x n matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..kernels.precomputed import Precomputed, check_symmetric_matrix
from .blocks import BlockGrams, RawCross
from .memory import MemoryBudget


class DenseGrams(BlockGrams):
    """One matrix per kernel, given (and never copied) or evaluated once and kept.

    Parameters
    ----------
    matrices : sequence of p arrays of shape (N, N), or None
        None for kernels that are evaluated anew, block by block, in every pass.
    rows : array of shape (n,)
        Which rows of the matrices (or of ``X``) make up the sample.
    kernels : sequence of p kernels
        What evaluates new points.
    X : array, sparse matrix or None
        The inputs the kernels are evaluated on; None for matrices without inputs.
    """

    kind = "dense"

    def __init__(
        self,
        matrices: Sequence[np.ndarray] | None,
        rows: np.ndarray,
        kernels: Sequence[Kernel] | None,
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        weights: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        single = matrices is not None and all(K.dtype == np.float32 for K in matrices)
        dtype = np.float32 if single else np.float64
        super().__init__(len(rows), names, dtype, budget, weights=weights, n_jobs=n_jobs)
        self.matrices = matrices
        self.sample = rows
        self.kernels = kernels
        self.X = X
        # A sample that is the whole pool in order is read by plain slices, without a copy.
        self._whole = matrices is not None and np.array_equal(rows, np.arange(len(matrices[0])))
        if matrices is None:
            budget.require(
                8.0 * self.p * self.n * (self.panels()[0].stop + 1),
                f"One block of {self.p} kernels on {self.n} samples",
                "Raise memory_budget, use fewer kernels, or fewer samples.",
            )

    @classmethod
    def evaluate(
        cls,
        kernels: Sequence[Kernel],
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        weights: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> DenseGrams:
        """Evaluate the kernels on X now if the matrices fit the budget, else in every pass."""
        n = X.shape[0]
        options: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs}
        rows = np.arange(n)
        if all(isinstance(kernel, Precomputed) for kernel in kernels):
            ids = kernels[0].ids(X)  # type: ignore[attr-defined]
            matrices = [kernel.matrix for kernel in kernels]  # type: ignore[attr-defined]
            for kernel in kernels:
                kernel.ids(X)  # type: ignore[attr-defined]
            return cls(matrices, ids, kernels, None, names, budget, **options)
        if not budget.allows(2.0 * len(kernels) * n * n * 8):
            return cls(None, rows, kernels, X, names, budget, **options)
        matrices = []
        for kernel, name in zip(kernels, names, strict=True):
            K = kernel(X)
            check_symmetric_matrix(K, name)
            matrices.append(K)
        return cls(matrices, rows, kernels, X, names, budget, **options)

    @classmethod
    def given(
        cls,
        X: np.ndarray,
        rows: np.ndarray,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        weights: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> DenseGrams:
        """Matrices in an array (N, N, p), kernel axis last, read in place."""
        matrices = [X[:, :, k] for k in range(X.shape[2])]
        for K, name in zip(matrices, names, strict=True):
            check_symmetric_matrix(K, name)
        return cls(matrices, rows, None, None, names, budget, weights=weights, n_jobs=n_jobs)

    @property
    def known_psd(self) -> np.ndarray:
        if self.kernels is None:
            return np.zeros(self.p, dtype=bool)
        return np.array([kernel.is_psd for kernel in self.kernels])

    def raw_block(self, rows: slice) -> np.ndarray:
        out = np.empty((self.p, len(range(*rows.indices(self.n))), self.n), dtype=self.dtype)
        for k in range(self.p):
            if self.matrices is None:
                assert self.kernels is not None
                out[k] = self.kernels[k](self.X[self.sample[rows]], self.X[self.sample])
            elif self._whole:
                out[k] = self.matrices[k][rows]
            else:
                out[k] = self.matrices[k][np.ix_(self.sample[rows], self.sample)]
        return out

    def raw_diagonals(self) -> np.ndarray:
        if self.matrices is not None:
            return np.stack([K[self.sample, self.sample] for K in self.matrices]).astype(np.float64)
        assert self.kernels is not None
        X = self.X[self.sample]
        return np.stack([kernel.diag(X) for kernel in self.kernels]).astype(np.float64)

    def raw_combine(self, weights: np.ndarray) -> np.ndarray:
        if self.matrices is None:
            return super().raw_combine(weights)
        out = np.zeros((self.n, self.n))
        for k in np.flatnonzero(weights).tolist():
            K = self.matrices[k]
            out += weights[k] * (K if self._whole else K[np.ix_(self.sample, self.sample)])
        return out

    def raw_quadratic_forms(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        if self.matrices is None:
            return super().raw_quadratic_forms(V, support)
        where = np.ix_(self.sample[support], self.sample[support])
        forms = [np.sum(V[support] * (K[where] @ V[support]), axis=0) for K in self.matrices]
        return np.stack(forms).astype(np.float64)

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> DenseCross:
        return DenseCross(self, rows, kernels)

    def take(self, rows: np.ndarray, weights: np.ndarray | None = None) -> DenseGrams:
        return DenseGrams(
            self.matrices,
            self.sample[rows],
            self.kernels,
            self.X,
            self.names,
            self.budget,
            weights=weights,
            n_jobs=self.n_jobs,
        )

    def points(self, rows: np.ndarray) -> Any:
        return Rows(self.sample[rows]) if self.matrices is not None else self.X[self.sample[rows]]


class Rows(np.ndarray):
    """Points of a pool whose kernel values are already known, by row number."""

    def __new__(cls, rows: np.ndarray) -> Rows:
        return np.asarray(rows, dtype=np.intp).view(cls)


class DenseCross(RawCross):
    """New points against anchors, by looking rows up or by evaluating the kernels.

    New points come in one of three forms: :class:`Rows` of the pool, an array (m, n, p) of kernel
    values against the whole training sample, or inputs for the kernels.
    """

    def __init__(self, grams: DenseGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        self.p = len(kernels)
        self.n_anchors = len(rows)
        self.anchors = grams.sample[rows]
        self.index = kernels
        self.names = [grams.names[k] for k in kernels]
        given = grams.kernels
        self.kernels = None if given is None else [given[k] for k in kernels]
        lookup = given is None or all(isinstance(kernel, Precomputed) for kernel in given)
        self.inputs = None if lookup or grams.X is None else grams.X[self.anchors]
        self.matrices: list[np.ndarray] | None = None
        if grams.matrices is not None:
            self.matrices = [grams.matrices[k] for k in kernels]

    def release(self) -> None:
        # Matrices are looked up while cross-validating; a fitted model evaluates its kernels.
        self.matrices = None

    def encode(self, X: Any) -> Any:
        if self.kernels is None:
            return np.asarray(X)
        if self.inputs is None:
            return Rows(self.kernels[0].ids(X)) if self.kernels else np.asarray(X)  # type: ignore[attr-defined]
        return X

    def _one(self, k: int, points: Any) -> np.ndarray:
        if isinstance(points, Rows):
            matrix = self.kernels[k].matrix if self.matrices is None else self.matrices[k]  # type: ignore[index, attr-defined]
            return np.asarray(matrix[np.ix_(points, self.anchors)], dtype=np.float64)
        if self.kernels is None:
            return np.asarray(points[:, self.anchors, self.index[k]], dtype=np.float64)
        return np.asarray(self.kernels[k](points, self.inputs), dtype=np.float64)

    def block(self, points: Any) -> np.ndarray:
        out = np.empty((self.p, points.shape[0], self.n_anchors))
        for k in range(self.p):
            out[k] = self._one(k, points)
        return out

    def apply(self, points: Any, V: np.ndarray) -> np.ndarray:
        out = np.empty((self.p, points.shape[0], V.shape[1]))
        for k in range(self.p):
            out[k] = self._one(k, points) @ V
        return out

    def combined(self, points: Any, weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        out = np.zeros((points.shape[0], V.shape[1]))
        for k in range(self.p):
            out += weights[k] * (self._one(k, points) @ V)
        return out

    def diagonals(self, points: Any) -> np.ndarray:
        if isinstance(points, Rows):
            source = self.matrices or [kernel.matrix for kernel in self.kernels]  # type: ignore[union-attr, attr-defined]
            return np.stack([K[points, points] for K in source]).astype(np.float64)
        if self.kernels is None:
            raise ValueError(
                "The spherical normalisation needs K(x, x) of new points, which an array of shape "
                "(n_new, n_train, p) does not hold. Use mk.precomputed with mk.sample_ids, or "
                "another normalisation."
            )
        return np.stack([kernel.diag(points) for kernel in self.kernels]).astype(np.float64)
