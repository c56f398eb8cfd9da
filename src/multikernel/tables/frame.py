"""Named columns of numbers and texts, without pandas."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

#: Control characters other than tabs and line ends, on which terminals would act.
CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]")


class DataError(ValueError):
    """Data that cannot be used as they are; the text says why and what to do."""


@dataclass(frozen=True)
class Frame:
    """Columns of one length, by name.

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        Numbers as float64, NaN where missing; texts as objects, None where missing.
    sparse : csr_array of shape (n, d) or None
        Features of a LIBSVM file, which have numbers and no names; ``columns`` holds the target.
    first_index : int
        Number of the first feature of ``sparse`` in the file, 0 or 1.
    views : dict of str to tuple of str
        Columns that came together, such as one array of an NPZ file.
    remarks : tuple of str
        What to know about the file, one sentence each.
    written : dict of str to str
        How ambiguous entries of some columns were written and read: ``what: example``.
    """

    columns: dict[str, np.ndarray]
    sparse: Any = None
    first_index: int = 1
    views: dict[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    written: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.columns:
            refuse_control_characters("a name of a column", name)

    @classmethod
    def of(cls, data: Any, texts: Collection[str] = ()) -> Frame:
        """From a frame, the path of a file, a DataFrame, or a mapping of columns.

        ``texts`` are columns of a CSV file to read as texts even if they look like numbers.
        """
        if isinstance(data, Frame):
            return data
        if isinstance(data, (str,)) or hasattr(data, "__fspath__"):
            from .reading import read_frame

            return read_frame(data, texts=texts)
        if hasattr(data, "columns") and hasattr(data, "iloc"):
            data = {str(name): data[name].to_numpy() for name in data.columns}
        if not isinstance(data, Mapping):
            raise TypeError(
                "Data must be a Frame, a path, a DataFrame or a mapping of names to columns; got "
                f"{type(data).__name__}."
            )
        return cls({str(name): as_column(values) for name, values in data.items()})

    def __len__(self) -> int:
        if self.sparse is not None:
            return int(self.sparse.shape[0])
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def notes(self) -> list[str]:
        """The remarks, and sentences on how ambiguous entries of the columns were read."""
        how: dict[str, list[tuple[str, str]]] = {}
        for name, text in self.written.items():
            if name in self.columns:
                what, _, example = text.partition(": ")
                how.setdefault(what, []).append((name, example))
        return [*self.remarks] + [
            f"{_listed([name for name, _ in found])} {'has' if len(found) == 1 else 'have'} {what} "
            f"({found[0][1]})."
            for what, found in how.items()
        ]

    def take(self, rows: np.ndarray) -> Frame:
        """Some of the rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(
            self, columns=columns, sparse=None if self.sparse is None else self.sparse[rows]
        )

    def without(self, names: Iterable[str]) -> Frame:
        """The frame without some columns, which must exist."""
        gone = set(names)
        for name in gone:
            self.require(name)
        columns = {name: v for name, v in self.columns.items() if name not in gone}
        views = {
            view: tuple(n for n in members if n not in gone) for view, members in self.views.items()
        }
        views = {view: members for view, members in views.items() if members}
        return replace(self, columns=columns, views=views)

    def require(
        self, name: str, what: str = "column", message: str = "There is no {what} {name!r}."
    ) -> np.ndarray:
        """A column by its name; if there is none, an error that lists the columns."""
        if name in self.columns:
            return self.columns[name]
        close = difflib.get_close_matches(name, self.names, n=3)
        shown = ", ".join(map(repr, self.names[:12])) + (", ..." if len(self.names) > 12 else "")
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        opening = message.format(what=what, name=name)
        raise DataError(f"{opening}{hint} The columns are {shown}.")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" and {len(names) - 4} more columns" if len(names) > 4 else "")


def is_text(values: np.ndarray) -> bool:
    return values.dtype == object


def missing(values: np.ndarray) -> np.ndarray:
    """Mask of missing entries."""
    if is_text(values):
        return np.array([value is None for value in values], dtype=bool)
    return np.asarray(np.isnan(values))


def as_column(values: Any) -> np.ndarray:
    """A column as float64 if all entries that are not missing are numbers, else as texts."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"A column must be one-dimensional; got shape {array.shape}.")
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    if array.dtype.kind in "mM":
        raise DataError("Dates and times cannot be used as they are; convert them to numbers.")
    items = [present(value) for value in array.tolist()]
    if all(value is None or isinstance(value, (int, float)) for value in items) and any(
        value is not None for value in items
    ):
        return np.array([np.nan if value is None else value for value in items], dtype=np.float64)
    return as_texts(items)


def as_texts(items: Sequence[Any]) -> np.ndarray:
    """A column of texts; None stays None."""
    out = np.empty(len(items), dtype=object)
    out[:] = [None if item is None else str(item) for item in items]
    for text in dict.fromkeys(out.tolist()):
        if text is not None:
            refuse_control_characters("an entry", text)
    return out


def refuse_control_characters(what: str, text: str) -> None:
    """Refuse characters that are not text, such as NUL, or that terminals would act on."""
    found = CONTROL.search(text)
    if found is not None:
        around = text[max(found.start() - 20, 0) : found.end() + 20]
        raise DataError(
            f"{what} holds the control character {found[0]!r} (in {around!r}), which is not text. "
            "The file is damaged, or its format or encoding is not what its name says; remove "
            "such characters."
        )


def present(value: Any) -> Any:
    """The value itself, or None if it marks a missing value."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value
