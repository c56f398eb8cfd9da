"""Losses with two derivatives, for the primal barrier method.

A piecewise linear loss is a sum of hinges ``C max(0, h)``. Its barrier form,

    min_xi  C xi - mu log xi - mu log(xi - h),      C = mu / xi + mu / (xi - h),

is smooth and tends to it as mu tends to zero. The coefficient ``alpha = mu / (xi - h)``, its
derivative in h, is strictly between 0 and C, so the coefficients of every predictor are feasible
for the dual. The squared and the logistic loss are smooth as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, OneClass, SmoothLoss

#: Limit on steps for an intercept.
MAX_INTERCEPT_STEPS = 200


class SmoothedLoss(Protocol):
    """A loss of decision values Z, shape (n, t), for a barrier parameter mu."""

    @property
    def count(self) -> int:
        """Number of barrier terms."""
        ...

    @property
    def total(self) -> float:
        """Factor of the intercept in the objective: the coefficients of each output sum to it."""
        ...

    def value(self, Z: np.ndarray, mu: float) -> float:
        """The loss, summed over samples and outputs."""
        ...

    def derivatives(self, Z: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients (minus the first derivative) and the second derivative, each (n, t)."""
        ...

    def rounded(self, Z: np.ndarray, mu: float) -> np.ndarray:
        """The coefficients, with those that tend to their bounds moved there."""
        ...

    def is_feasible(self, s: np.ndarray) -> bool:
        """Whether all coefficients are within their bounds."""
        ...


@dataclass(frozen=True)
class Exact:
    """A loss that is smooth without a barrier."""

    loss: SmoothLoss
    Y: np.ndarray
    C: np.ndarray
    count: int = 0
    total: float = 0.0

    def value(self, Z: np.ndarray, mu: float) -> float:
        return float(self.loss.value(Z, self.Y, self.C).sum())

    def derivatives(self, Z: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        s = self.loss.coefficients(Z, self.Y, self.C)
        return s, self.loss.curvatures(Z, self.Y, self.C)

    def rounded(self, Z: np.ndarray, mu: float) -> np.ndarray:
        return self.derivatives(Z, mu)[0]

    def is_feasible(self, s: np.ndarray) -> bool:
        if not isinstance(self.loss, Logistic):
            return True
        return bool(np.all((s * self.Y >= 0) & (s * self.Y <= self.C[:, None])))


@dataclass(frozen=True)
class Hinges:
    """``sum C max(0, offset - sign Z)`` over one or two sides; arrays have shape (sides, n, t)."""

    sign: np.ndarray
    offset: np.ndarray
    C: np.ndarray
    total: float = 0.0

    @property
    def count(self) -> int:
        return 2 * self.offset.size

    def _slack(self, Z: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """``xi`` and ``xi - h``, both without cancellation."""
        C, h = self.C[:, None], self.offset - self.sign * Z
        root = np.sqrt((C * h) ** 2 + 4.0 * mu**2)
        # The smaller of root - |C h| is 4 mu^2 / (root + |C h|).
        large = root + np.abs(C * h)
        small = 4.0 * mu**2 / large
        xi = np.where(h > 0, large, small) + 2.0 * mu
        left = np.where(h > 0, small, large) + 2.0 * mu
        return xi / (2.0 * C), left / (2.0 * C)

    def value(self, Z: np.ndarray, mu: float) -> float:
        xi, left = self._slack(Z, mu)
        return float(np.sum(self.C[:, None] * xi - mu * np.log(xi) - mu * np.log(left)))

    def derivatives(self, Z: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        xi, left = self._slack(Z, mu)
        s = (self.sign * mu / left).sum(axis=0)
        return s, (mu / (xi**2 + left**2)).sum(axis=0)

    def rounded(self, Z: np.ndarray, mu: float) -> np.ndarray:
        # alpha (xi - h) = mu and (C - alpha) xi = mu: of each pair one factor tends to zero.
        xi, left = self._slack(Z, mu)
        C = self.C[:, None]
        alpha, margin = mu / left, np.sqrt(mu * C)
        alpha = np.where(alpha < margin, 0.0, np.where(mu / xi < margin, C, alpha))
        return np.asarray((self.sign * alpha).sum(axis=0))

    def is_feasible(self, s: np.ndarray) -> bool:
        signed = s * self.sign[0]
        low = -self.C[:, None] if len(self.sign) == 2 else 0.0
        return bool(np.all((signed >= low) & (signed <= self.C[:, None])))


def smoothed(loss: Loss, Y: np.ndarray, C: np.ndarray) -> SmoothedLoss | None:
    """The loss with two derivatives; None if it has no such form here."""
    if isinstance(loss, SmoothLoss):
        return Exact(loss, Y, C)
    if isinstance(loss, Hinge):
        return Hinges(Y[None], np.ones((1, *Y.shape)), C)
    if isinstance(loss, EpsilonInsensitive):
        sign = np.stack([np.ones_like(Y), -np.ones_like(Y)])
        return Hinges(sign, sign * Y - loss.epsilon, C)
    if isinstance(loss, OneClass):
        return Hinges(np.ones((1, *Y.shape)), np.zeros((1, *Y.shape)), C, total=1.0)
    return None


def best_intercept(loss: SmoothedLoss, F: np.ndarray, b: np.ndarray, mu: float) -> np.ndarray:
    """The intercepts at which the coefficients of each output sum to ``loss.total``.

    The search starts at b. The sum falls with the intercept: steeply where decision values meet a
    kink, and hardly elsewhere. Newton steps are therefore kept inside a bracket, and every third
    step bisects it.
    """
    low, high = np.full_like(b, -np.inf), np.full_like(b, np.inf)
    reach = 1.0 + np.abs(b)
    for k in range(MAX_INTERCEPT_STEPS):
        s, d = loss.derivatives(F + b, mu)
        error = s.sum(axis=0) - loss.total
        low, high = np.where(error >= 0, b, low), np.where(error <= 0, b, high)
        step = np.clip(error / np.maximum(d.sum(axis=0), 1e-300), -reach, reach)
        between = np.isfinite(high - low)
        new, reach = b + step, np.where(between, reach, 2.0 * reach)
        halved = between & ((k % 3 == 2) | (new < low) | (new > high))
        new = np.where(halved, 0.5 * (low + high), new)
        if np.all(np.abs(new - b) <= 1e-15 * (1.0 + np.abs(b))):
            break
        b = new
    return b
