"""Losses with piecewise second derivatives, for Newton steps in passes over rows.

Kinks of the hinge and the epsilon-insensitive loss are smoothed over a width h: ``max(0, x)``
becomes nearly ``(x + sqrt(x^2 + h^2)) / 2``, whose derivative rises from 0 to 1. So the
coefficients ``s = -C l'`` are always within the bounds of the dual problem of the loss itself, and
every iterate gives a dual value. Curvature fades out slowly on both sides of a kink: samples that a
step moves into its neighbourhood are in the model of the step already. It ends at REACH h, and the
slope is 0 or 1 from there on: with a slope but no curvature, steps would have no limit.
"""

from __future__ import annotations

import numpy as np

from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss

#: Distance from a kink beyond which the loss is not smoothed, in units of the width. Samples beyond
#: it are in no product of a pass.
REACH = 200.0
#: The slope of ``(x + sqrt(x^2 + 1)) / 2`` at -REACH, and its rise from there to REACH.
FIRST_SLOPE = 0.5 - 0.5 * REACH / float(np.hypot(REACH, 1.0))
RISE = 1.0 - 2.0 * FIRST_SLOPE


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
    """``max(0, x)``, smoothed for ``|x| < REACH h``, with its first and second derivative.

    The slope is that of ``(x + sqrt(x^2 + h^2)) / 2``, stretched from its values at both ends of
    the interval to 0 and 1.
    """
    root, reach = np.hypot(x, h), REACH * h
    inside = np.abs(x) < reach
    value = 0.5 * (x + root) - 0.5 * (np.hypot(reach, h) - reach) - FIRST_SLOPE * (x + reach)
    slope, bend = 0.5 * (1.0 + x / root) - FIRST_SLOPE, 0.5 * (h / root) ** 2 / root
    return (
        np.where(inside, value / RISE, np.maximum(x, 0.0)),
        np.where(inside, np.clip(slope / RISE, 0.0, 1.0), x > 0),
        np.where(inside, bend / RISE, 0.0),
    )
