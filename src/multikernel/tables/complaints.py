"""All problems with the columns of a file, and the options that solve them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .frame import DataError, Frame, is_text, missing
from .numbers import as_days, is_number, looks_like_dates

#: A text column with more distinct values than this, or one per two rows, is not categorical.
MAX_LEVELS = 200
#: A text column of mostly numbers, such as 1, 2 and "3 or more", is categorical if it has at most
#: this many distinct values.
MAX_NUMBER_LEVELS = 12
#: With fewer rows, a column may equal the target by chance.
MIN_ROWS_TO_SUSPECT = 20
_NAME_OF_ID = re.compile(r"(^|[_ .-])(id|ids|uuid|guid|key|code|name|no|nr|number|index)$", re.I)
_PERCENTAGE = re.compile(r"[+-]?\d+([.,]\d+)?\s*%")
_CODE = re.compile(r"[A-Za-z]{0,8}[-_ .]?\d+([-_.]\d+)*|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}")


@dataclass(frozen=True)
class Complaint:
    """A problem with a column, and the command-line options that solve it."""

    text: str
    options: tuple[str, ...]


class UnusableData(DataError):
    """All complaints about a file; ``options`` are command-line options that solve them."""

    def __init__(self, complaints: list[Complaint]) -> None:
        self.options = tuple(word for one in complaints for word in one.options)
        if len(complaints) == 1:
            super().__init__(complaints[0].text)
            return
        lines = "\n".join(f"  - {one.text}" for one in complaints)
        super().__init__(f"The data cannot be used as they are:\n{lines}")


def examine(
    frame: Frame,
    *,
    categorical: Collection[str] = (),
    texts: Collection[str] = (),
    impute: str | None = None,
    dates: bool | Mapping[str, str] = False,
) -> list[Complaint]:
    """The complaints about the columns of a frame; none if all can be used.

    The parameters are those of `TableEncoder.fit`.
    """
    found = []
    gaps = {}
    for name, values in frame.columns.items():
        absent = missing(values)
        if absent.all():
            found.append(Complaint(f"{name!r} is empty. Leave it out: --drop {name}.", _drop(name)))
            continue
        if not is_text(values) and np.isinf(values).any():
            count = int(np.isinf(values).sum())
            what = "infinite value" if count == 1 else "infinite values"
            text = f"{name!r} holds {count} {what}. Repair them, or leave it out: "
            found.append(Complaint(f"{text}--drop {name}.", _drop(name)))
            continue
        if is_text(values) and name not in texts:
            complaint = _about_texts(
                name, values, name in categorical, dates is not False, order_of(dates, name)
            )
            if complaint is not None:
                found.append(complaint)
                if complaint.options[:1] == ("--drop",):
                    continue
        if absent.any():
            gaps[name] = int(absent.sum())
    if gaps and impute is None:
        listed = ", ".join(f"{name!r} {count}" for name, count in list(gaps.items())[:20])
        more = f" and {len(gaps) - 20} more columns" if len(gaps) > 20 else ""
        text = (
            f"Missing values in {len(gaps)} of {len(frame.columns)} columns ({len(frame)} rows): "
            f"{listed}{more}. Fill them with --impute median, leave columns out with --drop, or "
            "repair the data."
        )
        found.append(Complaint(text, ("--impute", "median")))
    return found


def counts_rows(values: np.ndarray) -> bool:
    """Whether a column of numbers only counts the rows: 1, 2, 3, ..., from any start."""
    return len(values) >= 10 and not is_text(values) and bool(np.all(np.diff(values) == 1))


def tells_target(values: np.ndarray, target: np.ndarray, classifies: bool) -> bool:
    """Whether a column determines the target: one level per class, or a linear function of it.

    False with fewer than `MIN_ROWS_TO_SUSPECT` values, where this may happen by chance.
    """
    there = ~missing(values)
    values, target = values[there], target[there]
    if len(values) < MIN_ROWS_TO_SUSPECT:
        return False
    if not classifies:
        if is_text(values) or not np.isfinite(values).all():
            return False
        a, b = (v / (np.abs(v).max() or 1.0) for v in (values, target))
        a, b = a - a.mean(), b - b.mean()
        both = float(np.linalg.norm(a) * np.linalg.norm(b))
        return both > 0 and abs(float(a @ b)) > (1 - 1e-12) * both
    levels, i = np.unique(values.astype(str) if is_text(values) else values, return_inverse=True)
    classes, j = np.unique(target, return_inverse=True)
    if not len(levels) == len(classes) >= 2:
        return False
    return len(np.unique(i.astype(np.int64) * len(classes) + j)) == len(classes)


def is_no_category(values: np.ndarray) -> bool:
    """Whether a text column has too many distinct values to be categorical."""
    words = [word for word in values if word is not None]
    levels = len(set(words))
    return levels > MAX_LEVELS or levels > max(len(values) / 2, 2)


def are_number_codes(words: Iterable[str], categorical: bool) -> bool:
    """Whether words are codes such as 01234 in a column that was said to be categorical.

    As for other numbers, only the number of levels counts then, not how often each occurs.
    """
    return categorical and all(map(is_number, words))


def _drop(name: str) -> tuple[str, ...]:
    return "--drop", name


def order_of(dates: bool | Mapping[str, str], name: str) -> str:
    """What comes first in the dates of a column, "day" or "month"; empty if it is not given."""
    return dates.get(name, "") if isinstance(dates, Mapping) else ""


def _about_texts(
    name: str, values: np.ndarray, categorical: bool, dates: bool, order: str
) -> Complaint | None:
    words = [word for word in values if word is not None]
    first = str(words[0])[:40]
    if looks_like_dates(values):
        if dates or categorical:
            return None if categorical else _bad_dates(name, values, order)
        bad = _bad_dates(name, values, order)
        if bad is not None:
            return bad
        return Complaint(
            f"{name!r} holds dates, such as {first!r}. Read dates as days since 1970 with --dates, "
            f"or leave it out: --drop {name}.",
            ("--dates",),
        )
    levels = len(set(words))
    many = is_no_category(values)
    if many and are_number_codes(words, categorical):
        many = levels > MAX_LEVELS
    if many or (not categorical and levels > MAX_NUMBER_LEVELS):
        strange = [word for word in words if not is_number(word)]
        if 0 < len(strange) <= 0.1 * len(words):
            return Complaint(
                f"{name!r} holds numbers except in {len(strange)} of {len(values)} rows, such as "
                f"{str(strange[0])[:40]!r}. Repair them, leave it out with --drop {name}, or treat "
                f"all its values as categories with --categorical {name}.",
                _drop(name),
            )
        if all(_PERCENTAGE.fullmatch(word.strip()) for word in words):
            return Complaint(
                f"{name!r} holds percentages, such as {first!r}, which are read as text. Remove "
                f"the % signs, or leave it out: --drop {name}.",
                _drop(name),
            )
    if not many:
        return None
    if levels > 0.9 * len(words):
        codes = sum(1 for word in words if _CODE.fullmatch(word))
        if _NAME_OF_ID.search(name) or codes > 0.9 * len(words):
            return Complaint(
                f"{name!r} looks like an identifier: {levels} distinct values in {len(values)} "
                f"rows, such as {first!r}. Leave it out: --drop {name}.",
                _drop(name),
            )
    return Complaint(
        f"{name!r} holds {levels} distinct text values in {len(values)} rows, such as {first!r}: "
        f"too many for a category. Leave it out with --drop {name}, or compare its texts letter by "
        'letter with -k "Spectrum(k=3)".',
        _drop(name),
    )


def _bad_dates(name: str, values: np.ndarray, order: str) -> Complaint | None:
    try:
        as_days(values, order)
    except ValueError as error:
        return Complaint(f"{name!r}: {error} Or leave it out: --drop {name}.", _drop(name))
    return None
