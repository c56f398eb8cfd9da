"""Landmarks by randomly pivoted Cholesky, in blocks with rejection.

A partial Cholesky factorisation ``K ~ F F'`` chooses the next pivot i with probability
proportional to the diagonal of what is left, ``K - F F'`` (Chen, Epperly, Tropp & Webber 2025).
The block form (Epperly, Tropp & Webber 2024) proposes many pivots at once from the current
diagonal and accepts each with the probability that makes the result the same in distribution:

    propose  j_1 .. j_b  from d = diag(K - F F')
    accept   j_i  with probability  (what is left at j_i after those accepted) / d[j_i]

so that columns of K are computed in blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

#: Pivots proposed at once.
MAX_BLOCK = 64
#: What is left below this part of the diagonal is rounding: there are no further pivots.
RELATIVE_REMAINDER = 1e-13


def pivots(
    columns: Callable[[np.ndarray], np.ndarray],
    diagonal: np.ndarray,
    rank: int,
    random: np.random.Generator,
) -> np.ndarray:
    """At most ``rank`` pivots of a positive semidefinite matrix, fewer if its rank is smaller.

    Parameters
    ----------
    columns : callable
        ``columns(index)`` returns columns of the matrix, shape (n, len(index)).
    diagonal : array of shape (n,)
    rank : int
    random : Generator

    Returns
    -------
    array of int, in the order of their choice
    """
    n = len(diagonal)
    floor = RELATIVE_REMAINDER * float(diagonal.max(initial=0.0))
    left = np.where(diagonal > floor, diagonal, 0.0)
    F = np.zeros((n, rank), order="F")
    chosen: list[int] = []
    while len(chosen) < rank and left.sum() > 0:
        i = len(chosen)
        size = min(MAX_BLOCK, max(rank // 4, 1), rank - i)
        proposed = random.choice(n, size=size, p=left / left.sum())
        # Copies of a proposal are rejected: nothing is left there after the first.
        K = columns(proposed)
        accepted, factor = _accept(K[proposed] - F[proposed, :i] @ F[proposed, :i].T, random)
        if not len(accepted):  # rounding: nothing is left at any of them
            left[proposed] = 0.0
            continue
        new = proposed[accepted]
        rest = K[:, accepted] - F[:, :i] @ F[new, :i].T
        block = solve_triangular(factor, rest.T, lower=True, check_finite=False).T
        F[:, i : i + len(new)] = block
        left = left - np.einsum("nb,nb->n", block, block)
        left[left <= floor] = 0.0
        left[new] = 0.0
        chosen += new.tolist()
    return np.array(chosen, dtype=np.intp)


def _accept(H: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of accepted proposals, and the Cholesky factor of H among them."""
    H = H.copy()
    before = np.diag(H).copy()
    accepted: list[int] = []
    columns: list[np.ndarray] = []
    for j in range(len(H)):
        if not before[j] > 0 or not random.random() * before[j] < H[j, j]:
            continue
        if H[j, j] <= RELATIVE_REMAINDER * before[j]:
            continue
        column = H[:, j] / np.sqrt(H[j, j])
        H -= np.outer(column, column)
        accepted.append(j)
        columns.append(column)
    where = np.array(accepted, dtype=np.intp)
    if not len(where):
        return where, np.zeros((0, 0))
    return where, np.tril(np.stack(columns, axis=1)[where])
