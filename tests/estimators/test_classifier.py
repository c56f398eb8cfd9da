"""The classifier: labels, decisions, shares, weights of samples and classes, and scikit-learn."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import multikernel as mk
from multikernel.learners.polish import Polished
from tests.estimators.cases import BANKS, DIRECT, NORMALIZATIONS, WEIGHTINGS, iris, overlap

Classifier = mk.MultiKernelClassifier
#: answers that are compared with other answers are asked for exactly
Exact = partial(mk.MultiKernelClassifier, tol=1e-10)

# -- labels and decisions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([-3, 0, 40]),
        np.array([0.0, 1.0, 2.0]),
    ],
    ids=["str", "object", "int", "float"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_labels_of_any_type_give_the_same_machine(names, classes):
    X, y = iris(classes=classes)
    plain = Classifier(BANKS["shared"]).fit(X, y)
    model = Classifier(BANKS["shared"]).fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, names[:classes])
    assert model.classes_.dtype == names.dtype
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
    assert model.score(X, names[y]) == plain.score(X, y)


def test_bool_labels():
    X, y = iris(classes=2)
    model = Classifier(BANKS["shared"]).fit(X, y == 1)
    assert model.classes_.dtype == bool and model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


def test_list_labels_and_list_inputs():
    X, y = iris()
    words = [f"class {k}" for k in y]
    model = Classifier(BANKS["shared"]).fit(X.tolist(), words)
    assert model.predict(X.tolist()).tolist() == model.predict(X).tolist()
    assert model.score(X, words) > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_predict_and_score_follow_from_the_decisions(classes):
    X, y = iris(classes=classes)
    model = Classifier(BANKS["stacked"], C=0.1).fit(X[:40], y[:40])
    decisions = model.decision_function(X)
    if classes == 2:
        assert decisions.shape == (len(X),)
        expected = model.classes_[(decisions > 0).astype(int)]
    else:
        assert decisions.shape == (len(X), 3)
        expected = model.classes_[np.argmax(decisions, axis=1)]
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.score(X, y) == np.mean(expected == y)


def test_one_uncorrected_kernel_is_the_plain_svm():
    X, y = iris(classes=2)
    model = Classifier(mk.Gaussian(0.5), "uniform", C=2.0, center=False, normalize=None).fit(X, y)
    other = SVC(kernel="rbf", gamma=0.5, C=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-8)
    assert model.kernel_weights_.tolist() == [1.0]


def test_attributes_have_the_documented_shapes():
    X, y = iris()
    model = Classifier(BANKS["stacked"], "alignf").fit(X, y)
    p = len(model.kernel_names_)
    assert p == 8 and len(set(model.kernel_names_)) == p
    assert model.kernel_weights_.shape == (p,)
    assert model.kernel_weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert model.dual_coef_.shape == (len(model.support_), 3)
    assert np.all(np.any(model.dual_coef_ != 0, axis=1))
    assert model.intercept_.shape == (3,)
    assert 0 < model.alignment_ <= 1
    assert 0 <= model.duality_gap_ < 1e-6
    assert model.objective_ > 0 and model.n_iter_ > 0
    assert model.n_features_in_ == 4 and not hasattr(model, "feature_names_in_")
    assert "8 kernels on 75 samples" in str(model.grams_)


# -- shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", BANKS)
def test_shares_and_intercept_add_up_to_the_decision(bank, normalize, center):
    for classes in (2, 3):
        X, y = iris(classes=classes)
        model = Classifier(BANKS[bank], "alignf", normalize=normalize, center=center)
        model.fit(X[:40], y[:40])
        shares = model.decision_function(X, split=True)
        p = len(model.kernel_names_)
        assert shares.shape == ((len(X), p) if classes == 2 else (len(X), p, 3))
        whole = model.decision_function(X)
        size = np.abs(shares).max()
        np.testing.assert_allclose(
            shares.sum(axis=1) + model.intercept_, whole, rtol=0, atol=1e-10 * max(size, 1.0)
        )
        # A kernel without weight has no share, one with weight has (unless the coefficients are
        # orthogonal to its feature, as those of a few signs may be).
        silent = np.all(shares.reshape(len(X), p, -1) == 0, axis=(0, 2))
        assert np.all(silent[model.kernel_weights_ == 0])
        if (bank, normalize) != ("rank-one", "spherical"):
            np.testing.assert_array_equal(silent, model.kernel_weights_ == 0)


def test_shares_are_those_of_the_kernels_by_hand():
    X, y = iris(classes=2)
    train, test = X[:35], X[35:]
    kernels = [mk.Gaussian(0.1), mk.Polynomial(2)]
    model = Classifier(kernels, "uniform", normalize="trace").fit(train, y[:35])
    coef = np.zeros(35)
    coef[model.support_] = model.dual_coef_[:, 0]
    shares = model.decision_function(test, split=True)
    for k, kernel in enumerate(kernels):
        K, L = kernel(train), kernel(test, train)
        trace = np.trace(mk.center(K))
        L = L - L.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
        np.testing.assert_allclose(shares[:, k], 0.5 * (L / trace) @ coef, atol=1e-10)


# -- weights of samples and classes ---------------------------------------------------------------


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("weighting", DIRECT)
@pytest.mark.parametrize("bank", BANKS)
def test_weight_zero_is_removal_and_whole_weights_are_copies(bank, weighting, normalize):
    X, y = iris(step=3)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    model = Exact(BANKS[bank], WEIGHTINGS[weighting], normalize=normalize)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    copied = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.kernel_weights_, copied.kernel_weights_, atol=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(X), copied.decision_function(X), rtol=1e-6, atol=1e-6
    )
    assert np.all(counts[weighted.support_] > 0)
    removed = clone(model).fit(X[counts > 0], y[counts > 0])
    zeroed = clone(model).fit(X, y, sample_weight=(counts > 0).astype(float))
    np.testing.assert_array_equal(zeroed.kernel_weights_, removed.kernel_weights_)
    np.testing.assert_array_equal(zeroed.decision_function(X), removed.decision_function(X))


def test_weights_on_the_default_bank_are_copies():
    X, y = iris(step=3)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = Exact().fit(X, y, sample_weight=counts)
    copied = Exact().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.kernel_weights_, copied.kernel_weights_, atol=1e-7)
    np.testing.assert_allclose(
        weighted.decision_function(X), copied.decision_function(X), atol=1e-6
    )


def test_a_class_that_only_zero_weights_hold_is_not_there():
    X, y = iris()
    model = Classifier(BANKS["shared"]).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]


def test_class_weights_multiply_the_cost():
    X, y = iris(classes=3)
    y = (y == 1).astype(int)  # not separable
    factors = {0: 1.0, 1: 5.0}
    by_dict = Exact(BANKS["shared"], "uniform", class_weight=factors).fit(X, y)
    gaussian = Exact(
        mk.Gaussian(0.5), "uniform", class_weight=factors, center=False, normalize=None
    )
    other = SVC(kernel="rbf", gamma=0.5, class_weight=factors, tol=1e-10).fit(X, y)
    # libsvm's own answer has an error of about 1e-7 here, whatever its tolerance.
    np.testing.assert_allclose(
        gaussian.fit(X, y).decision_function(X), other.decision_function(X), atol=1e-6
    )
    plain = Exact(BANKS["shared"], "uniform").fit(X, y)
    assert np.sum(by_dict.predict(X) == 1) > np.sum(plain.predict(X) == 1)
    # Class weights concern the loss alone: the kernels are trusted as before.
    np.testing.assert_array_equal(by_dict.kernel_weights_, plain.kernel_weights_)
    balanced = Exact(BANKS["shared"], class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    same = Exact(BANKS["shared"], class_weight={k: len(y) / (2 * counts[k]) for k in (0, 1)}).fit(
        X, y
    )
    np.testing.assert_array_equal(balanced.decision_function(X), same.decision_function(X))


def test_class_weights_of_string_labels_and_many_classes():
    X, y = iris()
    words = np.array(["a", "b", "c"])[y]
    heavy = Classifier(BANKS["shared"], C=0.01, class_weight={"a": 1, "b": 50, "c": 1})
    light = Classifier(BANKS["shared"], C=0.01)
    count = [np.sum(model.fit(X, words).predict(X) == "b") for model in (heavy, light)]
    assert count[0] > count[1]


def test_balanced_class_weights_count_repeated_samples():
    X, y = iris(classes=3)
    y = (y == 1).astype(int)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    model = Exact(BANKS["shared"], class_weight="balanced")
    weighted = clone(model).fit(X, y, sample_weight=counts)
    copied = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(
        weighted.decision_function(X), copied.decision_function(X), atol=1e-6
    )


# -- containers -----------------------------------------------------------------------------------


def frame(X):
    return pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])


def test_data_frames_and_columns_by_name():
    X, y = iris()
    by_name = mk.KernelBank(
        [
            mk.Gaussian(0.5, columns=["petal width", "sepal length"]),
            mk.Linear(columns="sepal width"),
        ]
    )
    by_index = mk.KernelBank([mk.Gaussian(0.5, columns=[3, 0]), mk.Linear(columns=1)])
    model = Classifier(by_name).fit(frame(X), y)
    assert model.feature_names_in_.tolist() == list(frame(X).columns)
    other = Classifier(by_index).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(frame(X)), other.decision_function(X))
    per_feature = Classifier(mk.per_feature(columns=["petal width"])).fit(frame(X), y)
    assert per_feature.kernel_names_ == ["Linear(columns='petal width')"]


def test_columns_in_another_order_are_refused():
    X, y = iris()
    model = Classifier(BANKS["shared"]).fit(frame(X), y)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(frame(X)[["sepal width", "sepal length", "petal length", "petal width"]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- petal"):
        model.predict(frame(X).rename(columns={"petal width": "petal"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


def test_frames_of_integers_bools_and_nullable_numbers():
    X, y = iris()
    table = pd.DataFrame(
        {
            "whole": pd.array(np.round(10 * X[:, 0]).astype(int), dtype="Int64"),
            "flag": X[:, 3] > 0,
            "small": np.round(X[:, 2] * 10).astype(np.int8),
        }
    )
    dense = np.column_stack([np.round(10 * X[:, 0]), X[:, 3] > 0, np.round(X[:, 2] * 10)])
    bank = mk.gaussians([0.01, 0.001])
    model = Classifier(bank).fit(table, y)
    expected = Classifier(bank).fit(dense, y).decision_function(dense)
    np.testing.assert_array_equal(model.decision_function(table), expected)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.csr_array])
@pytest.mark.parametrize("bank", ["shared", "rank-one", "mixed"])
def test_sparse_is_dense(bank, make):
    X, y = iris()
    X = np.where(np.abs(X) < 0.6, 0.0, X)
    kernels = BANKS.get(bank, BANKS["shared"] + BANKS["rank-one"])
    dense = Exact(kernels).fit(X, y)
    sparse = Exact(kernels).fit(make(X), y)
    np.testing.assert_allclose(sparse.kernel_weights_, dense.kernel_weights_, atol=1e-9)
    expected = dense.decision_function(X)
    np.testing.assert_allclose(sparse.decision_function(make(X)), expected, atol=1e-8)
    np.testing.assert_allclose(sparse.decision_function(X), expected, atol=1e-8)
    np.testing.assert_allclose(
        sparse.decision_function(make(X), split=True),
        dense.decision_function(X, split=True),
        atol=1e-8,
    )


@pytest.mark.parametrize("bank", BANKS)
def test_float32_inputs_give_close_answers(bank):
    X, y = iris()
    double = Exact(BANKS[bank], "align").fit(X.astype(np.float32).astype(float), y)
    single = Exact(BANKS[bank], "align").fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.kernel_weights_, double.kernel_weights_, atol=2e-6)
    expected = double.decision_function(X)
    np.testing.assert_allclose(
        single.decision_function(X.astype(np.float32)), expected, atol=1e-3 * np.abs(expected).max()
    )


def test_dtype_is_obeyed():
    X, y = iris()
    followed = Classifier(BANKS["shared"]).fit(X.astype(np.float32), y)
    raised = Classifier(BANKS["shared"], dtype="float64").fit(X.astype(np.float32), y)
    exact = Classifier(BANKS["shared"]).fit(X.astype(np.float32).astype(float), y)
    np.testing.assert_array_equal(raised.kernel_weights_, exact.kernel_weights_)
    assert not np.array_equal(followed.kernel_weights_, exact.kernel_weights_)
    lowered = Classifier(BANKS["shared"], dtype=np.float32).fit(X, y)
    np.testing.assert_allclose(lowered.kernel_weights_, exact.kernel_weights_, atol=1e-4)


@pytest.mark.parametrize("bank", BANKS)
def test_memory_layout_does_not_matter_and_inputs_stay(bank):
    X, y = iris()
    expected = Exact(BANKS[bank]).fit(X, y).decision_function(X)
    wide = np.zeros((2 * len(X), 7))
    wide[::2, 1:5] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    labels = y.copy()
    labels.flags.writeable = False
    for variant in (np.asfortranarray(X), wide[::2, 1:5], X[::-1].copy()[::-1], frozen):
        before = variant.copy()
        model = Exact(BANKS[bank]).fit(variant, labels, sample_weight=np.ones(len(X)))
        np.testing.assert_allclose(model.decision_function(variant), expected, atol=1e-10)
        np.testing.assert_array_equal(variant, before)
    np.testing.assert_array_equal(wide[::2, 1:5], X)


def test_whole_number_and_bool_inputs():
    X, y = iris()
    whole = np.round(3 * X).astype(int)
    bank = mk.gaussians([0.1, 1.0])
    expected = Classifier(bank).fit(whole.astype(float), y).decision_function(whole.astype(float))
    np.testing.assert_array_equal(Classifier(bank).fit(whole, y).decision_function(whole), expected)
    assert Classifier(bank).fit(X > 0, y).score(X > 0, y) > 0.6


def test_column_vector_targets_warn_like_scikit_learn():
    X, y = iris()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = Classifier(BANKS["shared"]).fit(X, y[:, None])
    expected = Classifier(BANKS["shared"]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bank", BANKS)
def test_threads_do_not_change_a_bit(bank):
    X, y = iris()
    one = Classifier(BANKS[bank], n_jobs=1).fit(X, y)
    two = Classifier(BANKS[bank], n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.kernel_weights_, two.kernel_weights_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    everyone = Classifier(BANKS[bank], n_jobs=-1).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), everyone.decision_function(X))


def test_verbose_says_what_is_done(capsys):
    X, y = iris()
    Classifier(BANKS["stacked"]).fit(X, y)
    assert capsys.readouterr().out == ""
    Classifier(BANKS["stacked"], verbose=1).fit(X, y)
    said = capsys.readouterr().out
    for word in ("8 kernels on 75 samples", "rank-one", "shared", "non-zero kernel weights", "gap"):
        assert word in said


def test_random_state_decides_the_folds_of_best():
    X, y = iris()
    bank = mk.gaussians([0.1, 0.2, 0.3, 0.4])  # about equally good
    chosen = []
    for seed in range(6):
        fits = [Classifier(bank, "best", random_state=seed).fit(X, y) for _ in range(2)]
        np.testing.assert_array_equal(fits[0].kernel_weights_, fits[1].kernel_weights_)
        chosen.append(int(np.argmax(fits[0].kernel_weights_)))
    assert len(set(chosen)) > 1


def test_best_without_a_seed_is_reproducible():
    # `mk.BestSingle()` shuffles with seed 0; the name "best" stands for it.
    X, y = iris()
    bank = mk.gaussians([0.1, 0.2, 0.3, 0.4])  # about equally good
    named = [Classifier(bank, "best").fit(X, y) for _ in range(8)]
    given = Classifier(bank, mk.BestSingle()).fit(X, y)
    for model in named:
        np.testing.assert_array_equal(model.kernel_weights_, given.kernel_weights_)


def test_clone_and_parameters():
    model = Classifier(BANKS["shared"], weighting=mk.Align(q=3.0), C=7.0, normalize=None)
    twin = clone(model)
    assert twin.get_params() == {**model.get_params(), "weighting": twin.weighting}
    assert twin.kernels is model.kernels and twin.weighting is not model.weighting
    assert twin.get_params()["weighting__q"] == 3.0
    twin.set_params(weighting__q=2.0, C=1.0)
    assert (twin.weighting.q, model.weighting.q) == (2.0, 3.0)
    X, y = iris()
    twin.fit(X, y)
    assert twin.weighting.get_params() == {"q": 2.0}
    assert not hasattr(clone(twin), "kernel_weights_")
    assert "Align(q=2.0)" in repr(twin)


def test_fit_leaves_the_parameters_alone():
    X, y = iris()
    weighting = mk.BestSingle(cv=3, random_state=4)
    kernels = [mk.Gaussian(0.5), mk.Linear()]
    model = Classifier(kernels, weighting, random_state=11).fit(X, y)
    assert model.kernels is kernels and model.weighting is weighting
    assert weighting.get_params() == {"cv": 3, "random_state": 4}


def test_grid_search_over_costs_rules_and_their_parameters():
    X, y = iris()
    search = GridSearchCV(
        Classifier(BANKS["shared"]),
        [
            {"C": [0.1, 10.0], "weighting": ["uniform", mk.AlignF()]},
            {"weighting": [mk.Align()], "weighting__q": [None, 1.5, 4.0], "normalize": ["trace"]},
        ],
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 7
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_score_ > 0.9


def test_nested_parameter_reaches_the_weights():
    X, y = iris()
    weights = [
        Classifier(BANKS["rank-one"], mk.Align()).set_params(weighting__q=q).fit(X, y)
        for q in (1.001, 100.0)
    ]
    assert weights[0].kernel_weights_.max() > 0.9
    assert weights[1].kernel_weights_.max() < 0.3


def test_pipeline_with_a_scaler():
    X, y = iris()
    raw = X * [1.0, 10.0, 100.0, 1000.0] + 5.0
    pipe = make_pipeline(StandardScaler(), Classifier(BANKS["shared"])).fit(raw, y)
    direct = Classifier(BANKS["shared"]).fit(StandardScaler().fit_transform(raw), y)
    scaled = StandardScaler().fit_transform(raw)
    np.testing.assert_allclose(pipe.decision_function(raw), direct.decision_function(scaled))
    assert cross_val_score(pipe, raw, y, cv=3).mean() > 0.85
    search = GridSearchCV(pipe, {"multikernelclassifier__C": [0.1, 1.0]}, cv=3).fit(raw, y)
    assert search.best_score_ > 0.85


def overlap_and_linear(X, Z):
    return overlap(X, Z) + X @ Z.T


WAYS = {
    "None": None,
    "one kernel": mk.Gaussian(0.5),
    "list": [mk.Gaussian(0.5), mk.Linear()],
    "tuple": (mk.Gaussian(0.5), mk.Linear()),
    "bank": mk.gaussians([0.1, 1.0]),
    "named bank": mk.KernelBank([mk.Gaussian(0.5), mk.Linear()], names=["round", "flat"]),
    "sum of banks": mk.gaussians([0.1, 1.0]) + mk.polynomials([2, 3]),
    "per_feature": mk.per_feature(mk.Linear()),
    "per_feature gaussian": mk.per_feature(mk.Gaussian(0.5)),
    "per_view": mk.per_view({"sepal": (mk.Gaussian(0.5), [0, 1]), "petal": (mk.Linear(), [2, 3])}),
    "algebra": [mk.Gaussian(0.5) * mk.Linear() + 2.0 * mk.Linear() ** 2, mk.Laplacian(0.1)],
    "callable": mk.Callable(overlap_and_linear, psd=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_giving_kernels_cross_validates(way):
    X, y = iris()
    scores = cross_val_score(Classifier(WAYS[way], C=10.0), X, y, cv=3, error_score="raise")
    assert scores.mean() > 0.8


def test_refit_on_other_data_leaves_no_trace():
    X, y = iris()
    words = np.array(["a", "b"])[(y > 0).astype(int)]
    model = Classifier(mk.gaussians([0.1, 1.0, 10.0]))
    model.fit(frame(X), y)
    model.fit(X[:30, :2], words[:30])
    fresh = Classifier(mk.gaussians([0.1, 1.0, 10.0])).fit(X[:30, :2], words[:30])
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(
        model.decision_function(X[:, :2]), fresh.decision_function(X[:, :2])
    )
    assert model.classes_.tolist() == ["a", "b"] and model.n_features_in_ == 2
    ready = Classifier("precomputed").fit(mk.Gaussian(0.5)(X), y)
    ready.set_params(kernels=mk.gaussians([0.1, 1.0])).fit(X, y)
    fresh = Classifier(mk.gaussians([0.1, 1.0])).fit(X, y)
    assert set(vars(ready)) == set(vars(fresh))
    np.testing.assert_array_equal(ready.decision_function(X), fresh.decision_function(X))


def test_a_limit_on_iterations_warns_with_the_gap(monkeypatch):
    # Without the last polish, which would find the optimum all the same.
    monkeypatch.setattr(
        "multikernel.learners.source.polish",
        lambda K, alpha, b, *_, **__: Polished(alpha, b, False, None),
    )
    X, y = iris()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 iterations.*gap of .*Raise max_iter"):
        Classifier(BANKS["shared"], max_iter=2).fit(X, y)


def test_empty_predictions():
    X, y = iris()
    model = Classifier(BANKS["shared"]).fit(X, y)
    assert model.decision_function(X[:1]).shape == (1, 3)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])
