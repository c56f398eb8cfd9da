"""The target column, and whether it is for classification or regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .frame import DataError, Frame, is_text, missing
from .numbers import is_number

#: Whole numbers with at most this many distinct values, in ten rows each on average, are classes.
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
            f"The target {name!r} is missing in {absent} of {len(values)} rows. Remove these rows "
            "first; multikernel never fills in a target."
        )
    distinct, counts = np.unique(values, return_counts=True)
    facts = TargetFacts(
        name,
        dict(zip(distinct.tolist(), counts.tolist(), strict=True)),
        len(values),
        is_text(values),
        is_text(values) or bool(np.isfinite(values).all()),
    )
    task, reason = facts.decide(task)
    if task == "regression":
        return TargetColumn(name, values, task, reason)
    return TargetColumn(name, facts.labels(values), task, reason)


@dataclass(frozen=True)
class TargetFacts:
    """The facts that decide between classification and regression.

    Attributes
    ----------
    name : str
    levels : dict of float or str to int
        Distinct values and their counts, sorted; a survey stops counting when there are too many.
    n_rows : int
    text, finite : bool
    complete : bool
        Whether ``levels`` holds all values.
    """

    name: str
    levels: Mapping[Any, int]
    n_rows: int
    text: bool
    finite: bool
    complete: bool = True

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        return not self.text and self.finite and all(v == round(v) for v in self.levels)

    def decide(self, task: str) -> tuple[str, str]:
        """The kind of problem and the reason; an error if the target does not suit it."""
        distinct, name = len(self.levels), self.name
        number = distinct if self.complete else f"more than {distinct - 1}"
        if task == "auto":
            few = distinct <= 2 or (distinct <= MOST_CLASSES and distinct <= self.n_rows / 10)
            if self.text or (self.whole and few):
                task, what = "classification", "text values" if self.text else "whole numbers"
            else:
                task, what = "regression", "numbers"
            reason = f"{name!r} has {number} distinct {what}"
        elif task == "classification":
            reason = f"as requested; {name!r} has {number} classes"
        else:
            reason = "as requested"
        if task == "regression":
            if self.text:
                raise DataError(
                    f"The target {name!r} holds text, such as {self._first_text()!r}, but "
                    "regression needs numbers."
                )
            if not self.finite:
                raise DataError(f"The target {name!r} holds infinite values.")
            return task, reason
        if distinct < 2:
            only = self.labels(np.array(list(self.levels), dtype=object if self.text else float))
            raise DataError(
                f"The target {name!r} is {only[0].item()!r} in every row, so there is nothing to "
                "learn."
            )
        if distinct > self.n_rows / 2:
            raise DataError(
                f"The target {name!r} has {distinct} classes in {self.n_rows} rows. Is it the "
                f"right column? {self._advice()}"
            )
        return task, reason

    def _first_text(self) -> str:
        """A value that is not a number, as text."""
        return next((str(v)[:40] for v in self.levels if not is_number(str(v))), "")

    def _advice(self) -> str:
        if not self.text:
            return "Numbers can be predicted with --task regression."
        found = self._first_text()
        return f"It holds text, such as {found!r}: to predict numbers, repair it first."

    def labels(self, values: np.ndarray) -> np.ndarray:
        """Classes as integers where they are whole numbers, else as texts."""
        if self.text:
            return np.array(values.tolist())
        if self.whole:
            return values.astype(np.int64)
        return np.array([f"{value:g}" for value in values.tolist()])
