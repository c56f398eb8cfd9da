"""Choosing C (or alpha) and the weighting by cross-validation.

Held-out samples have no influence on the models that predict them. Kernels that do not depend on
the sample are evaluated once on the whole sample, as far as memory allows; each training part is a
view of these matrices with its own centring, normalisation and kernel weights. Kernels that learn
widths or scales from the sample, such as the default ones, learn them from each training part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from .._journal import Answers, Journal
from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram, Grams, Summary
from ..learners.base import Learner
from ..problem import Machine, Target
from ..solvers.joint.find import combine_by_rule, find
from ..solvers.joint.learn import MAX_ONE_THREAD_SAMPLES, refuse_constant_kernels
from ..solvers.joint.warm_start import WarmStart
from ..weighting import Weighting
from ..weighting.base import summary_for
from ..weighting.joint import JointWeighting
from .base import CHECKPOINTS, MultiKernelEstimator
from .fold_grams import FoldGrams
from .folds import Splits
from .large import APPROXIMATIONS
from .missing import MISSING
from .selection import SELECTIONS, select

#: The predictors of one fold: the learner, the combined kernels, and what it learned with each. The
#: lists have one entry for all outputs together, or one per output.
TrainedFold = tuple[Learner, list[CombinedGram], list[Machine]]


class Fold:
    """The training part of one fold; its statistics are computed once for all rules.

    ``has`` is the mask (p, n) of the kernels that each sample has; None unless
    ``missing="absent"``.
    """

    def __init__(
        self, number: int, grams: Grams, target: Target, has: np.ndarray | None = None
    ) -> None:
        self.number, self.grams, self.target, self.has = number, grams, target, has
        self._summary: Summary | None = None
        self._columns: list[Fold] = []

    def columns(self) -> list[Fold]:
        """One fold per output, each with its own statistics."""
        if not self._columns:
            outputs = range(self.target.Y.shape[1])
            self._columns = [
                Fold(self.number, self.grams, self.target.column(j), self.has) for j in outputs
            ]
        return self._columns

    def summary(self, rule: Weighting) -> Summary | None:
        if rule.needs_summary:
            self._summary = summary_for(rule, self.grams, self.target, self._summary)
        return self._summary


class SearchMixin(MultiKernelEstimator):
    """The search, the same for classification and regression."""

    cv: Any
    scoring: Any
    selection: str

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
        folds: FoldGrams,
        target: Target,
        y: np.ndarray,
        splits: Splits,
        make_learner: Callable[[float], Learner],
        values: Sequence[float],
        name: str,
        journal: Journal | None = None,
    ) -> tuple[Any, float]:
        """Score every (weighting, value) on every fold; fill ``cv_results_`` and pick the best."""
        candidates = self._candidates()
        refuse_constant_kernels(grams.corrected(self.center, self.normalize), warn=False)
        scores = np.empty((len(splits), len(candidates), len(values)))
        t = target.Y.shape[1]
        held_out = np.full((len(candidates), len(values), len(y), t), np.nan, dtype=np.float32)
        work = [(f, w) for f in range(len(splits)) for w in range(len(candidates))]
        steps: Iterable[tuple[int, int]] = work
        if self.verbose:
            steps = track(work, description="cross-validation")
        # Keep the grams of one training part at a time, and make them only if needed.
        fold_of = lru_cache(maxsize=1)(partial(self._make_fold, folds, target, y, splits))
        path: list[np.ndarray] = []  # weights of the last joint rule on this fold, one per value
        for f, w in steps:
            path = path if w else []
            learners = [make_learner(v) for v in values]
            cell = partial(
                self._score_cell,
                *(fold_of, folds, target, y, f, splits[f]),
                *(candidates[w], learners, path[0] if path else None),
            )
            done = cell() if journal is None else journal.recall("cell", (f, w, *path), cell)
            path = done["path"] or path
            held_out[w][:, splits[f][1]], scores[f, w] = done["predicted"], done["scores"]
        rule_index, value_index = select(scores, self.selection)
        flat = scores.mean(axis=0).ravel()
        self.best_index_ = rule_index * len(values) + value_index
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
        self._cv_held_out = held_out[rule_index, value_index]
        return candidates[rule_index], float(values[value_index])

    def _make_fold(
        self, folds: FoldGrams, target: Target, y: np.ndarray, splits: Splits, f: int
    ) -> Fold:
        """The training part of a fold, centred and normalised by its own statistics."""
        train = splits[f][0]
        weights = None if target.sample_weight is None else target.sample_weight[train]
        part, has = folds.part(train, weights)
        corrected = part.corrected(self.center, self.normalize)
        return Fold(f, corrected, self._fold_target(target, y, train, f), has)

    def _score_cell(
        self,
        fold_of: Callable[[int], Fold],
        folds: FoldGrams,
        target: Target,
        y: np.ndarray,
        f: int,
        split: tuple[np.ndarray, np.ndarray],
        candidate: Any,
        learners: Sequence[Learner],
        warm: np.ndarray | None,
    ) -> Answers:
        """One weighting on one fold: predictions and score for every learner, and joint weights."""
        train, test = split
        fold = fold_of(f)
        rule = self._rule_for_samples(self._as_weighting(clone(candidate, safe=False)), fold.has)
        with one_blas_thread(len(train), MAX_ONE_THREAD_SAMPLES):
            predicted, path, machines = self._predict_fold(
                fold, rule, learners, partial(folds.held_out, test=test), warm
            )
        if target.kind == "classification" and target.Y.shape[1] > 1:
            # A class without training samples is never predicted.
            predicted[..., ~np.any(target.Y[train] > 0, axis=0)] = -np.inf
        held = None if target.sample_weight is None else target.sample_weight[test]
        scores = np.empty(len(learners))
        for j, output in enumerate(predicted):
            calibrate = partial(self._calibrate_fold, fold.target, *machines[j])
            scores[j] = self._score_fold(output, y[test], held, calibrate)
        return {"predicted": predicted, "path": path, "scores": scores}

    def _keep_held_out(self, splits: Splits, keep: np.ndarray) -> None:
        """Set ``cv_indices_`` and ``cv_predictions_``, in row numbers of X in fit."""
        self.cv_indices_ = [(keep[train], keep[test]) for train, test in splits]
        everyone = np.full((self._n_given, self._cv_held_out.shape[1]), np.nan)
        everyone[keep] = self._cv_held_out
        del self._cv_held_out
        self.cv_predictions_ = everyone[:, 0] if everyone.shape[1] == 1 else everyone

    def _predict_fold(
        self,
        fold: Fold,
        rule: Weighting,
        learners: Sequence[Learner],
        held_out: Callable[[Any], Any],
        warm: np.ndarray | None,
    ) -> tuple[np.ndarray, list[np.ndarray], list[TrainedFold]]:
        """Predicted values at the held-out samples, shape (n_values, n_test, t).

        ``held_out`` encodes these samples for an expansion on the training part. The second result
        is the path of a joint rule, its weights for every value; the next rule (for example the
        next norm) starts from the first of them. The third is the predictors for every value.
        """
        part, target, t = fold.grams, fold.target, fold.target.Y.shape[1]
        summary = fold.summary(rule)
        refuse_constant_kernels(part, warn=False, where="the training part of a fold")
        if rule.needs_learner:
            # Weights that depend on C or alpha are learned for each of its values; a joint rule
            # starts from the weights of the previous value.
            outputs, path, trained = [], [], []
            for learner in learners:
                start = None if warm is None else WarmStart(warm)
                found = find(part, target, rule, learner, summary=summary, warm=start)
                warm, machine = found.kernel_weights, found.machine
                expansion = part.expand(warm, machine.coef)
                outputs.append(expansion.values(held_out(expansion)) + machine.intercept)
                path.append(warm)
                trained.append((learner, [found.gram], [machine]))
            return np.stack(outputs), path if isinstance(rule, JointWeighting) else [], trained
        weights, gram = combine_by_rule(part, target, rule, learners[0], summary)
        machines: list[Machine] = []
        for learner in learners:
            coef = machines[-1].coef if machines else None
            machines.append(learner.fit(gram, target, start=coef))
        # Predict for all values of C or alpha at once, with their coefficients side by side.
        coefs = np.concatenate([machine.coef for machine in machines], axis=1)
        expansion = part.expand(weights, coefs)
        together = expansion.values(held_out(expansion))
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
        """Map to probabilities for a predictor trained on one fold; classifiers override this."""

    def _score_fold(
        self,
        output: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        calibrate: Callable[[], Any],
    ) -> float:
        raise NotImplementedError


SEARCH_CONSTRAINTS: dict[str, Any] = {
    "weighting": [str, Weighting, list, tuple],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "selection": [StrOptions(set(SELECTIONS))],
    "missing": [MISSING],
    "approximation": APPROXIMATIONS,
    "checkpoint": CHECKPOINTS,
}


def check_grid(name: str, values: Any) -> list[float]:
    """The values as a list; they must be positive and finite."""
    try:
        grid = np.asarray(values, dtype=np.float64).ravel().tolist()
    except (TypeError, ValueError):
        grid = []
    if not grid or not all(0 < value < np.inf for value in grid):
        raise ValueError(f"{name} must be one or more positive finite numbers; got {values!r}.")
    return list(grid)
