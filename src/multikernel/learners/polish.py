"""From an approximate solution of a machine's dual to the exact optimum.

The problem is that of :mod:`multikernel.learners.smo`,

    min_alpha 1/2 alpha'Q alpha + linear'alpha,   0 <= alpha_i <= C_i,   sign'alpha = delta

with ``Q_ij = sign_i sign_j K[point_i, point_j]``. Given signed coefficients ``s`` of the points,
the values ``f = K s`` and the intercept b, the gradient of the Lagrangian is
``g_i = sign_i (f_i + b) + linear_i``: zero where alpha is free, not negative where it is 0, not
positive where it is C.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

from .._threads import one_blas_thread

#: About a second's worth of factorisations, after which the best answer so far stands.
FLOPS = 2e10
#: Violations of the optimality conditions below this (in units of the targets) are rounding.
NEGLIGIBLE = 1e-10


def polish(
    K: np.ndarray,
    alpha: np.ndarray,
    b: float,
    sign: np.ndarray,
    linear: np.ndarray,
    C: np.ndarray,
    delta: float = 0.0,
    *,
    intercept: bool = True,
) -> tuple[np.ndarray, float]:
    """An active-set method on the dual.

    Free variables have gradient zero, which is a linear system in them and the intercept:

        K_FF s_F + b 1 = -sign_F linear_F - K_FB s_B,    1's_F = delta - 1's_B

    The step towards its solution ends at the first bound it meets, and that variable is fixed
    there. After a full step, variables whose gradient contradicts their bound are freed. The
    result is taken only if it violates the optimality conditions less.

    Parameters
    ----------
    K : array of shape (n, n)
    alpha : array of shape (m,), m = n or 2 n
        Variable i belongs to point ``i % n``.
    b : float
    sign, linear, C : arrays of shape (m,)
    delta : float
    intercept : bool, default=True
        Without one there is no equality constraint, and b stays zero.

    Returns
    -------
    alpha : array of shape (m,)
    b : float
    """
    n, m = len(K), len(alpha)
    point = np.arange(m) % n
    size = max(float(np.abs(linear).max(initial=0.0)), 1e-3 * float(np.abs(K).max(initial=0.0)))
    negligible = NEGLIGIBLE * size

    def values(a: np.ndarray) -> np.ndarray:
        return np.asarray(K @ np.bincount(point, sign * a, n))

    def violation(a: np.ndarray, f: np.ndarray, offset: float) -> np.ndarray:
        g = sign * (f[point] + offset) + linear
        return np.where(a <= 0, -g, np.where(a >= C, g, np.abs(g)))

    found = alpha
    alpha = np.where(alpha < 1e-9 * C, 0.0, np.where(alpha > C * (1 - 1e-9), C, alpha))
    free = (alpha > 0) & (alpha < C)
    best, worst = (found, b), float(violation(alpha, values(alpha), b).max())
    work, releases = 0.0, 0
    while work < FLOPS:
        if not np.any(free):
            gradient = sign * linear + values(alpha)[point]
            entering, offset = _entering(gradient, alpha >= C, sign, intercept, negligible)
            if not entering:
                better = float(violation(alpha, values(alpha), offset).max()) < worst
                return (alpha, offset) if better else best
            free[entering] = True
        F = np.flatnonzero(free)
        p = point[F]
        work += 1e6 + 2.0 * len(F) ** 3 + 4.0 * n * len(F)
        bound = np.bincount(point, sign * np.where(free, 0.0, alpha), n)
        right = -sign[F] * linear[F] - K[p] @ bound
        system = K[np.ix_(p, p)]
        if intercept:
            system = np.pad(system, ((0, 1), (0, 1)), constant_values=1.0)
            system[-1, -1] = 0.0
            right = np.append(right, delta - bound.sum())
        solution = solve_symmetric(system, right)
        step = sign[F] * solution[: len(F)] - alpha[F]
        length, blocking = _first_bound(alpha[F], step, C[F])
        if length < 1.0:
            i = F[blocking]
            alpha[F] += length * step
            alpha[i] = C[i] if step[blocking] > 0 else 0.0
            free[i] = False
            continue
        alpha[F] = sign[F] * solution[: len(F)]
        offset = float(solution[-1]) if intercept else 0.0
        f = values(alpha)
        against = np.where(free, 0.0, violation(alpha, f, offset))
        residual = np.abs(sign[F] * (f[p] + offset) + linear[F]).max()
        now = max(float(against.max()), float(residual))
        if now < worst:
            best, worst = (alpha.copy(), offset), now
        if against.max() <= negligible:
            break
        # All at once is quick; one at a time cannot go round in circles.
        releases += 1
        free |= against > (negligible if releases <= 3 else against.max() * (1 - 1e-12))
    return best


def _entering(
    gradient: np.ndarray, upper: np.ndarray, sign: np.ndarray, intercept: bool, negligible: float
) -> tuple[list[int], float]:
    """Which variables to free when none is, none at the optimum; and the intercept then.

    ``gradient`` is ``f_i + sign_i linear_i``: minus the intercept that variable i would like.
    """
    if not intercept:
        against = np.where(upper, sign * gradient, -sign * gradient)
        worst = int(np.argmax(against))
        return ([worst] if against[worst] > negligible else []), 0.0
    wish = -gradient
    rising = np.flatnonzero(np.where(upper, sign < 0, sign > 0))
    falling = np.flatnonzero(np.where(upper, sign > 0, sign < 0))
    if not len(rising) or not len(falling):
        return [], float(wish[rising].max() if len(rising) else wish[falling].min())
    i, j = rising[np.argmax(wish[rising])], falling[np.argmin(wish[falling])]
    if wish[i] - wish[j] <= negligible:
        return [], float(0.5 * (wish[i] + wish[j]))
    return [int(i), int(j)], 0.0


def _first_bound(alpha: np.ndarray, step: np.ndarray, C: np.ndarray) -> tuple[float, int]:
    """How far one can go before a variable leaves its box, and which one it is."""
    room = np.where(step > 0, C - alpha, alpha)
    moving = np.abs(step) > 1e-14 * C
    limits = np.divide(room, np.abs(step), out=np.full_like(room, np.inf), where=moving)
    first = int(np.argmin(limits))
    return (1.0 if limits[first] >= 1.0 - 1e-12 else max(float(limits[first]), 0.0)), first


def solve_symmetric(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A system; repeated points make it singular, then its smallest solution."""
    with one_blas_thread(len(A)):
        factors, pivots, info = dgetrf(A)
        if info == 0 and dgecon(factors, np.abs(A).sum(axis=0).max())[0] > 1e-13:
            return np.asarray(dgetrs(factors, pivots, b)[0])
        return np.asarray(lstsq(A, b, check_finite=False, lapack_driver="gelsy")[0])
