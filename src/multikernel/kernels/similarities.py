"""Similarities of fingerprints, counts and directions: ratios of dot products, minima and norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms

from .histograms import CountKernel
from .vectors import VectorKernel, _dot


@dataclass(frozen=True, repr=False)
class Tanimoto(CountKernel):
    """The Tanimoto kernel ``K(x, z) = <x, z> / (<x, x> + <z, z> - <x, z>)``.

    On fingerprints of zeros and ones it is Jaccard's similarity, the number of ones that two
    molecules share over the number that either has. Counts and other values that are not negative
    are allowed. Two rows of zeros are equal, so that their similarity is 1.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Tanimoto()([[1, 1, 0, 1]], [[0, 1, 0, 1]]).round(4)
    array([[0.6667]])
    """

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        products = _dot(X, Z)
        either = row_norms(X, squared=True)[:, None] + row_norms(Z, squared=True) - products
        return _ratio(products, either)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class MinMax(CountKernel):
    """The kernel ``K(x, z) = sum_c min(x_c, z_c) / sum_c max(x_c, z_c)``.

    For counts and other values that are not negative; on zeros and ones it is the Tanimoto kernel.
    Two rows of zeros are equal, so that their similarity is 1.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.MinMax()([[1, 0, 3]], [[2, 0, 2]])
    array([[0.6]])
    """

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        smaller, larger = _minima_and_maxima(X, Z)
        return _ratio(smaller, larger).astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class HistogramIntersection(CountKernel):
    """The histogram intersection kernel ``K(x, z) = sum_c min(x_c, z_c)``.

    For histograms, counts and other values that are not negative.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.HistogramIntersection()([[1, 0, 3]], [[2, 0, 2]])
    array([[3.]])
    """

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return _minima_and_maxima(X, Z)[0].astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(X.sum(axis=1)).ravel()


@dataclass(frozen=True, repr=False)
class Cosine(VectorKernel):
    """The cosine of the angle, ``K(x, z) = <x, z> / (||x|| ||z||)``.

    For counts of words and other rows whose length does not matter. A row of zeros has no
    direction: its similarity with every row, itself included, is 0.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Cosine()([[3, 4]], [[5, 0], [0, 0]])
    array([[0.6, 0. ]])
    """

    @property
    def is_psd(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return _dot(_of_unit_length(X), _of_unit_length(Z))

    def _diag(self, X: Any) -> np.ndarray:
        return (row_norms(X, squared=True) > 0).astype(X.dtype)


def _of_unit_length(X: Any) -> Any:
    """The rows divided by their Euclidean norms; rows of zeros stay zero."""
    lengths = row_norms(X)
    factors = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return X.multiply(factors[:, None]).tocsr() if sp.issparse(X) else X * factors[:, None]


def _minima_and_maxima(X: Any, Z: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the columns of the smaller and of the larger value, each of shape (n_X, n_Z)."""
    shape = (X.shape[0], Z.shape[0])
    if 0 in shape or X.shape[1] == 0:
        return np.zeros(shape), np.zeros(shape)
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    sums = np.asarray(X.sum(axis=1)).ravel()[:, None] + np.asarray(Z.sum(axis=1)).ravel()
    if sp.issparse(X) != sp.issparse(Z):
        X, Z = sp.csr_matrix(X), sp.csr_matrix(Z)
    apart = manhattan_distances(X, Z)
    # Rounding could make the minima of disjoint rows negative.
    return np.maximum(0.5 * (sums - apart), 0.0), 0.5 * (sums + apart)


def _ratio(common: np.ndarray, either: np.ndarray) -> np.ndarray:
    """The quotient of two arrays, and 1 where both are zero."""
    return np.divide(common, either, out=np.ones_like(common), where=either > 0)
