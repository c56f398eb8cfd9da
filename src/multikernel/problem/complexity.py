"""Complexity of the functions ``{x -> ±K(x, x')}`` of one kernel, from its size or spectrum.

Voted kernels use these numbers as penalties, and the bounds on their risk use them as Rademacher
complexities. Formulas: Cortes, Goyal, Kuznetsov & Mohri, *Kernel Extraction via Voted Risk
Minimization*, sections 4 and 6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from .assumptions import (
    check_bounded,
    check_count,
    check_eigenvalues,
    check_radius,
    check_trace,
)


def trace_complexity(trace: float, kappa: float, m: int) -> float:
    """``kappa sqrt(Tr K) / m`` bounds the complexity of H_k (Lemma 3); K positive semidefinite.

    Parameters
    ----------
    trace : float
        Trace of the kernel matrix of the m samples.
    kappa : float
        ``sup_x sqrt(K(x, x))``; if x' is in the sample, the maximum over the sample is enough.
    m : int
        Number of samples.

    Examples
    --------
    >>> from multikernel.bounds import trace_complexity
    >>> trace_complexity(trace=100.0, kappa=1.0, m=100)
    0.1
    """
    m = check_count("m", m)
    return check_bounded("kappa", kappa) * math.sqrt(check_trace("trace", trace)) / m


def log_feature_dimension(degree: int, n_features: int) -> float:
    """``log C(N + k, k)``: the logarithm of the number of features of ``(x.z + 1)^k``."""
    k = check_count("degree", degree)
    N = check_count("n_features", n_features)
    return float(gammaln(N + k + 1) - gammaln(k + 1) - gammaln(N + 1))


def degree_penalty(degree: int, n_features: int, kappa: float = 1.0) -> float:
    """``kappa^2 sqrt(d_k)``, the factor of Lemma 4 that depends on the kernel; inf on overflow.

    Examples
    --------
    >>> from multikernel.bounds import degree_penalty
    >>> round(degree_penalty(degree=2, n_features=3) ** 2)
    10
    """
    kappa = check_bounded("kappa", kappa)
    half = 0.5 * log_feature_dimension(degree, n_features)
    return kappa**2 * (math.exp(half) if half < 700 else math.inf)


def local_complexity(eigenvalues: Any, m: int, s: float = math.inf) -> float:
    """``sqrt((2/m) sum_j min(s, lambda_j))``: the complexity of functions with ``E h^2 <= s``.

    Parameters
    ----------
    eigenvalues : array
        Eigenvalues of the kernel operator; those of ``K / m`` estimate them.
    m : int
    s : float, default=inf
        Radius; infinite for the whole unit ball of the kernel's space.

    Examples
    --------
    >>> from multikernel.bounds import local_complexity
    >>> round(local_complexity([0.5, 0.3, 0.2], m=50, s=0.25), 4)
    0.1673
    """
    m = check_count("m", m)
    s = check_radius("s", s, "it bounds E h^2")
    return math.sqrt(2.0 / m * float(np.minimum(check_eigenvalues(eigenvalues), s).sum()))
