"""Support vector regression with one fixed kernel.

min_{f, b}  1/2 ||f||^2 + sum_i C_i max(0, |y_i - f(x_i) - b| - epsilon),    C_i = weight / alpha
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import EpsilonInsensitive
from .base import require_offers
from .certify import certified
from .source import Source


class SVR(BaseEstimator):  # type: ignore[misc]
    """One support vector regression per column of the target, all with the same kernel.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation; the factor of the loss is ``1 / alpha``.
    epsilon : float, default=0.1
        Errors up to this size have zero loss.
    tol : float, default=1e-3
        Violation of the optimality conditions, relative to the size of the target, at which an
        active-set method takes over and finds the exact optimum.
    max_iter : int, default=-1
        Limit on steps; -1 as in :class:`SVM`.
    fit_intercept : bool, default=True
    solver : {"auto", "smo", "blocks"}, default="auto"
        ``"smo"`` reads the kernel by rows, in steps of two samples; ``"blocks"`` by blocks of
        columns, in steps of hundreds of samples, for large matrices and for GPUs. ``"auto"`` uses
        blocks in these two cases. Both reach the same tolerance.
    """

    needs = (("dense", "rows"), "matvec")
    kind = "regression"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float = 0.1,
        tol: float = 1e-3,
        max_iter: int = -1,
        fit_intercept: bool = True,
        solver: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.solver = solver

    @property
    def loss(self) -> EpsilonInsensitive:
        return EpsilonInsensitive(self.epsilon)

    @property
    def unit(self) -> float:
        return self.alpha

    def costs(self, target: Target) -> np.ndarray:
        return target.loss_weights / self.alpha

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train the regressions of all columns on the combined Gram operator."""
        require_offers(self, gram)
        source = Source.of(gram, self.solver)
        C = self.costs(target)
        # Subtract the median of the targets, which the intercept absorbs.
        middle = np.median(target.Y, axis=0) if self.fit_intercept else np.zeros(target.Y.shape[1])
        coef = np.zeros_like(target.Y)
        steps, finished = 0, True
        for j, y in enumerate((target.Y - middle).T):
            before = None
            if start is not None:
                before = np.concatenate([np.maximum(start[:, j], 0), np.maximum(-start[:, j], 0)])
            n = len(y)
            solved = source.solve(
                np.concatenate([self.epsilon - y, self.epsilon + y]),
                np.repeat([1.0, -1.0], n),
                np.concatenate([C, C]),
                unit=max(float(np.abs(y).max()), 1e-300),
                tol=self.tol,
                start=before,
                intercept=self.fit_intercept,
                max_iter=self.max_iter,
            )
            coef[:, j] = solved.alpha[:n] - solved.alpha[n:]
            steps = max(steps, solved.steps)
            finished &= solved.finished
        machine = certified(self, gram.matvec(coef), coef, target, steps)
        if not machine.gap <= self.tol:
            stopped = f"stopped after max_iter={self.max_iter} iterations"
            advice = "Raise max_iter, or standardise the data."
            if finished:
                stopped = "ended"
                advice = (
                    f"alpha = {self.alpha:g} is so small for these kernels that rounding errors "
                    "dominate; raise it."
                )
            warnings.warn(
                f"The SVR {stopped} with a relative duality gap of {machine.gap:.2g}, above "
                f"tol={self.tol:g}. {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return machine
