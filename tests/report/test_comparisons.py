"""Pictures of several models side by side."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.bounds import learned_block_norms
from multikernel.report import comparisons

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1, -1)


BANK = mk.per_feature(mk.Linear())


def fit(X, y, p):
    return mk.MultiKernelClassifier(BANK, mk.LpNorm(p)).fit(X, y)


def test_bars_are_shares_of_the_weights(sample):
    X, y = sample
    models = {f"p = {p}": fit(X, y, p) for p in (1, 1.5, 2)}
    ax = mk.plot.compare_weights(models)
    bars = [[bar.get_width() for bar in group] for group in ax.containers]
    for found, model in zip(bars, models.values(), strict=True):
        assert_allclose(found, model.kernel_weights_ / model.kernel_weights_.sum())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == list(models)
    assert [text.get_text() for text in ax.get_yticklabels()] == models["p = 2"].kernel_names_


def test_bars_of_repetitions_are_means_with_errors(sample):
    X, y = sample
    parts = [fit(X[i::3], y[i::3], 1.2) for i in range(3)]
    shares = np.stack([m.kernel_weights_ / m.kernel_weights_.sum() for m in parts])
    ax = mk.plot.compare_weights({"p = 1.2": parts})
    bars = next(c for c in ax.containers if hasattr(c, "patches"))
    assert_allclose([bar.get_width() for bar in bars], shares.mean(axis=0))
    (segments,) = (c.get_segments() for c in ax.collections)
    lengths = [abs(s[1][0] - s[0][0]) for s in segments]
    assert_allclose(lengths, 2 * shares.std(axis=0, ddof=1) / np.sqrt(3))


def test_only_the_largest_are_shown_in_the_order_of_the_bank(sample):
    X, y = sample
    model = fit(X, y, 1.5)
    ax = mk.plot.compare_weights({"p": model}, most=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == model.kernel_names_[:2]
    assert ax.get_title() == "the 2 largest of 4 kernels"


def test_curves_are_shares_of_the_block_norms(sample):
    X, y = sample
    fits = {n: (fit(X[:n], y[:n], 1.5), X[:n]) for n in (30, 90)}
    ax = mk.plot.block_norms(fits)
    drawn = np.array([c.lines[0].get_ydata() for c in ax.containers])
    for j, (model, part) in enumerate(fits.values()):
        norms = learned_block_norms(model, part)[0]
        assert_allclose(drawn[:, j], norms / norms.sum())
    assert_allclose(drawn.sum(axis=0), 1.0)
    listed = mk.plot.block_norms({n: [cell, cell] for n, cell in fits.items()})
    assert_allclose([c.lines[0].get_ydata() for c in listed.containers], drawn)


def test_scores_against_size_and_norm():
    scores = {"p = 1": {50: [0.7, 0.8], 200: [0.9, 0.8]}, "p = 2": {50: 0.8, 200: 0.6}}
    ax = mk.plot.scores_by_size(scores, measure="accuracy")
    assert_allclose(ax.containers[0].lines[0].get_ydata(), [0.75, 0.85])
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "accuracy"
    by_norm = {"n = 50": {1.0: [0.7, 0.8], 4 / 3: [0.9, 0.8], float("inf"): [0.5, 0.6]}}
    ax = mk.plot.scores_by_norm(by_norm)
    line = ax.containers[0].lines[0]
    assert_allclose(line.get_xdata(), [0.0, 0.25, 1.0])
    best = ax.lines[-1]
    assert_allclose([*best.get_xdata(), *best.get_ydata()], [0.25, 0.85])


def test_norms_that_would_overlap_are_not_named():
    _, ax = plt.subplots()
    comparisons.norm_axis(ax, [1.0, 1.01, 1.02, 2.0])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2"]


def test_axes_are_taken(sample):
    X, y = sample
    model = fit(X, y, 1.5)
    _, ax = plt.subplots()
    assert mk.plot.compare_weights({"a": model}, ax) is ax
    assert mk.plot.block_norms({90: (model, X)}, ax) is ax
    assert mk.plot.scores_by_size({"a": {3: 0.1}}, ax) is ax
    assert mk.plot.scores_by_norm({"a": {1.0: 0.1}}, ax) is ax


def test_refusals(sample):
    X, y = sample
    model = fit(X, y, 1.5)
    other = mk.MultiKernelClassifier(mk.gaussians([1.0, 2.0])).fit(X, y)
    with pytest.raises(ValueError, match="the same kernels in the same order"):
        mk.plot.compare_weights({"a": model, "b": other})
    with pytest.raises(TypeError, match="mapping from labels to models or scores"):
        mk.plot.compare_weights([model])
    with pytest.raises(TypeError, match="an empty one"):
        mk.plot.scores_by_size({})
    with pytest.raises(ValueError, match="list of models is empty"):
        mk.plot.compare_weights({"a": []})
    with pytest.raises(TypeError, match="not fitted"):
        mk.plot.compare_weights({"a": mk.MultiKernelClassifier()})
    with pytest.raises(ValueError, match="learned_block_norms needs the sample"):
        mk.plot.block_norms({50: (model, X[:50])})
