"""How far the optimum with features may be from the optimum with the kernels themselves.

Let ``E_k = K_k - K_hat_k >= 0`` be the error of kernel k, s the coefficients of the fit with
features, and ``q = sum_i s_i^2 / omega_i``. Since ``s'E_k s <= q tr(Omega E_k)``, the coefficients
``t s`` with t from 0 to 1 give the exact problem a dual value of at least

    L(t) - R*(t^2 (a_hat + q e)),     L(t) = sum_i -C_i l*(-t s_i / C_i),   e_k = tr(Omega E_k),

with ``a_hat_k = s'K_hat_k s``. The exact optimum is no larger than that with features, because more
functions are allowed. The bound is far tighter with the values ``s'K_k s`` in place of
``a_hat + q e``, at the cost of one pass over the exact kernels. docs/guide/large.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from ...problem.regularisers import Regulariser


@dataclass(frozen=True)
class ApproximationReport:
    """Errors of the features of a fit, as far as known without evaluating the exact kernels.

    Attributes
    ----------
    method : str
        The approximation as a Python expression.
    n_features : int
        Total number of features of all kernels.
    features_of_kernels : array of shape (p,)
    relative_errors : array of shape (p,)
        ``tr(K_k - K_hat_k) / tr(K_k)`` over the training samples; 0 for exact features. Not
        informative for random features, which keep the diagonal.
    objective : float
        The objective of the fit with features.
    objective_bound : float or None
        The exact optimum is at least ``objective - objective_bound`` and at most ``objective``;
        None for random features, for which `certify_approximation` gives a bound.
    n_summed : int
        Number of kernels in the learned sum that the features approximate; the arrays then have
        one entry. 0 if every kernel has its own features.
    """

    method: str
    n_features: int
    features_of_kernels: np.ndarray
    relative_errors: np.ndarray
    objective: float
    objective_bound: float | None
    n_summed: int = 0

    def __str__(self) -> str:
        worst = float(np.max(self.relative_errors, initial=0.0))
        if self.n_summed:
            lines = [
                f"{self.method}: {self.n_features} features of the learned sum of {self.n_summed} "
                "kernels",
                f"  error of the sum (trace): {worst:.2g}",
            ]
        else:
            lines = [
                f"{self.method}: {self.n_features} features of {len(self.features_of_kernels)} "
                "kernels",
                f"  error of the kernels (trace): {worst:.2g} of the largest, "
                f"{float(np.mean(self.relative_errors)):.2g} on average",
            ]
        if self.objective_bound is not None:
            low = self.objective - self.objective_bound
            lines.append(
                f"  exact objective: between {max(low, 0.0):.6g} and {self.objective:.6g}"
                " (certify_approximation gives a closer bound)"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class ApproximationCertificate:
    """Bounds on the optimum of the exact problem, from one pass over the exact kernels.

    Attributes
    ----------
    objective : float
        The objective of the fit with features.
    lower, upper : float
        The exact optimum lies between them.
    """

    objective: float
    lower: float
    upper: float

    @property
    def distance(self) -> float:
        """The largest possible difference between the objective and the exact optimum."""
        return max(self.objective - self.lower, self.upper - self.objective, 0.0)

    @property
    def relative_distance(self) -> float:
        """The same, relative to the objective."""
        return self.distance / max(abs(self.objective), 1e-300)

    def __str__(self) -> str:
        return (
            f"objective with features {self.objective:.6g}; exact optimum between "
            f"{self.lower:.6g} and {self.upper:.6g}: at most {self.relative_distance:.2%} apart"
        )


@dataclass(frozen=True)
class DualValue:
    """The dual value of ``t s`` or a lower bound of it, from sums over rows.

    ``L(t) >= linear t - quadratic t^2`` for t from 0 to 1: exact for squared and piecewise linear
    losses, and for others a bound, since L is concave and zero at zero.

    Attributes
    ----------
    linear, quadratic : float
    a : array of shape (p,)
        ``s'K_k s``.
    q : float
        At least ``sum_i s_i^2 / omega_i``, summed over outputs.
    """

    linear: float
    quadratic: float
    a: np.ndarray
    q: float

    def lower_bound(self, rule: Regulariser, theta: np.ndarray, errors: np.ndarray) -> float:
        """The best lower bound of the optimum over t, in the units of the regulariser.

        Parameters
        ----------
        theta : array of shape (p,)
            Kernel weights.
        errors : array of shape (p,)
            Weighted traces of the errors of the normalised kernels; zero if `a` is exact.
        """
        a = self.a + self.q * np.maximum(errors, 0.0)

        def negative(t: float) -> float:
            return float(rule.dual(theta, t * t * a) - self.linear * t + self.quadratic * t * t)

        found = minimize_scalar(negative, bounds=(0.0, 1.0), method="bounded")
        return -min(negative(float(found.x)), negative(1.0), 0.0)
