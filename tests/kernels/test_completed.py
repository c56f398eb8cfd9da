"""Kernels completed from other views, and kernels of which values are missing."""

import numpy as np
import pytest
from sklearn.base import clone

import multikernel as mk
from multikernel.kernels.completed import RIDGES, Completed, centred, complete
from multikernel.kernels.derivatives import weighted_gradient
from multikernel.kernels.observed import observe

N = 60
VIEWS = {"a": (mk.Gaussian(0.1), slice(0, 4)), "b": (mk.Linear(), slice(4, 8))}
BANK = mk.per_view(VIEWS)


@pytest.fixture
def sample(rng):
    """Two views of the same hidden numbers, of which some are lost."""
    hidden = rng.normal(size=(N + 20, 2))
    X = np.hstack([hidden @ rng.normal(size=(2, 4)), hidden @ rng.normal(size=(2, 4))])
    whole = X + 0.1 * rng.normal(size=X.shape)
    X = whole.copy()
    X[:15, :4] = np.nan
    X[20:30, 4:] = np.nan
    X[N : N + 10, :4] = np.nan
    return X, whole


def completed(X, omega=None):
    bank, absent = observe(BANK, X, omega)
    return complete(bank, X, absent, omega)


def test_values_are_inner_products_of_predicted_feature_vectors(sample):
    """A slow twin with the explicit features of a linear kernel."""
    X, _ = sample
    kernel = completed(X[:N])[1]
    assert isinstance(kernel, Completed)
    completion = kernel.completion
    F = np.where(np.isnan(X[:, 4:]), 0.0, X[:, 4:])
    present = ~np.isnan(X[:N, 4])
    mean = F[:N][present].mean(axis=0)
    other = completion.helpers[0]
    M = completion.scales[0] * centred(other, X[:N][present], X[:N][present])
    assert np.trace(M) / present.sum() == pytest.approx(1.0)
    M_new = completion.scales[0] * centred(other, X, X[:N][present])
    C = M_new @ np.linalg.inv(M + completion.ridge * np.eye(present.sum()))
    predicted = mean + C @ (F[:N][present] - mean)
    features = np.where(np.isnan(X[:, 4:5]), predicted, F)
    np.testing.assert_allclose(kernel(X), features @ features.T, atol=1e-8)
    np.testing.assert_allclose(kernel(X, X[:7]), kernel(X)[:, :7], atol=1e-9)
    np.testing.assert_allclose(kernel(X[3:9], X), kernel(X)[3:9], atol=1e-9)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), atol=1e-9)


def test_kernels_stay_positive_semidefinite_and_come_closer_to_the_truth(sample):
    X, whole = sample
    for kernel, plain in zip(completed(X[:N]), observe(BANK, X[:N])[0], strict=True):
        K = kernel(X)
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
        truth = kernel(whole)
        assert np.linalg.norm(K - truth) < np.linalg.norm(plain(X) - truth)


def test_the_ridge_constant_has_the_smallest_leave_one_out_error(sample):
    X, _ = sample
    kernel = completed(X[:N])[1]
    completion = kernel.completion
    donors = completion.donors
    M, K = completion.similarities(donors), centred(kernel, donors, donors)
    errors = []
    for ridge in RIDGES:
        error = 0.0
        for i in range(len(donors)):
            rest = np.delete(np.arange(len(donors)), i)
            c = np.linalg.solve(M[np.ix_(rest, rest)] + ridge * np.eye(len(rest)), M[rest, i])
            error += K[i, i] - 2 * c @ K[rest, i] + c @ K[np.ix_(rest, rest)] @ c
        errors.append(error)
    assert completion.ridge == RIDGES[int(np.argmin(errors))]
    assert completion.explained == pytest.approx(1 - min(errors) / np.trace(K))
    assert completion.explained > 0.5  # 15 of 50 have no other view


@pytest.mark.parametrize("largest", [3, 1])
def test_weights_of_samples_are_repetitions(sample, rng, largest):
    X = sample[0][:N]
    omega = rng.integers(0, largest + 1, N).astype(float)
    rows = np.repeat(np.arange(N), omega.astype(int))
    for one, two in zip(completed(X, omega), completed(X[rows]), strict=True):
        assert one.completion.ridge == two.completion.ridge
        assert one.completion.explained == pytest.approx(two.completion.explained)
        np.testing.assert_allclose(one(X), two(X), rtol=0, atol=1e-9)
    y, model = rng.normal(size=N), mk.MultiKernelRegressor(BANK, "uniform", missing="complete")
    weighted = clone(model).fit(X, y, sample_weight=omega).predict(X)
    repeated = clone(model).fit(X[rows], y[rows]).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-8)


def test_views_that_say_nothing_about_each_other_fall_back_to_the_mean(rng):
    X = rng.normal(size=(100, 8))
    X[:20, :4] = np.nan
    kernel = completed(X)[0]
    assert kernel.completion.explained < 0.1
    plain = observe(BANK, X)[0][0]
    np.testing.assert_allclose(kernel(X), plain(X), atol=0.1)


def test_derivatives_know_the_places_of_absent_samples(sample, rng):
    X, whole = sample
    A, steps = rng.normal(size=(N, N)), np.full(8, 1e-5)
    for kernel in completed(X[:N]):
        found = weighted_gradient(kernel, whole[:N], X[:N], A, steps)
        for j in range(8):
            step = 1e-5 * np.eye(8)[j]
            change = kernel(whole[:N] + step, X[:N]) - kernel(whole[:N] - step, X[:N])
            expected = np.einsum("mn,mn->m", A, change) / 2e-5
            np.testing.assert_allclose(found[:, j], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weighting", ["loo", "alignf", "lp"])
def test_estimators(sample, tmp_path, weighting):
    X, _ = sample
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 5]) > 0).astype(int)
    model = mk.MultiKernelClassifier(BANK, weighting, missing="complete").fit(X[:N], y[:N])
    assert set(model.view_completion_) == {"a", "b"}
    assert model.view_presence_ == {"a": 0.75, "b": pytest.approx(50 / 60)}
    assert np.isfinite(model.decision_function(X[N:])).all()
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.view_completion_ == model.view_completion_
    nothing = model.decision_function(np.full((1, 8), np.nan))
    assert np.isfinite(nothing).all()


def test_embeddings_and_clusters(sample):
    X, whole = sample
    truth = mk.ConsensusKernel(BANK).fit_transform(whole)
    errors = {}
    for missing in ("ignore", "complete"):
        model = mk.ConsensusKernel(BANK, missing=missing).fit(X[:N])
        Z = model.transform(X)
        np.testing.assert_allclose(Z[:N], model.fit_transform(X[:N]), atol=1e-6)
        errors[missing] = np.linalg.norm(Z @ Z.T - truth @ truth.T)
    assert errors["complete"] < errors["ignore"]
    labels = mk.KernelClustering(2, BANK, missing="complete", random_state=0).fit_predict(X[:N])
    assert set(labels) == {0, 1}
    with pytest.raises(ValueError, match="contains NaN"):
        mk.ConsensusKernel(BANK).fit(X[:N])


def test_the_default_bank_reads_all_columns_and_has_no_other_view(rng):
    X = rng.normal(size=(40, 3))
    X[0, 0] = np.nan
    y = np.tile([0, 1], 20)
    model = mk.MultiKernelClassifier(weighting="uniform", missing="complete").fit(X, y)
    assert model.view_completion_ == {}
    assert not hasattr(
        mk.MultiKernelClassifier(weighting="uniform").fit(X[1:], y[1:]), "view_completion_"
    )


def test_a_kernel_of_missing_values(rng, tmp_path):
    X = rng.normal(size=(80, 6))
    y = np.tile([0, 1], 40)
    X[np.ix_(y == 1, [2])] = np.where(rng.random((40, 1)) < 0.9, np.nan, 0.0)
    K = mk.MissingPattern(columns=[2, 3])(X)
    gaps = np.isnan(X[:, [2, 3]])
    expected = (gaps[:, None] == gaps[None]).mean(axis=2)
    np.testing.assert_allclose(K, expected)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    bank = mk.per_view({"values": slice(0, 6), "gaps": (mk.MissingPattern(), slice(0, 6))})
    model = mk.MultiKernelClassifier(bank, "alignf", missing="ignore").fit(X, y)
    assert model.view_weights_["gaps"] > 0.5
    assert model.view_presence_["gaps"] == 1.0
    assert model.score(X, y) > 0.85
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="scaling must be None"):
        mk.MissingPattern(scaling="standard")
