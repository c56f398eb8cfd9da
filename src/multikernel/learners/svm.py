"""The support vector machine with one fixed kernel and a free intercept.

    min_{f, b}  1/2 ||f||^2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)),     C_i = C * loss weight

libsvm solves the dual; objective and gap are computed here from what it returns.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from ..grams.protocol import CombinedGram, run_in_order
from ..solvers.losses import Hinge
from ..solvers.problem import Machine, Target, relative_gap
from .certify import certified
from .polish import polish
from .smo import svc

#: libsvm holds kernel values in float32: below this it may run in circles.
LIBSVM_TOL = 1e-6


class SVM(BaseEstimator):  # type: ignore[misc]
    """One support vector machine per column of the target, all with the same kernel.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the hinge loss.
    tol : float, default=1e-3
        libsvm's tolerance on the optimality conditions.
    max_iter : int, default=-1
        libsvm's limit on iterations; -1 for ten million, or a hundred per point if that is more.
    n_jobs : int, default=1
        Threads over the machines of a multiclass problem.
    fit_intercept : bool, default=True
        Whether b is free, or zero.
    """

    kind = "classification"
    loss = Hinge()
    unit = 1.0

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = -1,
        n_jobs: int = 1,
        fit_intercept: bool = True,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept

    def costs(self, target: Target) -> np.ndarray:
        return self.C * target.loss_weights

    def fit(self, gram: CombinedGram, target: Target) -> Machine:
        """Train all machines on the combined Gram matrix."""
        K = np.ascontiguousarray(gram.dense())
        if not self.fit_intercept:
            return self._fit_without_intercept(K, target)
        weights = target.loss_weights
        plain = bool(np.all(weights == 1.0))
        t = target.Y.shape[1]
        coef = np.zeros((len(K), t))
        intercept = np.zeros(t)
        limit = self.max_iter if self.max_iter >= 0 else max(10_000_000, 100 * len(K))

        def train(j: int) -> tuple[int, bool]:
            if np.all(target.Y[:, j] == target.Y[0, j]):
                # A fold may lack a class: nothing to separate, and the answer is known.
                intercept[j] = target.Y[0, j]
                return 0, True
            machine = SVC(
                C=self.C,
                kernel="precomputed",
                tol=max(self.tol, LIBSVM_TOL),
                max_iter=limit,
                cache_size=1,  # rows are read from the matrix itself
                shrinking=True,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                machine.fit(K, target.Y[:, j], sample_weight=None if plain else weights)
            coef[machine.support_, j] = machine.dual_coef_[0]
            intercept[j] = machine.intercept_[0]
            y = target.Y[:, j]
            alpha, intercept[j] = polish(
                K, coef[:, j] * y, intercept[j], y, np.full(len(y), -1.0), self.C * weights
            )
            coef[:, j] = alpha * y
            return int(np.max(machine.n_iter_)), bool(machine.fit_status_ == 0)

        results = run_in_order(train, range(t), self.n_jobs)
        values = K @ coef
        primal, dual = objectives(values, coef, intercept, target.Y, self.C * weights)
        gap = float(np.max(relative_gap(primal, dual, primal)))
        if not all(finished for _, finished in results) and gap > self.tol:
            warnings.warn(
                f"The SVM stopped after max_iter={limit} iterations with a relative "
                f"duality gap of {gap:.2g}. Raise max_iter, or normalise the data.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Machine(coef, intercept, float(primal.sum()), gap, max(n for n, _ in results))

    def _fit_without_intercept(self, K: np.ndarray, target: Target) -> Machine:
        # libsvm has no machine without one; ours has no equality constraint to keep then.
        C = self.costs(target)

        minus = np.full(len(K), -1.0)

        def train(j: int) -> tuple[np.ndarray, int]:
            y = target.Y[:, j]
            found = svc(K, y, C, tol=self.tol, intercept=False, max_iter=self.max_iter)
            alpha, _ = polish(K, found.alpha, 0.0, y, minus, C, intercept=False)
            return alpha * y, found.n_iter

        found = run_in_order(train, range(target.Y.shape[1]), self.n_jobs)
        coef = np.column_stack([column for column, _ in found])
        return certified(self, K @ coef, coef, target, max(steps for _, steps in found))


def objectives(
    values: np.ndarray, coef: np.ndarray, intercept: np.ndarray, Y: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Primal and dual objective of each machine, shape (t,) both.

    Parameters
    ----------
    values : array of shape (n, t)
        ``K @ coef``, without the intercept.
    coef : array of shape (n, t)
        ``y_i alpha_i`` with ``0 <= alpha_i <= C_i`` and ``sum_i y_i alpha_i = 0``.
    C : array of shape (n,)
    """
    norm = np.einsum("nt,nt->t", coef, values)
    slack = np.maximum(0.0, 1.0 - Y * (values + intercept))
    primal = 0.5 * norm + C @ slack
    dual = np.einsum("nt,nt->t", coef, Y) - 0.5 * norm
    return primal, dual
