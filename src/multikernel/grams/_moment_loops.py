"""Compiled sums of Chebyshev polynomials of distances over tiles of points.

What they are for stands in :mod:`multikernel.grams._moments`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ._passes import (
    STRIP,
    Plan,
    _combine_strip,
    _round_up,
    _tile_number,
    _tile_statistic,
    _write_strip,
)
from ._simd import (
    DEGREES,
    REST,
    chebyshev_sums,
    chebyshev_sums_paired,
    chebyshev_sums_paired_rest,
    chebyshev_sums_rest,
    chebyshev_sums_weighted,
    chebyshev_sums_weighted_rest,
    turned_block,
)

Array = NDArray[Any]

COLUMNS = 8  # of a block, fixed by the register tiles
#: Targets with more distinct rows than this are taken pair by pair.
LEVELS = 16


class Block(NamedTuple):
    """Rows of eight numbers: x, two polynomials of it, ``Y Y'``; and sums by degree and column."""

    x: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    pair: NDArray[np.float64]
    sums: NDArray[np.float64]
    pair_sums: NDArray[np.float64]


class Targets(NamedTuple):
    """Y of ``<K, Y Y'>``: by its distinct rows where these are few, *levels*, as labels have.

    Attributes
    ----------
    order : array of shape (n_padded,)
        Points of a tile by their levels: ``order[i0 + r]`` is the r-th of the tile at i0, less i0.
    starts : array of shape (n_tiles, n_levels + 1)
        Where in a tile the points of a level begin.
    likeness : array of shape (n_levels, n_padded)
        ``omega_j Y_l' Y_j`` of each level and point; zero without targets, or where `values` are
        used.
    values : array of shape (n_padded, t)
        Y with weights, where levels are not few; else with t = 0.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    likeness: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, Y: Array | None, weights: Array | None, n: int, tile: int) -> Targets:
        n_tiles = -(-n // tile)
        n_padded = n_tiles * tile
        levels, level = None, np.zeros(n, dtype=np.int64)
        if Y is not None:
            distinct, which = np.unique(Y, axis=0, return_inverse=True)
            if len(distinct) <= LEVELS:
                levels, level = distinct, which.reshape(n)
        count = 1 if levels is None else len(levels)
        # Padding comes last, after all levels.
        padded = np.full(n_padded, count)
        padded[:n] = level
        order = np.argsort(padded.reshape(n_tiles, tile), axis=1, kind="stable").ravel()
        at = padded + (count + 1) * (np.arange(n_padded) // tile)
        counts = np.bincount(at, minlength=n_tiles * (count + 1)).reshape(n_tiles, -1)
        starts = np.zeros((n_tiles, count + 1), dtype=np.int64)
        starts[:, 1:] = np.cumsum(counts[:, :count], axis=1)
        likeness = np.zeros((count, n_padded))
        values = np.zeros((n_padded, 0))
        if Y is not None:
            weighted = Y if weights is None else weights[:, None] * Y
            if levels is not None:
                likeness[:, :n] = levels @ weighted.T
            else:
                values = np.zeros((n_padded, Y.shape[1]))
                values[:n] = weighted
        return cls(order, starts, likeness, values)


@njit(nogil=True, cache=True)
def moment_panels(
    kind: int,
    first: int,
    last: int,
    panels: NDArray[np.int64],
    n: int,
    packed: Array,
    scale: float,
    targets: Targets,
    weighted: bool,
    weight: NDArray[np.float64],
    plan: Plan,
    combined: Array,
    row_sums: NDArray[np.float64],
    totals: NDArray[np.float64],
    paired: NDArray[np.float64],
    out: NDArray[np.float64],
    kept: Array,
) -> None:
    """Sums of polynomials of ``x = 1 - scale d`` over the tiles (I, J), J >= I, of row panels I.

    The distance d is the statistic `kind` of the columns first:last. With T_m in place m - 1::

        row_sums[j // 8, m - 1, j % 8] += sum_i w_i T_m(x_ij)
        totals[m - 1] += sum_ij w_i w_j T_m(x_ij)         (degrees that row_sums has not)
        paired[m - 1] += sum_ij w_i w_j (Y Y')_ij T_m(x_ij)

    Padding has weight zero; it stands for points in the middle of all, whose polynomials are
    numbers like any others. With weights `combined` of the kernels of `plan`, `out` receives the
    combined matrix; the rows of `kept` receive the distances of as many tiles.
    """
    n_tiles, depth, tile = packed.shape
    points = packed.ravel()
    base = np.empty(tile * tile, dtype=packed.dtype)
    adds_up = combined.shape[0] > 0
    values = np.empty(STRIP * tile if adds_up else 0, dtype=packed.dtype)
    total = np.empty(STRIP * tile if adds_up else 0, dtype=packed.dtype)
    block = Block(
        np.empty(tile * COLUMNS), np.empty(tile * COLUMNS), np.empty(tile * COLUMNS),
        np.empty(tile * COLUMNS), np.empty(DEGREES * COLUMNS), np.empty(DEGREES * COLUMNS),
    )  # fmt: skip
    in_order = np.empty(tile)
    with_pairs = targets.values.shape[1] > 0
    whole = np.zeros(2, dtype=np.int64)
    nothing = np.empty(0)
    for i_tile in panels:
        i0 = i_tile * tile
        n_i = min(tile, n - i0)
        order, starts = targets.order[i0 : i0 + tile], targets.starts[i_tile]
        for r in range(n_i):
            in_order[r] = weight[i0 + order[r]]
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
            for j in range(0, n_j, COLUMNS):
                for r in range(n_i):
                    at = order[r] * tile + j
                    for c in range(COLUMNS):
                        block.x[r * COLUMNS + c] = 1.0 - scale * np.float64(base[at + c])
                if with_pairs:
                    _fill_pairs(targets.values, i0, n_i, j0 + j, block.pair)
                _block_sums(
                    block, starts, weighted, in_order, with_pairs, weight, targets.likeness,
                    j0 + j, times, row_sums, totals, paired,
                )  # fmt: skip
            if i_tile == j_tile or row_sums.shape[1] == 0:
                continue
            whole[1] = n_j
            across = weight[j0 : j0 + tile]
            for i in range(0, n_i, COLUMNS):
                for r in range(0, n_j, 8):
                    turned_block(  # type: ignore[call-arg]
                        base, i * tile + r, tile, -scale, block.x, r * COLUMNS
                    )
                _block_sums(
                    block, whole, weighted, across, False, weight, targets.likeness,
                    i0 + i, times, row_sums, nothing, nothing,
                )  # fmt: skip


@njit(nogil=True, cache=True)
def _fill_pairs(
    values: NDArray[np.float64], i: int, rows: int, j: int, pair: NDArray[np.float64]
) -> None:
    """``Y Y'`` between some points and eight others."""
    pair[:] = 0.0
    for t in range(values.shape[1]):
        for r in range(rows):
            own = values[i + r, t]
            for c in range(COLUMNS):
                pair[r * COLUMNS + c] += own * values[j + c, t]


@njit(nogil=True, cache=True)
def _block_sums(
    block: Block,
    starts: NDArray[np.int64],
    weighted: bool,
    row_weight: NDArray[np.float64],
    with_pairs: bool,
    weight: NDArray[np.float64],
    likeness: NDArray[np.float64],
    j: int,
    times: float,
    row_sums: NDArray[np.float64],
    totals: NDArray[np.float64],
    paired: NDArray[np.float64],
) -> None:
    """What the rows of a block add to the sums of `moment_panels`, level by level.

    Its columns are j, j + 1, ...; what has no rows is not asked for.
    """
    x, before, now, pair, sums, pair_sums = block
    n_levels, degrees = starts.shape[0] - 1, row_sums.shape[1]
    high = max(degrees, totals.shape[0])
    by_level = paired.shape[0] > 0 and not with_pairs
    own = row_sums[j // COLUMNS].ravel()
    before[:] = 1.0
    now[:] = x
    m = 0
    while m < high:
        many = m + DEGREES <= (degrees if m < degrees else high)
        count = DEGREES if many else REST
        pairs_now = with_pairs and m < degrees and not weighted
        for level in range(n_levels):
            top, rows = starts[level], starts[level + 1] - starts[level]
            if rows == 0:
                continue
            if pairs_now and many:
                chebyshev_sums_paired(
                    x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums
                )
            elif pairs_now:
                chebyshev_sums_paired_rest(
                    x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums
                )
            elif weighted and many:
                chebyshev_sums_weighted(
                    x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums
                )
            elif weighted:
                chebyshev_sums_weighted_rest(
                    x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums
                )
            elif many:
                chebyshev_sums(x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums)
            else:
                chebyshev_sums_rest(x, before, now, top, rows, row_weight, 0, pair, sums, pair_sums)
            if m >= degrees:
                for e in range(count):
                    totals[m + e] += times * _product(weight, j, sums, e)
                continue
            at = m * COLUMNS
            for q in range(count * COLUMNS):
                own[at + q] += sums[q]
            if by_level:
                for e in range(count):
                    paired[m + e] += times * _product(likeness[level], j, sums, e)
            elif pairs_now:
                for e in range(count):
                    paired[m + e] += times * _total(pair_sums, e)
        m += count
    if with_pairs and weighted:
        # Weights and pairs at once would be two more loops for a rare case.
        before[:] = 1.0
        now[:] = x
        for m in range(0, degrees, REST):
            chebyshev_sums_paired_rest(
                x, before, now, 0, starts[n_levels], row_weight, 0, pair, sums, pair_sums
            )
            for e in range(REST):
                paired[m + e] += times * _total(pair_sums, e)


@njit(nogil=True, cache=True)
def _product(a: NDArray[np.float64], j: int, sums: NDArray[np.float64], e: int) -> float:
    total = 0.0
    for c in range(COLUMNS):
        total += a[j + c] * sums[e * COLUMNS + c]
    return total


@njit(nogil=True, cache=True)
def _total(sums: NDArray[np.float64], e: int) -> float:
    total = 0.0
    for c in range(COLUMNS):
        total += sums[e * COLUMNS + c]
    return total
