"""Variants of the block norm: elastic net, groups of kernels, kernels coupled by a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._options import check_choice
from ..grams.protocol import Grams, Summary
from ..problem import Target
from ..problem.hierarchy import Hierarchy
from ..problem.nonisotropic import NonIsotropic
from ..problem.regularisers import BlockNorm, ElasticNet, Regulariser
from .base import summary_for
from .joint import JointWeighting, check_exponent

#: Values of ``HierarchicalNorm(solver=...)``.
HIERARCHICAL_SOLVERS = ("auto", "alternation", "lbfgs")


class ElasticNetNorm(JointWeighting):
    """Elastic-net block norm: ``1/2 ||w||_{2,p}^2 + mu/2 ||w||_2^2`` plus the loss.

    The rule lies between lp-norm learning (mu = 0) and the plain sum of the kernels (large mu).

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
    ||w_k||^q)^(1/q)`` within groups: groups compete with exponent p, kernels of a group with q.

    Parameters
    ----------
    groups : sequence of int or str, one per kernel; or sequence of sequences of kernel indices
    p, q : float
        Exponents between groups and within groups, at least 1; ``float("inf")`` is allowed. At 1
        the groups (or the kernels of a group) get sparse weights; 2 is the plain sum; above 2 their
        parts become more equal than in the plain sum.
    tol, max_iter
        As in :class:`LpNorm`.
    solver : {"auto", "alternation", "lbfgs"}, default="auto"
        ``"alternation"`` trains the predictor and updates the weights in turn; ``"auto"`` is the
        same. ``"lbfgs"``, for exponents above 1 and below infinity and the squared or logistic
        loss, maximises the dual by a quasi-Newton method. It converges for all such exponents, even
        if 2 lies between them.

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
        solver: str = "auto",
    ) -> None:
        self.groups = groups
        self.p = p
        self.q = q
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver

    def method(self, n_kernels: int) -> str:
        check_choice("HierarchicalNorm", "solver", self.solver, HIERARCHICAL_SOLVERS)
        if self.solver == "lbfgs" and not (1 < self.p < np.inf and 1 < self.q < np.inf):
            raise ValueError(
                f"HierarchicalNorm: solver='lbfgs' is for p and q above 1 and below infinity; got "
                f"p={self.p!r}, q={self.q!r}. Use solver='auto'."
            )
        return "alternation" if self.solver == "auto" else self.solver

    @property
    def supports_subsampled_start(self) -> bool:
        return self.solver != "lbfgs"  # L-BFGS cannot start from weights

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        check_exponent("HierarchicalNorm", "p", self.p)
        check_exponent("HierarchicalNorm", "q", self.q)
        labels = group_labels(self.groups, grams.p)
        return Hierarchy(labels, float(self.p), float(self.q), ~grams.degenerate)


class NonIsotropicNorm(JointWeighting):
    """A norm that couples kernels through a matrix E (Kloft 2011, section 2.3.6).

    The dual regulariser is ``min_{u >= zeta} 1/2 u'E u`` with ``zeta_k = ||sum_i s_i
    phi_k(x_i)||``, and the kernel weights are ``(E u)_k / zeta_k``. With a diagonal E the weights
    are fixed. A positive entry lets two kernels raise each other's weight; by default E holds the
    alignments of the kernels with each other, so that similar kernels do so. With a negative entry
    two kernels compete, and weights may become zero. Without negative entries u is zeta.

    Parameters
    ----------
    E : array of shape (n_kernels, n_kernels) or None
        A symmetric, positive definite matrix, such as a graph Laplacian plus a multiple of the
        identity, or the inverse of a matrix of similarities; None for the centred alignments.
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
            if not good or not np.allclose(E, E.T):
                raise ValueError(
                    f"NonIsotropicNorm: E must be a symmetric {grams.p} x {grams.p} matrix of "
                    f"finite numbers, a row and a column for each kernel; got shape {E.shape}."
                )
            lowest = float(np.linalg.eigvalsh(E)[0])
            if lowest <= 0:
                raise ValueError(
                    f"NonIsotropicNorm: E must be positive definite; its smallest eigenvalue is "
                    f"{lowest:.3g}. Add a multiple of the identity."
                )
        return NonIsotropic(E, ~grams.degenerate)


def group_labels(groups: Sequence[Any], p: int) -> np.ndarray:
    """The group of each kernel as an integer, from labels or from lists of kernel indices."""
    if not isinstance(groups, Iterable):
        raise ValueError(
            "HierarchicalNorm: groups must be a sequence, a label for each kernel or lists of "
            f"kernel indices; got {groups!r}."
        )
    entries = list(groups)
    if entries and all(isinstance(g, (list, tuple, np.ndarray, range)) for g in entries):
        labels = np.full(p, -1)
        for j, members in enumerate(entries):
            for k in members:
                whole = isinstance(k, Integral) and not isinstance(k, bool)
                if not whole or not 0 <= k < p or labels[k] >= 0:
                    raise ValueError(
                        f"HierarchicalNorm: kernel {k!r} of group {j} is in two groups, or not one "
                        f"of the {p} kernels. List every index from 0 to {p - 1} once."
                    )
                labels[k] = j
        if np.any(labels < 0):
            raise ValueError(
                f"HierarchicalNorm: kernels {np.flatnonzero(labels < 0).tolist()} are in no group. "
                "Give each a group of its own, or add it to one."
            )
        return labels
    if len(entries) != p:
        raise ValueError(
            f"HierarchicalNorm: groups must name a group for each of the {p} kernels; got "
            f"{len(entries)} names."
        )
    return np.unique(np.asarray(entries), return_inverse=True)[1]
