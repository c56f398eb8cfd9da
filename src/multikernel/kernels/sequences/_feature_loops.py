"""Compiled loops over sparse features: counting them, listing their holders, multiplying."""

from __future__ import annotations

import numpy as np

from ..._compiling import njit


@njit(cache=True, nogil=True)
def number(
    codes: np.ndarray, offsets: np.ndarray, size: int, pattern: np.ndarray, ids: np.ndarray
) -> None:
    """The symbols at rising distances from each position as one number in base ``size``.

    -1 where the pattern leaves the sequence, or meets a negative code (an unknown symbol).
    """
    for row in range(len(offsets) - 1):
        last = max(offsets[row], offsets[row + 1] - pattern[-1])
        inside, into = codes[offsets[row] : offsets[row + 1]], ids[offsets[row] : last]
        known = np.zeros(len(into), dtype=codes.dtype)
        into[:] = 0
        for distance in pattern:
            some = inside[distance:]
            for p in range(len(into)):
                into[p] = into[p] * size + some[p]
                known[p] |= some[p]
        for p in range(len(into)):
            if known[p] < 0:
                into[p] = -1
        ids[last : offsets[row + 1]] = -1


@njit(cache=True, nogil=True)
def tally(
    ids: np.ndarray,
    values: np.ndarray,
    offsets: np.ndarray,
    sums: np.ndarray,
    index: np.ndarray,
    totals: np.ndarray,
    ends: np.ndarray,
) -> int:
    """Add up the values of equal numbers in each sequence; return the total number of sums.

    ids : (patterns, positions), -1 for none; sums : a workspace of zeros, one per number.
    Results go to index (in the order of appearance), totals, and ends (one per sequence).
    """
    filled = 0
    for row in range(len(offsets) - 1):
        begin = filled
        for p in range(offsets[row], offsets[row + 1]):
            for pattern in range(len(ids)):
                number = ids[pattern, p]
                if number >= 0:
                    if sums[number] == 0.0:
                        index[filled] = number
                        filled += 1
                    sums[number] += values[pattern]
        for e in range(begin, filled):
            totals[e] = sums[index[e]]
            sums[index[e]] = 0.0
        ends[row] = filled
    return filled


@njit(cache=True, nogil=True)
def list_holders(
    index: np.ndarray,
    values: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    held: np.ndarray,
) -> None:
    """List the rows that hold each wanted feature, in order, and their values.

    starts : where each feature's list begins; holders, held : filled here
    """
    place = starts[:-1].copy()
    for row in range(len(offsets) - 1):
        for e in range(offsets[row], offsets[row + 1]):
            u = index[e]
            if wanted[u]:
                holders[place[u]] = row
                held[place[u]] = values[e]
                place[u] += 1


@njit(cache=True, nogil=True)
def scatter(
    index: np.ndarray,
    values: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    held: np.ndarray,
    same: bool,
    fresh: bool,
    row: np.ndarray,
    out: np.ndarray,
) -> None:
    """For every wanted feature of row i, add its products to the columns of its holders.

    fresh : whether out is overwritten instead of added to
    row : a workspace of zeros, one per column, in the precision of the sums
    """
    stops = starts[1:].copy()
    if same:
        stops = starts[:-1].copy()  # a list includes row i once the loop reaches it
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            u = index[e]
            if not wanted[u]:
                continue
            if same:
                stops[u] += 1
            value = held.dtype.type(values[e])
            some, sizes = holders[starts[u] : stops[u]], held[starts[u] : stops[u]]
            for s in range(len(some)):
                row[some[s]] += value * sizes[s]
        _hand_over(row, i + 1 if same else len(row), fresh, out[i])


@njit(cache=True, nogil=True)
def _hand_over(row: np.ndarray, stop: int, fresh: bool, out: np.ndarray) -> None:
    if fresh:
        for j in range(stop):
            out[j] = row[j]
            row[j] = 0.0
    else:
        for j in range(stop):
            out[j] += row[j]
            row[j] = 0.0


@njit(cache=True, nogil=True)
def list_occurrences(
    index: np.ndarray,
    values: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
) -> None:
    """`list_holders` for counts: a row is listed as often as it holds the feature."""
    place = starts[:-1].copy()
    for row in range(len(offsets) - 1):
        for e in range(offsets[row], offsets[row + 1]):
            u = index[e]
            if wanted[u]:
                for _ in range(int(values[e])):
                    holders[place[u]] = row
                    place[u] += 1


@njit(cache=True, nogil=True)
def scatter_counts(
    index: np.ndarray,
    values: np.ndarray,
    offsets: np.ndarray,
    wanted: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    same: bool,
    fresh: bool,
    row: np.ndarray,
    out: np.ndarray,
) -> None:
    """`scatter` for `list_occurrences`: only additions, and half of the memory."""
    stops = starts[1:].copy()
    if same:
        stops = starts[:-1].copy()
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            u = index[e]
            if not wanted[u]:
                continue
            if same:
                stops[u] += int(values[e])
            value = row.dtype.type(values[e])
            for holder in holders[starts[u] : stops[u]]:
                row[holder] += value
        _hand_over(row, i + 1 if same else len(row), fresh, out[i])
