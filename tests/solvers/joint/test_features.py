"""Sparse learning over kernels of rank one: linear programs and least squares against the rest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.rankone import RankOneGrams
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.problem.losses import EpsilonInsensitive, Hinge, Squared
from multikernel.solvers.certificate import Found, Stopped
from multikernel.solvers.joint import features, restricted, subsampled_start
from multikernel.solvers.joint.cutting_plane import find_by_cutting_planes
from multikernel.solvers.joint.features import find_by_features
from multikernel.solvers.joint.warm_start import WarmStart
from multikernel.solvers.levels import Plane, highest, mixture
from multikernel.solvers.spectral.hulls import RankOneKernels
from multikernel.solvers.spectral.lp import free_spectrum
from multikernel.solvers.spectral.problem import Labels

LEARNERS = {"hinge": SVM, "insensitive": SVR, "squared": Ridge}
TIGHT = mk.L1(tol=1e-8)


def columns(
    X: Any, center: bool = True, how: str | None = "trace", weights: np.ndarray | None = None
) -> RankOneGrams:
    bank = mk.per_feature(mk.Linear())
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None), sample_weight=weights)
    return grams.corrected(center, how)


def machine(loss: str, C: float, intercept: bool = True) -> Any:
    cost = {"C": C} if loss == "hinge" else {"alpha": 1.0 / C}
    return LEARNERS[loss](**cost, fit_intercept=intercept)


def sample(seed: int, n: int = 40, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.uniform(-1, 1, p)
    return X, X[:, :5] @ np.array([2.0, -1.5, 1.0, 1.0, -0.5]) + 0.5 * rng.standard_normal(n)


def counts(seed: int, n: int = 60, p: int = 150) -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (n, p)).astype(float)
    X[0] += X.sum(axis=0) == 0
    return sp.csr_array(X), X[:, :6] @ np.array([1.0, -1, 1, -1, 1, -1]) + rng.standard_normal(n)


def target_of(f: np.ndarray, loss: str, weights: np.ndarray | None = None) -> Target:
    if loss == "hinge":
        return Target(np.where(f > np.median(f), 1.0, -1.0)[:, None], "classification", weights)
    return Target(f[:, None] + 3.0, "regression", weights)


def check(found: Found, grams: RankOneGrams, target: Target, learner: Any, tol: float = 1e-8):
    """Optimality conditions that hold for any data, from dense features of our own."""
    U = grams.dense_features() * np.sqrt(grams.scale)
    theta, s, C = found.kernel_weights, found.machine.coef[:, 0], learner.costs(target)
    assert found.machine.gap <= tol
    assert theta.min() >= 0
    assert theta.sum() == pytest.approx(1.0)
    assert np.all(theta[grams.degenerate] == 0)
    z = U.T @ s
    level = np.abs(z).max()
    beta = theta * z
    scale = max(level, 1e-300)
    # |u_k's| <= l, with equality where beta_k is not zero, and l = ||beta||_1
    np.testing.assert_allclose(np.abs(z[theta > 0]), level, atol=1e-6 * scale)
    assert np.abs(beta).sum() == pytest.approx(level, rel=1e-6)
    if learner.fit_intercept:
        assert abs(s.sum()) <= 1e-9 * np.abs(s).sum()
    y = target.Y[:, 0]
    f = U @ beta + found.machine.intercept[0]
    loss = learner.loss
    if isinstance(loss, Squared):
        np.testing.assert_allclose(s, C * (y - f), atol=1e-7 * np.abs(s).max())
        return
    if isinstance(loss, Hinge):
        assert np.all((y * s >= 0) & (y * s <= C))
        slack, used = 1.0 - y * f, y * s
    else:
        assert isinstance(loss, EpsilonInsensitive)
        assert np.all(np.abs(s) <= C)
        slack, used = np.abs(y - f) - loss.epsilon, np.abs(s)
    near = 1e-5 * max(1.0, np.abs(f).max())
    assert np.all(used[slack < -near] <= 1e-9 * C.max())
    np.testing.assert_allclose(used[slack > near], C[slack > near], rtol=1e-7)


# -- against cutting planes ------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", list(LEARNERS))
@pytest.mark.parametrize(
    ("center", "how"),
    [(True, "trace"), (False, "trace"), (True, "multiplicative"), (False, None)],
)
def test_the_objective_is_that_of_cutting_planes(loss, intercept, center, how):
    X, f = sample(0, n=24, p=16)
    grams, target = columns(X, center, how), target_of(f, loss)
    learner = machine(loss, 10.0 if how == "trace" else 0.5, intercept)
    found = find_by_features(grams, target, TIGHT, learner)
    check(found, grams, target, learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = find_by_cutting_planes(grams, target, TIGHT, learner, certificate="cuts")
    assert other.machine.gap < 1e-7
    np.testing.assert_allclose(found.machine.objective, other.machine.objective, rtol=1e-6)
    # their weights need not be the best ones for their function: ours are
    parts = other.kernel_weights * np.sqrt(grams.quadratic_forms(other.machine.coef)[:, 0])
    # the objective grows with the square of the distance from the best weights
    near = max(1e-6, np.sqrt(other.machine.gap))
    np.testing.assert_allclose(found.kernel_weights, parts / parts.sum(), atol=near)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", list(LEARNERS))
@pytest.mark.parametrize(("center", "how"), [(True, "trace"), (False, None), (True, "spherical")])
def test_sparse_features_are_dense_features(loss, intercept, center, how):
    X, f = counts(1)
    target, learner = target_of(f, loss), machine(loss, 3.0, intercept)
    some = [columns(V, center, how) for V in (X, X.toarray())]
    found = [find_by_features(grams, target, TIGHT, learner) for grams in some]
    for one, grams in zip(found, some, strict=True):
        check(one, grams, target, learner)
    assert found[0].machine.objective == pytest.approx(found[1].machine.objective, rel=1e-9)


@pytest.mark.parametrize("loss", list(LEARNERS))
def test_costs_and_weights_of_points(loss):
    X, f = counts(2)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(f))
    grams, target = columns(X, weights=weights), target_of(f, loss, weights)
    target = Target(target.Y, target.kind, weights, np.where(f > 0, 4.0, 1.0))
    learner = machine(loss, 5.0)
    found = find_by_features(grams, target, TIGHT, learner)
    check(found, grams, target, learner)
    # a whole number of times is as often in the sample
    often = np.tile([1, 3], len(f) // 2)
    rows = np.repeat(np.arange(len(f)), often)
    weights = often.astype(float)
    grams = columns(X, weights=weights)
    once = find_by_features(grams, target_of(f, "squared", weights), TIGHT, machine("squared", 5.0))
    grams = columns(X[rows])
    many = find_by_features(grams, target_of(f[rows], "squared"), TIGHT, machine("squared", 5.0))
    np.testing.assert_allclose(once.kernel_weights, many.kernel_weights, atol=1e-8)


# -- against linear programs of another make -------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "insensitive"])
def test_beta_solves_the_whole_linear_program_of_its_level(loss, intercept):
    """min l 1'(b+ + b-) + C'xi over the primal, by scipy, and the level that it belongs to."""
    X, f = sample(3)
    grams, target, learner = columns(X), target_of(f, loss), machine(loss, 20.0, intercept)
    found = find_by_features(grams, target, TIGHT, learner)
    U = grams.dense_features() * np.sqrt(grams.scale)
    z = U.T @ found.machine.coef[:, 0]
    level, beta = np.abs(z).max(), found.kernel_weights * z
    n, p = U.shape
    C, y = learner.costs(target), target.Y[:, 0]
    one = np.ones((n, 1))
    if loss == "hinge":
        A = np.hstack([-y[:, None] * np.hstack([U, -U, one]), -np.eye(n)])
        b = -np.ones(n)
    else:
        half = np.hstack([U, -U, one])
        A = np.vstack([np.hstack([half, -np.eye(n)]), np.hstack([-half, -np.eye(n)])])
        b = np.concatenate([y, -y]) + learner.epsilon
    cost = np.concatenate([np.full(2 * p, level), [0.0], C])
    free = (None, None) if intercept else (0.0, 0.0)
    bounds = [(0.0, None)] * (2 * p) + [free] + [(0.0, None)] * n
    lp = linprog(cost, A, b, bounds=bounds, method="highs-ipm")
    values = (U @ beta + found.machine.intercept)[:, None]
    losses = learner.loss.value(values, target.Y, C)[0]
    assert level * np.abs(beta).sum() + losses == pytest.approx(lp.fun, rel=1e-7)
    primal = (0.5 * np.abs(beta).sum() ** 2 + losses) * learner.unit
    assert found.machine.objective == pytest.approx(primal, rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_the_optimum_is_that_of_a_quadratic_program(loss):
    """clarabel: x >= 0, t = 1'x, min t^2/2 + losses."""
    clarabel = pytest.importorskip("clarabel")
    X, f = sample(4, n=30, p=40)
    grams, target, learner = columns(X), target_of(f, loss), machine(loss, 15.0)
    U = grams.dense_features() * np.sqrt(grams.scale)
    n, p = U.shape
    C, y = learner.costs(target), target.Y[:, 0]
    # variables: x+ (p), x- (p), b, t, e (n): losses, or residuals
    size = 2 * p + 2 + n
    P, q = np.zeros((size, size)), np.zeros(size)
    P[2 * p + 1, 2 * p + 1] = 1.0
    values = np.hstack([U, -U, np.ones((n, 1)), np.zeros((n, 1))])
    total = np.concatenate([np.ones(2 * p), [0.0, -1.0], np.zeros(n)])[None]
    above = -np.eye(size)[: 2 * p]
    if loss == "hinge":
        q[-n:] = C
        A = np.vstack(
            [total, above, np.hstack([-y[:, None] * values, -np.eye(n)]), -np.eye(size)[-n:]]
        )
        b = np.concatenate([np.zeros(1 + 2 * p), -np.ones(n), np.zeros(n)])
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * p + 2 * n)]
    else:
        P[-n:, -n:] = np.diag(C)
        A = np.vstack([total, np.hstack([values, np.eye(n)]), above])
        b = np.concatenate([[0.0], y, np.zeros(2 * p)])
        cones = [clarabel.ZeroConeT(1 + n), clarabel.NonnegativeConeT(2 * p)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(A), b, cones, settings
    )
    value = solver.solve().obj_val
    found = find_by_features(grams, target, TIGHT, learner)
    assert found.machine.objective == pytest.approx(value * learner.unit, rel=1e-7)


# -- hard cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", list(LEARNERS))
@pytest.mark.parametrize("C", [1e-6, 0.3, 30.0, 1e4])
def test_optimal_whatever_the_data(seed, loss, C):
    """More features than points, repeated and constant ones, repeated points, uneven scales."""
    rng = np.random.default_rng(seed)
    X, f = sample(seed, n=25 + 10 * seed, p=300)
    X[:, 7] = X[:, 3]
    X[:, 8] = -2.0 * X[:, 3]
    X[:, 9] = 1.5
    X[1], X[2] = X[0], X[0]
    X *= 10.0 ** rng.uniform(-4, 4, X.shape[1])
    grams, target, learner = columns(X), target_of(f, loss), machine(loss, C)
    check(find_by_features(grams, target, mk.L1(), learner), grams, target, learner)


@pytest.mark.parametrize("loss", list(LEARNERS))
def test_features_join_a_small_working_set(loss, monkeypatch):
    X, f = sample(5, n=50, p=400)
    grams, target, learner = columns(X), target_of(f, loss), machine(loss, 50.0)
    whole = find_by_features(grams, target, TIGHT, learner)
    monkeypatch.setattr(features, "FIRST_FEATURES", 3)
    monkeypatch.setattr(features, "MAX_NEW_FEATURES", 5)
    grown = find_by_features(grams, target, TIGHT, learner)
    check(grown, grams, target, learner)
    assert grown.machine.objective == pytest.approx(whole.machine.objective, rel=1e-9)
    assert len(grown.history) > len(whole.history)
    warm = find_by_features(grams, target, TIGHT, learner, warm=WarmStart(whole.kernel_weights))
    assert warm.machine.objective == pytest.approx(whole.machine.objective, rel=1e-9)
    assert len(warm.history) <= len(grown.history)


def test_large_means_cost_no_digits():
    """Sparse columns that are full, far from zero: years, say."""
    X, f = counts(6, n=50, p=60)
    X = X.toarray()
    X[:, :3] += 1e6
    target, learner = target_of(f, "hinge"), machine("hinge", 10.0)
    grams = columns(sp.csr_array(X))
    check(find_by_features(grams, target, TIGHT, learner), grams, target, learner)


def test_nothing_to_learn_from():
    """Two classes with the same points: the best function is constant, and that is proven."""
    X = np.random.default_rng(0).standard_normal((20, 30))
    X = np.vstack([X, X, X])
    y = np.repeat([1.0, -1.0, -1.0], 20)
    grams, target = columns(X), Target(y[:, None], "classification")
    found = find_by_features(grams, target, mk.L1(), SVM(C=2.0))
    np.testing.assert_allclose(found.kernel_weights, 1.0 / 30)
    assert found.machine.gap <= 1e-8
    assert found.machine.objective == pytest.approx(2 * 2.0 * 20)
    assert found.machine.intercept[0] == pytest.approx(-1.0)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_very_uneven_classes(C):
    X, f = counts(7, n=200, p=100)
    y = np.where(f > np.sort(f)[-4], 1.0, -1.0)
    grams, target = columns(X), Target(y[:, None], "classification")
    found = find_by_features(grams, target, mk.L1(), SVM(C=C))
    assert found.machine.gap <= 1e-8


def test_one_class_only():
    X, _ = counts(8)
    y = np.ones((X.shape[0], 1))
    found = find_by_features(columns(X), Target(y, "classification"), mk.L1(), SVM())
    assert not found.machine.coef.any()
    assert found.machine.objective == 0


def test_separated_points_at_any_cost():
    """From some C on nothing changes: the hard margin, which is another linear program."""
    X, f = sample(9, n=30, p=200)
    grams, target = columns(X), target_of(f, "hinge")
    U = grams.dense_features() * np.sqrt(grams.scale)
    hard = free_spectrum(RankOneKernels(U), Labels(target.Y[:, 0], "hard"))
    for C in (1e5, 1e8, 1e11):
        found = find_by_features(grams, target, mk.L1(), SVM(C=C))
        # that is what C makes of the last digit of f
        noise = 64 * np.finfo(float).eps * C * len(f) / hard.machine.primal
        assert found.machine.gap <= 1e-8 + noise
        np.testing.assert_allclose(found.machine.objective, hard.machine.primal, rtol=1e-8 + noise)
        np.testing.assert_allclose(found.kernel_weights, hard.weights, atol=1e-7)


def test_the_free_spectrum_at_large_costs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    for C in (1e3, 1e6):
        found = free_spectrum(RankOneKernels(X), Labels(y, "1-norm", C))
        assert found.gap <= 1e-8


# -- the way there ---------------------------------------------------------------------------------


def test_interrupts_hand_over_what_there_is():
    X, f = sample(10, p=300)
    grams, target, learner = columns(X), target_of(f, "hinge"), machine("hinge", 100.0)
    seen: list[dict[str, Any]] = []

    def stop(entry: dict[str, Any]) -> None:
        seen.append(entry)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as stopped:
        find_by_features(grams, target, mk.L1(), learner, report=stop)
    found = stopped.value.found
    assert len(found.history) == 3
    assert found.kernel_weights.sum() == pytest.approx(1.0)
    assert np.isfinite(found.machine.gap)
    best = find_by_features(grams, target, mk.L1(), learner)
    assert found.machine.objective >= best.machine.objective * (1 - 1e-9)
    assert found.machine.objective * (1 - found.machine.gap) <= best.machine.objective


def test_history_ends_with_the_machine():
    X, f = sample(11, p=300)
    grams, target, learner = columns(X), target_of(f, "squared"), machine("squared", 100.0)
    told: list[dict[str, Any]] = []
    found = find_by_features(grams, target, mk.L1(), learner, report=told.append)
    assert told == found.history
    last = found.history[-1]
    assert last["objective"] == found.machine.objective
    assert last["gap"] == found.machine.gap
    assert last["active"] == np.count_nonzero(found.kernel_weights)
    assert last["support"] == np.count_nonzero(found.machine.coef)


@pytest.mark.parametrize("steps", [0, 2])
def test_cutting_planes_take_over_where_programs_fail(steps, monkeypatch):
    X, f = sample(12, n=30, p=25)
    grams, target, learner = columns(X), target_of(f, "hinge"), machine("hinge", 10.0)
    expected = find_by_features(grams, target, mk.L1(), learner).machine.objective
    solve, calls = restricted.LevelPrograms.solve, []

    def fail(self: Any, level: float) -> Any:
        calls.append(level)
        return solve(self, level) if len(calls) <= steps else None

    monkeypatch.setattr(restricted.LevelPrograms, "solve", fail)
    found = find_by_features(grams, target, mk.L1(tol=1e-5), learner)
    assert len(calls) == steps + 1
    assert found.machine.gap <= 1e-5
    assert found.machine.objective == pytest.approx(expected, rel=2e-5)


def test_estimators_take_it_by_themselves(monkeypatch):
    X, f = counts(13, p=24)
    y = f > 0
    called: list[int] = []

    def spy(*args: Any, **named: Any) -> Found:
        called.append(1)
        return find_by_features(*args, **named)

    monkeypatch.setattr(features, "find_by_features", spy)

    def fit(rule: mk.LpNorm, p: int) -> mk.MultiKernelClassifier:
        bank = mk.per_feature(mk.Linear())
        model = mk.MultiKernelClassifier(bank, rule, C=5.0, class_weight="balanced")
        return model.fit(X[:, :p], y)

    model = fit(mk.L1(), 24)
    assert called
    assert model.duality_gap_ <= 1e-8
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    called.clear()
    other = fit(mk.L1(tol=1e-6, solver="cutting-planes"), 24)
    fit(mk.LpNorm(1.1), 24)
    assert not called
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_predictions_are_linear_functions(loss):
    X, f = counts(14)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(f))
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Linear()), "l1", alpha=0.05, loss=loss)
    model.fit(X, f, sample_weight=weights)
    assert model.duality_gap_ <= 1e-8
    V = X.toarray()
    at_zero = model.predict(np.zeros((1, V.shape[1])))
    slopes = model.predict(np.eye(V.shape[1])) - at_zero
    assert np.all(np.abs(slopes[model.kernel_weights_ == 0]) < 1e-12)
    np.testing.assert_allclose(model.predict(X), V @ slopes + at_zero, atol=1e-9)


def test_no_subsample_is_asked(monkeypatch):
    def never(*args: Any) -> None:
        raise AssertionError("weights on a part of the points are of no use here")

    monkeypatch.setattr(subsampled_start, "SubsampledStart", never)
    X, f = counts(15, n=subsampled_start.MIN_SAMPLES, p=50)
    assert mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), "l1").fit(X, f > 0).n_iter_ > 1


# -- planes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_highest_point_below_planes(seed):
    rng = np.random.default_rng(seed)
    planes = [
        Plane(np.array([t]), float(t), float(L))
        for t, L in zip(rng.uniform(0, 3, 6), rng.uniform(0, 5, 6), strict=True)
    ]
    level, top = highest(planes)
    grid = np.linspace(0, 4, 40_001)
    values = np.min([plane.at(grid) for plane in planes], axis=0) - 0.5 * grid**2
    assert values.max() <= top + 1e-12
    assert values.max() >= top - 5 * grid[1]  # no slope is steeper
    assert min(plane.at(level) for plane in planes) - 0.5 * level**2 == pytest.approx(top)
    assert mixture(planes, level)[0] == pytest.approx(level, abs=1e-9)
