"""Leave-one-out values of some rows for a predictor that was trained on all of them, from sums.

With features z (the intercept as a last column of ones), costs c and ``A = sum c_i z_i z_i' + I``
(zero for the intercept), leaving out the cost ``d_i`` of row i changes its value by one Newton
step, which for a squared loss is exact:

    f_{-i} = f_i - s_i q_i / (1 - d_i q_i),     q_i = z_i'A^-1 z_i
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize_scalar

from ...learners.leave_one_out import LARGEST_RIDGE, SMALLEST_RIDGE

#: Upper limit of leverages: closer to one, rounding errors would decide.
MAX_LEVERAGE = 1.0 - 1e-10


def values_without(
    Z: np.ndarray, A: np.ndarray, values: np.ndarray, coef: np.ndarray, bends: np.ndarray
) -> np.ndarray:
    """Leave-one-out values of rows, shape (m,).

    Parameters
    ----------
    Z : array of shape (m, D)
    A : array of shape (D, D)
        The curvature of the whole objective.
    values, coef, bends : arrays of shape (m,)
        Decision values, coefficients ``s = -c l'`` and curvatures of the loss at the rows.
    """
    q = np.einsum("md,dm->m", Z, cho_solve(cho_factor(A, check_finite=False), Z.T))
    leverage = np.minimum(bends * q, MAX_LEVERAGE)
    return np.asarray(values - coef * q / (1.0 - leverage))


def best_ridge_of_rows(
    F: np.ndarray,
    Y: np.ndarray,
    total_weight: float,
    Z: np.ndarray,
    targets: np.ndarray,
    fit_intercept: bool,
    omega: np.ndarray | None = None,
) -> float:
    """The ridge constant with the smallest leave-one-out error at some rows.

    A row of weight omega <= 1 is left out completely; a row of larger weight counts as omega equal
    rows, of which one is left out.

    Parameters
    ----------
    F, Y : arrays of shape (r, D), (r, t)
        Features and targets of a small sample with the sums of all rows, times the root of its
        weights and, with an intercept, centred.
    Z, targets : arrays of shape (m, D), (m, t)
        Features and targets of the rows, centred in the same way.
    omega : array of shape (m,) or None
        The weights of the rows.
    """
    values, vectors = eigh(F.T @ F, check_finite=False)
    values = np.maximum(values, 0.0)
    right = vectors.T @ (F.T @ Y)
    P = Z @ vectors
    unit = float(values.sum()) / total_weight
    unit = unit if unit > 0 else 1.0
    share = 1.0 / total_weight if fit_intercept else 0.0
    counts = np.ones(len(Z)) if omega is None else omega
    left_out = np.minimum(counts, 1.0)
    squares = P**2

    def error(log_ridge: float) -> float:
        inverse = 1.0 / (values + unit * np.exp(log_ridge))
        residuals = targets - (P * inverse) @ right
        leverage = np.minimum(left_out * (squares @ inverse + share), MAX_LEVERAGE)
        each = np.sum((residuals / (1.0 - leverage)[:, None]) ** 2, axis=1)
        return float(np.log(counts @ each / counts.sum() + 1e-300))

    bounds = (np.log(SMALLEST_RIDGE), np.log(LARGEST_RIDGE))
    grid = np.linspace(*bounds, 30)
    best = grid[int(np.argmin([error(x) for x in grid]))]
    step = grid[1] - grid[0]
    near = (max(best - step, bounds[0]), min(best + step, bounds[1]))
    found = minimize_scalar(error, bounds=near, method="bounded", options={"xatol": 0.01})
    return unit * float(np.exp(found.x))
