"""The columns of X that a kernel sees, as hashable values.

A kernel may look at all of X (``columns=None``) or at some of it: names, patterns of names such as
``"gene_*"``, indices, a boolean mask or a slice. Any of these becomes a hashable value here, so
kernels can be compared, hashed and grouped by the columns they share.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, repr=False)
class ColumnSlice:
    """A ``slice`` that can be hashed (Python's own cannot before 3.12)."""

    start: int | None
    stop: int | None
    step: int | None = None

    def __repr__(self) -> str:
        step = "" if self.step is None else f", {self.step}"
        return f"slice({self.start}, {self.stop}{step})"


#: Characters that make a name a pattern, as in the names of files.
WILDCARDS = frozenset("*?[")

Columns = ColumnSlice | tuple[int | str, ...] | None


def freeze_columns(columns: Any) -> Columns:
    """Turn the user's ``columns=`` into a hashable value."""
    if columns is None or isinstance(columns, ColumnSlice):
        return columns
    if isinstance(columns, slice):
        return ColumnSlice(columns.start, columns.stop, columns.step)
    if isinstance(columns, str):
        return (columns,)
    if isinstance(columns, (int, np.integer)) and not isinstance(columns, bool):
        return (int(columns),)
    # Lists are not converted: an array of names and indices would turn the indices into text.
    is_array = isinstance(columns, np.ndarray) or not isinstance(columns, Iterable)
    items = np.asarray(columns).tolist() if is_array else list(columns)
    if not isinstance(items, list) or not items:
        raise ValueError(
            f"columns must name at least one column; got {columns!r}. "
            "Give names, indices, a boolean mask, a slice, or None for all columns."
        )
    if all(isinstance(c, (bool, np.bool_)) for c in items):
        chosen = tuple(int(i) for i in np.flatnonzero(items))
        if not chosen:
            raise ValueError("columns is a boolean mask that selects no column.")
        return chosen
    for c in items:
        if isinstance(c, (bool, np.bool_)) or not isinstance(c, (str, int, np.integer)):
            raise TypeError(
                f"columns must be names (str) or indices (int); got {c!r} of type "
                f"{type(c).__name__}."
            )
    return tuple(c if isinstance(c, str) else int(c) for c in items)


class UnknownColumn(ValueError):
    """X has no column of this name or position, or none that matches this pattern."""


def resolve_columns(
    columns: Columns, n_features: int, feature_names: Sequence[str] | None, who: str
) -> Columns:
    """Replace names, patterns, negative indices and slices by plain indices into X.

    ``None`` (all columns) stays ``None``, which needs no copy. A column with exactly this name is
    preferred to a pattern. The columns that match a pattern come in the order of X, without those
    listed before.
    """
    if columns is None:
        return None
    if isinstance(columns, ColumnSlice):
        span = range(*slice(columns.start, columns.stop, columns.step).indices(n_features))
        if len(span) == 0:
            raise UnknownColumn(
                f"Kernel {who}: columns={columns!r} selects none of the {n_features} columns of X."
            )
        return None if span == range(n_features) else tuple(span)
    out: list[int | str] = []
    names = None if feature_names is None else {name: i for i, name in enumerate(feature_names)}
    for c in columns:
        if isinstance(c, str):
            if names is None:
                raise UnknownColumn(
                    f"Kernel {who} selects column {c!r} by name, but X has no column names. "
                    "Pass a pandas DataFrame, or select by index. In a pipeline, transformers "
                    "keep names with .set_output(transform='pandas')."
                )
            if c not in names and WILDCARDS.intersection(c):
                matches = [i for name, i in names.items() if fnmatchcase(name, c)]
                if not matches:
                    raise UnknownColumn(
                        f"Kernel {who}: none of the {len(names)} columns of X matches {c!r}."
                        + _nearest_columns(c, names)
                    )
                taken = set(out)
                out += [i for i in matches if i not in taken]
                continue
            if c not in names:
                raise UnknownColumn(
                    f"Kernel {who}: X has no column {c!r} (it has {len(names)} columns)."
                    + _nearest_columns(c, names)
                )
            out.append(names[c])
        else:
            if not -n_features <= c < n_features:
                raise UnknownColumn(
                    f"Kernel {who}: column index {c} is out of range for X with "
                    f"{n_features} columns."
                )
            out.append(c % n_features)
    if out == list(range(n_features)):
        return None
    return tuple(out)


def _nearest_columns(wanted: str, names: Iterable[str]) -> str:
    """A hint with the column names most similar to a name or pattern; empty if there are none."""
    plain = "".join(c for c in wanted if c not in WILDCARDS and c != "]")
    # A pattern is shorter than the names it was meant to match.
    cutoff = 0.6 if plain == wanted else 0.4
    close = difflib.get_close_matches(plain, list(names), n=3, cutoff=cutoff)
    return f" Did you mean {', '.join(map(repr, close))}?" if close else ""


def take_columns(X: Any, columns: Columns) -> Any:
    """Columns of an array, a sparse matrix or a DataFrame, as an array (or sparse matrix)."""
    if hasattr(X, "numbers"):  # a table with columns of sequences beside those of numbers
        return X.numbers(columns)
    if hasattr(X, "iloc"):
        names = [str(c) for c in X.columns]
        columns = resolve_columns(columns, X.shape[1], names, "called on a DataFrame")
        X = X.to_numpy()
    elif not sp.issparse(X):
        X = np.asarray(X)
    if columns is None:
        return X
    columns = resolve_columns(columns, X.shape[1], None, "called on an array")
    if columns is None:
        return X
    index = [int(c) for c in columns]  # type: ignore[union-attr, arg-type]
    if len(index) > 1 and index == list(range(index[0], index[-1] + 1)):
        return X[:, index[0] : index[-1] + 1]
    return X[:, index]


def column_moments(V: Any, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted mean, centred and raw sum of squares of the columns of an array or CSC matrix.

    The mean is corrected by the mean of the residuals, so that the residuals of a constant column
    are at most one ulp.
    """
    W = omega.sum()
    mean = np.asarray(V.T @ omega).ravel() / W
    if not sp.issparse(V):
        mean = mean + omega @ (V - mean) / W
        return mean, omega @ (V - mean) ** 2, omega @ V**2
    V = V.astype(np.float64)
    V.sum_duplicates()
    # Stored entries first, then the implicit zeros, to avoid cancellation.
    index = np.repeat(np.arange(V.shape[1]), np.diff(V.indptr))
    weight = omega[V.indices]

    def total(values: np.ndarray) -> np.ndarray:
        # Without entries, bincount returns integers.
        return np.bincount(index, values, V.shape[1]).astype(np.float64)

    absent = W - total(weight)
    absent[np.diff(V.indptr) == V.shape[0]] = 0.0
    left = total(weight * (V.data - mean[index])) - absent * mean
    mean = mean + left / W
    spread = total(weight * (V.data - mean[index]) ** 2)
    spread += np.maximum(absent, 0.0) * mean**2
    return mean, spread, total(weight * V.data**2)


@dataclass(frozen=True, repr=False)
class Standardization:
    """The affine map ``(x - mean) / scale`` of each selected column, as a hashable value.

    Learned once from a training sample and then part of the kernel, so the kernel stays a pure
    function of its two inputs.
    """

    scale: tuple[float, ...]
    mean: tuple[float, ...] | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.scale)

    @property
    def centred(self) -> bool:
        """Whether the columns have mean zero."""
        return self.mean is not None

    def __repr__(self) -> str:
        what = "scale" if self.mean is None else "mean and scale"
        return f"<{what} of {len(self.scale)} columns>"

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None = None) -> Standardization:
        """Mean and standard deviation of the columns of X (scale only, when X is sparse)."""
        omega = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
        omega = omega / omega.sum()
        if sp.issparse(X):
            mean, variance, _ = column_moments(X.tocsc(), omega)
        else:
            mean, variance, _ = column_moments(np.asarray(X, dtype=np.float64), omega)
        scale = np.sqrt(variance)
        # A constant column varies by rounding errors only: do not magnify them.
        constant = scale <= 10 * np.finfo(np.float64).eps * np.abs(mean)
        scale = np.where(constant, 1.0, scale)
        return cls(tuple(scale.tolist()), None if sp.issparse(X) else tuple(mean.tolist()))

    def __call__(self, X: Any) -> Any:
        scale = np.asarray(self.scale)
        if sp.issparse(X):
            if self.mean is not None:
                raise ValueError(
                    "This kernel subtracts column means, which would make a sparse X dense. Build "
                    "the bank on sparse data, or pass a dense X."
                )
            return sp.csr_matrix(X.multiply(1.0 / scale))
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        mean = 0.0 if self.mean is None else np.asarray(self.mean)
        return ((X - mean) / scale).astype(dtype, copy=False)

    def slopes(self, X: Any) -> np.ndarray:
        """Derivatives of the scaled columns at the entries of X, shape of X."""
        return np.broadcast_to(1.0 / np.asarray(self.scale), X.shape)
