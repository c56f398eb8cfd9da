"""Open arrays, tables, files and dask collections as :class:`Rows`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..tables.encoding import TableEncoder
from ..tables.frame import DataError, Frame
from .arrays import ArrayReader, as_parts, column_names, cut_arrays
from .base import Piece, Rows
from .blocks import current_client, cut_dask_array, cut_dask_frame, dask_kinds, is_dask
from .chunk import default_rows
from .files import find_files, open_files
from .frames import FramePiece, cut_frame, frame_kinds
from .named import NamedPieces, Wishes, open_table


def open_rows(
    source: Any,
    target: Any = None,
    *,
    sample_weight: Any = None,
    columns: Collection[str] | None = None,
    drop: Collection[str] = (),
    categorical: Collection[str] = (),
    texts: Collection[str] = (),
    impute: str | None = None,
    task: str | None = None,
    encoder: TableEncoder | None = None,
    chunk_rows: int | None = None,
    allow_missing: bool = False,
    format: str | None = None,
    client: Any = None,
    n_jobs: int | None = None,
) -> Rows:
    """Open rows in chunks, to be read as often as a method needs them.

    Parameters
    ----------
    source : array, sparse matrix, table, dask collection, path, or list of paths
        Arrays, memory maps, sparse matrices and dask arrays have shape (n_rows, n_columns). Tables
        are data frames (also of dask) or mappings of columns. Paths name files or folders: Parquet,
        Arrow and Feather (row groups and record batches are the pieces), CSV and TSV, NPZ, and
        ``.npy``, which is mapped into memory; patterns such as ``"part-*.parquet"`` are understood.
        Files of a folder are read in the order of their names.
    target, sample_weight : array of shape (n_rows,), or str, optional
        For tables and files: the name of the column.
    columns, drop : names, optional
        For tables and files: the columns to learn from, or those to leave out.
    categorical, texts : names
        Numeric columns to treat as categories; text columns for sequence kernels. In CSV files,
        codes such as 01 or 1.10 stay categories of their own, other than 1 and 1.1.
    impute : {"median"} or None
        Fill missing numbers with the median (of 100,000 random rows if there are more), missing
        categories with the most frequent one. With None, missing values are an error.
    task : {"auto", "classification", "regression"} or None
        For tables and files: convert targets to labels or numbers. This takes a pass. None leaves
        them as they are.
    encoder : TableEncoder, optional
        Encode columns with this encoder of a fitted model; then no pass is needed, and the target
        may be missing.
    chunk_rows : int, optional
        Maximum number of rows of a chunk. Default: 16,384, fewer if a chunk would have more than 32
        MB.
    allow_missing : bool
        Whether numbers may be missing (NaN).
    format : str, optional
        For files whose names do not show the format.
    client : dask.distributed.Client or str, optional
        Make all passes on the workers of a cluster; a string is the address of its scheduler.
        Default: the current client, for dask collections; none for others.
    n_jobs : int, optional
        Threads of the passes that opening takes: over text columns (which categories are there?)
        and over CSV files (which columns are numbers?).

    Returns
    -------
    Rows

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
    if chunk_rows is not None and (int(chunk_rows) != chunk_rows or chunk_rows < 1):
        raise DataError(f"chunk_rows must be a positive whole number; got {chunk_rows!r}.")
    if client is not None:
        from .cluster import as_client

        client = as_client(client)
    elif is_dask(source):
        client = current_client()
    if isinstance(source, (str, Path)) and str(source).endswith(".npy"):
        source = np.load(source, mmap_mode="r")
    named = find_table(source, chunk_rows, {*(columns or ())}, target, sample_weight, format)
    if named is not None:
        wishes = Wishes(
            set(drop), set(categorical), set(texts), impute, task, encoder, allow_missing, n_jobs
        )
        return open_table(named, columns, target, sample_weight, wishes, chunk_rows, client)
    reader: ArrayReader
    if is_dask(source):
        pieces = cut_dask_array(source, target, sample_weight)
        reader = ArrayReader(column_names(source.shape[1]), allow_missing)
        return Rows(pieces, reader, chunk_rows or default_rows(source.shape[1]), client)
    X, y, weights = as_parts(source, target, sample_weight)
    size = chunk_rows or default_rows(X.shape[1])
    reader = ArrayReader(column_names(X.shape[1]), allow_missing)
    return Rows(cut_arrays(X, y, weights, size), reader, size, client)


def find_table(
    source: Any,
    chunk_rows: int | None,
    columns: set[str],
    target: Any,
    sample_weight: Any,
    format: str | None,
) -> NamedPieces | None:
    """The pieces of a source with named columns; None for arrays."""
    # Columns that are not used need not be read, nor be the same in all files.
    chosen = columns | {name for name in (target, sample_weight) if isinstance(name, str)}
    chosen = chosen if columns else set()
    if isinstance(source, (str, Path)) or (
        isinstance(source, (list, tuple))
        and source
        and all(isinstance(one, (str, Path)) for one in source)
    ):
        table = open_files(find_files(source, format), chosen, format)
        return NamedPieces(table.pieces, table.names, table.kinds)
    if is_dask(source):
        if not hasattr(source, "map_partitions") or not hasattr(source, "columns"):
            return None
        kinds = dask_kinds(source)
        return NamedPieces(cut_dask_frame(source), list(kinds), kinds)
    if isinstance(source, (Frame, Mapping)) or hasattr(source, "iloc"):
        frame = Frame.of(source)
        if frame.sparse is not None:
            raise DataError("Pass the sparse matrix of a LIBSVM file, and its target, as arrays.")
        size = chunk_rows or default_rows(len(frame.columns))
        pieces: list[Piece] = [
            FramePiece(part, i * size) for i, part in enumerate(cut_frame(frame, size))
        ]
        return NamedPieces(pieces, frame.names, frame_kinds(frame))
    return None
