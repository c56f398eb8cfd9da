"""The check of sample weights shared by estimators and functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight


def check_sample_weight(sample_weight: Any, X: Any) -> np.ndarray:
    """Weights of the samples of X, float64: finite, not negative, not all zero.

    A single number means equal weights.
    """
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not 0 < total < np.inf:
        raise ValueError(
            "sample_weight must hold numbers, zero or larger, with a positive and finite sum; got "
            f"a sum of {total:g}."
        )
    return np.asarray(weights)
