"""Learning the kernel matrix in transduction (Bousquet & Herrmann 2002).

There are 2n points, the labels of n of them known, and matrices of size 2n. For hyperplanes of
margin M with kernels from a set, the complexity is

    R = (1/(n M)) E_sigma sup_K sqrt(sigma' K sigma)                                           (1)

(2n terms, factor 1/n). Srebro and Ben-David showed later that bounds of this kind can exceed one
whatever the data; they are here for comparison.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..grams.memory import MemoryBudget
from ..problem.assumptions import (
    AssumptionError,
    check_count,
    check_delta,
    check_items,
    check_margin,
    check_nonnegative,
    check_positive,
    check_probability,
    check_psd,
)
from .montecarlo import Estimate, average
from .rademacher import Forms


def transductive_exact(
    kernels: Any, trace: float, margin: float, *, n_draws: int = 2000, random_state: Any = 0
) -> Estimate:
    """Equation (1) for the hull ``sum_i d_i K_i``, ``d >= 0``, of trace c: a maximum over vertices.

    Parameters
    ----------
    kernels : list of matrices of shape (2n, 2n)
    trace : float
        c, the common trace of all kernels of the set.
    margin : float
        M.
    """
    forms = Forms(kernels)
    n = _half(forms.n)
    c = check_positive("trace", trace, "the trace of the kernels of the set")
    M = check_margin(margin)
    diagonals = forms.diagonals()
    traces = diagonals.sum(axis=1)
    if traces.min() <= 0:
        k = int(traces.argmin())
        raise AssumptionError(f"kernels[{k}] has trace 0: it cannot be scaled to trace c.")
    factor = (c / traces)[:, None]
    scale = float(np.sqrt((factor * diagonals).max(axis=0).sum())) / (n * M)
    return average(
        lambda signs: np.sqrt((factor * forms.forms(signs)).max(axis=0)) / (n * M),
        forms.n,
        scale,
        n_draws=n_draws,
        random_state=random_state,
    )


def psd_ball_complexity(c: float, n: int, margin: float) -> float:
    """Theorem 1: all positive semidefinite K with ``||K||_p <= c``, p = 1, 2 or infinity.

    Exactly ``sqrt(2 c / n) / M``: for c of order n (kernels of unit diagonal) it does not shrink
    with n, and nothing can be learned from so large a set.
    """
    c = check_positive("c", c, "the radius of the ball")
    return math.sqrt(2.0 * c / check_count("n", n)) / check_margin(margin)


def hull_complexity(kernels: Any, c: float, n: int, margin: float) -> float:
    """Theorem 2: ``(1/M) sqrt(2c/n) sqrt(max_i ||K_i|| / Tr K_i)`` for the hull of trace c."""
    ratio = 0.0
    n = check_count("n", n)
    for k, K in enumerate(check_items("kernels", kernels, "matrices")):
        name = f"kernels[{k}]"
        matrix, eigenvalues = check_psd(name, K)
        if _half(len(matrix)) != n:
            raise AssumptionError(f"{name} must be 2n x 2n with n = {n}; got {matrix.shape}.")
        if eigenvalues.sum() == 0:
            raise AssumptionError(f"{name} is zero: it cannot be scaled to trace c.")
        ratio = max(ratio, float(eigenvalues[0] / eigenvalues.sum()))
    return psd_ball_complexity(c, n, margin) * math.sqrt(ratio)


def spectral_complexity(c: float, n: int, margin: float, *, as_printed: bool = False) -> float:
    """Theorem 3: fixed eigenvectors, free eigenvalues of sum c: ``sqrt(2 c log(4n)) / (n M)``.

    The matrix has 2n eigenvectors and the maximum is over ``±v_i``: 4n sub-Gaussian variables.
    Printed with ``log(2n)``, which two points with eigenvectors ``(1, ±1)/sqrt(2)`` violate.
    """
    c = check_positive("c", c, "the trace of the kernels of the set")
    n = check_count("n", n)
    count = 2 * n if as_printed else 4 * n
    return math.sqrt(2.0 * c * math.log(count)) / (n * check_margin(margin))


def power_kernels(K: Any, degree: int, trace: float) -> list[np.ndarray]:
    """``K^1, ..., K^degree`` scaled to the same trace; the class (5) is their hull."""
    K, eigenvalues = check_psd("K", K)
    size = float(eigenvalues[0])
    if size == 0:
        raise AssumptionError("K is zero: it cannot be scaled to a trace.")
    c = check_positive("trace", trace, "the trace of the kernels of the set")
    powers, power = [], np.eye(len(K))
    degree = check_count("degree", degree)
    MemoryBudget.of(None).require(
        8.0 * degree * K.size, f"power_kernels: {degree} matrices", "Ask for a lower degree."
    )
    for _ in range(degree):
        power = power @ (K / size)  # scaled first, so that powers do not overflow
        powers.append(power * (c / np.trace(power)))
    return powers


def transductive_bound(risk: float, complexity: float, n: int, delta: float) -> float:
    """Corollary 1, error on the n test points: ``risk + R + sqrt(log(1/delta)/n) + 4/sqrt(n)``.

    Examples
    --------
    >>> from multikernel.bounds import transductive_bound
    >>> round(transductive_bound(0.05, 0.1, n=10_000, delta=0.05), 4)
    0.2073
    """
    n, delta = check_count("n", n), check_delta(delta)
    check_probability("risk", risk)
    check_nonnegative("complexity", complexity, "a Rademacher average")
    return risk + complexity + math.sqrt(math.log(1.0 / delta) / n) + 4.0 / math.sqrt(n)


def _half(size: int) -> int:
    if size % 2:
        raise AssumptionError(
            f"kernels must be matrices over 2n samples, n of them labelled; got {size} samples."
        )
    return size // 2
