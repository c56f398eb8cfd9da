"""Exponentials that a compiler can vectorise.

The C library's ``exp`` is a call per number; a loop around it cannot become vector code.  The
functions here are straight-line arithmetic (no branch, no table), so that a loop around them
turns into wide fused multiply-adds.

All three evaluate a *decreasing* exponential of ``d >= 0``, which is what kernels need::

    -gamma * d = (n + f) * log(2),      n = round(-gamma * log2(e) * d),   |f| <= 1/2
    exp(-gamma * d)   = 2**n * (1 + f * r(f))
    expm1(-gamma * d) = 2**n * f * r(f) + (2**n - 1)

with ``r(f) = (2**f - 1) / f`` replaced by its interpolating polynomial at Chebyshev nodes of
[-1/2, 1/2]; its relative error (1.2e-8 in degree 5, 2.0e-17 in degree 10) is below the rounding
of the type.  Two details ensure the accuracy:

- ``gamma * log2(e)`` is held as a sum of two numbers of the working type, ``high + low``, and the
  reduction ``f = d * high - n + d * low`` uses fused multiply-adds, so that the error does not
  grow with ``gamma * d``;
- ``f * r(f)`` has full *relative* accuracy, and for small arguments (n = 0) it is the result of
  ``expm1`` unchanged: a kernel of any width keeps all its digits.

The rounding to ``n`` is the addition of 1.5 * 2**23 (2**52), which leaves ``n`` in the low bits
of the sum; shifted left, they are added to the exponent field.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["exp_decay", "expm1_decay", "fma", "split_rate", "tanh"]

LOG2_E = 1.4426950408889634

# 2**f = 1 + f * r(f): coefficients of r, constant first.
_R32 = tuple(
    np.float32(c)
    for c in (
        0.6931471880262288,
        0.24022650760568126,
        0.05550357114219078,
        0.009618082557277852,
        0.0013390863364671234,
        0.0001545316294512069,
    )
)
_R64 = (
    0.6931471805599453,
    0.24022650695910097,
    0.0555041086648216,
    0.009618129107606888,
    0.0013333558146416936,
    0.0001540353044173605,
    1.525273382983612e-05,
    1.321544258792169e-06,
    1.0178062445845774e-07,
    7.072585949269223e-09,
    4.4549605981865186e-10,
)

# Beyond this many halvings, where results would be subnormal, exp_decay returns exactly 0.
_LAST_HALVING = {np.dtype(np.float32): 125.9, np.dtype(np.float64): 1021.9}


def split_rate(gamma: float, dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Constants with which `exp_decay` and `expm1_decay` evaluate one rate.

    Parameters
    ----------
    gamma : float
        Rate of decay, ``gamma >= 0``.
    dtype : numpy.dtype
        float32 or float64, the type of the arithmetic.

    Returns
    -------
    high, low, limit : float
        ``-gamma * log2(e) = high + low`` with `high` and `low` representable in `dtype`, and the
        largest ``d`` for which ``exp(-gamma * d)`` is a normal number.
    """
    dtype = np.dtype(dtype)
    biggest = float(np.finfo(dtype).max)
    rate = min(gamma * LOG2_E, biggest)
    high = float(dtype.type(rate))
    if dtype == np.dtype(np.float32):
        low = float(dtype.type(rate - high))
    else:
        # gamma * LOG2_E was rounded: recover the error from exact products of halves, plus
        # the part of log2(e) that LOG2_E lacks.
        low = _product_error(gamma, LOG2_E, high) + gamma * 2.0355273740931033e-17
        if not math.isfinite(low):
            low = 0.0
    limit = _LAST_HALVING[dtype] / high if high > 0.0 else biggest
    return -high, -low, min(limit, biggest)


def _product_error(a: float, b: float, product: float) -> float:
    """``a * b - product`` to full accuracy (Dekker's splitting; Python 3.11 has no fma)."""

    def halves(x: float) -> tuple[float, float]:
        t = 134217729.0 * x
        head = t - (t - x)
        return head, x - head

    a1, a2 = halves(a)
    b1, b2 = halves(b)
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, a, a), codegen


@intrinsic
def _as_bits(typingctx: Any, x: Any) -> Any:
    """The bits of a float as an integer of the same size."""
    bits = types.int32 if x == types.float32 else types.int64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return bits(x), codegen


@intrinsic
def _as_float(typingctx: Any, bits: Any) -> Any:
    """The float that has these bits."""
    x = types.float32 if bits == types.int32 else types.float64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return x(bits), codegen


def _r(f: float) -> float:
    """``(2**f - 1) / f`` for ``|f| <= 1/2``."""
    raise NotImplementedError("compiled code only")


@overload(_r)
def _r_overload(f: Any) -> Any:
    if f == types.float32:
        a0, a1, a2, a3, a4, a5 = _R32

        def r32(f: Any) -> Any:
            return fma(fma(fma(fma(fma(a5, f, a4), f, a3), f, a2), f, a1), f, a0)

        return r32

    b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10 = _R64

    def r64(f: Any) -> Any:
        # Two interleaved Horner chains: half the latency for one more multiplication.
        g = f * f
        even = fma(fma(fma(fma(fma(b10, g, b8), g, b6), g, b4), g, b2), g, b0)
        odd = fma(fma(fma(fma(b9, g, b7), g, b5), g, b3), g, b1)
        return fma(odd, f, even)

    return r64


def exp_decay(d: float, high: float, low: float, limit: float) -> float:
    """``exp(-gamma * d)`` for ``d >= 0`` and the constants of `split_rate`.

    Exactly 1 at ``d = 0``; exactly 0 where the result would be subnormal.
    """
    raise NotImplementedError("compiled code only")


@overload(exp_decay)
def _exp_decay_overload(d: Any, high: Any, low: Any, limit: Any) -> Any:
    if d == types.float32:
        magic, shift, one, zero = (
            np.float32(1.5 * 2**23),
            np.int32(23),
            np.float32(1),
            np.float32(0),
        )
        integer: Any = np.int32
    else:
        magic, shift, one, zero = (
            np.float64(1.5 * 2**52),
            np.int64(52),
            np.float64(1),
            np.float64(0),
        )
        integer = np.int64

    def implementation(d: Any, high: Any, low: Any, limit: Any) -> Any:
        t = fma(d, high, magic)
        n = t - magic
        f = fma(d, low, fma(d, high, -n))
        q = fma(f, _r(f), one)
        e = _as_float(integer(_as_bits(q) + integer(_as_bits(t) << shift)))
        # Past the limit the results above are meaningless; selecting 0 there needs no branch.
        return e if d <= limit else zero

    return implementation


def expm1_decay(d: float, high: float, low: float, limit: float) -> float:
    """``exp(-gamma * d) - 1`` for ``d >= 0`` and the constants of `split_rate`.

    Accurate relative to the result for arbitrarily small ``gamma * d``.
    """
    raise NotImplementedError("compiled code only")


@overload(expm1_decay)
def _expm1_decay_overload(d: Any, high: Any, low: Any, limit: Any) -> Any:
    if d == types.float32:
        magic, shift, one = np.float32(1.5 * 2**23), np.int32(23), np.float32(1)
        integer: Any = np.int32
    else:
        magic, shift, one = np.float64(1.5 * 2**52), np.int64(52), np.float64(1)
        integer = np.int64

    def implementation(d: Any, high: Any, low: Any, limit: Any) -> Any:
        # Past the limit the result is -1 to the last bit; clamping keeps 2**n a normal number.
        d = d if d <= limit else limit
        t = fma(d, high, magic)
        n = t - magic
        f = fma(d, low, fma(d, high, -n))
        scale = _as_float(integer(_as_bits(one) + integer(_as_bits(t) << shift)))
        return fma(scale, f * _r(f), scale - one)

    return implementation


def tanh(u: float) -> float:
    """``tanh(u)`` as ``-e / (2 + e)`` with ``e = expm1(-2 |u|)``, and the sign of `u`."""
    raise NotImplementedError("compiled code only")


@overload(tanh, jit_options={"error_model": "numpy"})
def _tanh_overload(u: Any) -> Any:
    real: Any = np.float32 if u == types.float32 else np.float64
    high, low, limit = (real(x) for x in split_rate(2.0, np.dtype(real)))
    two, zero = real(2), real(0)

    def implementation(u: Any) -> Any:
        a = u if u >= zero else -u
        e = expm1_decay(a, high, low, limit)
        t = -e / (two + e)
        return t if u >= zero else -t

    return implementation
