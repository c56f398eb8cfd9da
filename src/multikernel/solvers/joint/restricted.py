"""l1 learning restricted to a working set of rank-one kernels (features).

The working set grows; :mod:`multikernel.solvers.joint.features` chooses the features to add.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from ...grams.protocol import FeatureColumns
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import EpsilonInsensitive, Hinge, Loss, Squared
from ..levels import LEVEL_PRECISION, LevelPrograms, Plane, highest, mixture

#: A feature violates its bound if it exceeds the level by this fraction.
MIN_RELATIVE_VIOLATION = 1e-9
#: Number of planes kept: only planes near the current level can become active again.
MAX_PLANES = 30
#: Limit on rounds in which wrong signs are reversed.
MAX_SIGN_CHANGES = 50


class SingleOutputLosses:
    """The losses of a target with one output."""

    def __init__(self, target: Target, learner: Learner) -> None:
        self.loss: Loss = learner.loss
        self.C = learner.costs(target)
        self.intercept = learner.fit_intercept
        centred = self.intercept and not isinstance(self.loss, Hinge)
        mean = np.average(target.Y[:, 0], weights=self.C) if centred else 0.0
        self.y = target.Y[:, 0] - mean

    def primal(self, values: np.ndarray) -> float:
        """The sum of the losses at ``values``, shape (n, 1), with the best intercept."""
        Y = self.y[:, None]
        b = self.loss.intercept(values, Y, self.C) if self.intercept else 0.0
        return float(self.loss.value(values, Y, self.C, b)[0])

    def dual(self, s: np.ndarray) -> float:
        """The dual value of the losses."""
        return float(self.loss.dual(s[:, None], self.y[:, None], self.C)[0])

    def balanced(self, s: np.ndarray) -> np.ndarray:
        """Feasible coefficients: with an intercept, scaled so that they sum to zero."""
        if not self.intercept:
            return s
        up, down = float(s[s > 0].sum()), -float(s[s < 0].sum())
        least = min(up, down)
        if least == 0:
            return np.zeros_like(s)
        return s * np.where(s > 0, least / up, least / down)

    def first(self) -> np.ndarray:
        """Feasible coefficients near those of the zero function."""
        push = self.y if isinstance(self.loss, Squared) else np.sign(self.y)
        return self.balanced(self.C * push)


class Step(NamedTuple):
    """An iterate of the restricted problem."""

    beta: np.ndarray
    s: np.ndarray
    #: The bound on s: ``|u_k's| <= level`` for the features of the working set.
    level: float
    #: An upper bound of the optimum.
    upper: float
    #: Whether beta and s solve the restricted problem.
    settled: bool


class RestrictedProblem(Protocol):
    """The problem over a growing set of features."""

    def add(self, kernels: np.ndarray) -> None:
        """Add features to the working set."""
        ...

    def step(self) -> Step | None:
        """The next iterate; None if the solver fails."""
        ...


class Levels:
    """Piecewise linear losses: one linear program per step, at the level that the planes give."""

    def __init__(
        self,
        features: FeatureColumns,
        n_features: int,
        problem: SingleOutputLosses,
        steepest: float,
    ) -> None:
        self.n_features = n_features
        n, y, loss = len(problem.y), problem.y, problem.loss
        self.features, self.problem = features, problem
        self.working = np.zeros(0, dtype=np.intp)
        if isinstance(loss, EpsilonInsensitive):
            gain = np.concatenate([y, -y]) - loss.epsilon
            one = sp.eye_array(n)
            S, box = sp.hstack([one, -one]), np.tile(problem.C, 2)
        else:
            gain, S, box = np.ones(n), sp.diags_array(y), problem.C
        self.programs = LevelPrograms(gain, box, S, balanced=problem.intercept)
        self.planes = [self.plane(np.zeros(self.n_features))]
        # At the optimum 1/2 ||beta||_1^2 is at most the loss of beta = 0.
        self.level = 0.5 * min(float(np.sqrt(2.0 * self.planes[0].loss)), steepest)

    def plane(self, beta: np.ndarray) -> Plane:
        """The plane of beta."""
        loss = self.problem.primal(self.features.values(beta))
        return Plane(beta, float(np.abs(beta).sum()), loss)

    def add(self, kernels: np.ndarray) -> None:
        columns, shift = self.features.columns(kernels)
        self.programs.add(columns.T, shift)
        self.working = np.append(self.working, kernels)

    def step(self) -> Step | None:
        level = self.level
        answer = self.programs.solve(level)
        if answer is None:
            return None
        s, slopes = answer
        beta = np.zeros(self.n_features)
        beta[self.working] = slopes
        self.planes.append(self.plane(beta))
        self.level, top = highest(self.planes)
        self.planes = sorted(self.planes, key=lambda plane: plane.at(self.level))[:MAX_PLANES]
        settled = abs(self.level - level) <= LEVEL_PRECISION * self.level
        s = self.problem.balanced(s)
        return Step(mixture(self.planes, self.level), s, level, top, settled)


class LeastSquares:
    """The squared loss: non-negative least squares over signed features."""

    def __init__(
        self, features: FeatureColumns, n_features: int, problem: SingleOutputLosses
    ) -> None:
        self.n_features = n_features
        self.features, self.problem = features, problem
        self.working = np.zeros(0, dtype=np.intp)
        self.root = np.sqrt(problem.C)
        self.A = np.zeros((len(problem.y), 0))
        self.sign = np.zeros(0)
        self.target = self.root * problem.y

    def add(self, kernels: np.ndarray) -> None:
        columns, shift = self.features.columns(kernels)
        U = (columns.toarray() if sp.issparse(columns) else columns) - shift
        if self.problem.intercept:
            U = U - np.average(U, axis=0, weights=self.problem.C)
        A = self.root[:, None] * U
        # The sign of the product with the last residual is a guess; `step` reverses wrong signs.
        residual = self.target - self.A @ self.beta if len(self.working) else self.target
        self.sign = np.append(self.sign, np.where(A.T @ residual < 0, -1.0, 1.0))
        self.A = np.hstack([self.A, A])
        self.working = np.append(self.working, kernels)

    def step(self) -> Step | None:
        right = np.append(self.target, 0.0)
        for _ in range(MAX_SIGN_CHANGES):
            bordered = np.vstack([self.A * self.sign, np.ones(len(self.sign))])
            try:
                x, _ = nnls(bordered, right, maxiter=max(1000, 10 * len(self.sign)))
            except RuntimeError:
                return None
            self.beta = self.sign * x
            residual, level = self.target - self.A @ self.beta, float(x.sum())
            pull = self.sign * (self.A.T @ residual)
            wrong = (x == 0) & (pull < -(1.0 + MIN_RELATIVE_VIOLATION) * level)
            if not wrong.any() or level == 0:
                break
            self.sign[wrong] *= -1.0
        beta = np.zeros(self.n_features)
        beta[self.working] = self.beta
        upper = 0.5 * level**2 + 0.5 * float(residual @ residual)
        return Step(beta, self.root * residual, level, upper, True)
