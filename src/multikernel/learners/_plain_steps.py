"""Steps of sequential minimal optimisation in NumPy, for small samples: nothing to compile.

Variables are chosen as in the compiled loops (:mod:`multikernel.learners.smo`): the one with the
largest violation, and the partner with the largest gain. A step on a few hundred samples takes some
fifteen microseconds here and less than one there; but compiling takes seconds, and most models on
small samples need a few hundred steps. The compiled loops continue if `MAX_STEPS` are not enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._threads import one_blas_thread
from ._smo_dual import EPS, SignedDual

#: Limit on steps; the compiled loops then continue.
MAX_STEPS = 15_000
#: Up to this many samples, an interior-point method follows directly, after fewer steps: it takes
#: little time there, and nothing is compiled.
FEW_SAMPLES, MAX_STEPS_OF_FEW = 200, 5000


@dataclass(frozen=True)
class PlainResult:
    """The last iterate; fields as in :class:`multikernel.learners.smo.Result`.

    Attributes
    ----------
    alpha : array of shape (m,)
    values : array of shape (n,)
    intercept : float
    n_iter : int
    status : {"optimal", "max_iter", "unfinished"}
        ``"unfinished"``: the compiled loops must continue from alpha.
    """

    alpha: np.ndarray
    values: np.ndarray
    intercept: float
    n_iter: int
    status: str


def plain_steps(dual: SignedDual, K: np.ndarray, tol: float, max_iter: int = -1) -> PlainResult:
    """Solve the dual from zero.

    There are at most `MAX_STEPS` steps (`MAX_STEPS_OF_FEW` on up to `FEW_SAMPLES` samples), or
    ``max_iter`` if that is less. They end when the violation of the optimality conditions is at
    most ``tol``.
    """
    limit = MAX_STEPS_OF_FEW if len(K) <= FEW_SAMPLES else MAX_STEPS
    limit = limit if max_iter < 0 else min(max_iter, limit)
    K = np.asarray(K, dtype=np.float64)
    at = _SmallIterate(dual, dual.start(None))
    with one_blas_thread(), np.errstate(all="ignore"):
        count = (_exchanges if dual.intercept else _free_pairs)(at, K, tol, limit)
        at.g = K @ at.s  # without the rounding errors of the steps
        done = at.violation() <= tol
        intercept = at.offset() if dual.intercept else 0.0
    alpha, _ = dual.unfold(at.s, at.g)
    status = "optimal" if done else "max_iter" if count == max_iter else "unfinished"
    return PlainResult(alpha, at.g, intercept, count, status)


class _SmallIterate:
    """Coefficients, and the offsets of :mod:`multikernel.learners._smo_loops` kept up to date."""

    def __init__(self, dual: SignedDual, s: np.ndarray) -> None:
        self.dual, self.s, self.g = dual, s, np.zeros(len(s))
        above, below = dual.above, dual.below
        self.up = np.where(s >= dual.upper, np.inf, np.where(s >= 0.0, above, below))
        self.down = np.where(s <= dual.lower, -np.inf, np.where(s > 0.0, above, below))

    def violation(self) -> float:
        low, top = float((self.g + self.up).min()), float((self.g + self.down).max())
        return max(top - low if self.dual.intercept else max(top, -low), 0.0)

    def offset(self) -> float:
        """The intercept: the mean over free variables, or the middle of the feasible interval."""
        rise, fall = self.g + self.up, self.g + self.down
        free = self.up == self.down
        if np.any(free):
            return -float(np.mean(rise[free])) + 0.0
        ends = np.array([rise.min(), fall.max()])
        ends = ends[np.isfinite(ends)]
        return -float(ends.mean()) + 0.0 if len(ends) else 0.0

    def move(self, k: int, t: float) -> float:
        """Move a variable by t, at most to its bound or kink; return the change."""
        dual, x = self.dual, float(self.s[k])
        low, high = float(dual.lower[k]), float(dual.upper[k])
        above, below = float(dual.above[k]), float(dual.below[k])
        new = min(max(x + t, low), high)
        if above != below and new * x < 0.0:
            new = 0.0
        self.s[k] = new
        self.up[k] = np.inf if new >= high else (above if new >= 0.0 else below)
        self.down[k] = -np.inf if new <= low else (above if new > 0.0 else below)
        return new - x

    def room(self, k: int, rising: bool) -> float:
        """How far a variable may rise or fall, at most to its bound or kink."""
        dual, x = self.dual, float(self.s[k])
        kinked = dual.above[k] != dual.below[k]
        if rising:
            end = float(dual.upper[k])
            return (0.0 if kinked and x < 0.0 < end else end) - x
        end = float(dual.lower[k])
        return x - (0.0 if kinked and end < 0.0 < x else end)


def _exchanges(at: _SmallIterate, K: np.ndarray, tol: float, max_steps: int) -> int:
    diagonal = np.ascontiguousarray(np.diagonal(K))
    floor = max(1e-12 * float(np.abs(diagonal).max(initial=0.0)), 1e-100)
    g = K @ at.s
    rise, fall, gap, curvature = (np.empty_like(g) for _ in range(4))
    for count in range(max_steps):
        np.add(g, at.up, out=rise)
        np.add(g, at.down, out=fall)
        i = int(rise.argmin())
        np.subtract(fall, rise[i], out=gap)
        top = float(gap.max())
        if not top > max(tol, 64.0 * EPS * abs(float(rise[i]))):
            return count
        np.maximum(gap, 0.0, out=gap)
        np.multiply(K[i], -2.0, out=curvature)
        curvature += diagonal
        curvature += diagonal[i]
        np.maximum(curvature, floor, out=curvature)
        np.multiply(gap, gap, out=fall)
        fall /= curvature
        j = int(fall.argmax())
        t = float(gap[j] / curvature[j])
        t = min(t, at.room(i, True), at.room(j, False))
        up, down = at.move(i, t), at.move(j, -t)
        if up == 0.0 and down == 0.0:
            return count
        np.multiply(K[i], up, out=gap)
        np.multiply(K[j], down, out=curvature)
        gap += curvature
        g += gap
    return max_steps


def _free_pairs(at: _SmallIterate, K: np.ndarray, tol: float, max_steps: int) -> int:
    diagonal = np.ascontiguousarray(np.diagonal(K))
    floor = max(1e-12 * float(np.abs(diagonal).max(initial=0.0)), 1e-100)
    own = np.maximum(diagonal, floor)
    g = K @ at.s
    for count in range(max_steps):
        slope = np.maximum(np.maximum(-(g + at.up), g + at.down), 0.0)
        if not float(slope.max()) > tol:
            return count
        i = int((slope * slope / own).argmax())
        rising = -(g[i] + at.up[i]) > 0.0
        t = float(slope[i] / own[i]) if rising else -float(slope[i] / own[i])
        # At a kink or a bound, the slope of i is valid in the direction of t only.
        turns = at.up[i] == at.down[i]
        above = at.room(i, True) if rising or turns else 0.0
        below = at.room(i, False) if turns or not rising else 0.0
        change = np.zeros(2)
        j = i
        if -below < t < above:
            moved = g + t * K[i]
            rise, fall = -(moved + at.up), moved + at.down
            slope = np.maximum(np.maximum(rise, fall), 0.0)
            curvature = np.maximum(diagonal - K[i] * K[i] / own[i], floor)
            gain = slope * slope / curvature
            gain[i] = 0.0
            j = int(gain.argmax())
        if j != i:
            u = float(slope[j] / curvature[j]) * (1.0 if rise[j] > 0.0 else -1.0)
            reply = float(K[i, j] / own[i])
            # Shorten the step of j so that i stays within its limit.
            end = -below if u * reply > 0.0 else above
            if abs(u * reply) > abs(t - end):
                u = (t - end) / reply
            change[1] = at.move(j, u)
            t -= change[1] * reply
        change[0] = at.move(i, min(max(t, -below), above))
        if not change.any():
            return count
        g += change[0] * K[i] + change[1] * K[j]
    return max_steps
