"""Whether anything was learned: what is said about noise, about rare classes and about signal."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

import multikernel as mk
from multikernel.estimators.assessment import (
    area_under_curve,
    assess,
    assess_held_out,
    scoring_name,
)

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def noise(seed, n=80, classes=2, rare=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    if rare is not None:
        y = rng.permutation(np.arange(n) < rare).astype(int)
    return rng.normal(size=(n, 4)), y


def test_signal_is_told_beside_the_baseline():
    X, y = load_iris(return_X_y=True)
    model = mk.MultiKernelClassifierCV(weighting="uniform", Cs=[1.0], cv=FOLDS).fit(X, y)
    found = assess(model, y)
    (accuracy,) = found.measured
    scores = [model.cv_results_[f"split{f}_test_score"][0] for f in range(5)]
    assert accuracy.score == pytest.approx(np.mean(scores))
    right = np.mean(scores)
    assert accuracy.standard_error == pytest.approx(
        max(np.std(scores, ddof=1) / np.sqrt(5), np.sqrt(right * (1 - right) / 150))
    )
    assert accuracy.gain_error > 2 * accuracy.standard_error  # the baseline is wrong far more often
    assert accuracy.baseline == pytest.approx(1 / 3) and found.verdict == "learned"
    assert found.headline.startswith("Accuracy 0.9") and found.headline.endswith(
        "better than the baseline."
    )
    assert found.remarks == [] and found.never == ()


def test_the_error_of_a_gain_is_that_of_the_differences(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 3 + 0.1 * rng.normal(size=60)  # the difficulty of the folds differs
    model = mk.MultiKernelRegressorCV(
        weighting="uniform", alphas=[1.0], cv=4, scoring="neg_mean_squared_error"
    ).fit(X, y)
    (error,) = assess(model, y).measured
    scores = [model.cv_results_[f"split{f}_test_score"][0] for f in range(4)]
    constant = [-np.mean((y[i] - y[rest].mean()) ** 2) for rest, i in model.cv_indices_]
    gains = np.array(scores) - constant
    assert error.score - error.baseline == pytest.approx(gains.mean())
    assert error.gain_error == pytest.approx(np.std(gains, ddof=1) / 2)


def test_few_folds_that_agree_by_chance_prove_nothing():
    """Three folds of noise: 0.540 each, within 0.005, on 100 samples."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(2, 100)).round(4).T, rng.permutation(np.arange(100) % 2)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    model = mk.MultiKernelClassifierCV(weighting="uniform", Cs=[1.0], cv=folds).fit(X, y)
    scores = [model.cv_results_[f"split{f}_test_score"][0] for f in range(3)]
    assert np.std(scores, ddof=1) / np.sqrt(3) < 0.01  # it looks very sure ...
    found = assess(model, y)
    assert found.verdict == "nothing"  # ... and is not
    assert found.measured[0].standard_error > 0.04


def test_rare_classes_have_more_scores_and_a_way_out():
    X, y = noise(0, 200, rare=8)
    model = mk.MultiKernelClassifierCV(weighting="uniform", Cs=[1.0], cv=FOLDS).fit(X, y)
    found = assess(model, y)
    assert [one.name for one in found.measured] == ["accuracy", "balanced accuracy", "AUC"]
    assert found.verdict == "nothing" and found.never == ("1",)
    assert "always answering '0': 0.960): nothing was learned." in found.headline
    assert "--class-weight balanced" in " ".join(found.remarks)
    X[:, 0] += 2.5 * y  # ranks well, although the accuracy is that of the majority
    found = assess(model.fit(X, y), y)
    assert found.verdict == "learned" and found.measured[2].score > 0.8


def test_scores_that_were_asked_for_come_first():
    X, y = noise(1)
    X[:, 0] += 2 * y
    search = {"weighting": "uniform", "Cs": [1.0], "cv": FOLDS}
    model = mk.MultiKernelClassifierCV(**search, scoring="neg_log_loss").fit(X, y)
    found = assess(model, y)
    assert found.measured[0].name == "negative log loss"
    assert found.measured[0].baseline == pytest.approx(-np.log(2), abs=0.02)
    assert found.verdict == "learned"
    assert scoring_name("f1_weighted", True) == "f1 weighted" and scoring_name(None, False) == "R²"


def test_regression_is_held_against_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = mk.MultiKernelRegressorCV(weighting="uniform", cv=KFold(5))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    found = assess(model.fit(X, y), y)
    assert found.verdict == "learned" and found.baseline == "always answering the mean"
    assert found.measured[0].name == "R²" and found.measured[0].baseline <= 0
    assert assess(mk.MultiKernelRegressor(mk.Gaussian(1.0)).fit(X, y), y) is None


def test_area_under_curve_is_the_mean_over_classes(rng):
    y, values = rng.integers(0, 3, 60), rng.normal(size=(60, 3))
    areas = [roc_auc_score(y == c, values[:, c]) for c in range(3)]
    assert area_under_curve(y, values, np.arange(3)) == pytest.approx(np.mean(areas))


class Given:
    """A fitted model that returns these predictions."""

    def __init__(self, outputs, classes=None):
        self.predict = self.decision_function = lambda X: outputs
        if classes is not None:
            self.classes_ = classes


@pytest.mark.parametrize("n_classes", [2, 6, 11, 21])
@pytest.mark.parametrize("n", [60, 200, 5000])
def test_a_constant_prediction_of_held_out_rows_is_never_called_learned(n, n_classes, rng):
    rare = 0.1 / (n_classes - 1)
    y = rng.choice(n_classes, n, p=[0.9] + [rare] * (n_classes - 1))
    outputs = np.full(n, -1.0) if n_classes == 2 else np.eye(n_classes)[np.zeros(n, dtype=int)]
    found = assess_held_out(Given(outputs, np.arange(n_classes)), None, y)
    assert found.verdict == "nothing"
    balanced = found.measured[1]
    assert balanced.score == pytest.approx(1 / len(np.unique(y)), rel=0.01) == balanced.baseline


def test_rare_classes_of_held_out_rows_count_in_every_part(rng):
    y = (np.arange(200) < 8).astype(int)  # fewer than there are parts
    outputs = np.where(rng.random(200) < 0.3, -1, 1) * np.where(y == 1, 1.0, -1.0)
    found = assess_held_out(Given(outputs, np.arange(2)), None, y)
    expected = balanced_accuracy_score(y, outputs > 0)
    assert found.measured[1].score == pytest.approx(expected)


@pytest.mark.parametrize("n", [50, 500])
def test_r2_of_held_out_rows_is_that_of_all_of_them(n, rng):
    y = rng.normal(size=n)
    outputs = y + rng.normal(size=n)
    found = assess_held_out(Given(outputs), None, y)
    assert found.measured[0].score == pytest.approx(r2_score(y, outputs))


@pytest.mark.parametrize("value", [0.0, 0.1, -3e9])
def test_a_constant_target_of_held_out_rows_has_no_r2(value, rng):
    y = np.full(100, value)
    outputs = y + 0.5 + 0.1 * rng.normal(size=100)
    found = assess_held_out(Given(outputs), None, y)
    (one,) = found.measured
    assert one.name == "negative mean squared error" and one.baseline == pytest.approx(0)
    assert one.score == pytest.approx(-np.mean((outputs - y) ** 2))
    assert np.isfinite([one.standard_error, one.gain_error, one.p_value]).all()
    assert found.headline.startswith("Negative mean squared error -0.2")
    assert "target is constant in these rows, so R² cannot be computed" in found.headline
    assert found.verdict == "unclear" and found.remarks == []
    same = assess_held_out(Given(y), None, y)  # even if all predictions are right
    assert same.verdict == "unclear" and same.measured[0].standard_error == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"classes": 3}, {"n": 200, "rare": 10}], ids=["two", "three", "rare"]
)
def test_noise_is_seldom_called_learned(options):
    said = []
    for seed in range(60):
        X, y = noise(seed, **options)
        said.append(assess(mk.MultiKernelClassifierCV(cv=FOLDS).fit(X, y), y).verdict)
    assert said.count("learned") <= 6, said  # 5 % of 60 are 3; more than 6 have probability 0.03
    assert said.count("nothing") >= 40


@pytest.mark.slow
def test_noise_is_seldom_called_learned_in_regressions():
    said = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(80, 5)), rng.normal(size=80)
        model = mk.MultiKernelRegressorCV(cv=KFold(5, shuffle=True, random_state=0)).fit(X, y)
        said.append(assess(model, y).verdict)
    assert said.count("learned") <= 6, said
