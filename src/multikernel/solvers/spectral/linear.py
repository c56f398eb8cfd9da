"""The largest margin over linear combinations that are positive semidefinite on all samples.

Class (2) of Bousquet & Herrmann: ``K = sum_k d_k K_k`` of trace c, with d of any sign, and K
positive semidefinite on labelled and unlabelled samples together. It is a semidefinite program
(:mod:`multikernel.solvers.spectral.sdp`), but with only p variables. Objective and cone are given
by planes that are added when they are needed:

    objective   f(d) >= 1'alpha - 1/2 sum_k d_k s'K_k s    for every feasible alpha
    cone        sum_k d_k v'K_k v >= 0                      for every v

A linear program in p + 1 variables gives a lower bound of the optimum. If its solution is outside
the cone, a classifier is trained at the boundary of the cone, on the segment from the mean of the
kernels to this solution; it gives an upper bound. Each round needs one eigendecomposition and one
training run. Memory grows with N^2, so thousands of samples are possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog

from ..._threads import one_blas_thread
from ..certificate import Report, history_entry, record, relative_to
from .hulls import KernelMatrices
from .problem import (
    Labels,
    MarginSolution,
    NotSeparableError,
    Trained,
    not_separable,
    train,
)

#: Eigenvectors of the mean kernel with eigenvalues below this fraction of the largest are dropped.
MIN_EIGENVALUE_RATIO = 1e-10
#: Largest number of eigenvectors that give planes in one round.
MAX_NEW_PLANES = 8
#: Largest fraction of the distance to the boundary of the cone that a step may cover, so that no
#: eigenvalue of the combination is negative after rounding.
MAX_STEP_TO_BOUNDARY = 1.0 - 1e-9


@dataclass(frozen=True)
class Cone:
    """The cone of positive semidefinite combinations, in coordinates in which their mean is I.

    Attributes
    ----------
    whitened : array of shape (p, r, r)
        ``W'K_k W``, of mean I.
    independent : array of shape (p,)
        False for kernels that are linear combinations of earlier ones.
    """

    whitened: np.ndarray
    independent: np.ndarray

    @classmethod
    def of(cls, stack: np.ndarray) -> Cone:
        """The cone of a stack of kernel matrices, shape (p, N, N)."""
        with one_blas_thread(stack.shape[1]):
            values, vectors = eigh(stack.mean(axis=0))
            keep = values > MIN_EIGENVALUE_RATIO * values[-1]
            W = vectors[:, keep] / np.sqrt(values[keep])
            return cls(W.T @ stack @ W, independent(stack))

    def lowest(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest eigenvalues of a combination, and their eigenvectors."""
        r = self.whitened.shape[1]
        with one_blas_thread(r):
            return eigh(
                np.tensordot(d, self.whitened, axes=1),
                subset_by_index=(0, min(MAX_NEW_PLANES, r) - 1),
            )

    def reach(self, direction: np.ndarray) -> float:
        """The largest t for which ``mean + t direction`` is still in the cone."""
        low = float(self.lowest(direction)[0][0])
        return np.inf if low >= 0 else -1.0 / low

    def planes(self, vectors: np.ndarray) -> np.ndarray:
        """``v'K_k v`` for each column v, shape (columns, p)."""
        return np.einsum("ij,kil,lj->jk", vectors, self.whitened, vectors, optimize=True)


def independent(stack: np.ndarray) -> np.ndarray:
    """True for kernels that are not linear combinations of earlier ones, by Gram-Schmidt."""
    flat = stack.reshape(len(stack), -1)
    basis: list[np.ndarray] = []
    keep = np.zeros(len(stack), dtype=bool)
    for k, K in enumerate(flat):
        rest = K / np.linalg.norm(K)
        for _ in range(2):  # twice is enough (Kahan)
            for b in basis:
                rest = rest - (b @ rest) * b
        size = float(np.linalg.norm(rest))
        if size > 1e-9:
            keep[k] = True
            basis.append(rest / size)
    return keep


def linear_combination(
    stack: np.ndarray,
    labelled: np.ndarray,
    labels: Labels,
    *,
    tol: float = 1e-4,
    max_iter: int = 500,
    report: Report | None = None,
) -> MarginSolution:
    """The positive semidefinite combination of trace c with the largest margin.

    Parameters
    ----------
    stack : array of shape (p, N, N)
        Positive semidefinite matrices of equal trace on all samples.
    labelled : array of shape (n,)
        Indices of the labelled samples.
    labels : Labels
    tol : float, default=1e-4
        Relative duality gap to reach; the precision of the linear program is about 1e-7.

    Returns
    -------
    MarginSolution
        ``weights`` sum to one and may be negative.

    Examples
    --------
    A negative weight removes a part that two kernels share: here a direction without labels.

    >>> import numpy as np
    >>> from multikernel.solvers.spectral.problem import Labels
    >>> from multikernel.solvers.spectral.linear import linear_combination
    >>> noise, signal = np.diag([1.0, 1.0, 0.0, 0.0]), np.diag([0.0, 0.0, 1.0, 1.0])
    >>> stack = np.stack([noise, 0.5 * (noise + signal)])
    >>> y = np.array([1.0, -1.0])
    >>> found = linear_combination(stack, np.array([2, 3]), Labels(y, "hard"))
    >>> print(found.weights.round(4))
    [-1.  2.]
    """
    cone = Cone.of(stack)
    used = np.flatnonzero(cone.independent)
    # The Frobenius norm of a member of the cone is at most its trace c, which bounds the weights.
    flat = stack[used].reshape(len(used), -1)
    c = float(np.trace(stack[0]))
    box = c * np.sqrt(np.maximum(np.diag(np.linalg.pinv(flat @ flat.T, hermitian=True)), 0.0))
    hull = KernelMatrices(np.ascontiguousarray(stack[:, labelled[:, None], labelled]))
    centre = np.full(len(stack), 1.0 / len(stack))
    cuts: list[np.ndarray] = []  # rows (d, tau) of  cut'(d, tau) <= right
    rights: list[float] = []
    best: Trained | None = None
    best_d, d, lower = centre, centre, -np.inf
    aim: np.ndarray | None = None
    history: list[dict[str, Any]] = []
    for _ in range(max_iter):
        machine = train(hull.combine(d), labels, None if best is None else np.abs(best.alpha))
        if best is None or machine.primal < best.primal:
            best, best_d = machine, d
        alpha = machine.alpha
        a = hull.forms(labels.y * alpha)
        form = float(d @ a) + labels.ridge * float(alpha @ alpha)
        # Without an upper bound, alpha is scaled so that its plane is highest at d.
        scale = float(alpha.sum()) / form if np.isinf(labels.box) and form > 0 else 1.0
        constant = scale * float(alpha.sum())
        constant -= 0.5 * scale**2 * labels.ridge * float(alpha @ alpha)
        cuts.append(np.append(-0.5 * scale**2 * a[used], -1.0))
        rights.append(-constant)
        low, point = _lowest(cuts, rights, box)
        lower = max(lower, low)
        gap = relative_to(best.primal, max(best.primal - lower, 0.0))
        record(history, history_entry(best.primal, gap, best_d, best.s), report)
        if gap <= tol:
            break
        if aim is not None and np.array_equal(aim[used], point):
            break  # the precision of the linear program is reached
        aim = np.zeros(len(stack))
        aim[used] = point
        values, vectors = cone.lowest(aim)
        outside = values < 0
        rows = cone.planes(vectors[:, outside])[:, used]
        cuts += [np.append(-row, 0.0) for row in rows]
        rights += [0.0] * len(rows)
        inside = min(1.0, MAX_STEP_TO_BOUNDARY * cone.reach(aim - centre))
        d = centre + inside * (aim - centre)
    assert best is not None
    if not np.isfinite(best.primal):
        raise NotSeparableError(not_separable(len(stack)))
    return MarginSolution(best_d, best, lower, len(history), history)


def _lowest(
    cuts: list[np.ndarray], rights: list[float], box: np.ndarray
) -> tuple[float, np.ndarray]:
    """The minimum of tau over all planes and ``sum d = 1``, and the d that attains it."""
    A, b = np.array(cuts), np.array(rights)
    size = np.abs(A).max(axis=1)
    p = len(box)
    found = linprog(
        np.append(np.zeros(p), 1.0),
        A_ub=A / size[:, None],
        b_ub=b / size,
        A_eq=np.append(np.ones(p), 0.0)[None],
        b_eq=[1.0],
        bounds=[*((-w, w) for w in box), (None, None)],
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(
            f"The linear program of {len(A)} planes failed: {found.message} Use solver='conic', or "
            "raise tol."
        )
    return float(found.fun), np.asarray(found.x[:p])
