"""A pass that looks at the columns of a table: kinds, categories, gaps, the target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..tables.complaints import MAX_LEVELS, are_number_codes
from ..tables.encoding import Column, TableEncoder, as_words, describe_category
from ..tables.frame import DataError, Frame, is_text, missing
from ..tables.targets import TargetFacts
from .base import ChunkReader, Rows
from .chunk import Chunk, Place
from .frames import find_column, refuse_infinite
from .reduction import reduce_rows

#: Maximum number of distinct values of a target that are counted.
MOST_TARGETS = 1000


@dataclass(frozen=True)
class Seen:
    """What a column holds in some rows.

    Attributes
    ----------
    numbers, texts : bool
        Whether some chunk holds numbers, or texts.
    first_text : (str, str) or None
        The first entry that is not a number, and its place, in words.
    missing : int
    infinite : bool
    levels : dict
        Distinct values and their counts, no more than are needed to see that there are too many.
    """

    numbers: bool = False
    texts: bool = False
    first_text: tuple[str, str] | None = None
    missing: int = 0
    infinite: bool = False
    levels: dict[Any, int] = field(default_factory=dict)

    def __add__(self, other: Seen) -> Seen:
        levels = dict(self.levels)
        for value, count in other.levels.items():
            levels[value] = levels.get(value, 0) + count
        return Seen(
            self.numbers or other.numbers,
            self.texts or other.texts,
            self.first_text or other.first_text,
            self.missing + other.missing,
            self.infinite or other.infinite,
            levels,
        )

    def capped(self, most: int) -> Seen:
        """With at most ``most + 1`` levels, the first in sorted order."""
        if len(self.levels) <= most + 1:
            return self
        kept = sorted(self.levels, key=str)[: most + 1]
        return replace(self, levels={value: self.levels[value] for value in kept})


@dataclass(frozen=True)
class Survey:
    """What all columns hold, and the number of rows."""

    n_rows: int
    columns: Mapping[str, Seen]

    @property
    def mixed(self) -> list[str]:
        """Columns with texts that were read as numbers in some chunks."""
        return [name for name, seen in self.columns.items() if seen.numbers and seen.texts]


class FrameChunk:
    """A part of a table as it is, with its place."""

    def __init__(self, frame: Frame, place: Place) -> None:
        self.frame, self.place = frame, place
        self.columns = list(frame.columns.values())
        self.shape = len(frame), len(self.columns)

    def __getitem__(self, rows: np.ndarray) -> FrameChunk:
        return FrameChunk(self.frame.take(rows), self.place)


@dataclass
class SurveyReader(ChunkReader):
    """Passes the named columns on as they are."""

    columns: list[str]

    def chunk(self, raw: Any, place: Place) -> tuple[Any, Any, Any]:
        frame = Frame.of(raw)
        if not len(frame):
            return np.empty((0, 0)), None, None
        return (
            FrameChunk(
                Frame({name: find_column(frame, name, place) for name in self.columns}), place
            ),
            None,
            None,
        )


@dataclass(frozen=True)
class Look:
    """Looks at a chunk; picklable."""

    #: columns whose distinct values are counted even if they are numbers, and the target
    levels: Collection[str]
    target: str | None

    def __call__(self, chunk: Chunk) -> Survey:
        held: FrameChunk = chunk.X
        columns = {
            name: self._column(name, v, held.place) for name, v in held.frame.columns.items()
        }
        return Survey(len(chunk), columns)

    def most(self, name: str) -> int:
        return MOST_TARGETS if name == self.target else MAX_LEVELS

    def _column(self, name: str, values: np.ndarray, place: Place) -> Seen:
        absent = missing(values)
        there = values[~absent]
        text = is_text(values)
        first = _first_text(values, place) if text else None
        seen = Seen(
            not text and bool(len(there)),  # a chunk of gaps is of either kind
            text and bool(len(there)),
            first,
            int(absent.sum()),
            not text and bool(np.isinf(there).any()),
        )
        if name in self.levels or (text and len(there)):
            if name != self.target:
                if not text:
                    refuse_infinite(values, name, place)
                there = as_words(there)
            found, counts = np.unique(there.astype(str) if text else there, return_counts=True)
            levels = dict(zip(found.tolist(), counts.tolist(), strict=True))
            seen = replace(seen, levels=levels).capped(self.most(name))
        return seen

    def combine(self, left: Survey, right: Survey) -> Survey:
        columns = {
            name: (seen + right.columns[name]).capped(self.most(name))
            for name, seen in left.columns.items()
        }
        return Survey(left.n_rows + right.n_rows, columns)


def _first_text(values: np.ndarray, place: Place) -> tuple[str, str] | None:
    """The first entry that is not a number, and its place in words."""
    for i, value in enumerate(values.tolist()):
        if value is not None:
            try:
                float(value)
            except ValueError:
                return value, place.row(i)
    return None


def survey_rows(
    rows: Rows, names: Sequence[str], levels: Collection[str], target: str | None, **options: Any
) -> Survey:
    """One pass over named columns; lengths of pieces are known afterwards."""
    look = Look(levels, target)
    looked = replace(rows, reader=SurveyReader(list(names)), seen={})
    found = reduce_rows(looked, look, look.combine, numbered=False, **options)
    for i, piece in enumerate(rows.pieces):
        piece.n_rows = looked.seen[i].n_rows
    return found


def encoder_from(
    survey: Survey,
    names: Sequence[str],
    categorical: Collection[str],
    texts: Collection[str],
    impute: str | None,
) -> TableEncoder:
    """How to read the columns; medians are filled in later."""
    columns = [
        _describe(name, survey, name in categorical, name in texts, impute) for name in names
    ]
    order = {"number": 0, "category": 1, "text": 2}
    return TableEncoder(tuple(sorted(columns, key=lambda column: order[column.kind])))


def _describe(
    name: str, survey: Survey, categorical: bool, text: bool, impute: str | None
) -> Column:
    seen = survey.columns[name]
    if seen.missing == survey.n_rows:
        raise DataError(f"Column {name!r} is empty. Leave it out with --drop {name}.")
    if text:
        return Column(name, "text", (), "" if impute else None)
    if not seen.texts and not categorical:
        return Column(name, "number")
    levels = {str(level): seen.levels[level] for level in sorted(seen.levels, key=str)}
    words = seen.texts and not are_number_codes(levels, categorical)
    try:
        column = describe_category(name, levels, survey.n_rows, words, impute)
    except DataError as error:
        if seen.texts and seen.numbers and seen.first_text is not None:
            raise mixed_kinds(name, seen) from None
        raise error
    return column


def mixed_kinds(name: str, seen: Seen) -> DataError:
    """The error about a column that holds numbers in some chunks and texts in others."""
    first = ""
    if seen.first_text is not None:
        first = "; the first text is {!r} in {}".format(*seen.first_text)
    return DataError(
        f"Column {name!r} holds numbers in some chunks and text in others{first}. Repair the data, "
        "or leave the column out."
    )


def facts_from(survey: Survey, name: str) -> TargetFacts:
    """The facts that decide whether a target is classes or numbers."""
    seen = survey.columns[name]
    text = seen.texts
    if seen.missing:
        raise DataError(
            f"The target {name!r} is missing in {seen.missing} of {survey.n_rows} rows. Remove "
            "these rows first; multikernel never fills in a target."
        )
    levels = {level: seen.levels[level] for level in sorted(seen.levels)}
    complete = len(levels) <= MOST_TARGETS
    return TargetFacts(name, levels, survey.n_rows, text, text or not seen.infinite, complete)
