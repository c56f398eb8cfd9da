"""Compiled sums of Chebyshev polynomials of distances over tiles of points.

:mod:`multikernel.grams._moments` explains the use of the sums, :mod:`multikernel.grams._levels` the
levels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiling import njit
from ._passes import (
    STRIP,
    LoopPlan,
    _combine_strip,
    _round_up,
    _tile_number,
    _tile_statistic,
    _write_strip,
)
from ._simd import (
    DEGREES,
    REST,
    add_pair_moments,
    add_pair_moments_paired,
    add_scaled_rows,
    below_mask,
    chebyshev_starts,
    chebyshev_sums,
    chebyshev_sums_paired,
    chebyshev_sums_paired_rest,
    chebyshev_sums_rest,
    lowest_bit,
    turned_block,
)

Array = NDArray[Any]

COLUMNS = 8  # columns of a block; fixed by the register tiles
#: Targets with more distinct rows than this are multiplied pair by pair.
MAX_TARGET_VALUES = 16


class LevelTable(NamedTuple):
    """The levels as the loops read them; see :class:`multikernel.grams._levels.RateLevels`.

    Attributes
    ----------
    end : array of shape (n_levels,)
        Only pairs at a distance below `end` count.
    lowest : array of shape (n_levels,)
        Only pairs whose x is above this count: -1, or minus infinity if all pairs count.
    dense : array of shape (n_levels,)
        Whether blocks of all pairs are summed, far ones with weight zero, or only near pairs.
    degrees, high : arrays of shape (n_levels,)
        Number of polynomials with row sums, and number of polynomials in all.
    row_start, high_start : arrays of shape (n_levels,)
        Positions of the first polynomial among the row sums and among the totals, counted
        separately for dense levels and for the others.
    """

    end: NDArray[np.float64]
    lowest: NDArray[np.float64]
    dense: NDArray[np.bool_]
    degrees: NDArray[np.int64]
    high: NDArray[np.int64]
    row_start: NDArray[np.int64]
    high_start: NDArray[np.int64]


class Block(NamedTuple):
    """Buffers of rows of eight: x, two polynomials, ``Y Y'``, sums by degree, and ones."""

    x: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    pair: NDArray[np.float64]
    sums: NDArray[np.float64]
    pair_sums: NDArray[np.float64]
    ones: NDArray[np.float64]


class Near(NamedTuple):
    """The near pairs of one row of a tile: x, the column, and T_0 to T_15 of eight of them."""

    x: NDArray[np.float64]
    column: NDArray[np.int64]
    start: NDArray[np.float64]


class Targets(NamedTuple):
    """Y of ``<K, Y Y'>``: sorted by its distinct rows where these are few, as with class labels.

    Attributes
    ----------
    value : array of shape (n_padded,)
        Index of the distinct row of each point.
    order : array of shape (n_padded,)
        Points of each tile sorted by value: ``i0 + order[i0 + r]`` is the r-th of the tile at i0.
    starts : array of shape (n_tiles, n_values + 1)
        Where the points of each value start in that order.
    likeness : array of shape (n_values, n_padded)
        ``w_j Y_v' Y_j`` of each value and point; zero without targets, or where `rows` are used.
    rows : array of shape (n_padded, t)
        Y, if it has many distinct rows; else with t = 0.
    """

    value: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    likeness: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, Y: Array | None, point_weights: Array | None, n: int, tile: int) -> Targets:
        n_tiles = -(-n // tile)
        n_padded = n_tiles * tile
        values, value = None, np.zeros(n, dtype=np.int64)
        if Y is not None:
            distinct, which = np.unique(Y, axis=0, return_inverse=True)
            if len(distinct) <= MAX_TARGET_VALUES:
                values, value = distinct, which.reshape(n)
        count = 1 if values is None else len(values)
        # Padding comes last, after all values.
        padded = np.full(n_padded, count)
        padded[:n] = value
        order = np.argsort(padded.reshape(n_tiles, tile), axis=1, kind="stable").ravel()
        at = padded + (count + 1) * (np.arange(n_padded) // tile)
        counts = np.bincount(at, minlength=n_tiles * (count + 1)).reshape(n_tiles, -1)
        starts = np.zeros((n_tiles, count + 1), dtype=np.int64)
        starts[:, 1:] = np.cumsum(counts[:, :count], axis=1)
        likeness = np.zeros((count, n_padded))
        rows = np.zeros((n_padded, 0))
        if Y is not None and values is not None:
            weighted = Y if point_weights is None else point_weights[:, None] * Y
            likeness[:, :n] = values @ weighted.T
        elif Y is not None:
            rows = np.zeros((n_padded, Y.shape[1]))
            rows[:n] = Y
        return cls(np.where(padded < count, padded, 0), order, starts, likeness, rows)


@njit(nogil=True, cache=True)
def moment_panels(
    kind: int,
    first: int,
    last: int,
    panels: NDArray[np.int64],
    n: int,
    packed: Array,
    levels: LevelTable,
    targets: Targets,
    weight: NDArray[np.float64],
    plan: LoopPlan,
    combined: Array,
    row_sums: NDArray[np.float64],
    totals: NDArray[np.float64],
    paired: NDArray[np.float64],
    near_sums: NDArray[np.float64],
    near_totals: NDArray[np.float64],
    near_paired: NDArray[np.float64],
    out: NDArray[np.float64],
    kept: Array,
) -> None:
    """Sums of polynomials of distances over the tiles (I, J), J >= I, of row panels I.

    The distance d is the statistic `kind` of the columns first:last. On each level, with
    ``x = 1 - 2 d / end`` and m counted from the level's start, over pairs with ``d < end``::

        row_sums[j // 8, m, j % 8] += sum_i w_i T_m(x_ij)
        totals[m] += sum_ij w_i w_j T_m(x_ij)             (only degrees without row sums)
        paired[m] += sum_ij w_i w_j (Y Y')_ij T_m(x_ij)

    where the last two are left as eight partial sums each, for the caller to add up. For levels
    that are not dense, the sums over pairs of two different points are in ``near_sums[j, m]``,
    `near_totals` and `near_paired`. Totals and sums with targets are not computed if their arrays
    have no rows.

    Padding has weight zero and repeats the last point, so that its polynomials are numbers between
    -1 and 1. With coefficients `combined` of the kernels of `plan`, `out` receives the combined
    matrix; each row of `kept` receives the distances of one tile.
    """
    n_tiles, depth, tile = packed.shape
    points = packed.ravel()
    base = np.empty(tile * tile, dtype=packed.dtype)
    adds_up = combined.shape[0] > 0
    values = np.empty(STRIP * tile if adds_up else 0, dtype=packed.dtype)
    total = np.empty(STRIP * tile if adds_up else 0, dtype=packed.dtype)
    block = Block(
        np.zeros(tile * COLUMNS), np.zeros(tile * COLUMNS), np.zeros(tile * COLUMNS),
        np.zeros(tile * COLUMNS), np.zeros(DEGREES * COLUMNS), np.zeros(DEGREES * COLUMNS),
        np.ones(COLUMNS),
    )  # fmt: skip
    near = Near(np.zeros(tile), np.zeros(tile, dtype=np.int64), np.zeros(16 * COLUMNS))
    whole_tile = np.zeros(2, dtype=np.int64)
    nothing = np.empty((0, COLUMNS))
    with_pairs = targets.rows.shape[1] > 0
    for i_tile in panels:
        i0 = i_tile * tile
        n_i = min(tile, n - i0)
        order, starts = targets.order[i0 : i0 + tile], targets.starts[i_tile]
        for j_tile in range(i_tile, n_tiles):
            j0 = j_tile * tile
            n_j = min(tile, n - j0)
            _tile_statistic(
                kind, first, last, points, i_tile, points, j_tile, depth, tile, 0,
                _round_up(n_i, STRIP), tile, False, base, 0,
            )  # fmt: skip
            number = _tile_number(i_tile, j_tile, n_tiles)
            if number < kept.shape[0]:
                kept[number, :] = base
            if adds_up:
                for r in range(0, n_i, STRIP):
                    _combine_strip(plan, base, r * tile, 0, combined, values, total)
                    _write_strip(total, tile, min(STRIP, n_i - r), n_j, i0 + r, j0, out)
            times = 1.0 if i_tile == j_tile else 2.0
            whole_tile[1] = n_j
            for level in range(levels.end.shape[0]):
                if not levels.dense[level]:
                    _add_near_pairs(
                        base, tile, i0, n_i, j0, n_j, levels, level, targets, weight, near,
                        near_sums, near_totals, near_paired,
                    )  # fmt: skip
                    continue
                scale, lowest = 2.0 / levels.end[level], levels.lowest[level]
                for j in range(0, n_j, COLUMNS):
                    for r in range(n_i):
                        at = order[r] * tile + j
                        own = weight[i0 + order[r]]
                        for c in range(COLUMNS):
                            x = 1.0 - scale * np.float64(base[at + c])
                            w = own if x > lowest else 0.0
                            block.x[r * COLUMNS + c] = x
                            block.before[r * COLUMNS + c] = w * x
                            block.now[r * COLUMNS + c] = w
                    if with_pairs:
                        _fill_pairs(targets.rows, weight, i0, n_i, j0 + j, block.pair)
                    _block_sums(
                        block, starts, with_pairs, weight, targets.likeness, j0 + j, times,
                        levels, level, row_sums, totals, paired,
                    )  # fmt: skip
                if i_tile == j_tile:
                    continue
                for i in range(0, n_i, COLUMNS):
                    for r in range(0, n_j, 8):
                        turned_block(  # type: ignore[call-arg]
                            base, i * tile + r, tile, -scale, block.x, r * COLUMNS
                        )
                    for r in range(n_j):
                        own = weight[j0 + r]
                        for c in range(r * COLUMNS, (r + 1) * COLUMNS):
                            w = own if block.x[c] > lowest else 0.0
                            block.before[c] = w * block.x[c]
                            block.now[c] = w
                    _block_sums(
                        block, whole_tile, False, weight, targets.likeness, i0 + i, times,
                        levels, level, row_sums, nothing, nothing,
                    )  # fmt: skip


@njit(nogil=True, cache=True)
def _fill_pairs(
    rows: NDArray[np.float64],
    weight: NDArray[np.float64],
    i: int,
    count: int,
    j: int,
    pair: NDArray[np.float64],
) -> None:
    """``w_j (Y Y')_ij`` between `count` points from i on and eight points from j on."""
    pair[:] = 0.0
    for t in range(rows.shape[1]):
        for r in range(count):
            own = rows[i + r, t]
            for c in range(COLUMNS):
                pair[r * COLUMNS + c] += own * rows[j + c, t] * weight[j + c]


@njit(nogil=True, cache=True)
def _add_near_pairs(
    base: Array,
    tile: int,
    i0: int,
    n_i: int,
    j0: int,
    n_j: int,
    levels: LevelTable,
    level: int,
    targets: Targets,
    weight: NDArray[np.float64],
    near: Near,
    near_sums: NDArray[np.float64],
    near_totals: NDArray[np.float64],
    near_paired: NDArray[np.float64],
) -> None:
    """Add the near pairs of a tile, strictly above the diagonal, to the sums of their points."""
    end = levels.end[level]
    scale = 2.0 / end
    first, first_total = levels.row_start[level], levels.high_start[level]
    low = levels.degrees[level] // 8
    high = levels.high[level] // 8 if near_totals.shape[0] > 0 else low
    n_degrees, n_padded = near_sums.shape[1], weight.shape[0]
    t = targets.rows.shape[1]
    with_targets = near_paired.shape[0] > 0
    likeness = targets.likeness.ravel()
    for r in range(n_i):
        i = i0 + r
        count = 0
        for q in range(r // 8 * 8 if i0 == j0 else 0, n_j, 8):
            bits: int = below_mask(base, r * tile + q, end)  # type: ignore[call-arg]
            if q + 8 > n_j:
                bits &= (1 << (n_j - q)) - 1
            if i0 == j0 and q <= r:
                bits &= -(2 << (r - q))
            while bits != 0:
                column = q + lowest_bit(bits)  # type: ignore[call-arg]
                bits &= bits - 1
                near.x[count] = 1.0 - scale * np.float64(base[r * tile + column])
                near.column[count] = column
                count += 1
        own = i * n_degrees + first
        for start in range(0, count, 8):
            chebyshev_starts(near.x, start, near.start)  # type: ignore[call-arg]
            for e in range(min(8, count - start)):
                j = j0 + near.column[start + e]
                both = 2.0 * weight[i] * weight[j]
                other = j * n_degrees + first
                if not with_targets:
                    add_pair_moments(
                        near.start, 16 * e, low, high, near_sums, own, weight[j], other, weight[i],
                        near_paired, first, 0.0, near_totals, first_total, both,
                    )  # fmt: skip
                    continue
                if t > 0:
                    product = 0.0
                    for c in range(t):
                        product += targets.rows[i, c] * targets.rows[j, c]
                    product *= both
                else:
                    product = 2.0 * weight[i] * likeness[targets.value[i] * n_padded + j]
                add_pair_moments_paired(
                    near.start, 16 * e, low, high, near_sums, own, weight[j], other, weight[i],
                    near_paired, first, product, near_totals, first_total, both,
                )  # fmt: skip


@njit(nogil=True, cache=True)
def _block_sums(
    block: Block,
    starts: NDArray[np.int64],
    with_pairs: bool,
    weight: NDArray[np.float64],
    likeness: NDArray[np.float64],
    j: int,
    times: float,
    levels: LevelTable,
    level: int,
    row_sums: NDArray[np.float64],
    totals: NDArray[np.float64],
    paired: NDArray[np.float64],
) -> None:
    """Add the sums over the rows of a block, one target value after the other.

    The columns of the block are the points j, j + 1, ...; on entry `now` is ``w T_0`` and `before`
    is ``w T_(-1) = w T_1``.
    """
    x, before, now, pair, sums, pair_sums, ones = block
    n_values, degrees = starts.shape[0] - 1, levels.degrees[level]
    first_row, first_total = levels.row_start[level], levels.high_start[level]
    high = levels.high[level] if totals.shape[0] > 0 else degrees
    by_value = paired.shape[0] > 0 and not with_pairs
    n_padded = weight.shape[0]
    own = row_sums[j // COLUMNS]
    m = 0
    while m < high:
        many = m + DEGREES <= (degrees if m < degrees else high)
        count = DEGREES if many else REST
        pairs_now = with_pairs and m < degrees
        for value in range(n_values):
            top, rows = starts[value], starts[value + 1] - starts[value]
            if rows == 0:
                continue
            if pairs_now and many:
                chebyshev_sums_paired(x, before, now, top, rows, pair, sums, pair_sums)
            elif pairs_now:
                chebyshev_sums_paired_rest(x, before, now, top, rows, pair, sums, pair_sums)
            elif many:
                chebyshev_sums(x, before, now, top, rows, pair, sums, pair_sums)
            else:
                chebyshev_sums_rest(x, before, now, top, rows, pair, sums, pair_sums)
            if m >= degrees:
                add_scaled_rows(  # type: ignore[call-arg]
                    sums, count, weight, j, times, totals, first_total + m
                )
                continue
            add_scaled_rows(  # type: ignore[call-arg]
                sums, count, ones, 0, 1.0, own, first_row + m
            )
            if by_value:
                add_scaled_rows(
                    sums, count, likeness, value * n_padded + j, times, paired, first_row + m
                )
            elif pairs_now:
                add_scaled_rows(pair_sums, count, ones, 0, times, paired, first_row + m)
        m += count
