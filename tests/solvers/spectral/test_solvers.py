"""Largest margins at fixed trace: every solver against the others and against closed forms."""

from __future__ import annotations

import builtins
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.svm import SVC

import multikernel as mk
from multikernel.bounds.transduction import (
    hull_complexity,
    power_kernels,
    psd_ball_complexity,
    spectral_complexity,
    transductive_exact,
)
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.joint.learn import learn
from multikernel.solvers.spectral.best_alignment import align
from multikernel.solvers.spectral.cutting_planes import cutting_planes
from multikernel.solvers.spectral.gradient import onto_simplex, projected_gradient
from multikernel.solvers.spectral.hulls import KernelMatrices, RankOneKernels
from multikernel.solvers.spectral.linear import Cone, independent, linear_combination
from multikernel.solvers.spectral.lp import free_spectrum
from multikernel.solvers.spectral.problem import Labels, NotSeparableError, train
from multikernel.solvers.spectral.qcqp import MAX_QCQP_ENTRIES, qcqp
from multikernel.solvers.spectral.sdp import sdp, triangle, untriangle
from multikernel.solvers.spectral.spectral_class import KernelSpectrum, NegativeEigenvalueError
from tests.solvers.joint.test_qcqp_oracle import conic_optimum

MARGINS = [("1-norm", 0.05), ("1-norm", 1.0), ("2-norm", 10.0), ("hard", 1.0)]


def sample(seed: int, N: int = 40, n: int = 24) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kernels of trace N on all points, which are labelled, and their labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0)
    D = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    kernels = [np.exp(-g * D) for g in (0.05, 0.3, 2.0)] + [(1 + X @ X.T) ** 2]
    labelled = np.sort(rng.permutation(N)[:n])
    return np.array([K * (N / np.trace(K)) for K in kernels]), labelled, y[labelled]


def on(stack: np.ndarray, labelled: np.ndarray) -> KernelMatrices:
    return KernelMatrices(np.ascontiguousarray(stack[:, labelled[:, None], labelled]))


# -- one machine -----------------------------------------------------------------------------------


def test_the_machine_is_that_of_libsvm():
    stack, labelled, y = sample(0)
    K = on(stack, labelled).stack[1]
    found = train(K, Labels(y, "1-norm", 2.0))
    theirs = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(K, y)
    s = np.zeros(len(y))
    s[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(
        K @ found.s + found.intercept, theirs.decision_function(K), atol=1e-6
    )
    np.testing.assert_allclose(found.norm, s @ K @ s, rtol=1e-6)


def test_hard_margin_of_separated_points_is_that_of_a_large_cost():
    stack, labelled, y = sample(1)
    K = on(stack, labelled).stack[2]
    hard = train(K, Labels(y, "hard"))
    soft = train(K, Labels(y, "1-norm", 1e6))
    np.testing.assert_allclose(hard.primal, soft.primal, rtol=1e-9)
    assert (y * (K @ hard.s + hard.intercept)).min() == pytest.approx(1.0, abs=1e-12)


def test_squared_losses_add_a_ridge():
    stack, labelled, y = sample(2)
    K = on(stack, labelled).stack[0]
    C = 3.0
    found = train(K, Labels(y, "2-norm", C))

    def primal(x: np.ndarray) -> float:
        f = K @ x[:-1]
        slack = np.maximum(0.0, 1.0 - y * (f + x[-1]))
        return 0.5 * x[:-1] @ f + 0.5 * C * slack @ slack

    there = np.append(found.s, found.intercept)
    assert primal(there) == pytest.approx(found.primal, rel=1e-8)
    slow = minimize(primal, there, method="BFGS", options={"gtol": 1e-9})
    assert slow.fun >= found.primal * (1 - 1e-9)


# -- class (3) -------------------------------------------------------------------------------------


def test_two_orthogonal_kernels_of_rank_one():
    """f = beta_1 v_1 + beta_2 v_2 must be 1 and -1: ``||w||`` is the sum of the sizes of beta."""
    V = np.array([[1.0, 0.0], [0.0, 2.0]])
    y = np.array([1.0, -1.0])
    # with intercept b: beta = (1 - b, -(1 + b)/2), |beta| smallest at b = 1
    for solve in (projected_gradient, qcqp, free_spectrum):
        found = solve(RankOneKernels(V), Labels(y, "hard"))
        np.testing.assert_allclose(found.machine.norm, 1.0, rtol=1e-6)
        np.testing.assert_allclose(found.weights, [0.0, 1.0], atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("margin", "C"), MARGINS)
def test_convex_combinations_by_every_solver(seed, margin, C):
    pytest.importorskip("clarabel")
    stack, labelled, y = sample(seed)
    hull, labels = on(stack, labelled), Labels(y, margin, C)
    found = [projected_gradient(hull, labels, tol=1e-7), qcqp(hull, labels)]
    found.append(sdp(stack, labelled, labels, signed=False))
    if margin != "2-norm":
        found.append(cutting_planes(hull, labels, tol=1e-7))
    for one in found:
        assert one.gap <= 1e-6
        assert one.weights.min() >= 0
        assert one.weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(one.machine.primal, found[0].machine.primal, rtol=1e-6)
        np.testing.assert_allclose(one.weights, found[0].weights, atol=5e-3)
    if margin == "1-norm":
        value, theta = conic_optimum(list(hull.stack), y, C, 1)
        np.testing.assert_allclose(found[0].machine.primal, value, rtol=1e-6)
        np.testing.assert_allclose(found[0].weights, theta, atol=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_papers_algorithm_is_l1_norm_learning(seed):
    stack, labelled, y = sample(seed)
    hull = on(stack, labelled)
    ids = mk.sample_ids(len(y))
    bank = mk.precomputed(list(hull.stack))
    grams = bank.plan(ids).grams(ids, budget=MemoryBudget.of(None)).corrected(False, None)
    theirs = learn(grams, Target(y[:, None], "classification"), mk.L1(tol=1e-8), SVM(C=1.0))
    ours = projected_gradient(hull, Labels(y, "1-norm", 1.0), tol=1e-8)
    np.testing.assert_allclose(ours.machine.primal, theirs.machine.objective, rtol=1e-7)
    np.testing.assert_allclose(ours.weights, theirs.kernel_weights, atol=1e-4)


@pytest.mark.parametrize(("margin", "C"), MARGINS)
def test_the_gradient_is_that_of_the_objective(margin, C):
    stack, labelled, y = sample(3)
    hull, labels = on(stack, labelled), Labels(y, margin, C)
    d = np.full(4, 0.25)
    gradient = -0.5 * hull.forms(train(hull.combine(d), labels).s)
    step = 1e-5
    for k in range(4):
        e = step * np.eye(4)[k]
        up, down = (train(hull.combine(d + sign * e), labels).primal for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(gradient[k], rel=1e-4)


def test_the_bounds_hold_whatever_the_weights():
    """Any alpha from below, any d from above."""
    rng = np.random.default_rng(0)
    stack, labelled, y = sample(4)
    hull = on(stack, labelled)
    for margin, C in MARGINS:
        labels = Labels(y, margin, C)
        best = projected_gradient(hull, labels, tol=1e-8).machine.primal
        for _ in range(10):
            machine = train(hull.combine(rng.dirichlet(np.ones(4))), labels)
            assert machine.primal >= best * (1 - 1e-7)
            alpha = labels.feasible(machine.alpha * rng.uniform(0, 1.5, len(y)))
            assert abs(alpha @ y) <= 1e-12 * alpha.sum()
            lower = labels.dual(alpha, float(hull.forms(y * alpha).max()))
            assert lower <= best * (1 + 1e-9)


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=12),
    st.sampled_from([1.0, 1e-6, 1e9]),
)
def test_projection_on_the_simplex(values, scale):
    v = scale * np.array(values)
    d = onto_simplex(v)
    assert d.min() >= 0
    assert d.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(onto_simplex(d), d, atol=1e-12)
    # optimality: (v - d)'(e_k - d) <= 0 for all corners
    assert np.max((v - d) - (v - d) @ d) <= 1e-9 * max(scale, 1.0)


def test_points_that_no_kernel_separates():
    V = np.ones((4, 2))
    labels = Labels(np.array([1.0, -1.0, 1.0, -1.0]), "hard")
    for solve in (projected_gradient, qcqp, free_spectrum):
        with pytest.raises(NotSeparableError, match="Use margin='1-norm' or '2-norm'"):
            solve(RankOneKernels(V), labels)
    stack = np.stack([np.ones((4, 4)), np.ones((4, 4))])
    with pytest.raises(NotSeparableError, match="equal but labelled differently"):
        linear_combination(stack, np.arange(4), labels, max_iter=5)


# -- class (2) -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("margin", "C"), MARGINS[1:])
def test_linear_combinations_contain_convex_ones(seed, margin, C):
    pytest.importorskip("clarabel")
    stack, labelled, y = sample(seed, 30, 18)
    labels = Labels(y, margin, C)
    free = linear_combination(stack, labelled, labels, tol=1e-6)
    conic = sdp(stack, labelled, labels)
    convex = projected_gradient(on(stack, labelled), labels, tol=1e-7)
    assert free.gap <= 1e-6
    assert conic.gap <= 1e-6
    np.testing.assert_allclose(free.machine.primal, conic.machine.primal, rtol=2e-6)
    assert free.machine.primal <= convex.machine.primal * (1 + 1e-6)
    for found in (free, conic):
        K = np.tensordot(found.weights, stack, axes=1)
        assert np.linalg.eigvalsh(K)[0] >= -1e-9 * len(K)
        assert np.trace(K) == pytest.approx(len(K))
    assert free.weights.min() < 0  # else the test would not tell (2) from (3)


def test_linear_combinations_against_a_search_in_the_plane():
    """Two kernels: one number is free, and the edge of the cone is an eigenvalue."""
    stack, labelled, y = sample(5)
    pair, labels = stack[[1, 2]], Labels(y, "1-norm", 1.0)
    hull = on(pair, labelled)

    def objective(t: float) -> float:
        K = t * pair[0] + (1 - t) * pair[1]
        if np.linalg.eigvalsh(K)[0] < -1e-12:
            return np.inf
        return train(t * hull.stack[0] + (1 - t) * hull.stack[1], labels).primal

    grid = np.linspace(-1.0, 2.0, 1201)
    found = linear_combination(pair, labelled, labels, tol=1e-6)
    assert found.machine.primal <= min(objective(t) for t in grid) * (1 + 1e-6)


def test_kernels_that_depend_on_each_other():
    stack, labelled, y = sample(6)
    labels = Labels(y, "1-norm", 1.0)
    more = np.concatenate([stack, stack[:1], stack[:2].mean(axis=0)[None]])
    np.testing.assert_array_equal(independent(more), [True] * 4 + [False] * 2)
    few, many = (linear_combination(K, labelled, labels, tol=1e-6) for K in (stack, more))
    np.testing.assert_allclose(few.machine.primal, many.machine.primal, rtol=2e-6)


def test_the_cone_knows_its_edge():
    stack, _, _ = sample(7)
    cone = Cone.of(stack)
    centre = np.full(4, 0.25)
    direction = np.array([1.0, -1.0, 0.5, -0.5])
    edge = cone.reach(direction)
    for factor, inside in ((0.999, True), (1.001, False)):
        d = centre + factor * edge * direction
        lowest = cone.lowest(d)[0][0]
        assert (lowest > 0) == inside


def test_triangles_keep_inner_products(rng):
    A, B = (M + M.T for M in rng.standard_normal((2, 5, 5)))
    assert triangle(A) @ triangle(B) == pytest.approx(np.sum(A * B))
    np.testing.assert_allclose(untriangle(triangle(A), 5), A)


def test_programs_that_are_too_large_say_so():
    labels = Labels(np.tile([1.0, -1.0], 60))
    with pytest.raises(ValueError, match=r"Up to 80 samples are possible; solver='auto'"):
        sdp(np.eye(120)[None], np.arange(120), labels)
    n = 120
    many = KernelMatrices(np.broadcast_to(np.eye(n), (MAX_QCQP_ENTRIES // n**2 + 1, n, n)))
    with pytest.raises(ValueError, match="more than 2,000,000"):
        qcqp(many, labels)


def test_without_clarabel_the_message_names_the_extra(monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name == "clarabel":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install multikernel\[sdp\]"):
        qcqp(RankOneKernels(np.eye(2)), Labels(np.array([1.0, -1.0])))


# -- classes (4) and (5) ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("margin", "C"), [*MARGINS, ("1-norm", 30.0)])
def test_the_free_spectrum_by_every_solver(seed, margin, C):
    pytest.importorskip("clarabel")
    stack, labelled, y = sample(seed)
    hull = KernelSpectrum.of(stack[1], 40.0).hull("spectral", 1, labelled)
    labels = Labels(y, margin, C)
    conic = qcqp(hull, labels)
    gradient = projected_gradient(hull, labels, tol=1e-3, max_iter=1000)
    assert gradient.gap <= 1e-3
    assert gradient.machine.primal <= conic.machine.primal * (1 + 1e-3)
    assert gradient.lower <= conic.machine.primal * (1 + 1e-9)
    if margin == "2-norm":
        with pytest.raises(ValueError, match="not linear"):
            free_spectrum(hull, labels)
        return
    exact = free_spectrum(hull, labels)
    assert exact.gap <= 1e-9
    np.testing.assert_allclose(exact.machine.primal, conic.machine.primal, rtol=1e-5)


def test_the_free_hard_margin_is_a_linear_program():
    """``min ||beta||_1`` over ``y (V beta + b) >= 1``, written out."""
    stack, labelled, y = sample(8)
    spectrum = KernelSpectrum.of(stack[1], 40.0)
    V = np.sqrt(40.0) * spectrum.vectors[labelled]
    both = np.hstack([V, -V, np.ones((len(y), 1)), -np.ones((len(y), 1))])
    cost = np.append(np.ones(2 * V.shape[1]), [0.0, 0.0])
    slow = linprog(cost, A_ub=-y[:, None] * both, b_ub=-np.ones(len(y)))
    found = free_spectrum(RankOneKernels(V), Labels(y, "hard"))
    assert found.machine.norm == pytest.approx(slow.fun**2, rel=1e-7)


@pytest.mark.parametrize(("margin", "C"), MARGINS)
def test_larger_classes_have_larger_margins(margin, C):
    """At equal trace: the free spectrum, then polynomials of rising degree, then the kernel."""
    for seed in range(2):
        stack, labelled, y = sample(seed)
        spectrum, labels = KernelSpectrum.of(stack[1], 40.0), Labels(y, margin, C)
        values = [
            projected_gradient(spectrum.hull("polynomial", degree, labelled), labels, tol=1e-6)
            for degree in (1, 2, 3, 6)
        ]
        alone = train(on(stack, labelled).stack[1], labels)
        assert values[0].machine.primal == pytest.approx(alone.primal, rel=1e-7)
        primal = [one.machine.primal for one in values]
        assert all(b <= a * (1 + 1e-6) for a, b in pairwise(primal))
        free = projected_gradient(
            spectrum.hull("spectral", 1, labelled), labels, tol=1e-3, max_iter=1000
        )
        assert free.lower <= primal[-1]
        assert free.machine.primal <= primal[-1] * (1 + 1e-3)


def test_powers_are_those_of_the_matrix():
    stack, labelled, _ = sample(9)
    spectrum = KernelSpectrum.of(stack[1], 40.0)
    hull = spectrum.hull("polynomial", 4, labelled)
    for ours, theirs in zip(hull.stack, power_kernels(stack[1], 4, 40.0), strict=True):
        np.testing.assert_allclose(ours, theirs[np.ix_(labelled, labelled)], atol=1e-10)


def test_the_order_of_eigenvalues_is_kept_by_polynomials_only():
    stack, labelled, y = sample(10)
    spectrum = KernelSpectrum.of(stack[1], 40.0)
    poly = projected_gradient(spectrum.hull("polynomial", 5, labelled), Labels(y, "hard"))
    free = free_spectrum(spectrum.hull("spectral", 5, labelled), Labels(y, "hard"))
    g = poly.weights @ spectrum.members("polynomial", 5)
    assert np.all(np.diff(g) <= 1e-12)
    g = free.weights @ spectrum.members("spectral", 5)
    assert np.any(np.diff(g) > 1.0)
    assert g.sum() == pytest.approx(40.0)


def test_the_extension_continues_the_machine():
    stack, labelled, y = sample(11)
    K = stack[1]
    spectrum = KernelSpectrum.of(K, 40.0)
    machine = projected_gradient(spectrum.hull("polynomial", 3, labelled), Labels(y))
    g = machine.weights @ spectrum.members("polynomial", 3)
    inside = spectrum.values_at(g, labelled, machine.machine.s)
    coef = spectrum.extension(g, labelled, machine.machine.s)
    np.testing.assert_allclose(K @ coef, inside, atol=1e-10)


def test_kernels_with_negative_eigenvalues_are_refused():
    with pytest.raises(NegativeEigenvalueError, match="smallest eigenvalue is -1"):
        KernelSpectrum.of(np.diag([2.0, -1.0]), 1.0)


def test_aligned_spectrum_of_labelled_points_is_a_square():
    """All points labelled: the eigenvectors are orthonormal and ``d_i = (v_i'y)^2``."""
    stack, _, _ = sample(12)
    y = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    spectrum = KernelSpectrum.of(stack[2], 40.0)
    d, reached, violation = align(spectrum.hull("spectral", 1, np.arange(40)), y)
    expected = (spectrum.vectors.T @ y) ** 2
    np.testing.assert_allclose(d, expected / expected.sum(), atol=1e-9)
    assert violation <= 1e-9
    K = (spectrum.vectors * d) @ spectrum.vectors.T
    assert reached == pytest.approx(mk.alignment(K, np.outer(y, y)))


def test_no_other_weights_are_better_aligned(rng):
    stack, labelled, y = sample(13)
    hull = on(stack, labelled)
    d, reached, violation = align(hull, y)
    assert violation <= 1e-9
    target = np.outer(y, y)
    assert reached == pytest.approx(mk.alignment(hull.combine(d), target))
    for other in rng.dirichlet(np.full(4, 0.3), 200):
        assert mk.alignment(hull.combine(other), target) <= reached + 1e-12


# -- complexities ----------------------------------------------------------------------------------


def test_every_bound_is_above_the_complexity_of_its_class():
    stack, _, _ = sample(14)
    n, c, M = 20, 40.0, 0.5
    hull = transductive_exact(list(stack), c, M, random_state=0)
    assert hull.value <= hull_complexity(list(stack), c, n, M)
    vectors = KernelSpectrum.of(stack[2], c).vectors
    free = transductive_exact([np.outer(v, v) for v in vectors.T], c, M, random_state=0)
    assert free.value <= spectral_complexity(c, n, M)
    assert hull.value <= psd_ball_complexity(c, n, M)


def test_the_ball_of_all_matrices_reaches_its_complexity(rng):
    """``K = c sigma sigma' / 2n`` has ``sigma'K sigma = 2nc`` for its own signs."""
    n, c, M = 15, 30.0, 0.7
    sigma = rng.choice([-1.0, 1.0], 2 * n)
    K = c * np.outer(sigma, sigma) / (2 * n)
    assert np.trace(K) == pytest.approx(c)
    assert np.sqrt(sigma @ K @ sigma) / (n * M) == pytest.approx(psd_ball_complexity(c, n, M))
