"""Logistic regression with one fixed kernel.

    min_{f, b}  1/2 ||f||^2 + sum_i C_i log(1 + exp(-y_i (f(x_i) + b)))

Solved by Newton's method: each step is a weighted ridge regression on a linearised target.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import Logistic
from .base import require_offers
from .certify import certified
from .leave_one_out import best_cost, fixed_cost, is_centred
from .left_out import (
    copy_share,
    solves_fast,
    values_of_centred,
    values_without_all,
    values_without_each,
)
from .ridge import solve_directly


class LogisticRegression(BaseEstimator):  # type: ignore[misc]
    """One logistic classifier per column of the target, all with the same kernel.

    Parameters
    ----------
    C : float or "loo", default=1.0
        Factor of the loss; ``"loo"`` is one over the ridge constant that leave-one-out chooses for
        the labels.
    tol : float, default=1e-8
        Relative duality gap to reach.
    max_iter : int, default=100
        Limit on Newton steps.
    fit_intercept : bool, default=True
    """

    needs = ("solve", "matvec")
    kind = "classification"
    loss = Logistic()
    unit = 1.0
    #: Up to this many samples, every sample is left out.
    max_left_out = 500

    def __init__(
        self,
        C: float | str = 1.0,
        *,
        tol: float = 1e-8,
        max_iter: int = 100,
        fit_intercept: bool = True,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept

    def costs(self, target: Target) -> np.ndarray:
        return np.asarray(fixed_cost(self.C) * target.loss_weights)

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train all classifiers; Newton's method ignores ``start``."""
        require_offers(self, gram)
        if isinstance(self.C, str):
            best = best_cost(gram, target, self.fit_intercept)
            machine = clone(self).set_params(C=best).fit(gram, target, start=start)
            return replace(machine, chosen=best)
        C = self.costs(target)
        coef = np.zeros_like(target.Y)
        steps = 0
        # Overflow is detected at the end.
        with one_blas_thread(gram.n), np.errstate(all="ignore"):
            for j in range(target.Y.shape[1]):
                coef[:, j], used = self._newton(gram, target.Y[:, j], C)
                steps = max(steps, used)
            machine = certified(self, gram.matvec(coef), coef, target, steps)
        if not (np.isfinite(coef).all() and np.isfinite(machine.gap)):
            raise ValueError(
                f"Logistic regression with C = {fixed_cost(self.C):g} overflows: its coefficients "
                "are not finite. Lower C."
            )
        if machine.gap > max(self.tol, 1e-6):
            warnings.warn(
                f"Logistic regression stopped after {steps} Newton steps with a relative duality "
                f"gap of {machine.gap:.2g}, above tol={self.tol:g}. Raise max_iter, or lower C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return machine

    def left_out(
        self, gram: CombinedGram, target: Target, machine: Machine, rows: np.ndarray
    ) -> np.ndarray:
        """Decision values of some samples after one Newton step without each, (len(rows), t)."""
        cost = fixed_cost(self.C if machine.chosen is None else machine.chosen)
        if not solves_fast(gram, rows):
            return values_without_all(clone(self).set_params(C=cost), gram, target, rows)
        C = cost * target.loss_weights
        values = gram.matvec(machine.coef) if machine.values is None else machine.values
        values = values + machine.intercept
        share = copy_share(target)
        centred = not self.fit_intercept and is_centred(gram, target)
        omega = np.ones(gram.n) if target.sample_weight is None else target.sample_weight
        columns = []
        for j in range(values.shape[1]):
            r = expit(-target.Y[:, j] * values[:, j])
            curvature = np.maximum(C * r * (1.0 - r), 1e-12 * C)
            if centred:
                coef = machine.coef[:, j]
                own = values_of_centred(gram, values[:, j], coef, curvature, share, omega, rows)
                columns.append(own[:, None])
                continue
            columns.append(
                values_without_each(
                    gram,
                    values[:, [j]],
                    machine.coef[:, [j]],
                    curvature,
                    share,
                    rows,
                    fit_intercept=self.fit_intercept,
                )
            )
        return np.concatenate(columns, axis=1)

    def _newton(self, gram: CombinedGram, y: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, int]:
        """Signed coefficients, feasible for the dual, and the number of Newton steps."""
        c, b = np.zeros(len(y)), 0.0
        f = np.zeros(len(y))
        value = self._objective(c, f, b, y, C)
        step = 0
        for step in range(1, self.max_iter + 1):  # noqa: B007
            r = expit(-y * (f + b))
            curvature = np.maximum(C * r * (1.0 - r), 1e-12 * C)
            # The quadratic expansion of the loss is a weighted squared error for this target.
            aim = f + b + C * y * r / curvature
            new, offset, values = solve_directly(
                gram, aim[:, None], 1.0 / curvature, fit_intercept=self.fit_intercept
            )
            dc, df, db = new[:, 0] - c, values[:, 0] - f, float(offset[0]) - b
            length = 1.0
            while length > 1e-8:
                trial = self._objective(c + length * dc, f + length * df, b + length * db, y, C)
                if trial <= value:
                    break
                length *= 0.5
            c, f, b = c + length * dc, f + length * df, b + length * db
            if value - trial <= 1e-15 * abs(value):
                break
            value = trial
        # Unlike c, coefficients computed from the values are exactly feasible for the dual.
        s = C * y * expit(-y * (f + b))
        if self.fit_intercept:
            s = s - s.sum() * np.abs(s) / np.abs(s).sum()
        return s, step

    @staticmethod
    def _objective(c: np.ndarray, f: np.ndarray, b: float, y: np.ndarray, C: np.ndarray) -> float:
        return 0.5 * float(c @ f) + float(C @ np.logaddexp(0.0, -y * (f + b)))
