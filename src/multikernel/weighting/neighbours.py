"""Unsupervised weights that preserve neighbourhoods (after Mariette & Villa-Vialaneix 2018).

Let ``W_ij`` count the kernels in which sample i is among the nearest neighbours of sample j, or j
among those of i, and let ``D_i(v)`` be row i of ``K = sum_k v_k K_k / ||K_k||``: its similarities
to all samples. A combination preserves neighbourhoods if neighbours have similar rows. With
``d_i = sum_j W_ij`` everything follows from two matrices of the size of the bank,

    P_kl = sum_ij W_ij <D_i^k, D_j^l> = Tr(K_k W K_l)      Q_kl = sum_i d_i <D_i^k, D_i^l>

for centred kernels of unit norm: ``sum_ij W_ij ||D_i(v) - D_j(v)||^2 = 2 v'(Q - P)v``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..grams.protocol import CentredBlocks, Grams, Summary, add
from ..learners.base import Learner
from ..problem import Target
from .alignment import alignf
from .base import Weighting, normalised, summary_for
from .statis import kernel_alignments, leading_direction

#: Added to the diagonal of the quadratic program, as a fraction of its mean: a kernel whose rows do
#: not differ between neighbours would otherwise have no finite weight.
RIDGE = 1e-10
#: Agreements of neighbours below this fraction of the largest possible one are rounding errors.
NO_AGREEMENT = 1e-12
#: Distances are tied if they differ by at most this many rounding errors of a kernel entry; each is
#: a sum of three entries.
ROUNDINGS_OF_DISTANCES = 8.0


class NeighbourRule(Weighting):
    """Base class of the two rules, with the graph of neighbours and the sums over it."""

    needs_target = False
    reads_samples = True
    needs_summary = True
    needs_products = True

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return self.weigh(grams, target, learner, summary)[0]

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        self._check(grams)
        summary = summary_for(self, grams, target, summary)
        usable = np.flatnonzero(~grams.degenerate & (summary.norms > 0))
        sums = NeighbourSums.of(grams, summary, usable, self.n_neighbors)
        kernel_weights = np.zeros(grams.p)
        kernel_weights[usable], optimality = self.solve(sums, summary.norms[usable])
        return normalised(kernel_weights), [{"optimality": optimality}]

    def solve(self, sums: NeighbourSums, norms: np.ndarray) -> tuple[np.ndarray, float]:
        """Weights up to a factor, and their violation of the optimality conditions."""
        raise NotImplementedError

    def _check(self, grams: Grams) -> None:
        name, k = type(self).__name__, self.n_neighbors
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise ValueError(f"{name}: n_neighbors must be a positive whole number; got {k!r}.")
        if grams.sample_weight is not None:
            raise ValueError(
                f"{name} counts neighbours and does not support sample_weight. Use "
                "weighting='statis', or fit without sample weights."
            )


class FullNeighbours(NeighbourRule):
    """Weights that keep the rows of neighbouring samples similar; all kernels are used.

    The weights v solve ``max sum_ij (W_ij - w) <D_i(v), D_j(v)>`` over ``v >= 0, ||v||_2 = 1``,
    where ``W_ij`` counts the kernels in which samples i and j are neighbours, w is the mean of
    ``W_ij`` over all pairs, and ``D_i(v)`` is row i of ``sum_k v_k K_k / ||K_k||``. v is the first
    eigenvector of a p x p matrix. As in :class:`Statis`, its entries are positive if those of the
    matrix are, and they multiply the kernels as normalised. With the identity as W, the rule would
    be `Statis`.

    Mariette and Villa-Vialaneix (2018) minimise ``sum_ij W_ij ||D_i(v) - D_j(v)||^2 = v'Sv`` over
    the same v ("full-UMKL"). If no entry of S is negative, the minimum lies at one kernel, that
    with the smallest ``S_kk``, because ``v'Sv >= sum_k v_k^2 S_kk``. The objective here omits the
    terms ``||D_i||^2``, which cause this.

    Parameters
    ----------
    n_neighbors : int, default=5
        Nearest neighbours of a sample in each kernel; at most all other samples.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.per_feature(mk.Linear())
    >>> mk.ConsensusKernel(bank, weighting="full-neighbours").fit(X).kernel_weights_.round(3)
    array([0.272, 0.08 , 0.335, 0.313])
    """

    def solve(self, sums: NeighbourSums, norms: np.ndarray) -> tuple[np.ndarray, float]:
        G = sums.P + sums.mean_count * sums.A
        largest = max(float(np.abs(sums.Q).max(initial=0.0)), np.finfo(np.float64).tiny)
        if float(np.abs(G).max(initial=0.0)) <= NO_AGREEMENT * largest:
            G = np.eye(len(G))  # every sample is a neighbour of all others: equal weights
        return leading_direction(G)


class SparseNeighbours(NeighbourRule):
    """The combination whose rows differ least between neighbours; few kernels are used.

    Solves ``min sum_ij W_ij ||D_i(v) - D_j(v)||^2`` over ``v >= 0, sum_k v_k = 1``, where ``W_ij``
    counts the kernels in which samples i and j are neighbours and ``D_i(v)`` is row i of
    ``sum_k v_k K_k / ||K_k||`` ("sparse-UMKL" of Mariette and Villa-Vialaneix 2018). This is a
    convex quadratic program of the size of the bank, solved by non-negative least squares. Kernel k
    gets the weight ``v_k / ||K_k||``, so that the learned kernel is the minimiser.

    Rows of a sum of dissimilar kernels are short, and so are their differences. The rule therefore
    prefers kernels that agree little with each other, including noise.

    Parameters
    ----------
    n_neighbors : int, default=5
        Nearest neighbours of a sample in each kernel; at most all other samples.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.per_feature(mk.Linear())
    >>> mk.ConsensusKernel(bank, weighting="sparse-neighbours").fit(X).kernel_weights_.round(3)
    array([0.23 , 0.404, 0.097, 0.27 ])
    """

    def solve(self, sums: NeighbourSums, norms: np.ndarray) -> tuple[np.ndarray, float]:
        v, gap = least_on_simplex(2.0 * (sums.Q - sums.P))
        return v / norms, gap


@dataclass(frozen=True)
class NeighbourSums:
    """The sums over neighbours for centred kernels of unit norm.

    Attributes
    ----------
    P, Q, A : arrays of shape (q, q)
        As above; A holds the alignments of the kernels.
    mean_count : float
        The mean of ``W_ij`` over pairs of different samples.
    """

    P: np.ndarray
    Q: np.ndarray
    A: np.ndarray
    mean_count: float

    @classmethod
    def of(
        cls, grams: Grams, summary: Summary, usable: np.ndarray, n_neighbors: int
    ) -> NeighbourSums:
        W = neighbour_counts(grams, usable, n_neighbors)
        degrees = np.asarray(W.sum(axis=1)).ravel()
        centred, q = CentredBlocks(grams), len(usable)

        def one(rows: slice) -> np.ndarray:
            # Kernels are symmetric, so rows of a block are also columns of the kernels.
            K = centred(rows)[usable]
            flat = K.reshape(q, -1)
            passed = np.asarray(K.reshape(-1, grams.n) @ W).reshape(q, -1)
            return np.stack([flat @ passed.T, flat @ (K * degrees).reshape(q, -1).T])

        P, Q = add(grams.map(one))
        size = np.outer(summary.norms[usable], summary.norms[usable])
        A = kernel_alignments(summary)[np.ix_(usable, usable)]
        pairs = grams.n * (grams.n - 1.0)
        return cls(_symmetric(P / size), _symmetric(Q / size), A, float(degrees.sum()) / pairs)


def _symmetric(G: np.ndarray) -> np.ndarray:
    return np.asarray((G + G.T) / 2.0)


def neighbour_counts(grams: Grams, kernels: np.ndarray, n_neighbors: int) -> sp.csr_array:
    """``W_ij``: the number of kernels in which i is a neighbour of j, or j of i; shape (n, n).

    Neighbours are nearest in the distance ``K(i, i) - 2 K(i, j) + K(j, j)`` of each kernel.
    """
    n, count = grams.n, min(n_neighbors, grams.n - 1)
    diagonals = grams.diagonals()[kernels]
    ties = ROUNDINGS_OF_DISTANCES * grams.entry_errors[kernels][:, None, None]

    def one(rows: slice) -> np.ndarray:
        distances = diagonals[:, None, :] - 2.0 * grams.block(rows)[kernels]
        return nearest(distances, rows, count, ties)

    found = np.concatenate(grams.map(one), axis=1)
    W = sp.csr_array((n, n))
    for of_kernel in found:
        W = W + neighbour_graph(of_kernel)
    return W


def nearest(distances: np.ndarray, rows: slice, count: int, ties: float | np.ndarray) -> np.ndarray:
    """The nearest samples of each row other than itself, for distances (..., r, n).

    Distances within ``ties`` of the ``count``-th smallest count as tied with it, and the first of
    these samples are taken: repeated values of a column have equal distances up to rounding, which
    differs between processors.
    """
    n = distances.shape[-1]
    own = np.arange(rows.start, rows.stop)
    distances[..., np.arange(len(own)), own] = np.inf
    last = np.partition(distances, count - 1, axis=-1)[..., count - 1 : count]
    order = np.where(distances < last - ties, -1, np.arange(n))
    order[distances > last + ties] = n
    return np.argpartition(order, count - 1, axis=-1)[..., :count]


def neighbour_graph(nearest_samples: np.ndarray) -> sp.csr_array:
    """The symmetric graph, with entries 0 and 1, that joins samples to their neighbours (n, k)."""
    n, count = nearest_samples.shape
    # scikit-learn accepts sparse matrices with 32-bit indices only.
    rows = np.repeat(np.arange(n, dtype=np.int32), count)
    ends = (rows, nearest_samples.ravel().astype(np.int32))
    graph = sp.csr_array((np.ones(n * count), ends), shape=(n, n))
    return graph.maximum(graph.T).tocsr()


def least_on_simplex(S: np.ndarray) -> tuple[np.ndarray, float]:
    """``argmin v'Sv`` over ``v >= 0, sum_k v_k = 1`` for positive semidefinite S, and its gap.

    The direction of the solution is that of ``argmin_{v >= 0} v'Sv - 2 sum_k v_k``. By convexity
    the minimum is at least ``v'Sv - 2 (v'Sv - min_k (Sv)_k)`` for any v of the simplex. The gap is
    the difference of ``v'Sv`` and this bound, relative to the mean of ``S_kk``: the minimum may be
    zero.
    """
    size = max(float(np.mean(np.diag(S))), np.finfo(np.float64).tiny)
    v = alignf(S + RIDGE * size * np.eye(len(S)), np.ones(len(S)))
    v = v / v.sum()
    return v, float(max(2.0 * (v @ S @ v - np.min(S @ v)), 0.0) / size)
