"""Parquet, Arrow and Feather files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .frame import DataError, Frame, as_texts


def import_pyarrow(path: Path) -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"Reading or writing {path.name} needs pyarrow: pip install 'multikernel[tables]', or "
            "use CSV."
        ) from None
    return pyarrow


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """A context that gives pyarrow, and raises its errors as DataError."""
    pa = import_pyarrow(path)
    try:
        yield pa
    except FileNotFoundError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"it could not be read ({error}).") from None


def read_arrow(path: Path, kind: str) -> Frame:
    """A whole file."""
    with reading(path) as pa:
        if kind == "parquet":
            import pyarrow.parquet  # type: ignore[import-untyped]

            table = pyarrow.parquet.read_table(path)
        else:
            import pyarrow.feather  # type: ignore[import-untyped]

            table = pyarrow.feather.read_table(path)
        return frame_of(pa, table)


def frame_of(pa: Any, table: Any) -> Frame:
    """The columns of a pyarrow table or record batch."""
    columns: dict[str, np.ndarray] = {}
    for name, kind in column_kinds(pa, table.schema).items():
        values = table.column(name)
        if kind == "text":
            columns[name] = as_texts(values.to_pylist())
        else:
            # Not safe: whole numbers beyond 2^53 are rounded, as in all other files.
            numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            columns[name] = np.asarray(numbers, dtype=np.float64)
    return Frame(columns)


def column_kinds(pa: Any, schema: Any) -> dict[str, str]:
    """ "number" or "text" for every column of a schema."""
    kinds: dict[str, str] = {}
    for field in schema:
        if field.name in kinds:
            raise DataError(f"the column name {field.name!r} appears more than once.")
        kind = field.type
        dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)  # texts such as 2019-02-28
        if pa.types.is_temporal(kind) and not dated:
            raise DataError(f"column {field.name!r} holds times of day; convert them to numbers.")
        if pa.types.is_nested(kind):
            raise DataError(f"column {field.name!r} holds {kind}; one value per row is expected.")
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        number = number or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
        kinds[field.name] = "number" if number else "text"
    return kinds


def arrow_parts(path: Path, kind: str) -> tuple[list[int], dict[str, str]]:
    """Rows of every row group (Parquet) or record batch (Arrow), and the kinds of the columns."""
    with reading(path) as pa:
        if kind == "parquet":
            with _open_parquet(path) as file:
                footer = file.metadata
                sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
                return sizes, column_kinds(pa, file.schema_arrow)
        with _open_arrow(pa, path) as file:
            sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
            return sizes, column_kinds(pa, file.schema)


def read_part(
    path: Path, kind: str, part: int, n_rows: int, names: Sequence[str]
) -> Iterator[Frame]:
    """Yield some columns of a row group or record batch, ``n_rows`` rows at a time."""
    with reading(path) as pa:
        if kind == "parquet":
            with _open_parquet(path) as file:
                batches = file.iter_batches(n_rows, row_groups=[part], columns=list(names))
                yield from (frame_of(pa, table) for table in _of_length(pa, batches, n_rows))
            return
        with _open_arrow(pa, path) as file:
            batch = file.get_batch(part).select(list(names))
            for start in range(0, batch.num_rows, n_rows):
                yield frame_of(pa, batch.slice(start, n_rows))


def _of_length(pa: Any, batches: Any, n_rows: int) -> Iterator[Any]:
    """Yield tables of exactly ``n_rows`` rows, and the rest, from batches of any length."""
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size >= n_rows:
            table = pa.Table.from_batches(held)
            while size >= n_rows:
                yield table.slice(0, n_rows)
                table, size = table.slice(n_rows), size - n_rows
            held = table.to_batches()
    if size:
        yield pa.Table.from_batches(held)


def _open_parquet(path: Path) -> Any:
    import pyarrow.parquet

    state = path.stat()
    footer = _footer(path, state.st_mtime_ns, state.st_size)
    return pyarrow.parquet.ParquetFile(path, metadata=footer)


@lru_cache(maxsize=8)
def _footer(path: Path, changed: int, size: int) -> Any:
    # Cached: the footer lists all row groups, so reading it for each would take quadratic time.
    import pyarrow.parquet

    return pyarrow.parquet.read_metadata(path)


@contextmanager
def _open_arrow(pa: Any, path: Path) -> Iterator[Any]:
    import pyarrow.ipc  # type: ignore[import-untyped]

    with pa.memory_map(str(path)) as mapped:
        yield pyarrow.ipc.open_file(mapped)
