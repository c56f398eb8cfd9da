"""All exponentials of one distance from the sums of a few polynomials.

With ``x = 1 - 2 d / D`` for distances d up to D and ``l = gamma D / 2``,

    exp(-gamma d) = exp(-l) exp(l x) = sum_m c_m(l) T_m(x),    c_m(l) = (2 - [m = 0]) exp(-l) I_m(l)

(T_m Chebyshev polynomials, I_m modified Bessel functions). All c_m are positive, their sum is 1,
and from ``m ~ sqrt(2 l log(1 / e))`` on they add up to less than e: 40 to 60 degrees serve every
rate of a usual grid, and their sums over pairs of points serve any number of kernels. Sums of
products of two kernels are there as well, for

    exp(-gamma d) exp(-gamma' d) = sum_ab c_a c_b T_a T_b,    T_a T_b = (T_(a + b) + T_|a - b|) / 2

is again a sum of polynomials, of which those of degree ``sqrt(2) m`` and more are as negligible as
the others were. Neither the number of kernels nor its square enters into the work per pair: that
is one step of the recurrence ``T_(m + 1) = 2 x T_m - T_(m - 1)`` and one or two additions for each
degree.

Polynomials and sums are float64 for points of single precision too: an error e of every entry may
add up to ``n e`` where the kernel itself, nearly the identity, adds up to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._threads import one_blas_thread
from ._moment_loops import COLUMNS, Targets, moment_panels
from ._order import in_order, tiles_of, units
from ._passes import Plan, _round_up
from ._simd import REST

if TYPE_CHECKING:
    from ._families import Family

Array = NDArray[Any]


def bessel_coefficients(l: Array, degrees: int) -> Array:
    """``c_m(l)`` for m below `degrees`, shape (len(l), degrees), each to its last digits.

    Ratios of Bessel functions follow from their recurrence from above, which forgets where it
    started; that the sum of all is 1 fixes the scale.
    """
    l = np.asarray(l, dtype=np.float64)
    start = max(degrees, int(9.0 * np.sqrt(l.max()))) + 64
    ratio = np.zeros((start + 1, len(l)))
    for m in range(start - 1, 0, -1):
        ratio[m] = l / (2.0 * m + l * ratio[m + 1])
    ratio[0] = 1.0
    c = 2.0 * np.cumprod(ratio[:start], axis=0)
    c[0] = 1.0
    return np.asarray((c[:degrees] / c.sum(axis=0)).T)


def degrees_for(l: float, error: float, most: int) -> int | None:
    """How many degrees leave out no more than `error`; None if these are more than `most`."""
    # The tail is not below a normal distribution's: no need to look where that is large.
    if l > most**2 / (2.0 * np.log(1.0 / error)):
        return None
    c = bessel_coefficients(np.array([l]), most + 64)[0]
    tail = np.cumsum(c[::-1])[::-1]
    few = int(np.argmax(tail <= error))
    return few if 0 < few <= most else None


@dataclass(frozen=True)
class Basis:
    """Polynomials that stand for the kernels of a family.

    Attributes
    ----------
    end : float
        D: no distance is larger.
    degrees : int
        Kernels are sums of the polynomials of degree 0 up to this.
    high : int
        Products of two kernels are sums of those up to this.
    C : array of shape (p, degrees + 1)
        The kernels in terms of the polynomials.
    """

    end: float
    degrees: int
    high: int
    C: Array

    @classmethod
    def of(
        cls, rates: Array, shifted: NDArray[np.bool_], end: float, error: float, most: int
    ) -> Basis | None:
        """Of kernels ``exp(-rate d)``, or less one, up to an error of their values."""
        largest = 0.5 * end * float(rates.max())
        low, high = (degrees_for(l, error, most) for l in (largest, 2.0 * largest))
        if low is None or high is None:
            return None
        # Degree 0 needs no sum, and the others are summed in fours.
        low, high = (_round_up(count - 1, REST) for count in (max(low, 2), max(high, 2)))
        C = bessel_coefficients(0.5 * end * rates, low + 1)
        C[shifted, 0] = -C[shifted, 1:].sum(axis=1)
        return cls(end, low, high, C)

    def series(self, weights: Array, error: float) -> Array:
        """``sum_k weights_k K_k`` for `chebyshev_series`: the slope, and the coefficients up to an
        error of this part of their sum.
        """
        with one_blas_thread():
            b = weights @ self.C
        size = np.abs(b)
        enough = np.cumsum(size[::-1])[::-1] > error * size.sum()
        return np.append(-2.0 / self.end, b[: max(int(np.count_nonzero(enough)), 2)])

    def square(self, weights: Array, totals: Array) -> float:
        """``||sum_k weights_k K_k||^2``; see `products`."""
        with one_blas_thread():
            b = weights @ self.C
            return float(b @ self._polynomial_products(totals) @ b)

    def expand(self, sums: Array) -> Array:
        """From sums of the polynomials, (degrees + 1, ...), to those of the kernels, (p, ...)."""
        with one_blas_thread():
            return np.asarray((self.C @ sums.reshape(len(sums), -1)).reshape(-1, *sums.shape[1:]))

    def products(self, totals: Array, full: bool) -> Array:
        """``<K_k, K_l>``, (p, p) or its diagonal, from ``<1, T_m>`` for m up to `high`."""
        with one_blas_thread():
            half = self.C @ self._polynomial_products(totals)
            if not full:
                return np.asarray(np.einsum("ka,ka->k", half, self.C))
            both = half @ self.C.T
            return np.asarray(0.5 * (both + both.T))

    def _polynomial_products(self, totals: Array) -> Array:
        """``<T_a, T_b>``, (degrees + 1, degrees + 1); what lies beyond `high` is left out."""
        a = np.arange(self.degrees + 1)
        above, below = a[:, None] + a, np.abs(a[:, None] - a)
        known = np.append(totals, np.zeros(2 * self.degrees + 1 - self.high))
        return np.asarray(0.5 * (known[above] + known[below]))


class Sums(NamedTuple):
    """Sums of polynomials of the distances, degree 0 first, under weights of the points.

    Attributes
    ----------
    rows : array of shape (degrees + 1, n)
        ``sum_j w_j T_m(x_ij)``.
    totals : array of shape (high + 1,)
        ``sum_ij w_i w_j T_m(x_ij)``.
    paired : array of shape (degrees + 1,)
        ``sum_ij w_i w_j (Y Y')_ij T_m(x_ij)``.
    matrix : array of shape (n, n) or (0, 0)
    """

    rows: Array
    totals: Array
    paired: Array
    matrix: Array


def polynomial_sums(
    family: Family,
    basis: Basis,
    weights: NDArray[np.float64] | None,
    n_threads: int | None,
    targets: NDArray[np.float64] | None = None,
    totals: bool = False,
    combined: NDArray[np.float64] | None = None,
) -> Sums:
    """One pass over the tiles on and above the diagonal."""
    n, tile = family.n, family.tile
    n_padded = tiles_of(n, tile) * tile
    Y = None if targets is None else np.asarray(targets, dtype=np.float64).reshape(n, -1)
    mixed, coefficients = family.take(np.arange(0)), np.empty(0)
    if combined is not None:
        mixed, coefficients = family.combination(combined, inside=True)
    matrix = np.zeros((n, n) if combined is not None and mixed.p == 0 else (0, 0))
    if mixed.p > 0:
        matrix = np.empty((n, n))
    keeps = family.kept_tiles if totals else 0
    kept = np.empty((keeps, tile**2 if keeps else 0), dtype=family.dtype)

    def empty() -> tuple[Array, Array, Array]:
        return (
            np.zeros((n_padded // COLUMNS, basis.degrees, COLUMNS)),
            np.zeros(basis.high if totals else 0),
            np.zeros(0 if Y is None else basis.degrees),
        )

    rows, above, paired = _walk(
        family, basis, weights, Y, mixed.plan, coefficients, matrix, kept, empty, n_threads
    )
    if keeps:
        family.keep(kept)
    weight = np.ones(n) if weights is None else weights
    everything = np.empty((basis.degrees + 1, n))
    everything[0] = weight.sum()
    everything[1:] = rows.transpose(1, 0, 2).reshape(basis.degrees, -1)[:, :n]
    if totals:
        above = np.append(everything @ weight, above[basis.degrees :])
    if Y is not None:
        middle = weight @ Y
        paired = np.append(middle @ middle, paired)
    return Sums(everything, above, paired, matrix)


def polynomial_forms(
    family: Family, basis: Basis, v: NDArray[np.float64], n_threads: int | None
) -> NDArray[np.float64]:
    """``sum_ij v_i v_j T_m(x_ij)`` for every degree, (degrees + 1,), without sums of rows."""
    nothing, nowhere = np.empty(0), np.empty((0, 0))
    kept = np.empty((0, 0), dtype=family.dtype)
    n_padded = tiles_of(family.n, family.tile) * family.tile

    def empty() -> tuple[Array, Array, Array]:
        no_rows = np.zeros((n_padded // COLUMNS, 0, COLUMNS))
        return no_rows, np.zeros(basis.degrees), np.zeros(0)

    plan = family.take(np.arange(0)).plan
    totals = _walk(family, basis, v, None, plan, nothing, nowhere, kept, empty, n_threads)[1]
    return np.append(v.sum() ** 2, totals)


def _walk(
    family: Family,
    basis: Basis,
    weights: NDArray[np.float64] | None,
    Y: NDArray[np.float64] | None,
    plan: Plan,
    coefficients: NDArray[np.float64],
    matrix: NDArray[np.float64],
    kept: Array,
    empty: Callable[[], tuple[Array, Array, Array]],
    n_threads: int | None,
) -> tuple[Array, Array, Array]:
    """The sums of `moment_panels` over all tiles; `empty` makes room for those of a unit."""
    n, tile = family.n, family.tile
    n_tiles = tiles_of(n, tile)
    weight = np.zeros(n_tiles * tile)
    weight[:n] = 1.0 if weights is None else weights
    levels = Targets.of(Y, weights, n, tile)
    kind, first, last = (int(a[0]) for a in family.plan[:3])
    packed, coefficients = family.packed, coefficients.astype(family.dtype)

    def unit(panels: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        found = empty()
        moment_panels(
            kind,
            first,
            last,
            panels,
            n,
            packed,
            2.0 / basis.end,
            levels,
            weights is not None,
            weight,
            plan,
            coefficients,
            *found,
            matrix,
            kept,
        )
        return found

    parts = in_order(unit, units(n_tiles), n_threads)
    rows, above, paired = next(parts)
    for part in parts:
        rows += part[0]
        above += part[1]
        paired += part[2]
    return rows, above, paired
