"""Weights from centred alignment: align and alignf of Cortes, Mohri & Rostamizadeh 2012.

With ``a_k = <K_kc, Y Y'>`` and ``M_kl = <K_kc, K_lc>`` (:meth:`Grams.summary` delivers both), the
alignment of a combination with the target is ``mu'a / (sqrt(mu'M mu) ||YY'||)``.
"""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lstsq, solve_triangular
from scipy.optimize import nnls

from .._threads import one_blas_thread
from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting, normalised, summary_for

#: alignf is solved by a few proximal steps ``min f(u) + PROX ||u - u_old||^2`` from zero, with
#: kernels of unit norm. Directions that f determines converge to rounding error at once; along
#: directions that it leaves open (M singular) the steps stay at the weights of smallest norm, and
#: where it is as good as open (eigenvalues of M below PROX) rounding errors are not blown up.
PROX = 2.0**-26
PROX_STEPS = 5


class Align(Weighting):
    """Independent alignment weights (`align`).

    ``mu_k`` is proportional to the centred alignment of kernel k with the target, eq. (3) of
    Cortes et al. 2012; with ``q``, to ``a_k ** (1 / (q - 1))``, which maximises the unnormalised
    alignment over ``||mu||_q <= 1`` (Proposition 7).

    The two readings differ by the size of the kernels: eq. (3) multiplies the kernels as they are
    normalised, while ``Align(q=2)`` with ``normalize="frobenius"`` is the variational one.

    Parameters
    ----------
    q : float or None, default=None
        None for eq. (3). Otherwise q > 1: near 1 all weight goes to the best kernel, and for
        large q the weights become equal.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.per_feature(mk.Linear())
    >>> mk.MultiKernelClassifier(bank, weighting=mk.Align()).fit(X, y).kernel_weights_.round(3)
    array([0.214, 0.139, 0.326, 0.321])
    """

    needs_summary = True

    def __init__(self, q: float | None = None) -> None:
        self.q = q

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        summary = summary_for(self, grams, target, summary)
        if self.q is None:
            weights = np.maximum(summary.alignments, 0.0)
        else:
            weights = align_q(summary.a, self.q)
        return _or_uniform(weights, grams)


def align_q(a: np.ndarray, q: float) -> np.ndarray:
    """``argmax mu'a`` over ``||mu||_q <= 1``: ``a_k^(1/(q-1))``, scaled to unit q-norm."""
    if not isinstance(q, Real) or not q > 1:
        raise ValueError(f"Align: q must be greater than 1 (or None); got {q!r}.")
    a = np.maximum(a, 0.0)
    top = a.max(initial=0.0)
    if top == 0:
        return np.zeros_like(a)
    # Dividing by the largest first keeps the power from overflowing for q near 1.
    mu = (a / top) ** (1.0 / (q - 1.0))
    if np.isinf(q):
        mu = (a > 0).astype(np.float64)
        return mu
    return np.asarray(mu / np.sum(mu**q) ** (1.0 / q))


class AlignF(Weighting):
    """Alignment maximisation (`alignf`): the combination that is best aligned with the target.

    Solves ``min_{v >= 0} v'Mv - 2 v'a`` (Cortes et al. 2012, Proposition 9) as non-negative least
    squares, so zeros are exact. Kernels that repeat or span each other make M singular; among all
    best combinations the weights of smallest Euclidean norm (per kernel of unit Frobenius norm)
    are returned, so identical kernels share their weight equally.

    Parameters
    ----------
    signed : bool, default=False
        Allow negative weights: the closed form ``mu ~ M^-1 a`` (Proposition 8). The result need
        not be a kernel; a warning says so when it is not.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(mk.gaussians([0.01, 0.1, 1.0]), weighting="alignf")
    >>> model.fit(X, y).kernel_weights_.round(3)
    array([0.   , 0.412, 0.588])
    """

    needs_summary = True
    needs_products = True

    def __init__(self, signed: bool = False) -> None:
        self.signed = signed

    @property
    def signed_weights(self) -> bool:  # type: ignore[override]
        return self.signed

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        summary = summary_for(self, grams, target, summary)
        assert summary.M is not None
        solve = alignf_signed if self.signed else alignf
        return _or_uniform(solve(summary.M, summary.a), grams)


def alignf(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``argmin_{v >= 0} v'Mv - 2 v'a``; zero rows of M (constant kernels) get weight 0.

    The problem is solved for kernels of unit Frobenius norm, ``u = d v`` with ``d^2 = diag M``,
    where it does not depend on how the kernels are scaled. With ``C = M / (d d')``, ``r = a / d``
    and ``C + PROX I = L L'``, a proximal step is the non-negative least squares problem

        min_{u >= 0} || L'u - L^-1 (r + PROX u_old) ||^2
    """
    v = np.zeros(len(a))
    keep, d, C, r = _unit_norm(M, a)
    scale = np.abs(r).max(initial=0.0)
    if scale == 0:
        return v
    u = np.zeros(len(keep))
    with one_blas_thread():
        L, prox = _definite_factor(C)
        for _ in range(PROX_STEPS):
            right = solve_triangular(L, r / scale + prox * u, lower=True)
            u, _ = nnls(L.T, right, maxiter=max(30 * len(keep), 300))
    v[keep] = u * scale / d
    return v


def alignf_signed(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``M^-1 a``, the unconstrained maximiser; of smallest norm where M is singular."""
    v = np.zeros(len(a))
    keep, d, C, r = _unit_norm(M, a)
    if len(keep):
        with one_blas_thread():
            v[keep] = lstsq(C, r)[0] / d
    return v


def _definite_factor(C: np.ndarray) -> tuple[np.ndarray, float]:
    """``L L' = C + prox I``, prox enlarged until C, which may come from float32, is definite."""
    prox = PROX
    while True:
        try:
            return cholesky(C + prox * np.eye(len(C)), lower=True), prox
        except LinAlgError:
            prox *= 16


def _unit_norm(
    M: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The kernels that are not zero, their norms d, and M and a for unit norm."""
    d = np.sqrt(np.maximum(np.diag(M), 0.0))
    keep = np.flatnonzero(d > 0)
    d = d[keep]
    return keep, d, M[np.ix_(keep, keep)] / np.outer(d, d), a[keep] / d


def _or_uniform(weights: np.ndarray, grams: Grams) -> np.ndarray:
    if np.any(weights != 0):
        return normalised(weights)
    warnings.warn(
        "No kernel is aligned with the target (all alignments are zero); using uniform weights.",
        UserWarning,
        stacklevel=3,
    )
    return normalised(np.where(grams.degenerate, 0.0, 1.0))
