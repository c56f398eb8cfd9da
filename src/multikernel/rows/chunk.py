"""A chunk of rows, and the checks of its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..tables.frame import DataError

#: Default number of rows of a chunk; fewer for wide tables (`default_rows`).
CHUNK_ROWS = 16_384
#: Maximum bytes of a default chunk as float64, which limits the rows of wide tables.
CHUNK_BYTES = 32 * 2**20


def default_rows(n_columns: int) -> int:
    """Default number of rows of a chunk, from the number of columns alone."""
    return max(1, min(CHUNK_ROWS, CHUNK_BYTES // (8 * max(n_columns, 1))))


@dataclass(frozen=True)
class Chunk:
    """Some rows, in order; it unpacks as ``X, y, sample_weight = chunk``.

    Attributes
    ----------
    X : array, CSR matrix or Table of shape (n, n_columns)
    y : array of shape (n,) or (n, t), or None
    sample_weight : array of shape (n,) or None
    first_row : int
        Number of its first row among all rows.
    places : array of shape (n,) or None
        Number of each row among all rows; None if the rows are consecutive.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    first_row: int = 0
    places: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.sample_weight))

    def take(self, index: np.ndarray) -> Chunk:
        """Some of the rows, by their places in the chunk or by a mask."""
        X, y, w = (None if part is None else part[index] for part in self)
        return Chunk(X, y, w, self.first_row, self.row_numbers()[index])

    def row_numbers(self) -> np.ndarray:
        """Number of each row among all rows."""
        return self.first_row + np.arange(len(self)) if self.places is None else self.places


@dataclass(frozen=True)
class Place:
    """Where a chunk was read, for error messages.

    Attributes
    ----------
    source : str
        Such as ``"part-7.parquet, row group 3"``.
    first_row : int
        Number of the chunk's first row within ``file``.
    chunk : int
        Number of the piece.
    file : str
        File or table within which rows are numbered.
    """

    source: str
    first_row: int
    chunk: int
    file: str

    def row(self, i: int) -> str:
        """The i-th row of the chunk, in words."""
        return f"row {self.first_row + i} of {self.file} (counted from 0; chunk {self.chunk})"


def check_numbers(X: Any, place: Place, columns: Sequence[str], allow_missing: bool) -> None:
    """Refuse NaN (unless allowed) and infinite entries; the message says where the first one is."""
    values = X.data if sp.issparse(X) else X
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):  # one fast pass; sums that overflow are examined below
            return
    bad = ~np.isfinite(values)
    if allow_missing:
        bad &= ~np.isnan(values)
    if not bad.any():
        return
    if sp.issparse(X):
        i, j = (int(index[bad][0]) for index in X.tocoo().coords)
        entry = float(values[bad][0])
    else:
        i, j = (int(index[0]) for index in np.nonzero(bad))
        entry = float(X[i, j])
    what = "is missing (NaN)" if entry != entry else "is infinite"
    raise DataError(
        f"Column {columns[j]!r} {what} in {place.row(i)}. Rows in chunks must be complete: repair "
        "the data, fill in missing values, or leave the column out."
    )


def check_target(y: Any, name: str, place: Place) -> None:
    """Refuse targets (or sample weights) that are missing or infinite, and say where."""
    if y is None or y.dtype.kind not in "fO":
        return
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    else:
        bad = np.array([value is None or value != value for value in y.tolist()], dtype=bool)
    if bad.any():
        raise DataError(
            f"The {name} is missing or infinite in {place.row(int(np.argmax(bad)))}. Remove such "
            "rows first; multikernel never fills in a target or a sample weight."
        )


def check_weights(weights: np.ndarray, place: Place) -> None:
    """Refuse sample weights that are missing, infinite or negative."""
    check_target(weights, "sample weight", place)
    if weights.size and weights.min() < 0:
        at = int(np.argmin(weights))
        raise DataError(f"The sample weight is negative ({weights[at]:g}) in {place.row(at)}.")
