"""Banks, data and small machines that the tests of the estimators share."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

import multikernel as mk

NORMALIZATIONS = ["multiplicative", "trace", "trace-first", "spherical", "frobenius", None]
#: all weightings, with their randomness fixed
WEIGHTINGS = {
    "uniform": "uniform",
    "best": mk.BestSingle(cv=2),
    "align": "align",
    "align-q": mk.Align(q=2),
    "alignf": "alignf",
    "alignf-signed": mk.AlignF(signed=True),
}
#: those that do not split the sample themselves, so that weights and copies must agree
DIRECT = ["uniform", "align", "align-q", "alignf"]


def overlap(X, Z):
    """A kernel that the library knows only as a function."""
    return np.minimum(np.abs(X[:, None]), np.abs(Z[None])).sum(axis=2)


def cosine(X, Z):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return X @ Z.T


#: one bank for each implementation of the waist, and one of all of them
BANKS = {
    "shared": mk.gaussians([0.05, 0.5, 3.0]) + mk.polynomials([2]),
    "dense": mk.KernelBank([mk.Callable(overlap), mk.Callable(cosine), mk.Linear() ** 2]),
    "rank-one": mk.per_feature(mk.Linear()),
    "stacked": mk.KernelBank([mk.Callable(overlap, psd=True)])
    + mk.per_feature(mk.Linear())
    + mk.gaussians([0.1, 1.0], columns=[0, 2])
    + mk.KernelBank([mk.Laplacian(0.3)]),
}


def iris(step: int = 2, classes: int = 3):
    """Every so many rows of iris, standardised, in a mixed order."""
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(7).permutation(np.flatnonzero(y < classes))[::step]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.ascontiguousarray(X[rows]), y[rows]


def waves(n: int = 60, outputs: int = 1, seed: int = 3):
    """A smooth regression problem with four inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.column_stack([np.sin((k + 1) * X[:, 0]) + 0.3 * X[:, 1] for k in range(outputs)])
    y = y + 0.05 * rng.normal(size=y.shape)
    return X, (y[:, 0] if outputs == 1 else y)


def mean_margin(model, X, y):
    """A score that moves with every decision value, unlike an accuracy."""
    decisions = model.decision_function(X)
    if decisions.ndim == 1:
        return float(np.mean(decisions * np.where(y == model.classes_[1], 1.0, -1.0)))
    signs = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    return float(np.mean(decisions * signs))


def stratified(y, n_splits: int = 3):
    """Explicit splits, so that every search sees the same ones."""
    split = StratifiedKFold(n_splits, shuffle=True, random_state=1)
    return list(split.split(np.zeros(len(y)), y))
