"""What is to be predicted, and of which kind it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .frame import DataError, Frame, is_text, missing

#: Whole numbers with at most so many different values, ten rows each on average, are classes.
MOST_CLASSES = 20


@dataclass(frozen=True)
class TargetColumn:
    """The target column: its values, ``"classification"`` or ``"regression"``, and why."""

    name: str
    values: np.ndarray
    task: str
    reason: str


def find_target(frame: Frame, name: str | None, task: str = "auto") -> TargetColumn:
    """Take the target from a frame and decide what kind of problem it is.

    Parameters
    ----------
    frame : Frame
    name : str or None
        None is allowed where there is only one candidate: LIBSVM files.
    task : {"auto", "classification", "regression"}
    """
    if name is None:
        if frame.sparse is None:
            raise DataError(
                "Name the column to predict with --target. The columns are "
                f"{', '.join(map(repr, frame.names[:20]))}."
            )
        name = "y"
    values = frame.require(name, "target column")
    absent = int(missing(values).sum())
    if absent:
        raise DataError(
            f"The target {name!r} is missing in {absent} of {len(values)} rows. Remove them first; "
            "targets are never made up."
        )
    if task == "auto":
        task, reason = _guess(name, values)
    elif task == "classification":
        reason = f"as asked; {name!r} has {len(set(values.tolist()))} classes"
    else:
        reason = "as asked"
    if task == "regression":
        if is_text(values):
            raise DataError(f"The target {name!r} holds texts; regression needs numbers.")
        if not np.isfinite(values).all():
            raise DataError(f"The target {name!r} holds infinite values.")
        return TargetColumn(name, values, task, reason)
    labels = _labels(values)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(
            f"The target {name!r} is {classes[0].item()!r} in all rows: nothing to learn."
        )
    if len(classes) > len(labels) / 2:
        raise DataError(
            f"The target {name!r} has {len(classes)} classes in {len(labels)} rows. Is it the "
            "right column? Numbers can be predicted with --task regression."
        )
    return TargetColumn(name, labels, task, reason)


def _guess(name: str, values: np.ndarray) -> tuple[str, str]:
    distinct = len(set(values.tolist()))
    if is_text(values):
        return "classification", f"{name!r} holds texts, {distinct} different ones"
    whole = bool(np.all(np.isfinite(values)) and np.all(values == np.round(values)))
    few = distinct <= 2 or (distinct <= MOST_CLASSES and distinct <= len(values) / 10)
    if whole and few:
        return "classification", f"{name!r} holds whole numbers, {distinct} different ones"
    return "regression", f"{name!r} holds numbers, {distinct} different ones"


def _labels(values: np.ndarray) -> np.ndarray:
    """Classes as integers where they are whole numbers, else as texts."""
    if is_text(values):
        return np.array(values.tolist())
    if np.all(values == np.round(values)):
        return values.astype(np.int64)
    return np.array([f"{value:g}" for value in values.tolist()])
