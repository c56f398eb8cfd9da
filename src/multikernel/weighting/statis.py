"""Unsupervised weights: the agreement of each kernel with the consensus of all (STATIS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting, normalised, summary_for

#: Relative difference below which eigenvalues count as equal to the largest one.
EQUAL_EIGENVALUES = 1e-10
#: Entries of an eigenvector below this fraction of the largest one are rounding errors.
ZERO_ENTRY = 1e-10
#: Steps of the power iteration with non-negative iterates, and its relative precision.
MAX_POWER_STEPS, POWER_TOL = 10_000, 1e-14


class Statis(Weighting):
    """Weights in proportion to the alignment of each kernel with the consensus; no targets.

    The consensus is ``sum_k v_k K_k / ||K_k||`` with the first eigenvector v of the matrix A of
    centred alignments ``A_kl = <K_k, K_l> / (||K_k|| ||K_l||)``. Of all combinations it has the
    largest sum of squared alignments with the kernels, and that sum is the first eigenvalue. The
    alignment of kernel k with the consensus is proportional to ``v_k``, which is its weight:
    kernels that agree with many others get large weights, and a kernel unlike all others gets a
    small one.

    This is STATIS (Escoufier 1973; Lavit et al. 1994), used for kernels by Mariette and
    Villa-Vialaneix (2018), and :class:`Align` with the consensus in the place of the target. The
    weights multiply the kernels as normalised; with ``normalize="frobenius"`` their sum is the
    consensus itself.

    Alignments of positive semidefinite kernels are not negative, so v is not negative either
    (Perron-Frobenius). If indefinite kernels lead to entries of both signs, the best non-negative
    v is searched for instead, and ``history_`` shows the violation of its optimality conditions.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.per_feature(mk.Linear())
    >>> mk.ConsensusKernel(bank, weighting=mk.Statis()).fit(X).kernel_weights_.round(3)
    array([0.289, 0.067, 0.328, 0.316])
    """

    needs_target = False
    needs_summary = True
    needs_products = True

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return self.weigh(grams, target, learner, summary)[0]

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        summary = summary_for(self, grams, target, summary)
        usable = np.flatnonzero(~grams.degenerate & (summary.norms > 0))
        A = kernel_alignments(summary)[np.ix_(usable, usable)]
        v, optimality = leading_direction(A)
        kernel_weights = np.zeros(grams.p)
        kernel_weights[usable] = v
        entry = {"sum_of_squared_alignments": float(v @ A @ v), "optimality": optimality}
        return normalised(kernel_weights), [entry]


def kernel_alignments(summary: Summary) -> np.ndarray:
    """Centred alignments of the kernels with each other, (p, p); 0 for constant kernels."""
    assert summary.M is not None
    size = np.outer(summary.norms, summary.norms)
    A = np.divide(summary.M, size, out=np.zeros_like(summary.M), where=size > 0)
    return (A + A.T) / 2.0


def leading_direction(G: np.ndarray) -> tuple[np.ndarray, float]:
    """``argmax v'Gv`` over ``v >= 0, ||v||_2 = 1`` for symmetric G, and its optimality.

    If the first eigenvector of G has no entries of opposite signs, it is the solution. If the first
    eigenvalue is repeated, the vector of its eigenspace closest to equal entries is taken.
    Otherwise a power iteration with non-negative iterates runs from several starts; each step
    increases the objective, but the result may be a local maximum.

    Returns
    -------
    v : array of shape (q,)
    optimality : float
        The largest violation of ``Gv <= lambda v`` with equality where ``v > 0``, for
        ``lambda = v'Gv``, relative to the largest absolute eigenvalue of G.
    """
    values, vectors = np.linalg.eigh(G)
    size = max(float(np.abs(values).max(initial=0.0)), np.finfo(np.float64).tiny)
    top = vectors[:, values >= values[-1] - EQUAL_EIGENVALUES * size]
    v = top @ top.sum(axis=0)  # the projection of (1, ..., 1)
    if np.linalg.norm(v) <= ZERO_ENTRY * np.sqrt(len(v)):
        v = top[:, -1]
    v = v / np.linalg.norm(v)
    v[np.abs(v) <= ZERO_ENTRY * np.abs(v).max()] = 0.0
    if np.any(v < 0) and np.any(v > 0):
        v = nonnegative_direction(G - min(values[0], 0.0) * np.eye(len(G)), v)
    v = np.abs(v) / np.linalg.norm(v)
    residual = G @ v - (v @ G @ v) * v
    violation = np.where(v > 0, np.abs(residual), np.maximum(residual, 0.0))
    return v, float(violation.max() / size)


def nonnegative_direction(G: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """A local maximum of ``v'Gv`` over ``v >= 0, ||v||_2 = 1`` for positive semidefinite G."""
    q = len(G)
    starts = [np.maximum(guess, 0.0), np.maximum(-guess, 0.0), np.ones(q), *np.eye(q)]
    found = [_ascend(G, start / np.linalg.norm(start)) for start in starts]
    return max(found, key=lambda v: float(v @ G @ v))


def _ascend(G: np.ndarray, v: np.ndarray) -> np.ndarray:
    for _ in range(MAX_POWER_STEPS):
        new = np.maximum(G @ v, 0.0)
        size = np.linalg.norm(new)
        if size == 0:
            return v
        new /= size
        done = np.linalg.norm(new - v) <= POWER_TOL
        v = new
        if done:
            break
    return v
