"""Sums of a few polynomials give the statistics of all kernels, to the digits of their type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import multikernel as mk
from multikernel.grams import _loops, pass_cache
from multikernel.grams._loops import EXP_L1, EXP_SQ, KernelFamily, PassCache
from multikernel.grams._moment_loops import MAX_TARGET_VALUES, Targets
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.shared import SharedGrams

N = 700


def make(rng, kind=EXP_SQ, p=24, dtype=np.float64, n=N, rates=None, columns=5):
    """Exponentials of one distance, the wide half of them shifted."""
    Z = rng.standard_normal((n, columns)).astype(dtype)
    rates = np.geomspace(0.01, 5.0, p) / columns if rates is None else np.asarray(rates)
    params = np.zeros((len(rates), 3))
    params[:, 0] = rates
    group = np.zeros(len(rates), dtype=np.int64)
    shifted = np.arange(len(rates)) < len(rates) // 2
    return KernelFamily(
        Z, np.array([0, columns]), group, np.full(len(rates), kind), params, shifted
    )


def with_levels(family):
    cache = PassCache(family)
    assert cache.levels is not None
    return cache


def plainly(family, dtype=np.float64):
    """The same kernels, each evaluated for itself."""
    return PassCache.direct(replace(family, Z=family.Z.astype(dtype)))


def labels(rng, n, kind):
    if kind == "two":
        return (np.where(rng.random(n) < 0.3, 1.0, -1.0) + 0.4)[:, None]
    if kind == "five":  # the last of them rare: whole tiles are without it
        y = np.minimum(rng.integers(0, 5, n), 3 + (np.arange(n) == 17))
        return np.eye(5)[y] - 0.2
    return rng.standard_normal((n, 2)) if kind == "real" else None


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["two", "five", "real", None])
@pytest.mark.parametrize("n", [N, 769])
def test_statistics_are_those_of_every_kernel(kind, weighted, target, n, rng):
    family = make(rng, kind, n=n)
    cache = with_levels(family)
    Y = labels(rng, n, target)
    omega = rng.uniform(0.5, 2.0, n) if weighted else None
    combined = rng.uniform(0.1, 1.0, family.p)
    got, want = (
        _loops.statistics(c, Y, omega, True, 1, combined) for c in (cache, plainly(family))
    )
    size = np.sqrt(np.diag(want.products))
    np.testing.assert_array_equal(got.diagonals, want.diagonals)
    np.testing.assert_allclose(got.row_sums, want.row_sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        got.products / np.outer(size, size), want.products / np.outer(size, size), atol=1e-13
    )
    np.testing.assert_array_equal(got.products, got.products.T)
    np.testing.assert_array_equal(got.combined, _loops.combine(cache, combined, 1))
    if Y is None:
        assert got.a is None
    else:
        np.testing.assert_allclose(got.a, want.a, atol=1e-12 * (size * np.sum(Y**2)).max())
    squares = _loops.statistics(cache, Y, omega, False, 1).products
    np.testing.assert_allclose(squares, np.diag(got.products), rtol=1e-13)


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
def test_single_precision_is_better_than_kernel_by_kernel(kind, rng):
    family = make(rng, kind, dtype=np.float32, p=32)
    Y = labels(rng, N, "two")
    got, single, true = (
        _loops.statistics(c, Y, None, True, 1)
        for c in (with_levels(family), plainly(family, np.float32), plainly(family))
    )
    size = np.sqrt(np.diag(true.products))

    def errors(found):
        return np.array(
            [
                np.abs(found.row_sums - true.row_sums).max() / N,
                np.abs((found.products - true.products) / np.outer(size, size)).max(),
                np.abs((found.a - true.a) / size).max() / np.sum(Y**2),
            ]
        )

    assert np.all(errors(got) <= 2e-7)
    assert np.all(errors(got) <= 1.5 * errors(single))


def test_products_with_vectors(rng):
    family = make(rng)
    cache, plain = with_levels(family), plainly(family)
    for V in (rng.standard_normal((N, 1)), rng.standard_normal((N, 2)) * 1e9):
        got, want = (_loops.matvecs(c, V, 1) for c in (cache, plain))
        np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(V).sum(axis=0).max())
    few = np.flatnonzero(rng.random(N) < 0.4)
    V = np.ascontiguousarray(rng.standard_normal((len(few), 1)))
    got, want = (_loops.matvecs(c.on(family.Z[few]), V, 1) for c in (cache, plain))
    np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(V).sum())


def test_few_rows_or_many_vectors_are_left_to_the_kernels(rng, monkeypatch):
    family = make(rng)
    cache, plain = with_levels(family), plainly(family)
    sparse = np.zeros((N, 1))
    sparse[:50] = 1.0
    many = rng.standard_normal((N, _loops.MAX_MOMENT_VECTORS + 1))
    monkeypatch.setattr(_loops, "moment_sums", None)
    for V in (sparse, many):
        np.testing.assert_array_equal(_loops.matvecs(cache, V, 1), _loops.matvecs(plain, V, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_on_any_number_of_threads(dtype, rng):
    cache = with_levels(make(rng, dtype=dtype, p=32, n=1500))
    Y = labels(rng, 1500, "five")
    found = [
        _loops.statistics(cache, Y, None, True, threads, np.ones(32)) for threads in (1, 2, 3, 2)
    ]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [N, 768, 1029])
def test_kept_distances_change_no_bit(dtype, n, rng):
    family = make(rng, dtype=dtype, p=32, n=n)
    keeping, plain = PassCache(family), PassCache(family)
    keeping.keep_distances = True
    w, r, g = rng.uniform(0.1, 1.0, 32), rng.standard_normal(n), 0.3
    assert keeping.distances.shape[0] == 0
    for cache in (keeping, plain):
        _loops.statistics(cache, None, None, False, 1)
    assert keeping.distances.shape[0] > 0 == plain.distances.shape[0]
    for means in (None, (r, g)):
        for out_type in (None, np.float64):
            a, b = (_loops.combine(c, w, 2, out_type, means) for c in (keeping, plain))
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, a.T)
    raw = _loops.combine(plain, w, 1, np.float64)
    centred = _loops.combine(keeping, w, 1, np.float64, (r, g))
    np.testing.assert_array_equal(centred, raw - ((r[:, None] + r) - g))
    nothing = _loops.combine(keeping, np.zeros(32), 1, np.float64, (r, g))
    np.testing.assert_allclose(nothing, g - r[:, None] - r)
    one = np.eye(32)[3]
    np.testing.assert_array_equal(_loops.combine(keeping, one, 1), _loops.combine(plain, one, 1))


def test_very_many_kernels(rng):
    """Their tiles are smaller; kept distances do not fit the tiles of a combination."""
    family = make(rng, p=600)
    assert family.tile == 64
    keeping, plain = with_levels(family), plainly(family)
    keeping.keep_distances = True
    w = rng.uniform(0.1, 1.0, 600)
    got = _loops.statistics(keeping, None, None, False, 1)
    want = _loops.statistics(plain, None, None, False, 1)
    np.testing.assert_allclose(got.products, want.products, rtol=1e-12)
    np.testing.assert_array_equal(_loops.combine(keeping, w, 1), _loops.combine(plain, w, 1))


def test_a_constant_kernel_in_the_bank(rng):
    rates = np.append(0.0, np.geomspace(0.01, 1.0, 23))
    family = make(rng, rates=rates)
    got = _loops.statistics(with_levels(family), None, None, True, 1)  # shifted, the first is zero
    assert np.all(got.row_sums[0] == 0) and np.all(got.products[0] == 0)
    plain = plainly(family)
    want = _loops.statistics(plain, None, None, True, 1)
    np.testing.assert_allclose(got.row_sums, want.row_sums, rtol=1e-12)


@pytest.mark.parametrize("wide", [1e-3, 1e-8, 1e-13])
def test_very_wide_kernels_keep_their_digits(wide, rng):
    """Centred, exp(-gamma d) is -gamma d to first order, however small gamma is."""
    family = make(rng, rates=np.geomspace(wide, 2.0 * wide, 20))
    s = _loops.statistics(with_levels(family), None, None, True, 1)
    d = cdist(family.Z, family.Z, "sqeuclidean")
    first = np.expm1(-wide * d)
    np.testing.assert_allclose(s.row_sums[0], first.sum(axis=1), rtol=1e-11)
    assert s.products[0, 0] == pytest.approx(np.sum(first**2), rel=1e-11)


def test_targets_by_their_values(rng):
    y = rng.integers(0, 3, 300)
    Y = np.eye(3)[y]
    omega = rng.uniform(0.5, 2.0, 300)
    found = Targets.of(Y, omega, 300, 128)
    assert found.rows.shape[1] == 0 and found.starts.shape == (3, 4)
    np.testing.assert_array_equal(np.unique(Y, axis=0)[found.value[:300]], Y)
    for tile in range(3):
        here = y[tile * 128 : (tile + 1) * 128]
        order = found.order[tile * 128 : tile * 128 + len(here)]
        assert sorted(order.tolist()) == list(range(len(here)))
        for value in range(3):
            part = order[found.starts[tile, value] : found.starts[tile, value + 1]]
            assert np.all(np.eye(3)[here[part]] == np.unique(Y, axis=0)[value])
    values = np.unique(Y, axis=0)
    np.testing.assert_allclose(found.likeness[:, :300], values @ (omega[:, None] * Y).T)
    assert np.all(found.likeness[:, 300:] == 0)
    many = Targets.of(rng.standard_normal((300, 1)), None, 300, 128)
    assert many.starts.shape == (3, 2) and many.rows.shape == (384, 1)
    assert np.all(many.likeness == 0)
    most = Targets.of(np.arange(300.0)[:, None] % MAX_TARGET_VALUES, None, 300, 128)
    assert most.starts.shape == (3, MAX_TARGET_VALUES + 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [False, True])
def test_summaries(dtype, center, rng):
    """Of a bank, with and without polynomials; concentrated distances need no second pass."""
    X = rng.standard_normal((N, 2000)).astype(dtype)
    y = labels(rng, N, "two")
    kernels = list(mk.gaussians(np.geomspace(0.1, 10.0, 40) / 4000))
    ample = MemoryBudget.of("4GB")

    def grams(kind):
        new = SharedGrams.evaluate(
            kernels, X.astype(kind), [str(k) for k in range(40)], ample, dtype=kind
        )
        return new.corrected(center, "multiplicative")

    fast, exact = grams(dtype), grams(np.float64)
    exact._passes = PassCache.direct(exact.passes.family)
    assert fast.passes.levels is not None
    if center or dtype == np.float32:
        fast.raw_centred_products = None
    got, want = fast.summary(y), exact.summary(y)
    tolerance = 3e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(got.traces, want.traces, rtol=tolerance)
    np.testing.assert_allclose(got.norms, want.norms, rtol=tolerance)
    np.testing.assert_allclose(got.alignments, want.alignments, atol=tolerance)
    cosines = got.M / np.outer(got.norms, got.norms)
    np.testing.assert_allclose(cosines, want.M / np.outer(want.norms, want.norms), atol=tolerance)


@pytest.mark.parametrize("weighting", ["alignf", mk.LpNorm(4 / 3), mk.L1()])
def test_the_same_model(weighting, rng, monkeypatch):
    """An estimator finds the same weights and outputs with polynomials as without."""
    monkeypatch.setattr("multikernel.grams.shared.is_small", lambda *sizes: False)
    X = rng.standard_normal((650, 4))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0, "a", "b")
    bank = mk.gaussians(np.geomspace(0.01, 0.5, 16))
    if not isinstance(weighting, str):
        weighting.tol = 1e-8

    def fit():
        return mk.MultiKernelClassifier(bank, weighting, dtype=np.float64).fit(X, y)

    used = []
    passes = _loops._by_moments
    monkeypatch.setattr(_loops, "_by_moments", lambda *a: used.append(1) or passes(*a))
    fast = fit()
    assert used
    monkeypatch.setattr(pass_cache, "choose_levels", lambda *a, **options: None)
    used.clear()
    plain = fit()
    assert not used
    np.testing.assert_allclose(fast.kernel_weights_, plain.kernel_weights_, atol=2e-4)
    np.testing.assert_allclose(fast.decision_function(X), plain.decision_function(X), atol=2e-3)


def test_predictions_far_away(rng):
    """New points may be farther from the sample than any two of its points."""
    X = rng.standard_normal((650, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    bank = mk.gaussians(np.geomspace(0.01, 0.5, 16))
    model = mk.MultiKernelClassifier(bank, mk.LpNorm(4 / 3), dtype=np.float64).fit(X, y)
    far = np.concatenate([10.0 * X[:5], 1e3 * X[:5], 1e6 * X[:5]])
    K = sum(
        w * np.exp(-k.gamma * cdist(far, X, "sqeuclidean"))
        for w, k in zip(model.kernel_weights_, bank, strict=True)
    )
    assert np.all(np.isfinite(model.decision_function(far)))
    assert np.all(np.abs(K[5:]) < 1e-3)
    outputs = model.decision_function(far[5:])
    np.testing.assert_allclose(outputs, outputs[0], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_norm_of_a_combination_without_its_matrix(weighted, rng):
    X = rng.standard_normal((N, 5))
    omega = rng.uniform(0.5, 2.0, N) if weighted else None
    kernels, names = list(mk.gaussians(np.geomspace(0.01, 0.5, 20))), [str(k) for k in range(20)]
    grams = SharedGrams.evaluate(
        kernels, X, names, MemoryBudget.of("1GB"), dtype=np.float64, sample_weight=omega
    ).corrected(True, "multiplicative")
    w = rng.uniform(0.1, 1.0, 20)
    grams.statistics()
    gram = grams.combine(w)
    found = gram.centred_norm(None if omega is None else omega.copy())
    O = np.ones(N) if omega is None else omega
    K = gram.dense()
    r = K @ O / O.sum()
    Kc = K - r[:, None] - r + r @ O / O.sum()
    assert found == pytest.approx(np.sqrt(O @ Kc**2 @ O), rel=1e-11)


def test_points_that_are_all_alike(rng):
    X = np.ones((N, 3))
    grams = SharedGrams.evaluate(
        list(mk.gaussians([0.1, 1.0])), X, ["a", "b"], MemoryBudget.of("1GB")
    )
    np.testing.assert_array_equal(grams.raw_combine(np.array([1.0, 2.0])), 3.0)
    np.testing.assert_array_equal(grams.raw_rows(np.array([1.0, 2.0]), np.array([5])), 3.0)
    np.testing.assert_array_equal(grams.statistics().row_sums, N)
    assert grams.degenerate.all()


def test_distances_are_kept_if_they_fit_beside_the_combined_matrix(rng):
    X = rng.standard_normal((N, 5))
    kernels, names = list(mk.gaussians(np.geomspace(0.01, 0.5, 20))), [str(k) for k in range(20)]

    def grams(room):
        new = SharedGrams.evaluate(kernels, X, names, MemoryBudget.of(room), dtype=np.float64)
        return new.corrected(True, None)

    ample, tight = grams("1GB"), grams(8.5 * N**2)
    for one in (ample, tight):
        one.summary(rng.standard_normal((N, 1)))
    assert tight.passes.distances.size == 0
    assert 0 < ample.passes.distances.nbytes <= 1.6 * N**2
