"""KernelFeatures: dot products of features are the values of the learned kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

import multikernel as mk

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
TRAIN, NEW = slice(0, 120), slice(120, 200)
BANK = mk.gaussians([0.003, 0.03, 0.3])


def models():
    return {
        "default": (None, None),
        "alignf": (mk.MultiKernelClassifier(BANK), y),
        "not centred": (mk.MultiKernelClassifier(BANK, center=False, normalize="trace"), y),
        "spherical": (mk.MultiKernelClassifier(BANK, normalize="spherical"), y),
        "joint": (mk.MultiKernelClassifier(BANK, weighting=mk.LpNorm(p=1.5)), y),
        "search": (mk.MultiKernelClassifierCV(BANK, Cs=[0.1, 1.0], cv=3), y),
        "loo": (mk.MultiKernelRegressor(BANK, "loo"), X[:, 0]),
        "consensus": (mk.ConsensusKernel(BANK, "full-neighbours"), None),
    }


@pytest.mark.parametrize("method", ["eigen", "landmarks"])
@pytest.mark.parametrize("name", list(models()))
def test_with_all_components_the_kernel_is_reproduced(name, method):
    estimator, target = models()[name]
    features = mk.KernelFeatures(estimator, n_components=500, method=method)
    features.fit(X[TRAIN], None if target is None else target[TRAIN])
    K = mk.LearnedKernel(features.estimator_, X[TRAIN])
    F = features.transform(X[TRAIN])
    size = np.abs(K(X[TRAIN])).max()
    assert_allclose(F @ F.T, K(X[TRAIN]), atol=1e-8 * size)
    # New samples: exact against the training sample, which spans the features.
    assert_allclose(features.transform(X[NEW]) @ F.T, K(X[NEW], X[TRAIN]), atol=1e-5 * size)
    assert_allclose(features.explained_ratio_, 1.0, atol=1e-8)


@pytest.mark.parametrize("missing", ["ignore", "complete"])
@pytest.mark.parametrize("labels", [True, False])
def test_samples_that_lack_a_view(missing, labels):
    bank = mk.per_view({"a": (BANK, slice(0, 10)), "b": (BANK, slice(10, 20))})
    gaps = X[:, :20].copy()
    gaps[:30, :10] = gaps[150:160, 10:] = np.nan
    estimator = mk.MultiKernelClassifier if labels else mk.ConsensusKernel
    features = mk.KernelFeatures(estimator(bank, missing=missing), n_components=500)
    features.fit(gaps[TRAIN], y[TRAIN])
    K = mk.LearnedKernel(features.estimator_, gaps[TRAIN])
    F, new = features.transform(gaps[TRAIN]), features.transform(gaps[NEW])
    size = np.abs(K(gaps[TRAIN])).max()
    assert_allclose(F @ F.T, K(gaps[TRAIN]), atol=1e-8 * size)
    assert_allclose(new @ F.T, K(gaps[NEW], gaps[TRAIN]), atol=1e-5 * size)
    assert features.view_presence_ == {"a": 0.75, "b": 1.0}
    features.set_params(estimator__missing="error").fit(X[TRAIN, :20], y[TRAIN])
    assert not hasattr(features, "presence_")
    with pytest.raises(
        ValueError, match=r"NaN.*'b'.*KernelFeatures\(estimator\) with an estimator"
    ):
        features.transform(gaps[NEW])


def test_few_components_are_the_best_approximation():
    features = mk.KernelFeatures(mk.ConsensusKernel(BANK), n_components=10).fit(X[TRAIN])
    F = features.transform(X[TRAIN])
    K = mk.LearnedKernel(features.estimator_, X[TRAIN])(X[TRAIN])
    values, U = np.linalg.eigh(K)
    best = (U[:, -10:] * values[-10:]) @ U[:, -10:].T
    assert_allclose(F @ F.T, best, atol=1e-9)
    assert_allclose(features.explained_ratio_, values[-10:].sum() / np.trace(K))
    assert F.shape == (120, 10) and len(features.get_feature_names_out()) == 10


def test_a_ridge_on_all_features_is_the_regressor():
    A, b = load_diabetes(return_X_y=True)
    model = mk.MultiKernelRegressor(mk.gaussians([1.0, 10.0]), alpha=2.0).fit(A[:150], b[:150])
    features = mk.KernelFeatures(mk.MultiKernelRegressor(mk.gaussians([1.0, 10.0]), alpha=2.0), 500)
    pipeline = make_pipeline(features, Ridge(alpha=2.0)).fit(A[:150], b[:150])
    assert_allclose(pipeline.predict(A[150:]), model.predict(A[150:]), rtol=1e-5)


def test_in_a_pipeline_with_labels():
    features = mk.KernelFeatures(mk.MultiKernelClassifier(BANK), n_components=30)
    model = make_pipeline(features, LogisticRegression()).fit(X[TRAIN], y[TRAIN])
    assert model.score(X[NEW], y[NEW]) > 0.9
    assert features.estimator_.classes_.tolist() == [0, 1]


def test_precomputed_arrays_and_frames():
    K = np.stack([X @ X.T, (1 + X @ X.T) ** 2], axis=-1)[TRAIN, TRAIN]
    features = mk.KernelFeatures(mk.ConsensusKernel("precomputed"), n_components=200).fit(K)
    F = features.transform(K)
    w = features.kernel_weights_
    centred = [mk.center(K[:, :, k]) for k in range(2)]
    expected = sum(w[k] * centred[k] / np.trace(centred[k]) * 120 for k in range(2))
    assert_allclose(F @ F.T, expected, atol=1e-9)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[TRAIN])
    frame.columns = [f"c{j}" for j in range(X.shape[1])]
    out = mk.KernelFeatures(n_components=2).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["kernelfeatures0", "kernelfeatures1"]


def test_files(tmp_path):
    features = mk.KernelFeatures(mk.MultiKernelClassifier(BANK), n_components=5)
    features.fit(X[TRAIN], y[TRAIN])
    loaded = mk.load(mk.save(features, tmp_path / "m.skops"))
    assert_allclose(loaded.transform(X[NEW]), features.transform(X[NEW]), rtol=1e-12)
    assert_allclose(loaded.estimator_.predict(X[NEW]), features.estimator_.predict(X[NEW]))


def test_bad_input():
    with pytest.raises(ValueError, match="requires y"):
        mk.KernelFeatures(mk.MultiKernelClassifier(BANK)).fit(X[TRAIN])
    three = np.arange(120) % 3
    each = mk.MultiKernelClassifier(BANK, multiclass="per_class")
    with pytest.raises(ValueError, match="needs one learned kernel"):
        mk.KernelFeatures(each).fit(X[TRAIN], three)
    with pytest.raises(TypeError, match="learns one combination of kernels"):
        mk.KernelFeatures(mk.VotedKernelClassifier(BANK)).fit(X[TRAIN], y[TRAIN])
    with pytest.raises(ValueError, match="estimator"):
        mk.KernelFeatures(LogisticRegression()).fit(X[TRAIN], y[TRAIN])
    with pytest.raises(ValueError, match="n_components"):
        mk.KernelFeatures(n_components=0).fit(X[TRAIN])
