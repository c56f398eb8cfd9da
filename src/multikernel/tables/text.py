"""Text files with one line per sample: CSV and TSV, in any encoding."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from .frame import DataError, Frame, as_texts
from .numbers import MISSING, as_numbers

OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

#: Marks at the beginning of a file that name its encoding.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_text(path: Path, delimiter: str | None, encoding: str | None = None) -> Frame:
    """Read a CSV or TSV file; the delimiter of a CSV file is found out."""
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            content: bytes = file.read()
        text = decode(content, encoding)
        if delimiter is None:
            delimiter = find_delimiter(text.partition("\n")[0])
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [(at, row) for at, row in _numbered(reader) if row]
    except (OSError, EOFError, csv.Error, lzma.LZMAError) as error:
        raise DataError(f"it could not be read ({error}).") from None
    if not rows:
        raise DataError("it is empty.")
    header = [name.strip() for name in rows[0][1]]
    check_header(header)
    for at, row in rows[1:]:
        if len(row) != len(header):
            raise DataError(
                f"line {at} has {len(row)} entries, but the header names {len(header)} columns."
            )
    cells = zip(*(row for _, row in rows[1:]), strict=True) if len(rows) > 1 else [()] * len(header)
    return frame_of_cells(header, cells, delimiter)


def decode(content: bytes, encoding: str | None) -> str:
    """The text of a file; without a named encoding, UTF-8 or what a mark at its beginning says."""
    if encoding is None:
        encoding = next((name for mark, name in MARKS if content.startswith(mark)), "utf-8")
        named = False
    else:
        named = True
    try:
        return content.decode(encoding)
    except LookupError:
        raise DataError(
            f"--encoding {encoding} is not known. Try utf-8, utf-16, latin1 or cp1252."
        ) from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        where = f"byte {error.start} in line {line}"
        if named:
            raise DataError(
                f"it is not {encoding} text ({where}). Try --encoding latin1."
            ) from None
        if b"\x00" in content[:1000]:
            little = content[1:1000:2].count(0) > content[0:1000:2].count(0)
            if content[:1000].count(0) > 0.3 * min(len(content), 1000):
                raise DataError(
                    f"it looks like UTF-16 text: add --encoding utf-16-{'le' if little else 'be'}, "
                    "or save it as CSV UTF-8."
                ) from None
            raise DataError(f"it is not text ({where}); is it really a CSV file?") from None
        around = content[max(error.start - 8, 0) : error.start + 8].decode("latin1")
        shown = "".join(c if c.isprintable() else " " for c in around).strip()
        raise DataError(
            f"it is not UTF-8 text ({where}, near {shown!r}). Files of Excel on Windows are often "
            "Latin-1: add --encoding latin1, or save the file as CSV UTF-8."
        ) from None


def find_delimiter(first_line: str) -> str:
    """What separates the names in the first line: the most frequent of comma, semicolon, tab."""
    counts = {mark: first_line.count(mark) for mark in (",", ";", "\t")}
    return max(counts, key=lambda mark: counts[mark])


def _numbered(reader: Any) -> Any:
    for row in reader:
        yield reader.line_num, row


def check_header(header: Sequence[str]) -> None:
    """Refuse a first line that names no columns, or one twice."""

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
    twice = sorted({name for name in header if list(header).count(name) > 1})
    if twice:
        raise DataError(f"the column name {twice[0]!r} appears more than once.")


def frame_of_cells(header: Sequence[str], cells: Any, delimiter: str) -> Frame:
    """Columns of numbers where every entry that is there is one, else of texts."""
    columns: dict[str, Any] = {}
    how: dict[str, list[tuple[str, str]]] = {}
    for name, column in zip(header, cells, strict=True):
        stripped = [cell.strip() for cell in column]
        values, written = as_numbers(stripped, delimiter)
        if values is None:
            values = as_texts([None if cell.lower() in MISSING else cell for cell in stripped])
        columns[name] = values
        if written:
            how.setdefault(written.partition(":")[0], []).append((name, written.partition(": ")[2]))
    remarks = tuple(
        f"{_listed([name for name, _ in found])} {'has' if len(found) == 1 else 'have'} {what} "
        f"({found[0][1]})."
        for what, found in how.items()
    )
    return Frame(columns, remarks=remarks)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" and {len(names) - 4} more columns" if len(names) > 4 else "")
