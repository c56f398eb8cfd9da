"""Losses with their conjugates, from which primal value, dual value and gap are computed.

A problem is ``min Omega(w) + sum_i C_i l(f(x_i) + b, y_i)`` (Kloft 2011, chapter 2), its dual

    max  - sum_i C_i l*(-s_i / C_i, y_i) - Omega*(sum_i s_i phi(x_i)),    1's = 0

with signed coefficients s: ``f = sum_i s_i K(x_i, .)``. Arrays have one column per output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import entr, expit


class Loss(Protocol):
    """A convex loss and its conjugate."""

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """``sum_i C_i l(F_i + b, Y_i)`` of each column, shape (t,)."""
        ...

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """``- sum_i C_i l*(-S_i / C_i, Y_i)`` of each column, shape (t,)."""
        ...

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        """The b that minimises ``value(F, Y, C, b)``, shape (t,)."""
        ...


@runtime_checkable
class SmoothLoss(Loss, Protocol):
    """A loss with two derivatives, so that decision values determine the coefficients."""

    def coefficients(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """``-C_i l'(F_i + b, Y_i)``, shape (n, t): feasible for the dual if b is the best one."""
        ...

    def curvatures(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """``C_i l''(F_i + b, Y_i)``, shape (n, t)."""
        ...


@dataclass(frozen=True)
class Hinge:
    """``l(t, y) = max(0, 1 - t y)`` for labels -1 and +1."""

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return C @ np.maximum(0.0, 1.0 - Y * (F + b))

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.einsum("nt,nt->t", S, Y)

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        # The slope in b grows by C_i at b = y_i - f_i.
        return np.array(
            [kink(Y[:, j] - F[:, j], C, float(C[Y[:, j] > 0].sum())) for j in range(Y.shape[1])]
        )


@dataclass(frozen=True)
class Squared:
    """``l(t, y) = (y - t)^2 / 2``."""

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return 0.5 * C @ (Y - F - b) ** 2

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.einsum("nt,nt->t", S, Y) - 0.5 * (1.0 / C) @ S**2

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.average(Y - F, axis=0, weights=C)

    def coefficients(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return C[:, None] * (Y - F - b)

    def curvatures(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return np.broadcast_to(C[:, None], Y.shape)


@dataclass(frozen=True)
class EpsilonInsensitive:
    """``l(t, y) = max(0, |y - t| - epsilon)``."""

    epsilon: float = 0.1

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return C @ np.maximum(0.0, np.abs(Y - F - b) - self.epsilon)

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.einsum("nt,nt->t", S, Y) - self.epsilon * np.abs(S).sum(axis=0)

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        R = Y - F
        both = np.concatenate([C, C])
        return np.array(
            [
                kink(np.concatenate([r - self.epsilon, r + self.epsilon]), both, float(C.sum()))
                for r in R.T
            ]
        )


@dataclass(frozen=True)
class Logistic:
    """``l(t, y) = log(1 + exp(-t y))`` for labels -1 and +1."""

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return C @ np.logaddexp(0.0, -Y * (F + b))

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        # -C (r log r + (1 - r) log(1 - r)) for r = alpha / C in [0, 1]
        r = np.clip(S * Y / C[:, None], 0.0, 1.0)
        return C @ (entr(r) + entr(1.0 - r))

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        b = np.zeros(Y.shape[1])
        for _ in range(100):
            r = expit(-Y * (F + b))
            slope = -C @ (Y * r)
            step = slope / np.maximum(C @ (r * (1.0 - r)), 1e-300)
            b = b - np.clip(step, -1.0, 1.0)  # the curvature vanishes far from the minimum
            if np.all(np.abs(step) <= 1e-14 * (1.0 + np.abs(b))):
                break
        return b

    def coefficients(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return C[:, None] * Y * expit(-Y * (F + b))

    def curvatures(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        r = expit(-Y * (F + b))
        return C[:, None] * r * (1.0 - r)


@dataclass(frozen=True)
class OneClass:
    """The nu-form of density level sets: ``-rho + sum_i C_i max(0, rho - f(x_i))``, b = -rho.

    With ``C_i = 1 / (nu n)`` the dual variables sum to one. The form with a cost C is the hinge
    loss of labels +1 without an intercept; with a free intercept its optimum would be w = 0.
    """

    def value(
        self, F: np.ndarray, Y: np.ndarray, C: np.ndarray, b: np.ndarray | float = 0.0
    ) -> np.ndarray:
        return b + C @ np.maximum(0.0, -(F + b))

    def dual(self, S: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        return np.zeros(S.shape[1])

    def intercept(self, F: np.ndarray, Y: np.ndarray, C: np.ndarray) -> np.ndarray:
        # The slope in b is 1 - sum of C_i over f_i < -b: it grows by C_i at b = -f_i.
        return np.array([kink(-f, C, float(C.sum()) - 1.0) for f in F.T])


def kink(positions: np.ndarray, slopes: np.ndarray, start: float) -> float:
    """The minimiser of a convex piecewise linear function whose first slope is ``-start``.

    The slope grows by ``slopes[i]`` at ``positions[i]``. If the minimum is attained on an interval,
    its middle is returned.
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
