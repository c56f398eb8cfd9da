"""Predictions of training samples as if they had been left out, mostly without training again.

For a squared loss these leave-one-out values are exact. With

    A = K + diag(1/c),   P = A^-1 - A^-1 1 1'A^-1 / (1'A^-1 1)   (P = A^-1 without an intercept)

the value without sample i is ``f_i + s_i / c_i - s_i / P_ii``, where ``s`` are the coefficients.
For a smooth loss, the same formula with the curvatures of the loss at the optimum as ``c`` is one
Newton step towards the predictor without the sample.

For a support vector machine, the span rule (Vapnik & Chapelle 2000) is used: if leaving out sample
i does not change which multipliers are free and which are at their bounds,

    f_{-i}(x_i) = f(x_i) - s_i S_i^2

with S_i the distance, in feature space, of sample i from the affine span of the other free support
vectors (the linear span without an intercept). Samples that are not support vectors change nothing.

If the kernel is centred and there is no intercept, centring has to be repeated without the sample:
the mean of the others lies opposite to the sample and would reveal its label. With ``z_i`` the
features of sample i, centred with it, and ``eps_i`` its weight over that of the others, the others
have features ``z_j + eps_i z_i`` and sample i has ``(1 + eps_i) z_i``. Both rules then apply to
these features (`newton_without`, `span_rule`); for a squared loss this is exact.

A sample of weight omega represents omega copies, one of which is left out. Of a large sample only a
part is left out. If linear systems are not solved directly, all samples of this part are left out
together, by training once more (`values_without_all`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from .._threads import one_blas_thread
from ..grams.protocol import CombinedGram
from ..problem import Target
from .base import Learner
from .leave_one_out import mean_of_others

#: Smallest number of samples of each class to leave out (or all, if the class has fewer).
MIN_CLASS_SAMPLES = 50
#: Multipliers closer than this to zero (relative to the largest one) or to their bound (relative to
#: the bound) count as zero or at the bound.
BOUND_TOLERANCE = 1e-8
#: Added to the diagonal of the matrix of free support vectors, relative to its largest entry; the
#: next value is tried if the matrix is not positive definite.
JITTERS = (1e-10, 1e-7, 1e-4)
#: Samples are copies if their squared distance is below this fraction of the largest K(x, x).
COPY_DISTANCE = 1e-9
#: Columns of the kernel matrix in which copies are looked for first, and the largest number of
#: samples that are alike in these columns and compared with each other.
PROBED_COLUMNS, MAX_ALIKE = 64, 500
#: What is left of the curvature without a sample, at least: closer to zero, rounding would decide.
MIN_REST = 1e-10
#: Smaller parts of a squared distance from a span than this are rounding errors.
RELATIVE_DISTANCE = 1e-6
#: If there are more free support vectors than this, a random subset of this size is used.
MAX_FREE_SAMPLES = 4000


def chosen_samples(target: Target, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """At most about ``limit`` samples to leave out, and their weights.

    Every class keeps its total weight, so that the chosen samples represent the whole sample.
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
    """The share of each sample's cost that belongs to one copy, shape (n,)."""
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
    centred: bool = False,
) -> np.ndarray:
    """Leave-one-out values for a quadratic loss with these costs, shape (len(rows), t).

    Parameters
    ----------
    values, coef : arrays of shape (n, t)
        Values of the predictor on the sample, with the intercept, and its coefficients.
    costs, share : arrays of shape (n,)
        c, and the part of it that is left out.
    centred : bool
        Whether the kernel is centred, see `leave_one_out.is_centred`. Without an intercept, values
        are then those of a kernel that is centred without the sample.
    """
    centred = centred and not fit_intercept
    columns = np.zeros((gram.n, len(rows) + 1))
    columns[rows, np.arange(len(rows))] = 1.0
    columns[:, -1] = 1.0
    with one_blas_thread(gram.n):
        solved = gram.solve(1.0 / costs, columns)
    diagonal, ones = solved[rows, np.arange(len(rows))], solved[:, -1]
    if fit_intercept or centred:
        diagonal = diagonal - ones[rows] ** 2 / ones.sum()
    c, rho = costs[rows], share[rows]
    # A diagonal that rounding made negative belongs to a sample that the others do not constrain.
    diagonal = np.maximum(diagonal, np.finfo(np.float64).eps * c)
    left = (1.0 - rho) * c + rho * diagonal
    if centred:
        # As with a free intercept, less the intercept: see `LeaveOneOutFit.predictions_of`.
        Y = values + coef / costs[:, None]
        free = coef[rows] - np.outer(ones[rows], coef.sum(axis=0) / ones.sum())
        return np.asarray((Y - mean_of_others(Y, costs, share))[rows] - free / left[:, None])
    return np.asarray(values[rows] + coef[rows] * (1.0 / c - 1.0 / left)[:, None])


def values_of_centred(
    gram: CombinedGram,
    values: np.ndarray,
    coef: np.ndarray,
    costs: np.ndarray,
    share: np.ndarray,
    omega: np.ndarray,
    rows: np.ndarray,
) -> np.ndarray:
    """Leave-one-out values without an intercept for a centred kernel, by one Newton step.

    Parameters
    ----------
    values, coef, costs : arrays of shape (n,)
        Values of the predictor on the sample, its coefficients, and curvatures of the loss.
    share, omega : arrays of shape (n,)
        The parts of the sample weights that are left out, and the sample weights.
    """
    columns = np.zeros((gram.n, len(rows) + 1))
    columns[rows, np.arange(len(rows))] = 1.0
    columns[:, -1] = 1.0
    with one_blas_thread(gram.n):
        solved = gram.solve(1.0 / costs, columns)
    own, ones, part, c = solved[rows, np.arange(len(rows))], solved[:, -1], share[rows], costs[rows]
    # With features Z and A = K + diag(1/c): Z B^-1 Z' = diag(1/c) - diag(1/c) A^-1 diag(1/c).
    return newton_without(
        values[rows],
        part * coef[rows],
        part * c,
        part * omega[rows],
        np.maximum(1.0 - own / c, 0.0) / c,
        1.0 - ones[rows] / c,
        float(costs.sum() - ones.sum()),
        (float(coef.sum()), float(costs.sum()), float(omega.sum())),
    )


def newton_without(
    values: np.ndarray,
    coef: np.ndarray,
    bends: np.ndarray,
    weights: np.ndarray,
    q: np.ndarray,
    r: np.ndarray,
    t: float,
    totals: tuple[float, float, float],
    rest: tuple[np.ndarray | float, float] = (0.0, 0.0),
) -> np.ndarray:
    """Values without each sample, centred without it, by one Newton step, shape (m,).

    With ``B = I + sum_j d_j z_j z_j'`` and ``P = sum_j d_j z_j`` over all samples, the step solves
    a system with B and corrections of rank two, since the features of all others move.

    Parameters
    ----------
    values, coef, bends, weights : arrays of shape (m,)
        Decision values (there is no intercept), and of the parts that are left out: coefficients
        ``s = -c l'``, curvatures d and sample weights.
    q, r : arrays of shape (m,)
        ``z_i'B^-1 z_i`` and ``z_i'B^-1 P``.
    t : float
        ``P'B^-1 P``.
    totals : tuple
        Sums of the coefficients, curvatures and sample weights of all samples.
    rest : tuple
        ``z_i'B^-1 g`` of shape (m,) and ``P'B^-1 g`` for the gradient g of the whole objective,
        which is not zero if training ended early.
    """
    S, D, W = totals
    eps = weights / np.maximum(W - weights, np.finfo(np.float64).tiny)
    own = bends * (1.0 + eps)
    # The gradient at the old slopes is a z + b P; the curvature is B + m z z' + eps (z P' + P z').
    a = coef * (1.0 + eps) - eps * S + eps * values * (eps * D - own)
    b = eps * values
    m = eps**2 * D - own * (1.0 + eps)
    # The inverse of I + G M, times the forms G of the gradient.
    e11, e12 = 1.0 + m * q + eps * r, eps * q
    e21, e22 = m * r + eps * t, 1.0 + eps * r
    left = q * a + r * b + rest[0]
    right = r * a + t * b + rest[1]
    determinant = np.maximum(e11 * e22 - e12 * e21, MIN_REST)
    return np.asarray((1.0 + eps) * (values - (e22 * left - e12 * right) / determinant))


class PartOfGram(CombinedGram):
    """The combined kernel on a part of the sample, as an operator without its own matrix."""

    def __init__(self, gram: CombinedGram, rows: np.ndarray) -> None:
        self.gram, self.rows_of = gram, rows
        self.n, self.kernel_weights = len(rows), gram.kernel_weights
        self.room, self.rounding = 0.0, gram.rounding

    def matvec(self, V: np.ndarray) -> np.ndarray:
        return self.values_everywhere(V)[self.rows_of]

    def values_everywhere(self, V: np.ndarray) -> np.ndarray:
        """The products with V at all samples, including those outside the part."""
        padded = np.zeros((self.gram.n, *np.shape(V)[1:]))
        padded[self.rows_of] = V
        return self.gram.matvec(padded)

    def diagonal(self) -> np.ndarray:
        return self.gram.diagonal()[self.rows_of]


def values_without_all(
    learner: Learner, gram: CombinedGram, target: Target, rows: np.ndarray
) -> np.ndarray:
    """Values at some samples of a predictor trained without any of them, shape (len(rows), t)."""
    others = np.setdiff1d(np.arange(gram.n), rows)
    part = PartOfGram(gram, others)
    machine = learner.fit(part, target.take(others))
    return np.asarray(part.values_everywhere(machine.coef)[rows] + machine.intercept)


def solves_fast(gram: CombinedGram, rows: np.ndarray) -> bool:
    """Whether to solve a linear system for each of these samples rather than train without them.

    True if systems are solved with a factor, or if too few other samples are left to train on.
    """
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
    centred: bool = False,
    intercept: float = 0.0,
) -> np.ndarray:
    """Approximate leave-one-out values of one support vector machine, shape (len(rows),).

    Parameters
    ----------
    values, alpha, y : arrays of shape (n,)
        Values of the predictor on the sample, with the intercept; its multipliers; the labels.
    costs, omega : arrays of shape (n,)
        The bounds of the multipliers, and the sample weights.
    rows : array of int
        The samples to leave out.
    group : array of shape (n,), int
        Copies of a sample with the same label share a number, see `copies_of`.
    centred : bool
        Whether the kernel is centred, see `leave_one_out.is_centred`. Without an intercept, or
        without free support vectors that determine it, values are then those of a kernel that is
        centred without the sample.
    intercept : float
        The part of the values that is the intercept.
    """
    n_groups = int(group.max()) + 1
    first = np.zeros(n_groups, dtype=np.intp)
    first[group[::-1]] = np.arange(len(group))[::-1]
    # The copies of a sample share one multiplier; leaving one out lowers its bound.
    alpha = np.bincount(group, alpha, n_groups)
    bound = np.bincount(group, costs, n_groups)
    n_copies = np.bincount(group, omega, n_groups)
    remaining = bound * np.maximum(0.0, 1.0 - 1.0 / n_copies)
    removed = np.maximum(0.0, alpha - remaining)
    # With large kernel values all multipliers are far below their bounds.
    zero = BOUND_TOLERANCE * np.minimum(bound, alpha.max())
    free = np.flatnonzero((alpha > zero) & (alpha < bound * (1.0 - BOUND_TOLERANCE)))
    asked = np.zeros(n_groups, dtype=bool)
    asked[group[rows]] = True
    moved = np.flatnonzero(asked & (removed > zero))
    change = np.zeros(n_groups)
    if centred and not (fit_intercept and len(free)):
        # The mean moves without samples that are no support vectors, too; those that stay free keep
        # their values.
        asked[free] &= removed[free] > zero[free]
        moved = np.flatnonzero(asked)
        weight = np.minimum(n_copies[moved], 1.0)
        sign = y[first]
        change[moved] = sign[moved] * changes_of_centred(
            gram,
            first,
            free,
            moved,
            values[first[moved]] - intercept,
            (sign * removed)[moved],
            float(sign @ alpha),
            weight / np.maximum(n_copies.sum() - weight, np.finfo(np.float64).tiny),
        )
    else:
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
    """Squared distances of samples from the span of the other free support vectors.

    Parameters
    ----------
    first : array of shape (n_groups,)
        Index of the first sample of each group of copies.
    free, asked : arrays of int
        Groups of the free support vectors, and groups whose distances are returned.
    """
    own = gram.diagonal()[first[asked]]
    system = _FreeSystem.of(gram, first, free, asked)
    if system is None:
        return np.maximum(own, 0.0)
    is_free, inverse, ones = system.is_free, system.inverse, system.ones
    forms = np.einsum("fa,fa->a", system.cross, system.columns)
    if fit_intercept:
        total = float(ones.sum())
        forms -= ((ones @ system.cross) - 1.0) ** 2 / total
        inverse = inverse - ones[system.places] ** 2 / total
    squares = own.copy()
    squares[~is_free] -= forms
    # A sample that is the only free support vector has no span to be distant from.
    alone = (inverse <= 0) | (fit_intercept and len(ones) == 1)
    rest = 1.0 / np.where(alone, 1.0, inverse) - system.ridge
    squares[is_free] = np.where(alone, own[is_free], rest)
    return np.maximum(squares, 0.0)


def changes_of_centred(
    gram: CombinedGram,
    first: np.ndarray,
    free: np.ndarray,
    asked: np.ndarray,
    values: np.ndarray,
    removed: np.ndarray,
    total: float,
    eps: np.ndarray,
) -> np.ndarray:
    """By how much values without an intercept fall if samples are left out of the centring too.

    The free multipliers change so that the values of the other free support vectors stay, with the
    features ``z_j + eps z_i`` of a kernel that is centred without sample i.

    Parameters
    ----------
    first, free, asked
        As in `squared_spans`.
    values, removed, eps : arrays of shape (len(asked),)
        Values of the predictor; the signed multipliers that are left out; the weight that is left
        out over that of the rest.
    total : float
        Sum of the signed multipliers of all samples.

    Returns
    -------
    array of shape (len(asked),)
    """
    size = gram.diagonal()[first[asked]]
    # Combinations of free support vectors whose coefficients sum to tau have the squared distance
    # square - 2 tau slope + tau^2 level from z_i.
    square, slope, level = size.copy(), np.zeros(len(asked)), np.zeros(len(asked))
    system = _FreeSystem.of(gram, first, free, asked)
    if system is not None:
        is_free, ones = system.is_free, system.ones
        sum_of_ones = float(ones.sum())
        cross = ones @ system.cross
        forms = np.einsum("fa,fa->a", system.cross, system.columns)
        square[~is_free] -= forms - cross**2 / sum_of_ones
        slope[~is_free], level[~is_free] = cross / sum_of_ones, 1.0 / sum_of_ones
        # Of the other free support vectors, from the inverse for all of them.
        at, inverse = ones[system.places], system.inverse
        rest = inverse - at**2 / sum_of_ones
        alone = (rest <= 0) | (len(ones) == 1)
        scale = sum_of_ones * np.where(alone, 1.0, rest)
        own = 1.0 / inverse - system.ridge + (inverse - at) ** 2 / (inverse * scale)
        square[is_free] = np.where(alone, size[is_free], own)
        slope[is_free] = np.where(alone, 0.0, (inverse - at) / scale)
        level[is_free] = np.where(alone, 0.0, inverse / scale)
    square = np.maximum(square, 0.0)
    gamma = removed * (1.0 + eps) - eps * total
    along = slope + eps * square
    across = level + 2.0 * eps * slope + eps**2 * square
    # Without other free support vectors, multipliers stay. If their features sum to zero, they have
    # to leave their margins; then, too, nothing changes along the sum.
    fixed = (level <= 0.0) | (across <= RELATIVE_DISTANCE * (level + eps**2 * square))
    tau = np.where(fixed, 0.0, gamma * along - eps * values) / np.where(fixed, 1.0, across)
    return np.asarray(values - (1.0 + eps) * (values - gamma * square + tau * along))


@dataclass(frozen=True)
class _FreeSystem:
    """Solutions with the kernel matrix of the free support vectors.

    Attributes
    ----------
    is_free : array of shape (len(asked),), bool
        Which of the samples are free.
    places : array of int
        Their places among the free ones.
    cross, columns : arrays of shape (f, number of other samples)
        Kernel values between the free and the other samples, and the solutions for them.
    inverse : array of shape (len(places),)
        The diagonal of the inverse.
    ones : array of shape (f,)
        The solution for ones.
    ridge : float
        What was added to the diagonal.
    """

    is_free: np.ndarray
    places: np.ndarray
    cross: np.ndarray
    columns: np.ndarray
    inverse: np.ndarray
    ones: np.ndarray
    ridge: float

    @classmethod
    def of(
        cls, gram: CombinedGram, first: np.ndarray, free: np.ndarray, asked: np.ndarray
    ) -> _FreeSystem | None:
        """None if no sample is free, or if the matrix is singular."""
        if len(free) > MAX_FREE_SAMPLES:  # a smaller span is farther away: pessimistic values
            free = np.sort(np.random.default_rng(0).permutation(free)[:MAX_FREE_SAMPLES])
        if len(free) == 0:
            return None
        diagonal = gram.diagonal()
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
                except LinAlgError:
                    continue
                columns, rest = solved[:, : cross.shape[1]], solved[:, cross.shape[1] :]
                inverse = rest[places, np.arange(len(places))]
                return cls(is_free, places, cross, columns, inverse, rest[:, -1], ridge)
        return None


def copies_of(gram: CombinedGram, labels: np.ndarray) -> np.ndarray:
    """Group number of each sample, shape (n,): copies with the same label share a group.

    Rows of the kernel matrix of copies have equal products with a random vector. If the matrix does
    not fit in memory, every sample is a group of its own.
    """
    n = gram.n
    if "dense" not in gram.offers:
        return np.arange(n)
    rng = np.random.default_rng(0)
    probe = rng.normal(size=n)
    limit = COPY_DISTANCE * float(np.abs(gram.diagonal()).max())
    # Most samples have no copies at all, and products with a few columns show it.
    few = np.sort(rng.permutation(n)[:PROBED_COLUMNS])
    order, near = _neighbours(gram, gram.partial_matvec(few, probe[few]), labels)
    alike = np.unique([order[:-1][near], order[1:][near]])
    if len(alike) <= MAX_ALIKE:
        copies = _squared_distances(gram.submatrix(alike)) <= limit
        copies &= labels[alike][:, None] == labels[alike]
        np.fill_diagonal(copies, False)
        if not copies.any():
            return np.arange(n)
    order, near = _neighbours(gram, gram.matvec(probe), labels)
    pairs = np.flatnonzero(near)
    for start in range(0, len(pairs), MAX_ALIKE):
        some = pairs[start : start + MAX_ALIKE]
        both = np.concatenate([order[:-1][some], order[1:][some]])
        involved, place = np.unique(both, return_inverse=True)
        distances = _squared_distances(gram.submatrix(involved))
        near[some] = distances[place[: len(some)], place[len(some) :]] <= limit
    group = np.empty(n, dtype=np.intp)
    group[order] = np.concatenate([[0], np.cumsum(~near)])
    return group


def _squared_distances(K: np.ndarray) -> np.ndarray:
    """Squared distances in feature space; the diagonal must be rounded as the other entries are."""
    own = np.diagonal(K)
    return np.asarray(own[:, None] + own - 2.0 * K)


def _neighbours(
    gram: CombinedGram, key: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The order of samples by label and key, and which ones have nearly the key of the next one."""
    order = np.lexsort((key, labels))
    before, after = order[:-1], order[1:]
    tolerance = max(1e-9, 8.0 * gram.precision) * max(float(np.abs(key).max()), 1e-300)
    near = np.abs(key[after] - key[before]) <= tolerance
    return order, near & (labels[after] == labels[before])
