"""Hinge, epsilon-insensitive and logistic losses by Newton steps, each one pass over the rows.

    min_{theta, u, b}  R(theta, u) + sum_i C_i l(u'z_i + b, y_i),     z_i the features of row i

with ``R = 1/2 sum_k ||u_k||^2 / theta_k`` for fixed kernel weights, or the regulariser of a joint
rule. A pass at (u, b) adds up the loss, the products ``sum s_i z_i`` with the coefficients
``s_i = -C_i l'``, and the curvature ``sum C_i l'' z_i z_i'``. From these

* primal value: R(theta, u) plus the loss itself, not smoothed;
* dual value: ``sum -C_i l*(-s_i / C_i) - R*(a)``, ``a_k = ||sum_i s_i z_ik||^2``. For an intercept
  the coefficients must sum to zero: the larger side is multiplied by a factor below one, which
  keeps them within their bounds. ``-l*`` is concave and zero at zero, so that the dual value of
  that side falls by no more than the same factor;
* the next step: the minimum of the quadratic model over u, b and, for joint rules, theta.

The best primal and the best dual value of all passes bound the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...grams.lowrank.features import FeatureMap
from ...grams.lowrank.products import Products
from ...grams.lowrank.sums import blocks, combined_weights
from ...problem.losses import Logistic, Loss
from ...problem.regularisers import Regulariser
from ..certificate import Report, record, relative_to
from .smooth import smooth

#: Fractions of a Newton step whose objectives are compared in one pass.
STEPS = np.array([1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.0])
#: Kinks of the loss are smoothed over this width at first, in units of the decision values. Once
#: the gap is at most EXPLAINED times the gap due to smoothing, the width shrinks by a factor in
#: this range.
FIRST_WIDTH, EXPLAINED, WIDTH_FACTORS = 1.0, 3.0, (0.2, 0.5)
#: Limit on alternations of u and theta for one quadratic model, and the relative change of theta at
#: which they end.
MAX_ALTERNATIONS, THETA_PRECISION = 40, 1e-5
#: Ridge on the change of the intercept, relative to the sum of absolute coefficients: without it,
#: the step is undetermined where the loss has no curvature.
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


@dataclass
class LossSums:
    """Sums of one pass; those that end in ``_up`` are over positive coefficients.

    Attributes
    ----------
    loss : float
        The loss at the point.
    rounding : float
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
    rounding: float
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
        Y, factors = self.encode(y)
        omega = combined_weights(sample_weight, factors)
        C = self.cost * (np.ones(len(Y)) if omega is None else omega)
        cut = blocks(X.shape[0], len(self.shift))
        total = self._block(X[cut[0]], Y[cut[0]], C[cut[0]])
        for rows in cut[1:]:
            total = total + self._block(X[rows], Y[rows], C[rows])
        return total

    def _block(self, X: Any, Y: np.ndarray, C: np.ndarray) -> LossSums:
        Z = np.empty((X.shape[0], len(self.shift) + 1))
        Phi = X if self.features is None else self.features(X)
        Z[:, :-1] = (Phi - self.shift) * self.root_scale
        Z[:, -1] = 1.0
        counted = C > 0
        if not np.all(counted):
            Z, Y, C = Z[counted], Y[counted], C[counted]
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
        return LossSums(
            float(self.loss.value(F, Y, C).sum()),
            0.5 * self.width * float(np.sum(np.abs(s) * (1.0 - np.abs(s) / C[:, None]))),
            np.array(values),
            Z[:, :-1].T @ up,
            Z[:, :-1].T @ down,
            up.sum(axis=0),
            down.sum(axis=0),
            self.loss.dual(up, Y, C),
            self.loss.dual(down, Y, C),
            curvature,
        )


@dataclass(frozen=True)
class FoundByPasses:
    """Kernel weights and predictor, with the gap that the passes have proven."""

    point: Point
    primal: float
    dual: float
    history: list[dict[str, Any]]
    sums: LossSums
    width: float

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
    """
    before = point = start
    kept_width = True  # whether the last step minimised the model of the current smoothing width
    width = unit * FIRST_WIDTH if width is None else width
    best: Point | None = None
    primal, dual, best_sums, best_width = np.inf, -np.inf, None, width
    history: list[dict[str, Any]] = []
    smooth_loss = isinstance(loss, Logistic)
    for _ in range(max_passes):
        sums = make_pass(point, before, width)
        value = rule.primal(point.theta, forms(point, owner)) + sums.loss
        if value < primal:
            primal, best, best_sums, best_width = value, point, sums, width
        own_dual = dual_value(sums, rule, point.theta, owner, fit_intercept)
        dual = max(dual, own_dual)
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
        rounded = np.array([rule.primal(q.theta, forms(q, owner)) for q in parts]) + sums.values
        gained = rounded[-1] - rounded[0] if point is not before else np.inf
        if gained < 0:
            point = parts[int(np.argmin(rounded[:-1] if kept_width else rounded))]
            kept_width = True
            continue
        kept_width = True
        if not smooth_loss and value - own_dual <= EXPLAINED * sums.rounding:
            # The remaining gap comes from smoothing and is proportional to its width.
            aim = 0.5 * tol * abs(primal) / max(sums.rounding, 1e-300)
            width *= float(np.clip(aim, *WIDTH_FACTORS))
            kept_width = False
        before, point = point, model_minimum(sums, rule, point, owner, fit_intercept)
    assert best is not None and best_sums is not None
    return FoundByPasses(best, primal, dual, history, best_sums, best_width)


def by_kernel(values: np.ndarray, owner: np.ndarray, p: int) -> np.ndarray:
    """Sums over features of each kernel and over outputs, for values (D, t)."""
    return np.bincount(owner, values.sum(axis=1), minlength=p)


def forms(point: Point, owner: np.ndarray) -> np.ndarray:
    """``a_k = (||u_k|| / theta_k)^2``, zero where theta_k is."""
    theta = point.theta
    squares = by_kernel(point.u**2, owner, len(theta))
    return np.divide(squares, theta**2, out=np.zeros_like(squares), where=theta > 0)


def dual_value(
    sums: LossSums, rule: Regulariser, theta: np.ndarray, owner: np.ndarray, fit_intercept: bool
) -> float:
    """A lower bound of the optimum from the coefficients of one pass."""
    loss_dual, products, _ = balanced_sums(sums, fit_intercept)
    return loss_dual - rule.dual(theta, by_kernel(products**2, owner, len(theta)))


def balanced_sums(sums: LossSums, fit_intercept: bool) -> tuple[float, np.ndarray, float]:
    """Dual value of the losses, products (D, t) and sum of absolute values of the coefficients.

    With an intercept the larger side is scaled down, so that the coefficients sum to zero.
    """
    up, down = np.ones(len(sums.total_up)), np.ones(len(sums.total_up))
    if fit_intercept:
        positive, negative = sums.total_up, -sums.total_down
        smaller = np.minimum(positive, negative)
        up = np.divide(smaller, positive, out=np.zeros_like(up), where=positive > 0)
        down = np.divide(smaller, negative, out=np.zeros_like(down), where=negative > 0)
    loss_dual = float(up @ sums.dual_up + down @ sums.dual_down)
    size = float(up @ sums.total_up - down @ sums.total_down)
    return loss_dual, up * sums.up + down * sums.down, size


def model_minimum(
    sums: LossSums, rule: Regulariser, point: Point, owner: np.ndarray, fit_intercept: bool
) -> Point:
    """The minimum of the quadratic model of the loss plus the regulariser."""
    D, t = point.u.shape
    size = D + 1 if fit_intercept else D
    # Minus the gradient of the model at zero, from its gradient and curvature at the point.
    rights, curvatures = [], []
    for j in range(t):
        H = sums.curvature[j, :size, :size].copy()
        if fit_intercept:
            H[-1, -1] += INTERCEPT_RIDGE * (sums.total_up[j] - sums.total_down[j])
            if H[-1, -1] <= 0.0:  # all coefficients are zero: keep the intercept
                H[-1, -1] = 1.0
        here = np.append(point.u[:, j], point.b[j])[:size]
        slope = np.append(sums.up[:, j] + sums.down[:, j], sums.total_up[j] + sums.total_down[j])
        rights.append(slope[:size] + H @ here)
        curvatures.append(H)
    theta, moved = point.theta, point
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
        new = rule.update(theta, forms(moved, owner))
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
