r"""Margins measured only in the views that a sample has: absent multiple kernel learning.

Sample i has the views (kernels) in :math:`O_i`. Its prediction uses only the part of w in these
views, and its distance from the decision boundary is ``y_i f(x_i) / N_i(w)`` with

    N_i(w) = sum_{k in O_i} ||w_k||

(Chechik et al. 2008 for columns; Liu et al. 2015 for kernels). All distances are at least rho if
``y_i f(x_i) >= rho N_i(w)``, a convex constraint. With slack it is the convex problem

    min_{w, b}  1/2 (sum_k ||w_k||^p)^(2/p)
                + sum_i C_i max(0, 1 + rho N_i(w) - y_i (f(x_i) + b))

whose loss is the largest hinge loss when x_i moves by at most rho in each of the views that it
has; rho = 0 is lp-norm learning. With ``s_i = alpha_i y_i``, ``a_k = s'K_k s``,
``A_k = sum_{i has k} alpha_i`` and 1/p + 1/q = 1 its dual is

    max_alpha  sum_i alpha_i - 1/2 ||c||_q^2,    c_k = max(0, sqrt(a_k) - rho A_k)
               0 <= alpha_i <= C_i,   sum_i alpha_i y_i = 0

and the minimiser over w is ``w_k = theta_k sum_i s_i phi_k(x_i)``, ``theta_k = u_k / sqrt(a_k)``,
with u the gradient of ``1/2 ||c||_q^2``: an ordinary expansion with kernel weights theta. Any
feasible alpha thus gives weights, predictor, and both bounds of the optimum.

The dual objective has one derivative everywhere except at alpha = 0. Newton steps maximise its
quadratic expansion over the feasible set, which is the dual of a support vector machine with the
matrix

    sum_k theta_k (K_k - K_k s s'K_k / a_k) + G'MG,    g_k = K_k s / sqrt(a_k) - rho y [has k]

(M is the second derivative of ``1/2 ||c||_q^2``), and an exact search along the step follows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from ..._journal import Answers, journal_of
from ...grams.matrix import GivenMatrix
from ...grams.protocol import Grams, Summary
from ...learners.source import Source
from ...learners.svm import SVM
from ...problem import Machine, Target
from ...problem.losses import kink
from ..certificate import Found, Report, Stopped, history_entry, record, relative_to
from .warm_start import WarmStart

#: Multiple of the mean kernel added to the matrix of a Newton step, relative to the largest kernel
#: weight, so that kernels without a weight have curvature too. It is multiplied by the relative
#: gap, so that the last steps are Newton steps.
DAMPING = 1e-2
#: A step that gains less than this, relative to the objective, is the last one.
MIN_PROGRESS = 1e-15


@dataclass(frozen=True)
class MarginProblem:
    """The problem of one output.

    Attributes
    ----------
    grams : Grams
        Centred and normalised; absent samples have rows of zeros.
    y : array of shape (n,)
        Labels -1 and +1.
    C : array of shape (n,)
    has : array of bool, shape (p, n)
        Which samples have which kernels.
    rho : float
    p : float
        The exponent of the block norm, above 1 and at most 2.
    fit_intercept : bool
    """

    grams: Grams
    y: np.ndarray
    C: np.ndarray
    has: np.ndarray
    rho: float
    p: float
    fit_intercept: bool

    @property
    def q(self) -> float:
        return self.p / (self.p - 1.0)

    def at(self, alpha: np.ndarray, products: np.ndarray | None = None) -> MarginPoint:
        """The point with these multipliers; ``products`` are ``K_k s``, if they are known."""
        s = alpha * self.y
        KS = self.grams.matvecs(s[:, None])[:, :, 0] if products is None else products
        a = np.maximum(KS @ s, 0.0)
        A = self.has @ alpha
        c = np.maximum(np.sqrt(a) - self.rho * A, 0.0)
        return MarginPoint(self, alpha, KS, a, c)

    def dual(self, total: float, a: np.ndarray, A: np.ndarray) -> float:
        c = np.maximum(np.sqrt(np.maximum(a, 0.0)) - self.rho * A, 0.0)
        return total - 0.5 * float(np.linalg.norm(c, self.q)) ** 2


@dataclass(frozen=True)
class MarginPoint:
    """Multipliers alpha, the predictor that follows from them, and both bounds of the optimum."""

    problem: MarginProblem
    alpha: np.ndarray
    products: np.ndarray
    a: np.ndarray
    c: np.ndarray

    @property
    def norms(self) -> np.ndarray:
        """``u_k = ||w_k||``, the gradient of ``1/2 ||c||_q^2``."""
        q, size = self.problem.q, float(np.linalg.norm(self.c, self.problem.q))
        if size == 0:
            return np.zeros_like(self.c)
        return size * (self.c / size) ** (q - 1.0)

    @property
    def theta(self) -> np.ndarray:
        roots = np.sqrt(self.a)
        return np.divide(self.norms, roots, out=np.zeros_like(roots), where=roots > 0)

    @property
    def values(self) -> np.ndarray:
        """The decision values without intercept, shape (n,)."""
        return self.theta @ self.products

    @property
    def required(self) -> np.ndarray:
        """``1 + rho N_i``, the decision value that sample i must reach to have no loss."""
        return 1.0 + self.problem.rho * (self.norms @ self.problem.has)

    @property
    def intercept(self) -> float:
        problem = self.problem
        if not problem.fit_intercept:
            return 0.0
        kinks = problem.y * self.required - self.values
        return kink(kinks, problem.C, float(problem.C[problem.y > 0].sum()))

    @property
    def dual(self) -> float:
        return self.problem.dual(float(self.alpha.sum()), self.a, self.problem.has @ self.alpha)

    @property
    def primal(self) -> float:
        problem = self.problem
        slack = self.required - problem.y * (self.values + self.intercept)
        loss = problem.C @ np.maximum(slack, 0.0)
        return 0.5 * float(np.linalg.norm(self.norms, problem.p)) ** 2 + float(loss)

    def newton_matrix(self) -> np.ndarray:
        """Minus the second derivative of the dual objective, as a kernel matrix; damped."""
        problem, on = self.problem, self.c > 0
        theta, p = self.theta, len(self.c)
        gap = relative_to(self.primal, max(self.primal - self.dual, 0.0))
        scale = max(float(theta.max()), DAMPING) * DAMPING * min(gap, 1.0)
        H = problem.grams.combine(theta + scale / p).dense().copy()
        if on.any():
            KS, a = self.products[on], self.a[on]
            H -= (KS.T * (theta[on] / a)) @ KS
            G = KS / np.sqrt(a)[:, None] - problem.rho * problem.has[on] * problem.y
            H += G.T @ second_derivative(self.c[on], problem.q) @ G
        H.flat[:: len(H) + 1] += 1e-12 * np.trace(H) / len(H)
        return np.ascontiguousarray(H)


def second_derivative(c: np.ndarray, q: float) -> np.ndarray:
    """The second derivative of ``1/2 ||c||_q^2`` for positive c and q at least 2, shape (p, p)."""
    size = float(np.linalg.norm(c, q))
    r = c / size
    first = r ** (q - 1.0)
    return (q - 1.0) * np.diag(r ** (q - 2.0)) + (2.0 - q) * np.outer(first, first)


def largest_margin(grams: Grams, y: np.ndarray, C: np.ndarray, has: np.ndarray) -> float:
    """A rho beyond which no view separates the class means.

    For multipliers in proportion to the costs, with the same sum in both classes, it is the largest
    ``sqrt(a_k) / A_k``: half the distance of the class means in the best view.
    """
    alpha = np.where(y > 0, C / C[y > 0].sum(), C / C[y < 0].sum())
    a = np.maximum(grams.quadratic_forms(alpha * y), 0.0)
    A = has @ alpha
    return float(np.max(np.divide(np.sqrt(a), A, out=np.zeros_like(a), where=A > 0)))


def find_by_observed_margins(
    grams: Grams,
    target: Target,
    weighting: Any,
    learner: Any,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor with margins in the observed views, by Newton steps.

    Parameters
    ----------
    grams : Grams
        Centred and normalised.
    target : Target
        One column of labels.
    weighting : ObservedMargins
    learner : SVM
    summary, warm
        Not used: the start is the support vector machine with equal weights.
    report : callable, optional
        Receives every entry of the history.
    """
    if not isinstance(learner, SVM):
        raise TypeError(
            f"{weighting!r} measures margins and needs the hinge loss; got "
            f"{type(learner).__name__}. Use loss='hinge' with a number for C."
        )
    if target.Y.shape[1] != 1:
        raise ValueError(f"{weighting!r} handles one output at a time; got {target.Y.shape[1]}.")
    y, C = target.Y[:, 0], learner.costs(target)
    has = weighting.samples_with(grams)
    rho = weighting.margin * largest_margin(grams, y, C, has)
    problem = MarginProblem(grams, y, C, has, rho, float(weighting.p), learner.fit_intercept)
    usable = ~grams.degenerate
    journal, first = journal_of(report), 0
    kept = None if journal is None else journal.state("observed margins")
    history: list[dict[str, Any]] = []
    if kept is None:
        start = learner.fit(grams.combine(np.where(usable, 1.0, 0.0)), target)
        best = point = problem.at(np.abs(start.coef[:, 0]))
    else:
        first, history = kept["step"], kept["history"]
        best, point = problem.at(*kept["best"]), problem.at(*kept["point"])
    reason = f"stopped after max_iter={weighting.max_iter} steps"
    try:
        for step in range(first, weighting.max_iter):
            if journal is not None:
                journal.keep("observed margins", partial(state_of, step, history, best, point))
            primal, dual = point.primal, point.dual
            if not history or primal - dual < best.primal - best.dual:
                best = point
            gap = relative_to(best.primal, max(best.primal - best.dual, 0.0))
            record(history, history_entry(best.primal, gap, best.theta, best.alpha), report)
            if gap <= weighting.tol:
                reason = ""
                break
            following = newton_step(point)
            if following.dual - dual <= MIN_PROGRESS * abs(dual):
                reason = "made no further progress"
                break
            point = following
    except KeyboardInterrupt:
        raise Stopped(found_of(best, history)) from None
    found = found_of(best, history)
    if reason:
        warnings.warn(
            f"{weighting!r} {reason} with a relative duality gap of {found.machine.gap:.2g}, above "
            f"tol={weighting.tol:g}. Raise max_iter or tol, or lower C.",
            ConvergenceWarning,
            stacklevel=6,
        )
    return found


def state_of(
    step: int, history: list[dict[str, Any]], best: MarginPoint, point: MarginPoint
) -> Answers:
    """The state from which a later process can continue."""
    return {
        "step": step,
        "history": history,
        "best": [best.alpha, best.products],
        "point": [point.alpha, point.products],
    }


def newton_step(point: MarginPoint) -> MarginPoint:
    """The best point between this one and the maximiser of the quadratic expansion."""
    problem, y = point.problem, point.problem.y
    H = point.newton_matrix()
    gradient = point.required - y * point.values
    linear = -gradient - y * (H @ (point.alpha * y))
    solved = Source.of(GivenMatrix(H, problem.grams.n_jobs)).solve(
        linear, y, problem.C, start=point.alpha, intercept=problem.fit_intercept
    )
    step = solved.alpha - point.alpha
    moved = problem.grams.matvecs((step * y)[:, None])[:, :, 0]
    cross, square = point.products @ (step * y), moved @ (step * y)
    total, change = float(point.alpha.sum()), float(step.sum())
    A, dA = problem.has @ point.alpha, problem.has @ step

    def minus_dual(t: float) -> float:
        a = point.a + 2.0 * t * cross + t**2 * square
        return -problem.dual(total + t * change, a, A + t * dA)

    best = minimize_scalar(minus_dual, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    t = 1.0 if minus_dual(1.0) <= best.fun else float(best.x)
    alpha = np.clip(point.alpha + t * step, 0.0, problem.C)
    return problem.at(alpha, point.products + t * moved)


def found_of(point: MarginPoint, history: list[dict[str, Any]]) -> Found:
    gap = relative_to(point.primal, max(point.primal - point.dual, 0.0))
    coef = (point.alpha * point.problem.y)[:, None]
    machine = Machine(
        coef,
        np.array([point.intercept]),
        point.primal,
        gap,
        len(history),
        values=point.values[:, None],
    )
    return Found(point.theta, machine, point.problem.grams.combine(point.theta), history)
