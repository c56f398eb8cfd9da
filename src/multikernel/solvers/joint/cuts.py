"""The geometry of cutting planes: models made of cuts, their minima, and steps towards them.

A cut ``L - theta'a / 2`` lies below the objective of a joint problem everywhere. The largest of all
cuts is a model of it, over the simplex (p = 1) or over the ball ``||theta||_q <= 1`` (p in (1, 2)).
:mod:`multikernel.solvers.joint.cutting_plane` trains the machines that make the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from ...problem.regularisers import conjugate, norm

#: A cut that has not mattered for this many rounds is dropped.
IDLE_ROUNDS = 50
#: At p = 1, how many kernels a step looks at: those in use and those that want to be.
WORKING_SET = 256
#: Weights below this are rounding errors of a zero.
TINY = 1e-13


@dataclass(frozen=True)
class Minimum:
    """Where the model is lowest, and a proven lower bound of it with the multipliers of the cuts.

    For any ``lam >= 0`` that sums to one, ``lam'L - ||sum_r lam_r a_r||_{q*} / 2`` is below the
    model on the whole ball: the bound owes nothing to the tolerances of the solver that found lam.
    """

    theta: np.ndarray
    value: float
    multipliers: np.ndarray


class MasterProblem(Protocol):
    """Minimises ``max_r L_r - theta'B_r`` over the ball of the q-norm."""

    def add(self, constant: float, slope: np.ndarray) -> None: ...

    def drop(self, rows: np.ndarray) -> None: ...

    def solve(self, L: np.ndarray, B: np.ndarray, theta: np.ndarray) -> Minimum: ...


class CutModel:
    """The largest of all cuts, in units in which the first objective is about one."""

    def __init__(self, p: float) -> None:
        self.q = p / (2.0 - p) if p < 2 else np.inf
        self.master: MasterProblem | None = None
        self.scale = 1.0
        self.L = np.empty(0)
        self.B = np.empty((0, 0))
        self.idle = np.empty(0, dtype=int)

    def add(self, constant: float, a: np.ndarray, theta: np.ndarray) -> Minimum:
        """The minimum of the model with one more cut; theta is where the search begins."""
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

    def working_set(self, theta: np.ndarray, a: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The kernels a step may give a weight; a choice only, the bounds do not depend on it.

        With p > 1 every kernel has a weight. With p = 1 few have, and a kernel that is to come in
        has a large a_k, or a weight at the minimum of the model.
        """
        if self.q > 1 or len(theta) <= WORKING_SET:
            return np.arange(len(theta))
        used = theta > 0
        merit = a / max(float(a.max()), np.finfo(float).tiny) + 2.0 * (low > 0)
        if np.count_nonzero(used) <= WORKING_SET // 2:
            merit += used
        return np.sort(np.argpartition(-merit, WORKING_SET)[:WORKING_SET])

    def approach(
        self, theta: np.ndarray, a: np.ndarray, level: float, low: np.ndarray
    ) -> np.ndarray:
        """A point of the ball near theta at which no cut exceeds the level; low is one, far off.

        The nearest such point is the projection on a polyhedron and a ball. The ball is replaced
        by its tangents (for q = 1 there is only one), and what still sticks out is pulled in
        along the line to ``low``, which leaves the cuts where they must be.
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
        # A cut that holds the next point in its place is in use, whatever the minimum says.
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
        """Where the quadratic expansion of g at theta is lowest.

        ``min -a'd / 2 + d'(U'U + D)d / 2`` over the weights ``theta + d`` on the tangent of the
        sphere at which no cut exceeds the best objective known: cuts keep the step from going
        where the expansion is wrong. ``D = mu (q - 1) diag(theta^(q-2))`` is the curvature of the
        sphere times its multiplier ``mu = theta'a / 2``, so that the step is Newton's for the
        optimality conditions; for q = 1, the simplex, it is zero.
        """
        S = self.working_set(theta, a, low)
        plane = tangent(theta, self.q)
        mu = 0.5 * float(theta @ a) / self.scale
        bend = mu * (self.q - 1.0) * np.maximum(theta, 1e-8) ** (self.q - 2.0)
        # On the tangent plane mu times its normal is a constant; what is left is small.
        slope = mu * plane - 0.5 * a / self.scale
        H = U[:, S].T @ U[:, S] / self.scale + np.diag(bend[S])
        linear = slope[S] - U[:, S].T @ (U @ theta) / self.scale - bend[S] * theta[S]
        # Kernels that hardly differ make H singular; the flat directions hold nothing to gain.
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
        # Mostly the nearest point of the plane keeps to all the rest as well.
        x = centre + normal * (1.0 - float(normal @ centre)) / float(normal @ normal)
        point[S] = solve_triangular(R, x, check_finite=False)
        fits = abs(plane @ point - 1.0) < 0.01  # else rounding has spoilt it
        if fits and point.min() >= 0.0 and np.all(self.L - self.B @ point <= upper / self.scale):
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
            return None  # rounding has spoilt it
        return onto_sphere(point, self.q)


# -- p = 1: a linear program -----------------------------------------------------------------------


class LinearMaster:
    """``min eta``, ``eta + theta'B_r >= L_r``, ``sum theta = 1``, ``theta >= 0``, kept warm.

    One HiGHS model grows by a row per cut; its dual simplex goes on from the last basis, for which
    a new row is a few pivots.
    """

    def __init__(self, n_kernels: int) -> None:
        try:
            import highspy
        except ImportError as error:
            raise ImportError(
                "Cutting planes at p = 1 solve linear programs with HiGHS: pip install highspy."
            ) from error
        self.p = n_kernels
        self.infinity = highspy.kHighsInf
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.lp: Any = highspy.Highs()
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            "presolve": "off",  # it would throw the basis away
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        for name, value in options.items():
            self.lp.setOptionValue(name, value)
        nothing = np.empty(0)
        for k in range(n_kernels + 1):
            cost, least = (0.0, 0.0) if k < n_kernels else (1.0, -self.infinity)
            self.lp.addCol(cost, least, self.infinity, 0, nothing.astype(np.int32), nothing)
        index = np.arange(n_kernels, dtype=np.int32)
        self.lp.addRow(1.0, 1.0, n_kernels, index, np.ones(n_kernels))

    def add(self, constant: float, slope: np.ndarray) -> None:
        index = np.arange(self.p + 1, dtype=np.int32)
        self.lp.addRow(constant, self.infinity, self.p + 1, index, np.append(slope, 1.0))

    def drop(self, rows: np.ndarray) -> None:
        self.lp.deleteRows(len(rows), (rows + 1).astype(np.int32))

    def solve(self, L: np.ndarray, B: np.ndarray, theta: np.ndarray) -> Minimum:
        self.lp.run()
        if self.lp.getModelStatus() != self.optimal:
            # A basis may have become too badly conditioned to go on from.
            self.lp.clearSolver()
            self.lp.run()
            if self.lp.getModelStatus() != self.optimal:
                status = self.lp.modelStatusToString(self.lp.getModelStatus())
                raise RuntimeError(f"HiGHS could not solve the linear program of cuts: {status}.")
        solution = self.lp.getSolution()
        vertex = onto_sphere(np.array(solution.col_value[:-1]), 1.0)
        multipliers = np.maximum(np.array(solution.row_dual[1:]), 0.0)
        multipliers /= multipliers.sum()
        value = float(multipliers @ L - np.max(multipliers @ B))
        return Minimum(vertex, value, multipliers)


# -- 1 < p < 2: a ball of the q-norm ---------------------------------------------------------------


class BallMaster:
    """``min max_r L_r - theta'B_r`` over ``theta >= 0, ||theta||_q <= 1`` by Taylor rounds.

    Every round replaces the ball by the ellipsoid of its second-order expansion at the present
    point (Kloft 2011, Algorithm D.1) and goes back to the sphere. The gradient of the expansion
    is exact, so the round's direction leads down; that a step is only taken if the model falls
    turns the conjecture that the rounds converge into a certainty. They end when the dual value
    of the multipliers meets the model.
    """

    max_rounds = 60

    def __init__(self, q: float) -> None:
        self.q = q

    def add(self, constant: float, slope: np.ndarray) -> None:
        pass

    def drop(self, rows: np.ndarray) -> None:
        pass

    def solve(self, L: np.ndarray, B: np.ndarray, theta: np.ndarray) -> Minimum:
        dual_norm = conjugate(self.q)
        if len(L) == 1:
            # Hoelder's inequality, and where it holds with equality.
            size = norm(B[0], dual_norm)
            if size > 0:
                theta = onto_sphere((B[0] / B[0].max()) ** (dual_norm - 1.0), self.q)
            return Minimum(theta, float(L[0] - size), np.ones(1))
        height = float(np.max(L - B @ theta))
        lower, multipliers = -np.inf, np.full(len(L), 1.0 / len(L))
        for _ in range(self.max_rounds):
            step = taylor_minimum(L, B, theta, self.q)
            if step is None:
                break
            target, weights = step
            value = float(weights @ L) - norm(weights @ B, dual_norm)
            if value > lower:
                lower, multipliers = value, weights
            if not np.any(target > 0):
                break
            target = onto_sphere(np.minimum(target, 1.0), self.q)
            length = 1.0
            while length > 1e-10:
                trial = onto_sphere(theta + length * (target - theta), self.q)
                reached = float(np.max(L - B @ trial))
                if reached < height:
                    break
                length *= 0.5
            else:
                break
            theta, height = trial, reached
            if height - lower <= 1e-13 * max(abs(height), 1.0):
                break
        return Minimum(theta, lower, multipliers)


class BoxMaster:
    """q = inf: all weights are one."""

    def add(self, constant: float, slope: np.ndarray) -> None:
        pass

    def drop(self, rows: np.ndarray) -> None:
        pass

    def solve(self, L: np.ndarray, B: np.ndarray, theta: np.ndarray) -> Minimum:
        heights = L - B.sum(axis=1)
        multipliers = np.zeros(len(L))
        multipliers[np.argmax(heights)] = 1.0
        return Minimum(np.ones(B.shape[1]), float(heights.max()), multipliers)


def taylor_minimum(
    L: np.ndarray, B: np.ndarray, around: np.ndarray, q: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """The lowest point of the model on the expansion of the ball, and the cuts' multipliers.

    With ``||around||_q = 1`` the expansion ``||theta||_q^q <= 1`` to second order is, the square
    completed,

        sum_k d_k (theta_k - c_k)^2 <= 1 / (q - 1)^2,   d = around^(q-2), c = (q-2)/(q-1) around

    (exact for q = 2). The smallest level of the model whose distance to c is that radius is found
    by Newton's method: the distance is convex and falls with the level, and its slope are the
    multipliers of the nearest point. Nothing but a least-squares solver is needed, and no barrier
    or penalty has to be tuned.
    """
    safe = np.maximum(around, 1e-8)
    root = safe ** (0.5 * q - 1.0)
    centre = (q - 2.0) / (q - 1.0) * safe
    radius = 1.0 / (q - 1.0)
    level = float(np.max(L - B @ around))
    found = None
    for _ in range(50):
        # In the variables x = root theta the ellipsoid is a ball.
        step = nearest(root * centre, B / root, L - level, radius)
        if step is None:
            break
        x, multipliers = step
        found = x / root, multipliers
        distance = float(np.linalg.norm(x - root * centre))
        total = float(multipliers.sum())
        if total <= 0 or abs(distance - radius) <= 1e-13 * radius:
            break
        level += (distance - radius) * distance / total
    if found is None or found[1].sum() <= 0:
        return None
    return found[0], found[1] / found[1].sum()


# -- small geometry --------------------------------------------------------------------------------


def nearest(
    centre: np.ndarray, G: np.ndarray, h: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """``argmin ||x - centre||^2 / 2`` over ``G x >= h, x >= 0``, and the multipliers of G.

    Only the signs that would be violated are asked for, round by round: mostly they are few.
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

    Least distance programming (Lawson and Hanson 1974, chapter 23): non-negative least squares
    for ``[G'; h'] u = (0, 1)`` gives x and the multipliers from the residual. An active-set method:
    which constraints hold with equality is known exactly, so that zeros can be told. ``reach``,
    about how far x will be from the centre, is the unit of length: the residual keeps its digits
    only if the distance is neither tiny nor huge. None if there is no such point, or none that the
    arithmetic can tell.
    """
    m, p = G.shape
    size = np.linalg.norm(G, axis=1)
    rows = size > 0
    G, h, size = G[rows], h[rows], size[rows]
    if not len(h):
        return centre, np.zeros(m)  # nothing to keep to (and scipy's nnls would end the process)
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
    """``theta / ||theta||_q``, with rounding errors of zeros cleared.

    Algorithm D.1 prints ``theta / ||theta||_q^q``, which is not on the sphere unless q = 1.
    """
    top = np.max(theta)
    if not top > 0:
        theta, top = np.ones(len(theta)), 1.0  # rounding left nothing to go by
    theta = np.where(theta > TINY * top, theta, 0.0)
    return np.minimum(theta / norm(theta, q), 1.0)


def tangent(theta: np.ndarray, q: float) -> np.ndarray:
    """The v with ``v'x <= 1`` on the ball ``||x||_q <= 1``, and ``v'theta = 1`` on its sphere."""
    return np.ones_like(theta) if q == 1 else theta ** (q - 1.0)


def pull_in(outside: np.ndarray, inside: np.ndarray, q: float) -> np.ndarray:
    """The first point of the ball on the way from outside to inside, by bisection."""
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
