"""A cache of intermediate results shared by the passes over one family of kernels.

A :class:`~multikernel.grams._families.KernelFamily` is a description. A `PassCache` belongs to one
family and holds everything derived from it: points packed by tiles, the plan of the loops, facts on
distances, levels, kept distances, and the last combination. Its owner passes it to the functions of
:mod:`multikernel.grams._loops`. A copy or a pickle of a cache holds only the family.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._combinations import reduced_combination
from ._distances import DistanceFacts
from ._families import KernelFamily
from ._fastmath import split_rate
from ._levels import RateLevels, choose_levels
from ._order import tiles_of
from ._passes import (
    ABSOLUTE,
    DOT,
    EXP_CHI,
    EXP_L1,
    EXP_POWER,
    EXP_ROOT,
    EXP_SQ,
    MATERN_3,
    MATERN_5,
    POLY,
    RATIO,
    SQUARE,
    TABLE_CHI,
    TABLE_L1,
    TABLE_SQ,
    TANH,
    LoopPlan,
)
from ._uncompiled import pairs_of, values_of

Array = NDArray[Any]

#: Memory for kept distances, in bytes per entry of a combined matrix (whose entries take eight).
KEPT_BYTES_PER_ENTRY = 1.6

_STATISTIC = {
    EXP_SQ: SQUARE,
    EXP_L1: ABSOLUTE,
    EXP_CHI: RATIO,
    POLY: DOT,
    TANH: DOT,
    TABLE_SQ: SQUARE,
    TABLE_L1: ABSOLUTE,
    EXP_ROOT: SQUARE,
    MATERN_3: SQUARE,
    MATERN_5: SQUARE,
    EXP_POWER: SQUARE,
    TABLE_CHI: RATIO,
}
#: kernels that evaluate one decreasing exponential, with the constants of its rate
_DECAYS = (EXP_SQ, EXP_L1, EXP_CHI, EXP_ROOT, MATERN_3, MATERN_5)


class BankSplit(NamedTuple):
    """Exponentials of one distance, and the other kernels of a bank.

    Attributes
    ----------
    others, members : arrays of indices
        Kernels of the bank; `members` are the exponentials.
    exponentials : PassCache
        The cache of the members, with levels.
    reordered : PassCache
        The cache of all kernels, the others first.
    """

    others: NDArray[np.int64]
    members: NDArray[np.int64]
    exponentials: PassCache
    reordered: PassCache


class PassCache:
    """Everything that passes derive from a family; each part is computed when first needed.

    Parameters
    ----------
    family : KernelFamily
    small : bool, default=False
        Whether passes are those of :mod:`multikernel.grams._uncompiled`, over `values` or `pairs`.

    Attributes
    ----------
    keep_distances : bool
        Whether the next pass for statistics may keep the distances it computes.
    distances : array of shape (n_tiles, tile ** 2)
        Distances of the first tiles on and above the diagonal, one row per tile, stored by the last
        pass for statistics; no rows before that.
    """

    def __init__(self, family: KernelFamily, small: bool = False) -> None:
        self.family = family
        self.small = small
        self.keep_distances = False
        self.distances: Array = np.empty((0, 0), dtype=family.dtype)
        self._last_combination: tuple[Array, PassCache, NDArray[np.float64]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"family": self.family, "small": self.small}

    def __setstate__(self, state: dict[str, Any]) -> None:
        PassCache.__init__(self, state["family"], state.get("small", False))

    @classmethod
    def direct(cls, family: KernelFamily) -> PassCache:
        """A cache without levels: every pass evaluates every kernel."""
        cache = cls(family)
        cache.levels = cache.split = None
        return cache

    @cached_property
    def pairs(self) -> dict[tuple[int, str], NDArray[np.float64]]:
        """The statistics of all pairs of points of a small sample."""
        return pairs_of(self.family)

    @cached_property
    def values(self) -> Array | None:
        """All kernel matrices of a small sample, shape (p, n, n); None if they are not kept."""
        return values_of(self.family)

    @cached_property
    def packed(self) -> Array:
        """The points as tiles in which a coordinate of neighbouring points is contiguous."""
        return pack_points(self.family.Z, self.family.tile)

    @cached_property
    def plan(self) -> LoopPlan:
        """Statistics to compute and constants of the kernels."""
        return make_loop_plan(self.family)

    @cached_property
    def facts(self) -> DistanceFacts:
        """Mean, bound and a sample of each distance."""
        return DistanceFacts(self.family)

    @cached_property
    def levels(self) -> RateLevels | None:
        """Levels of polynomials that replace all kernels; None if every kernel is evaluated."""
        return None if self.small else choose_levels(self.family, self.facts)

    @cached_property
    def split(self) -> BankSplit | None:
        """The split of a mixed bank into exponentials of one distance and other kernels.

        None if levels would not speed up the exponentials, or if the bank itself has levels.
        """
        alike = self.family.exponentials(range(self.family.p))
        if self.levels is not None or not alike:
            return None
        members = max(alike.values(), key=len)
        others = np.setdiff1d(np.arange(self.family.p), members)
        cache = PassCache(self.family.take(members))
        cache.facts = self.facts
        cache.levels = choose_levels(cache.family, self.facts, evaluated=True)
        if not len(others) or cache.levels is None:
            return None
        self._share_points(cache)
        order = np.append(others, members)
        reordered = self._share_points(PassCache(self.family.take(order)))
        return BankSplit(others, members, cache, reordered)

    @property
    def room_for_tiles(self) -> int:
        """How many tiles of distances a pass may keep."""
        if not self.keep_distances:
            return 0
        n, tile = self.family.n, self.family.tile
        n_tiles = tiles_of(n, tile)
        room = KEPT_BYTES_PER_ENTRY * n**2 / (tile**2 * self.family.dtype.itemsize)
        return min(n_tiles * (n_tiles + 1) // 2, int(room))

    def with_shifted(self, shifted: NDArray[np.bool_]) -> PassCache:
        """A cache of the same kernels on the same points, with another mask ``shifted``."""
        new = PassCache(replace(self.family, shifted=shifted), self.small)
        new.facts = self.facts
        return new if self.small else self._share_points(new)

    def on(self, Z: Array, w: NDArray[np.float64] | None = None) -> PassCache:
        """A cache of the same kernels on some of the points, with the levels of all points.

        With w, the combination with these weights is reduced once for all such caches.
        """
        new = PassCache(replace(self.family, Z=Z))
        new.plan, new.levels, new.facts = self.plan, self.levels, self.facts
        if w is not None:
            reduced, coefficients = self.combination(w)
            some = PassCache(replace(reduced.family, Z=Z))
            some.plan = reduced.plan
            new._last_combination = (np.array(w, dtype=np.float64), some, coefficients)
        return new

    def of_no_kernels(self) -> PassCache:
        return PassCache(self.family.take(np.arange(0)))

    def combination(self, w: NDArray[np.float64]) -> tuple[PassCache, NDArray[np.float64]]:
        """A cache of fewer kernels and coefficients with the same sum ``sum_k w_k K_k``.

        The last result is cached: rows of one combination are requested many times.
        """
        w = np.asarray(w, dtype=np.float64)
        known = self._last_combination
        if known is None or not np.array_equal(known[0], w):
            family, coefficients = reduced_combination(self.family, self.facts, w)
            known = (w.copy(), self._share_points(PassCache(family)), coefficients)
            self._last_combination = known
        return known[1], known[2]

    def _share_points(self, other: PassCache) -> PassCache:
        if other.family.tile == self.family.tile:
            other.packed = self.packed
        return other


def make_loop_plan(family: KernelFamily) -> LoopPlan:
    """The kernels of a family as compiled loops read them."""
    slots: dict[tuple[int, int], int] = {}
    slot = np.empty(family.p, dtype=np.int64)
    constants = np.zeros((family.p, 3), dtype=family.dtype)
    for k, (group, kind) in enumerate(zip(family.group, family.kind, strict=True)):
        gamma, coef0, _ = family.params[k]
        key = (int(group), _STATISTIC[int(kind)])
        slot[k] = slots.setdefault(key, len(slots))
        if kind in _DECAYS:
            constants[k] = split_rate(float(gamma), family.dtype)
        else:
            constants[k, :2] = gamma, coef0
    groups = np.array([g for g, _ in slots], dtype=np.int64)
    offsets = np.asarray(family.offsets, dtype=np.int64)
    return LoopPlan(
        slot_kind=np.array([s for _, s in slots], dtype=np.int64),
        slot_low=offsets[groups],
        slot_high=offsets[groups + 1],
        slot=slot,
        kind=np.ascontiguousarray(family.kind, dtype=np.int64),
        degree=family.params[:, 2].astype(np.int64),
        constants=constants,
        shifted=family.is_shifted,
        tables=np.empty(0, dtype=family.dtype) if family.tables is None else family.tables,
    )


def pack(rows: Array, tile: int) -> Array:
    """Cut rows into tiles and put columns before rows: (n, D) to (n_tiles, D, tile).

    The last tile is padded with zeros.
    """
    n, D = rows.shape
    packed = np.zeros((tiles_of(n, tile), D, tile), dtype=rows.dtype)
    full = n // tile
    packed[:full] = rows[: full * tile].reshape(full, tile, D).transpose(0, 2, 1)
    if full < len(packed):
        packed[full, :, : n - full * tile] = rows[full * tile :].T
    return packed


def pack_points(Z: Array, tile: int) -> Array:
    """`pack` with copies of the last point as padding, so that no distance exceeds their bound."""
    packed = pack(Z, tile)
    rest = len(Z) % tile
    if rest:
        packed[-1, :, rest:] = Z[-1][:, None]
    return packed
