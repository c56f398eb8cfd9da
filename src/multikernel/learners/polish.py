"""The exact optimum of a dual problem from an approximate solution, by an active-set method.

The problem is that of :mod:`multikernel.learners.smo`,

    min_alpha 1/2 alpha'Q alpha + linear'alpha,   0 <= alpha_i <= C_i,   sign'alpha = delta

with ``Q_ij = sign_i sign_j K[point_i, point_j]``. For signed coefficients ``s`` of the samples, the
values ``f = K s`` and the intercept b, the gradient of the Lagrangian is ``g_i = sign_i (f_i + b) +
linear_i``. At the optimum it is zero where alpha is free, not negative where alpha is 0, and not
positive where alpha is C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lstsq
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

from .._threads import one_blas_thread
from ..grams.matrix import GivenMatrix
from ..grams.protocol import CombinedGram

#: Limit on floating-point operations, about a second; the best result until then is returned.
MAX_FLOPS = 2e10
#: Limit on singular systems; more of them mean that the solutions form a face without a vertex.
MAX_SINGULAR_SYSTEMS = 20
#: Violations of the optimality conditions below this, in units of the targets, are rounding errors.
NEGLIGIBLE_VIOLATION = 1e-10
#: Variables within this fraction of C from a bound are placed on the bound at the start.
BOUND_MARGIN = 1e-9
#: Largest accepted error of the coefficients' sum, relative to the sum of their absolute values.
#: For nearly constant matrices with large entries, computed solutions exceed it by far.
MAX_SUM_ERROR = 1e-9
#: Smallest reciprocal condition number at which an LU factor is used.
MIN_RECIPROCAL_CONDITION = 1e-13


@dataclass(frozen=True)
class Polished:
    """The result of the active-set method.

    Attributes
    ----------
    alpha : array of shape (m,)
    intercept : float
    exact : bool
        Whether the optimality conditions hold up to rounding. They may fail if samples repeat or
        kernels have low rank: the solutions then form a face, which may have no vertex.
    values : array of shape (n,) or None
        ``K s``; None if the given alpha is returned.
    """

    alpha: np.ndarray
    intercept: float
    exact: bool
    values: np.ndarray | None


def polish(
    K: np.ndarray | CombinedGram,
    alpha: np.ndarray,
    b: float,
    sign: np.ndarray,
    linear: np.ndarray,
    C: np.ndarray,
    delta: float = 0.0,
    *,
    intercept: bool = True,
) -> Polished:
    """The optimum of the dual, by an active-set method from a nearby alpha.

    Free variables have gradient zero, which is a linear system in them and the intercept:

        K_FF s_F + b 1 = -sign_F linear_F - K_FB s_B,    1's_F = delta - 1's_B

    The step towards its solution stops at the first bound, where that variable is fixed. After a
    full step, variables whose gradient points away from their bound are freed. The given alpha is
    returned if the result violates the optimality conditions more.

    Parameters
    ----------
    K : array of shape (n, n), or CombinedGram
    alpha : array of shape (m,), m = n or 2 n
        Variable i belongs to sample ``i % n``.
    b : float
    sign, linear, C : arrays of shape (m,)
    delta : float
    intercept : bool, default=True
        Without an intercept there is no equality constraint, and b stays zero.
    """
    gram = K if isinstance(K, CombinedGram) else GivenMatrix(np.ascontiguousarray(K))
    n, m = gram.n, len(alpha)
    point = np.arange(m) % n
    # The largest entry of a positive semidefinite matrix is on its diagonal.
    largest = float(gram.diagonal().max(initial=0.0))
    size = max(float(np.abs(linear).max(initial=0.0)), 1e-3 * largest)
    negligible = NEGLIGIBLE_VIOLATION * size

    def product(s: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(s)
        return gram.partial_matvec(support, s[support])

    def values(a: np.ndarray) -> np.ndarray:
        return product(np.bincount(point, sign * a, n))

    def violation(a: np.ndarray, f: np.ndarray, offset: float) -> np.ndarray:
        g = sign * (f[point] + offset) + linear
        return np.where(a <= 0, -g, np.where(a >= C, g, np.abs(g)))

    def is_feasible(a: np.ndarray) -> bool:
        error = abs(float(sign @ a) - delta)
        return not intercept or error <= MAX_SUM_ERROR * float(np.abs(a).sum())

    given = alpha
    at_upper_bound = alpha > C * (1 - BOUND_MARGIN)
    alpha = np.where(alpha < BOUND_MARGIN * C, 0.0, np.where(at_upper_bound, C, alpha))
    free = (alpha > 0) & (alpha < C)
    started = alpha.copy()
    best: tuple[np.ndarray, float, np.ndarray] | None = None
    worst = np.inf
    work, releases, singular = 0.0, 0, 0
    while work < MAX_FLOPS and singular < MAX_SINGULAR_SYSTEMS:
        if not np.any(free):
            f = values(alpha)
            gradient = sign * linear + f[point]
            entering, offset = _entering(gradient, alpha >= C, sign, intercept, negligible)
            if not entering:
                last = float(violation(alpha, f, offset).max())
                if last < worst and is_feasible(alpha):
                    best, worst = (alpha, offset, f), last
                break
            free[entering] = True
        F = np.flatnonzero(free)
        p = point[F]
        work += 1e6 + 2.0 * len(F) ** 3 + 4.0 * n**2
        bound = np.bincount(point, sign * np.where(free, 0.0, alpha), n)
        right = -sign[F] * linear[F] - product(bound)[p]
        total = delta - float(bound.sum()) if intercept else None
        solution, offset, definite = solve_free(gram, p, right, total)
        singular += not definite
        step = sign[F] * solution - alpha[F]
        length, blocking = _first_bound(alpha[F], step, C[F])
        if length < 1.0:
            i = F[blocking]
            alpha[F] += length * step
            alpha[i] = C[i] if step[blocking] > 0 else 0.0
            free[i] = False
            continue
        alpha[F] = sign[F] * solution
        f = values(alpha)
        against = np.where(free, 0.0, violation(alpha, f, offset))
        residual = np.abs(sign[F] * (f[p] + offset) + linear[F]).max()
        now = max(float(against.max()), float(residual))
        if now < worst and is_feasible(alpha):
            best, worst = (alpha.copy(), offset, f), now
        if against.max() <= negligible:
            break
        # Freeing all violating variables at once is fast; freeing one at a time cannot cycle.
        releases += 1
        free |= against > (negligible if releases <= 3 else against.max() * (1 - 1e-12))
    exact = worst <= 1e3 * negligible
    if best is None or not (exact or violation(started, values(started), b).max() > worst):
        return Polished(given, b, False, None)
    alpha, offset, f = best
    return Polished(alpha, offset, exact, f)


def _entering(
    gradient: np.ndarray, upper: np.ndarray, sign: np.ndarray, intercept: bool, negligible: float
) -> tuple[list[int], float]:
    """The variables to free when all are at bounds (none at the optimum), and the intercept.

    ``gradient`` is ``f_i + sign_i linear_i``; minus this is the intercept at which the gradient of
    variable i would be zero.
    """
    if not intercept:
        against = np.where(upper, sign * gradient, -sign * gradient)
        worst = int(np.argmax(against))
        return ([worst] if against[worst] > negligible else []), 0.0
    offset = -gradient
    rising = np.flatnonzero(np.where(upper, sign < 0, sign > 0))
    falling = np.flatnonzero(np.where(upper, sign > 0, sign < 0))
    if not len(rising) or not len(falling):
        return [], float(offset[rising].max() if len(rising) else offset[falling].min())
    i, j = rising[np.argmax(offset[rising])], falling[np.argmin(offset[falling])]
    if offset[i] - offset[j] <= negligible:
        return [], float(0.5 * (offset[i] + offset[j]))
    return [int(i), int(j)], 0.0


def _first_bound(alpha: np.ndarray, step: np.ndarray, C: np.ndarray) -> tuple[float, int]:
    """The fraction of the step up to the first bound, at most 1, and the variable that meets it."""
    room = np.where(step > 0, C - alpha, alpha)
    moving = np.abs(step) > 1e-14 * C
    limits = np.divide(room, np.abs(step), out=np.full_like(room, np.inf), where=moving)
    first = int(np.argmin(limits))
    return (1.0 if limits[first] >= 1.0 - 1e-12 else max(float(limits[first]), 0.0)), first


def solve_free(
    gram: CombinedGram, index: np.ndarray, right: np.ndarray, total: float | None
) -> tuple[np.ndarray, float, bool]:
    """The solution s, b of ``K s + b 1 = right, 1's = total``, and whether K is definite.

    K is the part of the matrix at ``index``. If ``total`` is None, b is zero and there is no
    condition on the sum. A definite K is factored by Cholesky. If samples repeat, K is singular and
    the bordered system is solved by LU; if that is singular too, by least squares of smallest norm.
    """
    size = len(index)
    with one_blas_thread(size):
        sides = right if total is None else np.column_stack([right, np.ones(size)])
        try:
            found = gram.solve_among(index, 0.0, sides)
        except LinAlgError:
            pass
        else:
            if total is None:
                return found, 0.0, True
            b = (float(found[:, 0].sum()) - total) / float(found[:, 1].sum())
            return found[:, 0] - b * found[:, 1], b, True
        K = gram.submatrix(index)
        if total is not None:
            K = np.pad(K, ((0, 1), (0, 1)), constant_values=1.0)
            K[-1, -1] = 0.0
            right = np.append(right, total)
        factors, pivots, info = dgetrf(K)
        if info == 0 and dgecon(factors, np.abs(K).sum(axis=0).max())[0] > MIN_RECIPROCAL_CONDITION:
            found = np.asarray(dgetrs(factors, pivots, right)[0])
        else:
            found = np.asarray(lstsq(K, right, check_finite=False, lapack_driver="gelsy")[0])
        return (found, 0.0, False) if total is None else (found[:-1], float(found[-1]), False)
