"""Cutting planes: the golden problem, bounds that hold in every round, and exact zeros."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.protocol import Grams
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.problem import Solution, Target
from multikernel.problem.regularisers import conjugate, norm
from multikernel.solvers.joint import curvature, cuts
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.ball_geometry import least_distance, nearest, onto_sphere
from multikernel.solvers.joint.curvature import TrainedIterate, curvature_root
from multikernel.solvers.joint.cutting_plane import train
from multikernel.solvers.joint.masters import BallMaster, taylor_minimum
from tests.solvers.joint.helpers import runs_to, solve_cutting_planes

pytest.importorskip("highspy")

HINGE = {
    1: (5.25195778, [0.656236, 0.343764, 0, 0]),
    1.01: (5.21272381, [0.65392, 0.35901, 0.00002, 0]),
    1.05: (5.05893746, [0.67148, 0.38411, 0.01254, 0.00171]),
    8 / 7: (4.71923805, [0.70616, 0.44866, 0.03929, 0.04144]),
    4 / 3: (4.12526279, [0.773904, 0.588869, 0.145450, 0.182074]),
    1.6: (3.44781417, [0.86073, 0.77165, 0.47140, 0.46611]),
    1.9: (2.86886654, [0.96483, 0.94758, 0.87363, 0.86022]),
    2: (2.71608278, [1, 1, 1, 1]),
}
SQUARED = {
    1: 2.789360677,
    8 / 7: 2.583357327,
    4 / 3: 2.365338330,
    1.6: 2.138468048,
    2: 1.897978639,
}
#: plain cutting planes, the level method, and the level method with Newton steps
WAYS = [
    {"stabilise": False},
    {"curvature": False},
    {},
]


def golden() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Sixteen points, four kernels, labels and a regression target; no random numbers."""
    i, j = np.arange(1, 17)[:, None], np.arange(1, 5)[None]
    y = np.where(i[:, 0] % 2 == 1, 1.0, -1.0)
    X = np.sin(i * j + 0.5 * j) + y[:, None] * np.array([0.8, 0.4, 0.1, 0.0])
    matrices = []
    for x in X.T:
        K = np.exp(-2 * (x[:, None] - x[None]) ** 2) + 0.05 * np.eye(16)
        matrices.append(mk.normalize(K, "multiplicative"))
    return matrices, y, X[:, 0] + 0.5 * X[:, 1] ** 2


def waist(matrices: list[np.ndarray]) -> Grams:
    ids = mk.sample_ids(len(matrices[0]))
    grams = mk.precomputed(matrices).plan(ids).grams(ids, budget=MemoryBudget.of(None))
    return grams.corrected(False, None)


def labels(y: np.ndarray) -> Target:
    return Target(y[:, None], "classification")


def solve(p: float, tol: float = 1e-9, **options: object) -> Solution:
    matrices, y, _ = golden()
    rule = mk.LpNorm(p, tol=tol, max_iter=200)
    return solve_cutting_planes(waist(matrices), labels(y), rule, SVM(), **options)


def gaussians(n_kernels: int) -> tuple[Grams, Target]:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    bank = mk.gaussians(np.geomspace(0.01, 100, n_kernels) / X.shape[1])
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    return grams, labels(np.where(y > 0, 1.0, -1.0))


@pytest.mark.parametrize("p", HINGE)
def test_hinge_on_the_golden_problem(p):
    found = solve(p)
    optimum, theta = HINGE[p]
    assert found.machine.gap <= 1e-9
    np.testing.assert_allclose(found.machine.objective, optimum, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.kernel_weights, theta, atol=1e-4)
    assert len(found.history) == found.machine.n_iter <= 12


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_curvature_is_the_change_of_the_slope(single, fit_intercept):
    grams, target = gaussians(6)
    learner = SVM(C=10.0, fit_intercept=fit_intercept)
    rule = mk.LpNorm(4 / 3).regulariser(grams, target)
    theta, step = np.linspace(0.3, 0.8, 6), 1e-7

    def visit(theta: np.ndarray) -> TrainedIterate:
        return train(grams, target, rule, learner, theta, grams.combine(theta))

    U = curvature_root(visit(theta), target, learner, single=single)
    for k in range(6):
        move = step * np.eye(6)[k]
        # The slope of the objective is -a / 2.
        change = -0.5 * (visit(theta + move).a - visit(theta - move).a) / (2 * step)
        got = U.T @ U[:, k]
        np.testing.assert_allclose(got, change, atol=(1e-3 if single else 1e-4) * abs(change).max())


def test_curvature_without_a_factor_in_single_precision(monkeypatch):
    """It is looked for in double precision then."""
    grams, target = gaussians(6)
    rule, theta = mk.LpNorm(4 / 3).regulariser(grams, target), np.linspace(0.3, 0.8, 6)
    visit = train(grams, target, rule, SVM(), theta, grams.combine(theta))

    def cholesky(K: np.ndarray, **options: object) -> np.ndarray:
        if K.dtype == np.float32:
            raise np.linalg.LinAlgError
        return scipy.linalg.cholesky(K, **options)

    want = curvature_root(visit, target, SVM())
    monkeypatch.setattr(curvature, "cholesky", cholesky)
    np.testing.assert_array_equal(curvature_root(visit, target, SVM(), single=True), want)


@pytest.mark.parametrize("p", [8 / 7, 4 / 3, 1.6])
@pytest.mark.parametrize("way", WAYS[:2], ids=str)
def test_every_way_ends_at_the_same_optimum(p, way):
    found = solve(p, **way)
    assert found.machine.gap <= 1e-9
    np.testing.assert_allclose(found.machine.objective, HINGE[p][0], rtol=1e-8)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_way_ends_at_the_same_sparse_optimum(way):
    # Values alone tell weights apart only to the root of their precision.
    found = solve(1, tol=1e-5, **way)
    assert found.machine.gap <= 1e-5
    np.testing.assert_allclose(found.machine.objective, HINGE[1][0], rtol=1e-6)
    np.testing.assert_allclose(found.kernel_weights, HINGE[1][1], atol=1e-3)
    np.testing.assert_array_equal(found.kernel_weights[2:], 0.0)


@pytest.mark.parametrize("p", SQUARED)
def test_squared_loss_on_the_golden_problem(p):
    matrices, _, t = golden()
    rule = mk.LpNorm(p, tol=1e-9)
    found = solve_cutting_planes(waist(matrices), Target(t[:, None], "regression"), rule, Ridge())
    # Ridge regression's own objective has no halves: it is twice that of the table.
    np.testing.assert_allclose(found.machine.objective / 2, SQUARED[p], rtol=1e-8)
    assert found.machine.gap <= 1e-9


@pytest.mark.parametrize("p", [1, 1.05, 4 / 3])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("certificate", ["machine", "cuts"])
def test_bounds_enclose_the_optimum_in_every_round(p, way, certificate):
    found = solve(p, tol=1e-6, certificate=certificate, **way)
    optimum = HINGE[p][0]
    lower = np.array([entry["lower"] for entry in found.history])
    upper = np.array([entry["upper"] for entry in found.history])
    assert np.all(np.diff(lower) >= 0) and np.all(np.diff(upper) <= 0)
    assert np.all(lower <= optimum + 1e-8) and np.all(upper >= optimum - 1e-8)
    assert found.machine.gap <= 1e-6
    assert {"objective", "gap", "active", "support"} <= set(found.history[0])


@pytest.mark.parametrize("p", [1, 8 / 7, 4 / 3])
def test_agrees_with_the_alternation(p, rng):
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    bank = mk.gaussians([0.05, 0.2, 1.0]) + mk.per_feature(mk.Linear())
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    tol = 1e-4 if p == 1 else 1e-7
    rule = mk.LpNorm(p, tol=tol, max_iter=2000)
    found = solve_cutting_planes(grams, labels(y), rule, SVM(C=2.0))
    slow = find_by_alternation(grams, labels(y), rule, SVM(C=2.0))
    np.testing.assert_allclose(found.machine.objective, slow.machine.objective, rtol=2 * tol)
    assert found.machine.gap <= tol
    assert len(found.history) < len(slow.history)
    assert 0 < found.alignment < 1 and found.kernel_alignments.shape == (8,)


def test_the_gap_can_be_recomputed_and_the_machine_belongs_to_its_weights():
    matrices, y, _ = golden()
    found = solve(1, tol=1e-7)
    theta, s = found.kernel_weights, found.machine.coef[:, 0]
    K = np.einsum("k,kij->ij", theta, np.array(matrices))
    alone = SVM().fit(waist([K]).combine(np.ones(1)), labels(y))
    np.testing.assert_allclose(s, alone.coef[:, 0], atol=1e-7)
    a = np.array([s @ k @ s for k in matrices])
    f = K @ s + found.machine.intercept[0]
    primal = 0.5 * norm(theta * np.sqrt(a), 1) ** 2 + np.maximum(0, 1 - y * f).sum()
    dual = s @ y - 0.5 * norm(np.sqrt(a), conjugate(1)) ** 2
    np.testing.assert_allclose((primal - dual) / primal, found.machine.gap, atol=1e-12)


def test_optimality_conditions_of_sparse_weights():
    """Kernels in use share the largest a_k; the others have exactly no weight."""
    grams, target = gaussians(20)
    found = solve_cutting_planes(grams, target, mk.LpNorm(1, tol=1e-8), SVM())
    a = grams.quadratic_forms(found.machine.coef)[:, 0]
    used = found.kernel_weights > 0
    assert 1 < used.sum() < 12
    np.testing.assert_allclose(a[used], a.max(), rtol=1e-5)
    np.testing.assert_allclose(found.kernel_weights.sum(), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(found.kernel_weights[a < (1 - 1e-4) * a.max()], 0.0)


@pytest.mark.parametrize("p", [1, 4 / 3, 2])
def test_identical_kernels_need_one_machine(p):
    matrices, y, _ = golden()
    same = waist([matrices[0]] * 3)
    found = solve_cutting_planes(same, labels(y), mk.LpNorm(p), SVM())
    assert found.machine.n_iter == 1
    np.testing.assert_allclose(found.kernel_weights, 3.0 ** -((2 - p) / p))


def test_of_two_sizes_of_one_kernel_the_larger_gets_all():
    matrices, y, _ = golden()
    found = solve_cutting_planes(
        waist([0.3 * matrices[0], 0.7 * matrices[0]]), labels(y), mk.LpNorm(1, tol=1e-9), SVM()
    )
    np.testing.assert_array_equal(found.kernel_weights, [0.0, 1.0])


def test_constant_kernels_stay_out():
    matrices, y, _ = golden()
    ids = mk.sample_ids(16)
    bank = mk.precomputed([np.ones((16, 16)), *matrices])
    grams = bank.plan(ids).grams(ids, budget=MemoryBudget.of(None)).corrected(True, "trace")
    for p in (1, 4 / 3):
        found = solve_cutting_planes(grams, labels(y), mk.LpNorm(p, tol=1e-6), SVM(C=16.0))
        assert found.kernel_weights[0] == 0 and found.machine.gap <= 1e-6


def test_several_outputs_share_the_weights():
    matrices, y, _ = golden()
    Y = np.column_stack([y, np.roll(y, 3), np.where(np.arange(16) < 8, 1.0, -1.0)])
    target = Target(Y, "classification")
    for p in (1, 4 / 3):
        rule = mk.LpNorm(p, tol=1e-4, max_iter=2000)
        found = solve_cutting_planes(waist(matrices), target, rule, SVM())
        slow = find_by_alternation(waist(matrices), target, rule, SVM())
        np.testing.assert_allclose(found.machine.objective, slow.machine.objective, rtol=2e-4)


def test_many_kernels_are_looked_at_in_part(monkeypatch):
    grams, target = gaussians(40)
    full = solve_cutting_planes(grams, target, mk.LpNorm(1, tol=1e-6), SVM())
    monkeypatch.setattr(cuts, "MAX_STEP_KERNELS", 10)
    part = solve_cutting_planes(grams, target, mk.LpNorm(1, tol=1e-6), SVM())
    assert part.machine.gap <= 1e-6
    np.testing.assert_allclose(part.machine.objective, full.machine.objective, rtol=1e-6)


@pytest.mark.parametrize("p", [1, 1.2, 4 / 3, 1.8, 2])
def test_the_minimum_of_the_model_is_proven(p, rng):
    """No weights of the ball lie below the value, and the weights that are returned attain it.

    The cuts are those of a joint problem: ``L_r - theta'a_r / 2`` with a_r >= 0, of any size.
    """
    q = p / (2 - p) if p < 2 else np.inf
    for size in (1e-6, 1.0, 1e6):
        model, L, A = cuts.CutModel(p), [], []
        for _ in range(6):
            L.append(size * rng.uniform(1, 3))
            A.append(size * rng.uniform(0, 2, 5))
            low = model.add(L[-1], A[-1], onto_sphere(np.ones(5), q))
            height = max(c - 0.5 * a @ low.theta for c, a in zip(L, A, strict=True))
            assert norm(low.theta, q) <= 1 + 1e-12 and low.theta.min() >= 0
            assert low.value == pytest.approx(height, rel=1e-6, abs=1e-7 * size)
            assert low.multipliers.sum() == pytest.approx(1.0) and low.multipliers.min() >= 0
            for theta in rng.random((50, 5)) ** 4:
                theta /= norm(theta, q)
                assert low.value <= max(c - 0.5 * a @ theta for c, a in zip(L, A, strict=True))


@pytest.mark.parametrize("p", [1, 4 / 3])
def test_cuts_that_do_not_matter_are_forgotten(p, monkeypatch, rng):
    """Cuts far below the others are dropped after their time; the minimum does not notice."""
    monkeypatch.setattr(cuts, "IDLE_ROUNDS", 2)
    model, q = cuts.CutModel(p), p / (2 - p)
    start = onto_sphere(np.ones(4), q)
    model.add(1.0, rng.uniform(0, 1, 4), start)
    kept = [model.add(-50.0, rng.uniform(0, 1, 4), start).value for _ in range(9)]
    assert len(model.L) == len(model.B) == len(model.idle) == 3
    assert sorted(model.L * model.scale) == pytest.approx([-50.0, -50.0, 1.0])
    np.testing.assert_allclose(kept, kept[0], rtol=1e-7)


def test_old_cuts_are_dropped_and_bounds_kept(monkeypatch):
    monkeypatch.setattr(cuts, "IDLE_ROUNDS", 2)
    for p in (1, 8 / 7):
        found = solve(p, tol=1e-4, stabilise=False)
        assert found.machine.gap <= 1e-4
        assert np.all(np.diff([entry["lower"] for entry in found.history]) >= 0)


def test_machines_on_real_data():
    """Far fewer machines than the alternation, and fewer with every bit of stability."""
    grams, target = gaussians(10)
    rule = mk.LpNorm(1, tol=1e-3, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        slow = find_by_alternation(grams, target, rule, SVM())
    counts = [
        runs_to(solve_cutting_planes(grams, target, rule, SVM(), **way).history, 1e-3)
        for way in WAYS
    ]
    assert runs_to(slow.history, 1e-3) is None
    assert None not in counts
    assert counts[2] < counts[1] < counts[0]
    assert counts[2] <= 12


# -- Algorithm D.1 as it stands --------------------------------------------------------------------


def algorithm_d1(p, back_to_the_sphere, rounds=25):
    """The slow twin: Taylor rounds until theta rests, then a machine; no line search, no level."""
    matrices, y, _ = golden()
    grams, target, q = waist(matrices), labels(y), p / (2 - p)
    theta, L, B, values = np.full(4, 4 ** (-1 / q)), [], [], []
    for _ in range(rounds):
        coef = SVM().fit(grams.combine(theta), target).coef
        a = grams.quadratic_forms(coef)[:, 0]
        L.append(float(coef[:, 0] @ y))
        B.append(0.5 * a)
        values.append(L[-1] - theta @ B[-1])
        for _ in range(20):
            before = theta
            theta, _ = taylor_minimum(np.array(L), np.array(B), before, q)
            theta = back_to_the_sphere(np.clip(theta, 0.0, 1.0), q)
            if np.max(np.abs(theta - before)) < 1e-10:
                break
    return min(values), theta


@pytest.mark.parametrize("p", [8 / 7, 4 / 3, 1.6])
def test_algorithm_d1_with_its_projection_repaired(p):
    value, theta = algorithm_d1(p, lambda theta, q: theta / norm(theta, q))
    np.testing.assert_allclose(value, HINGE[p][0], rtol=1e-7)
    np.testing.assert_allclose(norm(theta, p / (2 - p)), 1.0)


def test_algorithm_d1_as_printed_fails():
    """Line 18 prints theta / ||theta||_q^q, which is not on the sphere for q > 1.

    At p = 1.6 the weights then stay inside the ball and the value 1 % above the optimum, where
    the repaired projection is exact to eight digits after half the machines.
    """
    value, theta = algorithm_d1(1.6, lambda theta, q: theta / norm(theta, q) ** q)
    assert value > 1.01 * HINGE[1.6][0] and norm(theta, 4.0) < 0.99
    value, theta = algorithm_d1(1.6, lambda theta, q: theta / norm(theta, q), rounds=12)
    np.testing.assert_allclose(value, HINGE[1.6][0], rtol=1e-7)


def test_the_expansion_is_exact_for_q_two(rng):
    L, B = rng.uniform(1, 2, 6), rng.uniform(0, 1, (6, 4))
    around = onto_sphere(rng.uniform(0.1, 1, 4), 2.0)
    theta, multipliers = taylor_minimum(L, B, around, 2.0)
    np.testing.assert_allclose(np.linalg.norm(theta), 1.0, rtol=1e-10)
    dual = multipliers @ L - np.linalg.norm(multipliers @ B)
    np.testing.assert_allclose(np.max(L - B @ theta), dual, rtol=1e-9)


@pytest.mark.parametrize("q", [1.05, 4 / 3, 2.0, 4.0, 20.0])
def test_the_ball_master_closes_its_own_gap(q, rng):
    """Primal and dual value of the small problem meet: proof that it is solved."""
    master = BallMaster(q)
    for _ in range(5):
        L, B = rng.uniform(1, 2, 8), rng.uniform(0, 1, (8, 6))
        low = master.solve(L, B, np.full(6, 6 ** (-1 / q)))
        height = np.max(L - B @ low.theta)
        assert norm(low.theta, q) <= 1 + 1e-12
        assert low.value <= height + 1e-14
        np.testing.assert_allclose(low.value, height, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("q", [1.05, 4 / 3, 2.0, 20.0])
def test_one_cut_alone_is_hoelders_inequality(q, rng):
    """In closed form, as low as the rounds find it with the same cut twice."""
    master, L, B = BallMaster(q), rng.uniform(1, 2, 1), rng.uniform(0, 1, (1, 6))
    B[0, 2] = 0.0
    low = master.solve(L, B, np.full(6, 6 ** (-1 / q)))
    twice = master.solve(np.tile(L, 2), np.tile(B, (2, 1)), np.full(6, 6 ** (-1 / q)))
    assert norm(low.theta, q) == pytest.approx(1.0, rel=1e-12) and low.theta[2] == 0.0
    assert low.value == pytest.approx(L[0] - B[0] @ low.theta, rel=1e-12)
    assert low.value == pytest.approx(twice.value, rel=1e-7, abs=1e-9)
    start = np.full(6, 6 ** (-1 / q))
    flat = master.solve(L, np.zeros((1, 6)), start)
    assert flat.value == L[0] and np.array_equal(flat.theta, start)


# -- small geometry --------------------------------------------------------------------------------


def test_nearest_point_satisfies_its_conditions(rng):
    for _ in range(50):
        G, centre = rng.standard_normal((6, 5)), rng.standard_normal(5)
        h = G @ rng.uniform(0, 1, 5) - rng.uniform(0, 0.5, 6)  # some x >= 0 fits
        x, multipliers = nearest(centre, G, h, 1.0)
        assert np.all(x >= 0) and np.all(G @ x >= h - 1e-9) and np.all(multipliers >= 0)
        np.testing.assert_allclose(multipliers * (G @ x - h), 0.0, atol=1e-8)
        residual = x - centre - G.T @ multipliers  # the multipliers of the signs
        np.testing.assert_allclose(residual[x > 0], 0.0, atol=1e-8)
        assert np.all(residual >= -1e-8)


@pytest.mark.parametrize("q", [1.0, 4 / 3, 2.0, 4.0])
def test_points_are_pulled_in_as_far_as_the_sphere(q, rng):
    for _ in range(10):
        outside, inside = rng.uniform(0.8, 2, 5), 0.1 * rng.random(5)
        found = cuts.pull_in(outside, inside, q)
        assert norm(found, q) == pytest.approx(1.0, rel=1e-12)
        # On the segment: the same share of the way in every coordinate.
        share = (found - outside) / (inside - outside)
        np.testing.assert_allclose(share, share[0], rtol=1e-9)
        assert 0 < share[0] < 1
        assert cuts.pull_in(inside, outside, q) is inside


def test_an_empty_set_has_no_nearest_point():
    G = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert least_distance(np.zeros(2), G, np.array([1.0, 0.0]), 1.0) is None


# -- what is refused -------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(ValueError, match="p from 1 to 2"):
        solve(3.0)
    with pytest.raises(ValueError, match="'machine' or 'cuts'"):
        solve(1.0, certificate="luck")


def test_a_limit_on_machines_is_reported():
    with pytest.warns(ConvergenceWarning, match="after max_iter=2 training runs"):
        found = solve(1, max_iter=2)
    assert len(found.history) == 2 and found.machine.gap > 1e-9


# -- other losses, and no intercept ----------------------------------------------------------------


@pytest.mark.parametrize(("p", "optimum"), [(1, 3.287636969), (4 / 3, 2.584708882)])
def test_epsilon_insensitive_loss_on_the_golden_problem(p, optimum):
    from multikernel.learners.svr import SVR

    matrices, _, t = golden()
    rule, target = mk.LpNorm(p, tol=1e-8), Target(t[:, None], "regression")
    learner = SVR(alpha=1.0, epsilon=0.1)
    scale = learner.unit * learner.costs(target)[0]  # the table has C = 1
    found = solve_cutting_planes(waist(matrices), target, rule, learner)
    np.testing.assert_allclose(found.machine.objective / scale, optimum, rtol=1e-7)
    assert found.machine.n_iter <= 12


@pytest.mark.parametrize(("p", "optimum"), [(1, 2.935882978), (4 / 3, 2.493060860)])
def test_no_intercept_on_the_golden_problem(p, optimum):
    matrices, _, t = golden()
    rule, target = mk.LpNorm(p, tol=1e-8), Target(t[:, None], "regression")
    found = solve_cutting_planes(waist(matrices), target, rule, Ridge(fit_intercept=False))
    np.testing.assert_allclose(found.machine.objective / 2, optimum, rtol=1e-7)
    assert found.machine.n_iter <= 12


@pytest.mark.parametrize("p", [1, 4 / 3])
def test_logistic_loss_agrees_with_the_alternation(p):
    from multikernel.learners.logistic import LogisticRegression

    matrices, y, _ = golden()
    rule = mk.LpNorm(p, tol=1e-4, max_iter=2000)
    found = solve_cutting_planes(waist(matrices), labels(y), rule, LogisticRegression())
    slow = find_by_alternation(waist(matrices), labels(y), rule, LogisticRegression())
    np.testing.assert_allclose(found.machine.objective, slow.machine.objective, rtol=2e-4)
    assert found.machine.n_iter <= 12


@pytest.mark.parametrize("p", [1, 4 / 3])
def test_a_warm_start_and_its_reports(p):
    cold, seen = solve(p, tol=1e-6), []
    warm = solve(p, tol=1e-6, warm=cold.kernel_weights, report=seen.append)
    assert seen == warm.history
    np.testing.assert_allclose(warm.machine.objective, cold.machine.objective, rtol=1e-6)


def test_weights_lost_to_rounding_become_equal_ones():
    for q in (1.0, 2.0):
        theta = onto_sphere(np.zeros(4), q)
        assert np.all(theta == theta[0]) and norm(theta, q) == pytest.approx(1.0)
