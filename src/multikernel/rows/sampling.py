"""A random sample of rows, the same on any number of workers and however the rows are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.sequences.table import Table
from .base import Rows
from .chunk import Chunk
from .reduction import Report, reduce_rows


@dataclass(frozen=True)
class Drawn:
    """Rows with the smallest random numbers so far, those numbers, and where the rows stand."""

    chunk: Chunk
    draws: np.ndarray
    places: np.ndarray

    def take(self, index: np.ndarray) -> Drawn:
        X, y, w = (None if part is None else part[index] for part in self.chunk)
        return Drawn(Chunk(X, y, w), self.draws[index], self.places[index])


@dataclass(frozen=True)
class Draw:
    """Gives row i the i-th number of a random stream, and keeps the rows with the smallest ones."""

    size: int
    seed: int

    def __call__(self, chunk: Chunk) -> Drawn:
        stream, first = np.random.Philox(key=self.seed), chunk.first_row
        stream.advance(first // 4)  # it gives four numbers a step
        draws = stream.random_raw(first % 4 + len(chunk))[first % 4 :]
        return self.smallest(Drawn(chunk, draws, first + np.arange(len(chunk))))

    def smallest(self, drawn: Drawn) -> Drawn:
        if len(drawn.draws) <= self.size:
            return drawn
        return drawn.take(np.sort(np.argsort(drawn.draws, kind="stable")[: self.size]))

    def combine(self, left: Drawn, right: Drawn) -> Drawn:
        parts = [_stack(a, b) for a, b in zip(left.chunk, right.chunk, strict=True)]
        draws = np.concatenate([left.draws, right.draws])
        places = np.concatenate([left.places, right.places])
        return self.smallest(Drawn(Chunk(*parts), draws, places))


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
        All rows are returned where there are no more.
    seed : int
        Rows are drawn by this number and their places alone: neither the cut into chunks nor the
        number of workers changes the sample.
    report, client, n_jobs
        As in :func:`reduce_rows`.

    Returns
    -------
    chunk : Chunk
        The sample, in the order of the rows.
    places : array of shape (size,)
        Numbers of the rows.
    """
    draw = Draw(size, seed)
    drawn = reduce_rows(rows, draw, draw.combine, report=report, client=client, n_jobs=n_jobs)
    return drawn.chunk, drawn.places
