"""The plain functions on matrices: centring, normalisation, alignment."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from tests import naive

HOWS = ["trace", "multiplicative", "spherical", "frobenius", "trace-first", None]


def psd(rng, n=12, rank=4):
    A = rng.normal(size=(n, rank)) + 1.0
    return A @ A.T


def test_center_is_its_twin(rng):
    K = psd(rng)
    before = K.copy()
    centred = mk.center(K)
    np.testing.assert_allclose(centred, naive.center(K), atol=1e-12)
    np.testing.assert_allclose(centred.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(centred.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_array_equal(K, before)
    assert np.linalg.eigvalsh(centred).min() > -1e-12 * np.abs(centred).max()


def test_center_is_that_of_features(rng):
    V = rng.normal(size=(15, 3)) + 5.0
    U = V - V.mean(axis=0)
    np.testing.assert_allclose(mk.center(V @ V.T), U @ U.T, atol=1e-11)


def test_center_of_a_matrix_that_is_not_symmetric(rng):
    """U K U, by rows and by columns."""
    np.testing.assert_allclose(mk.center(K := rng.normal(size=(6, 6))), naive.center(K), atol=1e-13)


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("centred", [True, False])
def test_normalize_is_its_twin(how, centred, rng):
    K = naive.center(psd(rng)) if centred else psd(rng)
    before = K.copy()
    got = mk.normalize(K, how)
    np.testing.assert_allclose(got, naive.correct(K, False, how), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(K, before)
    if how == "trace":
        assert np.trace(got) == pytest.approx(1)
    if how == "multiplicative":  # unit variance: trace / n - mean, Kloft eq. (3.6)
        assert np.trace(got) / len(K) - got.mean() == pytest.approx(1)
    if how == "spherical":
        np.testing.assert_allclose(np.diag(got), 1)
    if how == "frobenius":
        assert np.linalg.norm(got) == pytest.approx(1)


@pytest.mark.parametrize("how", ["trace", "multiplicative", "spherical", "frobenius"])
def test_size_does_not_matter(how, rng):
    K = psd(rng)
    for c in (1e-9, 3.0, 1e12):
        np.testing.assert_allclose(mk.normalize(c * K, how), mk.normalize(K, how), rtol=1e-12)


def test_spherical_leaves_a_zero_point_alone(rng):
    K = psd(rng)
    K[2] = K[:, 2] = 0.0
    got = mk.normalize(K, "spherical")
    assert not got[2].any() and not got[:, 2].any()
    np.testing.assert_allclose(np.delete(np.diag(got), 2), 1)


@pytest.mark.parametrize("value", [0.1, 0.7, 1.0])
def test_a_constant_matrix_has_no_variance(value):
    for n in range(2, 30):  # whatever rounding makes of the mean of n x n equal numbers
        with pytest.raises(ValueError, match=r"K is constant.*'multiplicative'.*how='trace'"):
            mk.normalize(np.full((n, n), value), "multiplicative")


@pytest.mark.parametrize("how", ["trace", "multiplicative", "frobenius"])
def test_a_zero_matrix_has_no_size(how):
    with pytest.raises(ValueError, match=f"K is zero, so '{how}' normalisation is undefined"):
        mk.normalize(np.zeros((3, 3)), how)


def test_negative_traces_are_refused():
    with pytest.raises(ValueError, match=r"trace -3.*not positive semidefinite.*'frobenius'"):
        mk.normalize(-np.eye(3), "trace")


def test_alignment(rng):
    K, L = psd(rng), psd(rng)
    want = np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))
    assert mk.alignment(K, L) == pytest.approx(want, rel=1e-13)
    assert mk.alignment(K, K) == pytest.approx(1)
    Kc, Lc = naive.center(K), naive.center(L)
    want = np.sum(Kc * Lc) / np.linalg.norm(Kc) / np.linalg.norm(Lc)
    assert mk.centered_alignment(K, L) == pytest.approx(want, rel=1e-12)
    assert mk.centered_alignment(K, K + 5.0) == pytest.approx(1)
    assert mk.centered_alignment(K, 7 * L) == pytest.approx(mk.centered_alignment(K, L))
    f = rng.normal(size=12)
    moved = K + f[:, None] + f[None, :]
    assert mk.centered_alignment(moved, L) == pytest.approx(want, rel=1e-10)


def test_value_centered_alignment_is_the_correlation_of_entries(rng):
    K, L = psd(rng), psd(rng)
    want = np.corrcoef(K.ravel(), L.ravel())[0, 1]
    assert mk.value_centered_alignment(K, L) == pytest.approx(want, rel=1e-12)
    assert mk.value_centered_alignment(3 * K + 2.0, L) == pytest.approx(want, rel=1e-10)
    assert mk.value_centered_alignment(-K, K) == pytest.approx(-1.0)
    centred = naive.center(K)  # its entries have mean zero already
    assert mk.value_centered_alignment(centred, naive.center(L)) == pytest.approx(
        mk.centered_alignment(K, L)
    )


def test_value_centring_is_not_feature_centring():
    """A shift of the features changes it; the centred alignment stays."""
    x, y = np.array([0.0, 1.0, 2.0, 5.0]), np.array([1.0, 1.0, -1.0, -1.0])
    shifted, target = np.outer(x + 3.0, x + 3.0), np.outer(y, y)
    assert mk.centered_alignment(shifted, target) == pytest.approx(
        mk.centered_alignment(np.outer(x, x), target)
    )
    values = [mk.value_centered_alignment(K, target) for K in (np.outer(x, x), shifted)]
    assert abs(values[0] - values[1]) > 0.05


def test_unnormalized_alignment(rng):
    K, L = psd(rng), psd(rng)
    want = np.sum(naive.center(K) * naive.center(L)) / len(K) ** 2
    assert mk.unnormalized_alignment(K, L) == pytest.approx(want, rel=1e-12)
    assert mk.unnormalized_alignment(7 * K + 2.0, L) == pytest.approx(7 * want)
    y = rng.normal(size=len(K))
    predictor = mk.bounds.alignment_predictor(K, y)
    target = np.outer(y, y)
    assert mk.unnormalized_alignment(K, target) == pytest.approx(predictor.rho_u, rel=1e-10)
    sizes = np.linalg.norm(naive.center(K)) * np.sum((y - y.mean()) ** 2) / len(K) ** 2
    assert mk.centered_alignment(K, target) == pytest.approx(predictor.rho_u / sizes, rel=1e-10)
    # Constant kernels are aligned with nothing; there is no norm to divide by.
    assert mk.unnormalized_alignment(np.full((4, 4), 3.0), np.eye(4)) == pytest.approx(0, abs=1e-15)


def test_the_range_of_the_unnormalised_alignment():
    """Lemma 6, repaired: targets of size two reach M^2 R^2 = 4, twice the printed M R^2."""
    y = np.array([2.0, 2.0, -2.0, -2.0])
    assert mk.unnormalized_alignment(np.outer(y, y) / 4, np.outer(y, y)) == pytest.approx(4.0)


def test_two_orders_of_trace_normalisation(rng):
    """After centring, or before: traces 1 and below 1, by a factor of each kernel's own."""
    X, y = rng.normal(size=(20, 2)) + 1.0, rng.normal(size=20)
    bank = [mk.Linear(), mk.Gaussian(0.01), mk.Gaussian(3.0)]
    Ks = [kernel(X) for kernel in bank]
    after = [mk.normalize(mk.center(K)) for K in Ks]
    before = [mk.center(mk.normalize(K)) for K in Ks]
    assert all(np.trace(K) == pytest.approx(1) for K in after)
    assert all(np.trace(K) < 0.99 for K in before)
    for how, matrices in (("trace", after), ("trace-first", before)):
        model = mk.MultiKernelRegressor(bank, "align", normalize=how, alpha=0.1).fit(X, y)
        mu = np.array([mk.centered_alignment(K, np.outer(y, y)) for K in Ks])
        np.testing.assert_allclose(model.kernel_weights_, mu / mu.sum(), rtol=1e-9)
        K = np.tensordot(mu / mu.sum(), matrices, axes=1)
        yc = y - y.mean()
        fit = K @ np.linalg.solve(K + 0.1 * np.eye(20), yc) + y.mean()
        np.testing.assert_allclose(model.predict(X), fit, rtol=1e-7, atol=1e-9)
    # alignf finds the same combination whatever the sizes of the kernels.
    fits = [
        mk.MultiKernelRegressor(bank, "alignf", normalize=how).fit(X, y).alignment_
        for how in ("trace", "trace-first")
    ]
    assert fits[0] == pytest.approx(fits[1], rel=1e-9)


def test_a_constant_is_no_alignment():
    """Unbalanced classes fool the uncentred alignment, which likes a constant kernel."""
    y = np.repeat([1.0, -1.0], [90, 10])
    K = np.outer(y, y) + 1.0  # linear kernel of the labels with a constant feature
    assert mk.alignment(np.ones((100, 100)), np.outer(y, y)) == pytest.approx(0.64)
    assert mk.alignment(K, np.outer(y, y)) < 0.95
    assert mk.centered_alignment(K, np.outer(y, y)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "call",
    [
        mk.center,
        mk.normalize,
        lambda K: mk.alignment(K, np.eye(2)),
        lambda K: mk.alignment(np.eye(2), K),
        lambda K: mk.value_centered_alignment(K, np.eye(2)),
        lambda K: mk.unnormalized_alignment(np.eye(2), K),
    ],
)
@pytest.mark.parametrize(
    "bad, match",
    [
        (np.ones((2, 3)), r"square numeric matrix; got shape \(2, 3\)"),
        (np.ones(4), "square"),
        (np.ones((0, 0)), "square"),
        (np.array([["a"]]), "numeric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN or infinite"),
    ],
)
def test_what_is_no_matrix(call, bad, match):
    with pytest.raises(ValueError, match=match):
        call(bad)


def test_alignment_errors():
    with pytest.raises(ValueError, match=r"same shape; got \(2, 2\) and \(3, 3\)"):
        mk.alignment(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="undefined"):
        mk.alignment(np.eye(2), np.zeros((2, 2)))
    for constant in (np.ones((4, 4)), np.full((4, 4), 0.1), np.zeros((4, 4))):
        with pytest.raises(ValueError, match="K is constant"):
            mk.centered_alignment(constant, np.eye(4))
        with pytest.raises(ValueError, match="L is constant"):
            mk.centered_alignment(np.eye(4), constant)
        with pytest.raises(ValueError, match="L is constant"):
            mk.value_centered_alignment(np.eye(4), constant)
    for other in (mk.value_centered_alignment, mk.unnormalized_alignment):
        with pytest.raises(ValueError, match=r"same shape; got \(2, 2\) and \(3, 3\)"):
            other(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match=r"normalize must be one of 'trace'.*got 'sphere'"):
        mk.normalize(np.eye(2), "sphere")


@pytest.mark.parametrize("dtype", [int, bool, np.float32, np.uint8])
def test_types(dtype):
    K = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]]).astype(dtype)
    for call in (mk.center, mk.normalize):
        assert call(K).dtype == np.float64
        np.testing.assert_allclose(call(K), call(K.astype(float)))
