"""The lower triangle becomes the upper one, whatever the size; nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel._mirror import ROWS, SQUARE, compiled_mirror, mirror


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "n", [0, 1, 2, SQUARE - 1, SQUARE, SQUARE + 1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 13]
)
@pytest.mark.parametrize("mirror", [mirror, compiled_mirror])
def test_mirror(rng, n, dtype, mirror):
    # Guards on both sides: squares must not reach beyond the matrix.
    room = rng.normal(size=n * n + 20).astype(dtype)
    before = room.copy()
    K = room[10 : 10 + n * n].reshape(n, n)
    lower = np.tril(K)
    mirror(K)
    np.testing.assert_array_equal(K, lower + np.tril(lower, -1).T)
    np.testing.assert_array_equal(room[:10], before[:10])
    np.testing.assert_array_equal(room[10 + n * n :], before[10 + n * n :])
