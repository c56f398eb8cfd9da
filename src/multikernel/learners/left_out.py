"""What a fitted predictor would say about its own training samples without them.

Nothing is trained again. For a squared loss the leave-one-out values are exact. With

    A = K + diag(1/c),   P = A^-1 - A^-1 1 1'A^-1 / (1'A^-1 1)   (P = A^-1 without an intercept)

the value without sample i is ``f_i + s_i / c_i - s_i / P_ii``, where ``s`` are the coefficients.
For a smooth loss the same formula with ``c`` the curvatures of the loss at the optimum is one
Newton step towards the predictor without the sample.

For a support vector machine it is the span rule (Vapnik & Chapelle 2000): if leaving out sample i
does not change which multipliers are free and which at their bounds,

    f_{-i}(x_i) = f(x_i) - s_i S_i^2

with S_i the distance, in feature space, of sample i from the affine span of the other free support
vectors (the linear span without an intercept). Samples that are no support vectors change nothing.

A sample of weight omega stands for omega copies, one of which is left out. In large samples only a
part of the samples is left out; if linear systems are not solved directly, all of them together,
by training once more (`values_without_all`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram
from ..problem import Target
from .base import Learner

#: Smallest number of samples of each class in a part of the sample, if the class has so many.
MIN_CLASS_SAMPLES = 50
#: Multipliers closer than this to zero or to their bound are there, relative to the largest one and
#: to the bound.
BOUND_TOLERANCE = 1e-8
#: Added to the diagonal of the matrix of free support vectors, relative to its largest entry; the
#: next value is tried if the matrix is not positive definite.
JITTERS = (1e-10, 1e-7, 1e-4)
#: Samples are copies of each other if their squared distance is below this part of the diagonal.
COPY_DISTANCE = 1e-9
#: More free support vectors than this are represented by a part of them.
MAX_FREE_SAMPLES = 4000


def chosen_samples(target: Target, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """At most about ``limit`` samples to leave out, and their weights.

    Every class keeps its total weight, so that a part of the sample stands for the whole.
    """
    omega = np.ones(len(target.Y)) if target.sample_weight is None else target.sample_weight
    n, labels = len(omega), target.labels
    if n <= limit:
        return np.arange(n), omega
    rows, weights = [], []
    random = np.random.default_rng(0)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        size = min(len(members), max(MIN_CLASS_SAMPLES, round(limit * len(members) / n)))
        chosen = np.sort(random.permutation(members)[:size])
        rows.append(chosen)
        weights.append(omega[chosen] * (omega[members].sum() / omega[chosen].sum()))
    order = np.argsort(np.concatenate(rows))
    return np.concatenate(rows)[order], np.concatenate(weights)[order]


def copy_share(target: Target) -> np.ndarray:
    """The part of each sample's cost that one copy has, shape (n,)."""
    if target.sample_weight is None:
        return np.ones(len(target.Y))
    return np.minimum(1.0, 1.0 / target.sample_weight)


def values_without_each(
    gram: CombinedGram,
    values: np.ndarray,
    coef: np.ndarray,
    costs: np.ndarray,
    share: np.ndarray,
    rows: np.ndarray,
    *,
    fit_intercept: bool,
) -> np.ndarray:
    """Leave-one-out values for a quadratic loss with these costs, shape (len(rows), t).

    Parameters
    ----------
    values, coef : arrays of shape (n, t)
        Values of the predictor on the sample, with the intercept, and its coefficients.
    costs, share : arrays of shape (n,)
        c, and the part of it that is left out.
    """
    columns = np.zeros((gram.n, len(rows) + 1))
    columns[rows, np.arange(len(rows))] = 1.0
    columns[:, -1] = 1.0
    with one_blas_thread(gram.n):
        solved = gram.solve(1.0 / costs, columns)
    diagonal = solved[rows, np.arange(len(rows))]
    if fit_intercept:
        ones = solved[:, -1]
        diagonal = diagonal - ones[rows] ** 2 / ones.sum()
    c, rho = costs[rows], share[rows]
    # A diagonal that rounding made negative belongs to a sample that the others do not constrain.
    diagonal = np.maximum(diagonal, np.finfo(np.float64).eps * c)
    left = (1.0 - rho) * c + rho * diagonal
    return np.asarray(values[rows] + coef[rows] * (1.0 / c - 1.0 / left)[:, None])


class PartOfGram(CombinedGram):
    """The operator of a combination on a part of the sample, without a matrix of its own."""

    def __init__(self, gram: CombinedGram, rows: np.ndarray) -> None:
        self.gram, self.rows_of = gram, rows
        self.n, self.kernel_weights = len(rows), gram.kernel_weights
        self.room, self.rounding = 0.0, gram.rounding

    def matvec(self, V: np.ndarray) -> np.ndarray:
        return self.values_everywhere(V)[self.rows_of]

    def values_everywhere(self, V: np.ndarray) -> np.ndarray:
        """The products with V at all samples, those outside the part as well."""
        padded = np.zeros((self.gram.n, *np.shape(V)[1:]))
        padded[self.rows_of] = V
        return self.gram.matvec(padded)

    def diagonal(self) -> np.ndarray:
        return self.gram.diagonal()[self.rows_of]


def values_without_all(
    learner: Learner, gram: CombinedGram, target: Target, rows: np.ndarray
) -> np.ndarray:
    """Values at some samples by a predictor trained without any of them, shape (len(rows), t)."""
    others = np.setdiff1d(np.arange(gram.n), rows)
    part = PartOfGram(gram, others)
    machine = learner.fit(part, target.take(others))
    return np.asarray(part.values_everywhere(machine.coef)[rows] + machine.intercept)


def solves_fast(gram: CombinedGram, rows: np.ndarray) -> bool:
    """Whether a linear system for each of these samples costs less than training again."""
    return "factor" in gram.offers or 2 * len(rows) > gram.n


def span_rule(
    gram: CombinedGram,
    values: np.ndarray,
    alpha: np.ndarray,
    y: np.ndarray,
    costs: np.ndarray,
    omega: np.ndarray,
    rows: np.ndarray,
    group: np.ndarray,
    *,
    fit_intercept: bool,
) -> np.ndarray:
    """Leave-one-out values of one support vector machine, approximately, shape (len(rows),).

    Parameters
    ----------
    values, alpha, y : arrays of shape (n,)
        Values of the predictor on the sample, with the intercept; its multipliers; the labels.
    costs, omega : arrays of shape (n,)
        The bounds of the multipliers, and the sample weights.
    rows : array of int
        The samples to leave out.
    group : array of shape (n,), int
        Copies of one sample with one label have the same number, see `copies_of`.
    """
    n_groups = int(group.max()) + 1
    first = np.zeros(n_groups, dtype=np.intp)
    first[group[::-1]] = np.arange(len(group))[::-1]
    # The copies of a sample share one multiplier. Without one of them its bound is lower.
    alpha = np.bincount(group, alpha, n_groups)
    bound = np.bincount(group, costs, n_groups)
    n_copies = np.bincount(group, omega, n_groups)
    remaining = bound * np.maximum(0.0, 1.0 - 1.0 / n_copies)
    removed = np.maximum(0.0, alpha - remaining)
    # With large kernels all multipliers are far below their bounds.
    zero = BOUND_TOLERANCE * np.minimum(bound, alpha.max())
    free = np.flatnonzero((alpha > zero) & (alpha < bound * (1.0 - BOUND_TOLERANCE)))
    asked = np.zeros(n_groups, dtype=bool)
    asked[group[rows]] = True
    moved = np.flatnonzero(asked & (removed > zero))
    change = np.zeros(n_groups)
    change[moved] = removed[moved] * squared_spans(
        gram, first, free, moved, fit_intercept=fit_intercept
    )
    return np.asarray(values[rows] - y[rows] * change[group[rows]])


def squared_spans(
    gram: CombinedGram,
    first: np.ndarray,
    free: np.ndarray,
    asked: np.ndarray,
    *,
    fit_intercept: bool,
) -> np.ndarray:
    """Squared distances of samples from the span of the free support vectors but themselves.

    Parameters
    ----------
    first : array of shape (n_groups,)
        Position in the sample of each group of copies.
    free, asked : arrays of int
        Groups that span, and groups whose distances are asked for.
    """
    if len(free) > MAX_FREE_SAMPLES:  # a smaller span is farther away: no value is too optimistic
        free = np.sort(np.random.default_rng(0).permutation(free)[:MAX_FREE_SAMPLES])
    diagonal = gram.diagonal()
    own = diagonal[first[asked]]
    if len(free) == 0:
        return np.maximum(own, 0.0)
    is_free = np.isin(asked, free)
    cross = gram.entries(first[free], first[asked[~is_free]])
    places = np.searchsorted(free, asked[is_free])
    units = np.zeros((len(free), len(places)))
    units[places, np.arange(len(places))] = 1.0
    sides = np.column_stack([cross, units, np.ones(len(free))])
    with one_blas_thread(len(free)):
        for jitter in JITTERS:
            ridge = jitter * float(diagonal[first[free]].max())
            try:
                solved = gram.solve_among(first[free], ridge, sides)
                break
            except LinAlgError:
                continue
        else:
            return np.maximum(own, 0.0)
    columns, inverse = (
        solved[:, : cross.shape[1]],
        solved[places, cross.shape[1] + np.arange(len(places))],
    )
    forms = np.einsum("fa,fa->a", cross, columns)
    if fit_intercept:
        ones, total = solved[:, -1], float(solved[:, -1].sum())
        forms -= ((ones @ cross) - 1.0) ** 2 / total
        inverse = inverse - ones[places] ** 2 / total
    squares = own.copy()
    squares[~is_free] -= forms
    # Without the only free support vector there is no span.
    alone = (inverse <= 0) | (fit_intercept and len(free) == 1)
    squares[is_free] = np.where(alone, own[is_free], 1.0 / np.where(alone, 1.0, inverse) - ridge)
    return np.maximum(squares, 0.0)


def copies_of(gram: CombinedGram, labels: np.ndarray) -> np.ndarray:
    """Numbers of groups of samples that are copies of each other and share a label, shape (n,).

    Copies have equal products of their kernel values with a random vector. Without room for the
    kernel matrix every sample is a group of its own.
    """
    n = gram.n
    if "dense" not in gram.offers:
        return np.arange(n)
    probe = np.random.default_rng(0).normal(size=n)
    diagonal = gram.diagonal()
    key = gram.matvec(probe)
    order = np.lexsort((key, labels))
    before, after = order[:-1], order[1:]
    near = np.abs(key[after] - key[before]) <= 1e-9 * max(float(np.abs(key).max()), 1e-300)
    near &= labels[after] == labels[before]
    pairs = np.flatnonzero(near)
    i, j = before[pairs], after[pairs]
    involved, place = np.unique(np.concatenate([i, j]), return_inverse=True)
    among = gram.submatrix(involved)
    distance = diagonal[i] + diagonal[j] - 2.0 * among[place[: len(i)], place[len(i) :]]
    near[pairs] = distance <= COPY_DISTANCE * float(np.abs(diagonal).max())
    group = np.empty(n, dtype=np.intp)
    group[order] = np.concatenate([[0], np.cumsum(~near)])
    return group
