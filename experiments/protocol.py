"""Steps that several experiments have in common between loading a set and telling what was found.

Data without missing values, features in the units of the training part, five folds that take
turns in training, choosing and testing, and the two measures of error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from . import datasets

Model = TypeVar("Model")


def load_complete(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set that have no missing entries, as they come, and their targets."""
    found = datasets.load(name)
    X, y = np.asarray(found.data, dtype=np.float64), np.asarray(found.target)
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def standardise(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return X with mean 0 and variance 1 on the training rows; constant columns become 0 there."""
    deviation = X[train].std(axis=0)
    return np.asarray((X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def assign(folds: Sequence[np.ndarray], i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the training, choosing and test rows of the i-th assignment.

    Fold i is for the test, the next one for choosing parameters, the others for training.

    Examples
    --------
    >>> [part.tolist() for part in assign(np.arange(10).reshape(5, 2), 3)]
    [[0, 1, 2, 3, 4, 5], [8, 9], [6, 7]]
    """
    n = len(folds)
    train = np.concatenate([folds[(i + step) % n] for step in range(2, n)])
    return np.sort(train), folds[(i + 1) % n], folds[i]


def error_of(predictions: np.ndarray, y: np.ndarray, task: str) -> float:
    """Return the part that is misclassified or, in regression, the root mean squared error."""
    if task == "classification":
        return float(np.mean(predictions != y))
    return float(np.sqrt(np.mean((predictions - y) ** 2)))


def choose(models: Iterable[Model], error: Callable[[Model], float]) -> tuple[Model, float]:
    """Return the first model of smallest error, and that error; others are not kept."""
    tried = ((model, error(model)) for model in models)
    return min(tried, key=lambda pair: pair[1])
