"""The compiled loops of sequential minimal optimisation; `smo` says what they solve and why.

With ``g = K s``, a variable that may still rise has the slope ``g + up``, one that may still fall
``g + down``; ``up`` is +inf and ``down`` is -inf where a bound forbids the move. Masks are thus
part of the numbers, and a loop over all variables has no branches.

The three searches are written as LLVM vector instructions, since a compiler does not vectorise
a search for the *place* of a maximum: every lane of a few vectors keeps its own best value and
where it was, and the lanes are compared at the end. The number of lanes is the same on every
machine, and so is the winner among equals. Gains are fractions, compared without dividing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

#: what a loop says when it returns
OPTIMAL, MISSING, BUDGET, STUCK = 0, 1, 2, 3

# Infinities are meant, NaN never occurs; a fused multiply-add is as good as two operations.
_FAST = {"nnan", "nsz", "contract", "arcp"}
_compiled = njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")


@_compiled
def offsets(s, lower, upper, above, below, up, down):
    """Set the slopes of the linear part for every variable, infinite where a bound forbids."""
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


LANES = 8  # numbers in a vector
GROUPS = 4  # vectors in flight: enough to hide the latency of a comparison
_WIDE = LANES * GROUPS
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INDEX = ir.IntType(64)
_INDICES = ir.VectorType(_INDEX, LANES)
_CONTRACT = ("contract",)


class _VectorSearch:
    """Vector instructions on the arrays that a pass reads."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder = context, builder
        self.pointers, self.scalars = [], []
        for kind, value in zip(signature.args, args, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                self.pointers.append(array.data)
                self.n = builder.extract_value(array.shape, 0)
            else:
                self.scalars.append(self.splat(value))

    def splat(self, value: Any) -> Any:
        width = ir.VectorType(value.type, LANES)
        one = self.builder.insert_element(
            ir.Constant(width, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, ir.Constant(width, ir.Undefined), zeros)

    def constant(self, value: float) -> Any:
        return ir.Constant(_DOUBLES, [value] * LANES)

    def _address(self, pointer: Any, k: Any) -> tuple[Any, int]:
        element = pointer.type.pointee
        place = self.builder.gep(pointer, [k])
        return (
            self.builder.bitcast(place, ir.VectorType(element, LANES).as_pointer()),
            4 if element == ir.FloatType() else 8,
        )

    def load(self, which: int, k: Any) -> Any:
        place, size = self._address(self.pointers[which], k)
        value = self.builder.load(place)
        value.align = size
        return value if size == 8 else self.builder.fpext(value, _DOUBLES)

    def store(self, value: Any, which: int, k: Any) -> None:
        place, size = self._address(self.pointers[which], k)
        self.builder.store(value, place).align = size

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=_CONTRACT)

    def sub(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b, flags=_CONTRACT)

    def mul(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=_CONTRACT)

    def greater(self, a: Any, b: Any) -> Any:
        return self.builder.fcmp_ordered(">", a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.greater(a, b), a, b)

    def reduce(self, start: list[Any], body: Any, merge: Any) -> list[Any]:
        """Run ``body(k, state)`` over all whole vectors, and merge the states of the groups.

        A state is a list of vectors, its last one the places.
        """
        builder = self.builder
        cells = [
            [cgutils.alloca_once_value(builder, value) for value in start] for _ in range(GROUPS)
        ]

        def loop(first: Any, last: Any, step: int, groups: int) -> None:
            with cgutils.for_range_slice(
                builder, first, last, ir.Constant(_INDEX, step), intp=_INDEX
            ) as (k, _):
                for group in range(groups):
                    at = builder.add(k, ir.Constant(_INDEX, LANES * group))
                    new = body(at, [builder.load(cell) for cell in cells[group]])
                    for cell, value in zip(cells[group], new, strict=True):
                        builder.store(value, cell)

        zero = ir.Constant(_INDEX, 0)
        most = builder.and_(self.n, ir.Constant(_INDEX, -_WIDE))
        all_ = builder.and_(self.n, ir.Constant(_INDEX, -LANES))
        loop(zero, most, _WIDE, GROUPS)
        loop(most, all_, LANES, 1)
        state = [builder.load(cell) for cell in cells[0]]
        for group in range(1, GROUPS):
            state = merge(state, [builder.load(cell) for cell in cells[group]])
        width = LANES // 2
        while width:
            order = [ir.Constant(ir.IntType(32), (i + width) % LANES) for i in range(LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
            state = merge(
                state,
                [builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask) for v in state],
            )
            width //= 2
        first = ir.Constant(ir.IntType(32), 0)
        return [builder.extract_element(v, first) for v in state]

    def places(self, k: Any) -> Any:
        lanes = ir.Constant(_INDICES, list(range(LANES)))
        return self.builder.add(self.splat(k), lanes)

    def no_places(self) -> Any:
        return ir.Constant(_INDICES, [-1] * LANES)

    # -- what the passes keep -------------------------------------------------------------------

    def keep_smallest(self, state: list[Any], value: Any, at: Any) -> list[Any]:
        better = self.greater(state[0], value)
        choose = self.builder.select
        return [choose(better, value, state[0]), choose(better, at, state[1])]

    def keep_best(self, state: list[Any], top: Any, p: Any, q: Any, at: Any) -> list[Any]:
        """The largest ``top`` and, apart from it, the largest fraction ``p / q``."""
        better = self.greater(self.mul(p, state[2]), self.mul(state[1], q))
        choose = self.builder.select
        return [
            self.larger(top, state[0]),
            choose(better, p, state[1]),
            choose(better, q, state[2]),
            choose(better, at, state[3]),
        ]

    def answer(self, signature: Any, values: list[Any]) -> Any:
        return self.context.make_tuple(self.builder, signature.return_type, values)


_SMALLEST = types.Tuple((types.float64, types.int64))
_BEST = types.Tuple((types.float64, types.float64, types.float64, types.int64))


@intrinsic
def _step_and_lowest_vectors(typing, g, up, row_i, row_j, d_i, d_j):
    def code(context, builder, signature, args):
        v = _VectorSearch(context, builder, signature, args)
        d_i, d_j = v.scalars

        def body(k, state):
            step = v.add(v.mul(d_i, v.load(2, k)), v.mul(d_j, v.load(3, k)))
            new = v.add(v.load(0, k), step)
            v.store(new, 0, k)
            return v.keep_smallest(state, v.add(new, v.load(1, k)), v.places(k))

        start = [v.constant(np.inf), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_smallest(a, *b)))

    return _SMALLEST(g, up, row_i, row_j, d_i, d_j), code


@intrinsic
def _partner_vectors(typing, g, down, diagonal, row, slope, d_ii, floor):
    def code(context, builder, signature, args):
        v = _VectorSearch(context, builder, signature, args)
        slope, d_ii, floor = v.scalars

        def body(k, state):
            value = v.add(v.load(0, k), v.load(1, k))
            gap = v.larger(v.sub(value, slope), v.constant(0.0))
            row = v.load(3, k)
            q = v.sub(v.add(d_ii, v.load(2, k)), v.mul(v.constant(2.0), row))
            q = v.larger(q, floor)
            return v.keep_best(state, value, v.mul(gap, gap), q, v.places(k))

        start = [v.constant(-np.inf), v.constant(0.0), v.constant(1.0), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_best(a, *b)))

    return _BEST(g, down, diagonal, row, slope, d_ii, floor), code


@intrinsic
def _step_and_best_vectors(typing, g, up, down, diagonal, row, d, floor):
    def code(context, builder, signature, args):
        v = _VectorSearch(context, builder, signature, args)
        d, floor = v.scalars

        def body(k, state):
            new = v.add(v.load(0, k), v.mul(d, v.load(4, k)))
            v.store(new, 0, k)
            rise = v.sub(v.constant(0.0), v.add(new, v.load(1, k)))
            slope = v.larger(v.larger(rise, v.add(new, v.load(2, k))), v.constant(0.0))
            q = v.larger(v.load(3, k), floor)
            return v.keep_best(state, slope, v.mul(slope, slope), q, v.places(k))

        start = [v.constant(0.0), v.constant(0.0), v.constant(1.0), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_best(a, *b)))

    return _BEST(g, up, down, diagonal, row, d, floor), code


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
    best, at = _step_and_lowest_vectors(g, up, row_i, row_j, d_i, d_j)
    for k in range(n - n % LANES, n):
        g[k] += d_i * row_i[k] + d_j * row_j[k]
        if g[k] + up[k] < best:
            best = g[k] + up[k]
            at = k
    return max(at, 0), best


@_compiled
def _partner(g, down, diagonal, row, slope, d_ii, floor):
    """The variable whose exchange with i gains most, that gain, and the largest slope downwards."""
    n = len(g)
    top, p, q, at = _partner_vectors(g, down, diagonal, row, slope, d_ii, floor)
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
def _step_and_best(g, up, down, diagonal, floor, row, d):
    """``g += d K_i``; the single variable that gains most; the largest violation."""
    n = len(g)
    worst, p, q, at = _step_and_best_vectors(g, up, down, diagonal, row, d, floor)
    for k in range(n - n % LANES, n):
        g[k] += d * row[k]
        slope = max(-(g[k] + up[k]), g[k] + down[k], 0.0)
        worst = max(worst, slope)
        curvature = max(diagonal[k], floor)
        if slope * slope * q > p * curvature:
            p = slope * slope
            q = curvature
            at = k
    return max(at, 0), worst


@_compiled
def _rise_limit(k, s, upper, above, below):
    """Where a rising variable must stop: its bound, or zero if the linear part bends there."""
    if s[k] < 0.0 and above[k] != below[k] and upper[k] > 0.0:
        return 0.0
    return upper[k]


@_compiled
def _fall_limit(k, s, lower, above, below):
    if s[k] > 0.0 and above[k] != below[k] and lower[k] < 0.0:
        return 0.0
    return lower[k]


@_compiled
def _pack(i, source, place, active, packed, slot, counts):
    """Copy the active columns of a row to the packed rows; False if its source is missing."""
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
    """Make row i available, without giving up row `keep`; False if it must be fetched."""
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
        # Full: start afresh, the rows in use come back first.
        kept = slot[keep] if keep >= 0 else -1
        slot[:] = -1
        counts[1] = 0
        if kept >= 0:
            if kept > 0:
                packed[0, :] = packed[kept, :]
            slot[keep] = 0
            counts[1] = 1
    return _pack(i, source, place, active, packed, slot, counts)


@_compiled
def exchange(
    source, place, stamp, active, packed, slot, is_packed,
    g, up, down, diagonal, s, lower, upper, above, below,
    floor, tol, budget, counts, sums,
):  # fmt: skip
    """Steps along ``s_i + t, s_j - t``, until optimal, out of rows, or out of budget.

    ``counts``: iterations, packed rows, the missing row. ``sums``: path length, violation.
    """
    i, slope = lowest(g, up)
    while True:
        if not _ready(i, -1, source, place, stamp, active, packed, slot, is_packed, counts):
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
        # A bound is met exactly, and g follows the numbers that are stored.
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
def single(
    source, place, stamp, active, packed, slot, is_packed,
    g, up, down, diagonal, s, lower, upper, above, below,
    floor, tol, budget, counts, sums,
):  # fmt: skip
    """Steps of one variable at a time, where no sum ties them together."""
    # A step of length zero along any row: only the search happens.
    i, worst = _step_and_best(g, up, down, diagonal, floor, diagonal, 0.0)
    while True:
        sums[1] = worst
        if not worst > tol:
            return OPTIMAL
        if counts[0] >= budget:
            return BUDGET
        if not _ready(i, -1, source, place, stamp, active, packed, slot, is_packed, counts):
            counts[2] = active[i] if is_packed else i
            return MISSING
        row = packed[slot[i]] if is_packed else source[place[i]]
        q = diagonal[i] if diagonal[i] > floor else floor
        if -(g[i] + up[i]) > 0.0:
            limit = _rise_limit(i, s, upper, above, below)
            t = -(g[i] + up[i]) / q
            new = limit if t >= limit - s[i] else s[i] + t
        else:
            limit = _fall_limit(i, s, lower, above, below)
            t = (g[i] + down[i]) / q
            new = limit if t >= s[i] - limit else s[i] - t
        d = new - s[i]
        if d == 0.0:
            return STUCK
        s[i] = new
        _offset(i, s, lower, upper, above, below, up, down)
        counts[0] += 1
        sums[0] += abs(d)
        i, worst = _step_and_best(g, up, down, diagonal, floor, row, d)


@_compiled
def removable(g, up, down, low, top, out):
    """Mark what cannot be part of a violating pair now; return how many that are.

    ``low`` and ``top`` are the smallest slope upwards and the largest downwards (zero both
    without intercept).
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
    """Move the kept columns of the kept variables' rows to an array of the new width."""
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


@_compiled
def add_rows(rows, index, coefficients, out):
    """``out += sum_r coefficients[r] rows[index[r]]``, in float64, four rows at a time."""
    m = len(index)
    n = len(out)
    r = 0
    while r + 4 <= m:
        a, b, c, d = coefficients[r], coefficients[r + 1], coefficients[r + 2], coefficients[r + 3]
        row_a, row_b = rows[index[r]], rows[index[r + 1]]
        row_c, row_d = rows[index[r + 2]], rows[index[r + 3]]
        for k in range(n):
            out[k] += (a * row_a[k] + b * row_b[k]) + (c * row_c[k] + d * row_d[k])
        r += 4
    while r < m:
        a = coefficients[r]
        row_a = rows[index[r]]
        for k in range(n):
            out[k] += a * row_a[k]
        r += 1
