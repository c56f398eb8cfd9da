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
from ..solvers.losses import Hinge
from ..solvers.problem import Machine, Target, relative_gap

#: About a second's worth of factorisations, after which the best answer so far stands.
POLISH_FLOPS = 2e10


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
    """

    kind = "classification"
    loss = Hinge()
    unit = 1.0
    fit_intercept = True

    def __init__(
        self, C: float = 1.0, *, tol: float = 1e-3, max_iter: int = -1, n_jobs: int = 1
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def costs(self, target: Target) -> np.ndarray:
        return self.C * target.loss_weights

    def fit(self, gram: CombinedGram, target: Target) -> Machine:
        """Train all machines on the combined Gram matrix."""
        K = np.ascontiguousarray(gram.dense())
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
            coef[:, j], intercept[j] = polish(
                K, coef[:, j], intercept[j], target.Y[:, j], self.C * weights
            )
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


def polish(
    K: np.ndarray, coef: np.ndarray, b: float, y: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, float]:
    """From an approximate solution to the exact optimum, by an active-set method on the dual.

    Free points (``0 < alpha_i < C_i``) have margin one, which is a linear system in their
    coefficients and the intercept:

        K_FF c_F + b 1 = y_F - K_FB c_B,    1'c_F = -1'c_B

    The step towards its solution ends at the first bound it meets, and that point is fixed there.
    After a full step, points whose margin contradicts their bound are freed. The result is taken
    only if its duality gap is the smaller one.
    """
    c, free = _clean(coef * y, C)
    c *= y
    best, best_gap = (coef, b), _gap(K @ coef, coef, b, y, C)
    work, releases = 0.0, 0
    while work < POLISH_FLOPS:
        if not np.any(free):
            pair, offset = _violating_pair(y - K @ c, c * y >= C, y)
            if not pair:
                gap = _gap(K @ c, c, offset, y, C)
                return (c, offset) if gap < best_gap else best
            free[pair] = True
        F = np.flatnonzero(free)
        work += 1e6 + 2.0 * len(F) ** 3 + 4.0 * len(c) * len(F)
        system = np.ones((len(F) + 1, len(F) + 1))
        system[:-1, :-1] = K[np.ix_(F, F)]
        system[-1, -1] = 0.0
        fixed = np.where(free, 0.0, c)
        solution = _solve(system, np.append(y[F] - K[F] @ fixed, -fixed.sum()))
        step = (solution[:-1] - c[F]) * y[F]
        length, blocking = _first_bound(c[F] * y[F], step, C[F])
        if length < 1.0:
            i = F[blocking]
            c[F] += length * step * y[F]
            c[i] = (C[i] if step[blocking] > 0 else 0.0) * y[i]
            free[i] = False
            continue
        c[F], offset = solution[:-1], float(solution[-1])
        values = K @ c
        gap = _gap(values, c, offset, y, C)
        if gap < best_gap:
            best, best_gap = (c.copy(), offset), gap
        margin = y * (values + offset)
        violation = np.where(free, 0.0, np.where(c * y > 0, margin - 1.0, 1.0 - margin))
        if violation.max() <= 1e-10:
            break
        # All at once is quick; one at a time cannot go round in circles.
        releases += 1
        free |= violation > (1e-10 if releases <= 3 else violation.max() * (1 - 1e-12))
    return best


def _clean(alpha: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients with those at a bound exactly there, and which of them are free."""
    alpha = np.where(alpha < 1e-9 * C, 0.0, np.where(alpha > C * (1 - 1e-9), C, alpha))
    return alpha, (alpha > 0) & (alpha < C)


def _violating_pair(
    gradient: np.ndarray, upper: np.ndarray, y: np.ndarray
) -> tuple[list[int], float]:
    """The two points that gain most from a joint step, none at the optimum; and the intercept."""
    rising = np.flatnonzero(np.where(upper, y < 0, y > 0))
    falling = np.flatnonzero(np.where(upper, y > 0, y < 0))
    if not len(rising) or not len(falling):
        edge = gradient[rising].max() if len(rising) else gradient[falling].min()
        return [], float(edge)
    i = rising[np.argmax(gradient[rising])]
    j = falling[np.argmin(gradient[falling])]
    if gradient[i] - gradient[j] <= 1e-10:
        return [], float(0.5 * (gradient[i] + gradient[j]))
    return [int(i), int(j)], 0.0


def _first_bound(alpha: np.ndarray, step: np.ndarray, C: np.ndarray) -> tuple[float, int]:
    """How far one can go before a coefficient leaves its box, and which one it is."""
    room = np.where(step > 0, C - alpha, alpha)
    moving = np.abs(step) > 1e-14 * C
    limits = np.divide(room, np.abs(step), out=np.full_like(room, np.inf), where=moving)
    first = int(np.argmin(limits))
    return (1.0 if limits[first] >= 1.0 - 1e-12 else max(float(limits[first]), 0.0)), first


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
