"""From files and options to a problem: features, target, views, kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from ..tables.frame import is_text
from ..tables.reading import file_format
from .common import Out
from .views import View, build_bank, read_views


@dataclass(frozen=True)
class TableProblem:
    """Data that are ready to learn from, and what is to be combined on them."""

    frame: Frame
    target: TargetColumn | None
    views: list[View]
    categorical: tuple[str, ...]
    impute: str | None

    @property
    def y(self) -> np.ndarray:
        assert self.target is not None
        return self.target.values

    @property
    def sample_kernels(self) -> bool:
        """Whether kernels depend on the sample: by their widths, or by how gaps were filled."""
        return self.impute is not None or any(view.uses_default for view in self.views)

    def encoder(self, frame: Frame) -> TableEncoder:
        """How to read these rows, learned from them."""
        texts = [view.columns[0] for view in self.views if view.reads_text and view.columns]
        return TableEncoder.fit(
            frame, categorical=self.categorical, texts=texts, impute=self.impute
        )

    def bank(self, encoder: TableEncoder, X: Any) -> Any:
        """The kernels on encoded rows; None for the default bank on all columns."""
        return build_bank(self.views, encoder, X)


def load_problem(
    out: Out,
    data: Path,
    *,
    format: str | None = None,
    target: str | None = None,
    needs_target: bool = True,
    task: str = "auto",
    kernels: Sequence[str] | None = None,
    views: Path | None = None,
    impute: str | None = None,
    categories: str = "onehot",
    categorical: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
) -> TableProblem:
    """Read the data and say what they are."""
    with out.progress(f"Reading {data.name}"):
        frame = read_frame(data, format=format)
    frame = frame.without(drop or ())
    found = None
    if needs_target or target is not None or frame.sparse is not None:
        found = find_target(frame, target, task)
        frame = frame.without([found.name])
    expressions = tuple(kernels or ("default",))
    if views is not None:
        chosen = read_views(views, frame, expressions)
        used = {name for view in chosen for name in view.columns or ()}
        rest = [name for name in frame.names if name not in used]
        if rest and frame.sparse is None:
            frame = frame.without(rest)
            out.note(f"Columns in no view are not used: {_some(rest)}.")
    elif frame.views:
        chosen = [View(name, columns, expressions) for name, columns in frame.views.items()]
        used = {name for columns in frame.views.values() for name in columns}
        alone = tuple(name for name in frame.names if name not in used)
        chosen += [View("others", alone, expressions)] if alone else []
    else:
        chosen = [View("", None, expressions)]
    problem = TableProblem(frame, found, chosen, tuple(categorical or ()), impute)
    if categories == "kernel" and views is None:
        problem = _with_category_kernels(problem, expressions)
    _describe(out, data, problem)
    return problem


def _with_category_kernels(problem: TableProblem, expressions: tuple[str, ...]) -> TableProblem:
    """Categories out of the common kernels, into one of their own each: equal or not."""
    encoder = problem.encoder(problem.frame)
    categories = [column.name for column in encoder.columns if column.kind == "category"]
    numbers = tuple(column.name for column in encoder.columns if column.kind == "number")
    if not categories:
        return problem
    views = [View("numbers", numbers, expressions)] if numbers else []
    views += [View(name, (name,), ("Linear()",)) for name in categories]
    return TableProblem(problem.frame, problem.target, views, problem.categorical, problem.impute)


def _describe(out: Out, data: Path, problem: TableProblem) -> None:
    frame, target = problem.frame, problem.target
    d = len(frame.names) if frame.sparse is None else frame.sparse.shape[1]
    out.note(f"{data.name}: {len(frame)} rows, {d} columns to learn from.")
    if target is not None:
        said = target.task.capitalize()
        if target.task == "classification":
            classes, sizes = np.unique(target.values, return_counts=True)
            listed = [f"{c} ({s})" for c, s in zip(classes, sizes, strict=True)]
            said += f" with {len(classes)} classes: {_some(listed, 8, quote=False)}"
        out.note(f"{said}; {target.reason}.")


def _some(names: Sequence[str], most: int = 6, quote: bool = True) -> str:
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def load_model(path: Path) -> Any:
    """The model of a file: a :class:`TableModel`, or an estimator that mk.save has written."""
    from ..files import load

    return load(path)


def open_new_rows(
    model: Any, data: Path, format: str | None, target: str | None
) -> tuple[TableModel, Iterable[tuple[Any, Any]], int | None]:
    """A model, chunks (X, y or None) of rows to predict, and the number of rows if it is known."""
    from ..rows import open_rows
    from ..rows.files import find_files, first_frame

    paths = find_files(data, format)
    if file_format(paths[0], format) == "libsvm":  # these are read at once
        frame = read_frame(data, format=format)
        table = as_table_model(model, frame, target)
        return table, [(table.features(frame), frame.columns.get(table.target))], len(frame)
    table = model
    if not isinstance(model, TableModel):
        table = as_table_model(model, first_frame(paths[0], format), target)
    rows = open_rows(paths, table.target or None, encoder=table.encoder, format=format)
    return table, ((chunk.X, chunk.y) for chunk in rows), rows.n_rows


def as_table_model(model: Any, frame: Frame, target: str | None) -> TableModel:
    """A plain estimator reads the columns it was fitted on, or all but the target in order."""
    if isinstance(model, TableModel):
        return model
    if not model._predicts_targets:
        raise DataError(
            f"The file holds a {type(model).__name__}, which predicts no target. Use it in Python: "
            "mk.load(path).transform(X), or labels_ and predict(X) of a clustering."
        )
    task = "classification" if hasattr(model, "classes_") else "regression"
    width = int(model.n_features_in_)
    if frame.sparse is not None:
        encoder = TableEncoder((), width, frame.first_index)
        return TableModel(model, encoder, target or "y", task, False)
    names = list(getattr(model, "feature_names_in_", [n for n in frame.names if n != target]))
    if len(names) != width:
        raise DataError(
            f"The model reads {width} columns without names, the data have {len(names)}"
            + (f" beside {target!r}." if target else ". Name the target with --target.")
        )
    kinds = {name: "text" if is_text(frame.columns[name]) else "number" for name in names
             if name in frame.columns}  # fmt: skip
    encoder = TableEncoder(tuple(Column(str(name), kinds.get(name, "number")) for name in names))
    return TableModel(model, encoder, target or "", task, False)
