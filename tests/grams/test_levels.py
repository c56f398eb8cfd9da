"""Levels: which polynomials stand for which rates, and every statistic against a naive twin."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import ive

from multikernel.grams import _levels, _loops, pass_cache
from multikernel.grams._distances import distance_bound, distance_sample, is_wide, mean_distance
from multikernel.grams._levels import (
    MAX_DEGREES,
    REST,
    Setting,
    bessel_coefficients,
    degrees_for,
    make_level,
    quickest_cut,
)
from multikernel.grams._loops import EXP_L1, EXP_SQ, POLY, KernelFamily, PassCache

N = 700
METRIC = {EXP_SQ: "sqeuclidean", EXP_L1: "cityblock"}
DTYPES = [np.float32, np.float64]


def make(Z, rates, kind=EXP_SQ, shifted=False):
    p = len(rates)
    params = np.column_stack([rates, np.zeros(p), np.zeros(p)])
    group = np.zeros(p, dtype=np.int64)
    return KernelFamily(Z, np.array([0, Z.shape[1]]), group, np.full(p, kind), params, shifted)


def points(rng, columns, dtype, n=N):
    """Normal points, a few of them more than once."""
    Z = rng.standard_normal((n, columns))
    Z[[3, 200, 650]] = Z[[4, 4, 649]]
    return Z.astype(dtype)


# Polynomials.


def test_coefficients_are_bessel_functions():
    l = np.array([0.0, 1e-12, 1e-3, 1.0, 37.0, 400.0])
    c = bessel_coefficients(l, 50)
    want = np.array([[(2.0 if m else 1.0) * ive(m, x) for m in range(50)] for x in l])
    tiny = want < 1e-290
    np.testing.assert_allclose(c[~tiny], want[~tiny], rtol=1e-12)
    assert np.all(c[tiny] < 1e-280)
    np.testing.assert_allclose(bessel_coefficients(l, 300).sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("error", [1e-6, 1e-11, 1e-19])
def test_the_number_of_degrees_is_enough_and_hardly_more(error):
    x = np.linspace(-1.0, 1.0, 2001)
    T = np.cos(np.outer(np.arange(520), np.arccos(x)))
    for l in (1e-9, 0.3, 5.0, 60.0, 300.0, 1500.0):
        count = int(degrees_for(np.array(l), error))
        full = bessel_coefficients(np.array([l]), 600)[0]
        assert full[count:].sum() <= error
        # One block fewer would not be enough, up to the two percent of the closed form.
        if count > REST:
            assert full[count - REST - 1 :].sum() > error
        missing = np.abs(full[:count] @ T[:count] - np.exp(l * (x - 1.0))).max()
        assert missing <= error + 1e-14
    assert degrees_for(np.array(1e9), error) > MAX_DEGREES


# The choice of levels.


def setting(bound=100.0, cutoff=20.0, error=1e-9, sample=None):
    sample = np.linspace(0.0, bound, 1024) if sample is None else np.sort(sample)
    return Setting(bound, cutoff, error, sample)


def time_of(rates, starts, given):
    """The estimated time of one cut, summed over its levels."""
    total = 0.0
    for first, stop in zip(starts, [*starts[1:], len(rates)], strict=True):
        end = np.minimum(given.bound, given.cutoff / rates[first])
        l = 0.5 * end * rates[stop - 1]
        low, high = degrees_for(np.array([l, 2 * l]), given.error)
        total += np.inf if high > MAX_DEGREES else min(given.times(end, low + high))
    return float(total)


def test_the_cut_is_the_quickest_of_all(rng):
    given = setting(sample=rng.chisquare(6, 1024) * 4)
    rates = np.geomspace(1e-3, 50.0, 9)
    starts, time = quickest_cut(rates, given)
    cuts = [[0, *(k + 1 for k in range(8) if chosen >> k & 1)] for chosen in range(2**8)]
    times = [time_of(rates, cut, given) for cut in cuts]
    assert time == pytest.approx(min(times), rel=1e-12)
    assert time_of(rates, starts, given) == pytest.approx(time, rel=1e-12)


def test_equal_rates_share_a_level_and_very_many_rates_are_cut_too():
    starts, _ = quickest_cut(np.repeat([1e-3, 1e3], 10), setting())
    assert starts == [0, 10]
    rates = np.geomspace(1e-4, 1e4, 3000)
    starts, time = quickest_cut(rates, setting())
    assert np.isfinite(time) and 2 <= len(starts) <= 12
    assert time <= 1.2 * quickest_cut(rates[::50], setting())[1]


def test_where_there_are_no_levels(rng):
    Z = rng.standard_normal((N, 5))
    rates = np.geomspace(0.01, 5.0, 24)

    def levels(family):
        return PassCache(family).levels

    assert levels(make(Z, rates)) is not None
    assert levels(make(Z[:200], rates)) is None  # too few points to be worth the choice
    assert levels(make(Z, rates[:3])) is None  # three kernels are evaluated more quickly
    assert levels(make(Z, np.zeros(24))) is None
    other = make(Z, rates)
    assert levels(replace(other, kind=np.append(other.kind[:-1], POLY))) is None
    two = replace(other, offsets=np.array([0, 2, 5]), group=np.arange(24) // 12)
    assert levels(two) is None  # two distances
    assert levels(make(np.ones((N, 3)), rates)) is None  # all points alike
    huge = (Z * 1e25).astype(np.float32)
    assert distance_bound(huge, EXP_SQ) == np.inf and levels(make(huge, rates)) is None
    assert levels(make(Z, np.geomspace(1.0, 1e300, 24))) is None  # a level for every kernel


@pytest.mark.parametrize("columns", [1, 30])
def test_one_narrow_kernel_leaves_the_degrees_of_the_others(columns, rng):
    Z = rng.standard_normal((N, columns))
    wide = np.geomspace(1e-3, 0.5, 49)
    alone = PassCache(make(Z, wide)).levels.levels
    both = PassCache(make(Z, np.append(wide, 1e4))).levels.levels
    assert both[0].whole and both[0].degrees == alone[0].degrees
    assert both[-1].members.tolist() == [49] and both[-1].end < 1e-2


# Distances.


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
@pytest.mark.parametrize("shape", ["cloud", "outliers", "line", "two far clouds"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_distance_exceeds_the_bound(kind, shape, dtype, rng):
    Z = rng.standard_normal((N, 6)).astype(dtype)
    if shape == "outliers":
        Z[:: N // 7] *= 30
    elif shape == "line":
        Z = np.outer(rng.standard_normal(N), np.ones(6)).astype(dtype)
    elif shape == "two far clouds":
        Z[:10] += 100
    Z += dtype(3.0)
    D = cdist(Z.astype(float), Z.astype(float), METRIC[kind])
    found = distance_bound(Z, kind)
    assert D.max() <= found <= 4.1 * D.max()
    if kind == EXP_SQ and shape != "cloud":
        assert found <= 1.5 * D.max()
    assert mean_distance(Z, kind) == pytest.approx(D.mean(), rel=1e-5)
    sample = distance_sample(Z, kind)
    np.testing.assert_array_equal(sample, distance_sample(Z, kind))
    assert np.all(np.diff(sample) >= 0) and sample[-1] <= found
    for part in (0.2, 0.5, 0.8):
        below = np.mean(np.quantile(sample, part) >= D)
        assert abs(below - part) < 0.08


# Statistics.


def naive(family, Y, omega, w):
    """Every statistic in float64, entry by entry."""
    Z = family.Z.astype(np.float64)
    D = cdist(Z, Z, METRIC[int(family.kind[0])])
    rates = family.params[:, 0]
    K = np.array(
        [
            np.expm1(-g * D) if less_one else np.exp(-g * D)
            for g, less_one in zip(rates, family.is_shifted, strict=True)
        ]
    )
    both = np.outer(omega, omega)
    flat = K.reshape(len(K), -1)
    products = (flat * both.ravel()) @ flat.T
    a = None if Y is None else flat @ (both * (Y @ Y.T)).ravel()
    return K, K @ omega, a, products, float(w @ products @ w)


GRIDS = {
    "logspace": np.logspace(-4, 3, 50),
    "all narrow": np.logspace(2, 5, 50),
    "one narrow": np.append(np.logspace(-4, -1, 49), 1e3),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 2, 30])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("case", ["plain", "weighted", "real targets", "all shifted", "L1"])
def test_nested_levels_are_their_twin(dtype, columns, grid, case, rng, monkeypatch):
    slow = _levels.CORE_COSTS._replace(kernel={np.dtype(d): 1e3 for d in DTYPES})
    monkeypatch.setattr(pass_cache, "choose_levels", partial(_levels.choose_levels, costs=slow))
    Z = points(rng, columns, dtype)
    kind = EXP_L1 if case == "L1" else EXP_SQ
    family = make(Z, GRIDS[grid], kind)
    shifted = np.ones(50, dtype=bool) if case == "all shifted" else is_wide(family)
    cache = PassCache(replace(family, shifted=shifted))
    levels = cache.levels.levels
    assert len(levels) >= (1 if grid == "all narrow" else 2)
    assert not levels[-1].whole
    Y = np.eye(3)[rng.integers(0, 3, N)] - 0.3
    if case == "real targets":
        Y = rng.standard_normal((N, 2))
    omega = np.ones(N)
    if case in ("weighted", "real targets"):
        omega = rng.uniform(0.5, 2.0, N)
        omega[::50] = 0.0
    w = rng.uniform(0.1, 1.0, 50)
    weights = None if np.all(omega == 1.0) else omega
    found = _loops.statistics(cache, Y, weights, True, 1)
    K, rows, a, products, square = naive(cache.family, Y, omega, w)
    # Single precision: the rounding of distances, times their rate.
    tolerance = 2e-6 if dtype == np.float32 else 2e-13
    size = np.sqrt(np.diag(products))
    # Far pairs and high degrees are left out up to some rounding errors of 1 in a row; sums of n
    # polynomials are off by n rounding errors of float64 where all entries of a row are zero.
    row_size = np.sqrt((K**2) @ omega * omega.sum())
    left_out = 20 * np.finfo(dtype).eps + 2 * N * np.finfo(np.float64).eps
    assert np.all(np.abs(found.row_sums - rows) <= tolerance * row_size + left_out)
    assert np.all(np.abs(found.products - products) <= tolerance * np.outer(size, size))
    np.testing.assert_array_equal(found.products, found.products.T)
    target_size = np.sqrt(np.sum((Y @ Y.T) ** 2 * np.outer(omega, omega)))
    assert np.all(np.abs(found.a - a) <= tolerance * size * target_size)
    np.testing.assert_array_equal(found.diagonals, np.diagonal(K, axis1=1, axis2=2))
    squares = _loops.statistics(cache, None, weights, False, 1)
    assert squares.a is None
    np.testing.assert_allclose(squares.products, np.diag(found.products), rtol=1e-11)
    from_totals = cache.levels.square(w, found.totals, found.row_sums @ omega)
    assert from_totals == pytest.approx(square, rel=tolerance)
    V = rng.standard_normal((N, 2))
    got = _loops.matvecs(cache, V, 1)
    assert np.all(np.abs(got - K @ V) <= 5 * tolerance * np.abs(V).sum(axis=0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [2, 30])
def test_bits_do_not_depend_on_threads(dtype, columns, rng):
    cache = PassCache(make(points(rng, columns, dtype, 1500), GRIDS["logspace"]))
    assert len(cache.levels.levels) > 1 and not all(v.dense for v in cache.levels.levels)
    Y, omega = rng.standard_normal((1500, 2)), rng.uniform(0.5, 2.0, 1500)
    V = rng.standard_normal((1500, 1))
    first = [*_loops.statistics(cache, Y, omega, True, 1)[:4], _loops.matvecs(cache, V, 1)]
    for threads in (2, 3):
        again = PassCache(cache.family)
        found = _loops.statistics(again, Y, omega, True, threads)[:4]
        for one, other in zip(first, [*found, _loops.matvecs(again, V, threads)], strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_dense_level_that_is_not_whole_and_its_near_pairs_agree(rng):
    """Blocks with weights of zero, and near pairs alone, are two ways to the same sums."""
    Z, rates = points(rng, 3, np.float64), np.geomspace(5.0, 50.0, 10)
    cache = PassCache(make(Z, rates))
    given = Setting(distance_bound(Z, EXP_SQ), np.log(N / 2e-16), 1e-18, distance_sample(Z, EXP_SQ))
    members, none = np.arange(10), np.arange(0)
    sparse = make_level(rates, np.zeros(10, dtype=bool), none, members, given)
    assert not sparse.whole
    Y, omega = rng.standard_normal((N, 2)), rng.uniform(0.5, 2.0, N)
    found = []
    for dense in (False, True):
        cache.levels = _levels.RateLevels(0, EXP_SQ, (replace(sparse, dense=dense),))
        found.append(_loops.statistics(cache, Y, omega, True, 1))
    for field in ("row_sums", "a", "products"):
        one, other = (getattr(s, field) for s in found)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(one).max())


def test_points_far_from_the_origin(rng):
    """Padding repeats a point: zeros would be farther away than any polynomial can bear."""
    Z = rng.standard_normal((N, 4)) + 1e4
    family = make(Z, np.logspace(-4, 1, 50))
    cache = PassCache(family)
    assert cache.levels is not None
    found = _loops.statistics(cache, None, None, True, 1)
    want = _loops.statistics(PassCache.direct(family), None, None, True, 1)
    np.testing.assert_allclose(found.row_sums, want.row_sums, rtol=1e-11)
    np.testing.assert_allclose(found.products, want.products, rtol=1e-11)


# Banks of several kinds.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("t", [0, 2])
def test_exponentials_beside_other_kernels(dtype, weighted, t, rng):
    """Levels for the exponentials of one distance, whatever stands between them in the bank."""
    Z = points(rng, 7, dtype)
    rates = np.geomspace(1e-3, 1.0, 60)
    params = np.zeros((65, 3))
    params[:30, 0], params[31:61, 0] = rates[:30], rates[30:]
    params[30], params[61], params[62] = (0.2, 1.0, 2.0), (1.0, 0.0, 1.0), (0.1, 0.5, 3.0)
    params[63:, 0] = 0.1, 0.3
    kind = np.array([EXP_SQ] * 30 + [POLY] + [EXP_SQ] * 30 + [POLY] * 2 + [EXP_SQ] * 2)
    group = np.array([0] * 63 + [1] * 2)
    family = KernelFamily(Z, np.array([0, 5, 7]), group, kind, params, np.arange(65) < 20)
    cache = PassCache(family)
    assert cache.levels is None
    assert cache.split.others.tolist() == [30, 61, 62, 63, 64]
    Y = rng.standard_normal((N, t)) if t else None
    omega = rng.uniform(0.5, 2.0, N) if weighted else None
    w = rng.uniform(0.1, 1.0, 65)
    found = _loops.statistics(cache, Y, omega, True, 1, w)
    exact = replace(family, Z=Z.astype(np.float64))
    want = _loops.statistics(PassCache.direct(exact), Y, omega, True, 1, w)
    tolerance = 2e-6 if dtype == np.float32 else 1e-12
    size = np.sqrt(np.diag(want.products))
    assert np.all(np.abs(found.products - want.products) <= tolerance * np.outer(size, size))
    np.testing.assert_array_equal(found.products, found.products.T)
    entry = tolerance * np.abs(want.combined).max()
    np.testing.assert_allclose(found.combined, want.combined, atol=entry)
    np.testing.assert_allclose(found.diagonals, want.diagonals, rtol=tolerance)
    total = N if omega is None else omega.sum()
    assert np.all(np.abs(found.row_sums - want.row_sums) <= tolerance * total * size[:, None])
    if Y is None:
        assert found.a is None
    else:
        target_size = np.sum(Y**2) * (1.0 if omega is None else 4.0)
        assert np.all(np.abs(found.a - want.a) <= tolerance * size * target_size)
    again = _loops.statistics(PassCache(family), Y, omega, True, 3, w)
    for one, other in zip(found[:4], again[:4], strict=True):
        np.testing.assert_array_equal(one, other)


def test_few_exponentials_beside_others_are_evaluated(rng):
    Z = rng.standard_normal((N, 5))
    family = make(Z, np.geomspace(0.01, 1.0, 8))
    family = replace(family, kind=np.append(family.kind[:-1], POLY))
    assert PassCache(family).split is None
