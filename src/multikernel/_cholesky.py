"""Cholesky factors, inverses and symmetric products of matrices of any size.

OpenBLAS divides ``dpotrf``, ``dpotri`` and ``dsyrk`` among threads with a buffer of fixed size:
with two threads and 20,000 rows they write beyond it, and the process crashes. Matrices of more
than `MAX_ROWS` rows are therefore processed in blocks, with matrix products (``dgemm``), which have
no such limit. Most of the work is in these products, which use threads as well as LAPACK does.

All functions read and write the lower triangle of an array, contiguous by rows or by columns.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs, solve_triangular
from scipy.linalg.blas import dsyrk

#: Matrices with more rows are factored in blocks.
MAX_ROWS = 8192
#: Rows and columns of a block.
BLOCK = 1024
#: Smallest squared ratio (min / max) of a factor's diagonal at which solutions have correct digits.
MIN_PIVOT_RATIO = 1e-13


def factor(A: np.ndarray) -> None:
    """Replace the lower triangle of A, float32 or float64, by the Cholesky factor: ``A = L L'``.

    The upper triangle is neither read nor written. If A is not positive definite, LinAlgError is
    raised.
    """
    n = len(A)
    if n <= MAX_ROWS:
        _factor_block(A)
        return
    for start in range(0, n, BLOCK):
        here, below = slice(start, min(start + BLOCK, n)), slice(min(start + BLOCK, n), n)
        rest = A[start:, here] - A[start:, :start] @ A[here, :start].T
        size = here.stop - start
        corner = np.ascontiguousarray(rest[:size])
        _factor_block(corner)
        A[here, here] = np.tril(corner) + np.triu(A[here, here], 1)
        if below.start < n:
            rest = solve_triangular(corner, rest[size:].T, lower=True, check_finite=False)
            A[below, here] = rest.T


def _factor_block(A: np.ndarray) -> None:
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    F, lower = _by_columns(A)
    _, failed = potrf(F, lower=lower, overwrite_a=1, clean=0)
    if failed:
        raise LinAlgError(f"The matrix is not positive definite: its minor {failed} is negative.")


def _by_columns(A: np.ndarray) -> tuple[np.ndarray, int]:
    """A view of A in column order, as LAPACK needs it, and 1 if its triangle is the lower one."""
    return (A, 1) if A.flags.f_contiguous else (A.T, 0)


def require_definite(L: np.ndarray) -> None:
    """Raise LinAlgError if the factor shows that the matrix is singular up to rounding.

    ``(max / min)^2`` of the factor's diagonal is a lower bound on the condition number.
    """
    size = np.abs(np.diagonal(L))
    if len(L) and not size.min() ** 2 > MIN_PIVOT_RATIO * size.max() ** 2:
        raise LinAlgError("The matrix is singular up to rounding.")


def solve(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The solution X of ``L L' X = B``, shape of B, for the lower triangle L of `factor`."""
    (potrs,) = get_lapack_funcs(("potrs",), (L,))
    F, lower = _by_columns(L)
    return np.asarray(potrs(F, B, lower=lower)[0])


def invert(L: np.ndarray) -> None:
    """Replace the lower triangle L of `factor` by that of the inverse ``(L L')^-1``."""
    n = len(L)
    if n <= MAX_ROWS:
        (potri,) = get_lapack_funcs(("potri",), (L,))
        F, lower = _by_columns(L)
        if potri(F, lower=lower, overwrite_c=1)[1]:
            raise LinAlgError("The matrix is singular.")
        return
    # First the inverse M of L, then M'M; rows of M above a block are then no longer needed.
    invert_factor(L)
    for row in _blocks(n):
        L[row, : row.stop] = L[row.start :, row].T @ L[row.start :, : row.stop]


def invert_factor(L: np.ndarray) -> None:
    """Replace the lower triangle L of `factor` by that of its own inverse ``L^-1``."""
    n = len(L)
    if n <= MAX_ROWS:
        (trtri,) = get_lapack_funcs(("trtri",), (L,))
        F, lower = _by_columns(L)
        if trtri(F, lower=lower, overwrite_c=1)[1]:
            raise LinAlgError("The matrix is singular.")
        return
    blocks = _blocks(n)
    for row in blocks:
        corner = L[row, row].copy()
        for column in blocks[: row.start // BLOCK]:
            left = slice(column.start, row.start)
            known = L[row, left] @ L[left, column]
            L[row, column] = -solve_triangular(corner, known, lower=True, check_finite=False)
        one = np.eye(len(corner), dtype=L.dtype)
        L[row, row] = solve_triangular(corner, one, lower=True, check_finite=False)


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def add_product(out: np.ndarray, half: np.ndarray, sign: float = 1.0) -> None:
    """``out += sign * half' half`` in the lower triangle, for half of shape (r, n)."""
    n = len(out)
    if n <= MAX_ROWS:
        F, lower = _by_columns(out)
        dsyrk(sign, half.T, trans=0, lower=lower, beta=1.0, c=F, overwrite_c=1)
        return
    for start in range(0, n, BLOCK):
        row = slice(start, min(start + BLOCK, n))
        out[row, : row.stop] += sign * (half[:, row].T @ half[:, : row.stop])
