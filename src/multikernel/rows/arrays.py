"""Rows of arrays, memory maps, sparse matrices and tables with sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.sequences.table import Table
from ..tables.frame import DataError
from .base import ChunkReader, Piece
from .chunk import Place, check_numbers, check_target, check_weights


@dataclass(frozen=True)
class MapSlice:
    """A memory-mapped array by its place in a file, which workers on other machines open, too."""

    path: str
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    order: str

    @classmethod
    def of(cls, array: np.memmap) -> MapSlice | None:
        """The place of a memory map; None for a view, whose place in the file is not known."""
        if not isinstance(array, np.memmap) or array.filename is None:
            return None
        flags = array.flags
        if isinstance(array.base, np.memmap) or not (flags.c_contiguous or flags.f_contiguous):
            return None
        order = "C" if flags.c_contiguous else "F"
        return cls(
            str(Path(str(array.filename)).resolve()),
            int(array.offset),
            array.dtype,
            array.shape,
            order,
        )

    def open(self) -> np.ndarray:
        order: Any = self.order
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)
        except (OSError, ValueError) as error:
            raise lost_file(self.path, error) from None


def lost_file(path: str | Path, error: Exception) -> DataError:
    """The error for a file that was there when the rows were opened."""
    if isinstance(error, FileNotFoundError) or not Path(path).exists():
        return DataError(
            f"The file {str(path)!r} existed when the rows were opened but is now missing. Put it "
            "back and start again; on a cluster every worker must see the same path."
        )
    return DataError(f"The file {str(path)!r} can no longer be read ({error}).")


@dataclass
class ArrayPiece(Piece):
    """Rows start to stop of X, y and sample weights; memory-mapped arrays are sent by name only."""

    X: Any
    y: Any
    sample_weight: Any
    start: int
    stop: int

    def __post_init__(self) -> None:
        self.label = f"chunk {self.start}:{self.stop}"
        self.file, self.first_in_file = "X", self.start
        self.n_rows = self.stop - self.start
        parts = (self.X, self.y, self.sample_weight)
        self.n_bytes = sum(_bytes(part) for part in parts) * self.n_rows

    def read(self, chunk_rows: int) -> Iterator[Any]:
        yield tuple(self._rows(part) for part in (self.X, self.y, self.sample_weight))

    def _rows(self, part: Any) -> Any:
        if part is None:
            return None
        whole = part.open() if isinstance(part, MapSlice) else part
        return whole[self.start : self.stop]

    def on_cluster(self) -> Any:
        return SentPiece(self)


class SentPiece(Piece):
    """Only the rows of an :class:`ArrayPiece`, to be sent with a task."""

    def __init__(self, piece: ArrayPiece) -> None:
        self.label, self.file = piece.label, piece.file
        self.first_in_file, self.n_rows, self.n_bytes = (
            piece.first_in_file,
            piece.n_rows,
            piece.n_bytes,
        )
        self.start, self.stop = piece.start, piece.stop
        self.parts = tuple(
            part if isinstance(part, MapSlice) else piece._rows(part)
            for part in (piece.X, piece.y, piece.sample_weight)
        )

    def read(self, chunk_rows: int) -> Iterator[Any]:
        yield tuple(
            part.open()[self.start : self.stop] if isinstance(part, MapSlice) else part
            for part in self.parts
        )


def _bytes(part: Any) -> int:
    """Bytes per row that a task carries."""
    if part is None or isinstance(part, MapSlice):
        return 0
    if sp.issparse(part):
        return int(12 * part.nnz // max(part.shape[0], 1)) + 4
    if isinstance(part, Table):
        first = [column[:100] for column in part.columns]
        texts = sum(len(str(cell)) for column in first if column.dtype == object for cell in column)
        return 8 * part.shape[1] + texts // max(min(len(part), 100), 1)
    return int(part.dtype.itemsize * (part.size // max(part.shape[0], 1)))


@dataclass
class ArrayReader(ChunkReader):
    """X as float64 arrays, CSR or tables with sequences; targets as they are."""

    columns: list[str]
    allow_missing: bool = False

    def chunk(self, raw: Any, place: Place) -> tuple[Any, Any, Any]:
        X, y, sample_weight = raw
        if sp.issparse(X):
            X = sp.csr_matrix(X, dtype=np.float64)
        elif not isinstance(X, Table):
            X = np.asarray(X)
            if X.ndim != 2:
                raise DataError(f"{place.source} must be a matrix of rows; got shape {X.shape}.")
            if X.dtype.kind not in "fiub":
                raise DataError(
                    f"{place.source} must hold numbers; it has dtype {X.dtype}. To use text "
                    "columns, pass data frames or files with column names."
                )
            # Arrays from a network may be unaligned, which can change the last bits of products.
            X = np.require(X, np.float64, ("C", "A"))
        if X.shape[1] != len(self.columns):
            raise DataError(
                f"{place.source} has {X.shape[1]} columns, but the first chunk has "
                f"{len(self.columns)}. All chunks need the same columns."
            )
        y = self._same_length(y, "target", X, place)
        check_numbers(X, place, self.columns, self.allow_missing)
        check_target(y, "target", place)
        sample_weight = self._same_length(sample_weight, "sample weights", X, place)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
            check_weights(sample_weight, place)
        return X, y, sample_weight

    def _same_length(self, values: Any, what: str, X: Any, place: Place) -> Any:
        if values is None:
            return None
        values = np.asarray(values)
        if len(values) != X.shape[0]:
            raise DataError(
                f"{place.source} has {X.shape[0]} rows of X, but the {what} has {len(values)}."
            )
        return values


def cut_arrays(X: Any, y: Any, sample_weight: Any, chunk_rows: int) -> list[ArrayPiece]:
    """Slices of ``chunk_rows`` rows each; the last one may be shorter."""
    n = X.shape[0]
    for values, what in ((y, "target"), (sample_weight, "sample_weight")):
        if values is not None and values.shape[0] != n:
            raise DataError(f"X has {n} rows, but {what} has {values.shape[0]}.")
    X, y, sample_weight = (MapSlice.of(part) or part for part in (X, y, sample_weight))
    return [
        ArrayPiece(X, y, sample_weight, start, min(start + chunk_rows, n))
        for start in range(0, n, chunk_rows)
    ]


def as_parts(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """X as a matrix that can be sliced, targets and weights as arrays."""
    if sp.issparse(X):
        X = sp.csr_matrix(X)
    elif not isinstance(X, (np.ndarray, Table)):
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise DataError(
            f"X must be a matrix of shape (n_rows, n_columns); got shape {X.shape}."
            + (" For a single column, use X.reshape(-1, 1)." if len(X.shape) == 1 else "")
        )
    others = [
        values if values is None or isinstance(values, np.ndarray) else np.asarray(values)
        for values in (y, sample_weight)
    ]
    return X, others[0], others[1]


def column_names(n_columns: int, given: Sequence[str] | None = None) -> list[str]:
    """Names for columns that have none."""
    return [f"x{j}" for j in range(n_columns)] if given is None else [str(name) for name in given]
