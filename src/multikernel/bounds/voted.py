"""Voted kernels: complexity of one kernel's functions, and the risk of a vote over them.

``H_k = {x -> ±K_k(x, x')}`` holds the functions a voted classifier combines, one or two for each
kernel and point x'. Its empirical Rademacher complexity on m points is

    (1/m) E_sigma sup_x' |sum_i sigma_i K_k(x_i, x')|.                                         (3)

Lemmas 3 to 6 bound it, :func:`empirical_complexity` computes it, and Theorems 1 and 2 turn the
complexities of the kernels that vote into a bound on the risk of the vote. Formulas: Cortes, Goyal,
Kuznetsov & Mohri, *Kernel Extraction via Voted Risk Minimization*, sections 4 and 6, appendix A.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_count,
    check_delta,
    check_finite,
    check_margin,
    check_nonnegative,
    check_number,
    check_positive,
    check_probability,
    check_vector,
)
from ..problem.complexity import degree_penalty
from .montecarlo import Estimate, average

# -- complexity of H_k ----------------------------------------------------------------------------


def degree_complexity(degree: int, n_features: int, kappa: float, m: int) -> float:
    """``12 kappa^2 sqrt(pi d_k / m)``, ``d_k = C(N + k, k)``, for ``(x.z + 1)^k`` (Lemma 4)."""
    m = check_count("m", m)
    return 12.0 * degree_penalty(degree, n_features, kappa) * math.sqrt(math.pi / m)


def gaussian_complexity(
    gamma: float, distance_complexity: float, m: int, *, as_printed: bool = False
) -> float:
    """``2 gamma R({x -> ||x - x'||^2}) + 1/sqrt(m)`` for ``exp(-gamma ||x - z||^2)`` (Lemma 5).

    The printed ``gamma R`` ignores that the exponential is 1 at distance 0, and the two signs of
    H_k: if all points coincide, it is 0 but the complexity is not. Contraction for each sign, after
    subtracting the function of one fixed x', gives the form here. Only the factor gamma differs
    between the kernels of a family, so ``gamma`` itself can serve as their penalty.

    Parameters
    ----------
    gamma : float
    distance_complexity : float
        ``(1/m) E sup_x' sum_i sigma_i ||x_i - x'||^2``.
    m : int
    as_printed : bool, default=False
        The printed statement.
    """
    gamma = check_positive("gamma", gamma, "the width of a Gaussian kernel")
    m = check_count("m", m)
    R = check_nonnegative("distance_complexity", distance_complexity, "a Rademacher average")
    return gamma * R if as_printed else 2.0 * gamma * R + 1.0 / math.sqrt(m)


def sigmoid_complexity(
    a: float, b: float, linear_complexity: float, m: int, *, as_printed: bool = False
) -> float:
    """``2 |a| R({x -> x.x'}) + |tanh b| / sqrt(m)`` for ``tanh(a x.z + b)`` (Lemma 6).

    Printed as ``4 |a| R``, which is 0 if all points lie at the origin, although the complexity is
    that of the constants ``±tanh b``. Contraction around ``tanh b`` gives the form here.

    Parameters
    ----------
    a, b : float
    linear_complexity : float
        ``(1/m) E sup_x' |sum_i sigma_i x_i.x'|``.
    m : int
    as_printed : bool, default=False
        The printed statement.
    """
    m = check_count("m", m)
    R = check_nonnegative("linear_complexity", linear_complexity, "a Rademacher average")
    a, b = check_number("a", a), check_number("b", b)
    if as_printed:
        return 4.0 * abs(a) * R
    return 2.0 * abs(a) * R + abs(math.tanh(b)) / math.sqrt(m)


def empirical_complexity(K: Any, *, n_draws: int = 2000, random_state: Any = 0) -> Estimate:
    """``(1/m) E max_j |sum_i sigma_i K[i, j]|``: equation (3) with x' in the sample.

    For any kernel, positive semidefinite or not; K need not even be square, because its columns are
    the functions. With at most 12 samples all signs are enumerated.

    Parameters
    ----------
    K : array of shape (m, n_functions)
        Column j is the function ``K(., x_j)`` on the sample.
    n_draws : int, default=2000
    random_state : int or Generator, default=0

    Returns
    -------
    Estimate
        With ``value``, ``standard_error``, ``interval(confidence)`` and ``upper(delta)``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import empirical_complexity
    >>> print(empirical_complexity(np.eye(8)))
    0.125 (exact)
    """
    K = check_finite("K", K, 2, "a matrix, samples by functions")
    m = K.shape[0]
    scale = float(np.linalg.norm(np.abs(K).max(axis=1))) / m
    return average(
        lambda signs: np.abs(K.T @ signs).max(axis=0) / m,
        m,
        scale,
        n_draws=n_draws,
        random_state=random_state,
    )


def expected_complexity(empirical: float, m: int, delta: float, bound: float = 1.0) -> float:
    """``R_m <= R_S + b sqrt(2 log(1/delta) / m)``, except with probability delta over samples.

    Theorems 1 and 2 need the expectation of the complexity over samples. Replacing one point
    changes the empirical complexity by at most ``2 b / m`` if ``|h| <= b``.
    """
    m, delta = check_count("m", m), check_delta(delta)
    empirical = check_nonnegative("empirical", empirical, "a Rademacher average")
    bound = check_positive("bound", bound, "it bounds |h|")
    return empirical + bound * math.sqrt(2.0 * math.log(1.0 / delta) / m)


# -- risk of a vote -------------------------------------------------------------------------------


def voted_risk(
    margin_error: float,
    margin: float,
    weights: Any,
    complexities: Any,
    m: int,
    delta: float,
    *,
    bound: float = 1.0,
    as_printed: bool = False,
) -> float:
    r"""Theorem 1: the risk of a vote ``f = sum_t alpha_t h_t`` in the convex hull of all H_k.

    .. math::

        R(f) \le \hat R_\rho(f) + \frac4\rho \sum_k \alpha_k R_m(H_k)
            + \frac2\rho \sqrt{\frac{\log p}{m}}
            + \sqrt{n \frac{\log p}{m} + \frac{\log(2/\delta)}{2m}},
        \qquad n = \Bigl\lceil \frac{16}{\rho^2} \log\frac{\rho^2 m}{\log p} \Bigr\rceil

    with probability at least ``1 - delta``, for all f at once, at one margin fixed beforehand.
    Printed with 4 in place of 16 (and with the root closed too early). The proof samples n
    functions g from f and passes from margin 0 of f to ``rho/2`` of g, over a ramp to ``rho`` of g,
    and back to ``3 rho/2`` of f, which the statement then calls rho. Going to ``rho/4`` and ``3
    rho/4`` instead keeps every term but n, whose factor becomes 16.

    Parameters
    ----------
    margin_error : float
        Part of the sample with ``y f(x) <= margin``.
    margin : float
    weights : array of shape (p,)
        Total weight of each kernel's functions; their sum is at most one. (Divide f, and with it
        the margin, by ``||alpha||_1`` first.)
    complexities : array of shape (p,)
        ``R_m(H_k)``, or bounds on it; see :func:`expected_complexity` for empirical ones.
    m : int
    delta : float
    bound : float, default=1.0
        ``|h| <= bound`` for all functions. The theorem is for 1; other values are rescaled to it.
    as_printed : bool, default=False
        The printed constant.

    Examples
    --------
    >>> from multikernel.bounds import voted_risk
    >>> round(voted_risk(0.01, 0.5, [0.7, 0.3], [1e-4, 1e-3], m=10**6, delta=0.05), 4)
    0.0402
    """
    rho, alpha, R, log_p = _vote(margin_error, margin, weights, complexities, bound)
    m, delta = check_count("m", m), check_delta(delta)
    factor = 4.0 if as_printed else 16.0
    n = _sampled(factor, rho, rho**2 * m / log_p)
    deviation = math.sqrt(n * log_p / m + math.log(2.0 / delta) / (2.0 * m))
    return (
        margin_error + 4.0 / rho * float(alpha @ R) + 2.0 / rho * math.sqrt(log_p / m) + deviation
    )


def local_voted_risk(
    margin_error: float,
    margin: float,
    weights: Any,
    complexities: Any,
    m: int,
    delta: float,
    *,
    K: float = 2.0,
    bound: float = 1.0,
    as_printed: bool = False,
) -> float:
    r"""Theorem 2: rates of order log(m)/m, at the price of a factor on the margin error.

    .. math::

        R(f) \le \frac{K}{K-1} \hat R_\rho(f) + \frac{12 K}{\rho} \sum_k \alpha_k R_m(H_k)
          + \frac{40 K \log p}{\rho^2 m} + c_K \frac{(2n-1)\log p + \log(2/\delta)}{m},
        \qquad n = \Bigl\lceil \frac{32}{\rho^2}
          \log \frac{\rho^2 (1 + \frac{K}{K-1}) m}{40 K \log p} \Bigr\rceil

    with ``c_K = max(5 K, 2 K^2 + 14 K / 3)``. Printed are ``6 K / rho``, ``8 / rho^2``, ``n`` for
    ``2n - 1`` and ``5 K``: the proof's own constant is ``2 K^2 + 14 K / 3``, its union bound is
    over ``p^(2n-1)``, its ramp has slope ``2/rho`` and its margins are those of :func:`voted_risk`.
    The step that equates the complexity of the star-shaped hull of the losses with that of the
    losses is taken from the paper.

    Parameters
    ----------
    margin_error, margin, weights, complexities, m, delta, bound
        As in :func:`voted_risk`; the complexities may be local ones.
    K : float, default=2.0
        Above 1.
    as_printed : bool, default=False
        The printed constants.
    """
    rho, alpha, R, log_p = _vote(margin_error, margin, weights, complexities, bound)
    m, delta = check_count("m", m), check_delta(delta)
    K = check_number("K", K, low=1.0, why="Theorem 2 holds for K > 1")
    ratio = K / (K - 1.0)
    inside = rho**2 * (1.0 + ratio) * m / (40.0 * K * log_p)
    first = ratio * margin_error + 40.0 * K * log_p / m / rho / rho
    confidence = math.log(2.0 / delta)
    if as_printed:
        n = _sampled(8.0, rho, inside)
        return first + 6.0 * K / rho * float(alpha @ R) + 5.0 * K * (n * log_p + confidence) / m
    n = _sampled(32.0, rho, inside)
    c = max(5.0 * K, 2.0 * K**2 + 14.0 * K / 3.0)
    complexity = 12.0 * K / rho * float(alpha @ R)
    return first + complexity + c * ((2 * n - 1) * log_p + confidence) / m


def _sampled(factor: float, rho: float, inside: float) -> int:
    """``ceil(factor/rho^2 log(inside))``, at least 1: number of functions the proof samples."""
    return max(1, math.ceil(factor / rho**2 * math.log(inside))) if inside > 1 else 1


def _vote(
    margin_error: float, margin: float, weights: Any, complexities: Any, bound: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    check_probability("margin_error", margin_error)
    bound = check_positive("bound", bound, "it bounds |h|")
    rho = check_margin(margin) / bound
    alpha = check_vector("weights", weights, "one entry per kernel")
    what = "one Rademacher complexity per kernel as in weights"
    R = check_vector("complexities", complexities, what, length=len(alpha), negative=False)
    if len(alpha) < 2:
        raise AssumptionError(
            "The theorem is about weights of p > 1 families of functions (it divides by log p); "
            f"got p = {len(alpha)}. Use margin_bound for one kernel."
        )
    if alpha.min() < 0 or alpha.sum() > 1 + 1e-9:
        raise AssumptionError(
            "The vote must lie in the convex hull: weights must be non-negative and sum to at "
            f"most 1; got minimum {alpha.min():.3g}, sum {alpha.sum():.6g}. Divide f and the "
            "margin by it."
        )
    return rho, alpha, R / bound, math.log(len(alpha))
