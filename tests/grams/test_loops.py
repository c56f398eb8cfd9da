"""The compiled passes against their obvious NumPy twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy.spatial.distance import cdist

from multikernel.grams import _fastmath, _loops
from multikernel.grams._loops import EXP_L1, EXP_SQ, POLY, TANH, KernelFamily, PassCache

DTYPES = [np.float32, np.float64]
# Largest error of an entry, relative to the largest entry of its kernel.
ENTRY = {np.float32: 2e-6, np.float64: 1e-13}
# Relative error of sums of entries of one sign.
SUM = {np.float32: 1e-6, np.float64: 1e-12}


def make_family(n, dtype=np.float64, shifted=False, seed=0):
    """Three groups (3, 40 and 1 columns) and every kind of kernel."""
    rng = np.random.default_rng(seed)
    Z = np.ascontiguousarray(rng.standard_normal((n, 44)), dtype=dtype)
    kernels = [
        (0, EXP_SQ, 0.3, 0.0, 0),
        (0, EXP_SQ, 2.5, 0.0, 0),
        (0, POLY, 1.0, 0.0, 1),
        (0, POLY, 0.5, 1.0, 2),
        (0, TANH, 0.4, -0.1, 0),
        (1, EXP_L1, 0.05, 0.0, 0),
        (1, EXP_SQ, 0.01, 0.0, 0),
        (1, POLY, 0.1, 0.5, 5),
        (2, EXP_L1, 1.5, 0.0, 0),
        (2, EXP_SQ, 1e-3, 0.0, 0),
    ]
    group, kind, *params = zip(*kernels, strict=True)
    return KernelFamily(
        Z,
        np.array([0, 3, 43, 44]),
        np.array(group),
        np.array(kind),
        np.array(params, dtype=float).T.copy(),
        shifted,
    )


def gaussians(Z, gammas, shifted=False):
    gammas = np.asarray(gammas, dtype=float)
    p = len(gammas)
    return KernelFamily(
        np.ascontiguousarray(Z),
        np.array([0, Z.shape[1]]),
        np.zeros(p, dtype=np.int64),
        np.full(p, EXP_SQ),
        np.column_stack([gammas, np.zeros(p), np.zeros(p)]),
        shifted,
    )


def twin(family, X=None):
    """All kernels between X and the points of the family, in float64."""
    Z = family.Z.astype(np.float64)
    X = Z if X is None else X.astype(np.float64)
    exp = np.expm1 if family.shifted else np.exp
    K = np.empty((family.p, len(X), len(Z)))
    for k in range(family.p):
        columns = slice(*family.offsets[family.group[k] :][:2])
        x, z = X[:, columns], Z[:, columns]
        gamma, coef0, degree = family.params[k]
        if family.kind[k] == EXP_SQ:
            K[k] = exp(-gamma * cdist(x, z, "sqeuclidean"))
        elif family.kind[k] == EXP_L1:
            K[k] = exp(-gamma * cdist(x, z, "cityblock"))
        elif family.kind[k] == POLY:
            K[k] = (gamma * (x @ z.T) + coef0) ** degree
        else:
            K[k] = np.tanh(gamma * (x @ z.T) + coef0)
    return K


def assert_entries(actual, K, dtype):
    """Every kernel to the accuracy of its type, relative to its largest entry."""
    assert np.all(np.abs(actual - K) <= ENTRY[dtype] * size_of(K))


def size_of(K):
    """The largest entry of each kernel, in place of all its entries.

    The error of a dot product is relative to the lengths of its vectors, not to its value.
    """
    return np.broadcast_to(np.abs(K).max(axis=(1, 2), keepdims=True), K.shape)


def assert_sums(actual, expected, magnitude, dtype):
    """Sums, relative to the sums of the sizes of their terms."""
    assert np.all(np.abs(actual - expected) <= SUM[dtype] * magnitude)


# Exponentials.


@njit
def _apply(which, x, high, low, limit, out):
    for i in range(x.shape[0]):
        if which == 0:
            out[i] = _fastmath.exp_decay(x[i], high, low, limit)
        elif which == 1:
            out[i] = _fastmath.expm1_decay(x[i], high, low, limit)
        else:
            out[i] = _fastmath.tanh(x[i])


def evaluate(which, x, gamma=1.0):
    real = x.dtype.type
    out = np.empty_like(x)
    _apply(which, x, *(real(c) for c in _fastmath.split_rate(gamma, x.dtype)), out)
    return out


def in_ulps(actual, expected):
    """Distance in units of the last place of `actual`'s type; `expected` has more digits."""
    spacing = np.spacing(np.abs(expected).astype(actual.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(actual.astype(np.longdouble) - expected) / spacing))


def arguments(dtype, last):
    rng = np.random.default_rng(0)
    spread = np.concatenate([np.geomspace(1e-30, last, 20_000), rng.uniform(0, last, 20_000)])
    return spread.astype(dtype)


@pytest.mark.parametrize("gamma", [1.0, 0.3712345678901234, 123.456, 3e-7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_is_accurate_in_ulps(dtype, gamma):
    x = arguments(dtype, (85.0 if dtype is np.float32 else 700.0) / gamma)
    z = -np.longdouble(gamma) * x.astype(np.longdouble)
    assert in_ulps(evaluate(0, x, gamma), np.exp(z)) < 2.0
    assert in_ulps(evaluate(1, x, gamma), np.expm1(z)) < 3.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_tanh_is_accurate_in_ulps(dtype):
    x = arguments(dtype, 30.0)
    x = np.concatenate([x, -x])
    assert in_ulps(evaluate(2, x), np.tanh(x.astype(np.longdouble))) < 4.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_at_its_ends(dtype):
    x = np.array([0.0, 1e-30, 100.0, 750.0, 1e6, 1e30], dtype=dtype)
    tiny = np.finfo(dtype).tiny
    exact = np.exp(-x.astype(np.float64))
    exact[exact < tiny] = 0.0
    np.testing.assert_allclose(evaluate(0, x), exact, rtol=1e-5 if dtype == np.float32 else 1e-13)
    assert evaluate(0, x)[0] == 1.0
    np.testing.assert_array_equal(evaluate(1, x)[[0, 2, 3, 4, 5]], [0, -1, -1, -1, -1])
    np.testing.assert_allclose(evaluate(2, x), np.tanh(x), rtol=4 * np.finfo(dtype).eps)
    for gamma in (0.0, 1e-30, 1e6, 1e30):
        for which in (0, 1):
            assert np.isfinite(evaluate(which, x, gamma)).all()


# Entries.


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 31, 128, 300])
def test_block_is_its_twin(n, dtype, shifted):
    family = make_family(n, dtype, shifted)
    K = _loops.block(PassCache(family), slice(None))
    assert K.dtype == dtype
    assert_entries(K, twin(family), dtype)
    np.testing.assert_array_equal(K, K.transpose(0, 2, 1))
    np.testing.assert_array_equal(
        _loops.diagonals(PassCache(family)), np.diagonal(K, axis1=1, axis2=2)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_have_the_same_bits_in_every_request(dtype):
    family = make_family(300, dtype)
    K = _loops.block(PassCache(family), slice(None), n_threads=1)
    for rows in (slice(0, 1), slice(5, 140), slice(127, 129), slice(255, 300), slice(7, 7)):
        np.testing.assert_array_equal(
            _loops.block(PassCache(family), rows, n_threads=2), K[:, rows]
        )
    np.testing.assert_array_equal(
        _loops.cross_block(PassCache(family), family.Z[17:160]), K[:, 17:160]
    )
    one = np.eye(family.p)[6]
    np.testing.assert_array_equal(_loops.combine(PassCache(family), one), K[6])


@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_data_and_single_columns(dtype):
    rng = np.random.default_rng(0)
    for D in (1, 5000):
        Z = rng.standard_normal((40, D)).astype(dtype)
        family = KernelFamily(
            Z,
            np.array([0, D]),
            np.zeros(4, dtype=np.int64),
            np.array([EXP_SQ, EXP_L1, POLY, TANH]),
            np.array([[1.0 / D, 0, 0], [1.0 / D, 0, 0], [1.0 / D, 1, 3], [1.0 / D, 0.1, 0]]),
        )
        K = twin(family)
        assert_entries(_loops.block(PassCache(family), slice(None)), K, dtype)
        G = _loops.statistics(PassCache(family)).products
        magnitude = np.einsum("kij,lij->kl", size_of(K), size_of(K))
        assert_sums(G, np.einsum("kij,lij->kl", K, K), magnitude, dtype)


def test_no_kernel_sees_the_origin():
    # Distances come from differences: far from the origin they are as good as the data.
    Z = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    far = (Z + np.float32(4096)).astype(np.float32)
    K = _loops.block(PassCache(gaussians(far, [0.5])), slice(None))
    assert_entries(K, twin(gaussians(far, [0.5])), np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", [1e-30, 1e-20, 1e-8, 1.0, 1e3, 1e6])
def test_extreme_rates(gamma, dtype):
    Z = np.random.default_rng(0).standard_normal((70, 3)).astype(dtype)
    for shifted in (False, True):
        family = gaussians(Z, [gamma], shifted)
        K, expected = _loops.block(PassCache(family), slice(None)), twin(family)
        assert np.isfinite(K).all()
        assert_entries(K, expected, dtype)
        assert np.isfinite(_loops.statistics(PassCache(family)).products).all()
    # Shifted entries are accurate one by one.
    off = ~np.eye(70, dtype=bool)
    error = np.abs(K[0][off] / expected[0][off] - 1).max()
    assert error < (2e-6 if dtype == np.float32 else 1e-14)


# Sums.


def expected_statistics(K, Y, w):
    ww = np.outer(w, w)
    T = Y @ Y.T
    rows = np.einsum("kij,j->ki", K, w)
    G = np.einsum("kij,lij,ij->kl", K, K, ww)
    return rows, np.einsum("kij,ij->k", K, T * ww), G


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 65, 300])
def test_statistics_are_their_twin(n, dtype, shifted, weighted):
    rng = np.random.default_rng(n)
    family = make_family(n, dtype, shifted)
    Y = rng.standard_normal((n, 3)) * 1e3
    w = rng.uniform(0, 2, n) if weighted else np.ones(n)
    if weighted:
        w[::5] = 0.0
    K = twin(family)
    rows, a, G = expected_statistics(K, Y, w)
    rows_size, _, G_size = expected_statistics(size_of(K), Y, w)
    a_size = np.einsum("kij,ij->k", size_of(K), np.abs(Y @ Y.T) * np.outer(w, w))
    found = _loops.statistics(PassCache(family), Y, w if weighted else None, True)
    assert_sums(found.row_sums, rows, rows_size + 1e-30, dtype)
    assert_sums(found.a, a, a_size, dtype)
    assert_sums(found.products, G, G_size, dtype)
    np.testing.assert_array_equal(found.products, found.products.T)
    np.testing.assert_array_equal(found.diagonals, _loops.diagonals(PassCache(family)))
    squares = _loops.statistics(PassCache(family), None, w if weighted else None, False)
    assert squares.a is None
    assert_sums(squares.products, np.diag(G), np.diag(G_size), dtype)
    np.testing.assert_array_equal(squares.row_sums, found.row_sums)
    with_targets = _loops.statistics(PassCache(family), Y, w if weighted else None, False)
    assert_sums(with_targets.a, a, a_size, dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 200])
def test_centred_products_are_their_twin(n, dtype, weighted):
    rng = np.random.default_rng(n)
    family = make_family(n, dtype, shifted=True)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    Y = rng.standard_normal((n, 2))
    K = twin(family)
    r = np.einsum("kij,j->ki", K, w) / w.sum()
    g = r @ w / w.sum()
    Kc = K - r[:, :, None] - r[:, None, :] + g[:, None, None]
    _, a, M = expected_statistics(Kc, Y, w)
    found = _loops.centred_statistics(PassCache(family), r, g, Y, w if weighted else None, True, 2)
    # Entries carry the rounding of the uncentred kernel.
    size = np.sqrt(np.einsum("kij,kij,ij->k", K, K, np.outer(w, w)))
    tolerance = 10 * SUM[dtype]
    assert np.all(np.abs(found.products - M) <= tolerance * np.outer(size, size))
    target_size = np.sqrt(np.sum((Y @ Y.T) ** 2 * np.outer(w, w)))
    assert np.all(np.abs(found.a - a) <= tolerance * size * target_size)
    squares = _loops.centred_products(PassCache(family), r, g, w if weighted else None, False)
    assert np.all(np.abs(squares - np.diag(M)) <= tolerance * size**2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_very_wide_kernels_keep_their_digits_when_centred(dtype):
    n = 260
    Z = np.random.default_rng(0).standard_normal((n, 4)).astype(dtype)
    gammas = [1e-8, 2e-8, 1e-12]
    family = gaussians(Z, gammas, shifted=True)
    H = np.eye(n) - 1.0 / n
    Kc = H @ twin(family) @ H
    M = np.einsum("kij,lij->kl", Kc, Kc)
    first = _loops.statistics(PassCache(family), products=False)
    r = first.row_sums / n
    found = _loops.centred_products(PassCache(family), r, r.mean(axis=1))
    np.testing.assert_allclose(found, M, rtol=1e-6 if dtype == np.float32 else 1e-12)


def test_float32_products_stay_close_to_float64():
    Z = np.random.default_rng(0).standard_normal((500, 10))
    gammas = np.geomspace(1e-3, 10, 9)
    single = _loops.statistics(PassCache(gaussians(Z.astype(np.float32), gammas)))
    double = _loops.statistics(
        PassCache(gaussians(Z.astype(np.float32).astype(np.float64), gammas))
    )
    np.testing.assert_allclose(single.products, double.products, rtol=3e-7)
    np.testing.assert_allclose(single.row_sums, double.row_sums, rtol=3e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_thousand_kernels(dtype):
    Z = np.random.default_rng(0).standard_normal((90, 2)).astype(dtype)
    family = gaussians(Z, np.geomspace(1e-4, 1e2, 1000))
    K = twin(family).reshape(1000, -1)
    G = _loops.statistics(PassCache(family)).products
    np.testing.assert_allclose(G, K @ K.T, rtol=3e-6 if dtype == np.float32 else 1e-12)
    per_column = KernelFamily(
        np.ascontiguousarray(np.random.default_rng(1).standard_normal((90, 300)), dtype=dtype),
        np.arange(301),
        np.arange(300),
        np.full(300, POLY),
        np.tile([1.0, 0.0, 1.0], (300, 1)),
    )
    K = twin(per_column).reshape(300, -1)
    expected, size = K @ K.T, np.abs(K) @ np.abs(K).T
    assert_sums(_loops.statistics(PassCache(per_column)).products, expected, size, dtype)


# Combinations and products with vectors.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 130, 290])
def test_combinations_are_their_twin(n, dtype):
    rng = np.random.default_rng(n)
    family = make_family(n, dtype)
    new = rng.standard_normal((57, 44)).astype(dtype)
    w = rng.standard_normal(family.p)
    w[[1, 4, 7]] = 0.0
    for out_dtype in (None, np.float32, np.float64):
        combined = _loops.combine(PassCache(family), w, dtype=out_dtype)
        assert combined.dtype == np.dtype(out_dtype or dtype)
        expected = np.tensordot(w, twin(family), 1)
        size = np.tensordot(np.abs(w), np.abs(twin(family)), 1).max()
        tolerance = ENTRY[dtype] if out_dtype is None else max(ENTRY[dtype], ENTRY[out_dtype])
        assert np.abs(combined - expected).max() < tolerance * size
        np.testing.assert_array_equal(combined, combined.T)
        crossed = _loops.cross_combine(PassCache(family), new, w, dtype=out_dtype)
        expected = np.tensordot(w, twin(family, new), 1)
        assert np.abs(crossed - expected).max() < tolerance * 10 * size
    nothing = np.zeros(family.p)
    assert not _loops.combine(PassCache(family), nothing).any()
    assert not _loops.cross_combine(PassCache(family), new, nothing).any()


@pytest.mark.parametrize("t", [1, 2, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 290])
def test_products_with_vectors_are_their_twin(n, dtype, t):
    rng = np.random.default_rng(n)
    family = make_family(n, dtype)
    new = rng.standard_normal((57, 44)).astype(dtype)
    w = rng.standard_normal(family.p)
    w[2] = 0.0
    dense = rng.standard_normal((n, t)) * 1e4
    sparse = dense * (rng.uniform(size=(n, 1)) < 0.2)
    for V in (dense, sparse):
        K, C = twin(family), twin(family, new)
        size, C_size = size_of(K) @ np.abs(V), size_of(C) @ np.abs(V)
        found = _loops.matvecs(PassCache(family), V)
        assert found.dtype == np.float64
        assert_sums(found, K @ V, size + 1e-30, dtype)
        assert_sums(_loops.cross_apply(PassCache(family), new, V), C @ V, C_size + 1e-30, dtype)
        total = _loops.combined_matvec(PassCache(family), w, V)
        size = np.tensordot(np.abs(w), size, 1)
        assert_sums(total, np.tensordot(w, K @ V, 1), size + 1e-30, dtype)
    assert not _loops.matvecs(PassCache(family), np.zeros((n, t))).any()
    assert not _loops.combined_matvec(PassCache(family), np.zeros(family.p), dense).any()


# Determinism.


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_threads(dtype):
    n = 1100
    rng = np.random.default_rng(0)
    family = make_family(n, dtype)
    Y, V = rng.standard_normal((n, 1)), rng.standard_normal((n, 2))
    w, weights = rng.standard_normal(family.p), rng.uniform(size=n)
    r, g = rng.standard_normal((family.p, n)), rng.standard_normal(family.p)

    def everything(n_threads):
        yield from _loops.statistics(PassCache(family), Y, None, True, n_threads)
        yield from _loops.statistics(PassCache(family), Y, weights, False, n_threads)
        yield from _loops.centred_statistics(PassCache(family), r, g, Y, weights, True, n_threads)
        yield _loops.combine(PassCache(family), w, n_threads)
        yield _loops.matvecs(PassCache(family), V, n_threads)
        yield _loops.combined_matvec(PassCache(family), w, V, n_threads)
        yield _loops.cross_apply(PassCache(family), family.Z[:500], V, n_threads)
        yield _loops.cross_combine(PassCache(family), family.Z[:500], w, n_threads)

    for one, two, three in zip(everything(1), everything(2), everything(3), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_inputs_stay_as_they_were():
    family = make_family(50)
    Z, Y, w = family.Z.copy(), np.ones((50, 1)), np.ones(50)
    _loops.statistics(PassCache(family), Y, w)
    _loops.matvecs(PassCache(family), Y)
    np.testing.assert_array_equal(family.Z, Z)
    assert (Y == 1).all() and (w == 1).all()


def test_block_refuses_a_step():
    with pytest.raises(ValueError, match="step 1"):
        _loops.block(PassCache(make_family(10)), slice(0, 10, 2))


def test_wide_kernels_are_known():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((80, 3))
    rates = np.geomspace(1e-3, 10, 12)
    for kind, metric in ((EXP_SQ, "sqeuclidean"), (EXP_L1, "cityblock")):
        params = np.column_stack([rates, np.zeros(12), np.zeros(12)])
        family = KernelFamily(
            Z, np.array([0, 3]), np.zeros(12, dtype=np.int64), np.full(12, kind), params
        )
        expected = np.exp(-rates * cdist(Z, Z, metric).mean()) > 0.5
        np.testing.assert_array_equal(_loops.is_wide(family), expected)
    assert not _loops.is_wide(make_family(20))[[2, 3, 4, 7]].any()


def test_each_kernel_can_be_shifted_on_its_own():
    shifted = np.arange(10) % 2 == 0
    plain, all_shifted = make_family(60), make_family(60, shifted=True)
    mixed = replace(plain, shifted=shifted)
    expected = np.where(
        shifted[:, None, None],
        _loops.block(PassCache(all_shifted), slice(None)),
        _loops.block(PassCache(plain), slice(None)),
    )
    np.testing.assert_array_equal(_loops.block(PassCache(mixed), slice(None)), expected)
    w = np.array([0.0, 1, 0, 0, 0, 2, 3, 0, 0, 0])
    np.testing.assert_allclose(
        _loops.combine(PassCache(mixed), w), np.tensordot(w, expected, 1), rtol=1e-13, atol=1e-14
    )
