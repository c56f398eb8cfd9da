"""Standard deviations and prediction intervals: exactness, coverage, errors, storage."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import multikernel as mk
from multikernel.estimators import intervals

X, Y = make_friedman1(120, noise=1.0, random_state=0)
NEW, TRUTH = make_friedman1(400, noise=1.0, random_state=1)

REGRESSORS = {
    "ridge": mk.MultiKernelRegressor(),
    "loo": mk.MultiKernelRegressor(weighting="loo"),
    "alpha loo": mk.MultiKernelRegressor(alpha="loo"),
    "joint": mk.MultiKernelRegressor(weighting=mk.LpNorm(p=2)),
    "no intercept": mk.MultiKernelRegressor(fit_intercept=False),
    "neither": mk.MultiKernelRegressor(fit_intercept=False, center=False),
    "spherical": mk.MultiKernelRegressor(normalize="spherical"),
    "not centred": mk.MultiKernelRegressor(center=False),
    "linear": mk.MultiKernelRegressor(mk.per_feature(mk.Linear())),
    "search": mk.MultiKernelRegressorCV(alphas=[0.1, 1.0], cv=3),
    "svr": mk.MultiKernelRegressor(loss="epsilon_insensitive"),
    "ensemble": mk.KernelEnsembleRegressor(),
    "parzen": mk.ParzenRegressor(),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_has_intervals_of_about_the_asked_coverage(name):
    shift = Y.mean() if name == "no intercept" else 0.0
    y, truth = Y - shift, TRUTH - shift
    model = copy.deepcopy(REGRESSORS[name]).fit(X, y)
    before = model.predict(NEW)
    for method in ("auto", "split"):
        lower, upper = model.predict_interval(NEW, 0.8, method=method)
        assert lower.shape == upper.shape == (400,) and np.all(lower <= upper)
        assert 0.7 < np.mean((lower <= truth) & (truth <= upper)) < 0.92
    wide = model.predict_interval(NEW, 0.95)
    narrow = model.predict_interval(NEW, 0.5)
    assert np.all(wide[0] <= narrow[0]) and np.all(narrow[1] <= wide[1])
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, before)
    assert std.shape == (400,) and 0.65 < np.sqrt(np.mean(((truth - mean) / std) ** 2)) < 1.3


@pytest.mark.parametrize("name", ["ridge", "neither", "spherical", "not centred", "linear"])
def test_jackknife_is_that_of_refits_with_the_same_kernel(name):
    n = 30
    model = copy.deepcopy(REGRESSORS[name]).set_params(weighting="uniform").fit(X[:n], Y[:n])
    new = NEW[:4]
    lower, upper = model.predict_interval(new, 0.8)
    known = model._training.found["jackknife"]
    # The kernel of the whole sample, read off the model, and n machines trained on it.
    cross = known.cross_values(new)
    K = known.cross_values(X[:n])
    functions, residuals = np.empty((4, n)), np.empty(n)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        border = int(model.fit_intercept)
        A = np.zeros((n - 1 + border, n - 1 + border))
        A[: n - 1, : n - 1] = K[np.ix_(rest, rest)] + np.eye(n - 1)
        A[: n - 1, n - 1 :] = A[n - 1 :, : n - 1] = border
        A[n - 1 :, n - 1 :] = 0.0
        solution = np.linalg.solve(A, np.concatenate([Y[rest], np.zeros(border)]))
        b = solution[n - 1 :].sum()
        functions[:, i] = cross[:, rest] @ solution[: n - 1] + b
        residuals[i] = abs(Y[i] - K[i, rest] @ solution[: n - 1] - b)
    # 0.8 (30 + 1) = 24.8: the 25th smallest; 0.2 * 31 = 6.2: the 6th
    np.testing.assert_allclose(lower, np.sort(functions - residuals, axis=1)[:, 5], atol=1e-8)
    np.testing.assert_allclose(upper, np.sort(functions + residuals, axis=1)[:, 24], atol=1e-8)


def test_cv_plus_is_that_of_explicit_folds():
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(X, Y)
    lower, upper = model.predict_interval(NEW[:5], 0.9, method="cv+")
    models, _ = model._training.found["folds"]
    low, high = [], []
    for train, test, fitted in models:
        again = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(X[train], Y[train])
        np.testing.assert_array_equal(again.predict(NEW[:5]), fitted.predict(NEW[:5]))
        errors = np.abs(Y[test] - again.predict(X[test]))
        low.append(again.predict(NEW[:5])[:, None] - errors)
        high.append(again.predict(NEW[:5])[:, None] + errors)
    assert len(models) == 10
    # 0.1 * 121 = 12.1 and 0.9 * 121 = 108.9
    np.testing.assert_allclose(lower, np.sort(np.hstack(low), axis=1)[:, 11], rtol=1e-12)
    np.testing.assert_allclose(upper, np.sort(np.hstack(high), axis=1)[:, 108], rtol=1e-12)


def test_large_samples_are_split_once(monkeypatch):
    monkeypatch.setattr(intervals, "MAX_FOLDS_SAMPLES", 100)
    monkeypatch.setattr(intervals, "MAX_JACKKNIFE_SAMPLES", 100)
    monkeypatch.setattr(intervals, "MAX_SPLIT_SAMPLES", 30)
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(X, Y)
    lower, upper = model.predict_interval(NEW, 0.9)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.sort(order[:-30]), order[-30:]
    again = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(X[train], Y[train])
    errors = np.abs(Y[test] - again.predict(X[test]))
    radius = np.sort(errors)[27]  # 0.9 * 31 = 27.9: the 28th smallest
    np.testing.assert_allclose(lower, again.predict(NEW) - radius, rtol=1e-12)
    np.testing.assert_allclose(upper, again.predict(NEW) + radius, rtol=1e-12)
    spread = model.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(spread, np.sqrt(np.mean(errors**2)), rtol=1e-12)
    assert set(model._training.found) == {"split"}  # no ten fits


@pytest.mark.parametrize("center", [False, True])
def test_standard_deviations_are_those_of_a_gaussian_process(center):
    model = mk.MultiKernelRegressor(
        [mk.Gaussian(0.5)],
        weighting="uniform",
        alpha=0.3,
        fit_intercept=center,
        center=center,
        normalize=None,
    ).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    tau2 = model._training.found["jackknife"].jackknife.variances[0]
    kernel = ConstantKernel(tau2) * RBF(1.0) + WhiteKernel(0.3 * tau2)
    if center:  # a flat prior of the intercept: a large constant kernel
        kernel = kernel + ConstantKernel(1e5 * tau2)
    peer = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, Y)
    expected = peer.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-4 if center else 1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=1e-4 if center else 1e-9)


def test_coverage_over_many_samples():
    rng = np.random.default_rng(0)
    hits = {"jackknife+": [], "cv+": [], "split": []}
    model = mk.MultiKernelRegressor(mk.gaussians([0.2, 1.0]), weighting="uniform", alpha=0.5)
    for _ in range(40):
        Z = rng.normal(size=(160, 3))
        y = (
            np.sin(2 * Z[:, 0])
            + Z[:, 1] * Z[:, 2]
            + (0.3 + 0.3 * np.abs(Z[:, 0])) * rng.normal(size=160)
        )
        model.fit(Z[:60], y[:60])
        for method, found in hits.items():
            lower, upper = model.predict_interval(Z[60:], 0.9, method=method)
            found.append(np.mean((lower <= y[60:]) & (y[60:] <= upper)))
    for method, found in hits.items():
        assert 0.88 < np.mean(found) < 0.95, method


def test_outputs_weights_names_and_kernel_values():
    both = np.column_stack([Y, -2.0 * Y])
    model = mk.MultiKernelRegressor().fit(X, both)
    lower, upper = model.predict_interval(NEW, 0.9)
    one = mk.MultiKernelRegressor().fit(X, Y).predict_interval(NEW, 0.9)
    np.testing.assert_allclose(lower[:, 0], one[0], rtol=1e-8)
    np.testing.assert_allclose(upper[:, 1], -2.0 * one[0], rtol=1e-8)
    std = model.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(std[:, 1], 2.0 * std[:, 0], rtol=1e-10)
    # weights as repetitions, with samples of weight zero
    weights = np.random.default_rng(0).integers(0, 4, 120)
    bank = mk.gaussians([0.1, 1.0])
    weighted = mk.MultiKernelRegressor(bank).fit(X, Y, sample_weight=weights)
    repeated = mk.MultiKernelRegressor(bank).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights)
    )
    for ours, theirs in zip(
        weighted.predict_interval(NEW, 0.9), repeated.predict_interval(NEW, 0.9), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(
        weighted.predict(NEW, return_std=True)[1],
        repeated.predict(NEW, return_std=True)[1],
        rtol=1e-6,
    )
    # kernel values instead of inputs
    given = np.stack([kernel(X) for kernel in bank], axis=-1)
    seen = np.stack([kernel(NEW, X) for kernel in bank], axis=-1)
    other = mk.MultiKernelRegressor("precomputed").fit(given, Y, sample_weight=weights)
    for method in ("jackknife+", "cv+", "split"):
        np.testing.assert_allclose(
            other.predict_interval(seen, 0.9, method=method),
            weighted.predict_interval(NEW, 0.9, method=method),
            rtol=1e-6,
        )
    with pytest.raises(ValueError, match=r"needs K\(x, x\) of new samples"):
        other.predict(seen, return_std=True)
    with pytest.raises(NotFittedError, match="fitted to kernel values"):
        pickle.loads(pickle.dumps(other)).predict_interval(seen)


def test_columns_by_name():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :3], columns=["a", "b", "c"])
    new = pandas.DataFrame(NEW[:, :3], columns=["a", "b", "c"])
    model = mk.MultiKernelRegressor([mk.Gaussian(1.0, columns=["a", "b"]), mk.Linear()])
    model.fit(table, Y)
    for method in ("jackknife+", "cv+", "split"):
        assert np.isfinite(model.predict_interval(new, method=method)).all()
    assert np.isfinite(model.predict(new, return_std=True)[1]).all()


@pytest.mark.parametrize("coverage", [0, 1, 0.0, 1.0, -0.1, 90, float("nan"), "0.9", None, True])
def test_bad_coverages_are_refused(coverage):
    model = mk.MultiKernelRegressor().fit(X, Y)
    with pytest.raises(ValueError, match=r"a number above 0 and below 1, such as 0\.9\. Got"):
        model.predict_interval(NEW, coverage)


def test_other_bad_calls_are_refused():
    model = mk.MultiKernelRegressor(loss="epsilon_insensitive").fit(X, Y)
    with pytest.raises(ValueError, match="method must be one of 'auto'"):
        model.predict_interval(NEW, method="bayes")
    with pytest.raises(ValueError, match="Use method='cv\\+' or 'split'"):
        model.predict_interval(NEW, method="jackknife+")
    with pytest.raises(ValueError, match="cannot be combined"):
        model.predict(NEW, split=True, return_std=True)
    with pytest.raises(NotFittedError):
        mk.MultiKernelRegressor().predict_interval(NEW)
    del model._training
    with pytest.raises(NotFittedError, match="Fit it again to get them"):
        model.predict_interval(NEW)


@pytest.mark.parametrize("name", ["ridge", "search", "svr", "linear"])
def test_files_and_pickles_keep_the_bits(name, tmp_path):
    model = copy.deepcopy(REGRESSORS[name]).fit(X, Y)
    path = tmp_path / "model.skops"
    mk.save(model, path)
    for again in (mk.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
        np.testing.assert_array_equal(
            again.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1]
        )


def test_samples_too_small_for_the_coverage():
    model = mk.MultiKernelRegressor().fit(X[:8], Y[:8])
    lower, upper = model.predict_interval(NEW, 0.95)
    assert np.all(lower == -np.inf) and np.all(upper == np.inf)
