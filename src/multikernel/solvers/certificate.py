"""The one place where primal value, dual value and duality gap of a joint problem are computed.

Kernel weights theta and signed coefficients s, found in any way, bound the optimum from both sides:

    primal = R(theta, a) + sum_i C_i l(f(x_i) + b, y_i),      f = sum_k theta_k K_k s
    dual   = - sum_i C_i l*(-s_i / C_i, y_i) - R*(theta, a),   a_k = s'K_k s

(:mod:`multikernel.problem.regularisers`, :mod:`multikernel.problem.losses`). Every solver certifies
its iterates here, and returns the best of them as `Found`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..grams.protocol import CombinedGram
from ..learners.base import Learner
from ..problem import Machine, Target
from ..problem.regularisers import Regulariser

#: Receives every entry of a solver's history.
Report = Callable[[dict[str, Any]], None]

#: The gap must also be below this many times ``tol`` of the regulariser: where nearly all of the
#: objective is loss, a small part of it says little about the kernel weights.
REGULARISER_FACTOR = 10.0


@dataclass(frozen=True)
class Found:
    """The answer of a solver: kernel weights, and the predictor that was trained with them."""

    weights: np.ndarray
    machine: Machine
    gram: CombinedGram
    history: list[dict[str, Any]]


class Stopped(KeyboardInterrupt):
    """An interrupt on its way up, with the best certified iterate so far."""

    def __init__(self, found: Found) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class CertifiedIterate:
    """Kernel weights theta and coefficients, with the bounds on the optimum that they prove.

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

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return relative_to(self.primal, self.gap)

    def meets(self, tol: float, gap: float | None = None) -> bool:
        """Whether the gap (its own, or a smaller proven one) is within the tolerance."""
        gap = self.gap if gap is None else gap
        small = relative_to(self.primal, gap) <= tol
        return small and gap <= REGULARISER_FACTOR * tol * abs(self.regulariser)

    def entry(self, learner: Learner, gap: float | None = None) -> dict[str, Any]:
        """The iterate as an entry of ``history_``."""
        return {
            "objective": self.primal * learner.unit,
            "gap": relative_to(self.primal, self.gap if gap is None else gap),
            "active": int(np.count_nonzero(self.theta)),
            "support": int(np.count_nonzero(np.any(self.coef != 0, axis=1))),
        }

    def found(
        self, learner: Learner, history: list[dict[str, Any]], gap: float | None = None
    ) -> Found:
        """The iterate as an answer, with the gap that is proven for it."""
        relative = relative_to(self.primal, self.gap if gap is None else gap)
        objective = self.primal * learner.unit
        machine = Machine(self.coef, self.intercept, objective, relative, len(history))
        return Found(self.theta, machine, self.gram, history)


def relative_to(primal: float, gap: float) -> float:
    return gap / max(abs(primal), 1e-300)


def centred_outputs(target: Target, learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """The targets less the mean that a free intercept takes up, and that mean, shape (t,).

    Left in, the mean of regression targets would cost the dual value its digits.
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
    """Both bounds from kernel weights and coefficients alone.

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
    return CertifiedIterate(
        theta, coef, intercept + mean, gram, a, loss_dual, regulariser, primal, dual
    )
