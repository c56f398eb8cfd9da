"""A low-rank approximation of a kernel matrix from a few of its columns, chosen at random.

    K ~ F F',   F of shape (n, k),   K - F F' positive semidefinite with diagonal d

Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2023) draws the next pivot i with
probability ``d_i / sum(d)`` and eliminates its column from the residual ``K - F F'``. The trace of
the residual is near that of the best approximation of the same rank, and only k columns are read.
The accelerated form (Epperly, Tropp & Webber 2024) has the same distribution, with products of
blocks::

    repeat   S  = `block` pivots, drawn independently with the current probabilities d
             H  = K[S, S] - F[S] F[S]'                          the residual between them
             T  = those of S that rejection sampling accepts: in turn, i with probability
                  (residual H_ii now) / (H_ii at the start); each accepted one is eliminated
             F  = [F, (K[:, T] - F F[T]') L^-T],   H[T, T] = L L'
             d -= the squares of the new columns

Since ``K - F F'`` is positive semidefinite, its largest eigenvalue is at most ``sum(d)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular

#: Number of pivots proposed at once.
BLOCK = 128
#: A sample can be a pivot while its residual exceeds this many roundings of its diagonal entry.
MIN_ROUNDINGS = 64.0


class GrowingFactor(Protocol):
    """The growing factor F, in host or device memory."""

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Rows of F, shape (len(index), k)."""

    def append(self, columns: Any, chosen: np.ndarray, L: np.ndarray) -> np.ndarray:
        """Append ``(K[:, chosen] - F F[chosen]') L^-T``; return the squared norms of its rows."""

    def result(self) -> Any:
        """F, shape (n, k)."""


class HostFactor:
    """A `GrowingFactor` in host memory, with room for ``rank`` columns."""

    def __init__(self, n: int, rank: int) -> None:
        self.F, self.k = np.empty((n, rank)), 0

    def rows(self, index: np.ndarray) -> np.ndarray:
        return np.asarray(self.F[index, : self.k])

    def append(self, columns: Any, chosen: np.ndarray, L: np.ndarray) -> np.ndarray:
        start, self.k = self.k, self.k + len(chosen)
        new = np.asarray(columns, dtype=np.float64) - self.F[:, :start] @ self.F[chosen, :start].T
        new = solve_triangular(L, new.T, lower=True, check_finite=False).T
        self.F[:, start : self.k] = new
        return np.asarray(np.einsum("nk,nk->n", new, new))

    def result(self) -> np.ndarray:
        return self.F if self.k == self.F.shape[1] else self.F[:, : self.k].copy()


@dataclass(frozen=True)
class PivotedCholesky:
    """``K ~ F F'``.

    Attributes
    ----------
    F : array of shape (n, k)
        The factor; its rows at the pivots form a lower triangle. A tensor if it is on a device.
    pivots : array of int, shape (k,)
        The columns of K that were read, in order.
    left : array of shape (n,)
        The diagonal of ``K - F F'``, non-negative.
    """

    F: Any
    pivots: np.ndarray
    left: np.ndarray

    @property
    def rank(self) -> int:
        """The number of pivots; less than requested if the residual vanishes."""
        return len(self.pivots)

    @property
    def error(self) -> float:
        """The trace of ``K - F F'``, a bound on its largest eigenvalue."""
        return float(self.left.sum())


def pivoted_cholesky(
    columns: Callable[[np.ndarray], Any],
    diagonal: np.ndarray,
    rank: int,
    *,
    block: int = BLOCK,
    seed: int | np.random.Generator = 0,
    tol: float = 0.0,
    precision: float = float(np.finfo(np.float64).eps),
    submatrix: Callable[[np.ndarray], np.ndarray] | None = None,
    factor: GrowingFactor | None = None,
) -> PivotedCholesky:
    """Randomly pivoted Cholesky of a positive semidefinite matrix whose columns can be read.

    Parameters
    ----------
    columns : callable
        ``columns(index)`` is ``K[:, index]``, shape (n, len(index)).
    diagonal : array of shape (n,)
        ``K[i, i]``.
    rank : int
        Number of pivots; fewer are used if the residual vanishes.
    block : int
        Number of pivots proposed at once. The result depends on it, its distribution does not.
    seed : int or Generator
    tol : float
        Stop when the trace of the residual is at most this fraction of the trace of K.
    precision : float
        Relative rounding error of entries of K: samples with a residual near it are not pivots.
    submatrix : callable, optional
        ``submatrix(index)`` is ``K[index][:, index]``. If it is given, only the columns of accepted
        pivots are computed; otherwise those of all proposed ones.
    factor : GrowingFactor, optional
        Holds F, by default in host memory. With ``submatrix``, ``columns`` may return what this
        object accepts, such as tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.grams.pivoted_cholesky import pivoted_cholesky
    >>> x = np.linspace(-1, 1, 200)
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> found = pivoted_cholesky(lambda index: K[:, index], np.diag(K), rank=8)
    >>> found.F.shape, bool(np.abs(K - found.F @ found.F.T).max() < 1e-3)
    ((200, 8), True)
    """
    rng = np.random.default_rng(seed)
    diagonal = np.asarray(diagonal, dtype=np.float64)
    n = len(diagonal)
    rank = min(rank, n)
    left = np.maximum(diagonal, 0.0)
    least = MIN_ROUNDINGS * precision * left
    enough = tol * float(left.sum())
    F = HostFactor(n, rank) if factor is None else factor
    pivots = np.empty(rank, dtype=np.intp)
    k = 0
    while k < rank:
        open_ = np.where(left > least, left, 0.0)
        total = float(open_.sum())
        if not total > 0.0 or float(left.sum()) <= enough:
            break
        drawn = rng.choice(n, size=min(block, n), p=open_ / total)
        if submatrix is None:
            read = np.asarray(columns(drawn), dtype=np.float64)
            among = read[drawn]
        else:
            among = np.asarray(submatrix(drawn), dtype=np.float64)
        known = F.rows(drawn)
        H = among - known @ known.T
        accepted, L = _reject(H, least[drawn], rank - k, rng)
        chosen = drawn[accepted]
        new = read[:, accepted] if submatrix is None else columns(chosen)
        end = k + len(chosen)
        pivots[k:end] = chosen
        left = np.maximum(left - F.append(new, chosen, L), 0.0)
        left[chosen] = 0.0
        k = end
    return PivotedCholesky(F.result(), pivots[:k], left)


def _reject(
    H: np.ndarray, least: np.ndarray, room: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of at most ``room`` accepted proposals, and the Cholesky factor of their block.

    Nothing was eliminated from the first proposal since it was drawn: it is always accepted.
    """
    start = np.maximum(np.diag(H), 0.0)
    size = len(H)
    L = np.zeros((size, size))  # column a: what the a-th accepted proposal eliminates
    accepted: list[int] = []
    for i in range(size):
        now = float(H[i, i] - L[i, : len(accepted)] @ L[i, : len(accepted)])
        first = not accepted
        if not first and (now <= least[i] or now < rng.random() * start[i]):
            continue
        if first:  # this entry and the one it was drawn with differ by rounding
            now = max(now, float(least[i]), np.finfo(np.float64).tiny)
        a = len(accepted)
        L[i:, a] = (H[i:, i] - L[i:, :a] @ L[i, :a]) / np.sqrt(now)
        L[i, a] = np.sqrt(now)
        accepted.append(i)
        if len(accepted) == room:
            break
    index = np.array(accepted)
    return index, L[index, : len(index)]
