"""How much a fitted function changes with each column of X."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.columns import column_moments
from .protocol import Expansion

#: Maximum number of derivatives per output that are computed at once.
MAX_BLOCK_NUMBERS = 2**21
MAX_BLOCK_ROWS = 256


def column_sensitivities(
    expansion: Expansion,
    X: Any,
    sample_weight: np.ndarray | None = None,
    *,
    relative_step: float = float(np.finfo(np.float64).eps ** (1 / 3)),
) -> np.ndarray:
    """Mean squared derivative of a function in each column, times the column's variance.

    With ``v_j`` the variance of column j and n samples,

        s_j = v_j / n sum_i sum_t (df_t(x_i) / dx_j)^2

    which does not depend on the units of the columns.

    Parameters
    ----------
    expansion : Expansion
        f, with outputs t.
    X : array or CSR matrix of shape (n, n_features)
    sample_weight : array of shape (n,), optional
        How often each sample counts.
    relative_step : float
        The step of central differences, where derivatives are not known, relative to the standard
        deviation of the column. The error is smallest near the third root of the rounding error
        of the kernel values; the default is for float64.

    Returns
    -------
    array of shape (n_features,)
    """
    n, d = X.shape
    omega = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    omega = omega / omega.sum()
    columns = X.tocsc() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    mean, variance, _ = column_moments(columns, omega)
    rounding = 10 * float(np.finfo(np.float64).eps) * np.abs(mean)
    spread = np.where(np.sqrt(variance) <= rounding, 0.0, np.sqrt(variance))
    steps = relative_step * spread
    squares = np.zeros(d)
    height = max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_NUMBERS // max(d, 1)))
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block = X[rows] if sp.issparse(X) else columns[rows]
        slopes = expansion.gradients(block, steps)
        squares += np.einsum("m,mjt,mjt->j", omega[rows], slopes, slopes)
    return squares * spread**2


def exchange_sensitivities(
    expansion: Expansion,
    X: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> np.ndarray:
    """Half the mean squared change of a function if a column takes the value of another sample.

    With ``x'`` a second sample, drawn independently in proportion to the sample weights,

        s_j = 1/2 E sum_t (f_t(x) - f_t(x with x'_j in column j))^2

    which for a linear function is its squared slope times the variance of the column, as in
    :func:`column_sensitivities`, and needs no derivative: columns may hold codes of categories.

    Parameters
    ----------
    expansion : Expansion
        f, with outputs t.
    X : array of shape (n, n_features)
    sample_weight : array of shape (n,), optional
        How often each sample counts.
    seed : int, default=0
        One other sample is drawn for each sample.

    Returns
    -------
    array of shape (n_features,)
    """
    n, d = X.shape
    omega = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    omega = omega / omega.sum()
    donors: np.ndarray = np.asarray(np.random.default_rng(seed).choice(n, n, p=omega))
    before = expansion.values(expansion.encode(X))
    found = np.zeros(d)
    for j in range(d):
        moved = np.flatnonzero(X[:, j] != X[donors, j])
        if len(moved):
            changed = X[moved].copy()
            changed[:, j] = X[donors[moved], j]
            change = expansion.values(expansion.encode(changed)) - before[moved]
            found[j] = 0.5 * float(omega[moved] @ np.sum(change**2, axis=1))
    return found
