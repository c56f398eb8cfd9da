"""The kernel matrix as sequential minimal optimisation reads it: stored, or rows on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._matrix_loops import add_rows

#: Default size of the cache for rows on demand, in bytes.
CACHE_BYTES = 256 * 2**20
#: Rows computed in one call: the row that is needed, and rows that are likely to be needed next.
ROWS_PER_FETCH = 16
#: Share of the cache that holds packed rows, without the columns of variables set aside.
PACKED_SHARE = 1 / 8


@dataclass(frozen=True)
class KernelRows:
    """A kernel matrix that is never stored: its rows are computed on demand.

    Attributes
    ----------
    rows : callable
        ``rows(indices)`` is the block of shape (len(indices), n), in float32 or float64.
    diagonal : array of shape (n,)
    """

    rows: Callable[[np.ndarray], np.ndarray]
    diagonal: np.ndarray


class StoredMatrix:
    """A kernel matrix in memory."""

    n_rows = 0

    def __init__(self, K: np.ndarray) -> None:
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(f"K must be a square matrix, got shape {K.shape}.")
        if K.dtype not in (np.float32, np.float64):
            K = K.astype(np.float64)
        self.source = _writable(np.ascontiguousarray(K))
        n = len(K)
        self.diagonal = np.diagonal(K).astype(np.float64)
        self.place = np.arange(n)
        self.stamp = np.zeros(n, dtype=np.int64)
        # An array takes memory only once it is written to, so a large limit costs nothing.
        self.packed_entries = n * n // 5

    def fetch(self, needed: int, likely: np.ndarray, now: int) -> None:
        raise AssertionError("all rows are stored")

    def add_products(self, index: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        add_rows(self.source, index, coefficients, out)


class FetchedRows:
    """A cache of rows that are computed on demand; the least recently used are replaced."""

    def __init__(self, K: KernelRows, cache_rows: int | None, shrinking: bool) -> None:
        self.rows = K.rows
        self.diagonal = np.array(K.diagonal, dtype=np.float64)
        n = len(self.diagonal)
        first = self._compute(np.zeros(1, dtype=np.int64), n)
        if cache_rows is None:
            cache_rows = CACHE_BYTES // (n * first.itemsize)
        cache_rows = max(4, min(cache_rows, n if not shrinking else 2 * n))
        packed = int(cache_rows * PACKED_SHARE) if shrinking else 0
        self.packed_entries = packed * n
        held = min(cache_rows - packed, max(n, 4))
        self.source = np.empty((held, n), dtype=first.dtype)
        self.place = np.full(n, -1)
        self.owner = np.full(held, -1)
        self.stamp = np.full(held, -2, dtype=np.int64)  # older than any row that was fetched
        self.n_rows = 1
        self._keep(np.zeros(1, dtype=np.int64), first, 0)

    def _compute(self, index: np.ndarray, n: int) -> np.ndarray:
        block = np.asarray(self.rows(index))
        if block.shape != (len(index), n):
            raise ValueError(f"rows() gave shape {block.shape}, expected {(len(index), n)}.")
        if block.dtype not in (np.float32, np.float64):
            block = block.astype(np.float64)
        return block

    def fetch(self, needed: int, likely: np.ndarray, now: int) -> None:
        """Compute a missing row, and some of the rows that are likely to be needed next."""
        others = likely[likely != needed]
        index = np.append(needed, others[: min(ROWS_PER_FETCH, len(self.source) // 2) - 1])
        block = self._compute(index, len(self.place))
        self.n_rows += len(index)
        self._keep(index, block, now)

    def _keep(self, index: np.ndarray, block: np.ndarray, now: int) -> None:
        oldest = np.argsort(self.stamp, kind="stable")[: len(index)]
        former = self.owner[oldest]
        self.place[former[former >= 0]] = -1
        self.source[oldest] = block
        self.owner[oldest] = index
        self.place[index] = oldest
        # Rows fetched in advance count as older, so that they never replace rows in use.
        self.stamp[oldest] = now - 1
        self.stamp[oldest[0]] = now

    def add_products(self, index: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        held = self.place[index] >= 0
        add_rows(self.source, self.place[index[held]], coefficients[held], out)
        index, coefficients = index[~held], coefficients[~held]
        height = max(1, min(ROWS_PER_FETCH, len(self.source) // 2))
        for start in range(0, len(index), height):
            part = slice(start, start + height)
            block = np.ascontiguousarray(self._compute(index[part], len(out)))
            self.n_rows += len(block)
            add_rows(block, np.arange(len(block)), coefficients[part], out)


def _writable(K: np.ndarray) -> np.ndarray:
    """The same memory without the read-only flag.

    The compiled loops only read K. Without this, they would be compiled again for read-only arrays.
    """
    if K.flags.writeable:
        return K
    address, _ = K.__array_interface__["data"]
    return np.asarray(_Interface(K, {**K.__array_interface__, "data": (address, False)}))


class _Interface:
    """Describes the memory of an array and keeps that array alive."""

    def __init__(self, owner: np.ndarray, interface: dict[str, object]) -> None:
        self.owner = owner
        self.__array_interface__ = interface
