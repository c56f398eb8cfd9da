"""Kernel ridge regression with one fixed kernel and a free intercept.

    min_{f, b}  lam ||f||^2 + sum_i omega_i (y_i - f(x_i) - b)^2

With ``f = sum_j c_j K(x_j, .)`` the optimum solves ``(K + lam Omega^-1) c + b 1 = y, 1'c = 0``.
With a centred kernel this is ridge regression on the centred target, with the mean added back.
Because of the intercept the predictions are the same with and without centring.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from .._threads import one_blas_thread
from ..grams.low_rank_inverse import LowRankInverse
from ..grams.protocol import CombinedGram
from ..problem import Machine, Target, relative_gap
from ..problem.losses import Squared
from .base import require_offers
from .leave_one_out import LeaveOneOutProblem, best_ridge, is_centred, leave_one_out
from .left_out import copy_share, solves_fast, values_without_all, values_without_each
from .preconditioner import find_preconditioner

#: With more samples, ``leave_one_out=True`` has no effect, because it needs an inverse matrix.
MAX_LEFT_OUT_SAMPLES = 5000
#: Rough products stop at this fraction of the tolerance, so that the true gap is likely within it.
ROUGH_SHARE = 0.5
#: Steps with rough products after which the true gap is computed in any case.
MAX_ROUGH_STEPS = 64


class Ridge(BaseEstimator):  # type: ignore[misc]
    """Ridge regression of every column of the target.

    Parameters
    ----------
    alpha : float or "loo", default=1.0
        The ridge ``lam``; ``"loo"`` is the value with the smallest leave-one-out error.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        ``"cholesky"`` solves the linear system with a Cholesky factor of the kernel matrix.
        ``"cg"``, conjugate gradients, needs only products with the combined kernel and some of its
        columns, for a preconditioner, and never forms the matrix. ``"auto"`` factors the matrix if
        it fits the memory budget.
    tol : float, default=1e-6
        Accuracy of conjugate gradients, which stop when the fitted values are proven to be within
        ``tol`` standard deviations of y (root mean square) of the exact ones, and the relative
        duality gap is at most ``tol``.
    max_iter : int, default=1000
        Limit on conjugate-gradient steps.
    fit_intercept : bool, default=True
        Whether b is free, or zero.
    leave_one_out : bool, default=False
        Whether to compute leave-one-out predictions of up to 5,000 samples, if the matrix fits.
    """

    needs = ("matvec", "solve")
    kind = "regression"
    loss = Squared()
    #: Up to this many samples, every sample is left out.
    max_left_out = 500

    def __init__(
        self,
        alpha: float | str = 1.0,
        *,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        leave_one_out: bool = False,
    ) -> None:
        self.alpha = alpha
        self.leave_one_out = leave_one_out
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept

    @property
    def unit(self) -> float:
        return 2.0 * self._fixed_alpha()

    def costs(self, target: Target) -> np.ndarray:
        return np.asarray(target.loss_weights / self._fixed_alpha())

    def _fixed_alpha(self) -> float:
        if isinstance(self.alpha, str):
            raise ValueError(
                "alpha='loo' (C='loo' for a classifier) chooses the constant for one fixed "
                "kernel. A weighting that learns kernel weights and predictor together needs a "
                "number; or use a two-stage weighting such as 'loo' or 'alignf'."
            )
        return self.alpha

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """Solve for all outputs together; ``start`` is ignored."""
        require_offers(self, gram)
        alpha, left_out = self.alpha, None
        if isinstance(alpha, str):
            alpha, best = best_ridge(gram, target, self.fit_intercept)
            left_out = best.predictions_of(self.fit_intercept)
        elif self.leave_one_out and gram.n <= MAX_LEFT_OUT_SAMPLES and "factor" in gram.offers:
            free = self.fit_intercept or is_centred(gram, target)
            problem = LeaveOneOutProblem.of(target, free, alpha)
            left_out = leave_one_out(gram.dense(), problem).predictions_of(self.fit_intercept)
        solver = self.solver
        if solver == "auto":
            solver = "cholesky" if "factor" in gram.offers else "cg"
        elif solver == "cholesky" and not gram.offers & {"factor", "dense"}:
            gram.dense()  # raises an error that states the memory needed for the matrix
        ridge = alpha / target.loss_weights
        if solver == "cholesky":
            with one_blas_thread(gram.n):
                coef, intercept, values = solve_directly(
                    gram, target.Y, ridge, fit_intercept=self.fit_intercept
                )
            steps = 1
        else:
            coef, intercept, values, steps = conjugate_gradients(
                gram,
                target.Y,
                ridge,
                alpha,
                self.tol,
                self.max_iter,
                fit_intercept=self.fit_intercept,
                preconditioner=find_preconditioner(gram, ridge),
            )
        primal, dual, scale = objectives(
            values, coef, intercept, target.Y, ridge, alpha, fit_intercept=self.fit_intercept
        )
        gap = float(np.max(relative_gap(primal, dual, scale)))
        inexact = solver == "cg" and steps == self.max_iter
        error = float(np.max(value_error(primal, dual, scale, target.Y, ridge, alpha)))
        if gap > max(self.tol, 1e-6) or (inexact and error > self.tol):
            warnings.warn(
                f"Ridge regression ({solver}) ended with a relative duality gap of {gap:.2g} and "
                f"fitted values within {error:.2g} standard deviations of y of the exact ones, "
                f"above tol={self.tol:g}. "
                + ("Raise max_iter." if solver == "cg" else "Raise alpha: K is ill-conditioned."),
                ConvergenceWarning,
                stacklevel=2,
            )
        return Machine(
            coef,
            intercept,
            float(primal.sum()),
            gap,
            steps,
            left_out=left_out,
            chosen=alpha if isinstance(self.alpha, str) else None,
        )

    def left_out(
        self, gram: CombinedGram, target: Target, machine: Machine, rows: np.ndarray
    ) -> np.ndarray:
        """Predictions of some samples as if they had been left out, shape (len(rows), t)."""
        if machine.left_out is not None:
            return np.asarray(machine.left_out[rows])
        alpha = self._fixed_alpha() if machine.chosen is None else machine.chosen
        if not solves_fast(gram, rows):
            return values_without_all(clone(self).set_params(alpha=alpha), gram, target, rows)
        values = gram.matvec(machine.coef) if machine.values is None else machine.values
        return values_without_each(
            gram,
            values + machine.intercept,
            machine.coef,
            target.loss_weights / alpha,
            copy_share(target),
            rows,
            fit_intercept=self.fit_intercept,
            centred=is_centred(gram, target),
        )


def solve_directly(
    gram: CombinedGram, Y: np.ndarray, ridge: np.ndarray, *, fit_intercept: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, intercepts and fitted values (without intercept) by one linear solve."""
    # The intercept absorbs the mean, which, if large, would cost the coefficients digits.
    mean = Y.mean(axis=0) if fit_intercept else np.zeros(Y.shape[1])
    S = gram.solve(ridge, np.column_stack([Y - mean, np.ones(gram.n)]))
    if not fit_intercept:
        return S[:, :-1], mean, gram.matvec(S[:, :-1])
    ones = S[:, -1]
    intercept = S[:, :-1].sum(axis=0) / ones.sum()
    coef = S[:, :-1] - np.outer(ones, intercept)
    coef -= coef.mean(axis=0)  # feasible for the dual up to rounding
    return coef, intercept + mean, gram.matvec(coef)


def objectives(
    values: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    Y: np.ndarray,
    ridge: np.ndarray,
    lam: float,
    *,
    fit_intercept: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Primal and dual objective of each output, and the scale of their rounding errors.

    For any c, with ``1'c = 0`` if the intercept is free, the dual is
    ``lam (2 c'y - c'Kc - c' diag(ridge) c)``.
    """
    norm = np.einsum("nt,nt->t", coef, values)
    residual = Y - values - intercept
    primal = lam * norm + np.einsum("nt,n->t", residual**2, lam / ridge)
    Y = Y - Y.mean(axis=0) if fit_intercept else Y
    fit = np.einsum("nt,nt->t", coef, Y)
    dual = lam * (2 * fit - norm - np.einsum("nt,n->t", coef**2, ridge))
    size = lam * (np.abs(fit) + np.abs(norm))
    return primal, dual, size


def value_error(
    primal: np.ndarray,
    dual: np.ndarray,
    scale: np.ndarray,
    Y: np.ndarray,
    ridge: np.ndarray,
    lam: float,
) -> np.ndarray:
    """Bound on the error of the fitted values of each output, in standard deviations of y.

    The objective is quadratic, so that ``lam ||f - f*||^2 + sum_i omega_i (f - f*)(x_i)^2`` is its
    distance from the optimum, which the duality gap bounds. Errors and deviations are root mean
    squares weighted by omega.
    """
    omega = lam / ridge
    mean = np.average(Y, axis=0, weights=omega)
    spread = omega @ (Y - mean) ** 2
    gap = relative_gap(primal, dual, scale) * np.abs(primal)
    return np.sqrt(np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0))


def conjugate_gradients(
    gram: CombinedGram,
    Y: np.ndarray,
    ridge: np.ndarray,
    lam: float,
    tol: float,
    max_iter: int,
    *,
    fit_intercept: bool = True,
    preconditioner: LowRankInverse | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Coefficients, intercepts, fitted values and number of steps, by conjugate gradients.

        minimise 1/2 x'Ax - x'y over 1'x = 0,   A = K + diag(ridge)

    Each step needs one product with the kernel for all outputs together. The duality gap, which
    ends the iteration (see `value_error`), needs no further product, since ``Ax`` is known.

    With the preconditioner P the direction is the solution of ``P z + m 1 = r, 1'z = 0``, where r
    is the residual and m the multiplier of the constraint. Without one, P is the identity.

    If the operator has rough products, steps use these. Where they seem to have converged, one
    accurate product gives the true gap; if that is too large, the iteration starts again from the
    true residual, and without rough products if they no longer help.
    """
    n, t = Y.shape
    ones = np.ones((n, 1))
    inverse_ones = ones if preconditioner is None else preconditioner.solve(ones)

    def direction(R: np.ndarray) -> np.ndarray:
        Z = R if preconditioner is None else preconditioner.solve(R)
        return Z - inverse_ones * (Z.sum(axis=0) / inverse_ones.sum()) if fit_intercept else Z

    def best_intercept(residual: np.ndarray) -> np.ndarray:
        if not fit_intercept:
            return np.zeros(t)
        return np.average(residual, axis=0, weights=1.0 / ridge)

    def product(V: np.ndarray, rough: bool) -> np.ndarray:
        return (gram.rough_matvec(V) if rough else gram.matvec(V)) + ridge[:, None] * V

    def residual(AX: np.ndarray) -> np.ndarray:
        # Only the part of the residual orthogonal to 1 matters: remove the mean.
        R = Y - AX
        return R - R.mean(axis=0) if fit_intercept else R

    def judge(X: np.ndarray, AX: np.ndarray) -> tuple[np.ndarray, float]:
        """The best intercept, and the larger of duality gap and error of the fitted values."""
        values = AX - ridge[:, None] * X
        intercept = best_intercept(Y - values)
        primal, dual, scale = objectives(
            values, X, intercept, Y, ridge, lam, fit_intercept=fit_intercept
        )
        error = value_error(primal, dual, scale, Y, ridge, lam)
        return intercept, float(np.max(np.maximum(relative_gap(primal, dual, scale), error)))

    X, AX = np.zeros((n, t)), np.zeros((n, t))
    R = residual(AX)
    D, rho = np.zeros((n, t)), np.zeros(t)
    step = checked = 0
    intercept, last = judge(X, AX)
    rough = gram.rough_products
    for step in range(1, max_iter + 1):
        Z = direction(R)
        new = np.einsum("nt,nt->t", R, Z)
        beta = np.divide(new, rho, out=np.zeros(t), where=rho > 0)
        D, rho = Z + beta * D, new
        AD = product(D, rough)
        curvature = np.einsum("nt,nt->t", D, AD)
        alpha = np.divide(rho, curvature, out=np.zeros(t), where=curvature > 0)
        X += alpha * D
        AX += alpha * AD
        R = residual(AX)
        intercept, error = judge(X, AX)
        due = step == min(checked + MAX_ROUGH_STEPS, max_iter)
        if rough and (error <= ROUGH_SHARE * tol or due):
            AX = product(X, False)
            R = residual(AX)
            intercept, error = judge(X, AX)
            rough, last, checked = error < 0.5 * last, error, step
            rho = np.zeros(t)  # start again from the true residual
        if error <= tol:
            break
    return X, intercept, AX - ridge[:, None] * X, step
