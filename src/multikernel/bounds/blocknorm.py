"""Global Rademacher complexity of lp-norm multiple kernel learning (Kloft 2011, section 4.1).

    H_p = { x -> <w, phi(x)> :  ||w||_{2,p} = (sum_m ||w_m||^p)^(1/p) <= D },     M kernels

p is the exponent of the *block norm*: p = 1 gives sparse weights and p = 2 the sum of all kernels;
p may exceed 2. ``p*`` is its conjugate, ``1/p + 1/p* = 1``. Complexities are ``(1/n) E sup_f
sum_i sigma_i f(x_i)``, without absolute value. Since H_p lies in H_t for t >= p, every bound is a
minimum over t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_delta,
    check_nonnegative,
    check_norm,
    check_positive,
    check_probability,
    check_trace,
    check_traces,
    check_vector,
)
from .montecarlo import Estimate
from .rademacher import conjugate, mixed_norm_average, norm


def block_norm(block_norms: Any, p: float) -> float:
    """``||w||_{2,p}`` from the norms ``||w_m||`` of the blocks."""
    v = np.abs(check_vector("block_norms", block_norms, "one entry per kernel"))
    return float(norm(v, check_norm("p", p)))


def rademacher_block_exact(
    kernels: Any, p: float, *, radius: float = 1.0, n_draws: int = 2000, random_state: Any = 0
) -> Estimate:
    """``(D/n) E (sum_m (sigma'K_m sigma)^(p*/2))^(1/p*)``: the complexity of H_p, exactly.

    Parameters
    ----------
    kernels : array of shape (M, n, n), list of matrices, or Grams
    p : float
        Exponent of the block norm, from 1 to infinity.
    radius : float, default=1.0
        D.
    n_draws, random_state
        As in :func:`rademacher_lq_exact`.
    """
    s = conjugate(p, "p")
    return mixed_norm_average(kernels, s / 2.0, radius, n_draws, random_state)


# -- the bounds -----------------------------------------------------------------------------------


def rademacher_block(
    traces: Any, n: int, p: float, *, radius: float = 1.0, sharp: bool = False
) -> float:
    """Proposition 4.2: ``min_{t >= p} D sqrt((t*/n) ||(Tr K_m / n)_m||_{t*/2})``.

    Parameters
    ----------
    traces : array of shape (M,)
    n : int
    p : float
        Exponent of the block norm, from 1 to infinity.
    radius : float, default=1.0
        D.
    sharp : bool, default=False
        The constant ``max(1, t* - 1)`` of Lemma 4.1 in place of ``t*``.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_block
    >>> round(rademacher_block([100.0] * 50, n=100, p=4 / 3), 6)
    0.53183
    """
    a, n = check_traces(traces) / check_count("n", n), check_count("n", n)
    radius = check_positive("radius", radius, "the size of the class")

    def square(s: float) -> float:
        constant = max(1.0, s - 1.0) if sharp else s
        return constant / n * float(norm(a, s / 2.0))

    # At a stationary point, s = t* is twice the entropy of weights a^(s/2), so at most 2 log M;
    # with the sharp constant it is smaller.
    limit = 2.0 * math.log(len(a)) + (1.0 if sharp else 0.0)
    last = min(conjugate(p, "p"), max(2.0, limit))
    best = smallest(square, 1.0, min(last, 2.0))[0]
    if last > 2:  # two searches, because the sharp constant has a kink at 2
        best = min(best, smallest(square, 2.0, last)[0])
    return radius * math.sqrt(best)


def rademacher_block_l1(
    trace: float, M: int, n: int, *, radius: float = 1.0, as_printed: bool = False
) -> float:
    """Remark after Proposition 4.2, M >= 2 kernels of equal trace: ``(D/n) sqrt(2 e log(M) Tr)``.

    Holds for all p up to ``(2 log M)*``. Printed without the factor 2, but (4.1) gives the factor.
    """
    M, n = check_count("M", M, least=2), check_count("n", n)
    trace = check_trace("trace", trace)
    radius = check_positive("radius", radius, "the size of the class")
    factor = 1.0 if as_printed else 2.0
    return radius / n * math.sqrt(factor * math.e * math.log(M) * trace)


def rademacher_block_cortes(traces: Any, n: int, p: float, *, radius: float = 1.0) -> float:
    """The earlier bound ``(D/n) sqrt((23/22) p* ||Tr K_m||_{p*/2})``; 1 < p <= 2, integer p*."""
    u, n = check_traces(traces), check_count("n", n)
    radius = check_positive("radius", radius, "the size of the class")
    s = conjugate(p, "p")
    if p > 2 or math.isinf(s) or abs(s - round(s)) > 1e-9 * s:
        raise AssumptionError(
            f"The earlier bound needs 1 < p <= 2 with an integer conjugate p*; got p = {p!r}. Use "
            "rademacher_block."
        )
    return radius / n * math.sqrt(23.0 / 22.0 * s * float(norm(u, s / 2.0)))


def rademacher_block_population(
    traces: Any,
    n: int,
    p: float,
    B: float | None = None,
    *,
    radius: float = 1.0,
    sharp: bool = False,
) -> float:
    """Corollary 4.4: bound on the complexity expected over samples, from ``Tr J_m = E k_m(x, x)``.

    ``min_{t >= p} D t* sqrt((e/n) ||(Tr J_m)_m||_{t*/2}) + sqrt(B e) D M^(1/t*) t* / n``, without
    the last term where t >= 2. (In print, the root covers too much of the last term.)

    Parameters
    ----------
    traces : array of shape (M,)
        ``Tr J_m``, estimated by ``Tr K_m / n``.
    B : float or None
        ``k_m(x, x) <= B`` for all m; without it only t >= 2 is used.
    sharp : bool, default=False
        ``D sqrt((t*/n) ||.||)`` where t >= 2 (Jensen's inequality).

    Examples
    --------
    >>> from multikernel.bounds import rademacher_block_population
    >>> round(rademacher_block_population([1.634984] * 16, n=1000, p=1, B=1.634984), 5)
    0.51833
    >>> round(rademacher_block_population([1.634984] * 16, n=1000, p=1, sharp=True), 5)
    0.22873
    """
    a, n = check_traces(traces), check_count("n", n)
    radius = check_positive("radius", radius, "the size of the class")
    B = None if B is None else check_bounded("B", B)
    M, last = len(a), conjugate(p, "p")

    def wide(s: float) -> float:  # t >= 2
        square = s if sharp else math.e * s * s
        return math.sqrt(square / n * float(norm(a, s / 2.0)))

    best = smallest(wide, 1.0, min(last, 2.0))[0]
    if last > 2 and B is not None:
        size = math.sqrt(B * math.e)

        def narrow(s: float) -> float:
            first = s * math.sqrt(math.e / n * float(norm(a, s / 2.0)))
            return first + size * M ** (1.0 / s) * s / n

        best = min(best, smallest(narrow, 2.0, min(last, 2.0 + 2.0 * math.log(M)))[0])
    return radius * best


def generalisation_bound(
    risk: float,
    complexity: float,
    n: int,
    delta: float,
    *,
    lipschitz: float = 1.0,
    empirical: bool = False,
) -> float:
    """Theorem A.2: ``risk + 2 L R(H) + sqrt(8 log(2/delta) / n)``, for a loss in [0, 1].

    Parameters
    ----------
    risk : float
        Mean loss on the sample, for example the ramp loss; the hinge loss is not bounded.
    complexity : float
        Rademacher complexity, expected over samples; with ``empirical=True`` that of this sample,
        and the last term is ``3 sqrt(log(2/delta) / (2n))``.
    lipschitz : float, default=1.0
        L, of the loss as a function of the margin.
    """
    n, delta = check_count("n", n), check_delta(delta)
    check_probability("risk", risk)
    check_nonnegative("complexity", complexity, "a Rademacher average")
    L = check_positive("lipschitz", lipschitz, "the Lipschitz constant of the loss")
    log = math.log(2.0 / delta)
    deviation = 3.0 * math.sqrt(log / (2 * n)) if empirical else math.sqrt(8.0 * log / n)
    return risk + 2.0 * L * complexity + deviation


def smallest(
    function: Callable[[float], float], low: float, high: float, points: int = 65
) -> tuple[float, float]:
    """Minimum and minimiser on an interval: a grid, then a search around its best point.

    Any point of the interval gives a valid bound, so missing the minimum only loosens the bound.
    """
    if not high > low:
        return function(low), low
    grid = np.linspace(low, high, points)
    values = [function(float(s)) for s in grid]
    i = int(np.argmin(values))
    around = (float(grid[max(i - 1, 0)]), float(grid[min(i + 1, points - 1)]))
    found = minimize_scalar(function, bounds=around, method="bounded", options={"xatol": 1e-10})
    if float(found.fun) < values[i]:
        return float(found.fun), float(found.x)
    return values[i], float(grid[i])
