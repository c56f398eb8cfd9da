"""Kernels on histograms, counts and other columns without negative values.

Both chi-squared kernels use the distance ``d(x, z) = sum_c (x_c - z_c)^2 / (x_c + z_c)``, to which
columns that are zero in x and z contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel

from .columns import Columns, ColumnSlice
from .vectors import Gaussian, VectorKernel


@dataclass(frozen=True, repr=False)
class ChiSquared(Gaussian):
    """The chi-squared kernel ``K(x, z) = exp(-gamma sum_c (x_c - z_c)^2 / (x_c + z_c))``.

    For histograms, counts and other columns without negative values.

    Parameters
    ----------
    gamma : float, default=1.0
        Positive rate. One over the mean chi-squared distance of the training samples is a common
        choice.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.ChiSquared(gamma=0.5)([[1.0, 0.0, 3.0]], [[3.0, 0.0, 3.0]]).round(4)
    array([[0.6065]])
    """

    def select(self, X: Any) -> Any:
        return require_nonnegative_columns(self, X, super().select(X))

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return np.exp(-self.gamma * chi_squared_distances(X, Z)).astype(X.dtype, copy=False)


@dataclass(frozen=True, repr=False)
class CountKernel(VectorKernel):
    """A positive semidefinite kernel on columns without negative values."""

    @property
    def is_psd(self) -> bool:
        return True

    def select(self, X: Any) -> Any:
        return require_nonnegative_columns(self, X, super().select(X))


@dataclass(frozen=True, repr=False)
class AdditiveChiSquared(CountKernel):
    """The additive chi-squared kernel ``K(x, z) = sum_c 2 x_c z_c / (x_c + z_c)``.

    For histograms, counts and other columns without negative values. It is half of
    ``sum_c x_c + sum_c z_c - d(x, z)`` with the chi-squared distance d, so the centred kernel is
    -1/2 times the centred distances. (``sklearn.metrics.pairwise.additive_chi2_kernel`` returns the
    distances with a minus sign, which is not positive semidefinite.)

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.AdditiveChiSquared()([[1.0, 0.0, 3.0]], [[3.0, 0.0, 3.0]])
    array([[4.5]])
    """

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        sums = self._diag(X)[:, None] + self._diag(Z)
        # Rounding could make the product of disjoint histograms negative.
        values = np.maximum(0.5 * (sums - chi_squared_distances(X, Z)), 0.0)
        return values.astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(X.sum(axis=1)).ravel()


def chi_squared_distances(X: Any, Z: Any) -> np.ndarray:
    """Chi-squared distances between the rows of two arrays or CSR matrices, shape (n_X, n_Z)."""
    if X.shape[0] == 0 or Z.shape[0] == 0 or X.shape[1] == 0:
        return np.zeros((X.shape[0], Z.shape[0]))
    if not sp.issparse(X) and not sp.issparse(Z):
        # scikit-learn's compiled function needs writable arrays: copy views of read-only memory.
        return np.asarray(-additive_chi2_kernel(*(np.require(A, requirements="W") for A in (X, Z))))
    from ._histogram_loops import sparse_chi_squared  # importing numba is slow

    parts: list[np.ndarray] = []
    for matrix in (X, Z):
        rows = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        parts += [rows.data, rows.indices, rows.indptr]
    out = np.empty((X.shape[0], Z.shape[0]))
    sparse_chi_squared(*parts, out)  # type: ignore[call-arg]
    return out


def require_nonnegative(Z: Any, who: str, columns: Columns, n_features: int | None = None) -> None:
    """Raise ValueError if a selected column holds a negative value.

    Parameters
    ----------
    Z : array or CSR matrix
        The columns that the kernel sees.
    who : str
        The kernel's name in the error message.
    columns : tuple, slice or None
        The kernel's names or indices for these columns.
    n_features : int or None
        The number of columns of X, from which a slice selects.
    """
    if not np.any((Z.data if sp.issparse(Z) else Z) < 0):
        return
    entries = sp.coo_matrix(Z)
    first = int(np.flatnonzero(entries.data < 0)[0])
    row, place = int(entries.row[first]), int(entries.col[first])
    column: Any = place
    if isinstance(columns, ColumnSlice) and n_features is not None:
        column = range(*slice(columns.start, columns.stop, columns.step).indices(n_features))[place]
    elif isinstance(columns, tuple):
        column = columns[place]
    raise ValueError(
        f"Kernel {who} needs non-negative values, such as counts and histograms; column {column!r} "
        f"of X holds {float(entries.data[first]):g} (row {row}). Leave the column out with "
        "columns=..., or shift or clip its values."
    )


def require_nonnegative_columns(kernel: VectorKernel, X: Any, selected: Any) -> Any:
    """The columns of X that a kernel has selected, none of them with a negative value."""
    n_features = X.shape[1] if hasattr(X, "shape") else len(X[0])
    require_nonnegative(selected, repr(kernel), kernel.columns, n_features)
    return selected
