"""Compiled passes over given symmetric matrices, which read one half of each and nothing twice.

A panel holds rows ``first, first + 1, ...`` of a matrix from column 0 to beyond the diagonal. What
lies above the diagonal is never read: the matrices were checked to be symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

_compiled = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})


@njit(nogil=True, cache=True)
def gather(matrix: Array, rows: Array, columns: Array, out: Array) -> None:
    """``matrix[rows][:, columns]``."""
    for i in range(len(rows)):
        row = matrix[rows[i]]
        for j in range(len(columns)):
            out[i, j] = row[columns[j]]


@_compiled
def add_panel(panel: Array, first: int, weight: float, out: Array) -> None:
    """``out += weight * panel``, up to the diagonal."""
    for i in range(panel.shape[0]):
        row = panel[i]
        into = out[i]
        for j in range(first + i + 1):
            into[j] += weight * row[j]


@_compiled
def add_four_panels(
    a: Array, b: Array, c: Array, d: Array, first: int, weights: Array, out: Array
) -> None:
    """The same for four matrices at once: a quarter of the traffic with ``out``."""
    for i in range(a.shape[0]):
        row_a, row_b, row_c, row_d = a[i], b[i], c[i], d[i]
        into = out[i]
        for j in range(first + i + 1):
            into[j] += (weights[0] * row_a[j] + weights[1] * row_b[j]) + (
                weights[2] * row_c[j] + weights[3] * row_d[j]
            )


@_compiled
def mirror(K: Array) -> None:
    """Copy the lower triangle to the upper one, in tiles that fit the cache."""
    n = len(K)
    tile = 32
    for top in range(0, n, tile):
        bottom = min(top + tile, n)
        for left in range(0, bottom, tile):
            right = min(left + tile, bottom)
            for j in range(left, right):
                for i in range(max(top, j + 1), bottom):
                    K[j, i] = K[i, j]


@_compiled
def _row_sums(row: Array, stop: int, omega: Array, y: Array) -> tuple[float, float, float]:
    total = 0.0
    square = 0.0
    product = 0.0
    for j in range(stop):
        value = np.float64(row[j])
        weighted = value * omega[j]
        total += weighted
        square += value * weighted
        product += value * y[j]
    return total, square, product


@_compiled
def panel_statistics(
    panel: Array, first: int, omega: Array, targets: Array, row_sums: Array
) -> tuple[float, float]:
    """Parts of ``K omega`` (added in place), ``<K, K>`` and ``sum_t y_t'K y_t``.

    ``targets`` has shape (t, n), t >= 1, and is already multiplied by omega.
    """
    square = 0.0
    product = 0.0
    height = panel.shape[0]
    for top in range(0, height, 4):
        # What lies left of the diagonal also belongs to the columns' sums: four rows at once.
        whole = top + 4 <= height
        if whole:
            a, b, c, d = panel[top], panel[top + 1], panel[top + 2], panel[top + 3]
            i = first + top
            for j in range(i):
                row_sums[j] += (omega[i] * a[j] + omega[i + 1] * b[j]) + (
                    omega[i + 2] * c[j] + omega[i + 3] * d[j]
                )
        for r in range(top, min(top + 4, height)):
            i = first + r
            row = panel[r]
            for j in range(first + top if whole else 0, i):
                row_sums[j] += row[j] * omega[i]
            total, part, dot = _row_sums(row, i, omega, targets[0])
            corner = np.float64(row[i])
            row_sums[i] += total + corner * omega[i]
            square += omega[i] * (2.0 * part + corner * corner * omega[i])
            product += targets[0, i] * (2.0 * dot + corner * targets[0, i])
            for t in range(1, targets.shape[0]):
                y = targets[t]
                dot = 0.0
                for j in range(i):
                    dot += row[j] * y[j]
                product += y[i] * (2.0 * dot + corner * y[i])
    return square, product


@_compiled
def row_dots(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out_a = matrix[rows_a] . v``."""
    for a in range(len(rows)):
        row = matrix[rows[a]]
        total = 0.0
        for j in range(len(v)):
            total += row[j] * v[j]
        out[a] = total


@_compiled
def add_rows(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out += sum_a v_a matrix[rows_a]``: the product with a vector that is zero elsewhere."""
    for a in range(len(rows)):
        row = matrix[rows[a]]
        weight = v[a]
        for j in range(len(out)):
            out[j] += weight * row[j]
