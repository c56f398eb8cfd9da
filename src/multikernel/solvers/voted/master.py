"""The master program of a vote: all columns in play, solved again as they come and go.

    max sum_i z_i,   0 <= z_i <= c_i,   |sum_i z_i A_qi| <= limit_q   for the rows q of a pool

(and ``sum_i z_i y_i = 0`` with an intercept); the multipliers of the rows are the coefficients of
the vote. Two solvers do it, both from their last basis: a dense simplex method of our own
(:mod:`.voted_simplex`), which is the fast one, and HiGHS, which has the whole linear program and
steps in where the first gives up.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..._threads import one_blas_thread
from .simplex import Basis, DenseSimplex

if TYPE_CHECKING:
    from .problem import VotedProblem

#: Entries that small against the largest of their column are left out of HiGHS.
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
#: Pivots of the dense method before it gives up, for each row and point.
PIVOTS = 4
#: Entries of a program that is then left to HiGHS; with larger ones it takes too long.
RESCUE = 100_000


@dataclass(frozen=True)
class Vertex:
    """An optimum of the master: z (n,), scaled coefficients (n_columns,), intercept.

    ``solved`` is False where rounding stood in the way: then it is only the last vertex.
    """

    z: np.ndarray
    alpha: np.ndarray
    intercept: float
    solved: bool = True


class Master(Protocol):
    """What a pool of columns asks of a solver.

    Attributes
    ----------
    A : array of shape (first + n_columns, n)
        The rows: with an intercept y comes first, then ``y_i K_k(x_i, x_j) / scale``.
    first : int
        Rows that are no columns of the vote.
    value : float
        The last optimum.
    """

    A: np.ndarray
    first: int
    value: float

    def add(self, rows: np.ndarray) -> None:
        """Append rows."""

    def drop(self, rows: np.ndarray) -> None:
        """Take rows (their positions among the columns) away."""

    def solve(self, limits: np.ndarray) -> Vertex:
        """The optimum under these limits of the columns."""

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the rows that hold with equality (n_rows,) and of the z inside their box."""

    def kept(self) -> Master:
        """The master as it is, whatever becomes of this one."""


class DenseMaster:
    """The master in our own simplex method; HiGHS where that does not come to an end."""

    def __init__(self, problem: VotedProblem) -> None:
        self.problem = problem
        self.first = int(problem.fit_intercept)
        self.A = problem.y[None].copy() if self.first else np.empty((0, problem.columns.n))
        self.simplex = DenseSimplex(problem.costs)
        self.value = float(problem.costs.sum())

    def add(self, rows: np.ndarray) -> None:
        self.A = np.concatenate([self.A, rows])

    def drop(self, rows: np.ndarray) -> None:
        stay = np.ones(len(self.A), dtype=bool)
        stay[rows + self.first] = False
        self.A = self.A[stay]
        self.simplex.renumber(stay)

    def solve(self, limits: np.ndarray) -> Vertex:
        limits = np.append(np.zeros(self.first), limits)
        with one_blas_thread(len(limits)):
            solved = self.simplex.solve(self.A, limits, PIVOTS * sum(self.A.shape))
        if not solved and self.A.size <= RESCUE:
            return self._rescue(limits[self.first :])
        z, alpha = self.simplex.z.copy(), self.simplex.alpha
        self.value = float(z.sum())
        return Vertex(z, alpha[self.first :], float(alpha[0]) if self.first else 0.0, solved)

    def kept(self) -> DenseMaster:
        # Arrays are never changed in place, only replaced.
        new = copy.copy(self)
        new.simplex = copy.copy(self.simplex)
        return new

    def _rescue(self, limits: np.ndarray) -> Vertex:
        """The same by HiGHS, whose basis is where we go on."""
        other = HighsMaster(self.problem)
        other.add(self.A[self.first :])
        vertex = other.solve(limits)
        self.value = other.value
        tight, inner = other.basis()
        if np.count_nonzero(tight) == np.count_nonzero(inner):
            self.simplex.basis = Basis(np.flatnonzero(tight), np.flatnonzero(inner))
        return vertex

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        tight, inner = np.zeros(len(self.A), dtype=bool), np.zeros(self.simplex.n, dtype=bool)
        tight[self.simplex.basis.rows] = True
        inner[self.simplex.basis.inner] = True
        return tight, inner


class HighsMaster:
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
        self.A = np.empty((0, self.n))
        if problem.fit_intercept:
            everyone = np.arange(self.n, dtype=np.int32)
            self.lp.addRow(0.0, 0.0, self.n, everyone, problem.y)
            self.first = 1
            self.A = problem.y[None].copy()
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
        self.A = np.concatenate([self.A, rows])
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
        self.A = np.delete(self.A, rows + self.first, axis=0)
        self.size -= len(rows)

    def solve(self, limits: np.ndarray) -> Vertex:
        """The optimum, with z counted in good units."""
        vertex = self._solve(limits)
        for _ in range(RESCALINGS):
            share = self.value / float(self.problem.costs.sum())
            if 0.125 * self.unit <= share <= 8.0 * self.unit:
                break
            # z is far from its unit, and tolerances are absolute: count in others. What is below
            # the tolerance may be anything, and is approached in steps.
            self.rescale(max(share, RESOLUTION * self.unit))
            vertex = self._solve(limits)
        return vertex

    def _solve(self, limits: np.ndarray) -> Vertex:
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

    def kept(self) -> HighsMaster:
        return self  # it comes to its end or raises

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        import highspy

        basis, basic = self.lp.getBasis(), highspy.HighsBasisStatus.kBasic
        tight = np.array([status != basic for status in basis.row_status], dtype=bool)
        inner = np.array([status == basic for status in basis.col_status], dtype=bool)
        return tight, inner
