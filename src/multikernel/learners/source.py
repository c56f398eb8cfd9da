"""Where a machine reads its kernel: the whole matrix, or rows when there is no room for that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..grams.protocol import CombinedGram
from .polish import polish
from .smo import KernelRows, Result, solve

#: Violation of the optimality conditions to reach where no active-set method can follow.
FINE = 1e-5
#: The same for a matrix at hand, where steps are cheap, and the most steps to spend on it.
FINEST, STEPS = 1e-7, 1_000_000


@dataclass(frozen=True)
class Solved:
    """The dual variables of a machine.

    Attributes
    ----------
    alpha : array of shape (m,)
    steps : int
        Of SMO.
    finished : bool
        Whether it got there within ``max_iter``.
    values : array of shape (n,) or None
        ``K s``, where it is as good as a product with the matrix, or good enough for an answer
        that need not be exact.
    """

    alpha: np.ndarray
    steps: int
    finished: bool
    values: np.ndarray | None


@dataclass(frozen=True)
class Source:
    """What :mod:`multikernel.learners.smo` is given.

    Attributes
    ----------
    matrix : array of shape (n, n) or None
        None where it does not fit.
    kernel : array or KernelRows
    cache_rows : int or None
        How many rows may be held at a time.
    """

    matrix: np.ndarray | None
    kernel: np.ndarray | KernelRows
    cache_rows: int | None

    @classmethod
    def of(cls, gram: CombinedGram) -> Source:
        if "dense" in gram.offers:
            K = np.ascontiguousarray(gram.dense())
            return cls(K, K, None)
        rows = max(16, int(0.5 * gram.room / (8 * gram.n)))
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
        """SMO to a tolerance in units of the gradient, then an active-set method to the optimum.

        The second only if the answer is to be ``exact``.

        Where the matrix is not at hand, or where the optimum is no corner that the active-set
        method could find, SMO goes on alone to a finer tolerance. Other parameters are those of
        :func:`multikernel.learners.smo.solve`.
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

        found = smo(tol if self.matrix is not None else min(tol, FINE), start, max_iter)
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
        finer = smo(min(tol, FINEST), polished.alpha, STEPS)
        return Solved(finer.alpha, found.n_iter + finer.n_iter, True, None)
