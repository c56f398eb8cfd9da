"""Sums of exponentials from a table: as good as the exponentials, at every distance."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from multikernel.grams import _combinations, _loops, _mixtures
from multikernel.grams._loops import KernelFamily, PassCache
from multikernel.grams._passes import EXP_L1, EXP_SQ, POLY, TABLE_L1, TABLE_SQ

DTYPES = [np.float32, np.float64]
# Error in parts of the sum of all |weights|.
ERROR = {np.float32: 1.5e-7, np.float64: 4e-15}


@njit
def evaluate(d, rate, end, table, out):
    for i in range(len(d)):
        out[i] = _mixtures.mixture(d[i], rate, end, table, 0)


def from_table(d, rates, weights, shifted, near=np.inf):
    dtype = d.dtype
    table, rate, end = _mixtures.tabulate(rates, weights, shifted, dtype, near)
    out = np.empty_like(d)
    evaluate(d, dtype.type(rate), dtype.type(end), table.ravel(), out)
    return out


def exactly(d, rates, weights, shifted):
    terms = np.exp(-np.outer(rates, d.astype(np.float64)))
    terms[shifted] = np.expm1(-np.outer(rates[shifted], d.astype(np.float64)))
    return weights @ terms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 1.5, 200.0, 1e6, 1e12])
def test_a_table_is_as_good_as_the_exponentials(dtype, spread, rng):
    """From nothing to far beyond the table, weights of both signs, some terms less one."""
    rates = 3.0 * np.geomspace(1.0, 1.0 / spread, 12)
    weights = rng.standard_normal(12)
    distances = np.concatenate([[0.0], np.geomspace(1e-6, 1e3 * spread, 40_000)]).astype(dtype)
    for shifted in (np.zeros(12, dtype=bool), np.arange(12) % 3 == 0, np.ones(12, dtype=bool)):
        got = from_table(distances, rates, weights, shifted)
        want = exactly(distances, rates, weights, shifted)
        assert np.abs(got - want).max() <= ERROR[dtype] * np.abs(weights).sum()
        assert got[0] == dtype(weights[~shifted].sum())


@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_kernels_keep_their_digits(dtype):
    """All nearly constant and less one: the error is in parts of what is left."""
    rates = np.geomspace(1e-9, 1e-8, 10)
    everywhere = np.ones(10, dtype=bool)
    d = np.linspace(0.0, 4.0, 1000).astype(dtype)
    got = from_table(d, rates, 1.0 / rates, everywhere, near=2.0)
    want = exactly(d, rates, 1.0 / rates, everywhere)
    assert np.abs(got - want).max() <= 10 * np.finfo(dtype).eps * np.abs(want).max()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_distance_that_overflowed_is_the_farthest(dtype):
    rates, weights = np.geomspace(0.1, 10.0, 9), np.ones(9)
    far = from_table(np.array([np.inf, 1e30], dtype=dtype), rates, weights, np.zeros(9, bool))
    np.testing.assert_allclose(far, 0.0, atol=ERROR[dtype] * 9)


def test_the_bound_of_the_text():
    """``2 e (r / 2**(BITS + 2))**(D + 1) exp(-r) / (D + 1)!`` at its largest, r = D + 1."""
    for degree, bound in ((5, 8.5e-10), (10, 2e-17)):
        m = degree + 1
        factorial = float(np.prod(np.arange(1.0, m + 1)))
        assert 2 * np.e / factorial * (m / 2 ** (_mixtures.BITS + 2)) ** m * np.exp(-m) < bound


def family_of(Z, rates, kind=EXP_SQ, shifted=False):
    p = len(rates)
    params = np.column_stack([rates, np.zeros(p), np.zeros(p)])
    group, offsets = np.zeros(p, dtype=np.int64), np.array([0, Z.shape[1]])
    return KernelFamily(Z, offsets, group, np.full(p, kind), params, shifted)


def reduced(family, w):
    return PassCache(family).combination(w)[0].family


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
def test_every_pass_with_a_combination_takes_the_table(dtype, kind, rng, monkeypatch):
    Z = rng.standard_normal((150, 3)).astype(dtype)
    family, w = family_of(Z, np.geomspace(0.01, 10.0, 20), kind), rng.uniform(0.1, 1.0, 20)
    cache = PassCache(family)
    table, ones = cache.combination(w)
    assert table.family.kind.tolist() == [{EXP_SQ: TABLE_SQ, EXP_L1: TABLE_L1}[kind]]
    assert cache.combination(w)[0] is table and ones.tolist() == [1.0]
    V = rng.standard_normal((150, 2))

    def everything(family):
        sums, square = _loops.combined_sums(PassCache(family), w)
        return [
            _loops.combine(PassCache(family), w),
            _loops.cross_combine(PassCache(family), Z[:40] + 1, w),
            _loops.combined_matvec(PassCache(family), w, V),
            sums,
            square,
        ]

    got = everything(family)
    never = {np.dtype(dtype): 10**9}
    monkeypatch.setattr(_combinations, "MIN_TABLE_KERNELS", never)
    want = everything(family_of(Z, np.geomspace(0.01, 10.0, 20), kind))
    for a, b in zip(got, want, strict=True):
        tol = 50 * np.finfo(dtype).eps
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max())


def test_what_is_not_mixed(rng):
    """Few kernels, weights of zero, rates that do not move or lie worlds apart, other kinds."""
    Z = rng.standard_normal((20, 4))
    most = _mixtures.MIN_TABLE_KERNELS[Z.dtype] - 1
    few = family_of(Z, np.geomspace(0.1, 1.0, most))
    assert reduced(few, np.ones(few.p)).p == few.p
    many = family_of(Z, np.geomspace(0.1, 1.0, 12))
    w = np.where(np.arange(12) < most, 1.0, 0.0)
    assert reduced(many, w).p == most
    still = family_of(Z, np.zeros(12))
    assert reduced(still, np.ones(12)).p == 12
    apart = family_of(Z, np.geomspace(1e-30, 1.0, 12))
    assert reduced(apart, np.ones(12)).p == 12
    K = _loops.combine(PassCache(apart), np.ones(12))
    np.testing.assert_allclose(
        K, _loops.block(PassCache(apart), slice(None)).sum(axis=0), rtol=1e-14
    )


def test_several_groups_and_kinds_at_once(rng):
    """Two tables, and beside them what is no exponential, in the order of the groups."""
    Z = rng.standard_normal((60, 5))
    rates = np.geomspace(0.05, 2.0, 9)
    kinds = [EXP_SQ] * 9 + [POLY] + [EXP_L1] * 9 + [EXP_SQ] * 2
    group = np.array([0] * 10 + [1] * 11)
    params = np.zeros((21, 3))
    params[:9, 0] = params[10:19, 0] = rates
    params[9] = 0.5, 1.0, 2.0
    params[19:, 0] = 0.0, 0.7
    family = KernelFamily(Z, np.array([0, 2, 5]), group, np.array(kinds), params)
    w = rng.standard_normal(21)
    cache, coefficients = PassCache(family).combination(w)
    assert cache.family.p == 5 == len(coefficients) and np.all(np.diff(cache.family.group) >= 0)
    want = np.tensordot(w, _loops.block(PassCache(family), slice(None)), 1)
    np.testing.assert_allclose(_loops.combine(PassCache(family), w), want, atol=1e-13)


def test_another_combination_gets_another_table(rng):
    cache = PassCache(family_of(rng.standard_normal((30, 2)), np.geomspace(0.1, 1.0, 10)))
    for _ in range(3):
        w = rng.uniform(size=10)
        want = np.tensordot(w, _loops.block(cache, slice(None)), 1)
        np.testing.assert_allclose(_loops.combine(cache, w), want, rtol=1e-13)
        w *= 2.0  # the cache holds a copy of the weights
        np.testing.assert_allclose(_loops.combine(cache, w), 2.0 * want, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
def test_a_combination_of_very_wide_kernels(dtype, kind, rng):
    """Less one, they are small and all alike; their sum has the digits that they have."""
    Z = rng.standard_normal((70, 3)).astype(dtype)
    rates = np.geomspace(1e-9, 1e-7, 12)
    family = family_of(Z, rates, kind, shifted=True)
    assert reduced(family, 1.0 / rates).p == 1
    D = Z[:, None].astype(np.float64) - Z
    D = (D**2).sum(axis=2) if kind == EXP_SQ else np.abs(D).sum(axis=2)
    want = np.tensordot(1.0 / rates, np.expm1(-rates[:, None, None] * D), 1)
    got = _loops.combine(PassCache(family), 1.0 / rates)
    assert np.abs(got - want).max() <= 10 * np.finfo(dtype).eps * np.abs(want).max()
