"""Weights from centred alignment: align and alignf of Cortes, Mohri & Rostamizadeh 2012.

With ``a_k = <K_kc, Y Y'>`` and ``M_kl = <K_kc, K_lc>`` (both from :meth:`Grams.summary`), the
alignment of a combination with the target is ``mu'a / (sqrt(mu'M mu) ||YY'||)``.
"""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from .._threads import one_blas_thread
from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting, normalised, summary_for
from .signed_alignment import best_signed, unit_norm

#: alignf is solved by a few proximal steps ``min f(u) + PROXIMAL_FACTOR ||u - u_old||^2`` from
#: zero, with kernels of unit norm. Directions that f determines converge to rounding error at once.
#: Along directions that f does not determine (M singular) the steps stay at the weights of smallest
#: norm, and along nearly undetermined ones (eigenvalues of M below this factor) rounding errors are
#: not amplified.
PROXIMAL_FACTOR = 2.0**-26
#: Number of proximal steps.
PROXIMAL_STEPS = 5
#: Growth of the factor if float32 errors in M make the matrix indefinite.
PROXIMAL_GROWTH = 16


class Align(Weighting):
    """Independent alignment weights (`align`): better aligned kernels get more weight.

    ``mu_k`` is proportional to the centred alignment of kernel k with the target, eq. (3) of
    Cortes et al. 2012. With ``q`` it is proportional to ``a_k ** (1 / (q - 1))``, which maximises
    the unnormalised alignment over ``||mu||_q <= 1`` (Proposition 7).

    The two definitions differ by the norms of the kernels: ``a_k`` is proportional to the alignment
    times the norm of kernel k. With ``normalize="frobenius"`` all norms are one, and ``Align(q=2)``
    gives the same weights as eq. (3).

    Parameters
    ----------
    q : float or None, default=None
        None for eq. (3). Otherwise q > 1: near 1 all weight goes to the best kernel; for large q
        the weights become equal.

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
            kernel_weights = np.maximum(summary.alignments, 0.0)
        else:
            kernel_weights = align_q(summary.a, self.q)
        return _or_uniform(kernel_weights, grams)


def align_q(a: np.ndarray, q: float) -> np.ndarray:
    """``argmax mu'a`` over ``||mu||_q <= 1``: ``a_k^(1/(q-1))``, scaled to unit q-norm."""
    if not isinstance(q, Real) or not q > 1:
        raise ValueError(f"Align: q must be greater than 1 (or None); got {q!r}.")
    a = np.maximum(a, 0.0)
    top = a.max(initial=0.0)
    if top == 0:
        return np.zeros_like(a)
    # Dividing by the largest entry keeps the power from overflowing for q near 1.
    mu = (a / top) ** (1.0 / (q - 1.0))
    if np.isinf(q):
        mu = (a > 0).astype(np.float64)
        return mu
    return np.asarray(mu / np.sum(mu**q) ** (1.0 / q))


class FeatureCorrelation(Weighting):
    """Weights in proportion to the absolute correlation of each feature with the target.

    For kernels of rank one, ``K_k(x, z) = u_k(x) u_k(z)``: ``mu_k ~ |corr(u_k, y)|`` (Rostamizadeh
    2010, section 2.2). `Align` gives its square, which varies more between features. With several
    outputs or classes the weight is the root of the alignment with all of them, which for a single
    output is the absolute correlation.

    Only for banks whose kernels have one feature each, such as ``per_feature(Linear())`` and
    ``per_ngram``.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = mk.per_feature(mk.Linear())
    >>> model = mk.MultiKernelRegressor(bank, mk.FeatureCorrelation()).fit(X, y)
    >>> model.kernel_weights_[:4].round(3)  # age, sex, body mass, blood pressure
    array([0.055, 0.013, 0.172, 0.129])
    """

    needs_summary = True
    needs_features = True

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        if grams.features() is None:
            named = ", ".join(map(repr, list(grams.names)[:3])) + (", ..." if grams.p > 3 else "")
            raise ValueError(
                "FeatureCorrelation (weighting='correlation') needs a bank whose kernels have one "
                "feature each, such as mk.per_feature(mk.Linear()) or mk.per_ngram(...); got the "
                f"kernels {named}. Use weighting='align', which works with any kernels."
            )
        summary = summary_for(self, grams, target, summary)
        return _or_uniform(np.sqrt(np.maximum(summary.alignments, 0.0)), grams)


class AlignF(Weighting):
    """Alignment maximisation (`alignf`): the combination best aligned with the target.

    Solves ``min_{v >= 0} v'Mv - 2 v'a`` (Cortes et al. 2012, Proposition 9) by non-negative least
    squares, so zeros are exact. If kernels repeat or are linearly dependent, several combinations
    are optimal. The weights of smallest Euclidean norm (for kernels of unit Frobenius norm) are
    returned, so identical kernels get equal weights.

    Parameters
    ----------
    signed : bool, default=False
        Whether weights may be negative: the closed form ``mu ~ M^-1 a`` (Proposition 8). The
        combination need not be positive semidefinite; a warning is given if it is not. If M is
        nearly singular, the weights come from a factorisation of the kernels themselves, which
        resolves twice as many digits (:mod:`multikernel.weighting.signed_alignment`).

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
        if self.signed:
            return _or_uniform(best_signed(grams, target, summary), grams)
        return _or_uniform(alignf(summary.M, summary.a), grams)


def alignf(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``argmin_{v >= 0} v'Mv - 2 v'a``; zero rows of M (constant kernels) get weight 0.

    The problem is solved for kernels of unit Frobenius norm, ``u = d v`` with ``d^2 = diag M``, so
    that the solution does not depend on the scale of the kernels. With ``C = M / (d d')``, ``r = a
    / d``, ``prox`` = PROXIMAL_FACTOR and ``C + prox I = L L'``, a proximal step is the non-negative
    least squares problem

        min_{u >= 0} || L'u - L^-1 (r + prox u_old) ||^2
    """
    v = np.zeros(len(a))
    keep, d, C, r = unit_norm(M, a)
    scale = np.abs(r).max(initial=0.0)
    if scale == 0:
        return v
    u = np.zeros(len(keep))
    with one_blas_thread():
        L, prox = _definite_factor(C)
        for _ in range(PROXIMAL_STEPS):
            right = solve_triangular(L, r / scale + prox * u, lower=True)
            u, _ = nnls(L.T, right, maxiter=max(30 * len(keep), 300))
    v[keep] = u * scale / d
    return v


def _definite_factor(C: np.ndarray) -> tuple[np.ndarray, float]:
    """L and prox with ``L L' = C + prox I``; prox grows until the sum is positive definite."""
    prox = PROXIMAL_FACTOR
    while True:
        try:
            return cholesky(C + prox * np.eye(len(C)), lower=True), prox
        except LinAlgError:
            prox *= PROXIMAL_GROWTH


def _or_uniform(kernel_weights: np.ndarray, grams: Grams) -> np.ndarray:
    """Weights that sum to one; uniform weights, with a warning, if all are zero."""
    if np.any(kernel_weights != 0):
        return normalised(kernel_weights)
    warnings.warn(
        "No kernel is aligned with the target (all alignments are zero); using uniform weights.",
        UserWarning,
        stacklevel=3,
    )
    return normalised(np.where(grams.degenerate, 0.0, 1.0))
