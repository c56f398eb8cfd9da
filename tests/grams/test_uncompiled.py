"""Small samples are served by NumPy; the passes agree with the compiled ones to rounding."""

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams import _loops, _uncompiled
from multikernel.grams._loops import (
    EXP_CHI,
    EXP_L1,
    EXP_POWER,
    EXP_ROOT,
    EXP_SQ,
    MATERN_3,
    MATERN_5,
    POLY,
    TANH,
    KernelFamily,
    PassCache,
)
from multikernel.grams.engines import build

KINDS = [EXP_SQ, EXP_SQ, EXP_L1, EXP_CHI, EXP_ROOT, EXP_POWER, MATERN_3, MATERN_5, POLY, POLY, TANH]
PARAMETERS = [
    (0.3, 0, 1), (1e-7, 0, 1), (0.2, 0, 1), (0.5, 0, 1), (0.7, 0, 1), (0.4, 0.75, 1),
    (0.6, 0, 1), (0.6, 0, 1), (0.5, 1.0, 3), (1.0, 0.0, 1), (0.1, 0.2, 1),
]  # fmt: skip


@pytest.fixture(params=[np.float64, np.float32])
def dtype(request):
    return request.param


@pytest.fixture(params=["kept", "recomputed"])
def caches(request, dtype, rng, monkeypatch):
    """The same family, compiled and not; equal samples among the points."""
    if request.param == "recomputed":
        monkeypatch.setattr(_uncompiled, "MAX_KEPT_VALUES", 0)
    monkeypatch.setattr(_uncompiled, "PANEL_VALUES", 5000)
    Z = np.abs(rng.normal(size=(70, 5)))
    Z[7] = Z[3]
    family = KernelFamily(
        Z.astype(dtype),
        np.array([0, 3, 5]),
        np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]),
        np.array(KINDS),
        np.array(PARAMETERS, dtype=np.float64),
        shifted=np.array([False, True] + 9 * [False]),
    )
    return PassCache.direct(family), PassCache(family, small=True)


def close(a, b, dtype):
    eps = 1e-12 if dtype == np.float64 else 2e-5
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    np.testing.assert_allclose(a, b, rtol=eps, atol=eps * np.abs(b).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("products", [False, True])
def test_sums_and_products(caches, rng, weighted, products):
    compiled, small = caches
    n, dtype = compiled.family.n, compiled.family.dtype
    Y, omega = rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n) if weighted else None
    c = rng.uniform(size=len(KINDS))
    one = _loops.statistics(compiled, Y, omega, products, 1, c)
    other = _loops.statistics(small, Y, omega, products, 1, c)
    for name in ("row_sums", "diagonals", "a", "products", "combined"):
        close(getattr(other, name), getattr(one, name), dtype)
    means = one.row_sums / (n if omega is None else omega.sum())
    grand = means @ (np.ones(n) if omega is None else omega) / (n if omega is None else omega.sum())
    one = _loops.centred_statistics(compiled, means, grand, Y, omega, products, 1)
    other = _loops.centred_statistics(small, means, grand, Y, omega, products, 1)
    close(other.products, one.products, dtype)
    close(other.a, one.a, dtype)


def test_blocks_and_combinations(caches, rng):
    compiled, small = caches
    n, dtype = compiled.family.n, compiled.family.dtype
    w = np.where(rng.random(len(KINDS)) < 0.3, 0.0, rng.uniform(size=len(KINDS)))
    V, new = rng.normal(size=(n, 3)), np.abs(rng.normal(size=(9, 5)))
    r = rng.normal(size=n)
    for ask in (
        lambda c: _loops.block(c, slice(3, 20)),
        lambda c: _loops.diagonals(c),
        lambda c: _loops.combine(c, w, 1, np.float64),
        lambda c: _loops.combine(c, w, 1, np.float64, (r, 0.5)),
        lambda c: _loops.matvecs(c, V, 1),
        lambda c: _loops.combined_matvec(c, w, V, 1),
        lambda c: _loops.combined_sums(c, w, np.abs(r), 1)[0],
        lambda c: _loops.combined_sums(c, w, None, 1)[1],
        lambda c: _loops.cross_block(c, new, 1),
        lambda c: _loops.cross_apply(c, new, V, 1),
        lambda c: _loops.cross_combine(c, new, w, 1),
    ):
        one, other = ask(compiled), ask(small)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        close(other, one, dtype)
    K = _loops.combine(small, w, 1, np.float64)
    assert np.array_equal(K, K.T)


def test_values_that_are_kept_have_the_bits_of_those_that_are_not(rng, monkeypatch, dtype):
    Z = rng.normal(size=(40, 3)).astype(dtype)
    kinds, parameters = np.array(KINDS[:4]), np.array(PARAMETERS[:4], dtype=np.float64)
    family = KernelFamily(np.abs(Z), np.array([0, 3]), np.zeros(4, int), kinds, parameters)
    w, V = np.array([0.3, 0.0, 1.0, 2.0]), rng.normal(size=(40, 2))
    found = []
    for limit in (_uncompiled.MAX_KEPT_VALUES, 0):
        monkeypatch.setattr(_uncompiled, "MAX_KEPT_VALUES", limit)
        cache = PassCache(family, small=True)
        assert (cache.values is None) == (limit == 0)
        found.append((
            _loops.block(cache, slice(3, 9)), _loops.combine(cache, w), _loops.matvecs(cache, V),
            _loops.diagonals(cache), _loops.statistics(cache, V, None, True).products,
        ))  # fmt: skip
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


def test_near_points_keep_their_digits_in_many_columns(rng, monkeypatch):
    monkeypatch.setattr(_uncompiled, "MAX_DIFFERENCES", 0)
    U = rng.normal(size=(40, 200)) + 1e4
    U[1] = U[0] + 1e-7 * rng.normal(size=200)
    exact = ((U[:, None] - U[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(_uncompiled._pairs("square", U, U), exact, rtol=1e-8, atol=1e-30)
    assert np.all(np.diag(_uncompiled._pairs("square", U, U)) == 0.0)


def gaussian_family(n, p, groups=1):
    """p Gaussians on the same column, or on several columns in turn."""
    owner = np.sort(np.arange(p) % groups)
    parameters = np.tile([0.5, 0.0, 1.0], (p, 1))
    offsets = np.arange(groups + 1)
    return KernelFamily(np.zeros((n, groups)), offsets, owner, np.full(p, EXP_SQ), parameters)


@pytest.mark.parametrize(
    ("n", "p", "groups", "room", "few_passes", "small"),
    [
        (2000, 33, 1, 1e12, True, True),
        (2000, 34, 1, 1e12, True, False),  # too many values
        (2001, 1, 1, 1e12, True, False),
        (2000, 13, 1, 1e12, False, False),
        (500, 13, 1, 1e6, True, False),
        (2000, 33, 8, 32.0 * 8 * 2000**2, True, True),
        (2000, 33, 8, 31.0 * 8 * 2000**2, True, False),  # no room for eight distances
        (2000, 33, 9, 1e12, True, False),  # too many distances to keep
        (2000, 16, 16, 1e12, True, True),  # the values themselves are kept
    ],
)
def test_sizes_and_the_budget_decide(n, p, groups, room, few_passes, small):
    assert _uncompiled.is_small(gaussian_family(n, p, groups), room, few_passes) is small


@pytest.mark.parametrize("rule", ["alignf", "loo", "lp"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_models_are_the_same_to_rounding(rng, monkeypatch, rule, task):
    """A whole fit in compiled loops, and one without."""
    X = rng.normal(size=(80, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    if task == "classification":
        y = np.sign(y)
    kind = mk.MultiKernelClassifier if task == "classification" else mk.MultiKernelRegressor
    bank = [mk.Gaussian(0.1), mk.Gaussian(1.0), mk.Laplacian(0.5), mk.Polynomial(2)]
    model = kind(kernels=bank, weighting=rule)
    small = model.fit(X, y).predict(X), model.kernel_weights_
    for module in ("grams._uncompiled", "learners.source", "_mirror", "_matrix_loops"):
        monkeypatch.setattr(f"multikernel.{module}.SMALL_SAMPLES", 0)
    compiled = model.fit(X, y).predict(X), model.kernel_weights_
    np.testing.assert_allclose(small[1], compiled[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(small[0], compiled[0], rtol=1e-4, atol=1e-6)


def test_plans_and_builders_pass_the_kind_of_fit_on(rng):
    bank = mk.KernelBank([mk.Gaussian(0.5)])
    X = rng.normal(size=(20, 2))
    grams = build(bank.plan(X), X, few_passes=True)
    assert grams.few_passes and grams.take(np.arange(5)).few_passes
