"""Kernel k-means, against k-means on the features of a linear kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.solvers.kernel_kmeans import kernel_kmeans, refine


def linear(X):
    return (
        mk.KernelBank([mk.Linear()])
        .plan(X)
        .grams(X, budget=MemoryBudget.of(None))
        .combine(np.ones(1))
    )


def inertia_of(X, labels):
    return sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in set(labels))


@pytest.mark.parametrize("seed", range(5))
def test_same_path_as_kmeans_from_the_same_start(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    labels = rng.integers(4, size=80)
    centers = np.stack([X[labels == c].mean(axis=0) for c in range(4)])
    oracle = KMeans(4, init=centers, n_init=1, algorithm="lloyd", tol=0.0).fit(X)
    found = refine(linear(X), labels, 4, max_iter=300)
    assert_array_equal(found.labels, oracle.labels_)
    assert_allclose(found.inertia, oracle.inertia_, rtol=1e-10)
    assert_allclose(found.inertia, inertia_of(X, found.labels), rtol=1e-10)


def test_inertia_never_rises():
    X = np.random.default_rng(0).normal(size=(150, 2))
    gram = mk.gaussians([1.0]).plan(X).grams(X, budget=MemoryBudget.of(None)).combine(np.ones(1))
    found = refine(gram, np.arange(150) % 7, 7, max_iter=300)
    assert len(found.history) > 3
    assert np.all(np.diff(found.history) <= 1e-12)


def test_starts_find_separate_blobs():
    X, y = make_blobs(90, centers=5, cluster_std=0.1, center_box=(-20, 20), random_state=1)
    found = kernel_kmeans(linear(X), 5, n_init=5, max_iter=100, rng=np.random.default_rng(0))
    assert len({(a, b) for a, b in zip(found.labels, y, strict=True)}) == 5


def test_empty_clusters_get_a_sample():
    X = np.random.default_rng(0).normal(size=(30, 2))
    found = refine(linear(X), np.zeros(30, dtype=int), 4, max_iter=100)
    assert set(found.labels) == {0, 1, 2, 3}


@pytest.mark.parametrize("n_clusters", [1, 3, 6])
def test_copies_of_samples(n_clusters):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 3, axis=0)
    rng = np.random.default_rng(0)
    found = kernel_kmeans(linear(X), n_clusters, n_init=3, max_iter=100, rng=rng)
    assert set(found.labels) == set(range(n_clusters))
    assert_allclose(found.inertia, 3.0 if n_clusters == 1 else 0.0, atol=1e-12)
