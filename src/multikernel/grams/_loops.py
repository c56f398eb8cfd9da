"""Passes over the Gram matrices of a family of kernels, none of which is ever stored.

A *family* is p kernels that are scalar functions of a few pairwise statistics of the same n
points: squared distances, absolute distances, dot products.  A pass walks over square tiles of
points and, inside a tile, over strips of eight rows.  For one strip it computes the statistics,
evaluates all p kernels into a slab of p rows that stays in the cache, and reduces the slab::

    for tiles I <= J:                       # K is symmetric: half of the tiles
        for strips of 8 rows in I:
            base  = distances or dot products   (8 x tile), once for all kernels
            slab  = the p kernels on base       (p x 8 tile)
            sums += rows and columns of slab
            G    += slab slab'                  # symmetric too: half of the products

Entries are computed in the type of the points.  A sum starts in short chains of that type (one
per strip and vector lane) and goes on in float64.  Statistics of many exponentials of one distance
come from sums of polynomials instead (`_moments`).

Results have the same bits on every run, whatever the number of threads (`_order`).  An entry of
one kernel has the same bits in every pass; an entry of a combination of many exponentials comes
from a table (`_mixtures`) and differs from their sum by rounding errors.

All functions take a :class:`~multikernel.grams.pass_cache.PassCache`, which holds the family and
what earlier passes derived from it. The passes of a small sample are those of `_uncompiled`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _passes, _uncompiled
from ._distances import is_wide
from ._families import KernelFamily
from ._levels import RateLevels
from ._moments import moment_sums
from ._order import in_order, tiles_of, units
from ._passes import (
    EXP_CHI,
    EXP_L1,
    EXP_POWER,
    EXP_ROOT,
    EXP_SQ,
    MATERN_3,
    MATERN_5,
    POLY,
    STRIP,
    TANH,
)
from .pass_cache import KEPT_BYTES_PER_ENTRY, BankSplit, PassCache, pack, pack_points

__all__ = [
    "EXP_CHI",
    "EXP_L1",
    "EXP_POWER",
    "EXP_ROOT",
    "EXP_SQ",
    "KEPT_BYTES_PER_ENTRY",
    "MATERN_3",
    "MATERN_5",
    "POLY",
    "TANH",
    "CentredStatistics",
    "KernelFamily",
    "PassCache",
    "Statistics",
    "block",
    "centred_products",
    "centred_statistics",
    "combine",
    "combined_matvec",
    "combined_sums",
    "cross_apply",
    "cross_block",
    "cross_combine",
    "diagonals",
    "is_wide",
    "matvecs",
    "statistics",
]

Array = NDArray[Any]

#: With more vectors than this, evaluating kernels costs less than sums of polynomials.
MAX_MOMENT_VECTORS = 2
#: Pairwise statistics are computed a whole tile at a time up to this size, else strip by strip.
_MAX_TILE_STATISTICS_BYTES = 1 << 19


class Statistics(NamedTuple):
    """Raw (uncentred) sums over the Gram matrices of a family, all float64.

    Attributes
    ----------
    row_sums : array of shape (p, n)
        ``sum_j w_j K_k[i, j]``.
    diagonals : array of shape (p, n)
        ``K_k[i, i]``.
    a : array of shape (p,) or None
        ``sum_ij w_i w_j K_k[i, j] (Y Y')[i, j]``.
    products : array of shape (p, p) or (p,)
        ``sum_ij w_i w_j K_k[i, j] K_l[i, j]``, or only its diagonal.
    combined : array of shape (n, n) or None
        ``sum_k c_k K_k`` for given coefficients c.
    totals : tuple of arrays or None
        ``sum_ij w_i w_j T_m(x_ij)`` of the polynomials of each level, if there are levels.
    """

    row_sums: Array
    diagonals: Array
    a: Array | None
    products: Array
    combined: Array | None = None
    totals: tuple[Array, ...] | None = None


class CentredStatistics(NamedTuple):
    """Sums over centred Gram matrices ``Kc = K - r_i - r_j + g``, all float64.

    Attributes
    ----------
    a : array of shape (p,) or None
        ``sum_ij w_i w_j Kc_k[i, j] (Y Y')[i, j]``.
    products : array of shape (p, p) or (p,)
        ``sum_ij w_i w_j Kc_k[i, j] Kc_l[i, j]``, or only its diagonal.
    """

    a: Array | None
    products: Array


def statistics(
    cache: PassCache,
    targets: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    products: bool = True,
    n_threads: int | None = None,
    combined: NDArray[np.float64] | None = None,
) -> Statistics:
    """Row sums, diagonals, target products and Frobenius products in one pass.

    Parameters
    ----------
    cache : PassCache
    targets : array of shape (n, t) or None
        Y, usually centred; the pass returns ``<K_k, Y Y'>``.
    weights : array of shape (n,) or None
        Non-negative weights w of the points; None for ones.
    products : bool, default=True
        All products ``<K_k, K_l>``, or only the squared norms ``<K_k, K_k>``.
    n_threads : int or None
        None uses every available core.
    combined : array of shape (p,) or None
        Kernel weights; with them the result of `combine` is computed in the same pass.

    Returns
    -------
    Statistics
    """
    if cache.small:
        row_sums, diagonal, a, found = _uncompiled.statistics(cache, targets, weights, products)
        matrix = None if combined is None else _uncompiled.combine(cache, combined, np.float64)
        return Statistics(row_sums, diagonal, a, found, matrix)
    if cache.levels is not None:
        return _by_moments(cache, cache.levels, targets, weights, products, n_threads, combined)
    if products and cache.split is not None:
        return _split_statistics(cache.split, targets, weights, n_threads, combined)
    return _half_pass(cache, targets, weights, products, None, None, n_threads, combined)


def centred_products(
    cache: PassCache,
    row_means: NDArray[np.float64],
    grand_means: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    products: bool = True,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Products of centred kernels: the `products` of `centred_statistics`.

    Returns
    -------
    array of shape (p, p) or (p,)
        float64.
    """
    return centred_statistics(
        cache, row_means, grand_means, None, weights, products, n_threads
    ).products


def centred_statistics(
    cache: PassCache,
    row_means: NDArray[np.float64],
    grand_means: NDArray[np.float64],
    targets: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    products: bool = True,
    n_threads: int | None = None,
) -> CentredStatistics:
    """Products of centred kernels, centred entry by entry before they are multiplied.

    ``Kc[i, j] = K[i, j] - row_means[i] - row_means[j] + grand_means``: a second pass, without the
    cancellation of the one-pass formula.

    Parameters
    ----------
    cache : PassCache
    row_means : array of shape (p, n)
    grand_means : array of shape (p,)
    targets : array of shape (n, t) or None
        Y, to get ``<Kc_k, Y Y'>`` as well.
    weights : array of shape (n,) or None
        Non-negative weights of the points; None for ones.
    products : bool, default=True
        All products, or only the squared norms.
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    CentredStatistics
    """
    if cache.small:
        return CentredStatistics(
            *_uncompiled.statistics(cache, targets, weights, products, row_means, grand_means)[2:]
        )
    found = _half_pass(cache, targets, weights, products, row_means, grand_means, n_threads)
    return CentredStatistics(found.a, found.products)


def diagonals(cache: PassCache) -> Array:
    """``K_k[i, i]``, bit for bit as the other passes compute it.

    Returns
    -------
    array of shape (p, n)
        In the type of the family.
    """
    if cache.small:
        return _uncompiled.diagonals(cache).astype(cache.family.dtype, copy=False)
    family = cache.family
    out = np.empty((family.p, family.n), dtype=family.dtype)
    _passes.diagonals(cache.plan, cache.packed, out)
    return out


def block(cache: PassCache, rows: slice, n_threads: int | None = None) -> Array:
    """Rows of all Gram matrices.

    Parameters
    ----------
    cache : PassCache
    rows : slice
        With step 1.
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    array of shape (p, n_rows, n)
        In the type of the family; the bits of an entry do not depend on ``rows``.
    """
    start, stop, step = rows.indices(cache.family.n)
    if step != 1:
        raise ValueError(f"rows must be a slice with step 1, got step {step}.")
    if cache.small:
        return _uncompiled.block(cache, slice(start, max(start, stop)))
    return _fill(cache, cache.packed, start, max(start, stop), n_threads)


def combine(
    cache: PassCache,
    w: NDArray[np.float64],
    n_threads: int | None = None,
    dtype: Any = None,
    means: tuple[NDArray[np.float64], float] | None = None,
) -> Array:
    """The dense matrix ``sum_k w_k K_k``.

    Kernels of weight zero are not evaluated.

    Parameters
    ----------
    cache : PassCache
    w : array of shape (p,)
    n_threads : int or None
        None uses every available core.
    dtype : float32, float64 or None
        Type of the result; None for the type of the family.
    means : (array of shape (n,), float) or None
        Means r of the rows and g of all: ``r_i + r_j - g`` is subtracted in float64.

    Returns
    -------
    array of shape (n, n)
        Exactly symmetric.
    """
    if cache.small:
        return _uncompiled.combine(
            cache, np.asarray(w, dtype=np.float64), dtype or cache.family.dtype, means
        )
    n, tile, kept = cache.family.n, cache.family.tile, cache.distances
    cache, w = cache.combination(w)
    family = cache.family
    kept = kept if family.tile == tile else kept[:0]
    out = np.empty((n, n), dtype=np.dtype(family.dtype if dtype is None else dtype))
    r, g = np.empty(0), 0.0
    if means is not None:
        r, g = np.zeros(tiles_of(n, family.tile) * family.tile), float(means[1])
        r[:n] = means[0]
    if family.p == 0:
        out[:] = 0.0 if means is None else g - r[:n, None] - r[:n]
        return out
    plan, packed, rows_at_once = cache.plan, cache.packed, _rows_at_once(cache)
    coefficients = w.astype(family.dtype)
    nothing = np.empty(0)

    def unit(panels: NDArray[np.int64]) -> None:
        _passes.combine_panels(
            plan, panels, n, packed, kept, coefficients, rows_at_once, out, r, g, nothing, nothing
        )

    for _ in in_order(unit, units(tiles_of(n, family.tile)), n_threads):
        pass
    return out


def matvecs(
    cache: PassCache, V: NDArray[np.float64], n_threads: int | None = None
) -> NDArray[np.float64]:
    """``K_k V`` for every kernel.

    Rows of V that are zero cost nothing: only the columns of the others are evaluated.

    Parameters
    ----------
    cache : PassCache
    V : array of shape (n, t)
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    array of shape (p, n, t)
        float64.
    """
    V = np.asarray(V, dtype=np.float64)
    if cache.small:
        return _uncompiled.matvecs(cache, V)
    n, levels = cache.family.n, cache.levels
    dense = 2 * np.count_nonzero(V.any(axis=1)) > n
    if levels is None or V.shape[1] > MAX_MOMENT_VECTORS or not dense:
        return _apply(cache, cache.packed, n, V, None, n_threads)
    parts = [
        levels.expand(moment_sums(cache, levels, v, n_threads).rows, float(v.sum())) for v in V.T
    ]
    return np.stack(parts, axis=2)


def combined_sums(
    cache: PassCache,
    w: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Row sums and sum of squares of ``sum_k w_k K_k`` without the matrix itself.

    Parameters
    ----------
    cache : PassCache
    w : array of shape (p,)
    weights : array of shape (n,) or None
        Weights omega of the points; None for ones.
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    row_sums : array of shape (n,)
        ``sum_j omega_j K[i, j]``.
    square : float
        ``sum_ij omega_i omega_j K[i, j]**2``.
    """
    if cache.small:
        return _uncompiled.combined_sums(cache, np.asarray(w, dtype=np.float64), weights)
    n = cache.family.n
    cache, w = cache.combination(w)
    family = cache.family
    if family.p == 0:
        return np.zeros(n), 0.0
    plan, packed, rows_at_once = cache.plan, cache.packed, _rows_at_once(cache)
    coefficients = w.astype(family.dtype)
    omega = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    nothing, nowhere = np.empty(0), np.empty((0, 0))
    anew = np.empty((0, 0), dtype=family.dtype)

    def unit(panels: NDArray[np.int64]) -> tuple[Array, float]:
        sums = np.zeros(n)
        square = _passes.combine_panels(
            plan,
            panels,
            n,
            packed,
            anew,
            coefficients,
            rows_at_once,
            nowhere,
            nothing,
            0.0,
            omega,
            sums,
        )
        return sums, square

    row_sums, square = np.zeros(n), 0.0
    for sums, part in in_order(unit, units(tiles_of(n, family.tile)), n_threads):
        row_sums += sums
        square += part
    return row_sums, square


def combined_matvec(
    cache: PassCache,
    w: NDArray[np.float64],
    V: NDArray[np.float64],
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """``sum_k w_k K_k V``; kernels of weight zero and zero rows of V cost nothing.

    Parameters
    ----------
    cache : PassCache
    w : array of shape (p,)
    V : array of shape (n, t)
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    array of shape (n, t)
        float64.
    """
    if cache.small:
        return _uncompiled.combined_matvec(cache, np.asarray(w, dtype=np.float64), V)
    cache, w = cache.combination(w)
    return _apply(cache, cache.packed, cache.family.n, V, w, n_threads)[0]


def cross_block(cache: PassCache, Z_new: Array, n_threads: int | None = None) -> Array:
    """All kernels between new points and the points of the family.

    Parameters
    ----------
    cache : PassCache
    Z_new : array of shape (m, D)
        Columns as in ``family.Z``.
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    array of shape (p, m, n)
        In the type of the family.
    """
    if _is_small_prediction(cache, Z_new):
        return _uncompiled.cross_block(cache, Z_new)
    left = _pack_new(cache.family, Z_new)
    return _fill(cache, left, 0, len(Z_new), n_threads)


def cross_apply(
    cache: PassCache,
    Z_new: Array,
    V: NDArray[np.float64],
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """``K_k(new, points) V`` for every kernel.

    Parameters
    ----------
    cache : PassCache
    Z_new : array of shape (m, D)
    V : array of shape (n, t)
        Points whose row is zero are not evaluated.
    n_threads : int or None
        None uses every available core.

    Returns
    -------
    array of shape (p, m, t)
        float64.
    """
    if _is_small_prediction(cache, Z_new):
        return _uncompiled.cross_apply(cache, Z_new, np.asarray(V, dtype=np.float64))
    left = _pack_new(cache.family, Z_new)
    return _apply(cache, left, len(Z_new), V, None, n_threads)


def cross_combine(
    cache: PassCache,
    Z_new: Array,
    w: NDArray[np.float64],
    n_threads: int | None = None,
    dtype: Any = None,
) -> Array:
    """``sum_k w_k K_k(new, points)``; kernels of weight zero are not evaluated.

    Parameters
    ----------
    cache : PassCache
    Z_new : array of shape (m, D)
    w : array of shape (p,)
    n_threads : int or None
        None uses every available core.
    dtype : float32, float64 or None
        Type of the result; None for the type of the family.

    Returns
    -------
    array of shape (m, n)
    """
    if _is_small_prediction(cache, Z_new):
        w = np.asarray(w, dtype=np.float64)
        return _uncompiled.cross_combine(cache, Z_new, w, dtype or cache.family.dtype)
    m, n = len(Z_new), cache.family.n
    cache, w = cache.combination(w)
    family = cache.family
    out_dtype = np.dtype(family.dtype if dtype is None else dtype)
    if family.p == 0:
        return np.zeros((m, n), dtype=out_dtype)
    left = _pack_new(family, Z_new)
    out = np.empty((m, n), dtype=out_dtype)
    plan, right, rows_at_once = cache.plan, cache.packed, _rows_at_once(cache)
    coefficients = w.astype(family.dtype)

    def unit(panel: int) -> None:
        _passes.cross_combine_panel(plan, panel, left, right, coefficients, rows_at_once, out)

    for _ in in_order(unit, range(left.shape[0]), n_threads):
        pass
    return out


# Shared by the functions above.


def _is_small_prediction(cache: PassCache, Z_new: Array) -> bool:
    family = cache.family
    return cache.small and _uncompiled.is_small_prediction(len(Z_new), family.n, family.p)


def _half_pass(
    cache: PassCache,
    targets: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    products: bool,
    row_means: NDArray[np.float64] | None,
    grand_means: NDArray[np.float64] | None,
    n_threads: int | None,
    combined: NDArray[np.float64] | None = None,
    n_left: int | None = None,
) -> Statistics:
    """One pass over the tiles on and above the diagonal.

    With `n_left`, only the products of the first `n_left` kernels with all, and `a` of these.
    """
    family = cache.family
    n, p, tile, dtype = family.n, family.p, family.tile, family.dtype
    n_tiles = tiles_of(n, tile)
    n_padded = n_tiles * tile
    centre = row_means is not None

    # Padding has weight zero; tiles with padding take the weighted path.
    weight = np.zeros(n_padded, dtype=dtype)
    weight[:n] = 1.0 if weights is None else weights
    root = np.sqrt(weight)

    # Targets become one more row of the slab.  Dividing by a power of two avoids float32 overflow.
    scale = 1.0
    if targets is None:
        packed_targets = np.zeros((n_tiles, 0, tile), dtype=dtype)
    else:
        targets = np.asarray(targets, dtype=np.float64).reshape(n, -1)
        scale = _power_of_two(targets)
        packed_targets = pack((targets / scale).astype(dtype), tile)

    means = np.zeros((p, n_padded if centre else 0), dtype=dtype)
    grand = np.zeros(p, dtype=dtype)
    if row_means is not None and grand_means is not None:
        means[:, :n] = row_means
        grand[:] = grand_means

    n_left = p if n_left is None else n_left
    n_rows = _round_up(p + (targets is not None), 4)
    height = n_rows if n_left == p else _round_up(n_left, 4)
    diagonal = np.zeros((p, n_padded), dtype=np.float64)
    plan, packed, rows_at_once = cache.plan, cache.packed, _rows_at_once(cache)
    coefficients = np.empty(0, dtype) if combined is None else combined.astype(dtype)
    matrix = np.empty((0, 0) if combined is None else (n, n))

    def unit(panels: NDArray[np.int64]) -> tuple[Array, Array]:
        row_sums = np.zeros((p, 0 if centre else n_padded))
        gram = np.zeros((height if products else 2, n_rows))
        _passes.half_panels(
            plan,
            panels,
            n,
            packed,
            packed_targets,
            weights is not None,
            weight,
            root,
            centre,
            means,
            grand,
            products,
            rows_at_once,
            coefficients,
            row_sums,
            diagonal,
            gram,
            matrix,
        )
        return row_sums, gram

    row_sums: Array | None = None
    gram: Array | None = None
    for unit_sums, unit_gram in in_order(unit, units(n_tiles), n_threads):
        if row_sums is None or gram is None:
            row_sums, gram = unit_sums, unit_gram
        else:
            row_sums += unit_sums
            gram += unit_gram
    assert row_sums is not None and gram is not None

    if products:
        found, with_target = np.triu(gram[:n_left, :p]), gram[:n_left, p:]
        found[:, :n_left] += np.triu(found[:, :n_left], 1).T
    else:
        found, with_target = gram[0, :p].copy(), gram[1:, :p].T
    return Statistics(
        row_sums=row_sums[:, :n],
        diagonals=diagonal[:, :n],
        a=with_target[:, 0] * scale**2 if targets is not None else None,
        products=found,
        combined=None if combined is None else matrix,
    )


def _by_moments(
    cache: PassCache,
    levels: RateLevels,
    targets: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    products: bool,
    n_threads: int | None,
    combined: NDArray[np.float64] | None,
) -> Statistics:
    """`statistics` of kernels that are sums of polynomials of one distance."""
    family = cache.family
    found = moment_sums(cache, levels, weights, n_threads, targets, True, combined)
    omega = np.ones(family.n) if weights is None else weights
    row_sums = levels.expand(found.rows, float(omega.sum()))
    a = None
    if found.paired is not None and targets is not None:
        middle = omega @ targets.reshape(family.n, -1)
        a = levels.expand(found.paired, float(middle @ middle))
    diagonal = np.where(family.is_shifted, 0.0, 1.0)
    return Statistics(
        row_sums=row_sums,
        diagonals=np.broadcast_to(diagonal[:, None], (family.p, family.n)),
        a=a,
        products=levels.products(found.totals, row_sums @ omega, products),
        combined=found.combined,
        totals=found.totals,
    )


def _split_statistics(
    split: BankSplit,
    targets: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
    n_threads: int | None,
    combined: NDArray[np.float64] | None,
) -> Statistics:
    """`statistics` of a bank in which many kernels are exponentials of one distance.

    Products of these with each other come from polynomials; one pass over all kernels adds the
    products with and among the others.
    """
    others, members, cache, reordered = split
    order = np.append(others, members)
    levels = cache.levels
    assert levels is not None
    some = _by_moments(cache, levels, targets, weights, True, n_threads, None)
    coefficients = None if combined is None else combined[order]
    rest = _half_pass(
        reordered, targets, weights, True, None, None, n_threads, coefficients, len(others)
    )
    n, p = cache.family.n, len(order)
    row_sums, diagonals, products = np.empty((p, n)), np.empty((p, n)), np.empty((p, p))
    row_sums[members], row_sums[others] = some.row_sums, rest.row_sums[: len(others)]
    diagonals[order] = rest.diagonals
    products[np.ix_(members, members)] = some.products
    products[np.ix_(others, order)] = rest.products
    products[np.ix_(order, others)] = rest.products.T
    a = None
    if some.a is not None and rest.a is not None:
        a = np.empty(p)
        a[members], a[others] = some.a, rest.a
    return Statistics(row_sums, diagonals, a, products, rest.combined)


def _pack_new(family: KernelFamily, Z_new: Array) -> Array:
    """New points packed into tiles, as the loops read them."""
    return pack_points(np.asarray(Z_new, dtype=family.dtype), family.tile)


def _fill(cache: PassCache, left: Array, start: int, stop: int, n_threads: int | None) -> Array:
    """Rows start:stop of the kernels between the points packed in `left` and the family's."""
    family = cache.family
    out = np.empty((family.p, stop - start, family.n), dtype=family.dtype)
    plan, right, rows_at_once = cache.plan, cache.packed, _rows_at_once(cache)

    def unit(panel: int) -> None:
        _passes.fill_panel(plan, panel, start, stop, left, right, rows_at_once, out)

    panels = range(start // family.tile, tiles_of(stop, family.tile) if stop > start else 0)
    for _ in in_order(unit, panels, n_threads):
        pass
    return out


def _apply(
    cache: PassCache,
    left: Array,
    m: int,
    V: NDArray[np.float64],
    w: NDArray[np.float64] | None,
    n_threads: int | None,
) -> NDArray[np.float64]:
    """``K_k V``, or their weighted sum, between the m points of `left` and the family's."""
    family = cache.family
    V = np.asarray(V, dtype=np.float64)
    t = V.shape[1]
    p_out = family.p if w is None else 1
    support = np.flatnonzero(V.any(axis=1))
    if family.p == 0 or len(support) == 0 or m == 0:
        return np.zeros((p_out, m, t))
    right = cache.packed
    if len(support) < family.n:
        right = pack_points(family.Z[support], family.tile)
        V = V[support]
    scale = _power_of_two(V)
    t_padded = 1 if t == 1 else _round_up(t, 4)
    V_padded = np.zeros((len(V), t_padded), dtype=family.dtype)
    V_padded[:, :t] = V / scale
    packed_V = pack(V_padded, family.tile)
    out = np.zeros((p_out, left.shape[0] * family.tile, t_padded))
    plan, rows_at_once = cache.plan, _rows_at_once(cache)
    combined = w is not None
    coefficients = np.ones(family.p, dtype=family.dtype) if w is None else w.astype(family.dtype)

    def unit(panel: int) -> None:
        _passes.apply_panel(
            plan,
            panel,
            m,
            len(V),
            left,
            right,
            combined,
            coefficients,
            packed_V,
            rows_at_once,
            out,
        )

    for _ in in_order(unit, range(left.shape[0]), n_threads):
        pass
    return out[:, :m, :t] * scale


def _round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _power_of_two(x: NDArray[np.float64]) -> float:
    """A power of two near the largest absolute value; dividing by it is exact."""
    largest = float(np.max(np.abs(x), initial=0.0))
    return float(2.0 ** np.frexp(largest)[1]) if largest > 0.0 else 1.0


def _rows_at_once(cache: PassCache) -> int:
    """Rows of a tile whose pairwise statistics are computed at the same time."""
    tile = cache.family.tile
    whole = len(cache.plan.slot_kind) * tile * tile * cache.family.dtype.itemsize
    return tile if whole <= _MAX_TILE_STATISTICS_BYTES else STRIP
