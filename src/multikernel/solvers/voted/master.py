"""The master program of a vote: the linear program over the columns of a pool.

    max sum_i z_i,   0 <= z_i <= c_i,   |sum_i z_i A_qi| <= limit_q   for the rows q of a pool

(and ``sum_i z_i y_i = 0`` with an intercept); the multipliers of the rows are the coefficients of
the vote. It is solved again whenever rows are added or dropped or limits change. Two solvers do
this, both starting from their last basis: a dense simplex method (:mod:`.simplex`), which is the
faster one, and HiGHS, which solves the whole linear program and takes over if the dense method
fails.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..._threads import one_blas_thread
from ..highs import change_rows_bounds
from .simplex import DenseSimplex, SimplexBasis

if TYPE_CHECKING:
    from .problem import VotedProblem

#: Entries below this share of the largest of their column are left out of HiGHS.
MIN_ENTRY_SHARE = 1e-12

#: Options of HiGHS, tried in turn until it finds the optimum; the second entry resets the others.
HIGHS_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {},
    {"simplex_strategy": 1, "dual_simplex_cost_perturbation_multiplier": 1.0, "solver": "simplex"},
    {"dual_simplex_cost_perturbation_multiplier": 0.0},
    {"simplex_strategy": 4},
    {"solver": "ipm"},
)
#: Smallest bounds of the rows, in units of z, tried in turn if HiGHS fails with smaller ones.
MIN_ROW_BOUNDS = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)
#: Smallest factor by which the unit of z may change at once.
MIN_UNIT_FACTOR = 2.0**-30
#: How often the unit of z may change in one solve.
MAX_RESCALINGS = 4
#: The unit of z changes if the share of z in its box differs from it by more than this factor.
UNIT_TOLERANCE = 8.0
#: Limit on pivots of the dense method, as a multiple of the number of rows plus samples.
PIVOTS_PER_ROW = 4
#: If the dense method fails, HiGHS solves programs of at most this many entries.
MAX_RESCUE_ENTRIES = 100_000


@dataclass(frozen=True)
class Vertex:
    """An optimum of the master: z (n,), scaled coefficients (n_columns,), intercept.

    If rounding prevented the optimum, ``solved`` is False and this is the last vertex.
    """

    z: np.ndarray
    alpha: np.ndarray
    intercept: float
    solved: bool = True


class VoteMaster(Protocol):
    """A solver of the master program, as a pool of columns uses it.

    Attributes
    ----------
    A : array of shape (first + n_columns, n)
        The rows: y if there is an intercept, then ``y_i K_k(x_i, x_j) / scale``.
    first : int
        Number of rows before those of the columns: 1 with an intercept, else 0.
    value : float
        The value of the last optimum.
    """

    A: np.ndarray
    first: int
    value: float

    def add(self, rows: np.ndarray) -> None:
        """Append rows."""

    def drop(self, rows: np.ndarray) -> None:
        """Remove rows, given by their positions among the columns."""

    def solve(self, limits: np.ndarray) -> Vertex:
        """The optimum under these limits of the columns."""

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the rows that hold with equality (n_rows,) and of the z inside their box."""

    def kept(self) -> VoteMaster:
        """A copy of the master that later changes to this one do not affect."""


class DenseMaster:
    """The master by the dense simplex method, or by HiGHS if that fails."""

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
            solved = self.simplex.solve(self.A, limits, PIVOTS_PER_ROW * sum(self.A.shape))
        if not solved and self.A.size <= MAX_RESCUE_ENTRIES:
            return self._rescue(limits[self.first :])
        z, alpha = self.simplex.z.copy(), self.simplex.alpha
        self.value = float(z.sum())
        return Vertex(z, alpha[self.first :], float(alpha[0]) if self.first else 0.0, solved)

    def kept(self) -> DenseMaster:
        # Arrays are replaced, never changed in place; only the random generator is shared.
        new = copy.copy(self)
        new.simplex = copy.copy(self.simplex)
        return new

    def _rescue(self, limits: np.ndarray) -> Vertex:
        """The optimum by HiGHS; the dense method continues from its basis."""
        other = HighsMaster(self.problem)
        other.add(self.A[self.first :])
        vertex = other.solve(limits)
        self.value = other.value
        tight, inner = other.basis()
        if np.count_nonzero(tight) == np.count_nonzero(inner):
            self.simplex.basis = SimplexBasis(np.flatnonzero(tight), np.flatnonzero(inner))
        return vertex

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        tight, inner = np.zeros(len(self.A), dtype=bool), np.zeros(self.simplex.n, dtype=bool)
        tight[self.simplex.basis.rows] = True
        inner[self.simplex.basis.inner] = True
        return tight, inner


class HighsMaster:
    """The master in HiGHS, which keeps its basis between solves.

    With ``u = unit mean(c)`` the variables are ``z / u``, so that they and the bounds
    ``limit / u`` of the rows stay near one as the objective falls.
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
            "presolve": "off",  # presolving would discard the basis
            "simplex_scale_strategy": 0,  # rows and units are scaled here
            "simplex_dual_edge_weight_strategy": 1,  # Devex: steepest edge is slow on dense rows
            "small_matrix_value": MIN_ENTRY_SHARE,
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
        """Change the unit of z, rounded to a power of two so that scaling is exact."""
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
        large = np.abs(rows) > MIN_ENTRY_SHARE
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
        """The optimum, with a unit of z that fits its size."""
        vertex = self._solve(limits)
        for _ in range(MAX_RESCALINGS):
            share = self.value / float(self.problem.costs.sum())
            if self.unit / UNIT_TOLERANCE <= share <= UNIT_TOLERANCE * self.unit:
                break
            # The tolerances of HiGHS are absolute, so z should be near one in its unit. A value
            # below the tolerance is not accurate, so the unit is reduced in steps.
            self.rescale(max(share, MIN_UNIT_FACTOR * self.unit))
            vertex = self._solve(limits)
        return vertex

    def _solve(self, limits: np.ndarray) -> Vertex:
        for floor in MIN_ROW_BOUNDS:
            # Limits too small for HiGHS are raised here; the certificate uses the true limits.
            self.limits = np.maximum(limits, floor * self.u)
            if self.size:
                rows = np.arange(self.first, self.first + self.size, dtype=np.int32)
                bounds = self.limits / self.u
                change_rows_bounds(self.lp, rows, -bounds, bounds)
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
        # The coefficient of a column is minus the multiplier of its row.
        multipliers = -np.array(solution.row_dual)
        self.value = float(z.sum())
        intercept = float(multipliers[0]) if self.first else 0.0
        return Vertex(z, multipliers[self.first :], intercept)

    def _run(self) -> bool:
        """Solve from the last basis, with more robust options if HiGHS fails; True on success."""
        for options in HIGHS_ATTEMPTS:
            for name, option in options.items():
                self.lp.setOptionValue(name, option)
            if options:
                self.lp.clearSolver()  # the basis may be ill-conditioned
            self.lp.run()
            solved = self.lp.getModelStatus() == self.optimal
            if solved:
                break
        for name, option in HIGHS_ATTEMPTS[1].items():
            self.lp.setOptionValue(name, option)
        return bool(solved)

    def kept(self) -> HighsMaster:
        return self  # HiGHS either finds the optimum or raises, so there is nothing to restore

    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        import highspy

        basis, basic = self.lp.getBasis(), highspy.HighsBasisStatus.kBasic
        tight = np.array([status != basic for status in basis.row_status], dtype=bool)
        inner = np.array([status == basic for status in basis.col_status], dtype=bool)
        return tight, inner
