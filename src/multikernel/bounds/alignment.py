"""How close the alignment on a sample is to the true one, and what it implies for the risk.

Cortes, Mohri & Rostamizadeh 2012, sections 4.1 and 4.2; Rostamizadeh 2010, section 2.5. The centred
alignment of a kernel with the target kernel ``K_Y = y y'`` is ``rho = E[K_c K_Yc] / sqrt(E[K_c^2]
E[K_Yc^2])``. On a sample, averages replace expectations and centring uses the sample mean.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..problem.assumptions import (
    PSD_TOLERANCE,
    AssumptionError,
    check_bounded,
    check_count,
    check_delta,
    check_nonnegative,
    check_number,
    check_positive,
    check_psd,
    check_vector,
)

#: Relative amount by which rounding may push alignments, variances and ratios out of their range.
ROUNDING = 1e-9

# -- concentration --------------------------------------------------------------------------------


def product_perturbation(m: int, R2: float = 1.0, R2_other: float = 1.0) -> float:
    """Lemma 18: replacing a point changes ``<K_c, K'_c>/m^2`` by at most ``24 R^2 R'^2 / m``."""
    return (
        24.0 * check_bounded("R2", R2) * check_bounded("R2_other", R2_other) / check_count("m", m)
    )


def product_bias(m: int, R2: float = 1.0, R2_other: float = 1.0, *, sharp: bool = False) -> float:
    """Lemma 19: ``|E <K_c, K'_c>/m^2 - E[K_c K'_c]| <= 18 R^2 R'^2 / m``, or 4 if sharp.

    The printed expansion miscounts two coefficients; :func:`expected_product` is the exact value,
    and 4 follows from it.
    """
    constant = 4.0 if sharp else 18.0
    size = check_bounded("R2", R2) * check_bounded("R2_other", R2_other)
    return constant * size / check_count("m", m)


def expected_product(
    product: float, diagonal_product: float, diagonal: float, diagonal_other: float, m: int
) -> float:
    """``E_S <K_c, K'_c> / m^2``, exactly, from moments of the population-centred kernels.

    Parameters
    ----------
    product : float
        ``E[K_c(x, x') K'_c(x, x')]`` for independent x and x'.
    diagonal_product : float
        ``E[K_c(x, x) K'_c(x, x)]``.
    diagonal, diagonal_other : float
        ``E[K_c(x, x)]``, ``E[K'_c(x, x)]``.
    m : int
    """
    m = check_count("m", m)
    product, diagonal_product, diagonal, diagonal_other = (
        check_nonnegative(name, value, "kernels are positive semidefinite")
        for name, value in (
            ("product", product),
            ("diagonal_product", diagonal_product),
            ("diagonal", diagonal),
            ("diagonal_other", diagonal_other),
        )
    )
    return (
        (m - 1) * (m * m - 2 * m + 2) * product
        + (m - 1) ** 2 * diagonal_product
        + (m - 1) * diagonal * diagonal_other
    ) / m**3


def product_concentration(m: int, delta: float, R2: float = 1.0, R2_other: float = 1.0) -> float:
    """Proposition 11: bound on ``|<K_c, K'_c>/m^2 - E[K_c K'_c]|``, with probability 1 - delta.

    ``18 R^2 R'^2 / m + 24 R^2 R'^2 sqrt(log(2/delta) / (2m))`` for ``K(x, x) <= R^2`` and ``K'(x,
    x) <= R'^2``; for the target kernel ``R'^2 = max y^2``.

    Examples
    --------
    >>> from multikernel.bounds import product_concentration
    >>> round(product_concentration(m=50, delta=0.05), 6)
    4.969549
    """
    m, delta = check_count("m", m), check_delta(delta)
    size = check_bounded("R2", R2) * check_bounded("R2_other", R2_other)
    return 18.0 * size / m + 24.0 * size * math.sqrt(math.log(2.0 / delta) / (2.0 * m))


def alignment_concentration(
    m: int,
    delta: float,
    square: float,
    square_other: float,
    R2: float = 1.0,
    R2_other: float = 1.0,
    *,
    as_printed: bool = False,
) -> float:
    """Theorem 12 (thesis: 2.10): ``|rho - rho_S| <= 18 beta (3/m + 4 sqrt(log(6/delta)/(2m)))``.

    ``beta = max(R^4 / E[K_c^2], R'^4 / E[K'_c^2])``. The paper prints 8 in place of 4, which is
    twice too large, and ``R^2 R'^2`` in both parts of beta, which differs unless R = R'.

    Parameters
    ----------
    square, square_other : float
        ``E[K_c^2]`` and ``E[K'_c^2]`` of the population. With the sample's ``||K_c||^2/m^2`` in
        their place, the result only estimates the bound; :func:`alignment_interval` needs the
        sample alone.
    """
    m, delta = check_count("m", m), check_delta(delta)
    R2, R2_other = check_bounded("R2", R2), check_bounded("R2_other", R2_other)
    a = check_positive("square", square, "the alignment of a constant kernel is undefined")
    b = check_positive("square_other", square_other, "a constant kernel has no alignment")
    if as_printed:
        beta, constant = R2 * R2_other * max(1.0 / a, 1.0 / b), 8.0
    else:
        beta, constant = max(R2**2 / a, R2_other**2 / b), 4.0
    return 18.0 * beta * (3.0 / m + constant * math.sqrt(math.log(6.0 / delta) / (2.0 * m)))


def alignment_interval(
    product: float,
    square: float,
    square_other: float,
    m: int,
    delta: float,
    R2: float = 1.0,
    R2_other: float = 1.0,
    *,
    pairs: int = 3,
) -> tuple[float, float]:
    """An interval for rho from sample quantities alone, by applying Proposition 11 three times.

    The numerator and both norms lie within :func:`product_concentration` of their values on the
    sample, each except with probability ``delta / pairs``. No population moment is needed, unlike
    in Theorem 12. The interval is cut to [0, 1], where alignments of kernels lie.

    Parameters
    ----------
    product, square, square_other : float
        ``<K_c, K'_c>/m^2``, ``||K_c||^2/m^2``, ``||K'_c||^2/m^2`` on the sample.
    pairs : int, default=3
        Number of products that share delta. For ``K = sum_k mu_k K_k`` with *learned* weights of
        sum one, pass ``p(p+1)/2 + p + 1``, the number of products of base kernels and target: the
        interval then holds for all combinations at once, with ``R2 >= K_k(x, x)``.
    """
    square = check_nonnegative("square", square, "a mean of squares")
    square_other = check_nonnegative("square_other", square_other, "a mean of squares")
    # Products of positive semidefinite kernels are negative only through rounding errors.
    rounding = PSD_TOLERANCE * math.sqrt(square) * math.sqrt(square_other)
    why = "kernels are positive semidefinite"
    product = max(check_number("product", product, low=-rounding, closed="left", why=why), 0.0)
    pairs = check_count("pairs", pairs, least=3)
    delta = check_delta(delta) / pairs
    mixed = product_concentration(m, delta, R2, R2_other)
    own = product_concentration(m, delta, R2, R2)
    other = product_concentration(m, delta, R2_other, R2_other)
    top = math.sqrt(max(square + own, 0.0) * max(square_other + other, 0.0))
    bottom = math.sqrt(max(square - own, 0.0) * max(square_other - other, 0.0))
    low = max(product - mixed, 0.0) / top if top > 0 else 0.0
    high = (product + mixed) / bottom if bottom > 0 else 1.0
    return min(low, 1.0), min(high, 1.0)


def unnormalised_range(R2: float, M: float, *, as_printed: bool = False) -> tuple[float, float]:
    """Lemma 6: ``0 <= E[K_c K_Yc] <= M^2 R^2`` for ``K_c(x, x) <= R^2`` and ``|y| <= M``.

    Printed as ``M R^2``, which labels ±2 with ``K = y y' / 4`` violate: 4 against 2.
    """
    R2, M = check_bounded("R2", R2), check_bounded("M", M)
    return 0.0, (M if as_printed else M * M) * R2


# -- risk from alignment --------------------------------------------------------------------------


class AlignmentPredictor(NamedTuple):
    """The predictors behind Theorems 13 to 15, on a finite population (or a sample treated as one).

    ``h*(x) = E[y' K_c(x, x')] / sqrt(E[K_c^2])`` and ``g*(x) = E[y' K_c(x, x')]``, with the
    alignments ``rho`` and ``rho_u = E[K_c K_Yc]``, ``variance = Var y``, ``Gamma = max_x
    sqrt(E_x'[K_c^2] / E[K_c^2])`` and ``R2 = max_x K_c(x, x)``.
    """

    h: np.ndarray
    g: np.ndarray
    rho: float
    rho_u: float
    variance: float
    Gamma: float
    R2: float


def alignment_predictor(K: Any, y: Any, probabilities: Any = None) -> AlignmentPredictor:
    """``h*`` and ``g*`` on the samples of K, with all quantities that the theorems use.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix; it is centred here.
    y : array of shape (n,)
    probabilities : array of shape (n,) or None
        Probabilities of the points; None for 1/n each.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import alignment_predictor
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> found = alignment_predictor(np.outer(y, y), y)
    >>> found.h, found.rho, found.Gamma
    (array([ 1.,  1., -1., -1.]), 1.0, 1.0)
    """
    K = check_psd("K", K)[0]
    n = len(K)
    y = check_vector("y", y, "one target per sample", length=n)
    if probabilities is None:
        P = np.full(n, 1.0 / n)
    else:
        what = "one probability per sample"
        P = check_vector("probabilities", probabilities, what, length=n, negative=False)
        if abs(P.sum() - 1.0) > 1e-9:
            raise AssumptionError(f"probabilities must sum to 1; got the sum {P.sum():.9g}.")
    means = K @ P
    Kc = K - means[:, None] - means[None, :] + P @ means
    mean = float(P @ y)
    yc = y - mean
    square = float(P @ Kc**2 @ P)
    variance = float(P @ yc**2)
    if square <= 1e-28 * float(np.abs(K).max()) ** 2 or variance == 0:
        raise AssumptionError(
            "K and y must not be constant: the alignment of a constant kernel, or of constant "
            "targets, is undefined."
        )
    g = Kc @ (P * y)
    rho_u = float((P * yc) @ Kc @ (P * yc))
    return AlignmentPredictor(
        h=g / math.sqrt(square),
        g=g,
        rho=rho_u / (math.sqrt(square) * variance),
        rho_u=rho_u,
        variance=variance,
        Gamma=math.sqrt(float((Kc**2 @ P).max()) / square),
        R2=float(np.diag(Kc).max()),
    )


def good_classifier(
    rho: float, Gamma: float, variance: float = 1.0, *, as_printed: bool = False
) -> float:
    """Theorem 13: ``Pr[y h*(x) < 0] <= 1 - rho sqrt(Var y) / Gamma``, labels ±1.

    Printed as ``1 - rho/Gamma``, which is the same for balanced labels only: it assumes
    ``E[y h*] = rho``, while the value is ``rho Var y``. (Since ``|h*| <= sqrt(Var y) Gamma``, only
    one of the two roots of the variance remains.)
    """
    why = "a largest value over its mean square, so at least 1"
    Gamma = max(check_number("Gamma", Gamma, low=1 - ROUNDING, closed="left", why=why), 1.0)
    variance = _variance(variance)
    return 1.0 - _alignment(rho) * (1.0 if as_printed else math.sqrt(variance)) / Gamma


def good_classifier_plain(rho: float, variance: float = 1.0) -> float:
    """Theorem 13 without Gamma: ``Pr[y h*(x) < 0] <= 1 - (rho Var y)^2`` (Cauchy-Schwarz)."""
    return 1.0 - (_alignment(rho) * _variance(variance)) ** 2


def good_regressor(rho: float, variance: float = 1.0, *, as_printed: bool = False) -> float:
    """Theorem 14: ``E (y - h*)^2 <= 2 - 2 rho Var y``, ``E y^2 = 1``; printed ``2 (1 - rho)``."""
    variance = _variance(variance)
    return 2.0 - 2.0 * _alignment(rho) * (1.0 if as_printed else variance)


def good_classifier_unnormalised(rho_u: float, R2: float) -> float:
    """Theorem 15: ``Pr[y g*(x) < 0] <= 1 - rho_u / R^2``, ``K_c(x, x) <= R^2``, labels of any mean.

    Gamma is not needed. However, kernels of large norm look better than they are, and g computed on
    a sample need not be near g*.
    """
    R2 = check_bounded("R2", R2)
    why = "an alignment with labels ±1, at most R2"
    rho_u = check_number("rho_u", rho_u, low=0.0, high=R2 * (1 + ROUNDING), closed="both", why=why)
    return max(1.0 - rho_u / R2, 0.0)


def _alignment(rho: float) -> float:
    why = "the alignment of positive semidefinite kernels lies in [0, 1]"
    return min(check_number("rho", rho, low=0.0, high=1 + ROUNDING, closed="both", why=why), 1.0)


def _variance(variance: float) -> float:
    why = "the theorem scales targets to E y^2 = 1, so that Var y lies in (0, 1]"
    high = 1 + ROUNDING
    return min(check_number("variance", variance, low=0.0, high=high, closed="right", why=why), 1.0)
