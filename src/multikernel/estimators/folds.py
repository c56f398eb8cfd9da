"""Splits of a cross-validation inside an estimator, and the scores of its folds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d

from .._options import takes_arguments
from .classifier import class_index

Splits = list[tuple[np.ndarray, np.ndarray]]


def kept_splits(
    cv: Any, y: np.ndarray, keep: np.ndarray, *, classifier: bool, groups: Any = None
) -> Splits:
    """Folds of the samples with positive weight; explicit splits hold row numbers of X in fit."""
    split = check_cv(cv, y[keep], classifier=classifier)
    explicit = cv is not None and not isinstance(cv, Integral) and not hasattr(cv, "split")
    if groups is not None:
        groups = _check_groups(groups, len(y), cv, explicit)[keep]
    if not explicit or len(keep) == len(y):
        return [
            (_indices(train, len(keep)), _indices(test, len(keep)))
            for train, test in split.split(np.zeros((len(keep), 1)), y[keep], groups)
        ]
    place = np.full(len(y), -1)
    place[keep] = np.arange(len(keep))
    given = [[place[_indices(part, len(y))] for part in parts] for parts in split.split()]
    return [(train[train >= 0], test[test >= 0]) for train, test in given]


def _check_groups(groups: Any, n_samples: int, cv: Any, explicit: bool) -> np.ndarray:
    """Check that there is one group per sample and that the folds respect groups."""
    groups = column_or_1d(groups)
    if len(groups) != n_samples:
        raise ValueError(
            f"groups must have one entry per sample; got {len(groups)} for {n_samples} samples."
        )
    if explicit or cv is None or isinstance(cv, Integral):
        given = "explicit splits" if explicit else f"cv={cv!r}"
        raise ValueError(
            f"groups was passed with {given}, which does not keep groups together. Use a splitter "
            "that does, such as cv=sklearn.model_selection.GroupKFold(5)."
        )
    return groups


def _indices(rows: Any, n_samples: int) -> np.ndarray:
    """Row numbers from row numbers or a mask."""
    rows = np.asarray(rows)
    mask = rows.dtype == bool
    good = rows.ndim == 1 and (rows.dtype.kind in "iu" or (mask and len(rows) == n_samples))
    if not good or (not mask and rows.size and not 0 <= rows.min() <= rows.max() < n_samples):
        raise ValueError(
            "cv must be a number of folds, a splitter, or pairs of arrays (train, test) of row "
            f"numbers from 0 to {n_samples - 1} or masks of {n_samples} samples; got the rows "
            f"{rows!r:.200}."
        )
    return np.flatnonzero(rows) if mask else rows


class FoldClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stand-in for a fitted classifier, which gives scorers known decision values.

    ``calibrate`` returns the map to probabilities; it is called only if a scorer needs them.
    """

    def __init__(self, decisions: Any = None, classes: Any = None, calibrate: Any = None) -> None:
        self.decisions = decisions
        self.classes = classes
        self.calibrate = calibrate
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        return self.decisions

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[class_index(self.decisions)]

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(self.calibrate().probabilities(self.decisions.reshape(len(X), -1)))


class FoldRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Stand-in for a fitted regressor, which gives scorers known predictions."""

    def __init__(self, predictions: Any = None) -> None:
        self.predictions = predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        return self.predictions


def score_fold(scoring: Any, fold: Any, y: np.ndarray, weights: np.ndarray | None) -> float:
    scorer = check_scoring(fold, scoring)
    if not takes_arguments(scorer, 3):
        raise TypeError(
            f"scoring must be a name or a function of (estimator, X, y); got {scoring!r}."
        )
    X = np.zeros((len(y), 1))
    if weights is None:
        return float(scorer(fold, X, y))
    try:
        return float(scorer(fold, X, y, sample_weight=weights))
    except TypeError as error:
        if "sample_weight" not in str(error):
            raise
        raise TypeError(
            f"scoring={scoring!r} does not accept sample_weight, but fit received one. Write the "
            "function as (estimator, X, y, sample_weight), or use sklearn.metrics.make_scorer."
        ) from error
