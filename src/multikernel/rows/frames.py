"""Rows with named columns: how a part of a table becomes X, y and sample weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..tables.encoding import WHEN_FITTED, WHEN_FITTING, TableEncoder
from ..tables.frame import DataError, Frame, is_text, missing
from ..tables.targets import TargetFacts
from .base import ChunkReader, Piece, Rows
from .chunk import Place, check_target, check_weights


@dataclass
class FramePiece(Piece):
    """Rows of a table in memory."""

    frame: Frame
    start: int

    def __post_init__(self) -> None:
        self.n_rows = len(self.frame)
        self.label = f"chunk {self.start}:{self.start + self.n_rows}"
        self.file, self.first_in_file = "the table", self.start
        self.n_bytes = 8 * self.n_rows * len(self.frame.columns)

    def read(self, chunk_rows: int) -> Iterator[Any]:
        yield from cut_frame(self.frame, chunk_rows)


def frame_kinds(frame: Frame) -> dict[str, str]:
    """ "number" or "text" for every column."""
    return {n: "text" if is_text(values) else "number" for n, values in frame.columns.items()}


def cut_frame(frame: Frame, chunk_rows: int) -> Iterator[Frame]:
    """Parts of at most ``chunk_rows`` rows."""
    for start in range(0, len(frame), chunk_rows):
        yield frame.take(np.arange(start, min(start + chunk_rows, len(frame))))


@dataclass
class FrameReader(ChunkReader):
    """Encodes named columns, the same way in every chunk.

    Attributes
    ----------
    encoder : TableEncoder
    target, weight : str or None
        The columns of targets and of sample weights.
    facts : TargetFacts or None
        For classification: how labels are made from targets. None if targets are numbers.
    allow_missing : bool
        Whether numbers may be missing (NaN).
    predicts : bool
        Whether rows are new data for a fitted model: targets may be absent, and are not checked.
    """

    encoder: TableEncoder
    target: str | None = None
    weight: str | None = None
    facts: TargetFacts | None = None
    allow_missing: bool = False
    predicts: bool = False

    def __post_init__(self) -> None:
        self.columns = self.encoder.names

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        names = [column.name for column in self.encoder.columns]
        return names + [name for name in (self.target, self.weight) if name is not None]

    def fitted_to(self, rows: Rows, **options: Any) -> FrameReader:
        filled = [c for c in self.encoder.columns if c.fill is not None and c.kind != "text"]
        if self.predicts or not filled:  # a fitted model keeps what it has learned
            return self
        from .named import with_fills

        return replace(self, encoder=with_fills(rows, self.encoder, **options))

    def chunk(self, raw: Any, place: Place) -> tuple[Any, Any, Any]:
        frame = Frame.of(raw)
        if not len(frame):
            return np.empty((0, len(self.columns))), None, None
        features: dict[str, np.ndarray] = {}
        for column in self.encoder.columns:
            values = find_column(frame, column.name, place)
            if column.kind == "number":
                values = as_numbers(values, column.name, place)
            if column.kind == "number" or not (self.predicts or is_text(values)):
                refuse_infinite(values, column.name, place)
            if column.fill is None and not (column.kind == "number" and self.allow_missing):
                refuse_gaps(values, column.name, place, self.predicts)
            features[column.name] = values
        X = self.encoder(Frame(features), allow_missing=self.allow_missing)
        return X, self._targets(frame, place), self._weights(frame, place)

    def _targets(self, frame: Frame, place: Place) -> Any:
        if self.target is None:
            return None
        if self.predicts:
            return frame.columns.get(self.target)
        values = find_column(frame, self.target, place)
        if self.facts is not None and self.facts.text and not is_text(values):
            raise DataError(
                f"The target {self.target!r} holds numbers in {place.source} and text elsewhere. "
                "All chunks need the same type."
            )
        if self.facts is None or not self.facts.text:
            values = as_numbers(values, self.target, place)
        check_target(values, f"target {self.target!r}", place)
        return values if self.facts is None else self.facts.labels(values)

    def _weights(self, frame: Frame, place: Place) -> Any:
        if self.weight is None:
            return None
        values = as_numbers(find_column(frame, self.weight, place), self.weight, place)
        check_weights(values, place)
        return values


def find_column(frame: Frame, name: str, place: Place) -> np.ndarray:
    """A column by its name; a DataError if this chunk lacks it, unlike the first."""
    try:
        return frame.require(name)
    except DataError as error:
        raise DataError(
            f"{place.source} does not have the same columns as the first chunk. {error}"
        ) from None


def as_numbers(values: np.ndarray, name: str, place: Place) -> np.ndarray:
    """A column as numbers; a text column without any entries becomes all NaN."""
    if not is_text(values):
        return values
    for i, value in enumerate(values.tolist()):
        if value is not None:
            raise DataError(
                f"Column {name!r} must hold numbers; it holds the text {value!r} in "
                f"{place.row(i)}. All chunks need the same type."
            )
    return np.full(len(values), np.nan)


def refuse_infinite(values: np.ndarray, name: str, place: Place) -> None:
    """Refuse infinite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one fast pass
            return
    infinite = np.isinf(values)
    if infinite.any():
        raise DataError(
            f"Column {name!r} is infinite in {place.row(int(np.argmax(infinite)))}. Repair the "
            "data, or leave the column out."
        )


def refuse_gaps(values: np.ndarray, name: str, place: Place, predicts: bool) -> None:
    """Refuse missing entries."""
    absent = missing(values)
    if absent.any():
        raise DataError(
            f"Column {name!r} is missing in {place.row(int(np.argmax(absent)))}, and in a total of "
            f"{int(absent.sum())} of the {len(values)} rows of this chunk. "
            + (WHEN_FITTED if predicts else WHEN_FITTING)
        )
