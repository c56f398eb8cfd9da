"""Derivatives of sums of kernels with respect to the columns of X.

With a matrix A of shape (m, n), `weighted_gradient` is

    g_j(x) = sum_i A[x, i] dK(x, z_i) / dx_j

For kernels of a squared distance, ``K = h(||u - v||^2)`` on scaled columns ``u``, this is
``2 s_j (u_j sum_i P_i - sum_i P_i v_ij)`` with ``P_i = A_i h'`` and the slope ``s_j`` of the
scaling: one product of matrices for all kernels on the same columns.

Some kernels have corners. A term ``K(x, z_i)`` counts as zero where x lies on its corner: an
exponential at ``x = z_i``, a Laplacian in columns in which x and ``z_i`` are equal. This is the
limit of central differences. At zero, the end of its range, a column of a chi-squared kernel has
its one-sided derivative. Slopes of maps to ranks are averages over a window
(:meth:`multikernel.kernels.scaling.QuantileScaling.slopes`), and kernels without a formula use
central differences; every other derivative is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .algebra import Power, Product, Scaled, Sum
from .base import Kernel
from .columns import Columns
from .distances import Exponential, Matern
from .histograms import AdditiveChiSquared, ChiSquared, chi_squared_distances
from .observed import Observed
from .overlap import Overlap
from .scaling import QuantileScaling
from .vectors import (
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    VectorKernel,
    _dot,
    _squared_distances,
)

SQUARED, ABSOLUTE, DOT = "squared distances", "L1 distances", "dot products"
#: The base statistic of kernels on histograms: columns are not negative and must not be shifted.
CHI_SQUARED = "chi-squared distances"
#: The base statistic of each kernel type; subclasses are not included.
BASES: dict[type, str] = {
    Gaussian: SQUARED,
    Exponential: SQUARED,
    Matern: SQUARED,
    Laplacian: ABSOLUTE,
    ChiSquared: CHI_SQUARED,
    Linear: DOT,
    Polynomial: DOT,
    Sigmoid: DOT,
}
#: Squared distances below this fraction of the squared norms are rounding error and count as 0.
EQUAL_SAMPLES = 1e-12


def weighted_gradient(
    kernel: Kernel, X: Any, Z: Any, A: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """``sum_i A[x, i] dK(x, z_i) / dx_j`` for every x and column j, shape (m, n_features).

    Parameters
    ----------
    kernel : Kernel
        A kernel on numeric columns, or a sum, product, multiple or power of such kernels.
    X, Z : arrays or CSR matrices of shape (m, n_features), (n, n_features)
    A : array of shape (m, n)
    steps : array of shape (n_features,)
        Steps of central differences, for kernels without a formula for the derivative.
    """
    if isinstance(kernel, Sum):
        return sum_arrays([weighted_gradient(part, X, Z, A, steps) for part in kernel.parts])
    if isinstance(kernel, Scaled):
        return kernel.factor * weighted_gradient(kernel.kernel, X, Z, A, steps)
    if isinstance(kernel, Power):
        K = np.asarray(kernel.kernel(X, Z), dtype=np.float64)
        inner = np.zeros_like(K)
        # Only positive kernels have fractional powers; a value of 0 has underflowed.
        np.power(K, kernel.exponent - 1, out=inner, where=(K != 0) | (kernel.exponent >= 1))
        return weighted_gradient(kernel.kernel, X, Z, A * kernel.exponent * inner, steps)
    if isinstance(kernel, Product):
        values = [np.asarray(part(X, Z), dtype=np.float64) for part in kernel.parts]
        each = []
        for k, part in enumerate(kernel.parts):
            others = np.prod([v for i, v in enumerate(values) if i != k], axis=0)
            each.append(weighted_gradient(part, X, Z, A * others, steps))
        return sum_arrays(each)
    if isinstance(kernel, Observed):
        return _observed_gradient(kernel, X, Z, A, steps)
    if type(kernel) in BASES or type(kernel) is AdditiveChiSquared:
        assert isinstance(kernel, VectorKernel)
        own = gradient_of_sum(
            [kernel], np.ones(1), dense(kernel.select(X)), kernel.select(Z), A[None]
        )
        return to_inputs(own, kernel.columns, scaling_slopes(kernel, X), X.shape[1])[:, :, 0]
    if isinstance(kernel, VectorKernel) and not isinstance(kernel, Overlap):
        return central_differences(kernel, X, Z, A, steps)
    raise TypeError(
        f"Kernel {kernel!r} is not a function of numeric columns, so it has no derivatives."
    )


def _observed_gradient(
    kernel: Observed, X: Any, Z: Any, A: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """`weighted_gradient` where absent samples are combinations of the reference samples."""
    U, _ = kernel.read(X)
    V, also = kernel.read(Z)
    index = np.asarray(kernel.columns, dtype=np.intp)
    own = weighted_gradient(kernel.kernel, U, V[also], A[:, also], steps[index])
    placed = kernel.place_coefficients(A, Z, also)
    own = own + weighted_gradient(kernel.kernel, U, kernel.reference, placed, steps[index])
    out = np.zeros(X.shape)
    out[:, index] = np.where(np.isnan(X[:, index]), 0.0, own)  # filled-in values do not depend on X
    return out


def gradient_of_sum(
    kernels: Sequence[VectorKernel], factors: np.ndarray, U: np.ndarray, V: Any, A: np.ndarray
) -> np.ndarray:
    """The gradient of a sum of kernels on the same scaled columns, with respect to those columns.

    Parameters
    ----------
    kernels : sequence of kernels
        Of the types in `BASES`, or AdditiveChiSquared.
    factors : array of shape (n_kernels,)
    U : array of shape (m, c)
    V : array or CSR matrix of shape (n, c)
    A : array of shape (t, m, n) or (t, 1, n)
        One matrix of coefficients for each function.

    Returns
    -------
    array of shape (m, c, t)
    """
    U = np.asarray(U, dtype=np.float64)
    V = V.astype(np.float64)
    out = np.zeros((U.shape[0], U.shape[1], len(A)))
    for base in dict.fromkeys(_base(kernel) for kernel in kernels):
        chosen = [k for k, kernel in enumerate(kernels) if _base(kernel) == base]
        P = np.ones((U.shape[0], V.shape[0]))
        if base is not AdditiveChiSquared:
            values = base_values(base, U, V)
            P = sum_arrays([factors[k] * derivative(kernels[k], values) for k in chosen])
        else:
            P *= sum(factors[k] for k in chosen)
        for t, weights in enumerate(A):
            out[:, :, t] += _contract(base, P * weights, U, V)
    return out


def derivative(kernel: VectorKernel, values: np.ndarray) -> np.ndarray:
    """The derivative of a kernel with respect to its base statistic, at values of the statistic."""
    if isinstance(kernel, Gaussian):  # and Laplacians and chi-squared kernels
        return -kernel.gamma * np.exp(-kernel.gamma * values)
    if isinstance(kernel, Exponential):
        scaled = values / kernel.length**2
        half = 0.5 * kernel.power
        with np.errstate(divide="ignore"):
            slope = half * scaled ** (half - 1.0) / kernel.length**2
        slope[values == 0] = half / kernel.length**2 if half == 1.0 else 0.0
        return -slope * np.exp(-(scaled**half))
    if isinstance(kernel, Matern):
        a = np.sqrt(2.0 * kernel.nu * values) / kernel.length
        inverse = np.divide(1.0, a, out=np.zeros_like(a), where=a > 0)
        polynomial = {0.5: inverse, 1.5: np.ones_like(a), 2.5: (1.0 + a) / 3.0}[kernel.nu]
        return np.asarray(-kernel.nu / kernel.length**2 * polynomial * np.exp(-a))
    if isinstance(kernel, Linear):
        return np.ones_like(values)
    if isinstance(kernel, Polynomial):
        inner = (kernel.gamma * values + kernel.coef0) ** (kernel.degree - 1)
        return np.asarray(kernel.degree * kernel.gamma * inner)
    assert isinstance(kernel, Sigmoid)
    return np.asarray(kernel.gamma * (1.0 - np.tanh(kernel.gamma * values + kernel.coef0) ** 2))


def base_values(base: Any, U: np.ndarray, V: Any) -> np.ndarray:
    """Distances or dot products between rows, shape (m, n), float64."""
    if base == DOT:
        return _dot(U, V)
    if base == CHI_SQUARED:
        return chi_squared_distances(U, V if not sp.issparse(V) else V.toarray())
    if base == ABSOLUTE:
        from sklearn.metrics.pairwise import manhattan_distances

        return np.asarray(manhattan_distances(U, dense(V)))
    squared = _squared_distances(sp.csr_matrix(U) if sp.issparse(V) else U, V)
    norms = np.sum(U**2, axis=1)[:, None] + _row_squares(V)
    squared[squared <= EQUAL_SAMPLES * norms] = 0.0
    return squared


def _base(kernel: VectorKernel) -> Any:
    return BASES.get(type(kernel), AdditiveChiSquared)


def _contract(base: Any, P: np.ndarray, U: np.ndarray, V: Any) -> np.ndarray:
    """``sum_i P[x, i] db(u_x, v_i) / du_c`` of a base statistic b, shape (m, c)."""
    if base == DOT:
        return _times(P, V)
    if base == SQUARED:
        return 2.0 * (U * P.sum(axis=1)[:, None] - _times(P, V))
    out = np.empty(U.shape)
    for c in range(U.shape[1]):
        u, v = U[:, c, None], dense(V[:, [c]])[:, 0]
        if base == ABSOLUTE:
            slope = np.sign(u - v)
        else:
            total = u + v
            ratio = np.divide(v, total, out=np.zeros(P.shape), where=total > 0)
            # (u - v)(u + 3v) / (u + v)^2 and 2 v^2 / (u + v)^2
            slope = 1.0 - 4.0 * ratio**2 if base == CHI_SQUARED else 2.0 * ratio**2
        out[:, c] = np.einsum("mn,mn->m", P, slope)
    return out


def central_differences(
    kernel: VectorKernel, X: Any, Z: Any, A: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    """`weighted_gradient` by central differences: two evaluations for every column it sees."""
    X = dense(X).astype(np.float64)
    out = np.zeros(X.shape)
    seen = kernel.resolve(X.shape[1], None).columns
    for j in np.unique(np.arange(X.shape[1]) if seen is None else np.array(seen, dtype=np.intp)):
        if steps[j] > 0:
            up, down = X.copy(), X.copy()
            up[:, j] += steps[j]
            down[:, j] = stepped_down(X[:, j], steps[j])
            change = np.asarray(kernel(up, Z) - kernel(down, Z), dtype=np.float64)
            out[:, j] = np.einsum("mn,mn->m", A, change) / (up[:, j] - down[:, j])
    return out


def stepped_down(x: np.ndarray, step: float) -> np.ndarray:
    """``x - step``, but x where the step would make a value (such as a count) negative."""
    return np.where((x >= 0) & (x < step), x, x - step)


def has_derivative(kernel: Kernel) -> bool:
    """Whether `weighted_gradient` of a kernel is known to need no central differences."""
    if isinstance(kernel, (Sum, Product)):
        return all(has_derivative(part) for part in kernel.parts)
    if isinstance(kernel, (Scaled, Power)):
        return has_derivative(kernel.kernel)
    return type(kernel) in BASES or type(kernel) is AdditiveChiSquared


def scaling_slopes(kernel: VectorKernel, X: Any) -> np.ndarray | float:
    """Derivatives of the scaled columns with respect to the columns themselves, shape (m, c)."""
    from .columns import take_columns

    if kernel.scaling is None:
        return 1.0
    assert not isinstance(kernel.scaling, str)
    return kernel.scaling.slopes(take_columns(X, kernel.columns))


def to_inputs(
    own: np.ndarray, columns: Columns, slopes: np.ndarray | float, n_features: int
) -> np.ndarray:
    """A gradient (m, c, t) in the scaled columns of a kernel as one in all columns of X."""
    own = own * (slopes if isinstance(slopes, float) else slopes[:, :, None])
    if columns is None:
        return own
    out = np.zeros((own.shape[0], n_features, own.shape[2]))
    for c, j in enumerate(np.asarray(columns, dtype=np.intp)):  # a column may appear twice
        out[:, j] += own[:, c]
    return out


def reads_ranks(kernel: Kernel) -> bool:
    """Whether a kernel, however composed, maps columns to ranks."""
    if isinstance(kernel, (Sum, Product)):
        return any(reads_ranks(part) for part in kernel.parts)
    if isinstance(kernel, (Scaled, Power, Observed)):
        return reads_ranks(kernel.kernel)
    return isinstance(getattr(kernel, "scaling", None), QuantileScaling)


def sum_arrays(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of arrays, always added in the same order."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def dense(X: Any) -> np.ndarray:
    """An array from an array or a sparse matrix."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _times(P: np.ndarray, V: Any) -> np.ndarray:
    return np.asarray((V.T @ P.T).T if sp.issparse(V) else P @ V)


def _row_squares(V: Any) -> np.ndarray:
    return np.asarray(V.multiply(V).sum(axis=1)).ravel() if sp.issparse(V) else np.sum(V**2, axis=1)
