"""A preconditioner for kernel ridge regression from a few columns of the kernel.

    P = F F' + diag(ridge)  ~  A = K + diag(ridge),     K ~ F F' by randomly pivoted Cholesky

``E = K - F F'`` is positive semidefinite, so that all eigenvalues of ``P^-1 A`` are between 1 and
``1 + trace(E) / min(ridge)``: conjugate gradients need few steps once the trace of what is left is
of the size of the ridge (Diaz, Epperly, Frangella, Tropp & Webber, "Robust, randomized
preconditioning for kernel ridge regression", 2023). A product with ``P^-1`` costs O(n k),

    P^-1 r = D^-1 r - D^-1 F (I + F'D^-1 F)^-1 F'D^-1 r,    D = diag(ridge)

whatever the approximation, conjugate gradients converge, and the certificate does not depend on it.
"""

from __future__ import annotations

import numpy as np

from .. import _cholesky
from ..grams.pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from ..grams.protocol import CombinedGram

#: Rank, in units of the square root of n: the factor then costs about as much as one product.
RANK_FACTOR = 8.0
#: With fewer samples a product costs no more than the preconditioner.
MIN_SAMPLES = 1000
#: Share of the free memory for the factor.
MEMORY_SHARE = 0.25
#: Pivots proposed at once.
BLOCK = 256
#: Entries of kernels may be in single precision; pivots below its rounding are of no use.
PRECISION = 1e-8


class LowRankPreconditioner:
    """``P = F F' + diag(ridge)``, and products with its inverse.

    Parameters
    ----------
    found : PivotedCholesky
    ridge : array of shape (n,)
        Positive.

    Attributes
    ----------
    rank : int
    condition : float
        A bound on the condition number of ``P^-1 A``.
    """

    def __init__(self, found: PivotedCholesky, ridge: np.ndarray) -> None:
        self.rank = found.rank
        self.condition = 1.0 + found.error / float(ridge.min())
        self.ridge = ridge
        self.half = found.F / np.sqrt(ridge)[:, None]  # D^-1/2 F
        self.small = np.zeros((self.rank, self.rank))
        _cholesky.add_product(self.small, self.half)
        self.small[np.diag_indices(self.rank)] += 1.0
        _cholesky.factor(self.small)

    @classmethod
    def of(cls, gram: CombinedGram, ridge: np.ndarray) -> LowRankPreconditioner | None:
        """The preconditioner of an operator; None if one would not pay."""
        diagonal = gram.diagonal()
        trace = float(np.maximum(diagonal, 0.0).sum())
        room = MEMORY_SHARE * gram.room / (2 * 8.0 * gram.n)
        rank = int(min(RANK_FACTOR * np.sqrt(gram.n), gram.n, room))
        if gram.n < MIN_SAMPLES or gram.fast_products or rank < 1 or trace <= float(ridge.min()):
            return None
        found = pivoted_cholesky(
            gram.columns,
            diagonal,
            rank,
            block=BLOCK,
            tol=float(ridge.min()) / trace,
            precision=PRECISION,
            submatrix=gram.submatrix,
        )
        return cls(found, ridge)

    def solve(self, R: np.ndarray) -> np.ndarray:
        """``P^-1 R`` for R of shape (n, t)."""
        root = np.sqrt(self.ridge)[:, None]
        scaled = R / root
        inner = _cholesky.solve(self.small, self.half.T @ scaled)
        return np.asarray((scaled - self.half @ inner) / root)
