"""Excess risk of lp-norm multiple kernel learning (Kloft 2011, section 4.3).

The bounds are on the risk of the empirical minimiser *in excess of that of the best function of
the class*. The constants are so large that the numbers help to compare exponents p, but hardly ever
serve as a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._options import takes_arguments
from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_delta,
    check_exponent,
    check_items,
    check_nonnegative,
    check_number,
    check_positive,
    check_spectra,
)
from .blocknorm import smallest
from .local import check_leading
from .rademacher import conjugate, norm


def fixed_point(psi: Callable[[float], float], start: float = 1.0, rtol: float = 1e-12) -> float:
    """The positive r with ``psi(r) = r`` of a sub-root function.

    Sub-root: non-negative, non-decreasing, ``psi(r)/sqrt(r)`` non-increasing. Iterating psi from
    above descends to the fixed point; from below it rises to it.

    Examples
    --------
    >>> from multikernel.bounds import fixed_point
    >>> round(fixed_point(lambda r: 2.0 * r**0.5 + 3.0), 9)
    9.0
    """
    if not takes_arguments(psi, 1):
        raise TypeError(f"psi must be a function of one number; got {psi!r}.")
    r = check_positive("start", start, "an iteration over positive radii")
    rtol = check_number("rtol", rtol, low=0.0, high=1.0, why="the relative accuracy")
    while psi(r) > r:
        r *= 4.0
        if not math.isfinite(r):
            raise AssumptionError("psi grows faster than its argument, so it is not sub-root.")
    for _ in range(100_000):
        new = psi(r)
        if not 0 <= new <= r * (1 + 1e-12):
            raise AssumptionError("psi is not sub-root: its iterates do not descend.")
        if r - new <= rtol * r:
            return new
        r = new
    return r


def excess_risk(
    fixed: float, n: int, delta: float, *, bernstein: float, lipschitz: float, width: float
) -> float:
    """Lemma 4.9: ``7 r*/F + (11 L (b - a) + 27 F) log(1/delta) / n``.

    Parameters
    ----------
    fixed : float
        r*, the fixed point of ``r -> 2 F L R_{r/(4L^2)}`` (:func:`fixed_point`), or an upper bound.
    bernstein : float
        F with ``P(f - f*)^2 <= F P(l_f - l_f*)`` for all f of the class.
    lipschitz : float
        L, of the loss.
    width : float
        ``b - a`` for a class with values in [a, b].
    """
    n, delta = check_count("n", n), check_delta(delta)
    fixed = check_nonnegative("fixed", fixed, "a fixed point")
    F = check_positive("bernstein", bernstein, "the constant of the Bernstein condition")
    L = check_positive("lipschitz", lipschitz, "the Lipschitz constant of the loss")
    width = check_positive("width", width, "the range of the functions")
    z = math.log(1.0 / delta)
    return 7.0 * fixed / F + (11.0 * L * width + 27.0 * F) * z / n


def fixed_point_bound(
    spectra: Sequence[Any],
    n: int,
    p: float,
    B: float,
    h: Sequence[int] | None = None,
    *,
    radius: float = 1.0,
    bernstein: float = 1.0,
    lipschitz: float = 1.0,
) -> float:
    """Lemma 4.10, 1 < p <= 2: the fixed point of the bound (4.12), for given or chosen ``h_m``.

    With ``a = 4 F^2 sum h_m / n`` and b half of ``8 F L sqrt((e p*^2 D^2 / n) ||tails||_{p*/2})
    + 4 sqrt(B e) D F L M^(1/p*) p* / n`` the fixed point is ``(a + 2b + sqrt(a^2 + 4ab)) / 2``, at
    most the ``a + 2b`` of the lemma (which prints >=).

    Parameters
    ----------
    h : sequence of int or None
        Leading directions kept for each kernel; None takes the best number common to all kernels.
    """
    n, B = check_count("n", n), check_bounded("B", B)
    p = check_exponent("p", p, "Lemma 4.10", above=True)
    D = check_positive("radius", radius, "the size of the class")
    F = check_positive("bernstein", bernstein, "the constant of the Bernstein condition")
    L = check_positive("lipschitz", lipschitz, "the Lipschitz constant of the loss")
    lam = check_spectra(spectra)
    s, M = conjugate(p), len(lam)
    # tails[m][h] is the sum of all but the h largest eigenvalues.
    tails = [np.append(np.cumsum(e[::-1])[::-1], 0.0) for e in lam]
    rest = 2.0 * math.sqrt(B * math.e) * D * F * L * M ** (1.0 / s) * s / n

    def value(h: Sequence[int]) -> float:
        left = np.array([t[min(k, len(t) - 1)] for t, k in zip(tails, h, strict=True)])
        a = 4.0 * F**2 * sum(h) / n
        size = float(norm(left, s / 2.0))
        b = 4.0 * F * L * math.sqrt(math.e * s**2 * D**2 / n * size) + rest
        return 0.5 * (a + 2.0 * b + math.sqrt(a * a + 4.0 * a * b))

    if h is not None:
        return value(check_leading(h, M))
    longest = max(len(t) for t in tails)
    return min(value([k] * M) for k in range(longest))


class Decay(NamedTuple):
    """``lambda_j <= d j^(-alpha)`` for all kernels."""

    d: float
    alpha: float


def algebraic_decay(spectra: Sequence[Any]) -> Decay:
    """Decay of spectra, by least squares of log eigenvalue on log rank over their upper halves.

    alpha is the smallest slope, that of the slowest decay, and d the smallest factor with which the
    inequality then holds for every eigenvalue.
    """
    slopes = []
    checked = check_spectra(spectra)
    for lam in checked:
        lam = lam[lam > 1e-12 * lam[0]] if lam[0] > 0 else lam[:0]
        upper = lam[: max(2, len(lam) // 2)]
        if len(upper) >= 2:
            slopes.append(-np.polyfit(np.log(np.arange(1, len(upper) + 1)), np.log(upper), 1)[0])
    if not slopes or min(slopes) <= 1:
        found = f"{min(slopes):.3g}" if slopes else "no spectrum of rank 2"
        raise AssumptionError(
            f"Theorem 4.11 needs spectra that fall faster than 1/j (alpha > 1); got {found}."
        )
    alpha = float(min(slopes))
    d = max(float((e * np.arange(1, len(e) + 1) ** alpha).max()) for e in checked)
    return Decay(d, alpha)


def algebraic_excess_risk(
    decay: tuple[float, float],
    M: int,
    n: int,
    p: float,
    B: float,
    delta: float,
    *,
    radius: float = 1.0,
    bernstein: float = 1.0,
    lipschitz: float = 1.0,
    as_printed: bool = False,
) -> float:
    r"""Theorem 4.11: excess risk for spectra ``lambda_j <= d j^(-alpha)``, p in [1, 2], under (U).

    .. math::

        \min_{t \in [p, 2]} 186 \sqrt{\kappa_\alpha} (d D^2 L^2 t^{*2})^{\frac1{1+\alpha}}
          F^{\frac{\alpha-1}{\alpha+1}} M^{1 + \frac2{1+\alpha}(\frac1{t^*} - 1)}
          n^{-\frac\alpha{1+\alpha}}
        + \frac{47 \sqrt B D L M^{1/t^*} t^*}{n} + \frac{(22 \sqrt B D L M^{1/t^*} + 27 F) z}{n}

    with ``z = log(1/delta)`` and ``kappa = alpha / (alpha - 1)``. Printed with ``kappa = (3 -
    alpha) / (1 - alpha)``, negative for alpha below 3, and with B in place of its root after 22.

    Examples
    --------
    >>> from multikernel.bounds import algebraic_excess_risk
    >>> round(algebraic_excess_risk((1.0, 2.0), M=16, n=10**6, p=1.0, B=1.0, delta=0.05), 6)
    0.255407
    """
    pair = check_items("decay", decay, "two numbers")
    if len(pair) != 2:
        raise AssumptionError(f"decay must be the pair (d, alpha); got {len(pair)} entries.")
    d = check_positive("d of decay", pair[0], "the factor of the spectral decay")
    alpha = check_number("alpha of decay", pair[1], low=1.0, why="Theorem 4.11 needs alpha > 1")
    p = check_exponent("p", p, "Theorem 4.11")
    M, n, delta = check_count("M", M), check_count("n", n), check_delta(delta)
    B = check_bounded("B", B)
    D = check_positive("radius", radius, "the size of the class")
    F = check_positive("bernstein", bernstein, "the constant of the Bernstein condition")
    L = check_positive("lipschitz", lipschitz, "the Lipschitz constant of the loss")
    kappa = (3.0 - alpha) / (1.0 - alpha) if as_printed else alpha / (alpha - 1.0)
    if kappa < 0:
        raise AssumptionError(
            f"As printed, Theorem 4.11 takes the root of (3 - alpha)/(1 - alpha) = {kappa:.3g}."
        )
    z = math.log(1.0 / delta)
    width = B if as_printed else math.sqrt(B)

    def value(s: float) -> float:
        lead = 186.0 * math.sqrt(kappa) * (d * D**2 * L**2 * s**2) ** (1.0 / (1.0 + alpha))
        lead *= F ** ((alpha - 1.0) / (alpha + 1.0))
        lead *= M ** (1.0 + 2.0 / (1.0 + alpha) * (1.0 / s - 1.0)) * n ** (-alpha / (1.0 + alpha))
        size = D * L * M ** (1.0 / s)
        return lead + 47.0 * math.sqrt(B) * size * s / n + (22.0 * width * size + 27.0 * F) * z / n

    return smallest(value, 2.0, min(conjugate(p), 2.0 + 2.0 * math.log(M)))[0]
