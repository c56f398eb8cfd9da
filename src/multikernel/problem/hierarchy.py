"""Two-level block norms: groups of kernels compete with exponent p, kernels of a group with q.

``1/2 U^2`` with ``U = ||u||_p`` over groups and ``u_j = ||v of group j||_q`` within, conjugate
``1/2 Z^2`` with ``Z = ||z||_{p*}``, ``z_j = ||zeta of group j||_{q*}`` of the roots ``zeta_k =
sqrt(a_k)`` (Kloft 2011, section 2.3.5). Weights are products ``theta_k = eta_j kappa_k``, and its
exponent says what a level does to the value of the machine:

- at most 2: a minimum over weights, reached from w: ``kappa = (v/u)^(2-q)``, ``eta = (u/U)^(2-p)``;
- at least 2: a maximum, reached from the dual: ``kappa = (zeta/z)^(q*-2)``, ``eta = (z/Z)^(p*-2)``.

With both exponents on the same side of 2 the levels are one minimum or one maximum, and the
formulas together its exact step. With 2 between them the optimum is a saddle point, convex in the
weights of one level and concave in the inverses of the other's. There each level takes its own step
*as if the weights of the other were fixed*: groups are kernels ``sum_k kappa_k K_k`` with ``b_j =
sum_k kappa_k a_k``, so that ``sqrt(b_j)`` takes the place of z_j, and ``eta_j sqrt(b_j)`` that of
u_j. (With z_j and u_j, which belong to the new kappa, the iteration may run in circles.)

Near the optimum these steps contract. Take logarithms of weights in the metric of ``theta_k a_k``.
The machine responds by ``d log a = -2 R d log theta``; ``R >= 0`` since its value is convex in
theta, ``R <= I`` since that value is the minimum over w of ``sum_k v_k^2 / (2 theta_k)`` + loss.
Shares within groups and weights of groups are orthogonal; let E project onto the level that is
minimised, and turn the sign of the other. Then a step is ``D (E - R)``, where D is ``2 - q`` within
and ``2 - p`` between groups, with the conjugate for an exponent beyond 2. Since ``||E - R|| <= 1``,
errors shrink at least by the larger of the two numbers, as they do by ``2 - p`` in the lp-norm. (At
1 and infinity that number is 1: convergence may be slow.) Far from the optimum nothing is promised
but the duality gap, which is proven in every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .regularisers import FLOOR, conjugate, floored_roots, norm

#: Least share of a kernel or a group at a saddle point: nothing that has left can underflow.
LEAST = 1e-100


@dataclass(frozen=True)
class Hierarchy:
    """``1/2 U^2`` for any p, q >= 1; see the module's text."""

    labels: np.ndarray  # the group of each kernel, 0, 1, ...
    p: float
    q: float
    usable: np.ndarray
    mixing: float = 0.0

    @cached_property
    def group(self) -> np.ndarray:
        """The group of each usable kernel; groups without any are left out."""
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

    def _weights(self, v: np.ndarray, zeta: np.ndarray) -> np.ndarray:
        """The exact step where both exponents are on the same side of 2."""
        kappa = shares(v if self.q <= 2 else zeta, self.group, self.q)
        if self.p <= 2:
            size = norms(v, self.group, self.q)
        else:
            size = norms(zeta, self.group, conjugate(self.q))
        return self._product(shares(size, np.zeros(len(size), dtype=int), self.p), kappa)

    def _saddle_step(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Each level's own step, with the weights of the other where they are."""
        group, theta_, a = self.group, theta[self.usable], a[self.usable]
        if not np.any(a > 0):
            return theta
        # The weights of a group with their normalisation, sum_k kappa_k^(q/(2-q)) = 1, taken out.
        if self.q < 2:
            eta = norms(theta_, group, self.q / (2.0 - self.q))
        else:
            eta = 1.0 / norms(1.0 / theta_, group, conjugate(self.q / 2.0))
        kappa = theta_ / eta[group]
        # Within a group its own largest a_k is what counts: all of them may be tiny.
        top = norms(a, group, np.inf)
        zeta = np.sqrt(np.maximum(a, FLOOR * np.maximum(top, FLOOR * top.max())[group]))
        size = np.sqrt(np.bincount(group, kappa * a))
        size = eta * size if self.p < 2 else np.maximum(size, np.sqrt(FLOOR) * size.max())
        outer = shares(size, np.zeros(len(size), dtype=int), self.p)
        inner = shares(kappa * zeta if self.q < 2 else zeta, group, self.q)
        return self._product(np.maximum(outer, LEAST), np.maximum(inner, LEAST))

    def _product(self, eta: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        theta = np.zeros(len(self.usable))
        theta[self.usable] = eta[self.group] * kappa
        return theta


def norms(values: np.ndarray, group: np.ndarray, p: float) -> np.ndarray:
    """``||values of group j||_p`` for every group, with the largest entry taken out."""
    top = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(top, group, values)
    if np.isinf(p):
        return top
    parts = values / np.where(top > 0, top, 1.0)[group]
    return np.asarray(top * np.bincount(group, parts**p) ** (1.0 / p))


def shares(values: np.ndarray, group: np.ndarray, p: float) -> np.ndarray:
    """``(value / p-norm of its group)^(2-p)``; for p > 2, from the dual, with p* and ``p* - 2``."""
    r = p if p <= 2 else conjugate(p)
    size = norms(values, group, r)[group]
    part = np.divide(values, size, out=np.zeros_like(values), where=size > 0)
    return np.asarray(part ** (2.0 - p if p <= 2 else r - 2.0))
