"""Compiled passes over given symmetric matrices, which read each lower triangle once.

A panel holds rows ``first, first + 1, ...`` of a matrix, from column 0 to the diagonal or beyond.
Entries right of its diagonal square are never read: the matrices were checked to be symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from .._compiling import njit
from .._small import SMALL_SAMPLES

Array = NDArray[Any]

#: Entries prefetched at the start of the next rows while the present ones are read: the processor
#: recognises a stream only after its first cache lines.
AHEAD = 128

_compiled = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})


@intrinsic
def prefetch(typingctx: Any, row: Any, at: Any) -> Any:
    """Prefetch the cache line that holds ``row[at]``, without waiting for it."""
    signature = types.void(row, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        # for reading, into the second-level cache, as data
        builder.call(call, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return signature, codegen


@njit(nogil=True, cache=True)
def _call_for(row: Array, stop: int) -> None:
    for at in range(0, min(AHEAD, stop), 64 // row.itemsize):
        prefetch(row, at)  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def gather_half(matrix: Array, points: Array, out: Array) -> None:
    """The lower triangle of ``matrix[points][:, points]``; the upper one is left as it is."""
    for i in range(len(points)):
        row = matrix[points[i]]
        for j in range(i + 1):
            out[i, j] = row[points[j]]


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
    """`add_panel` for four matrices and two rows at once: ``out`` is read and written less often.

    In the first of two rows, one entry right of the diagonal is added, too.
    """
    height = a.shape[0]
    for i in range(0, height - 1, 2):
        a0, b0, c0, d0 = a[i], b[i], c[i], d[i]
        a1, b1, c1, d1 = a[i + 1], b[i + 1], c[i + 1], d[i + 1]
        into, below = out[i], out[i + 1]
        for k in range(i + 2, min(i + 4, height)):
            _call_for(a[k], first + k)
            _call_for(b[k], first + k)
            _call_for(c[k], first + k)
            _call_for(d[k], first + k)
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

    Entries left of the panel's diagonal square are multiplied by the root of 2, since each counts
    for itself and its mirror image: sums of products over all panels equal those over the matrix.
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
    """Sums of four rows left of column ``first + top`` in one sweep."""
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
        # Entries left of the diagonal also count for the sums of their columns.
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
    targets, (4, 2). An ``omega`` of None means ones and costs nothing.
    """
    w, x, y, z = weights[0], weights[1], weights[2], weights[3]
    sum_a, sum_b, sum_c, sum_d = row_sums[0], row_sums[1], row_sums[2], row_sums[3]
    target = targets[0]
    height = a.shape[0]
    # Two rows at once: sums over columns are read and written half as often.
    for r in range(0, height - height % 2, 2):
        i = first + r
        a0, b0, c0, d0 = a[r], b[r], c[r], d[r]
        a1, b1, c1, d1 = a[r + 1], b[r + 1], c[r + 1], d[r + 1]
        into, below = out[r], out[r + 1]
        own = 1.0 if omega is None else omega[i]
        next_own = 1.0 if omega is None else omega[i + 1]
        y0, y1 = target[i], target[i + 1]
        total_a = total_b = total_c = total_d = 0.0
        next_a = next_b = next_c = next_d = 0.0
        square_a = square_b = square_c = square_d = 0.0
        dot_a = dot_b = dot_c = dot_d = 0.0
        for j in range(i):
            weight = 1.0 if omega is None else omega[j]
            t = target[j]
            u, v = np.float64(a0[j]), np.float64(a1[j])
            upper, lower = w * u, w * v
            sum_a[j] += own * u + next_own * v
            total_a += weight * u
            next_a += weight * v
            square_a += weight * (own * u * u + next_own * v * v)
            dot_a += t * (y0 * u + y1 * v)
            u, v = np.float64(b0[j]), np.float64(b1[j])
            upper, lower = upper + x * u, lower + x * v
            sum_b[j] += own * u + next_own * v
            total_b += weight * u
            next_b += weight * v
            square_b += weight * (own * u * u + next_own * v * v)
            dot_b += t * (y0 * u + y1 * v)
            u, v = np.float64(c0[j]), np.float64(c1[j])
            upper, lower = upper + y * u, lower + y * v
            sum_c[j] += own * u + next_own * v
            total_c += weight * u
            next_c += weight * v
            square_c += weight * (own * u * u + next_own * v * v)
            dot_c += t * (y0 * u + y1 * v)
            u, v = np.float64(d0[j]), np.float64(d1[j])
            upper, lower = upper + z * u, lower + z * v
            sum_d[j] += own * u + next_own * v
            total_d += weight * u
            next_d += weight * v
            square_d += weight * (own * u * u + next_own * v * v)
            dot_d += t * (y0 * u + y1 * v)
            into[j] += upper
            below[j] += lower
        row_sums[0, i] += total_a
        row_sums[1, i] += total_b
        row_sums[2, i] += total_c
        row_sums[3, i] += total_d
        row_sums[0, i + 1] += next_a
        row_sums[1, i + 1] += next_b
        row_sums[2, i + 1] += next_c
        row_sums[3, i + 1] += next_d
        parts[0, 0] += 2.0 * square_a
        parts[1, 0] += 2.0 * square_b
        parts[2, 0] += 2.0 * square_c
        parts[3, 0] += 2.0 * square_d
        parts[0, 1] += 2.0 * dot_a
        parts[1, 1] += 2.0 * dot_b
        parts[2, 1] += 2.0 * dot_c
        parts[3, 1] += 2.0 * dot_d
    for k, panel in enumerate((a, b, c, d)):
        for r in range(height):
            # Not covered by the sweep: one or two entries at the diagonal, and an odd last row.
            i = first + r
            row = panel[r]
            start = i - r % 2 if r < height - height % 2 else 0
            own = 1.0 if omega is None else omega[i]
            for j in range(start, i):
                value = np.float64(row[j])
                weight = 1.0 if omega is None else omega[j]
                out[r, j] += weights[k] * value
                row_sums[k, j] += own * value
                row_sums[k, i] += weight * value
                parts[k, 0] += 2.0 * own * weight * value * value
                parts[k, 1] += 2.0 * target[i] * target[j] * value
            corner = np.float64(row[i])
            diagonals[k, i] = corner
            out[r, i] += weights[k] * corner
            row_sums[k, i] += own * corner
            parts[k, 0] += own * own * corner * corner
            parts[k, 1] += target[i] * target[i] * corner
            for t in range(1, targets.shape[0]):
                dot = 0.0
                for j in range(i):
                    dot += row[j] * targets[t, j]
                parts[k, 1] += targets[t, i] * (2.0 * dot + targets[t, i] * corner)


@_compiled
def support_dots(matrix: Array, rows: Array, v: Array, out: Array) -> None:
    """``out_a = matrix[rows_a] . v`` for increasing rows and a v that is zero everywhere else.

    An entry left of the diagonal serves its row and, by symmetry, its column, so rows are read only
    up to the diagonal. Eight rows are read at once, since one does not saturate memory bandwidth.
    """
    if not len(rows):
        return
    column = np.zeros(rows[-1] + 1)
    eights = len(rows) - len(rows) % 8
    for a in range(0, eights, 8):
        i, i1, i2, i3 = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        i4, i5, i6, i7 = rows[a + 4], rows[a + 5], rows[a + 6], rows[a + 7]
        r0, r1, r2, r3 = matrix[i], matrix[i1], matrix[i2], matrix[i3]
        r4, r5, r6, r7 = matrix[i4], matrix[i5], matrix[i6], matrix[i7]
        v0, v1, v2, v3, v4, v5, v6, v7 = v[i], v[i1], v[i2], v[i3], v[i4], v[i5], v[i6], v[i7]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for b in range(a + 8, min(a + 16, eights)):
            _call_for(matrix[rows[b]], rows[b])
        for j in range(i):
            x = v[j]
            s0 += x * r0[j]
            s1 += x * r1[j]
            s2 += x * r2[j]
            s3 += x * r3[j]
            s4 += x * r4[j]
            s5 += x * r5[j]
            s6 += x * r6[j]
            s7 += x * r7[j]
            above = (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j])
            column[j] += above + ((v4 * r4[j] + v5 * r5[j]) + (v6 * r6[j] + v7 * r7[j]))
        out[a], out[a + 1], out[a + 2], out[a + 3] = s0, s1, s2, s3
        out[a + 4], out[a + 5], out[a + 6], out[a + 7] = s4, s5, s6, s7
        for b in range(a, a + 8):  # the corner at the diagonal
            row = matrix[rows[b]]
            for c in range(a, b):
                out[b] += row[rows[c]] * v[rows[c]]
                column[rows[c]] += row[rows[c]] * v[rows[b]]
            out[b] += row[rows[b]] * v[rows[b]]
    for a in range(eights, len(rows)):
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


def recentre(matrix: Array, factor: float, means: Array, grand: float) -> None:
    """``factor K[i, j] - (means_i + means_j - grand)`` in place; symmetric to the last bit."""
    if len(matrix) > SMALL_SAMPLES:
        compiled_recentre(matrix, factor, means, grand)
        return
    matrix *= factor
    shift = np.add.outer(means, means)
    shift -= grand
    matrix -= shift


@njit(nogil=True, cache=True)
def compiled_recentre(matrix: Array, factor: float, means: Array, grand: float) -> None:
    """`recentre` for matrices of any size."""
    for i in range(matrix.shape[0]):
        row, own = matrix[i], means[i]
        for j in range(matrix.shape[1]):
            row[j] = factor * row[j] - ((own + means[j]) - grand)
