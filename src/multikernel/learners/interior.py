"""The dual of a support vector machine by an interior-point method, on small matrices.

The problem is that of :mod:`multikernel.learners.smo`,

    min_alpha 1/2 s'Ks + linear'alpha,   0 <= alpha_i <= C_i,   sign'alpha = delta

where the coefficient s_j of a sample is the sum of ``sign_i alpha_i`` over its variables. SMO may
take many millions of steps if C is large for the kernel, and even more if the kernel has low rank.
An interior-point method needs some thirty factorisations in all cases.

With multipliers z of ``alpha >= 0``, w of ``alpha <= C`` and the intercept b, it solves

    sign (K s + b) + linear - z + w = 0,   sign'alpha = delta,   alpha z = mu,   (C - alpha) w = mu

by Newton steps for smaller and smaller mu (Mehrotra, "On the implementation of a primal-dual
interior point method", SIAM Journal on Optimization 2, 1992). z, w and alpha are eliminated. With
``K = F F'``, a column of ones for the intercept in ``G = [F, 1]``, and ``D_j`` the sum of
``1 / (z_i / alpha_i + w_i / (C_i - alpha_i))`` over the variables of sample j, this leaves

    (diag(1, ..., 1, 0) + G'DG) x = G'e - (0, ..., 0, delta - sign'alpha)

for the changes ``x = (F'ds, db)``. Unlike the system ``K + D^-1`` for ds, it stays accurate for
kernels of low rank, whatever the range of D.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from .._threads import one_blas_thread
from ._plain_steps import PlainResult
from ._smo_dual import EPS, SignedDual

MAX_ITER = 100
#: The duality gap, relative to the objective, at which the method stops.
TOLERANCE = 1e-12
#: The method stops once the gap is this many times the smallest one: near the optimum, rounding
#: errors grow from step to step.
MAX_GAP_GROWTH = 1e3
#: Longest step, as a fraction of the distance to the boundary.
STEP_LIMIT = 0.99
#: The method stops after `MAX_SHORT_STEPS` steps in a row that are shorter than `MIN_STEP`.
MIN_STEP, MAX_SHORT_STEPS = 1e-4, 3


def interior_point(dual: SignedDual, K: np.ndarray, C: np.ndarray) -> PlainResult:
    """Feasible coefficients that solve a dual problem up to rounding errors.

    If C is large for the kernel, rounding leaves a relative duality gap of up to 1e-4.

    Parameters
    ----------
    dual : SignedDual
    K : array of shape (n, n)
        Positive semidefinite.
    C : array of shape (m,)
        The upper bounds of alpha.

    Returns
    -------
    result : PlainResult
    """
    alpha = np.zeros(len(dual.linear))
    free = np.flatnonzero(C > 0)
    point = free % len(K)
    used = np.unique(point)
    b, steps = 0.0, 0
    if len(free):
        place = np.searchsorted(used, point)
        own = K[np.ix_(used, used)]
        state = _InteriorIterate(
            own, dual.linear[free], dual.sign[free], C[free], place, dual.delta
        )
        with one_blas_thread(len(used)), np.errstate(all="ignore"):
            alpha[free], b, steps = state.run(dual.intercept)
    s = dual.start(alpha)
    values = K @ s
    alpha, _ = dual.unfold(s, values)
    return PlainResult(alpha, values, b, steps, "optimal")


class _InteriorIterate:
    """An iterate inside the box, its multipliers, and its Newton steps."""

    def __init__(
        self,
        K: np.ndarray,
        linear: np.ndarray,
        sign: np.ndarray,
        C: np.ndarray,
        point: np.ndarray,
        delta: float,
    ) -> None:
        self.K, self.linear, self.sign, self.C = K, linear, sign, C
        self.point, self.delta = point, delta
        values, vectors = eigh(K, check_finite=False)
        kept = values > len(K) * EPS * values[-1]
        self.F = vectors[:, kept] * np.sqrt(values[kept])
        # The middle of the box, with multipliers of the size of the gradient, so that all products
        # alpha z and (C - alpha) w are equal at the start.
        self.alpha, self.slack = 0.5 * C, 0.5 * C
        f = K @ self.sums(sign * self.alpha)
        size = float(np.abs(sign * f[point] + linear).max())
        self.z, self.w = size * C.max() / C, size * C.max() / C
        self.b = 0.0

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the variables of every sample."""
        return np.bincount(self.point, values, len(self.K))

    def run(self, intercept: bool) -> tuple[np.ndarray, float, int]:
        """The alpha and the intercept with the smallest duality gap, and the number of steps."""
        best, lowest, short = (self.alpha, self.b), np.inf, 0
        objective, steps = 0.0, 0
        while steps < MAX_ITER:
            s = self.sums(self.sign * self.alpha)
            f = self.K @ s
            gradient = self.sign * (f + self.b)[self.point] + self.linear
            stationarity = -(gradient - self.z + self.w)
            missing = self.delta - float(s.sum()) if intercept else 0.0
            products = float(self.alpha @ self.z + self.slack @ self.w)
            # The duality gap of alpha and b, plus a penalty for the error of the sum.
            gap = float(self.alpha @ np.maximum(gradient, 0.0))
            gap += float(self.slack @ np.maximum(-gradient, 0.0)) + abs(missing * self.b)
            if not gap <= MAX_GAP_GROWTH * lowest:
                break
            if gap < lowest:
                best, lowest = (self.alpha, self.b), gap
                objective = abs(0.5 * float(s @ f)) + abs(float(self.linear @ self.alpha))
            if gap <= TOLERANCE * objective:
                break
            try:
                length = self.step(
                    stationarity, missing, products / (2 * len(self.alpha)), intercept
                )
            except LinAlgError:
                break
            steps += 1
            short = short + 1 if length < MIN_STEP else 0
            if short >= MAX_SHORT_STEPS:
                break
        return *best, steps

    def step(self, stationarity: np.ndarray, missing: float, mu: float, intercept: bool) -> float:
        """Take one predictor-corrector step; return its length."""
        alpha, slack, z, w, sign, point = (
            self.alpha, self.slack, self.z, self.w, self.sign, self.point,
        )  # fmt: skip
        theta = z / alpha + w / slack
        D = self.sums(1.0 / theta)
        G = np.column_stack([self.F, np.ones(len(D))]) if intercept else self.F
        system = (G.T * D) @ G
        rank = self.F.shape[1]
        system[np.arange(rank), np.arange(rank)] += 1.0
        factor = cho_factor(system, overwrite_a=True, check_finite=False)

        def direction(to_z: np.ndarray, to_w: np.ndarray) -> tuple[np.ndarray, ...]:
            h = stationarity + to_z / alpha - to_w / slack
            right = G.T @ self.sums(sign * h / theta)
            right[rank:] -= missing
            x = cho_solve(factor, right, check_finite=False)
            change = (h - sign * (G @ x)[point]) / theta
            return change, (to_z - z * change) / alpha, (to_w + w * change) / slack, x[rank:].sum()

        def longest(change: np.ndarray, dz: np.ndarray, dw: np.ndarray) -> tuple[float, float]:
            return (
                min(_to_zero(alpha, change), _to_zero(slack, -change)),
                min(_to_zero(z, dz), _to_zero(w, dw)),
            )

        change, dz, dw, _ = direction(-alpha * z, -slack * w)
        primal, dual = longest(change, dz, dw)
        after = (alpha + primal * change) @ (z + dual * dz)
        after += (slack - primal * change) @ (w + dual * dw)
        centre = mu * min(1.0, max(float(after) / (2 * len(alpha) * mu), 0.0)) ** 3
        change, dz, dw, db = direction(
            centre - alpha * z - change * dz, centre - slack * w + change * dw
        )
        primal, dual = (min(1.0, STEP_LIMIT * one) for one in longest(change, dz, dw))
        length = min(primal, dual)  # the same for both: a quadratic objective couples them
        self.alpha = alpha + length * change
        self.slack = slack - length * change
        self.z, self.w = z + length * dz, w + length * dw
        self.b += length * float(db)
        return length


def _to_zero(values: np.ndarray, change: np.ndarray) -> float:
    """The multiple of the change at which the first value becomes zero."""
    falling = change < 0
    return float(np.min(values[falling] / -change[falling], initial=1e30))
