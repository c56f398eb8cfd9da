"""Choosing lambda and beta of voted kernels by cross-validation.

Kernels that do not depend on the sample are evaluated once. Each training fold is a view of them
with its own complexity terms, and one pool of columns serves the whole grid of penalties in a fold.
Validation samples are not used in the fit that predicts them. Kernels that learn widths or scales
from the sample learn them from each training part.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import rankdata
from sklearn.base import _fit_context
from sklearn.utils.multiclass import check_classification_targets

from .._journal import Answers, Journal, Watched
from ..learners.calibration import Calibration
from ..problem import Target
from ..solvers.voted.columns import KernelColumns
from ..solvers.voted.complexity import Complexity, local, spectra, total
from ..solvers.voted.held_out import MAX_CROSS_FITTED_SAMPLES, held_out_votes
from ..solvers.voted.path import solve_grid
from ..solvers.voted.problem import solve
from .fold_grams import FoldGrams, GramsPerFold, fold_grams
from .folds import kept_splits
from .search import MultiKernelClassifierCV
from .voted import VotedCommon

#: The grid of the paper for both penalties.
PAPER_GRID = tuple(10.0**-i for i in range(9))


class VotedKernelClassifierCV(VotedCommon):
    """:class:`VotedKernelClassifier` with lambda and beta chosen by cross-validation.

    Of several settings with the best score, the one with the fewest terms is chosen.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`VotedKernelClassifier`.
    complexity : str or array of shape (n_kernels,), default="auto"
        As in :class:`VotedKernelClassifier`; terms that depend on the sample are computed on each
        training fold.
    complexity_penalties, sparsity_penalties : sequence of float, default=(0.1, 0.01, 0.001, 0.0001)
        The values of lambda and of beta to choose from. ``PAPER_GRID`` (1, 0.1, ..., 1e-8), in this
        module, is the grid of the paper for both.
    local_radii : sequence of float, default=(0.001, 0.01, 0.1)
        With ``complexity="local"``, the radii s to choose from.
    cv : int, splitter or iterable of splits, default=None
        Folds; None for 5 stratified folds.
    scoring : str, callable or None, default=None
        The score to maximise; accuracy by default.
    fit_intercept, class_weight, calibration, n_draws, tol, max_iter, memory_budget, n_jobs, \
    random_state, engine, device, checkpoint, verbose
        As in :class:`VotedKernelClassifier`.

    Attributes
    ----------
    complexity_penalty_, sparsity_penalty_ : float
    local_radius_ : float
        With ``complexity="local"``.
    best_score_ : float
        Mean cross-validated score of the chosen setting.
    cv_results_ : dict
        One entry per setting: ``complexity_penalty``, ``sparsity_penalty`` (``local_radius``),
        mean, standard deviation and rank of the scores, the score of each split, and the mean
        number of terms.
    best_index_ : int
        Position of the chosen setting in ``cv_results_``.
    n_splits_ : int
    cv_indices_ : list of (train, test)
        The samples of every split, as row numbers of X; samples of weight zero are in none.

    All fitted attributes of :class:`VotedKernelClassifier` are set as well, by a fit of the chosen
    setting to the whole sample.

    Examples
    --------
    >>> from multikernel import gaussians
    >>> from multikernel.estimators.voted_search import VotedKernelClassifierCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = VotedKernelClassifierCV(gaussians([0.1, 1.0]), "gamma").fit(X, y)
    >>> round(model.best_score_, 2)
    0.99
    """

    _parameter_constraints = {
        **VotedCommon._parameter_constraints,
        "complexity_penalties": ["array-like"],
        "sparsity_penalties": ["array-like"],
        "local_radii": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
    }

    def __init__(
        self,
        kernels: Any = None,
        complexity: Any = "auto",
        complexity_penalties: Any = (0.1, 0.01, 0.001, 0.0001),
        sparsity_penalties: Any = (0.1, 0.01, 0.001, 0.0001),
        *,
        local_radii: Any = (0.001, 0.01, 0.1),
        cv: Any = None,
        scoring: Any = None,
        fit_intercept: bool = False,
        class_weight: Any = None,
        calibration: str = "auto",
        n_draws: int = 100,
        tol: float = 1e-6,
        max_iter: int = 1000,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.complexity = complexity
        self.complexity_penalties = complexity_penalties
        self.sparsity_penalties = sparsity_penalties
        self.local_radii = local_radii
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibration = calibration
        self.n_draws = n_draws
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> VotedKernelClassifierCV:
        """Search, then fit the chosen setting to the whole sample.

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
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        settings = self._settings()
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        splits = kept_splits(self.cv, y, keep, classifier=True, groups=groups)
        self.cv_indices_ = [(keep[train], keep[test]) for train, test in splits]
        with self._journal(X, y, sample_weight, splits=splits) as journal:
            columns = self._make_columns(X, keep, weights)
            folds = fold_grams(self, X, keep, columns.grams)
            radius, lam, beta = self._search(
                columns, folds, target, y[keep], splits, settings, journal
            )
            self.complexity_penalty_, self.sparsity_penalty_ = lam, beta
            self.__dict__.pop("local_radius_", None)  # from an earlier fit
            if self._is_local:
                self.local_radius_ = radius
            complexity = self._complexities(columns, weights, radius)
            penalties = lam * complexity.values + beta
            problems = self._problems(columns, target)
            report = Watched(None, journal)
            solutions = [
                solve(problem, penalties, tol=self.tol, max_iter=self.max_iter, report=report)
                for problem in problems
            ]
            self._store_vote(columns, solutions, complexity, penalties, keep)
            self._calibrate_vote(columns, target, journal)
        self._warn(problems, solutions)
        return self

    @property
    def _is_local(self) -> bool:
        return isinstance(self.complexity, str) and self.complexity == "local"

    def _settings(self) -> list[tuple[float, float, float]]:
        """All (s, lambda, beta), ordered so that most neighbours differ in one value."""
        lams = check_penalty_grid("complexity_penalties", self.complexity_penalties)
        betas = check_penalty_grid("sparsity_penalties", self.sparsity_penalties)
        radii = [np.inf]
        if self._is_local:
            radii = check_penalty_grid("local_radii", self.local_radii)
            if min(radii) == 0:
                raise ValueError(f"local_radii must be positive; got {self.local_radii!r}.")
        if 0.0 in lams and 0.0 in betas:
            raise ValueError(
                "complexity_penalties and sparsity_penalties both contain 0, and with both zero "
                "the coefficients are undetermined. Leave it out of one of them."
            )
        walk = []
        for turn, (radius, lam) in enumerate(product(radii, lams)):
            walk += [(radius, lam, beta) for beta in (betas if turn % 2 == 0 else betas[::-1])]
        return walk

    def _search(
        self,
        columns: KernelColumns,
        folds: FoldGrams,
        target: Target,
        y: np.ndarray,
        splits: list[tuple[np.ndarray, np.ndarray]],
        settings: list[tuple[float, float, float]],
        journal: Journal | None = None,
    ) -> tuple[float, float, float]:
        """Score each setting on each fold, set ``cv_results_`` and return the best setting."""
        scores = np.empty((len(splits), len(settings)))
        n_terms = np.empty((len(splits), len(settings)))
        steps: Iterable[int] = range(len(splits))
        if self.verbose:
            steps = track(steps, description="cross-validation", total=len(splits))
        for f in steps:
            cell = partial(self._score_settings, columns, folds, target, y, splits, settings, f)
            done = cell() if journal is None else journal.recall("fold", (f,), cell)
            scores[f], n_terms[f] = done["scores"], done["n_terms"]
        return self._choose(scores, n_terms.mean(axis=0), settings)

    def _score_settings(
        self,
        columns: KernelColumns,
        folds: FoldGrams,
        target: Target,
        y: np.ndarray,
        splits: list[tuple[np.ndarray, np.ndarray]],
        settings: list[tuple[float, float, float]],
        f: int,
    ) -> Answers:
        """The score and the number of terms of each setting on one fold."""
        scores, n_terms = np.empty(len(settings)), np.zeros(len(settings))
        train, test = splits[f]
        part = self._fold_target(target, y, train, f)
        fold = self._fold_columns(columns, folds, train, part.sample_weight)
        grid = self._penalties(fold, part.sample_weight, settings)
        outputs = []
        for problem in self._problems(fold, part):
            found = solve_grid(problem, grid, tol=self.tol, max_iter=self.max_iter)
            # One prediction for the whole grid: one output for each setting.
            function = fold.expand([one.terms for one in found])
            values = function.values(folds.held_out(function, test))
            outputs.append(values + np.array([one.intercept for one in found]))
            n_terms += [len(one.terms) for one in found]
        predicted = np.stack(outputs, axis=2)  # samples, settings, classifiers
        if target.Y.shape[1] > 1:
            # A class without training samples is never predicted.
            predicted[..., ~np.any(target.Y[train] > 0, axis=0)] = -np.inf
        held = None if target.sample_weight is None else target.sample_weight[test]
        for s in range(len(settings)):
            calibrate = partial(self._calibrate_vote_of_fold, fold, part, grid[s])
            scores[s] = self._score_fold(predicted[:, s], y[test], held, calibrate)
        return {"scores": scores, "n_terms": n_terms}

    def _fold_columns(
        self,
        columns: KernelColumns,
        folds: FoldGrams,
        train: np.ndarray,
        sample_weight: np.ndarray | None,
    ) -> KernelColumns:
        """The columns of a training part, with kernels of its own if they learn from it."""
        if not isinstance(folds, GramsPerFold):
            return columns.subset(train)
        fold = folds.fold_estimator()
        made: KernelColumns = fold._make_columns(folds.X, folds.keep[train], sample_weight)
        return made

    def _calibrate_vote_of_fold(
        self, fold: KernelColumns, target: Target, penalties: np.ndarray
    ) -> Calibration | None:
        """The map to probabilities for a vote that was trained on one fold."""
        held_out = held_out_votes(
            fold, target, penalties, self._problems, tol=self.tol, max_iter=self.max_iter
        )
        return self._make_calibration(target, held_out, MAX_CROSS_FITTED_SAMPLES)

    def _penalties(
        self,
        fold: KernelColumns,
        sample_weight: np.ndarray | None,
        settings: list[tuple[float, float, float]],
    ) -> list[np.ndarray]:
        """Penalties ``lambda r_k + beta`` of each setting, with terms r_k of the training fold."""
        if self._is_local:
            own = spectra(fold, sample_weight)
            m = total(fold, sample_weight)
            terms = {s: Complexity(local(own, m, s)) for s in {s for s, _, _ in settings}}
        else:
            terms = {np.inf: self._complexities(fold, sample_weight, 1.0)}
        return [lam * terms[s].values + beta for s, lam, beta in settings]

    def _choose(
        self,
        scores: np.ndarray,
        n_terms: np.ndarray,
        settings: list[tuple[float, float, float]],
    ) -> tuple[float, float, float]:
        """Set ``cv_results_`` from the scores; return the best setting with the fewest terms."""
        mean = scores.mean(axis=0)
        if not np.any(np.isfinite(mean)):
            raise ValueError("Every cross-validation score is NaN; check scoring and the folds.")
        best = np.flatnonzero(mean >= np.nanmax(mean))
        self.best_index_ = int(best[np.argmin(n_terms[best])])
        self.best_score_ = float(mean[self.best_index_])
        self.n_splits_ = len(scores)
        self.cv_results_ = {
            "complexity_penalty": np.array([lam for _, lam, _ in settings]),
            "sparsity_penalty": np.array([beta for _, _, beta in settings]),
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=0),
            "rank_test_score": rankdata(-mean, method="min").astype(int),
            "mean_n_terms": n_terms,
            **{f"split{f}_test_score": row for f, row in enumerate(scores)},
        }
        if self._is_local:
            self.cv_results_["local_radius"] = np.array([s for s, _, _ in settings])
        return settings[self.best_index_]

    # Folds are made and scored as in the search over kernel combinations.
    _fold_target = MultiKernelClassifierCV._fold_target
    _score_fold = MultiKernelClassifierCV._score_fold


def check_penalty_grid(name: str, values: Any) -> list[float]:
    """The values as a list; they must be finite and not negative."""
    try:
        grid = np.asarray(values, dtype=np.float64).ravel().tolist()
    except (TypeError, ValueError):
        grid = []
    if not grid or not all(0 <= value < np.inf for value in grid):
        raise ValueError(f"{name} must be one or more finite non-negative numbers; got {values!r}.")
    return list(grid)
