"""Exact leave-one-out residuals of kernel ridge regression, and how they change with the kernel.

    min_{f, b}  ||f||^2 + sum_i c_i (y_i - f(x_i) - b)^2,      f = sum_j s_j K(x_j, .)

The optimum is ``s = P y`` with ``P = B - B 1 1'B / (1'B 1)``, ``B = (K + diag(1/c))^-1`` (``P = B``
without an intercept), and ``e_i = s_i / c_i`` are its residuals. A sample of cost ``c_i`` counts as
``omega_i`` equal copies. Leaving out one copy, the share ``rho_i = min(1, 1 / omega_i)`` of its
cost, changes the residual to

    r_i = s_i / d_i,      d_i = (1 - rho_i) c_i + rho_i P_ii

The criterion is ``L = sum_i c_i r_i^2``, summed over outputs. Since ``dP = -P dK P``,

    dL = <G, dK>,   G = 2 (P diag(v) P - sym(P u s')),   u = c r / d,   v = rho c r s / d^2

with the terms of ``u s'`` and v summed over outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from .. import _cholesky
from .._mirror import mirror
from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram
from ..problem import Target

#: Range of ridge constants to search, relative to the mean diagonal of the kernel.
SMALLEST_RIDGE, LARGEST_RIDGE = 1e-7, 1e4
#: A kernel counts as centred if its row sums are below this fraction of n times the mean diagonal.
CENTRED_SUM = 1e-6
#: Rows whose sums are computed first: in most kernels that are not centred, one is not zero.
FIRST_ROWS = 8
#: The search begins with at most this many samples, and with this step of the log ridge constant.
MAX_SEARCH_SAMPLES, COARSE_STEP = 250, 2.0
#: Step of the log ridge constant on the whole sample; the minimum is interpolated.
FINE_STEP = 0.5


@dataclass(frozen=True)
class LeaveOneOutProblem:
    """The parts that do not depend on the kernel: targets, costs, and the share that is left out.

    Attributes
    ----------
    Y : array of shape (n, t)
        Centred if the intercept is free, so that a large mean costs no digits.
    mean : array of shape (t,)
        The means that were subtracted from the targets.
    costs : array of shape (n,)
        ``c``.
    share : array of shape (n,)
        ``rho``.
    fit_intercept : bool
    """

    Y: np.ndarray
    mean: np.ndarray
    costs: np.ndarray
    share: np.ndarray
    fit_intercept: bool

    @classmethod
    def of(cls, target: Target, fit_intercept: bool, alpha: float = 1.0) -> LeaveOneOutProblem:
        """The problem of a target, with the ridge constant ``alpha``."""
        costs = target.loss_weights / alpha
        mean = np.zeros(target.Y.shape[1])
        if fit_intercept:
            mean = np.average(target.Y, axis=0, weights=costs)
        omega = np.ones(len(costs)) if target.sample_weight is None else target.sample_weight
        return cls(target.Y - mean, mean, costs, np.minimum(1.0, 1.0 / omega), fit_intercept)

    def constant_error(self) -> float:
        """The error of the best constant (zero without an intercept), with no sample left out."""
        return float(self.costs @ np.sum(self.Y**2, axis=1))


@dataclass(frozen=True)
class LeaveOneOutFit:
    """The optimum for one kernel matrix, and its leave-one-out residuals.

    Attributes
    ----------
    problem : LeaveOneOutProblem
    P : array of shape (n, n)
    coef : array of shape (n, t)
        ``s``.
    left : array of shape (n,)
        The denominators ``d``.
    residuals : array of shape (n, t)
        ``r``: target minus prediction for each sample by the function trained without it.
    error : float
        The criterion L.
    """

    problem: LeaveOneOutProblem
    P: np.ndarray
    coef: np.ndarray
    left: np.ndarray
    residuals: np.ndarray
    error: float

    @property
    def predictions(self) -> np.ndarray:
        """The prediction for each sample by the function trained without it, shape (n, t)."""
        return np.asarray(self.problem.Y + self.problem.mean - self.residuals)

    def predictions_of(self, fit_intercept: bool) -> np.ndarray:
        """The same for a model with or without an intercept, if the kernel is centred.

        Functions of a kernel that is centred without the sample are those with a free intercept
        less their mean, which is that of the other targets: exactly if the costs are proportional
        to the sample weights, approximately with class weights.
        """
        if fit_intercept == self.problem.fit_intercept:
            return self.predictions
        Y, c, share = self.problem.Y, self.problem.costs, self.problem.share
        return np.asarray(Y - self.residuals - mean_of_others(Y, c, share))

    def gradient(self) -> np.ndarray:
        """The symmetric matrix G with ``dL = <G, dK>``."""
        u, v = self._sensitivities()
        G = _congruence(self.P, v)
        half = (self.P @ u) @ self.coef.T
        G -= 0.5 * (half + half.T)
        G *= 2.0
        return G

    def scale_derivative(self) -> float:
        """``<G, K>``, the derivative of L with respect to the logarithm of a factor of K.

        No product of matrices is needed, since ``P K s = s - P (s / c)`` and ``P K P`` has the
        diagonal ``P_ii - sum_j P_ij^2 / c_j``.
        """
        u, v = self._sensitivities()
        costs = self.problem.costs
        diagonal = np.diag(self.P) - np.einsum("ij,ij,j->i", self.P, self.P, 1.0 / costs)
        moved = self.coef - self.P @ (self.coef / costs[:, None])
        return 2.0 * float(v @ diagonal - np.sum(u * moved))

    def _sensitivities(self) -> tuple[np.ndarray, np.ndarray]:
        """``u`` of shape (n, t) and ``v`` of shape (n,)."""
        c, share = self.problem.costs, self.problem.share
        u = c[:, None] * self.residuals / self.left[:, None]
        return u, share * np.sum(u * self.coef, axis=1) / self.left


def leave_one_out(K: np.ndarray, problem: LeaveOneOutProblem) -> LeaveOneOutFit:
    """Ridge regression on the matrix K and its leave-one-out residuals, by one factorisation.

    Raises LinAlgError if ``K + diag(1/c)`` is not positive definite in double precision.
    """
    P = _plus_costs(K, problem)
    with one_blas_thread(len(K), 400):
        _cholesky.factor(P)
        _cholesky.invert(P)
    mirror(P)
    if problem.fit_intercept:
        ones = P.sum(axis=1)
        P -= np.outer(ones, ones / ones.sum())
    coef = P @ problem.Y
    return LeaveOneOutFit(problem, P, coef, *_left_out(coef, np.diag(P), problem))


@dataclass(frozen=True)
class LeaveOneOutErrors:
    """Coefficients, residuals and error of a `LeaveOneOutFit`, which has what derivatives need."""

    coef: np.ndarray
    residuals: np.ndarray
    error: float


def leave_one_out_errors(K: np.ndarray, problem: LeaveOneOutProblem) -> LeaveOneOutErrors:
    """The errors of `leave_one_out` in two thirds of its time: of P, only the diagonal is computed.

    Raises LinAlgError if ``K + diag(1/c)`` is not positive definite in double precision.
    """
    n, A = len(K), _plus_costs(K, problem)
    with one_blas_thread(n, 400):
        _cholesky.factor(A)
        _cholesky.invert_factor(A)
        M = np.tril(A)  # B = M'M
        solved = M.T @ (M @ np.column_stack([problem.Y, np.ones(n)]))
    diagonal, coef = np.einsum("ij,ij->j", M, M), solved[:, :-1]
    if problem.fit_intercept:
        ones = solved[:, -1] / np.sqrt(solved[:, -1].sum())
        diagonal -= ones**2
        coef = coef - np.outer(ones, ones @ problem.Y)
    return LeaveOneOutErrors(coef, *_left_out(coef, diagonal, problem)[1:])


def _plus_costs(K: np.ndarray, problem: LeaveOneOutProblem) -> np.ndarray:
    """``K + diag(1/c)``, a new array."""
    A = np.array(K, order="C")
    A[np.diag_indices(len(K))] += 1.0 / problem.costs
    return A


def _left_out(
    coef: np.ndarray, diagonal: np.ndarray, problem: LeaveOneOutProblem
) -> tuple[np.ndarray, np.ndarray, float]:
    """The denominators d, the residuals and the error; ``diagonal`` is that of P."""
    c = problem.costs
    # A diagonal that rounding made negative belongs to a sample that the others do not constrain.
    diagonal = np.maximum(diagonal, np.finfo(np.float64).eps * c)
    left = (1.0 - problem.share) * c + problem.share * diagonal
    residuals = coef / left[:, None]
    return left, residuals, float(c @ np.sum(residuals**2, axis=1))


def _congruence(P: np.ndarray, v: np.ndarray) -> np.ndarray:
    """``P diag(v) P`` for a symmetric P, by two symmetric products."""
    out = np.zeros_like(P)
    for sign in (1.0, -1.0):
        chosen = sign * v > 0
        if np.any(chosen):
            half = P[chosen] * np.sqrt(np.abs(v[chosen]))[:, None]
            _cholesky.add_product(out, half, sign)
    mirror(out)
    return out


def is_centred(gram: CombinedGram, target: Target) -> bool:
    """Whether functions of the kernel sum to zero over the sample.

    Without an intercept, the other targets would then reveal the one that is left out.
    """
    if gram.known_centred(target.sample_weight):
        return True
    omega = np.ones(gram.n) if target.sample_weight is None else target.sample_weight
    limit = CENTRED_SUM * abs(float(np.mean(gram.diagonal()))) * float(omega.sum())
    if np.abs(gram.rows(np.arange(min(gram.n, FIRST_ROWS))) @ omega).max() > limit:
        return False
    return bool(np.abs(gram.matvec(omega)).max() <= limit)


def mean_of_others(Y: np.ndarray, costs: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The mean target, weighted by cost, without this share of each sample; shape of Y."""
    own = (costs * share)[:, None]
    rest = np.maximum(costs.sum() - own, np.finfo(np.float64).tiny)
    return np.asarray((costs @ Y - own * Y) / rest)


def best_ridge(
    gram: CombinedGram, target: Target, fit_intercept: bool
) -> tuple[float, LeaveOneOutFit]:
    """The ridge constant with the smallest leave-one-out error, and the fit with it.

    The search is over the logarithm of the constant, relative to the mean diagonal of the kernel:
    first in large steps on a part of the sample, then in smaller ones near the value found there.
    The places where the error is evaluated depend on comparisons only, so that rounding does not
    move the result. For a centred kernel the error and the fit are those with a free intercept, see
    `is_centred`.
    """
    if "dense" not in gram.offers:
        raise ValueError(
            f"The leave-one-out error needs the {gram.n} x {gram.n} kernel matrix, which does not "
            "fit in memory. Raise memory_budget, or pass a number instead of 'loo'."
        )
    K = gram.dense()
    unit = float(np.mean(gram.diagonal()))
    unit = unit if unit > 0 else 1.0
    problem = LeaveOneOutProblem.of(target, fit_intercept or is_centred(gram, target))
    part, near = K / unit, problem
    if gram.n > MAX_SEARCH_SAMPLES:
        rows = np.random.default_rng(0).permutation(gram.n)[:MAX_SEARCH_SAMPLES]
        part = part[np.ix_(rows, rows)]
        near = LeaveOneOutProblem.of(target.take(rows), problem.fit_intercept)
    coarse = _RidgePath(part, near, COARSE_STEP)
    begin = COARSE_STEP * min(coarse.places(), key=coarse.error)
    log_ridge = _RidgePath(K / unit, problem, FINE_STEP).minimum_near(begin)
    alpha = unit * float(np.exp(log_ridge))
    return alpha, leave_one_out(K / alpha, problem)


class _RidgePath:
    """The logarithm of the leave-one-out error at multiples of a step of the log ridge constant."""

    def __init__(self, K: np.ndarray, problem: LeaveOneOutProblem, step: float) -> None:
        self.K, self.problem, self.step = K, problem, step
        self.found: dict[int, float] = {}

    def places(self) -> range:
        low, high = np.log(SMALLEST_RIDGE), np.log(LARGEST_RIDGE)
        return range(int(np.ceil(low / self.step)), int(np.floor(high / self.step)) + 1)

    def error(self, place: int) -> float:
        if place not in self.places():
            return np.inf
        if place not in self.found:
            try:
                found = leave_one_out_errors(self.K * np.exp(-self.step * place), self.problem)
                self.found[place] = float(np.log(max(found.error, 1e-300)))
            except LinAlgError:
                self.found[place] = np.inf
        return self.found[place]

    def minimum_near(self, begin: float) -> float:
        """The log ridge constant of the local minimum reached by descending from ``begin``."""
        places = self.places()
        here = min(max(round(begin / self.step), places[0]), places[-1])
        while True:
            best = min((here, here - 1, here + 1), key=self.error)
            if best == here:
                break
            here = best
        below, least, above = (self.error(here + side) for side in (-1, 0, 1))
        # The minimum of the parabola through the three values; none at the ends of the range.
        bend = below - 2.0 * least + above
        shift = 0.5 * (below - above) / bend if np.isfinite(bend) and bend > 0 else 0.0
        return self.step * (here + shift)


def best_cost(gram: CombinedGram, target: Target, fit_intercept: bool) -> float:
    """The cost C for other losses: one over the best ridge constant for the labels."""
    return 1.0 / best_ridge(gram, target, fit_intercept)[0]


def fixed_cost(C: float | str) -> float:
    """The cost C; raise ValueError if it is not a number."""
    if isinstance(C, str):
        raise ValueError(
            f"C={C!r} chooses the cost for one fixed kernel. A weighting that learns kernel "
            "weights and predictor together needs a number; or use a two-stage weighting such as "
            "'loo'."
        )
    return C
