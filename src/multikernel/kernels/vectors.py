"""Kernels on vectors: scalar functions of a dot product or of a distance."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .base import Kernel, check_number
from .columns import Columns, freeze_columns, resolve_columns, take_columns
from .scaling import Scaling, check_scaling, learn_scaling


@dataclass(frozen=True, repr=False)
class VectorKernel(Kernel):
    """A kernel on the (selected, possibly standardised) columns of a table."""

    _: KW_ONLY
    columns: Columns = None
    scaling: Scaling | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", freeze_columns(self.columns))
        check_scaling(type(self).__name__, self.scaling)

    def __repr__(self) -> str:
        own = [f.name for f in dataclasses.fields(self) if f.name not in ("columns", "scaling")]
        shown = [f"{name}={_format(getattr(self, name))}" for name in own]
        if self.columns is not None:
            shown.append(f"columns={_format_columns(self.columns)}")
        if self.scaling is not None:
            shown.append(f"scaling={self.scaling!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> VectorKernel:
        columns = resolve_columns(self.columns, n_features, feature_names, repr(self))
        resolved = self
        if columns != self.columns:
            resolved = dataclasses.replace(self, columns=columns)
        if self.scaling is not None and not isinstance(self.scaling, str):
            width = n_features if columns is None else len(columns)  # type: ignore[arg-type]
            if self.scaling.width != width:
                raise ValueError(
                    f"Kernel {self!r} scales {self.scaling.width} columns, but selects "
                    f"{width} of X. Build the bank on data with the same columns."
                )
        return resolved

    def adapt(
        self,
        X: Any,
        sample_weight: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> VectorKernel:
        """The kernel with its scaling learned from a training sample."""
        if not isinstance(self.scaling, str):
            return self
        learned = learn_scaling(self.scaling, self.columns, X, sample_weight, feature_names)
        return dataclasses.replace(self, scaling=learned)

    def select(self, X: Any) -> Any:
        """The columns this kernel sees, scaled: an array or a sparse matrix."""
        if isinstance(self.scaling, str):
            raise ValueError(
                f"{self!r} learns its scaling from a training sample. Use K = "
                "kernel.adapt(X_train), then K(X, Z)."
            )
        X = take_columns(as_table(X, self), self.columns)
        if self.scaling is not None:
            X = self.scaling(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        return X

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        X = self.select(X)
        Z = X if Z is None else self.select(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            K = self._pairs(X, Z)
            # Check the sum first, which is cheap: it is not finite if any entry is not.
            whole = bool(np.isfinite(K.sum()))
        if not whole and not np.isfinite(K).all():
            raise ValueError(
                f"{self!r} is not finite on these data: they hold NaN or infinite values, or "
                "numbers whose products leave floating point. Fill the gaps, or scale the columns."
            )
        return K

    def diag(self, X: Any) -> np.ndarray:
        return self._diag(self.select(X))

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        raise NotImplementedError

    def _diag(self, X: Any) -> np.ndarray:
        raise NotImplementedError


#: Largest absolute value that the function of a `Callable` may return: its square stays finite.
MAX_VALUE = 1e150


def as_table(X: Any, kernel: Kernel) -> Any:
    """X as an object that kernels can read; ValueError unless it has two dimensions."""
    if hasattr(X, "numbers"):  # a table with columns of sequences
        return X
    if sp.issparse(X):
        return X if X.format in ("csr", "csc") else X.tocsr()
    if not hasattr(X, "shape"):
        try:
            X = np.asarray(X)
        except ValueError as error:  # rows of different lengths
            raise ValueError(f"{kernel!r} needs a table, rows of one length: {error}") from None
    if len(X.shape) != 2:
        raise ValueError(
            f"{kernel!r} needs a table of shape (n_samples, n_features); got shape {X.shape}. One "
            "sample is X.reshape(1, -1), one feature X.reshape(-1, 1)."
        )
    return X


def _format(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _format_columns(columns: Columns) -> str:
    """A short text for the selected columns, readable even if there are a thousand."""
    if not isinstance(columns, tuple):
        return repr(columns)
    if len(columns) == 1:
        return repr(columns[0])
    indices = [c for c in columns if isinstance(c, int)]
    if len(indices) == len(columns) > 2 and indices == list(range(indices[0], indices[-1] + 1)):
        return f"slice({indices[0]}, {indices[-1] + 1})"
    if len(columns) <= 6:
        return repr(list(columns))
    return f"[{', '.join(map(repr, columns[:3]))}, ... {len(columns)} in all]"


def _dot(X: Any, Z: Any) -> np.ndarray:
    return np.asarray(safe_sparse_dot(X, Z.T, dense_output=True))


def _squared_distances(X: Any, Z: Any) -> np.ndarray:
    """Squared distances from dot products around the mean of Z, which avoids cancellation."""
    if X.shape[0] == 0 or Z.shape[0] == 0:
        return np.zeros((X.shape[0], Z.shape[0]))
    if sp.issparse(X) or sp.issparse(Z):
        return np.asarray(euclidean_distances(X, Z, squared=True))
    origin = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
    moved = Z - origin
    return np.asarray(euclidean_distances(moved if X is Z else X - origin, moved, squared=True))


@dataclass(frozen=True, repr=False)
class Linear(VectorKernel):
    """The dot product ``K(x, z) = <x, z>``.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    >>> mk.Linear(columns=[0, 2])
    Linear(columns=[0, 2])
    """

    @property
    def is_psd(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return _dot(X, Z)

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray(row_norms(X, squared=True))


@dataclass(frozen=True, repr=False)
class Polynomial(VectorKernel):
    """The polynomial kernel ``K(x, z) = (gamma <x, z> + coef0) ** degree``.

    Parameters
    ----------
    degree : int, default=2
        A positive whole number.
    coef0 : float, default=1.0
        The constant c of the papers; the kernel is positive semidefinite for c >= 0.
    gamma : float, default=1.0
        Positive scale of the dot product.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 2
    coef0: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Polynomial", "degree", self.degree, positive=True, whole=True)
        check_number("Polynomial", "coef0", self.coef0)
        check_number("Polynomial", "gamma", self.gamma, positive=True)
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "coef0", float(self.coef0))
        object.__setattr__(self, "gamma", float(self.gamma))

    @property
    def is_psd(self) -> bool:
        return self.coef0 >= 0

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return (self.gamma * _dot(X, Z) + self.coef0) ** self.degree

    def _diag(self, X: Any) -> np.ndarray:
        return np.asarray((self.gamma * row_norms(X, squared=True) + self.coef0) ** self.degree)


@dataclass(frozen=True, repr=False)
class Gaussian(VectorKernel):
    """The Gaussian kernel ``K(x, z) = exp(-gamma ||x - z||^2)``.

    Parameters
    ----------
    gamma : float, default=1.0
        Positive inverse squared width; ``1 / (2 sigma^2)`` for a width sigma.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> K = mk.Gaussian(gamma=0.5)
    >>> K
    Gaussian(gamma=0.5)
    >>> K == mk.Gaussian(0.5)
    True
    >>> K([[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(type(self).__name__, "gamma", self.gamma, positive=True)
        object.__setattr__(self, "gamma", float(self.gamma))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def is_infinitely_divisible(self) -> bool:
        return True  # a power is a Gaussian with another gamma

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return np.exp(-self.gamma * _squared_distances(X, Z))

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class Laplacian(Gaussian):
    """The Laplacian kernel ``K(x, z) = exp(-gamma ||x - z||_1)``.

    Parameters
    ----------
    gamma : float, default=1.0
        Positive inverse width.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        if X.shape[0] == 0 or Z.shape[0] == 0:
            return np.zeros((X.shape[0], Z.shape[0]))
        return np.exp(-self.gamma * manhattan_distances(X, Z)).astype(X.dtype, copy=False)


@dataclass(frozen=True, repr=False)
class Sigmoid(VectorKernel):
    """The sigmoid ``K(x, z) = tanh(gamma <x, z> + coef0)``: symmetric, not positive semidefinite.

    Estimators that need a positive semidefinite kernel accept it as long as the *learned
    combination* is positive semidefinite on the training sample, and otherwise report how far it is
    from that. Votes (:class:`multikernel.VotedKernelClassifier`) accept it as it is.

    Parameters
    ----------
    gamma : float, default=1.0
        Scale of the dot product, not 0. With a negative scale, similar samples get negative values.
    coef0 : float, default=0.0
        Offset.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Sigmoid(gamma=1.0)([[1.0]], [[1.0]]).round(4)
    array([[0.7616]])
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Sigmoid", "gamma", self.gamma)
        if self.gamma == 0:
            raise ValueError(
                "Sigmoid: gamma must not be 0, which makes the kernel the constant tanh(coef0)."
            )
        check_number("Sigmoid", "coef0", self.coef0)
        object.__setattr__(self, "gamma", float(self.gamma))
        object.__setattr__(self, "coef0", float(self.coef0))

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        return self._of_dot_products(_dot(X, Z))

    def _diag(self, X: Any) -> np.ndarray:
        return self._of_dot_products(row_norms(X, squared=True))

    def _of_dot_products(self, products: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # tanh is 1 at infinity
            return np.asarray(np.tanh(self.gamma * products + self.coef0))


@dataclass(frozen=True, repr=False)
class Callable(VectorKernel):
    """Any function ``func(X, Z)`` that returns a matrix of shape (n_X, n_Z).

    Combinations of kernels need a symmetric one. Voted kernels
    (:class:`multikernel.VotedKernelClassifier`) accept any function: they combine ``x -> func(x,
    x_j)``, one for each training sample ``x_j``.

    Parameters
    ----------
    func : callable
        Receives two arrays of shape (n_X, d) and (n_Z, d), the selected columns.
    label : str or None
        Name of the kernel; by default the name of the function.
    psd : bool, default=False
        Declare that the kernel is positive semidefinite. Otherwise the learned combination is
        checked on the training sample.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> def overlap(X, Z):
    ...     return np.minimum(X[:, None], Z[None]).sum(axis=2)
    >>> K = mk.Callable(overlap)
    >>> K
    Callable(overlap)
    >>> K(np.array([[1.0, 3.0]]), np.array([[2.0, 2.0]]))
    array([[3.]])
    """

    func: Function[[Any, Any], Any]
    label: str | None = None
    psd: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.func):
            raise TypeError(f"Callable: func must be a function of (X, Z); got {self.func!r}.")
        try:
            signature = inspect.signature(self.func)
        except (TypeError, ValueError):  # some compiled functions have no signature
            return
        try:
            signature.bind(None, None)
        except TypeError:
            raise TypeError(
                f"Callable: func must take two arguments, X and Z; {self.func!r} has the signature "
                f"{signature}."
            ) from None

    def __repr__(self) -> str:
        label = self.label or getattr(self.func, "__name__", repr(self.func))
        shown = "" if self.columns is None else f", columns={_format_columns(self.columns)}"
        return f"Callable({label}{shown})"

    @property
    def is_psd(self) -> bool:
        return self.psd

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        # Copies: a function that writes into its arguments must not change the sample.
        K = self.func(X.copy(), Z.copy())
        K = np.asarray(K.toarray() if sp.issparse(K) else K)
        expected = (X.shape[0], Z.shape[0])
        if K.shape != expected or K.dtype.kind not in "fiub":
            raise ValueError(
                f"Kernel {self!r}: the function must return a numeric matrix of shape {expected} "
                f"for inputs with {expected[0]} and {expected[1]} rows; got shape {K.shape}, "
                f"dtype {K.dtype}."
            )
        K = K.astype(np.float64) if K.dtype not in (np.float32, np.float64) else K
        if not np.isfinite(K).all():
            raise ValueError(f"Kernel {self!r} returned NaN or infinite values.")
        if np.abs(K).max(initial=0.0) > MAX_VALUE:
            raise ValueError(
                f"Kernel {self!r} returned values up to {np.abs(K).max():.3g}, whose squares "
                f"overflow (the limit is {MAX_VALUE:g}). Scale the function."
            )
        return K

    def _diag(self, X: Any) -> np.ndarray:
        return np.array([self._pairs(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])])
