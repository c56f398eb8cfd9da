"""Clusters of samples in the feature space of a kernel that is learned without labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..grams.protocol import CombinedGram, Expansion, Grams
from ..solvers.components import keep_matrix
from ..solvers.kernel_kmeans import Clusters, kernel_kmeans
from ..weighting.neighbours import ROUNDINGS_OF_DISTANCES, nearest, neighbour_graph
from .missing import MISSING
from .unlabelled import UnlabelledEstimator

#: Rows of the learned kernel per block in the search for neighbours.
SEARCH_ROWS = 256


def _by_means(estimator: KernelClustering) -> bool:
    if estimator.method == "kmeans":
        return True
    raise AttributeError(
        "Spectral clustering has no rule for new samples. Use method='kmeans', or fit_predict."
    )


class KernelClustering(ClusterMixin, UnlabelledEstimator):  # type: ignore[misc]
    """Cluster samples with a kernel that is learned without labels.

    A rule finds the weights of ``K = sum_k mu_k K_k`` as in :class:`ConsensusKernel`.
    ``method="kmeans"`` then minimises the distances of the samples to the means of their clusters
    in the feature space of K (kernel k-means, Lloyd's iteration, no approximation).
    ``method="spectral"`` cuts the graph that connects each sample with its nearest neighbours under
    K, using :class:`sklearn.cluster.SpectralClustering`; the entries of the graph are 0 and 1, so
    negative kernel values do no harm.

    Parameters
    ----------
    n_clusters : int, default=8
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    weighting : str or weighting, default="statis"
        As in :class:`ConsensusKernel`.
    method : {"kmeans", "spectral"}, default="kmeans"
    n_init : int, default=10
        Number of k-means runs, of which the best is kept. Starts are drawn as in k-means++.
    max_iter : int, default=300
        Limit on the steps of a run of kernel k-means.
    n_neighbors : int, default=10
        Neighbours of a sample in the graph of ``method="spectral"``.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        As in :class:`ConsensusKernel`.
    random_state : int, RandomState or None, default=None
        Seed for the starts.
    missing : {"error", "ignore", "complete"}, default="error"
        How to treat NaN in X, as in :class:`MultiKernelClassifier`: with ``"ignore"``, samples that
        lack a view are placed at its centre; with ``"complete"``, where their other views predict
        them to be.
    dtype, memory_budget, n_jobs, engine, device, verbose
        As in :class:`MultiKernelClassifier`.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each sample, 0 to ``n_clusters - 1``.
    inertia_ : float
        The sum of squared distances to the cluster means; ``method="kmeans"`` only.
    n_iter_ : int
        Steps of the best run of kernel k-means; 1 for ``method="spectral"``.
    kernel_weights_ : array of shape (n_kernels,)
        They sum to one.
    kernel_names_ : list of str
    alignments_ : array of shape (n_kernels, n_kernels)
    optimality_ : float
        As in :class:`ConsensusKernel`.
    history_ : list of dict
    plan_ : Plan
    bank_ : KernelBank or None
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = load_wine(return_X_y=True)
    >>> bank = mk.gaussians([0.01, 0.1], scaling="standard")
    >>> model = mk.KernelClustering(3, bank, random_state=0).fit(X)
    >>> round(adjusted_rand_score(y, model.labels_), 2)
    0.91
    """

    _parameter_constraints = {
        **UnlabelledEstimator._parameter_constraints,
        "missing": [MISSING],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"kmeans", "spectral"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        kernels: Any = None,
        weighting: Any = "statis",
        method: str = "kmeans",
        *,
        n_init: int = 10,
        max_iter: int = 300,
        n_neighbors: int = 10,
        normalize: str | None = "multiplicative",
        random_state: Any = None,
        missing: str = "error",
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.weighting = weighting
        self.method = method
        self.n_init = n_init
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.random_state = random_state
        self.missing = missing
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> KernelClustering:
        """Learn kernel weights and clusters.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._check_sample(X)
        n = X.shape[0]
        if self.n_clusters > n:
            raise ValueError(
                f"n_clusters={self.n_clusters} must not exceed the number of samples, "
                f"n_samples = {n}."
            )
        grams, gram = self._learn_weights(X)
        random = check_random_state(self.random_state)
        self.__dict__.pop("inertia_", None)  # of an earlier fit
        if self.method == "spectral":
            error = float(np.abs(self.kernel_weights_) @ grams.entry_errors)
            self.labels_ = self._cut(gram, ROUNDINGS_OF_DISTANCES * error, random)
            # Every fitted model, and its file, has an expansion: here that of the cluster means.
            found = Clusters(self.labels_, np.nan, 1)
        else:
            found = kernel_kmeans(
                gram,
                self.n_clusters,
                n_init=self.n_init,
                max_iter=self.max_iter,
                rng=np.random.default_rng(random.randint(np.iinfo(np.int32).max)),
            )
            self.labels_, self.inertia_ = found.labels, found.inertia
        self.n_iter_ = found.n_iter
        self._store_means(grams, gram, found)
        return self

    def _cut(self, gram: CombinedGram, ties: float, random: Any) -> np.ndarray:
        """Labels by spectral clustering of the graph of neighbours."""
        from sklearn.cluster import SpectralClustering  # slow to import, rarely needed

        keep_matrix(gram)
        diagonal, count = gram.diagonal(), min(self.n_neighbors, gram.n - 1)
        found = []
        for begin in range(0, gram.n, SEARCH_ROWS):
            rows = slice(begin, min(begin + SEARCH_ROWS, gram.n))
            found.append(nearest(diagonal - 2.0 * gram.rows(rows), rows, count, ties))
        graph = neighbour_graph(np.concatenate(found))
        spectral = SpectralClustering(
            self.n_clusters, affinity="precomputed", n_init=self.n_init, random_state=random
        )
        return np.asarray(spectral.fit(graph).labels_, dtype=np.intp)

    def _store_means(self, grams: Grams, gram: CombinedGram, found: Clusters) -> None:
        means = found.means
        self._squared_norms = np.einsum("ic,ic->c", means, gram.matvec(means))
        self._expansion: Expansion = grams.expand(self.kernel_weights_, means)
        self._expansion.release()

    @available_if(_by_means)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> np.ndarray:
        """Predict the cluster with the nearest mean; only for ``method="kmeans"``.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new,)
        """
        check_is_fitted(self)
        return np.argmin(self._squared_norms - 2.0 * self._evaluate(X, False), axis=1)
