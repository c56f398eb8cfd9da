"""Stacked grams: kernels of every kind in one bank, out of order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.stacked import StackedGrams
from tests import naive
from tests.grams.contract import AMPLE, HOWS, GramsContract, N, assert_close, sample

BANK = (
    mk.KernelBank([mk.Callable(partial(naive.gaussian, gamma=0.4), label="mine", psd=True)])
    + mk.per_feature(mk.Linear())
    + mk.KernelBank(
        [
            mk.Gaussian(0.1),
            mk.Linear(columns=1),
            mk.Sigmoid(0.02) + mk.Linear(),
            mk.Polynomial(2, gamma=0.1),
            mk.Gaussian(1.0),
        ]
    )
)


class TestStacked(GramsContract):
    constant = [False] * 5 + [True] + [False] * 5
    psd = [True] * 8 + [False] + [True] * 2

    def naive_kernels(self, X, Z):
        features = [np.outer(x, z) for x, z in zip(X.T, Z.T, strict=True)]
        linear = naive.polynomial(X, Z, 1, 0.0)
        return np.array(
            [
                naive.gaussian(X, Z, 0.4),
                *features,
                naive.gaussian(X, Z, 0.1),
                features[1],
                naive.sigmoid(X, Z, 0.02) + linear,
                naive.polynomial(X, Z, 2, 1.0, 0.1),
                naive.gaussian(X, Z, 1.0),
            ]
        )

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        plan = BANK.plan(X)
        assert sorted(part.kind for part in plan.parts) == ["dense", "rank-one", "shared"]
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert isinstance(grams, StackedGrams)
        return grams


def test_stacking_changes_nothing():
    """A kernel is what it is alone, whatever stands next to it."""
    X, y = sample(N), np.random.default_rng(1).normal(size=(N, 1))
    for how in HOWS:
        whole = BANK.plan(X).grams(X, budget=AMPLE).corrected(True, how)
        together = whole.summary(y)
        for k, kernel in ((0, BANK.entries[0]), (6, mk.Gaussian(0.1)), (7, mk.Linear(columns=1))):
            bank = mk.KernelBank([kernel])
            alone = bank.plan(X).grams(X, budget=AMPLE).corrected(True, how)
            rows = slice(9, 30)
            assert_close(alone.block(rows)[0], whole.block(rows)[k], 1e-12, "block")
            found = alone.summary(y)
            for field in ("traces", "norms", "a"):
                a, b = getattr(found, field), getattr(together, field)[[k]]
                assert_close(a, b, 1e-12, field)
            assert_close(found.M[0], together.M[k, [k]], 1e-12, "M")


def test_parts_without_weight_are_not_evaluated():
    calls = []

    def counted(X, Z):
        calls.append(X.shape)
        return naive.gaussian(X, Z)

    X = sample(30)
    bank = mk.KernelBank([mk.Gaussian(0.1), mk.Callable(counted)])
    grams = bank.plan(X).grams(X, budget=AMPLE).corrected(True, "trace")
    expansion = grams.expand(np.array([1.0, 0.0]), np.linspace(-1, 1, 30)[:, None])
    calls.clear()
    expansion.release()
    expansion.values(expansion.encode(sample(4, seed=2)))
    expansion.shares(expansion.encode(sample(4, seed=2)))
    assert calls == []


def test_a_mixed_bank_with_kernels_that_are_not_symmetric(rng):
    """Column products and columns reach the part that serves the kernel, in the bank's order."""
    X = sample(N)

    def lopsided(A, B):
        return np.tanh(A @ B.T + A[:, :1])

    kernels = [mk.Callable(lopsided), mk.Gaussian(0.3), mk.Linear(columns=[1])]
    bank = mk.KernelBank(kernels)
    grams = bank.plan(X).grams(X, budget=AMPLE, symmetric=False)
    assert isinstance(grams, StackedGrams)
    K = np.array([kernel(X, X) for kernel in kernels])
    V, index = rng.normal(size=(N, 2)), np.array([4, 0, 4])
    assert_close(grams.column_products(V), K.transpose(0, 2, 1) @ V, 1e-12, "column products")
    for weights in (*np.eye(3), np.array([0.5, 2.0, -1.0])):
        want = np.tensordot(weights, K, axes=1)[:, index]
        got = grams.combine(weights).columns(index)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="needs symmetric kernels"):
        grams.corrected(True, None)


def test_parts_without_a_weight_keep_no_samples():
    X = sample(N)
    grams = mk.KernelBank([mk.Gaussian(0.3), mk.Linear(columns=[1])]).plan(X).grams(X, budget=AMPLE)
    expansion = grams.expand(np.array([1.0, 0.0]), np.ones((N, 1)))
    assert sum(part is None for part in expansion.parts) == 1
    points = expansion.encode(X[:4])
    assert [point is None for point in points] == [part is None for part in expansion.parts]
    values = mk.Gaussian(0.3)(X[:4], X).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(expansion.values(points), values, rtol=1e-10)
