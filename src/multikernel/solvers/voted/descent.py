"""Coordinate descent for voted kernels (Cortes et al., appendix C), with exact steps.

    repeat
        price all (k, j) at z_i = c_i [y_i f(x_i) < 1]           one pass over the kernels
        delta_kj = sub-gradient of F in alpha_kj
        take the (k, j) with the largest |delta_kj| / Lambda_k
        step to the minimum of the piecewise linear F(alpha + eta e_kj)

In the paper the objective after a step counts the old ``|alpha_kj|`` twice and the sub-gradient
lacks y_j; both are corrected here. Sub-gradients are divided by their penalties, so that the path
does not change if a kernel and its penalty are multiplied by the same number.

The hinge loss is not smooth, so descent along single coordinates can stop at a point that is not a
minimum of F. It stops here if none of the coordinates tried decreases F; the certificate of the
linear program then bounds the distance from the optimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._journal import Answers, journal_of
from .problem import Report, VotedProblem, VotedSolution, gap_of, lower_bound
from .terms import Terms

#: Coordinates that are tried, best first, before descent stops.
MAX_TRIED_COORDINATES = 30
#: A margin within this distance of one counts as one, where the hinge loss has its kink.
MARGIN_TOLERANCE = 1e-12
#: Smallest relative decrease of F that is more than rounding error.
MIN_RELATIVE_DECREASE = 1e-12
#: A new coefficient below this share of the old one is zero up to rounding.
ZERO_SHARE = 1e-14


def best_step(
    margins: np.ndarray, a: np.ndarray, costs: np.ndarray, alpha: float, penalty: float
) -> float:
    """``argmin_eta sum_i c_i max(0, 1 - margin_i - eta a_i) + Lambda |alpha + eta|``, exactly.

    The function is convex and piecewise linear: its slope rises by ``c_i |a_i|`` where sample i
    reaches the margin and by ``2 Lambda`` where the coefficient crosses zero. These breakpoints are
    sorted and visited until the slope is no longer negative; O(n log n).
    """
    moved = a != 0
    places = np.append((1.0 - margins[moved]) / a[moved], -alpha)
    rises = np.append(costs[moved] * np.abs(a[moved]), 2.0 * penalty)
    order = np.argsort(places, kind="stable")
    start = -float(costs[a > 0] @ a[a > 0]) - penalty
    slopes = start + np.cumsum(rises[order])
    # Rounding may leave the last slope slightly negative, although the function rises there.
    slopes[-1] = max(slopes[-1], 0.0)
    return float(places[order[int(np.argmax(slopes >= 0))]])


def descend(
    problem: VotedProblem,
    penalties: np.ndarray,
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    report: Report | None = None,
) -> VotedSolution:
    """Coordinate descent from zero until the gap is below tol or no coordinate decreases F."""
    y, costs, columns = problem.y, problem.costs, problem.columns
    alpha: dict[tuple[int, int], float] = {}  # alpha_kj y_j
    values, intercept = np.zeros(columns.n), 0.0
    known: dict[tuple[int, int], np.ndarray] = {}
    history: list[dict[str, Any]] = []
    best_z, best_bound = np.zeros(columns.n), 0.0
    coefficients = np.zeros((columns.p, columns.n))
    iteration = 0
    journal = journal_of(report)
    kept = None if journal is None else journal.state("descent")
    if kept is not None:
        values, intercept, history = kept["values"], kept["intercept"], kept["history"]
        best_z, best_bound, iteration = kept["z"], kept["bound"], kept["iteration"]
        for k, j, coef in kept["alpha"]:
            alpha[k, j] = coefficients[k, j] = coef

    def state() -> Answers:
        return {
            **{"values": values, "intercept": intercept, "history": history},
            **{"z": best_z, "bound": best_bound, "iteration": iteration},
            "alpha": [[k, j, coef] for (k, j), coef in alpha.items()],
        }

    while True:
        if problem.fit_intercept:
            intercept += best_step(y * (values + intercept), y, costs, 0.0, 0.0)
        margins = y * (values + intercept)
        terms = _terms(alpha)
        objective = problem.objective(penalties, terms, values, intercept)
        violated = costs * (margins < 1.0 - MARGIN_TOLERANCE)
        gradient = columns.price(violated * y)
        bound = lower_bound(
            problem, penalties, violated, None if problem.fit_intercept else gradient
        )
        if bound.value >= best_bound:
            best_z, best_bound = bound.z, bound.value
        gap = gap_of(problem, objective, best_bound)
        entry = {
            "step": "descent",
            "objective": objective,
            "bound": best_bound,
            "gap": gap,
            "terms": len(terms),
            "active": len(np.unique(terms.kernels)),
            "support": len(np.unique(terms.points)),
        }
        history.append(entry)
        if report is not None:
            report(entry)
        if gap <= tol or iteration >= max_iter:
            break
        # `gradient` is minus the derivative of the loss; the penalty pulls towards zero.
        pull = np.sign(coefficients) * penalties[:, None]
        excess = np.maximum(np.abs(gradient) - penalties[:, None], 0.0)
        delta = np.where(coefficients != 0, np.abs(gradient - pull), excess)
        delta = np.divide(
            delta, penalties[:, None], out=np.zeros_like(delta), where=penalties[:, None] > 0
        )
        candidates = np.argsort(-delta, axis=None, kind="stable")[:MAX_TRIED_COORDINATES]
        for flat in candidates.tolist():
            k, j = divmod(flat, columns.n)
            if delta[k, j] <= 0:
                continue
            if (k, j) not in known:
                known[k, j] = columns.take(k, np.array([j]))[:, 0]
            now = alpha.get((k, j), 0.0)
            eta = best_step(margins, y * known[k, j], costs, now, float(penalties[k]))
            trial = values + eta * known[k, j]
            # A step to the breakpoint at zero gives a coefficient of exactly zero.
            new = 0.0 if abs(now + eta) <= ZERO_SHARE * abs(now) else now + eta
            slack = np.maximum(0.0, 1.0 - y * (trial + intercept))
            rest = objective - float(costs @ np.maximum(0.0, 1.0 - margins))
            reached = float(costs @ slack) + rest + float(penalties[k]) * (abs(new) - abs(now))
            if reached < objective * (1.0 - MIN_RELATIVE_DECREASE):
                break
        else:
            break
        alpha[k, j] = new
        coefficients[k, j] = new
        if new == 0.0:
            del alpha[k, j]
        values = trial
        iteration += 1
        if journal is not None:
            journal.keep("descent", state)
    # Values were updated step by step: compute them again, as for predictions.
    values = problem.values(terms) if len(terms) else np.zeros(columns.n)
    objective = problem.objective(penalties, terms, values, intercept)
    gap = gap_of(problem, objective, best_bound)
    return VotedSolution(terms, intercept, objective, best_bound, gap, best_z, iteration, history)


def _terms(alpha: dict[tuple[int, int], float]) -> Terms:
    pairs = np.array(list(alpha), dtype=np.intp).reshape(-1, 2)
    return Terms.sorted(pairs[:, 0], pairs[:, 1], np.array(list(alpha.values()), dtype=float))
