"""The search: honest scores, no leakage, every entry once, and the refit."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

import multikernel as mk
from multikernel._checksum import checksum
from multikernel.estimators.assessment import assess
from tests.estimators.cases import (
    BANKS,
    NORMALIZATIONS,
    WEIGHTINGS,
    iris,
    mean_margin,
    overlap,
    stratified,
    waves,
)

Classifier = partial(mk.MultiKernelClassifier, tol=1e-6)
ClassifierCV = partial(mk.MultiKernelClassifierCV, tol=1e-6)
Regressor = mk.MultiKernelRegressor
RegressorCV = mk.MultiKernelRegressorCV

pytestmark = pytest.mark.filterwarnings("ignore:The signed combination")


def honest(make, grid, X, y, splits, score, sample_weight=None):
    """Scores of a plain estimator fitted anew on every training fold, one row per fold."""
    rows = []
    for train, test in splits:
        row = []
        for candidate in grid:
            weights = {} if sample_weight is None else {"sample_weight": sample_weight[train]}
            model = make(*candidate).fit(X[train], y[train], **weights)
            held = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
            row.append(score(model, X[test], y[test], **held))
        rows.append(row)
    return np.array(rows)


def check_scores(search, expected, atol=1e-8):
    """All numbers of ``cv_results_`` against scores by hand."""
    found = search.cv_results_
    for f, row in enumerate(expected):
        np.testing.assert_allclose(found[f"split{f}_test_score"], row, rtol=0, atol=atol)
    mean = expected.mean(axis=0)
    np.testing.assert_allclose(found["mean_test_score"], mean, rtol=0, atol=atol)
    np.testing.assert_allclose(found["std_test_score"], expected.std(axis=0), rtol=0, atol=atol)
    assert search.n_splits_ == len(expected)
    assert search.best_score_ == found["mean_test_score"].max()
    assert search.best_index_ == np.argmax(found["mean_test_score"])
    assert found["rank_test_score"][search.best_index_] == 1


# -- every number is an honest one ----------------------------------------------------------------


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", BANKS)
def test_regression_scores_are_those_of_plain_fits(bank, normalize, center):
    X, y = waves(n=45, outputs=2 if bank == "stacked" else 1)
    rules, alphas = list(WEIGHTINGS.values()), [0.03, 1.0]
    splits = list(KFold(2, shuffle=True, random_state=2).split(X))
    options = {"normalize": normalize, "center": center}
    search = RegressorCV(
        BANKS[bank], rules, alphas, cv=splits, scoring="neg_mean_absolute_error", **options
    ).fit(X, y)
    expected = honest(
        lambda rule, alpha: Regressor(BANKS[bank], rule, alpha, **options),
        [(rule, alpha) for rule in rules for alpha in alphas],
        X,
        y,
        splits,
        get_scorer("neg_mean_absolute_error"),
    )
    check_scores(search, expected)
    assert search.cv_results_["alpha"].tolist() == alphas * len(rules)
    assert search.cv_results_["weighting"] == [rule for rule in rules for _ in alphas]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("classes", [2, 3])
def test_classification_scores_are_those_of_plain_fits(classes, normalize, center):
    # Gaussians and a function: the machines are unique, so that decisions can be compared.
    bank = mk.gaussians([0.2, 2.0]) + mk.KernelBank([mk.Callable(overlap, psd=True)])
    X, y = iris(step=3, classes=classes)
    X = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    y = np.array(["a", "b", "c"])[y]
    rules, Cs = [*WEIGHTINGS.values()][:-1], [0.1, 5.0]
    splits = stratified(y)
    options = {"normalize": normalize, "center": center, "class_weight": {"a": 2.0, "b": 1.0}}
    if classes == 3:
        options["class_weight"] = None
    search = ClassifierCV(bank, rules, Cs, cv=splits, scoring=mean_margin, **options).fit(X, y)
    grid = [(rule, C) for rule in rules for C in Cs]
    plain = partial(Classifier, bank, **options)
    expected = honest(lambda rule, C: plain(rule, C), grid, X, y, splits, mean_margin)
    check_scores(search, expected)
    assert search.cv_results_["C"].tolist() == Cs * len(rules)


def test_balanced_class_weights_are_those_of_the_training_fold():
    X, y = iris(step=2)
    y = (y == 1).astype(int)
    splits = [(np.arange(60), np.arange(60, 75)), (np.arange(15, 75), np.arange(15))]
    bank = BANKS["shared"]
    search = ClassifierCV(
        bank, "uniform", [0.1], cv=splits, scoring=mean_margin, class_weight="balanced"
    ).fit(X, y)
    plain = partial(Classifier, bank, "uniform", class_weight="balanced")
    check_scores(search, honest(plain, [(0.1,)], X, y, splits, mean_margin))


@pytest.mark.parametrize("bank", BANKS)
def test_accuracies_are_those_of_plain_fits(bank):
    X, y = iris(step=3)
    rules, Cs = ["uniform", "align", "alignf", mk.BestSingle(cv=2)], [0.05, 1.0, 20.0]
    splits = stratified(y)
    search = mk.MultiKernelClassifierCV(BANKS[bank], rules, Cs, cv=splits).fit(X, y)
    grid = [(rule, C) for rule in rules for C in Cs]
    expected = honest(
        lambda rule, C: mk.MultiKernelClassifier(BANKS[bank], rule, C),
        grid,
        X,
        y,
        splits,
        get_scorer("accuracy"),
    )
    check_scores(search, expected)


def test_named_best_uses_the_random_state_of_the_search():
    X, y = waves(n=45)
    bank = mk.gaussians([0.3, 0.35, 0.4, 0.45])
    splits = list(KFold(3).split(X))
    search = RegressorCV(bank, "best", [0.1, 1.0], cv=splits, random_state=5).fit(X, y)
    expected = honest(
        lambda alpha: Regressor(bank, "best", alpha, random_state=5),
        [(0.1,), (1.0,)],
        X,
        y,
        splits,
        get_scorer("r2"),
    )
    check_scores(search, expected)


def test_scores_with_sample_weights_are_those_of_weighted_plain_fits():
    X, y = waves(n=45)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    rules, alphas = ["uniform", "alignf"], [0.1, 1.0]
    splits = list(KFold(3).split(X))
    grid = [(rule, alpha) for rule in rules for alpha in alphas]
    search = RegressorCV(BANKS["stacked"], rules, alphas, cv=splits)
    search.fit(X, y, sample_weight=weights)
    expected = honest(
        lambda rule, alpha: Regressor(BANKS["stacked"], rule, alpha),
        grid,
        X,
        y,
        splits,
        get_scorer("r2"),
        weights,
    )
    check_scores(search, expected)


def test_sparse_inputs_give_the_same_scores():
    X, y = waves(n=45)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    bank = BANKS["shared"] + BANKS["rank-one"]
    dense = RegressorCV(bank, ["align", "alignf"], [0.1, 1.0], cv=3).fit(X, y)
    sparse = RegressorCV(bank, ["align", "alignf"], [0.1, 1.0], cv=3).fit(sp.csr_matrix(X), y)
    for key in ("mean_test_score", "split2_test_score"):
        np.testing.assert_allclose(sparse.cv_results_[key], dense.cv_results_[key], atol=1e-9)


# -- nothing leaks --------------------------------------------------------------------------------

SEEN: list[np.ndarray] = []


class Recording(mk.AlignF):
    """alignf that writes down the weights it learns."""

    def start(self, grams, target, learner):
        weights = super().start(grams, target, learner)
        SEEN.append(weights)
        return weights


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", BANKS)
def test_validation_rows_do_not_reach_the_weights(bank, normalize):
    X, y = waves(n=45)
    train, test = np.arange(30), np.arange(30, 45)
    moved, turned = X.copy(), y.copy()
    moved[test] = 40.0 * X[test][::-1] + 7.0
    turned[test] = 100.0 - y[test]
    learned = []
    for inputs, target in ((X, y), (moved, turned)):
        SEEN.clear()
        RegressorCV(BANKS[bank], Recording(), [1.0], cv=[(train, test)], normalize=normalize).fit(
            inputs, target
        )
        learned.append(SEEN[0])
        assert len(SEEN) == 2  # the fold and the refit
    np.testing.assert_allclose(learned[1], learned[0], rtol=0, atol=1e-10)
    plain = Regressor(BANKS[bank], "alignf", normalize=normalize).fit(X[train], y[train])
    np.testing.assert_allclose(learned[0], plain.kernel_weights_, rtol=0, atol=1e-8)


# -- every Gram entry once ------------------------------------------------------------------------

PAIRS: list[int] = []


def counted(X, Z):
    PAIRS.append(len(X) * len(Z))
    return overlap(X, Z)


@pytest.mark.parametrize("weighting", ["uniform", "best", ["uniform", "align", "alignf"]])
@pytest.mark.parametrize("mixed", [False, True])
def test_every_pair_is_evaluated_once(weighting, mixed):
    bank = mk.KernelBank([mk.Callable(counted)])
    if mixed:
        bank = bank + mk.gaussians([0.1, 1.0])
    X, y = iris(step=3)
    PAIRS.clear()
    model = mk.MultiKernelClassifierCV(bank, weighting, cv=5, random_state=0).fit(X, y)
    assert sum(PAIRS) == len(X) ** 2
    PAIRS.clear()
    model.predict(X[:7])
    assert sum(PAIRS) <= 7 * len(X)
    target = X[:, 0] + X[:, 1] ** 2
    PAIRS.clear()
    mk.MultiKernelRegressorCV(bank, weighting, cv=5, random_state=0).fit(X, target)
    assert sum(PAIRS) == len(X) ** 2


@pytest.mark.parametrize("bank", ["shared", "dense", "stacked"])
@pytest.mark.parametrize("center", [True, False])
def test_too_little_memory_to_store_gives_the_same_results(bank, center):
    X, y = waves(n=60)
    options = {"cv": 3, "center": center, "random_state": 0}
    rules, alphas = ["alignf", "best"], [0.1, 1.0]
    roomy = RegressorCV(BANKS[bank], rules, alphas, **options).fit(X, y)
    # Storing p matrices twice takes at least 170 kB, one factorisation 58 kB.
    tight = RegressorCV(BANKS[bank], rules, alphas, memory_budget=150_000, **options)
    if bank != "shared":
        tight.set_params(memory_budget=320_000 if bank == "stacked" else 170_000)
    tight.fit(X, y)
    for key in ("mean_test_score", "std_test_score", "split0_test_score"):
        np.testing.assert_allclose(tight.cv_results_[key], roomy.cv_results_[key], atol=1e-8)
    assert (tight.alpha_, tight.weighting_) == (roomy.alpha_, roomy.weighting_)
    np.testing.assert_allclose(tight.predict(X), roomy.predict(X), atol=1e-8)


def test_the_tight_budgets_above_do_not_store():
    X, y = waves(n=60)
    bank = mk.KernelBank([mk.Callable(counted)])
    for budget, once in ((10**9, True), (50_000, False)):
        PAIRS.clear()
        RegressorCV(bank, "uniform", [1.0], cv=3, memory_budget=budget, solver="cg").fit(X, y)
        assert (sum(PAIRS) == len(X) ** 2) is once


# -- scoring and folds ----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "balanced_accuracy", "average_precision"])
def test_named_scores_of_two_classes(scoring):
    X, y = iris(step=2)
    y = (y == 1).astype(int)
    splits = stratified(y)
    search = ClassifierCV(BANKS["shared"], "alignf", [0.1, 1.0], cv=splits, scoring=scoring)
    expected = honest(
        lambda C: Classifier(BANKS["shared"], "alignf", C),
        [(0.1,), (1.0,)],
        X,
        y,
        splits,
        get_scorer(scoring),
    )
    check_scores(search.fit(X, y), expected)


@pytest.mark.parametrize(
    "scoring", ["neg_mean_squared_error", "neg_median_absolute_error", "explained_variance", None]
)
def test_named_scores_of_regression(scoring):
    X, y = waves(n=45)
    splits = list(KFold(3).split(X))
    search = RegressorCV(BANKS["shared"], "align", [0.1, 1.0], cv=splits, scoring=scoring)
    expected = honest(
        lambda alpha: Regressor(BANKS["shared"], "align", alpha),
        [(0.1,), (1.0,)],
        X,
        y,
        splits,
        get_scorer(scoring or "r2"),
    )
    check_scores(search.fit(X, y), expected)


def test_a_callable_score_sees_strings_and_decisions():
    X, y = iris()
    y = np.array(["a", "b", "c"])[y]

    def score(model, X, y):
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.decision_function(X).shape == (len(y), 3)
        return float(np.mean(model.predict(X) == y))

    search = ClassifierCV(BANKS["shared"], Cs=[0.1, 1.0], cv=3, scoring=score).fit(X, y)
    other = ClassifierCV(BANKS["shared"], Cs=[0.1, 1.0], cv=3).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
    )


def test_a_callable_score_that_takes_no_weights():
    # Scorers of scikit-learn take sample_weight, a user's function need not.
    X, y = waves(n=45)
    weights = np.random.default_rng(0).integers(1, 4, len(X))

    def score(model, X, y):
        return -float(np.abs(model.predict(X) - y).max())

    with pytest.raises((TypeError, ValueError), match=r"scoring.*sample_weight"):
        RegressorCV(BANKS["shared"], cv=3, scoring=score).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    "cv",
    [
        4,
        np.int64(4),
        None,
        KFold(3, shuffle=True, random_state=0),
        ShuffleSplit(2, test_size=0.3, random_state=0),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
        StratifiedKFold(4),
    ],
    ids=repr,
)
def test_splitters(cv):
    X, y = iris()
    search = ClassifierCV(BANKS["shared"], "align", [1.0], cv=cv).fit(X, y)
    expected = cross_val_score(Classifier(BANKS["shared"], "align", 1.0), X, y, cv=cv)
    check_scores(search, expected[:, None])


def test_explicit_splits_as_lists_generators_and_masks():
    X, y = iris()
    arrays = stratified(y)
    expected = ClassifierCV(BANKS["shared"], Cs=[1.0], cv=arrays).fit(X, y)
    lists = [(train.tolist(), test.tolist()) for train, test in arrays]
    groups = np.zeros(len(y), dtype=int)
    for f, (_, test) in enumerate(arrays):
        groups[test] = f
    generated = ((train, test) for train, test in arrays)
    by_group = GroupKFold(3).split(X, y, groups)
    n = len(y)
    masks = [(np.isin(range(n), a), np.isin(range(n), b)) for a, b in arrays]
    for cv in (lists, generated, by_group, masks):
        search = ClassifierCV(BANKS["shared"], Cs=[1.0], cv=cv).fit(X, y)
        assert search.best_score_ == pytest.approx(expected.best_score_, abs=1e-12)


@pytest.mark.parametrize("how", ["splits", "int", "numpy int", "splitter"])
def test_zero_weights_are_removal(how):
    X, y = waves(n=45)
    keep = np.ones(len(X))
    keep[::4] = 0.0
    left = np.flatnonzero(keep)
    inside = list(KFold(3).split(left))
    cv = {
        "splits": [(np.sort(np.r_[left[a], 0, 4]), np.r_[left[b], 8]) for a, b in inside],
        "int": 3,
        "numpy int": np.int64(3),
        "splitter": KFold(3),
    }[how]
    search = RegressorCV(BANKS["stacked"], "alignf", [0.1, 1.0], cv=cv)
    search.fit(X, y, sample_weight=keep)
    removed = RegressorCV(BANKS["stacked"], "alignf", [0.1, 1.0], cv=inside).fit(X[left], y[left])
    for key in ("mean_test_score", "std_test_score", "split0_test_score"):
        np.testing.assert_allclose(
            search.cv_results_[key], removed.cv_results_[key], rtol=0, atol=1e-10
        )
    np.testing.assert_allclose(search.predict(X), removed.predict(X), atol=1e-10)


def test_zero_weights_and_a_class_that_is_gone():
    X, y = iris()
    search = ClassifierCV(BANKS["shared"], Cs=[1.0], cv=3)
    search.fit(X, y, sample_weight=(y != 1).astype(float))
    assert search.classes_.tolist() == [0, 2]


def test_a_class_that_a_training_fold_lacks():
    # Sorted labels and plain folds: no fold knows the class it is tested on.
    X, y = iris()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    splits = list(KFold(3).split(X))
    search = ClassifierCV(BANKS["shared"], "uniform", [1.0], cv=splits).fit(X, y)
    expected = honest(
        lambda C: Classifier(BANKS["shared"], "uniform", C),
        [(1.0,)],
        X,
        y,
        splits,
        get_scorer("accuracy"),
    )
    check_scores(search, expected)


def test_a_rare_class_does_not_stop_the_search_or_the_best_kernel():
    X, y = iris()
    y = y.copy()
    y[0] = 9
    with pytest.warns(UserWarning, match="least populated class"):
        search = ClassifierCV(BANKS["shared"], cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    best = Classifier(BANKS["shared"], mk.BestSingle(cv=3)).fit(X, y)
    assert np.sum(best.kernel_weights_) == 1.0


def test_a_training_fold_of_one_class_is_named():
    X, y = iris(classes=2)
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match=r"(?i)fold.*class"):
        ClassifierCV(BANKS["shared"], cv=KFold(2)).fit(X[order], y[order])


def test_an_undefined_score_is_said():
    X, y = waves(n=45)
    with pytest.raises(ValueError, match=r"score is NaN; check scoring and the folds"):
        RegressorCV(BANKS["shared"], cv=3, scoring=lambda model, X, y: np.nan).fit(X, y)


def test_a_kernel_that_is_constant_in_one_training_fold():
    X, y = waves(n=45)
    X[:, 3] = 0.0
    X[:5, 3] = 1.0
    splits = [(np.arange(5, 45), np.arange(5)), (np.arange(30), np.arange(30, 45))]
    rules, alphas = ["uniform", "align", "alignf"], [1.0]
    search = RegressorCV(BANKS["rank-one"], rules, alphas, cv=splits).fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 of 4 kernels are constant")
        expected = honest(
            lambda rule: Regressor(BANKS["rank-one"], rule, 1.0),
            [(rule,) for rule in rules],
            X,
            y,
            splits,
            get_scorer("r2"),
        )
    check_scores(search, expected)


# -- the refit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bank", BANKS)
def test_the_refit_is_the_plain_classifier_with_the_choice(bank):
    X, y = iris()
    rules = ["uniform", mk.Align(q=2), "alignf"]
    search = ClassifierCV(BANKS[bank], rules, [0.1, 1.0, 10.0], cv=3).fit(X, y)
    plain = Classifier(BANKS[bank], search.weighting_, search.C_).fit(X, y)
    np.testing.assert_allclose(search.kernel_weights_, plain.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(
        search.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_array_equal(search.predict(X), plain.predict(X))
    own = set(vars(search)) - set(search.get_params(deep=False))
    assert set(vars(plain)) - set(plain.get_params(deep=False)) <= own
    assert own - (set(vars(plain)) - set(plain.get_params(deep=False))) == {
        "C_",
        "weighting_",
        "best_score_",
        "best_index_",
        "cv_indices_",
        "cv_predictions_",
        "cv_results_",
        "n_splits_",
    }
    shares = search.decision_function(X, split=True)
    np.testing.assert_allclose(
        shares.sum(axis=1) + search.intercept_, search.decision_function(X), atol=1e-10
    )


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", BANKS)
def test_the_refit_is_the_plain_regressor_with_the_choice(bank, normalize):
    X, y = waves(outputs=2)
    search = RegressorCV(BANKS[bank], ["align", "alignf"], [0.1, 1.0], cv=3, normalize=normalize)
    search.fit(X[:45], y[:45])
    plain = Regressor(BANKS[bank], search.weighting_, search.alpha_, normalize=normalize)
    plain.fit(X[:45], y[:45])
    np.testing.assert_allclose(search.predict(X), plain.predict(X), atol=1e-9)
    np.testing.assert_allclose(
        search.predict(X, split=True), plain.predict(X, split=True), atol=1e-8
    )
    assert search.score(X, y) == pytest.approx(plain.score(X, y), abs=1e-9)
    assert search.alignment_ == pytest.approx(plain.alignment_, abs=1e-10)


def test_the_search_is_a_grid_search():
    X, y = iris()
    splits = stratified(y)
    ours = ClassifierCV(BANKS["shared"], ["uniform", "alignf"], [0.1, 1.0, 10.0], cv=splits)
    ours.fit(X, y)
    theirs = GridSearchCV(
        Classifier(BANKS["shared"]),
        [{"weighting": [rule], "C": [0.1, 1.0, 10.0]} for rule in ("uniform", "alignf")],
        cv=splits,
    ).fit(X, y)
    for key in ("mean_test_score", "std_test_score", "rank_test_score", "split1_test_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], atol=1e-10)
    assert ours.best_index_ == theirs.best_index_
    assert {"C": ours.C_, "weighting": ours.weighting_} == theirs.best_params_


def test_ties_go_to_the_first_of_the_grid():
    X, y = iris(classes=2)  # separable: everything is right
    search = ClassifierCV(BANKS["shared"], ["alignf", "uniform"], [3.0, 1.0], cv=3).fit(X, y)
    assert search.best_score_ == 1.0
    assert (search.C_, search.weighting_, search.best_index_) == (3.0, "alignf", 0)


def test_parameters_are_left_alone_and_clone_works():
    X, y = iris()
    rules = ["uniform", mk.Align(q=2)]
    search = ClassifierCV(BANKS["shared"], rules, (0.1, 1.0), cv=3).fit(X, y)
    assert search.weighting is rules and search.Cs == (0.1, 1.0)
    assert rules[1].get_params() == {"q": 2}
    twin = clone(search).fit(X, y)
    np.testing.assert_array_equal(twin.decision_function(X), search.decision_function(X))
    single = ClassifierCV(BANKS["shared"], mk.Align(q=2), cv=3)
    assert single.get_params()["weighting__q"] == 2


def test_refit_on_other_data_leaves_no_trace():
    X, y = iris()
    search = ClassifierCV(BANKS["shared"], cv=4).fit(X, y)
    search.set_params(cv=2).fit(X[:, :2], y > 0)
    fresh = ClassifierCV(BANKS["shared"], cv=2).fit(X[:, :2], y > 0)
    assert set(vars(search)) == set(vars(fresh))
    assert list(search.cv_results_) == list(fresh.cv_results_)
    np.testing.assert_array_equal(
        search.decision_function(X[:, :2]), fresh.decision_function(X[:, :2])
    )


def test_a_search_by_sums_keeps_no_held_out_predictions_of_an_earlier_one():
    X, y = waves()
    search = RegressorCV(BANKS["shared"], ["uniform"], cv=3).fit(X, y)
    search.set_params(approximation=mk.Nystroem(20)).fit(X[:40], y[:40])
    assert not hasattr(search, "cv_predictions_") and not hasattr(search, "cv_indices_")
    assert assess(search, y[:40]) is None


@pytest.mark.parametrize("rule", ["alignf", "best"])
def test_a_search_by_sums_learns_weights_for_every_class(rule):
    """Scores of folds are the mean scores of the classes against the rest, by their variances."""
    X, y = iris()
    options = {"loss": "squared", "approximation": mk.Nystroem(20), "cv": 3}
    search = ClassifierCV(BANKS["shared"], rule, [0.1, 1.0], multiclass="per_class", **options)
    search.fit(X, y)
    plain = Classifier(
        BANKS["shared"], rule, search.C_, loss="squared", multiclass="per_class",
        approximation=mk.Nystroem(20),
    ).fit(X, y)  # fmt: skip
    assert search.kernel_weights_.shape == (3, len(search.kernel_names_))
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-8)
    each = [ClassifierCV(BANKS["shared"], rule, [0.1, 1.0], **options) for _ in range(3)]
    each = [one.fit(X, y == label) for label, one in enumerate(each)]
    np.testing.assert_allclose(search.kernel_weights_, [one.kernel_weights_ for one in each])
    fold = np.random.default_rng([checksum(X), len(X), 1]).permutation(np.arange(len(X)) % 3)
    for f in range(3):
        spread = [np.var(y[fold == f] == label) for label in range(3)]
        scores = [one.cv_results_[f"split{f}_test_score"] for one in each]
        np.testing.assert_allclose(
            search.cv_results_[f"split{f}_test_score"], np.average(scores, axis=0, weights=spread)
        )


@pytest.mark.parametrize("multiclass", ["shared", "per_class"])
def test_leave_one_out_predictions_are_those_of_the_plain_estimators(multiclass):
    X, y = iris()
    options = {"loss": "squared", "multiclass": multiclass}
    search = ClassifierCV(BANKS["shared"], "loo", [0.1, 1.0], cv=3, **options).fit(X, y)
    plain = Classifier(BANKS["shared"], "loo", search.C_, **options).fit(X, y)
    np.testing.assert_allclose(search.loo_predictions_, plain.loo_predictions_, atol=1e-8)
    assert search.loo_score_ == plain.loo_score_
    X, y = waves(outputs=2)
    numbers = RegressorCV(BANKS["shared"], "loo", [0.1, 1.0], cv=3).fit(X, y)
    alone = Regressor(BANKS["shared"], "loo", numbers.alpha_).fit(X, y)
    np.testing.assert_allclose(numbers.loo_predictions_, alone.loo_predictions_, atol=1e-8)
    other = RegressorCV(BANKS["shared"], ["uniform"], [0.1, 1.0], cv=3).fit(X, y)
    assert not hasattr(other, "loo_predictions_")


def test_threads_and_verbosity(capsys):
    X, y = iris()
    one = ClassifierCV(BANKS["stacked"], cv=3, n_jobs=1).fit(X, y)
    assert capsys.readouterr().out == ""
    two = ClassifierCV(BANKS["stacked"], cv=3, n_jobs=2, verbose=1).fit(X, y)
    assert "cross-validation" in capsys.readouterr().out
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_the_search_nests_in_scikit_learn():
    X, y = iris()
    assert cross_val_score(ClassifierCV(BANKS["shared"], cv=3), X, y, cv=3).mean() > 0.9
    Z, target = waves()
    assert cross_val_score(RegressorCV(cv=3), Z, target, cv=3).mean() > 0.3


def test_norms_are_walked_from_one_to_the_next(monkeypatch):
    """The next norm begins where the last one began, and finds what it finds alone."""
    from multikernel.estimators import grid_search

    X, y = iris()
    X, y = X[50:], y[50:]
    norms, costs = [mk.LpNorm(p, tol=1e-7) for p in (1.1, 1.5, 2.0, 3.0)], [0.1, 1.0, 10.0]
    begun = []

    def spy(*args, warm=None, **options):
        begun.append(warm)
        return find(*args, warm=warm, **options)

    find = grid_search.find
    monkeypatch.setattr(grid_search, "find", spy)
    bank = mk.per_feature(mk.Gaussian(0.5))
    together = mk.MultiKernelClassifierCV(bank, norms, Cs=costs, cv=3).fit(X, y)
    # Folds begin cold; everything else begins near weights that are known.
    cold = [i for i, warm in enumerate(begun) if warm is None]
    assert cold == [0, 12, 24]
    alone = [mk.MultiKernelClassifierCV(bank, norm, Cs=costs, cv=3).fit(X, y) for norm in norms]
    scores = np.concatenate([search.cv_results_["mean_test_score"] for search in alone])
    np.testing.assert_allclose(together.cv_results_["mean_test_score"], scores, atol=1e-12)
