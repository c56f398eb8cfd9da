"""Loops over rows of a matrix, shared by Gram operators and learners; compiled for large ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._compiling import njit
from ._small import SMALL_SAMPLES
from ._threads import one_blas_thread

Array = NDArray[Any]


def gather(matrix: Array, rows: Array, columns: Array, out: Array) -> None:
    """``out = matrix[rows][:, columns]``."""
    if matrix.shape[1] <= SMALL_SAMPLES:
        out[:] = matrix[np.ix_(rows, columns)]
    else:
        compiled_gather(matrix, rows, columns, out)


def add_rows(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out += sum_a v_a matrix[rows_a]``, in float64.

    For a symmetric matrix, this adds its product with a vector whose non-zero entries are v.
    """
    if matrix.shape[1] <= SMALL_SAMPLES:
        with one_blas_thread():
            out += np.asarray(v, dtype=np.float64) @ matrix[rows].astype(np.float64, copy=False)
    else:
        add_rows_between(matrix, rows, v, out, 0, len(out))


@njit(nogil=True, cache=True)
def compiled_gather(matrix: Array, rows: Array, columns: Array, out: Array) -> None:
    """`gather` for matrices of any size."""
    for i in range(len(rows)):
        row = matrix[rows[i]]
        for j in range(len(columns)):
            out[i, j] = row[columns[j]]


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def add_rows_between(
    matrix: Array, rows: Array, v: Array, out: Array, start: int, stop: int
) -> None:
    """`add_rows` for the entries from ``start`` to ``stop``; the range does not change values."""
    # Four rows at a time, so that `out` is read and written a quarter as often.
    fours = len(rows) - len(rows) % 4
    for a in range(0, fours, 4):
        first, second = matrix[rows[a]], matrix[rows[a + 1]]
        third, fourth = matrix[rows[a + 2]], matrix[rows[a + 3]]
        for j in range(start, stop):
            out[j] += (v[a] * first[j] + v[a + 1] * second[j]) + (
                v[a + 2] * third[j] + v[a + 3] * fourth[j]
            )
    for a in range(fours, len(rows)):
        row = matrix[rows[a]]
        weight = v[a]
        for j in range(start, stop):
            out[j] += weight * row[j]
