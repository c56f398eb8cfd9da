"""Sums over rows: a function of every chunk, combined in a fixed binary tree.

The chunks of a piece are combined in a tree, then the pieces are: neighbours first, then pairs of
neighbours, and so on. The shape of a tree depends on the number of its leaves alone, so that a
result has the same bits on one thread, on eight, and on any number of workers. Sums in a tree also
round less than sequential sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from .._threads import one_blas_thread
from ..tables.frame import DataError
from .base import ChunkReader, Mark, Rows, read_piece
from .chunk import Chunk

T = TypeVar("T")

#: Called with the number of rows of a piece whenever one is done.
Report = Callable[[int], None]


class Tree:
    """Combines values in a binary tree, in the order in which they are added.

    ``levels`` holds pairs ``(l, value)``: values of full subtrees of 2^l leaves that wait for their
    neighbours. A value of None means that there were no rows, and is left out.
    """

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self.combine = combine
        self.levels: list[tuple[int, Any]] = []

    def add(self, value: Any, level: int = 0) -> None:
        """Append one leaf, or the root of a full tree of ``2**level`` leaves."""
        while self.levels and self.levels[-1][0] == level:
            value = self.join(self.levels.pop()[1], value)
            level += 1
        self.levels.append((level, value))

    def join(self, left: Any, right: Any) -> Any:
        if left is None:
            return right
        return left if right is None else self.combine(left, right)

    def result(self) -> Any:
        """The value of the whole tree; None if it has none."""
        total = None
        while self.levels:
            total = self.join(self.levels.pop()[1], total)
        return total


def reduce_rows(
    rows: Rows,
    map_chunk: Callable[[Chunk], T],
    combine: Callable[[T, T], T],
    *,
    report: Report | None = None,
    client: Any = None,
    n_jobs: int | None = None,
    numbered: bool = True,
) -> T:
    """Combine ``map_chunk(chunk)`` of all chunks, in a tree that depends on the cut alone.

    Parameters
    ----------
    rows : Rows
    map_chunk : function of a Chunk
        It must depend on the chunk alone; for a cluster it must be picklable. BLAS runs on one
        thread inside it, for the same bits everywhere; pieces are what runs in parallel.
    combine : function of two values
        It may change and return the first one.
    report : function of int, optional
        Called in this thread with the number of rows of each piece that is done.
    client : dask.distributed.Client, optional
        Run on the workers of a cluster; only the result is sent back. Default: that of the rows.
    n_jobs : int or None
        Number of threads, without a cluster.
    numbered : bool
        Whether ``chunk.first_row`` must be right. If lengths of pieces are not known before they
        are read (CSV, dask data frames), this takes one extra pass, the first time.

    Returns
    -------
    The combined value. Without any rows, a `DataError` is raised.
    """
    client = rows.client if client is None else client
    if rows.part is not None:
        map_chunk, numbered = OfPart(map_chunk, rows.part), True
    if numbered and rows.n_rows is None:
        rows.count(client=client, n_jobs=n_jobs)
    if client is not None:
        from .cluster import reduce_on_cluster

        total = reduce_on_cluster(rows, map_chunk, combine, client, report)
    else:
        total = _reduce_here(rows, map_chunk, combine, report, n_jobs or 1)
    if total is None:
        raise DataError("There are no rows: every chunk is empty.")
    return total  # type: ignore[no-any-return]


@dataclass(frozen=True)
class OfPart:
    """A function of the rows of a chunk that are used; None if there are none."""

    map_chunk: Callable[[Chunk], Any]
    part: Callable[[Chunk], Chunk]

    def __call__(self, chunk: Chunk) -> Any:
        some = self.part(chunk)
        return self.map_chunk(some) if len(some) else None


def _reduce_here(
    rows: Rows,
    map_chunk: Callable[[Chunk], Any],
    combine: Callable[[Any, Any], Any],
    report: Report | None,
    n_jobs: int,
) -> Any:
    tree = Tree(combine)
    for i, (value, mark) in enumerate(_map_pieces(rows, map_chunk, combine, n_jobs)):
        rows.seen.setdefault(i, mark)
        tree.add(value)
        if report is not None:
            report(mark.n_rows)
    return tree.result()


def _map_pieces(
    rows: Rows, map_chunk: Callable[[Chunk], Any], combine: Callable[[Any, Any], Any], n_jobs: int
) -> Iterator[tuple[Any, Mark]]:
    """Values and marks of all pieces, in order."""
    starts = rows.first_rows()
    tasks = (
        (piece, rows.reader, rows.chunk_rows, i, starts[i], rows.seen.get(i), map_chunk, combine)
        for i, piece in enumerate(rows.pieces)
    )
    if n_jobs == 1:
        yield from (map_piece(*task) for task in tasks)
        return
    waiting: deque[Future[tuple[Any, Mark]]] = deque()
    with ThreadPoolExecutor(n_jobs) as threads:
        try:
            for task in tasks:
                waiting.append(threads.submit(map_piece, *task))
                # At most ``n_jobs + 1`` pieces are in flight, to bound the memory of results.
                if len(waiting) > n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def map_piece(
    piece: Any,
    reader: ChunkReader,
    chunk_rows: int,
    index: int,
    first_row: int,
    expected: Mark | None,
    map_chunk: Callable[[Chunk], Any],
    combine: Callable[[Any, Any], Any],
) -> tuple[Any, Mark]:
    """The combined value of one piece, and its mark."""
    marks = [] if expected is None else [expected]
    tree = Tree(combine)
    with one_blas_thread():
        for chunk in read_piece(
            piece, reader, chunk_rows, index, first_row, expected, marks.append
        ):
            tree.add(map_chunk(chunk))
        return tree.result(), marks[0]
