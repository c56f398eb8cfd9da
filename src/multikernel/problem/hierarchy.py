"""Two-level block norms: groups of kernels compete with exponent p, kernels of a group with q.

``1/2 U^2`` with ``U = ||u||_p`` over groups and ``u_j = ||v of group j||_q`` within; the conjugate
is ``1/2 Z^2`` with ``Z = ||z||_{p*}``, ``z_j = ||zeta of group j||_{q*}`` and ``zeta_k =
sqrt(a_k)`` (Kloft 2011, section 2.3.5). Kernel weights are products ``theta_k = eta_j kappa_k`` of
a group weight eta and a weight kappa within the group. The exponent of a level decides its step:

- at most 2: a minimum over weights, from the primal: ``kappa = (v/u)^(2-q)``,
  ``eta = (u/U)^(2-p)``;
- at least 2: a maximum over weights, from the dual: ``kappa = (zeta/z)^(q*-2)``,
  ``eta = (z/Z)^(p*-2)``.

If both exponents are on the same side of 2, both levels are one minimisation or one maximisation,
and the two formulas together are its exact step. If 2 lies between them, the optimum is a saddle
point: convex in the weights of one level, concave in the inverse weights of the other. Then each
level takes its step *with the weights of the other level fixed*: group j is the kernel ``sum_k
kappa_k K_k`` with ``b_j = sum_k kappa_k a_k``, so ``sqrt(b_j)`` replaces z_j and ``eta_j
sqrt(b_j)`` replaces u_j. (With the z_j and u_j of the new kappa the iteration can cycle.)

Near the optimum these steps contract. Consider logarithms of weights in the metric of ``theta_k
a_k``. The optimal predictor responds by ``d log a = -2 R d log theta``. ``R >= 0``, since the
optimal value is convex in theta; ``R <= I``, since that value is the minimum over w of
``sum_k v_k^2 / (2 theta_k)`` + loss. Weights within groups and of groups are orthogonal; let E be
the projection on the level that is minimised, with the sign of the other level reversed. Then a
step is ``D (E - R)``, where D is ``2 - q`` within and ``2 - p`` between groups (with the conjugate
of an exponent above 2). Since ``||E - R|| <= 1``, errors shrink at least by the larger of these two
factors, as they do by ``2 - p`` for the lp-norm. (For exponents 1 and infinity the factor is 1, and
convergence may be slow.) Far from the optimum convergence is not proven, but the duality gap is
valid in every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .regularisers import MIN_FORM_RATIO, conjugate, floored_roots, norm

#: Smallest weight of a kernel or a group in the steps towards a saddle point: a weight that had
#: underflowed to zero could not grow again.
MIN_SADDLE_WEIGHT = 1e-100


@dataclass(frozen=True)
class Hierarchy:
    """The regulariser ``1/2 U^2`` for any p, q >= 1; formulas at the top of this module.

    Attributes
    ----------
    labels : int array of shape (n_kernels,)
        The group of each kernel, numbered from 0.
    p, q : float
        Exponents between groups and within groups.
    usable : bool array of shape (n_kernels,)
        False for kernels that are constant on the sample.
    """

    labels: np.ndarray
    p: float
    q: float
    usable: np.ndarray
    mixing: float = 0.0

    @cached_property
    def group(self) -> np.ndarray:
        """The group of each usable kernel; groups without usable kernels are left out."""
        return np.asarray(np.unique(self.labels[self.usable], return_inverse=True)[1])

    def start(self) -> np.ndarray:
        ones = np.ones(len(self.group))
        return self._weights(ones, ones)

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        if (self.p - 2.0) * (self.q - 2.0) < 0:
            return self._saddle_step(theta, a)
        zeta = floored_roots(a, self.usable)
        if zeta is None:
            return theta
        return self._weights((theta * np.sqrt(a))[self.usable], zeta[self.usable])

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        v = (theta * np.sqrt(a))[self.usable]
        return 0.5 * norm(norms(v, self.group, self.q), self.p) ** 2

    def dual(self, theta: np.ndarray, a: np.ndarray) -> float:
        z = norms(np.sqrt(a[self.usable]), self.group, conjugate(self.q))
        return 0.5 * norm(z, conjugate(self.p)) ** 2

    def dual_weights(self, a: np.ndarray) -> np.ndarray:
        """``(zeta_k / z_j)^(q*-2) (z_j / Z)^(p*-2)`` for kernel k of group j; p, q above 1."""
        if not np.any(a[self.usable] > 0):
            return self.start()
        zeta = self._floored_by_group(a[self.usable])
        r, q = conjugate(self.p), conjugate(self.q)
        z = norms(zeta, self.group, q)
        kappa = (zeta / z[self.group]) ** (q - 2.0)
        return self._product((z / norm(z, r)) ** (r - 2.0), kappa)

    def _floored_by_group(self, a: np.ndarray) -> np.ndarray:
        """``sqrt(a)`` of usable kernels, raised to a small part of the largest of its group.

        The floor is relative to the group because a whole group may be small.
        """
        top = norms(a, self.group, np.inf)
        floor = MIN_FORM_RATIO * np.maximum(top, MIN_FORM_RATIO * top.max())[self.group]
        return np.sqrt(np.maximum(a, floor))

    def _weights(self, v: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """The exact step, if both exponents are on the same side of 2."""
        kappa = shares(v if self.q <= 2 else zeta, self.group, self.q)
        if self.p <= 2:
            size = norms(v, self.group, self.q)
        else:
            size = norms(zeta, self.group, conjugate(self.q))
        return self._product(shares(size, np.zeros(len(size), dtype=int), self.p), kappa)

    def _saddle_step(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """One step of each level with the weights of the other level fixed."""
        group, theta_, a = self.group, theta[self.usable], a[self.usable]
        if not np.any(a > 0):
            return theta
        # eta from the normalisation sum_k kappa_k^(q/(2-q)) = 1 within each group.
        if self.q < 2:
            eta = norms(theta_, group, self.q / (2.0 - self.q))
        else:
            eta = 1.0 / norms(1.0 / theta_, group, conjugate(self.q / 2.0))
        kappa = theta_ / eta[group]
        zeta = self._floored_by_group(a)
        size = np.sqrt(np.bincount(group, kappa * a))
        size = eta * size if self.p < 2 else np.maximum(size, np.sqrt(MIN_FORM_RATIO) * size.max())
        outer = shares(size, np.zeros(len(size), dtype=int), self.p)
        inner = shares(kappa * zeta if self.q < 2 else zeta, group, self.q)
        return self._product(
            np.maximum(outer, MIN_SADDLE_WEIGHT), np.maximum(inner, MIN_SADDLE_WEIGHT)
        )

    def _product(self, eta: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        theta = np.zeros(len(self.usable))
        theta[self.usable] = eta[self.group] * kappa
        return theta


def norms(values: np.ndarray, group: np.ndarray, p: float) -> np.ndarray:
    """``||values of group j||_p`` for every group; scaled by the largest entry of the group."""
    top = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(top, group, values)
    if np.isinf(p):
        return top
    parts = values / np.where(top > 0, top, 1.0)[group]
    return np.asarray(top * np.bincount(group, parts**p) ** (1.0 / p))


def shares(values: np.ndarray, group: np.ndarray, p: float) -> np.ndarray:
    """``(value / p-norm of its group)^(2-p)``; for p > 2, the dual form with p* and ``p* - 2``."""
    r = p if p <= 2 else conjugate(p)
    size = norms(values, group, r)[group]
    part = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
    return np.asarray(part ** (2.0 - p if p <= 2 else r - 2.0))
