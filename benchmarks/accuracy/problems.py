"""The data sets, and their splits into training and test parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from experiments import datasets

#: Tables of numbers; the sets of sequences, texts and several views are other problems.
TABLES = (
    *("kin8nm", "kin8nh", "kin8fh", "kin8fm", "boston", "casp_rmsd", "winewhite", "spambase"),
    *("german", "phishing", "higgs_sample", "retinopathy", "heart", "diabetes", "mlprove"),
    *("waveform", "vertebral", "parkinsons", "climate", "ionosphere", "sonar", "wdbc", "musk1"),
    *("bupa", "yeast", "ecoli", "a9a", "breastcancer", "ocr49"),
)
#: Sets of a quick run: small, and of every kind.
QUICK = ("boston", "vertebral", "parkinsons", "climate", "sonar", "wdbc", "bupa", "heart")
#: Samples of a training part, and of a test part, at most.
MAX_TRAIN, MAX_TEST = 2000, 3000
TRAIN_SHARE = 0.7


@dataclass(frozen=True)
class Split:
    """One division of a data set.

    Attributes
    ----------
    X, X_new : arrays of shape (n, d), (m, d)
    y, y_new : arrays of shape (n,), (m,)
    regression : bool
    """

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    regression: bool

    def error(self, predicted: np.ndarray) -> float:
        """Share of wrong labels, or the root mean squared error in standard deviations of y."""
        if not self.regression:
            return float(np.mean(predicted != self.y_new))
        return float(np.sqrt(np.mean((predicted - self.y_new) ** 2)) / self.y_new.std())


def load(name: str, number: int, max_train: int = MAX_TRAIN) -> Split:
    """Split ``number`` of a data set, at random but the same every time."""
    found = datasets.load(name)
    X, y = found.data, np.asarray(found.target)
    X = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    regression = y.dtype.kind == "f" and len(np.unique(y)) > 15
    order = np.random.default_rng(number).permutation(len(y))
    size = min(int(TRAIN_SHARE * len(y)), max_train)
    train, test = order[:size], order[size : size + MAX_TEST]
    # Medians stand for missing entries, for every method alike.
    middle = np.nanmedian(X[train], axis=0)
    X = np.where(np.isnan(X), middle, X)
    return Split(X[train], y[train], X[test], y[test], regression)
