"""Public sets, cut into training and test samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from multikernel import datasets

SETS = ("higgs_sample", "a9a", "casp_rmsd", "mnist14")
Sample = tuple[np.ndarray, np.ndarray]


def load(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """X, y and "regression" or "classification"."""
    found = datasets.load(name)
    X = found.data.toarray() if sp.issparse(found.data) else found.data
    kind = "regression" if found.task == "regression" else "classification"
    return np.asarray(X, dtype=np.float64), np.asarray(found.target), kind


def split(X: np.ndarray, y: np.ndarray, kind: str) -> tuple[Sample, Sample, str]:
    """A fifth of the samples, drawn at random, are for testing; at most 10,000."""
    order = np.random.default_rng(0).permutation(len(X))
    n_test = min(len(X) // 5, 10_000)
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    return (X[train], y[train]), (X[test], y[test]), kind


def arguments(task: str) -> list[Any]:
    """``"rows 100000"`` as a list with numbers."""
    return [int(part) if part.isdigit() else part for part in task.split()]
