"""Tests of the difference between two methods over the splits of a cross-validation."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats


def paired_t(differences: np.ndarray, overlap: float = 0.0, least_variance: float = 0.0) -> float:
    """p-value of the one-sided test that the mean difference is positive.

    ``t = mean / sqrt((1/k + overlap) variance)`` with k - 1 degrees of freedom. ``overlap`` is the
    ratio of test to training samples in the corrected test of Nadeau and Bengio (2003), which
    accounts for training parts that share samples, and 0 in the plain test. The variance over a few
    splits may be tiny by chance; ``least_variance`` is a lower bound on it, which follows from the
    size of the test parts. Without such a bound, differences that are all equal have the p-value 0
    if they are positive, and 1 otherwise.
    """
    k = len(differences)
    mean = float(differences.mean())
    variance = max(float(differences.var(ddof=1)), least_variance)
    if variance <= 1e-30 * max(mean**2, 1e-30):
        return 1.0 if mean <= 0 else 0.0
    return float(stats.t.sf(mean / math.sqrt((1.0 / k + overlap) * variance), k - 1))
