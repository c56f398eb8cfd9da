"""The largest margin as a semidefinite program, solved by clarabel.

With ``G = Y (sum_k d_k K_k)_tr Y`` and one more multiplier for every sign constraint of the dual,

    min t/2 [+ C 1'delta]   over  [[G + I/C if 2-norm, u], [u', t]]  positive semidefinite,
                                  u = e + nu [- delta] + lambda y,   nu >= 0 [, delta >= 0]

(Lanckriet et al. 2004; in the block printed by Bousquet & Herrmann the kernel is missing). The
weights sum to one and either lie on the simplex, class (3), or make ``sum_k d_k K_k`` positive
semidefinite on all samples, class (2). At the optimum t is ``||w||^2``.

An interior-point method needs a dense block of (m(m+1)/2)^2 numbers for a cone of m x m matrices,
so this solver is for small problems and a reference in tests. The solver in
:mod:`multikernel.solvers.spectral.linear` needs no such block.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .conic import ConicProgram, require_clarabel
from .hulls import KernelMatrices
from .linear import Cone
from .problem import Labels, MarginSolution, train
from .qcqp import certify

#: Largest number of samples. With 60 % labelled, 60 samples took 4 s, 80 samples 40 s and 1 GB.
MAX_SDP_SAMPLES = 80


def sdp(
    stack: np.ndarray, labelled: np.ndarray, labels: Labels, *, signed: bool = True
) -> MarginSolution:
    """Kernel weights and classifier from the semidefinite program.

    Parameters
    ----------
    stack : array of shape (p, N, N)
        Positive semidefinite matrices of equal trace on all samples.
    labelled : array of shape (n,)
        Indices of the labelled samples.
    labels : Labels
    signed : bool, default=True
        True for class (2), weights of any sign; False for class (3), non-negative weights.

    Raises
    ------
    ValueError
        If there are more than 80 samples.
    """
    clarabel = require_clarabel("The semidefinite program")
    p, N = stack.shape[:2]
    if N > MAX_SDP_SAMPLES:
        block = 8 * (N * (N + 1) / 2) ** 2 / 1e9
        raise ValueError(
            f"The semidefinite program of {N} samples is too large: the cone of {N} x {N} matrices "
            f"alone needs a dense block of {block:.2g} GB. Up to {MAX_SDP_SAMPLES} samples are "
            "possible; solver='auto' reaches the same optimum by cutting planes, for any number of "
            "samples."
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
    # The cone of the classifier.
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
    # The cost of t is one half, so the multiplier of this cone has last column (-alpha, 1) / 2.
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
    """The solution with both bounds, after d, alpha and Z are made exactly feasible."""
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
    """A lower bound over all positive semidefinite combinations, from any alpha and Z.

    For ``Z >= 0`` the dual value is ``1'alpha - l`` if ``s'K_k s / 2 + <Z, K_k> = l`` for all k. Z
    fulfils this only approximately, and is corrected by ``Z^(1/2) S Z^(1/2)`` with S of smallest
    norm. The bound is minus infinity if the correction is too large.
    """
    a = hull.forms(labels.y * alpha)
    values, vectors = np.linalg.eigh(Z)
    R = vectors * np.sqrt(np.maximum(values, 0.0))
    inner = np.einsum("ia,kij,jb->kab", R, cone.whitened, R, optimize=True)
    traces = np.trace(inner, axis1=1, axis2=2)
    p = len(a)
    # <R'K_kR, S> - l = -a_k/2 - traces_k: smallest norm of S, l free.
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
        # The best multiple r alpha, r^2 Z.
        return total**2 / (2.0 * (2.0 * highest + ridge)) if highest > 0 else -np.inf
    return total - highest - 0.5 * ridge


def triangle(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles, column by column; entries off the diagonal are multiplied by sqrt(2)."""
    m = matrices.shape[-1]
    columns, rows = np.tril_indices(m)  # (column, row <= column) of the upper triangle
    factor = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return np.asarray(matrices[..., rows, columns] * factor)


def untriangle(values: np.ndarray, m: int) -> np.ndarray:
    """The symmetric m x m matrix with this triangle; the inverse of `triangle`."""
    columns, rows = np.tril_indices(m)
    out = np.zeros((m, m))
    out[rows, columns] = out[columns, rows] = values / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return out
