"""Sums of a few polynomials give what all kernels give, to the digits of their type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import ive

import multikernel as mk
from multikernel.grams import _families, _loops
from multikernel.grams._families import Family
from multikernel.grams._moment_loops import LEVELS, Targets
from multikernel.grams._moments import Basis, bessel_coefficients, degrees_for
from multikernel.grams._passes import EXP_L1, EXP_SQ, POLY
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.shared import SharedGrams

N = 700


def make(rng, kind=EXP_SQ, p=24, dtype=np.float64, n=N, rates=None, columns=5, keeps=False):
    """Exponentials of one distance, the wide half of them less one."""
    Z = rng.standard_normal((n, columns)).astype(dtype)
    rates = np.geomspace(0.01, 5.0, p) / columns if rates is None else np.asarray(rates)
    params = np.zeros((len(rates), 3))
    params[:, 0] = rates
    group = np.zeros(len(rates), dtype=np.int64)
    shifted = np.arange(len(rates)) < len(rates) // 2
    return Family(
        Z, np.array([0, columns]), group, np.full(len(rates), kind), params, shifted, keeps=keeps
    )


def plainly(family, dtype=np.float64):
    """The same, every kernel for itself."""
    plain = Family(
        family.Z.astype(dtype),
        family.offsets,
        family.group,
        family.kind,
        family.params,
        family.shifted,
    )
    plain.__dict__.update(basis=None, skeleton=None)
    return plain


def test_coefficients_are_bessel_functions():
    l = np.array([0.0, 1e-12, 1e-3, 1.0, 37.0, 400.0])
    c = bessel_coefficients(l, 50)
    want = np.array([[(2.0 if m else 1.0) * ive(m, x) for m in range(50)] for x in l])
    tiny = want < 1e-290
    np.testing.assert_allclose(c[~tiny], want[~tiny], rtol=1e-12)
    assert np.all(c[tiny] < 1e-280)
    np.testing.assert_allclose(bessel_coefficients(l, 300).sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("error", [1e-6, 1e-11, 1e-19])
def test_what_is_left_out(error):
    x = np.linspace(-1.0, 1.0, 2001)
    T = np.cos(np.outer(np.arange(260), np.arccos(x)))
    for l in (1e-9, 0.3, 5.0, 60.0, 300.0):
        count = degrees_for(l, error, 250)
        assert count is not None
        full = bessel_coefficients(np.array([l]), 260)[0]
        assert full[count:].sum() <= error < full[count - 1 :].sum()
        missing = np.abs(full[:count] @ T[:count] - np.exp(l * (x - 1.0))).max()
        assert missing <= error + 1e-14
    assert degrees_for(60.0, error, 20) is None
    assert degrees_for(1e9, error, 250) is None


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
    assert family.basis is not None
    Y = labels(rng, n, target)
    omega = rng.uniform(0.5, 2.0, n) if weighted else None
    combined = rng.uniform(0.1, 1.0, family.p)
    got, want = (
        _loops.statistics(f, Y, omega, True, 1, combined) for f in (family, plainly(family))
    )
    size = np.sqrt(np.diag(want.products))
    np.testing.assert_array_equal(got.diagonals, want.diagonals)
    np.testing.assert_allclose(got.row_sums, want.row_sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        got.products / np.outer(size, size), want.products / np.outer(size, size), atol=1e-13
    )
    np.testing.assert_array_equal(got.products, got.products.T)
    np.testing.assert_array_equal(got.combined, _loops.combine(family, combined, 1))
    if Y is None:
        assert got.a is None
    else:
        np.testing.assert_allclose(got.a, want.a, atol=1e-12 * (size * np.sum(Y**2)).max())
    squares = _loops.statistics(family, Y, omega, False, 1).products
    np.testing.assert_allclose(squares, np.diag(got.products), rtol=1e-13)


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
def test_single_precision_is_better_than_kernel_by_kernel(kind, rng):
    family = make(rng, kind, dtype=np.float32, p=32)
    Y = labels(rng, N, "two")
    assert family.basis is not None
    got, single, true = (
        _loops.statistics(f, Y, None, True, 1)
        for f in (family, plainly(family, np.float32), plainly(family))
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
    plain = plainly(family)
    for V in (rng.standard_normal((N, 1)), rng.standard_normal((N, 2)) * 1e9):
        got, want = (_loops.matvecs(f, V, 1) for f in (family, plain))
        np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(V).sum(axis=0).max())
    few = np.flatnonzero(rng.random(N) < 0.4)
    V = np.ascontiguousarray(rng.standard_normal((len(few), 1)))
    got, want = (_loops.matvecs(f.on(f.Z[few]), V, 1) for f in (family, plain))
    np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(V).sum())


def test_few_rows_or_many_vectors_are_left_to_the_kernels(rng, monkeypatch):
    family = make(rng)
    plain = plainly(family)
    sparse = np.zeros((N, 1))
    sparse[:50] = 1.0
    many = rng.standard_normal((N, _loops.MOMENTS_AT_MOST + 1))
    monkeypatch.setattr(_loops, "polynomial_sums", None)
    for V in (sparse, many):
        np.testing.assert_array_equal(_loops.matvecs(family, V, 1), _loops.matvecs(plain, V, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_on_any_number_of_threads(dtype, rng):
    family = make(rng, dtype=dtype, p=32, n=1500)
    assert family.basis is not None
    Y = labels(rng, 1500, "five")
    found = [
        _loops.statistics(family, Y, None, True, threads, np.ones(family.p))
        for threads in (1, 2, 3, 2)
    ]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [N, 768, 1029])
def test_kept_distances_change_no_bit(dtype, n, rng):
    keeping, plain = (
        make(np.random.default_rng(0), dtype=dtype, p=32, n=n, keeps=keeps)
        for keeps in (True, False)
    )
    w, r, g = rng.uniform(0.1, 1.0, keeping.p), rng.standard_normal(n), 0.3
    assert keeping.distances.shape[0] == 0
    for family in (keeping, plain):
        _loops.statistics(family, None, None, False, 1)
    assert keeping.distances.shape[0] > 0 == plain.distances.shape[0]
    for means in (None, (r, g)):
        for out_type in (None, np.float64):
            a, b = (_loops.combine(f, w, 2, out_type, means) for f in (keeping, plain))
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, a.T)
    raw = _loops.combine(plain, w, 1, np.float64)
    centred = _loops.combine(keeping, w, 1, np.float64, (r, g))
    np.testing.assert_array_equal(centred, raw - ((r[:, None] + r) - g))
    nothing = _loops.combine(keeping, np.zeros(keeping.p), 1, np.float64, (r, g))
    np.testing.assert_allclose(nothing, g - r[:, None] - r)
    # One kernel, and more than the tile for many kernels would hold: made anew, and the same.
    one = np.eye(keeping.p)[3]
    np.testing.assert_array_equal(_loops.combine(keeping, one, 1), _loops.combine(plain, one, 1))


def test_very_many_kernels(rng):
    """Their tiles are smaller; what was kept does not fit the tiles of a combination."""
    keeping, plain = (make(np.random.default_rng(0), p=600, keeps=keeps) for keeps in (True, False))
    assert keeping.tile == 64
    w = rng.uniform(0.1, 1.0, 600)
    got = _loops.statistics(keeping, None, None, False, 1)
    want = _loops.statistics(plainly(plain), None, None, False, 1)
    np.testing.assert_allclose(got.products, want.products, rtol=1e-12)
    np.testing.assert_array_equal(_loops.combine(keeping, w, 1), _loops.combine(plain, w, 1))


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
@pytest.mark.parametrize("shape", ["cloud", "outliers", "line", "two far clouds"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_distance_is_larger(kind, shape, dtype, rng):
    Z = rng.standard_normal((N, 6)).astype(dtype)
    if shape == "outliers":
        Z[:: N // 7] *= 30
    elif shape == "line":
        Z = np.outer(rng.standard_normal(N), np.ones(6)).astype(dtype)
    elif shape == "two far clouds":
        Z[:10] += 100
    Z += dtype(3.0)
    family = Family(Z, np.array([0, 6]), np.zeros(1, int), np.array([kind]), np.ones((1, 3)))
    metric = "sqeuclidean" if kind == EXP_SQ else "cityblock"
    largest = cdist(Z.astype(float), Z.astype(float), metric).max()
    found = family.farthest(0, kind)
    assert largest <= found <= family.reach(0, kind)[1] * 1.01
    if kind == EXP_SQ and shape != "cloud":
        assert found <= 1.5 * largest


def test_where_there_is_none(rng):
    assert make(rng).basis is not None
    assert make(rng, n=_families.FEW_FROM - 1).basis is None  # too few points
    assert make(rng, p=3).basis is None  # too few kernels
    assert make(rng, rates=np.geomspace(1.0, 1e7, 30)).basis is None  # too narrow
    assert make(rng, rates=np.zeros(30)).basis is None
    other = make(rng)
    other.kind[3] = POLY
    assert other.basis is None
    apart = Family(
        other.Z,
        np.array([0, 2, 5]),
        np.arange(24) // 12,
        np.full(24, EXP_SQ),
        other.params,
    )
    assert apart.basis is None
    same = make(rng)
    same.Z[:] = 1.0
    assert same.basis is None
    huge = make(rng, dtype=np.float32, p=32)
    huge.Z[:] *= np.float32(1e25)
    assert huge.basis is None and huge.farthest(0, EXP_SQ) == np.inf


def test_a_constant_kernel_in_the_bank(rng):
    rates = np.append(0.0, np.geomspace(0.01, 1.0, 23))
    family = make(rng, rates=rates)
    assert family.basis is not None  # less one, the first is zero
    got = _loops.statistics(family, None, None, True, 1)
    assert np.all(got.row_sums[0] == 0) and np.all(got.products[0] == 0)
    plain = plainly(family)
    want = _loops.statistics(plain, None, None, True, 1)
    np.testing.assert_allclose(got.row_sums, want.row_sums, rtol=1e-12)


@pytest.mark.parametrize("wide", [1e-3, 1e-8, 1e-13])
def test_very_wide_kernels_keep_their_digits(wide, rng):
    """Centred, exp(-gamma d) is -gamma d to first order, however small gamma is."""
    family = make(rng, rates=np.geomspace(wide, 2.0 * wide, 20))
    assert family.basis is not None
    s = _loops.statistics(family, None, None, True, 1)
    d = cdist(family.Z, family.Z, "sqeuclidean")
    first = np.expm1(-wide * d)
    np.testing.assert_allclose(s.row_sums[0], first.sum(axis=1), rtol=1e-11)
    assert s.products[0, 0] == pytest.approx(np.sum(first**2), rel=1e-11)


def test_targets_by_levels(rng):
    y = rng.integers(0, 3, 300)
    Y = np.eye(3)[y]
    omega = rng.uniform(0.5, 2.0, 300)
    found = Targets.of(Y, omega, 300, 128)
    assert found.values.shape[1] == 0 and found.starts.shape == (3, 4)
    for tile in range(3):
        here = y[tile * 128 : (tile + 1) * 128]
        order = found.order[tile * 128 : tile * 128 + len(here)]
        assert sorted(order.tolist()) == list(range(len(here)))
        for level in range(3):
            part = order[found.starts[tile, level] : found.starts[tile, level + 1]]
            assert np.all(here[part] == 2 - level) or np.all(
                np.eye(3)[here[part]] == np.unique(Y, axis=0)[level]
            )
    levels = np.unique(Y, axis=0)
    np.testing.assert_allclose(found.likeness[:, :300], levels @ (omega[:, None] * Y).T)
    assert np.all(found.likeness[:, 300:] == 0)
    many = Targets.of(rng.standard_normal((300, 1)), None, 300, 128)
    assert many.starts.shape == (3, 2) and many.values.shape == (384, 1)
    assert np.all(many.likeness == 0)
    levels = Targets.of(np.arange(300.0)[:, None] % LEVELS, None, 300, 128)
    assert levels.starts.shape == (3, LEVELS + 1)


def test_a_basis_has_at_least_some_degrees():
    basis = Basis.of(np.full(5, 1e-9), np.zeros(5, dtype=bool), 1.0, 1e-10, 20)
    assert basis is not None and basis.degrees == basis.high == 4


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
    exact.family.__dict__["basis"] = None
    assert fast.family.basis is not None
    if dtype == np.float32:
        fast.raw_centred_products = None
    got, want = fast.summary(y), exact.summary(y)
    tolerance = 3e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(got.traces, want.traces, rtol=tolerance)
    np.testing.assert_allclose(got.norms, want.norms, rtol=tolerance)
    np.testing.assert_allclose(got.alignments, want.alignments, atol=tolerance)
    cosines = got.M / np.outer(got.norms, got.norms)
    np.testing.assert_allclose(cosines, want.M / np.outer(want.norms, want.norms), atol=tolerance)


@pytest.mark.parametrize("weighting", ["alignf", mk.LpNorm(4 / 3), mk.L1()])
def test_the_same_machine(weighting, rng, monkeypatch):
    """An estimator finds the same weights and outputs with polynomials as without."""
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
    monkeypatch.setattr(Family, "basis", None)
    used.clear()
    plain = fit()
    assert not used
    np.testing.assert_allclose(fast.kernel_weights_, plain.kernel_weights_, atol=2e-4)
    np.testing.assert_allclose(fast.decision_function(X), plain.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_combinations_as_series(kind, dtype, rng):
    """Between points of the family; dense, by rows, summed and multiplied with vectors."""
    family = make(rng, kind, dtype=dtype, p=32)
    w = rng.uniform(0.1, 1.0, 32)
    assert family.combination(w, inside=True)[0].series is not None
    assert family.combination(w)[0].series is None  # any points: from a table
    exact = _loops.combine(plainly(family), w, 1)
    size = w.sum() * (3e-7 if dtype == np.float32 else 1e-14)
    K = _loops.combine(family, w, 1)
    np.testing.assert_allclose(K, exact, atol=size)
    np.testing.assert_array_equal(K, K.T)
    rows = _loops.cross_combine(family, family.Z[100:130], w, 1, inside=True)
    np.testing.assert_array_equal(rows, K[100:130])
    V = rng.standard_normal((N, 2))
    np.testing.assert_allclose(
        _loops.combined_matvec(family, w, V, 1), exact @ V, atol=size * np.abs(V).sum()
    )
    sums, square = _loops.combined_sums(family, w, None, 1)
    np.testing.assert_allclose(sums, exact.sum(axis=1), atol=size * N)
    assert square == pytest.approx(np.sum(exact**2), rel=1e-6 if dtype == np.float32 else 1e-13)
    found = _loops.statistics(family, None, None, False, 1)
    assert family.basis.square(w, found.totals) == pytest.approx(square, rel=1e-6)
    np.testing.assert_allclose(w @ found.row_sums, sums, atol=size * N)


def test_few_weights_are_no_series(rng):
    family = make(rng)
    w = np.zeros(family.p)
    w[[2, 20]] = 1.0
    assert family.combination(w, inside=True)[0].p == 2
    w[:] = 1e-3
    w[0] = 5.0  # nearly all on a wide kernel: few degrees are enough
    assert len(family.combination(w, inside=True)[0].series) < family.basis.degrees
    assert len(family.combination(np.eye(24)[0] + 1e-300, inside=True)[0].series) >= 3


def test_predictions_far_away(rng):
    """New points may be farther than any two of the sample: there a series would explode."""
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
        kernels, X, names, MemoryBudget.of("1GB"), dtype=np.float64, weights=omega
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


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("normalize", [None, "multiplicative", "spherical"])
def test_quadratic_forms(center, normalize, rng):
    X = rng.standard_normal((N, 5))
    kernels, names = list(mk.gaussians(np.geomspace(0.01, 0.5, 20))), [str(k) for k in range(20)]
    grams = SharedGrams.evaluate(
        kernels, X, names, MemoryBudget.of("1GB"), dtype=np.float64
    ).corrected(center, normalize)
    few = np.zeros((N, 1))
    few[rng.permutation(N)[:200], 0] = rng.standard_normal(200)
    balanced = few.copy()
    balanced[few != 0] -= few.sum() / 200
    for V in (few, balanced, rng.standard_normal((N, 2)), rng.standard_normal((N, 3)), 0 * few):
        want = np.einsum("knt,nt->kt", grams.matvecs(V), V)
        size = 1e-12 * grams.scales[:, None] * np.abs(V).sum(axis=0) ** 2
        assert np.all(np.abs(grams.quadratic_forms(V) - want) <= size)
    assert grams.quadratic_forms(few[:, 0]).shape == (20,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_are_not_read(dtype, rng):
    X = rng.standard_normal((N, 6)).astype(dtype)
    X[:, [1, 5]] = [0.1, 0.0]
    names, ample = [str(k) for k in range(20)], MemoryBudget.of("1GB")
    kernels = list(mk.gaussians(np.geomspace(0.01, 0.5, 20)))
    grams = SharedGrams.evaluate(kernels, X, names, ample, dtype=dtype).corrected(True, None)
    assert grams.family.moving.tolist() == [0, 2, 3, 4]
    plain = replace(grams.family, moving=None)
    w = rng.uniform(0.1, 1.0, 20)
    for a, b in zip(
        *(_loops.statistics(f, None, None, True, 1)[:4] for f in (grams.family, plain)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(_loops.combine(grams.family, w), _loops.combine(plain, w))
    rows = np.array([3, 500, 4])
    np.testing.assert_array_equal(
        grams.raw_rows(w, rows), _loops.combine(plain, w, 1, np.float64)[rows]
    )
    V = np.zeros((N, 1))
    V[:40] = 1.0
    np.testing.assert_array_equal(_loops.matvecs(grams.family, V), _loops.matvecs(plain, V))
    # Beside kernels of dot products every column counts.
    both = SharedGrams.evaluate([*kernels, mk.Linear()], X, [*names, "linear"], ample, dtype=dtype)
    assert len(both.family.moving) in (4 + 6, 4 + 5)
    d = cdist(X.astype(float), X.astype(float), "sqeuclidean")
    np.testing.assert_allclose(both.raw_block(slice(0, 3))[0], np.exp(-0.01 * d[:3]), atol=1e-6)
    np.testing.assert_allclose(
        both.raw_block(slice(0, 3))[-1], X[:3].astype(float) @ X.T.astype(float), atol=1e-5
    )
    # New points may differ in them.
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 0.2, 0.4])).fit(X, X[:, 0])
    new = X[:5].copy()
    new[:, [1, 5]] += 2.0
    assert np.abs(model.predict(new) - model.predict(X[:5])).min() > 1e-3


def test_points_that_are_all_alike(rng):
    X = np.ones((N, 3))
    grams = SharedGrams.evaluate(
        list(mk.gaussians([0.1, 1.0])), X, ["a", "b"], MemoryBudget.of("1GB")
    )
    assert len(grams.family.moving) == 0
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
    assert tight.family.distances.size == 0
    assert 0 < ample.family.distances.nbytes <= 1.6 * N**2
