"""A dual simplex method for dense linear programs in which rows and variables have two bounds.

    max sum_i z_i,   0 <= z_i <= c_i,   -L_q <= sum_i A_qi z_i <= L_q

is the master program of a vote: a few hundred dense rows and thousands of variables, solved many
times with rows added or dropped or with other limits. A general solver stores the matrix as sparse
and spends most of a pivot on bookkeeping; here a pivot reads the matrix once.

A basis is a set S of rows at their limits and a set E of z between their bounds, of the same size.
With ``B = A[S, E]`` the z in E solve ``A[S] z = ±L``, the coefficients of the vote
``alpha B = 1`` give the samples of E a margin of one, and ``d = 1 - alpha A`` are the reduced costs
of the other z. *Since all bounds are finite, every basis is dual feasible*: a variable whose
reduced cost has the wrong sign is moved to its other bound. So there is no first phase, rows can be
added, dropped and changed at any time, and inverting B again removes the errors of many pivots.

    repeat
        leaving   the variable farthest outside its bounds, in units of its steepest edge
        entering  along the ray, variables whose reduced cost changes sign move to their other bound
                  as long as the dual objective rises; the next one enters the basis (long steps)
        update    z, r = A z, d, alpha, the explicit inverse of B and the steepest edge weights

Rows and variables are scaled by powers of two until their largest entries are near one, and
tolerances are relative to the bounds. This also brings the entries of polynomials of degree ten on
samples of very different norms, ``K_ij ~ s_i s_j`` over many orders of magnitude, near one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr

from . import _simplex_loops as loops

#: How far a variable may be outside its bounds, relative to the bound.
FEASIBILITY_TOLERANCE = 1e-9
#: Rounding error of a sum, relative to the sum of absolute values.
ROUNDING_ERROR = 1e-15
#: Rounds of equilibration.
EQUILIBRATION_ROUNDS = 6
#: Relative size of the random changes of the costs that end stalling.
COST_PERTURBATION = 1e-6
#: Pivots between two inversions: this many, or one for this many rows of the basis if that is more.
MIN_PIVOTS_PER_INVERSION, BASIS_ROWS_PER_PIVOT = 100, 2
#: Largest entry of ``B inverse(B) - I`` at which an inverse is accepted.
MAX_INVERSE_ERROR = 1e-3
#: Smallest relative size of independent directions of a singular basis; it rises with each failure.
RANK_TOLERANCES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
#: Limit on singular bases in one solve.
MAX_SINGULAR_BASES = 10


@dataclass
class SimplexBasis:
    """The rows at their limits (positions in A) and as many z between their bounds."""

    rows: np.ndarray
    inner: np.ndarray


class DenseSimplex:
    """The simplex method with the basis and the solution of its last call.

    Parameters
    ----------
    box : array of shape (n,)
        The upper bounds c of z.
    """

    def __init__(self, box: np.ndarray) -> None:
        self.box = np.ascontiguousarray(box, dtype=np.float64)
        self.n = len(box)
        nothing = np.empty(0, dtype=np.int64)
        self.basis = SimplexBasis(nothing, nothing)
        self.z = self.box.copy()
        self.alpha = np.empty(0)
        self.at = np.full(self.n, -2, dtype=np.int64)
        self.pivots = 0
        self._rng = np.random.default_rng(0)

    def state(self) -> dict[str, Any]:
        """The state on which the next call depends, for `restore`."""
        return {
            **{"rows": self.basis.rows, "inner": self.basis.inner, "at": self.at},
            **{"z": self.z, "alpha": self.alpha, "pivots": self.pivots},
            "random": self._rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the result of `state`."""
        self.basis = SimplexBasis(state["rows"], state["inner"])
        self.at, self.z, self.alpha = state["at"], state["z"], state["alpha"]
        self.pivots = state["pivots"]
        self._rng.bit_generator.state = state["random"]

    def renumber(self, stay: np.ndarray) -> None:
        """Renumber the basis after rows outside it were dropped; ``stay`` masks the others."""
        self.basis = SimplexBasis((np.cumsum(stay) - 1)[self.basis.rows], self.basis.inner)

    def solve(self, A: np.ndarray, limits: np.ndarray, max_pivots: int) -> bool:
        """Find the optimum and store it in ``z`` (n,) and ``alpha`` (q,); True on success.

        After a failure they belong to the last basis, and the next call starts from the basis from
        which this call started.
        """
        begin = self.basis
        rows, points = equilibrate(A)
        program = ScaledProgram.of(A * rows[:, None] * points, limits * rows, self.box / points)
        exact = points.copy()  # the costs of the scaled variables
        cost, perturbed, lost, left = exact, False, 0, max_pivots
        state, solved = None, False
        while lost <= MAX_SINGULAR_BASES and left > 0:
            new = SimplexState.of(program, self.basis, self.at, cost)
            if new is None:
                self.basis = regular_part(program.A, self.basis, RANK_TOLERANCES[min(lost, 4)])
                lost += 1
                continue
            state = new
            most = max(MIN_PIVOTS_PER_INVERSION, len(self.basis.rows) // BASIS_ROWS_PER_PIVOT)
            steps = min(left, most)
            status, taken = state.take_steps(program, steps)
            self.basis, self.at = state.basis(), state.at
            left -= taken
            self.pivots += taken
            if status == loops.OPTIMAL and not taken and not perturbed:
                solved = True
                break
            if status == loops.SINGULAR:
                self.basis = regular_part(program.A, self.basis, RANK_TOLERANCES[min(lost, 4)])
                lost += 1
            if status == loops.OPTIMAL and not taken:
                cost, perturbed = exact, False
            elif status in (loops.STALLED, loops.SINGULAR) and not perturbed:
                cost = exact * (1.0 + COST_PERTURBATION * self._rng.random(self.n))
                perturbed = True
        self.alpha = np.zeros(len(A))
        if state is not None:
            self.z = state.z * points
            tight = state.S[: state.s]
            self.alpha[tight] = state.alpha[: state.s] * rows[tight]
        if not solved:
            self.basis = begin
        return solved


@dataclass(frozen=True)
class ScaledProgram:
    """``max cost'z, 0 <= z <= box, |A z| <= limits``, scaled."""

    A: np.ndarray
    limits: np.ndarray
    box: np.ndarray
    tol_z: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, limits: np.ndarray, box: np.ndarray) -> ScaledProgram:
        # Clipping z to its bounds must not move a row beyond its limit.
        narrow = limits > 0
        effect = (np.abs(A[narrow]) / limits[narrow, None]).max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):  # the box of a sample without weight is zero
            tolerance = FEASIBILITY_TOLERANCE / np.maximum(effect, 1.0 / box)
        return cls(A, limits, box, tolerance)


def equilibrate(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two that scale the largest entries of rows and columns to about one.

    Rows and columns are divided by the root of their largest entry, several times (Ruiz).
    """
    rows, columns = np.ones(A.shape[0]), np.ones(A.shape[1])
    size = np.abs(A)
    for _ in range(EQUILIBRATION_ROUNDS if len(A) else 0):
        by_row, by_column = size.max(axis=1), size.max(axis=0)
        r = 1.0 / np.sqrt(np.where(by_row > 0, by_row, 1.0))
        c = 1.0 / np.sqrt(np.where(by_column > 0, by_column, 1.0))
        size *= r[:, None]
        size *= c
        rows *= r
        columns *= c
    return np.exp2(np.round(np.log2(rows))), np.exp2(np.round(np.log2(columns)))


def regular_part(A: np.ndarray, basis: SimplexBasis, share: float) -> SimplexBasis:
    """The independent rows and variables of a singular basis, which form a basis.

    Directions count as independent if they are longer than ``share`` times the longest.
    """
    rows, inner = basis.rows, basis.inner
    for _ in range(2):  # first the variables, then as many rows
        R, order = qr(A[np.ix_(rows, inner)], mode="r", pivoting=True)
        size = np.abs(np.diag(R))
        rank = int(np.count_nonzero(size > share * size.max(initial=0.0)))
        inner, rows, A = np.sort(rows), inner[order[:rank]], A.T
    return SimplexBasis(rows, inner)


@dataclass
class SimplexState:
    """The solution, the inverse and the edge weights of a basis; the compiled loop updates them."""

    s: int
    E: np.ndarray
    S: np.ndarray
    at: np.ndarray
    side: np.ndarray
    inverse: np.ndarray
    z: np.ndarray
    r: np.ndarray
    d: np.ndarray
    alpha: np.ndarray
    wz: np.ndarray
    wr: np.ndarray
    tol_z: np.ndarray
    tol_r: np.ndarray

    @classmethod
    def of(
        cls, program: ScaledProgram, basis: SimplexBasis, at: np.ndarray, cost: np.ndarray
    ) -> SimplexState | None:
        """The state of a basis in full precision; None if the basis is singular."""
        A, box, limits = program.A, program.box, program.limits
        S, E = basis.rows, basis.inner
        q, s = len(A), len(S)
        tight = A[S]
        B = tight[:, E]
        try:
            inner_inverse = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            return None
        if s and not np.abs(B @ inner_inverse - np.eye(s)).max() < MAX_INVERSE_ERROR:
            return None
        coef = cost[E] @ inner_inverse
        coef += (cost[E] - coef @ B) @ inner_inverse
        d = cost - coef @ tight
        d[E] = 0.0
        close = ROUNDING_ERROR * (cost + np.abs(coef).sum())  # entries of A are at most one
        at = np.where(d > close, -2, np.where((d < -close) | (at == 0), -1, at))
        at[E] = 0
        z = np.where(at == -2, box, 0.0)
        side = np.zeros(q, dtype=np.int64)
        side[S] = np.where(coef < 0, -1, 1)
        target = side[S] * limits[S] - tight @ z
        inside = inner_inverse @ target
        inside += inner_inverse @ (target - B @ inside)
        z[E] = inside
        # Rounding errors must not be mistaken for infeasibility.
        sizes = loops.absolute_row_sums(A, z)
        noise = np.abs(inner_inverse) @ (limits[S] + sizes[S])
        tol_z = program.tol_z.copy()
        tol_z[E] = np.maximum(tol_z[E], ROUNDING_ERROR * noise)
        r = A @ z
        r[S] = side[S] * limits[S]
        tol_r = np.maximum(FEASIBILITY_TOLERANCE * limits, ROUNDING_ERROR * sizes)
        free = np.flatnonzero(side == 0)
        edges = A[np.ix_(free, E)] @ inner_inverse
        wr = np.ones(q)
        wr[free] = 1.0 + np.einsum("rk,rk->r", edges, edges)
        wz = np.einsum("ek,ek->e", inner_inverse, inner_inverse)
        room = min(q, len(z)) + 1
        inverse = np.empty((room, room))
        inverse[:s, :s] = inner_inverse
        return cls(
            s,
            _with_room(E, room),
            _with_room(S, room),
            at,
            side,
            inverse,
            z,
            r,
            d,
            _with_room(coef, room),
            _with_room(wz, room),
            wr,
            tol_z,
            tol_r,
        )

    def take_steps(self, program: ScaledProgram, steps: int) -> tuple[int, int]:
        """Take at most ``steps`` pivots; return the final status and the number of pivots."""
        s, status, taken = loops.take_steps(
            program.A,
            program.limits,
            program.box,
            self.E,
            self.S,
            self.s,
            self.at,
            self.side,
            self.inverse,
            self.z,
            self.r,
            self.d,
            self.alpha,
            self.wz,
            self.wr,
            self.tol_z,
            self.tol_r,
            steps,
        )
        self.s = int(s)
        return int(status), int(taken)

    def basis(self) -> SimplexBasis:
        return SimplexBasis(self.S[: self.s].copy(), self.E[: self.s].copy())


def _with_room(values: np.ndarray, room: int) -> np.ndarray:
    out = np.empty(room, dtype=values.dtype)
    out[: len(values)] = values
    return out
