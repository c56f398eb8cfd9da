"""column_importance_: shares that do not depend on units, for every kind of kernel on columns."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import multikernel as mk
from multikernel.estimators import importance
from multikernel.kernels.sequences import Spectrum, per_ngram

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 8))
y = np.sin(2 * X[:, 3]) + X[:, 7] ** 2 + 0.05 * rng.normal(size=150)
LINEAR = 2 * X[:, 3] - X[:, 7] + 0.05 * rng.normal(size=150)

BANKS = {
    "default": None,
    "tables": mk.default_bank(X, kind="tables"),
    "matern": [mk.Matern(1.5, 3.0)],
    "views": mk.per_view({"a": (mk.Gaussian(0.05), slice(2, 8)), "b": (mk.Linear(), [0, 1])}),
    "product": [mk.Gaussian(0.03) * mk.Linear(), mk.Gaussian(0.03)],
}


@pytest.mark.parametrize("weighting", ["alignf", "loo", "lp"])
@pytest.mark.parametrize("name", BANKS)
def test_the_columns_that_matter_come_first(name, weighting):
    model = mk.MultiKernelRegressor(BANKS[name], weighting=weighting).fit(X, y)
    found = model.column_importance_
    assert found.shape == (8,)
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= 0)
    assert set(np.argsort(-found)[:2]) == {3, 7}


@pytest.mark.parametrize(
    "bank",
    [mk.per_feature(mk.Linear()), [mk.Linear()], [mk.Linear(columns=[3]), mk.Linear(columns=[7])]],
    ids=["rank-one", "linear", "two columns"],
)
def test_linear_functions(bank):
    model = mk.MultiKernelRegressor(bank, "uniform", alpha=1e-6).fit(X, LINEAR)
    scale = X.var(axis=0)
    expected = np.zeros(8)
    expected[[3, 7]] = 4 * scale[3], scale[7]
    np.testing.assert_allclose(model.column_importance_, expected / expected.sum(), atol=2e-3)


def test_hinge_loss_and_several_classes():
    labels = (y > 0).astype(int) + (y > 1)
    for multiclass in ("shared", "per_class"):
        model = mk.MultiKernelClassifier(multiclass=multiclass).fit(X, labels)
        assert set(np.argsort(-model.column_importance_)[:2]) == {3, 7}
    two = mk.MultiKernelClassifier(loss="logistic").fit(X, y > 0.5)
    assert set(np.argsort(-two.column_importance_)[:2]) == {3, 7}


def test_classes_are_added_up():
    iris, labels = load_iris(return_X_y=True)
    # Of smooth kernels: many flowers share a measurement, where others have a kink.
    bank = mk.default_bank(iris, kind="gaussians")
    model = mk.MultiKernelClassifier(bank).fit(iris, labels)
    step, total = 1e-5, np.zeros(4)
    for j in range(4):
        move = np.zeros(4)
        move[j] = step
        change = model.decision_function(iris + move) - model.decision_function(iris - move)
        total[j] = np.sum(np.mean((change / (2 * step)) ** 2, axis=0)) * iris[:, j].var()
    np.testing.assert_allclose(model.column_importance_, total / total.sum(), rtol=1e-5)


def test_units_of_the_columns_do_not_matter():
    bank = mk.gaussians([0.01, 0.1], scaling="standard") + mk.Linear(scaling="standard")
    units = 10.0 ** rng.integers(-3, 4, size=8)
    found = mk.MultiKernelRegressor(bank).fit(X, y).column_importance_
    moved = mk.MultiKernelRegressor(bank).fit(X * units + 5 * units, y).column_importance_
    np.testing.assert_allclose(moved, found, rtol=1e-6)


def test_columns_in_another_order():
    order = rng.permutation(8)
    found = mk.MultiKernelRegressor().fit(X, y).column_importance_
    moved = mk.MultiKernelRegressor().fit(X[:, order], y).column_importance_
    np.testing.assert_allclose(moved, found[order], rtol=1e-7)


def test_a_sample_weight_of_zero_is_an_absence():
    weights = np.r_[np.ones(100), np.zeros(50)]
    found = mk.MultiKernelRegressor().fit(X, y, weights).column_importance_
    alone = mk.MultiKernelRegressor().fit(X[:100], y[:100]).column_importance_
    np.testing.assert_allclose(found, alone, rtol=1e-7)


def test_a_constant_function_has_no_important_column():
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Linear()), "uniform", normalize="spherical")
    np.testing.assert_array_equal(model.fit(X, y).column_importance_, 0.0)  # a sum of signs


def test_a_second_fit_forgets_the_first():
    model = mk.MultiKernelRegressor().fit(X, y)
    first = model.column_importance_
    first[:] = -1.0  # a copy
    assert np.all(model.column_importance_ >= 0)
    np.testing.assert_array_equal(
        model.fit(X, LINEAR).column_importance_,
        mk.MultiKernelRegressor().fit(X, LINEAR).column_importance_,
    )
    assert not hasattr(clone(model), "_importance_sample")


def test_large_samples_are_averaged_over_in_part(monkeypatch):
    monkeypatch.setattr(importance, "MAX_SAMPLES", 40)
    model = mk.MultiKernelRegressor().fit(X, y)
    assert len(model._importance_sample[0]) == 40
    assert set(np.argsort(-model.column_importance_)[:2]) == {3, 7}
    monkeypatch.setattr(importance, "MAX_SAMPLE_BYTES", 10 * 8 * 8)
    assert len(mk.MultiKernelRegressor().fit(X, y)._importance_sample[0]) == 10


def test_changes_of_x_after_fit_do_not_matter():
    mine = X.copy()
    model = mk.MultiKernelRegressor().fit(mine, y)
    mine[:] = 0.0
    expected = mk.MultiKernelRegressor().fit(X, y).column_importance_
    np.testing.assert_array_equal(model.column_importance_, expected)


def test_files_and_pickles(tmp_path):
    model = mk.MultiKernelClassifier().fit(X, y > 0.5)
    mk.save(model, tmp_path / "model.mk")
    loaded = mk.load(tmp_path / "model.mk")
    np.testing.assert_array_equal(loaded.column_importance_, model.column_importance_)
    assert loaded._importance_sample is None  # no training samples beyond what predicts
    again = pickle.loads(pickle.dumps(mk.MultiKernelClassifier().fit(X, y > 0.5)))
    np.testing.assert_array_equal(again.column_importance_, model.column_importance_)
    del loaded._column_importance  # as from a file of an earlier version
    with pytest.raises(AttributeError, match="was loaded from a model file without it"):
        loaded.column_importance_


def test_what_has_no_columns():
    K = X @ X.T
    given = mk.MultiKernelRegressor(mk.precomputed([K])).fit(mk.sample_ids(150), y)
    with pytest.raises(AttributeError, match="is not a function of numeric columns"):
        given.column_importance_
    stack = mk.MultiKernelRegressor("precomputed").fit(K[:, :, None], y)
    with pytest.raises(AttributeError, match="X holds kernel values"):
        stack.column_importance_
    words = np.array(["ACGT", "TTGA", "ACCA", "GGTA"] * 5)[:, None]
    labels = np.tile([0, 1, 1, 0], 5)
    for bank, words_of in (
        ([Spectrum(2)], "is not a function of numeric columns"),
        (per_ngram(2, unit="letter"), "X holds sequences"),
    ):
        model = mk.MultiKernelClassifier(bank).fit(words, labels)
        assert not hasattr(model, "column_importance_")
        with pytest.raises(AttributeError, match=words_of):
            model.column_importance_


def test_a_kernel_that_is_learned_for_given_samples_has_no_derivatives():
    model = mk.SpectralKernelClassifier(mk.Gaussian(0.1)).fit(X[:30], y[:30] > 0.5)
    with pytest.raises(AttributeError, match=r"no column_importance_.*permutation_importance"):
        model.column_importance_


def test_callables_go_by_central_differences():
    def bell(U, V):
        return np.exp(-0.05 * ((U[:, None] - V[None]) ** 2).sum(axis=2))

    found = mk.MultiKernelRegressor([mk.Callable(bell, psd=True)]).fit(X, y).column_importance_
    expected = mk.MultiKernelRegressor([mk.Gaussian(0.05)]).fit(X, y).column_importance_
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_before_fit():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        mk.MultiKernelRegressor().column_importance_


def test_counts_are_never_made_negative_and_wide_models_are_saved_without_differences(tmp_path):
    counts = np.random.default_rng(0).poisson(0.5, (60, 80)).astype(float)
    labels = (counts[:, 3] + counts[:, 4] > 1).astype(int)
    model = mk.MultiKernelClassifier([mk.Tanimoto(), mk.MinMax()], "uniform").fit(counts, labels)
    mk.save(model, tmp_path / "before.skops")
    with pytest.raises(AttributeError, match="Access column_importance_ before saving the model"):
        _ = mk.load(tmp_path / "before.skops").column_importance_
    importance = model.column_importance_
    assert importance.shape == (80,) and importance.sum() == pytest.approx(1.0)
    assert set(np.argsort(importance)[-2:]) == {3, 4}
    mk.save(model, tmp_path / "after.skops")
    np.testing.assert_array_equal(mk.load(tmp_path / "after.skops").column_importance_, importance)


def test_columns_of_zeros_and_ones_are_exchanged():
    """The function may do anything between 0 and 1, where derivatives would be taken."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    X[:, 1] = rng.random(300) < 0.4
    y = np.where((X[:, 0] > 0) ^ (X[:, 1] > 0), 1, 0)
    model = mk.MultiKernelClassifier().fit(X, y)
    importance = model.column_importance_
    assert importance[1] > 0.25 and importance[2] < 0.15
    assert importance.sum() == pytest.approx(1.0)
