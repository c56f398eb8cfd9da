"""Sums over samples of features and targets, which are sufficient for ridge-type learning.

With rows ``v_i = [phi(x_i), y_i]`` and sample weights ``omega_i`` these are

    W = sum omega_i,   m = sum omega_i v_i / W,   S = sum omega_i (v_i - m)(v_i - m)'

Two sets of sums add up exactly (Chan, Golub & LeVeque 1983):

    S = S_a + S_b + W_a W_b / W (m_a - m_b)(m_a - m_b)'

so products of means are never subtracted from large sums, and any fixed tree can reduce chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .features import FeatureMap
from .products import Products

#: Bytes of features per block, which determine its number of rows.
BLOCK_BYTES = 32 * 2**20
#: Minimum number of rows per block: products of fewer rows are slow.
MIN_BLOCK_ROWS = 256


@dataclass(frozen=True)
class FeatureSums:
    """The sums of some samples.

    Attributes
    ----------
    n : int
        Number of samples with a positive weight.
    weight : float
        W.
    mean : array of shape (D + t,)
        m.
    products : array of shape (D + t, D + t)
        S.
    traces : array of shape (p,)
        ``sum_i omega_i K_k(x_i, x_i)`` of the kernels themselves.
    errors : array of shape (p,)
        ``sum_i omega_i (K_k(x_i, x_i) - ||phi_k(x_i)||^2)``: the trace of the error.
    """

    n: int
    weight: float
    mean: np.ndarray
    products: np.ndarray
    traces: np.ndarray
    errors: np.ndarray

    def __add__(self, other: FeatureSums) -> FeatureSums:
        if self.weight == 0 or other.weight == 0:
            return other if self.weight == 0 else self
        weight = self.weight + other.weight
        step = other.mean - self.mean
        products = self.products + other.products
        products += np.outer((self.weight * other.weight / weight) * step, step)
        return FeatureSums(
            self.n + other.n,
            weight,
            self.mean + (other.weight / weight) * step,
            products,
            self.traces + other.traces,
            self.errors + other.errors,
        )

    def without(self, other: FeatureSums) -> FeatureSums:
        """The sums without those of `other`, a subset; loses digits if few samples remain."""
        weight = self.weight - other.weight
        mean = (self.weight * self.mean - other.weight * other.mean) / weight
        step = other.mean - mean
        products = self.products - other.products
        products -= np.outer((weight * other.weight / self.weight) * step, step)
        return FeatureSums(
            self.n - other.n,
            weight,
            mean,
            products,
            self.traces - other.traces,
            self.errors - other.errors,
        )


@dataclass(frozen=True)
class SumsOfChunk:
    """Maps a chunk of rows to its sums; it can be sent to other processes.

    Attributes
    ----------
    features : FeatureMap
    origin : array of shape (D,)
        A point near the mean of the features, subtracted before products are formed.
    encode : callable
        ``encode(y)`` returns targets of shape (n, t) and factors of the sample weights, or None.
    products : callable
        The products of the engine.
    """

    features: FeatureMap
    origin: np.ndarray
    encode: Callable[[Any], tuple[np.ndarray, np.ndarray | None]]
    products: Products

    def __call__(self, chunk: Any) -> FeatureSums:
        X, y, sample_weight = chunk
        Y, factors = self.encode(y)
        omega = combined_weights(sample_weight, factors)
        total = None
        for rows in blocks(X.shape[0], self.features.n_features):
            own = None if omega is None else omega[rows]
            part = self._block(X[rows], Y[rows], own)
            total = part if total is None else total + part
        if total is None:
            return self._block(X[:0], Y[:0], None)
        return total

    def _block(self, X: Any, Y: np.ndarray, omega: np.ndarray | None) -> FeatureSums:
        n, p = X.shape[0], self.features.n_kernels
        D, t = self.features.n_features, Y.shape[1]
        if n == 0:
            zero = np.zeros((D + t, D + t))
            return FeatureSums(0, 0.0, np.zeros(D + t), zero, np.zeros(p), np.zeros(p))
        Phi, diagonals = self.features.with_errors(X)
        lengths = np.add.reduceat(Phi**2, self.features.starts[:-1], axis=1).T
        V = np.empty((n, D + t))
        np.subtract(Phi, self.origin, out=V[:, :D])
        V[:, D:] = Y
        ones = np.ones(n) if omega is None else omega
        weight = float(ones.sum())
        if weight == 0:
            return self._block(X[:0], Y[:0], None)
        offset = ones @ V / weight
        products = self.products(V, omega)
        products -= np.outer(weight * offset, offset)
        mean = offset.copy()
        mean[:D] += self.origin
        return FeatureSums(
            int(np.count_nonzero(ones)),
            weight,
            mean,
            products,
            diagonals @ ones,
            (diagonals - lengths) @ ones,
        )


def combined_weights(
    sample_weight: np.ndarray | None, factors: np.ndarray | None
) -> np.ndarray | None:
    """Sample weights times further factors; None if all are one."""
    if sample_weight is None or factors is None:
        return factors if sample_weight is None else sample_weight
    return np.asarray(sample_weight * factors)


def blocks(n: int, n_features: int) -> list[slice]:
    """Blocks of rows of a chunk whose features are computed together; the cut is fixed."""
    height = max(BLOCK_BYTES // (8 * max(n_features, 1)), MIN_BLOCK_ROWS)
    return [slice(i, min(i + height, n)) for i in range(0, n, height)]
