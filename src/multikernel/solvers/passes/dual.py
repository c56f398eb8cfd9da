"""Lower bounds of the optimum from the coefficients of several passes.

The dual of ``min R(theta, u) + losses`` (see `newton`) is

    max_s  d(s) - R*(a),     a_k = ||sum_i s_i z_ik||^2,   d(s) = sum_i -C_i l*(-s_i / C_i)

over coefficients s within the bounds of the loss, with sum zero if there is an intercept. Every
pass has coefficients ``s = up + down`` of both signs that are within these bounds. So are

    sum_j lambda_j up_j + sum_j mu_j down_j,     lambda, mu >= 0,  sum lambda <= 1,  sum mu <= 1,

and d of them is at least ``sum_j lambda_j d(up_j) + mu_j d(down_j)``: d is concave, zero at zero,
and d(s + t) >= d(s) + d(t) if s and t have opposite signs. All of this is known from sums of the
passes. The best of these combinations is the bound that a bundle method has, with one bundle for
each sign: a quadratic program in two variables for each pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from ...problem.regularisers import Regulariser

#: Number of passes whose coefficients are combined, the latest ones.
MAX_COMBINED = 8
#: Limit on steps and relative precision of the quadratic programs, which need not be solved
#: exactly: every combination gives a bound.
MAX_STEPS, PRECISION = 50, 1e-6


class SignedSums(Protocol):
    """What a pass says of its coefficients; see `newton.LossSums`."""

    up: np.ndarray
    down: np.ndarray
    total_up: np.ndarray
    total_down: np.ndarray
    dual_up: np.ndarray
    dual_down: np.ndarray


@dataclass(frozen=True)
class DualPoint:
    """Feasible coefficients of all rows, known by their sums.

    Attributes
    ----------
    loss : float
        A lower bound of ``d(s)``, summed over outputs.
    products : array of shape (D, t)
        ``sum_i s_i z_i``.
    size : float
        An upper bound of ``sum_i |s_i|``, summed over outputs.
    """

    loss: float
    products: np.ndarray
    size: float

    def squares(self, owner: np.ndarray, p: int) -> np.ndarray:
        """``a_k``, summed over outputs, shape (p,)."""
        return np.bincount(owner, np.sum(self.products**2, axis=1), minlength=p)

    def value(self, rule: Regulariser, theta: np.ndarray, owner: np.ndarray) -> float:
        """The lower bound of the optimum."""
        return self.loss - rule.dual(theta, self.squares(owner, len(theta)))


class PassedDuals:
    """The coefficients of the last passes, and their best combination.

    Parameters
    ----------
    fit_intercept : bool
        Whether coefficients must sum to zero.
    """

    def __init__(self, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self._passes: list[tuple[np.ndarray, ...]] = []

    def add(self, sums: SignedSums) -> DualPoint:
        """Keep the coefficients of a pass; returns them alone, multiplied to sum to zero."""
        kept = (sums.up, sums.down, sums.total_up, sums.total_down, sums.dual_up, sums.dual_down)
        self._passes = [*self._passes[1 - MAX_COMBINED :], kept]
        alone = np.zeros(2 * len(self._passes))
        alone[[len(self._passes) - 1, -1]] = 1.0
        outputs = range(self._n_outputs)
        return self._combination([self._feasible(self._of_output(j)[1], alone) for j in outputs])

    def best(self, theta: np.ndarray, owner: np.ndarray) -> DualPoint:
        """The combination with the largest dual value for fixed kernel weights."""
        return self._combination([self._solve(j, theta[owner]) for j in range(self._n_outputs)])

    @property
    def _n_outputs(self) -> int:
        return len(self._passes[0][2])

    def _of_output(self, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products (2m, D), totals (2m,) and dual losses (2m,) of m passes: up, then down."""
        up, down, total_up, total_down, dual_up, dual_down = zip(*self._passes, strict=True)
        products = np.stack([P[:, j] for P in (*up, *down)])
        totals = np.array([T[j] for T in (*total_up, *total_down)])
        return products, totals, np.array([d[j] for d in (*dual_up, *dual_down)])

    def _solve(self, j: int, theta: np.ndarray) -> np.ndarray:
        """Multipliers (2m,) of one output: ``max d'x - x'Gx / 2``, G the products weighted."""
        products, totals, duals = self._of_output(j)
        m = len(self._passes)
        G = (products * theta) @ products.T
        start = np.zeros(2 * m)
        start[[m - 1, -1]] = 1.0
        start = self._feasible(totals, start)
        unit, largest = float(np.max(np.abs(duals))), float(np.max(np.abs(totals)))
        if unit == 0.0 or largest == 0.0:
            return start
        G, duals = G / unit, duals / unit
        sides = np.repeat(np.eye(2), m, axis=1)
        limits = [LinearConstraint(sides, ub=1.0)]
        if self.fit_intercept:
            limits.append(LinearConstraint(totals[None, :] / largest, 0.0, 0.0))
        found = minimize(
            lambda x: 0.5 * x @ G @ x - duals @ x,
            start,
            jac=lambda x: G @ x - duals,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * (2 * m),
            constraints=limits,
            options={"maxiter": MAX_STEPS, "ftol": PRECISION},
        )
        return self._feasible(totals, found.x) if np.all(np.isfinite(found.x)) else start

    def _feasible(self, totals: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Multipliers of both sides, shortened until they satisfy all constraints."""
        m = len(self._passes)
        x = np.maximum(x, 0.0)
        sides = [x[:m] / max(x[:m].sum(), 1.0), x[m:] / max(x[m:].sum(), 1.0)]
        if self.fit_intercept:
            sizes = [float(sides[0] @ totals[:m]), -float(sides[1] @ totals[m:])]
            for side, size in enumerate(sizes):
                sides[side] *= min(sizes) / size if size > 0 else 0.0
        return np.concatenate(sides)

    def _combination(self, multipliers: list[np.ndarray]) -> DualPoint:
        products, loss, size = [], 0.0, 0.0
        for j, x in enumerate(multipliers):
            P, totals, duals = self._of_output(j)
            products.append(x @ P)
            loss += float(x @ duals)
            size += float(x @ np.abs(totals))
        return DualPoint(loss, np.column_stack(products), size)
