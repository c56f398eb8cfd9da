"""Shared grams: the contract, and what is said about accuracy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.pass_cache import PassCache
from multikernel.grams.shared import SharedGrams
from tests import naive
from tests.grams.contract import (
    AMPLE,
    HOWS,
    GramsContract,
    assert_close,
    assert_products_close,
    sample,
    sample_weights,
)

KERNELS = [
    mk.Gaussian(0.3),
    mk.Laplacian(0.2, columns=[0, 2]),
    mk.Polynomial(3, gamma=0.2),
    mk.Linear(),
    mk.Sigmoid(0.02),
    mk.Gaussian(2.0, columns=slice(0, 3)),
    mk.Polynomial(2, columns=4),
    mk.Gaussian(0.01),
    mk.Laplacian(3.0, columns=[-2]),
]
PSD = [True, True, True, True, False, True, True, True, True]
CONSTANT = [False] * 6 + [True] + [False] * 2


#: the kernels of this file, naively
TWINS = [
    lambda X, Z: naive.gaussian(X, Z, 0.3),
    lambda X, Z: naive.laplacian(X[:, [0, 2]], Z[:, [0, 2]], 0.2),
    lambda X, Z: naive.polynomial(X, Z, 3, 1.0, 0.2),
    lambda X, Z: naive.polynomial(X, Z, 1, 0.0),
    lambda X, Z: naive.sigmoid(X, Z, 0.02),
    lambda X, Z: naive.gaussian(X[:, :3], Z[:, :3], 2.0),
    lambda X, Z: naive.polynomial(X[:, 4:], Z[:, 4:], 2),
    lambda X, Z: naive.gaussian(X, Z, 0.01),
    lambda X, Z: naive.laplacian(X[:, [3]], Z[:, [3]], 3.0),
]


def twins(X, Z):
    return np.array([twin(X, Z) for twin in TWINS])


def shared(kernels, X, dtype=np.float64, budget=AMPLE, **options):
    """Grams of kernels in any order, through the plan; all of them shared."""
    plan = mk.KernelBank(kernels).plan(X)
    assert [part.kind for part in plan.parts] == ["shared"]
    return plan.grams(X, budget=budget, dtype=dtype, **options)


class TestShared(GramsContract):
    constant, psd = CONSTANT, PSD

    def naive_kernels(self, X, Z):
        return twins(X, Z)

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        return shared(KERNELS, X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)


class TestSharedFloat32(TestShared):
    """Entries in float32, sums in float64: a few 1e-5 of the centred kernels."""

    rtol, exact = 3e-5, 3e-6

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        return shared(KERNELS, X, np.float32, budget, sample_weight=sample_weight, n_jobs=n_jobs)


class TestOneGroup(GramsContract):
    """A bank that needs no reordering is not stacked."""

    constant, psd = [False] * 3, [True] * 3

    def naive_kernels(self, X, Z):
        return np.array([naive.gaussian(X, Z, gamma) for gamma in (0.1, 1.0, 0.02)])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        grams = shared(
            mk.gaussians([0.1, 1.0, 0.02]), X, sample_weight=sample_weight, n_jobs=n_jobs
        )
        assert isinstance(grams, SharedGrams)
        return grams


class TestLarge(GramsContract):
    """Enough samples for sums of polynomials on nested intervals; fewer ways to correct them."""

    N, PANEL = 700, 128
    rates = np.geomspace(1e-3, 1e2, 40)
    constant, psd = [False] * 40, [True] * 40
    dtype = np.float64

    @pytest.fixture(scope="class", params=["multiplicative"])
    @classmethod
    def how(cls, request):
        return request.param

    @pytest.fixture(scope="class", params=["reals"])
    @classmethod
    def omega(cls, request):
        return sample_weights(request.param, cls.N)

    def naive_kernels(self, X, Z):
        return np.array([naive.gaussian(X, Z, gamma) for gamma in self.rates])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        kernels, options = mk.gaussians(self.rates), {"n_jobs": n_jobs}
        grams = shared(kernels, X, self.dtype, budget, sample_weight=sample_weight, **options)
        assert grams.passes.levels is not None
        return grams


class TestLargeFloat32(TestLarge):
    rtol, exact, dtype = 3e-5, 3e-6, np.float32


def exact_gaussian(X, gamma):
    """Centred Gaussian Gram matrix to all digits of float64: expm1 in extended precision."""
    X = X.astype(np.longdouble)
    K = np.expm1(-np.longdouble(gamma) * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    means = K.mean(axis=1)
    return K - means[:, None] - means + means.mean()


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_several_tiles_and_panels(how):
    """300 points: three tiles of the compiled loops, three panels of the others."""
    X, y = sample(300), np.random.default_rng(1).normal(size=(300, 1))
    omega = np.random.default_rng(2).uniform(0.5, 2.0, size=300)
    grams = shared(KERNELS, X, sample_weight=omega).corrected(True, how)
    want = np.array([naive.correct(K, True, how, omega) for K in twins(X, X)])
    assert_close(grams.block(slice(0, 300)), want, 1e-10, "block")
    found, twin = grams.summary(y), naive.summary(want, y, omega)
    assert_close(found.norms, twin["norms"], 1e-10, "norms")
    assert np.all(np.abs(found.a - twin["a"]) <= 1e-10 * twin["norms"] * twin["target_norm"])
    assert_products_close(found.M, twin["M"], 1e-10)


@pytest.mark.parametrize("gamma", [1e-8, 1e-12, 1.0, 1e3])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 3e-5)])
def test_centred_gaussians_keep_their_digits_at_any_width(gamma, dtype, rtol, rng):
    X, y = rng.normal(size=(90, 3)) + 3.0, rng.normal(size=(90, 1))
    y -= y.mean()
    K = exact_gaussian(X.astype(dtype), gamma)
    grams = shared(mk.gaussians([gamma]), X, dtype).corrected(True, None)
    assert not grams.degenerate.any()
    assert_close(grams.block(slice(0, 90)), K[None].astype(float), rtol, "block")
    found = grams.summary(y)
    assert found.traces[0] == pytest.approx(float(np.trace(K)), rel=rtol)
    assert found.norms[0] == pytest.approx(float(np.sqrt(np.sum(K * K))), rel=rtol)
    assert found.M[0, 0] == pytest.approx(float(np.sum(K * K)), rel=2 * rtol)
    assert abs(found.a[0] - float(y[:, 0] @ K @ y[:, 0])) <= rtol * found.norms[0] * (
        found.target_norm
    )


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 3e-5)])
def test_narrow_and_wide_kernels_share_a_bank(dtype, rtol, rng):
    X = rng.normal(size=(150, 2)).astype(dtype)
    gammas = [1e-8, 1e-3, 1.0, 50.0, 1e4]
    exact = [exact_gaussian(X, gamma) for gamma in gammas]
    want = np.array([[float(np.sum(K * L)) for L in exact] for K in exact])
    y = rng.normal(size=(150, 1))
    a = np.array([float(np.sum(K * np.outer(y - y.mean(), y - y.mean()))) for K in exact])
    grams = shared(mk.gaussians(gammas), X, dtype).corrected(True, None)
    found = grams.summary(y)
    norms = np.sqrt(np.diag(want))
    assert np.all(np.abs(found.M - want) <= rtol * np.outer(norms, norms))
    assert np.all(np.abs(found.a - a) <= rtol * norms * found.target_norm)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-10), (np.float32, 3e-5)])
def test_many_columns(dtype, rtol, rng):
    X = rng.normal(size=(80, 500)).astype(dtype)
    kernels = [mk.Gaussian(1e-3), mk.Laplacian(1e-3), mk.Polynomial(2, gamma=0.01), mk.Linear()]
    grams = shared(kernels, X, dtype).corrected(True, "frobenius")
    wide = X.astype(float)
    raw = [
        naive.gaussian(wide, wide, 1e-3),
        naive.laplacian(wide, wide, 1e-3),
        naive.polynomial(wide, wide, 2, 1.0, 0.01),
        naive.polynomial(wide, wide, 1, 0.0),
    ]
    want = np.array([naive.correct(K, True, "frobenius") for K in raw])
    assert_close(grams.block(slice(0, 80)), want, rtol, "block")
    y = rng.normal(size=(80, 1))
    M = naive.summary(want, y)["M"]
    np.testing.assert_allclose(grams.summary(y).M, M, rtol=0, atol=rtol)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_gaussians_do_not_see_where_the_data_lie(offset, rng):
    X = np.round(rng.normal(size=(60, 3)), 6)
    X, moved = X, (X + offset) - offset  # the digits that the offset leaves
    here = shared(mk.gaussians([0.5]), moved).corrected(True, "trace").block(slice(0, 60))
    there = shared(mk.gaussians([0.5]), moved + offset).corrected(True, "trace")
    assert_close(there.block(slice(0, 60)), here, 1e-12, "block")


@pytest.mark.parametrize("offset", [2.0**8, 2.0**14, 2.0**20])
def test_what_shared_can_know_of_linear_kernels_far_from_the_origin(offset, rng):
    """Dot products are off by eps offset^2; the columns themselves, centred, by eps offset.

    A linear kernel is shared if another kernel reads the same dot products.
    """
    X = rng.integers(-8, 9, size=(60, 3)).astype(float)
    bank = [mk.Linear(), mk.Sigmoid()]
    here = shared(bank, X).corrected(True, None).block(slice(0, 60))[:1]
    there = shared(bank, X + offset).corrected(True, None).block(slice(0, 60))[:1]
    lost = 30 * np.finfo(float).eps * offset**2
    np.testing.assert_allclose(there, here, rtol=0, atol=lost)
    features = mk.per_feature().plan(X).grams(X + offset, budget=AMPLE).corrected(True, None)
    np.testing.assert_allclose(features.block(slice(0, 60)).sum(axis=0), here[0], rtol=0, atol=1e-6)
    plan = mk.KernelBank([mk.Linear()]).plan(X)
    assert [part.kind for part in plan.parts] == ["linear"]
    linear = plan.grams(X + offset, budget=AMPLE).corrected(True, None).block(slice(0, 60))
    np.testing.assert_allclose(linear, here, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [60, 2100])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("how", [None, "trace", "spherical", "frobenius", "trace-first"])
def test_centred_linear_kernels_do_not_see_where_the_data_lie(n, dtype, rtol, how, rng):
    """Columns that only linear kernels read are moved to their mean before they are multiplied."""
    X = rng.integers(-8, 9, size=(n, 3)).astype(float)
    offset = 2.0**14
    bank = [mk.Linear(), mk.Gaussian(0.01)]
    there = shared(bank, X + offset, dtype=dtype).corrected(True, how)
    want = naive.correct(naive.polynomial(X, X, 1, 0.0), True, how)
    if how == "trace-first":  # the trace of the kernel as it is given
        Xo = X + offset
        want = naive.correct(naive.polynomial(X, X, 1, 0.0), True, None) / (Xo**2).sum()
    assert_close(there.block(slice(0, 60))[0], want[:60], rtol, "block")
    coef = rng.normal(size=(n, 1))
    only = there.expand(np.array([1.0, 0.0]), coef)
    values = only.values(only.encode(X[:20] + offset))
    assert_close(values, want[:20] @ coef, 10 * rtol, "values of new samples")
    assert_close(only.values(there.points(np.arange(20))), values, 1e-14, "values of own samples")


@pytest.mark.parametrize("how", [None, "trace", "spherical"])
def test_linear_kernels_that_are_not_centred_read_the_data_as_they_are(how, rng):
    X = rng.integers(-8, 9, size=(60, 3)).astype(float) + 100.0
    bank, coef = [mk.Linear(), mk.Gaussian(0.01)], rng.normal(size=(60, 1))
    grams = shared(bank, X).corrected(True, "trace").corrected(False, how)
    want = naive.correct(X @ X.T, False, how)
    assert_close(grams.block(slice(0, 60))[0], want, 1e-13, "block")
    part = shared(bank, X).stored(False).take(np.arange(40)).corrected(False, how)
    own = naive.correct(X[:40] @ X[:40].T, False, how)
    assert_close(part.block(slice(0, 40))[0], own, 1e-13, "block of a part")
    only = grams.expand(np.array([1.0, 0.0]), coef)
    for points in (only.encode(X[:20]), grams.points(np.arange(20))):
        assert_close(only.values(points), want[:20] @ coef, 1e-12, "values")
    slopes = only.gradients(X[:2], np.full(3, 1e-3))
    if how is None:
        assert_close(slopes[:, :, 0], np.tile(X.T @ coef, 2).T, 1e-12, "gradients")


def test_standardised_kernels(rng):
    X = sample(70)
    bank = mk.default_bank(X, kind="gaussians")
    grams = shared(bank, X).corrected(True, "trace")
    scaling = bank[0].scaling
    Z = (X - np.array(scaling.mean)) / np.array(scaling.scale)
    raw = [naive.gaussian(Z, Z, k.gamma) for k in bank[:7]]
    raw += [naive.polynomial(Z, Z, 1, 0.0)]
    raw += [naive.polynomial(Z, Z, degree, 1.0, 1 / 5) for degree in (2, 3)]
    want = np.array([naive.correct(K, True, "trace") for K in raw])
    assert_close(grams.block(slice(0, 70)), want, 1e-10, "block")


@pytest.mark.parametrize("how", ["spherical", "trace", "trace-first"])
def test_an_exponential_of_power_two_is_a_gaussian_however_wide(how, rng):
    X, new, coef = rng.normal(size=(40, 3)), rng.normal(size=(7, 3)), rng.normal(size=(40, 1))
    values, diagonals = [], []
    for kernel in (mk.Exponential(length=1e3, power=2.0), mk.Gaussian(1e-6)):
        grams = shared([kernel], X).corrected(True, how)
        diagonals.append(grams.raw_diagonals())
        function = grams.expand(np.ones(1), coef)
        values.append(function.values(function.encode(new)))
    assert_close(*diagonals, 0.0, "diagonals")
    assert_close(*values, 1e-12, "values of new samples")


def test_overflow_is_an_error_that_names_the_kernel(rng):
    X = 1e6 * rng.normal(size=(20, 3))
    grams = shared([mk.Gaussian(1e-12), mk.Polynomial(60)], X).corrected(True, "trace")
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"Polynomial\(degree=60"):
        grams.summary(rng.normal(size=(20, 1)))


@pytest.mark.parametrize("n", [1, 2, 9, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fused_combination_has_the_same_bits(rng, n, dtype, center, n_jobs):
    """A combination from the statistics pass equals one that is computed alone."""
    X = rng.normal(size=(n, 5))
    raw, Y = rng.uniform(0.1, 1.0, len(KERNELS)), rng.normal(size=(n, 2))
    raw[3] = 0.0
    for weights in (None, rng.uniform(0.5, 2.0, n)):
        plain, told = (
            SharedGrams.evaluate(
                KERNELS, X, "abcdefghi", AMPLE, dtype=dtype, sample_weight=weights, n_jobs=n_jobs
            ).corrected(center, None)
            for _ in range(2)
        )
        alone, fused = plain.raw_statistics(Y, False), told.raw_statistics(Y, False, raw)
        for part in ("row_sums", "squares", "a", "diagonals"):
            want, got = (getattr(found, part) for found in (alone, fused))
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(fused.combined, plain.raw_combine(raw))
        gram = told.summary(Y, False, also_combine=raw).combined
        if n > 2:  # all kernels are constant on one sample
            assert gram is not None
            again = plain.combine(gram.kernel_weights).dense()
            atol = 1e-12 * np.abs(again).max()
            np.testing.assert_allclose(gram.scaled(2.0).dense(), 2.0 * again, atol=2 * atol)


def test_no_combination_comes_along_that_does_not_fit(rng):
    X, Y = rng.normal(size=(40, 5)), rng.normal(size=(40, 1))
    tight = SharedGrams.evaluate(KERNELS[:2], X, "ab", MemoryBudget(8 * 40**2 - 1))
    assert tight.summary(Y, also_combine=np.ones(2)).combined is None
    ample = SharedGrams.evaluate(KERNELS[:2], X, "ab", AMPLE)
    spherical = ample.corrected(False, "spherical")
    assert spherical.summary(Y, also_combine=np.ones(2)).combined is None
    assert ample.summary(Y, also_combine=np.ones(2)).combined is not None


def test_a_matrix_that_was_given_up_comes_again(rng):
    X, weights = rng.normal(size=(30, 5)), np.array([0.3, 0.7])
    gram = shared(KERNELS[:2], X).combine(weights)
    some = np.array([4, 0, 17])
    K, among = gram.dense().copy(), gram.submatrix(some)
    gram.forget()
    np.testing.assert_allclose(gram.submatrix(some), among, rtol=1e-12)
    np.testing.assert_array_equal(gram.dense(), K)


@pytest.mark.parametrize("n", [1, 2, 9, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_of_a_combination_that_is_never_there(rng, n, dtype, n_jobs):
    X, w = rng.normal(size=(n, 5)), rng.uniform(0.1, 1.0, len(KERNELS))
    w[4] = 0.0
    tol = 1e-12 if dtype == np.float64 else 2e-6
    for weights in (None, rng.uniform(0.5, 2.0, n)):
        omega = np.ones(n) if weights is None else weights
        grams = SharedGrams.evaluate(
            KERNELS, X, "abcdefghi", AMPLE, dtype=dtype, sample_weight=weights, n_jobs=n_jobs
        )
        K = grams.raw_combine(w)
        row_sums, square = grams.raw_combined_sums(w, weights)
        np.testing.assert_allclose(row_sums, K @ omega, rtol=tol)
        np.testing.assert_allclose(square, omega @ K**2 @ omega, rtol=tol)
        if n > 2:
            for center in (False, True):
                gram = grams.corrected(center, "trace").combine(w)
                streamed = gram.centred_norm(weights)
                gram.dense()
                assert streamed == pytest.approx(gram.centred_norm(weights), rel=10 * tol)


def test_a_combination_that_is_nearly_constant_is_centred_entry_by_entry(rng):
    X = rng.normal(size=(60, 3))
    grams = SharedGrams.evaluate([mk.Gaussian(1e-4), mk.Gaussian(2e-4)], X, "ab", AMPLE)
    gram = grams.corrected(False, None).combine(np.ones(2))
    K = sum(naive.gaussian(X, X, gamma) for gamma in (1e-4, 2e-4))
    want = np.linalg.norm(K - K.mean(0) - K.mean(1)[:, None] + K.mean())
    assert gram.centred_norm(None) == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [False, True])
def test_a_combination_among_some_points_in_any_order(rng, dtype, center):
    X, w = rng.normal(size=(70, 5)), rng.uniform(0.1, 1.0, len(KERNELS))
    some = rng.permutation(70)[:33]
    grams = SharedGrams.evaluate(KERNELS, X, "abcdefghi", AMPLE, dtype=dtype)
    gram = grams.corrected(center, "trace").combine(w)
    streamed = gram.submatrix(some)
    want = gram.dense()[np.ix_(some, some)]
    np.testing.assert_array_equal(gram.submatrix(some), want)
    np.testing.assert_array_equal(gram.submatrix(some, np.float32), want.astype(np.float32))
    np.testing.assert_allclose(
        streamed, want, atol=(1e-13 if dtype == np.float64 else 1e-6) * np.abs(want).max()
    )


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("gamma", [1e-4, 1e-5, 5e-7])
def test_nearly_constant_kernels_are_centred_before_they_are_multiplied(dtype, rtol, gamma, rng):
    """Without centring they are not shifted; the one-pass identity would lose 1e-10 to 1e-4."""
    X = rng.normal(size=(700, 5)).astype(np.float32).astype(np.float64)
    gammas = np.geomspace(gamma, 2 * gamma, 24)
    grams = shared(mk.gaussians(gammas), X, dtype).corrected(False, None)
    assert grams.passes.levels is not None
    found = grams.summary(rng.normal(size=(700, 1)))
    stats = grams.statistics(products=True)
    ratio = stats.squares / found.norms**2
    assert np.all(ratio > 1e6) and np.all(ratio < 1e12)
    some = [0, 11, 23]
    K = [exact_gaussian(X, gammas[k]).astype(np.float64) for k in some]
    want = np.array([[np.sum(a * b) for a in K] for b in K])
    norms = np.sqrt(np.diag(want))
    np.testing.assert_allclose(found.norms[some], norms, rtol=rtol)
    np.testing.assert_allclose(found.M[np.ix_(some, some)], want, rtol=2 * rtol)


def test_a_combination_comes_along_with_the_statistics(rng):
    X, w = rng.normal(size=(300, 5)), rng.uniform(0.1, 1.0, len(KERNELS))
    grams = SharedGrams.evaluate(KERNELS, X, "abcdefghi", AMPLE)
    Y = rng.normal(size=(300, 1))
    assert grams.raw_statistics(Y, True).combined is None
    found = grams.raw_statistics(Y, True, also_combine=w)
    np.testing.assert_array_equal(found.combined, grams.raw_combine(w))


def test_caches_belong_to_their_grams(rng, monkeypatch):
    """Copies with the same kernels share a cache; other points or shifts have their own."""
    monkeypatch.setattr("multikernel.grams.shared.is_small", lambda *sizes: False)
    X = rng.normal(size=(700, 3))
    grams = shared(mk.gaussians(np.geomspace(0.01, 1.0, 20)), X)
    centred = grams.corrected(True, None)
    assert centred.passes is not grams.passes
    assert centred.passes.packed is grams.passes.packed
    assert not grams.passes.family.is_shifted.any() and centred.passes.family.is_shifted.any()
    assert centred.corrected(True, "trace").passes is centred.passes
    back = centred.corrected(False, None)
    np.testing.assert_array_equal(back.raw_block(slice(0, 9)), grams.raw_block(slice(0, 9)))
    w = rng.uniform(0.1, 1.0, 20)
    np.testing.assert_allclose(
        centred.raw_combine(w), grams.raw_combine(w) - w[centred.shifted].sum(), atol=1e-13
    )
    some = centred.take(np.arange(50, 150))
    assert some.passes.family.n == 100
    np.testing.assert_array_equal(some.raw_combine(w), grams.raw_combine(w)[50:150, 50:150])


def test_a_copied_or_stored_cache_holds_the_family_alone(rng):
    grams = shared(mk.gaussians(np.geomspace(0.01, 1.0, 20)), rng.normal(size=(700, 3)))
    grams = grams.corrected(True, None)
    grams.summary(rng.normal(size=(700, 1)))
    used, w = grams.passes, rng.uniform(size=20)
    used.combination(w)
    assert used.distances.size and used.levels is not None
    for new in (copy.copy(used), pickle.loads(pickle.dumps(used))):
        fresh = PassCache(new.family)
        assert vars(new).keys() == vars(fresh).keys() and new.distances.size == 0
    again = pickle.loads(pickle.dumps(grams))
    np.testing.assert_array_equal(again.raw_combine(w), grams.raw_combine(w))


def test_model_files_hold_no_cache(rng):
    X = rng.normal(size=(700, 4))
    model = mk.MultiKernelRegressor(mk.gaussians(np.geomspace(0.01, 1.0, 20))).fit(X, X[:, 0])
    before = len(pickle.dumps(model))
    values = model.predict(X[:9])
    stored = pickle.dumps(model)
    assert len(stored) == before
    np.testing.assert_array_equal(pickle.loads(stored).predict(X[:9]), values)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sigmoid_of_negative_slope(rng, dtype):
    X, new = rng.normal(size=(70, 4)), rng.normal(size=(9, 4))
    kernels = [mk.Sigmoid(-0.3, 0.2), mk.Gaussian(0.5), mk.Sigmoid(-2.0, -0.1)]

    def expected(A, B):
        gaussian = naive.gaussian(A, B, 0.5)
        return np.array([naive.sigmoid(A, B, -0.3, 0.2), gaussian, naive.sigmoid(A, B, -2.0, -0.1)])

    grams = shared(kernels, X, dtype)
    K = expected(X, X)
    tol = 1e-12 if dtype is np.float64 else 2e-5
    np.testing.assert_allclose(grams.block(slice(None)), K, atol=tol)
    np.testing.assert_allclose(grams.diagonals(), [np.diag(one) for one in K], atol=tol)
    mu, v = np.array([0.5, 0.0, 1.5]), rng.normal(size=(70, 2))
    combined = np.tensordot(mu, K, 1)
    np.testing.assert_allclose(grams.combine(mu).dense(), combined, atol=2 * tol)
    function = grams.expand(mu, v)
    values = np.tensordot(mu, expected(new, X), 1) @ v
    np.testing.assert_allclose(function.values(function.encode(new)), values, atol=100 * tol)
    assert not grams.known_psd[[0, 2]].any()
