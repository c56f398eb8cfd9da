"""Kernel weights and predictor from sums over rows, and from passes where sums are not enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._quiet import ignoring
from ..._threads import one_blas_thread
from ...grams.lowrank.features import FeatureMap
from ...grams.lowrank.products import Products
from ...grams.lowrank.small_sample import FeatureExpansion, FeatureGrams, small_sample
from ...grams.lowrank.sums import FeatureSums
from ...grams.memory import MemoryBudget
from ...grams.protocol import Expansion, Grams
from ...learners.base import Learner
from ...learners.leave_one_out import is_centred
from ...learners.ridge import Ridge
from ...problem import Machine, Solution, Target
from ...problem.regularisers import Regulariser
from ...weighting.base import Weighting
from ...weighting.given import GivenWeights
from ...weighting.joint import JointWeighting, regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import Found, Report
from ..joint.learn import (
    MAX_ONE_THREAD_SAMPLES,
    combined_alignment,
    refuse_constant_kernels,
)
from .errors import DualValue
from .held_rows import best_ridge_of_rows, centred_values_without, values_without
from .newton import (
    FixedWeights,
    FoundByPasses,
    LossOfChunk,
    LossSums,
    Point,
    find_by_passes,
)
from .smooth import smooth

#: Normalisations that divide by a sum over samples, or over pairs of samples.
EXTENSIVE = ("trace", "trace-first", "frobenius")
#: Limit on steps on rows held in memory, and the relative gap at which steps on a sample end.
MAX_HELD_STEPS, HELD_TOLERANCE = 200, 0.01
#: Fewer held rows than this times the number of features say too little about all rows: passes
#: begin without steps on them.
MIN_ROWS_PER_FEATURE = 3
#: Maps every chunk and combines the results: a pass over all rows.
Reduce = Callable[[Callable[[Any], Any]], Any]


@dataclass
class FeatureProblem:
    """A problem in features of the kernels, as a small sample with the same sums as all rows.

    Attributes
    ----------
    features : FeatureMap
    sums : FeatureSums
    grams : FeatureGrams
        Of the small sample, centred and normalised.
    target : Target
        Of the small sample.
    """

    features: FeatureMap
    sums: FeatureSums
    grams: FeatureGrams
    target: Target

    @classmethod
    def of(
        cls,
        features: FeatureMap,
        sums: FeatureSums,
        names: list[str],
        budget: MemoryBudget,
        *,
        center: bool,
        normalize: str | None,
        n_jobs: int = 1,
    ) -> FeatureProblem:
        rows, omega = small_sample(sums)
        D = features.n_features
        F, Y = np.ascontiguousarray(rows[:, :D]), np.ascontiguousarray(rows[:, D:])
        grams: Any = FeatureGrams(F, features, names, budget, sample_weight=omega, n_jobs=n_jobs)
        return cls(
            features, sums, grams.corrected(center, normalize), Target(Y, "regression", omega)
        )

    @property
    def root_scale(self) -> np.ndarray:
        """The square root of the normalisation factor of each feature, shape (D,)."""
        return np.asarray(np.sqrt(self.grams.scale)[self.grams.owner])

    def as_used(self, X: Any) -> np.ndarray:
        """Features of inputs as the problem uses them: centred and normalised, shape (n, D)."""
        return (self.features(X) - self.grams.shift) * self.root_scale

    def column(self, j: int) -> FeatureProblem:
        """The problem of one output."""
        return FeatureProblem(self.features, self.sums, self.grams, self.target.column(j))

    @property
    def errors(self) -> np.ndarray:
        """Weighted traces of the errors of the normalised kernels, shape (p,)."""
        return np.asarray(self.grams.scale * self.sums.errors)

    def best_ridge(
        self,
        theta: np.ndarray,
        X: Any,
        Y: np.ndarray,
        fit_intercept: bool,
        sample_weight: np.ndarray | None = None,
    ) -> float:
        """The ridge constant with the smallest leave-one-out error at some of the rows."""
        root = np.sqrt(theta)[self.grams.owner]
        used = np.flatnonzero(root)
        omega = self.grams.omega
        F, Z = self.grams.U[:, used] * root[used], self.as_used(X)[:, used] * root[used]
        T, targets = self.target.Y, Y
        if fit_intercept:
            mean, level = omega @ F / omega.sum(), omega @ T / omega.sum()
            F, Z, T, targets = F - mean, Z - mean, T - level, targets - level
        weights = np.sqrt(omega)[:, None]
        return best_ridge_of_rows(
            weights * F,
            weights * T,
            self.sums.weight,
            Z,
            targets,
            fit_intercept,
            sample_weight,
        )


@dataclass(frozen=True)
class Learned:
    """A solution in features, with the quantities that certificates and probabilities need.

    Attributes
    ----------
    solution : Solution
        Its coefficients are those of the small sample, or zero.
    rule : Regulariser
    expansion : FeatureExpansion
    slopes : array of shape (D, t)
        Slopes of the centred and normalised features.
    dual : DualValue
        Dual value of the coefficients of all rows, for the features.
    curvatures : array of shape (t, D + 1, D + 1) or None
        Second derivative of the loss in the slopes and (last) the intercept; None for the squared
        loss, where it follows from the sums.
    width : float
        Smoothing width of kinks of the loss at which curvatures were computed.
    """

    solution: Solution
    rule: Regulariser
    expansion: Expansion
    slopes: np.ndarray
    dual: DualValue
    curvatures: np.ndarray | None = None
    width: float = 0.0

    def distance(self, learner: Learner, errors: np.ndarray) -> float:
        """A proven upper bound of the objective minus the optimum of the exact problem."""
        lower = self.dual.lower_bound(self.rule, self.solution.kernel_weights, errors)
        return max(self.solution.machine.objective - learner.unit * lower, 0.0)


@dataclass(frozen=True)
class HeldRows:
    """Features of some rows in memory: of a random sample, or of all rows.

    Attributes
    ----------
    n : int
        Their number.
    reduce : callable
        A pass over these rows.
    factor : float
        Factor of their weights with which they represent all rows.
    all : bool
        Whether these are all rows.
    """

    n: int
    reduce: Reduce
    factor: float
    all: bool


def rule_of(weighting: Weighting, problem: FeatureProblem, theta: np.ndarray) -> Regulariser:
    """The regulariser of a joint rule, or that of given kernel weights."""
    if isinstance(weighting, JointWeighting):
        return regulariser_of(weighting, problem.grams, problem.target)
    return FixedWeights(theta)


def learned_from_sums(
    problem: FeatureProblem, solution: Solution, weighting: Weighting, learner: Ridge
) -> Learned:
    """A solution of ridge regression on the small sample, as `Learned`."""
    grams, target, theta = problem.grams, problem.target, solution.kernel_weights
    alpha, omega = learner._fixed_alpha(), problem.grams.omega
    coef = solution.machine.coef
    inner = grams.U.T @ coef
    slopes = theta[grams.owner][:, None] * inner
    a = np.bincount(grams.owner, np.sum(inner**2, axis=1), minlength=grams.p)
    # s = omega r / alpha: q = sum omega r^2 / alpha^2, the same on all rows and the small sample.
    q = float(np.sum(coef**2 / omega[:, None]))
    Y = target.Y - (omega @ target.Y / omega.sum() if learner.fit_intercept else 0.0)
    dual = DualValue(float(np.sum(coef * Y)), 0.5 * alpha * q, a, q)
    expansion = grams.expand(theta, coef)
    return Learned(solution, rule_of(weighting, problem, theta), expansion, slopes, dual)


def learn_by_passes(
    problem: FeatureProblem,
    weighting: Weighting,
    learner: Learner,
    reduce: Reduce,
    encode: Callable[[Any], tuple[np.ndarray, np.ndarray | None]],
    products: Products,
    held: HeldRows,
    *,
    tol: float,
    report: Report | None = None,
) -> Learned:
    """Kernel weights and predictor for a loss whose sums depend on the predictor.

    Steps on rows that are held in memory come first. Unless these are all rows, passes over all
    rows continue from there, and the held rows choose the lengths of their steps.
    """
    grams, target = problem.grams, problem.target
    refuse_constant_kernels(grams)
    summary = grams.summary(target.Y, products=weighting.needs_products)
    if isinstance(weighting, LpNorm) and not weighting.squared:
        raise ValueError(
            f"{weighting!r} with approximation=... needs loss='squared': in passes over rows, "
            "other losses work only with squared norms. Use squared=True, or loss='squared'."
        )
    rule: Regulariser
    first: list[dict[str, Any]] = []
    with one_blas_thread(grams.n):
        if isinstance(weighting, JointWeighting):
            rule = regulariser_of(weighting, grams, target, summary)
            theta = rule.start()
        else:
            theta, first = weighting.weigh(grams, target, learner, summary)
            rule = FixedWeights(theta)
            if np.any(theta < 0):
                raise ValueError(
                    f"{weighting!r} gives negative kernel weights, so the learned kernel has no "
                    "features. Use a rule with non-negative weights, or loss='squared'."
                )
    cost = float(learner.costs(Target(np.zeros((1, 1)), learner.kind))[0])
    gram = grams.combine(theta)
    fit_intercept = learner.fit_intercept
    with ignoring(ConvergenceWarning):  # a start need not be accurate
        begin = Ridge(1.0 / cost, fit_intercept=fit_intercept).fit(gram, target)
    slopes = theta[grams.owner][:, None] * (grams.U.T @ begin.coef)
    start = Point(slopes, begin.intercept, theta)
    unit = 1.0
    if learner.kind == "regression":  # in the unit of the outputs; all rows weigh the same here
        unit = float(np.sqrt(np.mean(np.var(target.Y, axis=0))))

    def loss_at(
        features: FeatureMap | None, factor: float, point: Point, before: Point, width: float
    ) -> LossOfChunk:
        return LossOfChunk(
            features,
            grams.shift,
            problem.root_scale,
            encode,
            products,
            learner.loss,
            factor * cost,
            width,
            point,
            before,
        )

    def pass_over_held(*at: Any) -> LossSums:
        found: LossSums = held.reduce(loss_at(None, held.factor, *at))
        return found

    def pass_over_all(*at: Any) -> LossSums:
        found: LossSums = reduce(loss_at(problem.features, 1.0, *at))
        return found

    def along_step(before: Point, point: Point, width: float) -> np.ndarray:
        at = loss_at(None, held.factor, point, before, width)
        return np.asarray(held.reduce(at.along_step))

    find = partial(
        find_by_passes,
        rule=rule,
        owner=grams.owner,
        loss=learner.loss,
        unit=unit,
        fit_intercept=fit_intercept,
    )
    if held.all:
        found = find(pass_over_held, start=start, tol=tol, max_passes=MAX_HELD_STEPS, report=report)
    elif held.n < MIN_ROWS_PER_FEATURE * len(grams.owner):
        found = find(pass_over_all, start=start, tol=tol, report=report)
    else:
        enough = max(tol, HELD_TOLERANCE)
        near = find(pass_over_held, start=start, tol=enough, max_passes=MAX_HELD_STEPS)
        # Decision values at the minimum of the held rows are off by an amount of this order.
        off = unit * float(np.sqrt(len(grams.owner) / held.n)) / 3.0
        found = find(
            pass_over_all,
            start=near.point,
            width=max(near.width, off),
            along_step=along_step,
            tol=tol,
            report=report,
        )
    return _as_learned(problem, found, rule, learner, summary, first, cost)


def _as_learned(
    problem: FeatureProblem,
    found: FoundByPasses,
    rule: Regulariser,
    learner: Learner,
    summary: Any,
    first: list[dict[str, Any]],
    cost: float,
) -> Learned:
    grams, point, sums = problem.grams, found.point, found.sums
    machine = Machine(
        np.zeros((grams.n, point.u.shape[1])),
        point.b,
        found.primal * learner.unit,
        found.relative_gap,
        len(found.history),
    )
    gram = grams.combine(point.theta)
    aligned = combined_alignment(Found(point.theta, machine, gram, []), summary, problem.target)
    solution = Solution(
        point.theta, machine, aligned, summary.alignments, first + found.history, grams
    )
    slopes = problem.root_scale[:, None] * point.u
    expansion = FeatureExpansion(problem.features, grams.shift, slopes)
    found_dual = found.coefficients
    # |s_i| <= cost omega_i, so that s_i^2 / omega_i <= cost |s_i|.
    a, q = found_dual.squares(grams.owner, grams.p), cost * found_dual.size
    dual = DualValue(found_dual.loss, 0.0, a, q)
    return Learned(solution, rule, expansion, point.u, dual, sums.curvature, found.width)


def values_of_rows_without_them(
    problem: FeatureProblem,
    learned: Learned,
    learner: Learner,
    X: Any,
    Y: np.ndarray,
    factors: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Leave-one-out decision values of some rows, by one Newton step, shape (m, t).

    Without an intercept, values for centred features are those of features that are centred without
    the row.

    Parameters
    ----------
    factors : array of shape (m,), optional
        The parts of the weights of the rows that are left out, times the factors of their classes;
        by default they are one.
    weights : array of shape (m,), optional
        The weights of the rows, times these factors; by default they are one.
    """
    theta = learned.solution.kernel_weights
    used = np.flatnonzero(theta[problem.grams.owner] > 0)
    root = np.sqrt(theta[problem.grams.owner[used]])
    Z = problem.as_used(X)
    values = Z @ learned.slopes + learned.solution.machine.intercept
    cost = float(learner.costs(Target(np.zeros((1, 1)), learner.kind))[0])
    C = np.full(len(Y), cost) if factors is None else cost * factors
    if isinstance(learner, Ridge):
        s, bends = C[:, None] * (Y - values), np.repeat(C[:, None], values.shape[1], axis=1)
    else:
        _, s, bends = smooth(learner.loss, values, Y, C, max(learned.width, 1e-12))
    W = np.column_stack([Z[:, used] * root, np.ones(len(Z))])
    scale = np.append(root, 1.0)
    index = np.append(used, len(problem.grams.owner))
    out = np.empty_like(values)
    curvatures = learned.curvatures
    if curvatures is None:
        U = np.column_stack([problem.grams.U, np.ones(problem.grams.n)])
        same = U.T @ ((cost * problem.grams.omega)[:, None] * U)
        curvatures = np.broadcast_to(same, (values.shape[1], *same.shape))
    unit = 1.0 if learner.kind == "classification" else float(Y.std())
    centred = is_centred(problem.grams.combine(theta), problem.target)
    parts = np.ones(len(Y)) if factors is None else factors
    shares = np.ones(len(Y)) if weights is None else weights
    every = s * (shares / parts)[:, None]
    gradients = np.zeros((W.shape[1], values.shape[1]))
    if isinstance(learner, Ridge):
        left = problem.target.Y - problem.grams.U @ learned.slopes
        totals = cost * (problem.grams.omega @ left)
    else:
        totals = every.sum(axis=0) * (problem.sums.weight / shares.sum())
        if len(Y) == problem.sums.n:
            gradients = -W.T @ every
            gradients[:-1] += learned.slopes[used] / root[:, None]
    for j, b in enumerate(learned.solution.machine.intercept):
        A = curvatures[j][np.ix_(index, index)] * np.outer(scale, scale)
        A[np.arange(len(used)), np.arange(len(used))] += 1.0
        # Where curvatures are so small that one row would move the intercept by more than a unit,
        # they do not say how it would change.
        free = learner.fit_intercept and A[-1, -1] * unit > cost
        at = s[:, j], bends[:, j], gradients[:, j]
        if centred and not free:
            total = float(totals[j]), problem.sums.weight
            out[:, j] = b + centred_values_without(W, A, values[:, j] - b, *at, parts, total)
        elif free:
            A[-1, -1] += 1e-10 * max(A[-1, -1], 1.0)
            out[:, j] = values_without(W, A, values[:, j], *at)
        else:
            part = A[:-1, :-1]
            out[:, j] = values_without(W[:, :-1], part, values[:, j], *at[:2], at[2][:-1])
    return out


@dataclass(frozen=True)
class SampleWeights:
    """Kernel weights that a rule has learned from the exact kernels on some rows.

    Attributes
    ----------
    kernel_weights : array of shape (p,)
        Weights of the kernels as centred and normalised on these rows.
    scales : array of shape (p,)
        The factors that normalised them.
    alignments : array of shape (p,)
        Alignments of the kernels with the target on these rows.
    history : list of dict
    total_weight : float
        Total weight of these rows.
    extensive : bool
        Whether the factors fall with the number of rows, as those of traces and norms do.
    """

    kernel_weights: np.ndarray
    scales: np.ndarray
    alignments: np.ndarray
    history: list[dict[str, Any]]
    total_weight: float
    extensive: bool

    @classmethod
    def learn(
        cls, weighting: Weighting, exact: Grams, target: Target, learner: Learner
    ) -> SampleWeights:
        refuse_constant_kernels(exact)
        with one_blas_thread(exact.n, MAX_ONE_THREAD_SAMPLES):
            kernel_weights, history = weighting.weigh(exact, target, learner)
            alignments = exact.summary(target.Y, products=False).alignments
        extensive = exact.how in EXTENSIVE
        return cls(kernel_weights, exact.scales, alignments, history, exact.total_weight, extensive)

    @property
    def of_kernels(self) -> np.ndarray:
        """The weights of the kernels as they are, neither centred nor normalised."""
        return np.asarray(self.kernel_weights * self.scales)

    def growth(self, total_weight: float) -> float:
        """The factor by which the scales change on a sample of this total weight."""
        return self.total_weight / total_weight if self.extensive else 1.0

    def on(self, problem: FeatureProblem) -> GivenWeights:
        """These weights as a rule, for kernels normalised on all rows."""
        scales = problem.grams.scales
        raw = self.of_kernels * self.growth(problem.sums.weight)
        weights = np.divide(raw, scales, out=np.zeros_like(raw), where=scales > 0)
        return GivenWeights(weights, tuple(self.history))
