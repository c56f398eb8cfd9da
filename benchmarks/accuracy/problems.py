"""The data sets, and their splits into training and test parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import log_loss

from experiments import datasets

#: Every table of numbers of the data folder, but for parts of these: waveform01 (two classes of
#: waveform) and mnist28_12k (images of mnist14) would count one set twice in the tests. Sequences,
#: texts and several views are other problems.
TABLES = (
    *("kin8nm", "kin8nh", "kin8fh", "kin8fm", "boston", "casp_rmsd", "winewhite", "spambase"),
    *("german", "phishing", "higgs_sample", "retinopathy", "heart", "diabetes", "mlprove"),
    *("waveform", "vertebral", "parkinsons", "climate", "ionosphere", "sonar", "wdbc", "musk1"),
    *("bupa", "yeast", "ecoli", "a9a", "breastcancer", "ocr49"),
    *("ocr17", "splice_libsvm", "skin", "w8a", "mnist14"),
)
#: Sets of a quick run: small, and of every kind.
QUICK = ("boston", "vertebral", "parkinsons", "climate", "sonar", "wdbc", "bupa", "heart")
#: Sets of several views of the same samples.
VIEWS = ("mfeat", "proteinfold")
#: Samples of a training part, and of a test part, at most.
MAX_TRAIN, MAX_TEST = 2000, 3000
TRAIN_SHARE = 0.7
#: Probabilities are moved into [MIN_PROBABILITY, 1] before their logarithm is taken.
MIN_PROBABILITY = 1e-15
#: Stands for classes that occur in the test part only. No method can predict it.
UNSEEN = -1


@dataclass(frozen=True)
class Split:
    """One division of a data set.

    Attributes
    ----------
    X, X_new : arrays of shape (n, d), (m, d)
    y, y_new : arrays of shape (n,), (m,)
        Classes are numbered from 0 in the order of the training part's labels; `UNSEEN` in
        ``y_new`` is a class that the training part does not have.
    regression : bool
    samples : int
        Size of the whole set.
    views : mapping from names to slices of columns
        Empty for a plain table.
    """

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    regression: bool
    samples: int
    views: Mapping[str, slice]

    def error(self, predicted: np.ndarray) -> float:
        """Share of wrong labels, or the root mean squared error in standard deviations of y."""
        predicted = np.asarray(predicted).ravel()  # CatBoost returns a column
        if predicted.shape != self.y_new.shape:
            raise ValueError(
                f"{len(self.y_new)} predictions were expected, one for each test sample; "
                f"got {len(predicted)}."
            )
        if not self.regression:
            return float(np.mean(predicted != self.y_new))
        return float(np.sqrt(np.mean((predicted - self.y_new) ** 2)) / self.y_new.std())

    def log_loss(self, probabilities: np.ndarray) -> float:
        """Mean negative log-likelihood of the test samples whose class the training part has.

        The likelihood of a class that was never seen is zero for every method, and the bound on
        probabilities alone would decide the mean.
        """
        probabilities = np.clip(np.asarray(probabilities, dtype=np.float64), MIN_PROBABILITY, 1.0)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        seen = self.y_new != UNSEEN
        labels = np.unique(self.y)
        return float(log_loss(self.y_new[seen], probabilities[seen], labels=labels))


@lru_cache(maxsize=2)
def _whole(name: str) -> tuple[np.ndarray, np.ndarray, bool, dict[str, slice]]:
    found = datasets.load(name)
    X: Any = found.data
    X = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    return X, np.asarray(found.target), found.task == "regression", dict(found.views or {})


def load(name: str, number: int, max_train: int = MAX_TRAIN) -> Split:
    """Split ``number`` of a data set, at random but the same every time."""
    X, y, regression, views = _whole(name)
    return split(X, y, number, max_train, regression=regression, views=views)


def split(
    X: np.ndarray,
    y: np.ndarray,
    number: int,
    max_train: int,
    *,
    regression: bool,
    views: Mapping[str, slice] | None = None,
) -> Split:
    """Training and test part ``number``, with missing entries filled and classes numbered."""
    order = np.random.default_rng(number).permutation(len(y))
    size = min(int(TRAIN_SHARE * len(y)), max_train)
    train, test = order[:size], order[size : size + MAX_TEST]
    # Medians stand for missing entries, for every method alike.
    middle = np.nanmedian(X[train], axis=0)
    X_train = np.where(np.isnan(X[train]), middle, X[train])
    X_test = np.where(np.isnan(X[test]), middle, X[test])
    y_train, y_test = y[train], y[test]
    if not regression:
        classes, y_train = np.unique(y_train, return_inverse=True)
        at = np.minimum(np.searchsorted(classes, y_test), len(classes) - 1)
        y_test = np.where(classes[at] == y_test, at, UNSEEN)
    return Split(X_train, y_train, X_test, y_test, regression, len(y), views or {})
