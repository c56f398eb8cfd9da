"""Sequential minimal optimisation: the dual of every predictor with a piecewise linear loss.

    min_alpha  1/2 alpha'Q alpha + linear'alpha,    Q_ij = sign_i sign_j K(x_i, x_j)
    subject to 0 <= alpha_i <= C_i  and, with an intercept,  sign'alpha = delta

The algorithm works with the signed coefficients ``s = sign * alpha`` of the expansion
``f = K s + b``, one for each sample:

    min_s  1/2 s'Ks + sum_i phi_i(s_i),    lower <= s <= upper,   1's = delta

with phi_i linear on either side of zero. In regression a sample has two variables, alpha and
alpha*, of which one is zero at the optimum. They are the positive and the negative part of one s,
so the problem has n variables instead of 2n.

A pair (i, j) is optimal if no exchange ``s_i + t, s_j - t`` lowers the objective. Each step takes
the i with the largest violation and the j with the largest second-order gain (Fan, Chen & Lin,
"Working set selection using second order information for training support vector machines", JMLR 6,
2005, WSS 2)::

    i = argmin_k (g + up)_k                                   g = K s
    j = argmax_k ((g + down)_k - (g + up)_i)^2 / (K_ii + K_kk - 2 K_ik)
    t = the minimiser, limited by the bounds and by the kink of phi
    g = g + t K_i - t K_j                                     finds the next i in the same pass

until ``max(g + down) - min(g + up) <= tol``. Without an intercept a step changes the variable with
the largest gain of its own, and the partner with the largest gain after that, as proposed by
Steinwart, Hush & Scovel, "Training SVMs without offset", JMLR 12, 2011.

Variables at a bound whose gradient points outside are set aside (*shrinking*), and the rows of K in
use are copied without the columns of these variables. Before the loop ends, g is completed and all
variables are checked again.

On a Gram operator the same problem is solved by steps of many variables
(:mod:`multikernel.learners.block_steps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np

from ..grams.protocol import CombinedGram
from ._smo_dual import SignedDual
from ._smo_matrix import FetchedRows, KernelRows, StoredMatrix
from ._smo_run import SmoRun
from .block_steps import BlockRun

__all__ = ["Result", "KernelRows", "one_class", "solve", "svc", "svr"]


@dataclass(frozen=True)
class Result:
    """The solution of the dual, or the last iterate if the tolerance was not reached.

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
        b, which is ``-rho``: the mean over free variables, or the middle of the interval of
        optimal values if no variable is free. Zero without intercept.
    objective : float
    n_iter : int
    violation : float
        ``m(alpha) - M(alpha)``, the largest violation of the optimality conditions.
    status : {"optimal", "max_iter", "rounding"}
        ``"rounding"``: the tolerance is below the rounding error of float64 on this problem.
    n_rows : int
        Rows computed on demand, or columns read by block steps; zero for a stored matrix.
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


class Options(TypedDict, total=False):
    """Options that `svc`, `svr` and `one_class` pass on to `solve`."""

    tol: float
    alpha0: np.ndarray | None
    intercept: bool
    max_iter: int
    shrinking: bool
    cache_rows: int | None


def svc(
    K: np.ndarray | KernelRows,
    y: np.ndarray,
    C: float | np.ndarray = 1.0,
    **options: Unpack[Options],
) -> Result:
    """Classification: ``min 1/2 alpha'Q alpha - 1'alpha, 0 <= alpha_i <= C_i, y'alpha = 0``.

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
    y : array of shape (n,)
        Labels -1 and +1.
    C : float or array of shape (n,)
    **options
        Options of `solve`; ``alpha0`` has shape (n,).

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
        **options,
    )


def svr(
    K: np.ndarray | KernelRows,
    y: np.ndarray,
    C: float | np.ndarray = 1.0,
    epsilon: float = 0.1,
    **options: Unpack[Options],
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
    **options
        Options of `solve`; ``alpha0`` has shape (2n,): alpha, then alpha*.
    """
    y = np.asarray(y, dtype=np.float64)
    n = len(y)
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), (n,))
    return solve(
        K,
        np.concatenate([epsilon - y, epsilon + y]),
        np.repeat([1.0, -1.0], n),
        np.concatenate([C, C]),
        **options,
    )


def one_class(
    K: np.ndarray | KernelRows,
    nu: float = 0.5,
    *,
    upper: np.ndarray | None = None,
    **options: Unpack[Options],
) -> Result:
    """One-class SVM: ``min 1/2 s'Ks, 0 <= s_i <= 1 / (nu n), 1's = 1``; rho is ``-b``.

    Parameters
    ----------
    K : array of shape (n, n), or KernelRows
    nu : float in (0, 1]
    upper : array of shape (n,) or None
        Bounds in place of ``1 / (nu n)``; they must sum to at least one.
    **options
        Options of `solve`.
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
        **options,
    )


def solve(
    K: np.ndarray | KernelRows | CombinedGram,
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
    K : array of shape (n, n), KernelRows, or CombinedGram
        In float32 or float64; sums are computed in float64. A Gram operator is read in blocks of
        columns, by block steps; the other forms by rows.
    linear : array of shape (m,)
        m is n or 2n. If 2n, the variables i and n + i belong to sample i, with signs +1 and -1, and
        ``linear[i] + linear[n + i] >= 0``.
    sign : array of shape (m,)
        -1 and +1.
    C : float or array of shape (m,)
        Upper bounds, finite and not negative.
    delta : float, default=0.0
    intercept : bool, default=True
        Whether there is an equality constraint.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the gradient.
    alpha0 : array of shape (m,) or None
        The start; it is clipped to the bounds and adjusted to the required sum.
    max_iter : int, default=-1
        Limit on steps; -1 for ten million, or a hundred per sample if that is more.
    shrinking : bool, default=True
    cache_rows : int or None
        Size of the cache for rows on demand, at least four rows; None for 256 MiB.

    Returns
    -------
    result : Result
    """
    n = K.n if isinstance(K, CombinedGram) else len(K.diagonal if isinstance(K, KernelRows) else K)
    dual = SignedDual.of(n, linear, sign, C, delta, intercept)
    limit = max_iter if max_iter >= 0 else max(10_000_000, 100 * n)
    start = dual.start(alpha0)
    run: SmoRun | BlockRun
    if isinstance(K, CombinedGram):
        run = BlockRun(dual, K, start, tol)
    elif isinstance(K, KernelRows):
        run = SmoRun(dual, FetchedRows(K, cache_rows, shrinking), start, tol, shrinking)
    else:
        run = SmoRun(dual, StoredMatrix(K), start, tol, shrinking)
    status = run.until(limit)
    alpha, gradient = dual.unfold(run.s, run.g)
    return Result(
        alpha,
        gradient,
        run.s,
        run.g,
        run.offset() if intercept else 0.0,
        dual.objective(alpha, run.g),
        run.steps,
        run.violation(),
        status,
        run.n_rows,
    )
