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
def _four_row_sums(
    panel: Array, top: int, first: int, omega: Array, y: Array, row_sums: Array
) -> tuple[float, float]:
    """What four rows bring left of column ``first + top``, in one sweep: four streams of memory."""
    a, b, c, d = panel[top], panel[top + 1], panel[top + 2], panel[top + 3]
    i = first + top
    wa, wb, wc, wd = omega[i], omega[i + 1], omega[i + 2], omega[i + 3]
    ya, yb, yc, yd = y[i], y[i + 1], y[i + 2], y[i + 3]
    ta = tb = tc = td = 0.0
    square = 0.0
    product = 0.0
    for j in range(i):
        va, vb, vc, vd = (
            np.float64(a[j]),
            np.float64(b[j]),
            np.float64(c[j]),
            np.float64(d[j]),
        )
        w = omega[j]
        # What lies left of the diagonal also belongs to the columns' sums.
        row_sums[j] += (wa * va + wb * vb) + (wc * vc + wd * vd)
        ta += w * va
        tb += w * vb
        tc += w * vc
        td += w * vd
        square += w * ((wa * va * va + wb * vb * vb) + (wc * vc * vc + wd * vd * vd))
        product += y[j] * ((ya * va + yb * vb) + (yc * vc + yd * vd))
    row_sums[i] += ta
    row_sums[i + 1] += tb
    row_sums[i + 2] += tc
    row_sums[i + 3] += td
    return 2.0 * square, 2.0 * product


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
        start = 0
        if top + 4 <= height:
            start = first + top
            part, dot = _four_row_sums(panel, top, first, omega, targets[0], row_sums)
            square += part
            product += dot
        for r in range(top, min(top + 4, height)):
            i = first + r
            row = panel[r]
            for j in range(start, i):
                row_sums[j] += row[j] * omega[i]
            total, part, dot = _row_sums(row[start:], i - start, omega[start:], targets[0, start:])
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
    """``out_a = matrix[rows_a] . v``; four rows at once, for one stream leaves memory waiting."""
    fours = len(rows) - len(rows) % 4
    for a in range(0, fours, 4):
        first, second = matrix[rows[a]], matrix[rows[a + 1]]
        third, fourth = matrix[rows[a + 2]], matrix[rows[a + 3]]
        s = t = u = w = 0.0
        for j in range(len(v)):
            s += first[j] * v[j]
            t += second[j] * v[j]
            u += third[j] * v[j]
            w += fourth[j] * v[j]
        out[a], out[a + 1], out[a + 2], out[a + 3] = s, t, u, w
    for a in range(fours, len(rows)):
        row = matrix[rows[a]]
        total = 0.0
        for j in range(len(v)):
            total += row[j] * v[j]
        out[a] = total


@_compiled
def add_rows(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out += sum_a v_a matrix[rows_a]``: the product with a vector that is zero elsewhere."""
    fours = len(rows) - len(rows) % 4
    for a in range(0, fours, 4):
        first, second = matrix[rows[a]], matrix[rows[a + 1]]
        third, fourth = matrix[rows[a + 2]], matrix[rows[a + 3]]
        for j in range(len(out)):
            out[j] += (v[a] * first[j] + v[a + 1] * second[j]) + (
                v[a + 2] * third[j] + v[a + 3] * fourth[j]
            )
    for a in range(fours, len(rows)):
        row = matrix[rows[a]]
        weight = v[a]
        for j in range(len(out)):
            out[j] += weight * row[j]
