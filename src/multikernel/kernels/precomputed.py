"""Precomputed kernels: given matrices, and samples identified by their row number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._options import check_flag
from .._small import SMALL_SAMPLES
from ._symmetry import asymmetry
from .bank import KernelBank
from .base import Kernel


@dataclass(frozen=True, repr=False, eq=False)
class Precomputed(Kernel):
    """A given kernel matrix, never copied; X is a column of row numbers.

    Two such kernels are equal if they hold the same matrix object.
    """

    matrix: np.ndarray
    label: str

    def __repr__(self) -> str:
        return f"Precomputed({self.label!r}, {self.matrix.shape[0]} samples)"

    @property
    def name(self) -> str:
        return self.label

    def _key(self) -> tuple[Any, ...]:
        # Two views of the same memory are the same kernel.
        interface = self.matrix.__array_interface__
        place = (interface["data"][0], self.matrix.shape, self.matrix.strides)
        return (*place, self.label, self.is_symmetric)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precomputed) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def ids(self, X: Any) -> np.ndarray:
        """Checked row numbers from a column of sample ids."""
        ids = np.asarray(X)
        n = self.matrix.shape[0]
        if ids.ndim == 2 and ids.shape[1] == 1:
            ids = ids[:, 0]
        if ids.ndim != 1 or ids.dtype.kind not in "iuf":
            raise ValueError(
                f"Precomputed kernel {self.label!r}: X must be one column of sample ids "
                f"(mk.sample_ids({n}) or rows of it); got shape {np.shape(X)}."
            )
        whole = ids.astype(np.int64)
        if not np.array_equal(whole, ids):
            raise ValueError(
                f"Precomputed kernel {self.label!r}: sample ids must be whole numbers."
            )
        if whole.size and (whole.min() < 0 or whole.max() >= n):
            raise ValueError(
                f"Precomputed kernel {self.label!r} knows samples 0 to {n - 1}; "
                f"X holds ids from {whole.min()} to {whole.max()}."
            )
        return whole

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        rows = self.ids(X)
        K = self.matrix[np.ix_(rows, rows if Z is None else self.ids(Z))]
        return K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)

    def diag(self, X: Any) -> np.ndarray:
        rows = self.ids(X)
        return self.matrix[rows, rows].astype(np.float64)


@dataclass(frozen=True, repr=False, eq=False)
class AsymmetricPrecomputed(Precomputed):
    """A given matrix whose entry (i, j) need not be its entry (j, i).

    Entry (i, j) is ``K(x_i, x_j)``, the function of sample j evaluated at sample i.
    """

    @property
    def is_symmetric(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Precomputed({self.label!r}, {self.matrix.shape[0]} samples, not symmetric)"


def sample_ids(n_samples: int) -> np.ndarray:
    """Return the X that goes with :func:`precomputed`: row numbers, shape (n_samples, 1).

    Slicing it slices the kernels, so ``cross_val_score`` and ``GridSearchCV`` just work.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.sample_ids(3).ravel()
    array([0, 1, 2])
    """
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 0:
        raise ValueError(f"n_samples must be a whole number, zero or larger; got {n_samples!r}.")
    return np.arange(n_samples).reshape(-1, 1)


def precomputed(
    matrices: np.ndarray | Sequence[np.ndarray],
    names: Sequence[str] | None = None,
    *,
    symmetric: bool = True,
) -> KernelBank:
    """A bank of given kernel matrices over one pool of N samples.

    The matrices are checked once (square, same size, numeric, finite, symmetric) and neither
    copied nor changed. Fit and predict with ``X = mk.sample_ids(N)`` or rows of it.

    Parameters
    ----------
    matrices : array of shape (p, N, N), or sequence of p arrays of shape (N, N)
    names : sequence of p str, optional
        Names of the kernels; ``precomputed[0]``, ... by default.
    symmetric : bool, default=True
        False allows matrices that are not symmetric, with ``K(x_i, x_j)`` in row i and column j:
        a prediction for sample i reads row i at the columns of the training samples. Only
        :class:`VotedKernelClassifier` and its ``CV`` form accept such a bank.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> bank = mk.precomputed([np.eye(4), np.ones((4, 4))], names=["identity", "ones"])
    >>> bank.names
    ['identity', 'ones']
    """
    symmetric = check_flag("precomputed", "symmetric", symmetric)
    if sp.issparse(matrices):
        raise TypeError(
            "precomputed takes a sequence of dense matrices; got a sparse matrix of shape "
            f"{np.shape(matrices)}. Write precomputed([K.toarray()])."
        )
    if isinstance(matrices, np.ndarray) and matrices.ndim == 2:
        raise ValueError(
            f"precomputed takes a sequence of matrices or an array of shape (p, N, N); "
            f"got one matrix of shape {matrices.shape}. Write precomputed([K])."
        )
    if not isinstance(matrices, Iterable) or isinstance(matrices, str):
        raise TypeError(
            "precomputed takes a sequence of matrices or an array of shape (p, N, N); got "
            f"{matrices!r}."
        )
    given = [np.asarray(K) for K in matrices]
    if not given:
        raise ValueError("precomputed needs at least one matrix; got none.")
    if names is not None and (not isinstance(names, Iterable) or sp.issparse(names)):
        raise TypeError(f"precomputed: names must be a sequence of texts or None; got {names!r}.")
    labels = [f"precomputed[{k}]" for k in range(len(given))] if names is None else list(names)
    if len(labels) != len(given):
        raise ValueError(f"Got {len(labels)} names for {len(given)} matrices.")
    n = given[0].shape[0] if given[0].ndim else 0
    for K, label in zip(given, labels, strict=True):
        if K.ndim != 2 or K.shape != (n, n):
            raise ValueError(
                f"Precomputed kernel {label!r} must be a square matrix of the same size as the "
                f"others ({n} x {n}); got shape {K.shape}."
            )
        check_kernel_matrix(K, label, symmetric=symmetric)
    kind = Precomputed if symmetric else AsymmetricPrecomputed
    return KernelBank([kind(K, str(label)) for K, label in zip(given, labels, strict=True)])


def check_kernel_matrix(K: np.ndarray, label: str, *, symmetric: bool = True) -> None:
    """Refuse a kernel matrix that is not numeric, finite and (if ``symmetric``) symmetric."""
    if K.dtype.kind not in "fiub":
        raise ValueError(f"Kernel {label!r}: expected numbers; got dtype {K.dtype}.")
    if K.dtype in (np.float32, np.float64) and K.dtype.isnative and len(K) > SMALL_SAMPLES:
        integer, exponent = (
            (np.uint32, 0x7F800000) if K.dtype == np.float32 else (np.uint64, 0x7FF << 52)
        )
        worst, size, finite = asymmetry(K, K.view(integer), integer(exponent))
    else:
        worst, size, finite = _plain_asymmetry(K)
    if not finite:
        raise ValueError(f"Kernel {label!r} holds NaN or infinite values.")
    # Tolerate the rounding error of the computation, but no larger difference.
    if symmetric and worst > 0 and worst > 1e4 * min(value_precision(K), 1e-7) * size:
        raise ValueError(
            f"Kernel {label!r} is not symmetric: |K[i, j] - K[j, i]| reaches {worst:.3g} with "
            f"entries up to {size:.3g}. Symmetrise it with (K + K.T) / 2 if that is what you want; "
            "votes (VotedKernelClassifier) accept mk.precomputed(matrices, symmetric=False)."
        )


def value_precision(K: np.ndarray) -> float:
    """The relative precision in which the entries of a kernel matrix were computed.

    This is the epsilon of its type, except for a float64 matrix whose entries are all exact float32
    numbers: such a matrix was computed in float32 and converted.
    """
    double, single = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
    if K.dtype.kind != "f":
        return double
    if K.dtype.itemsize < 8:
        return float(np.finfo(K.dtype).eps)
    for row in K:  # for nearly all float64 matrices the first row decides
        with np.errstate(over="ignore"):
            if not np.array_equal(row.astype(np.float32), row):
                return double
    return single


def _plain_asymmetry(K: np.ndarray) -> tuple[float, float, bool]:
    """`asymmetry` for small matrices, integers and rare formats, converted in blocks of rows."""
    worst, size = 0.0, 0.0
    for start in range(0, K.shape[0], 512):
        rows = np.asarray(K[start : start + 512], dtype=np.float64)
        if not np.isfinite(rows).all():
            return 0.0, 0.0, False
        worst = max(worst, float(np.abs(rows - K[:, start : start + 512].T).max(initial=0.0)))
        size = max(size, float(np.abs(rows).max(initial=0.0)))
    return worst, size, True
