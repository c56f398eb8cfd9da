"""Rows of tables: how each column is read, which takes a pass if there is no schema."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..tables.encoding import MODEL_NEEDS, Column, TableEncoder
from ..tables.frame import DataError, Frame
from .base import Piece, Rows
from .chunk import default_rows
from .files import TextPiece
from .frames import FrameReader
from .sampling import sample_rows
from .survey import MOST_TARGETS, Survey, encoder_from, facts_from, mixed_kinds, survey_rows

#: With more rows than this, medians are those of a random sample of this many rows.
MEDIAN_ROWS = 100_000


@dataclass(frozen=True)
class NamedPieces:
    """A source with named columns: its pieces, and the kinds of its columns if they are known."""

    pieces: list[Piece]
    names: list[str]
    kinds: dict[str, str] | None


@dataclass(frozen=True)
class Wishes:
    """How the columns of a table are to be read; see :func:`open_rows`."""

    drop: set[str]
    categorical: set[str]
    texts: set[str]
    impute: str | None
    task: str | None
    encoder: TableEncoder | None
    allow_missing: bool
    n_jobs: int | None


def open_table(
    table: NamedPieces,
    columns: Collection[str] | None,
    target: Any,
    weight: Any,
    wishes: Wishes,
    chunk_rows: int | None,
    client: Any,
) -> Rows:
    """Rows of a table; this takes a pass if the schema does not say all that is needed."""
    for value, what in ((target, "target"), (weight, "sample_weight")):
        if value is not None and not isinstance(value, str):
            raise DataError(
                f"{what} must be a column name, because the columns of these rows have names; got "
                f"{type(value).__name__}. The columns are {_listed(table.names)}."
            )
    known = Frame({name: np.empty(0) for name in table.names})
    for name in (*(columns or ()), *wishes.drop, *wishes.categorical, *wishes.texts):
        known.require(name)
    if weight is not None:
        known.require(weight, "column of sample weights")
    if wishes.encoder is not None:
        return _open_encoded(table, wishes.encoder, target, weight, wishes, chunk_rows, client)
    if target is not None:
        known.require(target, "target column")
    names = [name for name in (columns or table.names) if name not in wishes.drop]
    names = [name for name in names if name not in (target, weight)]
    if not names:
        raise DataError("No columns are left to learn from besides the target.")
    size = chunk_rows or default_rows(len(table.names))
    used = [*names, *(name for name in (target, weight) if name is not None)]
    rows = Rows(table.pieces, FrameReader(TableEncoder(())), size, client)
    survey = None
    if _needs_survey(table.kinds, names, target, wishes):
        survey = _survey(rows, used, target, wishes)
        column_encoder = encoder_from(
            survey, names, wishes.categorical, wishes.texts, wishes.impute
        )
    else:
        kinds = {name: "text" if name in wishes.texts else "number" for name in names}
        column_encoder = TableEncoder(tuple(Column(name, kinds[name]) for name in names))
    if wishes.impute is not None:
        column_encoder = _with_medians(rows, column_encoder, n_jobs=wishes.n_jobs)
    facts = reason = task = None
    if target is not None and survey is not None and (wishes.task or survey.columns[target].texts):
        facts = facts_from(survey, target)
        if wishes.task is not None:
            task, reason = facts.decide(wishes.task)
            if task == "classification" and len(facts.levels) > MOST_TARGETS:
                raise DataError(
                    f"The target {target!r} has more than {MOST_TARGETS} classes. Is it the right "
                    "column? Numbers can be predicted with --task regression."
                )
        if task == "regression":
            facts = None
    reader = FrameReader(column_encoder, target, weight, facts, wishes.allow_missing)
    return Rows(table.pieces, reader, size, client, task=task, reason=reason)


def _needs_survey(
    kinds: dict[str, str] | None, names: list[str], target: str | None, wishes: Wishes
) -> bool:
    if kinds is None or wishes.task is not None or wishes.impute is not None or wishes.categorical:
        return True
    if target is not None and kinds[target] == "text":
        return True
    return any(kinds[name] == "text" and name not in wishes.texts for name in names)


def _survey(rows: Rows, used: list[str], target: str | None, wishes: Wishes) -> Survey:
    """Survey all columns; if chunks of text files disagree on a kind, the column is text."""
    for piece in rows.pieces:
        if isinstance(piece, TextPiece):
            piece.codes = frozenset(wishes.categorical)
    levels = {*wishes.categorical, *([target] if wishes.task is not None and target else [])}
    _set_texts(rows, wishes.texts)
    survey = survey_rows(rows, used, levels, target, n_jobs=wishes.n_jobs)
    from_text = any(isinstance(piece, TextPiece) for piece in rows.pieces)
    # Only files of text can be read again as texts; dask partitions have the types that they have.
    for name in survey.mixed if not from_text else ():
        if name == target or name not in wishes.categorical | wishes.texts:
            raise mixed_kinds(name, survey.columns[name])
    if survey.mixed and from_text:
        texts = {name for name, seen in survey.columns.items() if seen.texts} | wishes.texts
        mixed = survey.mixed
        _set_texts(rows, texts)
        for piece in rows.pieces:
            piece.n_rows = None
        survey = survey_rows(rows, used, levels, target, n_jobs=wishes.n_jobs)
        # Keep these marked as mixed: an error about too many texts then names the first text.
        also = {name: replace(survey.columns[name], numbers=True) for name in mixed}
        survey = replace(survey, columns={**survey.columns, **also})
    _set_texts(rows, {name for name, seen in survey.columns.items() if seen.texts} | wishes.texts)
    return survey


def _set_texts(rows: Rows, texts: Collection[str]) -> None:
    for piece in rows.pieces:
        if isinstance(piece, TextPiece):
            piece.texts = frozenset(texts)


def with_fills(rows: Rows, encoder: TableEncoder, **options: Any) -> TableEncoder:
    """The encoder with the medians and the most frequent categories of these rows."""
    names = [column.name for column in encoder.columns if column.kind == "category"]
    if names:
        found = survey_rows(rows, names, names, None, **options).columns

    def fill(column: Column) -> Any:
        if column.kind != "category":
            return column.fill
        counts = found[column.name].levels
        return max(column.levels, key=lambda level: counts.get(level, 0))

    columns = tuple(replace(column, fill=fill(column)) for column in encoder.columns)
    return _with_medians(rows, TableEncoder(columns), **options)


def _with_medians(rows: Rows, encoder: TableEncoder, **options: Any) -> TableEncoder:
    """The encoder with medians for missing numbers, from a sample if there are many rows."""
    numbers = tuple(replace(c, fill=None) for c in encoder.columns if c.kind == "number")
    if not numbers:
        return encoder
    plain = replace(rows, reader=FrameReader(TableEncoder(numbers), allow_missing=True), seen={})
    sample, _ = sample_rows(plain, MEDIAN_ROWS, **options)
    medians = {}
    for j, column in enumerate(numbers):
        there = sample.X[~np.isnan(sample.X[:, j]), j]
        if not len(there):
            raise DataError(
                f"Column {column.name!r} has no value in {len(sample):,} random rows, so there is "
                "no median to fill missing values with. Leave it out."
            )
        medians[column.name] = float(np.median(there))
    filled = [replace(c, fill=medians.get(c.name, c.fill)) for c in encoder.columns]
    return TableEncoder(tuple(filled))


def _open_encoded(
    table: NamedPieces,
    encoder: TableEncoder,
    target: str | None,
    weight: str | None,
    wishes: Wishes,
    chunk_rows: int | None,
    client: Any,
) -> Rows:
    if encoder.sparse_width is not None:
        raise DataError("The model was fitted on a LIBSVM file and reads only such files.")
    known = Frame({name: np.empty(0) for name in table.names})
    for column in encoder.columns:
        known.require(column.name, message=MODEL_NEEDS)
    reader = FrameReader(encoder, target, weight, None, wishes.allow_missing, predicts=True)
    size = chunk_rows or default_rows(len(table.names))
    rows = Rows(table.pieces, reader, size, client)
    _set_texts(rows, encoder.as_written)
    return rows


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
