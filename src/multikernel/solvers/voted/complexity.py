"""The complexity terms r_k of the kernels' functions ``H_k = {±K_k(., x')}``; lambda scales them.

===========  =============================================  ====================================
name         r_k                                            for
===========  =============================================  ====================================
trace        kappa_k sqrt(Tr K_k) / m (Lemma 3)             positive semidefinite kernels
degree       kappa_k^2 sqrt(d_k) (Lemma 4)                  polynomials with d_k features
gamma        gamma_k (Lemma 5)                              Gaussians (or Laplacians)
sigmoid      abs(a_k) (Lemma 6)                             tanh(a x.z + b)
local        sqrt(2/m sum_j min(s, lambda_j))               positive semidefinite, objective (2)
monte-carlo  1/m E max_j abs(sum_i sigma_i K_k(x_i, x_j))   any kernel: eq. (3), x' in the sample
===========  =============================================  ====================================

The terms of the lemmas apply to one family of kernels each and have different scales. ``auto`` is
the Monte-Carlo value, which is comparable across kernels of any kind and proportional to their
scale. With sample weights, m is their sum and sample i counts as ``omega_i`` samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.stats import t as student

from ...grams.operators import PSD_TOLERANCE
from ...kernels.vectors import Gaussian, Laplacian, Linear, Polynomial, Sigmoid, VectorKernel
from ...problem.complexity import degree_penalty, local_complexity, trace_complexity
from .columns import KernelColumns

NAMES = ("auto", "trace", "degree", "gamma", "sigmoid", "local", "monte-carlo")
#: Bytes of one batch of Monte-Carlo products.
BATCH_BYTES = 64 * 2**20
#: Largest number of steps (the sum of the sample weights) of a simulated random walk.
MAX_WALK_STEPS = 2**20
#: Largest ``|K_ij - K_ji|``, relative to the largest entry, that counts as rounding.
MAX_ASYMMETRY = 1e-8


@dataclass(frozen=True)
class Complexity:
    """The terms r_k (p,) and, for Monte-Carlo terms, 95 % confidence intervals (p, 2)."""

    values: np.ndarray
    intervals: np.ndarray | None = None


def complexities(
    how: Any,
    columns: KernelColumns,
    n_features: int,
    sample_weight: np.ndarray | None = None,
    *,
    radius: float = 0.1,
    n_draws: int = 100,
    random_state: Any = 0,
) -> Complexity:
    """The complexity terms of this name, or the given vector after validation.

    Parameters
    ----------
    how : str or array of shape (p,)
    columns : KernelColumns
    n_features : int
        Number of columns of the inputs; d_k of a polynomial depends on how many it reads.
    sample_weight : array of shape (n,), optional
    radius : float
        The s of ``"local"``.
    n_draws : int
        Sign vectors of ``"monte-carlo"``.
    random_state : int or RandomState
        For the signs.
    """
    if not isinstance(how, str):
        return Complexity(_given(how, columns))
    if how in ("auto", "monte-carlo"):
        return monte_carlo(columns, sample_weight, n_draws=n_draws, random_state=random_state)
    if how == "local":
        m = total(columns, sample_weight)
        return Complexity(local(spectra(columns, sample_weight), m, radius))
    if how == "trace":
        return Complexity(trace(columns, sample_weight))
    values = {"degree": degree, "gamma": gamma, "sigmoid": sigmoid}[how](columns, n_features)
    return Complexity(values)


def total(columns: KernelColumns, sample_weight: np.ndarray | None) -> float:
    """m: the number of samples, or the sum of their weights."""
    return float(columns.n if sample_weight is None else sample_weight.sum())


def trace(columns: KernelColumns, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """``kappa_k sqrt(Tr K_k) / m``."""
    diagonals = _positive_diagonals(columns, "trace")
    traces = diagonals.sum(axis=1) if sample_weight is None else diagonals @ sample_weight
    kappas = np.sqrt(diagonals.max(axis=1))
    values = np.zeros(columns.p)
    for k in np.flatnonzero(kappas).tolist():  # the complexity of the zero kernel is zero
        values[k] = trace_complexity(float(traces[k]), float(kappas[k]), 1)
    return values / total(columns, sample_weight)


def degree(columns: KernelColumns, n_features: int) -> np.ndarray:
    """``kappa_k^2 sqrt(d_k)``, ``d_k = C(N + k, k)`` for polynomials on N columns.

    Without a constant term, ``<x, z>^k``, only the monomials of degree k are features:
    ``d_k = C(N + k - 1, k)``.
    """
    kernels = _family(columns, (Polynomial, Linear), "degree", "polynomials")
    diagonals = _positive_diagonals(columns, "degree")
    values = []
    for kernel, diagonal in zip(kernels, diagonals, strict=True):
        k = kernel.degree if isinstance(kernel, Polynomial) else 1
        constant = isinstance(kernel, Polynomial) and kernel.coef0 != 0
        N = n_features if kernel.columns is None else len(kernel.columns)  # type: ignore[arg-type]
        size = N if constant else N - 1
        root = degree_penalty(k, size) if size else 1.0
        values.append(float(diagonal.max()) * root)
    found = np.array(values)
    _refuse(columns, ~np.isfinite(found), "has too many features for a finite term; use 'trace'")
    return found


def gamma(columns: KernelColumns, n_features: int = 0) -> np.ndarray:
    """``gamma_k`` of Gaussians or of Laplacians; not of both, whose distances differ."""
    first = type(columns.kernels[0])
    family = first if first in (Gaussian, Laplacian) else Gaussian
    kernels = _family(columns, (family,), "gamma", f"{family.__name__}s")
    return np.array([kernel.gamma for kernel in kernels])


def sigmoid(columns: KernelColumns, n_features: int = 0) -> np.ndarray:
    """``|a_k|``."""
    kernels = _family(columns, (Sigmoid,), "sigmoid", "sigmoids")
    return np.array([abs(kernel.gamma) for kernel in kernels])


def spectra(columns: KernelColumns, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Eigenvalues of ``K_k / m``, shape (p, n); O(p n^3), one matrix at a time."""
    n = columns.n
    columns.budget.require(
        3 * 8.0 * n**2,
        f"The eigenvalues of one kernel matrix of {n} samples",
        "Use complexity='trace' or 'monte-carlo', or raise memory_budget.",
    )
    root = np.ones(n) if sample_weight is None else np.sqrt(sample_weight)
    out = np.empty((columns.p, n))
    for k in range(columns.p):
        K = columns.take(k, np.arange(n)) * np.outer(root, root)
        size = float(np.abs(K).max(initial=0.0))
        if not np.isfinite(size) or np.abs(K - K.T).max() > MAX_ASYMMETRY * size:
            _refuse(columns, np.arange(columns.p) == k, "is not symmetric, so it has no spectrum")
        eigenvalues = eigvalsh(K)
        tolerance = PSD_TOLERANCE * max(abs(eigenvalues[-1]), size)
        if eigenvalues[0] < -max(tolerance, float(root.max()) ** 2 * columns.rounding(k)):
            why = f"is not positive semidefinite (eigenvalue {eigenvalues[0]:.3g})"
            _refuse(columns, np.arange(columns.p) == k, why)
        out[k] = np.maximum(eigenvalues, 0.0)
    return out / total(columns, sample_weight)


def local(spectra: np.ndarray, m: float, radius: float) -> np.ndarray:
    """``sqrt(2/m sum_j min(s, lambda_j))`` for every row of eigenvalues."""
    return np.array([local_complexity(row, 1, radius) for row in spectra]) / np.sqrt(m)


def monte_carlo(
    columns: KernelColumns,
    sample_weight: np.ndarray | None = None,
    *,
    n_draws: int = 100,
    random_state: Any = 0,
) -> Complexity:
    """``(1/m) E_sigma max_j |sum_i sigma_i K_k(x_i, x_j)|``: mean of draws, Student's interval.

    All kernels share the same signs, so that a kernel multiplied by a factor has a term multiplied
    by exactly this factor. The estimate does not depend on the order of the samples, and a weight
    of two is the same as a repeated sample: samples are sorted by their kernel values, the signs
    are the steps of a random walk over them, and a sample of weight omega takes the next omega
    steps. For walks of too many steps the sum over each sample is drawn at once.
    """
    m = total(columns, sample_weight)
    omega = np.ones(columns.n) if sample_weight is None else sample_weight
    ends = np.empty(columns.n)
    order = _canonical_order(columns, omega)
    ends[order] = np.cumsum(omega[order])
    rng = np.random.RandomState(random_state) if _is_seed(random_state) else random_state
    draws: list[np.ndarray] = []
    size = max(1, int(BATCH_BYTES // (8 * max(columns.p * columns.n, min(m, MAX_WALK_STEPS)))))
    for start in range(0, n_draws, size):
        some = min(size, n_draws - start)
        if m <= MAX_WALK_STEPS:
            V = _walks(rng, ends, omega, some)
        else:
            V = np.empty((columns.n, some))
            V[order] = _sums_of_signs(rng, omega[order], some)
        draws.append(np.abs(columns.price(V)).max(axis=1) / m)
    found = np.concatenate(draws, axis=1)
    mean = found.mean(axis=1)
    error = np.full_like(mean, np.inf)
    if n_draws > 1:
        size = np.maximum(mean, np.finfo(np.float64).tiny)  # the squares of huge values overflow
        error = size * (found / size[:, None]).std(axis=1, ddof=1) / np.sqrt(n_draws)
    half = float(student.ppf(0.975, max(n_draws - 1, 1))) * error
    return Complexity(mean, np.stack([np.maximum(mean - half, 0.0), mean + half], axis=1))


def _is_seed(random_state: Any) -> bool:
    return random_state is None or isinstance(random_state, (int, np.integer))


def _walks(rng: Any, ends: np.ndarray, omega: np.ndarray, draws: int) -> np.ndarray:
    """Sums of signs over each sample, shape (n, draws): increments of one walk per draw."""
    steps = int(np.ceil(ends.max() * (1 - 1e-9)))
    # One row of signs per draw, so that draws do not depend on the size of a batch.
    signs = rng.randint(0, 2, size=(draws, steps)) * 2.0 - 1.0
    walk = np.concatenate([np.zeros((draws, 1)), np.cumsum(signs, axis=1)], axis=1)
    return np.stack([_increments(row, ends, omega) for row in walk], axis=1)


def _sums_of_signs(rng: Any, omega: np.ndarray, draws: int) -> np.ndarray:
    """The same sums in distribution: the number of positive signs of a sample is binomial."""
    whole = np.floor(omega)
    few = np.minimum(whole, 2.0**31 - 1).astype(np.int64)
    # Beyond the range of the generator the sum is nearly normal, so scaling it is enough.
    factor = np.sqrt(whole / np.maximum(few, 1))
    sums = np.empty((len(omega), draws))
    for j in range(draws):  # one after another, so that they do not depend on the size of a batch
        sums[:, j] = factor * (2.0 * rng.binomial(few, 0.5) - few)
        sums[:, j] += (omega - whole) * (rng.randint(0, 2, size=len(omega)) * 2.0 - 1.0)
    return sums


def _increments(walk: np.ndarray, ends: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """The increment of the walk over the steps of each sample; linear between whole steps."""
    at = np.arange(len(walk), dtype=np.float64)
    return np.asarray(np.interp(ends, at, walk) - np.interp(ends - omega, at, walk))


def _canonical_order(columns: KernelColumns, omega: np.ndarray) -> np.ndarray:
    """An order of the samples that depends on kernel values only: by the sums of their columns."""
    sums = columns.price(omega)
    size = np.abs(sums).max(axis=1)
    keys = sums[size > 0] / size[size > 0, None]
    return np.lexsort(keys[::-1]) if len(keys) else np.arange(columns.n)


# -- conditions on the kernels --------------------------------------------------------------------


def _given(how: Any, columns: KernelColumns) -> np.ndarray:
    try:
        values = np.asarray(how, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (columns.p,) or not np.isfinite(values).all() or np.any(values < 0):
        raise ValueError(
            f"complexity must be one of {', '.join(map(repr, NAMES))}, or {columns.p} finite "
            f"non-negative numbers, one for each kernel; got {how!r}."
        )
    return values


def _family(columns: KernelColumns, types: Sequence[type], name: str, what: str) -> list[Any]:
    strange = [type(kernel) not in types for kernel in columns.kernels]
    _refuse(
        columns,
        np.array(strange),
        f"has no such term: complexity={name!r} is for {what} only. Use 'auto', which compares "
        "kernels of any kind, or pass a vector",
    )
    kernels: list[VectorKernel] = [k for k in columns.kernels if isinstance(k, VectorKernel)]
    return kernels


def _positive_diagonals(columns: KernelColumns, name: str) -> np.ndarray:
    diagonals = columns.diagonals()
    _refuse(columns, ~np.isfinite(diagonals).all(axis=1), "overflows on the training data")
    _refuse(
        columns,
        diagonals.min(axis=1) < 0,
        f"has a negative K(x, x), but complexity={name!r} needs positive semidefinite kernels. "
        "Use 'auto' or 'monte-carlo', which work with any kernel",
    )
    return diagonals


def _refuse(columns: KernelColumns, bad: np.ndarray, why: str) -> None:
    if bad.any():
        raise ValueError(f"Kernel {columns.names[int(np.argmax(bad))]!r} {why}.")
