"""CSV and TSV files, whole or in parts."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from .frame import DataError, Frame, as_texts

#: What stands for a missing entry in text files.
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}

OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def text_frames(
    path: Path, kind: str, n_rows: int | None = None, texts: Collection[str] = ()
) -> Iterator[Frame]:
    """The rows of a file, ``n_rows`` at a time (the last part may be shorter), or all at once.

    Parameters
    ----------
    path : path
    kind : {"csv", "tsv"}
        A CSV file may use semicolons.
    n_rows : int or None
    texts : names
        Columns that are texts even where all entries of a part are numbers.
    """
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            delimiter = "\t"
            if kind == "csv":
                first = file.readline()
                file.seek(0)
                delimiter = ";" if first.count(";") > first.count(",") else ","
            yield from _frames(csv.reader(file, delimiter=delimiter), n_rows, texts)
    except UnicodeDecodeError as error:
        raise DataError(f"it is not UTF-8 text ({error.reason} at byte {error.start}).") from None
    except FileNotFoundError:
        raise
    except (OSError, EOFError, csv.Error, lzma.LZMAError) as error:
        raise DataError(f"it could not be read ({error}).") from None


def read_header(path: Path, kind: str) -> list[str]:
    """The names of the columns."""
    return next(text_frames(path, kind, 1)).names


def _frames(reader: Any, n_rows: int | None, texts: Collection[str]) -> Iterator[Frame]:
    rows = ((reader.line_num, row) for row in reader if row)
    header = next(rows, None)
    if header is None:
        raise DataError("it is empty.")
    names = [name.strip() for name in header[1]]
    _check_header(names)
    found = False
    while part := list(islice(rows, n_rows)):
        for at, row in part:
            if len(row) != len(names):
                raise DataError(
                    f"line {at} has {len(row)} entries, but the header names {len(names)} columns."
                )
        found = True
        cells = zip(*(row for _, row in part), strict=True)
        yield Frame(
            {
                name: _as_words(column) if name in texts else _parse(column)
                for name, column in zip(names, cells, strict=True)
            }
        )
        if n_rows is None:
            return
    if not found:
        yield Frame({name: np.empty(0) for name in names})


def _check_header(header: list[str]) -> None:
    def is_number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    if all(is_number(name) for name in header):
        raise DataError(
            f"its first line must name the columns; it holds numbers ({', '.join(header[:4])}, "
            "...). Add a line of names at the top."
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(f"the column name {twice[0]!r} appears more than once.")


def _parse(cells: Sequence[str]) -> np.ndarray:
    """Numbers if every entry that is there is one, else texts."""
    with suppress(ValueError):
        return np.array(cells, dtype=np.float64)  # the common case: nothing is missing
    stripped = [cell.strip() for cell in cells]
    absent = [cell.lower() in MISSING for cell in stripped]
    if not all(absent):
        filled = ["nan" if gone else cell for cell, gone in zip(stripped, absent, strict=True)]
        with suppress(ValueError):
            return np.array(filled, dtype=np.float64)
    return as_texts([None if gone else cell for cell, gone in zip(stripped, absent, strict=True)])


def _as_words(cells: Sequence[str]) -> np.ndarray:
    stripped = [cell.strip() for cell in cells]
    return as_texts([None if cell.lower() in MISSING else cell for cell in stripped])
