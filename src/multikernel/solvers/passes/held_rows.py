"""Leave-one-out values of some rows for a predictor that was trained on all of them, from sums.

With features z (the intercept as a last column of ones), costs c and ``A = sum c_i z_i z_i' + I``
(zero for the intercept), leaving out the cost ``d_i`` of row i changes its value by one Newton
step, which for a squared loss is exact:

    f_{-i} = f_i - (s_i q_i + z_i'A^-1 g) / (1 - d_i q_i),     q_i = z_i'A^-1 z_i

The gradient g of the whole objective is zero at its minimum, but passes end earlier; without it,
what is missing to the minimum would show the labels. Without an intercept, features that are
centred have to be centred without the row (`learners.left_out.newton_without`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize_scalar

from ...learners.leave_one_out import CENTRED_SUM, LARGEST_RIDGE, SMALLEST_RIDGE
from ...learners.left_out import newton_without

#: Upper limit of leverages: closer to one, rounding errors would decide.
MAX_LEVERAGE = 1.0 - 1e-10


def values_without(
    Z: np.ndarray,
    A: np.ndarray,
    values: np.ndarray,
    coef: np.ndarray,
    bends: np.ndarray,
    gradient: np.ndarray,
) -> np.ndarray:
    """Leave-one-out values of rows, shape (m,).

    Parameters
    ----------
    Z : array of shape (m, D)
    A : array of shape (D, D)
        The curvature of the whole objective.
    values, coef, bends : arrays of shape (m,)
        Decision values, coefficients ``s = -c l'`` and curvatures of the loss at the rows.
    gradient : array of shape (D,)
        Of the whole objective.
    """
    solved = cho_solve(cho_factor(A, check_finite=False), np.column_stack([Z.T, gradient]))
    q = np.einsum("md,dm->m", Z, solved[:, :-1])
    leverage = np.minimum(bends * q, MAX_LEVERAGE)
    return np.asarray(values - (coef * q + Z @ solved[:, -1]) / (1.0 - leverage))


def centred_values_without(
    Z: np.ndarray,
    A: np.ndarray,
    values: np.ndarray,
    coef: np.ndarray,
    bends: np.ndarray,
    gradient: np.ndarray,
    weights: np.ndarray,
    totals: tuple[float, float],
) -> np.ndarray:
    """Leave-one-out values of rows, shape (m,), for features that are centred without the row.

    The arguments are those of `values_without`, with the last column of Z and A for an intercept
    that the model does not have, and

    Parameters
    ----------
    weights : array of shape (m,)
        The parts of the weights of the rows that are left out.
    totals : tuple
        Sums of the coefficients and of the weights of all rows.
    """
    Z, P, D = Z[:, :-1], A[:-1, -1], float(A[-1, -1])
    sides = np.column_stack([Z.T, P, gradient[:-1]])
    solved = cho_solve(cho_factor(A[:-1, :-1], check_finite=False), sides)
    return newton_without(
        values,
        coef,
        bends,
        weights,
        np.einsum("md,dm->m", Z, solved[:, :-2]),
        Z @ solved[:, -2],
        float(P @ solved[:, -2]),
        (totals[0], D, totals[1]),
        (Z @ solved[:, -1], float(P @ solved[:, -1])),
    )


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
    rows, of which one is left out. For centred features the error is that with a free intercept, as
    in `learners.leave_one_out.best_ridge`.

    Parameters
    ----------
    F, Y : arrays of shape (r, D), (r, t)
        Features and targets of a small sample with the sums of all rows, times the root of its
        weights, which are equal, and, with an intercept, centred.
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
    centred = fit_intercept
    if not fit_intercept and np.linalg.norm(F.sum(axis=0)) <= CENTRED_SUM * np.linalg.norm(F):
        centred, targets = True, targets - Y.sum(axis=0) / np.sqrt(len(Y) * total_weight)
    share = 1.0 / total_weight if centred else 0.0
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
