"""Compiled loops of the oligo kernel: positions of equal k-mers against each other."""

from __future__ import annotations

import numpy as np

from ..._compiling import njit


@njit(cache=True, nogil=True)
def scatter(
    kmers: np.ndarray,
    at: np.ndarray,
    offsets: np.ndarray,
    starts: np.ndarray,
    holders: np.ndarray,
    held_at: np.ndarray,
    table: np.ndarray,
    same: bool,
    out: np.ndarray,
) -> None:
    """Add ``table[|p - q|]`` to entry (i, j) for each k-mer at p in sequence i and at q in j.

    If both samples are the same, only the lower triangle is filled.
    """
    for i in range(len(offsets) - 1):
        row = out[i]
        for e in range(offsets[i], offsets[i + 1]):
            p = at[e]
            for s in range(starts[kmers[e]], starts[kmers[e] + 1]):
                j = holders[s]
                if same and j > i:
                    break
                row[j] += table[abs(p - held_at[s])]


@njit(cache=True, nogil=True)
def diagonal(
    kmers: np.ndarray, at: np.ndarray, offsets: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """``K(x, x)`` of every sequence."""
    for i in range(len(offsets) - 1):
        total = 0.0
        for a in range(offsets[i], offsets[i + 1]):
            for b in range(offsets[i], offsets[i + 1]):
                if kmers[a] == kmers[b]:
                    total += table[abs(at[a] - at[b])]
        out[i] = total
