"""Projections on polyhedra and on balls of the q-norm, for steps of the cutting planes."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ...problem.regularisers import norm

#: Weights below this fraction of the largest are rounding errors of zeros.
ZERO_WEIGHT_RATIO = 1e-13


def nearest(
    centre: np.ndarray, G: np.ndarray, h: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """``argmin ||x - centre||^2 / 2`` over ``G x >= h, x >= 0``, and the multipliers of G.

    Constraints ``x_i >= 0`` are added only where they are violated, usually a few.
    """
    p = len(centre)
    signs = np.zeros(p, dtype=bool)
    while True:
        rows = np.vstack([np.eye(p)[signs], G])
        m = len(rows) - len(G)
        found = least_distance(centre, rows, np.append(np.zeros(m), h), reach)
        if found is None:
            return None
        x, multipliers = found
        x[signs] = np.where(multipliers[:m] > 0, 0.0, np.maximum(x[signs], 0.0))
        wrong = x < 0
        if not np.any(wrong):
            return x, multipliers[m:]
        signs |= wrong


def least_distance(
    centre: np.ndarray, G: np.ndarray, h: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """``argmin ||x - centre||^2 / 2`` over ``G x >= h``, and the multipliers.

    Least distance programming (Lawson and Hanson 1974, chapter 23): the residual of the
    non-negative least squares problem ``[G'; h'] u = (0, 1)`` gives x and the multipliers. Since
    this is an active-set method, the active constraints are known exactly. ``reach``, an estimate
    of the distance of x from the centre, is the unit of length: the residual is accurate only if
    the distance is of order one. The result is None if the constraints are infeasible or
    feasible only up to rounding errors.
    """
    m, p = G.shape
    size = np.linalg.norm(G, axis=1)
    rows = size > 0
    G, h, size = G[rows], h[rows], size[rows]
    if not len(h):
        return centre, np.zeros(m)  # scipy's nnls crashes without rows
    unit = reach if reach > 0 else 1.0
    system = np.vstack([(G / size[:, None]).T, (h - G @ centre) / (size * unit)])
    wanted = np.append(np.zeros(p), 1.0)
    try:
        u, _ = nnls(system, wanted, maxiter=30 * system.shape[1])
    except RuntimeError:
        return None
    residual = system @ u - wanted
    if not residual[-1] < -1e-12:
        return None
    multipliers = np.zeros(m)
    multipliers[rows] = -unit * u / residual[-1] / size
    return centre - unit * residual[:-1] / residual[-1], multipliers


def onto_sphere(theta: np.ndarray, q: float) -> np.ndarray:
    """``theta / ||theta||_q``; entries that are rounding errors of zeros become zero.

    Algorithm D.1 of the thesis has ``theta / ||theta||_q^q``, which is on the sphere only if q = 1.
    """
    top = np.max(theta)
    if not top > 0:
        theta, top = np.ones(len(theta)), 1.0  # no positive entry is left after rounding
    theta = np.where(theta > ZERO_WEIGHT_RATIO * top, theta, 0.0)
    return np.minimum(theta / norm(theta, q), 1.0)


def tangent(theta: np.ndarray, q: float) -> np.ndarray:
    """The normal v of the tangent plane at theta: ``v'x <= 1`` on the ball, ``v'theta = 1``."""
    return np.ones_like(theta) if q == 1 else theta ** (q - 1.0)


def pull_in(outside: np.ndarray, inside: np.ndarray, q: float) -> np.ndarray:
    """The first point of the ball on the segment from ``outside`` to ``inside``, by bisection."""
    if norm(outside, q) <= 1.0:
        return outside
    near, far = 1.0, 0.0
    for _ in range(60):
        middle = 0.5 * (near + far)
        if norm(outside + middle * (inside - outside), q) <= 1.0:
            near = middle
        else:
            far = middle
    return outside + near * (inside - outside)
