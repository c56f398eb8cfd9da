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
def gather_half(matrix: Array, points: Array, out: Array) -> None:
    """The lower triangle of ``matrix[points][:, points]``; the upper one is left as it is."""
    for i in range(len(points)):
        row = matrix[points[i]]
        for j in range(i + 1):
            out[i, j] = row[points[j]]


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
    """The same for four matrices and two rows at once: less traffic with ``out``, more streams.

    The first of two rows is added up to one column beyond the diagonal.
    """
    height = a.shape[0]
    for i in range(0, height - 1, 2):
        a0, b0, c0, d0 = a[i], b[i], c[i], d[i]
        a1, b1, c1, d1 = a[i + 1], b[i + 1], c[i + 1], d[i + 1]
        into, below = out[i], out[i + 1]
        for j in range(first + i + 2):
            into[j] += (weights[0] * a0[j] + weights[1] * b0[j]) + (
                weights[2] * c0[j] + weights[3] * d0[j]
            )
            below[j] += (weights[0] * a1[j] + weights[1] * b1[j]) + (
                weights[2] * c1[j] + weights[3] * d1[j]
            )
    if height % 2:
        i = height - 1
        a0, b0, c0, d0 = a[i], b[i], c[i], d[i]
        into = out[i]
        for j in range(first + i + 1):
            into[j] += (weights[0] * a0[j] + weights[1] * b0[j]) + (
                weights[2] * c0[j] + weights[3] * d0[j]
            )


@njit(nogil=True, cache=True)
def centred_half(
    panel: Array, first: int, row_means: Array, grand_mean: float, root: Array, out: Array
) -> None:
    """``sqrt(omega_i omega_j) (K_ij - r_i - r_j + g)``, from column 0 to the panel's last row.

    Entries before the panel's square on the diagonal stand for two, and are multiplied by the root
    of that: sums of products over the results of all panels are those over the whole matrix.
    """
    two = np.sqrt(2.0)
    for i in range(panel.shape[0]):
        row, into = panel[i], out[i]
        shift = grand_mean - row_means[first + i]
        twice = two * root[first + i]
        for j in range(first):
            into[j] = twice * root[j] * (row[j] - row_means[j] + shift)
        for j in range(first, first + panel.shape[0]):
            into[j] = root[first + i] * root[j] * (row[j] - row_means[j] + shift)


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
def statistics_and_four_panels(
    a: Array,
    b: Array,
    c: Array,
    d: Array,
    first: int,
    weights: Array,
    omega: Array | None,
    targets: Array,
    row_sums: Array,
    diagonals: Array,
    parts: Array,
    out: Array,
) -> None:
    """`panel_statistics` and `add_four_panels` of four matrices in one sweep.

    ``row_sums`` and ``diagonals`` have shape (4, n) and ``parts``, squares and products with the
    targets, (4, 2). An ``omega`` of None stands for ones, and costs nothing.
    """
    w, x, y, z = weights[0], weights[1], weights[2], weights[3]
    sum_a, sum_b, sum_c, sum_d = row_sums[0], row_sums[1], row_sums[2], row_sums[3]
    target = targets[0]
    for r in range(a.shape[0]):
        i = first + r
        row_a, row_b, row_c, row_d = a[r], b[r], c[r], d[r]
        into = out[r]
        own = 1.0 if omega is None else omega[i]
        total_a = total_b = total_c = total_d = 0.0
        square_a = square_b = square_c = square_d = 0.0
        dot_a = dot_b = dot_c = dot_d = 0.0
        for j in range(i):
            va, vb = np.float64(row_a[j]), np.float64(row_b[j])
            vc, vd = np.float64(row_c[j]), np.float64(row_d[j])
            into[j] += (w * va + x * vb) + (y * vc + z * vd)
            sum_a[j] += own * va
            sum_b[j] += own * vb
            sum_c[j] += own * vc
            sum_d[j] += own * vd
            weight = 1.0 if omega is None else omega[j]
            wa, wb, wc, wd = weight * va, weight * vb, weight * vc, weight * vd
            total_a += wa
            total_b += wb
            total_c += wc
            total_d += wd
            square_a += va * wa
            square_b += vb * wb
            square_c += vc * wc
            square_d += vd * wd
            dot_a += va * target[j]
            dot_b += vb * target[j]
            dot_c += vc * target[j]
            dot_d += vd * target[j]
        sums = (total_a, total_b, total_c, total_d)
        squares = (square_a, square_b, square_c, square_d)
        dots = (dot_a, dot_b, dot_c, dot_d)
        for k, row in enumerate((row_a, row_b, row_c, row_d)):
            corner = np.float64(row[i])
            diagonals[k, i] = corner
            into[i] += weights[k] * corner
            row_sums[k, i] += sums[k] + own * corner
            parts[k, 0] += own * (2.0 * squares[k] + own * corner * corner)
            parts[k, 1] += target[i] * (2.0 * dots[k] + target[i] * corner)
            for t in range(1, targets.shape[0]):
                dot = 0.0
                for j in range(i):
                    dot += row[j] * targets[t, j]
                parts[k, 1] += targets[t, i] * (2.0 * dot + targets[t, i] * corner)


@_compiled
def support_dots(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out_a = matrix[rows_a] . v`` for rising rows and a v that is zero at all other points.

    An entry left of the diagonal serves its row and, by symmetry, its column, so that one half of
    the rows is read; four of them at once, for one stream leaves memory waiting.
    """
    if not len(rows):
        return
    column = np.zeros(rows[-1] + 1)
    fours = len(rows) - len(rows) % 4
    for a in range(0, fours, 4):
        i = rows[a]
        first, second = matrix[i], matrix[rows[a + 1]]
        third, fourth = matrix[rows[a + 2]], matrix[rows[a + 3]]
        va, vb, vc, vd = v[i], v[rows[a + 1]], v[rows[a + 2]], v[rows[a + 3]]
        s = t = u = w = 0.0
        for j in range(i):
            x = v[j]
            s += first[j] * x
            t += second[j] * x
            u += third[j] * x
            w += fourth[j] * x
            column[j] += (va * first[j] + vb * second[j]) + (vc * third[j] + vd * fourth[j])
        out[a], out[a + 1], out[a + 2], out[a + 3] = s, t, u, w
        for b in range(a, a + 4):  # the corner at the diagonal
            row = matrix[rows[b]]
            for c in range(a, b):
                out[b] += row[rows[c]] * v[rows[c]]
                column[rows[c]] += row[rows[c]] * v[rows[b]]
            out[b] += row[rows[b]] * v[rows[b]]
    for a in range(fours, len(rows)):
        i = rows[a]
        row = matrix[i]
        x = v[i]
        total = row[i] * x
        for j in range(i):
            total += row[j] * v[j]
            column[j] += x * row[j]
        out[a] = total
    for a in range(len(rows)):
        out[a] += column[rows[a]]


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
