"""CSV and TSV files, whole or in parts, in any encoding."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil

from .frame import DataError, Frame, as_texts
from .numbers import MISSING, are_codes, as_numbers, is_number, leading_zeros

OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

#: Bytes of a file that are read again to explain why it is not text.
MAX_BYTES_TO_EXPLAIN = 2**22
#: Maximum characters of a line; 100,000 columns of 20 characters take two million.
MAX_LINE = 2**27
#: Share of memory that must stay free while a whole file is read, and rows between two checks.
MIN_FREE_SHARE, ROWS_BETWEEN_CHECKS = 0.05, 20_000
#: Byte order marks at the beginning of a file, and the encodings that they mean.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_frames(
    path: Path,
    kind: str,
    n_rows: int | None = None,
    texts: Collection[str] = (),
    encoding: str | None = None,
    codes: Collection[str] = (),
) -> Iterator[Frame]:
    """The rows of a file, ``n_rows`` at a time (the last part may be shorter), or all at once.

    Parameters
    ----------
    path : path
    kind : {"csv", "tsv"}
        A CSV file may use semicolons or tabs.
    n_rows : int or None
    texts : names
        Columns to read as texts even if all entries of a part are numbers.
    encoding : str or None
        None for UTF-8, or the encoding of the byte order mark if the file has one.
    codes : names
        Columns to read as texts if some entry of a part is a code such as 01234.
    """
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as binary:
            begin: bytes = binary.read(4)
        used = encoding or next((name for mark, name in MARKS if begin.startswith(mark)), "utf-8")
        with opener(path, "rt", encoding=used, newline="") as file:
            first = next(_lines(file), "")
            if "\x00" in first:
                raise DataError(about_encoding(path, encoding))
            delimiter = find_delimiter(first) if kind == "csv" else "\t"
            file.seek(0)
            reader = csv.reader(_lines(file), delimiter=delimiter)
            yield from _frames(reader, n_rows, texts, codes, delimiter)
    except LookupError:
        raise DataError(
            f"--encoding {encoding} is not known. Try utf-8, utf-16, latin1 or cp1252."
        ) from None
    except UnicodeError:
        raise DataError(about_encoding(path, encoding)) from None
    except FileNotFoundError:
        raise
    except (OSError, EOFError, csv.Error, lzma.LZMAError) as error:
        raise DataError(f"it could not be read ({error}).") from None


def _lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file, of bounded length: a file may have no line ends."""
    while line := file.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith("\n"):
            raise DataError(
                f"it has a line of more than {MAX_LINE:,} characters; is it really a CSV file?"
            )
        yield line


def _while_there_is_room(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield rows that will be kept in memory; a DataError when memory runs out."""
    for count, row in enumerate(rows):
        if count and count % ROWS_BETWEEN_CHECKS == 0:
            memory = psutil.virtual_memory()
            if memory.available < MIN_FREE_SHARE * memory.total:
                raise DataError(
                    f"it does not fit into memory: after {count:,} rows "
                    f"{memory.available / 1e9:.2g} of {memory.total / 1e9:.2g} GB are free. "
                    "multikernel fit --chunks reads files of any length in bounded memory, and so "
                    "does multikernel predict."
                )
        yield row


def about_encoding(path: Path, encoding: str | None) -> str:
    """Why a file is not text in its encoding, and what to try."""
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        content: bytes = file.read(MAX_BYTES_TO_EXPLAIN)
    begin = content[:1000]
    if begin.count(0) > 0.3 * len(begin):
        order = "le" if begin[1::2].count(0) > begin[0::2].count(0) else "be"
        return f"it looks like UTF-16 text: add --encoding utf-16-{order}, or save it as CSV UTF-8."
    if b"\x00" in begin:
        return "it is not text; is it really a CSV file?"
    where = ""
    try:
        content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        around = content[max(error.start - 8, 0) : error.start + 8].decode("latin1")
        shown = "".join(c if c.isprintable() else " " for c in around).strip()
        where = f" (byte {error.start} in line {line}, near {shown!r})"
    if encoding is not None:
        return f"it is not {encoding} text{where}. Try --encoding latin1."
    return (
        f"it is not UTF-8 text{where}. Files saved by Excel on Windows are often Latin-1: add "
        "--encoding latin1, or save the file as CSV UTF-8."
    )


def read_header(path: Path, kind: str) -> list[str]:
    """The names of the columns."""
    return next(text_frames(path, kind, 1)).names


def _frames(
    reader: Any,
    n_rows: int | None,
    texts: Collection[str],
    codes: Collection[str],
    delimiter: str,
) -> Iterator[Frame]:
    rows: Iterator[Any] = ((reader.line_num, row) for row in reader if row)
    header = next(rows, None)
    if header is None:
        raise DataError("it is empty. The first line must name the columns.")
    names = [name.strip() for name in header[1]]
    check_header(names)
    found = False
    rows = _while_there_is_room(rows) if n_rows is None else rows
    while part := list(islice(rows, n_rows)):
        for at, row in part:
            if len(row) != len(names):
                raise DataError(
                    f"line {at} has {len(row)} entries, but the header names {len(names)} columns."
                )
        found = True
        cells = zip(*(row for _, row in part), strict=True)
        yield frame_of_cells(names, cells, delimiter, texts, codes)
        if n_rows is None:
            return
    if not found:
        yield Frame({name: np.empty(0) for name in names})


def find_delimiter(first_line: str) -> str:
    """The delimiter of the first line: the most frequent of comma, semicolon and tab."""
    counts = {mark: first_line.count(mark) for mark in (",", ";", "\t")}
    return max(counts, key=lambda mark: counts[mark])


def check_header(header: Sequence[str]) -> None:
    """Refuse a first line that holds only numbers, or repeats a column name."""
    if all(is_number(name) for name in header):
        raise DataError(
            f"its first line must name the columns; it holds numbers ({', '.join(header[:4])}, "
            "...). Add a line of names at the top."
        )
    twice = sorted(name for name, times in Counter(header).items() if times > 1)
    if twice:
        raise DataError(
            f"the column name {twice[0]!r} appears more than once (spaces around names do not "
            "count). Rename one of the columns."
        )


def frame_of_cells(
    header: Sequence[str],
    cells: Any,
    delimiter: str,
    texts: Collection[str] = (),
    codes: Collection[str] = (),
) -> Frame:
    """Columns of numbers if all entries that are not missing are numbers, else of texts.

    ``texts`` are always texts, and ``codes`` if something would be lost otherwise (`are_codes`).
    """
    columns: dict[str, Any] = {}
    how: dict[str, str] = {}
    for name, column in zip(header, cells, strict=True):
        stripped = [cell.strip() for cell in column]
        kept = name in texts or (name in codes and are_codes(stripped))
        values, written = (None, "") if kept else as_numbers(stripped, delimiter)
        if values is not None and not written:
            written = leading_zeros(stripped)
        if values is None:
            values = as_texts([None if cell.lower() in MISSING else cell for cell in stripped])
        columns[name] = values
        if written:
            how[name] = written
    return Frame(columns, written=how)
