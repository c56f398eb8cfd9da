"""Sequential minimal optimisation: the dual of every machine with a piecewise linear loss.

    min_alpha  1/2 alpha'Q alpha + linear'alpha,    Q_ij = sign_i sign_j K(x_i, x_j)
    subject to 0 <= alpha_i <= C_i  and, with an intercept,  sign'alpha = delta

Inside, the variables are the signed coefficients ``s = sign * alpha`` of the expansion
``f = K s + b``, one for each point:

    min_s  1/2 s'Ks + sum_i phi_i(s_i),    lower <= s <= upper,   1's = delta

with phi_i linear on either side of zero. In regression a point has two variables, alpha and
alpha*, of which one is zero at the optimum: they are the two sides of one s, and what would be a
problem of 2n variables stays one of n. Signs have disappeared from the loops.

A pair (i, j) is optimal when no exchange ``s_i + t, s_j - t`` pays. The loop takes for i the
largest violation and for j the largest second-order gain (Fan, Chen & Lin, "Working set selection
using second order information for training support vector machines", JMLR 6, 2005, WSS 2)::

    i = argmin_k (g + up)_k                                   g = K s
    j = argmax_k ((g + down)_k - (g + up)_i)^2 / (K_ii + K_kk - 2 K_ik)
    t = the minimiser, cut at bounds and at the bend of phi
    g = g + t K_i - t K_j                                     and the next i in the same pass

until ``max(g + down) - min(g + up) <= tol``. Without an intercept, single variables move.

Variables that stand at a bound and would go further are set aside (*shrinking*), and the rows of
K that are in use are copied without their columns. Before the end g is completed and all
variables are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import _smo_loops as loops

__all__ = ["Result", "KernelRows", "one_class", "solve", "svc", "svr"]

#: memory for rows on demand, unless the caller says how many rows to hold
CACHE_BYTES = 256 * 2**20
#: rows asked for at once: the one that is needed, and those likely to be needed next
BATCH = 16
#: share of the cache for rows without the columns set aside
PACKED_SHARE = 1 / 8
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class KernelRows:
    """A kernel matrix that is never stored: its rows are computed when they are needed.

    Attributes
    ----------
    rows : callable
        ``rows(indices)`` is the block of shape (len(indices), n), in float32 or float64.
    diagonal : array of shape (n,)
    """

    rows: Callable[[np.ndarray], np.ndarray]
    diagonal: np.ndarray


@dataclass(frozen=True)
class Result:
    """An optimal (or the best reached) point of the dual.

    Attributes
    ----------
    alpha : array of shape (m,)
        The variables of the problem; a warm start for the next one.
    gradient : array of shape (m,)
        ``Q alpha + linear``.
    coef : array of shape (n,)
        Signed coefficients s of the expansion ``f = K s + b``.
    values : array of shape (n,)
        ``K s``, without the intercept.
    intercept : float
        b, which is ``-rho``: the mean over free variables, and the middle of the interval of
        optimal values when no variable is free. Zero without intercept.
    objective : float
    n_iter : int
    violation : float
        ``m(alpha) - M(alpha)``, the largest violation of the optimality conditions.
    status : {"optimal", "max_iter", "rounding"}
        ``"rounding"``: the tolerance is below what float64 can tell on this problem.
    n_rows : int
        Rows computed on demand; zero for a matrix.
    """

    alpha: np.ndarray
    gradient: np.ndarray
    coef: np.ndarray
    values: np.ndarray
    intercept: float
    objective: float
    n_iter: int
    violation: float
    status: str
    n_rows: int


def svc(
    K: np.ndarray | KernelRows,
    y: np.ndarray,
    C: float | np.ndarray = 1.0,
    *,
    tol: float = 1e-3,
    alpha0: np.ndarray | None = None,
    intercept: bool = True,
    max_iter: int = -1,
    shrinking: bool = True,
    cache_rows: int | None = None,
) -> Result:
    """Classification: ``min 1/2 alpha'Q alpha - 1'alpha, 0 <= alpha_i <= C_i, y'alpha = 0``.

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
    y : array of shape (n,)
        Labels -1 and +1.
    C : float or array of shape (n,)
    alpha0 : array of shape (n,) or None
        Where to start; made feasible if it is not.

    Other parameters are those of `solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.learners.smo import svc
    >>> x = np.array([-2.0, -1.0, 1.0, 3.0])
    >>> result = svc(np.outer(x, x), np.sign(x), C=10.0)
    >>> result.coef, result.intercept
    (array([ 0. , -0.5,  0.5,  0. ]), 0.0)
    """
    y = np.asarray(y, dtype=np.float64)
    return solve(
        K,
        np.full(len(y), -1.0),
        y,
        C,
        tol=tol,
        alpha0=alpha0,
        intercept=intercept,
        max_iter=max_iter,
        shrinking=shrinking,
        cache_rows=cache_rows,
    )


def svr(
    K: np.ndarray | KernelRows,
    y: np.ndarray,
    C: float | np.ndarray = 1.0,
    epsilon: float = 0.1,
    *,
    tol: float = 1e-3,
    alpha0: np.ndarray | None = None,
    intercept: bool = True,
    max_iter: int = -1,
    shrinking: bool = True,
    cache_rows: int | None = None,
) -> Result:
    """Regression with the epsilon-insensitive loss, ``s = alpha - alpha*``.

        min 1/2 s'Ks - y's + epsilon 1'(alpha + alpha*),   0 <= alpha, alpha* <= C,  1's = 0

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
    y : array of shape (n,)
    C : float or array of shape (n,)
    epsilon : float
        Half the width of the tube, not negative.
    alpha0 : array of shape (2n,) or None
        alpha, then alpha*.

    Other parameters are those of `solve`.
    """
    y = np.asarray(y, dtype=np.float64)
    n = len(y)
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), (n,))
    return solve(
        K,
        np.concatenate([epsilon - y, epsilon + y]),
        np.repeat([1.0, -1.0], n),
        np.concatenate([C, C]),
        tol=tol,
        alpha0=alpha0,
        intercept=intercept,
        max_iter=max_iter,
        shrinking=shrinking,
        cache_rows=cache_rows,
    )


def one_class(
    K: np.ndarray | KernelRows,
    nu: float = 0.5,
    *,
    upper: np.ndarray | None = None,
    tol: float = 1e-3,
    alpha0: np.ndarray | None = None,
    max_iter: int = -1,
    shrinking: bool = True,
    cache_rows: int | None = None,
) -> Result:
    """One class, nu-form: ``min 1/2 s'Ks, 0 <= s_i <= 1 / (nu n), 1's = 1``; rho is ``-b``.

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
    nu : float in (0, 1]
    upper : array of shape (n,) or None
        Bounds in place of ``1 / (nu n)``; they must sum to at least one.

    Other parameters are those of `solve`.
    """
    n = len(K.diagonal) if isinstance(K, KernelRows) else len(K)
    if upper is None:
        if not 0.0 < nu <= 1.0:
            raise ValueError(f"nu must lie in (0, 1], got {nu!r}.")
        upper = np.full(n, 1.0 / (nu * n))
    return solve(
        K,
        np.zeros(n),
        np.ones(n),
        upper,
        delta=1.0,
        tol=tol,
        alpha0=alpha0,
        max_iter=max_iter,
        shrinking=shrinking,
        cache_rows=cache_rows,
    )


def solve(
    K: np.ndarray | KernelRows,
    linear: np.ndarray,
    sign: np.ndarray,
    C: float | np.ndarray,
    *,
    delta: float = 0.0,
    intercept: bool = True,
    tol: float = 1e-3,
    alpha0: np.ndarray | None = None,
    max_iter: int = -1,
    shrinking: bool = True,
    cache_rows: int | None = None,
) -> Result:
    """``min 1/2 alpha'Q alpha + linear'alpha,  0 <= alpha <= C,  sign'alpha = delta``.

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
        Float32 or float64. Sums are in float64 in either case.
    linear : array of shape (m,)
        m is n, or 2n: then the variables i and n + i belong to point i, with signs +1 and -1, and
        ``linear[i] + linear[n + i] >= 0``.
    sign : array of shape (m,)
        -1 and +1.
    C : float or array of shape (m,)
        Upper bounds, finite and not negative.
    delta : float, default=0.0
    intercept : bool, default=True
        Whether the equality constraint is there.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the gradient.
    alpha0 : array of shape (m,) or None
        Where to start. It is clipped to the bounds and its sum repaired.
    max_iter : int, default=-1
        Limit on steps; -1 for ten million, or a hundred per point if that is more.
    shrinking : bool, default=True
    cache_rows : int or None
        For rows on demand: the memory of how many rows is used, at least four. None for 256 MiB.

    Returns
    -------
    result : Result
    """
    problem = _signed(K, linear, sign, C, delta, intercept)
    n = len(problem.lower)
    matrix = _Fetched(K, cache_rows, shrinking) if isinstance(K, KernelRows) else _Stored(K)
    s = np.zeros(n) if alpha0 is None else problem.fold(np.asarray(alpha0, dtype=np.float64))
    s = _feasible(s, problem)
    limit = max_iter if max_iter >= 0 else max(10_000_000, 100 * n)
    run = _Run(problem, matrix, s, tol, shrinking)
    status = run.until(limit)
    return problem.result(run, status, matrix.n_rows)


@dataclass(frozen=True)
class SignedDual:
    """The problem in signed coefficients: slopes above and below zero, and bounds."""

    lower: np.ndarray
    upper: np.ndarray
    above: np.ndarray
    below: np.ndarray
    delta: float
    intercept: bool
    linear: np.ndarray
    sign: np.ndarray

    def fold(self, alpha: np.ndarray) -> np.ndarray:
        if alpha.shape != self.sign.shape:
            raise ValueError(f"alpha0 has shape {alpha.shape}, expected {self.sign.shape}.")
        if not np.all(np.isfinite(alpha)):
            raise ValueError("alpha0 holds values that are not finite.")
        return np.asarray((self.sign * alpha).reshape(-1, len(self.lower)).sum(axis=0))

    def result(self, run: _Run, status: str, n_rows: int) -> Result:
        s, g = run.s, run.g
        twice = len(self.sign) == 2 * len(s)
        alpha = (
            np.concatenate([np.maximum(s, 0.0), np.maximum(-s, 0.0)]) if twice else s * self.sign
        )
        # A product with -1 turns zero into minus zero.
        alpha = alpha + 0.0
        gradient = self.sign * (np.concatenate([g, g]) if twice else g) + self.linear
        return Result(
            alpha,
            gradient,
            s,
            g,
            run.offset() if self.intercept else 0.0,
            float(0.5 * (s @ g) + alpha @ self.linear),
            int(run.counts[0]),
            run.violation(),
            status,
            n_rows,
        )


def _signed(
    K: np.ndarray | KernelRows,
    linear: np.ndarray,
    sign: np.ndarray,
    C: float | np.ndarray,
    delta: float,
    intercept: bool,
) -> SignedDual:
    """Check the arguments, and fold two variables of a point into one."""
    linear = np.asarray(linear, dtype=np.float64)
    sign = np.asarray(sign, dtype=np.float64)
    m = len(linear)
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), (m,))
    n = len(K.diagonal) if isinstance(K, KernelRows) else len(K)
    if linear.ndim != 1 or sign.shape != (m,) or m not in (n, 2 * n) or n == 0:
        raise ValueError(
            f"linear and sign have shapes {linear.shape} and {sign.shape}; expected n or 2n "
            f"variables for n={n} points, n > 0."
        )
    if not np.all(np.abs(sign) == 1.0):
        raise ValueError("sign must hold -1 and +1 only.")
    if not (np.all(np.isfinite(C)) and np.all(C >= 0.0) and np.all(np.isfinite(linear))):
        raise ValueError("C must be finite and not negative, linear finite.")
    if m == n:
        lower, upper = np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0)
        above = below = sign * linear
    else:
        if not (np.all(sign[:n] == 1.0) and np.all(sign[n:] == -1.0)):
            raise ValueError("With 2n variables the first n signs must be +1, the others -1.")
        lower, upper = -C[n:], C[:n].copy()
        above, below = linear[:n].copy(), -linear[n:]
        if np.any(above < below):
            raise ValueError("linear[i] + linear[n + i] must not be negative (epsilon >= 0).")
    return SignedDual(lower, upper, above, below, float(delta), intercept, linear, sign)


def _feasible(s: np.ndarray, problem: SignedDual) -> np.ndarray:
    """The given coefficients within their bounds and with the right sum.

    What the sum lacks is first taken from coefficients of the other sign, all by the same factor,
    which keeps zeros zero; then coefficients are filled in order.
    """
    s = np.clip(s, problem.lower, problem.upper) + 0.0
    if not problem.intercept:
        return s
    missing = problem.delta - float(s.sum())
    if abs(missing) <= 4 * EPS * (abs(problem.delta) + float(np.abs(s).sum())):
        return s
    against = s < 0 if missing > 0 else s > 0
    held = float(np.abs(s[against]).sum())
    if held > 0.0:
        s[against] *= 1.0 - min(abs(missing) / held, 1.0)
    missing = problem.delta - float(s.sum())
    room = problem.upper - s if missing > 0 else s - problem.lower
    part = np.diff(np.minimum(np.cumsum(room), abs(missing)), prepend=0.0)
    s = np.clip(s + np.copysign(part, missing), problem.lower, problem.upper)
    missing = problem.delta - float(s.sum())
    if abs(missing) > 1e-10 * (abs(problem.delta) + float(np.abs(s).sum())):
        raise ValueError(
            f"No point satisfies the constraints: the bounds do not allow a sum of "
            f"{problem.delta:g}. Raise C (or lower nu)."
        )
    return s


class _Stored:
    """A matrix in memory: every row is at hand."""

    n_rows = 0

    def __init__(self, K: np.ndarray) -> None:
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(f"K must be a square matrix, got shape {K.shape}.")
        if K.dtype not in (np.float32, np.float64):
            K = K.astype(np.float64)
        self.source = _writable(np.ascontiguousarray(K))
        n = len(K)
        self.diagonal = np.diagonal(K).astype(np.float64)
        self.place = np.arange(n)
        self.stamp = np.zeros(n, dtype=np.int64)
        # Pages of a new array cost nothing before they are written to.
        self.packed_entries = n * n // 5

    def fetch(self, needed: int, likely: np.ndarray, now: int) -> None:
        raise AssertionError("every row is stored")

    def add_products(self, index: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        loops.add_rows(self.source, index, coefficients, out)


class _Fetched:
    """Rows on demand: the least recently used make room for new ones."""

    def __init__(self, K: KernelRows, cache_rows: int | None, shrinking: bool) -> None:
        self.rows = K.rows
        self.diagonal = np.array(K.diagonal, dtype=np.float64)
        n = len(self.diagonal)
        first = self._compute(np.zeros(1, dtype=np.int64), n)
        if cache_rows is None:
            cache_rows = CACHE_BYTES // (n * first.itemsize)
        cache_rows = max(4, min(cache_rows, n if not shrinking else 2 * n))
        packed = int(cache_rows * PACKED_SHARE) if shrinking else 0
        self.packed_entries = packed * n
        held = min(cache_rows - packed, max(n, 4))
        self.source = np.empty((held, n), dtype=first.dtype)
        self.place = np.full(n, -1)
        self.owner = np.full(held, -1)
        self.stamp = np.full(held, -2, dtype=np.int64)  # older than any guess
        self.n_rows = 1
        self._keep(np.zeros(1, dtype=np.int64), first, 0)

    def _compute(self, index: np.ndarray, n: int) -> np.ndarray:
        block = np.asarray(self.rows(index))
        if block.shape != (len(index), n):
            raise ValueError(f"rows() gave shape {block.shape}, expected {(len(index), n)}.")
        if block.dtype not in (np.float32, np.float64):
            block = block.astype(np.float64)
        return block

    def fetch(self, needed: int, likely: np.ndarray, now: int) -> None:
        """Compute a missing row, and with it some of the rows that are likely to be next."""
        others = likely[likely != needed]
        index = np.append(needed, others[: min(BATCH, len(self.source) // 2) - 1])
        block = self._compute(index, len(self.place))
        self.n_rows += len(index)
        self._keep(index, block, now)

    def _keep(self, index: np.ndarray, block: np.ndarray, now: int) -> None:
        oldest = np.argsort(self.stamp, kind="stable")[: len(index)]
        former = self.owner[oldest]
        self.place[former[former >= 0]] = -1
        self.source[oldest] = block
        self.owner[oldest] = index
        self.place[index] = oldest
        # Guesses age faster than what is in use, or they might push it out.
        self.stamp[oldest] = now - 1
        self.stamp[oldest[0]] = now

    def add_products(self, index: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        held = self.place[index] >= 0
        loops.add_rows(self.source, self.place[index[held]], coefficients[held], out)
        index, coefficients = index[~held], coefficients[~held]
        height = max(1, min(BATCH, len(self.source) // 2))
        for start in range(0, len(index), height):
            part = slice(start, start + height)
            block = np.ascontiguousarray(self._compute(index[part], len(out)))
            self.n_rows += len(block)
            loops.add_rows(block, np.arange(len(block)), coefficients[part], out)


class _Run:
    """One solution in progress: the full vectors, and copies of their active parts."""

    def __init__(
        self,
        problem: SignedDual,
        matrix: _Stored | _Fetched,
        s: np.ndarray,
        tol: float,
        shrinking: bool,
    ) -> None:
        self.problem, self.matrix, self.tol, self.shrinking = problem, matrix, tol, shrinking
        self.step: Callable[..., int] = loops.exchange if problem.intercept else loops.single
        n = len(s)
        self.n = n
        size = float(np.max(np.abs(matrix.diagonal), initial=0.0))
        self.size = size
        # Equal points have no curvature between them: the floor sends the step to a bound.
        self.floor = 1e-12 * size if size > 0.0 else 1e-100
        self.s, self.g = s, np.zeros(n)
        self.counts = np.zeros(3, dtype=np.int64)
        self.sums = np.zeros(2)
        self.since = 0  # iterations when g was last computed afresh
        # To look again at what was set aside costs rows, which must not be computed for a guess.
        self.looked_again = isinstance(matrix, _Fetched)
        self._add(self.s, self.g)
        self.passive: list[tuple[np.ndarray, np.ndarray]] = []
        self._activate_all()

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
        """Set aside what cannot move now; False if it is not worth the copying."""
        g, up, down = self.part[:3]
        low, top = self._edges()
        gone = np.empty(len(g), dtype=np.bool_)
        count = loops.removable(g, up, down, low, top, gone)
        # Copying rows pays only if they become much shorter.
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
        """All variables again; g of those that were set aside is brought up to date.

        A group that was set aside when the coefficients were s' lacks ``K (s - s')``; groups are
        taken from the last to the first, so that every stretch of the path is multiplied once.
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
        """g from nothing: the rounding errors of many small steps are gone."""
        if self.is_packed:
            self._store()
        self.g[:] = 0.0
        self._add(self.s, self.g)
        self.sums[0] = 0.0
        self.since = int(self.counts[0])
        self._activate_all()

    # -- where we stand -------------------------------------------------------------------------

    def _edges(self) -> tuple[float, float]:
        """Smallest slope upwards and largest downwards; the intercept cannot hide it at zero."""
        g, up, down = self.part[:3]
        if not self.problem.intercept:
            return 0.0, 0.0
        return float(loops.lowest(g, up)[1]), float(loops.highest(g, down))

    def violation(self) -> float:
        g, up, down = self.part[:3]
        low, top = float(loops.lowest(g, up)[1]), float(loops.highest(g, down))
        return max(top - low if self.problem.intercept else max(top, -low), 0.0)

    def offset(self) -> float:
        """b, with ``b >= -(g + up)`` and ``b <= -(g + down)`` for all at the optimum."""
        g, up, down = self.part[:3]
        free = up == down
        if np.any(free):
            return -float(np.mean((g + up)[free])) + 0.0
        low, top = self._edges()
        if not np.isfinite(low) or not np.isfinite(top):
            low = top = low if np.isfinite(low) else top
        return -0.5 * (low + top) + 0.0 if np.isfinite(low) else 0.0

    def _noise(self) -> float:
        """A bound on what rounding has done to g since it was computed afresh."""
        steps = float(self.counts[0] - self.since)
        largest = float(np.max(np.abs(self.part[0]), initial=0.0))
        return EPS * (2.0 * self.size * self.sums[0] + steps * largest)

    def until(self, limit: int) -> str:
        """Run to the tolerance, to the limit, or to where rounding ends progress."""
        # Where steps are cheap, to come back here often would cost more than they do.
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
                if not (self.shrinking and self._look_again_and_shrink()):
                    period = min(2 * period, longest)
                continue
            # Optimal, stuck or below the noise: only a fresh gradient can tell.
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

    def _look_again_and_shrink(self) -> bool:
        # Near the end, once: what was set aside early may have been wrong, and late is dear.
        if not self.looked_again and self.sums[1] <= 10.0 * self.tol:
            self.looked_again = True
            if self.is_packed:
                self._unshrink()
        return self._shrink()

    def _likely(self) -> np.ndarray:
        """Points whose rows will probably be asked for next: the largest violations."""
        g, up, down = self.part[:3]
        low, top = self._edges()
        score = np.maximum(top - (g + up), (g + down) - low)
        place = self.matrix.place
        absent = np.flatnonzero(
            ((place[self.active] if self.is_packed else place) < 0) & (score > 0)
        )
        chosen = absent[np.argsort(-score[absent], kind="stable")[:BATCH]]
        return self.active[chosen] if self.is_packed else chosen


def _writable(K: np.ndarray) -> np.ndarray:
    """The same memory, not marked read-only: compiled code exists once, and only reads it."""
    if K.flags.writeable:
        return K
    address, _ = K.__array_interface__["data"]
    return np.asarray(_Interface(K, {**K.__array_interface__, "data": (address, False)}))


class _Interface:
    """Holds on to the array whose memory it describes."""

    def __init__(self, owner: np.ndarray, interface: dict[str, object]) -> None:
        self.owner = owner
        self.__array_interface__ = interface
