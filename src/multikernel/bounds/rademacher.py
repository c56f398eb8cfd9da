"""Rademacher complexity of classes with a learned kernel (Rostamizadeh 2010, section 2.4).

    H_p^q = { x -> w.Phi_K(x) :  K = sum_k mu_k K_k,  mu >= 0,  ||mu||_q <= 1,  ||w|| <= 1 }

On a sample of m points, with ``1/q + 1/r = 1``, its empirical complexity is exactly (Prop. 2.5)

    R_S(H_p^q) = (1/m) E_sigma sqrt(||u_sigma||_r),     u_sigma,k = sigma' K_k sigma,

which :func:`rademacher_lq_exact` computes and the other functions bound from the traces alone. In
Kloft's terms H_p^q is the ball of the block norm ``p = 2q/(1+q)``: the same formula with ``r =
p*/2`` (:mod:`multikernel.bounds.blocknorm`). Classes of another radius are multiples of these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

from ..grams.protocol import Grams
from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_finite,
    check_matrices,
    check_nonnegative,
    check_norm,
    check_number,
    check_positive,
    check_trace,
    check_traces,
)
from .montecarlo import Estimate, average

#: The combinatorial constant of Lemma 2.1.
ETA_0 = 23.0 / 22.0
#: Largest sample for :func:`rademacher_lower_l1`, whose time grows with sqrt(m): seconds at this m.
LARGEST_SAMPLE = 10**12


def conjugate(q: float, name: str = "q") -> float:
    """The exponent r with ``1/q + 1/r = 1``; error messages call q ``name``."""
    q = check_norm(name, q)
    if q == 1.0:
        return math.inf
    return 1.0 if math.isinf(q) else q / (q - 1.0)


def norm(values: np.ndarray, r: float, axis: int = 0) -> np.ndarray:
    """``(sum_k values_k^r)^(1/r)`` of non-negative values; any r > 0 and infinity, no overflow."""
    top = values.max(axis=axis, keepdims=True)
    if math.isinf(r):
        return np.squeeze(top, axis=axis)
    ratio = np.divide(values, top, out=np.zeros_like(values), where=top > 0)
    total = np.sum(ratio**r, axis=axis, keepdims=True) ** (1.0 / r)
    return np.squeeze(top * total, axis=axis)


# -- the exact value ------------------------------------------------------------------------------


def rademacher_lq_exact(
    kernels: Any, q: float, *, radius: float = 1.0, n_draws: int = 2000, random_state: Any = 0
) -> Estimate:
    """Proposition 2.5: ``(radius/m) E sqrt(||u_sigma||_r)``, for any q from 1 to infinity.

    Parameters
    ----------
    kernels : array of shape (p, m, m), list of matrices, or Grams
        Positive semidefinite. With :class:`~multikernel.grams.protocol.Grams` two passes are
        enough, and no matrix is formed.
    q : float
        Exponent of the norm on the kernel weights; 1 for convex combinations.
    radius : float, default=1.0
        Bound on ``||w||``, times the root of a bound on ``||mu||_q`` other than one.
    n_draws : int, default=2000
    random_state : int or Generator, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import rademacher_lq_exact
    >>> x = np.array([-1.5, -0.5, 0.0, 0.5, 2.0])
    >>> kernels = [np.outer(x, x), np.exp(-(x[:, None] - x) ** 2), (np.outer(x, x) + 1) ** 2]
    >>> round(rademacher_lq_exact(kernels, q=1).value, 10)
    1.2402934918
    """
    return mixed_norm_average(kernels, conjugate(q), radius, n_draws, random_state)


def mixed_norm_average(
    kernels: Any, r: float, radius: float, n_draws: int, random_state: Any
) -> Estimate:
    """``(radius/n) E sqrt(||(sigma'K_k sigma)_k||_r)``; r < 1 corresponds to Kloft's p > 2."""
    radius = check_positive("radius", radius, "the size of the class")
    grams = as_forms(kernels)
    n = grams.n
    scale = float(np.sqrt(norm(grams.diagonals(), r).sum())) / n

    def draws(signs: np.ndarray) -> np.ndarray:
        return np.sqrt(norm(grams.forms(signs), r)) / n

    found = average(draws, n, scale, n_draws=n_draws, random_state=random_state)
    return found.scaled(radius)


class Forms:
    """Diagonals and quadratic forms of given matrices."""

    def __init__(self, kernels: Any) -> None:
        self.K = check_matrices("kernels", kernels)
        self.n = self.K.shape[1]

    def diagonals(self) -> np.ndarray:
        return not_negative(np.diagonal(self.K, axis1=1, axis2=2))

    def forms(self, V: np.ndarray) -> np.ndarray:
        return not_negative(np.stack([np.einsum("is,is->s", V, K @ V) for K in self.K]))


class GramForms:
    """Diagonals and quadratic forms of a bank on a sample, through passes over its kernels."""

    def __init__(self, grams: Grams) -> None:
        self.grams = grams
        self.n = grams.n

    def diagonals(self) -> np.ndarray:
        return not_negative(self.grams.diagonals())

    def forms(self, V: np.ndarray) -> np.ndarray:
        return not_negative(self.grams.quadratic_forms(V))


def as_forms(kernels: Any) -> Forms | GramForms:
    return GramForms(kernels) if isinstance(kernels, Grams) else Forms(kernels)


def not_negative(values: np.ndarray, rounding: np.ndarray | float = 0.0) -> np.ndarray:
    """Clip rounding errors below zero in diagonals or quadratic forms (p, S); refuse larger ones.

    ``rounding`` (p,) is tolerated in any case: if all forms of a kernel should be zero, none is
    large enough to compare with.
    """
    low = values.min(axis=1)
    excess = low + 1e-8 * np.maximum(values.max(axis=1), 0.0) + rounding
    if np.any(excess < 0):
        k = int(np.argmin(excess))
        raise AssumptionError(
            f"The theorem assumes positive semidefinite kernels; kernel {k} has a quadratic form "
            f"of {low[k]:.3g}."
        )
    return np.maximum(values, 0.0)


# -- bounds from traces ---------------------------------------------------------------------------


def eta(r: int, sharp: bool = False) -> float:
    """The constant of Lemma 2.1: 23/22, or the best one, ``((2r-1)!!)^(1/r) / r``."""
    r = check_count("r", r)
    if not sharp:
        return ETA_0
    # (2r-1)!! = (2r)! / (2^r r!)
    log_factorials = gammaln(2 * r + 1) - r * math.log(2.0) - gammaln(r + 1)
    return math.exp(float(log_factorials) / r) / r


def moment_bound(trace: float, r: int, *, sharp: bool = False) -> float:
    """Lemma 2.1: ``E (sigma'K sigma)^r <= (eta_0 r Tr K)^r``; an equality for r = 1 when sharp."""
    trace = check_trace("trace", trace)
    return (eta(r, sharp) * r * trace) ** r


def rademacher_l1(traces: Any, m: int, *, r: int | None = None, sharp: bool = False) -> float:
    """Theorem 2.5: ``sqrt(eta_0 r ||u||_r) / m`` for convex combinations, any integer r >= 1.

    Parameters
    ----------
    traces : array of shape (p,)
        ``u_k = Tr K_k``.
    m : int
    r : int or None, default=None
        None takes the best one: the bound holds for every r, so the choice costs nothing.
    sharp : bool, default=False
        The best constant in place of 23/22.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_l1
    >>> round(rademacher_l1([6.75, 5, 39.6875], m=5, r=2), 10)
    1.8419702421
    """
    u, m = check_traces(traces), check_count("m", m)
    # The best real r is the entropy of weights u^r, at most log p; sharp constants shift it a bit.
    candidates = range(1, 2 * math.ceil(math.log(len(u))) + 5) if r is None else [r]
    return min(math.sqrt(eta(r, sharp) * r * float(norm(u, r))) / m for r in candidates)


def rademacher_l1_uniform(p: int, m: int, R2: float, *, sharp: bool = False) -> float:
    """Theorem 2.6: ``sqrt(eta_0 e ceil(log p) R^2 / m)`` when ``K_k(x, x) <= R^2``, p > 1.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_l1_uniform
    >>> round(rademacher_l1_uniform(p=10, m=1000, R2=1.0), 4)
    0.0923
    """
    p, m = check_count("p", p, least=2), check_count("m", m)
    r = math.ceil(math.log(p))
    return math.sqrt(eta(r, sharp) * math.e * r * check_bounded("R2", R2) / m)


def rademacher_l1_traces(traces: Any, m: int, *, as_printed: bool = False) -> float:
    """Theorem 2.6 with the largest trace: ``sqrt(eta_0 e ceil(log p) ||u||_inf) / m``.

    Printed with m inside the root, which is too large by ``sqrt(m)``.
    """
    u, m = check_traces(traces), check_count("m", m)
    p = check_count("the number of traces", len(u), least=2)
    value = math.sqrt(ETA_0 * math.e * math.ceil(math.log(p)) * float(u.max()))
    return value / math.sqrt(m) if as_printed else value / m


def rademacher_lq(traces: Any, m: int, q: float, *, sharp: bool = False) -> float:
    """Theorem 2.7: ``sqrt(eta_0 r ||u||_r) / m`` for the Lq class, r the conjugate of q.

    The theorem needs an integer r (q = 2, 3/2, 4/3, ...). Otherwise the norm is bounded by that of
    the best integer ``s >= r``, times ``p^(1/r - 1/s)``. q = 1 is :func:`rademacher_l1`.
    """
    u, m = check_traces(traces), check_count("m", m)
    r = conjugate(q)
    if math.isinf(r):
        return rademacher_l1(u, m, sharp=sharp)
    p = len(u)
    whole = round(r)
    if abs(r - whole) <= 1e-9 * r:
        return math.sqrt(eta(whole, sharp) * whole * float(norm(u, whole))) / m
    first = math.ceil(r)
    last = first + 2 * math.ceil(math.log(max(p, 2))) + 5
    return min(
        math.sqrt(eta(s, sharp) * s * p ** (1.0 / r - 1.0 / s) * float(norm(u, s))) / m
        for s in range(first, last)
    )


def rademacher_lq_uniform(p: int, m: int, q: float, R2: float, *, sharp: bool = False) -> float:
    """Theorem 2.8: ``sqrt(eta_0 r p^(1/r) R^2 / m)`` when ``K_k(x, x) <= R^2``; q = 2: ``p^(1/4)``.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_lq_uniform
    >>> round(rademacher_lq_uniform(p=16, m=1000, q=2, R2=1.0), 4)
    0.0915
    """
    p, m, r = check_count("p", p), check_count("m", m), conjugate(q)
    if math.isinf(r):
        return rademacher_l1_uniform(p, m, R2, sharp=sharp)
    s = math.ceil(r * (1 - 1e-9))  # the integer that Theorem 2.7 compares with
    return math.sqrt(eta(s, sharp) * s * p ** (1.0 / r) * check_bounded("R2", R2) / m)


# -- lower bounds ---------------------------------------------------------------------------------


def rademacher_lower(traces: Any, m: int, q: float) -> float:
    """``sqrt(||u||_r / 2) / m <= R_S(H_p^q)``, on any sample.

    Kahane's inequality with its best constant, ``E ||S|| >= sqrt(E ||S||^2 / 2)``, and Jensen's.
    """
    u, m = check_traces(traces), check_count("m", m)
    return math.sqrt(0.5 * float(norm(u, conjugate(q)))) / m


def rademacher_lower_l1(p: int, m: int) -> float:
    """The L1 class on ``{-1, 1}^p`` with one kernel per coordinate: ``(1/m) E max_k |sum_i ±1|``.

    Exact for the uniform distribution, where the coordinates are independent. It grows like
    ``sqrt(2 log(2p) / m)``: no bound can do without ``sqrt(log p / m)`` (section 2.2).
    """
    p, m = check_count("p", p), check_count("m", m)
    if m > LARGEST_SAMPLE:
        raise AssumptionError(
            f"rademacher_lower_l1 sums over about sqrt(m) terms: m must be at most "
            f"{LARGEST_SAMPLE:g}; got {m!r}."
        )
    # |sum of m signs| = |m - 2B| for a binomial B; E max = sum_t P(max >= t). By Hoeffding's
    # inequality the omitted terms sum to less than exp(-40).
    far = math.sqrt(2.0 * m * (math.log(2.0 * p * m) + 40.0))
    t = np.arange(1, min(m, math.ceil(far)) + 1)
    below = binom.cdf(np.ceil((m + t) / 2) - 1, m, 0.5) - binom.cdf(np.floor((m - t) / 2), m, 0.5)
    return float(np.sum(-np.expm1(p * np.log(np.maximum(below, 1e-300))))) / m


def rademacher_equal_kernels(one: float, p: int, q: float) -> float:
    """p copies of a kernel: exactly ``p^(1/(2r))`` times its own complexity (section 2.4.2)."""
    one = check_nonnegative("one", one, "the complexity of one kernel's class")
    r, p = conjugate(q), check_count("p", p)
    return one * (1.0 if math.isinf(r) else p ** (0.5 / r))


# -- linear functions -----------------------------------------------------------------------------


def rademacher_linear(X: float, W: float, m: int, r: int, *, sharp: bool = False) -> float:
    """Theorem 2.9: ``X W sqrt(eta_0 r / (2m))`` for ``||w||_q <= W``, ``||x||_r <= X``, r even.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_linear
    >>> round(rademacher_linear(X=1.0, W=1.0, m=10, r=4), 3)
    0.457
    """
    r, m = check_count("r", r, least=2), check_count("m", m)
    if r % 2:
        raise AssumptionError(f"Theorem 2.9 is for even r; got r = {r}.")
    X = check_positive("X", X, "it bounds ||x||_r")
    W = check_positive("W", W, "the size of the class")
    return X * W * math.sqrt(eta(r // 2, sharp) * r / (2.0 * m))


def rademacher_linear_kakade(X: float, W: float, m: int, r: float) -> float:
    """The bound of Kakade, Sridharan & Tewari: ``X W sqrt((r - 1) / m)``, any real r >= 2.

    For comparison with :func:`rademacher_linear`, which is smaller for every even r above 2. At
    r = 2 this bound is smaller, or equal if the other one uses its best constant.

    Examples
    --------
    >>> from multikernel.bounds import rademacher_linear_kakade
    >>> round(rademacher_linear_kakade(X=1.0, W=1.0, m=10, r=4), 3)
    0.548
    """
    m = check_count("m", m)
    X = check_positive("X", X, "it bounds ||x||_r")
    W = check_positive("W", W, "the size of the class")
    r = check_number("r", r, low=2.0, closed="left", why="the conjugate of q in (1, 2]")
    return X * W * math.sqrt((r - 1.0) / m)


def rademacher_linear_exact(
    points: Any, q: float, W: float = 1.0, *, n_draws: int = 2000, random_state: Any = 0
) -> Estimate:
    """``(W/m) E ||sum_i sigma_i x_i||_r``, the complexity of ``{x -> w.x : ||w||_q <= W}``."""
    A = check_finite("points", points, 2, "an array of shape (m, d)")
    W = check_positive("W", W, "the size of the class")
    r, m = conjugate(q), len(A)
    scale = float(np.linalg.norm(norm(np.abs(A), r, axis=1))) / m
    return average(
        lambda signs: norm(np.abs(A.T @ signs), r) / m,
        m,
        scale,
        n_draws=n_draws,
        random_state=random_state,
    ).scaled(W)
