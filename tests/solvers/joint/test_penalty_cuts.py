"""Cutting planes under a quadratic penalty: they converge where the alternation cycles."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR as LibSVR

import multikernel as mk
from multikernel.learners.ridge import Ridge
from multikernel.learners.svr import SVR
from multikernel.problem import Machine
from multikernel.problem.regularisers import AlignmentPenalty
from multikernel.solvers.certificate import Stopped
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.penalty_cuts import PenaltyCuts, find_by_penalty_cuts
from tests.naive_alignment import given_grams, outputs

EPSILON = 0.1


def sample(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n)


#: Problems on which the alternation cycles: loss, n, seed, alpha, gammas, how kernels are prepared.
CYCLES = [
    ("epsilon_insensitive", 20, 0, 1 / 30, (), {}),
    ("epsilon_insensitive", 41, 0, 1 / 3, (), {}),
    ("epsilon_insensitive", 41, 5, 1 / 3, (), {}),
    ("epsilon_insensitive", 60, 3, 1 / 30, (), {}),
    ("squared", 41, 3, 1 / 30, (5, 0.01, 2.5), {"center": False, "normalize": "trace"}),
    ("squared", 60, 0, 1 / 30, (5, 0.01, 2.5), {"center": False, "normalize": "trace"}),
]


def gaussians(X):
    """Seven Gaussians, a linear kernel and two polynomials."""
    return mk.default_bank(X, kind="gaussians")


def prepared(X, center=True, normalize="multiplicative"):
    """The kernels of the default bank as matrices, by the plain functions."""
    matrices = [kernel(X) for kernel in gaussians(X)]
    if center:
        matrices = [mk.center(K) for K in matrices]
    return [mk.normalize(K, normalize) for K in matrices]


def penalty(matrices, y, gammas):
    """c and Q of eq. (9), from centred matrices."""
    gamma, ridge, norm = gammas or (1.0, 1.0, 0.5)
    centred, yc = [mk.center(K) for K in matrices], y - y.mean()
    c = gamma * np.array([yc @ K @ yc for K in centred])
    M = np.array([[np.vdot(K, L) for L in centred] for K in centred])
    return c, norm * M + ridge * np.eye(len(M))


def most(Q, c):
    """``max_{theta >= 0} c'theta - theta'Q theta`` by scipy's non-negative least squares."""
    R = np.linalg.cholesky(Q).T
    theta, _ = nnls(R, np.linalg.solve(R.T, c / 2), maxiter=10_000)
    return c @ theta - theta @ Q @ theta


def both_values(model, matrices, y, loss, alpha, gammas):
    """Primal and dual value of the returned weights, coefficients and intercept, written out."""
    s = np.zeros(len(y))
    s[model.support_] = model.dual_coef_[:, 0]
    theta, C = model.kernel_weights_, 1.0 / alpha
    c, Q = penalty(matrices, y, gammas)
    a = np.array([s @ K @ s for K in matrices])
    error = y - sum(w * K for w, K in zip(theta, matrices, strict=True)) @ s - model.intercept_
    if loss == "squared":
        losses, dual = C * error @ error / 2, s @ y - s @ s / (2 * C)
    else:
        assert np.all(np.abs(s) <= C * (1 + 1e-12))
        losses = C * np.sum(np.maximum(np.abs(error) - EPSILON, 0.0))
        dual = s @ y - EPSILON * np.abs(s).sum()
    assert abs(s.sum()) <= 1e-9 * np.abs(s).sum()
    primal = (theta @ a - c @ theta + theta @ Q @ theta) / 2 + losses
    return primal, dual - most(Q, a + c) / 2


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize(("loss", "n", "seed", "alpha", "gammas", "how"), CYCLES)
def test_it_converges_where_the_alternation_cycles(loss, n, seed, alpha, gammas, how, tol):
    X, y = sample(n, seed)
    rule = mk.AlignmentRegularized(*gammas, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mk.MultiKernelRegressor(
            gaussians(X), weighting=rule, loss=loss, alpha=alpha, **how
        ).fit(X, y)
    assert model.duality_gap_ <= tol
    primal, dual = both_values(model, prepared(X, **how), y, loss, alpha, gammas)
    assert -1e-9 * abs(primal) <= primal - dual <= 1.01 * tol * abs(primal)
    unit = 2 * alpha if loss == "squared" else alpha
    np.testing.assert_allclose(model.objective_, unit * primal, rtol=1e-8)
    assert len(model.history_) <= 30


@pytest.mark.parametrize(("loss", "n", "seed", "alpha", "gammas", "how"), CYCLES)
def test_the_alternation_cycles_there_and_quotes_the_gap_that_it_returns(
    loss, n, seed, alpha, gammas, how
):
    """The problems of this file are hard: more alternations do not help."""
    X, y = sample(n, seed)
    grams = given_grams([kernel(X) for kernel in gaussians(X)], True, "multiplicative")
    if how:
        grams = given_grams([kernel(X) for kernel in gaussians(X)], False, "trace")
    rule = mk.AlignmentRegularized(*gammas, max_iter=300)
    learner = Ridge(alpha) if loss == "squared" else SVR(alpha, epsilon=EPSILON)
    with pytest.warns(ConvergenceWarning) as caught:
        found = find_by_alternation(grams, outputs(y), rule, learner)
    assert found.machine.gap > 2e-3
    assert f"relative duality gap of {found.machine.gap:.2g}," in str(caught[0].message)


def test_support_vector_regression_against_libsvm():
    """The objective in the weights, with libsvm inside, has no lower value than the one found."""
    loss, n, seed, alpha, gammas, _ = CYCLES[1]
    X, y = sample(n, seed)
    matrices = prepared(X)
    c, Q = penalty(matrices, y, gammas)

    def objective(theta):
        K = np.tensordot(theta, matrices, axes=1)
        machine = LibSVR(kernel="precomputed", C=1 / alpha, epsilon=EPSILON, tol=1e-9).fit(K, y)
        s = np.zeros(n)
        s[machine.support_] = machine.dual_coef_[0]
        a = np.array([s @ L @ s for L in matrices])
        value = s @ y - EPSILON * np.abs(s).sum() - (theta @ a + c @ theta - theta @ Q @ theta) / 2
        return value, (-a - c) / 2 + Q @ theta

    model = mk.MultiKernelRegressor(
        gaussians(X), weighting=mk.AlignmentRegularized(tol=1e-7), loss=loss, alpha=alpha
    ).fit(X, y)
    found = model.objective_ / alpha
    np.testing.assert_allclose(objective(model.kernel_weights_)[0], found, rtol=1e-6)
    start = np.full(len(matrices), model.kernel_weights_.mean())
    bounds = [(0, None)] * len(start)
    other = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    assert objective(start)[0] > found + 1e-3 * abs(found)
    np.testing.assert_allclose(other.fun, found, rtol=1e-5)


def test_ridge_regression_against_l_bfgs():
    """Eq. (9) in closed form: twice the objective is y'(K + alpha I)^-1 y with the penalty."""
    _, n, seed, alpha, gammas, how = CYCLES[4]
    X, y = sample(n, seed)
    matrices = prepared(X, **how)
    c, Q = penalty(matrices, y, gammas)
    size = 1 / np.sqrt(np.diag(Q))

    def objective(x):
        theta = size * x
        K = np.tensordot(theta, matrices, axes=1) + alpha * np.eye(n)
        s = np.linalg.solve(K, y)
        a = np.array([s @ L @ s for L in matrices])
        value = y @ s - c @ theta + theta @ Q @ theta
        return value, size * (-a - c + 2 * Q @ theta)

    model = mk.MultiKernelRegressor(
        gaussians(X),
        weighting=mk.AlignmentRegularized(*gammas, tol=1e-9),
        alpha=alpha,
        fit_intercept=False,
        **how,
    ).fit(X, y)
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    x = np.full(len(matrices), (model.kernel_weights_ / size).mean())
    other = minimize(
        objective, x, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(x), options=options
    )
    found = model.objective_ / alpha
    np.testing.assert_allclose(objective(model.kernel_weights_ / size)[0], found, rtol=1e-9)
    np.testing.assert_allclose(found, other.fun, rtol=1e-7)


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_a_survey_of_widths_costs_and_seeds(loss):
    gammas = () if loss != "squared" else (5, 0.01, 2.5)
    how = {} if loss != "squared" else {"center": False, "normalize": "trace"}
    for seed in range(6):
        X, y = sample(30 + seed, seed)
        for alpha in (1 / 30, 1 / 3, 3.0):
            rule = mk.AlignmentRegularized(*gammas)
            model = mk.MultiKernelRegressor(
                gaussians(X), weighting=rule, loss=loss, alpha=alpha, **how
            )
            assert model.fit(X, y).duality_gap_ <= 1e-3, (seed, alpha)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("gammas", [(1, 1, 0.5), (5, 0.01, 2.5), (0, 1e-3, 0), (0, 1e-6, 1e-4)])
def test_classifiers_with_two_and_more_classes(loss, gammas):
    X, f = sample(40, 1)
    for y in (f > 0, np.digitize(f, [-0.5, 0.5])):
        for C in (0.01, 1.0, 100.0):
            rule = mk.AlignmentRegularized(*gammas, tol=1e-4)
            model = mk.MultiKernelClassifier(weighting=rule, loss=loss, C=C).fit(X, y)
            assert model.duality_gap_ <= 1e-4, C


def test_the_warning_quotes_the_gap_of_the_answer():
    loss, n, seed, alpha, _, _ = CYCLES[1]
    X, y = sample(n, seed)
    model = mk.MultiKernelRegressor(
        gaussians(X),
        weighting=mk.AlignmentRegularized(max_iter=3, tol=1e-9),
        loss=loss,
        alpha=alpha,
    )
    with pytest.warns(ConvergenceWarning, match="after max_iter=3 training runs") as caught:
        model.fit(X, y)
    assert len(model.history_) == 3
    assert model.duality_gap_ == min(entry["gap"] for entry in model.history_)
    assert f"gap of {model.duality_gap_:.2g}, above tol=1e-09" in str(caught[0].message)


def test_predictors_without_precision_are_told_apart():
    """Weights that stop moving before the gap is small: the predictor is not exact."""
    _, n, seed, alpha, _, _ = CYCLES[1]
    X, y = sample(n, seed)
    grams = given_grams([kernel(X) for kernel in gaussians(X)], True, "multiplicative")

    class Rough(Ridge):
        def fit(self, gram, target, *, start=None):
            machine = super().fit(gram, target, start=start)
            coef = machine.coef + 0.01 * np.std(machine.coef) * np.outer(np.sin(np.arange(n)), [1])
            return Machine(coef - coef.mean(), machine.intercept, 0.0, 0.0, 1)

    rule = mk.AlignmentRegularized(tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"at the precision of its predictors.*Raise tol\."):
        found = find_by_penalty_cuts(grams, outputs(y), rule, Rough(alpha))
    assert 1e-9 < found.machine.gap < 1e-2
    assert len(found.history) < 60


def test_an_interrupt_keeps_the_best_iterate():
    _, n, seed, alpha, _, _ = CYCLES[1]
    X, y = sample(n, seed)
    grams = given_grams([kernel(X) for kernel in gaussians(X)], True, "multiplicative")

    class Interrupting(SVR):
        runs = 0

        def fit(self, gram, target, *, start=None):
            Interrupting.runs += 1
            if Interrupting.runs == 4:
                raise KeyboardInterrupt
            return super().fit(gram, target, start=start)

    rule = mk.AlignmentRegularized(tol=1e-9)
    with pytest.raises(Stopped) as stopped:
        find_by_penalty_cuts(grams, outputs(y), rule, Interrupting(alpha, epsilon=EPSILON))
    found = stopped.value.found
    assert len(found.history) == 3
    assert found.machine.gap == min(entry["gap"] for entry in found.history)


def test_bounds_enclose_the_optimum_in_every_round():
    loss, n, seed, alpha, _, _ = CYCLES[2]
    X, y = sample(n, seed)
    rule = mk.AlignmentRegularized(tol=1e-8)
    history = (
        mk.MultiKernelRegressor(gaussians(X), weighting=rule, loss=loss, alpha=alpha)
        .fit(X, y)
        .history_
    )
    lower, upper = (np.array([entry[name] for entry in history]) for name in ("lower", "upper"))
    assert np.all(np.diff(lower) >= 0) and np.all(np.diff(upper) <= 0)
    assert np.all(lower <= upper[-1] + 1e-9 * abs(upper[-1]))


class TestModel:
    """The minimum of cuts and penalty."""

    def model(self, n_cuts, p=4, seed=0):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((p, p))
        rule = AlignmentPenalty(rng.uniform(-1, 1, p), B @ B.T + 0.1 * np.eye(p))
        model = PenaltyCuts(rule)
        for _ in range(n_cuts):
            model.add(float(rng.uniform(0, 1)), rng.uniform(0, 2, p))
        return model

    def height(self, model, theta):
        rule = model.rule
        cut = np.max(model.L - 0.5 * model.A @ theta)
        return cut + 0.5 * (theta @ rule.Q @ theta - rule.linear @ theta)

    @pytest.mark.parametrize("n_cuts", [1, 2, 5, 20])
    def test_the_lower_bound_is_attained(self, n_cuts):
        for seed in range(20):
            model = self.model(n_cuts, seed=seed)
            value, theta = model.minimum(np.ones(4))
            assert np.all(theta >= 0)
            np.testing.assert_allclose(self.height(model, theta), value, rtol=1e-7, atol=1e-9)

    def test_without_least_distances_the_bound_still_rises(self, monkeypatch):
        """Steps between two multipliers converge too, if slowly."""
        exact, slow = self.model(5), self.model(0)
        value, _ = exact.minimum(np.ones(4))
        monkeypatch.setattr(PenaltyCuts, "_proximal_steps", lambda self, theta: None)
        lower, bounds = -np.inf, []
        for r in [0, *np.arange(300) % 5]:
            slow.add(exact.L[r], exact.A[r])
            lower, _ = slow.minimum(np.ones(4))
            bounds.append(lower)
        assert np.all(np.diff(bounds) >= -1e-12)
        assert value - 1e-3 <= lower <= value + 1e-9
