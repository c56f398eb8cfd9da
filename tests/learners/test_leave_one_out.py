"""Leave-one-out residuals against explicit refits, and their gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.leave_one_out import (
    LeaveOneOutProblem,
    best_ridge,
    is_centred,
    leave_one_out,
    leave_one_out_errors,
)
from multikernel.learners.ridge import Ridge
from multikernel.problem import Target

N = 25


def problem(seed=0, outputs=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    K = 4.0 * np.exp(-((X[:, None] - X) ** 2).sum(-1))
    Y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((N, outputs)) + 5.0
    return X, K, Y


def solve(K, Y, costs, intercept):
    """Coefficients and intercepts of ridge regression, by the optimality conditions."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + np.diag(1.0 / costs)
    if not intercept:
        return np.linalg.solve(A[:n, :n], Y), np.zeros(Y.shape[1])
    A[:n, n] = A[n, :n] = 1.0
    solution = np.linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:n], solution[n]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_residuals_are_those_of_refits(intercept, weighted, alpha):
    _, K, Y = problem()
    rng = np.random.default_rng(1)
    copies = rng.integers(1, 4, N).astype(float) if weighted else None
    class_weight = rng.uniform(0.5, 2.0, N) if weighted else None
    target = Target(Y, "regression", copies, class_weight)
    setting = LeaveOneOutProblem.of(target, intercept, alpha)
    fit, errors = leave_one_out(K, setting), leave_one_out_errors(K, setting)
    for name in ("coef", "residuals", "error"):
        np.testing.assert_allclose(getattr(errors, name), getattr(fit, name), rtol=1e-10, atol=1e-9)
    costs = target.loss_weights / alpha
    for i in range(N):
        left, keep = costs.copy(), np.ones(N, dtype=bool)
        if copies is None or copies[i] == 1:
            keep[i] = False
        else:
            left[i] *= (copies[i] - 1) / copies[i]  # one of several copies
        s, b = solve(K[np.ix_(keep, keep)], Y[keep], left[keep], intercept)
        prediction = K[i, keep] @ s + b
        np.testing.assert_allclose(fit.predictions[i], prediction, rtol=0, atol=1e-9)
        np.testing.assert_allclose(fit.residuals[i], Y[i] - prediction, rtol=0, atol=1e-9)
    assert fit.error == pytest.approx(costs @ np.sum(fit.residuals**2, axis=1))


def test_a_weight_of_two_is_a_repetition():
    _, K, Y = problem()
    weights = np.ones(N)
    weights[:5] = 2.0
    rows = np.append(np.arange(N), np.arange(5))
    once = leave_one_out(K, LeaveOneOutProblem.of(Target(Y, "regression", weights), True))
    repeated = Target(Y[rows], "regression")
    twice = leave_one_out(K[np.ix_(rows, rows)], LeaveOneOutProblem.of(repeated, True))
    np.testing.assert_allclose(once.residuals, twice.residuals[:N], atol=1e-10)
    assert once.error == pytest.approx(twice.error)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_that_of_differences(intercept, weighted):
    _, K, Y = problem()
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.3, 3.0, N) if weighted else None
    setting = LeaveOneOutProblem.of(Target(Y, "regression", weights), intercept)
    fit = leave_one_out(K, setting)
    G = fit.gradient()
    np.testing.assert_array_equal(G, G.T)
    for _ in range(5):
        D = rng.standard_normal((N, N))
        D, h = D + D.T, 1e-5
        up, down = (leave_one_out(K + sign * h * D, setting).error for sign in (1, -1))
        assert np.sum(G * D) == pytest.approx((up - down) / (2 * h), rel=1e-5)
    assert fit.scale_derivative() == pytest.approx(np.sum(G * K), rel=1e-9)


def test_residuals_stay_finite_for_copies_and_huge_kernels():
    X, _, Y = problem()
    X = np.vstack([X, X])
    Y = np.vstack([Y, Y + 1.0])
    K = 1e9 * np.exp(-((X[:, None] - X) ** 2).sum(-1))
    fit = leave_one_out(K, LeaveOneOutProblem.of(Target(Y, "regression"), True))
    assert np.isfinite(fit.residuals).all()
    assert np.isfinite(fit.gradient()).all()
    # The copy of a sample that stays tells all there is to know: its target is off by one.
    np.testing.assert_allclose(np.abs(fit.residuals), 1.0, atol=1e-3)


@pytest.mark.parametrize("n", [N, 300])  # the search begins on a part of the second
def test_best_ridge_is_the_minimum_of_a_grid(n):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 3))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(n)

    def prepared(rows):
        grams = mk.gaussians([0.5]).plan(X).grams(X[rows], budget=MemoryBudget.of(None))
        gram = grams.corrected(True, "multiplicative").combine(np.ones(1))
        return gram, Target(y[rows, None], "regression")

    gram, target = prepared(np.arange(n))
    alpha, fit = best_ridge(gram, target, True)
    grid = np.geomspace(1e-6, 1e3, 100)
    setting = LeaveOneOutProblem.of(target, True)
    errors = [leave_one_out(gram.dense() / a, setting).error for a in grid]
    assert fit.error <= min(errors) * (1 + 1e-3)
    assert alpha == pytest.approx(grid[int(np.argmin(errors))], rel=0.25)
    other, _ = best_ridge(*prepared(rng.permutation(n)), True)
    assert other == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("weighting", ["uniform", "alignf", "loo"])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_alpha_by_leave_one_out_in_single_precision(rng, weighting, size):
    """Whether rounding matters depends on the constant that was chosen."""
    X = rng.normal(size=(60, 3))
    y = size * (np.sin(X[:, 0]) + 0.1 * rng.normal(size=60))
    one, other = (
        mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), weighting, alpha="loo").fit(Z, y)
        for Z in (X.astype(np.float32), X)
    )
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-3 * np.abs(y).max())


@pytest.mark.parametrize("outputs", [1, 2])
def test_regressor_with_alpha_by_leave_one_out(outputs):
    X, _, Y = problem(outputs=outputs)
    y = Y if outputs > 1 else Y[:, 0]
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), "uniform", alpha="loo").fit(X, y)
    assert model.loo_predictions_.shape == y.shape
    total = np.sum((y - model.loo_predictions_) ** 2)
    for alpha in np.geomspace(1e-4, 1e2, 30):
        left_out = np.empty_like(y)
        K = fixed_kernel(X)
        for i in range(N):
            keep = np.arange(N) != i
            s, b = solve(K[np.ix_(keep, keep)] / alpha, Y[keep], np.ones(N - 1), True)
            left_out[i] = (K[i, keep] @ s / alpha + b).reshape(y[i].shape)
        assert np.sum((y - left_out) ** 2) >= total * (1 - 1e-3)


def fixed_kernel(X):
    """The uniform combination that the regressor above learns on the whole sample."""
    D = ((X[:, None] - X) ** 2).sum(-1)
    total = 0.0
    for gamma in (0.1, 1.0):
        K = np.exp(-gamma * D)
        K = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
        total = total + 0.5 * K * len(K) / np.trace(K)
    return total


@pytest.mark.parametrize("alpha", [0.3, "loo"])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_an_intercept_the_kernel_is_centred_without_the_sample(rng, alpha, weighted):
    _, K, Y = problem()
    Y = Y + rng.normal(size=Y.shape)  # else "loo" chooses an ill-conditioned system
    copies = rng.integers(1, 3, N).astype(float) if weighted else np.ones(N)
    grams = (
        mk.precomputed([K])
        .plan(mk.sample_ids(N))
        .grams(mk.sample_ids(N), budget=MemoryBudget.of(None), sample_weight=copies)
    )
    target = Target(Y, "regression", copies)
    learner = Ridge(alpha, fit_intercept=False, leave_one_out=True)
    machine = learner.fit(grams.corrected(True, None).combine(np.ones(1)), target)
    ridge = alpha if machine.chosen is None else machine.chosen
    for i in range(N):
        left = copies - (np.arange(N) == i)
        keep = left > 0
        to_mean = np.eye(N) - left / left.sum()
        centred = to_mean @ K @ to_mean.T
        s, _ = solve(centred[np.ix_(keep, keep)], Y[keep], left[keep] / ridge, False)
        np.testing.assert_allclose(machine.left_out[i], centred[i, keep] @ s, rtol=0, atol=1e-9)


def test_centring_is_known_or_seen_in_a_few_rows(rng, monkeypatch):
    """Only a kernel that might be centred, but is not known to be, is multiplied by a vector."""
    X, omega = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    target = Target(X[:, :1], "regression", omega)
    bank, products = mk.KernelBank([mk.Gaussian(0.3), mk.Laplacian(0.2)]), []

    def combined(grams, center):
        gram = grams.corrected(center, "multiplicative").combine(np.ones(grams.p))
        matvec = gram.matvec
        monkeypatch.setattr(gram, "matvec", lambda v: products.append(1) or matvec(v))
        return gram

    def built(weights):
        return engines.build(bank.plan(X), X, sample_weight=weights)

    assert is_centred(combined(built(omega), True), target) and not products
    assert not is_centred(combined(built(omega), False), target) and not products
    assert not is_centred(combined(built(None), True), target)
    U = X - omega @ X / omega.sum()
    ids, given = mk.sample_ids(60), mk.precomputed([U @ U.T])
    matrices = engines.build(given.plan(ids), ids, sample_weight=omega)
    products.clear()
    assert is_centred(combined(matrices, False), target) and products


def test_joint_weightings_and_svr_refuse_alpha_by_leave_one_out():
    X, _, Y = problem(outputs=1)
    y = Y[:, 0]
    with pytest.raises(ValueError, match="two-stage weighting"):
        mk.MultiKernelRegressor(mk.gaussians([1.0]), mk.LpNorm(2), alpha="loo").fit(X, y)
    with pytest.raises(ValueError, match="loss='squared'"):
        mk.MultiKernelRegressor(
            mk.gaussians([1.0]), "uniform", alpha="loo", loss="epsilon_insensitive"
        ).fit(X, y)
    with pytest.raises(ValueError, match="two-stage weighting"):
        mk.MultiKernelClassifier(mk.gaussians([1.0]), mk.LpNorm(2), C="loo").fit(X, y > 5)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_classifiers_take_the_cost_that_least_squares_chooses(loss):
    X, _, Y = problem(outputs=1)
    y = Y[:, 0] > 5
    model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), "uniform", C="loo", loss=loss)
    model.fit(X, y)
    target = Target(np.where(y, 1.0, -1.0)[:, None], "classification")
    grams = (
        mk.gaussians([0.1, 1.0])
        .plan(X)
        .grams(X, budget=MemoryBudget.of(None))
        .corrected(True, "multiplicative")
    )
    alpha, _ = best_ridge(grams.combine(np.array([0.5, 0.5])), target, True)
    same = mk.MultiKernelClassifier(
        mk.gaussians([0.1, 1.0]), "uniform", C=1 / alpha, loss=loss
    ).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-8)
    assert hasattr(model, "loo_score_") == (loss == "squared")
