"""The best alignment with the labels over a hull of kernels (Cristianini et al. 2002)."""

from __future__ import annotations

import numpy as np

from ...weighting.alignment import alignf
from .hulls import Hull

#: Kernels whose norm on the labelled samples is below this fraction of the largest are left out:
#: their alignment is a rounding error.
MIN_NORM_RATIO = 1e-8


def align(hull: Hull, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The combination that is best aligned with ``yy'`` on the labelled samples.

    Returns the kernel weights (their sum is one), the alignment, and the largest violation of the
    optimality conditions ``a_k - (Mv)_k <= 0``, with equality where ``v_k > 0``, relative to a.
    Kernels that are zero up to rounding on the labelled samples are left out: alignment is
    invariant to scale, so they could get huge weights.
    """
    M, a = hull.products(), hull.forms(y)
    faint = np.sqrt(np.diag(M)) <= MIN_NORM_RATIO * np.sqrt(np.diag(M).max())
    M, a = np.where(faint | faint[:, None], 0.0, M), np.where(faint, 0.0, a)
    v = alignf(M, a)
    slack = a - M @ v
    scale = max(float(np.abs(a).max()), 1e-300)
    violation = float(np.max(np.where(v > 0, np.abs(slack), np.maximum(slack, 0.0)))) / scale
    size = float(np.sqrt(v @ M @ v))
    if size == 0:
        return np.full(hull.p, 1.0 / hull.p), 0.0, violation
    return v / v.sum(), float(v @ a) / (size * len(y)), violation
