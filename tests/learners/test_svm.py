"""The support vector machine with one kernel and a free intercept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import multikernel as mk
from multikernel.learners.polish import polish
from multikernel.learners.svm import SVM
from multikernel.problem.losses import Hinge
from tests.naive_alignment import (
    MatrixGram,
    center,
    fit_given,
    gaussian,
    labels,
    svm_gap,
    svm_violation,
)

# libsvm holds kernel values in float32 whatever its tolerance, so that its decisions are good to
# about 1e-7 times the condition of the free points; ours are checked to 1e-8 by their conditions.
LIBSVM = 1e-5


def data(seed, n=40):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 0.5 + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return gaussian(X, 0.5), y


def machine(K, y, C=1.0, weights=None, costs=None, **options):
    return SVM(C, **options).fit(MatrixGram(K), labels(y, weights, costs))


def decision(K, found):
    return K @ found.coef[:, 0] + found.intercept[0]


def check(K, y, found, C, tol=1e-8):
    """Optimality conditions, and the reported gap against the one written out."""
    C = np.broadcast_to(np.asarray(C, dtype=float), len(y))
    coef, b = found.coef[:, 0], found.intercept[0]
    assert svm_violation(K, coef, b, y, C) <= tol
    gap = svm_gap(K, coef, b, y, C)
    assert -1e-10 <= gap <= tol
    assert found.gap == pytest.approx(max(gap, 0.0), abs=1e-10)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_optimality(seed, C):
    """KKT conditions at 1e-8 after polishing, from libsvm's 1e-3."""
    K, y = data(seed)
    check(K, y, machine(K, y, C), C)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_against_sklearn(C):
    K, y = data(10, 60)
    train, new = K[:40, :40], K[40:, :40]
    found = machine(train, y[:40], C)
    reference = SVC(C=C, kernel="precomputed", tol=1e-10).fit(train, y[:40])
    check(train, y[:40], found, C)
    assert_allclose(decision(new, found), reference.decision_function(new), atol=LIBSVM)
    coef = np.zeros(40)
    coef[reference.support_] = reference.dual_coef_[0]
    assert_allclose(found.coef[:, 0], coef, atol=LIBSVM * max(C, 1.0))


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e3])
@pytest.mark.parametrize("seed", range(10))
def test_gap_is_true_and_within_tolerance(seed, C):
    """Whatever polishing does, the dual is feasible and the reported gap is the real one."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (14, 2)).astype(float)  # many repeated points, with both labels
    y = np.where(np.arange(14) < 5, -1.0, 1.0)
    K = gaussian(X, 1.0) if seed % 2 else X @ X.T
    found = machine(K, y, C)
    coef = found.coef[:, 0]
    assert abs(coef.sum()) <= 1e-9 * C
    assert np.all(coef * y >= -1e-9 * C) and np.all(coef * y <= C * (1 + 1e-9))
    gap = svm_gap(K, coef, found.intercept[0], y, np.full(14, C))
    assert -1e-9 <= gap <= 1e-2
    assert found.gap == pytest.approx(max(gap, 0.0), abs=1e-9)


def test_gap_formula():
    """Gap >= 0 at any feasible point, and equal to P - D written out."""
    K, y = data(0, 12)
    rng = np.random.default_rng(0)
    alpha = rng.uniform(0, 1, 12)
    positive = y > 0
    alpha[positive] *= alpha[~positive].sum() / alpha[positive].sum()
    C = np.full(12, alpha.max() + 0.1)
    coef, b = alpha * y, 0.3
    f, s, Y = (K @ coef)[:, None], coef[:, None], y[:, None]
    half = 0.5 * np.einsum("nt,nt->t", s, f)
    primal = half + Hinge().value(f, Y, C, np.array([b]))
    dual = Hinge().dual(s, Y, C) - half
    gap = (primal[0] - dual[0]) / primal[0]
    assert gap == pytest.approx(svm_gap(K, coef, b, y, C), rel=1e-10)
    assert gap > 0.01


def test_the_objective_is_minimal():
    K, y = data(1)
    found = machine(K, y, 2.0)
    coef, b = found.coef[:, 0], found.intercept[0]

    def primal(c, b):
        return 0.5 * c @ K @ c + 2.0 * np.sum(np.maximum(0, 1 - y * (K @ c + b)))

    best = primal(coef, b)
    assert found.objective == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-5, 1e-2, 1.0):
        for _ in range(20):
            assert primal(coef + size * rng.standard_normal(40), b) > best
        assert primal(coef, b + size) >= best <= primal(coef, b - size)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_invariant_to_centring(C):
    """CMR12 second stage (2), P3: 1'c = 0 kills what centring adds."""
    K, y = data(2, 50)
    rng = np.random.default_rng(2)
    z = rng.standard_normal(50)
    raw = machine(K[:40, :40], y[:40], C)
    # Any K + z1' + 1z' + c that stays a kernel: centring with training means is one of them.
    means, grand = K[:, :40].mean(axis=1), K[:40, :40].mean()
    Kc = K - means[:, None] - means[None] + grand
    assert_allclose(Kc[:40, :40], center(K[:40, :40]), atol=1e-14)
    centred = machine(Kc[:40, :40], y[:40], C)
    assert_allclose(centred.coef, raw.coef, atol=1e-8 * C)
    assert_allclose(decision(Kc[:, :40], centred), decision(K[:, :40], raw), atol=1e-8)
    shifted = K + np.outer(z, np.ones(50)) + np.outer(np.ones(50), z) + 3
    moved = machine(shifted[:40, :40], y[:40], C)
    assert_allclose(decision(shifted[:, :40], moved), decision(K[:, :40], raw), atol=1e-7)


@pytest.mark.parametrize("factor", [1e-2, 3.0, 1e3])
def test_scale_of_kernel_and_C(factor):
    """CMR12 REPAIR-20: (Lambda K, C) gives the decisions of (K, Lambda C)."""
    K, y = data(3)
    one, two = machine(factor * K, y, 2.0), machine(K, y, 2.0 * factor)
    assert_allclose(decision(factor * K, one), decision(K, two), atol=1e-8)
    assert_allclose(factor * one.coef, two.coef, atol=1e-8 * factor)


def test_class_weights():
    """Costs multiply C per point, as SVC's class_weight does; end to end too."""
    K, y = data(4)
    costs = np.where(y > 0, 3.0, 0.5)
    found = machine(K, y, 0.7, costs=costs)
    check(K, y, found, 0.7 * costs)
    reference = SVC(C=0.7, kernel="precomputed", tol=1e-10, class_weight={1: 3.0, -1: 0.5})
    expected = reference.fit(K, y).decision_function(K)
    assert_allclose(decision(K, found), expected, atol=LIBSVM)
    assert np.max(np.abs(decision(K, machine(K, y, 0.7)) - expected)) > 0.05
    model = mk.MultiKernelClassifier(
        weighting="uniform", C=0.7, normalize=None, class_weight={1: 3.0, -1: 0.5}
    )
    model = fit_given(model, [K], y)
    assert_allclose(model.decision_function(mk.sample_ids(40)), expected, atol=LIBSVM)
    # Class weights are costs of errors, not counts of points: the alignment ignores them.
    plain = fit_given(mk.MultiKernelClassifier(weighting="uniform", normalize=None), [K], y)
    assert model.alignment_ == pytest.approx(plain.alignment_, rel=1e-12)


def test_balanced_class_weights():
    K, y = data(5)
    model = mk.MultiKernelClassifier(weighting="uniform", normalize=None, class_weight="balanced")
    model = fit_given(model, [K], y)
    reference = SVC(kernel="precomputed", tol=1e-10, class_weight="balanced").fit(K, y)
    expected = reference.decision_function(K)
    assert_allclose(model.decision_function(mk.sample_ids(40)), expected, atol=LIBSVM)


def test_weighted_is_repeated():
    K, y = data(6)
    times = np.random.default_rng(6).integers(1, 4, 40)
    index = np.repeat(np.arange(40), times)
    weighted = machine(K, y, 0.8, weights=times.astype(float))
    repeated = machine(K[np.ix_(index, index)], y[index], 0.8)
    check(K, y, weighted, 0.8 * times)
    assert_allclose(np.bincount(index, repeated.coef[:, 0]), weighted.coef[:, 0], atol=1e-7)
    assert_allclose(repeated.intercept, weighted.intercept, atol=1e-7)
    assert repeated.objective == pytest.approx(weighted.objective, rel=1e-8)


@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf"])
def test_weighted_is_repeated_end_to_end(weighting):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0, "yes", "no")
    times = rng.integers(0, 4, 30)
    index = np.repeat(np.arange(30), times)
    bank = mk.gaussians([0.1, 1.0]) + mk.KernelBank([mk.Linear()])
    one = mk.MultiKernelClassifier(bank, weighting).fit(X, y, sample_weight=times)
    two = mk.MultiKernelClassifier(bank, weighting).fit(X[index], y[index])
    assert_allclose(one.kernel_weights_, two.kernel_weights_, atol=1e-9)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-7)


def test_one_machine_per_column():
    """Columns are separate machines; threads change nothing."""
    K, y = data(8)
    other = np.where(np.arange(40) % 3 == 0, 1.0, -1.0)
    Y = np.column_stack([y, other])
    together = machine(K, Y, 0.5)
    threaded = machine(K, Y, 0.5, n_jobs=2)
    for j, column in enumerate(Y.T):
        alone = machine(K, column, 0.5)
        assert_allclose(together.coef[:, j], alone.coef[:, 0], atol=1e-12)
        assert_allclose(together.intercept[j], alone.intercept[0], atol=1e-12)
    assert np.array_equal(together.coef, threaded.coef)


# -- degenerate cases ------------------------------------------------------------------------------


def test_a_start_at_the_optimum_leaves_nothing_to_do():
    """Signed coefficients of an earlier fit, one column per machine."""
    K, y = data(4, 60)
    Y = np.column_stack([y, -y, np.roll(y, 7)])
    learner, gram = SVM(2.0, tol=1e-5), MatrixGram(K)
    cold = learner.fit(gram, labels(Y))
    warm = learner.fit(gram, labels(Y), start=cold.coef)
    assert cold.n_iter > 20
    assert warm.n_iter <= 1
    assert_allclose(warm.coef, cold.coef, atol=1e-9)


def test_the_iterations_are_those_of_the_longest_run():
    K, y = data(4, 60)
    Y = np.column_stack([y, np.roll(y, 7)])
    alone = [machine(K, column, 2.0).n_iter for column in Y.T]
    assert len(set(alone)) == 2
    assert machine(K, Y, 2.0).n_iter == max(alone)


def test_two_points():
    """n = 2: alpha = min(C, 2 / ||x1 - x2||^2) for both."""
    for distance in (0.1, 1.0, 4.0):
        K = np.outer([0.0, distance], [0.0, distance]) + 1.0
        y = np.array([-1.0, 1.0])
        for C in (0.3, 5.0):
            found = machine(K, y, C)
            alpha = min(C, 2 / distance**2)
            assert_allclose(found.coef[:, 0], alpha * y, rtol=1e-9)
            check(K, y, found, C)


def test_two_equal_points_with_both_labels():
    """Nothing separates them: f = 0, both at the bound, every |b| <= 1 is optimal."""
    y = np.array([1.0, -1.0])
    found = machine(np.ones((2, 2)), y, 2.0)
    assert_allclose(found.coef[:, 0], 2.0 * y)
    assert abs(found.intercept[0]) <= 1
    assert found.objective == pytest.approx(4.0)
    assert found.gap == 0


def test_all_points_at_the_bound():
    """Balanced classes and a small C: alpha = C everywhere, gap 0."""
    K, _ = data(9, 20)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    K = np.eye(20) + 0.01 * K
    found = machine(K, y, 1e-3)
    assert_allclose(found.coef[:, 0], 1e-3 * y, rtol=1e-12)
    check(K, y, found, 1e-3)


def test_duplicated_points():
    """Every point twice is C twice as large: the same function."""
    K, y = data(11)
    index = np.tile(np.arange(40), 2)
    twice = machine(K[np.ix_(index, index)], y[index], 0.5)
    once = machine(K, y, 1.0)
    check(K[np.ix_(index, index)], y[index], twice, 0.5)
    assert_allclose(np.bincount(index, twice.coef[:, 0]), once.coef[:, 0], atol=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_points_with_both_labels(C):
    """Points that carry both labels leave the conditions satisfiable; they are satisfied."""
    K, y = data(12, 20)
    index = np.append(np.arange(20), np.arange(8))
    both = np.append(y, -y[:8])
    K = K[np.ix_(index, index)]
    check(K, both, machine(K, both, C), C)


def test_separable_with_huge_C():
    """Hard margin: free points only, margins of one."""
    x = np.array([-3.0, -1.0, 1.0, 2.0])
    y = np.sign(x)
    found = machine(np.outer(x, x), y, 1e6)
    assert_allclose(decision(np.outer(x, x), found), x, atol=1e-9)
    assert_allclose(found.coef[:, 0], [0, -0.5, 0.5, 0], atol=1e-9)
    check(np.outer(x, x), y, found, 1e6)


def test_polishing_without_free_points():
    """libsvm may stop with every alpha at 0 or C though another choice of bounds is better.

    Points 0 and 1 coincide and have different labels: taking both costs no norm, D = 2C; the
    pair (1, 2) has D = 2C - C^2 (0.8 - 0.7)^2 / 2.
    """
    x, y, C = np.array([0.8, 0.8, 0.7]), np.array([-1.0, 1.0, -1.0]), 0.1
    K = np.outer(x, x)
    check(K, y, machine(K, y, C), C)


@pytest.mark.parametrize("C", [1e-3, 1e-2])
@pytest.mark.parametrize("seed", range(10))
def test_optimality_with_small_C(seed, C):
    """KKT conditions at 1e-8 where most or all points are at a bound."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 2))
    y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
    K = X @ X.T
    check(K, y, machine(K, y, C), C)


@pytest.mark.parametrize("seed", range(5, 15))
def test_polish_returns_coefficients_with_the_right_sum(seed):
    """Systems of a nearly constant matrix with large entries lose the condition on the sum."""
    rng = np.random.default_rng(seed)
    x = 1e5 + rng.normal(size=(13, 3))
    C, ones = rng.uniform(0.02, 0.26, size=13), np.ones(13)
    K, start = x @ x.T, np.diff(np.minimum(np.cumsum(C), 1.0), prepend=0.0)
    found = polish(K, start, -K.mean(), ones, 0.0 * ones, C, 1.0)
    assert found.alpha.sum() == pytest.approx(1.0, rel=1e-8)


def test_polish_keeps_the_better_solution():
    """A solution that is exact already, or better than what polishing finds, is kept."""
    K, y = data(13)
    C = np.ones(40)
    found = machine(K, y, 1.0, tol=1e-10)
    minus = np.full(40, -1.0)
    again = polish(K, found.coef[:, 0] * y, found.intercept[0], y, minus, C)
    assert_allclose(again.alpha * y, found.coef[:, 0], atol=1e-10)
    assert_allclose(again.values, K @ (again.alpha * y), atol=1e-12)
    assert again.intercept == pytest.approx(found.intercept[0], abs=1e-10)
    rough = SVC(kernel="precomputed", tol=0.1).fit(K, y)
    start = np.zeros(40)
    start[rough.support_] = rough.dual_coef_[0]
    better = polish(K, start * y, rough.intercept_[0], y, minus, C)
    before = svm_gap(K, start, rough.intercept_[0], y, C)
    assert before > 1e-5
    assert svm_gap(K, better.alpha * y, better.intercept, y, C) <= before


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("width", [0.001, 0.5, 50.0])
def test_a_gap_above_tol_is_never_silent(C, width):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = machine(gaussian(X, width), y, C)
    assert 0 <= found.gap <= 1 + 1e-9
    said = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert bool(said) == (found.gap > 1e-3)
    if said:
        assert "lower it" in str(said[0].message) or "Raise max_iter" in str(said[0].message)
