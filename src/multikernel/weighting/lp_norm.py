"""lp-norm multiple kernel learning (Kloft 2011), and the sparse case p = 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._options import check_choice
from ..grams.protocol import Grams, Summary
from ..problem import Target
from ..problem.regularisers import BlockNorm, Regulariser, UnsquaredBlockNorm
from .joint import JointWeighting, check_exponent

#: Values of ``LpNorm(solver=...)``.
SOLVERS = (
    "auto",
    "alternation",
    "cutting-planes",
    "interior-point",
    "lbfgs",
    "primal",
    "chunking",
    "cutting-planes-wrapper",
    "cutting-planes-chunking",
)
#: The exponents p that a solver supports, in words and as a function; other solvers support all.
EXPONENTS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "cutting-planes": ("from 1 to 2", lambda p: p <= 2),
    "cutting-planes-wrapper": ("from 1 to 2", lambda p: p <= 2),
    "cutting-planes-chunking": ("from 1 to 2", lambda p: p <= 2),
    "interior-point": ("above 2", lambda p: p > 2),
    "lbfgs": ("above 1 and below infinity", lambda p: 1 < p < np.inf),
}
#: Up to this many kernels, a Newton step of the cutting planes costs less than the training runs
#: that it saves.
MAX_NEWTON_KERNELS = 1250


class LpNorm(JointWeighting):
    """lp-norm multiple kernel learning: kernel weights and predictor from one convex problem.

    ``min 1/2 (sum_k ||w_k||^p)^(2/p) + loss`` (Kloft 2011, Problem II.3). p is the exponent of the
    *block norm* of w, as in the thesis. ``p=1`` gives sparse weights and ``p=2`` the plain sum of
    the kernels; above 2 the parts w_k become more equal than in the plain sum. Papers before 2011
    and SHOGUN use the exponent q of the norm of the kernel weights: see :meth:`from_theta_norm`.

    Parameters
    ----------
    p : float, default=4/3
        At least 1; ``float("inf")`` is allowed.
    tol : float, default=1e-3
        Relative duality gap at which the solver stops.
    max_iter : int, default=500
        Limit on training runs, Newton steps or iterations of L-BFGS; for chunking, the limit on
        steps is this times n / 40 (at least 10).
    solver : {"auto", "alternation", "cutting-planes", "interior-point", "lbfgs", "primal", \
            "chunking", "cutting-planes-wrapper", "cutting-planes-chunking"}, default="auto"
        - ``"alternation"`` trains the predictor and updates the weights in turn; any p.
        - ``"cutting-planes"``, for p from 1 to 2, needs fewer training runs and gives exact zeros
          at p = 1.
        - ``"interior-point"``, for p above 2, starts with the alternation and, when that slows
          down, takes some tens of Newton steps in weights and coefficients together. The number of
          steps hardly depends on p or on the ranks of the kernels.
        - ``"lbfgs"``, for p above 1 and below infinity and the squared or logistic loss, maximises
          the dual by a quasi-Newton method, without training a predictor.
        - ``"primal"``, for kernels with explicit features, such as linear kernels on fewer dense
          columns than there are samples, takes Newton steps in the space of the features; any p and
          any loss. Time grows with the number of samples, not with its square.
        - ``"chunking"`` updates the weights after every small step of the predictor; any p, for
          piecewise linear losses.
        - ``"cutting-planes-wrapper"`` and ``"cutting-planes-chunking"``, for p from 1 to 2, are the
          cutting planes of the thesis (Algorithm D.1): around complete training runs, or after
          every small step of the predictor (for piecewise linear losses).
        - ``"auto"`` uses cutting planes below p = 2 (with more than 1,250 kernels: below 4/3), the
          alternation between these limits, and the interior-point method above 2; from 5,000
          samples on, with at least 50 samples per column and output, the primal method for
          piecewise linear losses and for p above 2. It never uses the other solvers: L-BFGS can be
          faster with the logistic loss, and the rest were slower in our measurements. At p = 1 with
          kernels of rank one, one output and the hinge, epsilon-insensitive or squared loss, the
          predictor is a sparse linear function; ``"auto"`` then solves linear programs or least
          squares over a growing set of features.
    squared : bool, default=True
        With False the norm is not squared: ``min 1/2 (sum_k ||w_k||^p)^(1/p) + loss``, the group
        lasso if p = 1. The two problems have the same solutions for different costs: the solution
        of the squared norm with C solves the unsquared one with ``C / (2 W)``, where ``W =
        ||w||_{2,p}``. The solver finds the solution for the given C by solving a few problems with
        the squared norm, and states its own duality gap; ``history_`` has one entry for each, with
        ``cost_factor``, the ratio of its C to that of the unsquared norm. If C is so small that a
        constant predictor is optimal, all kernel weights are zero.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(weighting=mk.LpNorm(p=4/3)).fit(X, y)
    >>> model.duality_gap_ < 1e-3
    True
    """

    def __init__(
        self,
        p: float = 4 / 3,
        *,
        tol: float = 1e-3,
        max_iter: int = 500,
        solver: str = "auto",
        squared: bool = True,
    ) -> None:
        self.p = p
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.squared = squared

    @classmethod
    def from_theta_norm(cls, q: float, **options: Any) -> LpNorm:
        """The same rule, given the norm of the kernel weights: ``p = 2 q / (q + 1)``.

        Parameters
        ----------
        q : float
            The exponent in ``sum_k theta_k^q <= 1``. From 1 to infinity for p from 1 to 2; from
            minus infinity to -1 for p from 2 to infinity, where the constraint bounds the weights
            from below (Kloft 2011, Problem II.4). Exponents between -1 and 1 belong to no norm.
        **options
            Further parameters of the rule, such as ``tol``.

        Examples
        --------
        >>> import multikernel as mk
        >>> mk.LpNorm.from_theta_norm(3.0), mk.LpNorm.from_theta_norm(-2.0)
        (LpNorm(p=1.5), LpNorm(p=4.0))
        """
        if not abs(q) >= 1:
            raise ValueError(
                "LpNorm.from_theta_norm: q must be at least 1 (block norms p from 1 to 2), or at "
                f"most -1 (block norms p above 2); got {q!r}. Its block norm 2 q / (q + 1) would "
                "be below 1, which is not a norm."
            )
        if np.isinf(q):
            return cls(2.0, **options)
        return cls(float("inf") if q == -1 else 2.0 * q / (q + 1.0), **options)

    @property
    def theta_norm(self) -> float:
        """The exponent q of the norm of the kernel weights, ``q = p / (2 - p)``."""
        check_exponent("LpNorm", "p", self.p)
        if self.p == 2:
            return float("inf")
        return -1.0 if np.isinf(self.p) else self.p / (2.0 - self.p)

    def method(self, n_kernels: int) -> str:
        """The solver's name; ``"auto"`` depends on p and on the number of kernels."""
        check_choice("LpNorm", "solver", self.solver, SOLVERS)
        check_exponent("LpNorm", "p", self.p)
        where, allowed = EXPONENTS.get(self.solver, ("", lambda p: True))
        if not allowed(self.p):
            raise ValueError(
                f"LpNorm: solver={self.solver!r} is for p {where}; got p={self.p!r}. Use "
                "solver='auto'."
            )
        if self.solver != "auto":
            return self.solver
        if self.p > 2:
            return "interior-point"
        # Without Newton steps, cutting planes are faster only near p = 1.
        limit = 2 if n_kernels <= MAX_NEWTON_KERNELS else 4 / 3 - 1e-9
        return "cutting-planes" if self.p < limit else "alternation"

    @property
    def fixed_weights(self) -> bool:
        return self.p == 2

    @property
    def supports_subsampled_start(self) -> bool:
        # L-BFGS and the primal method cannot start from weights; the unsquared norm rescales them.
        return not self.fixed_weights and self.squared and self.solver not in ("lbfgs", "primal")

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        check_exponent("LpNorm", "p", self.p)
        if not self.squared:
            return UnsquaredBlockNorm(float(self.p), ~grams.degenerate)
        return BlockNorm(float(self.p), ~grams.degenerate)


class L1(LpNorm):
    """Sparse multiple kernel learning: :class:`LpNorm` with ``p=1``.

    The classical problem of Lanckriet et al. and Bach et al.; the weights sum to one.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap at which the solver stops.
    max_iter : int, default=500
        Limit on training runs.
    solver : {"auto", "alternation", "cutting-planes", "primal", "chunking", \
            "cutting-planes-wrapper", "cutting-planes-chunking"}, default="auto"
        As in :class:`LpNorm`. By default cutting planes; for kernels of rank one, linear programs
        or least squares.
    squared : bool, default=True
        As in :class:`LpNorm`; False for the group lasso.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = mk.default_bank(X, kind="gaussians")
    >>> mk.MultiKernelClassifier(bank, weighting="l1").fit(X, y).kernel_weights_.round(3)
    array([0.   , 0.   , 0.23 , 0.103, 0.397, 0.066, 0.174, 0.03 , 0.   , 0.   ])
    """

    def __init__(
        self,
        *,
        tol: float = 1e-3,
        max_iter: int = 500,
        solver: str = "auto",
        squared: bool = True,
    ) -> None:
        super().__init__(1.0, tol=tol, max_iter=max_iter, solver=solver, squared=squared)
