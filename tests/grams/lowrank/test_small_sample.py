"""Sums over rows, and the small sample that has the same sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from multikernel.grams.lowrank.features import make_features
from multikernel.grams.lowrank.products import weighted_products
from multikernel.grams.lowrank.small_sample import FeatureGrams, small_sample
from multikernel.grams.lowrank.sums import FeatureSums, SumsOfChunk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.planning import plan
from multikernel.learners.ridge import Ridge
from multikernel.problem import Target
from multikernel.solvers.joint.learn import learn
from multikernel.solvers.passes.targets import OutputColumns
from multikernel.weighting import as_weighting

BUDGET = MemoryBudget.of("1GB")


def slow_sums(V, omega):
    mean = np.average(V, axis=0, weights=omega)
    return mean, (V - mean).T @ (omega[:, None] * (V - mean))


@given(
    st.integers(1, 12),
    st.integers(1, 30),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e6]),
)
def test_small_samples_have_the_same_sums(d, n, seed, far):
    random = np.random.default_rng(seed)
    V = random.standard_normal((n, d)) * 10.0 ** random.integers(-3, 4, d) + far
    omega = random.integers(1, 5, n).astype(float)
    mean, S = slow_sums(V, omega)
    sums = FeatureSums(n, float(omega.sum()), mean, S, np.zeros(1), np.zeros(1))
    rows, weights = small_sample(sums)
    assert weights.sum() == pytest.approx(omega.sum())
    assert np.allclose(weights @ rows / weights.sum(), mean, rtol=1e-12, atol=1e-9)
    again = (rows - mean).T @ (weights[:, None] * (rows - mean))
    size = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert np.all(np.abs(again - S) <= 1e-7 * size + 1e-9 * far)


def test_products_are_those_of_numpy(rng):
    F, omega = rng.standard_normal((70, 13)), rng.random(70)
    assert np.allclose(weighted_products(F, omega), F.T @ (omega[:, None] * F))
    assert np.allclose(weighted_products(F, None), F.T @ F)
    assert np.array_equal(weighted_products(F, omega), weighted_products(F, omega).T)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((400, 3)) + 5.0
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 100.0
    omega = rng.integers(1, 4, 400).astype(float)
    bank = mk.KernelBank([mk.Gaussian(0.1), mk.Gaussian(1.0), mk.Linear(), mk.Laplacian(0.1)])
    served = plan(bank, X)
    return X, y, omega, list(served.names), make_features(served, X, mk.Nystroem(rank=30))


def chunks(X, y, omega, cut):
    edges = [0, *cut, len(X)]
    return [(X[a:b], y[a:b], omega[a:b]) for a, b in pairwise(edges)]


def test_sums_of_chunks_add_up(problem):
    X, y, omega, _, features = problem
    origin = features(X[:50]).mean(axis=0)
    of = SumsOfChunk(features, origin, OutputColumns(0), weighted_products)
    mean, S = slow_sums(np.column_stack([features(X), y]), omega)
    total = None
    for chunk in chunks(X, y, omega, [0, 7, 7, 150]):
        part = of(chunk)
        total = part if total is None else total + part
    assert total.n == 400 and total.weight == omega.sum()
    assert np.allclose(total.mean, mean, rtol=1e-12)
    assert np.allclose(total.products, S, rtol=1e-9, atol=1e-9 * np.abs(S).max())
    K = np.array([kernel.diag(X) for kernel in (mk.Gaussian(0.1),)])
    assert total.traces[0] == pytest.approx(float(K[0] @ omega))
    assert np.all(total.errors >= -1e-9 * total.traces)
    first = of(chunks(X, y, omega, [150])[0])
    rest, other = total.without(first), of(chunks(X, y, omega, [150])[1])
    assert np.allclose(rest.products, other.products, atol=1e-9 * np.abs(S).max())
    assert np.allclose(rest.mean, other.mean) and rest.n == other.n


@pytest.mark.parametrize("normalize", ["multiplicative", "trace", "frobenius", "trace-first", None])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rule", ["alignf", "align", "uniform"])
def test_rules_and_ridge_give_the_same_on_both(problem, normalize, center, rule):
    X, y, omega, names, features = problem
    of = SumsOfChunk(features, np.zeros(features.n_features), OutputColumns(0), weighted_products)
    rows, weights = small_sample(of((X, y, omega)))
    whole = FeatureGrams(features(X), features, names, BUDGET, sample_weight=omega)
    small = FeatureGrams(rows[:, :-1], features, names, BUDGET, sample_weight=weights)
    found = []
    for grams, Y, w in ((whole, y[:, None], omega), (small, rows[:, -1:], weights)):
        corrected = grams.corrected(center, normalize)
        target = Target(Y, "regression", w)
        solution = learn(corrected, target, as_weighting(rule), Ridge(0.7))
        expansion = solution.grams.expand(solution.kernel_weights, solution.machine.coef)
        found.append((solution, expansion.values(X[:9]) + solution.machine.intercept))
    (first, values), (second, again) = found
    assert np.allclose(first.kernel_weights, second.kernel_weights, atol=1e-8)
    assert first.machine.objective == pytest.approx(second.machine.objective, rel=1e-7)
    assert first.alignment == pytest.approx(second.alignment, abs=1e-9)
    assert np.allclose(values, again, rtol=1e-8)


@pytest.mark.parametrize("rule", [mk.LpNorm(1.5, tol=1e-6), mk.L1(tol=1e-6), mk.L2Ball(tol=1e-6)])
def test_joint_rules_reach_the_same_optimum(problem, rule):
    X, y, omega, names, features = problem
    of = SumsOfChunk(features, np.zeros(features.n_features), OutputColumns(0), weighted_products)
    rows, weights = small_sample(of((X, y, omega)))
    objectives = []
    for F, Y, w in (
        (features(X), y[:, None], omega),
        (rows[:, :-1], rows[:, -1:], weights),
    ):
        grams = FeatureGrams(F, features, names, BUDGET, sample_weight=w)
        corrected = grams.corrected(True, "multiplicative")
        solution = learn(corrected, Target(Y, "regression", w), rule, Ridge(0.7))
        objectives.append(solution.machine.objective)
        assert solution.machine.gap < 1e-5
    assert objectives[0] == pytest.approx(objectives[1], rel=3e-5)
