"""The kernel as a support vector machine reads it: the whole matrix, rows on demand, or blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._small import SMALL_SAMPLES
from ..grams.matrix import GivenMatrix, MatrixGram
from ..grams.protocol import CombinedGram
from ._plain_steps import FEW_SAMPLES, PlainResult, plain_steps
from ._smo_dual import SignedDual
from .interior import interior_point
from .polish import polish
from .smo import KernelRows, Result, solve

#: Tolerance on the violation of the optimality conditions without the matrix: smaller, because the
#: active-set method, which would find the exact optimum, cannot be used.
SMO_TOLERANCE_WITHOUT_MATRIX = 1e-5
#: Tolerance with the matrix, where steps are cheap, if the active-set method fails.
SMO_TOLERANCE_WITH_MATRIX = 1e-7
#: Limit on the steps to reach this tolerance.
MAX_EXTRA_STEPS = 1_000_000
#: Up to this many samples n, an interior-point method takes over from SMO after at most
#: ``MAX_SMO_STEPS + MAX_SMO_STEPS_PER_ENTRY * n**2`` steps, which take about as long as it does
#: (1,000 samples: a million steps 1.1 s, the interior-point method 0.7 s).
MAX_INTERIOR_SAMPLES, MAX_SMO_STEPS, MAX_SMO_STEPS_PER_ENTRY = 1000, 20_000, 1
#: Share of the free memory that the cache of rows may use.
CACHE_SHARE = 0.5
#: Smallest number of rows in the cache.
MIN_CACHE_ROWS = 16
#: The solvers of the dual problem.
SOLVERS = ("auto", "smo", "blocks")
#: From this many samples on, block steps are faster than SMO on a matrix in memory.
MIN_BLOCK_SAMPLES = 12_000


@dataclass(frozen=True)
class Solved:
    """The solution of a dual problem.

    Attributes
    ----------
    alpha : array of shape (m,)
    steps : int
        Steps of all methods together: of SMO, of the whole problem or within blocks, and of the
        interior-point method.
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
    gram : CombinedGram
    kernel : array, KernelRows or CombinedGram
        What the solver reads: the matrix or its rows (SMO), or the operator (block steps).
    matrix : array of shape (n, n) or None
        None if the matrix does not fit in memory.
    cache_rows : int or None
        Size of the cache, in rows.
    """

    gram: CombinedGram
    kernel: np.ndarray | KernelRows | CombinedGram
    matrix: np.ndarray | None = None
    cache_rows: int | None = None

    @classmethod
    def of(cls, gram: CombinedGram, solver: str = "auto") -> Source:
        """The operator in the form that suits the solver: see `SVM`."""
        if solver not in SOLVERS:
            raise ValueError(
                f"solver must be one of {', '.join(map(repr, SOLVERS))}; got {solver!r}."
            )
        # The choice must not depend on the number of threads, because results must not.
        matrix = None
        if "dense" in gram.offers and not gram.on_device:
            matrix = np.ascontiguousarray(gram.dense())
            if not isinstance(gram, MatrixGram):  # its other methods would recompute entries
                gram = GivenMatrix(matrix, gram.n_jobs)
        large = matrix is not None and gram.n >= MIN_BLOCK_SAMPLES
        if solver == "blocks" or (solver == "auto" and (gram.on_device or large)):
            return cls(gram, gram, matrix)
        if matrix is not None:
            return cls(gram, matrix, matrix)
        rows = max(MIN_CACHE_ROWS, int(CACHE_SHARE * gram.room / (8 * gram.n)))
        return cls(gram, KernelRows(gram.rows, gram.diagonal()), None, rows)

    @property
    def factors(self) -> bool:
        """Whether the active-set method can be used, which reads parts of the matrix."""
        return self.matrix is not None or self.gram.on_device

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
        """Solve the dual to a tolerance; if ``exact``, continue to the exact optimum.

        An active-set method finds the exact optimum. Without the matrix, or if the active-set
        method fails, the solver continues to a smaller tolerance instead. On small matrices an
        interior-point method takes over from SMO after many steps.

        Parameters
        ----------
        unit : float
            The tolerance is ``tol * unit``, in units of the gradient.

        Other parameters are those of :func:`multikernel.learners.smo.solve`.
        """

        problem = SignedDual.of(self.gram.n, linear, sign, C, delta, intercept)

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

        first_tol = tol if self.factors else min(tol, SMO_TOLERANCE_WITHOUT_MATRIX)
        n, K, steps = self.gram.n, self.kernel, 0
        found: Result | PlainResult | None = None
        if start is None and isinstance(K, np.ndarray) and n <= SMALL_SAMPLES:
            found = plain_steps(problem, K, tol * unit, max_iter)
            start, steps = found.alpha, found.n_iter
        by_interior_point = False
        # If the caller limits the steps, the interior-point method is not used.
        if isinstance(K, np.ndarray) and n <= MAX_INTERIOR_SAMPLES and max_iter < 0:
            if found is None or (found.status == "unfinished" and n > FEW_SAMPLES):
                found = smo(first_tol, start, MAX_SMO_STEPS + MAX_SMO_STEPS_PER_ENTRY * n**2)
                steps += found.n_iter
            if found.status in ("max_iter", "unfinished"):
                inner = interior_point(problem, K, C)
                steps += inner.n_iter
                found = better_of(problem, found, inner)
                by_interior_point = True
        elif found is None or found.status == "unfinished":
            found = smo(first_tol, start, max_iter if max_iter < 0 else max_iter - steps)
            steps += found.n_iter
        finished = found.status != "max_iter"
        if not exact:
            return Solved(found.alpha, steps, finished, found.values)
        if not self.factors:
            return Solved(found.alpha, steps, finished, None)
        polished = polish(
            self.gram,
            found.alpha,
            found.intercept,
            sign,
            linear,
            C,
            delta,
            intercept=intercept,
        )
        if by_interior_point and not polished.exact:
            # The interior point is optimal up to rounding; on a face there is nothing better.
            return Solved(found.alpha, steps, True, None)
        if polished.exact or not finished:
            return Solved(polished.alpha, steps, polished.exact, polished.values)
        finer = smo(min(tol, SMO_TOLERANCE_WITH_MATRIX), polished.alpha, MAX_EXTRA_STEPS)
        return Solved(finer.alpha, steps + finer.n_iter, True, None)


def better_of(
    problem: SignedDual, one: Result | PlainResult, other: PlainResult
) -> Result | PlainResult:
    """The iterate with the lower objective."""
    values = [problem.objective(each.alpha, each.values) for each in (one, other)]
    return other if values[1] <= values[0] else one
