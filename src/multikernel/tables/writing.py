"""Tables written to files, at once or part by part."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from .._places import check_place, replacing, write_atomically
from .arrow import import_pyarrow
from .frame import DataError
from .reading import FORMATS
from .text import OPENERS

#: Formats that can be written in parts; the others are written at once.
GROWING = ("csv", "tsv", "parquet", "arrow")

Columns = Mapping[str, Sequence[Any] | np.ndarray]

#: Formats that are read and not written.
UNWRITTEN = ("libsvm", "excel")


def check_writable(path: Path) -> str:
    """The format that :func:`write_columns` uses for a path; a DataError if there is none."""
    check_place(path)
    if path.suffix.lower() == ".json":
        return "json"
    known = [ending for ending, kind in FORMATS.items() if kind not in UNWRITTEN]
    ending = path.suffixes[-2:][0] if path.suffix.lower() in OPENERS else path.suffix
    kind = FORMATS.get(ending.lower(), "")
    if kind not in ("csv", "tsv") and (kind in ("", *UNWRITTEN) or ending != path.suffix):
        raise DataError(
            f"Cannot write a table to a file like {path.name!r}. Known endings: "
            f"{', '.join(known)}, .json (CSV and TSV also with .gz, .bz2 or .xz)."
        )
    if kind in ("parquet", "arrow"):
        import_pyarrow(path)
    return kind


def without_formula(value: Any) -> Any:
    """An entry of a CSV file that spreadsheets show as it is, without running it.

    Spreadsheets read texts that begin with ``=``, ``+``, ``-`` or ``@`` as formulas, which can run
    programs; a leading apostrophe prevents this. Numbers and single signs are left as they are.
    """
    if not isinstance(value, str) or len(value) < 2 or value[0] not in "=+-@\t\r":
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


class TableWriter:
    """Writes a table to a file in parts, which all have the same columns.

    Use it as a context manager; only the part that is written is held in memory. Rows go to a
    temporary file, which replaces the file at the end if there was no error.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.kind = path, check_writable(path)
        if self.kind not in GROWING:
            raise DataError(
                f"{path.name}: only CSV, TSV, Parquet and Arrow files can be written in parts; "
                f"{self.kind} files are written at once."
            )
        self._open = ExitStack()
        self._writer: Any = None
        self._schema: Any = None

    def __enter__(self) -> TableWriter:
        return self

    def write(self, columns: Columns) -> None:
        """Append rows."""
        plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
        if self.kind in ("csv", "tsv"):
            if self._writer is None:
                self._writer = self._text_writer()
                self._writer.writerow(map(without_formula, plain))
            self._writer.writerows(
                map(without_formula, row) for row in zip(*plain.values(), strict=True)
            )
            return
        table = import_pyarrow(self.path).table(plain, schema=self._schema)
        if self._writer is None:
            self._schema = table.schema
            self._writer = self._arrow_writer()
        self._writer.write_table(table)

    def _text_writer(self) -> Any:
        part = self._open.enter_context(replacing(self.path))
        opener = OPENERS.get(self.path.suffix.lower(), open)
        file = self._open.enter_context(opener(part, "wt", encoding="utf-8", newline=""))
        return csv.writer(file, delimiter="," if self.kind == "csv" else "\t")

    def _arrow_writer(self) -> Any:
        part = self._open.enter_context(replacing(self.path))
        if self.kind == "parquet":
            import pyarrow.parquet  # type: ignore[import-untyped]

            writer = pyarrow.parquet.ParquetWriter(part, self._schema)
        else:
            import pyarrow.ipc  # type: ignore[import-untyped]

            file = self._open.enter_context(pyarrow.OSFile(str(part), "wb"))
            writer = pyarrow.ipc.new_file(file, self._schema)
        return self._open.enter_context(writer)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # If anything fails, even on closing, the old file is kept.
        self._open.__exit__(kind, error, trace)


def write_columns(columns: Columns, path: Path) -> None:
    """Write columns in the format of the file's suffix (not LIBSVM or Excel; also JSON)."""
    kind = check_writable(path)
    if kind in GROWING:
        with TableWriter(path) as writer:
            writer.write(columns)
        return
    plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
    if kind == "json":
        write_atomically(path, json.dumps(plain))
    else:
        arrays: dict[str, Any] = {name: np.asarray(values) for name, values in plain.items()}
        with replacing(path) as part, open(part, "wb") as file:
            np.savez_compressed(file, **arrays)
