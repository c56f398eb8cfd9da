"""Tables written to files, at once or part by part."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from .._places import check_place
from .arrow import import_pyarrow
from .frame import DataError
from .reading import FORMATS
from .text import OPENERS

#: Formats that grow part by part; the others are written when all is known.
GROWING = ("csv", "tsv", "parquet", "arrow")

Columns = Mapping[str, Sequence[Any] | np.ndarray]

#: Formats that are read and not written.
UNWRITTEN = ("libsvm", "excel")


def check_writable(path: Path) -> str:
    """The format that :func:`write_columns` would write to a path, if it can."""
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


class TableWriter:
    """A file that grows: parts of a table with the same columns, one after the other.

    Use it as a context; nothing is kept in memory but the part that is written. Rows go to a
    file beside it (``.part``), which takes its name when all went well.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.kind = path, check_writable(path)
        if self.kind not in GROWING:
            raise DataError(
                f"{path.name}: only CSV, TSV, Parquet and Arrow files can be written in parts; "
                f"{self.kind} files are written at once."
            )
        special = path.exists() and not path.is_file()  # a pipe or a device keeps its name
        self.part = path if special else path.with_name(path.name + ".part")
        self._file: Any = None
        self._writer: Any = None
        self._schema: Any = None

    def __enter__(self) -> TableWriter:
        return self

    def write(self, columns: Columns) -> None:
        """Append rows."""
        plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
        if self.kind in ("csv", "tsv"):
            if self._writer is None:
                opener = OPENERS.get(self.path.suffix.lower(), open)
                self._file = opener(self.part, "wt", encoding="utf-8", newline="")
                self._writer = csv.writer(self._file, delimiter="," if self.kind == "csv" else "\t")
                self._writer.writerow(plain)
            self._writer.writerows(zip(*plain.values(), strict=True))
            return
        pa = import_pyarrow(self.path)
        table = pa.table(plain, schema=self._schema)
        if self._writer is None:
            self._schema = table.schema
            if self.kind == "parquet":
                import pyarrow.parquet  # type: ignore[import-untyped]

                self._writer = pyarrow.parquet.ParquetWriter(self.part, table.schema)
            else:
                import pyarrow.ipc  # type: ignore[import-untyped]

                self._file = pa.OSFile(str(self.part), "wb")
                self._writer = pyarrow.ipc.new_file(self._file, table.schema)
        self._writer.write_table(table)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for part in (self._writer, self._file):
            if hasattr(part, "close"):
                part.close()
        if self.part != self.path and self.part.exists():
            if error is None:
                self.part.replace(self.path)
            else:
                self.part.unlink()


def write_columns(columns: Columns, path: Path) -> None:
    """Write columns in the format that the file's name says (all but LIBSVM; also JSON)."""
    kind = check_writable(path)
    if kind in GROWING:
        with TableWriter(path) as writer:
            writer.write(columns)
        return
    plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
    if kind == "json":
        path.write_text(json.dumps(plain), encoding="utf-8")
    else:
        arrays: dict[str, Any] = {name: np.asarray(values) for name, values in plain.items()}
        np.savez_compressed(path, **arrays)
