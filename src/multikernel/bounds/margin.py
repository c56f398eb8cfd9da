"""Margin bounds: from the complexity of a class to the error of every function in it.

With probability at least ``1 - delta`` over samples of m points, for all h of the class at once and
a margin rho that was fixed beforehand,

    R(h) <= R_rho(h) + (2/rho) R_S(H) + 3 sqrt(log(2/delta) / (2m)),

where ``R_rho`` averages the ramp loss ``min(1, max(0, 1 - y h(x) / rho))``. Rostamizadeh 2010,
section 2.4; earlier bounds of sections 2.1 and 2.2 are at the end, for comparison.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_delta,
    check_margin,
    check_nonnegative,
    check_number,
    check_positive,
    check_probability,
    check_traces,
    check_vector,
)
from .rademacher import (
    rademacher_l1,
    rademacher_l1_uniform,
    rademacher_lq,
    rademacher_lq_uniform,
)


def ramp_risk(margins: Any, margin: float) -> float:
    """Mean ramp loss ``min(1, max(0, 1 - m_i / rho))`` of margins ``m_i = y_i h(x_i)``.

    Examples
    --------
    >>> from multikernel.bounds import ramp_risk
    >>> ramp_risk([2.0, 0.5, -1.0, 0.25], margin=1.0)
    0.5625
    """
    values, margin = _margins(margins), check_margin(margin)
    return float((1.0 - np.clip(values, 0.0, margin) / margin).mean())


def margin_error(margins: Any, margin: float) -> float:
    """Share of the sample with a margin of at most rho; rho = 0 gives the training error."""
    margin = check_nonnegative("margin", margin, "a margin")
    return float((_margins(margins) <= margin).mean())


def confidence_term(m: int, delta: float) -> float:
    """``3 sqrt(log(2/delta) / (2m))``: deviation of loss and complexity from expectations."""
    return 3.0 * math.sqrt(math.log(2.0 / check_delta(delta)) / (2.0 * check_count("m", m)))


def margin_bound(risk: float, complexity: float, m: int, margin: float, delta: float) -> float:
    """``R_rho + (2/rho) R_S(H) + 3 sqrt(log(2/delta)/(2m))``, for one margin fixed beforehand.

    Parameters
    ----------
    risk : float
        Empirical ramp loss at the margin, or the margin error, which is larger.
    complexity : float
        Empirical Rademacher complexity of the class, or a bound on it.
    m, margin, delta

    Examples
    --------
    >>> from multikernel.bounds import margin_bound
    >>> round(margin_bound(0.05, 0.01, m=10_000, margin=0.5, delta=0.05), 4)
    0.1307
    """
    check_probability("risk", risk)
    check_nonnegative("complexity", complexity, "a Rademacher average")
    return risk + 2.0 / check_margin(margin) * complexity + confidence_term(m, delta)


def margin_bound_l1(
    risk: float,
    m: int,
    margin: float,
    delta: float,
    *,
    traces: Any = None,
    p: int | None = None,
    R2: float | None = None,
    sharp: bool = False,
) -> float:
    """Corollary 2.1, for convex combinations of p kernels: of order ``sqrt(log p)``.

    Give the ``traces``, or ``p`` and ``R2 >= K_k(x, x)``.
    """
    p, R2 = _p_and_bound(p, R2, traces)
    if traces is not None:
        complexity = rademacher_l1(traces, m, sharp=sharp)
    else:
        complexity = rademacher_l1_uniform(p, m, R2, sharp=sharp)
    return margin_bound(risk, complexity, m, margin, delta)


def margin_bound_lq(
    risk: float,
    m: int,
    margin: float,
    delta: float,
    q: float,
    *,
    traces: Any = None,
    p: int | None = None,
    R2: float | None = None,
    sharp: bool = False,
) -> float:
    """Corollary 2.2, for kernel weights of Lq norm one: of order ``p^(1/(2r))``.

    Give the ``traces``, or ``p`` and ``R2 >= K_k(x, x)``.
    """
    p, R2 = _p_and_bound(p, R2, traces)
    if traces is not None:
        complexity = rademacher_lq(traces, m, q, sharp=sharp)
    else:
        complexity = rademacher_lq_uniform(p, m, q, R2, sharp=sharp)
    return margin_bound(risk, complexity, m, margin, delta)


def uniform_margin_bound(
    risk: float,
    complexity: float,
    m: int,
    margin: float,
    delta: float,
    largest: float,
    *,
    as_printed: bool = False,
) -> float:
    r"""For all margins in ``(0, largest]`` at once, so the margin can be chosen after seeing the
    data.

    .. math::

        R(h) \le \hat R_\rho(h) + \frac4\rho R_S(H)
            + 3 \sqrt{\frac{\log(2 k (k+1) / \delta)}{2m}},
        \qquad k = 1 + \lfloor \log_2(\text{largest} / \rho) \rfloor

    The bound for one margin, at ``largest / 2^k`` with the share ``delta / (k (k+1))`` of the
    confidence; rounding the margin down costs a factor of at most two. The remark after Corollary
    2.1 prints ``log log_2(4 R / rho) / m``, without a root and with ``2/rho``, added to the bound
    for one margin.

    Parameters
    ----------
    risk, complexity, m, margin, delta
        As in :func:`margin_bound`.
    largest : float
        ``sup |h|``, known beforehand; larger margins are useless.
    as_printed : bool, default=False
    """
    rho = check_margin(margin)
    largest = check_positive("largest", largest, "it bounds |h|")
    if rho > largest:
        raise AssumptionError(
            f"The bound is uniform over margins up to largest = {largest:g}; got margin {rho:g}."
        )
    if as_printed:
        extra = math.log(max(math.log2(4.0 * largest / rho), 1.0)) / check_count("m", m)
        return margin_bound(risk, complexity, m, rho, delta) + extra
    k = 1 + math.floor(math.log2(largest / rho))
    return margin_bound(risk, complexity, m, rho / 2.0, check_delta(delta) / (k * (k + 1)))


def grid_share(j: int) -> float:
    """The share of delta for the j-th point of a grid, j any integer; the shares sum to one.

    A bound that holds at every point of the grid with its own share of delta holds at all of them
    at once, so the best can be used. ``2 / (3 (|j|+1) (|j|+2))``.
    """
    place = abs(check_number("j", j, why="an integer"))
    if place != int(place):
        raise AssumptionError(f"j must be an integer, the place on a grid; got {j!r}.")
    return 2.0 / (3.0 * (place + 1.0) * (place + 2.0))


# -- earlier bounds, for comparison ---------------------------------------------------------------


def srebro_ben_david(p: int, m: int, margin: float, R: float = 1.0) -> float:
    """Complexity term of Srebro & Ben-David 2006 for p kernels, as section 2.2 states it.

    ``sqrt(8 (2 + p log(128 e m^3 R^2 / (rho^2 p)) + 256 (R/rho)^2 log(rho e m / (8R))
    log(128 m R^2 / rho^2)) / m)``. It is vacuous if there are more kernels than samples.

    Examples
    --------
    >>> from multikernel.bounds import srebro_ben_david
    >>> round(srebro_ben_david(p=10, m=36_000, margin=0.2), 3)
    14.355
    """
    p, m = check_count("p", p), check_count("m", m)
    rho, R = check_margin(margin), check_bounded("R", R)
    ratio = (R / rho) ** 2
    inside = rho * math.e * m / (8.0 * R)
    if inside <= 1:
        raise AssumptionError(
            "The bound of Srebro and Ben-David needs rho e m > 8 R, because it takes the "
            f"logarithm of the ratio (rho is the margin); got rho e m / (8 R) = {inside:.3g}. Use "
            "more samples or a larger margin."
        )
    size = p * math.log(128.0 * math.e * m**3 * ratio / p)
    cover = 256.0 * ratio * math.log(inside) * math.log(128.0 * m * ratio)
    return math.sqrt(8.0 * (2.0 + size + cover) / m)


def lanckriet_vacuous(traces: Any, spectral_norms: Any, m: int, margin: float) -> float:
    """Bound (2.2) of Lanckriet et al., constant one: ``sqrt(max Tr max(||K||/Tr) / rho^2 / m)``.

    Srebro and Ben-David showed that it always exceeds one for a positive margin. It is included for
    comparison only.
    """
    u = check_traces(traces)
    what = "one entry per kernel as in traces"
    s = check_vector("spectral_norms", spectral_norms, what, length=len(u), negative=False)
    m = check_count("m", m)
    if u.min() == 0:
        raise AssumptionError("The bound divides by the traces, and one of them is 0.")
    wrong = (s > u * (1 + 1e-9)) | (s < u / m * (1 - 1e-9))
    if np.any(wrong):
        k = int(np.argmax(wrong))
        raise AssumptionError(
            "spectral_norms must lie between the traces over m and the traces, as the kernels are "
            f"positive semidefinite; kernel {k} has the norm {s[k]:.6g} and the trace {u[k]:.6g}."
        )
    size = float(u.max()) * float((s / u).max())
    return math.sqrt(size / check_margin(margin) ** 2 / m)


def lanckriet_multiplicative(p: int, m: int, margin: float, R: float = 1.0) -> float:
    """Bound (2.3), constant one: ``sqrt(p R^2 / (rho^2 m))``; the number of kernels multiplies."""
    ratio = (check_bounded("R", R) / check_margin(margin)) ** 2
    return math.sqrt(check_count("p", p) * ratio / check_count("m", m))


def ying_campbell(p: int, m: int, margin: float, R: float = 1.0) -> float:
    """Bound of Ying & Campbell 2009, constant one: ``sqrt(p R^2 log(m) / (rho^2 m))``."""
    log_m = math.log(check_count("m", m, least=2))
    return lanckriet_multiplicative(p, m, margin, R) * math.sqrt(log_m)


def _margins(margins: Any) -> np.ndarray:
    return check_vector("margins", margins, "one entry per point")


def _p_and_bound(p: int | None, R2: float | None, traces: Any) -> tuple[int, float]:
    """Check p and R2; both are needed if there are no traces."""
    p = None if p is None else check_count("p", p)
    R2 = None if R2 is None else check_positive("R2", R2, "it bounds K(x, x)")
    if traces is None and (p is None or R2 is None):
        raise AssumptionError(
            "The complexity follows from the traces of the kernels, or from their number p and a "
            "bound R2 on K(x, x); give traces=..., or p=... and R2=...."
        )
    return p or 0, R2 or 0.0
