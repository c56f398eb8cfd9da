"""Novelty detection with a learned combination of kernels."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval

from ..grams.protocol import Grams
from ..learners.certify import size_of_terms
from ..learners.oneclass import OneClassSVM
from ..learners.svm import SVM
from ..problem import ROUNDING_UNITS, Solution, Target
from ..weighting import AlignmentRegularized, JointWeighting, as_weighting
from .base import CHECKPOINTS, MultiKernelEstimator

#: Default of ``nu``, the share of the sample that may lie outside.
DEFAULT_NU = 0.5
#: Samples on the margin score 1 in the C form, up to rounding error. The offset is lowered by this
#: amount so that they count as inside.
MARGIN_ROUNDING = 1e-9


class MultiKernelOneClass(OutlierMixin, MultiKernelEstimator):  # type: ignore[misc]
    """One-class SVM on a learned combination of kernels, to detect unusual samples.

    Two forms (Kloft 2011, section 2.3.4), with the block norm or other regulariser ``||w||`` that
    ``weighting`` names::

        nu    min_{w, rho}  1/2 ||w||^2 - rho + 1/(nu n) sum_i max(0, rho - f(x_i))
        C     min_w         1/2 ||w||^2 + C sum_i max(0, 1 - f(x_i))

    ``nu`` is the share of the sample that may lie outside. ``C`` is the cost of a sample outside;
    the offset is then 1. With ``nu = sum(dual_coef_) / (n C)`` of a fit in the C form, the nu form
    has the same weights and proportional scores. There are no labels to align kernels with, so the
    weighting is uniform, a consensus of the kernels, or joint.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    weighting : str or weighting, default="lp"
        ``"uniform"``, ``"statis"``, ``"lp"``, ``"l1"``, or an object such as ``mk.LpNorm(p=2)``.
    nu : float in (0, 1], default=0.5
        At most this share of the sample is left outside.
    C : float or None, default=None
        Cost of the loss in the C form, which replaces the nu form; leave ``nu`` at its default
        then.
    center : bool, default=False
        The model separates the sample from the origin, and centring moves the origin into the
        middle of the sample, which is rarely what you want.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        How kernels are scaled to the same size.
    tol : float, default=1e-3
        Tolerance of the solver, relative to the size of the kernel.
    max_iter : int, default=-1
        Limit on the solver's steps, -1 for none.
    dtype, memory_budget, n_jobs, random_state, engine, device, checkpoint, verbose
        As in :class:`MultiKernelClassifier`.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``; 1 in the C form, less 1e-9 for rounding.
    kernel_weights_ : array of shape (n_kernels,)
    kernel_names_ : list of str
    dual_coef_ : array of shape (n_support, 1)
        They sum to one in the nu form, and are at most C in the C form.
    support_ : array of shape (n_support,)
    objective_ : float
    duality_gap_ : float
        Relative duality gap of the joint problem.
    n_iter_ : int
    history_ : list of dict
    engine_ : str
        The engine that computed the kernels, and on which device.
    plan_ : Plan
        Which implementation computed which kernels; ``grams_`` is an alias.
    bank_ : KernelBank or None
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_wine
    >>> X = load_wine().data
    >>> model = mk.MultiKernelOneClass(nu=0.1).fit(X)
    >>> print((model.predict(X) == -1).mean().round(2))
    0.08
    >>> cost = mk.MultiKernelOneClass(C=0.001).fit(X)
    >>> print(round(cost.offset_, 6), (cost.predict(X) == -1).mean().round(2))
    1.0 0.08
    """

    _parameter_constraints = {
        **MultiKernelEstimator._parameter_constraints,
        "nu": [Interval(Real, 0, 1, closed="right")],
        "C": [None, Interval(Real, 0, None, closed="neither")],
        "checkpoint": CHECKPOINTS,
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "lp",
        nu: float = DEFAULT_NU,
        *,
        C: float | None = None,
        center: bool = False,
        normalize: str | None = "multiplicative",
        tol: float = 1e-3,
        max_iter: int = -1,
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.nu = nu
        self.C = C
        self.center = center
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @property
    def _makes_few_passes(self) -> bool:
        return not isinstance(as_weighting(self.weighting), JointWeighting)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultiKernelOneClass:
        """Learn the kernel weights and the model.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        X = self._check_X(X, reset=True)
        if X.shape[0] < 2:
            raise ValueError(
                f"MultiKernelOneClass needs at least 2 samples; got n_samples = {X.shape[0]}."
            )
        rule = self._as_weighting(self.weighting)
        fits = not rule.needs_target or isinstance(rule, JointWeighting)
        if not fits or isinstance(rule, AlignmentRegularized):
            raise ValueError(
                f"weighting={self.weighting!r} needs targets, and MultiKernelOneClass has none. "
                "Use 'uniform', 'statis', or a joint rule such as mk.LpNorm(p=4/3)."
            )
        learner = self._learner()
        weights, keep = self._sample_weights(sample_weight, X)
        target = Target(np.ones((len(keep), 1)), "one-class", weights)
        with self._journal(X, None, sample_weight) as journal:
            grams = self._make_grams(X, keep, weights)
            self._fit(grams, target, rule, learner, keep, journal=journal)
        return self

    def _learner(self) -> OneClassSVM | SVM:
        """The learner of the C form if ``C`` is set, otherwise of the nu form."""
        if self.C is None:
            return OneClassSVM(float(self.nu), tol=float(self.tol), max_iter=self.max_iter)
        if self.nu != DEFAULT_NU:
            raise ValueError(
                f"MultiKernelOneClass: nu={self.nu!r} and C={self.C!r} belong to two different "
                f"forms of the problem. Set only one of them: leave nu at {DEFAULT_NU}, or set "
                "C=None."
            )
        # max(0, 1 - f) is the hinge loss of samples that are all labelled +1. A free intercept
        # would make w = 0 with b = 1 optimal.
        return SVM(float(self.C), tol=float(self.tol), max_iter=self.max_iter, fit_intercept=False)

    def _store(self, corrected: Grams, solution: Solution, keep: np.ndarray) -> None:
        super()._store(corrected, solution, keep)
        if self.C is not None:
            return
        coef = solution.machine.coef
        gram = corrected.combine(solution.kernel_weights)
        if abs(solution.machine.objective) <= ROUNDING_UNITS * size_of_terms(gram, coef):
            warnings.warn(
                "MultiKernelOneClass: with these kernels the origin lies within the sample, so no "
                "function separates the two: all scores are zero, and predictions mean nothing. "
                "Use kernels with positive values, such as mk.Gaussian, set center=False, or "
                f"lower nu={self.nu:g}.",
                UserWarning,
                stacklevel=7,
            )

    def _set_intercept(self, intercept: np.ndarray) -> None:
        in_cost_form = self.C is not None
        self.offset_ = 1.0 - MARGIN_ROUNDING if in_cost_form else -float(intercept[0])

    def score_samples(self, X: Any) -> np.ndarray:
        """Score how typical each sample is, before the offset; larger is more typical.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new,)
        """
        return self._evaluate(X, False)[:, 0]

    def decision_function(self, X: Any, *, split: bool = False) -> np.ndarray:
        """``score_samples(X) - offset_``: positive inside, negative outside.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
        split : bool, default=False
            Return each kernel's share of ``score_samples`` instead.

        Returns
        -------
        array of shape (n_new,), or (n_new, n_kernels) with ``split=True``
        """
        if split:
            return self._evaluate(X, True)[:, :, 0]
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Predict +1 for samples like the training sample, -1 for others.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new,)
        """
        # Free support vectors lie on the boundary, up to rounding error: count them as inside.
        return np.where(self.decision_function(X) >= -1e-9 * abs(self.offset_), 1, -1)
