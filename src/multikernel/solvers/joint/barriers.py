"""Barriers of the dual losses: signed coefficients strictly inside their bounds.

With a dual loss L (:mod:`multikernel.problem.losses`) the barrier problem of the interior-point
method contains ``phi(s) = -L(s) - mu * (sum of the logarithms of distances to bounds)``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import entr, logit

from ...learners.polish import polish
from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, OneClass, Squared

#: Largest fraction of the distance to the nearest bound that a step may cover.
MAX_STEP_TO_BOUND = 0.8


class NoInnerPoint(ValueError):
    """There are no coefficients strictly inside their bounds."""


class Barrier(Protocol):
    """Coefficients with their phi; arrays have one column per output."""

    #: Number of bounds.
    count: int
    #: Sum of the coefficients, if there is an intercept.
    total: float
    #: The variables that steps change.
    point: np.ndarray

    @property
    def s(self) -> np.ndarray:
        """The coefficients, shape (n, t)."""
        ...

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of phi, each of shape (n, t)."""
        ...

    def aim(self, ds: np.ndarray, mu: float) -> float:
        """Store a step in s; return the fraction of it, at most one, that stays in the bounds."""
        ...

    def rise(self, length: float, mu: float) -> float:
        """The change of phi after this fraction of the stored step."""
        ...

    def move(self, length: float) -> None:
        """Take this fraction of the stored step."""
        ...

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        """Coefficients near the optimum for the kernel matrix K; b are the intercepts."""
        ...


class Boxed:
    """``s = sum of sign * alpha``, ``0 <= alpha <= C``, ``-L = linear'alpha``; one or two sides.

    All piecewise linear losses have this form, see :mod:`multikernel.learners.smo`. Arrays have
    the shape (sides, n, t). With two sides, phi(s) is the minimum over all alpha that give s.
    """

    def __init__(
        self,
        sign: np.ndarray,
        linear: np.ndarray,
        C: np.ndarray,
        alpha: np.ndarray,
        total: float = 0.0,
    ) -> None:
        self.sign, self.linear, self.C, self.point = sign, linear, C[:, None], alpha
        self.total = total
        self.count = 2 * alpha.size

    @property
    def alpha(self) -> np.ndarray:
        return self.point

    @property
    def s(self) -> np.ndarray:
        return np.asarray((self.sign * self.alpha).sum(axis=0))

    def _sides(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of phi in alpha."""
        left = self.C - self.alpha
        return self.linear - mu / self.alpha + mu / left, mu / self.alpha**2 + mu / left**2

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        slope, bend = self._sides(mu)
        together = 1.0 / (1.0 / bend).sum(axis=0)
        return together * (self.sign * slope / bend).sum(axis=0), together

    def aim(self, ds: np.ndarray, mu: float) -> float:
        # Both sides must add up to exactly ds: rounding errors of the slopes, divided by a small
        # curvature, would change the sum of the coefficients.
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
        self.point = self.point + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        # Near the optimum either alpha or its multiplier mu / alpha is small; small alphas belong
        # on their bounds. The active-set method then needs a few linear systems. With kernel
        # weights that differ by orders of magnitude it is much more accurate than SMO.
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
    """``-L = s^2 / (2 C) - s y`` of the squared loss, without bounds."""

    count = 0
    total = 0.0

    def __init__(self, s: np.ndarray, Y: np.ndarray, C: np.ndarray) -> None:
        self.point, self.Y, self.C = s, Y, C[:, None]

    @property
    def s(self) -> np.ndarray:
        return self.point

    def derivatives(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        return self.s / self.C - self.Y, np.broadcast_to(1.0 / self.C, self.s.shape)

    def aim(self, ds: np.ndarray, mu: float) -> float:
        self.step = ds
        return 1.0

    def rise(self, length: float, mu: float) -> float:
        step = length * self.step
        return float(np.sum(step * ((self.s + 0.5 * step) / self.C - self.Y)))

    def move(self, length: float) -> None:
        self.point = self.point + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        return self.s


class Entropic:
    """``-L = C (r log r + (1 - r) log(1 - r))``, ``r = s y / C``, of the logistic loss.

    Its slope is infinite at the bounds, so no further barrier is needed.
    """

    count = 0
    total = 0.0

    def __init__(self, s: np.ndarray, Y: np.ndarray, C: np.ndarray) -> None:
        self.point, self.Y, self.C = s, Y, C[:, None]

    @property
    def s(self) -> np.ndarray:
        return self.point

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
        self.point = self.point + length * self.step

    def settled(self, K: np.ndarray, b: np.ndarray, mu: float, *, intercept: bool) -> np.ndarray:
        return self.s


def room(distance: np.ndarray, step: np.ndarray) -> float:
    """The largest fraction of the step, at most one, that keeps all distances positive."""
    worst = float(np.max(-step / distance, initial=0.0))
    return min(1.0, MAX_STEP_TO_BOUND / worst) if worst > 0 else 1.0


def inner_point(
    loss: Loss, coef: np.ndarray, Y: np.ndarray, C: np.ndarray, *, balanced: bool
) -> Barrier:
    """A barrier with coefficients strictly inside the bounds, of about the size of ``coef``.

    Parameters
    ----------
    loss : Loss
    coef : array of shape (n, t)
        Coefficients of a trained predictor: feasible, perhaps at bounds.
    Y, C : arrays of shape (n, t) and (n,)
    balanced : bool
        Whether there is an intercept, so that the sum of the coefficients is given.

    Raises
    ------
    NoInnerPoint
        If ``nu = 1``, a class is missing, all coefficients are zero, or the loss has no barrier
        here.
    """
    if isinstance(loss, Squared):
        return Quadratic(coef, Y, C)
    ones = np.ones_like(Y)
    # The sum of absolute coefficients, spread over all samples in proportion to their costs.
    size = np.abs(coef).sum(axis=0)
    if np.any(size == 0):
        raise NoInnerPoint("All coefficients are zero.")
    even = C[:, None] * size / C.sum()
    if isinstance(loss, EpsilonInsensitive):
        sides = np.stack([np.maximum(coef, 0.0), np.maximum(-coef, 0.0)])
        sign = np.stack([ones, -ones])
        return Boxed(sign, loss.epsilon - sign * Y, C, 0.25 * (sides + even))
    if isinstance(loss, OneClass):
        # The sum is fixed, so coefficients cannot be scaled; with nu = 1 all are at their bounds.
        if C.sum() < 1.0 + 1e-9:
            raise NoInnerPoint("With nu = 1 all coefficients are at their bounds.")
        alpha = 0.5 * (coef + even)[None]
        return Boxed(ones[None], 0.0 * ones[None], C, alpha, total=1.0)
    if not isinstance(loss, Hinge | Logistic):
        raise NoInnerPoint(f"There is no barrier for the dual of {loss!r}.")
    if balanced:
        cost = np.array([C @ (Y > 0), C @ (Y < 0)])
        if np.any(cost == 0):
            raise NoInnerPoint("A class is missing.")
        even = 0.5 * C[:, None] * size / np.where(Y > 0, cost[0], cost[1])
    alpha = 0.25 * (coef * Y + even)
    if isinstance(loss, Logistic):
        return Entropic(alpha * Y, Y, C)
    return Boxed(Y[None], -ones[None], C, alpha[None])
