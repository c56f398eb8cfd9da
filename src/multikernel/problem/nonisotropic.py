"""Norms that couple kernels through a positive definite matrix E (Kloft 2011, section 2.3.6).

With norms ``v_k = ||w_k||`` and roots ``zeta_k = sqrt(a_k)``, regulariser and conjugate are

    R(v) = max_{z >= 0} v'z - 1/2 z'E z,        R*(zeta) = min_{u >= zeta} 1/2 u'E u

Both are small quadratic programs, convex and non-decreasing, so that R is a convex function of w.
(The thesis prints ``1/2 v'E^-1 v`` and ``1/2 zeta'E zeta``, which can decrease.) The weights are
``theta_k = v_k / zeta_k`` with the gradient ``v = E u`` of R*, which is never negative.

- *E without negative entries*, such as alignments: u is zeta, and R* is ``1/2 zeta'E zeta``. The
  update ``theta = (E zeta) / zeta`` is a majorisation of the dual, and so never lowers its value.
- *E with negative entries*, such as a graph Laplacian plus a multiple of the identity: kernels that
  E joins by a negative entry compete, and some v_k may be zero. If no entry of ``B = E^-1`` is
  negative, R is ``1/2 v'B v``. With ``B = 1 1'`` it would be the sparse block norm p = 1.

In the second case, the update ``theta = v(zeta) / zeta`` can cycle. The step taken instead is

    y = argmin_{y >= 0}  1/2 y'B y + 1/2 sum_k y_k^2 / theta_k - 2 zeta'y
    theta_k <- theta_k (y_k / (theta_k zeta_k))^(2 t),        t = RELAXATION

whose fixed points are the optimal weights: there ``y = theta zeta`` and ``B y = zeta``. Near the
optimum it contracts. Consider logarithms of weights in the metric of ``theta_k a_k = v_k zeta_k``.
The gradient of R* changes by ``d log v = N d log zeta`` with a symmetric, positive definite N; the
optimal predictor responds by ``d log a = -2 S d log theta`` with ``0 <= S <= I`` (see
:mod:`.hierarchy`, where S is called R). For t = 1 a step multiplies errors by ``(N + I)^-1 (N - I)
(I - 2 S)``, the reflections of the Peaceman-Rachford method: the first factor has norm below one,
the second at most one. A smaller t averages the errors before and after, which damps those whose
sign alternates. Far from the optimum convergence is not proven, but the duality gap is valid in
every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import nnls

from .._threads import one_blas_thread
from .regularisers import best_response, floored_roots

#: The exponent t of a step.
RELAXATION = 0.8
#: Smallest y_k in units of ``theta_k zeta_k``: a weight cannot vanish in one step far from the
#: optimum, from where it would need many steps to grow again.
MIN_RATIO = 0.3
#: Kernel weights below this fraction of the largest are zero. A step starts from this fraction in
#: place of zero, so that a weight can grow again.
MIN_WEIGHT_RATIO = 1e-10


@dataclass(frozen=True)
class NonIsotropic:
    """The regulariser R of a matrix E; formulas at the top of this module.

    Attributes
    ----------
    E : array of shape (n_kernels, n_kernels)
        Symmetric and positive definite.
    usable : bool array of shape (n_kernels,)
        False for kernels that are constant on the sample; they are left out.
    """

    E: np.ndarray
    usable: np.ndarray
    mixing: float = 0.0

    @cached_property
    def _E(self) -> np.ndarray:
        """The matrix of the usable kernels."""
        return self.E[np.ix_(self.usable, self.usable)]

    @cached_property
    def _inverse(self) -> np.ndarray:
        return np.asarray(np.linalg.inv(self._E))

    @cached_property
    def is_nonnegative(self) -> bool:
        """Whether no two usable kernels are joined by a negative entry."""
        return bool(np.all(self._E >= 0))

    def start(self) -> np.ndarray:
        if self.is_nonnegative:
            return self._spread(self._E @ np.ones(len(self._E)))
        return self._spread(np.diag(self._E))  # the weights without coupling

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        zeta = floored_roots(a, self.usable)
        if zeta is None:
            return theta
        zeta = zeta[self.usable] / zeta[self.usable].max()
        if self.is_nonnegative:
            return self._spread(self._E @ zeta / zeta)
        return self._spread(self._coupled_step(theta[self.usable], zeta))

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        return best_response(self._E, (theta * np.sqrt(a))[self.usable])[1]

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        zeta = np.sqrt(a[self.usable])
        u = zeta if self.is_nonnegative else raise_to_minimum(self._E, zeta)
        return 0.5 * float(u @ self._E @ u)

    def _coupled_step(self, theta: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        smallest = MIN_WEIGHT_RATIO * float(theta.max())
        theta = np.maximum(theta, smallest)
        # Solve for x = y / sqrt(theta): the smallest eigenvalue of its matrix is at least one.
        root = np.sqrt(theta)
        coupling = self._inverse * np.outer(root, root)
        x, _ = best_response(coupling + np.eye(len(root)), 2.0 * root * zeta)
        ratio = np.maximum(x / (root * zeta), MIN_RATIO)
        new = theta * ratio ** (2.0 * RELAXATION)
        return np.where(new > smallest, new, 0.0)

    def _spread(self, weights: np.ndarray) -> np.ndarray:
        """Weights of the usable kernels, and zero for the others."""
        theta = np.zeros(len(self.usable))
        theta[self.usable] = weights
        return theta


def raise_to_minimum(E: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """``argmin_{u >= zeta} 1/2 u'E u`` for positive definite E."""
    with one_blas_thread(len(E)):
        top = max(float(zeta.max(initial=0.0)), 1e-300)
        root = cholesky(E)  # E = root'root
        excess, _ = nnls(root, -root @ (zeta / top), maxiter=30 * len(E) + 300)
    return np.asarray(zeta + top * excess)
