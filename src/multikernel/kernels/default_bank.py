"""The bank that estimators use when no kernels are given: widths follow the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._options import check_choice
from .._sample_weight import check_sample_weight
from .bank import KernelBank
from .base import Kernel
from .columns import Standardization
from .distances import Exponential
from .scaling import QuantileScaling, Scaling
from .vectors import Gaussian, Laplacian, Linear, Polynomial, VectorKernel
from .widths import (
    MAX_DISTANCE_SAMPLES,
    ROUGH_FACTORS,
    SMOOTH_FACTORS,
    median_distance,
    with_length,
)

#: Values of ``kind=``.
KINDS = ("tables", "gaussians")


def default_bank(
    X: Any,
    *,
    kind: str = "tables",
    n_gaussians: int = 7,
    sample_weight: np.ndarray | None = None,
) -> KernelBank:
    """Kernels for a table of numbers, with widths chosen from the data.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Numeric and finite.
    kind : {"tables", "gaussians"}, default="tables"
        ``"tables"`` holds kernels of different smoothness, for leave-one-out weights to choose
        from: exponentials, Gaussians and Laplacians with widths around the median distance
        on standardised columns, Laplacians on columns mapped to a normal distribution by their
        ranks, and a linear kernel. ``"gaussians"`` holds Gaussians whose gammas are powers of 4
        around ``1 / median ||x - z||^2``, a linear kernel and polynomials of degree 2 and 3, all
        on standardised columns. On sparse data columns are scaled but not centred, and there are
        no ranks.
    n_gaussians : int, default=7
        For ``kind="gaussians"``: number of bandwidths, centred on the median heuristic.
    sample_weight : array of shape (n_samples,), optional
        How often each sample counts in means, scales, ranks and medians.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> bank = mk.default_bank(load_iris().data)
    >>> len(bank)
    13
    >>> bank.names[0]
    'Exponential(length=1.24884, power=1)'
    >>> mk.default_bank(load_iris().data, kind="gaussians")[3]
    Gaussian(gamma=0.160298, scaling=<mean and scale of 4 columns>)
    """
    from sklearn.utils import check_array

    check_choice("default_bank", "kind", kind, KINDS)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    rows = np.unique(np.linspace(0, X.shape[0] - 1, MAX_DISTANCE_SAMPLES).astype(int))
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, X)
        # Only ratios of sample weights matter, and scaling by a power of two is exact.
        weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    some = None if weights is None else weights[rows]
    standard = Standardization.of(X, weights)

    def median(scaling: Scaling, *, l1: bool = False) -> float:
        return median_distance(scaling(X[rows]), l1=l1, sample_weight=some)

    if kind == "gaussians":
        kernels = gaussian_kernels(standard, median(standard), X.shape[1], n_gaussians)
        return KernelBank(kernels, [plain_name(kernel) for kernel in kernels])
    far = median(standard)
    placed: list[tuple[VectorKernel, float]] = [
        *((Exponential(scaling=standard), factor * far) for factor in ROUGH_FACTORS),
        *((Gaussian(scaling=standard), factor * far) for factor in SMOOTH_FACTORS),
    ]
    scalings: list[Scaling] = [standard]
    if not sp.issparse(X):
        scalings.append(QuantileScaling.of(X, weights))
    for scaling in scalings:
        width = median(scaling, l1=True)
        placed += [(Laplacian(scaling=scaling), factor * width) for factor in ROUGH_FACTORS]
    kernels = [with_length(kernel, length) for kernel, length in placed]
    kernels.append(Linear(scaling=standard))
    return KernelBank(kernels, [plain_name(kernel) for kernel in kernels])


def gaussian_kernels(
    scaling: Standardization, median: float, n_features: int, n_gaussians: int
) -> list[Kernel]:
    """Gaussians around the median heuristic, a linear kernel, and two polynomials."""
    steps = np.arange(n_gaussians) - (n_gaussians - 1) / 2
    kernels: list[Kernel] = [Gaussian(4.0**step / median**2, scaling=scaling) for step in steps]
    kernels.append(Linear(scaling=scaling))
    return kernels + [
        Polynomial(degree, 1.0, 1.0 / n_features, scaling=scaling) for degree in (2, 3)
    ]


def plain_name(kernel: Kernel) -> str:
    """The name of a kernel on scaled columns, without the scaling."""
    plain = repr(replace(kernel, scaling=None))  # type: ignore[type-var]
    by_ranks = isinstance(getattr(kernel, "scaling", None), QuantileScaling)
    return f"{plain} of ranks" if by_ranks else plain
