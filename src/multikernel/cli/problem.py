"""Make a learning problem from files and options: features, target, views, kernels."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import (
    Column,
    DataError,
    Frame,
    TableEncoder,
    TableModel,
    TargetColumn,
    find_target,
    read_frame,
)
from ..tables.complaints import Complaint, UnusableData, counts_rows, examine, tells_target
from ..tables.encoding import day_orders
from ..tables.frame import is_text, missing
from ..tables.reading import file_format
from .common import Out, counted
from .views import View, build_bank, choose_views


@dataclass(frozen=True)
class TableProblem:
    """Data that are ready to learn from, and the kernels to combine on them.

    Attributes
    ----------
    frame : Frame
        Without target and groups.
    target : TargetColumn or None
    views : list of View
    categorical : tuple of str
    impute : str or None
    dates : bool or mapping
        Whether to read columns of dates; a mapping says where "day" or "month" comes first.
    groups : array of shape (n,) or None
        Rows of the same group stay in one fold.
    rows : array of shape (n,) or None
        Row numbers in the file, from 1; None if all rows are used, in order.
    notes : tuple of str
        What was dropped, filled in or converted.
    """

    frame: Frame
    target: TargetColumn | None
    views: list[View]
    categorical: tuple[str, ...]
    impute: str | None
    dates: bool | Mapping[str, str] = False
    groups: np.ndarray | None = None
    rows: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def y(self) -> np.ndarray:
        assert self.target is not None
        return self.target.values

    @property
    def sample_kernels(self) -> bool:
        """Whether kernels depend on the sample, through their widths or through imputed values."""
        return self.impute is not None or any(view.uses_default for view in self.views)

    @property
    def texts(self) -> list[str]:
        """The columns that kernels on sequences read."""
        return [view.columns[0] for view in self.views if view.reads_text and view.columns]

    def encoder(self, frame: Frame) -> TableEncoder:
        """An encoder of rows, fitted to these rows."""
        return TableEncoder.fit(
            frame,
            categorical=self.categorical,
            texts=self.texts,
            impute=self.impute,
            dates=self.dates,
        )

    def bank(self, encoder: TableEncoder, X: Any) -> Any:
        """The kernels on encoded rows; None for the default bank on all columns."""
        return build_bank(self.views, encoder, X)


def load_problem(
    out: Out,
    data: Path,
    *,
    format: str | None = None,
    encoding: str | None = None,
    target: str | None = None,
    needs_target: bool = True,
    task: str = "auto",
    kernels: Sequence[str] | None = None,
    views: Path | None = None,
    impute: str | None = None,
    categories: str = "onehot",
    categorical: Sequence[str] | None = None,
    dates: bool = False,
    drop: Sequence[str] | None = None,
    groups: str | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> TableProblem:
    """Read the data, describe them, and report all problems with them at once."""
    with out.progress(f"Reading {data.name}"):
        frame = read_frame(data, format=format, encoding=encoding, codes=categorical or ())
    given = len(frame)
    frame = frame.without(drop or ())
    notes = frame.notes
    if drop:
        notes.append(f"Left out as requested: {_some(list(dict.fromkeys(drop)))}.")
    rows = np.arange(given)
    found = None
    if needs_target or target is not None or frame.sparse is not None:
        frame, rows, said = without_unlabelled(frame, target, rows)
        notes += said
    # Of all rows: those of a sample or a fold may not show whether day or month comes first.
    orders = day_orders(frame) if dates else False
    if sample is not None and sample < len(frame):
        chosen = draw_rows(frame, target, task, sample, seed)
        notes.append(f"{sample:,} of {len(frame):,} rows are used, chosen at random (--sample).")
        frame, rows = frame.take(chosen), rows[chosen]
    if needs_target or target is not None or frame.sparse is not None:
        found = find_target(frame, target, task)
        frame = frame.without([found.name])
    members = None
    if groups is not None:
        members = group_numbers(frame.require(groups, "column of groups"))
        frame = frame.without([groups])
    chosen_views, frame, said = choose_views(
        frame, tuple(kernels or ("default",)), views, categorical or ()
    )
    notes += said
    problem = TableProblem(
        frame, found, chosen_views, tuple(categorical or ()), impute, orders, members
    )
    wrong = examine(
        frame, categorical=problem.categorical, texts=problem.texts, impute=impute, dates=orders
    )
    if wrong:
        _describe(out, data, problem, notes)
        raise UnusableData(usable(frame, wrong))
    if categories == "kernel" and views is None:
        problem = _with_category_kernels(problem, tuple(kernels or ("default",)))
    notes += what_was_filled(frame, impute)
    notes += [
        f"{name!r} numbers the rows ({values[0]:g}, {values[1]:g}, {values[2]:g}, ...). If it is "
        f"an identifier, leave it out: --drop {shlex.quote(name)}."
        for name, values in frame.columns.items()
        if counts_rows(values)
    ]
    if found is not None:
        notes += [
            gives_away(name, found.name, "in every row")
            for name, values in frame.columns.items()
            if tells_target(values, found.values, found.task == "classification")
        ]
    everything = len(rows) == given and np.array_equal(rows, np.arange(given))
    problem = replace(problem, rows=None if everything else rows + 1, notes=tuple(notes))
    _describe(out, data, problem, notes)
    return problem


def gives_away(name: str, target: str, where: str) -> str:
    """A note about a column from which the target follows."""
    return (
        f"{name!r} gives {target!r} away: either value follows from the other {where}. If it is "
        f"not known before {target!r} is, leave it out: --drop {shlex.quote(name)}."
    )


def without_unlabelled(
    frame: Frame, target: str | None, rows: np.ndarray
) -> tuple[Frame, np.ndarray, list[str]]:
    """The rows that have a target, with their numbers and notes; targets are never imputed."""
    name = "y" if target is None and frame.sparse is not None else target
    if name is None or name not in frame.columns:
        return frame, rows, []  # find_target raises the error
    absent = missing(frame.columns[name])
    count = int(absent.sum())
    if not count or count == len(frame):
        return frame, rows, []
    kept = np.flatnonzero(~absent)
    said = f"{count:,} of {len(frame):,} rows have no {name!r} and are not used."
    return frame.take(kept), rows[kept], [said]


def draw_rows(frame: Frame, target: str | None, task: str, size: int, seed: int) -> np.ndarray:
    """Random rows, in order; every class keeps its share, but has at least two rows."""
    rng = np.random.default_rng(seed)
    if target is not None or frame.sparse is not None:
        found = find_target(frame, target, task)
        if found.task == "classification":
            codes = np.unique(found.values, return_inverse=True)[1]
            order = rng.permutation(len(frame))
            place = np.empty(len(frame))
            for c in range(codes.max() + 1):  # spread each class evenly over [0, 1)
                own = order[codes[order] == c]
                place[own] = np.where(np.arange(len(own)) < 2, -1.0, np.arange(len(own)) / len(own))
            return np.sort(np.argsort(place, kind="stable")[:size])
    return np.sort(rng.choice(len(frame), size, replace=False))


def group_numbers(values: np.ndarray) -> np.ndarray:
    """Groups as whole numbers; a row without a group is a group of its own."""
    words = [f"missing {i}" if v is None or v != v else str(v) for i, v in enumerate(values)]
    return np.unique(words, return_inverse=True)[1]


def what_was_filled(frame: Frame, impute: str | None) -> list[str]:
    """How many entries imputation fills, by column."""
    if impute is None:
        return []
    counts = {name: int(missing(values).sum()) for name, values in frame.columns.items()}
    filled = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if not filled:
        return []
    shown = _some(filled, quote=False)
    return [f"Missing values were filled with the median or the most frequent category: {shown}."]


def usable(frame: Frame, wrong: list[Complaint]) -> list[Complaint]:
    """The complaints without advice to drop all columns; a single text column needs a kernel."""
    gone = {one.options[1] for one in wrong if one.options[:1] == ("--drop",)}
    if gone != set(frame.names) or not gone:
        return wrong
    if len(frame.names) == 1 and is_text(frame.columns[frame.names[0]]):
        return [replace(one, options=("-k", "Spectrum(k=3)")) for one in wrong]
    return [replace(one, options=()) for one in wrong]


def _with_category_kernels(problem: TableProblem, expressions: tuple[str, ...]) -> TableProblem:
    """Give each category column a view of its own, with a kernel that tests for equality."""
    encoder = problem.encoder(problem.frame)
    categories = [column.name for column in encoder.columns if column.kind == "category"]
    numbers = tuple(column.name for column in encoder.columns if column.kind in ("number", "date"))
    if not categories:
        return problem
    views = [View("numbers", numbers, expressions)] if numbers else []
    views += [View(name, (name,), ("Linear()",)) for name in categories]
    return replace(problem, views=views)


def _describe(out: Out, data: Path, problem: TableProblem, notes: Sequence[str]) -> None:
    frame, target = problem.frame, problem.target
    d = len(frame.names) if frame.sparse is None else frame.sparse.shape[1]
    out.note(f"{data.name}: {counted(len(frame), 'row')}, {counted(d, 'column')} to learn from.")
    if target is not None:
        said = target.task.capitalize()
        if target.task == "classification":
            classes, sizes = np.unique(target.values, return_counts=True)
            listed = [f"{c} ({s})" for c, s in zip(classes, sizes, strict=True)]
            said += f" with {len(classes)} classes: {_some(listed, 8, quote=False)}"
        out.note(f"{said}; {target.reason}.")
    for note in notes:
        out.note(f"Note: {note}")


def _some(names: Sequence[str], most: int = 6, quote: bool = True) -> str:
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def load_model(path: Path) -> Any:
    """Load a model file: a :class:`TableModel`, or an estimator written by mk.save."""
    from ..files import load

    return load(path)


def open_new_rows(
    model: Any, data: Path, format: str | None, target: str | None, encoding: str | None = None
) -> tuple[TableModel, Iterable[tuple[Any, Any]], int | None]:
    """A model, chunks (X, y or None) of rows to predict, and the number of rows if it is known."""
    from ..rows import open_rows
    from ..rows.files import find_files, first_frame

    paths = find_files(data, format)
    if file_format(paths[0], format) in ("libsvm", "excel") or encoding is not None:
        # these are read as a whole
        frame = read_frame(data, format=format, encoding=encoding, texts=texts_of(model))
        table = as_table_model(model, frame, target)
        return table, [(table.features(frame), frame.columns.get(table.target))], len(frame)
    table = model
    if not isinstance(model, TableModel):
        table = as_table_model(model, first_frame(paths[0], format), target)
    rows = open_rows(paths, table.target or None, encoder=table.encoder, format=format)
    return table, ((chunk.X, chunk.y) for chunk in rows), rows.n_rows


def texts_of(model: Any) -> Collection[str]:
    """The columns of new data that a model reads as texts even if they look like numbers."""
    return model.encoder.as_written if isinstance(model, TableModel) else ()


def as_table_model(model: Any, frame: Frame, target: str | None) -> TableModel:
    """Let a plain estimator read the columns it was fitted to, or else all but the target."""
    if isinstance(model, TableModel):
        return model
    if not model._predicts_targets:
        raise DataError(
            f"The file holds a {type(model).__name__}, which predicts no target. Use it in Python: "
            "mk.load(path).transform(X), or, for a clustering, labels_ and predict(X)."
        )
    task = "classification" if hasattr(model, "classes_") else "regression"
    width = int(model.n_features_in_)
    if frame.sparse is not None:
        encoder = TableEncoder((), width, frame.first_index)
        return TableModel(model, encoder, target or "y", task, False)
    names = list(getattr(model, "feature_names_in_", [n for n in frame.names if n != target]))
    if len(names) != width:
        raise DataError(
            f"The model reads {width} unnamed columns, but the data have {len(names)}"
            + (f" besides {target!r}." if target else ". Name the target with --target.")
        )
    kinds = {name: "text" if is_text(frame.columns[name]) else "number" for name in names
             if name in frame.columns}  # fmt: skip
    encoder = TableEncoder(tuple(Column(str(name), kinds.get(name, "number")) for name in names))
    return TableModel(model, encoder, target or "", task, False)
