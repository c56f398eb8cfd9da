"""The obvious versions of what voted kernels compute: matrices, and the program as printed."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels.bank import as_bank
from multikernel.solvers.voted.columns import KernelColumns, planned_kernels
from multikernel.solvers.voted.problem import VotedProblem


def lopsided(X, Z):
    """A kernel that is neither symmetric nor positive semidefinite."""
    return np.tanh(X @ Z.T + X[:, :1] - 0.3 * Z[:, 1:2].T)


def distance(X, Z):
    """Minus a distance: symmetric, zero on the diagonal, not positive semidefinite."""
    return -np.abs(X[:, None] - Z[None]).sum(axis=2)


#: every implementation of the waist, symmetric or not, positive semidefinite or not
MIXED = (
    mk.Gaussian(0.4),
    mk.Callable(lopsided),
    mk.Linear(columns=[0]),
    mk.Polynomial(3),
    mk.Callable(distance),
    mk.Sigmoid(0.7, 0.1),
)


def sample(n=40, seed=0, noise=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def make_columns(kernels, X, memory_budget=None, n_jobs=1):
    plan, budget = as_bank(list(kernels)).plan(X), MemoryBudget.of(memory_budget)
    grams = plan.grams(X, budget=budget, n_jobs=n_jobs, symmetric=False)
    return KernelColumns(grams, planned_kernels(plan), budget)


def make_problem(kernels, X, y, fit_intercept=False, **options):
    columns = make_columns(kernels, X, **options)
    return VotedProblem(columns, y, np.full(len(y), 1.0 / len(y)), fit_intercept)


def full_program(matrices, y, penalties, fit_intercept=False, costs=None):
    """The optimum of the program of section 5 with every column, by ``scipy.optimize.linprog``."""
    m = len(y)
    costs = np.full(m, 1.0 / m) if costs is None else costs
    A = np.concatenate([y[:, None] * y * K for K in matrices], axis=1)
    price = np.repeat(penalties, m)
    cost = np.concatenate([price, price, costs])
    blocks = [-A, A, -np.eye(m)]
    bounds = [(0, None)] * len(cost)
    if fit_intercept:
        cost = np.append(cost, 0.0)
        blocks.append(-y[:, None])
        bounds.append((None, None))
    result = linprog(
        cost, np.concatenate(blocks, axis=1), -np.ones(m), bounds=bounds, method="highs"
    )
    assert result.status == 0
    return result.fun


def objective(matrices, y, penalties, solution, costs=None):
    """F of a solution, with all coefficients written out."""
    m = len(y)
    costs = np.full(m, 1.0 / m) if costs is None else costs
    alpha = np.zeros((len(matrices), m))
    alpha[solution.terms.kernels, solution.terms.points] = solution.terms.coef
    f = sum(K @ a for K, a in zip(matrices, alpha, strict=True)) + solution.intercept
    return costs @ np.maximum(0.0, 1.0 - y * f) + np.abs(alpha).sum(axis=1) @ penalties


def certificate(matrices, y, penalties, solution, fit_intercept=False, costs=None):
    """The dual value of a solution's z after checking, entry by entry, that it is feasible."""
    m = len(y)
    costs = np.full(m, 1.0 / m) if costs is None else costs
    z = solution.z
    assert np.all(z >= 0) and np.all(z <= costs * (1 + 1e-14))
    if fit_intercept:
        assert abs(z @ y) <= 1e-15
    for K, penalty in zip(matrices, penalties, strict=True):
        assert np.abs(K.T @ (z * y)).max() <= penalty * (1 + 1e-9) + 1e-15 * np.abs(K).max()
    return z.sum()
