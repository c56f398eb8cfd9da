"""Choosing C (or alpha) and the weighting by cross-validation, with every Gram entry computed once.

The raw Gram matrices are computed on the whole sample and kept as far as memory allows. Each
training fold is a view of them with centring, normalisation and kernel weights of its own, so
nothing about a validation point enters what is fitted before it is predicted. (The kernels
themselves, bandwidths and column scales of :func:`multikernel.default_bank` included, are fixed
before the folds are made; they never see targets.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import rankdata
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import StrOptions

from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram, Grams, Summary
from ..learners.base import Learner
from ..learners.calibration import Calibration
from ..problem import Machine, Target
from ..solvers.joint.find import combine_by_rule, find
from ..solvers.joint.learn import MAX_ONE_THREAD_SAMPLES, refuse_constant_kernels
from ..solvers.joint.warm_start import WarmStart
from ..weighting import Weighting
from ..weighting.base import summary_for
from ..weighting.joint import JointWeighting
from .base import MultiKernelEstimator
from .classifier import ClassifierCommon
from .fold_sums import FoldSumsMixin
from .folds import FoldClassifier, FoldRegressor, Splits, kept_splits, score_fold
from .large import APPROXIMATIONS
from .missing import MISSING
from .regressor import RegressorCommon

#: The predictors of one fold: the learner, and combined kernel and what was learned for all outputs
#: together or for each.
TrainedFold = tuple[Learner, list[CombinedGram], list[Machine]]


class Fold:
    """The training part of one fold; its statistics are computed once for all rules."""

    def __init__(self, number: int, grams: Grams, target: Target) -> None:
        self.number, self.grams, self.target = number, grams, target
        self._summary: Summary | None = None
        self._columns: list[Fold] = []

    def columns(self) -> list[Fold]:
        """One fold for every output alone, with statistics of its own."""
        if not self._columns:
            outputs = range(self.target.Y.shape[1])
            self._columns = [Fold(self.number, self.grams, self.target.column(j)) for j in outputs]
        return self._columns

    def summary(self, rule: Weighting) -> Summary | None:
        if rule.needs_summary:
            self._summary = summary_for(rule, self.grams, self.target, self._summary)
        return self._summary


class SearchMixin(MultiKernelEstimator):
    """The search, the same for classification and regression."""

    cv: Any
    scoring: Any

    def _candidates(self) -> list[Any]:
        given = self.weighting
        single = isinstance(given, (str, Weighting))
        candidates: list[Any] = [given] if single else list(given)
        if not candidates:
            raise ValueError("weighting is an empty list; name at least one rule.")
        return candidates

    def _search(
        self,
        grams: Grams,
        target: Target,
        y: np.ndarray,
        splits: Splits,
        make_learner: Callable[[float], Learner],
        values: Sequence[float],
        name: str,
    ) -> tuple[Any, float]:
        """Score every (weighting, value) on every fold; fill ``cv_results_`` and pick the best."""
        candidates = self._candidates()
        refuse_constant_kernels(grams.corrected(self.center, self.normalize), warn=False)
        scores = np.empty((len(splits), len(candidates), len(values)))
        work = [(f, w) for f in range(len(splits)) for w in range(len(candidates))]
        steps: Iterable[tuple[int, int]] = work
        if self.verbose:
            steps = track(work, description="cross-validation")
        fold: Fold | None = None
        path: list[np.ndarray] = []  # weights of the last joint rule on this fold, one per value
        for f, w in steps:
            train, test = splits[f]
            if fold is None or fold.number != f:
                weights = None if target.sample_weight is None else target.sample_weight[train]
                part = grams.take(train, weights).corrected(self.center, self.normalize)
                fold, path = Fold(f, part, self._fold_target(target, y, train, f)), []
            rule = self._as_weighting(clone(candidates[w], safe=False))
            with one_blas_thread(len(train), MAX_ONE_THREAD_SAMPLES):
                predicted, found, machines = self._predict_fold(
                    fold,
                    rule,
                    [make_learner(v) for v in values],
                    grams.points(test),
                    path[0] if path else None,
                )
            path = found or path
            if target.kind == "classification" and target.Y.shape[1] > 1:
                # A class that the training part does not hold is never predicted.
                predicted[..., ~np.any(target.Y[train] > 0, axis=0)] = -np.inf
            held = None if target.sample_weight is None else target.sample_weight[test]
            for j, output in enumerate(predicted):
                calibrate = partial(self._calibrate_fold, fold.target, *machines[j])
                scores[f, w, j] = self._score_fold(output, y[test], held, calibrate)
        mean = scores.mean(axis=0)
        flat = mean.ravel()
        if not np.any(np.isfinite(flat)):
            raise ValueError("Every cross-validation score is NaN; check scoring and the folds.")
        self.best_index_ = int(np.nanargmax(flat))
        best = np.unravel_index(self.best_index_, mean.shape)
        self.best_score_ = float(flat[self.best_index_])
        self.cv_results_ = {
            "weighting": [candidate for candidate in candidates for _ in values],
            name: np.tile(np.asarray(values, dtype=np.float64), len(candidates)),
            "mean_test_score": flat,
            "std_test_score": scores.std(axis=0).ravel(),
            "rank_test_score": rankdata(-flat, method="min").astype(int),
            **{f"split{f}_test_score": scores[f].ravel() for f in range(len(splits))},
        }
        self.n_splits_ = len(splits)
        return candidates[int(best[0])], float(values[int(best[1])])

    def _predict_fold(
        self,
        fold: Fold,
        rule: Weighting,
        learners: Sequence[Learner],
        points: Any,
        warm: np.ndarray | None,
    ) -> tuple[np.ndarray, list[np.ndarray], list[TrainedFold]]:
        """Predicted values at the validation points, shape (n_values, n_test, t).

        Second, the path of a joint rule: its weights for every value. The next rule (for example
        the next norm) begins at the first of them. Third, the predictors for every value.
        """
        part, target, t = fold.grams, fold.target, fold.target.Y.shape[1]
        summary = fold.summary(rule)
        if rule.needs_learner:
            # Weights that depend on C or alpha are found again for each of its values; a joint
            # rule begins at the last ones.
            outputs, path, trained = [], [], []
            for learner in learners:
                start = None if warm is None else WarmStart(warm)
                found = find(part, target, rule, learner, summary=summary, warm=start)
                warm, machine = found.kernel_weights, found.machine
                expansion = part.expand(warm, machine.coef)
                outputs.append(expansion.values(points) + machine.intercept)
                path.append(warm)
                trained.append((learner, [found.gram], [machine]))
            return np.stack(outputs), path if isinstance(rule, JointWeighting) else [], trained
        weights, gram = combine_by_rule(part, target, rule, learners[0], summary)
        machines: list[Machine] = []
        for learner in learners:
            coef = machines[-1].coef if machines else None
            machines.append(learner.fit(gram, target, start=coef))
        # One prediction for all values of C or alpha: their coefficients side by side.
        coefs = np.concatenate([machine.coef for machine in machines], axis=1)
        together = part.expand(weights, coefs).values(points)
        together = together + np.concatenate([machine.intercept for machine in machines])
        trained = [(learner, [gram], [m]) for learner, m in zip(learners, machines, strict=True)]
        return together.reshape(len(together), len(learners), t).transpose(1, 0, 2), [], trained

    def _fold_target(self, target: Target, y: np.ndarray, train: np.ndarray, fold: int) -> Target:
        """The target of one training part."""
        return target.take(train)

    def _calibrate_fold(
        self,
        target: Target,
        learner: Learner,
        grams: Sequence[CombinedGram],
        machines: Sequence[Machine],
    ) -> Any:
        """The probabilities of a predictor that was trained on one fold; classifiers have them."""

    def _score_fold(
        self,
        output: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        calibrate: Callable[[], Any],
    ) -> float:
        raise NotImplementedError


_SEARCH_CONSTRAINTS: dict[str, Any] = {
    "weighting": [str, Weighting, list, tuple],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "missing": [MISSING],
    "approximation": APPROXIMATIONS,
}


class MultiKernelClassifierCV(FoldSumsMixin, SearchMixin, ClassifierCommon):  # type: ignore[misc]
    """:class:`MultiKernelClassifier` with C and the weighting chosen by cross-validation.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    weighting : str, weighting, or list of them, default="loo"
        The rules to choose from, as in the estimator without search.
    Cs : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The costs to choose from.
    cv : int, splitter or iterable of splits, default=None
        Folds; None for 5, stratified.
    scoring : str, callable or None, default=None
        What to maximise; accuracy by default.
    loss, multiclass, fit_intercept, center, normalize, class_weight, calibration, tol, max_iter, \
    missing, dtype, memory_budget, n_jobs, random_state, engine, device, verbose
        As in :class:`MultiKernelClassifier`.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        As in :class:`MultiKernelClassifier`. All folds, rules and constants are then scored from
        the sums of one pass: ``loss="squared"``, ``cv`` a number, and ``scoring`` None, which is
        R^2 of the labels -1 and +1.

    Attributes
    ----------
    C_ : float
    weighting_ : str or weighting
    best_score_ : float
        Mean cross-validated score of the choice.
    cv_results_ : dict
        One entry per (weighting, C): ``weighting``, ``C``, mean, standard deviation and rank of
        the scores, and the score of every split.
    n_splits_ : int
    cv_indices_ : list of (train, test)
        The samples of every split, as row numbers of X; those of weight zero are in none.
    best_index_ : int

    All fitted attributes of :class:`MultiKernelClassifier` are there as well, from a last fit on
    the whole sample.

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
        **_SEARCH_CONSTRAINTS,
        "Cs": ["array-like"],
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
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> MultiKernelClassifierCV:
        """Search, then fit the choice on the whole sample.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each point counts, in fitting and in scoring.
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
        grams = self._make_grams(X, keep, weights).stored(self.center)

        def learner(C: float) -> Learner:
            return self._make_learner(C, grams)

        splits = kept_splits(self.cv, y, keep, classifier=True, groups=groups)
        self.weighting_, self.C_ = self._search(grams, target, y[keep], splits, learner, Cs, "C")
        rule = self._as_weighting(clone(self.weighting_, safe=False))
        self.cv_indices_ = [(keep[train], keep[test]) for train, test in splits]
        separate = self._is_separate(target)
        self._fit(grams, target, rule, learner(self.C_), keep, separate=separate)
        return self

    def _predict_fold(
        self,
        fold: Fold,
        rule: Weighting,
        learners: Sequence[Learner],
        points: Any,
        warm: np.ndarray | None,
    ) -> tuple[np.ndarray, list[np.ndarray], list[TrainedFold]]:
        if not self._is_separate(fold.target):
            return super()._predict_fold(fold, rule, learners, points, warm)
        outputs, paths, trained = [], [], []
        for j, own in enumerate(fold.columns()):
            if len(np.unique(own.target.labels)) < 2:
                raise ValueError(
                    f"multiclass='per_class' learns weights for every class, but the training part "
                    f"of fold {fold.number} has no sample of class {self.classes_[j]}. Use "
                    "stratified folds, or multiclass='shared'."
                )
            start = None if warm is None else warm[j]
            values, path, found = super()._predict_fold(own, rule, learners, points, start)
            outputs.append(values)
            paths.append(path)
            trained.append(found)
        together = [
            (learner, [one[v][1][0] for one in trained], [one[v][2][0] for one in trained])
            for v, learner in enumerate(learners)
        ]
        stacked = [np.stack(weights) for weights in zip(*paths, strict=True)]
        return np.concatenate(outputs, axis=2), stacked, together

    def _is_separate(self, target: Target) -> bool:
        return self.multiclass == "per_class" and target.Y.shape[1] > 1

    def _fold_target(self, target: Target, y: np.ndarray, train: np.ndarray, fold: int) -> Target:
        part = target.take(train)
        if len(np.unique(part.labels)) < 2:
            raise ValueError(
                f"The training part of fold {fold} holds one class only "
                f"({y[train][0]!r}); every fold needs two. Use stratified or shuffled folds."
            )
        # Balanced weights count the classes of the training part, nothing else.
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
        As in :class:`MultiKernelRegressor`.
    weighting : str, weighting, or list of them, default="loo"
        The rules to choose from, as in the estimator without search.
    alphas : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The ridges to choose from.
    cv : int, splitter or iterable of splits, default=None
        Folds; None for 5.
    scoring : str, callable or None, default=None
        What to maximise; R^2 by default.
    loss, epsilon, fit_intercept, center, normalize, solver, tol, max_iter, missing, dtype, \
    memory_budget, n_jobs, random_state, engine, device, verbose
        As in :class:`MultiKernelRegressor`.
    approximation : Nystroem, RandomFeatures, "auto" or None, default=None
        As in :class:`MultiKernelRegressor`. All folds, rules and constants are then scored from the
        sums of one pass: ``loss="squared"``, ``cv`` a number, and ``scoring`` None.

    Attributes
    ----------
    alpha_ : float
    weighting_ : str or weighting
    best_score_ : float
        Mean cross-validated score of the choice.
    cv_results_ : dict
        One entry per (weighting, alpha): ``weighting``, ``alpha``, mean, standard deviation and
        rank of the scores, and the score of every split.
    n_splits_ : int
    cv_indices_ : list of (train, test)
        The samples of every split, as row numbers of X; those of weight zero are in none.
    best_index_ : int

    All fitted attributes of :class:`MultiKernelRegressor` are there as well, from a last fit on
    the whole sample.

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
        **_SEARCH_CONSTRAINTS,
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
        self.verbose = verbose

    @property
    def _one_kernel_ridge(self) -> bool:  # type: ignore[override]
        return self.loss == "squared" and self.approximation is None

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> MultiKernelRegressorCV:
        """Search, then fit the choice on the whole sample.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,), optional
            How often each point counts, in fitting and in scoring.
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
        grams = self._make_grams(X, keep, weights).stored(self.center)

        def learner(alpha: float) -> Learner:
            return self._make_learner(alpha)

        splits = kept_splits(self.cv, y, keep, classifier=False, groups=groups)
        self.weighting_, self.alpha_ = self._search(
            grams, target, y[keep], splits, learner, alphas, "alpha"
        )
        rule = self._as_weighting(clone(self.weighting_, safe=False))
        self.cv_indices_ = [(keep[train], keep[test]) for train, test in splits]
        self._fit(grams, target, rule, learner(self.alpha_), keep)
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


def check_grid(name: str, values: Any) -> list[float]:
    """A grid of positive numbers."""
    try:
        grid = np.asarray(values, dtype=np.float64).ravel().tolist()
    except (TypeError, ValueError):
        grid = []
    if not grid or not all(0 < value < np.inf for value in grid):
        raise ValueError(f"{name} must be positive finite numbers, at least one; got {values!r}.")
    return list(grid)
