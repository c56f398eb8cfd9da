"""Hinge, epsilon-insensitive and logistic losses by Newton steps, each one pass over the rows.

    min_{theta, u, b}  R(theta, u) + sum_i C_i l(u'z_i + b, y_i),     z_i the features of row i

with ``R = 1/2 sum_k ||u_k||^2 / theta_k`` for fixed kernel weights, or the regulariser of a joint
rule. A pass at (u, b) adds up the loss, the products ``sum s_i z_i`` with the coefficients
``s_i = -C_i l'``, and the curvature ``sum C_i l'' z_i z_i'``. From these

* primal value: R(theta, u) plus the loss itself, not smoothed;
* dual value: the largest one of combinations of the coefficients of the last passes (`dual`);
* the next step: the minimum of the quadratic model over u, b and, for joint rules, theta.

The best primal and the best dual value of all passes bound the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._threads import one_blas_thread
from ...grams.lowrank.features import FeatureMap
from ...grams.lowrank.products import Products
from ...grams.lowrank.sums import blocks, combined_weights
from ...problem.losses import Logistic, Loss
from ...problem.regularisers import Regulariser
from ..certificate import Report, record, relative_to
from .dual import DualPoint, PassedDuals
from .smooth import smooth

#: Fractions of a Newton step whose objectives are compared in one pass.
STEPS = np.array([1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.0])
#: Lengths of a step, in units of a Newton step, that are compared on some rows before a pass.
LENGTHS = np.sort(np.append(np.logspace(-3, 0.3, 40), 1.0))
#: Kinks of the loss are smoothed over this width at first, in units of the decision values. Once
#: the gap is at most EXPLAINED times the gap due to smoothing, the width shrinks by a factor in
#: this range.
FIRST_WIDTH, EXPLAINED, WIDTH_FACTORS = 1.0, 3.0, (0.2, 0.5)
#: Limit on alternations of u and theta for one quadratic model, and the relative change of theta at
#: which they end.
MAX_ALTERNATIONS, THETA_PRECISION = 40, 1e-5
#: Weights of a joint rule begin at no less than this fraction of the largest one: alternations
#: multiply weights.
MIN_START = 1e-3
#: Ridge on the change of the intercept, relative to the sum of absolute coefficients over the unit
#: of decision values: without it, the step is undetermined where the loss has no curvature.
INTERCEPT_RIDGE = 1e-4
#: Limit on passes over the rows.
MAX_PASSES = 20


@dataclass(frozen=True)
class FixedWeights:
    """``1/2 sum_k ||u_k||^2 / theta_k`` for kernel weights that are given."""

    theta: np.ndarray
    mixing: float = 0.0

    def start(self) -> np.ndarray:
        return self.theta

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        return theta

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * float(theta @ a)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * float(self.theta @ a)


@dataclass(frozen=True)
class Point:
    """Slopes u (D, t) of centred and normalised features, intercepts b (t,), weights theta (p,)."""

    u: np.ndarray
    b: np.ndarray
    theta: np.ndarray

    def towards(self, other: Point, part: float) -> Point:
        """The point at this fraction of the segment to another point."""
        return Point(
            self.u + part * (other.u - self.u),
            self.b + part * (other.b - self.b),
            self.theta + part * (other.theta - self.theta),
        )

    def step(self, other: Point, length: float, owner: np.ndarray) -> Point:
        """The point at this multiple of the segment; kernel weights stop at the other point.

        Beyond it they might be negative.
        """
        far = self.towards(other, length)
        if length < 1.0:
            return far
        used = (other.theta > 0)[owner][:, None]
        return Point(np.where(used, far.u, 0.0), far.b, other.theta)


@dataclass
class LossSums:
    """Sums of one pass; those that end in ``_up`` are over positive coefficients.

    Attributes
    ----------
    loss : float
        The loss at the point.
    smoothing : float
        The duality gap due to smoothed kinks, at the optimum of the smoothed loss.
    values : array of shape (len(STEPS),)
        The smoothed loss at the fractions STEPS of the last step.
    up, down : arrays of shape (D, t)
        ``sum s_i z_i`` over positive and over negative coefficients.
    total_up, total_down, dual_up, dual_down : arrays of shape (t,)
        Sums of the coefficients, and of the dual values of the losses.
    curvature : array of shape (t, D + 1, D + 1)
        Second derivative of the smoothed loss; the intercept is last.
    """

    loss: float
    smoothing: float
    values: np.ndarray
    up: np.ndarray
    down: np.ndarray
    total_up: np.ndarray
    total_down: np.ndarray
    dual_up: np.ndarray
    dual_down: np.ndarray
    curvature: np.ndarray

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(*(getattr(self, f) + getattr(other, f) for f in self.__dataclass_fields__))


@dataclass(frozen=True)
class LossOfChunk:
    """Maps a chunk to the sums at a point; ``before`` is the point before the last step.

    Without a feature map the rows are features already.
    """

    features: FeatureMap | None
    shift: np.ndarray
    root_scale: np.ndarray
    encode: Callable[[Any], tuple[np.ndarray, np.ndarray | None]]
    products: Products
    loss: Loss
    cost: float
    width: float
    point: Point
    before: Point

    def __call__(self, chunk: Any) -> LossSums:
        X, y, sample_weight = chunk
        Y, C = self._targets_and_costs(y, sample_weight)
        cut = blocks(X.shape[0], len(self.shift))
        total = self._block(X[cut[0]], Y[cut[0]], C[cut[0]])
        for rows in cut[1:]:
            total = total + self._block(X[rows], Y[rows], C[rows])
        return total

    def along_step(self, chunk: Any) -> np.ndarray:
        """The smoothed loss at the fractions LENGTHS of the step, less its linear part.

        A pass over all rows gives the linear part exactly. So some rows suffice to choose the
        length of a step before the next pass over all of them.
        """
        X, y, sample_weight = chunk
        Z, Y, C = self._features_of(X, *self._targets_and_costs(y, sample_weight))
        start = Z[:, :-1] @ self.before.u + self.before.b
        step = Z[:, :-1] @ self.point.u + self.point.b - start
        s = smooth(self.loss, start, Y, C, self.width)[1]
        values = [smooth(self.loss, start + t * step, Y, C, self.width)[0].sum() for t in LENGTHS]
        return np.array(values) + LENGTHS * float(np.sum(s * step))

    def _targets_and_costs(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        Y, factors = self.encode(y)
        omega = combined_weights(sample_weight, factors)
        return Y, self.cost * (np.ones(len(Y)) if omega is None else omega)

    def _features_of(
        self, X: Any, Y: np.ndarray, C: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centred and normalised features and a one for the intercept, of rows that count."""
        Z = np.empty((X.shape[0], len(self.shift) + 1))
        Phi = X if self.features is None else self.features(X)
        Z[:, :-1] = (Phi - self.shift) * self.root_scale
        Z[:, -1] = 1.0
        counted = C > 0
        return (Z, Y, C) if np.all(counted) else (Z[counted], Y[counted], C[counted])

    def _block(self, X: Any, Y: np.ndarray, C: np.ndarray) -> LossSums:
        Z, Y, C = self._features_of(X, Y, C)
        F = Z[:, :-1] @ self.point.u + self.point.b
        start = Z[:, :-1] @ self.before.u + self.before.b
        values = [
            float(smooth(self.loss, start + part * (F - start), Y, C, self.width)[0].sum())
            for part in STEPS
        ]
        _, s, bends = smooth(self.loss, F, Y, C, self.width)
        up, down = np.maximum(s, 0.0), np.minimum(s, 0.0)
        curvature = np.empty((s.shape[1], Z.shape[1], Z.shape[1]))
        for j, bend in enumerate(bends.T):
            used = np.flatnonzero(bend)
            curvature[j] = self.products(Z[used], np.ascontiguousarray(bend[used]))
        value = float(self.loss.value(F, Y, C).sum())
        dual_up, dual_down = self.loss.dual(up, Y, C), self.loss.dual(down, Y, C)
        return LossSums(
            value,
            value + float(np.sum(s * F) - dual_up.sum() - dual_down.sum()),
            np.array(values),
            Z[:, :-1].T @ up,
            Z[:, :-1].T @ down,
            up.sum(axis=0),
            down.sum(axis=0),
            dual_up,
            dual_down,
            curvature,
        )


@dataclass(frozen=True)
class FoundByPasses:
    """Kernel weights and predictor, with the gap that the passes have proven.

    Attributes
    ----------
    point : Point
        The one with the smallest objective.
    primal, dual : float
        Its objective, and the largest dual value of all passes.
    history : list of dict
    sums : LossSums
        Those of `point`, with smoothing `width`.
    width : float
    coefficients : DualPoint
        Those with the largest dual value.
    """

    point: Point
    primal: float
    dual: float
    history: list[dict[str, Any]]
    sums: LossSums
    width: float
    coefficients: DualPoint

    @property
    def relative_gap(self) -> float:
        return relative_to(self.primal, max(self.primal - self.dual, 0.0))


def find_by_passes(
    make_pass: Callable[[Point, Point, float], LossSums],
    rule: Regulariser,
    start: Point,
    owner: np.ndarray,
    loss: Loss,
    *,
    unit: float,
    tol: float,
    fit_intercept: bool,
    width: float | None = None,
    along_step: Callable[[Point, Point, float], np.ndarray] | None = None,
    max_passes: int = MAX_PASSES,
    report: Report | None = None,
) -> FoundByPasses:
    """The best point of at most ``max_passes`` passes, each one a Newton step.

    Parameters
    ----------
    make_pass : callable
        ``make_pass(point, before, width)`` returns the sums of a pass over all rows.
    rule : Regulariser
    start : Point
    owner : array of shape (D,)
        The kernel of each feature.
    unit : float
        The scale of decision values, for the first smoothing width.
    tol : float
        Relative duality gap to reach.
    width : float, optional
        The first smoothing width of kinks.
    along_step : callable, optional
        ``along_step(before, point, width)`` returns `LossOfChunk.along_step` on some rows, from
        which the length of every step is chosen. Without it, all steps are tried in full.
    """
    before = point = start
    kept_width = True  # whether the last step minimised the model of the current smoothing width
    width = unit * FIRST_WIDTH if width is None else width
    best: Point | None = None
    best_sums: LossSums | None = None
    coefficients: DualPoint | None = None
    duals = PassedDuals(fit_intercept)
    primal, dual, best_width = np.inf, -np.inf, width
    history: list[dict[str, Any]] = []
    smooth_loss = isinstance(loss, Logistic)
    for _ in range(max_passes):
        sums = make_pass(point, before, width)
        value = rule.primal(point.theta, forms(point, owner)) + sums.loss
        if value < primal:
            primal, best, best_sums, best_width = value, point, sums, width
        with one_blas_thread(len(owner)):
            combined = duals.add(sums), duals.best(point.theta, owner)
        for found in combined:
            bound = found.value(rule, point.theta, owner)
            if bound > dual:
                dual, coefficients = bound, found
        gap = relative_to(primal, max(primal - dual, 0.0))
        entry = {
            "objective": primal,
            "gap": gap,
            "active": int(np.count_nonzero(point.theta)),
            "support": 0,
        }
        record(history, entry, report)
        if gap <= tol:
            break
        # Smoothed objective at fractions of the last step: shorten the step if it has risen.
        parts = [before.towards(point, part) for part in STEPS]
        smoothed = np.array([rule.primal(q.theta, forms(q, owner)) for q in parts]) + sums.values
        gained = smoothed[-1] - smoothed[0] if point is not before else np.inf
        if gained < 0 and kept_width:
            point = parts[int(np.argmin(smoothed[:-1]))]
            continue
        kept_width, width_of_sums = True, width
        if not smooth_loss and value - dual <= EXPLAINED * sums.smoothing:
            # The remaining gap comes from smoothing. It is proportional to the square of the width:
            # fewer samples are near a kink, and each of them adds less.
            aim = 0.5 * tol * abs(primal) / max(sums.smoothing, 1e-300)
            width *= float(np.clip(np.sqrt(aim), *WIDTH_FACTORS))
            kept_width = False
        with one_blas_thread(len(owner)):
            before, point = point, model_minimum(sums, rule, point, owner, fit_intercept, unit)
        if along_step is not None:
            values = along_step(before, point, width_of_sums)
            slope = np.sum((sums.up + sums.down) * (point.u - before.u))
            slope += np.sum((sums.total_up + sums.total_down) * (point.b - before.b))
            parts = [before.step(point, part, owner) for part in LENGTHS.tolist()]
            expected = [rule.primal(q.theta, forms(q, owner)) for q in parts]
            point = parts[int(np.argmin(expected + values - LENGTHS * slope))]
    assert best is not None and best_sums is not None and coefficients is not None
    return FoundByPasses(best, primal, dual, history, best_sums, best_width, coefficients)


def by_kernel(values: np.ndarray, owner: np.ndarray, p: int) -> np.ndarray:
    """Sums over features of each kernel and over outputs, for values (D, t)."""
    return np.bincount(owner, values.sum(axis=1), minlength=p)


def forms(point: Point, owner: np.ndarray) -> np.ndarray:
    """``a_k = (||u_k|| / theta_k)^2``, zero where theta_k is."""
    theta = point.theta
    out = by_kernel(point.u**2, owner, len(theta))
    for _ in range(2):  # the square of a tiny weight would be zero
        np.divide(out, theta, out=out, where=theta > 0)
    return np.where(theta > 0, out, 0.0)


def model_minimum(
    sums: LossSums,
    rule: Regulariser,
    point: Point,
    owner: np.ndarray,
    fit_intercept: bool,
    unit: float,
) -> Point:
    """The minimum of the quadratic model of the loss plus the regulariser."""
    D, t = point.u.shape
    size = D + 1 if fit_intercept else D
    # Minus the gradient of the model at zero, from its gradient and curvature at the point.
    rights, curvatures = [], []
    for j in range(t):
        H = sums.curvature[j, :size, :size].copy()
        if fit_intercept:
            H[-1, -1] += INTERCEPT_RIDGE / unit * (sums.total_up[j] - sums.total_down[j])
            if H[-1, -1] <= 0.0:  # all coefficients are zero: keep the intercept
                H[-1, -1] = 1.0
        here = np.append(point.u[:, j], point.b[j])[:size]
        slope = np.append(sums.up[:, j] + sums.down[:, j], sums.total_up[j] + sums.total_down[j])
        rights.append(slope[:size] + H @ here)
        curvatures.append(H)
    theta, moved, kept = point.theta, point, None
    if not isinstance(rule, FixedWeights):  # smaller weights would grow too slowly
        theta = np.where(rule.start() > 0, np.maximum(theta, MIN_START * theta.max()), 0.0)
    for _ in range(MAX_ALTERNATIONS):
        used = np.flatnonzero(theta[owner] > 0)
        root = np.sqrt(theta[owner[used]])
        u, b = np.zeros((D, t)), point.b.copy()
        for j in range(t):
            solved = _solve(curvatures[j], rights[j], used, root, D, fit_intercept)
            u[used, j] = root * solved[: len(used)]
            if fit_intercept:
                b[j] = solved[-1]
        moved = Point(u, b, theta)
        # As in alternation: rules with mixing respond to an average of the predictors.
        each = theta[owner][:, None]
        inner = np.divide(u, each, out=np.zeros_like(u), where=each > 0)
        kept = inner if kept is None else rule.mixing * kept + (1.0 - rule.mixing) * inner
        new = rule.update(theta, by_kernel(kept**2, owner, len(theta)))
        change = float(np.max(np.abs(new - theta))) / max(float(np.max(theta)), 1e-300)
        if change <= THETA_PRECISION:
            break
        theta = new
    return moved


def _solve(
    H: np.ndarray,
    right: np.ndarray,
    used: np.ndarray,
    root: np.ndarray,
    D: int,
    fit_intercept: bool,
) -> np.ndarray:
    """The slopes of used features in units of ``sqrt(theta)``, with the intercept last."""
    index = np.append(used, D) if fit_intercept else used
    scale = np.append(root, 1.0) if fit_intercept else root
    A = H[np.ix_(index, index)] * np.outer(scale, scale)
    A[np.arange(len(used)), np.arange(len(used))] += 1.0
    return np.asarray(cho_solve(cho_factor(A, check_finite=False), scale * right[index]))
