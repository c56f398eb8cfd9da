"""The one-class SVM (density level sets) with one fixed kernel, in the nu-form.

min_{f, rho}  1/2 ||f||^2 - rho + sum_i C_i max(0, rho - f(x_i)),    C_i = weight_i / (nu W)
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target
from ..problem.losses import OneClass
from .base import require_offers
from .certify import certified, size_of_terms
from .source import Source


class OneClassSVM(BaseEstimator):  # type: ignore[misc]
    """A predictor that is positive on most of the sample.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        An upper bound on the fraction of samples outside the level set, and a lower bound on the
        fraction of support vectors.
    tol : float, default=1e-3
        Violation of the optimality conditions, relative to the size of the kernel, at which an
        active-set method takes over and finds the exact optimum.
    max_iter : int, default=-1
        Limit on steps; -1 as in :class:`SVM`.
    solver : {"auto", "smo", "blocks"}, default="auto"
        As in :class:`SVM`.
    """

    needs = (("dense", "rows"), "matvec", "diagonal")
    kind = "one-class"
    loss = OneClass()
    unit = 1.0
    fit_intercept = True

    def __init__(
        self,
        nu: float = 0.5,
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        solver: str = "auto",
    ) -> None:
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver

    def costs(self, target: Target) -> np.ndarray:
        factors = target.loss_weights
        return np.asarray(factors / (self.nu * factors.sum()))

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Train on the combined Gram operator."""
        require_offers(self, gram)
        source = Source.of(gram, self.solver)
        costs, n = self.costs(target), gram.n
        solved = source.solve(
            np.zeros(n),
            np.ones(n),
            costs,
            unit=max(float(gram.diagonal().mean()), 1e-300),
            tol=self.tol,
            delta=1.0,
            start=None if start is None else start[:, 0],
            max_iter=self.max_iter,
        )
        coef = solved.alpha[:, None]
        terms = size_of_terms(gram, coef)
        return certified(self, gram.matvec(coef), coef, target, solved.steps, terms)
