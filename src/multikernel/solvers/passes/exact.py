"""Bounds of the optimum with exact kernels, from the solution with features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...grams.protocol import Grams
from ...learners.base import Learner
from ...learners.ridge import Ridge
from ...problem import Target
from .errors import DualValue
from .learn import FeatureProblem, Learned
from .smooth import smooth


def certify_with_kernels(
    exact: Grams,
    target: Target,
    learned: Learned,
    learner: Learner,
    problem: FeatureProblem,
    X: Any,
) -> tuple[float, float]:
    """A lower and an upper bound of the exact optimum, by one pass over the kernels.

    The coefficients ``s = -C l'`` of the solution with features are feasible for the dual of the
    exact problem, and ``f = sum_k theta_k K_k s`` is feasible for its primal.

    Parameters
    ----------
    exact : Grams
        The kernels on the training sample X, centred if the problem's are, not normalised.
    target : Target
    """
    machine, theta = learned.solution.machine, learned.solution.kernel_weights
    C, Y, loss = learner.costs(target), target.Y, learner.loss
    values = problem.as_used(X) @ learned.slopes + machine.intercept
    if isinstance(learner, Ridge):
        s = C[:, None] * (Y - values)
    else:
        s = smooth(loss, values, Y, C, max(learned.width, 1e-12))[1]
    if learner.fit_intercept:
        s = balanced(s)
    scale = problem.grams.scale
    products = exact.matvecs(s) * scale[:, None, None]
    a = np.maximum(np.einsum("knt,nt->k", products, s), 0.0)
    F = np.einsum("k,knt->nt", theta, products)
    intercept = loss.intercept(F, Y, C) if learner.fit_intercept else np.zeros(Y.shape[1])
    upper = learned.rule.primal(theta, a) + float(loss.value(F, Y, C, intercept).sum())
    centre = np.zeros(Y.shape[1])
    if learner.fit_intercept:  # a large mean costs precision; s sums to zero
        centre = np.average(Y, axis=0, weights=C) if learner.kind == "regression" else centre
    linear = float(loss.dual(s, Y - centre, C).sum())
    quadratic = 0.0
    if isinstance(learner, Ridge):
        quadratic = 0.5 * float(np.sum(s**2 / C[:, None]))
        linear += quadratic  # the dual value is linear - quadratic
    dual = DualValue(linear, quadratic, a, 0.0)
    lower = dual.lower_bound(learned.rule, theta, np.zeros_like(a))
    return lower * learner.unit, upper * learner.unit


def balanced(s: np.ndarray) -> np.ndarray:
    """Coefficients that sum to zero: the sign with the larger sum is scaled down."""
    up, down = np.maximum(s, 0.0), np.maximum(-s, 0.0)
    positive, negative = up.sum(axis=0), down.sum(axis=0)
    smaller = np.minimum(positive, negative)
    first = np.divide(smaller, positive, out=np.zeros_like(smaller), where=positive > 0)
    second = np.divide(smaller, negative, out=np.zeros_like(smaller), where=negative > 0)
    return np.asarray(first * up - second * down)
