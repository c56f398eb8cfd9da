"""Chebyshev polynomials of a distance that replace exponentials of it, by intervals.

With ``x = 1 - 2 d / D`` for distances d up to D and ``l = gamma D / 2``,

    exp(-gamma d) = exp(-l) exp(l x) = sum_m c_m(l) T_m(x),    c_m(l) = (2 - [m = 0]) exp(-l) I_m(l)

(T_m Chebyshev polynomials, I_m modified Bessel functions). All c_m are positive, their sum is 1,
and those from ``m ~ sqrt(2 l log(1 / e))`` on add up to less than e. The number of degrees grows
with the square root of the rate, so one interval is not enough for all rates of a wide grid.

*Levels* are nested intervals. Beyond ``d = log(n / eps) / gamma`` a kernel adds less than a
rounding error eps to a sum over n points. Rates are sorted and cut into runs; the run that starts
at the rate g is served by the interval from 0 to ``min(D, log(n / eps) / g)``, and pairs of points
that are farther apart are left out. A product of a wide and a narrow kernel is negligible wherever
the narrow one is, so it is computed from the polynomials of the narrow kernel's level, on which
the wide kernel needs few degrees.

The cut with the least estimated time is found by dynamic programming, from the distances of a
fixed sample of pairs. Where evaluating every kernel is estimated to be quicker, there are no
levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import one_blas_thread
from ._distances import DistanceFacts
from ._families import KernelFamily
from ._moment_loops import COLUMNS, LevelTable
from ._simd import REST

Array = NDArray[Any]

#: Maximum number of polynomials per level; beyond it, alternatives are always faster.
MAX_DEGREES = 512
#: Maximum number of rates that are tried as the start of a level.
MAX_LEVEL_STARTS = 64


class PassCosts(NamedTuple):
    """Costs of passes in nanoseconds per pair of points; only their ratios matter.

    Attributes
    ----------
    overhead : float
        Choose levels and prepare their passes; once, not per pair.
    dense, dense_degree : float
        A block of all pairs: prepare a pair, and add one degree to one sum.
    scan, near, near_degree, unit_degree : float
        Near pairs alone: compare any pair with the end of an interval, gather a near pair, add one
        degree to one sum; and, per degree, a share of adding up the sums of all units of work.
    kernel, product : dict from dtype to float
        Evaluate a kernel and sum its rows; multiply it by one other kernel.
    """

    overhead: float
    dense: float
    dense_degree: float
    scan: float
    near: float
    near_degree: float
    unit_degree: float
    kernel: Mapping[np.dtype[Any], float]
    product: Mapping[np.dtype[Any], float]


#: On one core with AVX-512.
CORE_COSTS = PassCosts(
    overhead=1.2e6,
    dense=1.5,
    dense_degree=0.08,
    scan=0.4,
    near=15.0,
    near_degree=0.2,
    unit_degree=0.01,
    kernel={np.dtype(np.float32): 0.4, np.dtype(np.float64): 1.2},
    product={np.dtype(np.float32): 0.018, np.dtype(np.float64): 0.036},
)


def bessel_coefficients(l: Array, degrees: int) -> Array:
    """``c_m(l)`` for m below `degrees`, shape (len(l), degrees), each to full precision.

    Ratios of Bessel functions follow from their downward recurrence, which converges from any
    start; the scale follows from the sum of all coefficients, which is 1.
    """
    l = np.asarray(l, dtype=np.float64)
    start = max(degrees, int(9.0 * np.sqrt(l.max(initial=0.0)))) + 64
    ratio = np.zeros((start + 1, len(l)))
    for m in range(start - 1, 0, -1):
        ratio[m] = l / (2.0 * m + l * ratio[m + 1])
    ratio[0] = 1.0
    c = 2.0 * np.cumprod(ratio[:start], axis=0)
    c[0] = 1.0
    return np.asarray((c[:degrees] / c.sum(axis=0)).T)


def degrees_for(l: Array, error: float) -> NDArray[np.int64]:
    """The number of degrees beyond which coefficients add up to at most `error`.

    A multiple of `REST`; more than `MAX_DEGREES` if that many are not enough.
    """
    return REST * (1 + np.searchsorted(_largest_arguments(error), l))


@lru_cache(maxsize=32)
def _largest_arguments(error: float) -> NDArray[np.float64]:
    """The largest l for which 4, 8, ... degrees suffice, by bisection."""
    m = np.arange(REST, MAX_DEGREES + 1, REST, dtype=np.float64)
    low, high = np.full(len(m), -300.0), np.log(m**2)
    for _ in range(60):
        middle = 0.5 * (low + high)
        suffices = _log_tail(np.exp(middle), m) <= np.log(error)
        low, high = np.where(suffices, middle, low), np.where(suffices, high, middle)
    return np.exp(low)


def _log_tail(l: Array, m: Array) -> Array:
    """Logarithm of a close upper bound of ``sum_(k >= m) c_k(l)``, m >= 4.

    Debye's expansion gives I_m within two percent; ratios of later terms are below Amos' bound of
    ``I_(m + 1) / I_m``.
    """
    root = np.hypot(l, m)
    first = m**2 / (root + l) - m * np.arcsinh(m / l) - 0.5 * np.log(2.0 * np.pi * root)
    ratio = l / (m + 0.5 + np.hypot(l, m + 0.5))
    return np.asarray(first + np.log(2.0 * 1.02) - np.log1p(-ratio))


@dataclass(frozen=True, eq=False)
class DistanceLevel:
    """One interval of distances, and the kernels in terms of the polynomials on it.

    Attributes
    ----------
    end : float
        The interval is [0, end).
    whole : bool
        Whether it holds all distances between points.
    dense : bool
        Whether passes sum blocks of all pairs instead of gathering near pairs.
    degrees : int
        Number of polynomials that represent a kernel.
    high : int
        Number of polynomials that represent a product of two kernels.
    wider, members : arrays of indices
        Kernels of smaller rates, which belong to other levels, and those of this level.
    C_wider, C : arrays of shape (n_wider, degrees) and (n_members, degrees)
        Coefficients of these kernels.
    far_value : array of shape (n_members,)
        The value of a member beyond the interval: 0, or -1 of a shifted kernel.
    """

    end: float
    whole: bool
    dense: bool
    degrees: int
    high: int
    wider: NDArray[np.int64]
    members: NDArray[np.int64]
    C_wider: Array
    C: Array
    far_value: Array

    def expand(self, sums: Array, everything: float) -> Array:
        """Sums of the members, (n_members, ...), from those of the polynomials, (degrees, ...).

        `everything` is the sum for a kernel that is constant 1.
        """
        found = np.tensordot(self.C, sums, 1)
        if not self.whole and np.any(self.far_value):
            found += np.multiply.outer(self.far_value, everything - sums[0])
        return np.asarray(found)

    def products(
        self, left: Array, left_sums: Array, right: Array, right_far: Array, totals: Array
    ) -> Array:
        """``<L, R>`` for kernels R of this level and L of this or a wider one.

        `left` and `right` are coefficients, (q, degrees) and (r, degrees), `left_sums` are
        ``<L, 1>`` over all pairs, `right_far` the values of R beyond the interval.
        """
        found = left @ self._polynomial_products(totals) @ right.T
        if not self.whole and np.any(right_far):
            found += np.outer(left_sums - left @ totals[: self.degrees], right_far)
        return np.asarray(found)

    def _polynomial_products(self, totals: Array) -> Array:
        """``<T_a, T_b>``, (degrees, degrees); polynomials beyond `high` are negligible.

        By ``T_a T_b = (T_(a + b) + T_|a - b|) / 2``.
        """
        a = np.arange(self.degrees)
        above, below = a[:, None] + a, np.abs(a[:, None] - a)
        known = np.append(totals, np.zeros(max(2 * self.degrees - self.high, 0)))
        return np.asarray(0.5 * (known[above] + known[below]))


@dataclass(frozen=True, eq=False)
class RateLevels:
    """The levels that together serve all kernels of a family.

    Attributes
    ----------
    group, kind : int
        Identify the distance.
    levels : tuple of DistanceLevel
        By increasing rates, hence by decreasing ends.
    """

    group: int
    kind: int
    levels: tuple[DistanceLevel, ...]

    @property
    def p(self) -> int:
        """Number of kernels."""
        return sum(len(level.members) for level in self.levels)

    @property
    def table(self) -> LevelTable:
        """The levels as compiled loops read them."""
        whole, dense, degrees, high = (
            np.array([getattr(level, name) for level in self.levels])
            for name in ("whole", "dense", "degrees", "high")
        )
        return LevelTable(
            end=np.array([level.end for level in self.levels]),
            lowest=np.where(whole, -np.inf, -1.0),
            dense=dense,
            degrees=degrees,
            high=high,
            row_start=_starts(degrees, dense),
            high_start=_starts(high, dense),
        )

    def expand(self, sums: Sequence[Array], everything: float) -> Array:
        """Sums of all kernels, (p, ...), from those of the polynomials of each level."""
        out = np.empty((self.p, *sums[0].shape[1:]))
        with one_blas_thread():
            for level, some in zip(self.levels, sums, strict=True):
                out[level.members] = level.expand(some, everything)
        return out

    def products(self, totals: Sequence[Array], kernel_sums: Array, full: bool) -> Array:
        """``<K_k, K_l>``, (p, p) or its diagonal.

        From ``<1, T_m>`` on each level, and `kernel_sums`, ``<1, K_k>`` of all kernels.
        """
        out = np.empty((self.p, self.p) if full else self.p)
        with one_blas_thread():
            for level, known in zip(self.levels, totals, strict=True):
                members, C, far = level.members, level.C, level.far_value
                if not full:
                    half = level.C @ level._polynomial_products(known)
                    out[members] = np.einsum("ka,ka->k", half, C)
                    if not level.whole:
                        beyond = kernel_sums[members] - C @ known[: level.degrees]
                        out[members] += far * beyond
                    continue
                both = level.products(C, kernel_sums[members], C, far, known)
                out[np.ix_(members, members)] = 0.5 * (both + both.T)
                if len(level.wider):
                    sums = kernel_sums[level.wider]
                    both = level.products(level.C_wider, sums, C, far, known)
                    out[np.ix_(level.wider, members)] = both
                    out[np.ix_(members, level.wider)] = both.T
        return out

    def square(self, w: Array, totals: Sequence[Array], kernel_sums: Array) -> float:
        """``||sum_k w_k K_k||^2``; see `products`."""
        found = 0.0
        with one_blas_thread():
            for level, known in zip(self.levels, totals, strict=True):
                here, before = w[level.members], w[level.wider]
                # <R, R> + 2 <L, R> = <2 L + R, R> for the part R of this level.
                right = here @ level.C
                left = 2.0 * (before @ level.C_wider) + right
                sums = 2.0 * (before @ kernel_sums[level.wider])
                sums += here @ kernel_sums[level.members]
                far = np.atleast_1d(here @ level.far_value)
                product = level.products(left[None], np.atleast_1d(sums), right[None], far, known)
                found += float(product[0, 0])
        return found


def _starts(counts: NDArray[np.int64], dense: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Start of each level's numbers, counted separately for dense levels and for the others."""
    out = np.empty_like(counts)
    for some in (dense, ~dense):
        out[some] = np.cumsum(counts[some]) - counts[some]
    return out


class Setting(NamedTuple):
    """The numbers, apart from the rates, that determine the choice of levels.

    Attributes
    ----------
    bound : float
        No distance exceeds it.
    cutoff : float
        Beyond ``gamma d = cutoff`` a kernel is negligible.
    error : float
        Coefficients that add up to this are negligible.
    sample : array
        Sorted distances of some pairs of points.
    costs : PassCosts
    """

    bound: float
    cutoff: float
    error: float
    sample: Array
    costs: PassCosts = CORE_COSTS

    def ends(self, rates: Array) -> Array:
        """Ends of the intervals of levels that start at these rates."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(self.bound, self.cutoff / rates)

    def times(self, ends: Array, degrees: Array) -> tuple[Array, Array]:
        """Estimated nanoseconds per pair of points, with blocks of all pairs and with near pairs.

        `degrees` is the number of degrees of row sums plus that of totals.
        """
        near = (1.0 + np.searchsorted(self.sample, ends)) / (1.0 + len(self.sample))
        c = self.costs
        dense = c.dense + c.dense_degree * degrees
        sparse = c.scan + c.unit_degree * degrees + near * (c.near + c.near_degree * degrees)
        return dense, np.where(ends >= self.bound, np.inf, sparse)


def choose_levels(
    family: KernelFamily,
    facts: DistanceFacts,
    evaluated: bool = False,
    costs: PassCosts = CORE_COSTS,
) -> RateLevels | None:
    """The levels with the least estimated time; None where evaluating all kernels is faster.

    Also None unless all kernels are exponentials of one distance. With `evaluated`, the kernels
    are evaluated anyway, for products with others, so levels can only save products.
    """
    alike = family.exponentials(range(family.p))
    n_pairs = 0.5 * family.n**2
    kernel_ns = 0.5 * family.p * costs.product[family.dtype]
    if not evaluated:
        kernel_ns += costs.kernel[family.dtype]
    direct_ns = n_pairs * family.p * kernel_ns
    if len(alike) != 1 or direct_ns < costs.overhead:
        return None
    (group, kind), exponentials = next(iter(alike.items()))
    rates = family.params[:, 0]
    if len(exponentials) < family.p or not 0.0 < rates.max() < np.inf:
        return None
    bound = facts.bound(group, kind)
    if not 0.0 < bound < np.inf:
        return None
    eps = float(np.finfo(family.dtype).eps)
    setting = Setting(
        bound=bound,
        cutoff=float(np.log(family.n / eps)),
        # Over a row, this adds up to no more than the rounding errors of its entries.
        error=0.5 * eps / family.n**0.5,
        sample=facts.sample(group, kind),
        costs=costs,
    )
    order = np.argsort(rates, kind="stable")
    starts, time = quickest_cut(rates[order], setting)
    if costs.overhead + n_pairs * time > direct_ns:
        return None
    levels = tuple(
        make_level(rates, family.is_shifted, order[:first], order[first:stop], setting)
        for first, stop in zip(starts, [*starts[1:], family.p], strict=True)
    )
    return RateLevels(group, kind, levels)


def quickest_cut(rates: Array, setting: Setting) -> tuple[list[int], float]:
    """Where to cut sorted rates into levels, and the estimated nanoseconds per pair of points."""
    # Equal rates belong to one level; of very many rates only some are tried as starts.
    first = np.flatnonzero(np.append(True, np.diff(rates) > 0))
    if len(first) > MAX_LEVEL_STARTS:
        first = first[np.linspace(0, len(first) - 1, MAX_LEVEL_STARTS).astype(np.int64)]
    last = np.append(first[1:], len(rates)) - 1
    ends = setting.ends(rates[first])
    l = 0.5 * np.outer(ends, rates[last])
    low, high = degrees_for(l, setting.error), degrees_for(2.0 * l, setting.error)
    time = np.minimum(*setting.times(ends[:, None], low + high))
    time[high > MAX_DEGREES] = np.inf
    # best[i] is the least time for the rates from the i-th start on.
    count = len(first)
    best, stop = np.zeros(count + 1), np.zeros(count, dtype=np.int64)
    for i in range(count - 1, -1, -1):
        each = time[i, i:] + best[i + 1 :]
        stop[i] = i + 1 + int(np.argmin(each))
        best[i] = each.min()
    starts, i = [], 0
    while i < count:
        starts.append(int(first[i]))
        i = int(stop[i])
    return starts, float(best[0])


def make_level(
    rates: Array,
    shifted: NDArray[np.bool_],
    wider: NDArray[np.int64],
    members: NDArray[np.int64],
    setting: Setting,
) -> DistanceLevel:
    """The level of the kernels `members`, given those of smaller rates."""
    end = float(setting.ends(rates[members].min()))
    whole = end >= setting.bound
    l = 0.5 * end * float(rates[members].max())
    degrees, high = (int(count) for count in degrees_for(np.array([l, 2.0 * l]), setting.error))
    in_blocks, of_near_pairs = setting.times(np.array(end), np.array(degrees + high))
    dense = bool(in_blocks <= of_near_pairs)
    if not dense:
        degrees, high = (-(-count // COLUMNS) * COLUMNS for count in (degrees, high))
    both = np.append(wider, members)
    C = bessel_coefficients(0.5 * end * rates[both], degrees)
    C[shifted[both], 0] = -C[shifted[both], 1:].sum(axis=1)
    return DistanceLevel(
        end=end,
        whole=whole,
        dense=dense,
        degrees=degrees,
        high=high,
        wider=wider,
        members=members,
        C_wider=C[: len(wider)],
        C=C[len(wider) :],
        far_value=np.where(shifted[members], -1.0, 0.0),
    )
