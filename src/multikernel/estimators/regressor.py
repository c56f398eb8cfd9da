"""Regression with a learned combination of kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from ..learners.ridge import Ridge
from ..learners.svr import SVR
from ..problem import Target
from ..solvers.passes.survey import RowSurvey
from ..solvers.passes.targets import OutputColumns
from ..weighting import JointWeighting, as_weighting
from .base import CHECKPOINTS, MultiKernelEstimator
from .intervals import IntervalMixin
from .large import APPROXIMATIONS, LargeSampleMixin, has_approximation
from .missing import MISSING


class RegressorCommon(IntervalMixin, RegressorMixin, MultiKernelEstimator):  # type: ignore[misc]
    """Targets and predictions, common to all regressors."""

    _parameter_constraints = {
        **MultiKernelEstimator._parameter_constraints,
        "loss": [StrOptions({"squared", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
    }

    _is_classification = False
    loss: str
    epsilon: float
    fit_intercept: bool
    solver: str
    tol: float
    max_iter: int

    def _make_learner(self, alpha: float | str) -> Ridge | SVR:
        if self.loss == "epsilon_insensitive":
            if isinstance(alpha, str):
                raise ValueError(
                    "alpha='loo' needs loss='squared', whose leave-one-out error has a closed "
                    "form. Pass a number, or use MultiKernelRegressorCV."
                )
            return SVR(alpha, epsilon=self.epsilon, fit_intercept=self.fit_intercept)
        return Ridge(
            alpha,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode_outputs(
        self, y: np.ndarray, keep: np.ndarray, weights: np.ndarray | None
    ) -> Target:
        self._single_output = y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)[keep]
        constant = np.ptp(Y, axis=0) == 0
        if np.all(constant):
            raise ValueError(
                f"y is constant ({Y[0, 0]:g}), so there is nothing to predict. Check the target."
            )
        return Target(Y, "regression", weights)

    def _check_for_fit(self, X: Any, y: Any) -> tuple[Any, Any]:
        checked: tuple[Any, Any] = self._check_X(
            X, y, reset=True, multi_output=True, y_numeric=True
        )
        return checked

    def _keep_rows(self, X: Any, y: Any, weights: np.ndarray | None, keep: np.ndarray) -> None:
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)[keep]
        self._keep_sample(X, Target(Y, "regression", weights), keep)

    def _columns_of(self, survey: RowSurvey) -> OutputColumns:
        assert survey.lowest is not None and survey.highest is not None
        self._single_output = survey.y.ndim == 1
        if np.all(survey.lowest == survey.highest):
            raise ValueError(
                f"y is constant ({survey.lowest[0]:g}), so there is nothing to predict. Check the "
                "target."
            )
        return OutputColumns(0 if self._single_output else survey.y.shape[1])

    @property
    def _one_output(self) -> bool:
        return self._single_output

    def _set_intercept(self, intercept: np.ndarray) -> None:
        self.intercept_ = float(intercept[0]) if self._single_output else intercept

    def predict(self, X: Any, *, split: bool = False, return_std: bool = False) -> Any:
        """Predict outputs, with standard deviations if ``return_std=True``.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
        split : bool, default=False
            Return each kernel's share instead of the sum.
        return_std : bool, default=False
            Return the standard deviations of new outputs (noise included) as well. For ridge
            regression with up to 4,000 samples, they are those of the Gaussian process whose mean
            is the prediction, with the variance that fits the leave-one-out residuals. Otherwise
            they are one number for each output, the root mean square of held-out residuals.

        Returns
        -------
        array of shape (n_new,) or (n_new, n_outputs), as y was in fit
            With ``split=True`` a kernel axis comes second, (n_new, n_kernels[, n_outputs]), and
            ``shares.sum(axis=1) + intercept_`` is the prediction.
        std : array of the same shape as the predictions
            Only with ``return_std=True``.
        """
        if split and return_std:
            raise ValueError(
                "split=True and return_std=True cannot be combined: kernel shares have no "
                "standard deviations. Call predict twice."
            )
        values = self._evaluate(X, split)
        if not split:
            values = values + self.intercept_
        values = values[..., 0] if self._single_output else values
        if return_std:
            return values, self._as_outputs(self._predict_std(X))
        return values


class MultiKernelRegressor(LargeSampleMixin, RegressorCommon):  # type: ignore[misc]
    """Ridge regression on a learned combination of kernels.

    First ``weighting`` finds the kernel weights; then ridge regression with a free intercept is
    solved on ``K = sum_k mu_k K_k``. (Joint rules such as ``"lp"`` find both at once.) Several
    outputs share the weights.

    By default, the weights minimise the leave-one-out error over a bank of kernels that suits
    tables of numbers.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        The kernels to combine. None takes :func:`multikernel.default_bank`; with leave-one-out
        weights and at least 400 samples it takes :func:`multikernel.learned_scales`, and for a data
        frame with categories it takes kernels on numbers, on categories and on both. With
        ``"precomputed"``, X is an array of shape (n_samples, n_samples, n_kernels).
    weighting : str or weighting, default="loo"
        How the kernel weights are found: ``"loo"`` (smallest leave-one-out error,
        :class:`multikernel.LeaveOneOut`), ``"uniform"``, ``"best"``, ``"align"``, ``"alignf"``,
        ``"correlation"``, ``"lp"``, ``"l1"`` or ``"l2-ball"``; without using the targets
        ``"statis"``, ``"full-neighbours"`` or ``"sparse-neighbours"``; or an object with
        parameters, such as ``mk.Align(q=2)``.
    alpha : float or "loo", default=1.0
        The ridge penalty: the factor of ``||f||^2`` added to the sum of squared errors. ``"loo"``
        uses the value with the smallest leave-one-out error (loss "squared" and two-stage
        weightings only). With ``weighting="loo"`` the weights already include this choice, so 1.0
        is the right value.
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        Ridge regression, or support vector regression with the learned kernel: ``alpha/2 ||f||^2``
        plus the sum of ``max(0, |error| - epsilon)``.
    epsilon : float, default=0.1
        Errors up to this size cost nothing; for the epsilon-insensitive loss only.
    fit_intercept : bool, default=True
        Whether to fit an intercept; otherwise it is zero.
    center : bool, default=True
        Centre the kernels in feature space.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        How kernels are scaled to the same size, after centring. The default, ``"multiplicative"``,
        gives each kernel unit variance in feature space, so that alpha has the same meaning as for
        one kernel on standardised data; ``"trace"`` (trace one) is the same up to the factor
        ``n_samples``. ``"trace-first"`` divides by the trace before centring, so kernels that
        centring shrinks stay small.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        Factor the n x n matrix, or never form it and use conjugate gradients; ``"auto"`` factors
        whenever the memory budget allows.
    tol : float, default=1e-6
        Accuracy of conjugate gradients: fitted values are proven to be within ``tol`` standard
        deviations of y (root mean square) of the exact ones, and the relative duality gap is at
        most ``tol``.
    max_iter : int, default=1000
        Limit on conjugate-gradient steps.
    missing : {"error", "ignore", "complete"}, default="error"
        How to treat NaN in X. ``"error"`` raises an error. With ``"ignore"`` a sample contributes
        through the kernels whose columns it has: in a kernel whose columns are all NaN, the sample
        is placed at the centre of the samples that have them; single values are filled with column
        means. All kernel matrices are then held in memory. With ``"complete"`` the sample is placed
        where kernels on other columns predict it to be.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        None is exact. :class:`multikernel.Nystroem` and :class:`multikernel.RandomFeatures`
        replace every kernel by features and learn from sums over samples, in time proportional to
        the number of samples; ``approximation_`` reports the error. ``"auto"`` is exact as long as
        the kernel matrix fits into the memory budget.
    dtype : {"float32", "float64"} or None, default=None
        Precision of Gram entries; None follows X. Sums are float64 in any case.
    memory_budget : int, str or None, default=None
        Bytes, or text such as ``"4GB"``; None for 60 % of the free memory.
    n_jobs : int or None, default=None
        Threads for passes over the kernels; -1 for all cores.
    random_state : int, RandomState or None, default=None
        Seed for weightings given by name that draw samples or folds (``"loo"``, ``"best"``). None
        uses a fixed seed.
    warm_start : bool, default=False
        Start a joint weighting near the weights of the last fit, and keep the best certified
        iterate if a fit is interrupted.
    engine : str, default="cpu"
        The engine that evaluates the kernels. Other packages may register their own
        (:func:`multikernel.grams.engines.register`); ``"cpu"`` and ``"torch"`` are the library's.
    device : str or None, default=None
        Where the kernels are computed: ``"cuda"`` or ``"cuda:1"`` on a GPU, ``"cpu"`` with the same
        code on the processor, both by the engine ``"torch"``. None leaves it to ``engine`` and, for
        tensors of torch or CuPy, to the device that X is on.
    checkpoint : path or None, default=None
        File in which a long fit saves its progress, about every 30 seconds. If the file exists when
        `fit` starts, the fit continues from it and gives the same result as an uninterrupted one;
        a checkpoint of other data or parameters is refused. The file is deleted when the fit is
        complete.
    verbose : int, default=0
        Print progress; a joint weighting shows iteration, gap, active kernels and support vectors.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        The numbers that multiply the normalised kernels. Those of two-stage rules sum to one,
        except for ``"loo"``, whose weights include the choice of alpha.
    kernel_names_ : list of str
    view_weights_ : dict of str to float
        For banks of :func:`multikernel.per_view`: the share of each view in the sum of the weights.
    alignment_ : float
        Centred alignment of the learned kernel with the outputs.
    kernel_alignments_ : array of shape (n_kernels,)
        Centred alignment of each kernel alone with the outputs.
    dual_coef_ : array of shape (n_support, n_outputs)
    support_ : array of shape (n_support,)
        Indices of the training samples with a non-zero coefficient.
    intercept_ : float, or array of shape (n_outputs,)
    objective_ : float
        Primal objective, summed over outputs.
    duality_gap_ : float
        Relative duality gap, the largest over outputs.
    loo_predictions_ : array of shape (n_samples,) or (n_samples, n_outputs)
        With ``weighting="loo"`` or ``alpha="loo"`` and squared loss: the prediction for every
        training sample by the model trained without it, in the form that ``predict`` returns.
    loo_score_ : float
        Coefficient of determination of ``loo_predictions_``.
    column_importance_ : array of shape (n_features,)
        Sensitivity of the predictions to each column, as a share of the total: the mean squared
        derivative over the training samples times the variance of the column. Computed on first
        access.
    n_iter_ : int
    history_ : list of dict
    engine_ : str
        The engine that computed the kernels, and on which device.
    approximation_ : ApproximationReport
        With ``approximation``: the features, the error of every kernel, and how far the objective
        may be from that of the exact problem. Print it. No support vectors are kept then.
    plan_ : Plan
        Which implementation computed which kernels; print it. ``grams_`` is an alias.
    bank_ : KernelBank or None
        The bank that was used; None for ``kernels="precomputed"``.
    presence_ : array of shape (n_kernels,)
        With ``missing="ignore"``: the share of the training samples that have a value in the
        columns of each kernel.
    view_presence_ : dict
        The same for each view of :func:`multikernel.per_view`, by name.
    codes_ : TableCodes
        How the columns of a data frame with categories are encoded; set only if X was one.
    n_features_in_ : int
    feature_names_in_ : array of str
        When X has column names.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = mk.MultiKernelRegressor().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.44
    """

    _bank_kind = "tables"
    _parameter_constraints = {
        **RegressorCommon._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
        "warm_start": ["boolean"],
        "missing": [MISSING],
        "approximation": APPROXIMATIONS,
        "checkpoint": CHECKPOINTS,
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "loo",
        alpha: float | str = 1.0,
        *,
        loss: str = "squared",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        center: bool = True,
        normalize: str | None = "multiplicative",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        missing: str = "error",
        approximation: Any = None,
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.alpha = alpha
        self.loss = loss
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.center = center
        self.normalize = normalize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.approximation = approximation
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @property
    def _one_kernel_ridge(self) -> bool:  # type: ignore[override]
        return self.loss == "squared" and self.approximation is None

    @property
    def _makes_few_passes(self) -> bool:
        return not isinstance(as_weighting(self.weighting), JointWeighting)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultiKernelRegressor:
        """Learn the kernel weights and the model.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or Rows
            :func:`multikernel.rows.open_rows` makes rows in chunks, with their targets, for
            ``approximation=...``.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in the kernel weights and in the loss.

        Returns
        -------
        self
        """
        self._training = None  # of an earlier fit
        approximation = self._approximation_for(X)
        if approximation is not None:
            return self._fit_rows(X, y, sample_weight, approximation)  # type: ignore[no-any-return]
        self._stream = None
        X, y = self._check_for_fit(X, y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_outputs(y, keep, weights)
        with self._journal(X, y, sample_weight) as journal:
            grams = self._make_grams(X, keep, weights, target)
            rule = self._as_weighting(self.weighting)
            learner = self._make_learner(self.alpha)
            self._fit(grams, target, rule, learner, keep, journal=journal)
        self._keep_sample(X, target, keep)
        return self

    @available_if(has_approximation)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultiKernelRegressor:
        """Add rows of a stream, and learn from all rows so far.

        The bank and the features are chosen from the first rows, which should be a few thousand and
        typical of the stream. Only sums of features and targets are kept, which requires
        ``approximation`` and ``loss="squared"``.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or Rows
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._partial_fit(X, y, sample_weight, lambda: None)
        self._training = None  # the rows of a stream are not kept
        return self

    def _learner_for_rows(self) -> Ridge | SVR:
        return self._make_learner(self.alpha)
