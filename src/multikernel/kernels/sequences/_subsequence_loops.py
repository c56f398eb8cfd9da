"""Compiled loops of the subsequence kernel.

Let ``S_l[i, j]`` be the sum over pairs of equal subsequences of length l that end at i and j,
discounted by their spans. Then ``S_1[i, j] = decay^2 [x_i = z_j]``,

    S_l[i, j] = decay^2 [x_i = z_j] * D_{l-1}[i - 1, j - 1],
    D_l[i, j] = S_l[i, j] + decay D_l[i - 1, j] + decay D_l[i, j - 1] - decay^2 D_l[i - 1, j - 1]

where D_l also discounts by the distance from the ends to (i, j), and ``K = sum_ij S_length[i, j]``.
"""

from __future__ import annotations

import numpy as np

from ..._compiling import njit


@njit(cache=True, nogil=True)
def _one(x: np.ndarray, z: np.ndarray, length: int, decay: float, S: np.ndarray) -> float:
    """The kernel of one pair; S is a workspace of at least (|x|, |z|)."""
    n, m = len(x), len(z)
    if n < length or m < length:
        return 0.0
    square = decay * decay
    total = 0.0
    for i in range(n):
        for j in range(m):
            S[i, j] = square if x[i] == z[j] and x[i] >= 0 else 0.0
    above = np.empty(m + 1)
    for _ in range(1, length):
        above[:] = 0.0  # D[i - 1, :], shifted by one
        for i in range(n):
            left = 0.0  # D[i, j - 1]
            corner = 0.0  # D[i - 1, j - 1]
            for j in range(m):
                up = above[j + 1]
                here = S[i, j] + decay * up + decay * left - square * corner
                S[i, j] = square * corner if x[i] == z[j] and x[i] >= 0 else 0.0
                above[j + 1] = here
                corner = up
                left = here
    for i in range(n):
        for j in range(m):
            total += S[i, j]
    return total


@njit(cache=True, nogil=True)
def pairs(
    x: np.ndarray,
    x_offsets: np.ndarray,
    z: np.ndarray,
    z_offsets: np.ndarray,
    length: int,
    decay: float,
    same: bool,
    out: np.ndarray,
) -> None:
    """All pairs; the lower triangle and its mirror image if both samples are the same."""
    longest_x = longest_z = 0
    for i in range(len(x_offsets) - 1):
        longest_x = max(longest_x, x_offsets[i + 1] - x_offsets[i])
    for j in range(len(z_offsets) - 1):
        longest_z = max(longest_z, z_offsets[j + 1] - z_offsets[j])
    S = np.empty((longest_x, longest_z))
    for i in range(len(x_offsets) - 1):
        one = x[x_offsets[i] : x_offsets[i + 1]]
        for j in range(i + 1 if same else len(z_offsets) - 1):
            value = _one(one, z[z_offsets[j] : z_offsets[j + 1]], length, decay, S)
            out[i, j] = value
            if same:
                out[j, i] = value


@njit(cache=True, nogil=True)
def diagonal(
    x: np.ndarray, offsets: np.ndarray, length: int, decay: float, out: np.ndarray
) -> None:
    """``K(x, x)`` of every sequence."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    S = np.empty((longest, longest))
    for i in range(len(offsets) - 1):
        one = x[offsets[i] : offsets[i + 1]]
        out[i] = _one(one, one, length, decay, S)
