"""Numbers and dates as people write them: decimal commas, thousands, days."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import date, datetime

import numpy as np

#: Entries of text files, in lower case, that mean a missing value.
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}

_PLAIN = r"[+-]?\d+"
_DECIMAL_COMMA = re.compile(_PLAIN + r"(,\d+)?([eE][+-]?\d+)?")
_POINTS_BETWEEN = re.compile(r"[+-]?\d{1,3}(\.\d{3})*(,\d+)?|" + _PLAIN + r"(,\d+)?")
_COMMAS_BETWEEN = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|" + _PLAIN + r"(\.\d+)?")
_SPACES_BETWEEN = re.compile(r"[+-]?\d{1,3}([ '\u00a0\u202f\u2019]\d{3})+([.,]\d+)?|"
                             + _PLAIN + r"([.,]\d+)?")  # fmt: skip
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?")
_DAYS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")


def as_numbers(cells: Sequence[str], delimiter: str) -> tuple[np.ndarray | None, str]:
    """A column of numbers, and how they were written if not plainly; None if they are not numbers.

    Missing entries are NaN. Commas between groups of three digits separate thousands if commas also
    separate the entries of the file, or if there are decimal points; others are decimal commas.
    """
    with suppress(ValueError):
        return np.array(cells, dtype=np.float64), ""  # the common case: nothing is missing
    present = [cell for cell in cells if cell.lower() not in MISSING]
    if not present:
        return None, ""

    def made(convert: dict[str, str] | None = None) -> np.ndarray:
        table = _table(convert or {})
        return np.array(
            ["nan" if cell.lower() in MISSING else cell.translate(table) for cell in cells],
            dtype=np.float64,
        )

    with suppress(ValueError):
        return made(), ""
    written = next((cell for cell in present if not cell.lstrip("+-").isdigit()), present[0])

    def all_match(pattern: re.Pattern[str]) -> bool:
        return all(pattern.fullmatch(cell) for cell in present)

    def read_as(convert: dict[str, str], what: str) -> tuple[np.ndarray, str]:
        values = made(convert)
        shown = float(written.translate(_table(convert)))
        return values, f"{what}: {written!r} is read as {shown:.15g}"

    if all_match(_COMMAS_BETWEEN) and (delimiter == "," or any("." in cell for cell in present)):
        return read_as({",": ""}, "commas between thousands")
    if all_match(_DECIMAL_COMMA):
        return read_as({",": "."}, "decimal commas")
    if all_match(_POINTS_BETWEEN):
        return read_as({".": "", ",": "."}, "points between thousands and decimal commas")
    if all_match(_SPACES_BETWEEN):
        gone = dict.fromkeys(" '\u00a0\u202f\u2019", "")
        return read_as({**gone, ",": "."}, "spaces between thousands")
    return None, ""


def leading_zeros(cells: Sequence[str]) -> str:
    """A remark if codes such as 01234 lose their leading zeros as numbers; else empty."""
    for cell in cells:
        if cell[:1] == "0" and cell[1:].isdigit():
            return (
                f"leading zeros: {cell!r} is read as {float(cell):.15g}; for codes, use "
                "--categorical"
            )
    return ""


def is_plain_number(word: str) -> bool:
    """Whether a text is what a category is called whose values are numbers: 7 or 2.5, not 07."""
    try:
        value = float(word)
    except ValueError:
        return False
    return word == (str(int(value)) if value.is_integer() else str(value))


def are_codes(cells: Collection[str]) -> bool:
    """Whether some entry of a categorical column is lost if it is read as a number: 07, 1.10, AB.

    Numbers of data frames may be written with one more digit, 7.0, and still mean 7.
    """
    return not all(
        is_plain_number(cell)
        or is_plain_number(cell.removesuffix(".0"))
        or cell.lower() in MISSING
        or cell.lower().lstrip("+-") in ("inf", "infinity")  # refused later, as in other columns
        for cell in set(cells)
    )


def _table(convert: dict[str, str]) -> dict[int, str]:
    return {ord(mark): text for mark, text in convert.items()}


def looks_like_dates(values: np.ndarray) -> bool:
    """Whether all texts of a column that are not missing are dates."""
    present = [value for value in values if value is not None]
    if not present:
        return False
    return all(_ISO.fullmatch(v) for v in present) or all(_DAYS.fullmatch(v) for v in present)


def day_order(values: np.ndarray) -> str:
    """What comes first in dates such as 28.2.2019: "day" or "month"; empty if all are 2019-02-28.

    Raises ValueError if day and month cannot be told apart.
    """
    present = [value for value in values if value is not None]
    parts = [found for value in present if (found := _DAYS.fullmatch(value))]
    if not parts:
        return ""
    firsts, seconds = [int(m[1]) for m in parts], [int(m[3]) for m in parts]
    with_points = all(m[2] == "." for m in parts)
    if max(seconds) > 12:
        return "month"
    if max(firsts) <= 12 and not with_points:
        raise ValueError(
            f"It is not clear whether the day or the month comes first in {parts[0][0]!r}. "
            "Write dates as 2019-02-28."
        )
    return "day"


def as_days(values: np.ndarray, order: str = "") -> np.ndarray:
    """Days since 1970-01-01 of texts such as 2019-02-28 or 28.2.2019; NaN where one is missing.

    ``order`` is the :func:`day_order` of earlier values of the column; without it, it is that of
    these values.
    """
    order = order or day_order(values)
    return np.array([_day(value, order) for value in values])


def _day(value: str | None, order: str) -> float:
    if value is None:
        return np.nan
    found = _DAYS.fullmatch(value)
    if found:
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        day, month = (second, first) if order == "month" else (first, second)
        try:
            return float((date(year, month, day) - date(1970, 1, 1)).days)
        except ValueError:
            raise ValueError(
                f"{value!r} is not a date with the {order} first, as in the other rows or in the "
                "training data. Write dates as 2019-02-28."
            ) from None
    moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    start = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return (moment - start).total_seconds() / 86400.0


def is_number(word: str) -> bool:
    """Whether a text is a number as Python writes it."""
    try:
        float(word)
    except ValueError:
        return False
    return True
