"""Estimators that choose C (or alpha) and the weighting by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import StrOptions

from ..grams.protocol import CombinedGram
from ..learners.base import Learner
from ..learners.calibration import Calibration
from ..problem import Machine, Target
from ..weighting import ObservedMargins, Weighting
from .classifier import ClassifierCommon
from .fold_grams import fold_grams
from .fold_sums import FoldSumsMixin
from .folds import FoldClassifier, FoldRegressor, kept_splits, score_fold
from .grid_search import SEARCH_CONSTRAINTS, Fold, SearchMixin, TrainedFold, check_grid
from .missing import MISSING_OR_ABSENT
from .regressor import RegressorCommon


class MultiKernelClassifierCV(FoldSumsMixin, SearchMixin, ClassifierCommon):  # type: ignore[misc]
    """:class:`MultiKernelClassifier` with C and the weighting chosen by cross-validation.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`, but column scales are never learned.
    weighting : str, weighting, or list of them, default="loo"
        The rules to choose from, as in the estimator without search.
    Cs : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The costs to choose from.
    cv : int, splitter or iterable of splits, default=None
        Folds; None for 5, stratified.
    scoring : str, callable or None, default=None
        The score to maximise; accuracy by default.
    selection : {"best", "one-standard-error"}, default="best"
        Which candidate is chosen: the one with the best mean score, or the first weighting of the
        list whose best score is within one standard error of it. If several values of C have the
        same score, the middle one is chosen.
    loss, multiclass, fit_intercept, center, normalize, class_weight, calibration, tol, max_iter, \
    missing, dtype, memory_budget, n_jobs, random_state, engine, device, checkpoint, verbose
        As in :class:`MultiKernelClassifier`.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        As in :class:`MultiKernelClassifier`. All folds, rules and constants are then scored from
        the sums of one pass. This needs ``loss="squared"``, a number for ``cv``, and
        ``scoring=None``, which is R^2 of the labels -1 and +1.

    Attributes
    ----------
    C_ : float
    weighting_ : str or weighting
    best_score_ : float
        Mean cross-validated score of the chosen candidate.
    cv_results_ : dict
        One entry per (weighting, C): ``weighting``, ``C``, mean, standard deviation and rank of
        the scores, and the score of every split.
    n_splits_ : int
    cv_indices_ : list of (train, test)
        The samples of every split, as row numbers of X; samples of weight zero are in none.
    cv_predictions_ : array of shape (n_samples,) or (n_samples, n_classes)
        Decision values of the chosen candidate for each sample when it was held out, with one
        column per class if there are more than two. NaN for samples that no split holds out.
    best_index_ : int

    All fitted attributes of :class:`MultiKernelClassifier` are set as well, by a final fit on the
    whole sample.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifierCV(weighting=["uniform", "alignf"]).fit(X, y)
    >>> model.C_, model.weighting_, round(model.best_score_, 3)
    (1.0, 'uniform', 0.96)
    """

    _bank_kind = "tables"
    _parameter_constraints = {
        **ClassifierCommon._parameter_constraints,
        **SEARCH_CONSTRAINTS,
        "Cs": ["array-like"],
        "missing": [MISSING_OR_ABSENT],
        "multiclass": [StrOptions({"shared", "per_class"})],
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "loo",
        Cs: Any = (0.01, 0.1, 1.0, 10.0, 100.0),
        *,
        loss: str = "hinge",
        multiclass: str = "shared",
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
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
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.Cs = Cs
        self.loss = loss
        self.multiclass = multiclass
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
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
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> MultiKernelClassifierCV:
        """Search, then fit the chosen candidate on the whole sample.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in fitting and in scoring.
        groups : array of shape (n_samples,), optional
            Passed to ``cv``, which must be a splitter for groups such as
            ``sklearn.model_selection.GroupKFold``.

        Returns
        -------
        self
        """
        Cs = check_grid("Cs", self.Cs)
        approximation = self._approximation_for(X)
        if approximation is not None:
            self._refuse_groups(groups)
            self.weighting_, self.C_ = self._search_rows(
                X, y, sample_weight, approximation, Cs, "C"
            )
            return self
        self._stream = None
        X, y = self._check_for_fit(X, y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        splits = kept_splits(self.cv, y, keep, classifier=True, groups=groups)
        with self._journal(X, y, sample_weight, splits=splits) as journal:
            grams = self._make_grams(X, keep, weights).stored(self.center)

            def learner(C: float) -> Learner:
                return self._make_learner(C, grams)

            folds = fold_grams(self, X, keep, grams)
            self.weighting_, self.C_ = self._search(
                grams, folds, target, y[keep], splits, learner, Cs, "C", journal
            )
            rule = self._rule_for_samples(
                self._as_weighting(clone(self.weighting_, safe=False)), self._pop_has_kernels()
            )
            self._keep_held_out(splits, keep)
            own = self._is_separate(target, rule)
            best = learner(self.C_)
            self._fit(grams, target, rule, best, keep, separate=own, journal=journal)
        return self

    def _predict_fold(
        self,
        fold: Fold,
        rule: Weighting,
        learners: Sequence[Learner],
        held_out: Callable[[Any], Any],
        warm: np.ndarray | None,
    ) -> tuple[np.ndarray, list[np.ndarray], list[TrainedFold]]:
        separate = self._is_separate(fold.target, rule)
        if warm is not None and (warm.ndim == 2) != separate:
            warm = None  # from a rule whose weights have another shape
        if not separate:
            return super()._predict_fold(fold, rule, learners, held_out, warm)
        outputs, paths, trained = [], [], []
        for j, own in enumerate(fold.columns()):
            if len(np.unique(own.target.labels)) < 2:
                advice = ", or multiclass='shared'" * (self.multiclass == "per_class")
                raise ValueError(
                    f"Every class has kernel weights of its own, but the training part of fold "
                    f"{fold.number} has no sample of class {self.classes_[j]}. Use stratified "
                    f"folds{advice}."
                )
            start = None if warm is None else warm[j]
            values, path, found = super()._predict_fold(own, rule, learners, held_out, start)
            outputs.append(values)
            paths.append(path)
            trained.append(found)
        together = [
            (learner, [one[v][1][0] for one in trained], [one[v][2][0] for one in trained])
            for v, learner in enumerate(learners)
        ]
        stacked = [np.stack(weights) for weights in zip(*paths, strict=True)]
        return np.concatenate(outputs, axis=2), stacked, together

    def _is_separate(self, target: Target, rule: Weighting) -> bool:
        own = self.multiclass == "per_class" or isinstance(rule, ObservedMargins)
        return own and target.Y.shape[1] > 1

    def _fold_target(self, target: Target, y: np.ndarray, train: np.ndarray, fold: int) -> Target:
        part = target.take(train)
        if len(np.unique(part.labels)) < 2:
            raise ValueError(
                f"The training part of fold {fold} contains only one class ({y[train][0]!r}); "
                "every fold needs two. Use stratified or shuffled folds."
            )
        # Balanced weights depend on the class counts of the training part only.
        return replace(part, costs=self._class_costs(y[train], part.sample_weight))

    def _calibrate_fold(
        self,
        target: Target,
        learner: Any,
        grams: Sequence[CombinedGram],
        machines: Sequence[Machine],
    ) -> Calibration | None:
        rows = self._samples_to_leave_out(target, learner)
        held_out = None
        if rows is not None:
            targets = [target]
            if len(machines) > 1:
                targets = [target.column(j) for j in range(len(machines))]
            each = zip(grams, targets, machines, strict=True)
            values = [learner.left_out(gram, own, machine, rows) for gram, own, machine in each]
            held_out = np.concatenate(values, axis=1)
        return self._make_calibration(target, held_out, getattr(learner, "max_left_out", None))

    def _learner_with(self, value: float) -> Learner:
        return self._make_learner(value, SimpleNamespace(n_jobs=1))

    def _weights_per_output(self, n_outputs: int) -> bool:
        return self.multiclass == "per_class" and n_outputs > 1

    def _score_fold(
        self,
        output: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        calibrate: Callable[[], Any],
    ) -> float:
        decisions = output[:, 0] if len(self.classes_) == 2 else output
        fold = FoldClassifier(decisions, self.classes_, calibrate)
        return score_fold(self.scoring, fold, y, weights)


class MultiKernelRegressorCV(FoldSumsMixin, SearchMixin, RegressorCommon):  # type: ignore[misc]
    """:class:`MultiKernelRegressor` with alpha and the weighting chosen by cross-validation.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelRegressor`, but column scales are never learned.
    weighting : str, weighting, or list of them, default="loo"
        The rules to choose from, as in the estimator without search.
    alphas : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The ridge penalties to choose from.
    cv : int, splitter or iterable of splits, default=None
        Folds; None for 5.
    scoring : str, callable or None, default=None
        The score to maximise; R^2 by default.
    selection : {"best", "one-standard-error"}, default="best"
        Which candidate is chosen: the one with the best mean score, or the first weighting of the
        list whose best score is within one standard error of it. If several values of alpha have
        the same score, the middle one is chosen.
    loss, epsilon, fit_intercept, center, normalize, solver, tol, max_iter, missing, dtype, \
    memory_budget, n_jobs, random_state, engine, device, checkpoint, verbose
        As in :class:`MultiKernelRegressor`.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        As in :class:`MultiKernelRegressor`. All folds, rules and constants are then scored from the
        sums of one pass. This needs ``loss="squared"``, a number for ``cv``, and ``scoring=None``.

    Attributes
    ----------
    alpha_ : float
    weighting_ : str or weighting
    best_score_ : float
        Mean cross-validated score of the chosen candidate.
    cv_results_ : dict
        One entry per (weighting, alpha): ``weighting``, ``alpha``, mean, standard deviation and
        rank of the scores, and the score of every split.
    n_splits_ : int
    cv_indices_ : list of (train, test)
        The samples of every split, as row numbers of X; samples of weight zero are in none.
    cv_predictions_ : array of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of the chosen candidate for each sample when it was held out. NaN for samples
        that no split holds out.
    best_index_ : int

    All fitted attributes of :class:`MultiKernelRegressor` are set as well, by a final fit on the
    whole sample.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = mk.MultiKernelRegressorCV(weighting=["uniform", "alignf"]).fit(X, y)
    >>> model.alpha_, model.weighting_, round(model.best_score_, 2)
    (1.0, 'alignf', 0.49)
    """

    _bank_kind = "tables"
    _parameter_constraints = {
        **RegressorCommon._parameter_constraints,
        **SEARCH_CONSTRAINTS,
        "alphas": ["array-like"],
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "loo",
        alphas: Any = (0.01, 0.1, 1.0, 10.0, 100.0),
        *,
        loss: str = "squared",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "best",
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
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.alphas = alphas
        self.loss = loss
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
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
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @property
    def _one_kernel_ridge(self) -> bool:  # type: ignore[override]
        return self.loss == "squared" and self.approximation is None

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> MultiKernelRegressorCV:
        """Search, then fit the chosen candidate on the whole sample.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in fitting and in scoring.
        groups : array of shape (n_samples,), optional
            Passed to ``cv``, which must be a splitter for groups such as
            ``sklearn.model_selection.GroupKFold``.

        Returns
        -------
        self
        """
        alphas = check_grid("alphas", self.alphas)
        self._training = None  # of an earlier fit
        approximation = self._approximation_for(X)
        if approximation is not None:
            self._refuse_groups(groups)
            self.weighting_, self.alpha_ = self._search_rows(
                X, y, sample_weight, approximation, alphas, "alpha"
            )
            return self
        self._stream = None
        X, y = self._check_for_fit(X, y)
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_outputs(y, keep, weights)

        def learner(alpha: float) -> Learner:
            return self._make_learner(alpha)

        splits = kept_splits(self.cv, y, keep, classifier=False, groups=groups)
        with self._journal(X, y, sample_weight, splits=splits) as journal:
            grams = self._make_grams(X, keep, weights).stored(self.center)
            folds = fold_grams(self, X, keep, grams)
            self.weighting_, self.alpha_ = self._search(
                grams, folds, target, y[keep], splits, learner, alphas, "alpha", journal
            )
            rule = self._as_weighting(clone(self.weighting_, safe=False))
            self._keep_held_out(splits, keep)
            self._fit(grams, target, rule, learner(self.alpha_), keep, journal=journal)
        self._keep_sample(X, target, keep)
        return self

    def _learner_with(self, value: float) -> Learner:
        return self._make_learner(value)

    def _score_fold(
        self,
        output: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        calibrate: Callable[[], Any],
    ) -> float:
        predictions = output[:, 0] if self._single_output else output
        return score_fold(self.scoring, FoldRegressor(predictions), y, weights)
