"""Kernels that somebody has computed already, in both ways of giving them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import multikernel as mk
from tests.estimators.cases import NORMALIZATIONS, WEIGHTINGS, iris, waves
from tests.peak import peak_bytes

pytestmark = pytest.mark.filterwarnings("ignore:The signed combination")

GAMMAS = [0.05, 0.5, 3.0]
BANK = mk.gaussians(GAMMAS)


def matrices(X):
    """The same Gaussians by hand."""
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return [np.exp(-gamma * distances) for gamma in GAMMAS]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_both_ways_equal_the_bank_itself(normalize, center):
    X, y = waves()
    given = matrices(X)
    train, test = np.arange(0, 40), np.arange(40, 60)
    for weighting in WEIGHTINGS.values():
        options = {"weighting": weighting, "normalize": normalize, "center": center}
        direct = mk.MultiKernelRegressor(BANK, **options).fit(X[train], y[train])
        ids = mk.sample_ids(60)
        looked_up = mk.MultiKernelRegressor(mk.precomputed(given), **options)
        looked_up.fit(ids[train], y[train])
        np.testing.assert_allclose(looked_up.predict(ids), direct.predict(X), atol=1e-8)
        np.testing.assert_allclose(
            looked_up.predict(ids[test], split=True), direct.predict(X[test], split=True), atol=1e-7
        )
        if normalize == "spherical":
            continue  # needs K(x, x), which an array of rows does not hold
        stacked = np.stack(given, axis=-1)
        cut = mk.MultiKernelRegressor("precomputed", **options)
        cut.fit(stacked[np.ix_(train, train)], y[train])
        np.testing.assert_allclose(cut.predict(stacked[:, train]), direct.predict(X), atol=1e-8)
        np.testing.assert_allclose(cut.kernel_weights_, direct.kernel_weights_, atol=1e-8)


def test_the_spherical_normalisation_of_rows_says_what_is_missing():
    X, y = waves()
    stacked = np.stack(matrices(X), axis=-1)
    with pytest.raises(ValueError, match=r"spherical.*K\(x, x\).*mk\.precomputed"):
        mk.MultiKernelRegressor("precomputed", normalize="spherical").fit(stacked, y)


def test_cross_val_score_cuts_both_ways():
    X, y = waves()
    cv = KFold(4, shuffle=True, random_state=0)
    model = mk.MultiKernelRegressor(weighting="alignf")
    direct = cross_val_score(model.set_params(kernels=BANK), X, y, cv=cv)
    model = mk.MultiKernelRegressor(mk.precomputed(matrices(X)), "alignf")
    by_ids = cross_val_score(model, mk.sample_ids(60), y, cv=cv, error_score="raise")
    stacked = np.stack(matrices(X), axis=-1)
    by_array = cross_val_score(
        mk.MultiKernelRegressor("precomputed", "alignf"), stacked, y, cv=cv, error_score="raise"
    )
    np.testing.assert_allclose(by_ids, direct, rtol=0, atol=1e-8)
    np.testing.assert_allclose(by_array, direct, rtol=0, atol=1e-8)


def test_grid_search_cuts_both_ways():
    X, y = iris()
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = {"C": [0.1, 1.0], "weighting": ["uniform", "alignf"]}
    results = []
    for kernels, inputs in (
        (BANK, X),
        (mk.precomputed(matrices(X)), mk.sample_ids(len(X))),
        ("precomputed", np.stack(matrices(X), axis=-1)),
    ):
        search = GridSearchCV(
            mk.MultiKernelClassifier(kernels), grid, cv=cv, scoring="neg_mean_absolute_error"
        )
        search.fit(inputs, y)
        results.append(search.cv_results_["mean_test_score"])
        assert search.predict(inputs).shape == y.shape
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(results[2], results[0], rtol=0, atol=1e-8)


def test_our_own_search_cuts_both_ways():
    X, y = waves()
    results = []
    for kernels, inputs in (
        (BANK, X),
        (mk.precomputed(matrices(X)), mk.sample_ids(len(X))),
        ("precomputed", np.stack(matrices(X), axis=-1)),
    ):
        search = mk.MultiKernelRegressorCV(kernels, ["align", "alignf"], [0.1, 1.0], cv=3)
        results.append(search.fit(inputs, y).cv_results_["split1_test_score"])
        assert np.isfinite(search.predict(inputs)).all()
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(results[2], results[0], rtol=0, atol=1e-8)


def test_tags_follow_the_kernels():
    ready = mk.MultiKernelClassifier("precomputed").__sklearn_tags__().input_tags
    assert ready.pairwise and ready.three_d_array and not ready.sparse
    other = mk.MultiKernelClassifier(BANK).__sklearn_tags__().input_tags
    assert not other.pairwise and other.sparse


def test_a_matrix_is_one_kernel():
    X, y = iris()
    K = matrices(X)[1]
    flat = mk.MultiKernelClassifier("precomputed").fit(K, y)
    deep = mk.MultiKernelClassifier("precomputed").fit(K[:, :, None], y)
    direct = mk.MultiKernelClassifier(mk.Gaussian(0.5)).fit(X, y)
    assert flat.kernel_names_ == ["precomputed[0]"] and flat.bank_ is None
    np.testing.assert_array_equal(flat.decision_function(K), deep.decision_function(K[:, :, None]))
    np.testing.assert_allclose(flat.decision_function(K), direct.decision_function(X), atol=1e-8)
    assert cross_val_score(mk.MultiKernelClassifier("precomputed"), K, y, cv=3).mean() > 0.9


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.float32, bool])
@pytest.mark.parametrize("way", ["bank", "array"])
def test_matrices_of_other_types(way, dtype):
    X, y = waves()
    # Agreement of signs is a kernel with small whole numbers; the same group is one of 0 and 1.
    signs = X > 0
    K = (signs[:, None] == signs[None]).sum(axis=2)
    L = np.abs(np.round(X[:, 0]))[:, None] == np.abs(np.round(X[:, 0]))[None]
    exact = [K.astype(float), L.astype(float)]
    if dtype is bool:
        exact = [L.astype(float), np.eye(60)]
    typed = [M.astype(dtype) for M in exact]
    if way == "bank":
        fits = [
            mk.MultiKernelRegressor(mk.precomputed(given)).fit(mk.sample_ids(60), y)
            for given in (typed, exact)
        ]
        found, expected = (model.predict(mk.sample_ids(60)) for model in fits)
    else:
        found, expected = (
            mk.MultiKernelRegressor("precomputed")
            .fit(np.stack(given, axis=-1), y)
            .predict(np.stack(given, axis=-1))
            for given in (typed, exact)
        )
    np.testing.assert_allclose(found, expected, atol=1e-5 if dtype is np.float32 else 1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_matrices_go_back_bit_for_bit(order):
    X, y = iris()
    given = [np.array(K, order=order) for K in matrices(X)]
    before = [K.tobytes() for K in given]
    stacked = np.stack(given, axis=-1)
    stacked_before = stacked.tobytes()
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    for normalize in NORMALIZATIONS:
        for weighting in WEIGHTINGS.values():
            options = {"weighting": weighting, "normalize": normalize}
            model = mk.MultiKernelClassifier(mk.precomputed(given), **options)
            model.fit(mk.sample_ids(len(X)), y, sample_weight=counts)
            model.predict(mk.sample_ids(len(X)))
            if normalize != "spherical":  # refused there: new points come without K(x, x)
                array = mk.MultiKernelClassifier("precomputed", **options)
                array.fit(stacked, y, sample_weight=counts)
    mk.MultiKernelClassifierCV("precomputed", cv=3).fit(stacked, y, sample_weight=counts)
    assert [K.tobytes() for K in given] == before
    assert stacked.tobytes() == stacked_before
    for K in given:
        K.flags.writeable = False
    stacked.flags.writeable = False
    mk.MultiKernelClassifier(mk.precomputed(given)).fit(mk.sample_ids(len(X)), y, counts)
    mk.MultiKernelClassifier("precomputed").fit(stacked, y, counts)


def test_the_bank_shows_the_callers_matrices():
    X, _ = iris()
    given = matrices(X)
    bank = mk.precomputed(given, names=["wide", "middle", "narrow"])
    assert all(kernel.matrix is K for kernel, K in zip(bank, given, strict=True))
    assert mk.precomputed(np.stack(given))[1].matrix.base is not None
    assert mk.precomputed(given) == mk.precomputed(given)
    model = mk.MultiKernelClassifier(bank).fit(mk.sample_ids(len(X)), np.arange(len(X)) % 2)
    assert model.kernel_names_ == ["wide", "middle", "narrow"]


@pytest.mark.parametrize("way", ["bank", "array"])
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_nothing_is_copied(kind, way):
    n, p = 1500, 5
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    one = 8 * n * n
    given = np.empty((p, n, n))
    for k in range(p):
        np.exp(-(0.1 * 4.0**k) * distances, out=given[k])
    del distances
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    model = mk.MultiKernelRegressor(weighting="alignf")
    if kind == "classifier":
        y = (y > 0).astype(int)
        model = mk.MultiKernelClassifier(weighting="alignf")
    if way == "bank":
        model.set_params(kernels=mk.precomputed(given))
        inputs = mk.sample_ids(n)
    else:
        model.set_params(kernels="precomputed")
        inputs = given.transpose(1, 2, 0)
    peak = peak_bytes(lambda: model.fit(inputs, y))
    # The combined matrix and one factor or working copy of it; panels of rows take 0.4 of one.
    assert peak < 2.5 * one, f"peak of {peak / one:.2f} matrices beyond the input"


def test_new_samples_of_the_pool_and_unknown_ones():
    X, y = waves()
    bank = mk.precomputed(matrices(X))
    ids = mk.sample_ids(60)
    model = mk.MultiKernelRegressor(bank).fit(ids[10:40], y[10:40])
    assert set(model.support_) <= set(range(30))
    direct = mk.MultiKernelRegressor(BANK).fit(X[10:40], y[10:40])
    np.testing.assert_allclose(model.predict(ids[50:]), direct.predict(X[50:]), atol=1e-8)
    np.testing.assert_allclose(model.predict([[3.0]]), direct.predict(X[3:4]), atol=1e-8)
    with pytest.raises(ValueError, match=r"knows samples 0 to 59; X holds ids from 60 to 60"):
        model.predict([[60]])
    with pytest.raises(ValueError, match=r"sample ids must be whole numbers"):
        model.predict([[0.5]])
    with pytest.raises(ValueError, match=r"ids from -1 to -1"):
        model.predict([[-1]])


def test_given_matrices_beside_kernels_on_columns():
    # One column of ids serves the matrix; the rest of X would have to serve the others.
    X, y = waves()
    bank = mk.precomputed(matrices(X)) + mk.gaussians([0.5])
    with pytest.raises(ValueError, match=r"'precomputed\[0\]'.*one column of sample ids"):
        mk.MultiKernelRegressor(bank).fit(X, y)


def test_repeated_ids_are_repeated_samples():
    X, y = waves()
    rows = np.r_[0:30, 5:15]
    ids = mk.sample_ids(60)
    model = mk.MultiKernelRegressor(mk.precomputed(matrices(X))).fit(ids[rows], y[rows])
    direct = mk.MultiKernelRegressor(BANK).fit(X[rows], y[rows])
    np.testing.assert_allclose(model.predict(ids), direct.predict(X), atol=1e-8)
