"""Coordinates of samples in the feature space of one kernel, exact or of low rank.

A set of components is a map ``z(x) = C' k(x) - c`` with ``k(x) = (K(x, x_1), ..., K(x, x_n))``. On
the training sample ``Z = K C - 1 c'``, and ``Z Z'`` is the kernel matrix (centred if requested) or
its best approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..grams.protocol import CombinedGram

#: With more samples than this, a few leading eigenvectors are computed by Lanczos iterations, not
#: by a full decomposition.
MAX_FULL_EIGENVECTORS = 300
#: From this fraction of all eigenvectors on, the full decomposition is used if it fits in memory.
MAX_LANCZOS_PART = 0.1
#: Landmarks per coordinate. On three data sets and six kernels, 50 coordinates from 50 landmarks
#: kept 70 to 100 % of the trace that the best 50 coordinates keep; from 100 landmarks, 84 to 100 %.
LANDMARKS_PER_COMPONENT = 2
#: Beyond this many samples eigenvectors of the whole matrix are too expensive for features.
MAX_EIGENVECTOR_SAMPLES = 4000


@dataclass(frozen=True)
class Components:
    """A linear map from kernel values to coordinates, largest component first.

    Attributes
    ----------
    values : array of shape (r,)
        The sum of squares of each coordinate over the training sample: eigenvalues of ``Z Z'``.
        Zero for components beyond the rank of the kernel.
    coef : array of shape (n, r)
        C; a row is zero for samples that the map does not use.
    offset : array of shape (r,)
        c.
    total : float
        The trace of the (centred) kernel matrix.
    """

    values: np.ndarray
    coef: np.ndarray
    offset: np.ndarray
    total: float

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.values))

    @property
    def shares(self) -> np.ndarray:
        """The fraction of the trace that each component explains."""
        return self.values / self.total if self.total > 0 else np.zeros_like(self.values)

    def first(self, count: int) -> Components:
        """The leading components alone."""
        some = slice(0, count)
        return Components(self.values[some], self.coef[:, some], self.offset[some], self.total)


def principal_components(
    gram: CombinedGram, count: int | None = None, *, center: bool = True
) -> Components:
    """The leading eigenvectors of the kernel matrix, centred here unless ``center`` is False.

    With ``C = U / sqrt(lambda)`` the coordinates of the training sample are ``U sqrt(lambda)``
    (kernel principal components). ``count=None`` gives all components with a non-zero value.
    """
    n = gram.n
    keep_matrix(gram)
    wanted = n if count is None else min(count, n)
    diagonal, row_means = gram.diagonal(), gram.matvec(np.ones(n)) / n
    total = float(diagonal.sum() - center * row_means.sum())
    values, U = _leading_eigenpairs(gram, wanted, center, row_means)
    present = values > max(n * np.finfo(np.float64).eps * values[0], gram.rounding, 0.0)
    roots = np.sqrt(np.where(present, values, 1.0))
    coef = np.where(present, _with_fixed_signs(U) / roots, 0.0)
    offset = row_means @ coef if center else np.zeros(coef.shape[1])
    found = Components(np.where(present, values, 0.0), coef, offset, total)
    return found.first(max(found.rank, 1)) if count is None else found


def keep_matrix(gram: CombinedGram) -> None:
    """Compute and keep the matrix if it fits in memory, for many products with it."""
    if "features" not in gram.offers and gram.fits(2):
        gram.dense()


def landmark_components(
    gram: CombinedGram,
    count: int,
    rng: np.random.Generator,
    per_component: int = LANDMARKS_PER_COMPONENT,
) -> Components:
    """The leading components of the Nystrom approximation ``K_:L K_LL^-1 K_L:`` for landmarks L.

    Landmarks are the pivots of a Cholesky factorisation, drawn with probabilities proportional to
    the remaining diagonal: samples that the landmarks so far explain least are the most likely
    (Chen, Epperly, Tropp & Webber 2022). Only their columns of K are computed. Always taking the
    largest remaining diagonal would select outliers, which are poor landmarks.
    """
    n = gram.n
    left = np.array(gram.diagonal(), dtype=np.float64)
    total, smallest = float(left.sum()), max(n * np.finfo(np.float64).eps * left.max(), 0.0)
    smallest = max(smallest, gram.rounding)
    L, pivots = np.zeros((n, min(per_component * count, n))), []
    for j in range(L.shape[1]):
        odds = np.where(left > smallest, left, 0.0)
        if not np.any(odds):
            break
        i = int(rng.choice(n, p=odds / odds.sum()))
        column = gram.columns(np.array([i]))[:, 0] - L[:, :j] @ L[i, :j]
        L[:, j] = column / np.sqrt(left[i])
        left -= L[:, j] ** 2
        left[i] = 0.0
        pivots.append(i)
    L = L[:, : len(pivots)]
    # Rotate so that the coordinates are uncorrelated and ordered by size.
    _, sizes, rotation = svd(L, full_matrices=False)
    sizes, rotation = sizes[:count], rotation[:count]
    rotation = rotation * np.sign(_entries_of_largest_size(L @ rotation.T))[:, None]
    coef = np.zeros((n, len(sizes)))
    coef[pivots] = solve_triangular(L[pivots], rotation.T, lower=True, trans="T")
    return Components(sizes**2, coef, np.zeros(len(sizes)), total)


def _leading_eigenpairs(
    gram: CombinedGram, count: int, center: bool, row_means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues, in descending order, and their eigenvectors."""
    n = gram.n
    few = n > MAX_FULL_EIGENVECTORS and count < MAX_LANCZOS_PART * n
    if few or not gram.fits(3):

        def product(V: np.ndarray) -> np.ndarray:
            if not center:
                return np.asarray(gram.matvec(V))
            KV = gram.matvec(V - V.mean(axis=0))
            return np.asarray(KV - KV.mean(axis=0))

        operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        try:
            values, U = eigsh(operator, k=min(count, n - 1), which="LA", v0=start)
            return values[::-1], U[:, ::-1]
        except ArpackNoConvergence:
            pass  # nearly equal eigenvalues: use the direct method below
    K = gram.dense()
    if center:
        K = K - row_means[:, None] - row_means + row_means.mean()
    values, U = eigh(K, subset_by_index=(n - count, n - 1))
    return values[::-1], U[:, ::-1]


def _with_fixed_signs(U: np.ndarray) -> np.ndarray:
    """Eigenvectors whose entry of largest size is positive."""
    return np.asarray(U * np.where(_entries_of_largest_size(U) < 0, -1.0, 1.0))


def _entries_of_largest_size(U: np.ndarray) -> np.ndarray:
    return np.asarray(U[np.argmax(np.abs(U), axis=0), np.arange(U.shape[1])])
