"""Views of the columns of a table, and the bank of kernels on them.

A views file is TOML, one table per view::

    [expression]
    columns = ["gene_*", "probe_17"]     # names, or patterns with * and ?
    kernels = ["default"]                # one expression or several

    [clinical]
    columns = ["age", "stage"]
    kernels = ["Linear()", "gaussians([0.1, 1])"]

    [pixels]
    range = [0, 784]                     # by position among the columns of the file
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from ..kernels.algebra import Composite, Power, Scaled
from ..kernels.bank import KernelBank, PerFeature, distinct
from ..kernels.sequences.ngrams import PerNgram
from ..kernels.widths import tables_bank
from ..tables import DataError, Frame, TableEncoder
from ..tables.complaints import is_no_category
from ..tables.frame import is_text
from .expressions import evaluate_kernels, reads_text, uses_default


@dataclass(frozen=True)
class View:
    """Some columns of the data and the kernels on them.

    Attributes
    ----------
    name : str
        Empty for the only view of data without views.
    columns : tuple of str or None
        Columns of the data file; None for all numbers and categories.
    kernels : tuple of str
        Expressions.
    """

    name: str
    columns: tuple[str, ...] | None
    kernels: tuple[str, ...]

    @property
    def reads_text(self) -> bool:
        return any(map(reads_text, self.kernels))

    @property
    def uses_default(self) -> bool:
        return any(map(uses_default, self.kernels))


def choose_views(
    frame: Frame,
    kernels: tuple[str, ...],
    path: Path | None,
    categorical: Collection[str] = (),
) -> tuple[list[View], Frame, list[str]]:
    """The views of a problem, the frame with the columns that they use, and notes for the user.

    Views come from a views file or from the data file. Without either, kernels on sequences read
    the text column, and other kernels all other columns.
    """
    if path is not None:
        chosen = read_views(path, frame, kernels)
        used = {name for view in chosen for name in view.columns or ()}
        rest = [name for name in frame.names if name not in used]
        if not rest or frame.sparse is not None:
            return chosen, frame, []
        return chosen, frame.without(rest), [f"Columns in no view are not used: {_some(rest)}."]
    if frame.views:
        chosen = [View(name, columns, kernels) for name, columns in frame.views.items()]
        used = {name for columns in frame.views.values() for name in columns}
        alone = tuple(name for name in frame.names if name not in used)
        return chosen + ([View("others", alone, kernels)] if alone else []), frame, []
    on_text = tuple(kernel for kernel in kernels if reads_text(kernel))
    if not on_text:
        return [View("", None, kernels)], frame, []
    column = find_text_column(frame, on_text[0], categorical)
    on_others = tuple(kernel for kernel in kernels if kernel not in on_text)
    others = [name for name in frame.names if name != column]
    view = View(column, (column,), on_text)
    if on_others and others:
        return [view, View("other columns", tuple(others), on_others)], frame, []
    said = [f"{on_text[0]} reads {column!r}."]
    if others:
        said = [
            f"{on_text[0]} reads {column!r}; other columns are not used. Add -k default to use "
            "them as well."
        ]
    return [view], frame.without(others), said


def find_text_column(frame: Frame, kernel: str, categorical: Collection[str] = ()) -> str:
    """The only text column, or the only one that is not categorical."""
    texts = [name for name, values in frame.columns.items() if is_text(values)]
    texts = [name for name in texts if name not in categorical] or texts
    longer = [name for name in texts if is_no_category(frame.columns[name])]
    for found in (texts, longer):
        if len(found) == 1:
            return found[0]
    if not texts:
        raise DataError(f"{kernel} reads a text column, but the data have none.")
    raise DataError(
        f"{kernel} reads one text column, but the data have {len(texts)}: {_some(texts)}. Leave "
        "the others out with --drop, or use a views file to say which kernel reads which column."
    )


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def read_views(path: Path, frame: Frame, kernels: tuple[str, ...]) -> list[View]:
    """The views of a file, on the columns of a frame; ``kernels`` where a view names none."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no views file {str(path)!r}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} is not TOML: {error}.") from None
    if not content:
        raise DataError(
            f"{path.name} defines no views. A view is a table: [name], columns = [...]."
        )
    return [_view(path, name, entry, frame, kernels) for name, entry in content.items()]


def _view(path: Path, name: str, entry: Any, frame: Frame, default: tuple[str, ...]) -> View:
    where = f"{path.name}, view {name!r}"
    if not isinstance(entry, dict):
        raise DataError(f"{where} must be a table: [{name}], columns = [...]; got {entry!r}.")
    unknown = sorted(set(entry) - {"columns", "range", "kernels"})
    if unknown:
        raise DataError(f"{where}: unknown key {unknown[0]!r}. Known: columns, range, kernels.")
    if ("columns" in entry) == ("range" in entry):
        raise DataError(f"{where} needs either columns = [...] or range = [first, last + 1].")
    names = _source_names(frame)
    if "range" in entry:
        columns = _in_range(where, entry["range"], names)
    else:
        columns = _named(where, entry["columns"], names)
    kernels = entry.get("kernels", default)
    kernels = (kernels,) if isinstance(kernels, str) else tuple(kernels)
    if not kernels or not all(isinstance(kernel, str) for kernel in kernels):
        raise DataError(f"{where}: kernels must be a string or a list of strings; got {kernels!r}.")
    view = View(name, columns, kernels)
    if view.reads_text and (len(columns) != 1 or not all(map(reads_text, kernels))):
        raise DataError(
            f"{where}: sequence kernels read one text column; this view has {len(columns)} "
            "columns, or also has kernels for numbers. Put them in separate views."
        )
    return view


def _source_names(frame: Frame) -> list[str]:
    if frame.sparse is None:
        return frame.names
    return [f"x{frame.first_index + j}" for j in range(frame.sparse.shape[1])]


def _in_range(where: str, given: Any, names: list[str]) -> tuple[str, ...]:
    good = isinstance(given, list) and len(given) == 2 and all(type(v) is int for v in given)
    if not good or not 0 <= given[0] < given[1] <= len(names):
        raise DataError(
            f"{where}: range must be [first, last + 1] within the {len(names)} columns; got "
            f"{given!r}."
        )
    return tuple(names[given[0] : given[1]])


def _named(where: str, given: Any, names: list[str]) -> tuple[str, ...]:
    patterns = [given] if isinstance(given, str) else given
    if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
        raise DataError(f"{where}: columns must be a list of names; got {given!r}.")
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = [name for name in names if name == pattern]
        matches = matches or [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise DataError(
                f"{where}: there is no column {pattern!r}. The columns are "
                f"{', '.join(map(repr, names[:12]))}{', ...' if len(names) > 12 else ''}."
            )
        found |= dict.fromkeys(matches)
    return tuple(found)


def build_bank(views: list[View], encoder: TableEncoder, X: Any) -> KernelBank | None:
    """The bank of some views on encoded data; None for the default one on all columns."""
    if views == [View("", None, ("default",))] and not encoder.has_texts:
        return None
    default = partial(tables_bank, sparse=encoder.sparse_width is not None)
    entries: list[Any] = []
    names: list[str] = []
    for view in views:
        columns = None
        if view.columns is not None:
            columns = encoder.places(view.columns)
        elif encoder.has_texts:
            numeric = [c.name for c in encoder.columns if c.kind != "text"]
            columns = encoder.places(numeric)
        for expression in view.kernels:
            bank = evaluate_kernels(expression, default)
            for entry, name in zip(bank.entries, bank._entry_names(), strict=True):
                if isinstance(entry, PerFeature) and encoder.sparse_width is None:
                    each = range(len(encoder.names)) if columns is None else columns
                    entries += [place(entry.kernel, (c,)) for c in each]
                    names += [_feature_name(view, entry, encoder.names[c]) for c in each]
                else:
                    entries.append(entry if columns is None else place(entry, columns))
                    names.append(f"{view.name}: {name}" if view.name else name)
    return KernelBank(entries, distinct(names))


def _feature_name(view: View, entry: PerFeature, column: str) -> str:
    """Name of the kernel of one column; without named views, every column is its own view."""
    return (
        f"{view.name}: {entry.kernel!r} on {column}" if view.name else f"{column}: {entry.kernel!r}"
    )


def place(entry: Any, columns: tuple[int, ...]) -> Any:
    """The same kernel, restricted to these columns."""
    if isinstance(entry, Composite):
        return replace(entry, parts=tuple(place(part, columns) for part in entry.parts))
    if isinstance(entry, (Scaled, Power)):
        return replace(entry, kernel=place(entry.kernel, columns))
    if isinstance(entry, PerFeature):
        return replace(entry, columns=columns)
    if isinstance(entry, PerNgram):
        return replace(entry, spectrum=place(entry.spectrum, columns))
    return replace(entry, columns=columns)
