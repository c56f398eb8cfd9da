"""FeatureCorrelation against numpy's correlations, and where it is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import multikernel as mk

LINEAR = mk.per_feature(mk.Linear())


def correlations(X, y):
    return np.array([abs(np.corrcoef(x, y)[0, 1]) for x in X.T])


@pytest.fixture
def sample(rng):
    X = rng.standard_normal((60, 5)) * [1, 10, 0.1, 1, 3] + [0, 5, -2, 100, 1]
    return X, X[:, 0] - 0.1 * X[:, 1] + rng.standard_normal(60)


@pytest.mark.parametrize("normalize", ["multiplicative", "trace", "frobenius", None])
@pytest.mark.parametrize("center", [True, False])
def test_weights_are_absolute_correlations(sample, center, normalize):
    """Whatever the size and place of the features."""
    X, y = sample
    model = mk.MultiKernelRegressor(LINEAR, "correlation", center=center, normalize=normalize)
    want = correlations(X, y)
    assert_allclose(model.fit(X, y).kernel_weights_, want / want.sum(), rtol=1e-7)
    labels = y > np.median(y)
    model = mk.MultiKernelClassifier(LINEAR, "correlation", center=center, normalize=normalize)
    want = correlations(X, labels)
    assert_allclose(model.fit(X, labels).kernel_weights_, want / want.sum(), rtol=1e-7)


def test_they_are_the_roots_of_align(sample):
    X, y = sample
    roots, squares = (
        mk.MultiKernelRegressor(LINEAR, name).fit(X, y).kernel_weights_
        for name in ("correlation", "align")
    )
    assert_allclose(roots**2 / np.sum(roots**2), squares, rtol=1e-10)


def test_hand_computed():
    """Correlations 1, 0 and sqrt(0.8) with the labels."""
    y = np.array([1, 1, -1, -1])
    X = np.array([[1, 1, 3], [1, -1, 1], [-1, 1, -1], [-1, -1, -3]], dtype=float)
    model = mk.MultiKernelClassifier(LINEAR, mk.FeatureCorrelation()).fit(X, y)
    want = np.array([1.0, 0.0, np.sqrt(0.8)])
    assert_allclose(model.kernel_weights_, want / want.sum(), atol=1e-12)


def test_sparse_features_and_sample_weights(sample, rng):
    X, y = sample
    X = np.where(rng.random(X.shape) < 0.7, 0.0, X)
    dense = mk.MultiKernelRegressor(LINEAR, "correlation").fit(X, y)
    sparse = mk.MultiKernelRegressor(LINEAR, "correlation").fit(sp.csr_array(X), y)
    assert_allclose(sparse.kernel_weights_, dense.kernel_weights_, rtol=1e-10)
    times = rng.integers(1, 4, len(y))
    weighted = mk.MultiKernelRegressor(LINEAR, "correlation").fit(X, y, sample_weight=times)
    rows = np.repeat(np.arange(len(y)), times)
    want = correlations(X[rows], y[rows])
    assert_allclose(weighted.kernel_weights_, want / want.sum(), rtol=1e-9)


def test_several_outputs_share_the_root_of_their_alignment(sample):
    X, y = sample
    Y = np.column_stack([y, X[:, 2] * 20 + y**2])
    model = mk.MultiKernelRegressor(LINEAR, "correlation").fit(X, Y)
    target = Y @ Y.T
    want = np.sqrt([mk.centered_alignment(np.outer(x, x), target) for x in X.T])
    assert_allclose(model.kernel_weights_, want / want.sum(), rtol=1e-9)


def test_ngrams_have_one_feature_each():
    words = ["good book", "good film", "bad book", "bad film", "good good", "bad bad"]
    y = [1, 1, -1, -1, 1, -1]
    model = mk.MultiKernelClassifier(mk.per_ngram(1), "correlation").fit(
        np.array(words, dtype=object)[:, None], y
    )
    assert np.all(model.kernel_weights_ >= 0) and model.kernel_weights_.max() > 0


def test_a_constant_feature_gets_no_weight(sample):
    X, y = sample
    X = np.column_stack([X, np.full(len(X), 7.0)])
    with pytest.warns(UserWarning, match="constant"):
        model = mk.MultiKernelRegressor(LINEAR, "correlation").fit(X, y)
    assert model.kernel_weights_[-1] == 0


@pytest.mark.parametrize(
    "bank",
    [mk.gaussians([0.1, 1.0]), [mk.Linear()], mk.KernelBank([*mk.gaussians([1.0]), mk.Linear()])],
    ids=["gaussians", "linear", "mixed"],
)
def test_other_kernels_are_refused(sample, bank):
    X, y = sample
    with pytest.raises(ValueError, match=r"one feature each.*weighting='align'"):
        mk.MultiKernelRegressor(bank, "correlation").fit(X, y)


def test_matrices_are_refused(sample):
    X, y = sample
    K = X[:, :1] @ X[:, :1].T
    with pytest.raises(ValueError, match="one feature each"):
        mk.MultiKernelRegressor("precomputed", "correlation").fit(K, y)


def test_it_is_saved_and_cloned(sample, tmp_path):
    X, y = sample
    model = mk.MultiKernelRegressor(LINEAR, mk.FeatureCorrelation()).fit(X, y)
    mk.save(model, tmp_path / "model.mk")
    again = mk.load(tmp_path / "model.mk")
    assert isinstance(again.weighting, mk.FeatureCorrelation)
    assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)
