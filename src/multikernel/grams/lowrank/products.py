"""The one heavy operation of a pass over rows: the products of the columns of a chunk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dsyrk

from ..._mirror import mirror

#: ``products(F, omega)`` is ``F'diag(omega) F``; see `multikernel.grams.engines.register_products`.
Products = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


def weighted_products(F: np.ndarray, omega: np.ndarray | None) -> np.ndarray:
    """``F'diag(omega) F`` for F of shape (n, D) and non-negative weights, shape (D, D)."""
    weighted = F if omega is None else np.sqrt(omega)[:, None] * F
    upper = dsyrk(1.0, np.ascontiguousarray(weighted).T, trans=0, lower=0)
    # BLAS filled the upper triangle in Fortran order, which is the lower one in C order.
    out = np.asarray(upper.T, order="C")
    mirror(out)
    return out
