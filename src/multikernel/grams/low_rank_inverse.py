"""The inverse of a kernel matrix of low rank plus a diagonal.

    P = F F' + D,   D = diag(ridge),   K ~ F F' by randomly pivoted Cholesky

    P^-1 r = D^-1 r - D^-1 F (I + F'D^-1 F)^-1 F'D^-1 r

``E = K - F F'`` is positive semidefinite, so that all eigenvalues of ``P^-1 (K + D)`` are between 1
and ``1 + trace(E) / min(ridge)``.
"""

from __future__ import annotations

import numpy as np

from .. import _cholesky
from .pivoted_cholesky import PivotedCholesky


class LowRankInverse:
    """Products with the inverse of ``F F' + diag(ridge)``.

    Parameters
    ----------
    found : PivotedCholesky
    ridge : array of shape (n,)
        Positive.

    Attributes
    ----------
    rank : int
    condition : float
        A bound on the condition number of ``P^-1 (K + diag(ridge))``.
    """

    def __init__(self, found: PivotedCholesky, ridge: np.ndarray) -> None:
        self.rank = found.rank
        self.condition = 1.0 + found.error / float(ridge.min())
        self.root = np.sqrt(ridge)[:, None]
        self.half = found.F / self.root  # D^-1/2 F
        self.small = np.zeros((self.rank, self.rank))
        _cholesky.add_product(self.small, self.half)
        self.small[np.diag_indices(self.rank)] += 1.0
        _cholesky.factor(self.small)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """``P^-1 R`` for R of shape (n, t)."""
        scaled = R / self.root
        inner = _cholesky.solve(self.small, self.half.T @ scaled)
        return np.asarray((scaled - self.half @ inner) / self.root)
