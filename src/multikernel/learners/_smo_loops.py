"""The compiled loops of sequential minimal optimisation; `smo` states the problem they solve.

With ``g = K s``, the slope of a variable is ``g + up`` if it rises and ``g + down`` if it falls.
``up`` is +inf and ``down`` is -inf where a bound forbids the move, so that loops over all variables
need no branches.

The searches for the next variables are in :mod:`._smo_search`.
"""

from __future__ import annotations

import numpy as np

from .._compiling import njit
from ._smo_search import (
    LANES,
    partner_vectors,
    second_vectors,
    step_and_best_vectors,
    step_and_lowest_vectors,
)

#: Return codes of a loop.
OPTIMAL, MISSING, BUDGET, STUCK = 0, 1, 2, 3

# Infinities are allowed, NaN never occurs; multiply and add may be fused.
_FAST = {"nnan", "nsz", "contract", "arcp"}
_compiled = njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")


@_compiled
def offsets(s, lower, upper, above, below, up, down):
    """Set ``up`` and ``down`` for every variable; infinite where a bound forbids the move."""
    for k in range(len(s)):
        _offset(k, s, lower, upper, above, below, up, down)


@_compiled
def _offset(k, s, lower, upper, above, below, up, down):
    x = s[k]
    if x >= upper[k]:
        up[k] = np.inf
    else:
        up[k] = above[k] if x >= 0.0 else below[k]
    if x <= lower[k]:
        down[k] = -np.inf
    else:
        down[k] = above[k] if x > 0.0 else below[k]


@_compiled
def lowest(g, up):
    """The variable with the smallest slope upwards, and that slope."""
    best = np.inf
    at = 0
    for k in range(len(g)):
        if g[k] + up[k] < best:
            best = g[k] + up[k]
            at = k
    return at, best


@_compiled
def highest(g, down):
    """The largest slope downwards."""
    best = -np.inf
    for k in range(len(g)):
        v = g[k] + down[k]
        if v > best:
            best = v
    return best


@_compiled
def _step_and_lowest(g, up, row_i, d_i, row_j, d_j):
    """``g += d_i K_i + d_j K_j``, and `lowest` of the result, in one pass."""
    n = len(g)
    best, at = step_and_lowest_vectors(g, up, row_i, row_j, d_i, d_j)
    for k in range(n - n % LANES, n):
        g[k] += d_i * row_i[k] + d_j * row_j[k]
        if g[k] + up[k] < best:
            best = g[k] + up[k]
            at = k
    return max(at, 0), best


@_compiled
def _partner(g, down, diagonal, row, slope, d_ii, floor):
    """The best partner of i in an exchange, its gain, and the largest slope downwards."""
    n = len(g)
    top, p, q, at = partner_vectors(g, down, diagonal, row, slope, d_ii, floor)
    for k in range(n - n % LANES, n):
        v = g[k] + down[k]
        top = max(top, v)
        gap = max(v - slope, 0.0)
        curvature = max((d_ii + diagonal[k]) - 2.0 * row[k], floor)
        if gap * gap * q > p * curvature:
            p = gap * gap
            q = curvature
            at = k
    return max(at, 0), p, top


@_compiled
def _step_and_best(g, up, down, diagonal, floor, row_i, d_i, row_j, d_j):
    """``g += d_i K_i + d_j K_j``; then the variable whose step gains most, and the violation."""
    n = len(g)
    worst, p, q, at = step_and_best_vectors(g, up, down, diagonal, row_i, row_j, d_i, d_j, floor)
    for k in range(n - n % LANES, n):
        g[k] += d_i * row_i[k] + d_j * row_j[k]
        slope = max(-(g[k] + up[k]), g[k] + down[k], 0.0)
        worst = max(worst, slope)
        curvature = max(diagonal[k], floor)
        if slope * slope * q > p * curvature:
            p = slope * slope
            q = curvature
            at = k
    return max(at, 0), worst


@_compiled
def _second(g, up, down, diagonal, floor, row, t, d_ii):
    """The variable j that gains most after a step t of i, if i adapts to it: see `free_pair`.

    Also returns the slope of j after the step of i, positive if j should rise, and its curvature.
    """
    n = len(g)
    inverse = 1.0 / d_ii
    _, p, q, at = second_vectors(g, up, down, diagonal, row, t, inverse, floor)
    for k in range(n - n % LANES, n):
        moved = g[k] + t * row[k]
        slope = max(-(moved + up[k]), moved + down[k], 0.0)
        curvature = max(diagonal[k] - row[k] * row[k] * inverse, floor)
        if slope * slope * q > p * curvature:
            p = slope * slope
            q = curvature
            at = k
    at = max(at, 0)
    moved = g[at] + t * row[at]
    rise = -(moved + up[at])
    return at, rise if rise > 0.0 else -max(moved + down[at], 0.0), q


@_compiled
def _rise_limit(k, s, upper, above, below):
    """The limit of a rising variable: its bound, or zero if the linear part has a kink there."""
    if s[k] < 0.0 and above[k] != below[k] and upper[k] > 0.0:
        return 0.0
    return upper[k]


@_compiled
def _fall_limit(k, s, lower, above, below):
    """The limit of a falling variable."""
    if s[k] > 0.0 and above[k] != below[k] and lower[k] < 0.0:
        return 0.0
    return lower[k]


@_compiled
def _pack(i, source, place, active, packed, slot, counts):
    """Copy the active columns of row i to the packed rows; False if the row is not in memory."""
    row = place[active[i]]
    if row < 0:
        return False
    r = counts[1]
    counts[1] = r + 1
    for k in range(len(active)):
        packed[r, k] = source[row, active[k]]
    slot[i] = r
    return True


@_compiled
def _ready(i, keep, source, place, stamp, active, packed, slot, is_packed, counts):
    """Make row i available and keep row `keep` available; False if row i must be fetched."""
    if not is_packed:
        row = place[i]
        if row < 0:
            return False
        stamp[row] = counts[0]
        return True
    if slot[i] >= 0:
        return True
    row = place[active[i]]
    if row < 0:
        return False
    stamp[row] = counts[0]
    if counts[1] >= packed.shape[0]:
        # The packed rows are full: empty them, and keep only the row in use.
        kept = slot[keep] if keep >= 0 else -1
        # Explicit loops: slice assignments would take a second to compile.
        for k in range(len(slot)):
            slot[k] = -1
        counts[1] = 0
        if kept >= 0:
            for k in range(packed.shape[1]):
                packed[0, k] = packed[kept, k]
            slot[keep] = 0
            counts[1] = 1
    return _pack(i, source, place, active, packed, slot, counts)


@_compiled
def exchange(
    source, place, stamp, active, packed, slot, is_packed,
    g, up, down, diagonal, s, lower, upper, above, below,
    floor, tol, budget, counts, sums,
):  # fmt: skip
    """Steps ``s_i + t, s_j - t`` until the tolerance, a missing row or the budget is reached.

    ``counts`` holds the numbers of iterations and of packed rows, and the missing row; ``sums``
    holds the total length of all steps and the violation.
    """
    nothing = np.int64(-1)  # a literal -1 would compile `_ready` a second time
    i, slope = lowest(g, up)
    while True:
        if not _ready(i, nothing, source, place, stamp, active, packed, slot, is_packed, counts):
            counts[2] = active[i] if is_packed else i
            return MISSING
        row_i = packed[slot[i]] if is_packed else source[place[i]]
        j, gain, top = _partner(g, down, diagonal, row_i, slope, diagonal[i], floor)
        sums[1] = top - slope
        if not top - slope > tol or gain <= 0.0:
            return OPTIMAL
        if counts[0] >= budget:
            return BUDGET
        if not _ready(j, i, source, place, stamp, active, packed, slot, is_packed, counts):
            counts[2] = active[j] if is_packed else j
            return MISSING
        if is_packed:
            row_i = packed[slot[i]]
            row_j = packed[slot[j]]
        else:
            row_j = source[place[j]]
        q = diagonal[i] + diagonal[j] - 2.0 * row_i[j]
        t = (g[j] + down[j] - slope) / (q if q > floor else floor)
        to_i = _rise_limit(i, s, upper, above, below)
        to_j = _fall_limit(j, s, lower, above, below)
        room_i = to_i - s[i]
        room_j = s[j] - to_j
        t = min(t, room_i, room_j)
        # Set bounds exactly, and update g with the rounded changes of s.
        new_i = to_i if t >= room_i else s[i] + t
        new_j = to_j if t >= room_j else s[j] - t
        d_i = new_i - s[i]
        d_j = new_j - s[j]
        if d_i == 0.0 and d_j == 0.0:
            return STUCK
        s[i] = new_i
        s[j] = new_j
        _offset(i, s, lower, upper, above, below, up, down)
        _offset(j, s, lower, upper, above, below, up, down)
        counts[0] += 1
        sums[0] += abs(d_i) + abs(d_j)
        i, slope = _step_and_lowest(g, up, row_i, d_i, row_j, d_j)


@_compiled
def _towards(x, change, limit):
    """``x + change``, or exactly the limit if the change reaches it."""
    if change > 0.0:
        return limit if change >= limit - x else x + change
    return limit if change <= limit - x else x + change


@_compiled
def free_pair(
    source, place, stamp, active, packed, slot, is_packed,
    g, up, down, diagonal, s, lower, upper, above, below,
    floor, tol, budget, counts, sums,
):  # fmt: skip
    """Steps of two variables, for problems without an intercept; see `exchange`.

    i is the variable whose own step t gains most. If j moves by u, the best step of i is
    ``t - u K_ij / K_ii``. With this reply of i, j has the slope ``g_j + t K_ij`` and the curvature
    ``K_jj - K_ij^2 / K_ii``; j is the variable with the largest gain. Steps of single variables
    would be slow if all entries of K are nearly equal.
    """
    nothing = np.int64(-1)
    # Steps of length zero: only the search matters.
    i, worst = _step_and_best(g, up, down, diagonal, floor, diagonal, 0.0, diagonal, 0.0)
    while True:
        sums[1] = worst
        if not worst > tol:
            return OPTIMAL
        if counts[0] >= budget:
            return BUDGET
        if not _ready(i, nothing, source, place, stamp, active, packed, slot, is_packed, counts):
            counts[2] = active[i] if is_packed else i
            return MISSING
        row_i = packed[slot[i]] if is_packed else source[place[i]]
        d_ii = diagonal[i] if diagonal[i] > floor else floor
        rising = -(g[i] + up[i]) > 0.0
        t = -(g[i] + up[i] if rising else g[i] + down[i]) / d_ii
        top = _rise_limit(i, s, upper, above, below)
        bottom = _fall_limit(i, s, lower, above, below)
        if up[i] != down[i]:  # at a kink or a bound: the slope of i is valid in one direction only
            top = top if rising else s[i]
            bottom = s[i] if rising else bottom
        j = i
        d_j = 0.0
        if bottom < s[i] + t < top:
            j, slope, curvature = _second(g, up, down, diagonal, floor, row_i, t, d_ii)
        if j != i:
            if not _ready(j, i, source, place, stamp, active, packed, slot, is_packed, counts):
                counts[2] = active[j] if is_packed else j
                return MISSING
            if is_packed:
                row_i = packed[slot[i]]
            u = slope / curvature
            reply = row_i[j] / d_ii
            # Shorten the step of j so that i stays within its limit.
            end = bottom if u * reply > 0.0 else top
            if abs(u * reply) > abs(s[i] + t - end):
                u = (s[i] + t - end) / reply
            if slope > 0.0:
                new_j = _towards(s[j], u, _rise_limit(j, s, upper, above, below))
            else:
                new_j = _towards(s[j], u, _fall_limit(j, s, lower, above, below))
            d_j = new_j - s[j]
            t -= d_j * reply
            s[j] = new_j
            _offset(j, s, lower, upper, above, below, up, down)
        row_j = packed[slot[j]] if is_packed else source[place[j]]
        new_i = _towards(s[i], t, top if t > 0.0 else bottom)
        d_i = new_i - s[i]
        if d_i == 0.0 and d_j == 0.0:
            return STUCK
        s[i] = new_i
        _offset(i, s, lower, upper, above, below, up, down)
        counts[0] += 1
        sums[0] += abs(d_i) + abs(d_j)
        i, worst = _step_and_best(g, up, down, diagonal, floor, row_i, d_i, row_j, d_j)


@_compiled
def removable(g, up, down, low, top, out):
    """Mark variables that cannot be part of a violating pair now; return their number.

    ``low`` and ``top`` are the smallest slope upwards and the largest slope downwards; both are
    zero without an intercept.
    """
    count = 0
    for k in range(len(g)):
        gone = g[k] + up[k] > top and g[k] + down[k] < low
        out[k] = gone
        if gone:
            count += 1
    return count


@_compiled
def repack(packed, slot, keep, narrow, new_slot):
    """Copy the columns `keep` of the rows of the variables `keep` to a narrower array."""
    used = 0
    for i in range(len(keep)):
        r = slot[keep[i]]
        new_slot[i] = -1
        if r >= 0 and used < narrow.shape[0]:
            for k in range(len(keep)):
                narrow[used, k] = packed[r, keep[k]]
            new_slot[i] = used
            used += 1
    return used
