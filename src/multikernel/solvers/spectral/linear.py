"""The largest margin over linear combinations that are positive semidefinite on all points.

Class (2) of Bousquet & Herrmann: ``K = sum_k d_k K_k`` of trace c, d of any sign, K positive
semidefinite on labelled and unlabelled points together. It is a semidefinite program
(:mod:`multikernel.solvers.spectral.sdp`), but one of p variables only, and both parts are given by
planes that can be added when they are needed:

    objective   f(d) >= 1'alpha - 1/2 sum_k d_k s'K_k s    for every feasible alpha
    cone        sum_k d_k v'K_k v >= 0                      for every v

so that a linear program in p + 1 variables bounds the optimum from below. Where its solution
leaves the cone, the machine is trained at the last point inside on the way there from the mean of
the kernels, which bounds it from above. One eigendecomposition and one machine a round; no matrix
of matrices is ever formed, and thousands of points are no obstacle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog

from ..._threads import one_blas_thread
from .problem import (
    KernelMatrices,
    Labels,
    MarginSolution,
    NotSeparableError,
    Report,
    Trained,
    not_separable,
    train,
)

#: Directions in which all kernels together are smaller than this part of their size are dropped.
RANK = 1e-10
#: Eigenvectors that become planes in one round.
VECTORS = 8
#: How far towards the edge of the cone: the machine should not see an eigenvalue below zero.
EDGE = 1.0 - 1e-9


@dataclass(frozen=True)
class Cone:
    """Which combinations are positive semidefinite, in coordinates where their mean is I.

    Attributes
    ----------
    whitened : array of shape (p, r, r)
        ``W'K_k W``, of mean I.
    independent : array of shape (p,)
        False for kernels that are linear combinations of those before them.
    """

    whitened: np.ndarray
    independent: np.ndarray

    @classmethod
    def of(cls, stack: np.ndarray) -> Cone:
        with one_blas_thread(stack.shape[1]):
            values, vectors = eigh(stack.mean(axis=0))
            keep = values > RANK * values[-1]
            W = vectors[:, keep] / np.sqrt(values[keep])
            return cls(W.T @ stack @ W, independent(stack))

    def lowest(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest eigenvalues of a combination, and their vectors."""
        r = self.whitened.shape[1]
        with one_blas_thread(r):
            return eigh(
                np.tensordot(d, self.whitened, axes=1),
                subset_by_index=(0, min(VECTORS, r) - 1),
            )

    def reach(self, direction: np.ndarray) -> float:
        """The largest t for which ``mean + t direction`` is still in the cone."""
        low = float(self.lowest(direction)[0][0])
        return np.inf if low >= 0 else -1.0 / low

    def planes(self, vectors: np.ndarray) -> np.ndarray:
        """``v'K_k v`` for each column v, shape (columns, p)."""
        return np.einsum("ij,kil,lj->jk", vectors, self.whitened, vectors, optimize=True)


def independent(stack: np.ndarray) -> np.ndarray:
    """Which kernels are no linear combination of earlier ones, by Gram-Schmidt."""
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
        Positive semidefinite matrices of equal trace on all points.
    labelled : array of shape (n,)
        Which of the points have a label.
    labels : Labels
    tol : float, default=1e-4
        Relative duality gap to reach; the linear program knows no better than 1e-7.

    Returns
    -------
    MarginSolution
        ``weights`` sum to one and may be negative.

    Examples
    --------
    What two kernels have in common can be taken away: here a direction without labels in it.

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
    # Members of the cone have no larger Frobenius norm than trace c: a box that holds it all.
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
        # An unbounded alpha is scaled to where its plane is highest at d.
        scale = float(alpha.sum()) / form if np.isinf(labels.box) and form > 0 else 1.0
        constant = scale * float(alpha.sum())
        constant -= 0.5 * scale**2 * labels.ridge * float(alpha @ alpha)
        cuts.append(np.append(-0.5 * scale**2 * a[used], -1.0))
        rights.append(-constant)
        low, point = _lowest(cuts, rights, box)
        lower = max(lower, low)
        gap = max(best.primal - lower, 0.0) / max(abs(best.primal), 1e-300)
        entry = {
            "objective": best.primal,
            "gap": gap,
            "active": int(np.count_nonzero(best_d)),
            "support": int(np.count_nonzero(best.s)),
        }
        history.append(entry)
        if report is not None:
            report(entry)
        if gap <= tol:
            break
        if aim is not None and np.array_equal(aim[used], point):
            break  # what is left is below the precision of the linear program
        aim = np.zeros(len(stack))
        aim[used] = point
        values, vectors = cone.lowest(aim)
        outside = values < 0
        rows = cone.planes(vectors[:, outside])[:, used]
        cuts += [np.append(-row, 0.0) for row in rows]
        rights += [0.0] * len(rows)
        inside = min(1.0, EDGE * cone.reach(aim - centre))
        d = centre + inside * (aim - centre)
    assert best is not None
    if not np.isfinite(best.primal):
        raise NotSeparableError(not_separable(len(stack)))
    return MarginSolution(best_d, best, lower, len(history), history)


def _lowest(
    cuts: list[np.ndarray], rights: list[float], box: np.ndarray
) -> tuple[float, np.ndarray]:
    """Minimum of tau over all planes and ``sum d = 1``, and the d where it lies."""
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
        raise RuntimeError(f"The linear program of {len(A)} planes failed: {found.message}")
    return float(found.fun), np.asarray(found.x[:p])
