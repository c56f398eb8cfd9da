"""Signed coefficients strictly inside the domain of a dual loss, for interior-point methods.

With a dual loss L (:mod:`multikernel.problem.losses`) the part of a soft problem that belongs to
the coefficients is ``phi(s) = -L(s) - mu * (sum of the logarithms of distances to bounds)``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import entr, logit

from ...learners.polish import polish
from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, OneClass, Squared

#: How much of the way to the nearest bound a step may go.
NEARLY = 0.8


class NoInnerPoint(ValueError):
    """The bounds of a problem leave nothing between them."""


class Barrier(Protocol):
    """Coefficients with their phi; arrays have one column per machine."""

    #: number of bounds
    count: int
    #: what coefficients must sum to, where an intercept is free
    total: float

    @property
    def s(self) -> np.ndarray:
        """The coefficients, shape (n, t)."""
        ...

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of phi, each of shape (n, t)."""
        ...

    def aim(self, ds: np.ndarray, mu: float) -> float:
        """Take note of a step in s; how much of it keeps away from the bounds, at most one."""
        ...

    def rise(self, length: float, mu: float) -> float:
        """What that part of the step adds to phi."""
        ...

    def move(self, length: float) -> None:
        """Go that part of the step."""
        ...

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        """The coefficients that are best for the kernel matrix K, from here; b are intercepts."""
        ...


class Boxed:
    """``s = sum of sign * alpha``, ``0 <= alpha <= C``, ``-L = linear'alpha``; one or two sides.

    The form of all machines with a piecewise linear loss, see :mod:`multikernel.learners.smo`.
    Arrays have the shape (sides, n, t). Of two sides, phi is the least that makes up s.
    """

    def __init__(
        self,
        sign: np.ndarray,
        linear: np.ndarray,
        C: np.ndarray,
        alpha: np.ndarray,
        total: float = 0.0,
    ) -> None:
        self.sign, self.linear, self.C, self.alpha = sign, linear, C[:, None], alpha
        self.total = total
        self.count = 2 * alpha.size

    @property
    def s(self) -> np.ndarray:
        return np.asarray((self.sign * self.alpha).sum(axis=0))

    def _sides(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        left = self.C - self.alpha
        return self.linear - mu / self.alpha + mu / left, mu / self.alpha**2 + mu / left**2

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        slope, bend = self._sides(mu)
        together = 1.0 / (1.0 / bend).sum(axis=0)
        return together * (self.sign * slope / bend).sum(axis=0), together

    def aim(self, ds: np.ndarray, mu: float) -> float:
        # Exactly ds in all: a rounding error of the slopes, divided by a small curvature, would
        # spoil the sum of the coefficients.
        if len(self.sign) == 1:
            self.step = self.sign * ds
        else:
            slope, bend = self._sides(mu)
            share = bend[::-1] / bend.sum(axis=0)
            self.step = self.sign * share * ds - slope.sum(axis=0) / bend.sum(axis=0)
        return min(room(self.alpha, self.step), room(self.C - self.alpha, -self.step))

    def rise(self, length: float, mu: float) -> float:
        step = length * self.step
        logs = np.log1p(step / self.alpha) + np.log1p(-step / (self.C - self.alpha))
        return float(np.vdot(self.linear, step)) - mu * float(logs.sum())

    def move(self, length: float) -> None:
        self.alpha = self.alpha + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        # Near the optimum a variable is small, or its slope mu / alpha is: the former are at
        # their bounds. From there the exact optimum is a few linear systems away, which weights
        # far apart trouble much less than they trouble steps in single variables.
        margin = np.sqrt(mu * self.C)
        low, high = self.alpha < margin, self.C - self.alpha < margin
        start = np.where(low, 0.0, np.where(high, self.C, self.alpha))
        C = np.tile(self.C[:, 0], len(start))
        s = self.s
        for j in range(s.shape[1]):
            sign, linear = self.sign[..., j].ravel(), self.linear[..., j].ravel()
            found = polish(
                K, start[..., j].ravel(), b[j], sign, linear, C, self.total, intercept=intercept
            )
            s[:, j] = (sign * found.alpha).reshape(len(start), -1).sum(axis=0)
        return s


class Quadratic:
    """``-L = s^2 / (2 C) - s y``, of the squared loss: no bounds."""

    count = 0
    total = 0.0

    def __init__(self, s: np.ndarray, Y: np.ndarray, C: np.ndarray) -> None:
        self.s, self.Y, self.C = s, Y, C[:, None]

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        return self.s / self.C - self.Y, np.broadcast_to(1.0 / self.C, self.s.shape)

    def aim(self, ds: np.ndarray, mu: float) -> float:
        self.step = ds
        return 1.0

    def rise(self, length: float, mu: float) -> float:
        step = length * self.step
        return float(np.sum(step * ((self.s + 0.5 * step) / self.C - self.Y)))

    def move(self, length: float) -> None:
        self.s = self.s + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        return self.s


class Entropic:
    """``-L = C (r log r + (1 - r) log(1 - r))``, ``r = s y / C``, of the logistic loss.

    Its slope is infinite at the bounds: it is a barrier itself.
    """

    count = 0
    total = 0.0

    def __init__(self, s: np.ndarray, Y: np.ndarray, C: np.ndarray) -> None:
        self.s, self.Y, self.C = s, Y, C[:, None]

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        r = self.s * self.Y / self.C
        return self.Y * logit(r), 1.0 / (self.C * r * (1.0 - r))

    def aim(self, ds: np.ndarray, mu: float) -> float:
        self.step = ds
        alpha, step = self.s * self.Y, ds * self.Y
        return min(room(alpha, step), room(self.C - alpha, -step))

    def rise(self, length: float, mu: float) -> float:
        old = self.s * self.Y / self.C
        new = old + length * self.step * self.Y / self.C
        return float(np.sum(self.C * (entr(old) + entr(1 - old) - entr(new) - entr(1 - new))))

    def move(self, length: float) -> None:
        self.s = self.s + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        return self.s


def room(distance: np.ndarray, step: np.ndarray) -> float:
    """The largest part of the step, at most one, that leaves something of every distance."""
    worst = float(np.max(-step / distance, initial=0.0))
    return min(1.0, NEARLY / worst) if worst > 0 else 1.0


def inner_point(
    loss: Loss, coef: np.ndarray, Y: np.ndarray, C: np.ndarray, *, balanced: bool
) -> Barrier:
    """Coefficients away from all bounds but of the size of a machine's.

    Parameters
    ----------
    loss : Loss
    coef : array of shape (n, t)
        Coefficients of a machine, feasible and perhaps at bounds.
    Y, C : arrays of shape (n, t) and (n,)
    balanced : bool
        Whether there is an intercept, so that the sum of the coefficients is given.

    Raises
    ------
    NoInnerPoint
        If ``nu = 1``, a class is missing, the machine is zero, or the loss is not known here.
    """
    if isinstance(loss, Squared):
        return Quadratic(coef, Y, C)
    ones = np.ones_like(Y)
    # The machine's total, spread over all points in proportion to their costs
    size = np.abs(coef).sum(axis=0)
    if np.any(size == 0):
        raise NoInnerPoint("The machine is zero.")
    even = C[:, None] * size / C.sum()
    if isinstance(loss, EpsilonInsensitive):
        sides = np.stack([np.maximum(coef, 0.0), np.maximum(-coef, 0.0)])
        sign = np.stack([ones, -ones])
        return Boxed(sign, loss.epsilon - sign * Y, C, 0.25 * (sides + even))
    if isinstance(loss, OneClass):
        # With a given sum nothing can be made smaller, and nu = 1 leaves no choice at all.
        if C.sum() < 1.0 + 1e-9:
            raise NoInnerPoint("With nu = 1 all coefficients are at their bounds.")
        alpha = 0.5 * (coef + even)[None]
        return Boxed(ones[None], 0.0 * ones[None], C, alpha, total=1.0)
    if not isinstance(loss, Hinge | Logistic):
        raise NoInnerPoint(f"The domain of the dual of {loss!r} is not known.")
    if balanced:
        cost = np.array([C @ (Y > 0), C @ (Y < 0)])
        if np.any(cost == 0):
            raise NoInnerPoint("A class is missing.")
        even = 0.5 * C[:, None] * size / np.where(Y > 0, cost[0], cost[1])
    alpha = 0.25 * (coef * Y + even)
    if isinstance(loss, Logistic):
        return Entropic(alpha * Y, Y, C)
    return Boxed(Y[None], -ones[None], C, alpha[None])
