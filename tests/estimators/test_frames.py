"""Data frames with categories straight into estimators."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import multikernel as mk

N = 120


def make(rng, n=N):
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "income": pd.array(rng.normal(size=n), dtype="Float64"),
            "job": pd.Categorical(rng.choice(list("abc"), n)),
            "owner": rng.choice(["yes", "no", None], n),
            "zip": pd.Categorical(rng.choice([10, 20, 30], n)),
            "grade": pd.Categorical(
                rng.choice(["low", "mid", "high"], n),
                categories=["low", "mid", "high"],
                ordered=True,
            ),
        }
    )
    return frame, ((frame["age"] > 0) ^ (frame["job"] == "b")).to_numpy().astype(int)


@pytest.fixture
def table(rng):
    return make(rng)


@pytest.mark.parametrize("weighting", ["align", "loo", "lp"])
def test_a_frame_is_the_pipeline_with_its_codes(table, weighting):
    frame, y = table
    codes = mk.TableCodes().fit(frame)
    by_hand = make_pipeline(codes, mk.MultiKernelClassifier(codes.bank(), weighting)).fit(frame, y)
    model = mk.MultiKernelClassifier(weighting=weighting).fit(frame, y)
    new = frame.assign(job="astronaut", owner=None)
    for sample in (frame, new):
        np.testing.assert_array_equal(
            model.decision_function(sample), by_hand.decision_function(sample)
        )
    assert model.codes_.levels_ == codes.levels_
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert set(model.view_weights_) == {"numbers", "categories", "both"}


def test_columns_in_any_order_and_other_types(table):
    frame, y = table
    model = mk.MultiKernelClassifier(weighting="align").fit(frame, y)
    other = frame[list(frame.columns)[::-1]].astype({"job": str, "zip": int, "owner": "string"})
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))


def test_polars(table):
    pl = pytest.importorskip("polars")
    frame, y = table
    columns = {
        "age": frame["age"].to_numpy(),
        "income": frame["income"].to_numpy(dtype=float),
        "job": pl.Series(frame["job"].astype(str).tolist(), dtype=pl.Categorical),
        "owner": [None if pd.isna(v) else v for v in frame["owner"]],
        "zip": frame["zip"].astype(int).tolist(),
    }
    other = pl.DataFrame(columns)
    same = frame.drop(columns="grade").assign(zip=frame["zip"].astype(int))
    model = mk.MultiKernelClassifier(weighting="align").fit(other, y)
    expected = mk.MultiKernelClassifier(weighting="align").fit(same, y).decision_function(same)
    np.testing.assert_array_equal(model.decision_function(other), expected)
    np.testing.assert_array_equal(model.decision_function(same), expected)
    scores = cross_val_score(mk.MultiKernelClassifier(weighting="align"), other, y, cv=3)
    assert scores.mean() > 0.55


@pytest.mark.parametrize(
    "model",
    [
        mk.MultiKernelClassifierCV(weighting="align", Cs=[1.0, 10.0], cv=3),
        mk.VotedKernelClassifier(),
        mk.ParzenClassifier(),
        mk.KernelEnsembleClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_classifiers(table, model):
    frame, y = table
    assert clone(model).fit(frame, y).score(frame, y) > 0.7


def test_estimators_without_labels(table):
    frame, _ = table
    assert mk.ConsensusKernel(n_components=2).fit_transform(frame).shape == (N, 2)
    assert set(mk.MultiKernelOneClass(weighting="uniform").fit(frame).predict(frame)) <= {-1, 1}
    assert mk.KernelFeatures(n_components=3).fit_transform(frame).shape == (N, 3)
    assert len(set(mk.KernelClustering(n_clusters=2).fit_predict(frame))) == 2


@pytest.mark.parametrize("cv", [False, True])
def test_regression_with_intervals(rng, cv):
    frame, _ = make(rng)
    y = frame["age"] + (frame["job"] == "b") + 0.1 * rng.normal(size=N)
    new = make(rng, 50)[0].assign(job="astronaut")
    maker = mk.MultiKernelRegressorCV if cv else mk.MultiKernelRegressor
    model = maker(weighting="align", **({"alphas": [0.1, 1.0], "cv": 3} if cv else {}))
    model.fit(frame, y)
    assert model.score(frame, y) > 0.8
    for method in ("jackknife+", "cv+", "split"):
        lower, upper = model.predict_interval(new, method=method)
        assert np.all(lower < upper)
    mean, std = model.predict(new, return_std=True)
    assert mean.shape == std.shape == (50,)


def test_files(table, tmp_path):
    frame, y = table
    model = mk.MultiKernelRegressor(weighting="align").fit(frame, y)
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    new = frame.assign(job="astronaut", grade="low")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    for method in ("jackknife+", "split"):
        np.testing.assert_allclose(
            again.predict_interval(new, method=method), model.predict_interval(new, method=method)
        )
    codes = mk.load(mk.save(mk.TableCodes().fit(frame), tmp_path / "codes.skops"))
    np.testing.assert_array_equal(codes.transform(new), model.codes_.transform(new))
    with pytest.raises(Exception, match="not fitted"):
        mk.save(mk.TableCodes(), tmp_path / "codes.skops")


def test_codes_can_be_read_back(table):
    frame, _ = table
    codes = mk.TableCodes().fit(frame)
    new = frame.assign(job=["new", "a"] * (N // 2))
    again = codes.inverse_transform(codes.transform(new))
    np.testing.assert_array_equal(codes.transform(again), codes.transform(new))
    assert again["job"].tolist()[:2] == ["unseen", "a"]
    assert again["grade"].dtype == frame["grade"].dtype
    assert again["owner"].isna().sum() == frame["owner"].isna().sum()


def test_kernels_that_would_take_codes_for_numbers_are_refused(table):
    frame, y = table
    bad = [
        [mk.Gaussian(1.0)],
        [mk.Gaussian(1.0, columns=["age", "job"])],
        mk.per_feature(mk.Linear()),
        [mk.Linear(columns="age") * mk.Gaussian(1.0, columns="zip")],
        mk.learned_scales(),
    ]
    for kernels in bad:
        with pytest.raises(ValueError, match=r"category columns \(.*would treat as numbers"):
            mk.MultiKernelClassifier(kernels).fit(frame, y)
    good = [mk.Gaussian(1.0, columns=["age", "grade"]) * mk.Overlap(columns=["job", "zip"])]
    assert mk.MultiKernelClassifier(good).fit(frame, y).score(frame, y) > 0.8


def test_what_is_refused(table):
    frame, y = table
    model = mk.MultiKernelClassifier(weighting="align").fit(frame, y)
    with pytest.raises(ValueError, match=r"fitted to a data frame with categories.*got ndarray"):
        model.predict(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="It lacks 'job'"):
        model.predict(frame.drop(columns="job"))
    with pytest.raises(ValueError, match="'day' is of type datetime64"):
        model.fit(frame.assign(day=pd.Timestamp("2020-01-01")), y)
    with pytest.raises(ValueError, match=r"'name' holds 120 distinct strings.*type 'category'"):
        model.fit(frame.assign(name=[f"text {i}" for i in range(N)]), y)
    gaps = frame.assign(age=frame["age"].mask(frame.index < 3))
    with pytest.raises(ValueError, match=r"3 missing values in 1 column \('age'\).*'ignore'"):
        model.fit(gaps, y)
    with pytest.raises(ValueError, match="X must be numeric, but columns 'job', 'owner'"):
        mk.SpectralKernelClassifier().fit(frame.astype({"job": str}), y)
    # A second fit on numbers forgets the categories of the first.
    model.fit(frame[["age", "income"]], y)
    assert not hasattr(model, "codes_")
    assert model.predict(frame[["age", "income"]]).shape == (N,)


def test_columns_of_one_level_say_nothing(table):
    frame, y = table
    plain = mk.MultiKernelClassifier([mk.Overlap(columns=["job"])]).fit(frame, y)
    one = frame.assign(same="x", also=pd.Categorical(["y"] * N))
    kernels = [mk.Overlap(columns=["job", "same", "also"])]
    np.testing.assert_allclose(
        mk.MultiKernelClassifier(kernels).fit(one, y).decision_function(one),
        plain.decision_function(frame),
        atol=1e-6,
    )
    with pytest.warns(UserWarning, match="constant on the training data"):
        mk.MultiKernelClassifier().fit(one[["age", "same"]], y)


def test_missing_values_in_mixed_frames(table):
    frame, y = table
    gaps = frame.copy()
    gaps.loc[:19, ["age", "income", "grade"]] = None
    gaps.loc[20:39, ["job", "owner", "zip"]] = None
    gaps.loc[40:44, "job"] = None
    gaps["income"] = gaps["income"].mask(gaps.index == 50)
    bank = mk.per_view(
        {
            "numbers": ["age", "income", "grade"],
            "codes": (mk.Overlap(), ["job", "owner", "zip"]),
        }
    )
    model = mk.MultiKernelClassifier(bank, "align", missing="ignore").fit(gaps, y)
    assert model.view_presence_ == {"numbers": 1 - 20 / N, "codes": 1 - 20 / N}
    shares = model.decision_function(gaps, split=True)
    np.testing.assert_allclose(shares[:20, :-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(shares[20:40, -1], 0.0, atol=1e-9)
    assert np.abs(shares[40:45, -1]).min() > 0
    default = mk.MultiKernelClassifier(weighting="align", missing="ignore").fit(gaps, y)
    assert default.score(gaps, y) > 0.7


def test_importance_of_columns_with_categories(table):
    frame, _ = table
    y = frame["age"] + 2.0 * (frame["job"] == "b")
    model = mk.MultiKernelRegressor(weighting="align", alpha=0.1).fit(frame, y)
    importance = dict(zip(frame, model.column_importance_, strict=True))
    assert sum(importance.values()) == pytest.approx(1.0)
    assert set(sorted(importance, key=importance.get)[-2:]) == {"age", "job"}


def test_importance_by_exchange_is_that_of_derivatives_for_linear_functions(rng):
    from multikernel.grams.sensitivity import column_sensitivities, exchange_sensitivities

    X = rng.normal(size=(2000, 3)) * [1.0, 3.0, 0.1]
    y = X @ [1.0, 2.0, 0.0]
    model = mk.MultiKernelRegressor([mk.Linear()], "uniform", alpha=1e-6).fit(X[:100], y[:100])
    expected = column_sensitivities(model._expansion, X)
    found = exchange_sensitivities(model._expansion, X)
    np.testing.assert_allclose(found, expected, rtol=0.1, atol=1e-6)
    omega = np.where(np.arange(2000) < 1000, 1.0, 0.0)
    half = exchange_sensitivities(model._expansion, X, omega)
    np.testing.assert_allclose(half, column_sensitivities(model._expansion, X, omega), rtol=0.15)
