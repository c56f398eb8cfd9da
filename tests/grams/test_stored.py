"""Stored grams: every entry computed once, for many samples of one pool."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.stored import StoredGrams
from tests import naive
from tests.grams import test_stacked
from tests.grams.contract import AMPLE, GramsContract, N, sample


class TestStored(GramsContract):
    constant, psd = [False] * 3, [True] * 3

    def naive_kernels(self, X, Z):
        return np.array(
            [
                naive.gaussian(X, Z, 0.3),
                naive.gaussian(X, Z, 0.01),
                naive.gaussian(X, Z, 2.0),
            ]
        )

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        plan = mk.gaussians([0.3, 0.01, 2.0]).plan(X)
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs).stored(
            center
        )
        assert isinstance(grams, StoredGrams)
        return grams

    def test_correcting_is_not_remembered_by_the_original(self):
        grams = self.make(self.X)
        before = grams.block(slice(0, 4)).copy()
        grams.corrected(True, "frobenius").summary(self.Y)
        np.testing.assert_array_equal(grams.block(slice(0, 4)), before)


def test_taking_from_corrected_grams_gives_the_kernels_as_built():
    X = np.abs(sample(N)[:, [0, 0]]) + 1.0  # on one ray: the spherical linear kernel is constant
    plan = mk.KernelBank([mk.Polynomial(1, 0.0), mk.Gaussian(0.1)]).plan(X)
    grams = plan.grams(X, budget=AMPLE).stored(False)
    assert isinstance(grams, StoredGrams)
    taken = grams.corrected(False, "spherical").take(np.arange(20))
    assert (taken.center, taken.how) == (False, None)
    assert not taken.degenerate.any()


class TestStoredStack(test_stacked.TestStacked):
    """Parts that cost something are kept, parts that do not stay as they are."""

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        raw = super().make(X, sample_weight=sample_weight, n_jobs=n_jobs, budget=budget)
        grams = raw.stored(center)
        assert sorted(part.kind for part in grams.parts) == ["dense", "dense", "rank-one"]
        return grams

    def test_correcting_is_not_remembered_by_the_original(self):
        grams = self.make(self.X)
        before = grams.block(slice(0, 4)).copy()
        grams.corrected(True, "frobenius").summary(self.Y)
        np.testing.assert_array_equal(grams.block(slice(0, 4)), before)


@pytest.mark.parametrize("center", [True, False])
def test_stored_entries_have_the_bits_of_the_others(center):
    X, y = sample(N), np.random.default_rng(0).normal(size=(N, 1))
    plan = mk.gaussians([1e-8, 0.1, 1.0]).plan(X)
    computed = plan.grams(X, budget=AMPLE)
    kept = computed.stored(center)
    rows = np.arange(0, N, 2)
    one = computed.take(rows).corrected(center, None)
    two = kept.take(rows).corrected(center, None)
    a, b = one.summary(y[rows]), two.summary(y[rows])
    np.testing.assert_allclose(a.norms, b.norms, rtol=1e-12 if center else 1e-7)
    raw = one.raw_block(slice(0, 5))
    np.testing.assert_array_equal(raw, two.raw_block(slice(0, 5)))


def test_what_does_not_fit_is_not_stored():
    X = sample(60)
    grams = mk.gaussians([0.1, 1.0]).plan(X).grams(X, budget=MemoryBudget.of("100kB"))
    assert grams.stored(True) is grams
    given = mk.precomputed([np.eye(5)]).plan(mk.sample_ids(5))
    dense = given.grams(mk.sample_ids(5), budget=AMPLE)
    assert dense.stored(True) is dense
