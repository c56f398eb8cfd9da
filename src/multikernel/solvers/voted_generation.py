"""Column generation for voted kernels: price all columns in one pass, add the most violated.

The master program is kept in its dual form,

    max sum_i z_i,   0 <= z_i <= c_i,   |sum_i z_i y_i K_k(x_i, x_j)| <= Lambda_k, (k, j) in pool,

one HiGHS model in which a column of the vote is a row: new rows, other penalties and dropped rows
all leave a basis from which the dual simplex method goes on, and the coefficients are the rows'
multipliers. Other values of lambda and beta only move the rows' bounds, so that a whole grid of
them is walked with one pool.

    pool = {}
    repeat
        z, alpha = optimum of the master
        price all (k, j) at z; bound = t sum z                  one pass over the kernels
        stop if F(alpha) - bound <= tol F(alpha), or no column is violated
        forget columns that have been idle; add the most violated, one kernel for each point

**Scaling.** A row is divided by a power of two near its largest entry, and z is counted in units of
the objective: polynomials of degree ten, whose entries spread over many orders of magnitude, and
penalties of 1e-8 both reach the simplex method as numbers around one. Powers of two make the way
back exact.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, lu_factor, lu_solve

from .._threads import one_blas_thread
from .voted import Bound, Report, VotedProblem, VotedSolution, gap_of, lower_bound
from .voted_columns import Terms

#: A pool row is forgotten after so many rounds without a coefficient.
IDLE = 2
#: Columns added in a round: at least this many, and one for so many points.
BATCH, POINTS_PER_COLUMN = 50, 20
#: Bytes that a pool needs for each entry: ours, and the two copies of HiGHS with their indices.
ENTRY_BYTES = 40.0
#: A column within this of its penalty is not worth a round.
SLACK = 1e-10
#: Entries that small against the largest of their column are left out of the master.
TINY = 1e-12

#: What is asked of HiGHS, one after the other, until it answers; the second is its usual self.
ATTEMPTS: tuple[dict[str, Any], ...] = (
    {},
    {"simplex_strategy": 1, "dual_simplex_cost_perturbation_multiplier": 1.0, "solver": "simplex"},
    {"dual_simplex_cost_perturbation_multiplier": 0.0},
    {"simplex_strategy": 4},
    {"solver": "ipm"},
)
#: Smallest bounds of the rows, tried in turn where HiGHS can do nothing with smaller ones.
FLOORS = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)
#: How far the unit of z may fall at once, and how often it may move before an answer is taken.
RESOLUTION, RESCALINGS = 2.0**-30, 4
#: Problems with so few columns have all of them in their pool from the start.
FEW = 400


@dataclass(frozen=True)
class Vertex:
    """An optimum of the master: z (n,), scaled coefficients (n_columns,), intercept."""

    z: np.ndarray
    alpha: np.ndarray
    intercept: float


class ColumnPool:
    """The columns in play, the master program over them, and its last basis.

    Parameters
    ----------
    problem : VotedProblem
    whole : bool or None, default=None
        Whether to begin with all columns, the whole linear program; None for "if they are few".
    """

    def __init__(self, problem: VotedProblem, whole: bool | None = None) -> None:
        self.problem = problem
        n = problem.columns.n
        self.kernels = np.empty(0, dtype=np.intp)
        self.points = np.empty(0, dtype=np.intp)
        self.scales = np.empty(0)
        self.A = np.empty((0, n))  # y_i K_k(x_i, x_j) / scale, one row for each column of the vote
        self.idle = np.empty(0, dtype=np.intp)
        self.inside = np.zeros((problem.columns.p, n), dtype=bool)
        self.master = Master(problem)
        if whole is None:
            room = problem.columns.budget.allows(ENTRY_BYTES * n * self.inside.size)
            whole = room and self.inside.size <= FEW
        if whole:
            self.add_all()

    def __len__(self) -> int:
        return len(self.kernels)

    # -- columns in and out -----------------------------------------------------------------------

    def add(self, kernels: np.ndarray, points: np.ndarray) -> None:
        """Fetch columns and put them into the master; those that are zero stay out."""
        n = self.problem.columns.n
        self.problem.columns.budget.require(
            ENTRY_BYTES * n * (len(self) + len(kernels)),
            f"A linear program with {len(self) + len(kernels)} columns on {n} samples",
            "Raise memory_budget, or use larger penalties, which need fewer columns.",
        )
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
        self.A = np.concatenate([self.A, rows])

    def add_all(self) -> None:
        """Every column there is: the whole linear program."""
        p, n = self.inside.shape
        self.add(np.repeat(np.arange(p), n), np.tile(np.arange(n), p))
        self.idle[:] = np.iinfo(np.intp).min  # none is ever forgotten

    def forget(self) -> None:
        """Drop the columns that have had no coefficient for some rounds."""
        old = self.idle >= IDLE
        if np.count_nonzero(old) < max(20, len(self) // 20):
            return
        self.master.drop(np.flatnonzero(old))
        self.inside[self.kernels[old], self.points[old]] = False
        keep = ~old
        self.kernels, self.points = self.kernels[keep], self.points[keep]
        self.scales, self.idle, self.A = self.scales[keep], self.idle[keep], self.A[keep]

    def choose(self, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The most violated columns outside the pool, for each point that of one kernel.

        Columns of neighbouring kernels at one point are much alike; one of them is enough.
        """
        ratios = np.where(self.inside, 0.0, ratios)
        best = np.argmax(ratios, axis=0)
        value = ratios[best, np.arange(len(best))]
        size = max(BATCH, len(best) // POINTS_PER_COLUMN)
        order = np.argsort(-value, kind="stable")[:size]
        order = order[value[order] > 1.0 + SLACK]
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
        """The optimum for these Lambda_k, from the columns and the basis of the last one."""
        history: list[dict[str, Any]] = []
        best = Bound(np.zeros(self.problem.columns.n), 0.0, np.empty(0))
        fallen = np.inf  # the master's value when columns were last forgotten
        for iteration in range(1, max_iter + 1):
            vertex = self._optimum(penalties)
            terms, objective, bound, gap = self._judge(penalties, vertex, best)
            kernels, points = self.choose(bound.ratios)
            if gap <= tol or not len(kernels) or iteration == max_iter:
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
            if gap <= tol or not len(kernels) or iteration == max_iter:
                break
            self.idle = np.where(vertex.alpha != 0, np.minimum(self.idle, 0), self.idle + 1)
            # While the value falls nothing that was forgotten can be met in a circle.
            if self.master.value < fallen * (1.0 - 1e-9):
                fallen = self.master.value
                self.forget()
            self.add(kernels, points)
        return VotedSolution(
            terms, vertex.intercept, objective, best.value, gap, best.z, iteration, history
        )

    def _judge(
        self, penalties: np.ndarray, vertex: Vertex, best: Bound
    ) -> tuple[Terms, float, Bound, float]:
        """Terms, F, lower bound and gap of a vertex; the better of the two bounds counts."""
        problem, alpha = self.problem, vertex.alpha
        used = np.flatnonzero(np.abs(alpha) > TINY * np.abs(alpha).max(initial=0.0))
        coef = alpha[used] / self.scales[used]
        terms = Terms.sorted(self.kernels[used], self.points[used], coef)
        values = problem.y * (alpha[used] @ self.A[used])
        objective = problem.objective(penalties, terms, values, vertex.intercept)
        bound = lower_bound(problem, penalties, vertex.z)
        return terms, objective, bound, gap_of(problem, objective, max(bound.value, best.value))

    def _optimum(self, penalties: np.ndarray) -> Vertex:
        """The optimum of the master, with z counted in good units."""
        limits = penalties[self.kernels] / self.scales
        vertex = self.master.solve(limits)
        for _ in range(RESCALINGS):
            unit = self.master.unit
            share = self.master.value / float(self.problem.costs.sum())
            if 0.125 * unit <= share <= 8.0 * unit:
                break
            # z is far from its unit, and tolerances are absolute: count in others. What is below
            # the tolerance may be anything, and is approached in steps.
            self.master.rescale(max(share, RESOLUTION * unit))
            vertex = self.master.solve(limits)
        return vertex

    def _refine(self, penalties: np.ndarray, vertex: Vertex) -> Vertex:
        """The same vertex from its basis, with all entries and in full precision.

        The rows that hold with equality and the z inside their box belong to a square system: its
        solution makes the margins of those points one. HiGHS leaves out tiny entries and stops at
        a tolerance, which counts when large coefficients cancel. What comes out is taken only if
        it is a better answer.
        """
        problem, first, z = self.problem, self.master.first, vertex.z
        limits = penalties[self.kernels] / self.scales
        tight, inner = self.master.basis()
        if not tight.any() or np.count_nonzero(tight) != np.count_nonzero(inner):
            return vertex
        rows = np.vstack([problem.y[None], self.A]) if first else self.A
        bounds = np.append(np.zeros(first), np.copysign(self.master.limits, self.A @ z))
        square = rows[np.ix_(tight, inner)]
        try:
            with one_blas_thread(len(square)), warnings.catch_warnings():
                warnings.simplefilter("ignore", LinAlgWarning)  # a poor answer is not taken
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
        close = 1e-7 * problem.costs[inner]
        if np.all((inside >= -close) & (inside <= problem.costs[inner] + close)):
            z = z.copy()
            z[inner] = inside
        return replace(vertex, z=z)

    def _value(self, vertex: Vertex, limits: np.ndarray) -> float:
        """F in scaled coefficients."""
        margins = vertex.alpha @ self.A + self.problem.y * vertex.intercept
        slack = float(self.problem.costs @ np.maximum(0.0, 1.0 - margins))
        return slack + float(limits @ np.abs(vertex.alpha))


class Master:
    """``max sum z`` over the box and the rows of a pool, kept warm in HiGHS.

    With ``u = unit mean(c)`` the variables are ``z / u``, so that they and the rows' bounds
    ``limit / u`` stay near one as the objective falls.
    """

    def __init__(self, problem: VotedProblem) -> None:
        import highspy

        self.problem, self.n = problem, problem.columns.n
        self.infinity = highspy.kHighsInf
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.lp: Any = highspy.Highs()
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            "presolve": "off",  # it would throw the basis away
            "simplex_scale_strategy": 0,  # rows and units are scaled here
            "simplex_dual_edge_weight_strategy": 1,  # Devex: rows are dense, steepest edges dear
            "small_matrix_value": TINY,
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        for name, option in options.items():
            self.lp.setOptionValue(name, option)
        nothing, none = np.empty(0), np.empty(0, dtype=np.int32)
        starts = np.zeros(self.n, dtype=np.int32)
        ones, zeros = np.ones(self.n), np.zeros(self.n)
        self.lp.addCols(self.n, -ones, zeros, ones, 0, starts, none, nothing)
        self.first = 0
        if problem.fit_intercept:
            everyone = np.arange(self.n, dtype=np.int32)
            self.lp.addRow(0.0, 0.0, self.n, everyone, problem.y)
            self.first = 1
        self.size = 0
        self.limits = np.empty(0)
        self.value = float(problem.costs.sum())
        self.rescale(1.0)

    def rescale(self, unit: float) -> None:
        """Count z in other units; a power of two, so that nothing is rounded."""
        self.unit = float(np.exp2(np.round(np.log2(unit))))
        mean = float(np.exp2(np.round(np.log2(self.problem.costs.mean()))))
        self.u = self.unit * mean
        everyone = np.arange(self.n, dtype=np.int32)
        box = self.problem.costs / self.u
        self.lp.changeColsBounds(self.n, everyone, np.zeros(self.n), box)

    def add(self, rows: np.ndarray) -> None:
        q = len(rows)
        if not q:
            return
        large = np.abs(rows) > TINY
        which, index = np.nonzero(large)
        starts = np.searchsorted(which, np.arange(q)).astype(np.int32)
        free = np.full(q, self.infinity)
        self.lp.addRows(
            q,
            -free,
            free,
            len(index),
            starts,
            index.astype(np.int32),
            np.ascontiguousarray(rows[large]),
        )
        self.size += q

    def drop(self, rows: np.ndarray) -> None:
        self.lp.deleteRows(len(rows), (rows + self.first).astype(np.int32))
        self.size -= len(rows)

    def solve(self, limits: np.ndarray) -> Vertex:
        """The optimum under these bounds of the rows."""
        for floor in FLOORS:
            # What HiGHS cannot tell from zero it is spared; the certificate is of the true limits.
            self.limits = np.maximum(limits, floor * self.u)
            if self.size:
                rows = np.arange(self.first, self.first + self.size, dtype=np.int32)
                bounds = self.limits / self.u
                self.lp.changeRowsBounds(self.size, rows, -bounds, bounds)
            if self._run():
                break
        else:
            status = self.lp.modelStatusToString(self.lp.getModelStatus())
            raise RuntimeError(
                f"HiGHS could not solve the linear program of a vote: {status}. Larger penalties, "
                "or kernels of comparable size, make it better conditioned."
            )
        solution = self.lp.getSolution()
        z = np.array(solution.col_value) * self.u
        # The multiplier of a row is minus the coefficient of its column.
        multipliers = -np.array(solution.row_dual)
        self.value = float(z.sum())
        intercept = float(multipliers[0]) if self.first else 0.0
        return Vertex(z, multipliers[self.first :], intercept)

    def _run(self) -> bool:
        """The dual simplex method from the last basis; something sturdier where it gives up."""
        for options in ATTEMPTS:
            for name, option in options.items():
                self.lp.setOptionValue(name, option)
            if options:
                self.lp.clearSolver()  # the basis may have become too badly conditioned
            self.lp.run()
            solved = self.lp.getModelStatus() == self.optimal
            if solved:
                break
        for name, option in ATTEMPTS[1].items():
            self.lp.setOptionValue(name, option)
        return bool(solved)

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the rows that hold with equality (n_rows,) and of the z inside their box."""
        import highspy

        basis, basic = self.lp.getBasis(), highspy.HighsBasisStatus.kBasic
        tight = np.array([status != basic for status in basis.row_status])
        inner = np.array([status == basic for status in basis.col_status])
        return tight, inner
