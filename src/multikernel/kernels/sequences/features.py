"""Explicit sparse features of sequences, and Gram matrices from them.

Features are counts of patterns: the symbols at fixed distances from each position. Features that
many sequences share are multiplied as a dense matrix by BLAS, the many rare ones through lists of
the sequences that hold them. Either method would be slow for the other kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from ..._mirror import mirror
from . import _feature_loops
from .encoding import Coded

#: A feature shared by this fraction of all pairs costs as much in a dense product as in lists.
DENSE_SHARE = 0.06
#: Rows of the dense product per panel, so that a panel of the result stays in the cache.
DENSE_ROWS = 128
#: Occurrences are listed instead of holders if their mean number per holder is at most this.
REPEATED = 1.5
#: With more possible patterns than this, sums are kept only for those that occur.
MANY_NUMBERS = 2**20
#: Up to this bound, float32 represents every whole number exactly.
EXACT_SINGLE = 2**24
#: The largest unsigned integer of two bytes.
SHORT = 2**16 - 1


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of a sparse matrix: feature numbers, each once in a row, and their values.

    Attributes
    ----------
    index : array of int64
        Feature numbers, row after row.
    values : array of float64
    offsets : array of int64, shape (n + 1,)
    whole : bool
        Whether all values are whole numbers.
    """

    index: np.ndarray
    values: np.ndarray
    offsets: np.ndarray
    whole: bool = True

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def rows(self) -> np.ndarray:
        """The row of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def squares(self) -> np.ndarray:
        """The squared norm of each row."""
        return np.bincount(self.rows, self.values**2, len(self))

    def presence(self) -> Features:
        """The same features with the value 1 wherever they occur."""
        return Features(self.index, np.ones_like(self.values), self.offsets)


def pattern_ids(
    samples: Sequence[Coded], size: int, patterns: Sequence[Sequence[int]]
) -> list[list[np.ndarray]]:
    """A number for the symbols at given distances from every position, per pattern and sample.

    Equal numbers mean equal symbols, in all samples and for all patterns (of one length); -1 where
    a pattern leaves the sequence or meets an unknown symbol.
    """
    codes = np.concatenate([sample.codes for sample in samples])
    lengths = np.concatenate([sample.lengths for sample in samples])
    # Numbers in base `size`, as long as a number and a row together fit into a word.
    if max(size, 1) ** len(patterns[0]) * max(len(lengths), 1) < 2**62:
        ids = list(np.empty((len(patterns), len(codes)), dtype=np.int64))
        for pattern, out in zip(patterns, ids, strict=True):
            distances = np.array(pattern, dtype=np.int64)
            _feature_loops.number(codes, _starts(lengths), size, distances, out)
    else:
        ends = np.repeat(np.cumsum(lengths), lengths)
        ids = _occurring_numbers(codes, ends - np.arange(len(codes)), size, patterns)
    cuts = np.cumsum([len(sample.codes) for sample in samples])[:-1]
    return [np.split(each, cuts) for each in ids]


def _symbol(codes: np.ndarray, distance: int) -> np.ndarray:
    """The symbol at this distance from each position; -1 past the end."""
    out = np.full(len(codes), -1, dtype=np.int64)
    out[: max(len(codes) - distance, 0)] = codes[distance:]
    return out


def _occurring_numbers(
    codes: np.ndarray, room: np.ndarray, size: int, patterns: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Number the patterns that occur, symbol by symbol: for long ones over large alphabets."""
    ids: np.ndarray = np.zeros((len(patterns), len(codes)), dtype=np.int64)
    good = np.stack([room > pattern[-1] for pattern in patterns])
    for place in range(len(patterns[0])):
        symbol = np.stack([_symbol(codes, pattern[place]) for pattern in patterns])
        good &= symbol >= 0
        ids = np.where(good, ids * size + symbol, -1)
        _, inverse = np.unique(ids, return_inverse=True)
        ids = inverse.reshape(good.shape)
    return list(np.where(good, ids, -1))


def collect(x: Coded, ids: Sequence[np.ndarray], values: Sequence[float] | None = None) -> Features:
    """Add up the patterns of each sequence: entry (row, id) is the sum of the values of its ids.

    Parameters
    ----------
    ids : sequence of arrays, one per pattern
        Number at every position, or -1.
    values : sequence of positive floats, one per pattern, optional
        What one occurrence adds; 1 by default.
    """
    numbers = ids[0][None] if len(ids) == 1 else np.stack(list(ids))
    n_ids = int(numbers.max(initial=-1)) + 1
    if n_ids > MANY_NUMBERS:
        # Too many for a table of sums: number those that occur.
        occurring, inverse = np.unique(numbers, return_inverse=True)
        rank = inverse.reshape(numbers.shape)
        rank = np.where(numbers >= 0, rank, -1)
    else:
        occurring, rank = None, numbers
    each = np.ones(len(numbers)) if values is None else np.asarray(values, dtype=np.float64)
    size = n_ids if occurring is None else len(occurring)
    index, totals = np.empty(numbers.size, dtype=np.int64), np.empty(numbers.size)
    ends = np.empty(len(x), dtype=np.int64)
    filled = _feature_loops.tally(rank, each, x.offsets, np.zeros(size), index, totals, ends)
    index, totals = index[:filled], totals[:filled]
    if filled < 0.5 * numbers.size:  # a copy pays only if it frees enough memory
        index, totals = index.copy(), totals.copy()
    if occurring is not None:
        index = occurring[index]
    return Features(index, totals, np.concatenate([[0], ends]), values is None)


def renumber(samples: Sequence[Features]) -> tuple[list[Features], int]:
    """The same features numbered 0, 1, ... without gaps, in all samples alike."""
    indices = [sample.index for sample in samples]
    every = indices[0] if len(indices) == 1 else np.concatenate(indices)
    top = int(every.max(initial=-1)) + 1
    if top <= 4 * len(every) + 1024:
        used = np.bincount(every, minlength=top) > 0
        if used.all():
            return list(samples), top
        new = np.cumsum(used) - 1
        return (
            [Features(new[s.index], s.values, s.offsets, s.whole) for s in samples],
            int(used.sum()),
        )
    occurring, inverse = np.unique(every, return_inverse=True)
    ends = np.cumsum([0, *(len(sample.index) for sample in samples)])
    numbered = [
        Features(inverse[a:b], s.values, s.offsets, s.whole)
        for s, (a, b) in zip(samples, pairwise(ends), strict=True)
    ]
    return numbered, len(occurring)


def gram(x: Features, z: Features) -> np.ndarray:
    """``sum_u x_u z_u`` for all pairs, shape (n_x, n_z), float64; half the work where z is x."""
    if not len(x.index) or not len(z.index):
        return np.zeros((len(x), len(z)))
    if z is x:
        (x,), count = renumber([x])
        z = x
    else:
        (x, z), count = renumber([x, z])
    held = np.bincount(x.index, minlength=count)
    held = held * (held if z is x else np.bincount(z.index, minlength=count))
    common = held > DENSE_SHARE * len(x) * len(z)
    # Sums of whole numbers are exact in single precision up to a bound.
    bound = np.diff(x.offsets).max() * x.values.max() * z.values.max()
    dtype = np.float32 if x.whole and z.whole and bound < EXACT_SINGLE else np.float64
    out = np.empty((len(x), len(z)))
    rare = ~common & (held > 0)
    if common.any():
        _fill_dense(x, z, np.flatnonzero(common), count, dtype, out)
    if rare.any() or not common.any():
        _add_rare(x, z, rare, bound, dtype, out, fresh=not common.any())
    if z is x:
        mirror(out)
    return out


def _fill_dense(
    x: Features, z: Features, chosen: np.ndarray, count: int, dtype: type, out: np.ndarray
) -> None:
    """Products of the chosen features as dense matrices; only the lower triangle if z is x."""
    place = np.full(count, -1)
    place[chosen] = np.arange(len(chosen))
    A = _written_out(x, place, len(chosen), dtype)
    B = A if z is x else _written_out(z, place, len(chosen), dtype)
    for top in range(0, len(x), DENSE_ROWS):
        rows = slice(top, min(top + DENSE_ROWS, len(x)))
        columns = slice(0, rows.stop if z is x else len(z))
        out[rows, columns] = A[rows] @ B[columns].T


def _written_out(x: Features, place: np.ndarray, width: int, dtype: type) -> np.ndarray:
    A: np.ndarray = np.zeros((len(x), width), dtype=dtype)
    column = place[x.index]
    kept = column >= 0
    A[x.rows[kept], column[kept]] = x.values[kept]
    return A


def _add_rare(
    x: Features,
    z: Features,
    rare: np.ndarray,
    bound: float,
    dtype: type,
    out: np.ndarray,
    *,
    fresh: bool,
) -> None:
    """Products of features that few sequences hold, through lists of the holders.

    ``bound`` is an upper bound of every sum.

    Rare patterns mostly occur once: then a list of occurrences is hardly longer than one of
    holders, and needs no values beside it.
    """
    same = z is x
    # Unsigned, which saves a test for negative indices, and as short as possible for the cache.
    kind = np.uint16 if len(z) <= SHORT else np.uint32
    if x.whole and z.whole and z.values.sum() <= REPEATED * len(z.values):
        row: np.ndarray = np.zeros(len(z), dtype=np.uint16 if bound <= SHORT else dtype)
        starts = _starts(np.bincount(z.index, z.values, len(rare)) * rare)
        holders = np.empty(starts[-1], dtype=kind)
        _feature_loops.list_occurrences(z.index, z.values, z.offsets, rare, starts, holders)
        _feature_loops.scatter_counts(
            x.index, x.values, x.offsets, rare, starts, holders, same, fresh, row, out
        )
        return
    row = np.zeros(len(z), dtype=dtype)
    starts = _starts(np.bincount(z.index, minlength=len(rare)) * rare)
    holders = np.empty(starts[-1], dtype=kind)
    held = np.empty(starts[-1], dtype=dtype)
    _feature_loops.list_holders(z.index, z.values, z.offsets, rare, starts, holders, held)
    _feature_loops.scatter(
        x.index, x.values, x.offsets, rare, starts, holders, held, same, fresh, row, out
    )


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def windows(span: int, k: int) -> Iterable[tuple[int, ...]]:
    """All patterns of k positions that begin at 0 and end before ``span``."""
    for rest in combinations(range(1, span), k - 1):
        yield (0, *rest)
