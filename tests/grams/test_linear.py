"""Grams of linear kernels on several columns: the contract, the plan, and models that use them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.linear import LinearGrams
from multikernel.grams.shared import SharedGrams
from tests.grams.contract import AMPLE, N_NEW, GramsContract, N, sample

BANK = mk.KernelBank(
    [
        mk.Linear(columns=[0, 1]),
        mk.Linear(columns=[2, 1, 0]),
        mk.Linear(columns=[3, 4]),
        mk.Linear(),
    ]
)


def two_constant_columns(X):
    X[:, 3] = -1.0
    return X


class TestLinear(GramsContract):
    """Overlapping columns, a constant kernel, and columns that are constant."""

    constant, psd = [False, False, True, False], [True] * 4
    same_bits_in_any_block = False

    @cached_property
    def X(self):
        return two_constant_columns(sample(N))

    @cached_property
    def X_new(self):
        return two_constant_columns(sample(N_NEW, seed=1))

    def naive_kernels(self, X, Z):
        columns = [[0, 1], [2, 1, 0], [3, 4], list(range(5))]
        return np.array([X[:, own] @ Z[:, own].T for own in columns])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        grams = BANK.plan(X).grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert isinstance(grams, LinearGrams)
        return grams


def kinds(bank, X):
    return [part.kind for part in bank.plan(X).parts]


def test_when_the_columns_are_used():
    X = np.zeros((20, 6))
    pairs = mk.KernelBank([mk.Linear(columns=[j, j + 1]) for j in range(0, 6, 2)])
    assert kinds(pairs, X) == ["linear"]
    assert kinds(pairs + mk.per_feature(mk.Linear()), X) == ["linear", "rank-one"]
    assert kinds(pairs + mk.gaussians([1.0]), X) == ["shared"], "they share dot products"
    assert kinds(pairs, X[:5]) == ["shared"], "more columns than samples"
    assert kinds(pairs, X[:6]) == ["linear"]
    assert kinds(pairs, sp.csr_matrix(X)) == ["shared"]


def test_an_engine_for_shared_kernels_serves_linear_ones():
    X = np.random.default_rng(0).normal(size=(30, 4))
    bank = mk.KernelBank([mk.Linear(columns=[0, 1]), mk.Linear(columns=[2, 3])])

    def build(part, X, options):
        return SharedGrams.evaluate(part.kernels, X, options.names, options.budget)

    try:
        engines.register("only-shared", "shared", build)
        plan = engines.assign(bank.plan(X), "only-shared")
        assert [(part.kind, part.engine) for part in plan.parts] == [("shared", "only-shared")]
        own = plan.grams(X, budget=AMPLE).block(slice(0, 30))
        np.testing.assert_allclose(own, bank.plan(X).grams(X, budget=AMPLE).block(slice(0, 30)))
        engines.register(
            "only-first", "shared", build, serves=lambda k: 0 in k.columns, falls_back_to="cpu"
        )
        # An engine with another behind it leaves linear kernels to that one, which knows them best.
        plan = engines.assign(bank.plan(X), "only-first")
        assert [(part.kind, part.engine) for part in plan.parts] == [("linear", "cpu")]
    finally:
        for name in ("only-shared", "only-first"):
            engines._ENGINES.pop(name, None)


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical"])
def test_models_are_those_of_the_matrices_and_survive_a_file(tmp_path, normalize):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)) + 1.0
    y = (X[:, 0] - X[:, 3] + 0.3 * rng.normal(size=80) > 0).astype(int)
    bank = mk.KernelBank([mk.Linear(columns=[j, j + 1]) for j in range(0, 6, 2)])
    model = mk.MultiKernelClassifier(bank, "alignf", normalize=normalize).fit(X, y)
    assert [part.kind for part in model.plan_.parts] == ["linear"]
    ids = mk.sample_ids(80)
    given = mk.MultiKernelClassifier(
        mk.precomputed([kernel(X) for kernel in bank]), "alignf", normalize=normalize
    ).fit(ids, y)
    np.testing.assert_allclose(model.kernel_weights_, given.kernel_weights_, rtol=1e-7)
    np.testing.assert_allclose(model.alignment_, given.alignment_, rtol=1e-9)
    np.testing.assert_allclose(
        model.decision_function(X), given.decision_function(ids), rtol=1e-5, atol=1e-6
    )
    path = tmp_path / "linear.skops"
    again = mk.load(mk.save(model, path))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(
        again.decision_function(X, split=True), model.decision_function(X, split=True)
    )


def test_stored_functions_with_wrong_sizes_are_refused():
    from multikernel.grams.linear import LinearExpansion

    X = np.random.default_rng(0).normal(size=(30, 5))
    grams = BANK.plan(X).grams(X, budget=AMPLE).corrected(True, "trace")
    state = grams.expand(np.ones(4), np.ones((30, 1))).state()
    assert LinearExpansion.from_state(state).n_kernels == 4
    for name, value in [
        ("slopes", state["slopes"][1:]),
        ("starts", state["starts"][:-1]),
        ("columns", state["columns"] + 1),
        ("columns", state["columns"] - 1),
        ("n_kernels", 3),
    ]:
        with pytest.raises(ValueError, match="do not fit"):
            LinearExpansion.from_state({**state, name: value})


def test_solves_are_accurate_for_a_tiny_ridge():
    X = np.random.default_rng(0).normal(size=(60, 5))
    grams = BANK.plan(X).grams(X, budget=AMPLE).corrected(True, "multiplicative")
    gram, b = grams.combine(np.ones(4)), np.random.default_rng(1).normal(size=60)
    ridge = np.full(60, 1e-9)
    x = gram.solve(ridge, b)
    # The part of b outside the columns is divided by the ridge, so the solution is large; the
    # residual is as small as that of a backward stable method.
    residual = gram.matvec(x) + ridge * x - b
    bound = np.finfo(float).eps * np.linalg.norm(gram.dense(), 2) * np.linalg.norm(x)
    assert np.linalg.norm(residual) <= 20 * bound
