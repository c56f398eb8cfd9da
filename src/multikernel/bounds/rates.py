"""Rates of the excess risk of lp-norm multiple kernel learning, without constants.

How the bounds of :mod:`.excess` grow with the number M of kernels, the number n of samples, the
exponent p and the radius D of the class, for spectra that fall like ``j^(-alpha)``. They are meant
for comparison with each other, since constant factors are left out. Kloft 2011, section 4.3.1.
"""

from __future__ import annotations

import math

from ..problem.assumptions import (
    AssumptionError,
    check_count,
    check_exponent,
    check_number,
    check_positive,
)
from .rademacher import conjugate


def local_rate(alpha: float, M: int, n: int, p: float, radius: float = 1.0) -> float:
    """(4.22) ``(t* D)^a M^(1 + a (1/t* - 1)) n^(-alpha/(1+alpha))``, ``a = 2/(1+alpha)``."""
    M, n = check_count("M", M), check_count("n", n)
    alpha = check_number("alpha", alpha, low=1.0, why="the decay of the spectra")
    radius = check_positive("radius", radius, "the size of the class")
    s = _best_conjugate(p, M)
    power = 2.0 / (1.0 + alpha)
    lead = (s * radius) ** power * M ** (1.0 + power * (1.0 / s - 1.0))
    return float(lead * n ** (-alpha / (1.0 + alpha)))


def global_rate(M: int, n: int, p: float, radius: float = 1.0) -> float:
    """(4.23) ``t* D M^(1/t*) / sqrt(n)`` at the best t in [p, 2]."""
    M, n = check_count("M", M), check_count("n", n)
    radius = check_positive("radius", radius, "the size of the class")
    s = _best_conjugate(p, M)
    return s * radius * M ** (1.0 / s) / math.sqrt(n)


def sparse_rate(alpha: float, M: int, n: int, radius: float = 1.0) -> float:
    """(4.24): the smaller of both rates for ``p <= (log M)*``, where the best t* is log M.

    ``min(D log(M) / sqrt(n), (D log M)^a M^(1 - a) n^(-alpha/(1+alpha)))``, ``a = 2/(1+alpha)``,
    without the factors e and ``e^a`` that (4.23) and (4.22) have there. The second one, of the
    local analysis, is smaller exactly when ``M / (D log M) <= sqrt(n)``, for every alpha.

    Parameters
    ----------
    alpha : float
        Decay of the spectra, above 1.
    M : int
        Number of kernels, at least 8 so that ``log M >= 2``.
    n : int
    radius : float, default=1.0
        D.

    Examples
    --------
    >>> from multikernel.bounds import sparse_rate
    >>> round(sparse_rate(2.0, M=100, n=10**4), 5), round(sparse_rate(2.0, M=100, n=10**6), 5)
    (0.02768, 0.00128)
    """
    M, n = check_count("M", M, least=8), check_count("n", n)
    alpha = check_number("alpha", alpha, low=1.0, why="the decay of the spectra")
    size = check_positive("radius", radius, "the size of the class") * math.log(M)
    power = 2.0 / (1.0 + alpha)
    local = size**power * M ** (1.0 - power) * n ** (-alpha / (1.0 + alpha))
    return min(size / math.sqrt(n), local)


def rank_one_rate(M: int, n: int, p: float, radius: float = 1.0) -> float:
    """(4.25), alpha to infinity, M functions: ``min(M/n, min_t t* D M^(1/t*) / sqrt(n))``.

    Every kernel has one eigenvalue, so the class holds combinations of M functions. The first rate,
    of the local analysis, does not depend on p and D: it is that of all linear combinations.

    Examples
    --------
    >>> from multikernel.bounds import rank_one_rate
    >>> round(rank_one_rate(M=20, n=10**4, p=1), 4), round(rank_one_rate(M=10**6, n=10**4, p=1), 4)
    (0.002, 0.3755)
    """
    return min(check_count("M", M) / check_count("n", n), global_rate(M, n, p, radius))


def aggregation_rate(M: int, n: int, *, as_printed: bool = False) -> float:
    """Tsybakov's optimal rate of convex aggregation: ``min(M/n, sqrt(log(1 + M/sqrt(n)) / n))``.

    To be compared with :func:`rank_one_rate` at p = 1 and radius 1, which is larger by at most a
    logarithm and turns at the same place, M near ``sqrt(n)``.

    Parameters
    ----------
    M, n : int
        Numbers of functions and of samples.
    as_printed : bool, default=False
        ``log(M / sqrt(n))``, which vanishes where both rates should meet, at ``M = sqrt(n)``, and
        is negative below.

    Examples
    --------
    >>> from multikernel.bounds import aggregation_rate
    >>> round(aggregation_rate(M=20, n=10**4), 4), round(aggregation_rate(M=10**6, n=10**4), 4)
    (0.002, 0.0303)
    """
    M, n = check_count("M", M), check_count("n", n)
    ratio = M / math.sqrt(n)
    if as_printed and ratio <= 1:
        raise AssumptionError(
            f"As printed, the rate takes the root of log(M / sqrt(n)) and needs M > sqrt(n); got "
            f"M = {M} and n = {n}."
        )
    log = math.log(ratio) if as_printed else math.log1p(ratio)
    return min(M / n, math.sqrt(log / n))


def _best_conjugate(p: float, M: int) -> float:
    """``t*`` that makes ``t* M^(1/t*)`` smallest for t in [p, 2]: log M, or the nearest end."""
    p = check_exponent("p", p, "the rates of section 4.3.1")
    return min(conjugate(p), max(2.0, math.log(M)))
