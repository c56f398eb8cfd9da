"""Jackknife+ in closed form against n refits; conformal quantiles against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.learners.jackknife import (
    Jackknife,
    folds_interval,
    plus_interval,
    split_radius,
)
from multikernel.learners.leave_one_out import LeaveOneOutProblem, leave_one_out
from multikernel.learners.ridge import Ridge
from multikernel.problem import Target

from .test_left_out import Solvable, gaussian


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_functions_without_each_sample_are_those_of_refits(rng, weights, fit_intercept):
    n, alpha = 25, 0.3
    X, new = rng.normal(size=(n, 3)), rng.normal(size=(6, 3))
    both = gaussian(np.vstack([X, new]))
    K, cross = both[:n, :n], both[n:, :n]
    Y = rng.normal(size=(n, 2)) + 5.0
    omega = rng.integers(1, 4, n).astype(float) if weights else None
    target = Target(Y, "regression", omega)
    fit = leave_one_out(K, LeaveOneOutProblem.of(target, fit_intercept, alpha))
    jackknife = Jackknife.of(K, fit, alpha, n if omega is None else omega.sum())
    learner = Ridge(alpha, fit_intercept=fit_intercept)
    machine = learner.fit(Solvable(K), target)
    centre = cross @ machine.coef + machine.intercept
    changes = jackknife.changes(cross)
    for i in range(n):
        left = np.ones(n) if omega is None else omega.copy()
        left[i] -= 1
        rest = np.flatnonzero(left > 0)
        again = learner.fit(
            Solvable(K[np.ix_(rest, rest)]), Target(Y[rest], "regression", left[rest])
        )
        expected = cross[:, rest] @ again.coef + again.intercept
        found = centre + changes[:, [i]] * jackknife.steps[i]
        np.testing.assert_allclose(found, expected, atol=1e-9)
        residual = Y[i] - K[i, rest] @ again.coef - again.intercept
        np.testing.assert_allclose(jackknife.residuals[i], residual, atol=1e-9)


def test_weights_are_repetitions(rng):
    n, alpha = 15, 0.5
    omega = rng.integers(1, 4, n)
    copies = np.repeat(np.arange(n), omega)
    both = gaussian(rng.normal(size=(n + 4, 2)))
    K, cross = both[:n, :n], both[n:, :n]
    Y = rng.normal(size=(n, 1))
    kinds = []
    for rows, weights in ((np.arange(n), omega.astype(float)), (copies, None)):
        own = K[np.ix_(rows, rows)]
        target = Target(Y[rows], "regression", weights)
        fit = leave_one_out(own, LeaveOneOutProblem.of(target, True, alpha))
        jackknife = Jackknife.of(own, fit, alpha, float(omega.sum()))
        functions = jackknife.changes(cross[:, rows]) * jackknife.steps[:, 0]
        ends = plus_interval(functions, np.abs(jackknife.residuals[:, 0]), 0.8, weights)
        kinds.append((*ends, jackknife.deviations(cross[:, rows], np.diag(both)[n:])[:, 0]))
    np.testing.assert_allclose(kinds[0], kinds[1], atol=1e-9)


def test_standard_deviations_are_those_of_the_gaussian_process(rng):
    n, alpha = 20, 0.4
    both = gaussian(rng.normal(size=(n + 5, 3)))
    K, cross = both[:n, :n], both[n:, :n]
    y = rng.normal(size=n)
    target = Target(y[:, None], "regression")
    inverse = np.linalg.inv(K + alpha * np.eye(n))
    spread = 1 + alpha - np.einsum("mn,nk,mk->m", cross, inverse, cross)
    tau2 = np.mean((inverse @ y) ** 2 / np.diag(inverse))
    fit = leave_one_out(K, LeaveOneOutProblem.of(target, False, alpha))
    found = Jackknife.of(K, fit, alpha, n).deviations(cross, np.ones(5))[:, 0]
    np.testing.assert_allclose(found, np.sqrt(tau2 * spread), rtol=1e-10)
    # A flat prior of the intercept is a constant kernel of infinite size.
    fit = leave_one_out(K, LeaveOneOutProblem.of(target, True, alpha))
    found = Jackknife.of(K, fit, alpha, n).deviations(cross, np.ones(5))[:, 0]
    big = 1e4
    inverse = np.linalg.inv(K + big + alpha * np.eye(n))
    spread = 1 + big + alpha - np.einsum("mn,nk,mk->m", cross + big, inverse, cross + big)
    tau2 = np.mean((inverse @ y) ** 2 / np.diag(inverse))
    np.testing.assert_allclose(found, np.sqrt(tau2 * spread), rtol=1e-3)


def test_ends_are_the_order_statistics_of_the_definition(rng):
    functions, residuals = rng.normal(size=(3, 19)), np.abs(rng.normal(size=19))
    lower, upper = plus_interval(functions, residuals, 0.9)
    # a (n + 1) = 2 and (1 - a)(n + 1) = 18, exactly
    np.testing.assert_array_equal(lower, np.sort(functions - residuals, axis=1)[:, 1])
    np.testing.assert_array_equal(upper, np.sort(functions + residuals, axis=1)[:, 17])
    assert split_radius(residuals, 0.9) == np.sort(residuals)[17]
    assert split_radius(residuals, 0.91) == np.sort(residuals)[18]


def test_samples_too_small_for_the_coverage_give_infinite_ends(rng):
    functions, residuals = rng.normal(size=(2, 8)), np.ones(8)
    lower, upper = plus_interval(functions, residuals, 0.9)
    assert np.all(lower == -np.inf) and np.all(upper == np.inf)
    assert split_radius(residuals, 0.9) == np.inf
    assert np.isfinite(plus_interval(functions, residuals, 8 / 9)[1]).all()


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_coverage_of_exchangeable_residuals(coverage):
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(3000):
        errors = np.abs(rng.normal(size=40))
        hits.append(errors[-1] <= split_radius(errors[:-1], coverage))
    assert abs(np.mean(hits) - np.ceil(coverage * 40) / 40) < 3 * np.sqrt(0.25 / 3000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e8])
def test_folds_in_lists_are_those_in_a_matrix(weighted, scale):
    rng = np.random.default_rng(3)
    for n, k in ((9, 3), (40, 10), (301, 7)):
        fold = rng.permutation(np.arange(n) % k)
        functions = scale * (rng.standard_normal((k, 25)) + 3.0)
        residuals = scale * np.round(np.abs(rng.standard_normal(n)), 1)  # many are equal
        weights = rng.integers(1, 4, n).astype(float) if weighted else None
        for coverage in (0.01, 0.5, 0.9, 0.95):
            found = folds_interval(functions, fold, residuals, coverage, weights)
            expected = plus_interval(functions[fold].T, residuals, coverage, weights)
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * scale)
    same = folds_interval(np.ones((k, 4)), fold, np.zeros(n), 0.9)
    np.testing.assert_array_equal(same, np.ones((2, 4)))
