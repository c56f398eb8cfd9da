"""Rows of dask arrays and dask data frames: their blocks are the pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ..tables.frame import DataError
from .base import Piece


def is_dask(value: Any) -> bool:
    """Whether a value is a dask collection; never imports dask."""
    return "dask" in sys.modules and hasattr(value, "__dask_graph__")


class BlockPiece(Piece):
    """One block of rows: X, targets and sample weights, or a partition of a data frame."""

    def __init__(self, parts: Any, index: int, what: str, first: int | None, n_rows: int | None):
        self.parts = parts
        self.label = f"block {index} of {what}"
        self.n_rows = n_rows
        self.file = what if first is not None else self.label
        self.first_in_file = first or 0

    def read(self, chunk_rows: int) -> Iterator[Any]:
        from dask.base import compute

        (raw,) = compute(self.parts)
        yield from cut_block(raw, chunk_rows)

    def on_cluster(self) -> Any:
        return self.parts


def cut_block(raw: Any, chunk_rows: int) -> Iterator[Any]:
    """Yield the rows of a block in parts of at most ``chunk_rows`` rows."""
    if isinstance(raw, (tuple, list)):
        for start in range(0, max(raw[0].shape[0], 1), chunk_rows):
            rows = slice(start, start + chunk_rows)
            yield tuple(None if part is None else part[rows] for part in raw)
    else:
        for start in range(0, max(len(raw), 1), chunk_rows):
            yield raw.iloc[start : start + chunk_rows]


def cut_dask_array(X: Any, y: Any, sample_weight: Any) -> list[Piece]:
    """The row blocks of a dask array; targets and weights are cut alike."""
    if X.ndim != 2:
        raise DataError(f"X must be a matrix of shape (n_rows, n_columns); got shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise DataError(f"X must hold numbers; the dask array has dtype {X.dtype}.")
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    lengths = X.chunks[0]
    blocks = [X.to_delayed().ravel().tolist()]
    for values, what in ((y, "target"), (sample_weight, "sample_weight")):
        blocks.append(_cut_like(values, lengths, what))
    known = all(length == length for length in lengths)
    pieces: list[Piece] = []
    first = 0
    for i, parts in enumerate(zip(*blocks, strict=True)):
        length = int(lengths[i]) if known else None
        at = first if known else None
        pieces.append(BlockPiece(tuple(parts), i, "the dask array", at, length))
        first += length or 0
    return pieces


def _cut_like(values: Any, lengths: tuple[Any, ...], what: str) -> list[Any]:
    if values is None:
        return [None] * len(lengths)
    import dask.array as da

    known = all(length == length for length in lengths)
    if not is_dask(values):
        if not known:
            raise DataError(
                f"The blocks of X have unknown lengths, so {what} must be a dask array with the "
                "same blocks; or call X.compute_chunk_sizes() first."
            )
        values = da.from_array(values, chunks=(lengths, *values.shape[1:]))
    if hasattr(values, "to_dask_array"):  # a series
        values = values.to_dask_array(lengths=None)
    if known and values.shape[0] == values.shape[0]:
        if values.shape[0] != sum(lengths):
            raise DataError(f"X has {sum(lengths)} rows, but {what} has {values.shape[0]}.")
        if values.chunks[0] != lengths:
            values = values.rechunk({0: lengths})
    if values.ndim == 2 and values.numblocks[1] > 1:
        values = values.rechunk({1: -1})
    if values.numblocks[0] != len(lengths):
        raise DataError(
            f"X has {len(lengths)} blocks of rows, but {what} has {values.numblocks[0]}, and their "
            "lengths are not known. Call compute_chunk_sizes() on both first."
        )
    return list(values.to_delayed().ravel())


def cut_dask_frame(frame: Any) -> list[Piece]:
    """The partitions of a dask data frame."""
    blocks = frame.to_delayed()
    return [BlockPiece(part, i, "the dask data frame", None, None) for i, part in enumerate(blocks)]


def dask_kinds(frame: Any) -> dict[str, str]:
    """ "number" or "text" for every column."""
    from pandas.api import types

    kinds = {}
    for name, dtype in frame.dtypes.items():
        if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
            raise DataError(f"Column {name!r} holds dates or times; convert them to numbers.")
        kinds[str(name)] = "number" if types.is_numeric_dtype(dtype) else "text"
    return kinds


def current_client() -> Any:
    """The `Client` that dask itself would use now, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None
