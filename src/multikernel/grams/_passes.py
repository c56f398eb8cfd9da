"""Compiled loops over tiles of points: one function per kind of pass.

A Gram matrix is cut into square tiles; a tile is processed in strips of `STRIP` rows.  Functions
take arrays that are packed by tiles, ``(n_tiles, coordinates, tile)``, and padded; flat views of
them go to the register tiles, which do their own indexing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._compiling import njit
from ._fastmath import exp_decay, expm1_decay, fma, tanh
from ._mixtures import mixture
from ._simd import (
    VECTOR_BYTES,
    absolute_tile,
    dot_tile,
    ratio_tile,
    row_products,
    row_products_single,
    row_products_triangle,
    square_tile,
    strip_sums,
    strip_sums_weighted,
)

__all__ = [
    "ABSOLUTE",
    "DOT",
    "EXP_CHI",
    "EXP_L1",
    "EXP_POWER",
    "EXP_ROOT",
    "EXP_SQ",
    "MATERN_3",
    "MATERN_5",
    "POLY",
    "RATIO",
    "SQUARE",
    "STRIP",
    "TABLE_CHI",
    "TABLE_L1",
    "TABLE_SQ",
    "TANH",
    "LoopPlan",
    "apply_panel",
    "combine_panels",
    "cross_combine_panel",
    "diagonals",
    "evaluate",
    "fill_panel",
    "half_panels",
]

Array = NDArray[Any]

EXP_SQ = 0  # exp(-gamma * ||x - z||^2)
EXP_L1 = 1  # exp(-gamma * ||x - z||_1)
POLY = 2  # (gamma * x.z + coef0) ** degree
TANH = 3  # tanh(gamma * x.z + coef0)
TABLE_SQ = 4  # a sum of EXP_SQ, from a table
TABLE_L1 = 5  # a sum of EXP_L1, from a table
EXP_CHI = 6  # exp(-gamma * sum_c (x_c - z_c)^2 / (x_c + z_c))
TABLE_CHI = 7  # a sum of EXP_CHI, from a table
EXP_ROOT = 8  # exp(-gamma * ||x - z||)
MATERN_3 = 9  # (1 + a) exp(-a), a = gamma * ||x - z||
MATERN_5 = 10  # (1 + a + a^2 / 3) exp(-a)
EXP_POWER = 11  # exp(-gamma * ||x - z||^(2 coef0))

SQUARE, ABSOLUTE, DOT, RATIO = 0, 1, 2, 3  # pairwise statistics

STRIP = 8  # rows of a strip, fixed by the register tiles
COLUMNS = 32  # widths are multiples of this, hence of every vector length
CHUNK = 256  # coordinates summed in one chain before the sum is stored
BLOCK_BYTES = 1 << 18  # size of a block of slab rows that stays in the second-level cache


class LoopPlan(NamedTuple):
    """Kernels as compiled loops read them, with one *slot* per distinct pairwise statistic.

    Attributes
    ----------
    slot_kind : array of shape (n_slots,)
        `SQUARE`, `ABSOLUTE`, `DOT` or `RATIO`.
    slot_low, slot_high : arrays of shape (n_slots,)
        The columns over which the statistic sums.
    slot : array of shape (p,)
        The slot that each kernel reads.
    kind : array of shape (p,)
    degree : array of shape (p,)
        For a table, its start in `tables`.
    constants : array of shape (p, 3)
        The result of ``split_rate``, or gamma and coef0, in the type of the points; for a table,
        its rate and end.
    shifted : array of shape (p,)
    tables : array of shape (n_numbers,)
        See :mod:`multikernel.grams._mixtures`.
    """

    slot_kind: NDArray[np.int64]
    slot_low: NDArray[np.int64]
    slot_high: NDArray[np.int64]
    slot: NDArray[np.int64]
    kind: NDArray[np.int64]
    degree: NDArray[np.int64]
    constants: Array
    shifted: NDArray[np.bool_]
    tables: Array


@njit(nogil=True, cache=True)
def _round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


@njit(nogil=True, cache=True)
def _tile_number(i_tile: int, j_tile: int, n_tiles: int) -> int:
    """Number of a tile among those on and above the diagonal, counted row by row."""
    return i_tile * n_tiles - i_tile * (i_tile - 1) // 2 + j_tile - i_tile


@njit(nogil=True, cache=True)
def _first_column(row: int, diagonal: bool) -> int:
    """First column of the strip that starts at `row` of a tile; near `row` in a diagonal tile."""
    return row // COLUMNS * COLUMNS if diagonal else 0


@njit(nogil=True, cache=True)
def _tile_statistic(
    kind: int,
    low: int,
    high: int,
    left: Array,
    i_tile: int,
    right: Array,
    j_tile: int,
    depth: int,
    tile: int,
    top: int,
    bottom: int,
    width: int,
    diagonal: bool,
    base: Array,
    at: int,
) -> None:
    """One pairwise statistic of rows top:bottom of a tile, from ``base[at]`` on.

    Strips start ``STRIP * tile`` entries apart; the rows of a strip are contiguous.
    """
    step = 2 * VECTOR_BYTES // base.itemsize
    base[at : at + (bottom - top) * tile] = 0
    for c in range(low, high, CHUNK):
        count = min(CHUNK, high - c)
        x0 = (i_tile * depth + c) * tile
        z0 = (j_tile * depth + c) * tile
        for r in range(top, bottom, STRIP):
            first = _first_column(r, diagonal)
            stride = width - first
            for j in range(first, width, step):
                to = at + (r - top) * tile + j - first
                if kind == SQUARE:
                    square_tile(left, x0 + r, right, z0 + j, tile, count, base, to, stride)
                elif kind == ABSOLUTE:
                    absolute_tile(left, x0 + r, right, z0 + j, tile, count, base, to, stride)
                elif kind == RATIO:
                    ratio_tile(left, x0 + r, right, z0 + j, tile, count, base, to, stride)
                else:
                    dot_tile(left, x0 + r, right, z0 + j, tile, count, base, to, stride)


@njit(nogil=True, cache=True)
def _tile_statistics(
    plan: LoopPlan,
    left: Array,
    i_tile: int,
    right: Array,
    j_tile: int,
    depth: int,
    tile: int,
    top: int,
    bottom: int,
    width: int,
    diagonal: bool,
    base: Array,
    block_size: int,
) -> None:
    """All pairwise statistics of rows top:bottom of a tile; one block of `base` per slot."""
    for s in range(plan.slot_kind.shape[0]):
        _tile_statistic(
            plan.slot_kind[s],
            plan.slot_low[s],
            plan.slot_high[s],
            left,
            i_tile,
            right,
            j_tile,
            depth,
            tile,
            top,
            bottom,
            width,
            diagonal,
            base,
            s * block_size,
        )


@njit(nogil=True, cache=True)
def evaluate(plan: LoopPlan, k: int, x: Array, out: Array) -> None:
    """Kernel k on contiguous statistics."""
    kind, degree = plan.kind[k], plan.degree[k]
    a, b, c = plan.constants[k, 0], plan.constants[k, 1], plan.constants[k, 2]
    if kind in (EXP_SQ, EXP_L1, EXP_CHI):
        if plan.shifted[k]:
            for i in range(x.shape[0]):
                out[i] = expm1_decay(x[i], a, b, c)
        else:
            for i in range(x.shape[0]):
                out[i] = exp_decay(x[i], a, b, c)
    elif kind in (TABLE_SQ, TABLE_L1, TABLE_CHI):
        for i in range(x.shape[0]):
            out[i] = mixture(x[i], a, b, plan.tables, degree)
    elif kind == TANH:
        for i in range(x.shape[0]):
            out[i] = tanh(fma(a, x[i], b))
    elif kind == EXP_ROOT:
        for i in range(x.shape[0]):
            out[i] = exp_decay(np.sqrt(x[i]), a, b, c)
    elif kind in (MATERN_3, MATERN_5):
        third = a * 0 + (1.0 / 3.0 if kind == MATERN_5 else 0.0)
        one = a * 0 + 1.0
        rate = -(a + b) * (a * 0 + 0.6931471805599453)  # the constants are for powers of 2
        for i in range(x.shape[0]):
            t = np.sqrt(x[i])
            u = rate * t
            decay = exp_decay(t, a, b, c)
            out[i] = decay if decay == 0 else fma(fma(third, u, one), u, one) * decay
    elif kind == EXP_POWER:
        for i in range(x.shape[0]):
            out[i] = np.exp(-a * x[i] ** b)
    else:
        for i in range(x.shape[0]):
            out[i] = fma(a, x[i], b)
        # Left-to-right binary powers, a vector loop per digit of the degree.
        digit = 1
        while 2 * digit <= degree:
            digit *= 2
        digit //= 2
        while digit > 0:
            if degree & digit:
                for i in range(x.shape[0]):
                    out[i] = out[i] * out[i] * fma(a, x[i], b)
            else:
                for i in range(x.shape[0]):
                    out[i] = out[i] * out[i]
            digit //= 2


@njit(nogil=True, cache=True)
def diagonals(plan: LoopPlan, packed: Array, out: Array) -> None:
    """Diagonal entries; dot products are summed in the same order as in `dot_tile`."""
    tile = packed.shape[2]
    p, n = out.shape
    x = np.zeros(n, dtype=packed.dtype)
    for s in range(plan.slot_kind.shape[0]):
        x[:] = 0
        if plan.slot_kind[s] == DOT:
            for start in range(plan.slot_low[s], plan.slot_high[s], CHUNK):
                for i in range(n):
                    total = x[i] * 0
                    for c in range(start, min(start + CHUNK, plan.slot_high[s])):
                        value = packed[i // tile, c, i % tile]
                        total = fma(value, value, total)
                    x[i] += total
        for k in range(p):
            if plan.slot[k] == s:
                evaluate(plan, k, x, out[k])


# The upper half of the Gram matrices: sums and products.


@njit(nogil=True, cache=True)
def half_panels(
    plan: LoopPlan,
    panels: NDArray[np.int64],
    n: int,
    packed: Array,
    packed_targets: Array,
    weighted: bool,
    weight: Array,
    root: Array,
    centre: bool,
    means: Array,
    grand: Array,
    products: bool,
    rows_at_once: int,
    combined: Array,
    row_sums: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    gram: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Tiles (I, J), J >= I, of some row panels I.

    The slab has a row per kernel and, if there are targets, one for ``Y Y'``, so that `gram`
    receives both ``<K_k, K_l>`` and ``<K_k, Y Y'>``, for as many of the first kernels k as it has
    rows; without `products` it has two rows only, ``<K_k, K_k>`` and ``<K_k, Y Y'>``.  Strictly
    upper pairs go through the slab and count twice; the n diagonal entries are stored separately
    and added in float64 at the end of their panel. With weights `combined`, `out` receives the
    combined matrix as in `combine_panels`.
    """
    n_tiles, depth, tile = packed.shape
    p = plan.kind.shape[0]
    adds_up = combined.shape[0] > 0
    total = np.empty(STRIP * tile if adds_up else 0, dtype=packed.dtype)
    n_rows = gram.shape[1]
    t = packed_targets.shape[1]
    n_padded = n_tiles * tile
    points, target_points = packed.ravel(), packed_targets.ravel()
    flat_gram, flat_sums = gram.ravel(), row_sums.ravel()

    # One vector of padding: otherwise all rows of the slab would start in the same cache set.
    stride = STRIP * tile + 64 // packed.itemsize
    slab = np.zeros(n_rows * stride, dtype=packed.dtype)
    rows_per_block = max(4, BLOCK_BYTES // (stride * slab.itemsize) // 4 * 4)
    block_size = rows_at_once * tile
    base = np.empty(plan.slot_kind.shape[0] * block_size, dtype=packed.dtype)
    target_base = np.empty(block_size, dtype=packed.dtype)
    column_sums = np.zeros(p * tile, dtype=packed.dtype)
    on_diagonal = np.zeros(n_rows * tile)
    half_gram = np.zeros(flat_gram.shape[0])

    for i_tile in panels:
        i0 = i_tile * tile
        n_i = min(tile, n - i0)
        on_diagonal[:] = 0.0
        for j_tile in range(i_tile, n_tiles):
            j0 = j_tile * tile
            n_j = min(tile, n - j0)
            width = _round_up(n_j, COLUMNS)
            is_diagonal = i_tile == j_tile
            # Padding has weight zero, so a tile with padding is treated as weighted.
            masked = weighted or width > n_j
            column_sums[:] = 0
            for top in range(0, n_i, rows_at_once):
                bottom = min(top + rows_at_once, _round_up(n_i, STRIP))
                _tile_statistics(
                    plan, points, i_tile, points, j_tile, depth, tile, top, bottom, width,
                    is_diagonal, base, block_size,
                )  # fmt: skip
                if t > 0:
                    _tile_statistic(
                        DOT, 0, t, target_points, i_tile, target_points, j_tile, t, tile, top,
                        bottom, width, is_diagonal, target_base, 0,
                    )  # fmt: skip
                for r in range(top, bottom, STRIP):
                    first = _first_column(r, is_diagonal)
                    w = width - first
                    length = STRIP * w
                    at = (r - top) * tile
                    i, j = i0 + r, j0 + first
                    total[:length] = 0
                    for k in range(p):
                        x0 = plan.slot[k] * block_size + at
                        y = slab[k * stride : k * stride + length]
                        evaluate(plan, k, base[x0 : x0 + length], y)
                        if adds_up:
                            _add_strip(combined[k], y, total)
                        if is_diagonal:
                            for d in range(min(STRIP, n_i - r)):
                                diagonal[k, i + d] = y[d * (w + 1) + r - first]
                        if centre:
                            _centre_strip(y, w, means[k], grand[k], i, j)
                        if is_diagonal:
                            _cut_diagonal(y, w, r - first, n_i - r, on_diagonal, k * tile + r)
                        if centre:
                            if masked:
                                _scale_strip(y, w, root, i, j)
                        elif masked:
                            strip_sums_weighted(
                                slab, k * stride, w, column_sums, k * tile + first,
                                flat_sums, k * n_padded + i, weight, i, j, root,
                            )  # fmt: skip
                        else:
                            strip_sums(
                                slab, k * stride, w, column_sums, k * tile + first,
                                flat_sums, k * n_padded + i,
                            )  # fmt: skip
                    if adds_up:
                        _write_strip(total, w, min(STRIP, n_i - r), n_j - first, i, j, out)
                    if t > 0:
                        y = slab[p * stride : p * stride + length]
                        y[:] = target_base[at : at + length]
                        if is_diagonal:
                            _cut_diagonal(y, w, r - first, n_i - r, on_diagonal, p * tile + r)
                        if masked:
                            _scale_strip(y, w, root, i, j)
                    if products:
                        _slab_products(slab, stride, n_rows, length, rows_per_block, half_gram)
                    else:
                        _slab_norms(slab, stride, p, t > 0, length, half_gram, n_rows)
            if not centre:
                for k in range(p):
                    for c in range(width):
                        row_sums[k, j0 + c] += column_sums[k * tile + c]
        for k in range(n_rows):
            for d in range(n_i):
                on_diagonal[k * tile + d] *= weight[i0 + d]
        if not centre:
            for k in range(p):
                for d in range(n_i):
                    row_sums[k, i0 + d] += on_diagonal[k * tile + d]
        if products:
            _slab_products(on_diagonal, tile, n_rows, tile, n_rows, flat_gram)
        else:
            _slab_norms(on_diagonal, tile, p, t > 0, tile, flat_gram, n_rows)
    for e in range(flat_gram.shape[0]):
        flat_gram[e] += 2.0 * half_gram[e]


@njit(nogil=True, cache=True)
def _centre_strip(y: Array, width: int, means: Array, grand: float, i: int, j: int) -> None:
    """``K[i, j] - r_i - r_j + g`` in place."""
    columns = means[j : j + width]
    for d in range(STRIP):
        row = y[d * width : (d + 1) * width]
        own = means[i + d] - grand
        for c in range(width):
            row[c] = (row[c] - own) - columns[c]


@njit(nogil=True, cache=True)
def _cut_diagonal(
    y: Array, width: int, first: int, n_rows: int, kept: NDArray[np.float64], at: int
) -> None:
    """Copy the diagonal of a strip to `kept`; keep only the entries strictly above it."""
    for d in range(STRIP):
        if d < n_rows:
            kept[at + d] = y[d * width + first + d]
        for c in range(first + d + 1):
            y[d * width + c] = 0


@njit(nogil=True, cache=True)
def _scale_strip(y: Array, width: int, root: Array, i: int, j: int) -> None:
    """Multiply a strip by the roots of the weights of its rows and columns."""
    columns = root[j : j + width]
    for d in range(STRIP):
        row = y[d * width : (d + 1) * width]
        own = root[i + d]
        for c in range(width):
            row[c] *= own * columns[c]


@njit(nogil=True, cache=True)
def _slab_products(
    slab: Array,
    stride: int,
    n_rows: int,
    length: int,
    rows_per_block: int,
    gram: NDArray[np.float64],
) -> None:
    """``gram += slab slab'`` on and above the diagonal, 4 x 4 rows at a time.

    `gram` is flat; it may have fewer than `n_rows` rows, a multiple of four.

    Four rows i stay in the first-level cache during the loop over the rows j of a block; the block
    stays in the second-level cache during the loop over all rows i.
    """
    for block in range(0, n_rows, rows_per_block):
        end = min(block + rows_per_block, n_rows)
        for i in range(0, min(end, gram.shape[0] // n_rows), 4):
            for j in range(max(i, block), end, 4):
                a, b, at = i * stride, j * stride, i * n_rows + j
                if i == j:
                    row_products_triangle(
                        slab, a, stride, slab, b, stride, length, gram, at, n_rows
                    )
                else:
                    row_products(slab, a, stride, slab, b, stride, length, gram, at, n_rows)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(x: Array, y: Array) -> float:
    # The compiler may split the sum into vector lanes; the split is the same in every call.
    total = x[0] * y[0]
    for i in range(1, x.shape[0]):
        total += x[i] * y[i]
    return total


@njit(nogil=True, cache=True)
def _slab_norms(
    slab: Array,
    stride: int,
    p: int,
    with_target: bool,
    length: int,
    gram: NDArray[np.float64],
    n_rows: int,
) -> None:
    """Add the diagonal of ``slab slab'`` to the first row, its target column to the second."""
    target = slab[p * stride : p * stride + length]
    for k in range(p):
        y = slab[k * stride : k * stride + length]
        gram[k] += _dot(y, y)
        if with_target:
            gram[n_rows + k] += _dot(y, target)


# Entries, combinations, and products with vectors.


@njit(nogil=True, cache=True)
def fill_panel(
    plan: LoopPlan,
    panel: int,
    start: int,
    stop: int,
    left: Array,
    right: Array,
    rows_at_once: int,
    out: Array,
) -> None:
    """Rows start:stop that lie in one row panel, all kernels."""
    n = out.shape[2]
    n_tiles, depth, tile = right.shape
    x_points, z_points = left.ravel(), right.ravel()
    block_size = rows_at_once * tile
    base = np.empty(plan.slot_kind.shape[0] * block_size, dtype=right.dtype)
    values = np.empty(STRIP * tile, dtype=right.dtype)
    i0 = panel * tile
    low = max(start - i0, 0) // STRIP * STRIP
    high = _round_up(min(stop - i0, tile), STRIP)
    for j_tile in range(n_tiles):
        j0 = j_tile * tile
        n_j = min(tile, n - j0)
        width = _round_up(n_j, COLUMNS)
        y = values[: STRIP * width]
        for top in range(low, high, rows_at_once):
            bottom = min(top + rows_at_once, high)
            _tile_statistics(
                plan, x_points, panel, z_points, j_tile, depth, tile, top, bottom, width, False,
                base, block_size,
            )  # fmt: skip
            for r in range(top, bottom, STRIP):
                for k in range(plan.kind.shape[0]):
                    x0 = plan.slot[k] * block_size + (r - top) * tile
                    evaluate(plan, k, base[x0 : x0 + STRIP * width], y)
                    for d in range(STRIP):
                        row = i0 + r + d
                        if start <= row < stop:
                            out[k, row - start, j0 : j0 + n_j] = y[d * width : d * width + n_j]


@njit(nogil=True, cache=True)
def _combine_strip(
    plan: LoopPlan, base: Array, at: int, block_size: int, w: Array, values: Array, total: Array
) -> None:
    """``total = sum_k w_k K_k`` on one strip, in the order of the kernels."""
    length = total.shape[0]
    total[:] = 0
    for k in range(plan.kind.shape[0]):
        x0 = plan.slot[k] * block_size + at
        evaluate(plan, k, base[x0 : x0 + length], values)
        _add_strip(w[k], values, total)


@njit(nogil=True, cache=True)
def _add_strip(own: float, values: Array, total: Array) -> None:
    for i in range(values.shape[0]):
        total[i] = fma(own, values[i], total[i])


@njit(nogil=True, cache=True)
def _write_strip(
    y: Array, stride: int, height: int, width: int, i: int, j: int, out: Array
) -> None:
    """Write the strip with its corner at (i, j), and its mirror image, to `out`."""
    for d in range(height):
        out[i + d, j : j + width] = y[d * stride : d * stride + width]
    for c in range(width):
        row = out[j + c]
        for d in range(height):
            row[i + d] = y[d * stride + c]


@njit(nogil=True, cache=True)
def _subtract_means(
    y: Array,
    width: int,
    height: int,
    i: int,
    j: int,
    means: NDArray[np.float64],
    grand: float,
    out: NDArray[np.float64],
) -> None:
    """A strip with its corner at (i, j) less ``means_i + means_j - grand``."""
    for d in range(height):
        own = means[i + d]
        for c in range(width):
            at = d * width + c
            out[at] = np.float64(y[at]) - ((own + means[j + c]) - grand)


@njit(nogil=True, cache=True)
def combine_panels(
    plan: LoopPlan,
    panels: NDArray[np.int64],
    n: int,
    packed: Array,
    kept: Array,
    w: Array,
    rows_at_once: int,
    out: Array,
    means: NDArray[np.float64],
    grand: float,
    weight: NDArray[np.float64],
    row_sums: NDArray[np.float64],
) -> float:
    """Tiles (I, J), J >= I, of the combined matrix, and their mirror images.

    They are written to `out`, centred if there are means, and their sums under `weight` are added
    to `row_sums`; arrays without rows are not computed. The distances of the first tiles are read
    from `kept`, one row per tile. Returns the sum of squares if row sums are computed.
    """
    square = 0.0
    n_tiles, depth, tile = packed.shape
    points = packed.ravel()
    block_size = rows_at_once * tile
    own = np.empty(plan.slot_kind.shape[0] * block_size, dtype=packed.dtype)
    values = np.empty(STRIP * tile, dtype=packed.dtype)
    total = np.empty(STRIP * tile, dtype=packed.dtype)
    centred = np.empty(STRIP * tile if means.shape[0] > 0 else 0)
    for i_tile in panels:
        i0 = i_tile * tile
        n_i = min(tile, n - i0)
        for j_tile in range(i_tile, n_tiles):
            j0 = j_tile * tile
            n_j = min(tile, n - j0)
            width = _round_up(n_j, COLUMNS)
            is_diagonal = i_tile == j_tile
            number = _tile_number(i_tile, j_tile, n_tiles)
            known = number < kept.shape[0]
            height, base = rows_at_once, own
            if known:
                height, width, base = tile, tile, kept[number]
            for top in range(0, n_i, height):
                bottom = min(top + height, _round_up(n_i, STRIP))
                if not known:
                    _tile_statistics(
                        plan, points, i_tile, points, j_tile, depth, tile, top, bottom, width,
                        is_diagonal, base, block_size,
                    )  # fmt: skip
                for r in range(top, bottom, STRIP):
                    # Kept distances begin with the first column in every strip.
                    first = _first_column(r, is_diagonal and not known)
                    wide = width - first
                    length = STRIP * wide
                    y = total[:length]
                    _combine_strip(plan, base, (r - top) * tile, block_size, w, values[:length], y)
                    tall = min(STRIP, n_i - r)
                    i, j = i0 + r, j0 + first
                    if means.shape[0] > 0:
                        _subtract_means(y, wide, tall, i, j, means, grand, centred)
                        _write_strip(centred, wide, tall, n_j - first, i, j, out)
                    elif out.shape[0] > 0:
                        _write_strip(y, wide, tall, n_j - first, i, j, out)
                    if row_sums.shape[0] > 0:
                        square += _sum_strip(
                            y, wide, tall, n_j - first, i, j, is_diagonal, weight, row_sums
                        )
    return square


@njit(nogil=True, cache=True)
def _sum_strip(
    y: Array,
    stride: int,
    height: int,
    width: int,
    i: int,
    j: int,
    is_diagonal: bool,
    weight: NDArray[np.float64],
    row_sums: NDArray[np.float64],
) -> float:
    """Add the strip with its corner at (i, j), and its mirror image, to the sums of the rows.

    Returns their sum of squares. In tiles on the diagonal, entries left of it are skipped: their
    mirror images count for both.
    """
    square = 0.0
    for d in range(height):
        first = 0
        if is_diagonal:
            first = i + d - j
            own = np.float64(y[d * stride + first])
            row_sums[i + d] += weight[i + d] * own
            square += (weight[i + d] * own) ** 2
            first += 1
        row = y[d * stride + first : d * stride + width]
        across = weight[j + first : j + width]
        square += 2.0 * _add_row(row, across, weight[i + d], row_sums, i + d, j + first)
    return square


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _add_row(
    row: Array,
    weight: NDArray[np.float64],
    own: float,
    row_sums: NDArray[np.float64],
    i: int,
    start: int,
) -> float:
    """Add a row right of the diagonal to the sums of its row and columns; its sum of squares."""
    columns = row_sums[start : start + row.shape[0]]
    total = 0.0
    square = 0.0
    for c in range(row.shape[0]):
        value = np.float64(row[c])
        weighted = weight[c] * value
        total += weighted
        square += weighted * value
        columns[c] += own * value
    row_sums[i] += total
    return own * square


@njit(nogil=True, cache=True)
def cross_combine_panel(
    plan: LoopPlan,
    panel: int,
    left: Array,
    right: Array,
    w: Array,
    rows_at_once: int,
    out: Array,
) -> None:
    """One row panel of the combined matrix between new points and points."""
    m, n = out.shape
    n_tiles, depth, tile = right.shape
    x_points, z_points = left.ravel(), right.ravel()
    block_size = rows_at_once * tile
    base = np.empty(plan.slot_kind.shape[0] * block_size, dtype=right.dtype)
    values = np.empty(STRIP * tile, dtype=right.dtype)
    total = np.empty(STRIP * tile, dtype=right.dtype)
    i0 = panel * tile
    n_i = min(tile, m - i0)
    for j_tile in range(n_tiles):
        j0 = j_tile * tile
        n_j = min(tile, n - j0)
        width = _round_up(n_j, COLUMNS)
        length = STRIP * width
        for top in range(0, n_i, rows_at_once):
            bottom = min(top + rows_at_once, _round_up(n_i, STRIP))
            _tile_statistics(
                plan, x_points, panel, z_points, j_tile, depth, tile, top, bottom, width, False,
                base, block_size,
            )  # fmt: skip
            for r in range(top, bottom, STRIP):
                y = total[:length]
                _combine_strip(plan, base, (r - top) * tile, block_size, w, values[:length], y)
                for d in range(min(STRIP, n_i - r)):
                    out[i0 + r + d, j0 : j0 + n_j] = y[d * width : d * width + n_j]


@njit(nogil=True, cache=True)
def _strip_times(
    y: Array,
    width: int,
    V: Array,
    v0: int,
    tile: int,
    t: int,
    out: NDArray[np.float64],
    at: int,
) -> None:
    """``out[i, :] += y[i, :] V`` for the rows of a strip."""
    for i in range(0, STRIP, 4):
        if t == 1:
            row_products_single(y, i * width, width, V, v0, tile, width, out, at + i, t)
        else:
            for c in range(0, t, 4):
                row_products(
                    y, i * width, width, V, v0 + c * tile, tile, width, out, at + i * t + c, t
                )


@njit(nogil=True, cache=True)
def apply_panel(
    plan: LoopPlan,
    panel: int,
    m: int,
    n: int,
    left: Array,
    right: Array,
    combined: bool,
    w: Array,
    packed_V: Array,
    rows_at_once: int,
    out: NDArray[np.float64],
) -> None:
    """One row panel of ``K_k V``, or of ``sum_k w_k K_k V``.

    Padding rows of V are zero, so padded columns do not count.
    """
    n_tiles, depth, tile = right.shape
    t = packed_V.shape[1]
    m_padded = out.shape[1]
    x_points, z_points, V = left.ravel(), right.ravel(), packed_V.ravel()
    flat_out = out.ravel()
    block_size = rows_at_once * tile
    base = np.empty(plan.slot_kind.shape[0] * block_size, dtype=right.dtype)
    values = np.empty(STRIP * tile, dtype=right.dtype)
    total = np.empty(STRIP * tile, dtype=right.dtype)
    i0 = panel * tile
    n_i = min(tile, m - i0)
    for j_tile in range(n_tiles):
        width = _round_up(min(tile, n - j_tile * tile), COLUMNS)
        length = STRIP * width
        v0 = j_tile * t * tile
        y = values[:length]
        for top in range(0, n_i, rows_at_once):
            bottom = min(top + rows_at_once, _round_up(n_i, STRIP))
            _tile_statistics(
                plan, x_points, panel, z_points, j_tile, depth, tile, top, bottom, width, False,
                base, block_size,
            )  # fmt: skip
            for r in range(top, bottom, STRIP):
                at = (r - top) * tile
                if combined:
                    _combine_strip(plan, base, at, block_size, w, y, total[:length])
                    _strip_times(total, width, V, v0, tile, t, flat_out, (i0 + r) * t)
                    continue
                for k in range(plan.kind.shape[0]):
                    x0 = plan.slot[k] * block_size + at
                    evaluate(plan, k, base[x0 : x0 + length], y)
                    row = k * m_padded + i0 + r
                    _strip_times(values, width, V, v0, tile, t, flat_out, row * t)
