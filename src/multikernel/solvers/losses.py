"""Losses with their conjugates: what primal, dual and gap of every joint problem are made of.

A problem is ``min Omega(w) + sum_i C_i l(f(x_i) + b, y_i)`` (Kloft 2011, chapter 2), its dual

    max  - sum_i C_i l*(-s_i / C_i, y_i) - Omega*(sum_i s_i phi(x_i)),    1's = 0

with signed coefficients s: ``f = sum_i s_i K(x_i, .)``. Arrays have one column per machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Loss(Protocol):
    """A convex loss and its conjugate."""

    def value(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """``sum_i C_i l(F_i, Y_i)`` of each column, shape (t,)."""
        ...

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """``- sum_i C_i l*(-S_i / C_i, Y_i)`` of each column, shape (t,)."""
        ...

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """The b that minimises ``value(F + b, Y, C)``, shape (t,)."""
        ...


@dataclass(frozen=True)
class Hinge:
    """``l(t, y) = max(0, 1 - t y)`` for labels -1 and +1."""

    def value(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return C @ np.maximum(0.0, 1.0 - Y * F)

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.einsum("nt,nt->t", S, Y)

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        # Every point adds C_i to the slope in b where b passes y_i - f_i.
        return np.array(
            [kink(Y[:, j] - F[:, j], C, float(C[Y[:, j] > 0].sum())) for j in range(Y.shape[1])]
        )


@dataclass(frozen=True)
class Squared:
    """``l(t, y) = (y - t)^2 / 2``."""

    def value(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return 0.5 * C @ (Y - F) ** 2

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.einsum("nt,nt->t", S, Y) - 0.5 * (1.0 / C) @ S**2

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.average(Y - F, axis=0, weights=C)


def kink(positions: np.ndarray, slopes: np.ndarray, start: float) -> float:
    """Where a convex piecewise linear function with first slope ``-start`` has its minimum.

    The slope grows by ``slopes[i]`` at ``positions[i]``. A flat bottom gives its middle.
    """
    order = np.argsort(positions, kind="stable")
    slope = np.cumsum(slopes[order]) - start
    flat = 1e-12 * max(start, float(slopes.sum()))
    i = int(np.searchsorted(slope, -flat))
    if i >= len(order):
        return float(positions[order[-1]])
    left = positions[order[i]]
    if slope[i] <= flat and i + 1 < len(order):
        return float(0.5 * (left + positions[order[i + 1]]))
    return float(left)
