"""The kernel as support vector machines read it: the whole matrix, or rows on demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._small import SMALL_SAMPLES
from ..grams.protocol import CombinedGram
from ._plain_steps import PlainResult, plain_steps
from ._smo_dual import SignedDual
from .polish import polish
from .smo import KernelRows, Result, solve

#: Violation of the optimality conditions to reach without the matrix: the active-set method, which
#: would find the exact optimum, cannot be used.
SMO_TOLERANCE_WITHOUT_MATRIX = 1e-5
#: Violation to reach with the matrix, where steps are cheap, if the active-set method fails.
SMO_TOLERANCE_WITH_MATRIX = 1e-7
#: Limit on the steps for this tolerance.
MAX_EXTRA_STEPS = 1_000_000
#: Share of the free memory that the cache of rows may use.
CACHE_SHARE = 0.5
#: Smallest number of rows in the cache.
MIN_CACHE_ROWS = 16


@dataclass(frozen=True)
class Solved:
    """The solution of a dual problem.

    Attributes
    ----------
    alpha : array of shape (m,)
    steps : int
        Steps of SMO.
    finished : bool
        Whether the tolerance was reached within ``max_iter`` steps.
    values : array of shape (n,) or None
        ``K s``, if it is as accurate as a new product with the matrix, or if the solution need not
        be exact.
    """

    alpha: np.ndarray
    steps: int
    finished: bool
    values: np.ndarray | None


@dataclass(frozen=True)
class Source:
    """The kernel in the form that :mod:`multikernel.learners.smo` reads.

    Attributes
    ----------
    matrix : array of shape (n, n) or None
        None if the matrix does not fit in memory.
    kernel : array or KernelRows
    cache_rows : int or None
        Size of the cache, in rows.
    """

    matrix: np.ndarray | None
    kernel: np.ndarray | KernelRows
    cache_rows: int | None

    @classmethod
    def of(cls, gram: CombinedGram) -> Source:
        """The matrix of the operator, or its rows if it does not offer the matrix."""
        if "dense" in gram.offers:
            K = np.ascontiguousarray(gram.dense())
            return cls(K, K, None)
        rows = max(MIN_CACHE_ROWS, int(CACHE_SHARE * gram.room / (8 * gram.n)))
        return cls(None, KernelRows(gram.rows, gram.diagonal()), rows)

    def solve(
        self,
        linear: np.ndarray,
        sign: np.ndarray,
        C: np.ndarray,
        *,
        unit: float = 1.0,
        tol: float = 1e-3,
        delta: float = 0.0,
        start: np.ndarray | None = None,
        intercept: bool = True,
        max_iter: int = -1,
        exact: bool = True,
    ) -> Solved:
        """Solve the dual by SMO to a tolerance; if ``exact``, continue to the exact optimum.

        An active-set method finds the exact optimum. Without the matrix, or if the active-set
        method fails, SMO continues to a smaller tolerance instead.

        Parameters
        ----------
        unit : float
            The tolerance is ``tol * unit``, in units of the gradient.

        Other parameters are those of :func:`multikernel.learners.smo.solve`.
        """

        def smo(tol: float, start: np.ndarray | None, max_iter: int) -> Result:
            return solve(
                self.kernel,
                linear,
                sign,
                C,
                delta=delta,
                intercept=intercept,
                tol=tol * unit,
                alpha0=start,
                max_iter=max_iter,
                cache_rows=self.cache_rows,
            )

        first_tol = tol if self.matrix is not None else min(tol, SMO_TOLERANCE_WITHOUT_MATRIX)
        found: Result | PlainResult | None = None
        if self.matrix is not None and start is None and len(self.matrix) <= SMALL_SAMPLES:
            dual = SignedDual.of(len(self.matrix), linear, sign, C, delta, intercept)
            found = plain_steps(dual, self.matrix, tol * unit, max_iter)
            start = found.alpha
        if found is None or found.status == "unfinished":
            found = smo(first_tol, start, max_iter)
        finished = found.status != "max_iter"
        if not exact:
            return Solved(found.alpha, found.n_iter, finished, found.values)
        if self.matrix is None:
            return Solved(found.alpha, found.n_iter, finished, None)
        polished = polish(
            self.matrix,
            found.alpha,
            found.intercept,
            sign,
            linear,
            C,
            delta,
            intercept=intercept,
        )
        if polished.exact or not finished:
            return Solved(polished.alpha, found.n_iter, polished.exact, polished.values)
        finer = smo(min(tol, SMO_TOLERANCE_WITH_MATRIX), polished.alpha, MAX_EXTRA_STEPS)
        return Solved(finer.alpha, found.n_iter + finer.n_iter, True, None)
