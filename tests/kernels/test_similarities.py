"""Tanimoto, MinMax, histogram intersection, cosine, rational quadratic and periodic kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import jaccard_score
from sklearn.metrics.pairwise import cosine_similarity

import multikernel as mk

COUNTS = np.random.default_rng(0).poisson(0.7, (40, 12)).astype(np.float64)
OTHER = np.random.default_rng(1).poisson(0.7, (15, 12)).astype(np.float64)
BITS = (COUNTS > 0).astype(np.float64)
ON_COUNTS = [mk.Tanimoto(), mk.MinMax(), mk.HistogramIntersection()]
ALL = [*ON_COUNTS, mk.Cosine(), mk.RationalQuadratic(2.0, 0.5), mk.Periodic(5.0, 0.7)]


def by_definition(kernel, x, z):
    if isinstance(kernel, mk.Tanimoto):
        below = x @ x + z @ z - x @ z
        return x @ z / below if below else 1.0
    if isinstance(kernel, mk.MinMax):
        below = np.maximum(x, z).sum()
        return np.minimum(x, z).sum() / below if below else 1.0
    if isinstance(kernel, mk.HistogramIntersection):
        return np.minimum(x, z).sum()
    if isinstance(kernel, mk.Cosine):
        below = np.linalg.norm(x) * np.linalg.norm(z)
        return x @ z / below if below else 0.0
    if isinstance(kernel, mk.RationalQuadratic):
        far = np.sum((x - z) ** 2)
        return (1 + far / (2 * kernel.alpha * kernel.length**2)) ** -kernel.alpha
    far = np.sum(np.sin(np.pi * (x - z) / kernel.period) ** 2)
    return np.exp(-2 * far / kernel.length**2)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
@pytest.mark.parametrize("scale", [1.0, 0.37])
def test_follow_their_definitions_on_arrays_and_sparse_matrices(kernel, scale):
    X, Z = scale * COUNTS.copy(), scale * OTHER.copy()
    X[3] = Z[2] = 0.0
    expected = np.array([[by_definition(kernel, x, z) for z in Z] for x in X])
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(sp.csr_matrix(X), sp.csr_matrix(Z)), expected, atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(sp.csr_matrix(X)), np.diag(kernel(X)), atol=1e-12)
    half = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kernel", ALL, ids=repr)
def test_are_positive_semidefinite(kernel):
    assert kernel.is_psd
    for X in (COUNTS, BITS, np.vstack([COUNTS, np.zeros((2, 12)), 1e6 * COUNTS[:5]])):
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] >= -1e-12 * len(X) * values[-1]


@pytest.mark.parametrize("kernel", [k for k in ALL if k.is_infinitely_divisible], ids=repr)
def test_any_power_of_a_divisible_one_is_definite(kernel):
    for power in (0.03, 0.5, 1.7):
        values = np.linalg.eigvalsh(kernel(COUNTS) ** power)
        assert values[0] >= -1e-10 * values[-1]
        np.testing.assert_allclose((kernel**power)(COUNTS), kernel(COUNTS) ** power, rtol=1e-10)


def test_agree_with_other_libraries_and_each_other():
    jaccard = [[jaccard_score(x, z, zero_division=1.0) for z in BITS] for x in BITS]
    np.testing.assert_allclose(mk.Tanimoto()(BITS), jaccard, rtol=1e-14)
    np.testing.assert_allclose(mk.MinMax()(BITS), mk.Tanimoto()(BITS), rtol=1e-14)
    np.testing.assert_allclose(mk.HistogramIntersection()(BITS), mk.Linear()(BITS), atol=1e-12)
    np.testing.assert_allclose(mk.Cosine()(COUNTS, OTHER), cosine_similarity(COUNTS, OTHER))
    theirs = gp.RationalQuadratic(length_scale=2.0, alpha=0.5)
    np.testing.assert_allclose(mk.RationalQuadratic(2.0, 0.5)(COUNTS), theirs(COUNTS), rtol=1e-12)
    wide = mk.RationalQuadratic(2.0, 1e9)(COUNTS)
    np.testing.assert_allclose(wide, mk.Gaussian(0.125)(COUNTS), rtol=1e-6)
    hours = np.linspace(0, 100, 30)[:, None]  # of one column theirs is the same
    theirs = gp.ExpSineSquared(length_scale=0.7, periodicity=24.0)
    np.testing.assert_allclose(mk.Periodic(24.0, 0.7)(hours), theirs(hours), rtol=1e-9)
    np.testing.assert_allclose(
        mk.Periodic(24.0)(hours + 24e6, hours), mk.Periodic(24.0)(hours), rtol=1e-6
    )


@pytest.mark.parametrize("kernel", ON_COUNTS, ids=repr)
def test_refuse_negative_values_by_column_and_row(kernel):
    X = COUNTS.copy()
    X[7, 5] = -2.0
    with pytest.raises(ValueError, match=r"column 5 of X holds -2 \(row 7\)"):
        kernel(X)
    with pytest.raises(ValueError, match=r"column 5 of X holds -2 \(row 7\)"):
        mk.MultiKernelClassifier([kernel]).fit(X, np.arange(40) % 2)
    model = mk.MultiKernelClassifier([kernel], weighting="uniform").fit(COUNTS, np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"column 5 of X holds -2 \(row 7\)"):
        model.predict(X)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: mk.RationalQuadratic(0.0), "RationalQuadratic: length must be a positive"),
        (lambda: mk.RationalQuadratic(1.0, -1.0), "RationalQuadratic: alpha must be a positive"),
        (lambda: mk.Periodic(np.inf), "Periodic: period must be a positive finite"),
        (lambda: mk.Periodic(1.0, "a"), "Periodic: length must be a positive"),
    ],
)
def test_refuse_parameters_out_of_range(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_learn_save_and_predict_on_sparse_fingerprints(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random(120, 300, density=0.1, random_state=0, format="csr")
    X.data[:] = rng.integers(1, 4, len(X.data))
    left = np.asarray(X[:, :150].sum(axis=1) - X[:, 150:].sum(axis=1)).ravel()
    y = (left > 0).astype(int)
    bank = [mk.Tanimoto(), mk.MinMax(), mk.Cosine(), mk.Tanimoto(columns=slice(0, 150))]
    model = mk.MultiKernelClassifier(bank).fit(X[:80], y[:80])
    assert model.score(X[80:], y[80:]) > 0.6
    dense = mk.MultiKernelClassifier(bank).fit(X[:80].toarray(), y[:80])
    values = model.decision_function(X[80:])
    np.testing.assert_allclose(values, dense.decision_function(X[80:].toarray()), atol=1e-6)
    mk.save(model, tmp_path / "model.skops")
    again = mk.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(X[80:]), values)


def test_of_no_rows_and_no_columns():
    for kernel in ALL:
        assert kernel(COUNTS[:0], OTHER).shape == (0, 15)
    assert mk.MinMax()(COUNTS[:2, :0], OTHER[:3, :0]).tolist() == [[1.0] * 3] * 2
