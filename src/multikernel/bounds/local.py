"""Local Rademacher complexity of lp-norm multiple kernel learning (Kloft 2011, section 4.2).

The supremum is over functions of small variance only, ``R_r(H) = E sup {(1/n) sum_i sigma_i f(x_i)
: f in H, E f^2 <= r}``, which yields rates faster than ``1/sqrt(n)`` for kernels whose spectra
decay. The spectra are those of the uncentred covariance operators ``J_m`` (eigenvalues of ``K_m /
n``) and of their joint operator J (eigenvalues of ``sum_m K_m / n``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_eigenvalues,
    check_exponent,
    check_items,
    check_norm,
    check_number,
    check_positive,
    check_psd,
    check_radius,
    check_spectra,
)
from .blocknorm import smallest
from .rademacher import conjugate, norm


class LocalBound(NamedTuple):
    """A local complexity bound: its value, the exponent t that attains it, and its source."""

    value: float
    t: float
    theorem: str


def spectra_of(kernels: Any) -> list[np.ndarray]:
    """Eigenvalues of ``K_m / n`` for each of the matrices, which estimate those of ``J_m``."""
    items = check_items("kernels", kernels, "matrices")
    pairs = [check_psd(f"kernels[{m}]", K) for m, K in enumerate(items)]
    return [eigenvalues / len(K) for K, eigenvalues in pairs]


def local_rademacher(
    spectra: Sequence[Any],
    n: int,
    r: float,
    p: float,
    *,
    joint: Any = None,
    B: float | None = None,
    radius: float = 1.0,
    uncorrelated: bool = False,
) -> LocalBound:
    """The smallest of the bounds whose assumptions are met, and its theorem.

    Theorem 4.6 (p >= 2; for p < 2 its value at t = 2 bounds the smaller class) holds for all
    kernels, Theorem 4.5 (p <= 2) for bounded kernels that are uncorrelated with each other.

    Parameters
    ----------
    spectra : sequence of M arrays
        Eigenvalues of each ``J_m``.
    n : int
    r : float
        Radius: ``E f^2 <= r``; infinite for the global complexity.
    p : float
        Exponent of the block norm, from 1 to infinity.
    joint : array or None
        Eigenvalues of J. None takes the union of the spectra, which holds for centred uncorrelated
        kernels only, and needs ``uncorrelated=True``.
    B : float or None
        ``k_m(x, x) <= B``; Theorem 4.5 needs it.
    radius : float, default=1.0
        D.
    uncorrelated : bool, default=False
        Whether assumption (U) holds: features of different kernels are uncorrelated.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import local_rademacher
    >>> spectra = [np.arange(1.0, 101.0) ** -2] * 16
    >>> found = local_rademacher(spectra, 1000, 0.01, 1.0, B=1.64, uncorrelated=True)
    >>> round(found.value, 6), found.theorem
    (0.076986, 'Theorem 4.6 at t = 2')
    """
    lam = check_spectra(spectra)
    B = None if B is None else check_bounded("B", B)
    if joint is None:
        if not uncorrelated:
            raise AssumptionError(
                "Theorem 4.6 needs the spectrum of the joint operator (eigenvalues of the summed "
                "kernel matrix over n). Pass joint=..., or uncorrelated=True if features of "
                "different kernels are centred and uncorrelated; the joint spectrum is then the "
                "union of the spectra."
            )
        joint = np.concatenate(lam)
    M = len(lam)
    t = max(check_norm("p", p), 2.0)
    at = "Theorem 4.6" if p >= 2 else "Theorem 4.6 at t = 2"
    best = LocalBound(local_rademacher_dense(joint, n, r, t, M, radius=radius), t, at)
    if p < 2 and uncorrelated and B is not None:
        other = local_rademacher_sparse(lam, n, r, p, B, radius=radius)
        best = min(best, other)
    return best


def local_rademacher_dense(
    joint: Any, n: int, r: float, p: float, M: int, *, radius: float = 1.0
) -> float:
    """Theorem 4.6, p in [2, inf]: ``sqrt((2/n) sum_j min(r, D^2 M^(2/p* - 1) lambda_j))``.

    Parameters
    ----------
    joint : array
        Eigenvalues of the joint operator J.
    """
    n, M, r = check_count("n", n), check_count("M", M), _radius(r)
    why = "Theorem 4.6 is for p >= 2; Theorem 4.5 covers p <= 2"
    p = check_number("p", p, low=2.0, closed="both", why=why)
    D = check_positive("radius", radius, "the size of the class")
    factor = D**2 * M ** (2.0 / conjugate(p) - 1.0)
    lam = check_eigenvalues(joint, "joint")
    return math.sqrt(2.0 / n * float(np.minimum(r, factor * lam).sum()))


def local_rademacher_sparse(
    spectra: Sequence[Any],
    n: int,
    r: float,
    p: float,
    B: float,
    *,
    radius: float = 1.0,
    sharp: bool = False,
) -> LocalBound:
    """Theorem 4.5, p in [1, 2], for bounded kernels that are uncorrelated with each other.

    ``min_{t in [p, 2]} sqrt((16/n) ||(sum_j min(r M^(1-2/t*), e D^2 t*^2 lambda_j^(m)))_m||_{t*/2})
    + sqrt(B e) D M^(1/t*) t* / n``. (The printed index of the norm is 2/t*; the proof has t*/2.)

    Parameters
    ----------
    sharp : bool, default=False
        ``8 * 2^(1 - 2/t*)`` in place of 16 (Lemma C.3).
    """
    n, r = check_count("n", n), _radius(r)
    p = check_exponent("p", p, "Theorem 4.5; see Theorem 4.6 for p > 2")
    B = check_bounded("B", B)
    D = check_positive("radius", radius, "the size of the class")
    lam = _padded(check_spectra(spectra))
    M = len(lam)

    def value(s: float) -> float:
        cut, size = r * M ** (1.0 - 2.0 / s), math.e * D**2 * s**2
        sums = np.minimum(cut, size * lam).sum(axis=1)
        constant = 8.0 * 2.0 ** (1.0 - 2.0 / s) if sharp else 16.0
        first = math.sqrt(constant / n * float(norm(sums, s / 2.0)))
        return first + math.sqrt(B * math.e) * D * M ** (1.0 / s) * s / n

    # Beyond s = log M both terms grow (s M^(1/s) does), so p = 1 needs no infinite range.
    found, s = smallest(value, 2.0, min(conjugate(p), 2.0 + 2.0 * math.log(M)))
    return LocalBound(found, conjugate(s), "Theorem 4.5")


def local_rademacher_l1(
    spectra: Sequence[Any], n: int, r: float, B: float, *, radius: float = 1.0
) -> float:
    """Remark 1, p = 1 and at least 8 kernels: Theorem 4.5 at ``t = (log M)*``.

    ``sqrt((16/n) max_m sum_j min(r M, e^3 D^2 log(M)^2 lambda_j)) + sqrt(B) e^(3/2) D log(M) / n``.
    """
    n, r, B = check_count("n", n), _radius(r), check_bounded("B", B)
    lam = check_spectra(spectra)
    M = len(lam)
    if math.log(M) < 2:
        raise AssumptionError(f"Remark 1 needs log M >= 2, spectra of at least 8 kernels; got {M}.")
    D = check_positive("radius", radius, "the size of the class")
    size = math.e**3 * D**2 * math.log(M) ** 2
    largest = max(float(np.minimum(r * M, size * e).sum()) for e in lam)
    return math.sqrt(16.0 / n * largest) + math.sqrt(B) * math.e**1.5 * D * math.log(M) / n


def local_rademacher_truncated(
    spectra: Sequence[Any],
    n: int,
    r: float,
    p: float,
    B: float,
    h: Sequence[int],
    *,
    radius: float = 1.0,
) -> float:
    """Equation (4.12): the bound before truncation, for any numbers ``h_m`` of leading directions.

    ``sqrt(4 r sum h_m / n) + sqrt((4 e p*^2 D^2 / n) ||(sum_{j > h_m} lambda_j^(m))_m||_{p*/2}) +
    sqrt(B e) D M^(1/p*) p* / n``, 1 < p <= 2.
    """
    n, B = check_count("n", n), check_bounded("B", B)
    r = check_number("r", r, low=0.0, closed="left", why="it bounds E f^2")
    p = check_exponent("p", p, "equation (4.12)", above=True)
    D = check_positive("radius", radius, "the size of the class")
    lam = check_spectra(spectra)
    s, M = conjugate(p), len(lam)
    leading = check_leading(h, M)
    tails = np.array([e[k:].sum() for e, k in zip(lam, leading, strict=True)])
    return (
        math.sqrt(4.0 * r * sum(leading) / n)
        + math.sqrt(4.0 * math.e * s**2 * D**2 / n * float(norm(tails, s / 2.0)))
        + math.sqrt(B * math.e) * D * M ** (1.0 / s) * s / n
    )


def reduced_problem(r: float, p: float, M: int, radius: float = 1.0) -> tuple[float, float]:
    """Lemma 4.7: r and D of a one-kernel class whose complexity is a lower bound on that of H_p.

    For M centred kernels with independent, identically distributed features: ``R_r(H_{p,D,M}) >=
    R_{rM}(H_{1, D M^(1/p*), 1})``. Returns ``(r M, D M^(1/p*))``.
    """
    M = check_count("M", M)
    radius = check_positive("radius", radius, "the size of the class")
    return _radius(r) * M, radius * M ** (1.0 / conjugate(p, "p"))


def local_lower_shape(
    eigenvalues: Any, n: int, r: float, p: float, M: int, *, radius: float = 1.0, c: float = 1.0
) -> float:
    """Theorem 4.8: ``sqrt((c/n) sum_j min(r M, D^2 M^(2/p*) lambda_j))``, c unknown.

    For independent, identically distributed centred kernels, ``r >= 1/n`` and ``lambda_1 >= 1/(n
    D^2)``. The theorem does not give the constant c: this is the *shape* of a lower bound, not a
    number to rely on.
    """
    n, M, r = check_count("n", n), check_count("M", M), _radius(r)
    D = check_positive("radius", radius, "the size of the class")
    c = check_positive("c", c, "the constant of Theorem 4.8")
    lam = check_eigenvalues(eigenvalues)
    if r < 1.0 / n:
        raise AssumptionError(f"Theorem 4.8 is for r >= 1/n = {1.0 / n:.3g}; got r = {r:.3g}.")
    least = 1.0 / (n * D**2)
    if lam[0] < least:
        raise AssumptionError(
            f"Theorem 4.8 needs eigenvalues with lambda_1 >= 1/(n D^2) = {least:.3g}; got "
            f"{lam[0]:.3g}."
        )
    size = D**2 * M ** (2.0 / conjugate(p, "p"))
    # Take the minimum first: a huge eigenvalue times the size would overflow.
    return math.sqrt(c / n * size * float(np.minimum(r * M / size, lam).sum()))


def check_leading(h: Any, M: int) -> list[int]:
    """Check the numbers of leading directions, one for each of M kernels."""
    found = [check_count("h", k, least=0) for k in check_items("h", h, "integers")]
    if len(found) != M:
        raise AssumptionError(f"h needs one number per kernel, {M}; got {len(found)}.")
    return found


def _padded(lam: list[np.ndarray]) -> np.ndarray:
    """Spectra as rows of one array, padded with zeros."""
    out = np.zeros((len(lam), max(map(len, lam))))
    for row, values in zip(out, lam, strict=True):
        row[: len(values)] = values
    return out


def _radius(r: float) -> float:
    return check_radius("r", r, "it bounds E f^2 and is not negative")
