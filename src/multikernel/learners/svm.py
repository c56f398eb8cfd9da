"""The support vector machine with one fixed kernel.

    min_{f, b}  1/2 ||f||^2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)),     C_i = C * loss weight

Sequential minimal optimisation solves the dual approximately; an active-set method then finds the
exact optimum.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from ..grams.protocol import CombinedGram, run_in_order
from ..problem import Machine, Target
from ..problem.losses import Hinge
from .base import require_offers
from .certify import certified
from .leave_one_out import best_cost, fixed_cost, is_centred
from .left_out import copies_of, span_rule
from .source import Solved, Source


class SVM(BaseEstimator):  # type: ignore[misc]
    """One support vector machine per column of the target, all with the same kernel.

    Parameters
    ----------
    C : float or "loo", default=1.0
        Factor of the hinge loss; ``"loo"`` is one over the ridge constant that leave-one-out
        chooses for the labels.
    tol : float, default=1e-3
        Violation of the optimality conditions at which the active-set method takes over.
    max_iter : int, default=-1
        Limit on steps before that; -1 for ten million, or a hundred per sample if that is more.
        With -1 and up to 1,000 samples, an interior-point method takes over after many steps.
    n_jobs : int, default=1
        Number of threads, each of which trains some of the columns.
    fit_intercept : bool, default=True
        Whether b is free, or zero.
    exact : bool, default=True
        Whether the active-set method is used.
    solver : {"auto", "smo", "blocks"}, default="auto"
        ``"smo"`` reads the kernel by rows, in steps of two samples; ``"blocks"`` by blocks of
        columns, in steps of hundreds of samples, for large matrices and for GPUs. ``"auto"`` uses
        blocks in these two cases. Both reach the same tolerance.
    """

    needs = (("dense", "rows"), "matvec")
    kind = "classification"
    loss = Hinge()
    unit = 1.0
    #: Up to this many samples, every sample is left out.
    max_left_out = 5000

    def __init__(
        self,
        C: float | str = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        n_jobs: int = 1,
        fit_intercept: bool = True,
        exact: bool = True,
        solver: str = "auto",
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.exact = exact
        self.solver = solver

    def costs(self, target: Target) -> np.ndarray:
        return np.asarray(fixed_cost(self.C) * target.loss_weights)

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train the classifiers of all columns on the combined Gram operator.

        Parameters
        ----------
        start : array of shape (n, t) or None
            Coefficients of a similar problem.
        """
        require_offers(self, gram)
        if isinstance(self.C, str):
            C = best_cost(gram, target, self.fit_intercept)
            machine = clone(self).set_params(C=C).fit(gram, target, start=start)
            return replace(machine, chosen=C)
        source = Source.of(gram, self.solver)
        costs = self.costs(target)
        minus = np.full(gram.n, -1.0)

        def train(j: int) -> Solved:
            y = target.Y[:, j]
            if self.fit_intercept and np.all(y == y[0]):
                # A fold may lack a class; the best predictor is then a constant.
                return Solved(np.zeros(len(y)), 0, True, np.zeros(len(y)))
            return source.solve(
                minus,
                y,
                costs,
                tol=self.tol,
                start=None if start is None else start[:, j] * y,
                intercept=self.fit_intercept,
                max_iter=self.max_iter,
                exact=self.exact,
            )

        solved = run_in_order(train, range(target.Y.shape[1]), self.n_jobs)
        coef = np.column_stack([one.alpha for one in solved]) * target.Y
        known = [one.values for one in solved if one.values is not None]
        values = np.column_stack(known) if len(known) == len(solved) else gram.matvec(coef)
        machine = certified(self, values, coef, target, max(one.steps for one in solved))
        finished = all(one.finished for one in solved)
        if machine.gap > self.tol and (self.exact or not finished):
            stopped = f"stopped after max_iter={self.max_iter} iterations"
            advice = "Raise max_iter, or standardise the data."
            if finished:
                stopped = "ended"
                advice = (
                    f"C = {fixed_cost(self.C):g} is so large for these kernels that rounding "
                    "errors dominate; lower it."
                )
            warnings.warn(
                f"The SVM {stopped} with a relative duality gap of {machine.gap:.2g}, above "
                f"tol={self.tol:g}. {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return machine

    def left_out(
        self, gram: CombinedGram, target: Target, machine: Machine, rows: np.ndarray
    ) -> np.ndarray:
        """Leave-one-out decision values of some samples, by the span rule, shape (len(rows), t)."""
        C = fixed_cost(self.C if machine.chosen is None else machine.chosen)
        costs = C * target.loss_weights
        omega = np.ones(gram.n) if target.sample_weight is None else target.sample_weight
        values = gram.matvec(machine.coef) if machine.values is None else machine.values
        values = values + machine.intercept
        centred = is_centred(gram, target)
        columns = [
            span_rule(
                gram,
                f,
                np.abs(s),
                y,
                costs,
                omega,
                rows,
                copies_of(gram, y),
                fit_intercept=self.fit_intercept,
                centred=centred,
                intercept=float(b),
            )
            for f, s, y, b in zip(
                values.T, machine.coef.T, target.Y.T, machine.intercept, strict=True
            )
        ]
        return np.column_stack(columns)
