"""Column generation for voted kernels: price all columns in one pass, add the most violated.

The master program is kept in its dual form,

    max sum_i z_i,   0 <= z_i <= c_i,   |sum_i z_i y_i K_k(x_i, x_j)| <= Lambda_k, (k, j) in pool,

in which a column of the vote is a row and its coefficient is the multiplier of the row. The dual
simplex method can continue from its last basis after rows are added or dropped and after penalties
change. Other values of lambda and beta only move the bounds of the rows, so that one pool serves a
whole grid of them.

    pool = {}
    repeat
        z, alpha = optimum of the master
        price all (k, j) at z; bound = t sum z                  one pass over the kernels
        stop if F(alpha) - bound <= tol F(alpha), or no column is violated
        drop columns that have been idle; add the most violated, one kernel for each sample

**Scaling.** A row is divided by a power of two near its largest entry, and the masters scale
samples and units as well (:mod:`.simplex`, :mod:`.master`). The simplex method then sees numbers
around one, even for polynomials of degree ten, whose entries differ by many orders of magnitude,
and for penalties of 1e-8. Scaling back by powers of two is exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, lu_factor, lu_solve

from ..._journal import Answers, journal_of
from ..._quiet import ignoring
from ..._threads import one_blas_thread
from .master import DenseMaster, HighsMaster, Vertex, VoteMaster
from .problem import (
    DualBound,
    Report,
    VotedProblem,
    VotedSolution,
    gap_of,
    largest_penalty,
    lower_bound,
)
from .terms import Terms

#: A column is dropped from the pool after this many rounds without a coefficient.
MAX_IDLE_ROUNDS = 2
#: Idle columns are dropped only if they are at least this many and one in this many of the pool.
MIN_DROPPED_COLUMNS, POOL_COLUMNS_PER_DROPPED = 20, 20
#: Limit on columns added in a round: this many, or one for this many samples if that is more.
MIN_ADDED_COLUMNS, SAMPLES_PER_ADDED_COLUMN = 50, 20
#: Memory per entry of the pool: 8 bytes here, the rest for two copies in HiGHS with indices.
BYTES_PER_ENTRY = 40.0
#: Smallest relative violation of its penalty at which a column is added.
MIN_VIOLATION = 1e-10
#: Coefficients below this share of the largest are rounding errors and count as zero.
MIN_COEF_SHARE = 1e-12
#: How far z may be outside its box, as a share of the box, when a vertex is refined.
REFINED_BOX_TOLERANCE = 1e-7
#: Smallest relative decrease of the master value that counts as a decrease.
MIN_VALUE_DECREASE = 1e-9
#: Solves on the path to difficult penalties, including those that fail.
MAX_PATH_STEPS = 40
#: Duality gap at which a solve on the path, before its end, may stop.
PATH_GAP = 1e-3
#: Problems with at most this many columns have all of them in the pool from the start.
MAX_WHOLE_COLUMNS = 400


class ColumnPool:
    """The columns in the master program, the master itself, and its last basis.

    Parameters
    ----------
    problem : VotedProblem
    whole : bool or None, default=None
        True to solve the whole linear program, with all columns from the start, in HiGHS; None to
        start with all columns if they are few.
    """

    def __init__(self, problem: VotedProblem, whole: bool | None = None) -> None:
        self.problem = problem
        n = problem.columns.n
        self.kernels = np.empty(0, dtype=np.intp)
        self.points = np.empty(0, dtype=np.intp)
        self.scales = np.empty(0)
        self.idle = np.empty(0, dtype=np.intp)
        self.alpha, self.intercept = np.empty(0), 0.0  # last vertex, coefficients scaled
        self.last: np.ndarray | None = None  # the last penalties whose optimum was found
        self.inside = np.zeros((problem.columns.p, n), dtype=bool)
        self.changes: tuple[tuple[str, np.ndarray, np.ndarray], ...] = ()  # of the pool, in order
        self.master: VoteMaster = HighsMaster(problem) if whole else DenseMaster(problem)
        if whole is None:
            room = problem.columns.budget.allows(BYTES_PER_ENTRY * n * self.inside.size)
            whole = room and self.inside.size <= MAX_WHOLE_COLUMNS
        if whole:
            self.add_all()

    def __len__(self) -> int:
        return len(self.kernels)

    @property
    def A(self) -> np.ndarray:
        """``y_i K_k(x_i, x_j) / scale``, one row for each column of the vote."""
        return self.master.A[self.master.first :]

    # -- adding and dropping columns --------------------------------------------------------------

    def add(self, kernels: np.ndarray, points: np.ndarray) -> None:
        """Compute columns and add them to the master, except those that are zero."""
        n = self.problem.columns.n
        self.problem.columns.budget.require(
            BYTES_PER_ENTRY * n * (len(self) + len(kernels)),
            f"A linear program with {len(self) + len(kernels)} columns on {n} samples",
            "Raise memory_budget, or use larger penalties, which need fewer columns.",
        )
        self.changes += (("add", kernels, points),)
        rows = np.empty((len(kernels), n))
        for k in np.unique(kernels).tolist():
            chosen = np.flatnonzero(kernels == k)
            rows[chosen] = self.problem.columns.take(k, points[chosen]).T
        self.inside[kernels, points] = True
        largest = np.abs(rows).max(axis=1, initial=0.0)
        some = largest > 0
        scales = np.exp2(np.ceil(np.log2(largest[some])))
        rows = rows[some] / scales[:, None] * self.problem.y
        self.master.add(rows)
        self.kernels = np.append(self.kernels, kernels[some])
        self.points = np.append(self.points, points[some])
        self.scales = np.append(self.scales, scales)
        self.idle = np.append(self.idle, np.zeros(len(rows), dtype=np.intp))
        self.alpha = np.append(self.alpha, np.zeros(len(rows)))

    def add_all(self) -> None:
        """Add all columns: the whole linear program."""
        p, n = self.inside.shape
        self.add(np.repeat(np.arange(p), n), np.tile(np.arange(n), p))
        self.idle[:] = np.iinfo(np.intp).min  # none is ever dropped

    def drop_idle(self) -> None:
        """Drop the columns that have had no coefficient for some rounds, if there are many."""
        old = self.idle >= MAX_IDLE_ROUNDS
        old &= ~self.master.basis()[0][self.master.first :]
        if np.count_nonzero(old) < max(MIN_DROPPED_COLUMNS, len(self) // POOL_COLUMNS_PER_DROPPED):
            return
        self._drop(old)

    def _drop(self, old: np.ndarray) -> None:
        """Drop the columns of a mask."""
        self.changes += (("drop", np.flatnonzero(old), np.empty(0)),)
        self.master.drop(np.flatnonzero(old))
        self.inside[self.kernels[old], self.points[old]] = False
        keep = ~old
        self.kernels, self.points = self.kernels[keep], self.points[keep]
        self.scales, self.idle, self.alpha = self.scales[keep], self.idle[keep], self.alpha[keep]

    def choose(self, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The most violated columns outside the pool, at most one kernel for each sample.

        Columns of similar kernels at one sample are similar, so one of them is enough.
        """
        ratios = np.where(self.inside, 0.0, ratios)
        best = np.argmax(ratios, axis=0)
        value = ratios[best, np.arange(len(best))]
        size = max(MIN_ADDED_COLUMNS, len(best) // SAMPLES_PER_ADDED_COLUMN)
        order = np.argsort(-value, kind="stable")[:size]
        order = order[value[order] > 1.0 + MIN_VIOLATION]
        return best[order], order

    # -- the loop ---------------------------------------------------------------------------------

    def solve(
        self,
        penalties: np.ndarray,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
        report: Report | None = None,
    ) -> VotedSolution:
        """The optimum for these Lambda_k, starting from the columns and the basis of the last one.

        If rounding prevents that, intermediate penalties are solved first. Their path starts at the
        last penalties that were solved, or at penalties so large that all coefficients are zero.
        """
        kept = self._kept()
        found, reached = self._solve(penalties, tol, max_iter, report)
        if reached:
            self.last = penalties
            return found
        start = self.last
        if start is None:
            none = largest_penalty(self.problem)
            some = penalties > 0
            start = penalties * max(float(np.max(none[some] / penalties[some], initial=1.0)), 1.0)
        done, step = 0.0, 0.5
        for _ in range(MAX_PATH_STEPS):
            part = min(done + step, 1.0)
            between = start ** (1.0 - part) * penalties**part
            goal = tol if part == 1.0 else max(tol, PATH_GAP)
            self._go_back(kept)
            other, reached = self._solve(between, goal, max_iter, report)
            if part == 1.0:
                found = min(found, other, key=lambda one: one.gap)
            if reached:
                done, self.last = part, between
                kept, step = self._kept(), 2.0 * step
            else:
                step *= 0.25
            if done == 1.0:
                break
        return found

    def _kept(self) -> dict[str, Any]:
        """A copy of the state (columns, master, basis) for :meth:`_go_back`."""
        return vars(self) | {"inside": self.inside.copy(), "master": self.master.kept()}

    def _go_back(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self.inside, self.master = self.inside.copy(), self.master.kept()

    def _state(self) -> Answers:
        """The changes of the pool, and the last vertex and its basis."""
        assert isinstance(self.master, DenseMaster)
        simplex = self.master.simplex
        return {
            "changes": self.changes,
            **{"idle": self.idle, "alpha": self.alpha, "intercept": self.intercept},
            **{"last": self.last, "value": self.master.value},
            "simplex": simplex.state(),
        }

    def _restore(self, state: Answers) -> None:
        """Restore the pool from `_state`; the same groups of columns give the same bits."""
        assert isinstance(self.master, DenseMaster)
        for what, first, second in state["changes"][len(self.changes) :]:
            if what == "add":
                self.add(first, second)
            else:
                old = np.zeros(len(self), dtype=bool)
                old[first] = True
                self._drop(old)
        self.idle, self.alpha, self.intercept = state["idle"], state["alpha"], state["intercept"]
        self.last, self.master.value = state["last"], state["value"]
        self.master.simplex.restore(state["simplex"])

    def _solve(
        self, penalties: np.ndarray, tol: float, max_iter: int, report: Report | None
    ) -> tuple[VotedSolution, bool]:
        """The last solution, and whether its master was solved: rounding may prevent that."""
        history: list[dict[str, Any]] = []
        best = DualBound(np.zeros(self.problem.columns.n), 0.0, np.empty(0))
        fallen = np.inf  # the value of the master when columns were last dropped
        # The state of HiGHS cannot be stored; a whole program is solved in one round anyway.
        journal = journal_of(report) if isinstance(self.master, DenseMaster) else None
        first, kept = 1, None if journal is None else journal.state("columns")
        if kept is not None:
            first, history, fallen = kept["iteration"], kept["history"], kept["fallen"]
            best = DualBound(kept["z"], kept["bound"], np.empty(0))
            self._restore(kept["pool"])

        def state() -> Answers:
            return {
                "iteration": iteration + 1,
                "history": history,
                "fallen": fallen,
                **{"z": best.z, "bound": best.value},
                "pool": self._state(),
            }

        for iteration in range(first, max_iter + 1):
            vertex = self._vertex(penalties[self.kernels] / self.scales)
            final = iteration == max_iter or not vertex.solved
            terms, objective, bound, gap = self._judge(penalties, vertex, best)
            kernels, points = self.choose(bound.ratios)
            if vertex.solved and (gap <= tol or not len(kernels) or final):
                vertex = self._refine(penalties, vertex)
                best = max(best, bound, key=lambda b: b.value)
                terms, objective, bound, gap = self._judge(penalties, vertex, best)
                kernels, points = self.choose(bound.ratios)
            best = max(best, bound, key=lambda b: b.value)
            entry = {
                "step": "columns",
                "objective": objective,
                "bound": best.value,
                "gap": gap,
                "columns": len(self),
                "terms": len(terms),
                "active": len(np.unique(terms.kernels)),
                "support": len(np.unique(terms.points)),
            }
            history.append(entry)
            if report is not None:
                report(entry)
            if gap <= tol or not len(kernels) or final:
                break
            self.idle = np.where(vertex.alpha != 0, np.minimum(self.idle, 0), self.idle + 1)
            # Columns are dropped only when the value falls, so that the loop cannot cycle.
            if self.master.value < fallen * (1.0 - MIN_VALUE_DECREASE):
                fallen = self.master.value
                self.drop_idle()
            self.add(kernels, points)
            if journal is not None:
                journal.keep("columns", state)
        found = VotedSolution(
            terms, vertex.intercept, objective, best.value, gap, best.z, iteration, history
        )
        return found, vertex.solved

    def _vertex(self, limits: np.ndarray) -> Vertex:
        """The optimum of the master or, if rounding prevents it, the better of two vertices."""
        vertex = self.master.solve(limits)
        if not vertex.solved:
            before = replace(vertex, alpha=self.alpha, intercept=self.intercept)
            vertex = min(vertex, before, key=lambda one: self._value(one, limits))
        self.alpha, self.intercept = vertex.alpha, vertex.intercept
        return vertex

    def _judge(
        self, penalties: np.ndarray, vertex: Vertex, best: DualBound
    ) -> tuple[Terms, float, DualBound, float]:
        """Terms, F, lower bound and gap of a vertex; the gap is to the better of both bounds."""
        problem, alpha = self.problem, vertex.alpha
        used = np.flatnonzero(np.abs(alpha) > MIN_COEF_SHARE * np.abs(alpha).max(initial=0.0))
        coef = alpha[used] / self.scales[used]
        terms = Terms.sorted(self.kernels[used], self.points[used], coef)
        values = problem.y * (alpha[used] @ self.A[used])
        objective = problem.objective(penalties, terms, values, vertex.intercept)
        bound = lower_bound(problem, penalties, vertex.z)
        return terms, objective, bound, gap_of(problem, objective, max(bound.value, best.value))

    def _refine(self, penalties: np.ndarray, vertex: Vertex) -> Vertex:
        """The same vertex computed from its basis, with all entries and in full precision.

        The rows that hold with equality and the z inside their box form a square system, whose
        solution makes the margins of those samples one. HiGHS leaves out tiny entries and stops at
        a tolerance, which matters if large coefficients cancel. The refined vertex is returned
        only if its objective is not larger.
        """
        problem, first, z = self.problem, self.master.first, vertex.z
        limits = penalties[self.kernels] / self.scales
        tight, inner = self.master.basis()
        if not tight.any() or np.count_nonzero(tight) != np.count_nonzero(inner):
            return vertex
        rows = self.master.A
        bounds = np.append(np.zeros(first), np.copysign(limits, self.A @ z))
        square = rows[np.ix_(tight, inner)]
        try:
            # Ignore warnings: poor solutions are discarded below.
            with one_blas_thread(len(square)), ignoring(LinAlgWarning):
                factors = lu_factor(square)
                exact = lu_solve(factors, np.ones(len(square)), trans=1)
                fixed = rows[np.ix_(tight, ~inner)] @ z[~inner]
                inside = lu_solve(factors, bounds[tight] - fixed)
        except (LinAlgError, ValueError):
            return vertex
        multipliers = np.zeros(len(rows))
        multipliers[tight] = exact
        new = Vertex(z, multipliers[first:], float(multipliers[0]) if first else 0.0)
        if self._value(new, limits) <= self._value(vertex, limits):
            vertex = new
        close = REFINED_BOX_TOLERANCE * problem.costs[inner]
        if np.all((inside >= -close) & (inside <= problem.costs[inner] + close)):
            z = z.copy()
            z[inner] = inside
        return replace(vertex, z=z)

    def _value(self, vertex: Vertex, limits: np.ndarray) -> float:
        """F of the scaled coefficients of a vertex."""
        margins = vertex.alpha @ self.A + self.problem.y * vertex.intercept
        slack = float(self.problem.costs @ np.maximum(0.0, 1.0 - margins))
        return slack + float(limits @ np.abs(vertex.alpha))
