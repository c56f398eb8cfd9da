"""Compiled loops of kernels on sparse histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._compiling import njit

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def sparse_chi_squared(
    x_data: Array,
    x_columns: Array,
    x_starts: Array,
    z_data: Array,
    z_columns: Array,
    z_starts: Array,
    out: NDArray[np.float64],
) -> None:
    """``sum_c (x_c - z_c)^2 / (x_c + z_c)`` of all pairs of rows of two CSR matrices.

    The columns of a row must be sorted and distinct, as two rows are read side by side. A column
    stored in only one of them adds its value.
    """
    for i in range(out.shape[0]):
        x_end = x_starts[i + 1]
        for j in range(out.shape[1]):
            a, b, z_end = x_starts[i], z_starts[j], z_starts[j + 1]
            total = 0.0
            while a < x_end and b < z_end:
                if x_columns[a] == z_columns[b]:
                    both = x_data[a] + z_data[b]
                    if both > 0:
                        total += (x_data[a] - z_data[b]) ** 2 / both
                    a += 1
                    b += 1
                elif x_columns[a] < z_columns[b]:
                    total += x_data[a]
                    a += 1
                else:
                    total += z_data[b]
                    b += 1
            while a < x_end:
                total += x_data[a]
                a += 1
            while b < z_end:
                total += z_data[b]
                b += 1
            out[i, j] = total
