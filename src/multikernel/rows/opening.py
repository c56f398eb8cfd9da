"""From whatever holds rows to :class:`Rows`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..tables.frame import DataError
from .arrays import ArrayReader, as_parts, column_names, cut_arrays
from .base import Rows
from .chunk import default_rows


def open_rows(
    source: Any,
    target: Any = None,
    *,
    sample_weight: Any = None,
    chunk_rows: int | None = None,
    allow_missing: bool = False,
    client: Any = None,
) -> Rows:
    """Rows in chunks, to be read as often as a method needs them.

    Parameters
    ----------
    source : array, memory map or sparse matrix of shape (n_rows, n_columns), or path
        A path names an ``.npy`` file, which is mapped into memory.
    target, sample_weight : array of shape (n_rows,), optional
    chunk_rows : int, optional
        Most rows of a chunk. Default: 16,384, fewer where a chunk would have more than 32 MB.
    allow_missing : bool
        Whether X may hold NaN.
    client : dask.distributed.Client, optional
        Make all passes on the workers of a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.rows import open_rows, reduce_rows
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> rows = open_rows(X, X[:, 0] > 4, chunk_rows=4)
    >>> [chunk.X.shape for chunk in rows]
    [(4, 2), (2, 2)]
    >>> reduce_rows(rows, lambda chunk: chunk.X.T @ chunk.X, np.add)
    array([[220., 250.],
           [250., 286.]])
    """
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, Path)) and str(source).endswith(".npy"):
        source = np.load(source, mmap_mode="r")
    X, y, weights = as_parts(source, target, sample_weight)
    size = check_chunk_rows(chunk_rows) or default_rows(X.shape[1])
    reader = ArrayReader(column_names(X.shape[1], _names(source)), allow_missing)
    return Rows(cut_arrays(X, y, weights, size), reader, size, client)


def check_chunk_rows(chunk_rows: int | None) -> int | None:
    if chunk_rows is not None and (int(chunk_rows) != chunk_rows or chunk_rows < 1):
        raise DataError(f"chunk_rows must be a positive whole number; got {chunk_rows!r}.")
    return chunk_rows


def _names(source: Any) -> Sequence[str] | None:
    columns = getattr(source, "columns", None)
    return None if columns is None else [str(name) for name in columns]
