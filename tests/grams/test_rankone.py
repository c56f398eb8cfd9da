"""Rank-one grams: feature columns, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.rankone import RankOneGrams
from tests import naive
from tests.grams.contract import AMPLE, HOWS, N_NEW, GramsContract, N, assert_close, sample
from tests.peak import peak_bytes


def rank_one(X, bank=None, budget=AMPLE, **options):
    bank = mk.per_feature(mk.Linear()) if bank is None else bank
    plan = bank.plan(X)
    assert [part.kind for part in plan.parts] == ["rank-one"]
    return plan.grams(X, budget=budget, **options)


class TestRankOne(GramsContract):
    constant, psd = [False] * 4 + [True], [True] * 5

    def naive_kernels(self, X, Z):
        X, Z = (A.toarray() if sp.issparse(A) else A for A in (X, Z))
        return np.array([np.outer(x, z) for x, z in zip(X.T, Z.T, strict=True)])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        grams = rank_one(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert isinstance(grams, RankOneGrams)
        return grams


def with_holes(X):
    X = X.copy()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.6] = 0.0
    X[:, -1] = 2.0
    return X


class TestSparse(TestRankOne):
    """CSR, with zeros; a zero has no direction, and spherical kernels leave it zero."""

    convert = staticmethod(sp.csr_matrix)

    @property
    def X(self):
        return self.convert(with_holes(sample(N)))

    @property
    def X_new(self):
        return self.convert(with_holes(sample(N_NEW, seed=1)))

    def corrected_twin(self, center, how, omega, rows=slice(None)):
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(super().corrected_twin(center, how, omega, rows), nan=0.0)

    def corrected_twin_new(self, center, how, omega):
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(super().corrected_twin_new(center, how, omega), nan=0.0)


class TestSparseCSC(TestSparse):
    """CSC with every entry written as a sum of two, and with zeros written out."""

    @staticmethod
    def convert(X):
        index = np.indices(X.shape).reshape(2, -1)
        half = X.ravel() / 2
        entries = (np.r_[half, half], np.hstack([index, index]))
        doubled = sp.coo_matrix(entries, shape=X.shape)
        # Straight into CSC, so that the duplicates survive.
        order = np.argsort(doubled.col, kind="stable")
        starts = np.arange(X.shape[1] + 1) * 2 * X.shape[0]
        made = sp.csc_matrix((doubled.data[order], doubled.row[order], starts), shape=X.shape)
        assert made.nnz == 2 * X.size
        return made


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("how", HOWS, ids=str)
def test_the_same_as_dense(center, how):
    X, y = sample(N)[:, :4], np.random.default_rng(1).normal(size=(N, 2))
    bank = mk.KernelBank([mk.Callable(lambda A, B: A @ B.T, columns=k) for k in range(4)])
    plan = bank.plan(X)
    assert [part.kind for part in plan.parts] == ["dense"]
    omega = np.random.default_rng(2).uniform(0.5, 2, size=N)
    one = rank_one(X, sample_weight=omega).corrected(center, how)
    two = plan.grams(X, budget=AMPLE, sample_weight=omega).corrected(center, how)
    assert_close(one.block(slice(0, N)), two.block(slice(0, N)), 1e-10, "block")
    assert_close(one.diagonals(), two.diagonals(), 1e-10, "diagonals")
    a, b = one.summary(y), two.summary(y)
    for field in ("traces", "norms", "a", "M"):
        assert_close(getattr(a, field), getattr(b, field), 1e-10, field)
    new, mu = sample(7, seed=3)[:, :4], np.array([0.3, 1.0, 0.0, 2.0])
    ones = [grams.expand(np.ones(grams.p), np.eye(grams.n)) for grams in (one, two)]
    cross = [each.shares(each.encode(new)).transpose(1, 0, 2) for each in ones]
    assert_close(*cross, 1e-10, "cross")
    np.testing.assert_allclose(one.combine(mu).dense(), two.combine(mu).dense(), rtol=0, atol=1e-10)


def test_single_columns_are_rank_one_wherever_they_stand():
    X = sample(40)
    bank = mk.KernelBank([mk.Linear(columns=2), mk.Linear(columns=-4)])
    want = [naive.correct(np.outer(v, v), True, "trace") for v in (X[:, 2], X[:, 1])]
    grams = rank_one(X, bank).corrected(True, "trace")
    assert_close(grams.block(slice(0, 40)), np.array(want), 1e-12, "block")


@pytest.mark.parametrize("shape", [(2, 3), (10, 1), (2, 1)])
def test_small_problems(shape):
    X = np.arange(np.prod(shape), dtype=float).reshape(shape) ** 2
    y = np.linspace(-1, 1, shape[0])[:, None]
    for how in HOWS:
        grams = rank_one(X).corrected(True, how)
        want = np.array([naive.correct(np.outer(v, v), True, how) for v in X.T])
        assert_close(grams.block(slice(0, shape[0])), want, 1e-12, "block")
        found, twin = grams.summary(y), naive.summary(want, y)
        for field in ("traces", "norms", "a", "M"):
            assert_close(getattr(found, field), twin[field], 1e-12, field)


@pytest.mark.parametrize("container", [np.asarray, sp.csc_matrix], ids=["dense", "sparse"])
def test_a_small_spread_around_a_large_mean_is_no_constant(container, rng):
    """Times in seconds since 1970 that differ by a minute: eight digits are left, and used."""
    spread = rng.integers(-60, 60, size=(50, 3)).astype(float)
    grams = rank_one(container(spread + 1.7e9)).corrected(True, "trace")
    here = rank_one(spread).corrected(True, "trace")
    assert not grams.degenerate.any()
    # The mean of such numbers is known to eps * 1.7e9 = 4e-7 of a spread of 35: 1e-8.
    assert_close(grams.block(slice(0, 50)), here.block(slice(0, 50)), 1e-7, "block")
    y = rng.normal(size=(50, 1))
    np.testing.assert_allclose(grams.summary(y).M, here.summary(y).M, rtol=0, atol=1e-7)


@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -1e-9])
@pytest.mark.parametrize("n", [7, 1000, 100_000])
def test_constant_columns_are_constant_whatever_rounding_says(value, n):
    X = np.column_stack([np.full(n, value), np.arange(n, dtype=float)])
    for given in (X, sp.csr_matrix(X)):
        np.testing.assert_array_equal(rank_one(given).degenerate, [True, False])


def test_products_of_sparse_columns_with_a_large_mean(rng):
    """M is as good for sparse columns as for the same columns written out."""
    X = rng.integers(-8, 9, size=(60, 3)) + 2.0**14
    y = rng.normal(size=(60, 1))
    M = rank_one(X).corrected(True, "trace").summary(y).M
    found = rank_one(sp.csr_matrix(X)).corrected(True, "trace").summary(y)
    np.testing.assert_allclose(found.M, M, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.sqrt(np.diag(found.M)), found.norms, rtol=1e-10)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_point_at_the_centre_stays_there(container):
    """0.2 is the mean of 0.1, 0.2 and 0.3, whatever their binary digits say."""
    X = np.array([[0.1], [0.2], [0.3]])
    grams = rank_one(container(X)).corrected(True, "spherical")
    want = np.outer([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0])
    np.testing.assert_allclose(grams.block(slice(0, 3))[0], want, atol=1e-12)
    np.testing.assert_allclose(grams.diagonals()[0], [1.0, 0.0, 1.0], atol=1e-12)


def large_sparse(n=2000, p=20_000, seed=0):
    return sp.random(n, p, density=1e-3, format="csr", random_state=np.random.default_rng(seed))


def test_align_forms_no_large_square(monkeypatch):
    """2,000 samples, 20,000 kernels: neither p x p (3.2 GB) nor p blocks of n x n."""

    def refuse(self, *args, **kwargs):
        raise AssertionError("a p x p or p x n x n object was asked for")

    monkeypatch.setattr(RankOneGrams, "_products", refuse)
    monkeypatch.setattr(RankOneGrams, "block", refuse)
    monkeypatch.setattr(RankOneGrams, "dense_features", refuse)
    X = large_sparse()
    y = np.random.default_rng(1).normal(size=(2000, 1))

    def align():
        grams = rank_one(X).corrected(True, "trace")
        summary = grams.summary(y, products=False)
        assert summary.M is None
        operator = grams.combine(np.maximum(summary.alignments, 0.0))
        operator.matvec(y)
        grams.expand(summary.alignments, y).values(grams.points(np.arange(5)))

    peak = peak_bytes(align)
    # 40,000 entries are half a megabyte; names and columns of 20,000 kernels are the most of it.
    assert peak < 30e6, f"{peak / 1e6:.0f} MB"


def test_align_fits_a_wide_sparse_problem_without_products(monkeypatch):
    monkeypatch.setattr(RankOneGrams, "_products", None)
    X = large_sparse(300, 20_000)
    y = np.asarray(X[:, :50].sum(axis=1)).ravel()
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Linear()), weighting="align")
    peak = peak_bytes(lambda: model.fit(X, y))
    assert len(model.kernel_weights_) == 20_000
    assert peak < 60e6, f"{peak / 1e6:.0f} MB"  # written out, X alone would take 48 MB


def test_sparse_features_are_written_out_only_where_they_fit():
    X = large_sparse(200, 300)
    needed = 8 * 50 * 300  # of fifty rows
    grams = rank_one(X, budget=MemoryBudget.of(needed))
    np.testing.assert_array_equal(grams.dense_features(slice(0, 50)), X[:50].toarray())
    with pytest.raises(MemoryError, match=r"Writing out 51 x 300 sparse features needs 122 kB"):
        grams.dense_features(slice(0, 51))


def test_few_kernels_with_a_weight_need_only_their_own_columns():
    X = large_sparse(200, 300)
    coef, weights = np.arange(200.0)[:, None], np.zeros(300)
    weights[[3, 8]] = 1.0, 2.0
    want = rank_one(X.toarray()).corrected(True, "trace")
    tight = rank_one(X, budget=MemoryBudget.of(8 * 200 * 2)).corrected(True, "trace")
    rows = np.arange(200)
    assert_close(tight.combine(weights).rows(rows), want.combine(weights).rows(rows), 1e-12, "rows")
    function, twin = tight.accurate().expand(weights, coef), want.expand(weights, coef)
    assert_close(function.values(X), twin.values(X), 1e-12, "values")


def test_the_norm_under_other_sample_weights_than_those_of_the_grams(rng):
    X, omega = sample(N), rng.uniform(0.5, 2, size=N)
    for own, other in ((None, omega), (omega, None)):
        combined = rank_one(X, sample_weight=own).corrected(True, "trace").combine(np.ones(5))
        centred = naive.center(combined.rows(slice(0, N)), other)
        want = np.sqrt(naive.inner(centred, centred, other))
        assert combined.centred_norm(other) == pytest.approx(want, rel=1e-12)


def test_the_products_of_many_kernels_say_what_they_need():
    grams = rank_one(large_sparse(), budget=MemoryBudget.of("1GB"))
    with pytest.raises(MemoryError, match=r"20000 x 20000.*9.6 GB.*weighting='align'"):
        grams.corrected(True, "trace").summary(np.arange(2000.0)[:, None])
