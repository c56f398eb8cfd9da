"""Rows that are computed when they are read, so that any number of them takes no memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from multikernel.rows.arrays import ArrayReader
from multikernel.rows.base import Piece, Rows

COLUMNS, ROWS_OF_PIECE = 28, 16_384


def values(X: np.ndarray) -> np.ndarray:
    """The function that is to be learned."""
    return np.sin(X[:, 0] + X[:, 1]) * X[:, 2] + 0.5 * X[:, 3] * X[:, 4] + np.abs(X[:, 5])


def block(number: int, n: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one piece and their targets."""
    rng = np.random.default_rng([2026, number])
    X = rng.standard_normal((n, COLUMNS))
    return X, values(X) + noise * rng.standard_normal(n)


class GeneratedPiece(Piece):
    """Rows of one seed."""

    def __init__(self, number: int, n_rows: int) -> None:
        self.number, self.n_rows = number, n_rows
        self.label = self.file = f"piece {number}"

    def read(self, chunk_rows: int) -> Iterator[Any]:
        yield (*block(self.number, self.n_rows or 0), None)


def generated_rows(n: int) -> Rows:
    """n rows of 28 columns."""
    starts = range(0, n, ROWS_OF_PIECE)
    pieces = [GeneratedPiece(i, min(ROWS_OF_PIECE, n - at)) for i, at in enumerate(starts)]
    names = [f"x{j}" for j in range(COLUMNS)]
    return Rows(pieces, ArrayReader(names), ROWS_OF_PIECE)
