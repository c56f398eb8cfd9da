"""The study of norms and sample sizes: the protocol by hand, table and pictures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

import multikernel as mk
from multikernel.bounds import AssumptionError, learned_block_norms
from multikernel.study_norms import NormStudy, norm_study

BANK = mk.per_feature(mk.Linear())


def sample(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4))
    return X, np.where(X[:, 0] + 0.3 * X[:, 1] + 0.4 * rng.standard_normal(n) > 0, "a", "b")


@pytest.fixture(scope="module")
def study() -> NormStudy:
    return norm_study(
        BANK, *sample(), norms=(2, 1, 4 / 3), sizes=(20, 60), grid=(0.1, 1.0), repetitions=2
    )


def test_the_protocol_done_by_hand(study):
    X, y = sample()
    pool, held = train_test_split(np.arange(120), train_size=60, stratify=y, random_state=1)
    choosing, test = train_test_split(held, train_size=30, stratify=y[held], random_state=1)
    rows, _ = train_test_split(pool, train_size=20, stratify=y[pool], random_state=1)
    for j, p in enumerate((1.0, 4 / 3, 2.0)):
        tried = [
            mk.MultiKernelClassifier(BANK, mk.LpNorm(p), C=C).fit(X[rows], y[rows])
            for C in (0.1, 1.0)
        ]
        best = max(tried, key=lambda model: model.score(X[choosing], y[choosing]))
        assert study.costs[0, j, 1] == best.C
        assert study.scores[0, j, 1] == best.score(X[test], y[test])
        weights = best.kernel_weights_ / best.kernel_weights_.sum()
        assert_allclose(study.weights[0, j, 1], weights)
        norms = learned_block_norms(best, X[rows])[0]
        assert_allclose(study.block_norms[0, j, 1], norms)


def test_shapes_and_order(study):
    assert study.norms == (1.0, 4 / 3, 2.0) and study.sizes == (20, 60)
    assert study.scores.shape == study.costs.shape == study.gaps.shape == (2, 3, 2)
    assert study.weights.shape == study.block_norms.shape == (2, 3, 2, 4)
    assert np.all(study.gaps <= 1e-3)
    assert_allclose(study.weights.sum(axis=-1), 1.0)
    assert_allclose(study.weights[:, 2], 0.25)  # p = 2 is the sum
    assert study.measure == "accuracy" and len(study.names) == 4


def test_equal_seeds_give_equal_studies(study):
    again = norm_study(
        BANK, *sample(), norms=(1, 4 / 3, 2), sizes=(60, 20), grid=(1.0, 0.1), repetitions=2
    )
    assert np.array_equal(again.scores, study.scores)


def test_regression_and_default_sizes():
    X, y = make_friedman1(80, random_state=0)
    found = norm_study(BANK, X, y, norms=(1, float("inf")), grid=(0.1, 1.0), repetitions=1)
    assert found.sizes == (10, 20, 40) and found.measure == "R²"
    assert found.scores.max() < 1
    named = norm_study(
        None, X, y, norms=[2], sizes=[40], repetitions=1, scoring="neg_mean_absolute_error"
    )
    assert named.measure == "neg_mean_absolute_error" and named.scores.max() < 0


def test_several_classes_and_matrices():
    X, _ = sample(60)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    K = np.stack([np.outer(x, x) for x in X.T])
    found = norm_study(
        mk.precomputed(K), mk.sample_ids(60), y, norms=[1.5], sizes=[30], grid=1.0, repetitions=1
    )
    plain = norm_study(BANK, X, y, norms=[1.5], sizes=[30], grid=1.0, repetitions=1)
    # Shapes are one row of kernels: block norms of the three machines are put together.
    assert found.block_norms.shape == (1, 1, 1, 4)
    assert_allclose(found.scores, plain.scores)
    assert_allclose(found.block_norms, plain.block_norms, rtol=1e-2)


def test_table_and_text(study):
    rows = study.table()
    assert len(rows) == 6 and rows[0]["n"] == 20 and rows[0]["p"] == 1.0
    assert rows[0]["score"] == pytest.approx(study.scores[0, 0].mean())
    lines = str(study).splitlines()
    assert len(lines) == 4 and "p = 1.33" in lines[1]
    assert study.best_p(60) == study.norms[int(study.scores[1].mean(axis=1).argmax())]
    assert 1 <= study.suggested_p() <= 2


def test_pictures(study):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    for draw in (
        study.plot_weights,
        study.plot_block_norms,
        study.plot_scores_by_size,
        study.plot_scores_by_norm,
        study.plot_bound_factor,
    ):
        _, ax = plt.subplots()
        assert draw(ax=ax) is ax and ax.has_data()
        assert draw() is not ax
    ax = study.plot_weights(n=20)
    bars = [c for c in ax.containers if hasattr(c, "patches")]
    assert_allclose(
        [[bar.get_width() for bar in group] for group in bars], study.weights[0].mean(axis=1)
    )
    curves = study.plot_block_norms(p=2.0).containers
    assert_allclose(sum(c.lines[0].get_ydata() for c in curves), 1.0)
    plt.close("all")


def test_norms_that_are_close_are_told_apart(study):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    close = replace(study, norms=(1.0, 1.333, 4 / 3))
    legend = close.plot_weights().get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["p = 1", "p = 1.333", "p = 1.3333"]
    assert "p = 1.3333" in str(close)
    matplotlib.pyplot.close("all")


def test_refusals(study):
    X, y = sample(40)
    with pytest.raises(ValueError, match="at most 20, the samples that are not held out; got 30"):
        norm_study(BANK, X, y, sizes=[30])
    with pytest.raises(AssumptionError, match=r"norms must be a number in \[1, inf\]"):
        norm_study(BANK, X, y, norms=[0.5])
    with pytest.raises(ValueError, match="norms is empty"):
        norm_study(BANK, X, y, norms=[])
    with pytest.raises(ValueError, match="sizes is empty"):
        norm_study(BANK, X, y, sizes=[])
    with pytest.raises(ValueError, match="held_out must be between 0 and 1"):
        norm_study(BANK, X, y, held_out=1.0)
    with pytest.raises(ValueError, match=r"mk.precomputed\(K\)"):
        norm_study("precomputed", X, y)
    with pytest.raises(ValueError, match="grid must be one or more positive"):
        norm_study(BANK, X, y, grid=[-1.0])
    with pytest.raises(ValueError, match="one of the sizes"):
        study.plot_weights(n=7)
    with pytest.raises(ValueError, match="one of the norms"):
        study.plot_block_norms(p=7)
