"""The largest margin as a semidefinite program, by interior points (clarabel).

With ``G = Y (sum_k d_k K_k)_tr Y`` and one more multiplier for every sign constraint of the dual,

    min t/2 [+ C 1'delta]   over  [[G + I/C if 2-norm, u], [u', t]]  positive semidefinite,
                                  u = e + nu [- delta] + lambda y,   nu >= 0 [, delta >= 0]

(Lanckriet et al. 2004; the block printed in Bousquet & Herrmann lost the kernel). The weights have
sum one and either lie on the simplex, class (3), or leave ``sum_k d_k K_k`` positive semidefinite
on all points, class (2). At the optimum t is ``||w||^2``.

The cone of m x m matrices is a dense block of (m(m+1)/2)^2 numbers to interior points: this is an
oracle for small problems. :mod:`multikernel.solvers.spectral.linear` needs no such block.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .linear import Cone
from .problem import KernelMatrices, Labels, MarginSolution, train
from .qcqp import ConicProgram, certify, require_clarabel

#: The most points. Measured with 60 % labelled: 60 points 4 s, 80 points 40 s and 1 GB of memory.
SDP_LIMIT = 80


def sdp(
    stack: np.ndarray, labelled: np.ndarray, labels: Labels, *, signed: bool = True
) -> MarginSolution:
    """Weights and machine from the semidefinite program.

    Parameters
    ----------
    stack : array of shape (p, N, N)
        Positive semidefinite matrices of equal trace on all points.
    labelled : array of shape (n,)
    labels : Labels
    signed : bool, default=True
        Class (2); False for class (3), non-negative weights.

    Raises
    ------
    ValueError
        When there are more than 80 points.
    """
    clarabel = require_clarabel("The semidefinite program")
    p, N = stack.shape[:2]
    if N > SDP_LIMIT:
        block = 8 * (N * (N + 1) / 2) ** 2 / 1e9
        raise ValueError(
            f"The semidefinite program of {N} points is too large for interior points: the cone "
            f"of {N} x {N} matrices alone is a dense block of {block:.2g} GB. "
            f"Up to {SDP_LIMIT} points are taken; solver='auto' reaches the same optimum by "
            "planes, at any size."
        )
    y, n = labels.y, len(labels.y)
    soft = np.isfinite(labels.box)
    # x = (d, t, lambda, nu, delta)
    size = p + 2 + n + (n if soft else 0)
    program = ConicProgram(clarabel, size)
    program.q[p] = 0.5
    nu = slice(p + 2, p + 2 + n)
    delta = slice(p + 2 + n, size)
    if soft:
        program.q[delta] = labels.C
    total = np.zeros(size)
    total[:p] = 1.0
    program.demand(total[None], np.ones(1), clarabel.ZeroConeT(1))
    signs = sp.hstack([sp.csc_matrix((size - p - 2, p + 2)), -sp.eye(size - p - 2)])
    program.demand(signs, np.zeros(size - p - 2), clarabel.NonnegativeConeT(size - p - 2))
    # the cone of the machine
    columns = np.zeros((size, n + 1, n + 1))
    blocks = stack[:, labelled[:, None], labelled] * np.outer(y, y)
    columns[:p, :n, :n] = blocks
    columns[p, n, n] = 1.0
    columns[p + 1, :n, n] = columns[p + 1, n, :n] = y
    for i in range(n):
        columns[nu.start + i, i, n] = columns[nu.start + i, n, i] = 1.0
        if soft:
            columns[delta.start + i, i, n] = columns[delta.start + i, n, i] = -1.0
    constant = np.zeros((n + 1, n + 1))
    constant[:n, n] = constant[n, :n] = 1.0
    constant[:n, :n] += labels.ridge * np.eye(n)
    place = program.demand(
        -triangle(columns).T, triangle(constant), clarabel.PSDTriangleConeT(n + 1)
    )
    cone = Cone.of(stack)
    if signed:
        r = cone.whitened.shape[1]
        A = sp.hstack(
            [sp.csc_matrix(-triangle(cone.whitened).T), sp.csc_matrix((r * (r + 1) // 2, size - p))]
        )
        edge = program.demand(A, np.zeros(A.shape[0]), clarabel.PSDTriangleConeT(r))
    else:
        A = sp.hstack([-sp.eye(p), sp.csc_matrix((p, size - p))])
        program.demand(A, np.zeros(p), clarabel.NonnegativeConeT(p))
    x, z = program.solve(p)
    # t costs a half: the multiplier of the machine's cone has last column (-alpha, 1) / 2.
    alpha = -2.0 * untriangle(z[place], n + 1)[:n, n]
    d = x[:p] / x[:p].sum()
    hull = KernelMatrices(np.ascontiguousarray(blocks * np.outer(y, y)))
    if not signed:
        return certify(hull, labels, np.maximum(d, 0.0), alpha)
    return _certify_signed(hull, cone, labels, d, alpha, untriangle(z[edge], r))


def _certify_signed(
    hull: KernelMatrices,
    cone: Cone,
    labels: Labels,
    d: np.ndarray,
    alpha: np.ndarray,
    Z: np.ndarray,
) -> MarginSolution:
    """Both bounds, from what the program returned made exactly feasible.

    For ``Z >= 0`` the dual value is ``1'alpha - l`` where ``s'K_k s / 2 + <Z, K_k> = l`` for all k;
    Z comes with an error and is moved by ``Z^(1/2) S Z^(1/2)``, S of least norm, to meet it.
    """
    centre = np.full(len(d), 1.0 / len(d))
    inside = min(1.0, cone.reach(d - centre))
    d = centre + inside * (d - centre)
    machine = train(hull.combine(d), labels)
    lower = -np.inf
    for candidate in (labels.feasible(alpha), labels.feasible(machine.alpha)):
        lower = max(lower, signed_bound(hull, cone, labels, candidate, Z))
    return MarginSolution(d, machine, lower, 1)


def signed_bound(
    hull: KernelMatrices, cone: Cone, labels: Labels, alpha: np.ndarray, Z: np.ndarray
) -> float:
    """A lower bound over all positive semidefinite combinations, for any alpha and Z."""
    a = hull.forms(labels.y * alpha)
    values, vectors = np.linalg.eigh(Z)
    R = vectors * np.sqrt(np.maximum(values, 0.0))
    inner = np.einsum("ia,kij,jb->kab", R, cone.whitened, R, optimize=True)
    traces = np.trace(inner, axis1=1, axis2=2)
    p = len(a)
    # <R'K_kR, S> - l = -a_k/2 - traces_k: least norm in S, l free.
    flat = inner.reshape(p, -1)
    unit = max(float(np.linalg.norm(flat)), 1e-300)
    level = float(np.mean(0.5 * a + traces))
    system = np.hstack([flat / unit, -np.ones((p, 1)) * 1e3])
    move = np.linalg.lstsq(system, level - 0.5 * a - traces, rcond=None)[0]
    S = move[:-1].reshape(Z.shape) / unit
    miss = level + 1e3 * move[-1] - 0.5 * a - traces - flat @ move[:-1] / unit
    if np.linalg.eigvalsh(0.5 * (S + S.T))[0] < -1.0 or np.abs(miss).max() > 1e-9 * abs(level):
        return -np.inf
    highest = level + 1e3 * float(move[-1])
    total, ridge = float(alpha.sum()), labels.ridge * float(alpha @ alpha)
    if np.isinf(labels.box):
        # alpha -> r alpha, Z -> r^2 Z: the best r
        return total**2 / (2.0 * (2.0 * highest + ridge)) if highest > 0 else -np.inf
    return total - highest - 0.5 * ridge


def triangle(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles column by column, off the diagonal times the root of two."""
    m = matrices.shape[-1]
    columns, rows = np.tril_indices(m)  # (column, row <= column) of the upper triangle
    factor = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return np.asarray(matrices[..., rows, columns] * factor)


def untriangle(values: np.ndarray, m: int) -> np.ndarray:
    columns, rows = np.tril_indices(m)
    out = np.zeros((m, m))
    out[rows, columns] = out[columns, rows] = values / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return out
