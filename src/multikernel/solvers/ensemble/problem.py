"""The second stage of an ensemble: the weights of the hypotheses.

Given are the values ``H[i, k, j]`` of p hypotheses for t outputs, at samples that the hypotheses
were not trained on. The weights solve

    min  sum_ij C_i l(sum_k mu_k H[i, k, j] + b_j, Y[i, j])     over b and mu in the ball B

    B = {||mu||_q <= radius}, q = 1 or 2, with mu >= 0 unless signed.

(Cortes, Mohri & Rostamizadeh 2012, section 3.3, do not specify the second stage; these balls are
usual in kernel learning.) The dual, with signed coefficients s as in
:mod:`multikernel.problem.losses`, is

    max  - sum_ij C_i l*(-s_ij / C_i, Y_ij) - radius * ||g||_*,   g_k = sum_ij s_ij H[i, k, j]

with ``1's = 0`` for every output with an intercept; ``||g||_*`` is the maximum of ``mu'g`` over the
unit ball. A primal-dual interior-point method (:mod:`multikernel.solvers.ensemble.steps`) solves
both in about twenty Newton steps of size p + t. Primal and dual value are computed at feasible
points, so the returned gap is valid even if the iteration is inaccurate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...problem.losses import Hinge, Squared
from .steps import Iterate

#: Weights below this fraction of the largest are set to zero if the gap allows it; the fractions
#: are tried in this order.
ZERO_WEIGHT_RATIOS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-12)


@dataclass(frozen=True)
class HypothesisBall:
    """The set ``{||mu||_q <= radius}`` of weights, with ``mu >= 0`` unless signed.

    Attributes
    ----------
    q : {1, 2}
    signed : bool
    radius : float
    """

    q: int = 1
    signed: bool = False
    radius: float = 1.0

    def __post_init__(self) -> None:
        if self.q not in (1, 2):
            raise ValueError(f"HypothesisBall: q must be 1 or 2; got {self.q!r}.")
        if not 0 < self.radius < np.inf:
            raise ValueError(
                f"HypothesisBall: radius must be a positive finite number; got {self.radius!r}."
            )

    def support(self, g: np.ndarray) -> float:
        """The maximum of ``mu'g`` over the ball."""
        g = np.abs(g) if self.signed else np.maximum(g, 0.0)
        return self.radius * float(g.max(initial=0.0) if self.q == 1 else np.linalg.norm(g))

    def contains(self, mu: np.ndarray, slack: float = 1e-12) -> bool:
        """Whether weights lie in the ball, up to a relative slack."""
        size = float(np.linalg.norm(mu, self.q))
        return size <= self.radius * (1 + slack) and bool(self.signed or np.all(mu >= 0))


@dataclass(frozen=True)
class EnsembleSolution:
    """Weights of the hypotheses, with a proven bound of the optimum.

    Attributes
    ----------
    weights : array of shape (p,)
    intercept : array of shape (t,)
    objective : float
        The loss at the weights.
    bound : float
        A lower bound of the loss for all weights in the ball.
    gap : float
        ``objective - bound``, relative to the loss without any hypothesis.
    coef : array of shape (n, t)
        The dual coefficients s that prove the bound.
    n_iter : int
        Newton steps.
    """

    weights: np.ndarray
    intercept: np.ndarray
    objective: float
    bound: float
    gap: float
    coef: np.ndarray
    n_iter: int


def combine_hypotheses(
    H: np.ndarray,
    Y: np.ndarray,
    C: np.ndarray,
    loss: Hinge | Squared,
    ball: HypothesisBall,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-10,
    max_iter: int = 100,
) -> EnsembleSolution:
    """The weights of hypotheses from their values at samples they were not trained on.

    Parameters
    ----------
    H : array of shape (n, p, t)
        Values of the hypotheses.
    Y : array of shape (n, t)
        Labels -1 and +1 for the hinge loss, outputs for the squared loss.
    C : array of shape (n,)
        Positive factors of the losses.
    tol : float, default=1e-10
        The gap to reach, relative to the loss of zero weights.
    max_iter : int, default=100
        Limit on Newton steps.
    """
    H, Y, C = _check(H, Y, C)
    problem = EnsembleProblem(H, Y, C, loss, ball, fit_intercept)
    with one_blas_thread(problem.size):
        found = _interior_point(problem, tol, max_iter)
    if found.gap > tol:
        warnings.warn(
            f"The weights of the ensemble have a relative gap of {found.gap:.2g}, above tol="
            f"{tol:g}, after {found.n_iter} Newton steps. Raise max_iter, or scale the hypotheses "
            "to the size of the targets.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found


def _check(
    H: np.ndarray, Y: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays in float64, with shapes and values checked."""
    H, Y, C = (np.asarray(part, dtype=np.float64) for part in (H, Y, C))
    if H.ndim != 3 or Y.shape != (H.shape[0], H.shape[2]) or C.shape != (H.shape[0],):
        raise ValueError(
            "Hypotheses, targets and costs must have shapes (n, p, t), (n, t) and (n,); got "
            f"{H.shape}, {Y.shape} and {C.shape}."
        )
    if not (np.isfinite(H).all() and np.isfinite(Y).all()):
        raise ValueError(
            "Values of hypotheses or targets are NaN or infinite. Check the targets, and the "
            "kernels for overflow."
        )
    if not (np.all(C > 0) and np.isfinite(C).all()):
        raise ValueError("Costs must be positive and finite; leave out samples of weight zero.")
    return H, Y, C


class EnsembleProblem:
    """The primal and dual problem, and the scaled arrays of the interior-point method."""

    def __init__(
        self,
        H: np.ndarray,
        Y: np.ndarray,
        C: np.ndarray,
        loss: Hinge | Squared,
        ball: HypothesisBall,
        fit_intercept: bool,
    ) -> None:
        n, self.p, self.t = H.shape
        self.H, self.Y, self.C, self.loss, self.ball = H, Y, C, loss, ball
        self.fit_intercept = fit_intercept
        self.empty, _ = self.primal(np.zeros(self.p))
        # Signed weights of an l1 ball are differences of two non-negative weights.
        columns = H.transpose(0, 2, 1).reshape(n * self.t, self.p)
        self.doubled = ball.signed and ball.q == 1
        if self.doubled:
            columns = np.concatenate([columns, -columns], axis=1)
        else:
            columns = columns.copy()
        self.size = columns.shape[1]
        if fit_intercept:
            columns = np.concatenate([columns, np.tile(np.eye(self.t), (n, 1))], axis=1)
        self.design = columns
        self.design[:, : self.size] *= ball.radius  # weights are in units of the radius
        self.y = Y.reshape(-1)
        self.c = np.repeat(C, self.t) / (self.empty or 1.0)

    def primal(self, mu: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss at the weights with the best intercepts, and these intercepts."""
        F = np.einsum("nkt,k->nt", self.H, mu)
        b = np.zeros(self.t)
        if self.fit_intercept:
            b = np.asarray(self.loss.intercept(F, self.Y, self.C), dtype=np.float64)
        return float(np.sum(self.loss.value(F, self.Y, self.C, b))), b

    def dual(self, s: np.ndarray) -> tuple[float, np.ndarray]:
        """A lower bound of the optimum from any s, and the feasible coefficients that prove it."""
        S = s.reshape(self.Y.shape)
        if isinstance(self.loss, Hinge):
            S = self.Y * np.clip(S * self.Y, 0.0, self.C[:, None])
            if self.fit_intercept:  # scale the class with the larger sum, which keeps the bounds
                plus, minus = np.maximum(S, 0.0), np.maximum(-S, 0.0)
                up, down = plus.sum(axis=0), minus.sum(axis=0)
                low = np.minimum(up, down)
                S = plus * _ratio(low, up) - minus * _ratio(low, down)
        elif self.fit_intercept:
            S = S - S.sum(axis=0) * (self.C / self.C.sum())[:, None]
        g = np.einsum("nkt,nt->k", self.H, S)
        value = float(np.sum(self.loss.dual(S, self.Y, self.C))) - self.ball.support(g)
        return value, S

    def weights(self, v: np.ndarray) -> np.ndarray:
        """Weights of an iterate, scaled into the ball if it is outside."""
        mu = v[: self.p] - v[self.p : 2 * self.p] if self.doubled else v[: self.p]
        return self.ball.radius * mu / max(1.0, float(np.linalg.norm(mu, self.ball.q)))


def _interior_point(problem: EnsembleProblem, tol: float, max_iter: int) -> EnsembleSolution:
    """The best weights and the best bound of Newton steps until the tolerance is met."""
    mu, best, bound = np.zeros(problem.p), problem.empty, -np.inf
    S = np.zeros_like(problem.Y)
    steps = 0
    if problem.empty > 0:
        iterate = Iterate(problem)
        while True:
            candidate = problem.weights(iterate.x)
            value, _ = problem.primal(candidate)
            if value < best:
                mu, best = candidate, value
            low, feasible = problem.dual(problem.empty * iterate.signed_coef())
            if low > bound:
                bound, S = low, feasible
            if best - bound <= tol * problem.empty or steps >= max_iter:
                break
            iterate.step()
            steps += 1
            if not np.isfinite(iterate.mean()):
                break  # the iterate is at the precision of float64
    else:
        bound = 0.0  # zero weights have no loss
    mu = _with_zeros(problem, mu, bound + tol * problem.empty)
    best, intercept = problem.primal(mu)
    gap = max(best - bound, 0.0) / (problem.empty or 1.0)
    return EnsembleSolution(mu, intercept, best, bound, gap, S, steps)


def _with_zeros(problem: EnsembleProblem, mu: np.ndarray, limit: float) -> np.ndarray:
    """The weights with as many small ones set to zero as the loss limit allows.

    Iterates of an interior-point method have no exact zeros. The norm is kept: on the boundary of
    the ball, shortening the vector usually costs more than turning it.
    """
    size, q = np.abs(mu), problem.ball.q
    norm = float(np.linalg.norm(mu, q))
    for ratio in ZERO_WEIGHT_RATIOS:
        sparse = np.where(size >= ratio * size.max(initial=0.0), mu, 0.0)
        if norm > 0.0:
            sparse *= norm / float(np.linalg.norm(sparse, q))
        if problem.primal(sparse)[0] <= limit:
            return sparse
    return mu


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a / b``, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
