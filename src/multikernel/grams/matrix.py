"""Combined Gram operators that hold their matrix in host memory when it fits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigvalsh, solve

from .. import _cholesky
from .._matrix_loops import add_rows_between, gather
from .._small import SMALL_SAMPLES
from ._dense_loops import panel_statistics
from .operators import PSD_TOLERANCE, EigenvalueBounds, extreme_eigenvalues, rayleigh_quotient
from .protocol import (
    CANCELLATION_LIMIT,
    CombinedGram,
    as_positions,
    centred_square,
    norm_panels,
)

#: Up to this many samples a Cholesky factor is the quickest proof of definiteness.
MAX_CHOLESKY_SAMPLES = 12_000
#: Up to this many samples all eigenvalues are computed where that proof fails.
MAX_EIGENVALUE_SAMPLES = 1000
#: Minimum number of matrix entries per thread: fewer are read faster than a thread is called.
MIN_THREAD_ENTRIES = 200_000


class MatrixGram(CombinedGram):
    """A combined Gram operator with an optional cached matrix; see `CombinedGram`.

    A subclass computes the matrix and, where that does not fit in memory, rows and products.
    """

    #: Thread pool of this operator; its threads end with the operator.
    _threads: ThreadPoolExecutor | None = None

    @property
    def offers(self) -> frozenset[str]:
        return super().offers | ({"factor"} if self.fits(copies=2) else set())

    def dense(self) -> np.ndarray:
        if self._matrix is None:
            self._matrix = self._dense()
        return self._matrix

    def rows(self, index: slice | np.ndarray) -> np.ndarray:
        if self._matrix is not None:
            return self._matrix[index]
        return self._rows(as_positions(index, self.n))

    def submatrix(self, index: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        if self._matrix is None and len(index):
            return self._submatrix(index).astype(dtype, copy=False)
        return self._gathered(index, index, dtype)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self._matrix is None and len(rows):
            return super().entries(rows, columns)
        return self._gathered(rows, columns, np.float64)

    def _gathered(self, rows: np.ndarray, columns: np.ndarray, dtype: Any) -> np.ndarray:
        """Entries of the matrix; each thread copies some of the rows."""
        out = np.empty((len(rows), len(columns)), dtype=dtype)
        if not len(rows):
            return out
        K = self.dense()

        def copy(part: slice) -> None:
            gather(K, rows[part], columns, out[part])

        # Scattered entries take several times as long to read as contiguous ones.
        self._in_threads(copy, len(rows), 8 * len(columns))
        return out

    def partial_matvec(self, index: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``K[:, index] V`` as a sum of rows; each thread computes some of its entries."""
        plain = self.n <= SMALL_SAMPLES or self._matrix is None or np.ndim(V) > 1
        if plain or not self._matrix.flags.c_contiguous:  # type: ignore[union-attr]
            return super().partial_matvec(index, V)
        K: Any = self._matrix
        out = np.zeros(self.n)
        index, V = np.asarray(index, dtype=np.intp), np.ascontiguousarray(V, dtype=np.float64)

        def sum_rows(part: slice) -> None:
            add_rows_between(K, index, V, out, part.start, part.stop)

        self._in_threads(sum_rows, self.n, len(index))
        return out

    def _in_threads(self, work: Callable[[slice], None], size: int, others: int) -> None:
        """Call ``work`` in threads on parts of ``range(size)``; items read ``others`` entries."""
        step = max(1, -(-size // self.n_jobs), MIN_THREAD_ENTRIES // max(others, 1))
        parts = [slice(i, min(i + step, size)) for i in range(0, size, step)]
        if len(parts) <= 1 or self.n_jobs <= 1:
            for part in parts:
                work(part)
            return
        if self._threads is None:  # starting threads takes longer than many products
            self._threads = ThreadPoolExecutor(self.n_jobs)
        list(self._threads.map(work, parts))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_threads"}

    def matvec(self, V: np.ndarray) -> np.ndarray:
        return self._matvec(V) if self._matrix is None else self._matrix @ V

    @abstractmethod
    def _dense(self) -> np.ndarray:
        """The whole matrix, float64, in new memory."""

    @abstractmethod
    def _rows(self, index: np.ndarray) -> np.ndarray:
        """Rows without the matrix."""

    @abstractmethod
    def _matvec(self, V: np.ndarray) -> np.ndarray:
        """A product without the matrix."""

    def _submatrix(self, index: np.ndarray) -> np.ndarray:
        return self._rows(index)[:, index]

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Solve by a Cholesky factor if two matrices fit, else by conjugate gradients."""
        if not self.fits(copies=2):
            return super().solve(ridge, B)
        A = self._with_ridge(ridge)
        try:
            _cholesky.factor(A)
            return _cholesky.solve(A, B)
        except LinAlgError:
            # An indefinite kernel, about which the user has been warned.
            return np.asarray(solve(self._with_ridge(ridge), B, assume_a="sym"))

    def _with_ridge(self, ridge: np.ndarray) -> np.ndarray:
        A = self.dense().copy()
        A[np.diag_indices_from(A)] += ridge
        return A

    def lowest_eigenvalue(self, *, rough: bool = False) -> EigenvalueBounds:
        n = self.n
        if n <= MAX_CHOLESKY_SAMPLES and self.fits():
            bound = self._single_precision_bound() if rough else None
            if bound is None:
                bound = self._double_precision_bound()
            if bound is not None:
                return bound
        if n <= MAX_EIGENVALUE_SAMPLES and self.fits():
            values = eigvalsh(self.dense(), check_finite=False)
            return EigenvalueBounds(float(values[0]), float(values[-1]), False)
        return extreme_eigenvalues(self.matvec, n, self.rounding)

    def _single_precision_bound(self) -> EigenvalueBounds | None:
        """A lower bound of all eigenvalues from a Cholesky factor in float32, if there is one."""
        largest = float(self.dense().diagonal().max())
        unit = float(np.finfo(np.float32).eps) * largest
        if unit <= 0:
            return None
        # Rounding errors in the factor: the worst case, and the typical case.
        worst, typical = 0.5 * self.n * unit, 4.0 * np.sqrt(self.n) * unit
        for shift in (min(typical, worst), worst):
            K = self.dense().astype(np.float32)
            K[np.diag_indices(self.n)] += np.float32(shift)
            try:
                _cholesky.factor(K)
            except LinAlgError:
                continue
            return EigenvalueBounds(-(worst + shift), self.n * largest, True)
        return None

    def _double_precision_bound(self) -> EigenvalueBounds | None:
        """A proof that no eigenvalue is negative beyond rounding, if there is one."""
        shifted = self.dense().copy()
        bound = float(np.linalg.norm(shifted))  # at most root n times the largest eigenvalue
        # A matrix of low rank has a Cholesky factor only with the full shift that is allowed.
        largest = 0.9 * rayleigh_quotient(self.matvec, self.n, 5)
        allowed = max(PSD_TOLERANCE * max(0.01 * bound, largest), self.rounding)
        shifted[np.diag_indices(self.n)] += allowed
        try:
            _cholesky.factor(shifted)
        except LinAlgError:
            return None
        return EigenvalueBounds(0.0, bound, True)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        if self.n <= SMALL_SAMPLES:
            return super().centred_norm(sample_weight)
        omega = np.ones(self.n) if sample_weight is None else sample_weight
        row_means, no_target = np.zeros(self.n), np.zeros((1, self.n))
        panels = norm_panels(self.n)
        square = 0.0
        for panel in panels:
            K = np.ascontiguousarray(self.rows(panel))
            square += panel_statistics(K, panel.start, omega, no_target, row_means)[0]
        row_means /= omega.sum()
        centred = centred_square(row_means, square, sample_weight)
        if centred > CANCELLATION_LIMIT * square:
            return float(np.sqrt(centred))
        return self.norm_of_centred_entries(row_means, omega, panels)


class GivenMatrix(MatrixGram):
    """The operator of a symmetric matrix."""

    def __init__(self, matrix: np.ndarray, n_jobs: int = 1) -> None:
        self._matrix, self.n, self.n_jobs = matrix, len(matrix), n_jobs
        self.kernel_weights = np.ones(1)

    @property
    def offers(self) -> frozenset[str]:
        # A copy of the matrix may not fit, so no "factor" is offered.
        return super(MatrixGram, self).offers

    def diagonal(self) -> np.ndarray:
        return self.dense().diagonal().copy()

    def forget(self) -> None:
        """The matrix is kept: it cannot be computed again."""

    def _dense(self) -> np.ndarray:
        raise AssertionError("the matrix is given")

    def _rows(self, index: np.ndarray) -> np.ndarray:
        raise AssertionError("the matrix is given")

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        raise AssertionError("the matrix is given")
