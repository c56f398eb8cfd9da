"""A dual simplex method for dense linear programs in which everything has two bounds.

    max sum_i z_i,   0 <= z_i <= c_i,   -L_q <= sum_i A_qi z_i <= L_q

is the master of a vote: some hundred dense rows on thousands of variables, solved again and again
with a few rows more, a few less, or other limits. A general solver treats its matrix as sparse and
spends most of a pivot on bookkeeping; here a pivot reads the matrix once.

A basis is a set S of rows at their limits and a set E of z between their bounds, of the same size:
with ``B = A[S, E]`` the z in E solve ``A[S] z = ±L``, the coefficients of the vote
``alpha B = 1`` give the points of E a margin of one, and ``d = 1 - alpha A`` are the reduced costs
of the others. *Because everything has two bounds every basis is dual feasible*: what has the wrong
sign goes to its other bound. There is no first phase, rows may come, go and move at will, and the
errors of a long sequence of pivots are repaired when B is inverted anew.

    repeat
        leaves:  the variable farthest outside its bounds, in units of its steepest edge
        enters:  along the ray, variables whose reduced cost changes its sign go over to their other
                 bound as long as the dual objective rises; the next one enters (long steps)
        update   z, r = A z, d, alpha, the explicit inverse of B and the edges' exact weights

Rows and variables are scaled by powers of two until their largest entries are near one, and
tolerances are parts of the bounds themselves: polynomials of degree ten on points of very different
length, ``K_ij ~ s_i s_j`` over many orders of magnitude, become matrices of entries near one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from . import _simplex_loops as loops

#: How far a variable may be outside, as a part of its bound.
FEASIBLE = 1e-9
#: Rounding of a sum, as a part of the sum of absolute values.
ROUNDING = 1e-15
#: Rounds of equilibration.
ROUNDS = 6
#: Relative size of the perturbations that get a stalled method going.
PERTURBATION = 1e-6
#: Pivots between two inversions: at least this many, and one for so many rows of the basis.
STEPS, ROWS_PER_STEP = 100, 2
#: Largest error of an inverse that is worked with.
ERROR = 1e-3
#: Directions of a lost basis that are kept: less and less of it the more often it happens.
REGULAR = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
#: How often a basis may be lost to rounding.
LOSSES = 10


@dataclass
class Basis:
    """Which rows are tight (positions in A) and which z are between their bounds, in one order."""

    rows: np.ndarray
    inner: np.ndarray


class DenseSimplex:
    """One program, its rows and its last basis.

    Parameters
    ----------
    box : array of shape (n,)
        The upper bounds c of z.
    """

    def __init__(self, box: np.ndarray) -> None:
        self.box = np.ascontiguousarray(box, dtype=np.float64)
        self.n = len(box)
        nothing = np.empty(0, dtype=np.int64)
        self.basis = Basis(nothing, nothing)
        self.z = self.box.copy()
        self.alpha = np.empty(0)
        self.at = np.full(self.n, -2, dtype=np.int64)
        self.pivots = 0
        self._rng = np.random.default_rng(0)

    def renumber(self, stay: np.ndarray) -> None:
        """Rows, none of them tight, have been dropped; ``stay`` is the mask of the others."""
        self.basis = Basis((np.cumsum(stay) - 1)[self.basis.rows], self.basis.inner)

    def solve(self, A: np.ndarray, limits: np.ndarray, max_pivots: int) -> bool:
        """Go to the optimum; ``z`` and ``alpha`` (q,) hold it.

        False if it was not reached; they then belong to the last basis, and the next call begins
        where this one did.
        """
        begin = self.basis
        rows, points = equilibrate(A)
        program = Program.of(A * rows[:, None] * points, limits * rows, self.box / points)
        exact = points.copy()  # the costs of the scaled variables
        cost, perturbed, lost, left = exact, False, 0, max_pivots
        state, solved = None, False
        while lost <= LOSSES and left > 0:
            new = State.of(program, self.basis, self.at, cost)
            if new is None:
                self.basis = regular_part(program.A, self.basis, REGULAR[min(lost, 4)])
                lost += 1
                continue
            state = new
            steps = min(left, max(STEPS, len(self.basis.rows) // ROWS_PER_STEP))
            status, taken = state.take_steps(program, steps)
            self.basis, self.at = state.basis(), state.at
            left -= taken
            self.pivots += taken
            if status == loops.OPTIMAL and not taken and not perturbed:
                solved = True
                break
            if status == loops.LOST:  # rounding has the better of this basis
                self.basis = regular_part(program.A, self.basis, REGULAR[min(lost, 4)])
                lost += 1
            if status == loops.OPTIMAL and not taken:
                cost, perturbed = exact, False
            elif status in (loops.STALLED, loops.LOST) and not perturbed:
                cost = exact * (1.0 + PERTURBATION * self._rng.random(self.n))
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
class Program:
    """``max cost'z, 0 <= z <= box, |A z| <= limits``, scaled."""

    A: np.ndarray
    limits: np.ndarray
    box: np.ndarray
    tol_z: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, limits: np.ndarray, box: np.ndarray) -> Program:
        # A z that is cut off at its bounds must not carry a row over its limit.
        narrow = limits > 0
        effect = (np.abs(A[narrow]) / limits[narrow, None]).max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):  # a point without weight has no room at all
            return cls(A, limits, box, FEASIBLE / np.maximum(effect, 1.0 / box))


def equilibrate(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two for rows and columns that bring their largest entries near one.

    Both are divided by the root of their largest entry, a few times over (Ruiz).
    """
    rows, columns = np.ones(A.shape[0]), np.ones(A.shape[1])
    size = np.abs(A)
    for _ in range(ROUNDS if len(A) else 0):
        by_row, by_column = size.max(axis=1), size.max(axis=0)
        r = 1.0 / np.sqrt(np.where(by_row > 0, by_row, 1.0))
        c = 1.0 / np.sqrt(np.where(by_column > 0, by_column, 1.0))
        size *= r[:, None]
        size *= c
        rows *= r
        columns *= c
    return np.exp2(np.round(np.log2(rows))), np.exp2(np.round(np.log2(columns)))


def regular_part(A: np.ndarray, basis: Basis, share: float) -> Basis:
    """The rows and variables of a singular basis that are independent; every part is a basis.

    What is within ``share`` of the largest direction counts as independent.
    """
    rows, inner = basis.rows, basis.inner
    for _ in range(2):  # first the variables, then as many rows
        R, order = qr(A[np.ix_(rows, inner)], mode="r", pivoting=True)
        size = np.abs(np.diag(R))
        rank = int(np.count_nonzero(size > share * size.max(initial=0.0)))
        inner, rows, A = np.sort(rows), inner[order[:rank]], A.T
    return Basis(rows, inner)


@dataclass
class State:
    """Everything that follows from a basis, in the form in which the compiled steps change it."""

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
    def of(cls, program: Program, basis: Basis, at: np.ndarray, cost: np.ndarray) -> State | None:
        """In full precision; None if the basis is singular."""
        A, box, limits = program.A, program.box, program.limits
        S, E = basis.rows, basis.inner
        q, s = len(A), len(S)
        tight = A[S]
        B = tight[:, E]
        try:
            inner_inverse = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            return None
        if s and not np.abs(B @ inner_inverse - np.eye(s)).max() < ERROR:
            return None
        coef = cost[E] @ inner_inverse
        coef += (cost[E] - coef @ B) @ inner_inverse
        d = cost - coef @ tight
        d[E] = 0.0
        close = ROUNDING * (cost + np.abs(coef).sum())  # entries are one at most
        at = np.where(d > close, -2, np.where((d < -close) | (at == 0), -1, at))
        at[E] = 0
        z = np.where(at == -2, box, 0.0)
        side = np.zeros(q, dtype=np.int64)
        side[S] = np.where(coef < 0, -1, 1)
        target = side[S] * limits[S] - tight @ z
        inside = inner_inverse @ target
        inside += inner_inverse @ (target - B @ inside)
        z[E] = inside
        # What rounding has done to them nobody can tell from an infeasibility.
        weights = loops.weigh_rows(A, z)
        noise = np.abs(inner_inverse) @ (limits[S] + weights[S])
        tol_z = program.tol_z.copy()
        tol_z[E] = np.maximum(tol_z[E], ROUNDING * noise)
        r = A @ z
        r[S] = side[S] * limits[S]
        tol_r = np.maximum(FEASIBLE * limits, ROUNDING * weights)
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

    def take_steps(self, program: Program, steps: int) -> tuple[int, int]:
        """Pivot; why it ended, and how many there were."""
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

    def basis(self) -> Basis:
        return Basis(self.S[: self.s].copy(), self.E[: self.s].copy())


def _with_room(values: np.ndarray, room: int) -> np.ndarray:
    out = np.empty(room, dtype=values.dtype)
    out[: len(values)] = values
    return out
