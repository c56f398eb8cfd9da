"""Write and score predictions chunk by chunk."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..tables import TableWriter, write_columns
from ..tables.frame import is_text, missing
from ..tables.model import TableModel
from ..tables.writing import GROWING, check_writable, without_formula
from .common import Out


class PredictionFile:
    """Writes predictions to a file, or to standard output as CSV.

    JSON and NPZ files and the result of ``--json`` are written at the end; other files chunk by
    chunk.
    """

    def __init__(self, say: Out, out: Path | None) -> None:
        self.say, self.out = say, out
        self.parts: list[dict[str, np.ndarray]] = []
        self.writer: TableWriter | None = None
        self.printed = False
        if out is not None and check_writable(out) in GROWING:
            self.writer = TableWriter(out)

    def __enter__(self) -> PredictionFile:
        return self

    def write(self, columns: dict[str, Any]) -> None:
        """Write the predictions of one chunk, or keep them for the end."""
        if self.writer is not None:
            self.writer.write(columns)
        elif self.out is None and not self.say.as_json:
            self.say.text(as_csv(columns, header=not self.printed))
            self.printed = True
        else:
            self.parts.append(columns)

    def gathered(self) -> dict[str, np.ndarray]:
        """All predictions that were kept for the end."""
        if not self.parts:
            return {}
        return {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.writer is not None:
            self.writer.__exit__(kind, error, trace)
        elif self.out is not None and error is None:
            write_columns(self.gathered(), self.out)


class Score:
    """Accuracy or R² over chunks, if every row of the data has a target."""

    def __init__(self, table: TableModel) -> None:
        self.classifies = table.task == "classification"
        self.possible = hasattr(table.estimator, "score")
        self.n, self.right = 0, 0
        # For regression: sum of squared errors, mean and sum of squared deviations of the targets.
        self.rest, self.mean, self.spread = 0.0, 0.0, 0.0

    def add(self, truth: Any, answers: Any) -> None:
        """Compare the answers for some rows with their targets, if these are known."""
        if truth is None or not self.possible or missing(truth).any():
            self.possible = False
            return
        if self.classifies:
            self.right += int(np.sum(answers.astype(str) == as_words_like(truth, answers)))
        elif is_text(truth) or not np.isfinite(truth).all():
            self.possible = False
        else:
            self.rest += float(np.sum((truth - answers) ** 2))
            # Chan, Golub and LeVeque's update of mean and squared deviations
            n, mean = len(truth), float(truth.mean())
            shift, total = mean - self.mean, self.n + n
            self.spread += float(np.sum((truth - mean) ** 2)) + shift**2 * self.n * n / total
            self.mean += shift * n / total
        self.n += len(truth)

    def result(self) -> tuple[str, float] | None:
        """The name of the score and its value; None where there is nothing to compare with."""
        if not self.possible or not self.n:
            return None
        if self.classifies:
            return "accuracy", self.right / self.n
        return ("R²", 1.0 - self.rest / self.spread) if self.spread > 0 else None


def as_words_like(truth: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Targets as texts, formatted like the classes of the model."""
    if is_text(truth):
        return truth.astype(str)
    if answers.dtype.kind in "iub" and np.all(truth == np.round(truth)):
        return truth.astype(np.int64).astype(str)
    if answers.dtype.kind == "f":
        return truth.astype(str)
    return np.array([f"{value:g}" for value in truth.tolist()])


def as_csv(columns: dict[str, Any], header: bool = True) -> str:
    """Columns as CSV text without a trailing line break."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if header:
        writer.writerow(map(without_formula, columns))
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    writer.writerows(map(without_formula, row) for row in rows)
    return file.getvalue().rstrip("\n")
