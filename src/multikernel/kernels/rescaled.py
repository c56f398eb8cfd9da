"""The kernels of a bank on columns that are multiplied by factors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Kernel
from .columns import Standardization, take_columns
from .distances import Exponential, Matern
from .scaling import QuantileScaling
from .vectors import Gaussian, Laplacian, VectorKernel
from .widths import MAX_DISTANCE_SAMPLES, median_distance

#: The kernels that are repeated on rescaled columns: functions of a distance, with a width.
WITH_WIDTH = (Gaussian, Laplacian, Exponential, Matern)
#: Smallest factor, relative to the largest, so that scales stay finite.
SMALLEST_FACTOR = 1e-6


def rescaled(
    kernels: Sequence[Kernel],
    factors: np.ndarray,
    X: Any,
    sample_weight: np.ndarray | None = None,
) -> list[VectorKernel]:
    """Kernels of a distance, with new weights for the columns in that distance.

    Gaussians, Laplacians, exponentials and Matern kernels are repeated; others are left out.

    Parameters
    ----------
    kernels : sequence of kernels
        Resolved and adapted to X: columns are indices, scalings and widths are learned.
    factors : array of shape (n_features,)
        Factors of the columns of X after they are brought to unit variance (or to a normal
        distribution, for a kernel of ranks). Their common size does not matter.
    X : array or CSR matrix of shape (n_samples, n_features)
        Each width stays the same multiple of the median distance between these samples.
    sample_weight : array of shape (n_samples,), optional
    """
    rows = np.unique(np.linspace(0, X.shape[0] - 1, MAX_DISTANCE_SAMPLES).astype(int))
    omega = None if sample_weight is None else np.asarray(sample_weight)[rows]
    medians: dict[Any, float] = {}  # shared by kernels on the same columns

    def median(kernel: VectorKernel) -> float:
        l1 = type(kernel) is Laplacian
        key = (kernel.columns, kernel.scaling, l1)
        if key not in medians:
            medians[key] = median_distance(kernel.select(X[rows]), l1=l1, sample_weight=omega)
        return medians[key]

    out = []
    for kernel in kernels:
        if not has_width(kernel):
            continue
        assert isinstance(kernel, VectorKernel)
        scaling = _scaling(kernel, factors, X, sample_weight)
        if scaling is not None:
            moved = dataclasses.replace(kernel, scaling=scaling)
            out.append(_widened(moved, median(moved) / median(kernel)))
    return out


def has_width(kernel: Kernel) -> bool:
    """Whether a kernel can be repeated on rescaled columns."""
    return type(kernel) in WITH_WIDTH


def _scaling(
    kernel: VectorKernel, factors: np.ndarray, X: Any, sample_weight: np.ndarray | None
) -> Standardization | QuantileScaling | None:
    """The scaling of the kernel's columns, times the factors; None if all factors are zero."""
    own = factors if kernel.columns is None else factors[np.asarray(kernel.columns, dtype=np.intp)]
    if not np.any(own > 0):
        return None
    own = np.maximum(own / own.max(), SMALLEST_FACTOR)
    if isinstance(kernel.scaling, QuantileScaling):
        return QuantileScaling(kernel.scaling.knots, kernel.scaling.scores * own[:, None])
    standard = Standardization.of(take_columns(X, kernel.columns), sample_weight)
    return Standardization(tuple((np.asarray(standard.scale) / own).tolist()), standard.mean)


def _widened(kernel: VectorKernel, factor: float) -> VectorKernel:
    """The same kernel with its width multiplied by a factor."""
    if type(kernel) is Laplacian:
        return dataclasses.replace(kernel, gamma=kernel.gamma / factor)
    if isinstance(kernel, Gaussian):
        return dataclasses.replace(kernel, gamma=kernel.gamma / factor**2)
    return dataclasses.replace(kernel, length=kernel.length * factor)  # type: ignore[call-arg, attr-defined]
