"""Compiled check of a matrix: its asymmetry, its largest entry, and whether it is finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compiling import njit
from .._mirror import SQUARE, transpose_square

#: Width of the square tiles that are compared with their mirror images, in entries.
TILE = 32


# Ignoring NaN lets the maxima be vectorised; NaN and infinity are detected from the bits.
@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def asymmetry(
    K: np.ndarray, bits: np.ndarray, exponent: np.unsignedinteger[Any]
) -> tuple[float, float, bool]:
    """``max |K_ij - K_ji|``, ``max |K_ij|``, and whether all entries are finite.

    bits : the same memory as unsigned integers
    exponent : mask of the exponent bits, which are all set in infinities and NaN

    The maxima are returned as 0 if an entry is not finite.
    """
    n = K.shape[0]
    size = TILE * TILE
    square = np.zeros(2 * size, dtype=K.dtype)  # a tile, and the same transposed
    worst = largest = 0.0
    for top in range(0, n, TILE):
        height = min(TILE, n - top)
        for left in range(0, top + 1, TILE):
            width = min(TILE, n - left)
            found = False
            for j in range(width):
                row, code = K[left + j, top : top + height], bits[left + j, top : top + height]
                into = square[j * TILE : j * TILE + height]
                for i in range(height):
                    into[i] = row[i]
                    found |= (code[i] & exponent) == exponent
            for j in range(0, TILE, SQUARE):
                for i in range(0, TILE, SQUARE):
                    transpose_square(square, j * TILE + i, size + i * TILE + j, TILE)  # type: ignore[call-arg]
            for i in range(height):
                row, code = K[top + i, left : left + width], bits[top + i, left : left + width]
                other = square[size + i * TILE : size + i * TILE + width]
                for j in range(width):
                    a, b = np.float64(row[j]), np.float64(other[j])
                    worst = max(worst, abs(a - b))
                    largest = max(largest, max(abs(a), abs(b)))
                    found |= (code[j] & exponent) == exponent
            if found:
                return 0.0, 0.0, False
    return worst, largest, True
