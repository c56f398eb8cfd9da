"""Predictors that need no training: averages of all targets, weighted by a learned kernel."""

from __future__ import annotations

from typing import Any

from sklearn.base import _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from ..learners.parzen import FORMS, Parzen
from ..weighting import JointWeighting, Weighting
from .base import MultiKernelEstimator
from .classifier import ClassifierCommon
from .probabilities import CALIBRATIONS
from .regressor import RegressorCommon


class ParzenCommon(MultiKernelEstimator):
    """Base class: kernels are always centred, and weights come from a two-stage rule."""

    _parameter_constraints = {
        name: constraint
        for name, constraint in MultiKernelEstimator._parameter_constraints.items()
        if name not in ("center", "tol", "max_iter")
    } | {"form": [StrOptions(set(FORMS))]}

    center = True
    form: str

    def _two_stage_rule(self) -> Weighting:
        """The weighting, if its weights do not need a trained predictor."""
        rule = self._as_weighting(self.weighting)
        if isinstance(rule, JointWeighting):
            raise ValueError(
                f"weighting={self.weighting!r} learns kernel weights and a predictor together, but "
                f"{type(self).__name__} does not train its predictor. Use a two-stage rule such as "
                "'uniform', 'best', 'align' or 'alignf'."
            )
        return rule


class ParzenClassifier(ParzenCommon, ClassifierCommon):
    """Classification by averages of the labels, weighted by a learned kernel.

    In a first stage ``weighting`` learns the weights of ``K = sum_k mu_k K_k``. The decision
    function is then known in closed form, from the centred kernel and the labels -1 and +1::

        g(x) = E[y' K_c(x, x')]      h(x) = g(x) / sqrt(E[K_c^2])      h_S(x) = h(x) / Var(y)

    with averages over the training sample (Cortes, Mohri & Rostamizadeh 2012, section 4.2). The
    theorems of that section bound their errors by the alignment of the kernel, which explains why
    well-aligned kernels predict well. There is nothing to train or tune, but a support vector
    machine usually predicts better.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    weighting : str or weighting, default="alignf"
        A two-stage rule: ``"loo"``, ``"uniform"``, ``"best"``, ``"align"``, ``"alignf"``,
        ``"correlation"``, ``"statis"``, ``"full-neighbours"``, ``"sparse-neighbours"``, or an
        object such as ``mk.Align(q=2)``.
    form : {"g", "h", "h_S"}, default="h"
        The three differ by positive factors. With two classes they give the same decisions. With
        more, each class is compared with the rest: ``"g"`` and ``"h"`` favour frequent classes,
        ``"h_S"`` hardly does.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        As in :class:`MultiKernelClassifier`. Kernels are always centred.
    calibration : {"auto", "sigmoid", "isotonic", "temperature"}, default="auto"
        As in :class:`MultiKernelClassifier`; leave-one-out averages have a closed form.
    dtype, memory_budget, n_jobs, random_state, engine, device, verbose
        As in :class:`MultiKernelClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        They sum to one.
    kernel_names_ : list of str
    alignment_ : float
        Centred alignment of the learned kernel with the labels.
    kernel_alignments_ : array of shape (n_kernels,)
    dual_coef_ : array of shape (n_support, n_columns)
        Coefficients of the samples, one column for two classes and one per class for more.
    support_ : array of shape (n_support,)
        Indices of the samples with a coefficient.
    intercept_ : array of shape (n_columns,)
        Zero, up to rounding errors of the centring.
    objective_ : float
        ``-E[y f(x)]`` on the training sample, summed over columns. For two classes it is
        ``-alignment_ * Var(y)`` with ``form="h"`` and ``-alignment_`` with ``"h_S"``.
    duality_gap_ : float
        Zero: the solution is exact.
    n_iter_ : int
    history_ : list
        Empty.
    plan_ : Plan
    bank_ : KernelBank or None
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    multikernel.bounds.good_classifier : The theorem about ``h``.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.ParzenClassifier().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 3)
    0.94
    """

    _parameter_constraints = ParzenCommon._parameter_constraints | {"calibration": [CALIBRATIONS]}

    # The theorems assume predictors without an intercept, and no class weights.
    fit_intercept = False
    class_weight = None

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "alignf",
        form: str = "h",
        *,
        normalize: str | None = "multiplicative",
        calibration: str = "auto",
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.form = form
        self.normalize = normalize
        self.calibration = calibration
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParzenClassifier:
        """Learn kernel weights, and compute the averages.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        rule = self._two_stage_rule()
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        self._fit(self._make_grams(X, keep, weights), target, rule, Parzen(self.form), keep)
        return self


class ParzenRegressor(ParzenCommon, RegressorCommon):
    """Regression by averages of the targets, weighted by a learned kernel.

    In a first stage ``weighting`` learns the weights of ``K = sum_k mu_k K_k``. The prediction is
    then known in closed form, from the centred kernel and the targets::

        g(x) = E[y' K_c(x, x')]      h(x) = g(x) / sqrt(E[K_c^2])      h_S(x) = h(x) / Var(y)

    with averages over the training sample (Cortes, Mohri & Rostamizadeh 2012, section 4.2). On
    targets with mean 0 and variance 1, the mean squared error of h is at most ``2 - 2 rho`` for a
    kernel with alignment rho. There is nothing to train or tune, but ridge regression usually
    predicts better.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelRegressor`.
    weighting : str or weighting, default="alignf"
        A two-stage rule: ``"loo"``, ``"uniform"``, ``"best"``, ``"align"``, ``"alignf"``,
        ``"correlation"``, ``"statis"``, ``"full-neighbours"``, ``"sparse-neighbours"``, or an
        object such as ``mk.Align(q=2)``.
    form : {"g", "h", "h_S"}, default="h"
        Only ``"h"`` has the unit of the targets. ``"g"`` grows with the size of the kernel;
        ``"h_S"``, whose product with y averages to the alignment, has the unit of 1 / y.
    fit_intercept : bool, default=True
        Whether to add the mean of the targets.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        As in :class:`MultiKernelRegressor`. Kernels are always centred.
    dtype, memory_budget, n_jobs, random_state, engine, device, verbose
        As in :class:`MultiKernelRegressor`.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        They sum to one.
    kernel_names_ : list of str
    alignment_ : float
        Centred alignment of the learned kernel with the targets.
    kernel_alignments_ : array of shape (n_kernels,)
    dual_coef_ : array of shape (n_support, n_outputs)
    support_ : array of shape (n_support,)
    intercept_ : float, or array of shape (n_outputs,)
    objective_ : float
        ``-E[y f(x)]`` on the training sample, for centred targets, summed over outputs.
    duality_gap_ : float
        Zero: the solution is exact.
    n_iter_ : int
    history_ : list
        Empty.
    plan_ : Plan
    bank_ : KernelBank or None
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    multikernel.bounds.good_regressor : The theorem about ``h``.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = mk.ParzenRegressor().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.3
    """

    _parameter_constraints = ParzenCommon._parameter_constraints | {"fit_intercept": ["boolean"]}

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "alignf",
        form: str = "h",
        *,
        fit_intercept: bool = True,
        normalize: str | None = "multiplicative",
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.form = form
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the scale of h is not fitted
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParzenRegressor:
        """Learn kernel weights, and compute the averages.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
        """
        rule = self._two_stage_rule()
        X, y = self._check_X(X, y, reset=True, multi_output=True, y_numeric=True)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_outputs(y, keep, weights)
        learner = Parzen(self.form, fit_intercept=self.fit_intercept)
        self._fit(self._make_grams(X, keep, weights), target, rule, learner, keep)
        self._keep_sample(X, target, keep)
        return self
