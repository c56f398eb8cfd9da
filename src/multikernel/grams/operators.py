"""Solves and eigenvalues of an operator that is known only by its products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

Matvec = Callable[[np.ndarray], np.ndarray]

#: A negative eigenvalue below this fraction of the largest, in size, counts as rounding error.
PSD_TOLERANCE = 1e-8
#: Relative residual at which conjugate gradients stop.
RESIDUAL = 1e-12


class EigenvalueBounds(NamedTuple):
    """The ends of a spectrum.

    Attributes
    ----------
    lowest : float
        The smallest eigenvalue or, where ``proven``, a lower bound of it.
    largest : float
    proven : bool
        Whether it is proven that no eigenvalue is below ``lowest`` by more than rounding.
    """

    lowest: float
    largest: float
    proven: bool


def extreme_eigenvalues(matvec: Matvec, n: int, rounding: float = 0.0) -> EigenvalueBounds:
    """Smallest and largest eigenvalue by Lanczos' method.

    The largest is found to three digits. So is the smallest if it is clearly negative; otherwise
    its error is about a tenth of what counts as rounding: `PSD_TOLERANCE` of the largest, or
    ``rounding``.
    """
    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    if n < 3:
        K = np.column_stack([matvec(unit) for unit in np.eye(n)])
        values = np.linalg.eigvalsh(0.5 * (K + K.T))
        return EigenvalueBounds(float(values[0]), float(values[-1]), False)
    largest = _lanczos(operator, 1e-3)
    if largest is None:
        largest = rayleigh_quotient(matvec, n, 50)
    # Lanczos' tolerance is relative to the eigenvalue, which may be zero: K is shifted, so that
    # its smallest eigenvalue becomes the largest of ``shift I - K``.
    shift = 1.01 * abs(largest)
    shifted = LinearOperator((n, n), matvec=lambda v: shift * v - matvec(v), dtype=np.float64)
    roundings = max(PSD_TOLERANCE * abs(largest), rounding)
    for tol in (1e-3, 0.1 * roundings / max(shift, np.finfo(np.float64).tiny)):
        found = _lanczos(shifted, tol)
        if found is None:  # a Rayleigh quotient still gives an upper bound of ``lowest``
            found = rayleigh_quotient(shifted.matvec, n, 200)
        lowest = shift - found
        if lowest < -1e-2 * shift:
            break  # clearly negative
    return EigenvalueBounds(lowest, largest, False)


def _lanczos(operator: LinearOperator, tol: float) -> float | None:
    """The largest eigenvalue; None if Lanczos' method does not converge."""
    start = np.random.default_rng(0).standard_normal(operator.shape[0])
    try:
        found = eigsh(operator, k=1, which="LA", tol=tol, v0=start, return_eigenvectors=False)
    except ArpackNoConvergence:
        return None
    return float(found[0])


def rayleigh_quotient(matvec: Matvec, n: int, steps: int) -> float:
    """A Rayleigh quotient after some power steps: at most the largest eigenvalue."""
    v = np.random.default_rng(0).standard_normal(n)
    for _ in range(steps):
        v = matvec(v)
        v /= max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny)
    return float(v @ matvec(v))


def conjugate_gradients(
    matvec: Matvec, diagonal: np.ndarray, ridge: np.ndarray, B: np.ndarray
) -> np.ndarray:
    """The solution of ``(K + diag(ridge)) X = B``, with the diagonal as preconditioner.

    All columns share one product with K per step. The iteration ends at a relative residual of
    `RESIDUAL` or, where rounding prevents that, with the last X after 10 n steps.
    """
    right = np.asarray(B, dtype=np.float64).reshape(len(ridge), -1)
    scale = np.maximum(diagonal, 0.0) + ridge
    inverse = np.divide(1.0, scale, out=np.ones_like(scale), where=scale > 0)[:, None]
    X = np.zeros_like(right)
    R = right.copy()
    Z = inverse * R
    D = Z.copy()
    rho = np.einsum("nt,nt->t", R, Z)
    goal = RESIDUAL * np.linalg.norm(right, axis=0)
    for step in range(1, 10 * len(ridge) + 1):
        if np.all(np.linalg.norm(R, axis=0) <= goal):
            break
        AD = matvec(D) + ridge[:, None] * D
        curvature = np.einsum("nt,nt->t", D, AD)
        length = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        X += length * D
        # The recursion drifts, so the residual is computed anew every 64 steps.
        R = right - matvec(X) - ridge[:, None] * X if step % 64 == 0 else R - length * AD
        Z = inverse * R
        new = np.einsum("nt,nt->t", R, Z)
        D = Z + np.divide(new, rho, out=np.zeros_like(rho), where=rho > 0) * D
        rho = new
    return X.reshape(np.shape(B))
