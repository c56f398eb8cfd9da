"""Primal value, dual value and duality gap of joint problems, for all solvers.

Any kernel weights theta and feasible signed coefficients s bound the optimum from both sides:

    primal = R(theta, a) + sum_i C_i l(f(x_i) + b, y_i),      f = sum_k theta_k K_k s
    dual   = - sum_i C_i l*(-s_i / C_i, y_i) - R*(theta, a),   a_k = s'K_k s

(:mod:`multikernel.problem.regularisers`, :mod:`multikernel.problem.losses`). Every solver certifies
its iterates with `certify` and returns the best of them as `Found`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..grams.protocol import CombinedGram, Grams
from ..learners.base import Learner
from ..learners.certify import size_of_terms
from ..problem import ROUNDING_UNITS, Machine, Target
from ..problem.losses import OneClass
from ..problem.regularisers import Regulariser

#: A callback that receives every entry of a solver's history.
Report = Callable[[dict[str, Any]], None]

#: Limit on the gap relative to the regulariser, in units of ``tol``. If the objective is nearly all
#: loss, a gap that is small relative to the objective can leave the kernel weights undetermined.
REGULARISER_FACTOR = 10.0


@dataclass(frozen=True)
class Found:
    """The result of a solver: kernel weights, and the predictor that was trained with them."""

    kernel_weights: np.ndarray
    machine: Machine
    gram: CombinedGram
    history: list[dict[str, Any]]


class Stopped(KeyboardInterrupt):
    """An interrupt that carries the best certified iterate so far.

    ``grams`` are those that its predictor belongs to, if they are not the caller's.
    """

    def __init__(self, found: Found, grams: Grams | None = None) -> None:
        super().__init__()
        self.found, self.grams = found, grams


@dataclass(frozen=True)
class CertifiedIterate:
    """Kernel weights theta and coefficients, with the bounds of the optimum that they prove.

    Attributes
    ----------
    theta : array of shape (p,)
    coef : array of shape (n, t)
        Signed coefficients s, feasible for the dual.
    intercept : array of shape (t,)
    gram : CombinedGram
        The combination with weights theta.
    a : array of shape (p,)
        ``a_k = s'K_k s``.
    loss_dual : float
        The dual value of the losses alone.
    regulariser : float
        The part of the primal value that is not loss.
    primal, dual : float
        The optimum of the joint problem lies between them.
    rounding : float
        Gaps up to this one count as zero.
    """

    theta: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    gram: CombinedGram
    a: np.ndarray
    loss_dual: float
    regulariser: float
    primal: float
    dual: float
    rounding: float

    @property
    def gap(self) -> float:
        return self._beyond_rounding(max(self.primal - self.dual, 0.0))

    def _beyond_rounding(self, gap: float | None) -> float:
        """The given gap, by default that of the iterate; zero if it may be a rounding error."""
        if gap is None:
            return self.gap
        return 0.0 if gap <= self.rounding else gap

    @property
    def relative_gap(self) -> float:
        return relative_to(self.primal, self.gap)

    def meets(self, tol: float, gap: float | None = None) -> bool:
        """Whether the gap, or ``gap`` if a smaller one is proven, is within the tolerance."""
        gap = self._beyond_rounding(gap)
        small = relative_to(self.primal, gap) <= tol
        return small and gap <= REGULARISER_FACTOR * tol * abs(self.regulariser)

    def shortfall(self, tol: float, gap: float | None = None) -> str:
        """What the gap is above, if the iterate does not meet the tolerance; for warnings."""
        gap = self._beyond_rounding(gap)
        relative = relative_to(self.primal, gap)
        if relative > tol:
            return f"a relative duality gap of {relative:.2g}, above tol={tol:g}"
        share = relative_to(self.regulariser, gap)
        return (
            f"a duality gap of {share:.2g} of the regulariser, above {REGULARISER_FACTOR:g} times "
            f"tol={tol:g}"
        )

    def entry(self, learner: Learner, gap: float | None = None) -> dict[str, Any]:
        """The entry of this iterate in ``history_``."""
        relative = relative_to(self.primal, self._beyond_rounding(gap))
        return history_entry(self.primal * learner.unit, relative, self.theta, self.coef)

    def found(
        self, learner: Learner, history: list[dict[str, Any]], gap: float | None = None
    ) -> Found:
        """The result of a solver that returns this iterate, with the gap proven for it."""
        relative = relative_to(self.primal, self._beyond_rounding(gap))
        objective = self.primal * learner.unit
        machine = Machine(self.coef, self.intercept, objective, relative, len(history))
        return Found(self.theta, machine, self.gram, history)


def relative_to(primal: float, gap: float) -> float:
    """``gap / |primal|``, without division by zero."""
    return gap / max(abs(primal), 1e-300)


def history_entry(
    objective: float, gap: float, kernel_weights: np.ndarray, coef: np.ndarray
) -> dict[str, Any]:
    """An entry of ``history_``: objective, relative gap, numbers of kernels and support vectors."""
    support = coef != 0 if coef.ndim == 1 else np.any(coef != 0, axis=1)
    return {
        "objective": objective,
        "gap": gap,
        "active": int(np.count_nonzero(kernel_weights)),
        "support": int(np.count_nonzero(support)),
    }


def record(history: list[dict[str, Any]], entry: dict[str, Any], report: Report | None) -> None:
    """Append an entry to the history, and pass it to the callback."""
    history.append(entry)
    if report is not None:
        report(entry)


def centred_outputs(target: Target, learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """The targets minus their mean, and the mean of shape (t,), which a free intercept absorbs.

    A large mean of regression targets would cost the dual value precision. For classification, or
    without an intercept, the mean is zero.
    """
    mean = np.zeros(target.Y.shape[1])
    if target.kind == "regression" and learner.fit_intercept:
        mean = np.average(target.Y, axis=0, weights=learner.costs(target))
    return target.Y - mean, mean


def certify(
    target: Target,
    rule: Regulariser,
    learner: Learner,
    theta: np.ndarray,
    gram: CombinedGram,
    coef: np.ndarray,
    values: np.ndarray,
    a: np.ndarray,
) -> CertifiedIterate:
    """The iterate with these kernel weights and coefficients, with both bounds of the optimum.

    Parameters
    ----------
    values : array of shape (n, t)
        ``gram @ coef``.
    a : array of shape (p,)
        ``coef' K_k coef``, summed over outputs.
    """
    C, loss = learner.costs(target), learner.loss
    Y, mean = centred_outputs(target, learner)
    a = np.maximum(a, 0.0)
    intercept = loss.intercept(values, Y, C) if learner.fit_intercept else 0.0 * mean
    loss_dual = float(loss.dual(coef, Y, C).sum())
    regulariser = rule.primal(theta, a)
    primal = regulariser + float(loss.value(values, Y, C, intercept).sum())
    dual = loss_dual - rule.dual(theta, a)
    nothing_else = isinstance(loss, OneClass)  # its objective may be zero
    rounding = ROUNDING_UNITS * size_of_terms(gram, coef) if nothing_else else 0.0
    return CertifiedIterate(
        theta, coef, intercept + mean, gram, a, loss_dual, regulariser, primal, dual, rounding
    )
