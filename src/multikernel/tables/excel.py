"""Excel workbooks, through openpyxl."""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from .frame import DataError, Frame
from .text import check_header, frame_of_cells

#: What Excel shows in cells that could not be computed.
ERRORS = {"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"}


def read_excel(path: Path, texts: Collection[str] = (), codes: Collection[str] = ()) -> Frame:
    """Read the first non-empty sheet of a workbook; its first row names the columns.

    ``texts`` and ``codes`` are those of :func:`text_frames`.
    """
    if path.suffix.lower() == ".xls":
        raise DataError("it is a workbook from Excel 2003 or older. Save it as .xlsx or CSV UTF-8.")
    try:
        from openpyxl import load_workbook  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"Reading {path.name} needs openpyxl: pip install 'multikernel[excel]', or save the "
            "sheet as CSV UTF-8 in Excel."
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        raise DataError(f"it could not be read as an Excel workbook ({error}).") from None
    sheets = {sheet.title: _rows(sheet) for sheet in book.worksheets}
    book.close()
    filled = [title for title, rows in sheets.items() if rows]
    if not filled:
        raise DataError("it is empty.")
    (first, header), *numbered = sheets[filled[0]]
    rows = [row for _, row in numbered]
    width = max(j + 1 for j, name in enumerate(header) if name)
    names = [name or f"column {j + 1}" for j, name in enumerate(header[:width])]
    check_header(names)
    wide = next((i for i, row in numbered if any(row[width:])), None)
    if wide is not None:
        raise DataError(
            f"row {wide} has entries beyond the {width} columns that row {first} names."
        )
    cells = [[row[j] if j < len(row) else "" for row in rows] for j in range(width)]
    frame = frame_of_cells(names, cells, ",", texts, codes)
    if len(filled) > 1:
        others = ", ".join(map(repr, filled[1:5]))
        said = f"The sheet {filled[0]!r} was read; the workbook also contains {others}."
        frame = replace(frame, remarks=(said,))
    return frame


def _rows(sheet: Any) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, with their numbers in the sheet."""
    rows = [[_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
    return [(i, row) for i, row in enumerate(rows, 1) if any(row)]


def _text(cell: Any) -> str:
    """A cell as it would stand in a CSV file."""
    if cell is None or (isinstance(cell, str) and cell in ERRORS):
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, datetime):
        midnight = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return cell.date().isoformat() if midnight else cell.isoformat(timespec="seconds")
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).strip()
