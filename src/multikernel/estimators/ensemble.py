"""Ensembles: one hypothesis per kernel, and a learned vote among them."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from ..grams.protocol import Grams
from ..learners.base import Learner
from ..problem import Target
from ..problem.losses import Hinge, Squared
from ..solvers.ensemble.hypotheses import EnsembleExpansion, out_of_fold, train_each
from ..solvers.ensemble.problem import EnsembleSolution, HypothesisBall, combine_hypotheses
from ..solvers.joint.learn import refuse_constant_kernels
from ..weighting import LpNorm
from ..weighting.uniform import folds
from .base import MultiKernelEstimator
from .classifier import ClassifierCommon
from .folds import kept_splits
from .regressor import RegressorCommon

#: the exponents of the balls, by name
NORMS = {"l1": 1, "l2": 2}
#: the fitted attributes that only ensembles with this number of stages have
ATTRIBUTES_OF_TWO_STAGES = ("kernel_scores_", "out_of_fold_")
ATTRIBUTES_OF_ONE_STAGE = (
    "alignment_", "dual_coef_", "history_", "kernel_alignments_", "support_",
)  # fmt: skip

_CONSTRAINTS: dict[str, Any] = {
    "norm": [StrOptions(set(NORMS))],
    "signed": ["boolean"],
    "stages": [Interval(Integral, 1, 2, closed="both")],
    "radius": [Interval(Real, 0, None, closed="neither")],
    "cv": ["cv_object"],
}


def _constraints(common: dict[str, Any], *without: str) -> dict[str, Any]:
    """Constraints of an ensemble: those of ``common`` that apply to it, and its own."""
    kept = {name: check for name, check in common.items() if name not in {"weighting", *without}}
    return {**kept, **_CONSTRAINTS}


class EnsembleMixin(MultiKernelEstimator):
    """The two stages of an ensemble, the same for classification and regression."""

    norm: str
    signed: bool
    stages: int
    radius: float
    cv: Any
    fit_intercept: bool

    _second_loss: Hinge | Squared
    weighting = None
    _learns_one_kernel = False

    def _fold_target(self, target: Target, y: np.ndarray, train: np.ndarray, fold: int) -> Target:
        return target.take(train)

    def _fit_ensemble(
        self, grams: Grams, target: Target, y: np.ndarray, keep: np.ndarray, learner: Learner
    ) -> None:
        for name in ATTRIBUTES_OF_TWO_STAGES if self.stages == 1 else ATTRIBUTES_OF_ONE_STAGE:
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.stages == 1:
            self._fit_together(grams.corrected(self.center, self.normalize), target, learner, keep)
            return
        grams = grams.stored(self.center)
        corrected = grams.corrected(self.center, self.normalize)
        refuse_constant_kernels(corrected)
        classifier = target.kind == "classification"
        if self.cv is None:
            splits = folds(target, 5, self.random_state)
        else:
            splits = kept_splits(self.cv, y, keep, classifier=classifier)
        H = out_of_fold(
            grams,
            target,
            learner,
            splits,
            fold_target=lambda train, fold: self._fold_target(target, y[keep], train, fold),
            center=self.center,
            normalize=self.normalize,
        )
        if classifier and target.Y.shape[1] > 1:
            for train, test in splits:  # a class without training samples is never predicted
                H[np.ix_(test, np.arange(grams.p), ~np.any(target.Y[train] > 0, axis=0))] = -1.0
        second = self._second_stage(H, target, ~corrected.degenerate)
        machines = train_each(corrected, target, learner)
        self.out_of_fold_ = H
        self.kernel_scores_ = np.array([target.score(H[:, k]) for k in range(grams.p)])
        self.kernel_weights_ = second.weights
        self.kernel_names_ = list(grams.names)
        self.objective_ = second.objective
        self.weights_gap_ = second.gap
        self.duality_gap_ = max(machine.gap for machine in machines)
        self.n_iter_ = second.n_iter
        biases = np.stack([machine.intercept for machine in machines])
        self._set_intercept(second.weights @ biases + second.intercept)
        # The vote has few parameters, so its values on out-of-fold predictions count as held-out.
        self._calibrate(target, np.einsum("npt,p->nt", H, second.weights) + second.intercept)
        self._expansion = EnsembleExpansion(corrected, machines, second.weights)
        self._expansion.release()
        self._say(
            f"{type(self).__name__}: {self.plan_}\n  {np.count_nonzero(second.weights)} of "
            f"{grams.p} hypotheses used, relative gap {second.gap:.2g}"
        )

    def _second_stage(self, H: np.ndarray, target: Target, usable: np.ndarray) -> EnsembleSolution:
        """Weights of all hypotheses from their out-of-fold values; zero for constant kernels."""
        found = combine_hypotheses(
            H[:, usable],
            target.Y,
            target.loss_weights,
            self._second_loss,
            HypothesisBall(NORMS[self.norm], self.signed, float(self.radius)),
            fit_intercept=self.fit_intercept,
        )
        weights = np.zeros(len(usable))
        weights[usable] = found.weights
        return replace(found, weights=weights)

    def _fit_together(
        self, corrected: Grams, target: Target, learner: Learner, keep: np.ndarray
    ) -> None:
        """Weights and hypotheses at once: multiple kernel learning with a block norm.

        ``{sum_k mu_k h_k : ||h_k|| <= L, ||mu||_q <= r}`` is ``{sum_k f_k : sum_k ||f_k||^q <=
        (r L)^q}``. With hypotheses of equal norm, ``mu_k`` is proportional to ``||f_k||``. The
        signs of the weights can be absorbed by the hypotheses.
        """
        q = NORMS[self.norm]
        hold_out = self._samples_to_leave_out(target, learner)
        solution = self._learn(corrected, target, LpNorm(p=q), learner, hold_out)
        self._store(corrected, solution, keep)
        if hold_out is not None:
            limit = learner.max_left_out  # type: ignore[attr-defined]
            self._calibrate(target, solution.machine.held_out, limit)
        forms = corrected.quadratic_forms(solution.machine.coef).sum(axis=1)
        norms = solution.kernel_weights * np.sqrt(np.maximum(forms, 0.0))
        size = float(np.linalg.norm(norms, q))
        self.kernel_weights_ = self.radius * norms / size if size > 0 else norms
        self.weights_gap_ = self.duality_gap_

    def certificate(self, X: Any, y: Any = None, delta: float = 0.05) -> NoReturn:
        """Not available: the bounds apply to a single learned kernel, not to ensembles."""
        raise NotImplementedError(
            f"{type(self).__name__} has no certificate: the bounds of multikernel.bounds apply to "
            "a single learned kernel. `weights_gap_` and `duality_gap_` show how accurately it "
            "was solved."
        )


class KernelEnsembleClassifier(EnsembleMixin, ClassifierCommon):
    """One support vector machine per kernel, combined by learned weights.

    Kernel learning forces all kernels to share their coefficients. An ensemble does not: ``h =
    sum_k mu_k h_k`` with ``h_k`` trained on kernel k alone (Cortes, Mohri & Rostamizadeh 2012,
    section 3.3). With two stages the weights mu minimise the hinge loss of the vote on predictions
    of *held-out* samples, so that no hypothesis gets credit for overfitting; then every hypothesis
    is trained again on all samples. With one stage, weights and hypotheses come from one convex
    problem, the one that :class:`LpNorm` solves with ``p`` the exponent of ``norm``.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    norm : {"l1", "l2"}, default="l1"
        The ball that weights lie in, ``||mu||_q <= radius``; l1 makes most of them zero.
    C : float, default=1.0
        Cost of the loss in the first stage.
    signed : bool, default=False
        Whether a hypothesis may have a negative weight. It makes no difference with one stage,
        where hypotheses can change sign themselves.
    stages : {1, 2}, default=2
    radius : float, default=1.0
        Radius of the ball. With one stage it only scales the weights.
    fit_intercept : bool, default=True
        Whether hypotheses and vote have free intercepts.
    cv : int, splitter or iterable of splits, default=None
        Folds for held-out predictions; every sample must be in exactly one. None for 5, stratified
        and shuffled by ``random_state``.
    center, normalize, class_weight, calibration, tol, max_iter, dtype, memory_budget, n_jobs, \
    engine, device, verbose
        As in :class:`MultiKernelClassifier`.
    random_state : int, RandomState or None, default=0
        Shuffles the folds.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        The factor of each hypothesis, shared by all classes.
    kernel_names_ : list of str
    kernel_scores_ : array of shape (n_kernels,)
        Held-out accuracy of each hypothesis (two stages).
    out_of_fold_ : array of shape (n_samples, n_kernels, n_machines)
        Held-out decision values (two stages), for the samples of positive weight.
    intercept_ : array of shape (n_machines,)
    weights_gap_ : float
        Proven bound: no weights in the ball reduce the loss further by more than this share of the
        loss without hypotheses. With one stage, the duality gap of the joint problem.
    duality_gap_ : float
        Relative duality gap, the largest over the hypotheses.
    objective_ : float
        Held-out loss of the vote; with one stage the joint primal objective.
    n_iter_ : int
    engine_ : str
        The engine that computed the kernels, and on which device.
    plan_ : Plan
        Which implementation computed which kernels; ``grams_`` is an alias.
    bank_ : KernelBank or None
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from multikernel.estimators.ensemble import KernelEnsembleClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelEnsembleClassifier().fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 3), model.weights_gap_ < 1e-8
    (0.954, True)
    """

    _parameter_constraints = {
        **_constraints(ClassifierCommon._parameter_constraints, "loss"),
        "C": [Interval(Real, 0, None, closed="neither")],
    }

    loss = "hinge"
    _second_loss = Hinge()

    def __init__(
        self,
        kernels: Any = None,
        norm: str = "l1",
        C: float = 1.0,
        *,
        signed: bool = False,
        stages: int = 2,
        radius: float = 1.0,
        fit_intercept: bool = True,
        cv: Any = None,
        center: bool = True,
        normalize: str | None = "multiplicative",
        class_weight: Any = None,
        calibration: str = "auto",
        tol: float = 1e-3,
        max_iter: int = -1,
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.norm = norm
        self.C = C
        self.signed = signed
        self.stages = stages
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.center = center
        self.normalize = normalize
        self.class_weight = class_weight
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelEnsembleClassifier:
        """Train the hypotheses and learn their weights.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in both stages.

        Returns
        -------
        self
        """
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        grams = self._make_grams(X, keep, weights)
        self._fit_ensemble(grams, target, y, keep, self._make_learner(self.C, grams))
        return self

    def _fold_target(self, target: Target, y: np.ndarray, train: np.ndarray, fold: int) -> Target:
        part = target.take(train)
        if len(np.unique(part.labels)) < 2:
            raise ValueError(
                f"The training part of fold {fold} contains only one class ({y[train][0]!r}); "
                "every fold needs two. Use stratified or shuffled folds."
            )
        # Balanced weights depend on the class counts of the training part only.
        return replace(part, costs=self._class_costs(y[train], part.sample_weight))


class KernelEnsembleRegressor(EnsembleMixin, RegressorCommon):
    """One ridge regression per kernel, combined by learned weights.

    Like :class:`KernelEnsembleClassifier`, with ridge regressions as hypotheses and the squared
    error of held-out predictions in the second stage. Several outputs share the weights.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelRegressor`.
    norm : {"l1", "l2"}, default="l1"
        The ball that weights lie in, ``||mu||_q <= radius``; l1 makes most of them zero.
    alpha : float, default=1.0
        The ridge penalty of the first stage.
    signed : bool, default=False
        Whether a hypothesis may have a negative weight. It makes no difference with one stage.
    stages : {1, 2}, default=2
        1: one convex problem for weights and hypotheses. 2: weights from held-out predictions.
    radius : float, default=1.0
        Radius of the ball. With one stage it only scales the weights.
    fit_intercept : bool, default=True
        Whether hypotheses and combination have free intercepts.
    cv : int, splitter or iterable of splits, default=None
        Folds for held-out predictions; every sample must be in exactly one. None for 5, shuffled by
        ``random_state``.
    center, normalize, solver, tol, max_iter, dtype, memory_budget, n_jobs, engine, device, verbose
        As in :class:`MultiKernelRegressor`.
    random_state : int, RandomState or None, default=0
        Shuffles the folds.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        The factor of each hypothesis, shared by all outputs.
    kernel_names_ : list of str
    kernel_scores_ : array of shape (n_kernels,)
        Minus the held-out mean squared error of each hypothesis (two stages).
    out_of_fold_ : array of shape (n_samples, n_kernels, n_outputs)
        Held-out predictions (two stages), for the samples of positive weight.
    intercept_ : float, or array of shape (n_outputs,)
    weights_gap_, duality_gap_, objective_, n_iter_, plan_, bank_
        As in :class:`KernelEnsembleClassifier`.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from multikernel.estimators.ensemble import KernelEnsembleRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelEnsembleRegressor(alpha=10.0).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2), model.weights_gap_ < 1e-8
    (0.42, True)
    """

    _parameter_constraints = {
        **_constraints(RegressorCommon._parameter_constraints, "loss", "epsilon"),
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    loss = "squared"
    epsilon = 0.0
    _second_loss = Squared()

    def __init__(
        self,
        kernels: Any = None,
        norm: str = "l1",
        alpha: float = 1.0,
        *,
        signed: bool = False,
        stages: int = 2,
        radius: float = 1.0,
        fit_intercept: bool = True,
        cv: Any = None,
        center: bool = True,
        normalize: str | None = "multiplicative",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.norm = norm
        self.alpha = alpha
        self.signed = signed
        self.stages = stages
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.center = center
        self.normalize = normalize
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelEnsembleRegressor:
        """Train the hypotheses and learn their weights.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in both stages.

        Returns
        -------
        self
        """
        X, y = self._check_X(X, y, reset=True, multi_output=True, y_numeric=True)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_outputs(y, keep, weights)
        grams = self._make_grams(X, keep, weights)
        self._fit_ensemble(grams, target, y, keep, self._make_learner(self.alpha))
        self._keep_sample(X, target, keep)
        return self
