"""Chi-squared kernels in the compiled loops: entries, statistics, tables and distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel

import multikernel as mk
from multikernel.grams import _loops
from multikernel.grams._distances import distance_bound, distance_sample, mean_distance
from multikernel.grams._loops import EXP_CHI, POLY, KernelFamily, PassCache
from multikernel.grams._passes import TABLE_CHI
from multikernel.grams.memory import MemoryBudget

DTYPES = [np.float32, np.float64]
ENTRY = {np.float32: 2e-6, np.float64: 5e-15}


def points(rng, n, columns, dtype=np.float64):
    """Half of the entries are zero; one point and one column are zero, and points repeat."""
    Z = rng.gamma(1.0, size=(n, columns)) * rng.integers(0, 2, size=(n, columns))
    Z[n // 3], Z[:, columns // 2] = 0.0, 0.0
    Z[n // 2] = Z[n // 2 + 1]
    return np.ascontiguousarray(Z, dtype=dtype)


def family_of(Z, rates, shifted=False):
    p = len(rates)
    params = np.column_stack([rates, np.zeros(p), np.zeros(p)])
    group, offsets = np.zeros(p, dtype=np.int64), np.array([0, Z.shape[1]])
    return KernelFamily(Z, offsets, group, np.full(p, EXP_CHI), params, shifted)


def twin(family, X=None):
    Z = family.Z.astype(np.float64)
    D = -additive_chi2_kernel(Z if X is None else X.astype(np.float64), Z)
    exp = np.expm1 if np.all(family.shifted) else np.exp
    return exp(-family.params[:, 0][:, None, None] * D)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 7, 300, 900])
@pytest.mark.parametrize("shifted", [False, True])
def test_entries(dtype, columns, shifted, rng):
    Z = points(rng, 150, columns, dtype)
    family = family_of(Z, np.array([0.02, 1.0, 5.0]) / columns, shifted)
    K = twin(family)
    assert not np.isnan(K).any()
    found = _loops.block(PassCache(family), slice(None))
    assert np.all(np.abs(found - K) <= ENTRY[dtype] * np.sqrt(columns))
    np.testing.assert_array_equal(found, found.transpose(0, 2, 1))
    new = points(rng, 40, columns, dtype)
    cross = _loops.cross_block(PassCache(family), new, 1)
    assert np.all(np.abs(cross - twin(family, new)) <= ENTRY[dtype] * np.sqrt(columns))


def test_beside_other_kernels(rng):
    Z = points(rng, 90, 5)
    family = KernelFamily(
        Z,
        np.array([0, 2, 5]),
        np.array([0, 0, 1]),
        np.array([EXP_CHI, POLY, EXP_CHI]),
        np.array([[0.7, 0, 0], [0.5, 1.0, 2], [0.2, 0, 0]]),
    )
    found = _loops.block(PassCache(family), slice(None))
    first, last = Z[:, :2], Z[:, 2:]
    expected = [
        mk.ChiSquared(0.7)(first),
        mk.Polynomial(2, 1.0, 0.5)(first),
        mk.ChiSquared(0.2)(last),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_from_polynomials_are_those_of_every_kernel(weighted, rng):
    """Sums of Chebyshev polynomials of the distance, against kernel by kernel."""
    n, p = 700, 24
    Z = points(rng, n, 6)
    shifted = np.arange(p) < p // 2
    family = family_of(Z, np.geomspace(0.01, 5.0, p), shifted)
    cache = PassCache(family)
    assert cache.levels is not None
    Y = rng.standard_normal((n, 2))
    omega = rng.uniform(0.5, 2.0, n) if weighted else None
    w = rng.uniform(0.1, 1.0, p)
    got, want = (
        _loops.statistics(c, Y, omega, True, 1, w) for c in (cache, PassCache.direct(family))
    )
    size = np.sqrt(np.diag(want.products))
    np.testing.assert_allclose(got.row_sums, want.row_sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        got.products / np.outer(size, size), want.products / np.outer(size, size), atol=1e-13
    )
    np.testing.assert_allclose(got.a, want.a, atol=1e-12 * (size * np.sum(Y**2)).max())
    np.testing.assert_array_equal(got.combined, _loops.combine(cache, w, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_combination_is_one_table(dtype, rng):
    Z = points(rng, 150, 4, dtype)
    family, w = family_of(Z, np.geomspace(0.01, 10.0, 20)), rng.uniform(0.1, 1.0, 20)
    table, _ = PassCache(family).combination(w)
    assert table.family.kind.tolist() == [TABLE_CHI]
    want = np.tensordot(w, twin(family), 1)
    tolerance = 50 * np.finfo(dtype).eps * w.sum()
    np.testing.assert_allclose(_loops.combine(PassCache(family), w), want, atol=tolerance)
    few = replace(family, Z=Z[:40])
    np.testing.assert_allclose(
        _loops.cross_combine(PassCache(family), few.Z, w), want[:40], atol=tolerance
    )


@pytest.mark.parametrize("shape", ["cloud", "outliers", "line"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_facts_on_distances(shape, dtype, rng):
    Z = points(rng, 500, 6, dtype)
    if shape == "outliers":
        Z[::70] *= 30
    elif shape == "line":
        Z = np.outer(rng.gamma(1.0, size=500), np.ones(6)).astype(dtype)
    D = -additive_chi2_kernel(Z.astype(float))
    found = distance_bound(Z, EXP_CHI)
    assert D.max() <= found < np.inf
    sample = distance_sample(Z, EXP_CHI)
    assert np.all(np.diff(sample) >= 0) and sample[-1] <= found
    error = D.std() / np.sqrt(len(sample))
    assert mean_distance(Z, EXP_CHI) == pytest.approx(D.mean(), abs=4 * error)
    assert mean_distance(Z[:0], EXP_CHI) == 0.0


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_plan_shares_their_distances(made, rng):
    X = points(rng, 80, 5)
    bank = mk.KernelBank([mk.ChiSquared(0.1), mk.ChiSquared(1.0), mk.ChiSquared(1.0, columns=[0])])
    plan = bank.plan(made(X))
    assert "chi-squared distances on 5 columns; chi-squared distances on 1 columns" in str(plan)
    grams = plan.grams(made(X), budget=MemoryBudget.of(None))
    assert grams.kind == "shared"
    np.testing.assert_allclose(grams.block(np.arange(80)), [k(X) for k in bank], rtol=1e-13)
    np.testing.assert_array_equal(grams.diagonals(), 1.0)


def test_a_wide_sparse_table_is_not_written_out(rng):
    """Then the kernels are evaluated from the sparse rows."""
    X = sp.random(60, 4000, density=0.01, random_state=0, format="csr")
    bank = mk.KernelBank([mk.ChiSquared(0.1), mk.ChiSquared(1.0)])
    plan = bank.plan(X, memory_budget="1MB")
    assert [part.kind for part in plan.parts] == ["dense"]
    grams = plan.grams(X, budget=MemoryBudget.of("1MB"))
    expected = [kernel(X.toarray()) for kernel in bank]
    np.testing.assert_allclose(grams.block(np.arange(60)), expected, rtol=1e-12)


def test_centring_of_very_wide_kernels_keeps_its_digits(rng):
    """The alignments of nearly constant kernels, against exact centring of expm1."""
    X = points(rng, 60, 4)
    y = rng.standard_normal(60)
    bank = mk.KernelBank([mk.ChiSquared(1e-9), mk.ChiSquared(0.5)])
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, None)
    D = -additive_chi2_kernel(X)
    U = np.eye(60) - 1.0 / 60
    centred = [U @ np.expm1(-gamma * D) @ U for gamma in (1e-9, 0.5)]
    summary = grams.summary(y[:, None])
    M = np.array([[np.vdot(A, B) for B in centred] for A in centred])
    np.testing.assert_allclose(summary.M, M, rtol=1e-9)
