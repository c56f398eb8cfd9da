"""Block steps: optimality conditions, and the optimum of sequential minimal optimisation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from multikernel.grams.matrix import GivenMatrix
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.protocol import CombinedGram
from multikernel.learners import block_steps, smo
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.source import Source
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target


@pytest.fixture
def narrow(monkeypatch):
    """Working sets so small that many steps are needed."""
    monkeypatch.setattr(block_steps, "SIZE", 16)
    monkeypatch.setattr(block_steps, "DEVICE_SIZE", 16)


class OnDevice(CombinedGram):
    """An operator without a matrix in host memory, and a record of what was read."""

    on_device = True

    def __init__(self, K):
        self.K, self.n, self.kernel_weights, self.room = K, len(K), np.ones(1), 0.0
        self.widest = 0

    def matvec(self, V):
        return self.K @ V

    def diagonal(self):
        return np.diag(self.K).copy()

    def rows(self, index):
        index = np.arange(self.n)[index] if isinstance(index, slice) else index
        self.widest = max(self.widest, len(index))
        return self.K[index]


def gaussian(X, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def arguments(rng, kind, n):
    """A kernel matrix, and the dual problem of a loss."""
    X = rng.normal(size=(n, 3))
    target = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    C = rng.uniform(0.2, 3.0, size=n)
    if kind == "svm":
        y = np.where(target > 0.2, 1.0, -1.0)
        return gaussian(X), (np.full(n, -1.0), y, C), {}
    if kind == "svr":
        linear = np.concatenate([0.1 - target, 0.1 + target])
        return gaussian(X), (linear, np.repeat([1.0, -1.0], n), np.tile(C, 2)), {}
    return gaussian(X), (np.zeros(n), np.ones(n), C / (0.3 * C.sum())), {"delta": 1.0}


def check_optimal(K, problem, found, delta=0.0, intercept=True, tol=1e-6):
    """The optimality conditions, from the definition of the problem alone."""
    linear, sign, C = problem
    n = len(K)
    assert np.all(found.alpha >= 0) and np.all(found.alpha <= C)
    s = (sign * found.alpha).reshape(-1, n).sum(axis=0)
    if intercept:
        assert s.sum() == pytest.approx(delta, abs=1e-12 * max(np.abs(s).sum(), 1.0))
    gradient = sign * (np.tile(K @ s, len(sign) // n) + found.intercept) + linear
    assert np.all(gradient[found.alpha == 0] >= -tol)
    assert np.all(gradient[found.alpha == C] <= tol)
    free = (found.alpha > 0) & (found.alpha < C)
    assert np.all(np.abs(gradient[free]) <= tol)


@pytest.mark.parametrize("kind", ["svm", "svr", "one class"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum(rng, narrow, kind, intercept):
    if kind == "one class" and not intercept:
        pytest.skip("zero is the optimum")
    K, problem, options = arguments(rng, kind, 150)
    for gram in (GivenMatrix(K), GivenMatrix(K, n_jobs=3), OnDevice(K)):
        found = smo.solve(gram, *problem, tol=1e-7, intercept=intercept, **options)
        assert found.status == "optimal" and found.violation <= 1e-7
        check_optimal(K, problem, found, intercept=intercept, **options)
        want = smo.solve(K, *problem, tol=1e-7, intercept=intercept, **options)
        assert found.objective == pytest.approx(want.objective, rel=1e-9)
        np.testing.assert_allclose(found.values, K @ found.coef, atol=1e-9)
    assert gram.widest <= 150  # never the matrix


def test_threads_change_no_bit(rng, narrow):
    K, problem, _ = arguments(rng, "svm", 300)
    found = [smo.solve(GivenMatrix(K, n_jobs=jobs), *problem, tol=1e-5) for jobs in (1, 2, 5)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.alpha, found[0].alpha)


def test_a_warm_start_saves_steps(rng, narrow):
    K, problem, _ = arguments(rng, "svm", 200)
    cold = smo.solve(GivenMatrix(K), *problem, tol=1e-5)
    again = smo.solve(GivenMatrix(K), *problem, tol=1e-5, alpha0=cold.alpha)
    assert again.n_iter == 0
    near = smo.solve(GivenMatrix(K + 1e-4 * K**2), *problem, tol=1e-4, alpha0=cold.alpha)
    assert near.n_iter < 0.5 * cold.n_iter
    check_optimal(K + 1e-4 * K**2, problem, near, tol=1e-3)


def test_limit_on_steps(rng, narrow):
    K, problem, _ = arguments(rng, "svm", 200)
    found = smo.solve(GivenMatrix(K), *problem, tol=1e-8, max_iter=7)
    assert found.status == "max_iter" and found.n_iter <= 7 + 16


@given(
    n=st.integers(2, 40),
    distinct=st.integers(1, 40),
    C=st.sampled_from([1e-6, 0.1, 1.0, 1e3]),
    width=st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    seed=st.integers(0, 10_000),
    intercept=st.booleans(),
)
def test_any_sample(n, distinct, C, width, seed, intercept):
    """Copies, constant kernels, identities, tiny classes, small and large costs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(distinct, 2))[rng.integers(distinct, size=n)]
    y = np.where(rng.random(n) < 0.2, 1.0, -1.0)
    K = gaussian(X, width)
    run = block_steps.SIZE
    block_steps.SIZE = 6
    try:
        found = smo.svc(GivenMatrix(K), y, C, tol=1e-6, intercept=intercept)
    finally:
        block_steps.SIZE = run
    want = smo.svc(K, y, C, tol=1e-6, intercept=intercept)
    assert found.status in ("optimal", "rounding")
    # The violation bounds the distance from the optimum: |s| in all is at most n C.
    allowed = (found.violation + want.violation) * n * C + 1e-12 * abs(want.objective)
    assert abs(found.objective - want.objective) <= allowed


@pytest.mark.parametrize("kind", ["svm", "svr", "one class"])
def test_learners_by_blocks(rng, narrow, kind):
    X = rng.normal(size=(250, 3))
    y = np.sin(2 * X[:, :1]) + 0.1
    target, learner = Target(np.sign(y), "classification"), SVM(2.0)
    if kind == "svr":
        target, learner = Target(y, "regression"), SVR(0.5, epsilon=0.05)
    elif kind == "one class":
        target, learner = Target(np.ones_like(y), "classification"), OneClassSVM(nu=0.2)
    grams = mk.gaussians([0.1, 1.0]).plan(X).grams(X, budget=MemoryBudget.of("1GB"))
    gram = grams.corrected(kind != "one class", None).combine(np.array([0.7, 0.3]))
    want = learner.fit(gram, target)
    learner.solver = "blocks"
    for operator in (gram, OnDevice(gram.dense())):
        found = learner.fit(operator, target)
        assert found.gap <= 1e-9
        assert found.objective == pytest.approx(want.objective, rel=1e-8)
        again = learner.fit(operator, target, start=found.coef)
        assert again.objective == pytest.approx(want.objective, rel=1e-8)


def test_the_choice(rng, monkeypatch):
    K = gaussian(rng.normal(size=(30, 2)))
    assert isinstance(Source.of(GivenMatrix(K)).kernel, np.ndarray)
    assert isinstance(Source.of(OnDevice(K)).kernel, OnDevice)
    assert Source.of(GivenMatrix(K), "blocks").kernel is not None
    monkeypatch.setattr("multikernel.learners.source.MIN_BLOCK_SAMPLES", 30)
    assert isinstance(Source.of(GivenMatrix(K)).kernel, GivenMatrix)
    assert isinstance(Source.of(GivenMatrix(K), "smo").kernel, np.ndarray)
    with pytest.raises(ValueError, match="solver must be one of 'auto', 'smo', 'blocks'"):
        Source.of(GivenMatrix(K), "newton")


def test_an_operator_with_threads_can_be_pickled(rng):
    K, problem, _ = arguments(rng, "svm", 60)
    gram = GivenMatrix(K, n_jobs=2)
    gram._in_threads(lambda part: None, 10**6, 10)
    assert gram._threads is not None
    again = pickle.loads(pickle.dumps(gram))
    np.testing.assert_array_equal(smo.solve(again, *problem).alpha, smo.solve(gram, *problem).alpha)
