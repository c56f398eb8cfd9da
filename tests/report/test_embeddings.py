"""The picture of samples by their coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

import multikernel as mk

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

X, y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return mk.ConsensusKernel(n_components=3).fit(X)


def drawn(ax):
    return np.vstack([points.get_offsets() for points in ax.collections])


def test_classes_have_colours_and_a_legend(model):
    _, ax = plt.subplots()
    assert mk.plot.embedding(model, X, np.array(["a", "b", "c"])[y], ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    assert_allclose(drawn(ax), model.transform(X)[:, :2])
    share = 100 * model.explained_variance_ratio_[1]
    assert ax.get_ylabel() == f"component 2 ({share:.0f} %)"


def test_numbers_have_a_scale_and_samples_without_labels_one_colour(model):
    ax = mk.plot.embedding(model, X, X[:, 0], components=(2, 0))
    assert ax.get_legend() is None and len(ax.figure.axes) == 2
    assert_allclose(drawn(ax), model.transform(X)[:, [2, 0]])
    ax = mk.plot.embedding(model, X[:10])
    assert len(drawn(ax)) == 10 and ax.get_legend() is None


def test_features_have_no_shares():
    features = mk.KernelFeatures(n_components=2).fit(X)
    assert mk.plot.embedding(features, X, y).get_xlabel() == "component 1"


def test_bad_input(model):
    with pytest.raises(TypeError, match="plots the output of transform"):
        mk.plot.embedding(mk.MultiKernelClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="one value for each of the 150 samples"):
        mk.plot.embedding(model, X, y[:10])
    with pytest.raises(ValueError, match="from 0 to 2; got 3"):
        mk.plot.embedding(model, X, components=(0, 3))
    with pytest.raises(ValueError, match="n_components=2 or more"):
        mk.plot.embedding(mk.ConsensusKernel(n_components=1).fit(X), X)
