"""KernelClustering: k-means and spectral clustering with a kernel learned without labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_wine, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import multikernel as mk

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
BANK = mk.gaussians([0.01, 0.1])


def test_kmeans_in_the_feature_space_of_the_consensus():
    model = mk.KernelClustering(3, BANK, random_state=0).fit(X)
    Z = mk.ConsensusKernel(BANK, n_components=None).fit_transform(X)
    oracle = KMeans(3, n_init=10, random_state=0).fit(Z)
    assert_allclose(model.inertia_, oracle.inertia_, rtol=1e-8)
    assert adjusted_rand_score(model.labels_, oracle.labels_) == 1.0
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_prediction_is_the_nearest_mean():
    train, new = X[::2], X[1::2]
    model = mk.KernelClustering(3, BANK, random_state=0).fit(train)
    assert_array_equal(model.predict(train), model.labels_)
    embedding = mk.ConsensusKernel(BANK, n_components=None).fit(train)
    Z, Z_new = embedding.transform(train), embedding.transform(new)
    means = np.stack([Z[model.labels_ == c].mean(axis=0) for c in range(3)])
    distances = ((Z_new[:, None] - means) ** 2).sum(axis=2)
    assert_array_equal(model.predict(new), distances.argmin(axis=1))


def test_spectral_clustering_of_the_graph_of_neighbours():
    points, halves = make_moons(200, noise=0.05, random_state=0)
    bank = mk.gaussians([1.0, 10.0])
    model = mk.KernelClustering(2, bank, method="spectral", random_state=0).fit(points)
    assert adjusted_rand_score(halves, model.labels_) == 1.0
    assert not hasattr(model, "inertia_") and not hasattr(model, "predict")
    with pytest.raises(AttributeError) as caught:
        model.predict(points)
    assert "no rule for new samples" in str(caught.value.__cause__)
    # The same through scikit-learn alone.
    K = mk.LearnedKernel(mk.ConsensusKernel(bank).fit(points), points)(points)
    distances = np.sqrt(np.maximum(np.diag(K)[:, None] - 2 * K + np.diag(K), 0.0))
    near = np.argsort(distances, axis=1)[:, 1:11]
    graph = np.zeros((200, 200))
    graph[np.arange(200)[:, None], near] = 1.0
    graph = np.maximum(graph, graph.T)
    oracle = SpectralClustering(2, affinity="precomputed", random_state=0).fit(graph)
    assert adjusted_rand_score(oracle.labels_, model.labels_) == 1.0


@pytest.mark.parametrize("method", ["kmeans", "spectral"])
def test_seeds_and_files(method, tmp_path):
    first = mk.KernelClustering(3, BANK, method=method, random_state=3).fit(X)
    second = mk.KernelClustering(3, BANK, method=method, random_state=3)
    assert_array_equal(second.fit_predict(X), first.labels_)
    loaded = mk.load(mk.save(first, tmp_path / "m.skops"))
    assert_array_equal(loaded.labels_, first.labels_)
    if method == "kmeans":
        assert_array_equal(loaded.predict(X), first.labels_)


def test_one_cluster_and_as_many_as_samples():
    few = X[:12]
    assert set(mk.KernelClustering(1, BANK).fit(few).labels_) == {0}
    model = mk.KernelClustering(12, BANK, random_state=0).fit(few)
    assert sorted(model.labels_) == list(range(12))
    assert_allclose(model.inertia_, 0.0, atol=1e-10)


def test_bad_input():
    with pytest.raises(ValueError, match="n_clusters=13 must not exceed the number of samples"):
        mk.KernelClustering(13, BANK).fit(X[:12])
    with pytest.raises(ValueError, match="needs targets, and KernelClustering has none"):
        mk.KernelClustering(2, BANK, "alignf").fit(X)
    with pytest.raises(ValueError, match="method"):
        mk.KernelClustering(2, BANK, method="agglomerative").fit(X)
    with pytest.raises(ValueError, match="Every kernel is constant"):
        mk.KernelClustering(2, BANK).fit(np.ones((5, 2)))
