"""Triton programs: sums of polynomials of distances, and tabulated functions of distances.

A program owns a block of rows (samples i) and walks over columns (samples j) in blocks. A tile is
held with columns first, ``tile[j, i]``, so that consecutive threads own consecutive rows and a sum
over columns stays within a thread. Each program writes its own sums, and the host adds them in a
fixed order, so results have the same bits in every run.

Squared distances come from dot products that were computed beforehand. Those of close pairs (see
:mod:`.points`) or of few columns, and all other distances, come from coordinates.
"""

from __future__ import annotations

import triton
import triton.language as tl

#: kinds of distances, as in :mod:`multikernel.grams._passes`
SQUARE = tl.constexpr(0)
ABSOLUTE = tl.constexpr(1)
#: The layout of the tables in :mod:`.points`: degree of the polynomials, 2**7 intervals per octave,
#: number and mask of the bits that give the position within an interval, number of the first
#: interval, and the bits of 1.0.
TABLE_DEGREE = tl.constexpr(5)
TABLE_BITS = tl.constexpr(7)
LOWER_BITS = tl.constexpr(45)
LOWER_MASK = tl.constexpr((1 << 45) - 1)
FIRST_INTERVAL = tl.constexpr(1023 << 7)
BITS_OF_ONE = tl.constexpr(1023 << 52)
#: as in :mod:`.points`
NEAR = tl.constexpr(2.0**-8)


@triton.jit
def _from_coordinates(
    rows, columns, r, c, mr, mc, width, row_stride, column_stride, KIND: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Distances of a tile (BN, BM) from differences of coordinates."""
    d = tl.zeros((BN, BM), dtype=tl.float64)
    for k in range(0, width):
        x = tl.load(rows + k * row_stride + r, mask=mr, other=0.0)
        z = tl.load(columns + k * column_stride + c, mask=mc, other=0.0)
        difference = z[:, None] - x[None, :]
        if KIND == SQUARE:
            d += difference * difference
        elif KIND == ABSOLUTE:
            d += tl.abs(difference)
        else:
            both = z[:, None] + x[None, :]
            d += difference * difference / tl.where(both > 0.0, both, 1.0)
    return d


@triton.jit
def _distances(
    rows, columns, row_norms, column_norms, dots, dot_stride, dot_c, r, c, mr, mc, width,
    row_stride, column_stride, KIND: tl.constexpr, DOTS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """Distances of a tile (BN, BM); with DOTS from dot products where these are accurate."""
    if DOTS:
        size = (
            tl.load(column_norms + c, mask=mc, other=0.0)[:, None]
            + tl.load(row_norms + r, mask=mr, other=0.0)[None, :]
        )
        at = dots + dot_c.to(tl.int64)[:, None] * dot_stride + r[None, :]
        d = size - 2.0 * tl.load(at, mask=mc[:, None] & mr[None, :], other=0.0)
        close = d < NEAR * size
        if tl.max(tl.max(close.to(tl.int32), axis=0), axis=0) > 0:
            again = _from_coordinates(
                rows, columns, r, c, mr, mc, width, row_stride, column_stride, KIND, BM, BN
            )
            d = tl.where(close, again, d)
    else:
        d = _from_coordinates(
            rows, columns, r, c, mr, mc, width, row_stride, column_stride, KIND, BM, BN
        )
    return d


@triton.jit
def _sums_by_products(at, x, before, now, n_rows, half, last, degrees, above):
    """Sums of T_m below degree `half`, and from there on of products of two polynomials.

    The host finds the sums of high degrees from ``T_2m = 2 T_m T_m - T_0`` and
    ``T_(2m + 1) = 2 T_m T_(m + 1) - T_1``. A product and its sum take one operation, a step of the
    recurrence and its sum take two. Weights must be zeros and ones, which are their own squares.
    `half`, `last` and `degrees` are multiples of four, and `half` is no more than `degrees`.
    """
    products = at + half * n_rows
    for _ in range(0, half // 2, 2):
        even = tl.load(at)
        odd = tl.load(at + n_rows)
        tl.store(at, even + tl.sum(before, axis=0))
        tl.store(at + n_rows, odd + tl.sum(now, axis=0))
        at += 2 * n_rows
        before = x * now - before
        now = x * before - now
    for m in range(half, last, 4):
        factor = tl.where(m >= degrees, above, 1.0).to(tl.float64)
        even = tl.load(at)
        odd = tl.load(at + n_rows)
        one = tl.load(products)
        two = tl.load(products + n_rows)
        three = tl.load(products + 2 * n_rows)
        four = tl.load(products + 3 * n_rows)
        tl.store(at, even + tl.sum(before, axis=0))
        tl.store(at + n_rows, odd + tl.sum(now, axis=0))
        tl.store(products, one + factor * tl.sum(before * before, axis=0))
        tl.store(products + n_rows, two + factor * tl.sum(before * now, axis=0))
        tl.store(products + 2 * n_rows, three + factor * tl.sum(now * now, axis=0))
        before = x * now - before
        tl.store(products + 3 * n_rows, four + factor * tl.sum(now * before, axis=0))
        now = x * before - now
        at += 2 * n_rows
        products += 4 * n_rows
    for _ in range(last // 2, half, 2):
        even = tl.load(at)
        odd = tl.load(at + n_rows)
        tl.store(at, even + tl.sum(before, axis=0))
        tl.store(at + n_rows, odd + tl.sum(now, axis=0))
        at += 2 * n_rows
        before = x * now - before
        now = x * before - now


@triton.jit
def polynomial_sums(
    points, norms, dots, weights, out, n_points, row_start, n_rows, column_start, n_columns,
    dot_stride, per_split, width, numbers, degrees, high, half, KIND: tl.constexpr,
    DOTS: tl.constexpr, WHOLE: tl.constexpr, PRODUCTS: tl.constexpr, Q: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """``out[split, q, m, i] += sum_j w[q, j] T_m(1 - scale d_ij)`` over pairs with d < end.

    ``w[0]`` is ``weights[0]``, and ``w[q] = weights[0] * weights[q]`` for the others.

    Rows are ``row_start + i``, columns ``column_start + j`` of the same points, whose coordinates
    are ``points[k, .]``. All counts are multiples of BM, which is a multiple of BN; weights of
    padding are zero. `numbers` are scale and end, in double precision. Degrees from `degrees` to
    `high`, both even, are summed over the pairs at or above the diagonal, and pairs above it count
    twice.
    """
    scale = tl.load(numbers)
    end = tl.load(numbers + 1)
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    all_r = r < n_rows
    first_row = row_start + tl.program_id(0) * BM
    begin = split * per_split
    stop = tl.minimum(begin + per_split, n_columns)
    plane = high.to(tl.int64) * n_rows
    own = out + split * Q * plane
    for start in range(begin, stop, BN):
        j = start + tl.arange(0, BN)
        c = column_start + j
        all_c = c < n_points
        d = _distances(
            points + row_start, points, norms + row_start, norms, dots, dot_stride, j, r, c, all_r,
            all_c, width, n_points, n_points, KIND, DOTS, BM, BN,
        )  # fmt: skip
        x = 1.0 - scale * d
        # The recurrence is linear: weighting its first terms weights all of them.
        before = tl.load(weights + c)[:, None] + tl.zeros((BN, BM), dtype=tl.float64)
        if WHOLE:
            inside = 1
        else:
            before = tl.where(d < end, before, 0.0)
            inside = tl.max(tl.max((d < end).to(tl.int32), axis=0), axis=0)
        now = x * before
        x = x + x
        if Q > 1:
            v = tl.load(weights + n_points + c)[:, None]
        if Q > 2:
            u = tl.load(weights + 2 * n_points + c)[:, None]
        first = column_start + start
        above = tl.where(first >= first_row + BM, 2.0, 1.0).to(tl.float64)
        last = tl.where(first + BN <= first_row, degrees, high)
        last = tl.where(inside > 0, last, 0)
        at = own + r
        if PRODUCTS:
            direct = 0
            within = tl.where(inside > 0, half, 0)
            _sums_by_products(at, x, before, now, n_rows, within, last, degrees, above)
        else:
            direct = last
        # Prefetch the sums of the next step; memory past the last one is allocated.
        even = tl.load(at)
        odd = tl.load(at + n_rows)
        for m in range(0, direct, 2):
            factor = tl.where(m >= degrees, above, 1.0).to(tl.float64)
            next_even = tl.load(at + 2 * n_rows)
            next_odd = tl.load(at + 3 * n_rows)
            tl.store(at, even + factor * tl.sum(before, axis=0))
            tl.store(at + n_rows, odd + factor * tl.sum(now, axis=0))
            even = next_even
            odd = next_odd
            if Q > 1:
                one = tl.load(at + plane)
                two = tl.load(at + plane + n_rows)
                tl.store(at + plane, one + factor * tl.sum(before * v, axis=0))
                tl.store(at + plane + n_rows, two + factor * tl.sum(now * v, axis=0))
            if Q > 2:
                one = tl.load(at + 2 * plane)
                two = tl.load(at + 2 * plane + n_rows)
                tl.store(at + 2 * plane, one + factor * tl.sum(before * u, axis=0))
                tl.store(at + 2 * plane + n_rows, two + factor * tl.sum(now * u, axis=0))
            at += 2 * n_rows
            before = x * now - before
            now = x * before - now
        # Wait: in the next block, other threads may read the sums than those that wrote them.
        tl.debug_barrier()


@triton.jit
def mixture(
    rows, columns, row_norms, column_norms, dots, table, weights, out, row_shift, column_shift,
    n_rows, n_columns, row_stride, column_stride, dot_stride, out_stride, per_split, width,
    numbers, KIND: tl.constexpr, DOTS: tl.constexpr, TERMS: tl.constexpr, Q: tl.constexpr,
    SHIFTED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """A function f of distances: its values, or with Q > 0 its products with vectors.

    f is a table, or with TERMS > 0 a power series of ``1 - rate d``.

    Values are ``out[j, i] = f(d_ij) - row_shift[i] - column_shift[j]``; products are
    ``out[split, q, i] = sum_j weights[q, j] f(d_ij)``. `numbers` are the rate and the end of the
    table.
    """
    rate = tl.load(numbers)
    end = tl.load(numbers + 1)
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    mr = r < n_rows
    begin = split * per_split
    stop = tl.minimum(begin + per_split, n_columns)
    if Q > 0:
        first = tl.zeros((BM,), dtype=tl.float64)
        second = tl.zeros((BM,), dtype=tl.float64)
    if SHIFTED:
        moved = tl.load(row_shift + r, mask=mr, other=0.0)
    for start in range(begin, stop, BN):
        c = start + tl.arange(0, BN)
        mc = c < n_columns
        d = _distances(
            rows, columns, row_norms, column_norms, dots, dot_stride, c, r, c, mr, mc, width,
            row_stride, column_stride, KIND, DOTS, BM, BN,
        )  # fmt: skip
        if TERMS > 0:
            x = 1.0 - d * rate
            value = tl.zeros((BN, BM), dtype=tl.float64) + tl.load(table + (TERMS - 1))
            for k in range(0, TERMS - 1):
                value = value * x + tl.load(table + (TERMS - 2 - k))
        else:
            x = tl.minimum(d * rate + 1.0, end)
            bits = x.to(tl.int64, bitcast=True)
            place = (bits >> LOWER_BITS) - FIRST_INTERVAL
            part = (bits & LOWER_MASK) << TABLE_BITS
            u = (part | BITS_OF_ONE).to(tl.float64, bitcast=True) - 1.0
            at = table + place * (TABLE_DEGREE + 1)
            value = tl.load(at + TABLE_DEGREE)
            for k in tl.static_range(TABLE_DEGREE):
                value = value * u + tl.load(at + (TABLE_DEGREE - 1 - k))
        if Q > 0:
            w = tl.load(weights + c, mask=mc, other=0.0)
            first += tl.sum(value * w[:, None], axis=0)
            if Q > 1:
                w = tl.load(weights + n_columns + c, mask=mc, other=0.0)
                second += tl.sum(value * w[:, None], axis=0)
        else:
            if SHIFTED:
                other = tl.load(column_shift + c, mask=mc, other=0.0)
                value = value - moved[None, :] - other[:, None]
            here = out + c.to(tl.int64)[:, None] * out_stride + r[None, :]
            tl.store(here, value, mask=mc[:, None] & mr[None, :])
    if Q > 0:
        here = out + split.to(tl.int64) * (Q * out_stride) + r
        tl.store(here, first, mask=mr)
        if Q > 1:
            tl.store(here + out_stride, second, mask=mr)


@triton.jit
def series_products(
    points, norms, series, weights, out, n, per_split, width, TERMS: tl.constexpr,
    Q: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """``out[split, q, i] = sum_j weights[q, j] f(|x_i - x_j|^2)``, f a power series of 1 - d.

    Arithmetic is in single precision within a tile; sums over tiles are in double precision.
    Coordinates ``points[i, .]`` are padded with zeros to a multiple of BK, `width`.
    """
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    split = tl.program_id(1)
    mr = r < n
    k = tl.arange(0, BK)
    own = tl.load(norms + r, mask=mr, other=0.0)
    first = tl.zeros((BM,), dtype=tl.float64)
    second = tl.zeros((BM,), dtype=tl.float64)
    begin = split * per_split
    stop = tl.minimum(begin + per_split, n)
    for start in range(begin, stop, BN):
        c = start + tl.arange(0, BN)
        mc = c < n
        dots = tl.zeros((BM, BN), dtype=tl.float32)
        for at in range(0, width, BK):
            left = tl.load(
                points + r.to(tl.int64)[:, None] * width + (at + k)[None, :],
                mask=mr[:, None], other=0.0,
            )  # fmt: skip
            right = tl.load(
                points + c.to(tl.int64)[None, :] * width + (at + k)[:, None],
                mask=mc[None, :], other=0.0,
            )  # fmt: skip
            dots = tl.dot(left, right, dots, input_precision=PRECISION)
        other = tl.load(norms + c, mask=mc, other=0.0)
        x = 2.0 * dots + ((1.0 - own)[:, None] - other[None, :])
        value = tl.zeros((BM, BN), dtype=tl.float32) + tl.load(series + (TERMS - 1))
        for j in range(0, TERMS - 1):
            value = value * x + tl.load(series + (TERMS - 2 - j))
        w = tl.load(weights + c, mask=mc, other=0.0)
        first += tl.sum(value * w[None, :], axis=1).to(tl.float64)
        if Q > 1:
            w = tl.load(weights + n + c, mask=mc, other=0.0)
            second += tl.sum(value * w[None, :], axis=1).to(tl.float64)
    here = out + split.to(tl.int64) * (Q * n) + r
    tl.store(here, first, mask=mr)
    if Q > 1:
        tl.store(here + n, second, mask=mr)
