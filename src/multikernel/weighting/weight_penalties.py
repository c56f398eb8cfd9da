"""Joint rules that constrain or penalise the kernel weights themselves (Cortes et al.)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grams.protocol import Grams, Summary
from ..problem import Target
from ..problem.regularisers import AlignmentPenalty, Regulariser, WeightBall
from .base import summary_for
from .joint import JointWeighting

#: Upper limit on parameters: beyond it, squares of kernel weights may overflow.
LARGEST_PARAMETER = 1e100


class L2Ball(JointWeighting):
    """Kernel weights in a ball around given weights ("l2-krr" of Cortes et al. 2009).

    Minimises the learner's objective over ``{mu >= 0, ||mu - mu_0||_q <= radius}``. The weights are
    at least ``mu_0`` and not sparse.

    Parameters
    ----------
    radius : float, default=1.0
        Positive.
    center : array of shape (n_kernels,), float or None, default=None
        ``mu_0``, not negative; None for zeros, a number for equal weights.
    q : float, default=2.0
        Exponent of the norm, greater than 1.
    tol, max_iter
        As in :class:`LpNorm`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = mk.MultiKernelRegressor(weighting=mk.L2Ball(radius=1.0)).fit(X, y)
    >>> print(round((model.kernel_weights_**2).sum(), 6))
    1.0
    """

    def __init__(
        self,
        radius: float = 1.0,
        center: Any = None,
        *,
        q: float = 2.0,
        tol: float = 1e-3,
        max_iter: int = 500,
    ) -> None:
        self.radius = radius
        self.center = center
        self.q = q
        self.tol = tol
        self.max_iter = max_iter

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        # Compared as float64, because the limit is beyond the range of float32.
        if not 0 < float(self.radius) <= LARGEST_PARAMETER:
            raise ValueError(
                f"L2Ball: radius must be a positive number of at most {LARGEST_PARAMETER:g}; got "
                f"{self.radius!r}."
            )
        if not 1 < self.q < np.inf:
            raise ValueError(f"L2Ball: q must be greater than 1 and finite; got {self.q!r}.")
        given = 0.0 if self.center is None else np.asarray(self.center, dtype=np.float64)
        if np.ndim(given) not in (0, 1) or (np.ndim(given) == 1 and len(given) != grams.p):  # type: ignore[arg-type]
            raise ValueError(
                f"L2Ball: center must be a number or {grams.p} numbers, one per kernel; got shape "
                f"{np.shape(given)}."
            )
        mu_0 = np.broadcast_to(given, (grams.p,)).astype(np.float64)
        if not np.all((mu_0 >= 0) & (mu_0 <= LARGEST_PARAMETER)):
            raise ValueError(
                f"L2Ball: center must be finite, not negative and at most {LARGEST_PARAMETER:g}; "
                f"got {self.center!r}. Use center=None for zeros."
            )
        return WeightBall(float(self.radius), mu_0, float(self.q), ~grams.degenerate)


class AlignmentRegularized(JointWeighting):
    """Joint learning with a reward for alignment (Cortes, Mohri & Rostamizadeh 2012, eq. 9).

    ``min_{mu >= 0} J(mu) - gamma mu'a + mu'(gamma_norm M + gamma_ridge I) mu`` where J is twice the
    learner's optimum with kernel ``sum_k mu_k K_k``, ``a_k = <K_kc, YY'>`` and ``M_kl = <K_kc,
    K_lc>``. With ``gamma_norm = gamma / 2`` and large gamma the weights tend to those of `alignf`;
    with ``gamma = gamma_norm = 0`` they are those of :class:`L2Ball` for some radius.

    The problem is convex in mu. It is solved by cutting planes, which converge for every loss and
    every choice of the three factors; the paper's iteration can cycle.

    Parameters
    ----------
    gamma : float, default=1.0
        Reward for alignment, not negative.
    gamma_ridge : float, default=1.0
        The paper's gamma', the factor of ``||mu||^2``; positive.
    gamma_norm : float, default=0.5
        The paper's gamma'', the factor of ``mu'M mu``; not negative.
    tol, max_iter
        As in :class:`LpNorm`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> y = (y - y.mean()) / y.std()
    >>> model = mk.MultiKernelRegressor(weighting=mk.AlignmentRegularized()).fit(X, y)
    >>> model.duality_gap_ <= 1e-3
    True
    """

    needs_summary = True
    needs_products = True

    def __init__(
        self,
        gamma: float = 1.0,
        gamma_ridge: float = 1.0,
        gamma_norm: float = 0.5,
        *,
        tol: float = 1e-3,
        max_iter: int = 500,
    ) -> None:
        self.gamma = gamma
        self.gamma_ridge = gamma_ridge
        self.gamma_norm = gamma_norm
        self.tol = tol
        self.max_iter = max_iter

    @property
    def supports_subsampled_start(self) -> bool:
        return False  # inner products of kernels grow with the square of the number of samples

    def method(self, n_kernels: int) -> str:
        return "penalty-cuts"

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        for name in ("gamma", "gamma_ridge", "gamma_norm"):
            value = float(getattr(self, name))
            if not 0 <= value <= LARGEST_PARAMETER or (name == "gamma_ridge" and value == 0):
                raise ValueError(
                    f"AlignmentRegularized: {name} must be a "
                    f"{'positive' if name == 'gamma_ridge' else 'non-negative'} number of at most "
                    f"{LARGEST_PARAMETER:g}; got {value!r}."
                )
        summary = summary_for(self, grams, target, summary)
        assert summary.M is not None
        Q = float(self.gamma_norm) * summary.M + float(self.gamma_ridge) * np.eye(grams.p)
        return AlignmentPenalty(float(self.gamma) * summary.a, Q)
