"""Sums of many exponentials of one pairwise statistic, as one function of it.

A combination ``f(d) = sum_k w_k exp(-gamma_k d)`` of Gaussians (or Laplacians) on the same columns
is a smooth function of a single number, however many kernels there are. It is tabulated as
polynomials on intervals and costs a few multiplications per entry instead of p exponentials.

With ``x = 1 + d / d_0``, ``d_0 <= 1 / max gamma``, every octave ``[2**e, 2**(e + 1))`` of x is
cut into ``2**BITS`` equal intervals: the leading bits of x number the interval, and the other bits
are the position in it. An interval is at most a ``2**-BITS`` part of x long, and Chebyshev
interpolation of degree D misses ``exp(-gamma d)`` there by at most

    2 e / (D + 1)!  (r / 2**(BITS + 2))**(D + 1)  exp(-r),      r = gamma (d + d_0),

which is largest at r = D + 1: 8e-10 for D = 5 and 2e-17 for D = 10. Both are below the rounding of
their types. The last interval ends where ``exp(-gamma d) < exp(-45)`` for the smallest gamma, and
larger distances get the value at its end. At ``d = 0`` the value is the sum of the weights.

Rounding x changes d by a rounding error of ``d + d_0``. A kernel so wide that it is almost constant
over the distances of a sample is evaluated as ``exp(-gamma d) - 1`` and needs a d_0 of their size.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import Polynomial
from numpy.typing import NDArray

from ._fastmath import _as_bits, _as_float, fma

Array = NDArray[Any]

#: An octave has ``2**BITS`` intervals.
BITS = 3
#: Degree of the polynomials.
DEGREE = {np.dtype(np.float32): 5, np.dtype(np.float64): 10}
#: Minimum number of exponentials for which a table costs less than evaluating them one by one.
MIN_TABLE_KERNELS = {np.dtype(np.float32): 12, np.dtype(np.float64): 6}
#: Maximum number of octaves of a table; if rates need more, every exponential is evaluated.
MAX_TABLE_OCTAVES = 64
#: ``exp(-45) = 3e-20`` is negligible beside 1 in float64.
NEGLIGIBLE_EXPONENT = 45.0


class TableShape(NamedTuple):
    """``2**bits`` intervals per octave, each with a polynomial of degree ``degree``."""

    bits: int
    degree: int


def octaves(rates: NDArray[np.float64], near: float = np.inf) -> int:
    """Octaves of x up to the end of the slowest decay; 0 if no rate is positive."""
    positive = rates[rates > 0]
    if not len(positive):
        return 0
    spread = math.log2(max(positive.max(), 1.0 / near)) - math.log2(positive.min())
    # If the ratio of rates overflows, no table is large enough.
    return (
        math.ceil(spread + math.log2(NEGLIGIBLE_EXPONENT)) + 1 if math.isfinite(spread) else 10**6
    )


def tabulate(
    rates: NDArray[np.float64],
    weights: NDArray[np.float64],
    shifted: NDArray[np.bool_],
    dtype: np.dtype[Any],
    near: float = np.inf,
    shape: TableShape | None = None,
) -> tuple[Array, float, float]:
    """The polynomials of ``sum_k w_k exp(-gamma_k d)``, with -1 in the terms that are shifted.

    Parameters
    ----------
    near : float
        Upper bound of d_0: errors of smaller distances need only be small relative to ``near``.
    shape : TableShape or None
        None for the shape used by the compiled loops.

    Returns
    -------
    table : array of shape (n_intervals, degree + 1)
        Coefficients in the position within an interval, in [0, 1), constant first.
    rate, end : float
        ``x = 1 + rate d``, and the last x of the table.
    """
    bits, degree = (BITS, DEGREE[np.dtype(dtype)]) if shape is None else shape
    rate = max(float(rates.max()), 1.0 / near)
    n_octaves = octaves(rates, near)
    n_intervals = n_octaves << bits
    interval = np.arange(n_intervals)
    size = np.exp2(interval >> bits)
    width = size / (1 << bits)
    left = size + (interval & ((1 << bits) - 1)) * width
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    d = (left[:, None] - 1.0 + width[:, None] * (0.5 + 0.5 * nodes)) / rate
    f = np.zeros_like(d)
    for gamma, w, below in zip(rates, weights, shifted, strict=True):
        f += w * (np.expm1(-gamma * d) if below else np.exp(-gamma * d))
    to_chebyshev, to_powers = _changes(degree)
    # In this order: Chebyshev coefficients fall off as fast as numbers in the second matrix grow.
    table = (f @ to_chebyshev) @ to_powers
    table[0, 0] = weights[~shifted].sum()
    end = np.nextafter(np.dtype(dtype).type(2.0**n_octaves), np.dtype(dtype).type(1))
    return table.astype(dtype), rate, float(end)


@cache
def _changes(degree: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """From values at the Chebyshev nodes of [0, 1] to Chebyshev coefficients, then to powers."""
    k = np.arange(degree + 1)
    to_chebyshev = 2.0 / (degree + 1) * np.cos(np.pi * np.outer(k + 0.5, k) / (degree + 1))
    to_chebyshev[:, 0] /= 2.0
    powers = np.zeros((degree + 1, degree + 1))
    for j in k.tolist():
        one = Polynomial(chebyshev.cheb2poly(np.eye(degree + 1)[j]))(Polynomial([-1.0, 2.0]))
        powers[j, : len(one.coef)] = one.coef
    return to_chebyshev, powers


def mixture(d: float, rate: float, end: float, table: Array, at: int) -> float:
    """The tabulated sum at ``d >= 0``; its polynomials start at ``table[at]``."""
    raise NotImplementedError("compiled code only")


@overload(mixture)
def _mixture_overload(d: Any, rate: Any, end: Any, table: Any, at: Any) -> Any:
    single = d == types.float32
    real: Any = np.float32 if single else np.float64
    integer: Any = np.int32 if single else np.int64
    mantissa, bias = (23, 127) if single else (52, 1023)
    degree = DEGREE[np.dtype(real)]
    stride = degree + 1
    one = real(1)
    bits, shift, first = integer(BITS), integer(mantissa - BITS), integer(bias << BITS)
    mask, exponent = integer((1 << (mantissa - BITS)) - 1), integer(bias << mantissa)

    def implementation(d: Any, rate: Any, end: Any, table: Any, at: Any) -> Any:
        x = fma(d, rate, one)
        x = x if x < end else end
        b = _as_bits(x)
        place = at + stride * (np.int64(b >> shift) - first)
        u = _as_float(integer(integer(integer(b & mask) << bits) | exponent)) - one
        value = table[place + degree]
        for k in range(degree - 1, -1, -1):
            value = fma(value, u, table[place + k])
        return value

    return implementation
