"""Block norms beyond p = 2: conic programs as oracles, kernels of rank one, and the parts."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from experiments import toy, toy_data
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.protocol import Grams
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.problem.losses import EpsilonInsensitive, Hinge, Logistic, OneClass, Squared
from multikernel.problem.regularisers import conjugate, norm
from multikernel.solvers.certificate import Found, Stopped
from multikernel.solvers.joint import interior_point
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.barriers import Boxed, NoInnerPoint, inner_point
from multikernel.solvers.joint.find import find
from multikernel.solvers.joint.interior_point import find_by_interior_point
from multikernel.solvers.joint.newton_system import NewtonSystem
from multikernel.solvers.joint.warm_start import WarmStart

INF = float("inf")


@pytest.fixture
def newton_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No alternation before the first Newton step."""
    monkeypatch.setattr(interior_point, "MAX_WEIGHT_SPREAD", 0.0)


def waist(matrices: list[np.ndarray]) -> Grams:
    ids = mk.sample_ids(len(matrices[0]))
    grams = mk.precomputed(matrices).plan(ids).grams(ids, budget=MemoryBudget.of(None))
    return grams.corrected(False, None)


def columns(X: np.ndarray) -> Grams:
    """One linear kernel per column, held as columns."""
    bank = mk.per_feature(mk.Linear())
    return bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(False, "multiplicative")


def matrices_of(grams: Grams) -> list[np.ndarray]:
    return list(np.asarray(grams.block(slice(0, grams.n)), dtype=np.float64))


def kernels(rank_one: bool, X: np.ndarray) -> Grams:
    if rank_one:
        return columns(X)
    return waist([np.exp(-((x[:, None] - x[None]) ** 2)) for x in X.T])


def sample(rng: np.random.Generator, n: int = 24, d: int = 6) -> tuple[np.ndarray, ...]:
    X = rng.standard_normal((n, d))
    values = X @ np.linspace(1.0, -0.5, d) + 0.7 * rng.standard_normal(n)
    return X, np.where(values > 0, 1.0, -1.0), values


def targets(y: np.ndarray, values: np.ndarray) -> dict[str, Target]:
    return {
        "classification": Target(y[:, None], "classification"),
        "regression": Target(values[:, None], "regression"),
        "one-class": Target(np.ones((len(y), 1)), "one-class"),
    }


LEARNERS = [
    SVM(C=0.7),
    SVM(C=0.7, fit_intercept=False),
    Ridge(alpha=0.5),
    Ridge(alpha=0.5, fit_intercept=False),
    SVR(alpha=0.5, epsilon=0.2),
    SVR(alpha=0.5, epsilon=0.2, fit_intercept=False),
    LogisticRegression(C=2.0),
    LogisticRegression(C=2.0, fit_intercept=False),
    OneClassSVM(nu=0.4),
]


def named(learner: object) -> str:
    free = "" if getattr(learner, "fit_intercept", True) else "-origin"
    return type(learner).__name__ + free


# -- the whole dual at once ------------------------------------------------------------------------


def conic_optimum(
    matrices: list[np.ndarray], target: Target, learner: SVM | Ridge | SVR, p: float
) -> float:
    """``max L(s) - N^2 / 2`` over ``||(|B_k s|)_k||_{p*} <= N``, ``B_k'B_k = K_k``, by clarabel.

    Variables: s (n), |s| (n), zeta, r, q (one per kernel), N. The norm is a sum at p = inf. At
    p = 4 it is ``sum r = N`` with ``zeta^4 <= r^3 N``, or ``zeta^2 <= r q`` and ``q^2 <= r N``.
    """
    assert p in (4, INF)
    clarabel = pytest.importorskip("clarabel")
    y, C = target.Y[:, 0], learner.costs(target)
    n, m = len(y), len(matrices)
    size = 2 * n + 3 * m + 1
    zeta, last = 2 * n, size - 1
    P = np.zeros((size, size))
    P[last, last] = 1.0
    cost = np.zeros(size)
    cost[:n] = -y
    parts: list[tuple[np.ndarray, np.ndarray, object]] = []
    box = np.zeros((2 * n, size))
    if isinstance(learner, SVM):
        box[:n, :n], box[n:, :n] = -np.diag(y), np.diag(y)
        bounds = np.append(np.zeros(n), C)
    elif isinstance(learner, SVR):
        cost[n : 2 * n] = learner.epsilon
        box[:n, :n], box[n:, :n] = np.eye(n), -np.eye(n)
        bounds = np.append(C, C)
        sides = np.zeros((2 * n, size))
        sides[:n, :n], sides[n:, :n] = np.eye(n), -np.eye(n)
        sides[:n, n : 2 * n] = sides[n:, n : 2 * n] = -np.eye(n)
        parts.append((sides, np.zeros(2 * n), clarabel.NonnegativeConeT(2 * n)))
    if isinstance(learner, Ridge):
        P[:n, :n] = np.diag(1.0 / C)
    else:
        parts.append((box, bounds, clarabel.NonnegativeConeT(2 * n)))
    if learner.fit_intercept:
        row = np.zeros((1, size))
        row[0, :n] = 1.0
        parts.append((row, np.zeros(1), clarabel.ZeroConeT(1)))
    for k, K in enumerate(matrices):
        w, V = np.linalg.eigh(K)
        B = (V[:, w > 1e-12 * w[-1]] * np.sqrt(w[w > 1e-12 * w[-1]])).T
        A = np.zeros((len(B) + 1, size))
        A[0, zeta + k], A[1:, :n] = -1.0, -B
        parts.append((A, np.zeros(len(B) + 1), clarabel.SecondOrderConeT(len(B) + 1)))
    total = np.zeros((1, size))
    total[0, last] = -1.0
    if np.isinf(p):
        total[0, zeta : zeta + m] = 1.0
        parts.append((total, np.zeros(1), clarabel.NonnegativeConeT(1)))
    else:
        total[0, zeta + m : zeta + 2 * m] = 1.0
        parts.append((total, np.zeros(1), clarabel.ZeroConeT(1)))
        for k in range(m):
            r, q = zeta + m + k, zeta + 2 * m + k
            for square, other in ((zeta + k, q), (q, last)):
                # square^2 <= r other  as  ||(2 square, r - other)|| <= r + other
                A = np.zeros((3, size))
                A[0, r] = A[0, other] = A[1, r] = -1.0
                A[1, other], A[2, square] = 1.0, -2.0
                parts.append((A, np.zeros(3), clarabel.SecondOrderConeT(3)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(P), format="csc"),
        cost,
        sp.csc_matrix(np.vstack([A for A, _, _ in parts])),
        np.concatenate([b for _, b, _ in parts]),
        [cone for _, _, cone in parts],
        settings,
    )
    found = solver.solve()
    np.testing.assert_allclose(found.obj_val, found.obj_val_dual, rtol=1e-7)
    return -found.obj_val


@pytest.mark.parametrize("p", [4.0, INF])
@pytest.mark.parametrize("rank_one", [True, False], ids=["rank-one", "full-rank"])
@pytest.mark.parametrize("learner", LEARNERS[:6], ids=named)
def test_conic_programs_agree(learner, rank_one, p, rng, newton_only):
    X, y, values = sample(rng)
    grams = kernels(rank_one, X)
    target = targets(y, values)[learner.kind]
    optimum = conic_optimum(matrices_of(grams), target, learner, p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_by_interior_point(grams, target, mk.LpNorm(p, tol=1e-6), learner)
    assert found.machine.gap <= 1e-6
    np.testing.assert_allclose(found.machine.objective / learner.unit, optimum, rtol=2e-6)


# -- every loss ------------------------------------------------------------------------------------


def gap_by_hand(found: Found, grams: Grams, target: Target, learner, p: float) -> float:
    """Relative gap from kernels, weights, coefficients and intercept alone.

    With ``K_k = B_k B_k'`` the roots of the quadratic forms are ``||B_k's||``: ``s'K_k s`` would
    lose the small ones in rounding.
    """
    s, C, loss = found.machine.coef, learner.costs(target), learner.loss
    roots, f = [], np.zeros_like(s)
    for theta, K in zip(found.kernel_weights, matrices_of(grams), strict=True):
        w, V = np.linalg.eigh(K)
        B = V[:, w > 1e-12 * w[-1]] * np.sqrt(w[w > 1e-12 * w[-1]])
        roots.append(np.linalg.norm(B.T @ s))
        f += theta * B @ (B.T @ s)
    fit = float(loss.value(f, target.Y, C, found.machine.intercept).sum())
    primal = 0.5 * norm(found.kernel_weights * np.array(roots), p) ** 2 + fit
    dual = float(loss.dual(s, target.Y, C).sum()) - 0.5 * norm(np.array(roots), conjugate(p)) ** 2
    np.testing.assert_allclose(primal, found.machine.objective / learner.unit, rtol=1e-6)
    return (primal - dual) / abs(primal)


@pytest.mark.parametrize("p", [4.0, 32.0, INF])
@pytest.mark.parametrize("rank_one", [True, False], ids=["rank-one", "full-rank"])
@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_every_loss_closes_its_gap(learner, rank_one, p, rng, newton_only):
    X, y, values = sample(rng, n=30, d=8)
    if learner.kind == "one-class":
        X = X + 1.5  # around the origin nothing would be left to learn
    grams = kernels(rank_one, X)
    target = targets(y, values)[learner.kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_by_interior_point(grams, target, mk.LpNorm(p, tol=1e-6), learner)
    assert found.machine.gap <= 1e-6
    assert abs(gap_by_hand(found, grams, target, learner, p)) <= 3e-6
    if learner.fit_intercept:
        total = 1.0 if learner.kind == "one-class" else 0.0
        assert found.machine.coef.sum() == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("p", [2.5, 4.0, INF])
@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_agrees_with_the_alternation_where_that_converges(learner, p, rng, newton_only):
    X, y, values = sample(rng)
    grams, target = kernels(False, X), targets(y, values)[learner.kind]
    rule = mk.LpNorm(p, tol=1e-7, max_iter=3000)
    slow = find_by_alternation(grams, target, rule, learner)
    found = find_by_interior_point(grams, target, rule, learner)
    assert slow.machine.gap <= 1e-7
    np.testing.assert_allclose(found.machine.objective, slow.machine.objective, rtol=2e-7)


def test_several_outputs_share_the_weights(rng, newton_only):
    X = rng.standard_normal((40, 5))
    classes = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((40, 3)), axis=1)
    target = Target(np.where(classes[:, None] == np.arange(3), 1.0, -1.0), "classification")
    grams = columns(X)
    found = find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-6), SVM())
    assert found.machine.gap <= 1e-6 and found.machine.coef.shape == (40, 3)
    assert abs(gap_by_hand(found, grams, target, SVM(), INF)) <= 3e-6


def test_more_kernels_than_coefficients(rng, newton_only):
    """Then the weights are eliminated from the linear systems first."""
    X, y, values = sample(rng, n=20, d=60)
    target = targets(y, values)["classification"]
    grams = columns(X)
    found = find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-6), SVM(C=0.1))
    assert found.machine.gap <= 1e-6
    optimum = conic_optimum(matrices_of(grams), target, SVM(C=0.1), INF)
    np.testing.assert_allclose(found.machine.objective, optimum, rtol=2e-6)


def test_weights_of_the_points_and_constant_kernels(rng, newton_only):
    X, y, _ = sample(rng)
    X = np.column_stack([X, np.ones(len(X))])
    weights = rng.integers(1, 4, len(X)).astype(float)
    target = Target(y[:, None], "classification", sample_weight=weights)
    bank = mk.per_feature(mk.Linear())
    plan = bank.plan(X)
    grams = plan.grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    found = find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-6), SVM())
    assert (
        found.machine.gap <= 1e-6
        and found.kernel_weights[-1] == 0
        and np.all(found.kernel_weights[:-1] > 0)
    )
    alpha = found.machine.coef[:, 0] * y
    assert np.all(alpha >= 0) and np.all(alpha <= weights * (1 + 1e-12))


# -- the toy experiment ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "levels", "costs"),
    [
        (INF, toy.LEVELS, toy.COSTS),
        (32.0, (50, 4), toy.COSTS[::2]),
        (8.0, (28, 1), toy.COSTS[::2]),
        (4.0, (50, 9), toy.COSTS[::2]),
    ],
)
def test_the_toy_grid_reaches_its_tolerance(p, levels, costs):
    for k, C in itertools.product(levels, costs):
        X, y = toy_data.make_toy(toy_data.N_TRAIN, k, np.random.default_rng([0, k, 0]))
        model, converged = toy.fit_norm(p, C, X, y)
        assert converged and model.duality_gap_ <= 1e-3, (k, C, model.duality_gap_)
        assert np.all(np.isfinite(model.kernel_weights_)) and len(model.history_) <= 60


@pytest.mark.parametrize(("informative", "C"), [(50, 1e-2), (4, 1e-3)])
def test_toy_points_to_six_digits(informative, C):
    X, y = toy_data.make_toy(
        toy_data.N_TRAIN, informative, np.random.default_rng([0, informative, 0])
    )
    bank = mk.per_feature(mk.Linear())
    model = mk.MultiKernelClassifier(bank, mk.LpNorm(INF, tol=1e-6), C=C).fit(X, y)
    assert model.duality_gap_ <= 1e-6
    # The machine is one of the learner's: some points have no coefficient.
    assert len(model.support_) < len(y)


# -- which solver, and what is refused -------------------------------------------------------------


def test_the_rule_of_auto():
    assert {mk.LpNorm(p).method(50) for p in (2.5, 4, INF)} == {"interior-point"}
    assert "interior-point" not in {mk.LpNorm(p).method(50) for p in (1, 4 / 3, 2)}
    assert mk.LpNorm(INF, solver="alternation").method(50) == "alternation"
    with pytest.raises(ValueError, match="p above 2"):
        mk.LpNorm(2, solver="interior-point").method(50)


def test_easy_problems_are_left_to_the_alternation(rng):
    X, y, values = sample(rng)
    grams, target = kernels(False, X), targets(y, values)["classification"]
    found = find(grams, target, mk.LpNorm(4.0), SVM())
    slow = find_by_alternation(grams, target, mk.LpNorm(4.0), SVM())
    np.testing.assert_allclose(found.kernel_weights, slow.kernel_weights, rtol=1e-10)
    assert found.machine.n_iter == slow.machine.n_iter


def test_what_has_no_inner_point_is_left_to_the_alternation(rng, newton_only):
    X, y, values = sample(rng)
    grams = kernels(False, X)
    everything = OneClassSVM(nu=1.0)
    target = targets(y, values)["one-class"]
    found = find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-6), everything)
    assert found.machine.gap <= 1e-6
    np.testing.assert_allclose(found.machine.coef, 1.0 / len(y))


def test_too_large_problems_are_left_to_the_alternation(rng, monkeypatch):
    X, y, values = sample(rng)
    grams, target = kernels(False, X), targets(y, values)["classification"]
    monkeypatch.setattr(interior_point, "MAX_ARRAY_ENTRIES", 100)
    found = find(grams, target, mk.LpNorm(INF), SVM())
    slow = find_by_alternation(grams, target, mk.LpNorm(INF), SVM())
    np.testing.assert_array_equal(found.kernel_weights, slow.kernel_weights)


def test_limits_are_reported(rng, newton_only):
    X, y, values = sample(rng)
    grams, target = columns(X), targets(y, values)["classification"]
    with pytest.warns(ConvergenceWarning, match="after max_iter=4 steps"):
        found = find_by_interior_point(grams, target, mk.LpNorm(INF, max_iter=4), SVM())
    assert len(found.machine.coef) == 24 and len(found.history) == 4
    with pytest.warns(ConvergenceWarning, match=r"float64 \(its weights spread over"):
        find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-15), SVM())


def test_a_warm_start_is_tried_first_and_steps_are_reported(rng):
    X, y, values = sample(rng)
    grams, target = kernels(False, X), targets(y, values)["classification"]
    seen: list[dict] = []
    rule = mk.LpNorm(INF, tol=1e-4)
    cold = find_by_interior_point(grams, target, mk.LpNorm(INF, tol=1e-8), SVM())
    warm = find_by_interior_point(
        grams, target, rule, SVM(), warm=WarmStart(cold.kernel_weights), report=seen.append
    )
    assert seen == warm.history and len(seen) < len(cold.history)


def test_an_interrupt_keeps_the_best_iterate(rng, newton_only):
    X, y, values = sample(rng)
    grams, target = columns(X), targets(y, values)["classification"]
    seen: list[dict] = []

    def stop(entry: dict) -> None:
        seen.append(entry)
        if len(seen) == 12:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        find_by_interior_point(grams, target, mk.LpNorm(INF), SVM(), report=stop)
    assert caught.value.found.machine.gap <= min(entry["gap"] for entry in seen[:-1])


# -- the parts -------------------------------------------------------------------------------------


def barriers(rng: np.random.Generator) -> list:
    n, t = 7, 2
    Y = np.where(np.arange(n)[:, None] % 2 + np.zeros((n, t)) > 0, 1.0, -1.0)
    C = rng.uniform(0.5, 2.0, n)
    alpha = C[:, None] * rng.uniform(0.0, 1.0, (n, t)) * (rng.random((n, t)) > 0.3)
    values = rng.standard_normal((n, t))
    return [
        inner_point(Hinge(), alpha * Y, Y, C, balanced=False),
        inner_point(Logistic(), alpha * Y, Y, C, balanced=False),
        inner_point(Squared(), values, values, C, balanced=False),
        inner_point(EpsilonInsensitive(0.2), alpha * Y, values, C, balanced=False),
        inner_point(OneClass(), alpha / alpha.sum(axis=0), np.ones((n, t)), C, balanced=True),
    ]


@pytest.mark.parametrize("which", range(5))
def test_barriers_against_finite_differences(which, rng):
    mu = 0.03
    barrier = barriers(rng)[which]
    if isinstance(barrier, Boxed) and len(barrier.alpha) == 2:
        # phi of two sides is the least over what makes up s: go there first.
        for _ in range(50):
            barrier.move(barrier.aim(np.zeros_like(barrier.s), mu))
    slope, bend = barrier.derivatives(mu)
    ds = rng.standard_normal(slope.shape)
    assert barrier.aim(1e-3 * ds, mu) == 1.0
    s, h = barrier.s, 1e-3
    forward, backward = barrier.rise(h, mu), barrier.rise(-h, mu)
    first, second = float(np.vdot(slope, ds)), float(np.vdot(bend, ds**2))
    np.testing.assert_allclose((forward - backward) / (2 * h), 1e-3 * first, rtol=1e-6)
    np.testing.assert_allclose((forward + backward) / h**2, 1e-6 * second, rtol=1e-3)
    barrier.move(0.5)
    np.testing.assert_allclose(barrier.s, s + 0.5e-3 * ds, rtol=1e-12)


@pytest.mark.parametrize("which", [0, 1, 3, 4])
def test_steps_stay_inside(which, rng):
    barrier = barriers(rng)[which]
    for _ in range(20):
        length = barrier.aim(10.0 * rng.standard_normal(barrier.s.shape), 0.1)
        assert 0 < length <= 1
        barrier.move(length)
        barrier.derivatives(0.1)
        assert np.isfinite(barrier.rise(0.0, 0.1))
        inside = barrier.alpha if isinstance(barrier, Boxed) else barrier.s * barrier.Y
        assert np.all(inside > 0) and np.all(inside < barrier.C)


def test_inner_points_keep_the_sum(rng):
    Y = np.where(rng.random((9, 1)) > 0.3, 1.0, -1.0)
    Y[:2, 0] = 1.0, -1.0
    C = rng.uniform(0.5, 2.0, 9)
    alpha = np.where(Y > 0, 0.3 / np.sum(Y > 0), 0.3 / np.sum(Y < 0))
    for loss in (Hinge(), Logistic()):
        assert abs(inner_point(loss, alpha * Y, Y, C, balanced=True).s.sum()) < 1e-15
    one = inner_point(OneClass(), C[:, None] / C.sum(), np.ones((9, 1)), C, balanced=True)
    assert one.s.sum() == pytest.approx(1.0)
    with pytest.raises(NoInnerPoint, match="class is missing"):
        inner_point(Hinge(), alpha, np.ones((9, 1)), C, balanced=True)
    with pytest.raises(NoInnerPoint, match="zero"):
        inner_point(Hinge(), 0 * alpha, Y, C, balanced=True)
    with pytest.raises(NoInnerPoint, match="nu = 1"):
        inner_point(OneClass(), alpha, Y, C / C.sum(), balanced=True)


@pytest.mark.parametrize(("n", "t", "M"), [(12, 1, 5), (12, 2, 30), (4, 2, 9), (5, 1, 17)])
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_systems_against_a_dense_solve(n, t, M, intercept, rng):
    B = rng.standard_normal((n, n))
    K, bend = B @ B.T, rng.uniform(0.1, 1.0, (n, t))
    u = rng.dirichlet(np.ones(M))
    G = 0.1 * rng.standard_normal((M, n, t))
    flat = G.transpose(2, 1, 0).reshape(n * t, M)
    A = np.kron(np.eye(t), K) + np.diag(bend.T.ravel())
    # Large enough for the whole to be positive definite
    E = np.diag(flat.T @ np.linalg.solve(A, flat)) * M + 0.1
    J = np.kron(np.eye(t), np.ones((n, 1)))[:, : t * intercept]
    border = np.block([[J, np.zeros((n * t, 1))], [np.zeros((M, J.shape[1])), u[:, None]]])
    core = np.block([[A, -flat], [-flat.T, np.diag(E)]])
    whole = np.block([[core, border], [border.T, np.zeros((border.shape[1],) * 2)]])
    r, v, sums = rng.standard_normal((n, t)), rng.standard_normal(M), rng.standard_normal(t)
    sums = sums[: t * intercept]
    right = np.concatenate([r.T.ravel(), v, sums, [0.0]])
    expected = np.linalg.solve(whole, right)
    ds, x = NewtonSystem(K, bend, G, E, u, intercept=intercept).solve(r, v, sums)
    np.testing.assert_allclose(ds.T.ravel(), expected[: n * t], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(x, expected[n * t : n * t + M], rtol=1e-9, atol=1e-11)
