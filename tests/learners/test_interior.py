"""The interior-point method for the dual of support vector machines."""

import numpy as np
import pytest

from multikernel.grams.matrix import GivenMatrix
from multikernel.learners._smo_dual import SignedDual
from multikernel.learners.interior import interior_point
from multikernel.learners.source import Source
from tests.fuzz.test_random_problems import fit, problem


def gap(dual, K, C, result):
    """The relative duality gap of a result, and how far its constraints are violated."""
    n = len(K)
    point = np.arange(len(dual.linear)) % n
    s = np.bincount(point, dual.sign * result.alpha, n)
    f = K @ s
    # The loss is piecewise linear in the intercept: its minimum is at a kink.
    kinks = -(f[point] + dual.sign * dual.linear) if dual.intercept else np.zeros(1)
    slopes = dual.sign * (f[point] + kinks[:, None]) + dual.linear
    losses = np.maximum(-slopes, 0.0) @ C + kinks * dual.delta
    primal = 0.5 * float(s @ f) + float(losses.min())
    value = -dual.objective(result.alpha, f)
    outside = max(float(-result.alpha.min()), float((result.alpha - C).max()), 0.0)
    off = abs(float(s.sum()) - dual.delta) if dual.intercept else 0.0
    return (primal - value) / abs(primal), max(outside, off) / C.max()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("rank", [1, 3, 40])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_the_optimum_is_found(intercept, kind, rank, C):
    rng = np.random.default_rng(rank)
    n = 40
    F = 30.0 * rng.normal(size=(n, rank))
    K = F @ F.T
    y = np.sign(rng.normal(size=n))
    linear, sign = np.full(n, -1.0), y
    if kind == "regression":
        y = 1e-3 * rng.normal(size=n)
        linear, sign = np.concatenate([1e-4 - y, 1e-4 + y]), np.repeat([1.0, -1.0], n)
    costs = C * rng.uniform(0.0, 1.0, size=n)
    costs[0] = 0.0  # a sample of weight zero has no room
    costs = np.tile(costs, len(linear) // n)
    dual = SignedDual.of(n, linear, sign, costs, 0.0, intercept)
    result = interior_point(dual, K, costs)
    found, outside = gap(dual, K, costs, result)
    assert -1e-9 < found < 1e-5 and outside < 1e-12
    np.testing.assert_allclose(
        result.values, K @ np.bincount(np.arange(len(linear)) % n, sign * result.alpha, n)
    )


def test_the_one_class_problem():
    rng = np.random.default_rng(0)
    F = 1.0 + 0.3 * rng.normal(size=(30, 4))  # away from zero
    K, costs = F @ F.T, np.full(30, 1.0 / (0.3 * 30))
    dual = SignedDual.of(30, np.zeros(30), np.ones(30), costs, 1.0, True)
    found, outside = gap(dual, K, costs, interior_point(dual, K, costs))
    assert abs(found) < 1e-6 and outside < 1e-12


def test_low_rank_and_large_C_need_few_steps():
    """Steps of two variables needed ten million here, and ended with a gap of 1."""
    rng = np.random.default_rng(1)
    x = 1e3 * rng.normal(size=15)
    y = np.sign(np.sin(x))
    source = Source.of(GivenMatrix(np.outer(x, x)))
    solved = source.solve(np.full(15, -1.0), y, np.full(15, 100.0))
    assert solved.finished and solved.steps < 10_000


@pytest.mark.parametrize("seed", [2000205, 3002335, 4001123, 7001700])
def test_random_problems_that_took_a_minute(seed):
    model, X, y, sample_weight = problem(seed)
    fitted, said = fit(model, X, y, sample_weight)
    assert not said
    assert fitted.n_iter_ < 100_000
