"""Sequential minimal optimisation: every answer is proven optimal first, then compared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from multikernel.grams.matrix import GivenMatrix
from multikernel.learners._plain_steps import plain_steps
from multikernel.learners._smo_dual import SignedDual
from multikernel.learners._smo_matrix import FetchedRows
from multikernel.learners._smo_run import SmoRun
from multikernel.learners.smo import KernelRows, Result, one_class, solve, svc, svr


def violation(K, linear, sign, C, alpha, intercept=True):
    """``m(alpha) - M(alpha)`` from the definition; without intercept the projected gradient."""
    n = len(K)
    s = (sign * alpha).reshape(-1, n).sum(axis=0)
    values = np.tile(K.astype(np.float64) @ s, len(sign) // n)
    v = -(values + sign * linear)
    rising = np.where(sign > 0, alpha < C, alpha > 0)
    falling = np.where(sign > 0, alpha > 0, alpha < C)
    m = v[rising].max(initial=-np.inf)
    M = v[falling].min(initial=np.inf)
    return max(m - M, 0.0) if intercept else max(m, -M, 0.0)


def prove(result: Result, K, linear, sign, C, tol, *, delta=0.0, intercept=True):
    """Feasible, stationary and complementary, with all reported numbers true."""
    C = np.broadcast_to(C, sign.shape)
    alpha = result.alpha
    assert np.all(np.isfinite(alpha)) and np.isfinite(result.intercept)
    assert np.all(alpha >= 0) and np.all(alpha <= C)
    size = np.abs(alpha).sum() + abs(delta)
    if intercept:
        assert abs(sign @ alpha - delta) <= 1e-11 * size
    n = len(K)
    s = (sign * alpha).reshape(-1, n).sum(axis=0)
    np.testing.assert_allclose(result.coef, s, rtol=0, atol=1e-15 * size)
    largest = np.abs(np.diagonal(K)).max() * size
    f = K.astype(np.float64) @ s
    np.testing.assert_allclose(result.values, f, rtol=0, atol=0.1 * tol + 1e-12 * largest)
    np.testing.assert_allclose(
        result.gradient,
        sign * np.tile(f, len(sign) // n) + linear,
        atol=0.1 * tol + 1e-12 * largest,
    )
    assert result.status == "optimal"
    noise = 1e-12 * (largest + np.abs(linear).max())
    assert violation(K, linear, sign, C, alpha, intercept) <= 1.2 * tol + noise
    objective = 0.5 * s @ f + alpha @ linear
    assert result.objective == pytest.approx(objective, rel=1e-9, abs=0.1 * tol * size + 1e-300)
    # Complementarity with the intercept that is reported.
    slope = result.gradient + sign * result.intercept
    assert np.all(slope[(alpha == 0) & (C > 0)] >= -tol - noise)
    assert np.all(slope[(alpha == C) & (C > 0)] <= tol + noise)
    assert np.all(np.abs(slope[(alpha > 0) & (alpha < C)]) <= tol + noise)


def data(rng, n, d=4, noise=0.5):
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y, rbf_kernel(X, gamma=0.5)


def svr_problem(y, C, epsilon):
    n = len(y)
    C = np.broadcast_to(C, (n,))
    return np.concatenate([epsilon - y, epsilon + y]), np.repeat([1.0, -1.0], n), np.tile(C, 2)


# -- proofs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e2, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
def test_classification_is_optimal(rng, C, intercept):
    _, y, K = data(rng, 90)
    result = svc(K, y, C, tol=1e-5, intercept=intercept)
    prove(result, K, -np.ones(90), y, C, 1e-5, intercept=intercept)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_regression_is_optimal(rng, C, epsilon, intercept):
    X, _, K = data(rng, 70)
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(70)
    result = svr(K, y, C, epsilon, tol=1e-5, intercept=intercept)
    prove(result, K, *svr_problem(y, C, epsilon), 1e-5, intercept=intercept)
    assert np.all(result.alpha[:70] * result.alpha[70:] == 0)


@pytest.mark.parametrize("nu", [0.011, 0.1, 0.5, 1.0])
def test_one_class_is_optimal(rng, nu):
    _, _, K = data(rng, 100)
    result = one_class(K, nu, tol=1e-7)
    prove(result, K, np.zeros(100), np.ones(100), 1 / (nu * 100), 1e-7, delta=1.0)
    outside = np.mean(result.values + result.intercept < -1e-6)
    assert outside <= nu + 1e-9


def test_costs_of_each_sample_may_differ_hugely(rng):
    _, y, K = data(rng, 80)
    C = 10.0 ** rng.uniform(-6, 6, 80)
    C[5] = 0.0
    result = svc(K, y, C, tol=1e-4)
    prove(result, K, -np.ones(80), y, C, 1e-4)
    target = y + rng.standard_normal(80)
    result = svr(K, target, C, 0.1, tol=1e-4)
    prove(result, K, *svr_problem(target, C, 0.1), 1e-4)


@given(
    n=st.integers(2, 45),
    rank=st.integers(1, 10),
    log_scale=st.integers(-6, 6),
    # With kernels of low rank the number of steps grows in proportion to C (measured: 2.5e5, 2.7e6
    # and more than the limit of 1e7 for n = 24, rank 5 and C = 1e2, 1e3, 1e4).
    log_cost=st.integers(-4, 3),
    copies=st.booleans(),
    intercept=st.booleans(),
    kind=st.sampled_from(["svc", "svr", "one_class"]),
    seed=st.integers(0, 10**6),
)
def test_any_problem(n, rank, log_scale, log_cost, copies, intercept, kind, seed):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, rank))
    if copies:
        Z[n // 2 :] = Z[: n - n // 2]
    scale = 10.0**log_scale
    K = scale * (Z @ Z.T)
    K = (K + K.T) / 2
    # The cost is in units in which the kernel has size one: else nothing moves, or everything.
    C = 10.0**log_cost / scale * rng.uniform(0.1, 1.0, n)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if kind == "svc":
        result = svc(K, y, C, tol=1e-6, intercept=intercept)
        prove(result, K, -np.ones(n), y, C, 1e-6, intercept=intercept)
    elif kind == "svr":
        result = svr(K, y, C, 0.3, tol=1e-6, intercept=intercept)
        prove(result, K, *svr_problem(y, C, 0.3), 1e-6, intercept=intercept)
    else:
        nu = rng.uniform(1 / n, 1.0)
        result = one_class(K, nu, tol=1e-6 * scale)
        prove(result, K, np.zeros(n), np.ones(n), 1 / (nu * n), 1e-6 * scale, delta=1.0)


# -- comparisons ----------------------------------------------------------------------------------


def test_agrees_with_scikit_learn_on_classification(rng):
    _, y, K = data(rng, 200)
    weights = rng.uniform(0.2, 3.0, 200)
    for C in (0.1, 1.0, 30.0):
        theirs = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y, sample_weight=weights)
        coef = np.zeros(200)
        coef[theirs.support_] = theirs.dual_coef_[0]
        objective = 0.5 * coef @ K @ coef - np.abs(coef).sum()
        ours = svc(K, y, C * weights, tol=1e-8)
        assert ours.objective == pytest.approx(objective, rel=1e-7)
        assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-4)
        np.testing.assert_allclose(
            ours.values + ours.intercept, theirs.decision_function(K), atol=1e-3
        )


def test_agrees_with_scikit_learn_on_regression(rng):
    X, _, K = data(rng, 150)
    y = X[:, 0] ** 2 + 0.2 * rng.standard_normal(150)
    for C, epsilon in ((0.1, 0.1), (10.0, 0.3), (5.0, 0.0)):
        theirs = SVR(C=C, epsilon=epsilon, kernel="precomputed", tol=1e-6).fit(K, y)
        coef = np.zeros(150)
        coef[theirs.support_] = theirs.dual_coef_[0]
        objective = 0.5 * coef @ K @ coef - y @ coef + epsilon * np.abs(coef).sum()
        ours = svr(K, y, C, epsilon, tol=1e-8)
        assert ours.objective == pytest.approx(objective, rel=1e-6)
        np.testing.assert_allclose(ours.values + ours.intercept, theirs.predict(K), atol=1e-3)


def test_agrees_with_scikit_learn_on_one_class(rng):
    _, _, K = data(rng, 150)
    theirs = OneClassSVM(nu=0.2, kernel="precomputed", tol=1e-8).fit(K)
    ours = one_class(K, 0.2, tol=1e-10)
    # Theirs sums to nu n.
    np.testing.assert_allclose(
        (ours.values + ours.intercept) * 0.2 * 150, theirs.decision_function(K), atol=1e-4
    )


@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_without_intercept_agrees_with_a_quadratic_program(rng, kind):
    clarabel = pytest.importorskip("clarabel")
    sparse = pytest.importorskip("scipy.sparse")
    _, y, K = data(rng, 50)
    if kind == "svc":
        linear, sign, C = -np.ones(50), y, np.full(50, 3.0)
        ours = svc(K, y, 3.0, tol=1e-10, intercept=False)
    else:
        target = y + rng.standard_normal(50)
        linear, sign, C = svr_problem(target, 3.0, 0.2)
        ours = svr(K, target, 3.0, 0.2, tol=1e-10, intercept=False)
    m = len(sign)
    Q = np.outer(sign, sign) * np.tile(K, (m // 50, m // 50))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(Q)),
        linear,
        sparse.vstack([-sparse.eye(m), sparse.eye(m)], format="csc"),
        np.concatenate([np.zeros(m), C]),
        [clarabel.NonnegativeConeT(2 * m)],
        options,
    ).solve()
    assert ours.objective == pytest.approx(answer.obj_val, rel=1e-9)


def test_without_intercept_and_without_bounds_is_nonnegative_least_squares(rng):
    A = rng.standard_normal((40, 25))
    b = rng.standard_normal(40)
    exact, _ = nnls(A, b)
    result = solve(A.T @ A, -A.T @ b, np.ones(25), 1e3, intercept=False, tol=1e-11)
    np.testing.assert_allclose(result.alpha, exact, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 1, 2, 45])
@pytest.mark.parametrize("form", ["matrix", "rows", "blocks"])
def test_nearly_constant_kernel_without_intercept(seed, form):
    """Steps of one variable alone are slow here: some problems need more than ten million."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 2))[rng.integers(5, size=19)]
    y = np.where(rng.random(19) < 0.2, 1.0, -1.0)
    K = rbf_kernel(X, gamma=1e-3)
    kernel = {
        "matrix": K,
        "rows": KernelRows(lambda index: K[index], np.diagonal(K)),
        "blocks": GivenMatrix(K),
    }[form]
    result = svc(kernel, y, 1e3, tol=1e-6, intercept=False, max_iter=20_000)
    prove(result, K, -np.ones(19), y, 1e3, 1e-6, intercept=False)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_steps_in_numpy(rng, kind, intercept):
    """The rule is that of the compiled loops: the same optimum after a similar number of steps."""
    X, y, K = data(rng, 60)
    C = np.full(60, 3.0)
    linear, sign = -np.ones(60), y
    if kind == "svr":
        linear, sign, C = svr_problem(np.sin(X[:, 0]) + 0.3 * rng.standard_normal(60), C, 0.1)
    want = solve(K, linear, sign, C, intercept=intercept, tol=1e-6)
    found = plain_steps(SignedDual.of(60, linear, sign, C, 0.0, intercept), K, 1e-6)
    assert found.status == "optimal" and found.n_iter <= 2 * want.n_iter
    assert violation(K, linear, sign, C, found.alpha, intercept) <= 1.01e-6
    assert found.intercept == pytest.approx(want.intercept, abs=1e-5)
    np.testing.assert_allclose(found.alpha, want.alpha, atol=1e-3)


# -- warm starts, shrinking, storage --------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_start_at_the_optimum(rng, intercept):
    X, y, K = data(rng, 300)
    target = np.sin(X[:, 0])
    for fit in (
        lambda start: svc(K, y, 5.0, alpha0=start, intercept=intercept),
        lambda start: svr(K, target, 5.0, 0.05, alpha0=start, intercept=intercept),
        lambda start: one_class(K, 0.3, alpha0=start, tol=1e-5),
    ):
        first = fit(None)
        again = fit(first.alpha)
        assert first.n_iter > 20
        assert again.n_iter <= 3
        assert again.objective == pytest.approx(first.objective, rel=1e-9)


def test_path_of_costs(rng):
    _, y, K = data(rng, 200)
    for costs in (np.geomspace(0.01, 100, 9), np.geomspace(100, 0.01, 9)):
        alpha = None
        for C in costs:
            warm = svc(K, y, C, tol=1e-7, alpha0=alpha)
            cold = svc(K, y, C, tol=1e-7)
            prove(warm, K, -np.ones(200), y, C, 1e-7)
            assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
            alpha = warm.alpha


def test_infeasible_starts_are_repaired(rng):
    _, y, K = data(rng, 60)
    best = svc(K, y, 1.0, tol=1e-7)
    for start in (
        rng.uniform(-1, 3, 60),
        best.alpha + 1e-6 * rng.standard_normal(60),
        np.full(60, 1e9),
        np.where(y > 0, 1.0, 0.0),
    ):
        result = svc(K, y, 1.0, tol=1e-7, alpha0=start)
        prove(result, K, -np.ones(60), y, 1.0, 1e-7)
        assert result.objective == pytest.approx(best.objective, rel=1e-9)
    result = one_class(K, 0.5, alpha0=np.zeros(60))
    prove(result, K, np.zeros(60), np.ones(60), 1 / 30, 1e-3, delta=1.0)


@pytest.mark.parametrize("C", [0.05, 1.0, 300.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_shrinking_changes_nothing(rng, C, intercept):
    _, y, K = data(rng, 1200)
    with_ = svc(K, y, C, tol=1e-6, intercept=intercept)
    without = svc(K, y, C, tol=1e-6, shrinking=False, intercept=intercept)
    prove(with_, K, -np.ones(1200), y, C, 1e-6, intercept=intercept)
    prove(without, K, -np.ones(1200), y, C, 1e-6, intercept=intercept)
    assert with_.objective == pytest.approx(without.objective, rel=1e-9)
    assert with_.intercept == pytest.approx(without.intercept, abs=1e-5)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("cache_rows", [4, 30, 100, None])
def test_rows_on_demand(rng, shrinking, cache_rows, monkeypatch):
    n = 250
    X, y, K = data(rng, n)
    asked: list[int] = []
    stores = []

    def rows(index):
        asked.extend(index.tolist())
        return K[index]

    original = SmoRun._shrink

    def spy(run):
        done = original(run)
        stores.append(run.matrix.source.size + run.packed.size)
        return done

    monkeypatch.setattr(SmoRun, "_shrink", spy)
    source = KernelRows(rows, np.diagonal(K))
    demand = svc(source, y, 10.0, tol=1e-6, shrinking=shrinking, cache_rows=cache_rows)
    prove(demand, K, -np.ones(n), y, 10.0, 1e-6)
    held = list(stores)
    dense = svc(K, y, 10.0, tol=1e-6, shrinking=shrinking)
    assert demand.objective == pytest.approx(dense.objective, rel=1e-9)
    assert demand.n_rows == len(asked)
    assert dense.n_rows == 0
    if cache_rows is not None:
        assert all(size <= cache_rows * n for size in held)
    elif not shrinking:
        assert len(asked) == len(set(asked)) <= n
        assert demand.n_iter == dense.n_iter
    target = np.sin(X[:, 0])
    ours = svr(source, target, 3.0, 0.1, cache_rows=cache_rows, tol=1e-5)
    prove(ours, K, *svr_problem(target, 3.0, 0.1), 1e-5)
    alone = svc(source, y, 3.0, cache_rows=cache_rows, intercept=False, alpha0=demand.alpha)
    prove(alone, K, -np.ones(n), y, 3.0, 1e-3, intercept=False)


def test_the_cache_forgets_what_was_used_longest_ago():
    K = np.arange(36.0).reshape(6, 6)
    cache = FetchedRows(KernelRows(lambda index: K[index], np.diagonal(K)), 4, False)
    none = np.empty(0, dtype=np.int64)
    for time, row in enumerate((1, 2, 3), start=1):
        cache.fetch(row, none, time)
    cache.stamp[cache.place[0]] = 9
    cache.fetch(4, none, 10)
    assert cache.place[1] == -1
    for row in (0, 2, 3, 4):
        np.testing.assert_array_equal(cache.source[cache.place[row]], K[row])


def test_float32_rows(rng):
    _, y, K = data(rng, 400)
    single = K.astype(np.float32)
    for C in (0.1, 10.0):
        double = svc(K, y, C, tol=1e-5)
        ours = svc(single, y, C, tol=1e-5)
        assert ours.objective == pytest.approx(double.objective, rel=1e-4)
        prove(ours, single, -np.ones(400), y, C, 1e-5)
    on_demand = svc(KernelRows(lambda i: single[i], np.diagonal(single)), y, 10.0, tol=1e-5)
    assert on_demand.objective == pytest.approx(ours.objective, rel=1e-6)


def test_threads_do_not_disturb_each_other(rng):
    _, y, K = data(rng, 500)
    costs = [0.5, 5.0, 50.0, 0.1]
    serial = [svc(K, y, C) for C in costs]
    with ThreadPoolExecutor(2) as pool:
        parallel = list(pool.map(lambda C: svc(K, y, C), costs))
    for a, b in zip(serial, parallel, strict=True):
        np.testing.assert_array_equal(a.alpha, b.alpha)
        assert (a.intercept, a.n_iter) == (b.intercept, b.n_iter)


def test_input_is_left_alone(rng):
    _, y, K = data(rng, 300)
    before = K.copy()
    K.flags.writeable = False
    start = np.full(300, 0.1)
    svc(K, y, 100.0, alpha0=start)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_array_equal(start, 0.1)
    assert svc(np.asfortranarray(K), y, 1.0).objective == svc(K, y, 1.0).objective


# -- corners --------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_zero_kernel(intercept):
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    K = np.zeros((5, 5))
    result = svc(K, y, 2.0, intercept=intercept)
    prove(result, K, -np.ones(5), y, 2.0, 1e-3, intercept=intercept)
    assert result.objective == pytest.approx(-8.0 if intercept else -10.0)
    assert result.intercept == (1.0 if intercept else 0.0)


def test_two_points():
    result = svc(np.eye(2), np.array([1.0, -1.0]), 10.0, tol=1e-12)
    np.testing.assert_allclose(result.coef, [1.0, -1.0])
    assert result.intercept == pytest.approx(0.0)
    same = svc(np.ones((2, 2)), np.array([1.0, -1.0]), 10.0)
    np.testing.assert_array_equal(same.alpha, 10.0)
    # Any b in [-1, 1] - f is optimal, and the middle is taken.
    assert same.intercept == 0.0


def test_middle_of_the_interval_when_no_variable_is_free():
    x = np.array([-3.0, -1.0, 2.0, 2.5])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    K = np.outer(x, x)
    C = 1e-3
    result = svc(K, y, C, tol=1e-10)
    np.testing.assert_array_equal(result.alpha, C)
    values = K @ (C * y)
    edges = y - values
    assert result.intercept == pytest.approx(0.5 * (edges[y > 0].min() + edges[y < 0].max()))


def test_one_label_only(rng):
    _, _, K = data(rng, 20)
    result = svc(K, np.ones(20), 1.0)
    np.testing.assert_array_equal(result.alpha, 0.0)
    assert result.intercept == 1.0


def test_repeated_points(rng):
    X, y, _ = data(rng, 40)
    K = rbf_kernel(np.repeat(X, 4, axis=0), gamma=0.5)
    y = np.repeat(y, 4)
    y[::4] *= -1
    for C in (1e-3, 1.0, 1e5):
        result = svc(K, y, C, tol=1e-5)
        prove(result, K, -np.ones(160), y, C, 1e-5)


def test_tolerance_below_rounding_ends(rng):
    _, y, K = data(rng, 150)
    for fit in (
        lambda: svc(K, y, 100.0, tol=0.0),
        lambda: svc(1e8 * K, y, 1e6, tol=1e-14),
        lambda: svc(K, y, 100.0, tol=0.0, intercept=False),
    ):
        result = fit()
        assert result.status in ("rounding", "optimal")
        assert result.n_iter < 1_000_000
    assert svc(K, y, 100.0, tol=0.0).violation < 1e-9


def test_limit_on_iterations(rng):
    _, y, K = data(rng, 200)
    result = svc(K, y, 10.0, max_iter=7)
    assert (result.n_iter, result.status) == (7, "max_iter")
    assert result.violation == pytest.approx(
        violation(K, -np.ones(200), y, np.full(200, 10.0), result.alpha)
    )
    assert svc(K, y, 10.0, max_iter=0).n_iter == 0


def test_wrong_input_is_refused(rng):
    _, y, K = data(rng, 10)
    with pytest.raises(ValueError, match="square"):
        svc(K[:, :5], y, 1.0)
    with pytest.raises(ValueError, match="-1 and"):
        svc(K, 2 * y, 1.0)
    with pytest.raises(ValueError, match="finite"):
        svc(K, y, np.inf)
    with pytest.raises(ValueError, match="finite"):
        svc(K, y, 1.0, alpha0=np.full(10, np.nan))
    with pytest.raises(ValueError, match="alpha0"):
        svc(K, y, 1.0, alpha0=np.zeros(3))
    with pytest.raises(ValueError, match="epsilon"):
        svr(K, y, 1.0, -0.1)
    with pytest.raises(ValueError, match="nu"):
        one_class(K, 1.5)
    with pytest.raises(ValueError, match="Raise C"):
        one_class(K, upper=np.full(10, 0.01))
    with pytest.raises(ValueError, match="variables"):
        svc(K, y[:7], 1.0)
    with pytest.raises(ValueError, match="shape"):
        svc(KernelRows(lambda i: K[i, :3], np.diagonal(K)), y)
