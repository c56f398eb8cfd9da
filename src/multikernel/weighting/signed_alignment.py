"""The best aligned combination with weights of any sign, even if kernels are nearly dependent.

``max mu'a / sqrt(mu'M mu)`` is solved by ``M mu = a`` (Cortes, Mohri & Rostamizadeh 2012,
Proposition 8): these are the normal equations of the least squares problem

    min_mu || sum_k mu_k K_kc - (YY')_c ||^2

Their rounding errors grow with the *square* of the condition number of the centred kernels, and for
a grid of Gaussians that square soon exceeds what float64 resolves. If M is nearly singular, the
kernels are therefore read once more, as combinations along the eigenvectors of M. Computed entry by
entry, these are nearly orthogonal, so the products of the combinations have all the digits that the
products of the kernels lack. The result is that of an orthogonal factorisation of the vectorised
kernels, at the cost of computing M once more, and works with any engine.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, eigh, lstsq
from scipy.linalg.lapack import dpstrf

from .._threads import one_blas_thread
from ..grams.protocol import CentredBlocks, Grams, Summary, add, center_targets
from ..problem import Target

#: The system in M is solved directly if its smallest eigenvalue is at least this fraction of the
#: largest (kernels of unit norm): float32 errors in M then change the weights by at most 0.1 %.
WELL_CONDITIONED = 1e-4
#: A combination is dropped if its distance from the span of the others is below this many rounding
#: errors of the kernel entries, times sqrt(p); distances of the others have at least two digits.
RANK_CUT = 100.0


def best_signed(grams: Grams, target: Target, summary: Summary) -> np.ndarray:
    """Kernel weights of any sign, shape (p,), whose combination is best aligned with the target."""
    assert summary.M is not None
    keep, d, C, r = unit_norm(summary.M, summary.a)
    if not len(keep) or not np.any(r):
        return np.zeros(grams.p)
    with one_blas_thread(len(keep)):
        eigenvalues, directions = eigh(C)
    if eigenvalues[0] >= WELL_CONDITIONED * eigenvalues[-1]:
        return alignf_signed(summary.M, summary.a)
    V = np.zeros((grams.p, len(keep)))
    V[keep] = directions / d[:, None]
    G, b = products_of_combinations(grams, target, V)
    cut = RANK_CUT * grams.precision * np.sqrt(len(keep))
    with one_blas_thread(len(keep)):
        return V @ least_squares(G, b, cut)


def alignf_signed(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``M^-1 a``, the unconstrained maximiser; the one of smallest norm if M is singular."""
    v = np.zeros(len(a))
    keep, d, C, r = unit_norm(M, a)
    if len(keep):
        with one_blas_thread():
            v[keep] = lstsq(C, r)[0] / d
    return v


def unit_norm(
    M: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The indices of non-zero kernels, their norms d, and M and a for kernels of unit norm."""
    d = np.sqrt(np.maximum(np.diag(M), 0.0))
    keep = np.flatnonzero(d > 0)
    d = d[keep]
    return keep, d, M[np.ix_(keep, keep)] / np.outer(d, d), a[keep] / d


def products_of_combinations(
    grams: Grams, target: Target, V: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inner products of ``sum_k V_kj K_kc`` with each other, (q, q), and with the target, (q,)."""
    omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
    Y, centred = center_targets(target.Y, grams.sample_weight), CentredBlocks(grams)
    used = np.any(V != 0, axis=1)

    def one(rows: slice) -> np.ndarray:
        size = np.sqrt(np.outer(omega[rows], omega)).ravel()
        K = centred(rows)[used].reshape(np.count_nonzero(used), -1)
        wanted = (Y[rows] @ Y.T).ravel()
        combined = np.vstack([V[used].T @ K, wanted]) * size
        return combined[:-1] @ combined.T

    products = add(grams.map(one))
    return products[:, :-1], products[:, -1]


def least_squares(G: np.ndarray, b: np.ndarray, cut: float) -> np.ndarray:
    """The minimiser z of ``z'G z - 2 b'z``; zero for combinations in the span of others.

    The pivots of a Cholesky factorisation are squared distances from the span of the preceding
    combinations. Combinations are dropped once these distances are below ``cut``, relative to the
    largest combination. The factor is accurate even if the sizes of the combinations differ by many
    orders of magnitude (Demmel 1989).
    """
    largest = float(np.diag(G).max())
    factor, order, rank, _ = dpstrf(G, lower=1, tol=cut**2 * largest)
    order = order[:rank] - 1  # LAPACK counts from one
    z = np.zeros(len(b))
    z[order] = cho_solve((factor[:rank, :rank], True), b[order])
    return z
