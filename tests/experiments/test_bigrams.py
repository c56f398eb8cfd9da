"""Counts of pairs of words, and l1 learning on them against the general solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from experiments import bigrams


def sample(n=70, p=12, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.poisson(0.7, size=(n, p)).astype(float)
    score = V[:, 0] - V[:, 1] + 0.5 * V[:, 2] - 0.6 + 0.5 * rng.normal(size=n)
    return V, np.where(score > 0, 1.0, -1.0), score


def test_counts_come_from_the_training_texts_alone():
    texts = ["a b a b", "b c b c b c", "x y x y x y x y", "a b, c"]
    train = np.array([0, 1])
    V = bigrams.count_bigrams(texts, train, 4)
    # most frequent first, ties in alphabetical order: b c, a b, c b, b a
    np.testing.assert_array_equal(
        V.toarray(), [[0, 2, 0, 1], [3, 0, 2, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    )
    other = bigrams.count_bigrams([*texts[:2], "b c", "nothing"], train, 4)
    np.testing.assert_array_equal(other.toarray()[:2], V.toarray()[:2])
    some = bigrams.count_bigrams(texts, train, 4, np.array([3, 1]))
    np.testing.assert_array_equal(some.toarray(), V.toarray()[[3, 1]])


def test_traces_are_one_on_the_training_texts():
    V, _, _ = sample()
    V[:30, 5] = 0.0  # a pair that the training texts do not have
    train = np.arange(30)
    U = bigrams.trace_one(sp.csr_matrix(V), train).toarray()
    traces = np.sum(U[train] ** 2, axis=0)
    np.testing.assert_allclose(np.delete(traces, 5), 1.0)
    assert np.all(U[:, 5] == 0.0)


def test_the_path_of_machines_is_that_of_l1_learning():
    """Every level is the general problem for C = ||beta||_1 / l."""
    V, y, _ = sample()
    everyone = np.arange(len(y))
    U = bigrams.trace_one(sp.csr_matrix(V), everyone)
    largest = np.abs(U.T @ (y - y.mean())).max()
    parts = [0.5, 0.2, 0.05]
    for part, found in zip(parts, bigrams.sparse_machine_path(U, y, parts), strict=True):
        size = np.abs(found.slopes).sum()
        model = mk.MultiKernelClassifier(
            mk.per_feature(mk.Linear()),
            mk.L1(tol=1e-7),
            C=size / (part * largest),
            center=False,
            normalize="trace",
        ).fit(V, y)
        assert found.gap < 1e-9 and found.weights.sum() == pytest.approx(1.0)
        hinge = np.maximum(0.0, 1.0 - y * found(U)).sum()
        assert model.objective_ == pytest.approx(0.5 * size**2 + model.C * hinge, rel=1e-9)
        # A flat piece of the loss may leave the intercept open; and where margins alone pin the
        # function down, weights that are a little off give the same one.
        decisions = model.decision_function(V) - model.intercept_
        np.testing.assert_allclose(decisions, found(U) - found.intercept, atol=1e-8)


def test_the_path_of_the_lasso_is_that_of_l1_learning():
    """Every level is the general problem for ridge = l / ||beta||_1."""
    V, _, y = sample()
    everyone = np.arange(len(y))
    U = bigrams.trace_one(sp.csr_matrix(V), everyone)
    largest = np.abs(U.T @ (y - y.mean())).max()
    parts = [0.6, 0.3, 0.05]
    for part, found in zip(parts, bigrams.sparse_ridge_path(U, y, parts), strict=True):
        size = np.abs(found.slopes).sum()
        model = mk.MultiKernelRegressor(
            mk.per_feature(mk.Linear()),
            mk.L1(tol=1e-8),
            alpha=part * largest / size,
            center=False,
            normalize="trace",
        ).fit(V, y)
        assert found.gap < 1e-3
        np.testing.assert_allclose(model.predict(V), found(U), atol=2e-3)
        np.testing.assert_allclose(model.kernel_weights_, found.weights, atol=5e-3)


def test_gaps_are_those_of_the_definition():
    V, _, y = sample()
    U = bigrams.trace_one(sp.csr_matrix(V), np.arange(len(y)))
    slopes = np.random.default_rng(1).normal(size=V.shape[1])
    r = y - U @ slopes
    r = r - r.mean()
    t, m = np.abs(slopes).sum(), np.abs(U.T @ r).max()
    a = m / t
    target = r + U @ slopes  # centred up to the intercept
    primal = 0.5 * a * t**2 + 0.5 * r @ r
    dual = r @ target - 0.5 * r @ r - m**2 / (2 * a)
    assert bigrams.squared_gap(U, r, slopes) == pytest.approx((primal - dual) / primal)


def test_real_texts(requires_data):
    requires_data("sentiment_kitchen", "reuters_modapte")
    found = bigrams.load("kitchen")
    assert len(found.texts) == 2000 and found.train is None
    assert set(found.ratings) == {1.0, 2.0, 4.0, 5.0}
    np.testing.assert_array_equal(found.ratings > 3, found.labels > 0)
    stories = bigrams.load("acq")
    assert len(stories.texts) == 12902 and len(stories.train) == 9603
    assert np.sum(stories.labels > 0) == 2369
    np.testing.assert_array_equal(stories.labels, stories.ratings)
