"""Weightings that are learned together with the machine, from one convex problem.

Each names a regulariser of :mod:`multikernel.problem.regularisers` and gives it its parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from ..problem.hierarchy import Hierarchy
from ..problem.regularisers import (
    AlignmentPenalty,
    BlockNorm,
    ElasticNet,
    NonIsotropic,
    Regulariser,
    WeightBall,
)
from .base import Weighting, summary_for

#: What LpNorm may be solved by.
SOLVERS = ("auto", "alternation", "cutting-planes", "interior-point", "chunking")
#: Kernels up to which a Newton step of the cutting planes costs less than the machines it saves.
NEWTON_KERNELS = 1250


class JointWeighting(Weighting):
    """A rule whose weights and machine solve one convex problem, reached by alternating them."""

    needs_learner = True
    #: relative duality gap to reach, and the most alternations to spend on it
    tol: float
    max_iter: int

    @property
    def fixed_weights(self) -> bool:
        """Whether the regulariser leaves no choice of weights, so that no start can help."""
        return False

    @property
    def supports_subsampled_start(self) -> bool:
        """Whether weights learned on a subsample are a good start for the whole sample."""
        return not self.fixed_weights

    def method(self, n_kernels: int) -> str:
        """The name of the solver: a key of ``multikernel.solvers.joint.find.SOLVERS``."""
        return "alternation"

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        """The regulariser of the problem on this sample, whose statistics may be known."""
        raise NotImplementedError

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return regulariser_of(self, grams, target, summary).start()


def regulariser_of(
    rule: JointWeighting, grams: Grams, target: Target, summary: Summary | None = None
) -> Regulariser:
    """``rule.regulariser``, also of rules whose method takes no summary."""
    if "summary" in inspect.signature(rule.regulariser).parameters:
        return rule.regulariser(grams, target, summary=summary)
    return rule.regulariser(grams, target)


class LpNorm(JointWeighting):
    """lp-norm multiple kernel learning: weights and machine from one convex problem.

    ``min 1/2 (sum_k ||w_k||^p)^(2/p) + loss`` (Kloft 2011, Problem II.3). p is the exponent of the
    *block norm* on w, as in the thesis. ``p=1`` is sparse, ``p=2`` the plain sum of the kernels,
    and beyond 2 weights grow more equal than in the sum. People who know the exponent q of the
    norm on the kernel weights (papers before 2011, SHOGUN) use :meth:`from_theta_norm`.

    Parameters
    ----------
    p : float, default=4/3
        At least 1; ``float("inf")`` is allowed.
    tol : float, default=1e-3
        Relative duality gap at which the alternation stops.
    max_iter : int, default=500
        Limit on machines trained, or on Newton steps.
    solver : {"auto", "alternation", "cutting-planes", "interior-point", "chunking"}, \
            default="auto"
        The analytic alternation of machine and weights, any p; cutting planes, p from 1 to 2,
        which need few machines where the alternation slows down and give exact zeros at p = 1;
        an interior-point method, p above 2: the alternation as long as it is quick, and then some
        tens of Newton steps in weights and coefficients together, however large p is and whatever
        ranks the kernels have; or interleaved chunking, any p, for losses with a box for a dual.
        ``"auto"`` takes cutting planes below p = 2 (beyond 1,250 kernels: below 4/3), interior
        points above, and never chunking, which was slower wherever it was tried.
        At p = 1 over kernels of rank one, with one output and the hinge, epsilon-insensitive or
        squared loss, it finds the sparse linear function instead that the machine then is, by
        linear programs or least squares over a growing set of features.

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
    ) -> None:
        self.p = p
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver

    @classmethod
    def from_theta_norm(cls, q: float, **options: Any) -> LpNorm:
        """The same model named by the norm on the kernel weights, ``p = 2 q / (q + 1)``.

        Examples
        --------
        >>> import multikernel as mk
        >>> mk.LpNorm.from_theta_norm(3.0)
        LpNorm(p=1.5)
        """
        if not q >= 1:
            raise ValueError(f"LpNorm.from_theta_norm: q must be at least 1; got {q!r}.")
        return cls(2.0 if np.isinf(q) else 2.0 * q / (q + 1.0), **options)

    def method(self, n_kernels: int) -> str:
        """The chosen solver; ``"auto"`` decides by p and the number of kernels."""
        if self.solver not in SOLVERS:
            raise ValueError(f"LpNorm: solver must be one of {SOLVERS}; got {self.solver!r}.")
        check_exponent("LpNorm", "p", self.p)
        allowed = {"interior-point": self.p > 2, "cutting-planes": self.p <= 2}
        if not allowed.get(self.solver, True):
            where = "above 2" if self.solver == "interior-point" else "from 1 to 2"
            raise ValueError(
                f"LpNorm: solver={self.solver!r} is for p {where}; got p={self.p!r}. Use "
                "solver='auto'."
            )
        if self.solver != "auto":
            return self.solver
        if self.p > 2:
            return "interior-point"
        # Without Newton steps, which many kernels forbid, cutting planes pay only near p = 1.
        few = n_kernels <= NEWTON_KERNELS
        return "cutting-planes" if self.p < (2 if few else 4 / 3 - 1e-9) else "alternation"

    @property
    def fixed_weights(self) -> bool:
        return self.p == 2

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        check_exponent("LpNorm", "p", self.p)
        return BlockNorm(float(self.p), ~grams.degenerate)


class L1(LpNorm):
    """Sparse multiple kernel learning: :class:`LpNorm` with ``p=1``.

    The classical problem of Lanckriet et al. and Bach et al.; weights sum to one.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap at which the alternation stops.
    max_iter : int, default=500
        Limit on machines trained.
    solver : {"auto", "alternation", "cutting-planes", "chunking"}, default="auto"
        As in :class:`LpNorm`; by default cutting planes, or over kernels of rank one linear
        programs or least squares.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> mk.MultiKernelClassifier(weighting="l1").fit(X, y).kernel_weights_.round(3)
    array([0.   , 0.   , 0.23 , 0.103, 0.397, 0.066, 0.174, 0.03 , 0.   , 0.   ])
    """

    def __init__(self, *, tol: float = 1e-3, max_iter: int = 500, solver: str = "auto") -> None:
        super().__init__(1.0, tol=tol, max_iter=max_iter, solver=solver)


class ElasticNetNorm(JointWeighting):
    """Block norm with an elastic net: ``1/2 ||w||_{2,p}^2 + mu/2 ||w||_2^2`` plus the loss.

    Between lp-norm learning (mu = 0) and the plain sum of the kernels (mu large).

    Parameters
    ----------
    p : float, default=1
        Block norm, from 1 to below 2.
    mu : float, default=1.0
        Positive weight of the squared norm.
    tol, max_iter
        As in :class:`LpNorm`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(weighting=mk.ElasticNetNorm(p=1, mu=0.5)).fit(X, y)
    >>> model.duality_gap_ <= 1e-3
    True
    """

    def __init__(
        self, p: float = 1.0, mu: float = 1.0, *, tol: float = 1e-3, max_iter: int = 500
    ) -> None:
        self.p = p
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        check_exponent("ElasticNetNorm", "p", self.p, below=2.0)
        if not (np.isfinite(self.mu) and self.mu > 0):
            raise ValueError(f"ElasticNetNorm: mu must be a positive number; got {self.mu!r}.")
        return ElasticNet(BlockNorm(float(self.p), ~grams.degenerate), float(self.mu))


class HierarchicalNorm(JointWeighting):
    """Two-level block norm over groups of kernels (Kloft 2011, section 2.3.5).

    ``1/2 U^2`` with ``U = (sum_j u_j^p)^(1/p)`` over groups and ``u_j = (sum_{k in j}
    ||w_k||^q)^(1/q)`` within. Groups of kernels compete with exponent p, kernels of a group with q.

    Parameters
    ----------
    groups : sequence of int or str, one per kernel; or sequence of sequences of kernel positions
    p, q : float
        Exponents between groups and within, at least 1; ``float("inf")`` is allowed. Below 2
        groups (kernels of a group) compete, at 1 for all or nothing; beyond 2 their shares grow
        more equal than in the plain sum.
    tol, max_iter
        As in :class:`LpNorm`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = mk.gaussians([1e-4, 1e-3]) + mk.polynomials([1, 2], gamma=1e-4)
    >>> rule = mk.HierarchicalNorm(["wide", "wide", "poly", "poly"], p=1.1, q=2)
    >>> mk.MultiKernelClassifier(bank, weighting=rule).fit(X, y).duality_gap_ <= 1e-3
    True
    """

    def __init__(
        self,
        groups: Sequence[Any],
        p: float = 1.0,
        q: float = 2.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 500,
    ) -> None:
        self.groups = groups
        self.p = p
        self.q = q
        self.tol = tol
        self.max_iter = max_iter

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        check_exponent("HierarchicalNorm", "p", self.p)
        check_exponent("HierarchicalNorm", "q", self.q)
        labels = group_labels(self.groups, grams.p)
        return Hierarchy(labels, float(self.p), float(self.q), ~grams.degenerate)


class NonIsotropicNorm(JointWeighting):
    """A norm that couples kernels through a matrix E (Kloft 2011, section 2.3.6).

    The dual regulariser is ``1/2 zeta'E zeta`` with ``zeta_k = ||sum_i s_i phi_k(x_i)||``; the
    weights are ``(E zeta)_k / zeta_k``. A diagonal E fixes the weights, ``E=None`` takes the
    alignments of the kernels with each other, so that kernels which agree support each other.

    Parameters
    ----------
    E : array of shape (n_kernels, n_kernels) or None
        Symmetric, positive definite, no negative entry; None for the centred alignments.
    tol, max_iter
        As in :class:`LpNorm`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), mk.NonIsotropicNorm()).fit(X, y)
    >>> model.duality_gap_ <= 1e-3
    True
    """

    def __init__(self, E: Any = None, *, tol: float = 1e-3, max_iter: int = 500) -> None:
        self.E = E
        self.tol = tol
        self.max_iter = max_iter

    @property
    def needs_products(self) -> bool:  # type: ignore[override]
        return self.E is None

    @property
    def needs_summary(self) -> bool:  # type: ignore[override]
        return self.E is None

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        if self.E is None:
            summary = summary_for(self, grams, target, summary)
            assert summary.M is not None
            size = np.where(summary.norms > 0, summary.norms, 1.0)
            E = np.maximum(summary.M / np.outer(size, size), 0.0)
        else:
            E = np.asarray(self.E, dtype=np.float64)
            good = E.shape == (grams.p, grams.p) and np.isfinite(E).all()
            if not good or not np.allclose(E, E.T) or np.any(E < 0):
                raise ValueError(
                    f"NonIsotropicNorm: E must be a symmetric {grams.p} x {grams.p} matrix without "
                    f"negative entries; got shape {E.shape}. With negative entries (a graph "
                    "Laplacian, say) weights could become negative."
                )
            lowest = float(np.linalg.eigvalsh(E)[0])
            if lowest <= 0:
                raise ValueError(
                    f"NonIsotropicNorm: E must be positive definite; its smallest eigenvalue is "
                    f"{lowest:.3g}. Add a multiple of the identity."
                )
        return NonIsotropic(E, ~grams.degenerate)


class L2Ball(JointWeighting):
    """Weights in a ball around given ones, for ridge regression "l2-krr" (Cortes et al. 2009).

    ``min over {mu >= 0, ||mu - mu_0||_q <= radius}`` of the machine's own objective. Weights never
    fall below ``mu_0``, and are dense.

    Parameters
    ----------
    radius : float, default=1.0
        Positive.
    center : array of shape (n_kernels,), float or None, default=None
        ``mu_0``, not negative; None for zero, a number for equal weights.
    q : float, default=2.0
        Exponent of the ball, greater than 1.
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
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"L2Ball: radius must be a positive number; got {self.radius!r}.")
        if not 1 < self.q < np.inf:
            raise ValueError(f"L2Ball: q must be greater than 1 and finite; got {self.q!r}.")
        given = 0.0 if self.center is None else np.asarray(self.center, dtype=np.float64)
        if np.ndim(given) not in (0, 1) or (np.ndim(given) == 1 and len(given) != grams.p):  # type: ignore[arg-type]
            raise ValueError(
                f"L2Ball: center must be a number or {grams.p} numbers, one per kernel; got shape "
                f"{np.shape(given)}."
            )
        mu_0 = np.broadcast_to(given, (grams.p,)).astype(np.float64)
        if not np.all(np.isfinite(mu_0)) or np.any(mu_0 < 0):
            raise ValueError("L2Ball: center must be finite and not negative.")
        return WeightBall(float(self.radius), mu_0, float(self.q), ~grams.degenerate)


class AlignmentRegularized(JointWeighting):
    """Single-stage learning rewarded for alignment (Cortes, Mohri & Rostamizadeh 2012, eq. 9).

    ``min_{mu >= 0} J(mu) - gamma mu'a + mu'(gamma_norm M + gamma_ridge I) mu`` where J is twice the
    machine's optimum with kernel ``sum_k mu_k K_k``, ``a_k = <K_kc, YY'>`` and ``M_kl = <K_kc,
    K_lc>``. With ``gamma_norm = gamma / 2`` and gamma large the weights tend to those of `alignf`;
    with ``gamma = gamma_norm = 0`` they are those of :class:`L2Ball` for some radius.

    Parameters
    ----------
    gamma : float, default=1.0
        Reward of alignment, not negative.
    gamma_ridge : float, default=1.0
        The paper's gamma', weight of ``||mu||^2``; positive.
    gamma_norm : float, default=0.5
        The paper's gamma'', weight of ``mu'M mu``, not negative.
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
        return False  # products of kernels grow with the square of the sample size

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        for name in ("gamma", "gamma_ridge", "gamma_norm"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0) or (name == "gamma_ridge" and value == 0):
                raise ValueError(
                    f"AlignmentRegularized: {name} must be a "
                    f"{'positive' if name == 'gamma_ridge' else 'non-negative'} number; "
                    f"got {value!r}."
                )
        summary = summary_for(self, grams, target, summary)
        assert summary.M is not None
        Q = self.gamma_norm * summary.M + self.gamma_ridge * np.eye(grams.p)
        return AlignmentPenalty(self.gamma * summary.a, Q)


def check_exponent(owner: str, name: str, value: Any, below: float = np.inf) -> None:
    if not value >= 1 or (below < np.inf and not value < below):
        upper = "" if below == np.inf else f" and below {below:g}"
        raise ValueError(f"{owner}: {name} must be at least 1{upper}; got {value!r}.")


def group_labels(groups: Sequence[Any], p: int) -> np.ndarray:
    """The group of each kernel as a number, from labels or from lists of positions."""
    entries = list(groups)
    if entries and all(isinstance(g, (list, tuple, np.ndarray, range)) for g in entries):
        labels = np.full(p, -1)
        for j, members in enumerate(entries):
            for k in members:
                if not 0 <= k < p or labels[k] >= 0:
                    raise ValueError(
                        f"HierarchicalNorm: kernel {k!r} of group {j} is in two groups, or not one "
                        f"of the {p} kernels."
                    )
                labels[k] = j
        if np.any(labels < 0):
            raise ValueError(
                f"HierarchicalNorm: kernels {np.flatnonzero(labels < 0).tolist()} are in no group."
            )
        return labels
    if len(entries) != p:
        raise ValueError(
            f"HierarchicalNorm: groups must name a group for each of the {p} kernels; got "
            f"{len(entries)} names."
        )
    return np.unique(np.asarray(entries), return_inverse=True)[1]
