"""The support vector machine with one fixed kernel and a free intercept.

    min_{f, b}  1/2 ||f||^2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)),     C_i = C * loss weight

libsvm solves the dual; objective and gap are computed here from what it returns.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import lstsq
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram, run_in_order
from ..solvers.problem import Machine, Target, relative_gap

#: With more free support vectors than this the solver's answer stands as it is.
POLISH_LIMIT = 2000
POLISH_STEPS = 10


class SVM(BaseEstimator):  # type: ignore[misc]
    """One support vector machine per column of the target, all with the same kernel.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the hinge loss.
    tol : float, default=1e-3
        libsvm's tolerance on the optimality conditions.
    max_iter : int, default=-1
        libsvm's limit on iterations, -1 for none.
    n_jobs : int, default=1
        Threads over the machines of a multiclass problem.
    """

    kind = "classification"

    def __init__(
        self, C: float = 1.0, *, tol: float = 1e-3, max_iter: int = -1, n_jobs: int = 1
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, gram: CombinedGram, target: Target) -> Machine:
        """Train all machines on the combined Gram matrix."""
        K = np.ascontiguousarray(gram.dense())
        weights = target.loss_weights
        plain = bool(np.all(weights == 1.0))
        t = target.Y.shape[1]
        coef = np.zeros((len(K), t))
        intercept = np.zeros(t)

        def train(j: int) -> tuple[int, bool]:
            machine = SVC(
                C=self.C,
                kernel="precomputed",
                tol=self.tol,
                max_iter=self.max_iter,
                cache_size=1,  # rows are read from the matrix itself
                shrinking=True,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                machine.fit(K, target.Y[:, j], sample_weight=None if plain else weights)
            coef[machine.support_, j] = machine.dual_coef_[0]
            intercept[j] = machine.intercept_[0]
            coef[:, j], intercept[j] = polish(
                K, coef[:, j], intercept[j], target.Y[:, j], self.C * weights
            )
            return int(np.max(machine.n_iter_)), bool(machine.fit_status_ == 0)

        results = run_in_order(train, range(t), self.n_jobs)
        values = K @ coef
        primal, dual = objectives(values, coef, intercept, target.Y, self.C * weights)
        gap = float(np.max(relative_gap(primal, dual, primal)))
        if not all(finished for _, finished in results):
            warnings.warn(
                f"The SVM stopped after max_iter={self.max_iter} iterations with a relative "
                f"duality gap of {gap:.2g}. Raise max_iter, or normalise the data.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Machine(coef, intercept, float(primal.sum()), gap, max(n for n, _ in results))


def polish(
    K: np.ndarray, coef: np.ndarray, b: float, y: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, float]:
    """From an approximate solution to the exact optimum, by a few active-set steps.

    Free points (``0 < alpha_i < C_i``) have margin one, which is a linear system in their
    coefficients and the intercept:

        K_FF c_F + b 1 = y_F - K_FB c_B,    1'c_F = -1'c_B

    Points whose answer breaks a bound or a margin change sides, and the system is solved again
    until none does. The result is taken only if its duality gap is the smaller one.
    """
    alpha = coef * y
    free = (alpha > 1e-9 * C) & (alpha < C * (1 - 1e-9))
    upper = alpha >= C * (1 - 1e-9)
    best, best_gap = (coef, b), _gap(K @ coef, coef, b, y, C)
    for _ in range(POLISH_STEPS):
        F = np.flatnonzero(free)
        if not 0 < len(F) <= POLISH_LIMIT:
            break
        new = np.where(upper, C, 0.0) * y
        system = np.ones((len(F) + 1, len(F) + 1))
        system[:-1, :-1] = K[np.ix_(F, F)]
        system[-1, -1] = 0.0
        right = np.append(y[F] - K[F] @ new, -new.sum())
        solution = _solve(system, right)
        new[F] = solution[:-1]
        offset = float(solution[-1])
        alpha = new * y
        values = K @ new
        margin = y * (values + offset)
        below, above = free & (alpha < -1e-12 * C), free & (alpha > C * (1 + 1e-12))
        rising = ~free & ~upper & (margin < 1 - 1e-9)
        falling = upper & (margin > 1 + 1e-9)
        if not np.any(below | above):
            gap = _gap(values, new, offset, y, C)
            if gap < best_gap:
                best, best_gap = (new, offset), gap
            if not np.any(rising | falling):
                break
        free = (free & ~below & ~above) | rising | falling
        upper = (upper & ~falling) | above
    return best


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A symmetric system; repeated points make it singular, then its smallest solution."""
    with one_blas_thread(len(A)):
        factors, pivots, info = dgetrf(A)
        if info == 0 and dgecon(factors, np.abs(A).sum(axis=0).max())[0] > 1e-13:
            return np.asarray(dgetrs(factors, pivots, b)[0])
        return np.asarray(lstsq(A, b, check_finite=False, lapack_driver="gelsy")[0])


def _gap(values: np.ndarray, coef: np.ndarray, b: float, y: np.ndarray, C: np.ndarray) -> float:
    primal, dual = objectives(values[:, None], coef[:, None], np.array([b]), y[:, None], C)
    return float(primal[0] - dual[0])


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
