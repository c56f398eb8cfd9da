"""The outer loop of sequential minimal optimisation: shrinking, recomputation, stopping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import _smo_loops as loops
from ._smo_dual import EPS, SignedDual
from ._smo_matrix import ROWS_PER_FETCH, FetchedRows, StoredMatrix


class SmoRun:
    """A run of the algorithm, with the full vectors and copies of their active parts."""

    def __init__(
        self,
        problem: SignedDual,
        matrix: StoredMatrix | FetchedRows,
        s: np.ndarray,
        tol: float,
        shrinking: bool,
        g: np.ndarray | None = None,
    ) -> None:
        """``g`` is ``K s``, if it is known."""
        self.problem, self.matrix, self.tol, self.shrinking = problem, matrix, tol, shrinking
        self.step: Callable[..., int] = loops.exchange if problem.intercept else loops.free_pair
        n = len(s)
        self.n = n
        size = float(np.max(np.abs(matrix.diagonal), initial=0.0))
        self.size = size
        # The curvature between equal samples is zero; with this floor the step ends at a bound.
        self.floor = 1e-12 * size if size > 0.0 else 1e-100
        self.s, self.g = s, np.zeros(n) if g is None else g
        self.counts = np.zeros(3, dtype=np.int64)
        self.sums = np.zeros(2)
        self.since = 0  # number of iterations when g was last recomputed
        # Do not recheck variables set aside if that requires computing rows on demand.
        self.rechecked = isinstance(matrix, FetchedRows)
        if g is None:
            self._add(self.s, self.g)
        self.passive: list[tuple[np.ndarray, np.ndarray]] = []
        self._activate_all()

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return int(self.counts[0])

    @property
    def n_rows(self) -> int:
        """The number of rows that were computed on demand."""
        return self.matrix.n_rows

    # -- active and passive variables -----------------------------------------------------------

    def _activate_all(self) -> None:
        p = self.problem
        self.active = self.matrix.place[:0]
        self.packed = np.empty((0, 0), dtype=self.matrix.source.dtype)
        self.slot = self.matrix.place
        self.counts[1] = 0
        self.is_packed = False
        up, down = np.empty(self.n), np.empty(self.n)
        loops.offsets(self.s, p.lower, p.upper, p.above, p.below, up, down)
        self.part = [
            self.g, up, down, self.matrix.diagonal, self.s, p.lower, p.upper, p.above, p.below,
        ]  # fmt: skip

    def _shrink(self) -> bool:
        """Set aside variables that cannot move now; False if packing the rows is not worthwhile."""
        g, up, down = self.part[:3]
        low, top = self._edges()
        gone = np.empty(len(g), dtype=np.bool_)
        count = loops.removable(g, up, down, low, top, gone)
        # Packing rows is worthwhile only if they become much shorter.
        if count < 0.2 * len(g) or len(g) - count < 2:
            return False
        keep = np.flatnonzero(~gone)
        width = len(keep)
        rows = min(width, self.matrix.packed_entries // width)
        if rows < 2:
            return False
        packed = np.empty((rows, width), dtype=self.packed.dtype)
        slot = np.full(width, -1)
        if self.is_packed:
            self._store()
            self.counts[1] = loops.repack(self.packed, self.slot, keep, packed, slot)
            self.passive.append((self.active[gone], self.s.copy()))
            self.active = self.active[keep]
        else:
            self.passive = [(np.flatnonzero(gone), self.s.copy())]
            self.active = keep
        self.packed, self.slot, self.is_packed = packed, slot, True
        self.part = [a[keep] for a in self.part]
        return True

    def _store(self) -> None:
        self.s[self.active] = self.part[4]
        self.g[self.active] = self.part[0]

    def _unshrink(self) -> None:
        """Activate all variables, and update g for those that were set aside.

        For a group set aside at coefficients s', g lacks ``K (s - s')``. Groups are updated from
        the last to the first, so that each change of s is multiplied by K only once.
        """
        self._store()
        lacking, later = np.zeros(self.n), self.s
        for group, before in reversed(self.passive):
            self._add(later - before, lacking)
            self.g[group] += lacking[group]
            later = before
        self._activate_all()

    def _add(self, change: np.ndarray, out: np.ndarray) -> None:
        """``out += K change``."""
        index = np.flatnonzero(change)
        self.matrix.add_products(index, change[index], out)

    def _refresh(self) -> None:
        """Recompute g, which removes the rounding errors of many small steps."""
        if self.is_packed:
            self._store()
        self.g[:] = 0.0
        self._add(self.s, self.g)
        self.sums[0] = 0.0
        self.since = int(self.counts[0])
        self._activate_all()

    # -- optimality conditions ------------------------------------------------------------------

    def _edges(self) -> tuple[float, float]:
        """Smallest slope upwards, largest slope downwards; both zero without an intercept."""
        g, up, down = self.part[:3]
        if not self.problem.intercept:
            return 0.0, 0.0
        return float(loops.lowest(g, up)[1]), float(loops.highest(g, down))

    def violation(self) -> float:
        """The largest violation of the optimality conditions."""
        g, up, down = self.part[:3]
        low, top = float(loops.lowest(g, up)[1]), float(loops.highest(g, down))
        return max(top - low if self.problem.intercept else max(top, -low), 0.0)

    def offset(self) -> float:
        """The intercept b; at the optimum ``-(g + up) <= b <= -(g + down)`` for all variables."""
        g, up, down = self.part[:3]
        free = up == down
        if np.any(free):
            return -float(np.mean((g + up)[free])) + 0.0
        low, top = self._edges()
        if not np.isfinite(low) or not np.isfinite(top):
            low = top = low if np.isfinite(low) else top
        return -0.5 * (low + top) + 0.0 if np.isfinite(low) else 0.0

    def _noise(self) -> float:
        """A bound on the rounding errors in g since it was last recomputed."""
        steps = float(self.counts[0] - self.since)
        largest = float(np.max(np.abs(self.part[0]), initial=0.0))
        return EPS * (2.0 * self.size * self.sums[0] + steps * largest)

    def until(self, limit: int) -> str:
        """Run until the tolerance, the limit or rounding error is reached; return the status."""
        # On small problems, frequent returns to this loop would cost more than the steps.
        period, longest = max(min(self.n, 1000), 100), max(1000, 1_000_000 // self.n)
        best, stalls = np.inf, 0
        while True:
            budget = min(limit, int(self.counts[0]) + period)
            code = self.step(
                self.matrix.source, self.matrix.place, self.matrix.stamp, self.active,
                self.packed, self.slot, self.is_packed, *self.part,
                self.floor, self.tol, budget, self.counts, self.sums,
            )  # fmt: skip
            if code == loops.MISSING:
                self.matrix.fetch(int(self.counts[2]), self._likely(), int(self.counts[0]))
                continue
            if code == loops.BUDGET and self.counts[0] >= limit:
                if self.is_packed:
                    self._unshrink()
                return "max_iter"
            if code == loops.OPTIMAL and self.is_packed:
                self._unshrink()
                continue
            if code == loops.OPTIMAL and self._noise() <= 0.1 * self.tol:
                return "optimal"
            if code == loops.BUDGET and self.sums[1] > self._noise():
                if not (self.shrinking and self._recheck_and_shrink()):
                    period = min(2 * period, longest)
                continue
            # Optimal, stuck, or below the rounding error: recompute g to decide.
            if self.counts[0] > self.since:
                self._refresh()
            elif code == loops.OPTIMAL:
                return "optimal"
            elif self.is_packed:
                self._unshrink()
                continue
            else:
                return "rounding"
            violation = self.violation()
            stalls = 0 if violation < 0.5 * best else stalls + 1
            best = min(best, violation)
            if violation <= self.tol:
                return "optimal"
            if stalls >= 4:
                return "rounding"

    def _recheck_and_shrink(self) -> bool:
        # Early steps may have set variables aside wrongly. Checking once near the end is cheaper
        # than correcting g for them after it.
        if not self.rechecked and self.sums[1] <= 10.0 * self.tol:
            self.rechecked = True
            if self.is_packed:
                self._unshrink()
        return self._shrink()

    def _likely(self) -> np.ndarray:
        """Samples whose rows are likely to be needed next: those with the largest violations."""
        g, up, down = self.part[:3]
        low, top = self._edges()
        score = np.maximum(top - (g + up), (g + down) - low)
        place = self.matrix.place
        absent = np.flatnonzero(
            ((place[self.active] if self.is_packed else place) < 0) & (score > 0)
        )
        chosen = absent[np.argsort(-score[absent], kind="stable")[:ROWS_PER_FETCH]]
        return self.active[chosen] if self.is_packed else chosen
