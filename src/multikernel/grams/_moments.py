"""Statistics of all exponentials of one distance from sums of a few polynomials of it.

On a level (:mod:`multikernel.grams._levels`) every kernel is a sum of Chebyshev polynomials of the
distance, ``exp(-gamma d) = sum_m c_m T_m(x)``, so that sums of the polynomials over pairs of points
serve any number of kernels. Sums of products of two kernels follow as well, since
``T_a T_b = (T_(a + b) + T_|a - b|) / 2`` is again a sum of polynomials; those of degree
``sqrt(2) m`` and more are negligible if those of degree m and more were negligible in a kernel.
The work per pair does not depend on the number of kernels: it is one step of the recurrence
``T_(m + 1) = 2 x T_m - T_(m - 1)`` and one or two additions for each degree.

Polynomials and sums are float64 even for points in single precision: errors e of the entries may
add up to ``n e`` in a row whose sum is near 1, if the kernel is nearly the identity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._levels import RateLevels
from ._moment_loops import COLUMNS, Targets, moment_panels
from ._order import in_order, tiles_of, units
from .pass_cache import PassCache

Array = NDArray[Any]


class MomentSums(NamedTuple):
    """Sums of polynomials of the distances, degree 0 first, under weights w of the points.

    Attributes
    ----------
    rows : tuple of arrays of shape (degrees, n), one per level
        ``sum_j w_j T_m(x_ij)`` over the pairs of the level.
    totals : tuple of arrays of shape (high,), or of shape (degrees,) without `totals`
        ``sum_ij w_i w_j T_m(x_ij)``.
    paired : tuple of arrays of shape (degrees,), or None
        ``sum_ij w_i w_j (Y Y')_ij T_m(x_ij)``.
    combined : array of shape (n, n) or None
    """

    rows: tuple[Array, ...]
    totals: tuple[Array, ...]
    paired: tuple[Array, ...] | None
    combined: Array | None


def moment_sums(
    cache: PassCache,
    levels: RateLevels,
    point_weights: NDArray[np.float64] | None,
    n_threads: int | None,
    targets: NDArray[np.float64] | None = None,
    totals: bool = False,
    combined: NDArray[np.float64] | None = None,
) -> MomentSums:
    """One pass over the tiles on and above the diagonal.

    With `totals`, the pass keeps the distances of as many tiles as the cache has room for.
    """
    family, packed = cache.family, cache.packed
    n, tile = family.n, family.tile
    n_tiles = tiles_of(n, tile)
    n_padded = n_tiles * tile
    Y = None if targets is None else np.asarray(targets, dtype=np.float64).reshape(n, -1)
    reduced, coefficients = cache.of_no_kernels(), np.empty(0)
    if combined is not None:
        reduced, coefficients = cache.combination(combined)
    matrix = np.empty((0, 0) if combined is None else (n, n))
    if reduced.family.p == 0:
        matrix[:] = 0.0
    n_kept = cache.room_for_tiles if totals else 0
    kept = np.empty((n_kept, tile**2 if n_kept else 0), dtype=family.dtype)
    weight = np.zeros(n_padded)
    weight[:n] = 1.0 if point_weights is None else point_weights
    sorted_targets = Targets.of(Y, point_weights, n, tile)
    table, plan = levels.table, reduced.plan
    n_rows, n_near_rows = (int(table.degrees[some].sum()) for some in (table.dense, ~table.dense))
    n_high, n_near_high = (int(table.high[some].sum()) for some in (table.dense, ~table.dense))
    kind, first, last = (int(a[0]) for a in cache.plan[:3])
    coefficients = coefficients.astype(family.dtype)

    shapes = (
        (n_padded // COLUMNS, n_rows, COLUMNS),
        (n_high if totals else 0, COLUMNS),
        (0 if Y is None else n_rows, COLUMNS),
        (n_padded, n_near_rows),
        (n_near_high if totals else 0,),
        (0 if Y is None else n_near_rows,),
    )
    # Buffers of finished units are reused: allocating fresh memory costs more than zeroing.
    finished: list[tuple[Array, ...]] = []

    def unit(panels: NDArray[np.int64]) -> tuple[Array, ...]:
        try:
            found = finished.pop()
        except IndexError:
            found = tuple(np.empty(shape) for shape in shapes)
        for some in found:
            some[:] = 0.0
        moment_panels(  # type: ignore[call-arg]
            kind,
            first,
            last,
            panels,
            n,
            packed,
            table,
            sorted_targets,
            weight,
            plan,
            coefficients,
            *found,
            matrix,
            kept,
        )
        return found

    parts = in_order(unit, units(n_tiles), n_threads)
    total = next(parts)
    for part in parts:
        for some, more in zip(total, part, strict=True):
            some += more
        finished.append(part)
    if n_kept:
        cache.distances = kept
    rows, above, paired, near_rows, near_above, near_paired = total
    weight = weight[:n]
    dense_rows = rows.transpose(1, 0, 2).reshape(n_rows, n_padded)[:, :n]
    # The pass leaves out pairs of a point with itself, for which every polynomial is 1.
    near_rows = near_rows[:n].T + weight
    if Y is not None:
        near_paired += weight**2 @ (Y**2).sum(axis=1)
    by_level, known, with_targets = [], [], []
    for at, level in enumerate(levels.levels):
        start, degrees = int(table.row_start[at]), level.degrees
        here = (dense_rows if level.dense else near_rows)[start : start + degrees]
        by_level.append(np.ascontiguousarray(here))
        known.append(by_level[-1] @ weight)
        if totals:
            # The pass sums only the degrees for which there are no row sums.
            high = above.sum(axis=1) if level.dense else near_above + weight @ weight
            place = int(table.high_start[at])
            known[-1] = np.append(known[-1], high[place + degrees : place + level.high])
        if Y is not None:
            pairs = paired.sum(axis=1) if level.dense else near_paired
            with_targets.append(pairs[start : start + degrees])
    return MomentSums(
        rows=tuple(by_level),
        totals=tuple(known),
        paired=None if Y is None else tuple(with_targets),
        combined=None if combined is None else matrix,
    )
