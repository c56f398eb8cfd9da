"""Losses with piecewise second derivatives, for Newton steps in passes over rows.

Kinks of the hinge and the epsilon-insensitive loss are smoothed over a width h: ``max(0, x)``
becomes ``(x + sqrt(x^2 + h^2)) / 2``, whose derivative rises from 0 to 1. So the coefficients
``s = -C l'`` are always within the bounds of the dual problem of the loss itself, and every iterate
gives a dual value. Curvature fades out slowly on both sides of a kink: samples that a step moves
into its neighbourhood are in the model of the step already.
"""

from __future__ import annotations

import numpy as np

from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss

#: Second derivatives below this, in units of one over the width, count as zero, so that only
#: samples near a kink enter the products of a pass. The largest is a half.
MIN_BEND = 0.001


def has_smooth_form(loss: Loss) -> bool:
    """Whether `smooth` supports the loss."""
    return isinstance(loss, Hinge | EpsilonInsensitive | Logistic)


def smooth(
    loss: Loss, F: np.ndarray, Y: np.ndarray, C: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, coefficients and curvatures of the smoothed loss, each of shape (n, t).

    Parameters
    ----------
    F : array of shape (n, t)
        Decision values, intercept included.
    Y : array of shape (n, t)
    C : array of shape (n,)
    h : float
        Width over which kinks are smoothed.
    """
    cost = C[:, None]
    if isinstance(loss, Logistic):
        values = cost * np.logaddexp(0.0, -Y * F)
        return values, loss.coefficients(F, Y, C), loss.curvatures(F, Y, C)
    if isinstance(loss, Hinge):
        value, slope, bend = _smooth_positive_part(1.0 - Y * F, h)
        return cost * value, cost * Y * slope, cost * bend
    assert isinstance(loss, EpsilonInsensitive)
    up, up_slope, up_bend = _smooth_positive_part(Y - F - loss.epsilon, h)
    down, down_slope, down_bend = _smooth_positive_part(F - Y - loss.epsilon, h)
    return cost * (up + down), cost * (up_slope - down_slope), cost * (up_bend + down_bend)


def _smooth_positive_part(x: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(x + sqrt(x^2 + h^2)) / 2``, its derivative, and its second derivative near the kink."""
    root = np.hypot(x, h)
    bend = 0.5 * (h / root) ** 2 / root
    return 0.5 * (x + root), 0.5 * (1.0 + x / root), np.where(bend * h > MIN_BEND, bend, 0.0)
