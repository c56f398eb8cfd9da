"""Families: kernels that are scalar functions of pairwise statistics of the same points.

:mod:`multikernel.grams._loops` walks over their Gram matrices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import one_blas_thread
from ._fastmath import split_rate
from ._mixtures import LEAST, MOST_OCTAVES, octaves, tabulate
from ._moments import Basis
from ._order import tiles_of
from ._passes import (
    ABSOLUTE,
    DOT,
    EXP_L1,
    EXP_SQ,
    MIXED_L1,
    MIXED_SQ,
    POLY,
    SERIES_L1,
    SERIES_SQ,
    SQUARE,
    TANH,
    Plan,
)
from ._skeletons import LEAST as SKELETON_LEAST
from ._skeletons import ROUNDING, WORTH, Part, Skeleton, choose, distances

Array = NDArray[Any]

#: With fewer points than this, finding what stands for all kernels costs more than it saves.
FEW_FROM = 600
#: Polynomials that cost less than one kernel, and than any skeleton.
DEGREES_PER_KERNEL = {np.dtype(np.float32): 3, np.dtype(np.float64): 6}
MOST_DEGREES = {np.dtype(np.float32): 96, np.dtype(np.float64): 256}
#: Bytes of kept distances for each entry of the combined matrix, whose own entries have eight.
KEPT_BYTES = 1.6
#: What a series may leave out of the sum of its coefficients.
SERIES_ERROR = {np.dtype(np.float32): 1e-9, np.dtype(np.float64): 1e-18}
#: One in so many points, the farthest from the middle, is compared with all others.
FARTHEST = 24

_STATISTIC = {
    EXP_SQ: SQUARE,
    EXP_L1: ABSOLUTE,
    POLY: DOT,
    TANH: DOT,
    MIXED_SQ: SQUARE,
    MIXED_L1: ABSOLUTE,
    SERIES_SQ: SQUARE,
    SERIES_L1: ABSOLUTE,
}
_MIXED = {EXP_SQ: MIXED_SQ, EXP_L1: MIXED_L1}
_SERIES = {EXP_SQ: SERIES_SQ, EXP_L1: SERIES_L1}


@dataclass(frozen=True, eq=False)
class Family:
    """Kernels that are scalar functions of pairwise statistics of the same points.

    Parameters
    ----------
    Z : array of shape (n, D)
        The columns of all groups side by side, float32 or float64; this type is the type of the
        arithmetic of Gram entries.  Distances are computed from differences of coordinates: a
        common shift of the points costs nothing but the digits it takes from Z itself.
    offsets : array of shape (n_groups + 1,)
        Group g owns the columns ``offsets[g]:offsets[g + 1]``.
    group : array of shape (p,)
        The group of each kernel, non-decreasing.
    kind : array of shape (p,)
        `EXP_SQ`, `EXP_L1`, `POLY` or `TANH`; in a family that `combination` made also `MIXED_SQ`,
        `MIXED_L1`, `SERIES_SQ` and `SERIES_L1`.
    params : array of shape (p, 3)
        gamma (non-negative for the exponentials), coef0 and degree (an integer >= 1, used by
        `POLY` only) of each kernel; of a mixture rate, end and place of its table.
    shifted : bool or array of shape (p,), default=False
        Evaluate exponential kernels as ``expm1(-gamma d)`` instead of ``exp(-gamma d)``.  Centring
        removes the constant, and a very wide kernel keeps its relative accuracy.  A narrow one
        gains nothing, and its raw products would be those of a matrix of -1; see `is_wide`.
    tables : array of shape (n_numbers,) or None
        The polynomials of mixtures, one after the other.
    series : array of shape (n_numbers,) or None
        Slope and coefficients of a series, which is then the only kernel.
    keeps : bool, default=False
        Whether a pass that computes them may keep `distances`.
    moving : array of column numbers or None
        The columns that are read; None for all. Columns without differences add nothing to
        distances, as long as only these points are compared.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.grams._loops import EXP_SQ, Family, block
    >>> family = Family(np.array([[0.0], [1.0], [3.0]]), np.array([0, 1]), np.array([0]),
    ...                 np.array([EXP_SQ]), np.array([[0.5, 0.0, 0.0]]))
    >>> block(family, slice(0, 1)).round(3)
    array([[[1.   , 0.607, 0.011]]])
    """

    Z: Array
    offsets: NDArray[np.int64]
    group: NDArray[np.int64]
    kind: NDArray[np.int64]
    params: NDArray[np.float64]
    shifted: bool | NDArray[np.bool_] = False
    tables: Array | None = None
    series: NDArray[np.float64] | None = None
    keeps: bool = False
    moving: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.Z.shape[0])

    @property
    def p(self) -> int:
        """Number of kernels."""
        return int(self.kind.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the Gram entries."""
        return self.Z.dtype

    @property
    def tile(self) -> int:
        """Points on a side of a tile; smaller for very many kernels, whose slab is large."""
        return 128 if self.p * self.dtype.itemsize <= 2048 else 64

    @property
    def is_shifted(self) -> NDArray[np.bool_]:
        return np.broadcast_to(np.asarray(self.shifted, dtype=np.bool_), (self.p,)).copy()

    @cached_property
    def packed(self) -> Array:
        """Z as tiles in which a coordinate of neighbouring points is contiguous."""
        return self.pack(self.Z)

    def pack(self, Z: Array) -> Array:
        """Points in the same way."""
        return pack(Z if self.moving is None else Z[:, self.moving], self.tile)

    @property
    def distances(self) -> Array:
        """The one distance of pairs of points, a row for each of the first tiles on and above the
        diagonal, as a pass that computed it has left it here; without rows before that.
        """
        return self.__dict__.get("_distances", np.empty((0, 0), dtype=self.dtype))

    def let_keep(self) -> None:
        """From now on passes may; what was computed for the family stays."""
        self.__dict__["keeps"] = True

    @property
    def kept_tiles(self) -> int:
        """How many of these tiles there is room for."""
        n_tiles = tiles_of(self.n, self.tile)
        room = KEPT_BYTES * self.n**2 / (self.tile**2 * self.dtype.itemsize)
        return min(n_tiles * (n_tiles + 1) // 2, int(room)) if self.keeps else 0

    def keep(self, distances: Array) -> None:
        self.__dict__["_distances"] = distances

    @cached_property
    def plan(self) -> Plan:
        """Statistics to compute and constants of the kernels."""
        slots: dict[tuple[int, int], int] = {}
        slot = np.empty(self.p, dtype=np.int64)
        constants = np.zeros((self.p, 3), dtype=self.dtype)
        for k, (group, kind) in enumerate(zip(self.group, self.kind, strict=True)):
            gamma, coef0, _ = self.params[k]
            key = (int(group), _STATISTIC[int(kind)])
            slot[k] = slots.setdefault(key, len(slots))
            if key[1] == DOT or kind not in (EXP_SQ, EXP_L1):
                constants[k, :2] = gamma, coef0
            else:
                constants[k] = split_rate(float(gamma), self.dtype)
        groups = np.array([g for g, _ in slots], dtype=np.int64)
        offsets = np.asarray(self.offsets, dtype=np.int64)
        if self.moving is not None:
            offsets = np.searchsorted(self.moving, offsets)
        return Plan(
            slot_kind=np.array([s for _, s in slots], dtype=np.int64),
            slot_low=offsets[groups],
            slot_high=offsets[groups + 1],
            slot=slot,
            kind=np.ascontiguousarray(self.kind, dtype=np.int64),
            degree=self.params[:, 2].astype(np.int64),
            constants=constants,
            shifted=self.is_shifted,
            tables=np.empty(0, dtype=self.dtype) if self.tables is None else self.tables,
            series=np.empty(0) if self.series is None else self.series,
        )

    def take(self, kernels: NDArray[np.int64]) -> Family:
        """The family of some of the kernels, on the same points."""
        if len(kernels) == self.p:
            return self
        taken = Family(
            self.Z,
            self.offsets,
            self.group[kernels],
            self.kind[kernels],
            self.params[kernels],
            self.is_shifted[kernels],
            self.tables,
            moving=self.moving,
        )
        return self._share_points(taken)

    def _share_points(self, other: Family) -> Family:
        if other.tile == self.tile:
            other.__dict__["packed"] = self.packed
        return other

    def on(self, Z: Array) -> Family:
        """The same kernels on some of the points, Z; what stands for them is that of all."""
        new = replace(self, Z=Z, keeps=False)
        new.__dict__["basis"] = self.basis
        if self.basis is None:
            new.__dict__["skeleton"] = self.skeleton
        if "plan" in self.__dict__:
            new.__dict__["plan"] = self.plan
        return new

    @cached_property
    def basis(self) -> Basis | None:
        """Polynomials that stand for all kernels, where these are exponentials of one distance."""
        alike = self.exponentials(range(self.p), max(self.p, 1))
        if self.n < FEW_FROM or not alike:
            return None
        rates = self.params[:, 0]
        end = self.farthest(*next(iter(alike)))
        if not (0.0 < end < np.inf and rates.max() > 0):
            return None
        most = min(DEGREES_PER_KERNEL[self.dtype] * self.p, MOST_DEGREES[self.dtype])
        # Over a row, no more than what the rounding of its entries adds up to.
        error = 0.5 * float(np.finfo(self.dtype).eps) / self.n**0.5
        return Basis.of(rates, self.is_shifted, end, error, most)

    @cached_property
    def skeleton(self) -> Skeleton | None:
        """Kernels that stand for all between points of this family, where that saves work."""
        if self.dtype != np.float32 or self.n < FEW_FROM:
            return None
        parts = []
        for key, members in self.exponentials(range(self.p), SKELETON_LEAST).items():
            part = _part(self, key, members)
            if part is not None:
                parts.append(part)
        if not parts:
            return None
        found = Skeleton.of(self.p, parts)
        return None if len(found.kernels) > WORTH * self.p else found

    @cached_property
    def few(self) -> Family:
        """The family of the skeleton."""
        assert self.skeleton is not None
        return self.take(self.skeleton.kernels)

    def exponentials(
        self, kernels: Iterable[int], least: int
    ) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Exponentials of one statistic, by group and kind, where there are at least so many."""
        alike: dict[tuple[int, int], list[int]] = {}
        group, kind = self.group.tolist(), self.kind.tolist()
        for k in kernels:
            if kind[k] in _MIXED:
                alike.setdefault((group[k], kind[k]), []).append(k)
        return {key: np.array(some) for key, some in alike.items() if len(some) >= least}

    def reach(self, group: int, kind: int) -> tuple[float, float]:
        """Of what the exponentials of one group decay in: its mean over all pairs of points, and
        a number that it does not exceed, twice the radius around the middle of all.
        """
        known: dict[tuple[int, int], tuple[float, float]] = self.__dict__.setdefault("_reach", {})
        if (group, kind) not in known:
            columns = self.Z[:, self.offsets[group] : self.offsets[group + 1]]
            known[group, kind] = _squares(columns) if kind == EXP_SQ else _differences(columns)
        return known[group, kind]

    def farthest(self, group: int, kind: int) -> float:
        """A number that no such distance between two points exceeds, closer than `reach` has it.

        Of squared distances those of the points farthest from the middle are looked at; two of the
        others are no farther apart than twice the radius that is left.
        """
        if kind != EXP_SQ:
            return self.reach(group, kind)[1]
        columns = self.Z[:, self.offsets[group] : self.offsets[group + 1]]
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            Z = columns - columns.mean(axis=0)
            radius = np.einsum("ij,ij->i", Z, Z)
            count = self.n // FARTHEST
            order = np.argpartition(-radius, count)
            few, rest = order[:count], order[count:]
            found = [4.0 * float(radius[rest].max())]
            for start in range(0, count, 64):
                some = few[start : start + 64]
                squares = -2.0 * Z[some] @ Z.T
                squares += radius
                found.append(float((squares.max(axis=1) + radius[some]).max()))
        if not np.all(np.isfinite(found)):
            return np.inf
        # Rounding may have made them smaller, or those of a pass larger.
        return max(found) * (1.0 + 64.0 * float(np.finfo(self.dtype).eps) * Z.shape[1] ** 0.5)

    def combination(
        self, w: NDArray[np.float64], inside: bool = False
    ) -> tuple[Family, NDArray[np.float64]]:
        """A smaller family and coefficients with the same sum ``sum_k w_k K_k``.

        Kernels of weight zero are left out, and many exponentials of one statistic are one table;
        `inside`, between points of the family only, they may be one series of polynomials. The
        last answer is kept: rows of one combination are asked for again and again.
        """
        w = np.asarray(w, dtype=np.float64)
        inside = inside and self.basis is not None
        known = self.__dict__.get("_combination")
        if known is None or known[1] != inside or not np.array_equal(known[0], w):
            known = (w.copy(), inside, *_mixed(self, w, inside))
            self.__dict__["_combination"] = known
        return known[2], known[3]


def is_wide(family: Family) -> NDArray[np.bool_]:
    """Which exponential kernels are nearer to 1 than to 0 at the mean distance of two points.

    These are the kernels that gain from being `shifted` before they are centred.

    Returns
    -------
    array of shape (p,)
    """
    wide = np.zeros(family.p, dtype=np.bool_)
    for k, key in enumerate(zip(family.group.tolist(), family.kind.tolist(), strict=True)):
        if key[1] in (EXP_SQ, EXP_L1):
            wide[k] = family.params[k, 0] * family.reach(*key)[0] < np.log(2.0)
    return wide


def moving_columns(family: Family) -> NDArray[np.int64] | None:
    """What `moving` may be: without the constant columns of groups that are read for distances."""
    moves = family.Z.min(axis=0) != family.Z.max(axis=0)
    for group, kind in set(zip(family.group.tolist(), family.kind.tolist(), strict=True)):
        if _STATISTIC[kind] == DOT:
            moves[family.offsets[group] : family.offsets[group + 1]] = True
    return None if moves.all() else np.flatnonzero(moves)


def _squares(columns: Array) -> tuple[float, float]:
    """Mean and bound of squared distances."""
    middle, total, largest = columns.mean(axis=0, dtype=np.float64), 0.0, 0.0
    for start in range(0, len(columns), 4096):
        far = ((columns[start : start + 4096] - middle) ** 2).sum(axis=1)
        total, largest = total + float(far.sum()), max(largest, float(far.max()))
    return 2.0 * total / len(columns), 4.0 * largest


def _differences(columns: Array) -> tuple[float, float]:
    """Mean and bound of sums of absolute differences, from the coordinates in order."""
    n = len(columns)
    ordered = np.sort(columns.astype(np.float64), axis=0)
    ranks = 2.0 * np.arange(n) - (n - 1)
    far = np.abs(columns - ordered[n // 2]).sum(axis=1)
    return 2.0 * float((ranks @ ordered).sum()) / n**2, 2.0 * float(far.max())


def _part(family: Family, key: tuple[int, int], members: NDArray[np.int64]) -> Part | None:
    """The skeleton of kernels of one group and kind; None if it is hardly smaller."""
    rates, shifted = family.params[members, 0], family.is_shifted[members]
    mean, farthest = family.reach(*key)
    if not (mean > 0 and rates.max() > 0):
        return None
    d = distances(max(float(rates.max()), 1.0 / mean), farthest)
    if d is None:
        return None
    functions = np.exp(-np.outer(d, rates))
    functions[:, shifted] = np.expm1(-np.outer(d, rates[shifted]))
    # A function less one is measured by what it is at the mean distance.
    size = np.where(shifted, -np.expm1(-rates * mean), 1.0)
    if not np.all(size > 0):
        return None
    most = int(WORTH * len(members))
    found = choose(functions / size, ROUNDING / family.n, most)
    if found is None:
        return None
    columns, C = found
    return Part(members, members[columns], (C * size / size[columns, None]).T.copy())


def _mixed(
    family: Family, w: NDArray[np.float64], inside: bool
) -> tuple[Family, NDArray[np.float64]]:
    """What `Family.combination` returns."""
    kept = np.flatnonzero(w).tolist()
    if inside and len(kept) >= LEAST:
        assert family.basis is not None
        one = Family(
            family.Z,
            family.offsets,
            family.group[:1],
            np.array([_SERIES[int(family.kind[0])]]),
            np.zeros((1, 3)),
            series=family.basis.series(w, SERIES_ERROR[family.dtype]),
            moving=family.moving,
        )
        return family._share_points(one), np.ones(1)
    rates, shifted = family.params.reshape(-1, 3)[:, 0], family.is_shifted
    mixtures: dict[tuple[int, int], NDArray[np.int64]] = {}
    near: dict[tuple[int, int], float] = {}
    for key, members in family.exponentials(kept, LEAST).items():
        mean = family.reach(*key)[0] if shifted[members].any() else 0.0
        near[key] = mean if mean > 0 else np.inf
        if 0 < octaves(rates[members], near[key]) <= MOST_OCTAVES:
            mixtures[key] = members
    if not mixtures:
        kernels = np.array(kept, dtype=np.int64)
        return family.take(kernels), w[kernels]
    tabled = {k for some in mixtures.values() for k in some.tolist()}
    rest = [k for k in kept if k not in tabled]
    group = [int(family.group[k]) for k in rest]
    kind = [int(family.kind[k]) for k in rest]
    params = [family.params[k] for k in rest]
    tables: list[Array] = []
    for key, some in mixtures.items():
        table, rate, end = tabulate(rates[some], w[some], shifted[some], family.dtype, near[key])
        group.append(key[0])
        kind.append(_MIXED[key[1]])
        params.append(np.array([rate, end, sum(len(t) for t in tables)]))
        tables.append(table.ravel())
    # Groups in order, as everywhere.
    order = np.argsort(group, kind="stable")
    shifted = np.append(shifted[rest], np.zeros(len(mixtures), dtype=np.bool_))
    coefficients = np.append(w[rest], np.ones(len(mixtures)))
    mixed = Family(
        family.Z,
        family.offsets,
        np.array(group, dtype=np.int64)[order],
        np.array(kind, dtype=np.int64)[order],
        np.array(params)[order],
        shifted[order],
        np.concatenate(tables),
        moving=family.moving,
    )
    return family._share_points(mixed), coefficients[order]


def pack(Z: Array, tile: int) -> Array:
    """Cut points into tiles and put coordinates before points: (n, D) to (n_tiles, D, tile)."""
    n, D = Z.shape
    packed = np.zeros((tiles_of(n, tile), D, tile), dtype=Z.dtype)
    full = n // tile
    packed[:full] = Z[: full * tile].reshape(full, tile, D).transpose(0, 2, 1)
    if full < len(packed):
        packed[full, :, : n - full * tile] = Z[full * tile :].T
    return packed
