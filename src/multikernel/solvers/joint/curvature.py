"""Second derivative of the learner's optimum in the kernel weights, and Newton steps with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, OneClass, Squared
from ...weighting.lp_norm import MAX_NEWTON_KERNELS
from ..certificate import CertifiedIterate
from .cuts import CutModel

#: Largest number of free coefficients at which a Newton step costs less than the training runs it
#: saves.
MAX_FREE_COEFFICIENTS = 5000


@dataclass(frozen=True)
class TrainedIterate(CertifiedIterate):
    """A certified iterate whose predictor was trained with its kernel weights.

    Attributes
    ----------
    grams : Grams
    known_products : array or None
        `products`, if they were computed.
    """

    grams: Grams
    known_products: np.ndarray | None

    @property
    def support(self) -> np.ndarray:
        """The samples with a non-zero coefficient."""
        return np.flatnonzero(np.any(self.coef != 0, axis=1))

    @property
    def products(self) -> np.ndarray:
        """``K_k s`` at these samples, shape (p, len(support), t)."""
        if self.known_products is not None:
            return self.known_products
        return self.grams.matvecs(self.coef, at=self.support)


def has_curvature(learner: Learner, p: float, n_kernels: int) -> bool:
    """Whether a Newton step is possible for this loss, and worth its cost."""
    return (p == 1 or (p < 2 and n_kernels <= MAX_NEWTON_KERNELS)) and isinstance(
        learner.loss, Hinge | Squared | EpsilonInsensitive | Logistic | OneClass
    )


def newton_point(
    model: CutModel,
    base: TrainedIterate,
    U: np.ndarray | None,
    usable: np.ndarray,
    upper: float,
    low: np.ndarray,
) -> np.ndarray | None:
    """The minimiser of the quadratic expansion of g at `base`, within the cuts."""
    if U is None:
        return None
    return model.newton(base.theta[usable], base.a[usable], U[:, usable], upper, low)


def curvature_root(
    iterate: TrainedIterate, target: Target, learner: Learner, *, single: bool = False
) -> np.ndarray | None:
    """A matrix U of shape (m, p) such that ``U'U`` is the second derivative of g at the weights.

    ``(U'U)_kl = (K_k s)_F' N (K_l s)_F``, where ``ds = -N (K_l s)_F`` is the change of the free
    coefficients F with theta_l. It preserves their optimality conditions,
    ``(K_FF + E) ds + 1 db = -(K_l s)_F, 1'ds = 0``, as long as no coefficient meets a bound. E is
    the curvature of the dual loss (Chapelle and Rakotomamonjy 2008).
    Without an intercept there is no db and no condition on the sum. The result is None if there are
    no free coefficients, or too many. ``single`` precision gives a few digits at half the cost.
    """
    dtype: type[np.floating[Any]] = np.float32 if single else np.float64
    jitter = 1e-6 if single else 1e-11
    C = learner.costs(target)
    support, products = iterate.support, iterate.products
    parts = []
    for j in range(target.Y.shape[1]):
        F, extra = free_part(learner.loss, iterate.coef[:, j], C)
        if len(F) < 2:
            continue
        if len(F) > MAX_FREE_COEFFICIENTS:
            return None
        K = iterate.gram.submatrix(F, dtype)
        # Repeated samples make the matrix singular; the jitter is below the working precision.
        K[np.diag_indices(len(F))] += extra + jitter * np.trace(K) / len(F)
        at = np.searchsorted(support, F)
        right = np.column_stack([products[:, at, j].T, np.ones(len(F))]).astype(dtype)
        try:
            factor = cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return curvature_root(iterate, target, learner) if single else None
        right = solve_triangular(factor, right, lower=True, check_finite=False)
        U, ones = right[:, :-1].astype(np.float64), right[:, -1].astype(np.float64)
        if learner.fit_intercept:
            U = U - np.outer(ones, (ones @ U) / (ones @ ones))
        parts.append(U)
    return np.vstack(parts) if parts else None


def free_part(loss: Loss, s: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices of coefficients strictly between bounds, and the curvature of their dual loss."""
    if isinstance(loss, Squared):
        F = np.flatnonzero(s)
        return F, 1.0 / C[F]
    part = np.abs(s) / C
    F = np.flatnonzero((part > 1e-9) & (part < 1.0 - 1e-9))
    if isinstance(loss, Logistic):
        return F, 1.0 / (C[F] * part[F] * (1.0 - part[F]))
    return F, np.zeros(len(F))
