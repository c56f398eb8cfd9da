"""A kernel on columns of categories, from the number of columns in which two samples differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from .base import check_number
from .vectors import VectorKernel

#: Largest sparse X that is converted to a dense array, in entries: 1 GiB in float64.
MAX_DENSE_ENTRIES = 2**27


@dataclass(frozen=True, repr=False)
class LevelCosts:
    """The cost of a mismatch for each level of each column, as a hashable value.

    Attributes
    ----------
    levels : tuple of tuple of float
        The codes of each column on the training sample, in increasing order.
    costs : tuple of tuple of float
        The logarithm of one over the frequency of each level.
    """

    levels: tuple[tuple[float, ...], ...]
    costs: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        return f"<costs of the levels of {len(self.levels)} columns>"

    def of_column(self, j: int, codes: np.ndarray) -> np.ndarray:
        """The cost of every entry of column j; new levels are as rare as the rarest known one."""
        levels, costs = np.array(self.levels[j]), np.array(self.costs[j])
        place = np.minimum(np.searchsorted(levels, codes), len(levels) - 1)
        return np.where(levels[place] == codes, costs[place], costs.max())


@dataclass(frozen=True, repr=False)
class Overlap(VectorKernel):
    """The overlap kernel of categories, ``K(x, z) = exp(-gamma * mismatches)``.

    ``mismatches`` is the number of the selected columns in which x and z differ. Columns hold
    category codes: any numbers, compared only for equality. The kernel is ``Gaussian(gamma / 2)``
    on the one-hot columns of the same categories.

    Parameters
    ----------
    gamma : float or None, default=None
        Positive cost of a mismatch. None learns it from the training sample: one over the mean
        number (or cost) of mismatches between two samples drawn independently.
    weights : {"frequency"} or None, default=None
        None counts every mismatch as 1. With ``"frequency"`` a mismatch of the levels a and b of a
        column costs ``(log(1 / f_a) + log(1 / f_b)) / 2``, where f are their frequencies in the
        training sample: sharing a rare level means more than sharing a common one. Levels that do
        not occur in the training sample count as rare as the rarest one that does.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default. Select the category columns if X
        has others, because two measurements are hardly ever equal.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Overlap(gamma=0.5)([[0, 2, 1]], [[0, 3, 7]]).round(4)
    array([[0.3679]])
    >>> mk.Overlap().adapt([[0, 1], [0, 2]])
    Overlap(gamma=2)
    """

    gamma: float | None = None
    weights: LevelCosts | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma is not None:
            check_number("Overlap", "gamma", self.gamma, positive=True)
            object.__setattr__(self, "gamma", float(self.gamma))
        named = isinstance(self.weights, str) and self.weights == "frequency"
        if not (self.weights is None or named or isinstance(self.weights, LevelCosts)):
            raise ValueError(f"Overlap: weights must be 'frequency' or None; got {self.weights!r}.")
        if self.scaling is not None:
            raise ValueError(
                "Overlap compares codes only for equality, so scaling must be None; got "
                f"{self.scaling!r}."
            )

    def __repr__(self) -> str:
        return super().__repr__().replace(", weights=None", "")

    @property
    def is_psd(self) -> bool:
        return True  # a Gaussian of one-hot columns that are scaled level by level

    @property
    def is_infinitely_divisible(self) -> bool:
        return True

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Overlap:
        resolved = super().resolve(n_features, feature_names)
        assert isinstance(resolved, Overlap)
        if isinstance(self.weights, LevelCosts):
            columns = resolved.columns
            width = n_features if columns is None else len(columns)  # type: ignore[arg-type]
            self._require_width(width)
        return resolved

    def adapt(
        self,
        X: Any,
        sample_weight: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> VectorKernel:
        """The kernel with gamma and the costs of levels learned from a training sample."""
        if self.gamma is not None and not isinstance(self.weights, str):
            return self
        placed = self
        if feature_names is not None:
            placed = self.resolve(X.shape[1], feature_names)
        codes = placed.select(X)
        omega = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
        levels, shares = zip(*(_frequencies(column, omega) for column in codes.T), strict=True)
        weights = self.weights
        if isinstance(weights, str):
            weights = LevelCosts(
                tuple(tuple(one.tolist()) for one in levels),
                tuple(tuple(np.log(1.0 / share).tolist()) for share in shares),
            )
        gamma = self.gamma
        if gamma is None:
            costs = [np.ones(len(share)) for share in shares]
            if weights is not None:
                costs = [np.array(one) for one in weights.costs]
            # A sample of level a meets another level with probability 1 - f_a.
            each = [np.sum(f * (1.0 - f) * cost) for f, cost in zip(shares, costs, strict=True)]
            mean = float(np.sum(each))
            # If all samples are equal, gamma is such that a mismatch in every column gives 1 / e.
            gamma = 1.0 / mean if mean > 0 else 1.0 / len(levels)
        return dataclasses.replace(placed, gamma=gamma, weights=weights)

    def select(self, X: Any) -> Any:
        """The codes of the columns this kernel sees, as a dense array."""
        codes = super().select(X)
        if sp.issparse(codes):
            if codes.shape[0] * codes.shape[1] > MAX_DENSE_ENTRIES:
                raise ValueError(
                    f"Kernel {self!r} compares categories, where zero is a level like any other, "
                    f"and needs a dense array: the sparse X has {codes.shape[0]} samples and "
                    f"{codes.shape[1]} columns, more than {MAX_DENSE_ENTRIES} entries. Select the "
                    "category columns with columns=..."
                )
            codes = codes.toarray()
        if np.isnan(codes).any():
            raise ValueError(
                f"Kernel {self!r}: category codes must not be NaN. Give missing entries a code of "
                "their own."
            )
        return codes

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        if self.gamma is None or isinstance(self.weights, str):
            raise ValueError(
                f"{self!r} learns from a training sample. Use K = kernel.adapt(X_train), then K(X, "
                "Z)."
            )
        return super().__call__(X, Z)

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        if X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"Kernel {self!r}: samples of {X.shape[1]} and of {Z.shape[1]} columns cannot be "
                "compared."
            )
        assert self.gamma is not None
        return np.exp(-self.gamma * self._mismatches(X, Z)).astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)

    def _mismatches(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """The number or cost of the columns in which samples differ, shape (n_X, n_Z)."""
        if not isinstance(self.weights, LevelCosts):
            if X.shape[0] == 0 or Z.shape[0] == 0:
                return np.zeros((X.shape[0], Z.shape[0]))
            # cdist gives the share of columns that differ; rint removes the rounding error.
            return np.rint(X.shape[1] * cdist(X, Z, "hamming"))
        self._require_width(X.shape[1])
        total = np.zeros((X.shape[0], Z.shape[0]))
        for j in range(X.shape[1]):
            mine, other = (self.weights.of_column(j, codes) for codes in (X[:, j], Z[:, j]))
            differ = X[:, j, None] != Z[:, j]
            total += differ * (0.5 * (mine[:, None] + other))
        return total

    def _require_width(self, width: int) -> None:
        assert isinstance(self.weights, LevelCosts)
        if len(self.weights.levels) != width:
            raise ValueError(
                f"Kernel {self!r} has learned the levels of {len(self.weights.levels)} columns, "
                f"but selects {width} of X. Adapt it to data with the same columns."
            )


def _frequencies(column: np.ndarray, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The levels of a column, and the share of the total weight of each."""
    counts_of = omega > 0  # samples of weight zero do not count
    levels, where = np.unique(column[counts_of], return_inverse=True)
    counts = np.bincount(where, omega[counts_of])
    return levels, counts / counts.sum()
