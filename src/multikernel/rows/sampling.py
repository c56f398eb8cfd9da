"""Random samples of rows, the same for any number of workers and any cut into chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.sequences.table import Table
from ..tables.frame import DataError
from .base import Rows
from .chunk import Chunk
from .reduction import Report, reduce_rows


@dataclass(frozen=True)
class Drawn:
    """Rows with the smallest random numbers so far, and those numbers."""

    chunk: Chunk
    draws: np.ndarray

    def take(self, index: np.ndarray) -> Drawn:
        return Drawn(self.chunk.take(index), self.draws[index])


def random_numbers(seed: int, chunk: Chunk) -> np.ndarray:
    """The numbers of a random stream that belong to the rows of a chunk."""
    places = chunk.row_numbers()
    if not len(places):
        return np.empty(0, dtype=np.uint64)
    stream, first = np.random.Philox(key=seed), int(places[0]) // 4
    stream.advance(first)  # a step gives four numbers
    numbers: np.ndarray = stream.random_raw(int(places[-1]) + 1 - 4 * first)
    return numbers[places - 4 * first]


@dataclass(frozen=True)
class Draw:
    """Gives row i the i-th number of a random stream, and keeps the rows with the smallest ones."""

    size: int
    seed: int

    def __call__(self, chunk: Chunk) -> Drawn:
        return self.smallest(Drawn(chunk, random_numbers(self.seed, chunk)))

    def smallest(self, drawn: Drawn) -> Drawn:
        if len(drawn.draws) <= self.size:
            return drawn
        return drawn.take(np.sort(np.argsort(drawn.draws, kind="stable")[: self.size]))

    def combine(self, left: Drawn, right: Drawn) -> Drawn:
        one, two = left.chunk, right.chunk
        X, y, w = (_stack(a, b) for a, b in zip(one, two, strict=True))
        places = np.concatenate([one.row_numbers(), two.row_numbers()])
        draws = np.concatenate([left.draws, right.draws])
        return self.smallest(Drawn(Chunk(X, y, w, one.first_row, places), draws))


def _stack(a: Any, b: Any) -> Any:
    if a is None:
        return None
    if sp.issparse(a):
        return sp.vstack([a, b], format="csr")
    if isinstance(a, Table):
        columns = [np.concatenate(pair) for pair in zip(a.columns, b.columns, strict=True)]
        return Table(columns, a.names)
    return np.concatenate([a, b])


def sample_rows(
    rows: Rows,
    size: int,
    seed: int = 0,
    *,
    report: Report | None = None,
    client: Any = None,
    n_jobs: int | None = None,
) -> tuple[Chunk, np.ndarray]:
    """Draw rows without replacement, each set of ``size`` rows with the same probability.

    Parameters
    ----------
    rows : Rows
    size : int
        At least 1. If there are fewer rows, all are returned.
    seed : int
        The sample depends on this number and the order of the rows only: neither the cut into
        chunks nor the number of workers changes it.
    report, client, n_jobs
        As in :func:`reduce_rows`.

    Returns
    -------
    chunk : Chunk
        The sample, in the order of the rows.
    places : array of shape (size,)
        Row numbers of the sample.
    """
    drawn = draw_rows(rows, size, seed, report=report, client=client, n_jobs=n_jobs)
    return drawn.chunk, drawn.chunk.row_numbers()


def hold_out(
    rows: Rows,
    size: int,
    seed: int = 0,
    *,
    report: Report | None = None,
    client: Any = None,
    n_jobs: int | None = None,
) -> tuple[Rows, Chunk]:
    """Keep randomly drawn rows out of a fit, to score the model on them.

    Parameters
    ----------
    rows : Rows
    size, seed, report, client, n_jobs
        As in :func:`sample_rows`.

    Returns
    -------
    rest : Rows
        The same rows without the drawn ones, which are skipped on reading. With ``impute=``,
        medians and most frequent categories are now those of these rows; if none are left, they
        stay those of all rows.
    held_out : Chunk

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.rows import hold_out, open_rows
    >>> rest, test = hold_out(open_rows(np.arange(50_000.0)[:, None]), 1000)
    >>> len(test), sum(len(chunk) for chunk in rest)
    (1000, 49000)
    """
    rest, held_out, _ = split_rows(rows, size, seed, report=report, client=client, n_jobs=n_jobs)
    return rest, held_out


def split_rows(
    rows: Rows,
    size: int,
    seed: int,
    more: int = 0,
    *,
    report: Report | None = None,
    client: Any = None,
    n_jobs: int | None = None,
) -> tuple[Rows, Chunk, Chunk]:
    """The rest and the held-out rows of :func:`hold_out`, and ``more`` random rows of the rest.

    If missing values are filled in, what fills them is found anew in the rest, unless it is empty:
    held-out rows must not have a part in the model.
    """
    size = check_size(size)
    options: dict[str, Any] = {"client": client, "n_jobs": n_jobs}

    def split(rows: Rows) -> tuple[Rows, Chunk, Chunk, bool]:
        drawn = draw_rows(rows, size + max(more, 1), seed, report=report, **options)
        order = np.argsort(drawn.draws, kind="stable")
        parts = order[:size], order[size : size + more]
        held, sample = (drawn.take(np.sort(part)) for part in parts)
        return rest_of(rows, held, seed), held.chunk, sample.chunk, len(order) > size

    rest, held, sample, some_left = split(rows)
    reader = rows.reader.fitted_to(rest, **options) if some_left else rows.reader
    # Another reader gives other values, so marks of earlier passes do not count.
    if reader is not rows.reader:
        rest, held, sample, _ = split(replace(rows, reader=reader, seen={}))
    return rest, held, sample


def draw_rows(rows: Rows, size: int, seed: int, **options: Any) -> Drawn:
    """The rows of :func:`sample_rows` with their random numbers."""
    draw = Draw(check_size(size), seed)
    drawn: Drawn = reduce_rows(rows, draw, draw.combine, **options)
    return drawn


def rest_of(rows: Rows, drawn: Drawn, seed: int) -> Rows:
    """The rows whose random numbers are larger than those of all rows that were drawn."""
    return replace(rows, part=Above(seed, int(drawn.draws.max()), rows.part))


def check_size(size: Any) -> int:
    """The number of rows to draw, if it is one."""
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise DataError(f"size must be a positive whole number of rows to draw; got {size!r}.")
    return int(size)


@dataclass(frozen=True)
class Above:
    """The rows of a chunk whose random numbers exceed ``last``."""

    seed: int
    last: int
    before: Callable[[Chunk], Chunk] | None = None

    def __call__(self, chunk: Chunk) -> Chunk:
        chunk = chunk if self.before is None else self.before(chunk)
        return chunk.take(random_numbers(self.seed, chunk) > self.last)
