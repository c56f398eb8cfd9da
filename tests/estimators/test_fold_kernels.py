"""Kernels that take something from the sample take it from each training part of a search."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import KFold, StratifiedKFold

import multikernel as mk
from multikernel.estimators.selection import middle_of_best, select


def columns_far_apart(rng, n=60):
    """Columns whose scale in a part of the rows is another than in all of them."""
    X = rng.normal(size=(n, 4))
    X[:: n // 5] *= [1, 50, 1, 1]
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, y


BANKS = {
    "default": None,
    "at distances": mk.at_distances(mk.Gaussian(), [0.5, 1.0, 2.0]),
    "views": mk.per_view({"a": [0, 1], "b": [2, 3]}),
    "fixed": mk.gaussians([0.1, 1.0]),
}


@pytest.mark.parametrize("bank", BANKS)
def test_scores_are_those_of_models_that_never_saw_the_held_out_samples(bank, rng):
    X, y = columns_far_apart(rng)
    splits = list(StratifiedKFold(3).split(X, y))
    model = mk.MultiKernelClassifierCV(BANKS[bank], "alignf", (0.1, 10.0), cv=splits).fit(X, y)
    for f, (train, test) in enumerate(splits):
        for j, C in enumerate((0.1, 10.0)):
            alone = mk.MultiKernelClassifier(BANKS[bank], "alignf", C=C).fit(X[train], y[train])
            assert model.cv_results_[f"split{f}_test_score"][j] == pytest.approx(
                alone.score(X[test], y[test])
            )
            if C == model.C_:
                np.testing.assert_allclose(
                    model.cv_predictions_[test],
                    alone.decision_function(X[test]),
                    rtol=2e-2,
                    atol=2e-2,  # the solver's tolerance, 1e-3, from other starting points
                )


def test_regressions_and_votes_too(rng):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], y[:80]
    splits = list(KFold(3).split(X))
    model = mk.MultiKernelRegressorCV(weighting="uniform", alphas=(1.0,), cv=splits).fit(X, y)
    for train, test in splits:
        alone = mk.MultiKernelRegressor(mk.default_bank(X[train]), "uniform", alpha=1.0)
        alone.fit(X[train], y[train])
        np.testing.assert_allclose(model.cv_predictions_[test], alone.predict(X[test]), rtol=1e-5)
    X, y = columns_far_apart(rng)
    splits = list(StratifiedKFold(3).split(X, y))
    one = {"complexity_penalties": [0.001], "sparsity_penalties": [0.01]}
    vote = mk.VotedKernelClassifierCV(**one, cv=splits).fit(X, y)
    for f, (train, test) in enumerate(splits):
        alone = mk.VotedKernelClassifier(complexity_penalty=0.001, sparsity_penalty=0.01)
        score = alone.fit(X[train], y[train]).score(X[test], y[test])
        assert vote.cv_results_[f"split{f}_test_score"][0] == pytest.approx(score)


def test_samples_of_weight_zero_have_no_held_out_prediction():
    X, y = load_iris(return_X_y=True)
    weight = np.ones(len(y))
    weight[::10] = 0
    model = mk.MultiKernelClassifierCV(weighting="uniform", Cs=(1.0,), cv=3)
    model.fit(X, y, sample_weight=weight)
    assert model.cv_predictions_.shape == (150, 3)
    np.testing.assert_array_equal(np.isnan(model.cv_predictions_).all(axis=1), weight == 0)


# -- what is chosen -------------------------------------------------------------------------------


def test_ties_go_to_the_middle():
    assert middle_of_best(np.array([1.0, 1.0, 1.0, 1.0, 0.9])) == 1
    assert middle_of_best(np.array([0.9, 1.0, 1.0, 1.0, 0.5])) == 2
    assert middle_of_best(np.array([0.9, 1.0, 0.5])) == 1
    assert middle_of_best(np.array([0.9, 1.0, 1.0 + 1e-15])) == 1


def test_one_standard_error_prefers_the_first_rule():
    scores = np.zeros((4, 2, 2))
    scores[:, 0] = np.array([0.80, 0.84, 0.80, 0.84])[:, None]
    scores[:, 1] = np.array([0.85, 0.79, 0.87, 0.81])[:, None]  # mean 0.83, s.e. 0.018
    assert select(scores, "best")[0] == 1
    assert select(scores, "one-standard-error")[0] == 0
    scores[:, 0] -= 0.03
    assert select(scores, "one-standard-error")[0] == 1
    with pytest.raises(ValueError, match="Every cross-validation score is NaN"):
        select(np.full((3, 1, 2), np.nan), "best")


@pytest.mark.parametrize("options", [{}, {"loss": "squared", "approximation": mk.Nystroem(20)}])
def test_the_parameter_is_heeded(options):
    X, y = load_iris(return_X_y=True)
    rules = {"weighting": ["alignf", "uniform", "best"], "Cs": (0.1, 1.0, 10.0), "cv": 3}
    for selection in ("best", "one-standard-error"):
        model = mk.MultiKernelClassifierCV(**rules, selection=selection, **options).fit(X, y)
        scores = np.stack([model.cv_results_[f"split{f}_test_score"] for f in range(3)])
        rule, value = select(scores.reshape(3, 3, 3), selection)
        assert (model.weighting_, model.C_) == (rules["weighting"][rule], rules["Cs"][value])
    with pytest.raises(ValueError, match="selection"):
        mk.MultiKernelClassifierCV(selection="two").fit(X, y)
