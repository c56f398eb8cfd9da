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
    with pytest.raises(AttributeError, match=r"belong to no views.*mk.per_view.*kernel_weights_"):
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
        (None, GROUPS, r"groups came with cv=None.*GroupKFold"),
        (3, GROUPS, r"groups came with cv=3"),
        ([(np.arange(40), np.arange(40, 60))], GROUPS, "groups came with explicit splits"),
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
