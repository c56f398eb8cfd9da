"""The upper triangle of a symmetric matrix from the lower one."""

from __future__ import annotations

import numba
import numpy as np

#: Rows and columns copied at a time: both squares stay in the first-level cache.
TILE = 32


@numba.njit(cache=True, nogil=True)
def mirror(K: np.ndarray) -> None:
    """Copy the lower triangle to the upper one, tile by tile."""
    n = len(K)
    for top in range(0, n, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(top, min(top + TILE, n)):
                for j in range(left, min(left + TILE, i)):
                    K[j, i] = K[i, j]
