"""Sparse learning over kernels of rank one: a linear function with a bound on its 1-norm.

With ``K_k = u_k u_k'`` a machine is ``f = sum_k beta_k u_k + b``, and multiple kernel learning with
block norm p = 1 is

    min 1/2 ||beta||_1^2 + sum_i C_i l(f_i, y_i),           theta_k = |beta_k| / ||beta||_1

(Kloft 2011, Problem II.3: the parts ``w_k`` of the machine are numbers). Cutting planes need a
machine for about every kernel that could matter, of which there are thousands. Here

- piecewise linear losses are linear programs at a few levels (:mod:`multikernel.solvers.levels`),
- the squared loss is non-negative least squares: with ``beta = sigma x, x >= 0`` the objective is
  half of ``||sqrt(C) (y - U sigma x)||^2 + (1'x)^2``, once b is taken out by centring,

both over a working set of features, and both exact. Any s that the dual of the machine allows says
by ``|u_k's|`` which features are missing: one pass over all of them.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from ...grams.memory import MemoryBudgetError
from ...grams.protocol import FeatureColumns, Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import EpsilonInsensitive, Hinge, Loss, Squared
from ...problem.regularisers import Regulariser
from ...weighting.base import Weighting
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import CertifiedIterate, Found, Report, Stopped, certify
from ..levels import EXACT, Plane, Programs, highest, mixture
from .cutting_plane import find_by_cutting_planes
from .warm_start import WarmStart

#: Features in the first working set, and the most that join it at once.
FIRST, MORE = 200, 200
#: Part of the level by which a feature must pass it to join.
VIOLATION = 1e-9
#: Relative gap that counts as none: the precision of a linear program.
PRECISION = 1e-8
#: Planes that are kept: only those near the level can matter again.
PLANES = 30
#: Limit on how often signs are turned before new features are looked for.
TURNS = 50


def is_for(grams: Grams, target: Target, weighting: Weighting, learner: Learner) -> bool:
    """Whether the problem is one of sparse linear functions, for which this is the fastest way."""
    return (
        isinstance(weighting, LpNorm)
        and weighting.solver == "auto"
        and weighting.p == 1
        and grams.features() is not None
        and target.Y.shape[1] == 1
        and isinstance(learner.loss, Hinge | EpsilonInsensitive | Squared)
    )


class SingleOutputLosses:
    """Losses of one output."""

    def __init__(self, target: Target, learner: Learner) -> None:
        self.loss: Loss = learner.loss
        self.C = learner.costs(target)
        self.intercept = learner.fit_intercept
        centred = self.intercept and not isinstance(self.loss, Hinge)
        mean = np.average(target.Y[:, 0], weights=self.C) if centred else 0.0
        self.y = target.Y[:, 0] - mean

    def primal(self, values: np.ndarray) -> float:
        """The losses of ``values``, shape (n, 1), with the best intercept."""
        Y = self.y[:, None]
        b = self.loss.intercept(values, Y, self.C) if self.intercept else 0.0
        return float(self.loss.value(values, Y, self.C, b)[0])

    def dual(self, s: np.ndarray) -> float:
        return float(self.loss.dual(s[:, None], self.y[:, None], self.C)[0])

    def balanced(self, s: np.ndarray) -> np.ndarray:
        """Coefficients made feasible: both sides equal, where an intercept asks for it."""
        if not self.intercept:
            return s
        up, down = float(s[s > 0].sum()), -float(s[s < 0].sum())
        least = min(up, down)
        if least == 0:
            return np.zeros_like(s)
        return s * np.where(s > 0, least / up, least / down)

    def first(self) -> np.ndarray:
        """Coefficients of the function zero, or near them."""
        push = self.y if isinstance(self.loss, Squared) else np.sign(self.y)
        return self.balanced(self.C * push)


class Step(NamedTuple):
    """A solution of the restricted problem, or one on the way to it."""

    beta: np.ndarray
    s: np.ndarray
    #: what s was held below, ``|u_k's| <= level``
    level: float
    #: above the optimum
    upper: float
    #: whether beta and s solve the restricted problem
    settled: bool


class Restricted(Protocol):
    """The problem over a growing set of features."""

    def add(self, kernels: np.ndarray) -> None: ...

    def step(self) -> Step | None: ...


class Levels:
    """Piecewise linear losses: a linear program at the level that the planes so far point to."""

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
        self.programs = Programs(gain, box, S, balanced=problem.intercept)
        self.planes = [self.plane(np.zeros(self.n_features))]
        # Where beta is zero at first, the regulariser can only lower the losses.
        self.level = 0.5 * min(float(np.sqrt(2.0 * self.planes[0].loss)), steepest)

    def plane(self, beta: np.ndarray) -> Plane:
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
        self.planes = sorted(self.planes, key=lambda plane: plane.at(self.level))[:PLANES]
        settled = abs(self.level - level) <= EXACT * self.level
        s = self.problem.balanced(s)
        return Step(mixture(self.planes, self.level), s, level, top, settled)


class LeastSquares:
    """The squared loss: non-negative least squares over features with the sign they pull in."""

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
        # The best guess is the sign at the last residual; wrong ones are turned round.
        residual = self.target - self.A @ self.beta if len(self.working) else self.target
        self.sign = np.append(self.sign, np.where(A.T @ residual < 0, -1.0, 1.0))
        self.A = np.hstack([self.A, A])
        self.working = np.append(self.working, kernels)

    def step(self) -> Step | None:
        right = np.append(self.target, 0.0)
        for _ in range(TURNS):
            bordered = np.vstack([self.A * self.sign, np.ones(len(self.sign))])
            try:
                x, _ = nnls(bordered, right, maxiter=max(1000, 10 * len(self.sign)))
            except RuntimeError:
                return None
            self.beta = self.sign * x
            residual, level = self.target - self.A @ self.beta, float(x.sum())
            pull = self.sign * (self.A.T @ residual)
            wrong = (x == 0) & (pull < -(1.0 + VIOLATION) * level)
            if not wrong.any() or level == 0:
                break
            self.sign[wrong] *= -1.0
        beta = np.zeros(self.n_features)
        beta[self.working] = self.beta
        upper = 0.5 * level**2 + 0.5 * float(residual @ residual)
        return Step(beta, self.root * residual, level, upper, True)


def find_by_features(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Weights and machine of l1 multiple kernel learning over kernels of rank one.

    ::

        repeat   restricted problem     -> beta, s, upper bound
                 |u_k's| of all k       -> lower bound, features that are missing
                 until none is, and the restricted problem is solved

    Parameters
    ----------
    grams : Grams
        With `Grams.features`.
    target : Target
        One output.
    weighting : LpNorm
        With p = 1.
    learner : Learner
        With hinge, epsilon-insensitive or squared loss.
    warm : WarmStart, optional
        Weights of a similar problem, whose features are then in the first working set.
    report : callable, optional
        Receives the entry of every restricted problem.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> from multikernel.grams.memory import MemoryBudget
    >>> from multikernel.learners.svm import SVM
    >>> from multikernel.solvers.joint.features import find_by_features
    >>> from multikernel.problem import Target
    >>> X = np.random.default_rng(0).standard_normal((60, 500))
    >>> y = np.where(X[:, 0] > 0.3 * X[:, 1], 1.0, -1.0)
    >>> bank = mk.per_feature(mk.Linear())
    >>> grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "trace")
    >>> target = Target(y[:, None], "classification")
    >>> found = find_by_features(grams, target, mk.L1(), SVM(C=60.0))
    >>> print(np.count_nonzero(found.weights), found.machine.gap < 1e-8)
    40 True
    """
    tol, usable = weighting.tol, ~grams.degenerate
    rule = regulariser_of(weighting, grams, target)
    features, problem = grams.features(), SingleOutputLosses(target, learner)
    assert features is not None
    pull = np.where(usable, np.abs(features.products(problem.first())), -1.0)
    restricted: Restricted
    if isinstance(problem.loss, Squared):
        restricted = LeastSquares(features, grams.p, problem)
    else:
        restricted = Levels(features, grams.p, problem, float(pull.max()))
    inside = usable & (pull >= np.partition(pull, -min(FIRST, grams.p))[-min(FIRST, grams.p)])
    if warm is not None and len(warm.weights) == grams.p:
        inside |= usable & (warm.weights > 0)
    restricted.add(np.flatnonzero(inside))

    history: list[dict[str, Any]] = []

    def record(objective: float, gap: float, beta: np.ndarray, s: np.ndarray) -> None:
        entry = {
            "objective": objective * learner.unit,
            "gap": max(gap, 0.0) / max(abs(objective), 1e-300),
            "active": int(np.count_nonzero(beta)),
            "support": int(np.count_nonzero(s)),
        }
        history.append(entry)
        if report is not None:
            report(entry)

    last: Step | None = None
    lower = -np.inf
    try:
        for _ in range(weighting.max_iter):
            step = restricted.step()
            if step is None:
                break
            last = step
            z = np.where(usable, np.abs(features.products(step.s)), 0.0)
            lower = max(lower, problem.dual(step.s) - 0.5 * float(z.max()) ** 2)
            record(step.upper, step.upper - lower, step.beta, step.s)
            missing = np.flatnonzero(~inside & (z > (1.0 + VIOLATION) * step.level))
            if len(missing) > MORE:
                missing = missing[np.argpartition(-z[missing], MORE)[:MORE]]
            if history[-1]["gap"] <= EXACT**2 or (step.settled and not len(missing)):
                break
            if len(missing):
                inside[missing] = True
                restricted.add(missing)
        if last is not None:
            answer = certify_step(grams, target, rule, learner, last)
            if not good(answer, tol):
                machine = learner.fit(answer.gram, target, start=answer.coef)
                trained = certify_step(grams, target, rule, learner, last, machine.coef)
                answer = min(answer, trained, key=lambda iterate: iterate.gap)
            record(answer.primal, answer.gap, answer.theta, answer.coef)
            if good(answer, tol):
                return answer.found(learner, history)
    except KeyboardInterrupt:
        if last is None:
            raise
        answer = certify_step(grams, target, rule, learner, last)
        raise Stopped(answer.found(learner, history)) from None
    return hand_over(grams, target, weighting, learner, answer if last else None, history, report)


def certify_step(
    grams: Grams,
    target: Target,
    rule: Regulariser,
    learner: Learner,
    step: Step,
    coef: np.ndarray | None = None,
) -> CertifiedIterate:
    """Both bounds from the weights ``|beta|`` and the coefficients alone, over all kernels."""
    size = float(np.abs(step.beta).sum())
    theta = np.abs(step.beta) / size if size > 0 else rule.start()
    coef = step.s[:, None] if coef is None else coef
    gram = grams.combine(theta)
    a = grams.quadratic_forms(coef).sum(axis=1)
    return certify(target, rule, learner, theta, gram, coef, gram.matvec(coef), a)


def good(answer: CertifiedIterate, tol: float) -> bool:
    """Where the best function is constant there is no regulariser to hold the gap against."""
    return answer.meets(tol) or answer.gap <= min(tol, PRECISION) * abs(answer.primal)


def hand_over(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    answer: CertifiedIterate | None,
    history: list[dict[str, Any]],
    report: Report | None,
) -> Found:
    """Cutting planes go on from weights that are not good enough, if memory allows it."""
    warm = None if answer is None else WarmStart(answer.theta)
    try:
        found = find_by_cutting_planes(grams, target, weighting, learner, warm=warm, report=report)
    except MemoryBudgetError:
        if answer is None:
            raise
        mine = answer.found(learner, history)
        warnings.warn(
            f"{weighting!r} by linear programs came to a halt with a relative duality gap of "
            f"{mine.machine.gap:.2g}, above tol={weighting.tol:g}, and cutting planes do not fit "
            "into memory_budget.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return mine
    history.extend(found.history)
    if answer is not None and answer.gap < found.machine.gap * abs(answer.primal):
        return answer.found(learner, history)
    return replace(found, history=history)
