"""The samples of these benchmarks: standard normal columns, targets of three of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import multikernel as mk


def sample(n: int, d: int, labels: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n)
    return X, np.sign(y) if labels else y


def gaussian_bank(d: int, p: int = 50) -> Any:
    """Gaussians from a twentieth to five times one over the mean squared distance."""
    return mk.gaussians(np.geomspace(0.05, 5.0, p) / (2 * d))
