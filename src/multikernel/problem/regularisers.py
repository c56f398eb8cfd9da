"""Regularisers of joint problems, with their conjugates and weight updates.

A joint problem is ``min_{theta, w, b}  R(theta, w) + sum_i C_i l(f(x_i) + b, y_i)`` with one part
``w_k`` of the machine per kernel. For signed coefficients s let ``a_k = s'K_k s`` and ``w_k =
theta_k sum_i s_i phi_k(x_i)``, so that ``v_k = ||w_k|| = theta_k sqrt(a_k)``. A regulariser knows

* ``primal(theta, a)``: its value at w, from above,
* ``dual(theta, a)``: its conjugate at ``sum_i s_i phi(x_i)``, from above, so that
  ``loss dual - dual(theta, a)`` bounds the optimum from below whatever theta is,
* ``update(theta, a)``: the next weights.

With the loss's own two values (:mod:`multikernel.problem.losses`) that is primal, dual and gap of
every pair. Formulas: Kloft 2011, chapters 2 and 3; Cortes, Mohri & Rostamizadeh 2012, section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from .._threads import one_blas_thread

#: Where weights are ratios of a_k to a power, a kernel that hardly matters would get an infinite
#: one; this part of the largest a_k is the least that counts. P is off by about its root.
FLOOR = 1e-12


class Regulariser(Protocol):
    """See the module's text."""

    @property
    def mixing(self) -> float:
        """How much of the old coefficients to keep in the a that ``update`` is given."""
        ...

    def start(self) -> np.ndarray:
        """Weights to begin with, all positive except those of kernels that take no part."""
        ...

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray: ...

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float: ...

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float: ...


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
        """The best weights for this machine (Kloft 2011, Proposition 3.1)."""
        p = self.p
        if p == 2:
            return self.start()  # nothing to learn, wherever one began
        if p < 2:
            # From w: the formula from a would be a best response that runs in circles.
            v = theta * np.sqrt(a)
            size = norm(v, p)
            return theta if size == 0 else (v / size) ** (2.0 - p)
        zeta = floored_roots(a, self.usable)
        if zeta is None:
            return theta
        # theta_k = zeta_k^(p*-2) ||zeta||_{p*}^(2-p*), from the dual
        r = conjugate(p)
        size = norm(zeta[self.usable], r)
        return np.where(self.usable, (zeta / size) ** (r - 2.0), 0.0)


@dataclass(frozen=True)
class NonIsotropic:
    """Conjugate ``1/2 zeta'E zeta`` of the roots ``zeta_k = sqrt(a_k)``, E >= 0 entry by entry.

    The primal is ``max_{z >= 0} v'z - 1/2 z'E z`` (Kloft 2011, section 2.3.6, repaired: the printed
    ``1/2 v'E^-1 v`` is the same only while the maximiser is non-negative).
    """

    E: np.ndarray
    usable: np.ndarray
    mixing: float = 0.0

    def start(self) -> np.ndarray:
        return np.where(self.usable, self.E @ self.usable.astype(float), 0.0)

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        zeta = floored_roots(a, self.usable)
        if zeta is None:
            return theta
        zeta = np.where(self.usable, zeta, 0.0)
        ratio = np.divide(self.E @ zeta, zeta, out=np.zeros_like(zeta), where=self.usable)
        return ratio

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        keep = np.flatnonzero(self.usable)
        v = (theta * np.sqrt(a))[keep]
        return best_response(self.E[np.ix_(keep, keep)], v)[1]

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        zeta = np.where(self.usable, np.sqrt(a), 0.0)
        return 0.5 * float(zeta @ self.E @ zeta)


@dataclass(frozen=True)
class ElasticNet:
    """``1/2 ||v||_p^2 + mu/2 ||v||_2^2``: weights ``t / (1 + mu t)`` of lp-norm weights t."""

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
    """Weights in ``{theta >= 0, ||theta - mu_0||_q <= radius}`` (LKRR, Cortes et al. 2009).

    ``primal = 1/2 sum_k v_k^2 / theta_k = 1/2 theta'a``, ``dual = 1/2 (mu_0'a + radius ||a||_r)``
    with 1/q + 1/r = 1. The update is the best response of the weights, to coefficients of which the
    part ``mixing = 1/q`` is kept from before: without that the iteration runs in circles.
    """

    radius: float
    mu_0: np.ndarray
    q: float
    usable: np.ndarray

    @property
    def mixing(self) -> float:
        return 1.0 / self.q

    def start(self) -> np.ndarray:
        return self._move(np.ones(len(self.usable)))

    def _move(self, a: np.ndarray) -> np.ndarray:
        t = np.where(self.usable, a, 0.0)
        top = t.max(initial=0.0)
        if top == 0:
            return np.where(self.usable, self.mu_0, 0.0)
        t = (t / top) ** (1.0 / (self.q - 1.0))
        return np.where(self.usable, self.mu_0 + self.radius * t / norm(t, self.q), 0.0)

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self._move(a)

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return 0.5 * float(theta @ a)

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        a = np.where(self.usable, a, 0.0)
        return 0.5 * float(self.mu_0 @ a + self.radius * norm(a, conjugate(self.q)))


@dataclass(frozen=True)
class AlignmentPenalty:
    """``1/2 (sum_k v_k^2 / theta_k - gamma theta'c + theta'Q theta)``, theta >= 0.

    Cortes, Mohri & Rostamizadeh 2012, eq. (9), halved: c is the vector of products with the target
    and ``Q = gamma'' M + gamma' I``. The conjugate is ``1/2 max_{theta >= 0} theta'(a + gamma c) -
    theta'Q theta``, and its maximiser the update.
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
    """``||v||_p`` with the largest entry taken out, so that high powers do not overflow."""
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
    """``sqrt(a)``, none below the root of FLOOR times the largest; None if all are zero."""
    top = float(a[usable].max(initial=0.0))
    return None if top == 0 else np.sqrt(np.maximum(a, FLOOR * top))


def best_response(Q: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, float]:
    """Maximiser and maximum of ``c'x - 1/2 x'Qx`` over x >= 0, Q positive definite."""
    with one_blas_thread(len(Q)):
        scale = max(float(np.abs(c).max(initial=0.0)), 1e-300)
        jitter = 1e-14 * float(np.trace(Q)) / max(len(Q), 1)
        L = cholesky(Q + jitter * np.eye(len(Q)), lower=True)
        x, _ = nnls(L.T, solve_triangular(L, c / scale, lower=True), maxiter=30 * len(Q) + 300)
        x = x * scale
    return x, float(c @ x - 0.5 * x @ Q @ x)
