"""Kernels whose widths follow the distances between training samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from .bank import KernelBank
from .base import check_number
from .columns import freeze_columns
from .distances import Exponential, Matern
from .histograms import ChiSquared
from .scaling import check_scaling, learn_scaling
from .vectors import Gaussian, Laplacian, Linear, VectorKernel

#: The median distance is computed from at most this many samples, evenly spaced.
MAX_DISTANCE_SAMPLES = 1000


@dataclass(frozen=True, repr=False)
class AtDistance(VectorKernel):
    """A kernel whose width is a multiple of the median distance between training samples.

    It becomes an ordinary kernel when a model is fitted (``bank_`` of the model shows it).
    """

    kernel: VectorKernel = dataclasses.field(default_factory=Exponential)
    factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("AtDistance", "factor", self.factor, positive=True)
        check_scaling("AtDistance", self.scaling)
        known = isinstance(self.kernel, (Gaussian, Exponential, Matern))
        if not known or isinstance(self.kernel, ChiSquared):  # a subclass of Gaussian
            raise TypeError(
                "AtDistance needs a kernel with a width that is a Euclidean or L1 distance: "
                f"Gaussian, Laplacian, Exponential or Matern; got {self.kernel!r}."
            )

    @property
    def is_psd(self) -> bool:
        return True

    def adapt(
        self,
        X: Any,
        sample_weight: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> VectorKernel:
        scaling = self.scaling
        if isinstance(scaling, str):
            scaling = learn_scaling(scaling, self.columns, X, sample_weight, feature_names)
        placed = dataclasses.replace(self.kernel, columns=self.columns, scaling=scaling)
        if feature_names is not None:
            placed = placed.resolve(X.shape[1], feature_names)
        rows = np.unique(np.linspace(0, X.shape[0] - 1, MAX_DISTANCE_SAMPLES).astype(int))
        omega = None if sample_weight is None else np.asarray(sample_weight)[rows]
        median = median_distance(
            placed.select(X[rows] if not hasattr(X, "iloc") else X.iloc[rows]),
            l1=type(self.kernel) is Laplacian,
            sample_weight=omega,
        )
        return with_length(placed, self.factor * median)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        raise ValueError(
            f"{self!r} takes its width from a training sample. Use K = kernel.adapt(X_train), then "
            "K(X, Z)."
        )


def median_distance(Z: Any, *, l1: bool, sample_weight: np.ndarray | None) -> float:
    """The median of the positive distances between samples.

    If there is none, the distance of two samples that differ by 1 in every column.
    """
    if sample_weight is not None and np.any(sample_weight) and not np.all(sample_weight):
        Z, sample_weight = Z[sample_weight != 0], sample_weight[sample_weight != 0]
    if sp.issparse(Z):
        # scikit-learn's distances need 32-bit indices, which are enough for this small sample.
        Z = sp.csr_matrix((Z.data, Z.indices.astype(np.int32), Z.indptr.astype(np.int32)), Z.shape)
    if l1 and not sp.issparse(Z):
        found = pdist(Z, "cityblock")
    else:
        found = squareform(manhattan_distances(Z) if l1 else euclidean_distances(Z), checks=False)
    # Copies of a sample are at distance zero up to rounding.
    positive = found > 1e-6 * found.max(initial=0.0)
    if not np.any(positive):
        return float(Z.shape[1] if l1 else np.sqrt(Z.shape[1]))
    if sample_weight is None:
        found = found[positive]
        middle = (len(found) - 1) // 2  # the lower median, as with weights of one
        return float(np.partition(found, middle)[middle])
    i, j = np.triu_indices(Z.shape[0], k=1)
    counts = (sample_weight[i] * sample_weight[j])[positive]
    found = found[positive]
    order = np.argsort(found, kind="stable")
    reached = np.cumsum(counts[order])
    # Slightly below half, so that the order of summation cannot change the median.
    middle = int(np.searchsorted(reached, 0.5 * reached[-1] * (1 - 1e-9)))
    return float(found[order[middle]])


def with_length(kernel: VectorKernel, length: float) -> VectorKernel:
    """The same kernel with this width: ``exp(-d^2 / (2 length^2))`` for a Gaussian."""
    if type(kernel) is Laplacian:
        return dataclasses.replace(kernel, gamma=1.0 / length)
    if isinstance(kernel, Gaussian):
        return dataclasses.replace(kernel, gamma=0.5 / length**2)
    return dataclasses.replace(kernel, length=length)  # type: ignore[call-arg]


def at_distances(
    kernel: VectorKernel | None = None,
    factors: Iterable[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
    *,
    scaling: str | None = "standard",
    columns: Any = None,
) -> KernelBank:
    """One kernel per factor, each with that multiple of the median distance as its width.

    The median is taken over pairs of training samples when a model is fitted, so widths suit the
    columns whatever their units and number.

    Parameters
    ----------
    kernel : Gaussian, Laplacian, Exponential or Matern, default=Exponential()
        Its width is replaced. A Laplacian uses distances ``||x - z||_1``.
    factors : sequence of float
    scaling : {"standard", "quantile"} or None, default="standard"
        ``"standard"`` scales every column to mean 0 and variance 1, ``"quantile"`` maps it to a
        normal distribution by its ranks, None leaves the columns as they are.
    columns : names, indices, slice or None
        The columns that the kernels see; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.at_distances(mk.Exponential(), [0.5, 1.0, 2.0])
    >>> model = mk.MultiKernelClassifier(bank).fit(X, y)
    >>> [round(kernel.length, 2) for kernel in model.bank_]
    [1.25, 2.5, 5.0]
    """
    if not isinstance(factors, Iterable) or isinstance(factors, str):
        raise TypeError(f"at_distances: factors must be a sequence of numbers; got {factors!r}.")
    kernel = Exponential() if kernel is None else kernel
    for name, value in (("columns", freeze_columns(columns)), ("scaling", scaling)):
        own = getattr(kernel, name, None)
        if own is not None and own != value:
            raise ValueError(
                f"at_distances: {kernel!r} has {name} of its own, which would be replaced. Pass "
                f"{name}= to at_distances, and a kernel without {name}."
            )
    return KernelBank(
        [AtDistance(kernel, factor, columns=columns, scaling=scaling) for factor in factors]  # type: ignore[arg-type]
    )


#: Widths of the kernels for tables, as multiples of the median distance.
ROUGH_FACTORS = (0.5, 1.0, 4.0)
SMOOTH_FACTORS = (0.5, 1.0, 2.0)


def tables_bank(columns: Any = None, *, sparse: bool = False) -> KernelBank:
    """The kernels of ``default_bank(X, kind="tables")`` with widths and scales yet to be learned.

    They are learned from the training sample of each fit, so that cross-validation learns them
    anew from every training part. On sparse data there are no ranks.
    """
    kinds: list[tuple[VectorKernel, tuple[float, ...], str]] = [
        (Exponential(), ROUGH_FACTORS, "standard"),
        (Gaussian(), SMOOTH_FACTORS, "standard"),
        (Laplacian(), ROUGH_FACTORS, "standard"),
    ]
    if not sparse:
        kinds.append((Laplacian(), ROUGH_FACTORS, "quantile"))
    kernels: list[VectorKernel] = []
    names = []
    for kernel, factors, scaling in kinds:
        for factor in factors:
            kernels.append(AtDistance(kernel, factor, columns=columns, scaling=scaling))
            of_ranks = " of ranks" if scaling == "quantile" else ""
            names.append(f"{type(kernel).__name__} at {factor:g} x median{of_ranks}")
    kernels.append(Linear(columns=columns, scaling="standard"))
    return KernelBank(kernels, [*names, "Linear()"])
