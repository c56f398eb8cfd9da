"""The searches of sequential minimal optimisation as LLVM vector instructions.

Compilers do not vectorise a search for the *position* of a maximum. Here every lane of a few
vectors keeps its own best value and its position, and the lanes are compared at the end. The number
of lanes is the same on every processor, so ties are broken in the same way. Gains are fractions,
which are compared without division.

Each function processes complete vectors; the caller handles the remaining entries of its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Entries of a vector.
LANES = 8
#: Vectors with separate running maxima: enough to hide the latency of a comparison.
GROUPS = 4
_WIDE = LANES * GROUPS
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_INDEX = ir.IntType(64)
_INDICES = ir.VectorType(_INDEX, LANES)
_CONTRACT = ("contract",)


class VectorSearch:
    """Builds the vector instructions of one search over the given arrays."""

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
        """Run ``body(k, state)`` over all complete vectors, and merge the states of the groups.

        A state is a list of vectors; the last one holds positions.
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

    # -- running minimum and maximum ------------------------------------------------------------

    def keep_smallest(self, state: list[Any], value: Any, at: Any) -> list[Any]:
        better = self.greater(state[0], value)
        choose = self.builder.select
        return [choose(better, value, state[0]), choose(better, at, state[1])]

    def keep_best(self, state: list[Any], top: Any, p: Any, q: Any, at: Any) -> list[Any]:
        """The largest ``top`` and, independently, the position of the largest ``p / q``."""
        better = self.greater(self.mul(p, state[2]), self.mul(state[1], q))
        choose = self.builder.select
        return [
            self.larger(top, state[0]),
            choose(better, p, state[1]),
            choose(better, q, state[2]),
            choose(better, at, state[3]),
        ]

    def keep_steepest(
        self, state: list[Any], g: Any, up: Any, down: Any, q: Any, at: Any
    ) -> list[Any]:
        """`keep_best` of the slopes of steps upwards or downwards, with gains slope² / q."""
        rise = self.sub(self.constant(0.0), self.add(g, up))
        slope = self.larger(self.larger(rise, self.add(g, down)), self.constant(0.0))
        return self.keep_best(state, slope, self.mul(slope, slope), q, at)

    def answer(self, signature: Any, values: list[Any]) -> Any:
        return self.context.make_tuple(self.builder, signature.return_type, values)


_SMALLEST = types.Tuple((types.float64, types.int64))
_BEST = types.Tuple((types.float64, types.float64, types.float64, types.int64))


@intrinsic
def step_and_lowest_vectors(
    typing: Any, g: Any, up: Any, row_i: Any, row_j: Any, d_i: Any, d_j: Any
) -> Any:
    """``g += d_i row_i + d_j row_j``; the smallest ``g + up`` and its position."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = VectorSearch(context, builder, signature, args)
        d_i, d_j = v.scalars

        def body(k: Any, state: Any) -> Any:
            step = v.add(v.mul(d_i, v.load(2, k)), v.mul(d_j, v.load(3, k)))
            new = v.add(v.load(0, k), step)
            v.store(new, 0, k)
            return v.keep_smallest(state, v.add(new, v.load(1, k)), v.places(k))

        start = [v.constant(np.inf), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_smallest(a, *b)))

    return _SMALLEST(g, up, row_i, row_j, d_i, d_j), code


@intrinsic
def partner_vectors(
    typing: Any, g: Any, down: Any, diagonal: Any, row: Any, slope: Any, d_ii: Any, floor: Any
) -> Any:
    """The largest ``g + down``, and the largest gain ``p / q`` of an exchange with its position."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = VectorSearch(context, builder, signature, args)
        slope, d_ii, floor = v.scalars

        def body(k: Any, state: Any) -> Any:
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
def step_and_best_vectors(
    typing: Any,
    g: Any,
    up: Any,
    down: Any,
    diagonal: Any,
    row_i: Any,
    row_j: Any,
    d_i: Any,
    d_j: Any,
    floor: Any,
) -> Any:
    """``g += d_i row_i + d_j row_j``; the largest slope, and the best gain with its position."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = VectorSearch(context, builder, signature, args)
        d_i, d_j, floor = v.scalars

        def body(k: Any, state: Any) -> Any:
            step = v.add(v.mul(d_i, v.load(4, k)), v.mul(d_j, v.load(5, k)))
            new = v.add(v.load(0, k), step)
            v.store(new, 0, k)
            q = v.larger(v.load(3, k), floor)
            return v.keep_steepest(state, new, v.load(1, k), v.load(2, k), q, v.places(k))

        start = [v.constant(0.0), v.constant(0.0), v.constant(1.0), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_best(a, *b)))

    return _BEST(g, up, down, diagonal, row_i, row_j, d_i, d_j, floor), code


@intrinsic
def second_vectors(
    typing: Any,
    g: Any,
    up: Any,
    down: Any,
    diagonal: Any,
    row: Any,
    t: Any,
    inverse: Any,
    floor: Any,
) -> Any:
    """Slope and best gain after a step t along ``row``, whose variable adapts; g is unchanged."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = VectorSearch(context, builder, signature, args)
        t, inverse, floor = v.scalars

        def body(k: Any, state: Any) -> Any:
            row = v.load(4, k)
            moved = v.add(v.load(0, k), v.mul(t, row))
            q = v.sub(v.load(3, k), v.mul(v.mul(row, row), inverse))
            q = v.larger(q, floor)
            return v.keep_steepest(state, moved, v.load(1, k), v.load(2, k), q, v.places(k))

        start = [v.constant(0.0), v.constant(0.0), v.constant(1.0), v.no_places()]
        return v.answer(signature, v.reduce(start, body, lambda a, b: v.keep_best(a, *b)))

    return _BEST(g, up, down, diagonal, row, t, inverse, floor), code
