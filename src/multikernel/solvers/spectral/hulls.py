"""Kernels of equal trace on the labelled samples, whose combinations form a hull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Hull(Protocol):
    """Kernels of equal trace on the labelled samples, with the operations that solvers need."""

    @property
    def p(self) -> int:
        """The number of kernels."""
        ...

    def combine(self, d: np.ndarray) -> np.ndarray:
        """``sum_k d_k K_k``, shape (n, n)."""
        ...

    def forms(self, s: np.ndarray) -> np.ndarray:
        """``s'K_k s``, shape (p,)."""
        ...

    def roots(self) -> list[np.ndarray]:
        """Matrices B_k with ``B_k'B_k = K_k``."""
        ...

    def products(self) -> np.ndarray:
        """``<K_k, K_l>``, shape (p, p)."""
        ...


@dataclass(frozen=True)
class KernelMatrices:
    """Kernels as an array of matrices, shape (p, n, n)."""

    stack: np.ndarray

    @property
    def p(self) -> int:
        return len(self.stack)

    def combine(self, d: np.ndarray) -> np.ndarray:
        return np.tensordot(d, self.stack, axes=1)

    def forms(self, s: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(s)
        part = self.stack[:, support[:, None], support]
        return (part @ s[support]) @ s[support]

    def roots(self) -> list[np.ndarray]:
        return [root(K) for K in self.stack]

    def products(self) -> np.ndarray:
        flat = self.stack.reshape(self.p, -1)
        return flat @ flat.T


@dataclass(frozen=True)
class RankOneKernels:
    """Kernels ``v_k v_k'`` of rank one; the vectors are the columns of V, shape (n, p)."""

    V: np.ndarray

    @property
    def p(self) -> int:
        return int(self.V.shape[1])

    def combine(self, d: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(d)
        scaled = self.V[:, used] * np.sqrt(d[used])
        return scaled @ scaled.T

    def forms(self, s: np.ndarray) -> np.ndarray:
        return (s @ self.V) ** 2

    def roots(self) -> list[np.ndarray]:
        return [v[None] for v in self.V.T]

    def products(self) -> np.ndarray:
        return (self.V.T @ self.V) ** 2


def root(K: np.ndarray) -> np.ndarray:
    """A matrix B with ``B'B = K`` and as many rows as K has non-zero eigenvalues."""
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-13 * max(values[-1], 0.0)
    return (vectors[:, keep] * np.sqrt(values[keep])).T
