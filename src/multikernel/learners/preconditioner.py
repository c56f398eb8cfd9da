"""A preconditioner for kernel ridge regression, built from a few columns of the kernel.

    P = F F' + diag(ridge)  ~  A = K + diag(ridge),     K ~ F F' by randomly pivoted Cholesky

Conjugate gradients need few steps once the trace of ``K - F F'`` is of the size of the ridge (Diaz,
Epperly, Frangella, Tropp & Webber, "Robust, randomized preconditioning for kernel ridge
regression", 2023). They converge with any approximation, and the certificate does not depend on it.
"""

from __future__ import annotations

import numpy as np

from ..grams.low_rank_inverse import LowRankInverse
from ..grams.protocol import CombinedGram

#: Rank, in units of the square root of n: the factor then costs about as much as one product.
RANK_FACTOR = 8.0
#: With fewer samples a product costs no more than the preconditioner.
MIN_SAMPLES = 1000
#: Share of the free memory for the factor and its copies: two in host memory, one on a device.
MEMORY_SHARE = 0.25
#: Number of pivots proposed at once.
BLOCK = 256
#: Relative rounding error of kernel entries, which may be in single precision; limits the pivots.
PRECISION = 1e-8


def find_preconditioner(gram: CombinedGram, ridge: np.ndarray) -> LowRankInverse | None:
    """The preconditioner of ``K + diag(ridge)``; None if it would not save time."""
    trace = float(np.maximum(gram.diagonal(), 0.0).sum())
    copies = 1 if gram.on_device else 2
    room = MEMORY_SHARE * gram.room / (copies * 8.0 * gram.n)
    rank = int(min(RANK_FACTOR * np.sqrt(gram.n), gram.n, room))
    if gram.n < MIN_SAMPLES or gram.fast_products or rank < 1 or trace <= float(ridge.min()):
        return None
    return gram.low_rank_inverse(
        ridge, rank, block=BLOCK, tol=float(ridge.min()) / trace, precision=PRECISION
    )
