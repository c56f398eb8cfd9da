"""Kernel k-means: clusters around means in feature space.

The squared distance of a sample from the mean of cluster c, which has ``n_c`` samples, is

    K(x, x) - 2/n_c sum_{j in c} K(x, x_j) + 1/n_c^2 sum_{j, l in c} K(x_j, x_l)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..grams.protocol import CombinedGram
from .components import keep_matrix

#: A run stops when a step lowers the objective by less than this fraction; a sample changes its
#: cluster only for a gain above this fraction of ``K(x, x)``.
LEAST_DECREASE = 1e-12


@dataclass(frozen=True)
class Clusters:
    """A partition of the sample.

    Attributes
    ----------
    labels : array of shape (n,)
        The cluster of each sample, 0 to ``n_clusters - 1``.
    inertia : float
        The sum of squared distances from the samples to the means of their clusters.
    n_iter : int
        Number of times the distances to all means were computed.
    history : list of float
        The inertia after each step; it never increases.
    """

    labels: np.ndarray
    inertia: float
    n_iter: int
    history: list[float] = field(default_factory=list)

    @property
    def means(self) -> np.ndarray:
        """Coefficients (n, n_clusters) of the cluster means."""
        return membership(self.labels, int(self.labels.max()) + 1)


def kernel_kmeans(
    gram: CombinedGram, n_clusters: int, *, n_init: int, max_iter: int, rng: np.random.Generator
) -> Clusters:
    """The best of ``n_init`` runs from k-means++ starts (Arthur & Vassilvitskii 2007)."""
    keep_matrix(gram)
    diagonal = gram.diagonal()
    runs = [
        refine(gram, start(gram, diagonal, n_clusters, rng), n_clusters, max_iter=max_iter)
        for _ in range(n_init)
    ]
    return min(runs, key=lambda run: run.inertia)


def start(
    gram: CombinedGram, diagonal: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Labels by the nearest of ``n_clusters`` samples, drawn as in k-means++."""
    nearest, labels = np.full(gram.n, np.inf), np.zeros(gram.n, dtype=np.intp)
    chosen = int(rng.integers(gram.n))
    taken = np.zeros(gram.n, dtype=bool)
    for c in range(n_clusters):
        if c > 0:
            odds = np.where(taken, 0.0, nearest)
            if odds.sum() <= 0:  # the rest are copies of samples drawn before
                odds = np.where(taken, 0.0, 1.0)
            chosen = int(rng.choice(gram.n, p=odds / odds.sum()))
        taken[chosen] = True
        column = gram.columns(np.array([chosen]))[:, 0]
        distances = np.maximum(diagonal - 2.0 * column + diagonal[chosen], 0.0)
        closer = distances < nearest
        nearest, labels = np.where(closer, distances, nearest), np.where(closer, c, labels)
        labels[chosen] = c  # copies of one sample may start several clusters
    return labels


def refine(gram: CombinedGram, labels: np.ndarray, n_clusters: int, *, max_iter: int) -> Clusters:
    """Lloyd's iteration from these labels: the nearest mean for every sample, then new means."""
    diagonal, history = gram.diagonal(), []
    labels, n_iter = np.array(labels), 0
    inertia = np.inf
    while True:
        n_iter += 1
        labels = without_empty(labels, n_clusters, diagonal, gram)
        distances = distances_to_means(gram, labels, n_clusters, diagonal)
        own = distances[np.arange(gram.n), labels]
        before, inertia = inertia, float(own.sum())
        history.append(inertia)
        # A sample moves only if another mean is nearer by more than rounding.
        nearest = np.argmin(distances, axis=1)
        gain = own - distances[np.arange(gram.n), nearest]
        moves = gain > LEAST_DECREASE * np.abs(diagonal)
        stalled = before - inertia <= LEAST_DECREASE * abs(inertia)
        if n_iter >= max_iter or not moves.any() or stalled:
            return Clusters(labels, inertia, n_iter, history)
        labels = np.where(moves, nearest, labels)


def membership(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Column c holds ``1 / n_c`` for the samples of cluster c; shape (n, n_clusters)."""
    Z = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
    return np.asarray(Z / np.maximum(Z.sum(axis=0), 1.0))


def distances_to_means(
    gram: CombinedGram, labels: np.ndarray, n_clusters: int, diagonal: np.ndarray
) -> np.ndarray:
    """Squared distances (n, n_clusters) of the samples from the means of the clusters."""
    Z = membership(labels, n_clusters)
    KZ = gram.matvec(Z)
    return np.asarray(diagonal[:, None] - 2.0 * KZ + np.einsum("ic,ic->c", Z, KZ))


def without_empty(
    labels: np.ndarray, n_clusters: int, diagonal: np.ndarray, gram: CombinedGram
) -> np.ndarray:
    """The labels after moving a sample to every empty cluster: the one farthest from its mean.

    It comes from a cluster of several samples, whose inertia decreases.
    """
    for empty in np.flatnonzero(np.bincount(labels, minlength=n_clusters) == 0):
        distances = distances_to_means(gram, labels, n_clusters, diagonal)
        own = distances[np.arange(gram.n), labels]
        alone = np.bincount(labels, minlength=n_clusters)[labels] == 1
        labels = labels.copy()
        labels[int(np.argmax(np.where(alone, -np.inf, own)))] = empty
    return labels
