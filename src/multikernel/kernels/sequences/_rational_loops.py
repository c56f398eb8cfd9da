"""Compiled loops of rational kernels: sums over all paths of the composed transducer.

``A[i, j, s]`` is the sum over paths that have read i symbols of x and j of z and stand in state s,
in the real semiring (+, *), or as logarithms in the log semiring (logaddexp, +).
"""

from __future__ import annotations

import numpy as np

from ..._compiling import njit


@njit(cache=True, nogil=True, inline="always")
def _common(kind: int, own: int, a: int, other_kind: int, other: int, b: int, size: int) -> int:
    """Number of symbols both sides may write after reading a and b (-1: unknown or nothing)."""
    # A set is {symbol} if single, otherwise all symbols but that one (-1: all symbols).
    single, symbol = kind == 0, own
    if kind == 1:
        single, symbol = True, a
        if a < 0:
            return 0
    elif kind == 2:
        symbol = a
        if a < 0:
            return 0
    elif kind == 3:
        symbol = -1
    other_single, other_symbol = other_kind == 0, other
    if other_kind == 1:
        other_single, other_symbol = True, b
        if b < 0:
            return 0
    elif other_kind == 2:
        other_symbol = b
        if b < 0:
            return 0
    elif other_kind == 3:
        other_symbol = -1
    if single and other_single:
        return 1 if symbol == other_symbol else 0
    if single or other_single:
        return 1 if symbol != other_symbol else 0
    left_out = 0
    if symbol >= 0:
        left_out += 1
    if other_symbol >= 0 and other_symbol != symbol:
        left_out += 1
    return size - left_out


@njit(cache=True, nogil=True, inline="always")
def multiplicity(moves: np.ndarray, e: int, a: int, b: int, size: int) -> int:
    """The number of ways in which move e is possible where x reads a and z reads b."""
    # A read of -2 matches any symbol, -3 none; with a kind of -1 nothing is written.
    if (moves[e, 2] >= 0 and moves[e, 2] != a) or moves[e, 2] == -3:
        return 0
    if (moves[e, 3] >= 0 and moves[e, 3] != b) or moves[e, 3] == -3:
        return 0
    if moves[e, 4] < 0:
        return 1
    return _common(moves[e, 4], moves[e, 5], a, moves[e, 6], moves[e, 7], b, size)


@njit(cache=True, nogil=True, inline="always")
def _log_add(a: float, b: float) -> float:
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True, nogil=True)
def _advance(
    before: np.ndarray,
    after: np.ndarray,
    moves: np.ndarray,
    weights: np.ndarray,
    a: int,
    b: int,
    size: int,
    log: bool,
) -> None:
    """Add to the sums of the cell ``after`` the paths that come from ``before`` by one move."""
    for e in range(len(weights)):
        value = before[moves[e, 0]]
        if value == (-np.inf if log else 0.0):
            continue
        ways = multiplicity(moves, e, a, b, size)
        if ways == 0:
            continue
        target = moves[e, 1]
        if log:
            after[target] = _log_add(after[target], value + np.log(weights[e] * ways))
        else:
            after[target] += value * weights[e] * ways


@njit(cache=True, nogil=True)
def _close(cell: np.ndarray, old: np.ndarray, closure: np.ndarray, log: bool) -> None:
    """Follow all paths that read nothing; closure holds their sums between any two states."""
    old[:] = cell
    for t in range(len(cell)):
        total = -np.inf if log else 0.0
        for s in range(len(cell)):
            if closure[s, t] == 0.0:
                continue
            if log:
                if old[s] != -np.inf:
                    total = _log_add(total, old[s] + np.log(closure[s, t]))
            else:
                total += old[s] * closure[s, t]
        cell[t] = total


@njit(cache=True, nogil=True)
def _one(
    x: np.ndarray,
    z: np.ndarray,
    moves_x: np.ndarray,
    weights_x: np.ndarray,
    moves_z: np.ndarray,
    weights_z: np.ndarray,
    moves_both: np.ndarray,
    weights_both: np.ndarray,
    closure: np.ndarray,
    initial: np.ndarray,
    final: np.ndarray,
    size: int,
    log: bool,
) -> float:
    n_states = len(initial)
    zero = -np.inf if log else 0.0
    closes = len(closure) > 0
    old = np.empty(n_states)
    above = np.full((len(z) + 1, n_states), zero)  # sums for one symbol fewer of x
    here = np.full((len(z) + 1, n_states), zero)
    for i in range(len(x) + 1):
        a = x[i - 1] if i > 0 else -1
        for j in range(len(z) + 1):
            b = z[j - 1] if j > 0 else -1
            cell = here[j]
            cell[:] = zero
            if i == 0 and j == 0:
                for s in range(n_states):
                    if initial[s] != 0.0:
                        cell[s] = np.log(initial[s]) if log else initial[s]
            if i > 0:
                _advance(above[j], cell, moves_x, weights_x, a, -1, size, log)
            if j > 0:
                _advance(here[j - 1], cell, moves_z, weights_z, -1, b, size, log)
            if i > 0 and j > 0:
                _advance(above[j - 1], cell, moves_both, weights_both, a, b, size, log)
            if closes:
                _close(cell, old, closure, log)
        above, here = here, above
    total = zero
    for s in range(n_states):
        if final[s] != 0.0:
            if log:
                total = _log_add(total, above[len(z), s] + np.log(final[s]))
            else:
                total += above[len(z), s] * final[s]
    return total


@njit(cache=True, nogil=True)
def pairs(
    x: np.ndarray,
    x_offsets: np.ndarray,
    z: np.ndarray,
    z_offsets: np.ndarray,
    moves_x: np.ndarray,
    weights_x: np.ndarray,
    moves_z: np.ndarray,
    weights_z: np.ndarray,
    moves_both: np.ndarray,
    weights_both: np.ndarray,
    closure: np.ndarray,
    initial: np.ndarray,
    final: np.ndarray,
    size: int,
    log: bool,
    which: int,
    out: np.ndarray,
) -> None:
    """All pairs (which = 0), the lower triangle (1), or each sequence with itself (2)."""
    for i in range(len(x_offsets) - 1):
        one = x[x_offsets[i] : x_offsets[i + 1]]
        stop = len(z_offsets) - 1 if which == 0 else i + 1
        for j in range(i if which == 2 else 0, stop):
            value = _one(
                one,
                z[z_offsets[j] : z_offsets[j + 1]],
                moves_x,
                weights_x,
                moves_z,
                weights_z,
                moves_both,
                weights_both,
                closure,
                initial,
                final,
                size,
                log,
            )
            out[i, 0 if which == 2 else j] = value
