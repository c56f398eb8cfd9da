"""Master problems: the minimum of all cuts over the simplex or over a ball of the q-norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...problem.regularisers import conjugate, norm
from ..highs import warm_simplex
from .ball_geometry import nearest, onto_sphere

#: Largest violation of constraints in the linear program of cuts, whose values are of order one.
FEASIBILITY_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Minimum:
    """The minimum of all cuts: its position, a proven lower bound, and multipliers of the cuts.

    For any multipliers ``lam >= 0`` that sum to one, ``lam'L - ||sum_r lam_r a_r||_{q*} / 2`` is
    below the model on the whole ball. The bound is therefore valid whatever the tolerance of the
    solver that found lam.
    """

    theta: np.ndarray
    value: float
    multipliers: np.ndarray


class MasterProblem(Protocol):
    """Minimises ``max_r L_r - theta'B_r`` over the ball of the q-norm."""

    def add(self, constant: float, slope: np.ndarray) -> None:
        """Add a cut."""
        ...

    def drop(self, rows: np.ndarray) -> None:
        """Remove cuts."""
        ...

    def solve(self, L: np.ndarray, B: np.ndarray, theta: np.ndarray) -> Minimum:
        """The minimum of all cuts; theta is the start of the search."""
        ...


class LinearMaster:
    """p = 1: ``min eta`` over ``eta + theta'B_r >= L_r``, ``sum theta = 1``, ``theta >= 0``.

    A linear program in HiGHS, to which each cut adds a row. The dual simplex method starts from the
    last basis, so a new row needs only a few pivots.
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
        self.lp = warm_simplex(FEASIBILITY_TOLERANCE)
        nothing = np.empty(0)
        for k in range(n_kernels + 1):
            cost, lower = (0.0, 0.0) if k < n_kernels else (1.0, -self.infinity)
            self.lp.addCol(cost, lower, self.infinity, 0, nothing.astype(np.int32), nothing)
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
            # The last basis may be too ill-conditioned to start from.
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


class BallMaster:
    """1 < p < 2: ``min max_r L_r - theta'B_r`` over ``theta >= 0, ||theta||_q <= 1``.

    Every round replaces the ball by the ellipsoid of its second-order expansion at the current
    point (Kloft 2011, Algorithm D.1), minimises over the ellipsoid, and returns to the sphere. The
    gradient of the expansion is exact, so each round gives a descent direction. A line search takes
    a step only if the model falls, which guarantees convergence. The rounds end when the dual value
    of the multipliers equals the model.
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
            # Equality in Hoelder's inequality.
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
            target, lam = step
            value = float(lam @ L) - norm(lam @ B, dual_norm)
            if value > lower:
                lower, multipliers = value, lam
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
    """p = 2, q = inf: all weights are one."""

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
    """The minimiser of the model on the expansion of the ball, and the multipliers of the cuts.

    For ``||around||_q = 1`` the second-order expansion of ``||theta||_q^q <= 1`` is

        sum_k d_k (theta_k - c_k)^2 <= 1 / (q - 1)^2,   d = around^(q-2), c = (q-2)/(q-1) around

    (exact for q = 2). Newton's method finds the level of the model whose distance to c is this
    radius: the distance is a convex, decreasing function of the level, and the multipliers of the
    nearest point give its slope. Only a least-squares solver is needed, without a barrier or
    penalty to tune.
    """
    safe = np.maximum(around, 1e-8)
    root = safe ** (0.5 * q - 1.0)
    centre = (q - 2.0) / (q - 1.0) * safe
    radius = 1.0 / (q - 1.0)
    level = float(np.max(L - B @ around))
    found = None
    for _ in range(50):
        # In the variables x = root * theta the ellipsoid is a ball.
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
