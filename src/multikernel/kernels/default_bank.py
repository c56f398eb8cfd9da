"""The bank that estimators use when no kernels are given: widths follow the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from .bank import KernelBank
from .base import Kernel
from .columns import Standardization
from .vectors import Gaussian, Linear, Polynomial


def default_bank(
    X: Any, *, n_gaussians: int = 7, sample_weight: np.ndarray | None = None
) -> KernelBank:
    """A sensible family for people who do not want to choose.

    Gaussians whose gammas are powers of 4 around the median heuristic
    ``1 / median ||x - z||^2``, a linear kernel and polynomials of degree 2 and 3, all on
    standardised columns (on sparse data the columns are scaled but not centred).

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Numeric and finite.
    n_gaussians : int, default=7
        How many bandwidths, centred on the median heuristic.
    sample_weight : array of shape (n_samples,), optional
        How often each point counts in means, scales and the median.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> bank = mk.default_bank(load_iris().data)
    >>> len(bank)
    10
    >>> bank[3]
    Gaussian(gamma=0.160298, scaling=<mean and scale of 4 columns>)
    """
    from sklearn.utils import check_array

    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    scaling = Standardization.of(X, sample_weight)
    n, d = X.shape
    omega = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    # The median is a rough guide: a thousand evenly spaced rows place it well enough.
    rows = np.unique(np.linspace(0, n - 1, min(n, 1000)).astype(int))
    i, j = np.triu_indices(len(rows), k=1)
    distances = euclidean_distances(scaling(X[rows]), squared=True)[i, j]
    gamma = _inverse_median(distances, (omega[rows][:, None] * omega[rows])[i, j], default=1.0 / d)
    steps = np.arange(n_gaussians) - (n_gaussians - 1) / 2
    kernels: list[Kernel] = [Gaussian(gamma * 4.0**step, scaling=scaling) for step in steps]
    kernels.append(Linear(scaling=scaling))
    kernels += [Polynomial(degree, 1.0, 1.0 / d, scaling=scaling) for degree in (2, 3)]
    names = [_plain_name(kernel) for kernel in kernels]
    return KernelBank(kernels, names)


def _inverse_median(distances: np.ndarray, counts: np.ndarray, default: float) -> float:
    """One over the median of the positive distances, each counted so many times."""
    # Copies of a point are at distance zero up to rounding.
    positive = distances > 1e-12 * distances.max(initial=0.0)
    if not np.any(positive):
        return default
    order = np.argsort(distances[positive], kind="stable")
    reached = np.cumsum(counts[positive][order])
    # A hair below half: equal sums in another order must find the same distance.
    middle = int(np.searchsorted(reached, 0.5 * reached[-1] * (1 - 1e-9)))
    return float(1.0 / distances[positive][order[middle]])


def _plain_name(kernel: Kernel) -> str:
    return repr(replace(kernel, scaling=None))  # type: ignore[type-var]
