"""Fill the upper triangle of a symmetric matrix from the lower one."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ._compiling import njit
from ._small import SMALL_SAMPLES

#: Rows and columns of a square that is transposed in vector registers.
SQUARE = 8
#: Rows per block: enough to fill whole cache lines while they are in the cache.
ROWS = 64


@intrinsic
def transpose_square(typingctx: Any, flat: Any, source: Any, target: Any, stride: Any) -> Any:
    """Write the transposed square that begins at ``flat[source]`` to ``flat[target]``.

    Three rounds of shuffles swap the off-diagonal parts of all 2 x 2, 4 x 4 and 8 x 8 squares;
    compilers do not generate them from a double loop.
    """
    signature = types.void(flat, types.intp, types.intp, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = signature.args[0].dtype
        vector = ir.VectorType(context.get_value_type(number), SQUARE)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        index = ir.IntType(64)

        def place(start: Any, row: int) -> Any:
            at = builder.add(start, builder.mul(args[3], index(row)))
            return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())

        def shuffle(a: Any, b: Any, lanes: list[int]) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), SQUARE), lanes)
            return builder.shuffle_vector(a, b, mask)

        rows = [builder.load(place(args[1], k), typ=vector) for k in range(SQUARE)]
        for row in rows:
            row.align = number.bitwidth // 8
        for half in (1, 2, 4):
            # Lanes of the second vector are numbered from SQUARE on.
            upper = [j if not j & half else SQUARE + j - half for j in range(SQUARE)]
            lower = [j + half if not j & half else SQUARE + j for j in range(SQUARE)]
            for k in range(SQUARE):
                if not k & half:
                    a, b = rows[k], rows[k + half]
                    rows[k], rows[k + half] = shuffle(a, b, upper), shuffle(a, b, lower)
        for k, row in enumerate(rows):
            builder.store(row, place(args[2], k)).align = number.bitwidth // 8
        return context.get_dummy_value()

    return signature, codegen


def mirror(K: np.ndarray) -> None:
    """Copy the lower triangle to the upper one; K is contiguous."""
    n = len(K)
    if n > SMALL_SAMPLES:
        compiled_mirror(K)
        return
    for top in range(0, n, ROWS):
        stop = min(top + ROWS, n)
        K[top:stop, stop:] = K[stop:, top:stop].T
        corner = K[top:stop, top:stop]
        corner[:] = np.where(_UPPER[: stop - top, : stop - top], corner.T, corner)


_UPPER = np.triu(np.ones((ROWS, ROWS), dtype=np.bool_), 1)


@njit(cache=True, nogil=True)
def compiled_mirror(K: np.ndarray) -> None:
    """`mirror` for large matrices, square by square in vector registers."""
    n = len(K)
    flat = K.reshape(-1)
    whole = n - n % SQUARE
    for top in range(0, whole, ROWS):
        for left in range(0, min(top + ROWS, whole), SQUARE):
            for row in range(max(top, left + SQUARE), min(top + ROWS, whole), SQUARE):
                transpose_square(flat, row * n + left, left * n + row, n)  # type: ignore[call-arg]
    for i in range(n):  # the rest: squares on the diagonal, and the last rows
        for j in range(i // SQUARE * SQUARE if i < whole else 0, i):
            K[j, i] = K[i, j]
