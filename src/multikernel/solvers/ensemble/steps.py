"""Iterates and steps of the interior-point method for the second stage of an ensemble."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...problem.losses import Hinge

if TYPE_CHECKING:
    from .problem import EnsembleProblem

#: Largest fraction of the distance to a bound that a step may cover.
MAX_STEP_TO_BOUND = 0.995


class Iterate:
    """Primal and dual variables, all strictly inside their bounds.

    Units are the radius of the ball and the loss of zero weights. The variables are

    - x: weights v, then intercepts; z: multipliers of ``v >= 0``, if weights are not signed;
    - room: the slack of the ball, with multiplier lam;
    - for the hinge loss, slacks ``xi >= 0`` and ``a = xi - 1 + y f >= 0`` with multipliers beta and
      alpha. Although ``beta = c - alpha``, both are stored: the difference would round to zero.

    Complementary products tend to a common mu; those of a sample are multiplied by its relative
    cost, so that a sample of cost two gives the same result as two equal samples of cost one.
    """

    def __init__(self, problem: EnsembleProblem) -> None:
        self.problem = problem
        size, ball, c = problem.size, problem.ball, problem.c
        self.hinge = isinstance(problem.loss, Hinge)
        self.bounded = ball.q == 1 or not ball.signed
        self.x = np.zeros(problem.design.shape[1])
        if self.bounded:
            self.x[:size] = 0.5 / size ** (1 / ball.q)
        self.room = 0.5 if ball.q == 1 else 0.5 * (1.0 - float(self.x[:size] @ self.x[:size]))
        self.alpha, self.beta = 0.5 * c, 0.5 * c
        f = problem.design @ self.x
        m = 1.0 - problem.y * f
        self.xi = np.maximum(m, 0.0) + 1.0
        self.a = self.xi - m
        self.share = c / c.min()
        size_of = float(np.abs(problem.design[:, :size].T @ self.signed_coef()).max())
        self.lam = max(size_of, 1e-8)
        self.z = np.full(size, self.lam) if self.bounded else np.zeros(size)

    def signed_coef(self) -> np.ndarray:
        """The signed coefficients s of the dual."""
        problem = self.problem
        if self.hinge:
            return problem.y * self.alpha
        return problem.c * (problem.y - problem.design @ self.x)

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Complementary products, and the factor of mu to which each tends."""
        v = self.x[: self.problem.size]
        out = [(np.array([self.room * self.lam]), np.ones(1))]
        if self.bounded:
            out.append((v * self.z, np.ones_like(v)))
        if self.hinge:
            out += [(self.alpha * self.a, self.share), (self.beta * self.xi, self.share)]
        return out

    def mean(self) -> float:
        """The mean mu of all complementary products."""
        pairs = self.pairs()
        total = sum(float(product.sum()) for product, _ in pairs)
        return total / sum(float(share.sum()) for _, share in pairs)

    def step(self) -> None:
        """Take one step of Mehrotra's predictor-corrector method, with one factorisation."""
        system = System(self)
        mean = self.mean()
        affine = system.solve(0.0, None)
        ahead = copy.copy(self)
        ahead.move(affine, self.longest(affine))
        sigma = min(max(ahead.mean() / mean, 0.0), 1.0) ** 3
        change = system.solve(sigma * mean, affine)
        self.move(change, min(1.0, MAX_STEP_TO_BOUND * self.longest(change)))

    def move(self, change: dict[str, np.ndarray], length: float) -> None:
        """Add a fraction of the step to all variables."""
        for name, delta in change.items():
            setattr(self, name, getattr(self, name) + length * delta)

    def longest(self, change: dict[str, np.ndarray]) -> float:
        """The largest fraction of the step that keeps all variables within their bounds."""
        size = self.problem.size
        checks: list[tuple[Any, np.ndarray]] = [(self.room, change["room"])]
        checks.append((self.lam, change["lam"]))
        if self.bounded:
            checks += [(self.x[:size], change["x"][:size]), (self.z, change["z"])]
        if self.hinge:
            checks += [(self.xi, change["xi"]), (self.a, change["a"])]
            checks += [(self.alpha, change["alpha"]), (self.beta, change["beta"])]
        longest = 1.0 / MAX_STEP_TO_BOUND
        for given, moved in checks:
            value, delta = np.atleast_1d(given), np.atleast_1d(moved)
            down = delta < 0
            if np.any(down):
                longest = min(longest, float(np.min(-value[down] / delta[down])))
        return longest


class System:
    """The Newton equations at one iterate, reduced to weights and intercepts."""

    def __init__(self, at: Iterate) -> None:
        self.at = at
        problem, size = at.problem, at.problem.size
        v = at.x[:size]
        curvature = problem.c
        if at.hinge:
            curvature = 1.0 / (at.a / at.alpha + at.xi / at.beta)
        self.curvature = curvature
        linear = problem.ball.q == 1
        self.slope = np.ones(size) if linear else v  # gradient of the ball's constraint
        self.outside = (float(v.sum()) - 1.0 if linear else 0.5 * (float(v @ v) - 1.0)) + at.room
        weighted = np.sqrt(curvature)[:, None] * problem.design
        matrix = weighted.T @ weighted
        own = slice(0, size)
        matrix[own, own] += at.lam / at.room * np.outer(self.slope, self.slope)
        diagonal = np.arange(size)
        if not linear:
            matrix[diagonal, diagonal] += at.lam
        if at.bounded:
            matrix[diagonal, diagonal] += at.z / v
        self.factor = _factor(matrix)
        self.gradient = -(problem.design.T @ at.signed_coef())
        self.gradient[own] += at.lam * self.slope - at.z

    def solve(self, mu: float, affine: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """The step towards complementary products mu; a given predictor adds second-order terms."""
        at, problem, size = self.at, self.at.problem, self.at.problem.size
        v, own = at.x[:size], slice(0, size)

        def aim(product: np.ndarray, share: np.ndarray | float, one: str, two: str) -> np.ndarray:
            second = 0.0 if affine is None else affine[one] * affine[two]
            return mu * share - product - second

        right = -self.gradient
        to_room = aim(np.asarray(at.room * at.lam), 1.0, "room", "lam")
        right[own] -= self.slope * (to_room + at.lam * self.outside) / at.room
        to_v = np.zeros(size)
        if at.bounded:
            second = 0.0 if affine is None else affine["x"][own] * affine["z"]
            to_v = mu - v * at.z - second
            right[own] += to_v / v
        change: dict[str, np.ndarray] = {}
        if at.hinge:
            to_a = aim(at.alpha * at.a, at.share, "alpha", "a")
            second = 0.0 if affine is None else -affine["alpha"] * affine["xi"]
            to_xi = mu * at.share - at.beta * at.xi - second
            f = problem.design @ at.x
            missing = at.xi - 1.0 + problem.y * f - at.a
            pull = to_a / at.alpha - to_xi / at.beta - missing
            right += problem.design.T @ (problem.y * self.curvature * pull)
        change["x"] = self.factor(right)
        moved = float(self.slope @ change["x"][own])
        change["room"] = np.asarray(-self.outside - moved)
        change["lam"] = (to_room - at.lam * change["room"]) / at.room
        change["z"] = (to_v - at.z * change["x"][own]) / v if at.bounded else np.zeros(size)
        if at.hinge:
            turned = pull - problem.y * (problem.design @ change["x"])
            change["alpha"] = self.curvature * turned
            change["beta"] = -change["alpha"]
            change["a"] = (to_a - at.a * change["alpha"]) / at.alpha
            change["xi"] = (to_xi + at.xi * change["alpha"]) / at.beta
        return change


def _factor(A: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that solves systems with A, scaled to unit diagonal.

    If rounding makes A indefinite, small eigenvalues are raised instead.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    A = A * scale[:, None] * scale[None, :]
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
    except LinAlgError:
        values, vectors = np.linalg.eigh(A)
        values = np.maximum(values, 1e-15 * values[-1])
        return lambda right: scale * (vectors @ ((vectors.T @ (scale * right)) / values))
    return lambda right: scale * cho_solve(factor, scale * right, check_finite=False)
