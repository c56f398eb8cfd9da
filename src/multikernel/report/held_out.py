"""Predictions of a model for samples that it was not fitted to."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.classifier import class_index
from ..estimators.own_sample import is_own_sample
from ..estimators.weights import Weights
from .sample import draw_rows, n_rows, take, unlabelled

#: Maximum number of samples in the refits for held-out predictions and the stability of weights.
REFIT_POINTS = 2000


@dataclass(frozen=True)
class HeldOut:
    """Predictions for samples that were held out.

    Attributes
    ----------
    rows : array of shape (m,)
        Which samples.
    truth, answers : arrays of shape (m,)
    decisions : array of shape (m, t) or None
        Decision values of a classifier, one column for two classes.
    probabilities : array of shape (m, n_classes) or None
    how : str
        How the predictions were made, for a caption.
    """

    rows: np.ndarray
    truth: np.ndarray
    answers: np.ndarray
    decisions: np.ndarray | None
    probabilities: np.ndarray | None
    how: str


@dataclass(frozen=True)
class Refits:
    """The model fitted again without each of five parts of the sample.

    Attributes
    ----------
    rows : array of shape (m,)
        The samples that took part.
    shares : array of shape (n_folds, p) or None
        Kernel weights of every refit, as shares of their sum.
    outputs : array of shape (m, t) or None
        Decision value or prediction for each sample, from the refit without it; or None.
    answers : array of shape (m,) or None
    n_all : int
    """

    rows: np.ndarray
    shares: np.ndarray | None
    outputs: np.ndarray | None
    answers: np.ndarray | None
    n_all: int


def find_refits(estimator: Any, X: Any, y: Any, n_folds: int = 5) -> Refits:
    """Fit the model again without each fold, with its kernels and parameters unchanged."""
    from sklearn.model_selection import KFold, StratifiedKFold

    from .findings import same_model

    if getattr(estimator, "family", None) == "spectral":
        raise ValueError("other samples have other eigenvectors, whose weights cannot be compared")
    rows = draw_rows(n_rows(X), REFIT_POINTS)
    labels = None if y is None else np.asarray(y)[rows]
    stratified = hasattr(estimator, "classes_") and labels is not None
    if (
        labels is not None
        and stratified
        and np.unique(labels, return_counts=True)[1].min() < n_folds
    ):
        raise ValueError(f"a class has fewer than {n_folds} samples")
    kind = StratifiedKFold if stratified else KFold
    splitter = kind(n_folds, shuffle=True, random_state=0)
    predicts = y is not None and not hasattr(estimator, "offset_")
    predicts = predicts and not hasattr(estimator, "transduction_")
    predicts = predicts and not estimator._is_precomputed
    shares, outputs, answers = [], None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has warned already
        for train, test in splitter.split(np.zeros((len(rows), 1)), labels):
            part = rows[train]
            model = same_model(estimator)
            model.fit(take(estimator, X, part), None if y is None else np.asarray(y)[part])
            shares.append(Weights.of(model).shares)
            if not predicts:
                continue
            new = take(estimator, X, rows[test])
            said = np.asarray(model.predict(new))
            value = model.decision_function(new) if hasattr(model, "classes_") else said
            value = np.asarray(value, dtype=np.float64).reshape(len(test), -1)
            if outputs is None or answers is None:
                outputs = np.full((len(rows), value.shape[1]), np.nan)
                answers = np.empty((len(rows), *said.shape[1:]), dtype=said.dtype)
            if value.shape[1] != outputs.shape[1]:
                predicts = False
                outputs = answers = None
                continue
            outputs[test], answers[test] = value, said
    return Refits(rows, np.stack(shares), outputs, answers, n_rows(X))


def find_held_out(
    estimator: Any, X: Any, y: Any, refits: Any, kept_out: bool = False
) -> HeldOut | None:
    """Held-out predictions of a model: those of its search, else of refits.

    Samples that the model was not fitted to are predicted directly. ``refits`` is a function that
    returns :class:`Refits`, and ``kept_out`` says that the samples are known to be new to the
    model. None for models without targets or with several outputs.
    """
    if y is None or hasattr(estimator, "offset_") or np.ndim(y) > 1:
        return None
    y = np.asarray(y)
    if unlabelled(estimator, y).any():
        return None
    if not is_own_sample(estimator, X):
        return _of_new_samples(estimator, X, y, kept_out)
    stored = getattr(estimator, "cv_predictions_", None)
    if stored is not None:
        outputs = np.asarray(stored, dtype=np.float64).reshape(len(y), -1)
        rows = np.flatnonzero(~np.isnan(outputs).any(axis=1))
        how = (
            f"each made while the sample was held out in {estimator.n_splits_}-fold "
            "cross-validation"
        )
        return _held_out(estimator, rows, y[rows], outputs[rows], None, how)
    found = refits()
    if found.outputs is None:
        return None
    how = "each made by a model fitted without a fifth of the samples, including the predicted one"
    kept = np.flatnonzero(np.isfinite(found.outputs).any(axis=1))
    rows = found.rows[kept]
    return _held_out(estimator, rows, y[rows], found.outputs[kept], found.answers[kept], how)


def _of_new_samples(estimator: Any, X: Any, y: np.ndarray, kept_out: bool) -> HeldOut:
    answers = np.asarray(estimator.predict(X))
    value = estimator.decision_function(X) if hasattr(estimator, "classes_") else answers
    outputs = np.asarray(value, dtype=np.float64).reshape(len(y), -1)
    how = "drawn at random and kept out of the fit"
    if not kept_out:
        how = (
            "which are not the training sample; if some of them were used to fit the model, the "
            "predictions look better than they are"
        )
    return _held_out(estimator, np.arange(len(y)), y, outputs, answers, how)


def _held_out(
    estimator: Any,
    rows: np.ndarray,
    truth: np.ndarray,
    outputs: np.ndarray,
    answers: np.ndarray | None,
    how: str,
) -> HeldOut:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return HeldOut(rows, truth, outputs[:, 0], None, None, how)
    decisions = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    if answers is None:
        answers = np.asarray(classes)[class_index(decisions)]
    probabilities = None
    calibration = getattr(estimator, "_calibration", None)
    if calibration is not None and np.isfinite(outputs).all():
        probabilities = np.asarray(calibration.probabilities(outputs))
    return HeldOut(rows, truth, answers, outputs, probabilities, how)
