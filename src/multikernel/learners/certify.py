"""Objective and duality gap of predictors with a fixed kernel, for any loss."""

from __future__ import annotations

import numpy as np

from ..grams.protocol import CombinedGram
from ..problem import Machine, Target, relative_gap
from .base import Learner


def size_of_terms(gram: CombinedGram, coef: np.ndarray) -> float:
    """A bound on ``sum_ij |s_i s_j K_ij|``, in units of which ``s'Ks`` has rounding errors.

    The dual objective of the one-class loss is ``-1/2 s'Ks`` alone. If the origin lies within the
    sample, as with linear kernels of centred columns, the optimum is zero and a computed ``s'Ks``
    is pure rounding error.
    """
    root = np.sqrt(np.maximum(gram.diagonal(), 0.0)) @ np.abs(coef)
    return float(root @ root)


def certified(
    learner: Learner,
    values: np.ndarray,
    coef: np.ndarray,
    target: Target,
    n_iter: int,
    terms: float = 0.0,
) -> Machine:
    """The predictor with these coefficients, its best intercept, and its duality gap for

        1/2 ||f||^2 + sum_i C_i l(f(x_i) + b, y_i)

    The gap is computed from the returned coefficients and intercept.

    Parameters
    ----------
    values : array of shape (n, t)
        ``K @ coef``, without the intercept.
    coef : array of shape (n, t)
        Signed coefficients, feasible for the dual.
    terms : float
        `size_of_terms`, for losses whose optimal objective may be zero.
    """
    C, loss, Y = learner.costs(target), learner.loss, target.Y
    intercept = np.zeros(Y.shape[1])
    shift = np.zeros(Y.shape[1])
    if learner.fit_intercept:
        if target.kind == "regression":
            shift = np.median(Y, axis=0)  # since 1's = 0, a shift changes only rounding errors
        intercept = loss.intercept(values, Y - shift, C)
    norm = np.einsum("nt,nt->t", coef, values)
    primal = 0.5 * norm + loss.value(values, Y - shift, C, intercept)
    dual = loss.dual(coef, Y - shift, C) - 0.5 * norm
    size = np.maximum(np.abs(primal) + np.abs(norm), terms)
    gap = float(np.max(relative_gap(primal, dual, size)))
    objective = float(primal.sum()) * learner.unit
    return Machine(coef, intercept + shift, objective, gap, n_iter, values)
