"""Weights by view, and folds by group."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

import multikernel as mk

VIEWS = {
    "left": (mk.gaussians([0.1, 1.0]), slice(0, 3)),
    "right": (mk.Linear(), slice(3, 5)),
}
BANK = mk.per_view(VIEWS) + mk.Polynomial(2)


@pytest.fixture
def sample(rng):
    y = np.repeat([0, 1, 2], 20)
    return rng.normal(size=(60, 5)) + y[:, None] * [1.0, 0.0, 0.0, 0.5, 0.0], y


@pytest.mark.parametrize("rule", ["alignf", "lp", "loo"])
def test_shares_of_views_are_sums_of_kernel_weights(sample, rule):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, rule).fit(X, y)
    a, b, c, d = model.kernel_weights_ / model.kernel_weights_.sum()
    found = model.view_weights_
    assert list(found) == ["left", "right", repr(mk.Polynomial(2))]
    np.testing.assert_allclose(list(found.values()), [a + b, c, d])
    assert all(type(share) is float for share in found.values())


def test_shares_for_each_class(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "alignf", multiclass="per_class").fit(X, y)
    mu = model.kernel_weights_
    np.testing.assert_allclose(
        model.view_weights_["left"], mu[:, :2].sum(axis=1) / mu.sum(axis=1), atol=1e-12
    )
    np.testing.assert_allclose(sum(model.view_weights_.values()), np.ones(3))


def test_shares_of_other_estimators(sample):
    X, y = sample
    regressor = mk.MultiKernelRegressor(BANK, "uniform").fit(X, y)
    assert list(regressor.view_weights_.values()) == pytest.approx([0.5, 0.25, 0.25])
    voted = mk.VotedKernelClassifier(mk.per_view(VIEWS)).fit(X[:40], y[:40])
    assert sum(voted.view_weights_.values()) == pytest.approx(1.0)


def test_a_bank_without_views_says_so(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(mk.gaussians([0.1]))
    with pytest.raises(NotFittedError):
        model.view_weights_
    model.fit(X, y)
    assert not hasattr(model, "view_weights_")
    with pytest.raises(
        AttributeError, match=r"do not belong to views.*mk.per_view.*kernel_weights_"
    ):
        model.view_weights_


# -- folds by group -------------------------------------------------------------------------------

GROUPS = np.tile(np.arange(6), 10)


def searches():
    bank = mk.gaussians([0.1, 1.0])
    return [
        mk.MultiKernelClassifierCV(bank, "uniform", Cs=[1.0], cv=GroupKFold(3)),
        mk.MultiKernelRegressorCV(bank, "uniform", alphas=[1.0], cv=GroupKFold(3)),
        mk.VotedKernelClassifierCV(bank, cv=GroupKFold(3), max_iter=5),
    ]


@pytest.mark.parametrize("search", searches(), ids=lambda search: type(search).__name__)
@pytest.mark.filterwarnings("ignore")
def test_groups_stay_together(sample, search):
    X, y = sample
    weights = np.ones(60)
    weights[[0, 7]] = 0.0
    search.fit(X, y, sample_weight=weights, groups=GROUPS)
    kept = np.flatnonzero(weights)
    assert len(search.cv_indices_) == 3
    for train, test in search.cv_indices_:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), kept)
        assert not set(GROUPS[train]) & set(GROUPS[test])


def test_scores_are_those_of_the_same_explicit_splits(sample):
    X, y = sample
    search = searches()[0].fit(X, y, groups=GROUPS)
    splits = list(GroupKFold(3).split(X, y, GROUPS))
    explicit = mk.MultiKernelClassifierCV(search.kernels, "uniform", Cs=[1.0], cv=splits).fit(X, y)
    for f, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(search.cv_indices_[f][0], train)
        np.testing.assert_array_equal(search.cv_indices_[f][1], test)
        key = f"split{f}_test_score"
        assert search.cv_results_[key] == explicit.cv_results_[key]
        single = mk.MultiKernelClassifier(search.kernels, "uniform", C=1.0).fit(X[train], y[train])
        assert search.cv_results_[key][0] == pytest.approx(single.score(X[test], y[test]))


@pytest.mark.parametrize(
    ("cv", "groups", "match"),
    [
        (None, GROUPS, r"groups was passed with cv=None.*GroupKFold"),
        (3, GROUPS, r"groups was passed with cv=3"),
        ([(np.arange(40), np.arange(40, 60))], GROUPS, "groups was passed with explicit splits"),
        (GroupKFold(3), GROUPS[:50], "got 50 for 60 samples"),
        (GroupKFold(3), None, "groups"),
    ],
)
def test_groups_that_would_be_split_are_refused(sample, cv, groups, match):
    X, y = sample
    search = mk.MultiKernelClassifierCV(mk.Linear(), "uniform", Cs=[1.0], cv=cv)
    with pytest.raises(ValueError, match=match):
        search.fit(X, y, groups=groups)


def test_splits_are_left_behind_without_groups(sample, tmp_path):
    X, y = sample
    cv = KFold(4, shuffle=True, random_state=0)
    search = mk.MultiKernelClassifierCV(mk.Linear(), "uniform", Cs=[1.0], cv=cv).fit(X, y)
    for found, expected in zip(search.cv_indices_, cv.split(X), strict=True):
        np.testing.assert_array_equal(found[1], expected[1])
    mk.save(search, tmp_path / "model.skops")
    np.testing.assert_array_equal(mk.load(tmp_path / "model.skops").predict(X), search.predict(X))


def test_weights_of_groups(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "alignf").fit(X, y)
    mu = model.kernel_weights_
    share = mu / mu.sum()
    found = model.group_weights({"smooth": "*Gaussian*", "rest": [2, "Poly*"]})
    assert list(found) == ["smooth", "rest"]
    np.testing.assert_allclose(list(found.values()), [share[:2].sum(), share[2:].sum()])
    sums = model.group_weights({"one": 0}, share=False)
    assert sums == pytest.approx({"one": mu[0], "(others)": mu[1:].sum()})
    assert model.group_weights() == pytest.approx(model.view_weights_)
    grouped = mk.HierarchicalNorm(groups=["a", "a", "b", "b"], p=1.0, q=2.0)
    learned = mk.MultiKernelClassifier(BANK, grouped).fit(X, y)
    mu = learned.kernel_weights_ / learned.kernel_weights_.sum()
    assert learned.group_weights() == pytest.approx({"a": mu[:2].sum(), "b": mu[2:].sum()})
    lists = mk.HierarchicalNorm(groups=[[0, 3], [1, 2]], p=1.0, q=2.0)
    assert list(mk.MultiKernelClassifier(BANK, lists).fit(X, y).group_weights()) == [
        "group 0",
        "group 1",
    ]
    each = mk.MultiKernelClassifier(BANK, "alignf", multiclass="per_class").fit(X, y)
    np.testing.assert_allclose(sum(each.group_weights({"g": "left*"}).values()), np.ones(3))


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ({"a": "nothing*"}, ValueError, r"groups\['a'\]: no kernel is called 'nothing\*'"),
        ({"a": 9}, ValueError, "no kernel is called 9"),
        ({"a": 0, "b": "left*"}, ValueError, "in two groups, 'a' and 'b'"),
        (["left*"], TypeError, "must map group names"),
    ],
)
def test_groups_that_make_no_sense(sample, groups, error, message):
    model = mk.MultiKernelClassifier(BANK, "uniform").fit(*sample)
    with pytest.raises(error, match=message):
        model.group_weights(groups)


def test_groups_of_a_bank_without_views(sample):
    model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), "uniform").fit(*sample)
    with pytest.raises(ValueError, match="do not belong to views"):
        model.group_weights()


@pytest.mark.parametrize("rule", ["alignf", "lp"])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_a_search_with_weights_for_every_class(sample, rule, scoring):
    """Its scores are those of the plain estimator, and so is what it fits in the end."""
    from sklearn.model_selection import cross_val_score

    X, y = sample
    folds = KFold(3, shuffle=True, random_state=0)
    search = mk.MultiKernelClassifierCV(
        BANK, rule, [0.1, 1.0], cv=folds, multiclass="per_class", scoring=scoring
    ).fit(X, y)
    scores = []
    for C in (0.1, 1.0):
        model = mk.MultiKernelClassifier(BANK, rule, C, multiclass="per_class")
        scores.append(cross_val_score(model, X, y, cv=folds, scoring=scoring).mean())
    tolerance = 1e-6 if rule == "alignf" else 2e-2  # joint rules start elsewhere
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], scores, atol=tolerance, rtol=tolerance
    )
    plain = mk.MultiKernelClassifier(BANK, rule, search.C_, multiclass="per_class").fit(X, y)
    assert search.kernel_weights_.shape == (3, 4)
    np.testing.assert_allclose(search.kernel_weights_, plain.kernel_weights_, atol=1e-6)
    assert search.view_weights_["left"].shape == (3,)


def test_a_fold_without_a_class_is_refused_with_weights_for_every_class(sample):
    X, y = sample
    search = mk.MultiKernelClassifierCV(BANK, "alignf", multiclass="per_class", cv=KFold(3))
    with pytest.raises(ValueError, match=r"no sample of class 0\..*stratified"):
        search.fit(X, y)
