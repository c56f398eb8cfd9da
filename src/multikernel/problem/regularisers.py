"""Regularisers of joint problems, with their conjugates and weight updates.

A joint problem is ``min_{theta, w, b}  R(theta, w) + sum_i C_i l(f(x_i) + b, y_i)`` with one part
``w_k`` of the predictor per kernel. For signed coefficients s let ``a_k = s'K_k s`` and ``w_k =
theta_k sum_i s_i phi_k(x_i)``, so that ``v_k = ||w_k|| = theta_k sqrt(a_k)``. A regulariser has

* ``primal(theta, a)``: an upper bound of its value at w,
* ``dual(theta, a)``: an upper bound of its conjugate at ``sum_i s_i phi(x_i)``, so that
  ``loss dual - dual(theta, a)`` is a lower bound of the optimum for every theta,
* ``update(theta, a)``: the next kernel weights.

Together with the loss and its dual (:mod:`multikernel.problem.losses`) they give the primal value,
dual value and gap of every pair (theta, s). Formulas: Kloft 2011, chapters 2 and 3; Cortes, Mohri &
Rostamizadeh 2012, section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from .._threads import one_blas_thread

#: Smallest a_k, relative to the largest, in updates that divide by powers of a_k: kernel weights
#: stay finite. The relative change of the primal value is about the square root of this number.
MIN_FORM_RATIO = 1e-12
#: Rounding error of a norm that is scaled to the boundary of a ball.
UNIT_BALL_ROUNDING = 1e-14


class Regulariser(Protocol):
    """A regulariser R of kernel weights theta and norms v, with its conjugate and its update."""

    @property
    def mixing(self) -> float:
        """Share of the previous coefficients in the average from which ``update`` gets its a."""
        ...

    def start(self) -> np.ndarray:
        """The first kernel weights: positive, and zero for kernels that are not usable."""
        ...

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The next kernel weights, shape (p,)."""
        ...

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        """An upper bound of the regulariser at the predictor with weights theta."""
        ...

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        """An upper bound of the conjugate."""
        ...


@runtime_checkable
class SmoothRegulariser(Regulariser, Protocol):
    """A regulariser whose conjugate has a derivative."""

    def dual_weights(self, a: np.ndarray) -> np.ndarray:
        """``theta_k = 2 d dual / d a_k``, shape (p,): the conjugate at s has the gradient
        ``sum_k theta_k K_k s``."""
        ...


@dataclass(frozen=True)
class BlockNorm:
    """``1/2 ||v||_p^2`` (Kloft 2011, Problem II.3), conjugate ``1/2 ||sqrt(a)||_{p*}^2``."""

    p: float
    usable: np.ndarray
    mixing: float = 0.0

    def start(self) -> np.ndarray:
        exponent = -1.0 if np.isinf(self.p) else (2.0 - self.p) / self.p
        return np.where(self.usable, float(self.usable.sum()) ** -exponent, 0.0)

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * norm(theta * np.sqrt(a), self.p) ** 2

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * norm(np.sqrt(a[self.usable]), conjugate(self.p)) ** 2

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The best kernel weights for this predictor (Kloft 2011, Proposition 3.1)."""
        p = self.p
        if p == 2:
            return self.start()  # all weights are one
        if p < 2:
            # Computed from the norms v: the best response to a alone can cycle.
            v = theta * np.sqrt(a)
            size = norm(v, p)
            return theta if size == 0 else (v / size) ** (2.0 - p)
        return self.dual_weights(a) if np.any(a[self.usable] > 0) else theta

    def dual_weights(self, a: np.ndarray) -> np.ndarray:
        """``theta_k = zeta_k^(p*-2) ||zeta||_{p*}^(2-p*)`` with ``zeta = sqrt(a)``, p above 1."""
        r = conjugate(self.p)
        zeta = floored_roots(a, self.usable)
        if zeta is None or r == 2:
            return self.start()
        size = norm(zeta[self.usable], r)
        return np.where(self.usable, (zeta / size) ** (r - 2.0), 0.0)


@dataclass(frozen=True)
class UnsquaredBlockNorm:
    """``1/2 ||v||_p``, as in the group lasso; the conjugate is zero if ``||sqrt(a)||_{p*} <= 1/2``.

    Outside that ball the conjugate is infinite: a dual value needs coefficients inside. There is no
    update of kernel weights; :mod:`multikernel.solvers.joint.unsquared` solves problems of the
    squared norm instead.
    """

    p: float
    usable: np.ndarray
    mixing: float = 0.0

    def start(self) -> np.ndarray:
        return BlockNorm(self.p, self.usable).start()

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        raise NotImplementedError("The unsquared norm has no update: use find_unsquared.")

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * norm(theta * np.sqrt(a), self.p)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        size = norm(np.sqrt(a[self.usable]), conjugate(self.p))
        return 0.0 if size <= 0.5 + UNIT_BALL_ROUNDING else np.inf


@dataclass(frozen=True)
class ElasticNet:
    """``1/2 ||v||_p^2 + mu/2 ||v||_2^2``: kernel weights ``t / (1 + mu t)`` of lp-norm weights t.

    ``norm`` is the block norm ``1/2 ||v||_p^2``.
    """

    norm: BlockNorm
    mu: float
    mixing: float = 0.0

    def _damp(self, t: np.ndarray) -> np.ndarray:
        return t / (1.0 + self.mu * t)

    def start(self) -> np.ndarray:
        return self._damp(self.norm.start())

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        v = theta * np.sqrt(a)
        size = norm(v, self.norm.p)
        return theta if size == 0 else self._damp((v / size) ** (2.0 - self.norm.p))

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        v = theta * np.sqrt(a)
        return 0.5 * norm(v, self.norm.p) ** 2 + 0.5 * self.mu * float(v @ v)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        # inf_beta 1/2 ||zeta - beta||_{p*}^2 + ||beta||^2 / (2 mu), best at beta = mu theta zeta
        zeta = np.where(self.norm.usable, np.sqrt(a), 0.0)
        beta = self.mu * theta * zeta
        rest = 0.5 * norm(zeta - beta, conjugate(self.norm.p)) ** 2
        return rest + float(beta @ beta) / (2.0 * self.mu)


@dataclass(frozen=True)
class WeightBall:
    """Kernel weights in ``{theta >= 0, ||theta - mu_0||_q <= radius}`` (LKRR, Cortes et al. 2009).

    ``primal = 1/2 sum_k v_k^2 / theta_k = 1/2 theta'a``, ``dual = 1/2 (mu_0'a + radius ||a||_r)``
    with 1/q + 1/r = 1. The update is the best response of the weights to averaged coefficients, of
    which the share ``mixing = 1/q`` is old: without averaging the iteration can cycle.
    """

    radius: float
    mu_0: np.ndarray
    q: float
    usable: np.ndarray

    @property
    def mixing(self) -> float:
        return 1.0 / self.q

    def start(self) -> np.ndarray:
        return self._best_response(np.ones(len(self.usable)))

    def _best_response(self, a: np.ndarray) -> np.ndarray:
        """``argmax theta'a`` over the ball."""
        t = np.where(self.usable, a, 0.0)
        top = t.max(initial=0.0)
        if top == 0:
            return np.where(self.usable, self.mu_0, 0.0)
        t = (t / top) ** (1.0 / (self.q - 1.0))
        return np.where(self.usable, self.mu_0 + self.radius * t / norm(t, self.q), 0.0)

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self._best_response(a)

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * float(theta @ a)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        a = np.where(self.usable, a, 0.0)
        return 0.5 * float(self.mu_0 @ a + self.radius * norm(a, conjugate(self.q)))


@dataclass(frozen=True)
class AlignmentPenalty:
    """``1/2 (sum_k v_k^2 / theta_k - gamma theta'c + theta'Q theta)``, theta >= 0.

    Half of eq. (9) in Cortes, Mohri & Rostamizadeh 2012, with ``c_k = <K_kc, YY'>`` and
    ``Q = gamma'' M + gamma' I``. The conjugate is ``1/2 max_{theta >= 0} theta'(a + gamma c) -
    theta'Q theta``; its maximiser is the update.
    """

    linear: np.ndarray  # gamma c
    Q: np.ndarray
    mixing: float = 0.5

    def start(self) -> np.ndarray:
        theta, _ = best_response(2.0 * self.Q, self.linear)
        return theta if np.any(theta > 0) else 1.0 / np.maximum(np.diag(self.Q), 1e-300)

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        return best_response(2.0 * self.Q, a + self.linear)[0]

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * float(theta @ a - theta @ self.linear + theta @ self.Q @ theta)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * best_response(2.0 * self.Q, a + self.linear)[1]


def norm(v: np.ndarray, p: float) -> float:
    """``||v||_p``, scaled by the largest entry, so that high powers do not overflow."""
    top = float(np.abs(v).max(initial=0.0))
    if top == 0 or np.isinf(p):
        return top
    return top * float(np.sum((np.abs(v) / top) ** p) ** (1.0 / p))


def conjugate(p: float) -> float:
    """``p*`` with ``1/p + 1/p* = 1``."""
    if p == 1:
        return float("inf")
    return 1.0 if np.isinf(p) else p / (p - 1.0)


def floored_roots(a: np.ndarray, usable: np.ndarray) -> np.ndarray | None:
    """``sqrt(a)`` with a raised to at least MIN_FORM_RATIO times the largest; None if a is zero."""
    top = float(a[usable].max(initial=0.0))
    return None if top == 0 else np.sqrt(np.maximum(a, MIN_FORM_RATIO * top))


def best_response(Q: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, float]:
    """Maximiser and maximum of ``c'x - 1/2 x'Qx`` over x >= 0, for positive definite Q."""
    with one_blas_thread(len(Q)):
        scale = max(float(np.abs(c).max(initial=0.0)), 1e-300)
        jitter = 1e-14 * float(np.trace(Q)) / max(len(Q), 1)
        L = cholesky(Q + jitter * np.eye(len(Q)), lower=True)
        x, _ = nnls(L.T, solve_triangular(L, c / scale, lower=True), maxiter=30 * len(Q) + 300)
        x = x * scale
    return x, float(c @ x - 0.5 * x @ Q @ x)
