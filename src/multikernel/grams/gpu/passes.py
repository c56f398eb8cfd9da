"""Passes over a family of kernels on a device: statistics, products, values, combinations.

Many exponentials of one distance are never evaluated one by one: their statistics come from sums
of polynomials (:mod:`.sums`), and a combination of them is one tabulated function (:mod:`.table`).
Other kernels are evaluated in panels of plain torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._combinations import reduced_combination
from .._families import KernelFamily
from .._levels import DistanceLevel, PassCosts, RateLevels, choose_levels
from .._loops import Statistics
from ..memory import MemoryBudget
from . import tiles
from .device import Device, host
from .facts import DeviceFacts
from .points import SQUARE, STATISTIC, TABLE, TABLES, DevicePoints, evaluate, statistic
from .sums import MAX_CLASSES, Columns, polynomial_rows
from .table import (
    ROUGH_LEFT_OUT,
    DistanceFunction,
    power_series,
    rough_products,
    table_products,
    table_values,
)

_INF = float("inf")
_BOTH = (np.dtype(np.float32), np.dtype(np.float64))
#: Costs per pair of points on a GPU, in operations. There are no passes over near pairs alone.
GPU_COSTS = PassCosts(
    overhead=0.0,
    dense=50.0,
    dense_degree=1.2,
    scan=_INF,
    near=_INF,
    near_degree=0.0,
    unit_degree=0.0,
    kernel=dict.fromkeys(_BOTH, 200.0),
    product=dict.fromkeys(_BOTH, 0.5),
)


class LevelSums(NamedTuple):
    """Sums over the pairs of a level.

    Attributes
    ----------
    by_row : list of (slice, tensor of shape (n_members, n_rows))
        Row sums of the kernels of the level, for the rows at these positions.
    totals : tensor of shape (high,)
        ``sum_ij w_i w_j T_m(x_ij)``.
    paired : tensor of shape (degrees,)
        ``sum_ij w_i w_j (Y Y')_ij T_m(x_ij)``.
    """

    by_row: list[tuple[slice, Any]]
    totals: Any
    paired: Any


class DevicePasses:
    """Passes over one family; copies share points and facts about distances.

    Parameters
    ----------
    device : Device
    family : KernelFamily
        Its points are in host memory.
    budget : MemoryBudget
        Memory of the device.
    points : DevicePoints, optional
        The points of the family on the device, if they are there already.
    """

    def __init__(
        self,
        device: Device,
        family: KernelFamily,
        budget: MemoryBudget,
        points: DevicePoints | None = None,
    ) -> None:
        self.device, self.family, self.budget = device, family, budget
        self._points = points
        self._last: tuple[np.ndarray, DevicePasses, np.ndarray] | None = None
        #: the combination as one function of a distance, valid between these points
        self.series: DistanceFunction | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"device": self.device, "family": self.family, "budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        DevicePasses.__init__(self, **state)

    @property
    def points(self) -> DevicePoints:
        if self._points is None:
            self._points = DevicePoints(self.device, self.family.Z, self.family.offsets)
        return self._points

    @cached_property
    def facts(self) -> DeviceFacts:
        """Mean, bound and a sample of each distance."""
        return DeviceFacts(self.family, self.points)

    @cached_property
    def levels(self) -> RateLevels | None:
        """Polynomials that represent all kernels; None if every kernel is evaluated by itself."""
        return choose_levels(self.family, self.facts, costs=GPU_COSTS)

    def with_shifted(self, shifted: np.ndarray) -> DevicePasses:
        """The same kernels, of which those in the mask are shifted."""
        return self._with(replace(self.family, shifted=shifted))

    def on(self, index: np.ndarray, w: np.ndarray | None = None) -> DevicePasses:
        """The same kernels on some of the points, with the levels of all points.

        With w, the combination with these weights is reduced once for all such passes.
        """
        Z = np.ascontiguousarray(self.family.Z[index])
        points = self.points.take(self.device.index(index))
        new = DevicePasses(self.device, replace(self.family, Z=Z), self.budget, points)
        new.facts, new.levels = self.facts, self.levels
        if w is not None:
            reduced, coefficients = self.combination(w)
            some = DevicePasses(self.device, replace(reduced.family, Z=Z), self.budget, points)
            some.facts, some.series, some.tables = self.facts, reduced.series, reduced.tables
            new._last = (np.array(w, dtype=np.float64), some, coefficients)
        return new

    def to(self, index: np.ndarray, w: np.ndarray | None = None) -> DevicePasses:
        """The same kernels with some of the points as columns; any samples may be rows."""
        return self.on(index, w)

    def new_points(self, Z: Any) -> DevicePoints:
        return DevicePoints(self.device, Z, self.family.offsets)

    def _with(self, family: KernelFamily) -> DevicePasses:
        new = DevicePasses(self.device, family, self.budget, self.points)
        new.facts = self.facts
        return new

    # -- statistics -------------------------------------------------------------------------------

    def statistics(
        self, targets: np.ndarray | None, weights: np.ndarray | None, products: bool
    ) -> Statistics:
        """Row sums, target products and Frobenius products, as `_loops.statistics` returns them."""
        if self.levels is not None:
            return self._by_polynomials(self.levels, targets, weights, products)
        return self._by_values(targets, weights, products, None)

    def centred_products(
        self,
        row_means: np.ndarray,
        grand_means: np.ndarray,
        weights: np.ndarray | None,
        products: bool,
    ) -> np.ndarray:
        """Products of kernels whose entries are centred before they are multiplied."""
        means = (self.device.put(row_means), self.device.put(grand_means))
        return self._by_values(None, weights, products, means).products

    def _by_polynomials(
        self,
        levels: RateLevels,
        targets: np.ndarray | None,
        weights: np.ndarray | None,
        products: bool,
    ) -> Statistics:
        n, p, device = self.family.n, self.family.p, self.device
        omega = np.ones(n) if weights is None else weights
        Y = None if targets is None else targets.reshape(n, -1)
        labels, middles = _classes(Y, n)
        columns = Columns.of(labels, tiles.multiple(device))
        order, real = device.index(columns.order), device.put(columns.real, device.torch.bool)
        points, w = self.points.take(order), device.put(columns.real * omega[columns.order])
        factors = device.empty(0, len(order))
        if Y is not None and middles is None:
            factors = device.put(Y.T)[:, order]
        row_sums, totals, paired = device.zeros(p, n), [], []
        for level in levels.levels:
            own = self._level_sums(level, levels, points, columns, w, factors, middles)
            for places, found in own.by_row:
                kept = real[places]
                members = device.index(level.members)
                row_sums[members[:, None], order[places][kept]] = found[:, kept]
            totals.append(host(own.totals))
            paired.append(host(own.paired))
        a = None
        if Y is not None:
            middle = omega @ Y
            a = levels.expand(paired, float(middle @ middle))
        sums = host(row_sums)
        diagonal = np.where(self.family.is_shifted, 0.0, 1.0)
        return Statistics(
            row_sums=sums,
            diagonals=np.broadcast_to(diagonal[:, None], (p, n)),
            a=a,
            products=levels.products(totals, sums @ omega, products),
            totals=tuple(totals),
        )

    def _level_sums(
        self,
        level: DistanceLevel,
        levels: RateLevels,
        points: DevicePoints,
        columns: Columns,
        w: Any,
        factors: Any,
        middles: np.ndarray | None,
    ) -> LevelSums:
        """Sums over the pairs of one level, in one pass per `MAX_FACTORS` targets."""
        device, degrees = self.device, level.degrees
        C, far, everything = device.put(level.C), device.put(level.far_value), w.sum()
        own = None
        if middles is not None:  # by class: products of its targets with those at each position
            of_place = np.repeat(middles, [s.stop - s.start for s in columns.segments], axis=0)
            own = device.put(middles @ of_place.T)
        out = LevelSums([], device.zeros(level.high), device.zeros(degrees))
        for first in range(0, max(1, len(factors)), tiles.MAX_FACTORS):
            some = factors[first : first + tiles.MAX_FACTORS]
            W = device.torch.cat([w[None], some])
            high = level.high if first == 0 else degrees
            for panel in polynomial_rows(
                points, levels.group, levels.kind, level, columns.segments, W, high, self.budget
            ):
                places, sums = panel.places, panel.sums
                if own is not None:
                    each = own[:, places] * w[places]
                    out.paired.add_((sums[:, 0, :degrees] * each[:, None]).sum(dim=2).sum(dim=0))
                elif len(some):
                    each = some[:, places] * w[places]
                    out.paired.add_((sums[0, 1:, :degrees] * each[:, None]).sum(dim=2).sum(dim=0))
                if first == 0:
                    by_row = sums[:, 0].sum(dim=0)
                    out.totals.add_(by_row @ w[places])
                    found = C @ by_row[:degrees]
                    if not level.whole:
                        found += far[:, None] * (everything - by_row[0])
                    out.by_row.append((places, found))
        return out

    def _by_values(
        self,
        targets: np.ndarray | None,
        weights: np.ndarray | None,
        products: bool,
        means: tuple[Any, Any] | None,
    ) -> Statistics:
        """`statistics` from the values of all kernels at the pairs on and above the diagonal."""
        family, device, torch = self.family, self.device, self.device.torch
        n, p = family.n, family.p
        omega = device.put(np.ones(n) if weights is None else weights)
        OY = None
        if targets is not None:
            OY = omega[:, None] * device.put(targets.reshape(n, -1))
        row_sums, a = device.zeros(p, n), device.zeros(p)
        M = device.zeros(p, p) if products else device.zeros(p)
        diagonals = device.zeros(p, n)
        height = device.panel_rows(n * (p + 2), self.budget)
        for start in range(0, n, height):
            rows, right = slice(start, min(start + height, n)), slice(start, n)
            r = rows.stop - start
            K = self._values(self.points.take(rows), self.points.take(right))
            diagonals[:, rows] = K[:, :, :r].diagonal(dim1=1, dim2=2)
            if means is not None:
                K -= means[0][:, rows, None]
                K -= means[0][:, None, right]
                K += means[1][:, None, None]
            row_sums[:, rows] += K @ omega[right]
            row_sums[:, rows.stop :] += (K[:, :, r:] * omega[rows, None]).sum(dim=1)
            if OY is not None:
                twice = OY[right].clone()
                twice[r:] *= 2.0
                a += ((K @ twice) * OY[rows]).sum(dim=(1, 2))
            twice = omega[right].clone()
            twice[r:] *= 2.0
            K *= (omega[rows, None] * twice).sqrt_()
            flat = K.reshape(p, -1)
            M += flat @ flat.T if products else torch.linalg.vector_norm(flat, dim=1) ** 2
        return Statistics(
            row_sums=host(row_sums),
            diagonals=host(diagonals),
            a=None if targets is None else host(a),
            products=host(M),
        )

    # -- values and products ----------------------------------------------------------------------

    def _values(self, left: DevicePoints, right: DevicePoints) -> Any:
        """Values of all kernels between samples, a new tensor (p, left.n, right.n)."""
        family = self.family
        out = self.device.empty(family.p, left.n, right.n)
        known: dict[tuple[int, int], Any] = {}
        for k in range(family.p):
            key = (int(family.group[k]), STATISTIC[int(family.kind[k])])
            if key not in known:
                known = {key: statistic(key[1], left, right, key[0])}
            out[k] = evaluate(family, k, known[key])
        return out

    def block(self, left: DevicePoints) -> np.ndarray:
        """Values of all kernels between samples and the points, (p, left.n, n)."""
        out = np.empty((self.family.p, left.n, self.family.n))
        self._panels(left, self.family.p + 2, lambda rows, some: out.__setitem__(
            (slice(None), rows), host(self._values(some, self.points))
        ))  # fmt: skip
        return out

    def _panels(
        self, left: DevicePoints, copies: int, use: Callable[[slice, DevicePoints], None]
    ) -> None:
        height = self.device.panel_rows(max(1, self.family.n) * copies, self.budget)
        for start in range(0, left.n, height):
            rows = slice(start, min(start + height, left.n))
            use(rows, left.take(rows))

    def matvecs(self, V: np.ndarray) -> np.ndarray:
        """``K_k V`` for every kernel, (p, n, t)."""
        V = np.asarray(V, dtype=np.float64)
        if self.levels is None or self.family.n == 0:
            return self.apply(self.points, V)
        device, n = self.device, self.family.n
        columns = Columns.of(np.zeros(n, dtype=np.int64), tiles.multiple(device))
        order = device.index(columns.order)
        points, real = self.points.take(order), device.put(columns.real)
        out = device.empty(self.family.p, n, V.shape[1])
        for j, v in enumerate(device.put(V.T)):
            self._level_products(self.levels, points, columns, v[order] * real, out[:, :, j])
        return host(out)

    def _level_products(
        self, levels: RateLevels, points: DevicePoints, columns: Columns, v: Any, out: Any
    ) -> None:
        """Write ``K_k v`` for every kernel to `out` (p, n); padding comes last, with zeros in v."""
        device, n = self.device, self.family.n
        for level in levels.levels:
            C, members = device.put(level.C), device.index(level.members)
            far = device.put(level.far_value)
            for panel in polynomial_rows(
                points, levels.group, levels.kind, level, columns.segments, v[None], level.degrees,
                self.budget,
            ):  # fmt: skip
                sums = panel.sums[0, 0]
                found = C @ sums
                if not level.whole:
                    found += far[:, None] * (v.sum() - sums[0])
                rows = slice(panel.places.start, min(panel.places.stop, n))
                out[members, rows] = found[:, : rows.stop - rows.start]

    def apply(self, left: DevicePoints, V: np.ndarray) -> np.ndarray:
        """``K_k(left, points) V`` for every kernel, (p, left.n, t)."""
        W = self.device.put(np.asarray(V, dtype=np.float64))
        if self.family.p == 1:
            return host(self.combined_products(np.ones(1), left, W))[None]
        out = np.zeros((self.family.p, left.n, W.shape[1]))

        def one(rows: slice, some: DevicePoints) -> None:
            out[:, rows] = host(self._values(some, self.points) @ W)

        self._panels(left, self.family.p + 2, one)
        return out

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        """``sum_ij G[i, j] K_k[i, j]`` for every kernel, (p,)."""
        total = self.device.zeros(self.family.p)

        def one(rows: slice, some: DevicePoints) -> None:
            nonlocal total
            total = total + (self._values(some, self.points) * self.device.put(G[rows])).sum((1, 2))

        self._panels(self.points, self.family.p + 2, one)
        return host(total)

    # -- combinations -----------------------------------------------------------------------------

    def combination(self, w: np.ndarray) -> tuple[DevicePasses, np.ndarray]:
        """Passes over fewer kernels, and their coefficients in the same sum ``sum_k w_k K_k``."""
        w = np.asarray(w, dtype=np.float64)
        if self._last is None or not np.array_equal(self._last[0], w):
            family, coefficients = reduced_combination(self.family, self.facts, w, TABLE)
            self._last = (w.copy(), self._with(family), coefficients)
        return self._last[1], self._last[2]

    @cached_property
    def tables(self) -> Any:
        return self.device.put(np.empty(0) if self.family.tables is None else self.family.tables)

    def _table(self, k: int) -> DistanceFunction | None:
        """Kernel k as a tabulated function; None if it is not one."""
        kind = int(self.family.kind[k])
        if kind not in TABLES:
            return None
        rate, end, place = self.family.params[k].tolist()
        values = self.tables[int(place) :]
        return DistanceFunction(STATISTIC[kind], int(self.family.group[k]), values, rate, end)

    def _one_function(self, w: np.ndarray, left: DevicePoints) -> DistanceFunction | None:
        """The combination as a series or a table, if it is one function of one distance."""
        reduced, _ = self.combination(w)
        family = reduced.family
        if family.p != 1 or int(family.kind[0]) not in TABLES:
            return None
        if left.origin is not self.points.origin:  # other samples: no known bound on distances
            return reduced._table(0)
        if reduced.series is None:
            used = np.flatnonzero(w)
            kind, group = int(self.family.kind[used[0]]), int(family.group[0])
            bound = self.facts.bound(group, kind)
            found = power_series(
                self.family.params[used, 0], w[used], self.family.is_shifted[used], bound
            )
            reduced.series = reduced._table(0)
            if found is not None:
                name, values = STATISTIC[kind], self.device.put(found)
                reduced.series = DistanceFunction(
                    name, group, values, 2.0 / bound, _INF, len(found)
                )
        return reduced.series

    def rough_series(self, w: np.ndarray) -> DistanceFunction | None:
        """The combination as a series for single precision, if programs can evaluate it."""
        if not tiles.uses_programs(self.device) or self.family.n == 0:
            return None
        alone = self._one_function(w, self.points)
        if alone is None or not alone.terms or alone.statistic != SQUARE:
            return None
        used = np.flatnonzero(w)
        found = power_series(
            self.family.params[used, 0],
            w[used],
            self.family.is_shifted[used],
            2.0 / alone.rate,
            ROUGH_LEFT_OUT,
        )
        values = self.device.put(found, self.device.torch.float32)
        return alone._replace(values=values, terms=len(values))

    def rough_products(self, w: np.ndarray, V: Any) -> Any:
        """`combined_products` with all points for a tensor V (n, t), in float32 if possible."""
        series = self.rough_series(w)
        if series is None or V.shape[1] > tiles.MAX_VECTORS:
            return self.combined_products(w, self.points, V)
        return rough_products(series, self.points, V)

    def combine(
        self,
        w: np.ndarray,
        left: DevicePoints,
        out: Any = None,
        shifts: tuple[Any, Any] | None = None,
    ) -> Any:
        """``sum_k w_k K_k(left, points)``, less ``shifts[0]_i + shifts[1]_j``; (left.n, n)."""
        reduced, coefficients = self.combination(w)
        if out is None:
            out = self.device.empty(left.n, self.family.n)
        if reduced.family.p == 0:
            out.zero_()
        alone = self._one_function(w, left)
        if alone is not None:
            table_values(alone, left, self.points, out, shifts, self.budget)
            return out
        tables = [reduced._table(k) for k in range(reduced.family.p)]

        def one(rows: slice, some: DevicePoints) -> None:
            for k, (c, table) in enumerate(zip(coefficients, tables, strict=True)):
                value = reduced._one(k, table, some, self.points)
                if k == 0:
                    out[rows] = value.mul_(float(c))
                else:
                    out[rows].add_(value, alpha=float(c))

        if reduced.family.p:
            self._panels(left, 8, one)
        if shifts is not None:
            out -= shifts[0][:, None]
            out -= shifts[1]
        return out

    def _one(
        self, k: int, table: DistanceFunction | None, left: DevicePoints, right: DevicePoints
    ) -> Any:
        """Values of one kernel."""
        if table is not None:
            return table.on(statistic(table.statistic, left, right, table.group))
        group, kind = int(self.family.group[k]), STATISTIC[int(self.family.kind[k])]
        return evaluate(self.family, k, statistic(kind, left, right, group))

    def combined_products(self, w: np.ndarray, left: DevicePoints, V: Any) -> Any:
        """``sum_k w_k K_k(left, points) V`` for a tensor V (n, t); (left.n, t)."""
        reduced, _ = self.combination(w)
        out = self.device.zeros(left.n, V.shape[1])
        if reduced.family.p == 0 or left.n == 0 or self.family.n == 0:
            return out
        alone = self._one_function(w, left)
        if alone is not None and V.shape[1] <= tiles.MAX_VECTORS:
            return table_products(alone, left, self.points, V, self.budget)

        def one(rows: slice, some: DevicePoints) -> None:
            out[rows] = self.combine(w, some) @ V

        self._panels(left, 8, one)
        return out


def _classes(Y: np.ndarray | None, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The class of every sample and the targets of each class, if there are few; else one class."""
    if Y is None:
        return np.zeros(n, dtype=np.int64), None
    middles = np.unique(Y[:: max(1, n // 256)], axis=0)
    if len(middles) <= MAX_CLASSES:
        labels = np.full(n, -1)
        for label, middle in enumerate(middles):
            labels[(middle == Y).all(axis=1)] = label
        if labels.min() >= 0:
            return labels, middles
    return np.zeros(n, dtype=np.int64), None
