"""Joint learning with a quadratic penalty on the kernel weights, by cutting planes.

In the kernel weights, the problem of `AlignmentPenalty` is

    min_{theta >= 0}  g(theta) + (theta'Q theta - c'theta) / 2,
    g(theta) = max_s  L(s) - theta'a(s) / 2

with signed coefficients s, their dual loss ``L(s)`` and ``a_k(s) = s'K_k s``. Alternation takes
the best weights for each ``a(s)``. Where g has more curvature than the penalty, these steps
overshoot, and the alternation can cycle.

Here each step uses all predictors so far. Each gives a *cut* ``L - theta'a / 2``, which lies
below g everywhere and touches it at the weights that the predictor was trained with. The next
weights minimise the largest cut plus the penalty. Since Q is positive definite these minima, which
are lower bounds of the optimum, converge to it from any start (Kelley 1960; the rate is that of the
bundle method of Teo et al. 2010). With one cut the step is that of the alternation.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...problem.regularisers import AlignmentPenalty, best_response
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import CertifiedIterate, Found, Report, Stopped, certify, record
from .ball_geometry import ZERO_WEIGHT_RATIO, least_distance
from .definiteness import require_psd
from .training import train_at
from .warm_start import WarmStart

#: Limit on proximal steps in the height of the largest cut; each solves a least-distance problem.
MAX_PROXIMAL_STEPS = 10
#: Factor by which the proximal steps lengthen, so that they converge faster than linearly.
PROXIMAL_GROWTH = 10.0
#: The proximal steps end when the multipliers of the cuts sum to one up to this, as at the minimum.
MULTIPLIER_PRECISION = 1e-10
#: Bisections in the search for the minimum along a segment.
BISECTIONS = 50
#: After this many rounds without progress, the remaining gap is the error of the predictors.
MAX_IDLE_ROUNDS = 50
#: A round makes progress if the gap falls below this fraction of the gap at the last progress.
PROGRESS_FACTOR = 0.9


class PenaltyCuts:
    """The cuts ``L_r - theta'a_r / 2``, and the minimum of the largest one plus the penalty."""

    def __init__(self, rule: AlignmentPenalty) -> None:
        self.rule = rule
        self.factor = cholesky(rule.Q)
        self.centre = solve_triangular(self.factor, 0.5 * rule.linear, trans="T")
        self.L = np.empty(0)
        self.A = np.empty((0, len(rule.linear)))
        self.multipliers = np.empty(0)

    def add(self, constant: float, a: np.ndarray) -> None:
        """Add the cut ``constant - theta'a / 2``."""
        self.L = np.append(self.L, constant)
        self.A = np.vstack([self.A, a])
        self.multipliers = np.append(self.multipliers, 0.0 if len(self.multipliers) else 1.0)

    def bound(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        """A lower bound of the optimum, from multipliers that sum to one, and its minimiser."""
        mean = multipliers @ self.A
        theta, value = best_response(2.0 * self.rule.Q, mean + self.rule.linear)
        return float(multipliers @ self.L) - 0.5 * value, theta

    def minimum(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The minimum of the model, a lower bound of the optimum, and the minimising weights.

        ``theta`` starts the search. The bound is valid whatever the precision of the multipliers.
        It never decreases: if the proximal steps fail, a line search towards the last cut is used.
        """
        if len(self.L) > 1:
            before = self.bound(self.multipliers)[0]
            found = self._proximal_steps(theta)
            if found is None or not self.bound(found)[0] >= before:
                found = self._towards_last_cut()
            self.multipliers = found
        return self.bound(self.multipliers)

    def _proximal_steps(self, theta: np.ndarray) -> np.ndarray | None:
        """Multipliers at the minimum; None if rounding errors prevent the solution.

        With ``Q = R'R``, ``x = R theta``, ``z = R'^-1 c / 2`` and the height eta of the largest
        cut, the model is ``min ||x - z||^2 / 2 + eta``, up to a constant. A proximal term
        ``(eta - eta_old)^2 / (2 unit)`` turns it into a least-distance problem in x and
        ``(eta - eta_old) / sqrt(unit)``.
        """
        p, rule = self.A.shape[1], self.rule
        to_theta = solve_triangular(self.factor, np.eye(p))
        cuts = 0.5 * self.A @ to_theta
        eta = float(np.max(self.L - 0.5 * self.A @ theta))
        unit = max(abs(eta), abs(0.5 * float(theta @ rule.Q @ theta - rule.linear @ theta)), 1e-300)
        G = np.zeros((p + len(self.L), p + 1))
        G[:p, :p], G[p:, :p] = to_theta, cuts
        point = np.append(self.factor @ theta, 0.0)
        multipliers = None
        for _ in range(MAX_PROXIMAL_STEPS):
            root = np.sqrt(unit)
            G[p:, p] = root
            h, centre = np.append(np.zeros(p), self.L - eta), np.append(self.centre, -root)
            found = least_distance(centre, G, h, float(np.linalg.norm(point - centre)))
            if found is None:
                break
            point = found[0]
            of_cuts = found[1][p:]
            total = float(of_cuts.sum())
            if not total > 0:
                break
            multipliers = of_cuts / total
            if abs(total - 1.0) <= MULTIPLIER_PRECISION:
                break
            eta += root * point[-1]
            unit *= PROXIMAL_GROWTH
        return multipliers

    def _towards_last_cut(self) -> np.ndarray:
        """The best multipliers between the current ones and the last cut alone."""
        last = np.zeros(len(self.L))
        last[-1] = 1.0
        step = last - self.multipliers
        near, far = 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (near + far)
            theta = self.bound(self.multipliers + middle * step)[1]
            rises = step @ (self.L - 0.5 * self.A @ theta) > 0
            near, far = (middle, far) if rises else (near, middle)
        return self.multipliers + near * step


def find_by_penalty_cuts(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of a joint problem with a quadratic penalty, by cutting planes.

    ::

        repeat   predictor at theta       -> primal and dual value, cut L - theta'a / 2
                 minimum of the model     -> lower bound, next theta, multipliers of the cuts

    The iterate with the smallest gap is returned; its predictor was trained with its weights. The
    weights may stop moving earlier, because of the error of the predictor, or because several
    predictors are optimal and only their cuts together prove it. Then the iterate with the lowest
    objective is returned if the cuts prove a smaller gap for it.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    assert isinstance(rule, AlignmentPenalty)
    tol, model = weighting.tol, PenaltyCuts(rule)
    theta = rule.start() if warm is None else warm.near(rule.start())
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False)
    history: list[dict[str, Any]] = []
    coef: np.ndarray | None = None
    best: CertifiedIterate | None = None
    top: CertifiedIterate | None = None
    lower, gap, idle, halted = -np.inf, np.inf, 0, False
    try:
        for _ in range(weighting.max_iter):
            coef, values, a = train_at(grams, target, learner, theta, gram, coef, report)
            iterate = certify(target, rule, learner, theta, gram, coef, values, a)
            best = iterate if best is None or iterate.gap < best.gap else best
            top = iterate if top is None or iterate.primal < top.primal else top
            lower, before = max(lower, iterate.dual), theta
            if not best.meets(tol):
                with one_blas_thread(grams.p):
                    model.add(iterate.loss_dual, iterate.a)
                    value, theta = model.minimum(theta)
                lower = max(lower, value)
            bounds = {"lower": lower * learner.unit, "upper": top.primal * learner.unit}
            record(history, iterate.entry(learner) | bounds, report)
            if best.meets(tol):
                break
            idle = 0 if top.primal - lower < PROGRESS_FACTOR * gap else idle + 1
            gap = gap if idle else top.primal - lower
            moved = np.max(np.abs(theta - before))
            halted = idle == MAX_IDLE_ROUNDS or moved <= ZERO_WEIGHT_RATIO * theta.max()
            if halted:
                break
            gram.forget()  # free its memory before the next combination needs as much
            gram = grams.combine(theta)
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    assert best is not None and top is not None
    answer, gap = best, best.gap
    if halted and top.primal - lower < best.gap:
        answer, gap = top, max(top.primal - lower, 0.0)
    found = answer.found(learner, history, gap)
    if found.machine.gap > tol or not (halted or best.meets(tol)):
        reason, advice = f"after max_iter={weighting.max_iter} training runs", "max_iter or tol"
        if halted:
            reason, advice = "at the precision of its predictors", "tol"
        warnings.warn(
            f"{weighting!r} stopped {reason} with {answer.shortfall(tol, gap)}. Raise {advice}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    require_psd(grams, found.kernel_weights, found.gram, warn=False)
    return found
