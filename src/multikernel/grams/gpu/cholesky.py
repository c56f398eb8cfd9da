"""Cholesky factorisation in place, and solutions with the factor."""

from __future__ import annotations

from typing import Any

#: Columns that are factored at once; larger matrices are cut into blocks of this size.
BLOCK = 4096


def factor_in_place(A: Any) -> bool:
    """Replace the lower half of a symmetric matrix by its Cholesky factor; False if it has none.

    ::

        for blocks J of columns:
            L_JJ = chol(A_JJ)
            L_IJ = A_IJ L_JJ^-T              for the rows I below
            A_IK -= L_IJ L_KJ'               for the blocks K right of J, at or below the diagonal

    One block row is copied at a time. Entries above the diagonal blocks are not read.
    """
    import torch

    n = len(A)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        corner, failed = torch.linalg.cholesky_ex(A[start:stop, start:stop])
        if int(failed):
            return False
        A[start:stop, start:stop] = corner
        for low in range(stop, n, BLOCK):
            rows = slice(low, min(low + BLOCK, n))
            A[rows, start:stop] = torch.linalg.solve_triangular(
                corner.T, A[rows, start:stop], upper=True, left=False
            )
        for low in range(stop, n, BLOCK):
            columns = slice(low, min(low + BLOCK, n))
            A[low:, columns].addmm_(A[low:, start:stop], A[columns, start:stop].T, alpha=-1.0)
    return True


def solve_with_factor(L: Any, B: Any) -> Any:
    """The solution of ``L L' X = B`` for a factor in the lower half of L."""
    import torch

    n, X = len(L), B.clone()
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        X[start:stop] -= L[start:stop, :start] @ X[:start]
        X[start:stop] = torch.linalg.solve_triangular(
            L[start:stop, start:stop], X[start:stop], upper=False
        )
    for start in reversed(range(0, n, BLOCK)):
        stop = min(start + BLOCK, n)
        X[start:stop] -= L[stop:, start:stop].T @ X[stop:]
        X[start:stop] = torch.linalg.solve_triangular(
            L[start:stop, start:stop].T, X[start:stop], upper=True
        )
    return X
