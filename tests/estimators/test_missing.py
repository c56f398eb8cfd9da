"""Samples that lack a view, and missing values inside a view."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import multikernel as mk

NAN = np.nan
BANK = mk.per_view(
    {
        "a": (mk.gaussians([0.1, 0.5]), slice(0, 3)),
        "b": ([mk.Gaussian(0.2), mk.Linear()], slice(3, 6)),
    }
)


def problem(n=60, *, gaps=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.sin(X[:, 0]) + X[:, 3] + 0.1 * rng.normal(size=n)
    if gaps:
        X[: n // 4, :3] = NAN
        X[-n // 4 :, 3:] = NAN
        X[n // 2, 1] = X[n // 2 + 1, 4] = NAN
    order = rng.permutation(n)
    return X[order], y[order]


REGRESSORS = [
    mk.MultiKernelRegressor(BANK, missing="ignore"),
    mk.MultiKernelRegressor(BANK, "uniform", missing="ignore"),
    mk.MultiKernelRegressor(BANK, "lp", missing="ignore"),
    mk.MultiKernelRegressorCV(BANK, ["uniform", "alignf"], alphas=(0.1, 1.0), missing="ignore"),
]
CLASSIFIERS = [
    mk.MultiKernelClassifier(BANK, "alignf", missing="ignore"),
    mk.MultiKernelClassifier(BANK, "lp", missing="ignore"),
    mk.MultiKernelClassifierCV(BANK, ["uniform"], Cs=(0.1, 1.0), cv=3, missing="ignore"),
]


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=lambda m: repr(m)[:60])
def test_complete_data_give_the_same_model(model):
    X, y = problem(gaps=False)
    y = y > 0 if model in CLASSIFIERS else y
    ours = clone(model).fit(X[:40], y[:40])
    plain = clone(model).set_params(missing="error").fit(X[:40], y[:40])
    np.testing.assert_array_equal(ours.presence_, np.ones(4))
    assert ours.kernel_names_ == plain.kernel_names_
    evaluate = "decision_function" if model in CLASSIFIERS else "predict"
    np.testing.assert_allclose(
        getattr(ours, evaluate)(X), getattr(plain, evaluate)(X), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=lambda m: repr(m)[:60])
def test_shares_of_absent_kernels_are_zero(model):
    X, y = problem()
    y = y > 0 if model in CLASSIFIERS else y
    fitted = clone(model).fit(X[:40], y[:40])
    method = fitted.decision_function if model in CLASSIFIERS else fitted.predict
    shares = method(X, split=True)
    size = np.abs(shares).max()
    lacks_a, lacks_b = np.isnan(X[:, :3]).all(axis=1), np.isnan(X[:, 3:]).all(axis=1)
    assert np.abs(shares[np.ix_(lacks_a, [0, 1])]).max() < 1e-9 * size
    assert np.abs(shares[np.ix_(lacks_b, [2, 3])]).max() < 1e-9 * size
    assert np.abs(shares[~lacks_a, :2]).max() > 0.01 * size
    # A new sample without any view gets the intercept.
    nothing = np.full((1, 6), NAN)
    np.testing.assert_allclose(method(nothing), fitted.intercept_, rtol=1e-9, atol=1e-9 * size)


def test_presence_by_kernel_and_by_view():
    X, y = problem()
    model = mk.MultiKernelRegressor(BANK, missing="ignore").fit(X, y)
    np.testing.assert_allclose(model.presence_, 0.75)
    assert model.view_presence_ == {"a": 0.75, "b": 0.75}
    omega = np.where(np.isnan(X[:, 0]) & np.isnan(X[:, 2]), 3.0, 1.0)
    weighted = clone(model).fit(X, y, sample_weight=omega)
    np.testing.assert_allclose(weighted.presence_, [0.5, 0.5, 75 / 90, 75 / 90])
    plain = clone(model).set_params(missing="error").fit(*problem(gaps=False))
    assert not hasattr(plain, "presence_")
    with pytest.raises(AttributeError, match="fit with missing='ignore' sets it"):
        plain.view_presence_


def test_presence_of_kernels_of_a_view_on_several_columns(tmp_path):
    X, y = problem(gaps=False)
    X[:20, 0], X[50:, 1:3] = NAN, NAN
    kernels = [
        mk.Gaussian(1.0, columns=[0]),
        mk.Gaussian(1.0, columns=[1, 2]),
        mk.Linear(columns=[3]),
    ]
    bank = mk.KernelBank(kernels, names=["a: one", "a: two", "b: one"])
    model = mk.MultiKernelRegressor(bank, "uniform", missing="ignore").fit(X, y)
    assert model.view_presence_ == pytest.approx({"a: one": 2 / 3, "a: two": 5 / 6, "b": 1.0})
    page = mk.report.write_report(model, X, y, tmp_path / "page.html").read_text()
    cells = page.split('row">a: one</th>')[1].split("</tr>")[0]
    assert "66.7 %" in cells and '<td class="num"></td>' not in cells


@pytest.mark.parametrize("weighting", ["uniform", "loo"])
def test_weights_of_samples_are_repetitions(weighting):
    X, y = problem()
    omega = np.random.default_rng(1).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), omega)
    model = mk.MultiKernelRegressor(BANK, "uniform", missing="ignore")
    if weighting == "loo":  # leave-one-out treats repetitions as samples of their own
        omega = np.ones(len(X))
        rows = np.arange(len(X))
        model = mk.MultiKernelRegressor(BANK, "loo", missing="ignore")
    weighted = clone(model).fit(X, y, sample_weight=omega)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(weighted.presence_, repeated.presence_)


def test_a_zero_weight_removes_a_sample_without_views():
    X, y = problem()
    X[7] = NAN
    model = mk.MultiKernelRegressor(BANK, missing="ignore")
    with pytest.raises(ValueError, match=r"1 sample of X without any view.* row 7\. Drop"):
        model.fit(X, y)
    model.fit(X, y, sample_weight=np.arange(len(X)) != 7)


def test_default_kernels_and_single_gaps():
    X, y = problem(gaps=False)
    X[::7, 2] = NAN
    model = mk.MultiKernelRegressor(missing="ignore").fit(X[:40], y[:40])
    filled = np.where(np.isnan(X), np.nanmean(X[:40], axis=0), X)
    plain = mk.MultiKernelRegressor().fit(filled[:40], y[:40])
    np.testing.assert_allclose(model.predict(X), plain.predict(filled), rtol=1e-5, atol=1e-5)


def test_save_and_load(tmp_path):
    X, y = problem()
    for model, target in ((REGRESSORS[0], y), (CLASSIFIERS[0], y > 0)):
        fitted = clone(model).fit(X, target)
        mk.save(fitted, tmp_path / "model.skops")
        loaded = mk.load(tmp_path / "model.skops")
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
        assert loaded.view_presence_ == fitted.view_presence_
        np.testing.assert_allclose(loaded.column_importance_, fitted.column_importance_)


def test_in_searches_and_pipelines():
    X, y = problem()
    regressor = mk.MultiKernelRegressor(BANK, "alignf", missing="ignore")
    model = make_pipeline(StandardScaler(), regressor)
    scores = cross_val_score(model, X, y, cv=3)
    assert np.isfinite(scores).all() and scores.mean() > 0.2
    assert clone(model)[-1].missing == "ignore"


def test_intervals_and_deviations():
    X, y = problem()
    model = mk.MultiKernelRegressor(BANK, missing="ignore").fit(X, y)
    _, std = model.predict(np.vstack([X[:5], np.full((1, 6), NAN)]), return_std=True)
    # Nothing is known about the last sample: its deviation is near that of the targets.
    assert np.isfinite(std).all() and std[-1] > std[:5].max()
    assert std[-1] == pytest.approx(y.std(), rel=0.5)
    low, high = model.predict_interval(X)
    assert np.mean((y >= low) & (y <= high)) >= 0.85


def test_float32():
    X, y = problem()
    double = mk.MultiKernelRegressor(BANK, "uniform", missing="ignore").fit(X, y)
    single = clone(double).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), double.predict(X), atol=1e-3)


def test_tags_follow_the_parameter():
    assert get_tags(mk.MultiKernelClassifier(missing="ignore")).input_tags.allow_nan
    assert not get_tags(mk.MultiKernelClassifier()).input_tags.allow_nan


def test_errors_name_columns_views_and_rows():
    X, y = problem()
    message = (
        r"Input X contains NaN: 92 missing values in 6 columns \(0, 1, 2, 3, 4, ...\)"
        r", first in rows .*Incomplete views: 'a' \(16 samples, 15 of them without any value\), 'b'"
        r" .*missing='ignore'.*SimpleImputer"
    )
    with pytest.raises(ValueError, match=message):
        mk.MultiKernelRegressor(BANK).fit(X, y)
    model = mk.MultiKernelRegressor(BANK).fit(*problem(gaps=False))
    one = np.zeros((3, 6))
    one[2, 4] = NAN
    with pytest.raises(
        ValueError, match=r"NaN: 1 missing value in 1 column \(4\), first in row 2\."
    ):
        model.predict(one)
    with pytest.raises(ValueError, match=r"NaN: 1 missing value in 1 column \(4\)"):
        model.predict(sp.csr_matrix(one))
    with pytest.raises(ValueError, match=r"NaN.*Fill them in, for example"):
        mk.MultiKernelOneClass(BANK).fit(X)


def test_names_of_columns_in_errors():
    pd = pytest.importorskip("pandas")
    X, y = problem(gaps=False)
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    frame.loc[3, "w"] = NAN
    with pytest.raises(ValueError, match=r"in 1 column \('w'\), first in row 3\."):
        mk.MultiKernelRegressor().fit(frame, y)
    bank = mk.per_view({"left": (mk.Linear(), ["u", "v"]), "right": (mk.Gaussian(), ["w"])})
    model = mk.MultiKernelRegressor(bank, missing="ignore").fit(frame, y)
    assert model.view_presence_ == {"left": 1.0, "right": pytest.approx(59 / 60)}
    assert np.isfinite(model.predict(frame)).all()


def test_a_view_that_no_new_sample_has():
    pd = pytest.importorskip("pandas")
    X, y = problem()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    bank = mk.per_view({"left": list("uvw"), "right": list("xyz")})
    model = mk.MultiKernelRegressor(bank, missing="ignore").fit(frame[:40], y[:40])
    left = frame[list("uvw")][40:]
    with pytest.raises(ValueError, match=r"X lacks 3 columns .*\('x', 'y', 'z'\).*X\.reindex"):
        model.predict(left)
    emptied = frame[40:].assign(x=NAN, y=NAN, z=NAN)
    found = model.predict(left.reindex(columns=model.feature_names_in_))
    np.testing.assert_array_equal(found, model.predict(emptied))
    shares = model.predict(emptied, split=True)
    of_right = [name.startswith("right") for name in model.kernel_names_]
    np.testing.assert_allclose(shares[:, of_right], 0.0, atol=1e-9)
    # Categories: the codes do not come first with an error of their own.
    coded = frame.assign(v=pd.Categorical(np.where(frame["u"] > 0, "a", "b")))
    with pytest.raises(ValueError, match=r"X lacks 1 column .*\('v'\).*X\.reindex"):
        mk.MultiKernelRegressor(missing="ignore").fit(coded, y).predict(frame.drop(columns="v"))


def test_inputs_in_which_nothing_can_be_ignored():
    X, y = problem(gaps=False)
    with pytest.raises(ValueError, match="dense X"):
        mk.MultiKernelRegressor(BANK, missing="ignore").fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="numeric columns"):
        mk.MultiKernelRegressor("precomputed", missing="ignore").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="numeric columns"):
        ids = mk.sample_ids(60)
        mk.MultiKernelRegressor(mk.precomputed([X @ X.T]), missing="ignore").fit(ids, y)
    with pytest.raises(ValueError, match="missing"):
        mk.MultiKernelRegressor(missing="zero").fit(X, y)
    infinite = X.copy()
    infinite[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        mk.MultiKernelRegressor(missing="ignore").fit(infinite, y)
    X[:, 3:] = NAN
    with pytest.raises(ValueError, match="View 'b': no training sample"):
        mk.MultiKernelRegressor(BANK, missing="ignore").fit(X, y)


@pytest.mark.parametrize("weighting", ["loo", mk.LeaveOneOut()])
def test_centring_over_a_view_does_not_give_left_out_targets_away(weighting):
    """Learned weights grew to 900,000 in the first fold, and its score fell to -1.3."""
    X, y = problem()
    model = make_pipeline(
        StandardScaler(), mk.MultiKernelRegressor(BANK, weighting, missing="ignore")
    )
    assert np.all(cross_val_score(model, X, y, cv=3) > 0.2)
    kernel_weights = model.fit(X, y)[-1].kernel_weights_
    np.testing.assert_allclose(kernel_weights, kernel_weights[0], rtol=1e-6)
    full, y = problem(gaps=False)
    assert np.ptp(model.fit(full, y)[-1].kernel_weights_) > 0


def test_standard_deviations_count_what_a_sample_lacks():
    """They grow by what the missing view might have said, and are near the errors made."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    y = np.sin(a[:, 0]) + b[:, 0] + b[:, 1] + 0.1 * rng.normal(size=300)
    X = np.hstack([a, b])
    lost = rng.random(300) < 0.3
    X[lost, 3:] = np.nan
    bank = mk.per_view({"a": slice(0, 3), "b": slice(3, 6)})
    model = mk.MultiKernelRegressor(bank, missing="ignore").fit(X[:200], y[:200])
    mean, std = model.predict(X[200:], return_std=True)
    without = lost[200:]
    assert std[without].mean() > 1.2 * std[~without].mean()
    errors = np.sqrt(np.mean((y[200:] - mean)[without] ** 2))
    assert 0.7 < errors / np.sqrt(np.mean(std[without] ** 2)) < 1.3
    # The answers of complete samples are those of the closed form alone.
    again = model.predict(X[200:][~without], return_std=True)[1]
    np.testing.assert_allclose(again, std[~without])
