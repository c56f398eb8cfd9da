"""The cutting-plane model: the maximum of all cuts, its minimum, and steps towards it.

A cut ``L - theta'a / 2`` lies below the objective of a joint problem everywhere. The maximum of all
cuts is a model of the objective, over the simplex (p = 1) or over the ball ``||theta||_q <= 1`` (p
in (1, 2)). :mod:`multikernel.solvers.joint.cutting_plane` trains the predictors that give the cuts.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ...problem.regularisers import norm
from .ball_geometry import least_distance, nearest, onto_sphere, pull_in, tangent
from .masters import BallMaster, BoxMaster, LinearMaster, MasterProblem, Minimum

#: A cut that has been inactive for this many rounds is dropped.
IDLE_ROUNDS = 50
#: At p = 1, the largest number of kernels in a step: those in use, and the best candidates.
MAX_STEP_KERNELS = 256

#: A new cut is used if it lies below the known cuts by at most this, in units of the first
#: objective. Near the optimum, a cut of the same height still improves the slope of the model.
REACHES_WITHIN = 1e-8


class CutModel:
    """The maximum of all cuts, in units in which the first objective is about one."""

    def __init__(self, p: float) -> None:
        self.q = p / (2.0 - p) if p < 2 else np.inf
        self.master: MasterProblem | None = None
        self.scale = 1.0
        self.L = np.empty(0)
        self.B = np.empty((0, 0))
        self.idle = np.empty(0, dtype=int)

    def add(self, constant: float, a: np.ndarray, theta: np.ndarray) -> Minimum:
        """Add a cut and return the minimum of the model; theta is the start of the search."""
        if self.master is None:
            self.scale = max(abs(constant), float(a.max(initial=0.0)), np.finfo(float).tiny)
            self.B = np.empty((0, len(a)))
            if np.isinf(self.q):
                self.master = BoxMaster()
            else:
                self.master = LinearMaster(len(a)) if self.q == 1 else BallMaster(self.q)
        constant, slope = constant / self.scale, 0.5 * a / self.scale
        self.L = np.append(self.L, constant)
        self.B = np.vstack([self.B, slope])
        self.idle = np.append(self.idle, 0)
        self.master.add(constant, slope)
        low = self.master.solve(self.L, self.B, theta)
        self.idle = np.where(low.multipliers > 0, 0, self.idle + 1)
        old = np.flatnonzero(self.idle > IDLE_ROUNDS)
        if len(old):
            self.master.drop(old)
            self.L, self.B = np.delete(self.L, old), np.delete(self.B, old, axis=0)
            self.idle = np.delete(self.idle, old)
        return Minimum(low.theta, low.value * self.scale, low.multipliers)

    def is_moved_by(self, constant: float, a: np.ndarray, theta: np.ndarray) -> bool:
        """Whether a cut is as high as the known cuts at theta, so that it may move the minimum."""
        if not len(self.L):
            return True
        height = float(np.max(self.L - self.B @ theta))
        return (constant - 0.5 * float(theta @ a)) / self.scale >= height - REACHES_WITHIN

    def working_set(self, theta: np.ndarray, a: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The kernels that may have a weight after the next step; the bounds hold for any choice.

        With p > 1 all kernels have a weight. With p = 1 few kernels have one. Candidates are the
        kernels with a large a_k, and those with a weight at the minimum of the model.
        """
        if self.q > 1 or len(theta) <= MAX_STEP_KERNELS:
            return np.arange(len(theta))
        used = theta > 0
        merit = a / max(float(a.max()), np.finfo(float).tiny) + 2.0 * (low > 0)
        if np.count_nonzero(used) <= MAX_STEP_KERNELS // 2:
            merit += used
        return np.sort(np.argpartition(-merit, MAX_STEP_KERNELS)[:MAX_STEP_KERNELS])

    def approach(
        self, theta: np.ndarray, a: np.ndarray, level: float, low: np.ndarray
    ) -> np.ndarray:
        """Weights near theta, on the sphere, at which no cut exceeds the level.

        ``low``, the minimum of the model, is one such point, but may be far from theta. The nearest
        one is a projection on the intersection of a polyhedron and a ball. The ball is replaced by
        its tangent planes (one if q = 1). A point that is still outside is moved towards ``low``
        until it is in the ball; all cuts stay below the level on the way.
        """
        bound = level / self.scale
        S = self.working_set(theta, a, low)
        everywhere, theta, B = low, theta[S], self.B[:, S]
        low = low[S]
        tangents = [tangent(theta, self.q)]
        point, active = theta, np.zeros(len(self.L), dtype=bool)
        for _ in range(1 if self.q == 1 else 8):
            G = np.vstack([B, -np.array(tangents)])
            h = np.append(self.L - bound, np.full(len(tangents), -1.0))
            found = nearest(theta, G, h, float(np.linalg.norm(low - theta)))
            if found is None:
                return everywhere
            point, multipliers = found
            active = multipliers[: len(self.L)] > 0
            size = norm(point, self.q)
            if size <= 1.0 + 1e-10:
                break
            tangents.append(tangent(point / size, self.q))
        # Cuts that are active at the new point are in use, even if inactive at the minimum.
        self.idle[active] = 0
        if self.q > 1:
            point = pull_in(point, low, self.q)
        # Larger weights never raise a cut.
        point = onto_sphere(point, self.q)
        slack = np.max(self.L - B @ point) - bound
        if slack > 1e-6 * max(abs(bound), 1.0):
            return everywhere
        full = np.zeros_like(everywhere)
        full[S] = point
        return full

    def newton(
        self, theta: np.ndarray, a: np.ndarray, U: np.ndarray, upper: float, low: np.ndarray
    ) -> np.ndarray | None:
        """The minimiser of the quadratic expansion of g at theta, on the sphere; None if it fails.

        ``min -a'd / 2 + d'(U'U + D)d / 2`` over weights ``theta + d >= 0`` on the tangent plane of
        the sphere at which no cut exceeds ``upper``, the best objective so far. The cuts exclude
        regions where the expansion is wrong. ``D = mu (q - 1) diag(theta^(q-2))`` is the curvature
        of the sphere times its multiplier ``mu = theta'a / 2``, which makes this a Newton step for
        the optimality conditions; for q = 1, the simplex, D is zero.
        """
        S = self.working_set(theta, a, low)
        plane = tangent(theta, self.q)
        mu = 0.5 * float(theta @ a) / self.scale
        bend = mu * (self.q - 1.0) * np.maximum(theta, 1e-8) ** (self.q - 2.0)
        # Adding mu times the normal to the slope changes the objective by a constant on the tangent
        # plane. The resulting slope is small, which avoids cancellation.
        slope = mu * plane - 0.5 * a / self.scale
        H = U[:, S].T @ U[:, S] / self.scale + np.diag(bend[S])
        linear = slope[S] - U[:, S].T @ (U @ theta) / self.scale - bend[S] * theta[S]
        # Nearly equal kernels make H singular. Along its flat directions the objective is constant
        # and a small ridge does no harm.
        ridge = 1e-10 * float(np.max(np.diag(H)))
        H[np.diag_indices(len(S))] += ridge
        linear -= ridge * theta[S]
        try:
            R = cholesky(H, check_finite=False)
        except LinAlgError:
            return None
        # In the variables R theta the expansion is a squared distance.
        sides = np.column_stack([-linear, plane[S]])
        centre, normal = solve_triangular(R, sides, trans="T", check_finite=False).T
        point = np.zeros_like(theta)
        # The nearest point of the plane usually satisfies all other constraints.
        x = centre + normal * (1.0 - float(normal @ centre)) / float(normal @ normal)
        point[S] = solve_triangular(R, x, check_finite=False)
        accurate = abs(plane @ point - 1.0) < 0.01
        within_cuts = np.all(self.L - self.B @ point <= upper / self.scale)
        if accurate and point.min() >= 0.0 and within_cuts:
            return onto_sphere(point, self.q)
        G = np.vstack([np.eye(len(S)), self.B[:, S], plane[S], -plane[S]])
        h = np.concatenate([np.zeros(len(S)), self.L - upper / self.scale, np.array([1.0, -1.0])])
        rows = solve_triangular(R, G.T, trans="T", check_finite=False).T
        reach = float(np.linalg.norm(centre - R @ theta[S]))
        found = least_distance(centre, rows, h, reach)
        if found is None:
            return None
        x, multipliers = found
        part = solve_triangular(R, x, check_finite=False)
        point[S] = np.where(multipliers[: len(S)] > 0, 0.0, np.maximum(part, 0.0))
        if not abs(plane @ point - 1.0) < 0.01:
            return None  # rounding errors are too large
        return onto_sphere(point, self.q)
