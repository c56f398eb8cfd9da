"""A small sample with the same sums as a large one, and its grams.

From the sums W, m, S of all samples (:mod:`multikernel.grams.lowrank.sums`), a factor ``A'A = S``
of rank r gives r + 1 rows ``m + H A``, where the columns of H are orthonormal and sum to zero.
With weight ``W / (r + 1)`` each they have the same total weight, mean and products as the samples
themselves. Every quantity that depends on the data through these alone has the same value on both:
centred and normalised kernels' traces, norms and alignments, ridge regression with any ridge
constant and any kernel weights, its objective and its duality gap. Rules and solvers run on the
small sample unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from ..._threads import one_blas_thread
from ..linear import LinearGrams
from ..memory import MemoryBudget
from ..protocol import Expansion, require_sizes
from .features import FeatureMap
from .sums import FeatureSums

#: Eigenvalues of the products below this part of the largest are rounding errors.
RELATIVE_EIGENVALUE = 1e-15


def small_sample(sums: FeatureSums) -> tuple[np.ndarray, np.ndarray]:
    """Rows of shape (r + 1, D + t) and their weights, which have these sums."""
    # Columns may differ greatly in size: scale each to unit norm before factoring.
    size = np.sqrt(np.maximum(np.diag(sums.products), 0.0))
    unit = np.where(size > 0, size, 1.0)
    with one_blas_thread(len(unit)):
        values, vectors = eigh(sums.products / np.outer(unit, unit), check_finite=False)
    kept = values > RELATIVE_EIGENVALUE * max(float(values[-1]), 0.0)
    # By `size`, not `unit`: columns that are constant stay so, without rounding errors.
    A = np.sqrt(values[kept])[:, None] * vectors[:, kept].T * size
    rows = len(A) + 1
    # The reflection that maps the first unit vector to ones / sqrt(rows), without its first column.
    v = np.full(rows, -1.0 / np.sqrt(rows))
    v[0] += 1.0
    V = np.zeros((rows, A.shape[1]))
    V[1:] = A
    if rows > 1:
        V -= np.outer(2.0 * v / (v @ v), v @ V)
    V *= np.sqrt(rows / sums.weight)
    return V + sums.mean, np.full(rows, sums.weight / rows)


class FeatureGrams(LinearGrams):
    """Grams of kernels with explicit features: ``K_k = s_k (F_k - m_k)(F_k - m_k)'``."""

    kind = "low-rank"

    def __init__(
        self,
        F: np.ndarray,
        features: FeatureMap,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(
            F,
            features.widths,
            features,  # type: ignore[arg-type]
            names,
            budget,
            sample_weight=sample_weight,
            n_jobs=n_jobs,
        )
        self.features_of = features

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> FeatureGrams:
        return FeatureGrams(
            self.data[rows],
            self.features_of,
            self.names,
            self.budget,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        coef = np.asarray(coef, dtype=np.float64).reshape(self.n, -1)
        factors = (np.asarray(kernel_weights, dtype=np.float64) * np.sqrt(self.scale))[self.owner]
        slopes = factors[:, None] * (self.U.T @ coef)
        return FeatureExpansion(self.features_of, self.shift, slopes)


class FeatureExpansion(Expansion):
    """A linear function of features: one slope per feature and output.

    Parameters
    ----------
    features : FeatureMap
    shift : array of shape (D,)
        The mean of the features, or zero.
    slopes : array of shape (D, t)
    """

    def __init__(self, features: FeatureMap, shift: np.ndarray, slopes: np.ndarray) -> None:
        self.n_kernels = features.n_kernels
        self.features, self.shift, self.slopes = features, shift, slopes

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        D = state["features"].n_features
        fit = D == len(state["slopes"]) == len(state["shift"])
        require_sizes(fit and state["n_kernels"] == state["features"].n_kernels, "slopes")
        return super().from_state(state)

    @property
    def encoding(self) -> int:
        return id(self.features)

    def encode(self, X: Any) -> Any:
        return X

    def values(self, points: Any) -> np.ndarray:
        return self._by_blocks(points, lambda U: U @ self.slopes)

    def shares(self, points: Any) -> np.ndarray:
        starts = self.features.starts[:-1]
        return self._by_blocks(
            points, lambda U: np.add.reduceat(U[:, :, None] * self.slopes, starts, axis=1)
        )

    def _by_blocks(self, X: Any, fn: Any) -> np.ndarray:
        """Apply a function to blocks of rows small enough for their features to fit in memory."""
        from .sums import blocks

        cut = blocks(X.shape[0], self.features.n_features) or [slice(0, 0)]
        return np.concatenate([fn(self.features(X[rows]) - self.shift) for rows in cut])
