"""Pictures of shares and of probabilities show the numbers of the model."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import multikernel as mk

BANK = mk.per_view({"left": slice(0, 3), "right": slice(3, 5)})


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def sample(rng):
    y = np.tile([0, 1, 2], 40)
    return rng.normal(size=(120, 5)) + y[:, None] * [1.0, 0.0, 0.0, 0.8, 0.0], y


def heights(ax):
    return [np.array([bar.get_height() for bar in bars]) for bars in ax.containers]


def test_shares_add_up_to_the_decision_value(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "alignf").fit(X, y)
    ax = mk.plot.sample_shares(model, X[:20], output=1, order="given")
    decision = model.decision_function(X[:20])[:, 1] - model.intercept_[1]
    np.testing.assert_allclose(np.sum(heights(ax), axis=0), decision, atol=1e-12)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), decision)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"left", "right", "sum"}
    sorted_ax = mk.plot.sample_shares(model, X, most=10)
    assert len(heights(sorted_ax)[0]) == 10
    assert np.all(np.diff(sorted_ax.lines[0].get_ydata()) >= 0)
    assert sorted_ax.get_title() == "10 of 120 samples"


def test_shares_of_groups_kernels_and_regressors(sample):
    X, y = sample
    model = mk.MultiKernelRegressor(mk.gaussians([0.01] * 14), "uniform").fit(X, y)
    ax = mk.plot.sample_shares(model, X)
    assert len(ax.containers) == 12  # eleven kernels and the rest
    assert ax.get_ylabel() == "part of the prediction"
    grouped = mk.plot.sample_shares(model, X, plt.figure().gca(), groups={"a": [0, 1]})
    assert len(grouped.containers) == 2
    several = mk.MultiKernelRegressor(BANK, "uniform").fit(X, np.stack([y, -y], axis=1))
    assert "output 0" in mk.plot.sample_shares(several, X, output=0).get_ylabel()


def test_what_shares_refuse(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "uniform").fit(X, y)
    with pytest.raises(ValueError, match=r"output must be one of \[.*got 7"):
        mk.plot.sample_shares(model, X, output=7)
    with pytest.raises(ValueError, match="order must be"):
        mk.plot.sample_shares(model, X, order="name")
    with pytest.raises(TypeError, match="fitted multiple-kernel estimator"):
        mk.plot.sample_shares(object(), X)
    two = mk.MultiKernelClassifier(BANK, "uniform").fit(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="there is only one function, of class 1"):
        mk.plot.sample_shares(two, X, output=0)


def test_reliability_counts_what_happened(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "alignf").fit(X[::2], y[::2])
    ax = mk.plot.reliability(model, X[1::2], y[1::2], n_bins=4)
    P = model.predict_proba(X[1::2])
    hit = (y[1::2, None] == np.arange(3)).ravel()
    order = np.argsort(P.ravel(), kind="stable").reshape(4, -1)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), P.ravel()[order].mean(axis=1))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), hit[order].mean(axis=1))
    again = mk.plot.reliability(model, X[1::2], y[1::2], ax, label="again")
    assert again is ax and len(ax.lines) == 3  # one diagonal


def test_what_reliability_refuses(sample):
    X, y = sample
    model = mk.MultiKernelClassifier(BANK, "uniform").fit(X, y)
    with pytest.raises(ValueError, match=r"does not know: \[3\]"):
        mk.plot.reliability(model, X, np.where(y == 2, 3, y))
    with pytest.raises(ValueError, match="a class for each of the 120"):
        mk.plot.reliability(model, X, y[:5])
    with pytest.raises(ValueError, match="n_bins must be at least 1"):
        mk.plot.reliability(model, X, y, n_bins=0)
    with pytest.raises(TypeError, match="predict_proba; got MultiKernelRegressor"):
        mk.plot.reliability(mk.MultiKernelRegressor(BANK, "uniform").fit(X, y), X, y)


def test_a_report_shows_how_present_views_were(sample, tmp_path):
    """And what it costs, by predictions for samples that were held out."""
    X, y = sample
    X = X.copy()
    lacking = np.random.default_rng(0).permutation(len(X)) < 30
    X[lacking, :3] = np.nan
    for missing in ("ignore", "complete"):
        model = mk.MultiKernelClassifierCV(BANK, "uniform", Cs=[1.0], missing=missing).fit(X, y)
        page = mk.report.write_report(model, X, y, tmp_path / "page.html").read_text()
        assert "Missing views" in page and "75.0 %" in page and "accuracy of held-out" in page
        right = model.classes_[model.cv_predictions_.argmax(axis=1)] == y
        for those in (lacking, ~lacking):
            assert f">{right[those].mean():.3f}<" in page
        assert ("predicted by the others" in page) == (missing == "complete")
    regressor = mk.MultiKernelRegressor(BANK, "uniform", missing="ignore").fit(X, y)
    page = mk.report.write_report(regressor, X, y, tmp_path / "page.html").read_text()
    assert "R² of held-out predictions" in page
    two = mk.MultiKernelRegressor(BANK, "uniform", missing="ignore").fit(X, np.stack([y, y], 1))
    page = mk.report.write_report(two, X, np.stack([y, y], 1), tmp_path / "page.html").read_text()
    score = two.score(X[lacking], np.stack([y, y], 1)[lacking])
    assert "R² of predictions for the training samples" in page and f">{score:.3f}<" in page
    whole = mk.MultiKernelClassifier(BANK, "uniform", missing="ignore").fit(
        X[~lacking], y[~lacking]
    )
    page = mk.report.write_report(
        whole, X[~lacking], y[~lacking], tmp_path / "page.html"
    ).read_text()
    assert "Missing views" not in page
