"""Rows in chunks: pieces that are read one after the other, on this machine or on workers.

A *piece* is the unit of reading and of parallel work: a slice of an array, a row group of a Parquet
file, a block of a dask collection, a CSV file. It gives one chunk, or several if it is long. The
cut into pieces and chunks depends on the data alone, and so do all sums over them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._checksum import checksum
from ..tables.frame import DataError
from .chunk import Chunk, Place


class Piece(ABC):
    """A part of the rows that can be read on its own, and sent to another process."""

    #: its name in error messages
    label: str
    #: file or table within which its rows are numbered, and the number of its first row there
    file: str
    first_in_file: int = 0
    #: number of rows; None if it is not known before reading
    n_rows: int | None = None
    #: bytes to send to a worker; few for pieces that only name a file
    n_bytes: int = 0

    @abstractmethod
    def read(self, chunk_rows: int) -> Iterator[Any]:
        """Yield raw parts of at most ``chunk_rows`` rows each, as the source has them."""

    def on_cluster(self) -> Any:
        """The argument of a task on a worker: the piece itself, or a part of a dask collection."""
        return self


class ChunkReader(ABC):
    """Turns the raw parts of a source into checked chunks; it is the same for all pieces."""

    columns: list[str]

    @abstractmethod
    def chunk(self, raw: Any, place: Place) -> tuple[Any, Any, Any]:
        """X, y and sample weights of a raw part; a `DataError` says where something is wrong."""

    def fitted_to(self, rows: Rows, **options: Any) -> ChunkReader:
        """The reader that learns from these rows what fills missing values; itself if none are."""
        return self


@dataclass(frozen=True)
class Mark:
    """Length and checksum of a piece: if either changes between passes, the rows changed."""

    n_rows: int
    checksum: int


@dataclass
class Rows:
    """Rows that are read in chunks, as often as they are needed; made by :func:`open_rows`.

    Iteration gives one :class:`Chunk` after the other, always the same ones in the same order.

    Attributes
    ----------
    pieces : sequence of Piece
    reader : ChunkReader
    chunk_rows : int
        Maximum number of rows of a chunk.
    client : dask.distributed.Client or None
        Where passes run by default.
    task, reason : str or None
        For tables: "classification" or "regression", and why; None if no task was requested.
    part : function of a Chunk, or None
        Selects the rows of a chunk to use (:func:`hold_out`); None uses all.
    """

    pieces: Sequence[Piece]
    reader: ChunkReader
    chunk_rows: int
    client: Any = None
    task: str | None = None
    reason: str | None = None
    part: Callable[[Chunk], Chunk] | None = None
    #: marks of the first pass, by piece
    seen: dict[int, Mark] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return self.reader.columns

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def n_rows(self) -> int | None:
        """Number of rows that are read; None if only a pass can find it (see :meth:`count`)."""
        lengths = [self._length(i) for i in range(len(self.pieces))]
        known = [length for length in lengths if length is not None]
        return sum(known) if len(known) == len(lengths) else None

    def _length(self, i: int) -> int | None:
        mark = self.seen.get(i)
        return mark.n_rows if mark is not None else self.pieces[i].n_rows

    def count(self, **options: Any) -> int:
        """Number of all rows; this takes a pass if the source does not state it."""
        if self.n_rows is None:
            from .reduction import reduce_rows

            reduce_rows(self, len, int.__add__, numbered=False, **options)
        total = self.n_rows
        assert total is not None
        return total

    def first_rows(self) -> list[int]:
        """Number of the first row of every piece, once all lengths are known."""
        starts, total = [], 0
        for i in range(len(self.pieces)):
            starts.append(total)
            total += self._length(i) or 0
        return starts

    def __iter__(self) -> Iterator[Chunk]:
        """Yield all chunks in order, except those without rows to use."""
        first_row = 0
        for i, piece in enumerate(self.pieces):
            for chunk in read_piece(
                piece,
                self.reader,
                self.chunk_rows,
                i,
                first_row,
                self.seen.get(i),
                lambda mark, i=i: self.seen.setdefault(i, mark),  # type: ignore[misc]
            ):
                some = chunk if self.part is None else self.part(chunk)
                if len(some):
                    yield some
                first_row += len(chunk)


def read_piece(
    piece: Piece | Any,
    reader: ChunkReader,
    chunk_rows: int,
    index: int,
    first_row: int,
    expected: Mark | None,
    remember: Callable[[Mark], object],
) -> Iterator[Chunk]:
    """Yield checked chunks of a piece; compare its mark with the first pass, or remember it."""
    done, crc = 0, 0
    for raw in piece.read(chunk_rows):
        place = Place(piece.label, piece.first_in_file + done, index, piece.file)
        X, y, sample_weight = reader.chunk(raw, place)
        if not X.shape[0]:
            continue
        chunk = Chunk(X, y, sample_weight, first_row + done)
        for part in chunk:
            crc = checksum(part, crc)
        done += len(chunk)
        if expected is not None and done > expected.n_rows:
            break
        yield chunk
    mark = Mark(done, crc)
    if expected is None and piece.n_rows is not None and done != piece.n_rows:
        expected = Mark(piece.n_rows, crc)  # the source stated another length
    if expected is None:
        remember(mark)
    elif mark != expected:
        what = (
            f"it had {expected.n_rows} rows and now has "
            f"{'more' if done > expected.n_rows else done}"
            if done != expected.n_rows
            else "its values are different"
        )
        raise DataError(
            f"{piece.label} has changed between two passes over the rows: {what}. The data must "
            "not be modified during a fit, and computed data must be the same every time (random "
            "numbers need a seed)."
        )
