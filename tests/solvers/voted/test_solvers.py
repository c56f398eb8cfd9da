"""Voted kernels: optimum, certificate, and the cases that collapse into each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import multikernel as mk
from multikernel.grams.dense import DenseGrams
from multikernel.grams.memory import MemoryBudget
from multikernel.problem import Target
from multikernel.solvers.voted.columns import KernelColumns
from multikernel.solvers.voted.descent import best_step, descend
from multikernel.solvers.voted.generation import ColumnPool
from multikernel.solvers.voted.held_out import held_out_votes
from multikernel.solvers.voted.path import solve_grid
from multikernel.solvers.voted.problem import VotedProblem, largest_penalty, lower_bound, solve
from tests.naive_voted import (
    MIXED,
    certificate,
    full_program,
    make_columns,
    make_problem,
    objective,
    sample,
)

SOLVERS = ["columns", "lp", "descent"]
every_solver = pytest.mark.parametrize("solver", SOLVERS)
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [False, True])


def matrices_of(kernels, X):
    return [np.asarray(kernel(X, X), dtype=float) for kernel in kernels]


# -- the optimum, and its proof -------------------------------------------------------------------


@every_solver
@with_and_without_intercept
@pytest.mark.parametrize("seed", range(3))
def test_objective_equals_the_whole_program(solver, fit_intercept, seed):
    X, y = sample(seed=seed)
    K = matrices_of(MIXED, X)
    penalties = np.array([0.02, 0.03, 0.02, 0.2, 0.05, 0.02])
    found = solve(make_problem(MIXED, X, y, fit_intercept), penalties, solver)
    best = full_program(K, y, penalties, fit_intercept)
    assert abs(found.objective - best) < 1e-7
    # What is reported is what the coefficients are worth, and the dual point proves it.
    assert found.objective == pytest.approx(objective(K, y, penalties, found), abs=1e-12)
    assert found.bound == pytest.approx(
        certificate(K, y, penalties, found, fit_intercept), rel=1e-9
    )
    assert found.bound <= best + 1e-9
    assert found.gap <= 1e-8
    assert (found.objective - found.bound) / found.objective == pytest.approx(found.gap, abs=1e-9)


@given(
    m=st.integers(3, 25),
    p=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    level=st.floats(-4, -0.5),
)
def test_any_matrices_at_all(m, p, seed, level):
    """Random matrices are about as far from kernels as can be."""
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(p, m, m)) * np.exp(rng.normal(size=(p, 1, 1)))
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    penalties = 10.0**level * rng.uniform(0.5, 2.0, size=p)
    problem = given_problem(K, y)
    best = full_program(K, y, penalties)
    for solver in SOLVERS:
        found = solve(problem, penalties, solver)
        assert abs(found.objective - best) < 1e-7
        assert found.gap <= 1e-6 or found.objective - found.bound < 1e-10
        certificate(K, y, penalties, found)


def given_problem(K, y, costs=None, fit_intercept=False):
    m = len(y)
    stack = np.ascontiguousarray(np.stack(K, axis=-1))
    names, budget = [f"K{k}" for k in range(len(K))], MemoryBudget.of(None)
    grams = DenseGrams.given(stack, np.arange(m), names, budget, symmetric=False)
    columns = KernelColumns(grams, [None] * len(K), budget)
    costs = np.full(m, 1.0 / m) if costs is None else costs
    return VotedProblem(columns, y, costs, fit_intercept)


@with_and_without_intercept
def test_unequal_costs(fit_intercept, rng):
    X, y = sample(30)
    costs = rng.uniform(0.1, 3.0, size=30) / 30
    K = matrices_of(MIXED[:3], X)
    penalties = np.array([0.02, 0.01, 0.03])
    found = solve(given_problem(K, y, costs, fit_intercept), penalties)
    assert abs(found.objective - full_program(K, y, penalties, fit_intercept, costs)) < 1e-7
    certificate(K, y, penalties, found, fit_intercept, costs)


def test_a_basic_solution_has_at_most_as_many_terms_as_points():
    X, y = sample(30)
    found = solve(make_problem(MIXED, X, y), np.full(len(MIXED), 1e-3))
    assert 0 < len(found.terms) <= 30
    assert np.all(found.terms.coef != 0)


def test_many_rounds_with_forgotten_columns():
    """Large enough that columns come and go, and compared with all of them at once."""
    X, y = sample(300, noise=1.0)
    bank = list(mk.gaussians(np.geomspace(0.05, 5.0, 6)))
    problem = make_problem(bank, X, y)
    penalties = np.full(6, 2e-3)
    pool = ColumnPool(problem, whole=False)
    found = pool.solve(penalties)
    assert found.n_iter > 3
    columns = [entry["columns"] for entry in found.history]
    assert min(np.diff(columns)) < 50 and max(columns) < problem.columns.p * problem.columns.n / 4
    whole = solve(problem, penalties, "lp")
    assert found.objective == pytest.approx(whole.objective, rel=1e-9)
    assert found.gap < 1e-8
    values = [entry["objective"] for entry in found.history]
    assert values[-1] == pytest.approx(min(values), rel=1e-12)


# -- special cases --------------------------------------------------------------------------------


@every_solver
def test_large_penalties_leave_nothing_and_just_below_one_column_enters(solver):
    X, y = sample()
    kernels = MIXED[:3]
    problem = make_problem(kernels, X, y)
    limits = largest_penalty(problem)
    K = matrices_of(kernels, X)
    np.testing.assert_allclose(limits, [np.abs(k.T @ y).max() / len(y) for k in K], rtol=1e-12)
    none = solve(problem, limits * (1 + 1e-9), solver)
    assert len(none.terms) == 0 and none.gap == 0.0
    assert none.objective == pytest.approx(1.0, rel=1e-15)
    at = limits * (1 + 1e-9)
    at[1] = limits[1] * (1 - 1e-6)
    one = solve(problem, at, solver)
    assert len(one.terms) == 1 and one.terms.kernels[0] == 1
    assert one.terms.points[0] == np.argmax(np.abs(K[1].T @ y))
    assert one.objective < 1.0


def test_intercept_alone_predicts_the_majority():
    X, y = sample(31)
    y[: np.sum(y > 0) // 2 + 3] = -1.0
    found = solve(make_problem([mk.Gaussian(1.0)], X, y, True), np.array([10.0]))
    assert len(found.terms) == 0
    share = min(np.mean(y > 0), np.mean(y < 0))
    assert found.objective == pytest.approx(2 * share, rel=1e-12)
    assert found.gap < 1e-12


def test_one_kernel_without_complexity_is_the_norm_one_machine():
    """lambda = 0, p = 1: min beta ||alpha||_1 + hinge, written with other variables."""
    X, y = sample(30)
    K = mk.Gaussian(0.5)(X)
    beta, m = 0.01, 30
    found = solve(make_problem([mk.Gaussian(0.5)], X, y), np.array([beta]))
    # variables f (free), alpha+ , alpha-, xi; f = K (alpha+ - alpha-) as equalities
    cost = np.concatenate([np.zeros(m), np.full(2 * m, beta), np.full(m, 1 / m)])
    equal = np.concatenate([np.eye(m), -K, K, np.zeros((m, m))], axis=1)
    margin = np.concatenate([-np.diag(y), np.zeros((m, 2 * m)), -np.eye(m)], axis=1)
    bounds = [(None, None)] * m + [(0, None)] * (3 * m)
    svm = linprog(cost, margin, -np.ones(m), equal, np.zeros(m), bounds=bounds, method="highs")
    assert abs(found.objective - svm.fun) < 1e-7
    alpha = np.zeros(m)
    alpha[found.terms.points] = found.terms.coef
    np.testing.assert_allclose(alpha, svm.x[m : 2 * m] - svm.x[2 * m : 3 * m], atol=1e-6)


@every_solver
def test_a_copy_changes_nothing_and_a_dearer_copy_is_not_used(solver):
    X, y = sample()
    penalties = np.array([0.02, 0.01])
    kernels = [mk.Gaussian(0.4), mk.Gaussian(2.0)]
    single = solve(make_problem(kernels, X, y), penalties, solver)
    K = np.stack(matrices_of([*kernels, mk.Gaussian(0.4)], X))
    twin = solve(given_problem(K, y), np.array([0.02, 0.01, 0.02]), solver)
    dearer = solve(given_problem(K, y), np.array([0.02, 0.01, 0.021]), solver)
    assert twin.objective == pytest.approx(single.objective, rel=1e-9)
    assert dearer.objective == pytest.approx(single.objective, rel=1e-9)
    assert 2 not in dearer.terms.kernels


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e12])
def test_scaling_a_kernel_with_its_penalty_scales_its_coefficients(factor):
    X, y = sample()
    kernels = [mk.Gaussian(0.4), mk.Polynomial(2)]
    K = np.stack(matrices_of(kernels, X))
    penalties = np.array([0.02, 0.1])
    plain = solve(given_problem(K, y), penalties)
    scaled = solve(given_problem(K * [[[factor]], [[1.0]]], y), penalties * [factor, 1.0])
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-9)
    np.testing.assert_array_equal(scaled.terms.kernels, plain.terms.kernels)
    np.testing.assert_array_equal(scaled.terms.points, plain.terms.points)
    back = scaled.terms.coef * np.where(scaled.terms.kernels == 0, factor, 1.0)
    np.testing.assert_allclose(back, plain.terms.coef, rtol=1e-6)


def test_kernels_of_degree_ten():
    """Entries over twenty orders of magnitude, at penalties over eight."""
    X, y = sample(60, noise=0.8)
    X = 2 * X
    kernels = list(mk.polynomials(range(1, 11)))
    problem = make_problem(kernels, X, y)
    K = matrices_of(kernels, X)
    assert np.abs(K[-1]).max() > 1e10 and np.abs(K[-1]).min() < 1e-6
    kappa = np.array([np.sqrt(np.trace(k) * np.diag(k).max()) / 60 for k in K])
    for lam in (1e-1, 1e-3, 1e-6):
        for beta in (1e-2, 1e-8):
            found = solve(problem, lam * kappa + beta)
            assert found.gap < 1e-6
            assert found.objective == pytest.approx(
                objective(K, y, lam * kappa + beta, found), rel=1e-6, abs=1e-10
            )
            certificate(K, y, lam * kappa + beta, found)


def test_identical_points_with_different_labels():
    X, y = sample(20)
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    found = solve(make_problem([mk.Gaussian(1.0)], X, y), np.array([1e-3]))
    assert found.objective == pytest.approx(1.0)
    assert len(found.terms) == 0


def test_zero_penalties_are_refused_by_name():
    X, y = sample(20)
    problem = make_problem([mk.Gaussian(1.0), mk.Linear()], X, y)
    with pytest.raises(ValueError, match=r"'Linear\(\)' has the penalty .* = 0; it must be pos"):
        solve(problem, np.array([0.1, 0.0]))
    # A kernel whose columns all sum to zero is not zero.
    X = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    problem = make_problem([mk.Gaussian(1.0), mk.Linear()], X, X[:, 0])
    with pytest.raises(ValueError, match=r"'Linear\(\)' has the penalty .* = 0; it must be pos"):
        solve(problem, np.array([0.1, 0.0]))
    with pytest.raises(ValueError, match=r"has the penalty .* = nan"):
        solve(problem, np.array([0.1, np.nan]))


@pytest.mark.parametrize("seed", [0, 1, 4])
@pytest.mark.parametrize("penalty", [1e-12, 1e-8, 1e-4])
def test_penalties_that_drown_in_the_rounding_of_their_kernels(seed, penalty):
    """An answer, and an honest bound, where the objective is below the solver's tolerances."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    kernels = list(mk.polynomials(range(1, 11)))
    penalties = np.full(10, penalty)
    found = solve(make_problem(kernels, X, y), penalties, "columns")
    K = matrices_of(kernels, X)
    slow = objective(K, y, penalties, found)
    assert found.objective == pytest.approx(slow, rel=1e-6, abs=1e-10)
    assert found.objective < 1e-4
    # Feasible also in more digits than the solver had.
    G = (X.astype(np.longdouble)[:, None] * X.astype(np.longdouble)).sum(axis=2) + 1
    worst = max(np.abs((G**k).T @ (found.z * y)).max() for k in range(1, 11))
    assert worst <= penalty * (1 + 1e-9)
    assert found.bound == pytest.approx(found.z.sum())
    assert found.bound <= found.objective


def test_overflow_is_refused_by_name():
    X, y = sample(20)
    with pytest.raises(ValueError, match=r"'Polynomial\(degree=400.*overflows"):
        solve(make_problem([mk.Polynomial(400)], 100 * X, y), np.array([0.1]))


def test_a_small_memory_budget_is_respected_or_refused():
    X, y = sample(200)
    problem = make_problem([mk.Gaussian(1.0)], X, y, memory_budget="300kB")
    with pytest.raises(MemoryError, match=r"A linear program with 50 columns on 200 samples needs"):
        solve(problem, np.array([1e-3]))


@pytest.mark.parametrize(("n", "spread"), [(40, 0.0), (1200, 0.1)])
def test_votes_at_held_out_samples_know_a_small_class(rng, n, spread):
    """Its samples are copies; or all of them are among those to hold out of a large sample."""
    X = rng.normal(size=(n, 2))
    y = np.where(np.arange(n) < 10, 1.0, -1.0)
    X[:10] = 3.0 + spread * rng.normal(size=(10, 2))
    columns = make_columns([mk.Gaussian(0.5)], X)

    def problems(part, target):
        return [VotedProblem(part, target.Y[:, 0], np.full(part.n, 1 / part.n), True)]

    target = Target(y[:, None], "classification")
    values = held_out_votes(columns, target, np.array([1e-4]), problems, tol=1e-6, max_iter=100)
    assert np.all(values[:10] > 0.5)


# -- coordinate descent ---------------------------------------------------------------------------


@given(n=st.integers(1, 30), seed=st.integers(0, 10_000), penalty=st.floats(0.001, 2.0))
def test_the_step_is_the_minimum_over_all_breakpoints(n, seed, penalty):
    rng = np.random.default_rng(seed)
    margins, a = rng.normal(size=n), rng.normal(size=n) * (rng.random(n) < 0.8)
    costs, alpha = rng.uniform(0.1, 1.0, size=n), float(rng.normal())

    def value(eta):
        return costs @ np.maximum(0, 1 - margins - eta * a) + penalty * abs(alpha + eta)

    places = np.append((1 - margins[a != 0]) / a[a != 0], -alpha)
    step = best_step(margins, a, costs, alpha, penalty)
    assert value(step) <= min(value(eta) for eta in places) + 1e-12


def test_the_intercept_of_one_class_leaves_no_loss(rng):
    for n in range(1, 60):  # rounding leaves the slope beyond all breakpoints negative for some
        margins, costs = rng.normal(size=n), rng.uniform(0.1, 1.0, size=n)
        step = best_step(margins, np.ones(n), costs, 0.0, 0.0)
        assert np.all(margins + step >= 1 - 1e-12)


def test_descent_goes_down_and_bounds_its_distance():
    X, y = sample(60, noise=0.8)
    kernels = list(mk.gaussians([0.1, 0.5, 2.0]))
    problem, penalties = make_problem(kernels, X, y), np.array([0.01, 0.01, 0.01])
    found = descend(problem, penalties)
    values = [entry["objective"] for entry in found.history]
    assert np.all(np.diff(values) < 0)
    best = full_program(matrices_of(kernels, X), y, penalties)
    assert found.bound <= best <= found.objective
    certificate(matrices_of(kernels, X), y, penalties, found)
    # It stalls at a corner here: that is what column generation is for.
    assert found.objective > best * 1.0001
    assert solve(problem, penalties, "descent").objective == pytest.approx(best, abs=1e-9)


def test_descent_takes_the_best_coordinate_first():
    X, y = sample()
    problem = make_problem([mk.Gaussian(0.5)], X, y)
    K = mk.Gaussian(0.5)(X)
    found = descend(problem, np.array([0.01]), max_iter=1)
    assert len(found.terms) == 1
    assert found.terms.points[0] == np.argmax(np.abs(K.T @ y))


# -- many penalties -------------------------------------------------------------------------------


@with_and_without_intercept
def test_a_grid_with_warm_starts_equals_cold_starts(fit_intercept):
    X, y = sample(80, noise=0.8)
    kernels = [*mk.gaussians([0.1, 5.0]), mk.Polynomial(2)]
    problem = make_problem(kernels, X, y, fit_intercept)
    r = np.array([0.1, 0.3, 2.0])
    steps = (10.0, 1.0, 1e-2, 1e-4, 1e-6, 1e-8)
    grid = [lam * r + beta for lam in steps for beta in steps]
    warm = solve_grid(problem, grid, tol=1e-9)
    assert sum(found.n_iter == 0 for found in warm) >= 4  # some are known from their neighbours
    K = matrices_of(kernels, X)
    for penalties, found in zip(grid, warm, strict=True):
        cold = solve(problem, penalties, tol=1e-9)
        assert found.objective == pytest.approx(cold.objective, rel=1e-7)
        assert found.gap <= 1e-9
        assert found.objective == pytest.approx(objective(K, y, penalties, found), rel=1e-9)
        certificate(K, y, penalties, found, fit_intercept)


@pytest.mark.parametrize("when", [0, 3])
def test_a_way_that_rounding_stops_is_gone_in_steps(monkeypatch, when):
    """A master that gives up, at the beginning or later, leaves no setting short of its goal."""
    X, y = sample(80, noise=0.8)
    problem = make_problem(list(mk.gaussians([0.1, 5.0])), X, y)
    grid = [np.full(2, beta) for beta in (1e-2, 1e-3, 1e-4)]
    want = solve_grid(problem, grid, tol=1e-9)
    before, calls = ColumnPool._vertex, []

    def fails_once(self, limits):
        vertex = before(self, limits)
        calls.append(1)
        if len(calls) != when + 1:
            return vertex
        return replace(vertex, z=0.0 * vertex.z, alpha=0.0 * vertex.alpha, solved=False)

    monkeypatch.setattr(ColumnPool, "_vertex", fails_once)
    found = solve_grid(problem, grid, tol=1e-9)
    assert all(one.gap <= 1e-9 for one in found)
    for one, other in zip(want, found, strict=True):
        assert other.objective == pytest.approx(one.objective, rel=1e-8)


def test_the_bound_of_any_point_is_valid(rng):
    X, y = sample()
    problem = make_problem(MIXED[:3], X, y)
    penalties = np.array([0.02, 0.01, 0.03])
    best = solve(problem, penalties).objective
    for _ in range(20):
        z = rng.uniform(-0.2, 1.2, size=len(y)) / len(y)
        assert lower_bound(problem, penalties, z).value <= best + 1e-12


def test_columns_are_those_of_the_kernels():
    X, _ = sample(25)
    columns = make_columns(MIXED, X)
    K = matrices_of(MIXED, X)
    v = np.random.default_rng(1).normal(size=25)
    for k, matrix in enumerate(K):
        np.testing.assert_allclose(columns.take(k, np.array([3, 0])), matrix[:, [3, 0]], rtol=1e-12)
        np.testing.assert_allclose(columns.price(v)[k], matrix.T @ v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(columns.diagonals(), [np.diag(k) for k in K], rtol=1e-12, atol=1e-13)
