"""Classification with a learned combination of kernels."""

from __future__ import annotations

from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ..learners.logistic import LogisticRegression
from ..learners.ridge import Ridge
from ..learners.svm import SVM
from ..problem import Target
from ..solvers.passes.survey import RowSurvey
from ..solvers.passes.targets import LabelColumns
from ..weighting import JointWeighting, ObservedMargins, as_weighting
from .base import CHECKPOINTS, MultiKernelEstimator
from .large import APPROXIMATIONS, LargeSampleMixin, has_approximation
from .missing import MISSING_OR_ABSENT
from .probabilities import CALIBRATIONS, ProbabilityMixin


class ClassifierCommon(ProbabilityMixin, ClassifierMixin, MultiKernelEstimator):  # type: ignore[misc]
    """Targets, labels and decisions, common to all classifiers."""

    _parameter_constraints = {
        **MultiKernelEstimator._parameter_constraints,
        "loss": [StrOptions({"hinge", "logistic", "squared"})],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "calibration": [CALIBRATIONS],
    }

    _is_classification = True
    loss: str
    fit_intercept: bool
    class_weight: Any
    tol: float
    max_iter: int

    def _make_learner(self, C: float | str, grams: Any) -> SVM | LogisticRegression | Ridge:
        if self.loss == "squared":
            alpha = C if isinstance(C, str) else 1.0 / C
            return Ridge(alpha, fit_intercept=self.fit_intercept)
        if self.loss == "logistic":
            steps = self.max_iter if self.max_iter >= 0 else 100
            return LogisticRegression(C, max_iter=steps, fit_intercept=self.fit_intercept)
        return SVM(
            C,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=grams.n_jobs,
            fit_intercept=self.fit_intercept,
        )

    def _encode_labels(self, y: np.ndarray, keep: np.ndarray, weights: np.ndarray | None) -> Target:
        """Labels as -1/+1 columns: one for two classes, one per class (one-vs-rest) for more."""
        self.classes_, codes = np.unique(y[keep], return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes; y has only one class: "
                f"{self.classes_.tolist()[0]!r}."
            )
        costs = self._class_costs(y[keep], weights)
        if n_classes == 2:
            Y = np.where(codes == 1, 1.0, -1.0)[:, None]
        else:
            Y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        return Target(Y, "classification", weights, costs)

    def _class_costs(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Factor of each sample's loss; ``"balanced"`` takes the sample weights into account."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            classes, codes = np.unique(y, return_inverse=True)
            counts = np.bincount(codes, weights)
            return np.asarray((counts.sum() / (len(classes) * counts))[codes])
        costs = compute_sample_weight(self.class_weight, y)
        if not np.all(costs > 0):
            raise ValueError(
                f"class_weight must give every class a positive factor; got {self.class_weight!r}."
                " Drop a class with sample_weight 0 instead."
            )
        return np.asarray(costs)

    def _check_for_fit(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        return X, y

    def _keep_rows(self, X: Any, y: Any, weights: np.ndarray | None, keep: np.ndarray) -> None:
        """Classifiers need no training rows after the fit; regressors keep them for intervals."""

    def _columns_of(self, survey: RowSurvey) -> LabelColumns:
        assert survey.classes is not None and survey.class_weights is not None
        classes = survey.classes
        known = self.__dict__.get("_known_classes")
        if known is not None:
            classes = known
        self.classes_ = classes
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes; y has only one class: "
                f"{classes[:1].tolist()[0]!r}. In a first batch, name all of them: "
                "partial_fit(X, y, classes=[...])."
            )
        costs = None
        if isinstance(self.class_weight, str):
            costs = survey.class_weights.sum() / (len(classes) * survey.class_weights)
        elif self.class_weight is not None:
            costs = self._class_costs(classes, None)
        return LabelColumns(classes, costs)

    @property
    def _one_output(self) -> bool:
        return len(self.classes_) == 2

    def decision_function(self, X: Any, *, split: bool = False) -> np.ndarray:
        """Decision values; `predict` uses their sign or, with more than two classes, the largest.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
        split : bool, default=False
            Return each kernel's share instead of the sum.

        Returns
        -------
        array of shape (n_new,) for two classes, (n_new, n_classes) for more
            With ``split=True`` a kernel axis comes second, (n_new, n_kernels[, n_classes]), and
            ``shares.sum(axis=1) + intercept_`` is the decision function.
        """
        values = self._evaluate(X, split)
        if not split:
            values = values + self.intercept_
        return values[..., 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each sample.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new,)
        """
        decisions = self.decision_function(X)
        return self.classes_[class_index(decisions)]


def class_index(decisions: np.ndarray) -> np.ndarray:
    """Index of the predicted class, from decision values (m,) or (m, n_classes)."""
    if decisions.ndim == 1:
        return (decisions > 0).astype(int)
    return np.argmax(decisions, axis=1)


class MultiKernelClassifier(LargeSampleMixin, ClassifierCommon):  # type: ignore[misc]
    """Support vector machine on a learned combination of kernels.

    First ``weighting`` finds the kernel weights; then a support vector machine is trained on ``K =
    sum_k mu_k K_k``. (Joint rules such as ``"lp"`` find both at once.) With more than two classes,
    one classifier per class is trained against the rest, and all share the weights.

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
    C : float or "loo", default=1.0
        Cost of the loss. ``"loo"`` uses one over the ridge constant with the smallest leave-one-out
        error of least squares on the labels (two-stage weightings only). With ``weighting="loo"``
        the weights already include this choice, so 1.0 is the right value.
    loss : {"hinge", "logistic", "squared"}, default="hinge"
        A support vector machine, logistic regression, or least squares on labels -1 and +1, with
        the learned kernel.
    multiclass : {"shared", "per_class"}, default="shared"
        With more than two classes: the same kernel weights for all classes, or separate weights for
        each class against the rest.
    fit_intercept : bool, default=True
        Whether to fit an intercept; otherwise it is zero.
    center : bool, default=True
        Centre the kernels in feature space.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        How kernels are scaled to the same size, after centring. The default, ``"multiplicative"``,
        gives each kernel unit variance in feature space, so that C has the same meaning as for one
        kernel on standardised data; ``"trace"`` (trace one) is the same up to the factor
        ``n_samples``. ``"trace-first"`` divides by the trace before centring, so kernels that
        centring shrinks stay small.
    class_weight : dict, "balanced" or None, default=None
        Factors of C per class.
    calibration : {"auto", "sigmoid", "isotonic", "temperature"}, default="auto"
        How `predict_proba` maps decision values to probabilities; it never changes decisions. The
        map is fitted to decision values of held-out training samples, with the kernel weights of
        the whole sample. ``"auto"`` is Platt's ``"sigmoid"``, except for two classes and the
        logistic loss, which has its own sigmoid.
    tol : float, default=1e-3
        Tolerance of the SVM solver.
    max_iter : int, default=-1
        Limit on the SVM solver's iterations, -1 for none.
    missing : {"error", "ignore", "complete", "absent"}, default="error"
        How to treat NaN in X. ``"error"`` raises an error. With ``"ignore"`` a sample contributes
        through the kernels whose columns it has: in a kernel whose columns are all NaN, the sample
        is placed at the centre of the samples that have them; single values are filled with column
        means. All kernel matrices are then held in memory. With ``"complete"`` the sample is placed
        where kernels on other columns predict it to be. ``"absent"`` is ``"ignore"`` with the
        margin of every sample measured in the views that it has (:class:`ObservedMargins`); it
        needs the hinge loss and a weighting of that class, :class:`LpNorm` or ``"uniform"``
        (``"loo"`` becomes the default ``ObservedMargins()``), and every class has separate weights.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        None is exact. :class:`multikernel.Nystroem` and :class:`multikernel.RandomFeatures` replace
        every kernel by features and learn from sums over samples, in time proportional to the
        number of samples; ``approximation_`` reports the error. ``"auto"`` is exact as long as the
        kernel matrix fits into the memory budget.
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
        except for ``"loo"``, whose weights include the choice of C.
        Shape (n_classes, n_kernels) with ``multiclass="per_class"``.
    kernel_names_ : list of str
    view_weights_ : dict of str to float
        For banks of :func:`multikernel.per_view`: the share of each view in the sum of the weights;
        arrays of shape (n_classes,) with ``multiclass="per_class"``.
    alignment_ : float
        Centred alignment of the learned kernel with the labels.
    kernel_alignments_ : array of shape (n_kernels,)
        Centred alignment of each kernel alone with the labels.
    dual_coef_ : array of shape (n_support, n_machines)
        Signed coefficients.
    support_ : array of shape (n_support,)
        Indices of the training samples with a non-zero coefficient.
    intercept_ : array of shape (n_machines,)
    objective_ : float
        The SVM's primal objective, summed over classifiers.
    duality_gap_ : float
        Relative duality gap of the SVM, the largest over classifiers.
    loo_predictions_ : array of shape (n_samples,) or (n_samples, n_machines)
        With ``weighting="loo"`` or ``C="loo"`` and squared loss: the prediction for every training
        sample by the model trained without it, in the form that ``decision_function`` returns.
    loo_score_ : float
        Accuracy of ``loo_predictions_``.
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
    classes_ : array of shape (n_classes,)
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 3)
    0.958
    >>> len(model.kernel_names_), model.kernel_names_[-1]
    (13, 'Linear()')
    """

    _bank_kind = "tables"
    _parameter_constraints = {
        **ClassifierCommon._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
        "multiclass": [StrOptions({"shared", "per_class"})],
        "warm_start": ["boolean"],
        "missing": [MISSING_OR_ABSENT],
        "approximation": APPROXIMATIONS,
        "checkpoint": CHECKPOINTS,
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "loo",
        C: float | str = 1.0,
        *,
        loss: str = "hinge",
        multiclass: str = "shared",
        fit_intercept: bool = True,
        center: bool = True,
        normalize: str | None = "multiplicative",
        class_weight: Any = None,
        calibration: str = "auto",
        tol: float = 1e-3,
        max_iter: int = -1,
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
        self.C = C
        self.loss = loss
        self.multiclass = multiclass
        self.fit_intercept = fit_intercept
        self.center = center
        self.normalize = normalize
        self.class_weight = class_weight
        self.calibration = calibration
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
    def _makes_few_passes(self) -> bool:
        return not isinstance(as_weighting(self.weighting), JointWeighting)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MultiKernelClassifier:
        """Learn the kernel weights and the model.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or Rows
            :func:`multikernel.rows.open_rows` makes rows in chunks, with their targets, for
            ``approximation=...``.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in the kernel weights and in the loss.

        Returns
        -------
        self
        """
        approximation = self._approximation_for(X)
        if approximation is not None:
            return self._fit_rows(X, y, sample_weight, approximation)  # type: ignore[no-any-return]
        self._stream = None
        X, y = self._check_for_fit(X, y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        with self._journal(X, y, sample_weight) as journal:
            grams = self._make_grams(X, keep, weights, target)
            rule = self._rule_for_samples(
                self._as_weighting(self.weighting), self._pop_has_kernels()
            )
            learner = self._make_learner(self.C, grams)
            own = self.multiclass == "per_class" or isinstance(rule, ObservedMargins)
            separate = own and target.Y.shape[1] > 1
            self._fit(grams, target, rule, learner, keep, separate=separate, journal=journal)
        return self

    @available_if(has_approximation)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> MultiKernelClassifier:
        """Add rows of a stream, and learn from all rows so far.

        The bank and the features are chosen from the first rows, which should be a few thousand and
        typical of the stream. Only sums of features and targets are kept, which requires
        ``approximation`` and ``loss="squared"``.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features), or Rows
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        classes : array of shape (n_classes,), optional
            All classes of the stream; required in the first call if its rows do not contain all of
            them.

        Returns
        -------
        self
        """

        def prepare() -> None:
            self._known_classes = None if classes is None else np.unique(classes)

        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs the number of samples of each class, which is not "
                "known in advance for a stream. Pass a dict with a weight for each class."
            )
        try:
            return self._partial_fit(X, y, sample_weight, prepare)  # type: ignore[no-any-return]
        finally:
            self.__dict__.pop("_known_classes", None)  # a failed call may not have read them

    def _learner_for_rows(self) -> SVM | LogisticRegression | Ridge:
        return self._make_learner(self.C, SimpleNamespace(n_jobs=1))

    def _weights_per_output(self, n_outputs: int) -> bool:
        return self.multiclass == "per_class" and n_outputs > 1
