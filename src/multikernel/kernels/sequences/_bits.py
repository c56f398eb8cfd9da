# mypy: ignore-errors

"""Compiled loops over matches of two sequences as bits, many pairs at a time.

Each symbol's code is cut into its binary digits; digit b of all positions of a sequence is one row
of bits, 64 positions to a word. Two symbols are equal if no digit differs, so the matches of two
sequences take a few logical operations on words: 2-bit DNA of length 200 takes 64 bytes, and one
operation on words compares 64 positions.

The second sample is laid out word by word across sequences, so that one vector instruction handles
the same word of several pairs. Let m_1 mark the matching positions. The positions at which d
matching symbols in a row begin are ``m_d = m_{d-1} & (m_{d-1} >> 1)``.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..._compiling import njit

#: Pairs processed together: enough to fill vector registers, few enough for the nearest cache.
LANES = 64
#: Sequences of the second sample in a panel, which is read again for every sequence of the first:
#: 512 kB of DNA windows of length 200 stay in the second-level cache, and rows of the result are
#: written in long stretches.
PANEL = 8192


@intrinsic
def popcount(typingctx, word):
    """The number of ones in a 64-bit word."""
    if word is not types.uint64:
        return None

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(word, [word]), "llvm.ctpop.i64"
        )
        return builder.call(function, args)

    return types.uint64(types.uint64), codegen


@njit(cache=True, nogil=True)
def planes(codes, offsets, n_planes, n_words):
    """Bits of the codes, shape (n, n_planes + 1, n_words); the last plane marks known symbols."""
    n = len(offsets) - 1
    out = np.zeros((n, n_planes + 1, n_words), dtype=np.uint64)
    for i in range(n):
        length = offsets[i + 1] - offsets[i]
        for w in range(min(n_words, (length + 63) >> 6)):
            here = codes[offsets[i] + 64 * w : offsets[i] + min(64 * (w + 1), length)]
            for b in range(n_planes):  # the digits of -1 (unknown) are masked by the last plane
                word = np.uint64(0)
                for p in range(len(here)):
                    word |= np.uint64((here[p] >> b) & 1) << np.uint64(p)
                out[i, b, w] = word
            word = np.uint64(0)
            for p in range(len(here)):
                word |= np.uint64(here[p] >= 0) << np.uint64(p)
            out[i, n_planes, w] = word
    return out


@njit(cache=True, nogil=True)
def _shift(x, i, shift, s, out):
    """Planes of sequence i, moved: position p of out[s] is position p + shift of x[i]."""
    n_planes, n_words = x.shape[1], x.shape[2]
    words = abs(shift) >> 6
    rest = np.uint64(abs(shift) & 63)
    back = np.uint64(64) - rest
    for b in range(n_planes):
        for w in range(n_words):
            value = np.uint64(0)
            if shift >= 0:
                if w + words < n_words:
                    value = x[i, b, w + words] >> rest
                if rest and w + words + 1 < n_words:
                    value |= x[i, b, w + words + 1] << back
            else:
                if w - words >= 0:
                    value = x[i, b, w - words] << rest
                if rest and w - words - 1 >= 0:
                    value |= x[i, b, w - words - 1] >> back
            out[s, b, w] = value


# Below, arrays are indexed in full, since making a view of a row costs more than the work on it,
# and by unsigned numbers where a start is added: an index that may be negative keeps a loop scalar.


@njit(cache=True, nogil=True, inline="always")
def _match(x, i, across, start, masked, m):
    """Bits of the positions where sequence i of x equals each of LANES others: m[w, lane]."""
    n_planes, n_words = x.shape[1] - 1, x.shape[2]
    for w in range(n_words):
        known, first = x[i, n_planes, w], x[i, 0, w]
        if n_planes == 2 and not masked:  # DNA: both digits in one loop
            second = x[i, 1, w]
            for lane in range(LANES):
                j = np.uint64(start + lane)
                m[w, lane] = ~((first ^ across[0, w, j]) | (second ^ across[1, w, j])) & known
        else:
            for lane in range(LANES):
                m[w, lane] = first ^ across[0, w, np.uint64(start + lane)]
            for b in range(1, n_planes):
                digit = x[i, b, w]
                for lane in range(LANES):
                    m[w, lane] |= digit ^ across[b, w, np.uint64(start + lane)]
            for lane in range(LANES):
                m[w, lane] = ~m[w, lane] & known & across[n_planes, w, np.uint64(start + lane)]


@njit(cache=True, nogil=True, inline="always")
def _runs(m, n_words, degree, total, running):
    """Sum running totals of |m_d|, d = 1, 2, ..., while runs are that long; return degrees left."""
    one, top = np.uint64(1), np.uint64(63)
    for lane in range(LANES):
        total[lane] = 0
        running[lane] = 0
    left = degree
    while left > 0:
        alive = np.uint64(0)
        if n_words == 4 and left > 1:
            # About 200 letters: all words of a pair and two degrees at once, in registers.
            for lane in range(LANES):
                a, b, c, d = m[0, lane], m[1, lane], m[2, lane], m[3, lane]
                first = running[lane] + popcount(a) + popcount(b) + popcount(c) + popcount(d)
                a &= (a >> one) | (b << top)
                b &= (b >> one) | (c << top)
                c &= (c >> one) | (d << top)
                d &= d >> one
                second = first + popcount(a) + popcount(b) + popcount(c) + popcount(d)
                a &= (a >> one) | (b << top)
                b &= (b >> one) | (c << top)
                c &= (c >> one) | (d << top)
                d &= d >> one
                m[0, lane], m[1, lane], m[2, lane], m[3, lane] = a, b, c, d
                alive |= a | b | c | d
                running[lane] = second
                total[lane] += first + second
            left -= 1
        else:
            for w in range(n_words):
                for lane in range(LANES):
                    a = m[w, lane]
                    running[lane] += popcount(a)
                    a &= (a >> one) | (m[w + 1, lane] << top)
                    m[w, lane] = a
                    alive |= a
            for lane in range(LANES):
                total[lane] += running[lane]
        left -= 1
        if alive == 0:
            break
    return left


@njit(cache=True, nogil=True)
def degree_sums(x, across, counts, degree, shifts, factors, same, masked, out):
    """Weighted degree kernel of all pairs; the lower triangle if both samples are the same.

    A pair's value is ``sum_s factors[s] sum_{d <= degree} (degree - d + 1) |m_d|``, the inner sum
    taken as the running total of running totals of |m_d|.

    x : (n_x, planes, words); across : (planes, words, n_z padded to LANES)
    """
    n_x, n_planes, n_words = x.shape
    m = np.zeros((n_words + 1, LANES), dtype=np.uint64)  # the last word stays empty
    total = np.zeros(LANES, dtype=np.uint64)
    running = np.zeros(LANES, dtype=np.uint64)
    moved = np.empty((len(shifts), n_planes, n_words), dtype=np.uint64)
    for panel in range(0, counts, PANEL):
        for i in range(panel if same else 0, n_x):
            for s in range(len(shifts)):
                _shift(x, i, shifts[s], s, moved)
            end = min(panel + PANEL, i + 1 if same else counts)
            for start in range(panel, end, LANES):
                width = min(LANES, end - start)
                for s in range(len(shifts)):
                    _match(moved, s, across, start, masked, m)
                    left = np.uint64(_runs(m, n_words, degree, total, running))
                    # No run is longer: the running total counts once for each degree that is left.
                    for lane in range(width):
                        j = np.uint64(start + lane)
                        value = factors[s] * np.float64(
                            np.int64(total[lane] + left * running[lane])
                        )
                        out[i, j] = value if s == 0 else out[i, j] + value


@njit(cache=True, nogil=True)
def window_sums(x, x_lengths, across, z_lengths, half, table, outer, same, out):
    """Locality-improved kernel of all pairs: matches in a window, looked up by their bits.

    ``table[bits]`` is the value of a window whose matches are these bits, ``table[0] = 0``.
    """
    n_x, _, n_words = x.shape
    counts = len(z_lengths)
    m = np.zeros((n_words + 1, LANES), dtype=np.uint64)
    one, last = np.uint64(1), np.uint64(2 * half)
    for panel in range(0, counts, PANEL):
        for i in range(panel if same else 0, n_x):
            end = min(panel + PANEL, i + 1 if same else counts)
            for start in range(panel, end, LANES):
                _match(x, i, across, start, True, m)
                for j in range(start, min(start + LANES, end)):
                    length = min(x_lengths[i], z_lengths[j])
                    total = 0.0
                    seen = np.uint64(0)  # matches at q - 2 half .. q, the window around q - half
                    for w in range(n_words + 1):
                        word = m[w, j - start]
                        if word == 0 and seen == 0:
                            continue
                        for q in range(64 * w, min(64 * (w + 1), length + half)):
                            seen = (seen >> one) | ((word & one) << last)
                            word >>= one
                            if q >= half:
                                total += table[seen]
                    out[i, j] = total**outer


@njit(cache=True, nogil=True)
def degree_diagonal(codes, offsets, degree, shifts, factors, out):
    """The sums of `degree_sums` for each sequence with itself, run by run."""
    for i in range(len(offsets) - 1):
        x = codes[offsets[i] : offsets[i + 1]]
        n = len(x)
        out[i] = 0.0
        for s in range(len(shifts)):
            shift = shifts[s]
            total = 0
            run = 0
            weight = 0  # of the min(run, degree) d-mers that end at this position
            for p in range(max(0, -shift), min(n, n - shift)):
                if x[p] >= 0 and x[p] == x[p + shift]:
                    run += 1
                    weight += max(degree - run + 1, 0)
                    total += weight
                else:
                    run = 0
                    weight = 0
            out[i] += factors[s] * total
