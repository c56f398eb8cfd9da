"""Losses with piecewise second derivatives, for Newton steps in passes over rows.

Kinks of the hinge and the epsilon-insensitive loss are smoothed over an interval of width h: the
coefficients ``s = -C l'`` rise linearly from one bound to the other. They are always within the
bounds of the dual problem of the loss itself, so every iterate gives a dual value.
"""

from __future__ import annotations

import numpy as np

from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss


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
        Width of the interval over which kinks are smoothed.
    """
    cost = C[:, None]
    if isinstance(loss, Logistic):
        values = cost * np.logaddexp(0.0, -Y * F)
        return values, loss.coefficients(F, Y, C), loss.curvatures(F, Y, C)
    if isinstance(loss, Hinge):
        value, slope, bend = _rounded(1.0 - Y * F, h)
        return cost * value, cost * Y * slope, cost * bend
    assert isinstance(loss, EpsilonInsensitive)
    up, up_slope, up_bend = _rounded(Y - F - loss.epsilon, h)
    down, down_slope, down_bend = _rounded(F - Y - loss.epsilon, h)
    return cost * (up + down), cost * (up_slope - down_slope), cost * (up_bend + down_bend)


def _rounded(x: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``max(0, x)``, smoothed over ``|x| < h / 2``, with its first and second derivative."""
    slope = np.clip(x / h + 0.5, 0.0, 1.0)
    inside = (slope > 0) & (slope < 1)
    return np.where(inside, 0.5 * h * slope**2, np.maximum(x, 0.0)), slope, inside / h
