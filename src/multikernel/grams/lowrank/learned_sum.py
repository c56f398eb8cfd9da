"""Features of one weighted sum of kernels, whose weights are known before features are made.

With ``K = sum_k w_k K_k`` and landmarks L,

    phi(x) = R'K(L, x),   R R' = K(L, L)^+

All features serve the one kernel that the predictor uses, instead of a few for every kernel of the
bank. A predictor ``u'phi(x)`` is ``sum_k w_k K_k(x, L) R u``: an expansion at the landmarks, in
which every kernel has a share.

If kernels are centred, so is K, around the mean of the landmarks in feature space. Centring the
features on all rows then gives the same problem, and a kernel with a large constant part (columns
far from zero, a very wide Gaussian) does not drown the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ...kernels.base import Kernel
from ..engines import assign, build
from ..memory import MemoryBudget
from ..pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from ..planning import DEFAULT_ENGINE, Plan
from ..protocol import Expansion, Grams, Stateful, require_sizes
from .approximations import Nystroem
from .features import MAX_BLOCK, FeatureMap, kernels_for_landmarks
from .parts import inverse_root

#: Default number of landmarks.
DEFAULT_RANK = 2000
#: Maximum number of candidate samples per landmark.
CANDIDATES_PER_LANDMARK = 5
#: Number of rank x rank matrices that a fit is assumed to hold in memory: columns of the candidates
#: and as many others. It limits the default rank.
SQUARE_MATRICES = 2 * CANDIDATES_PER_LANDMARK
#: Number of samples whose mean is the origin, for kernels that are evaluated pair by pair.
ORIGIN_SAMPLES = 300
#: Rounding error allowed in centred diagonal entries, in units of eps times the uncentred entry.
DIAGONAL_ROUNDINGS = 8.0
#: Name of the sum in messages and reports that name kernels.
NAME = "the learned sum of kernels"


def can_be_summed(plan: Plan) -> bool:
    """Whether all kernels can be evaluated at landmarks: no given matrices or single features."""
    return not any(part.kind in ("rank-one", "features", "given") for part in plan.parts)


class LearnedSumPart(Stateful):
    """The features of the sum.

    Parameters
    ----------
    kernels : sequence of the p kernels, in the order of the bank
    weights : array of shape (p,)
        Non-negative weights of the kernels as built, neither centred nor normalised.
    grams : Grams
        The kernels at the landmarks, perhaps centred, not normalised.
    root : array of shape (rank, D)
        R.
    """

    kind = "landmarks of the learned sum"

    def __init__(
        self, kernels: Sequence[Kernel], weights: np.ndarray, grams: Grams, root: np.ndarray
    ) -> None:
        used = np.flatnonzero(weights)
        self.kernels, self.weights = [kernels[k] for k in used.tolist()], weights[used]
        self.expansion = grams.expand(weights, root)
        self.expansion.release()
        self.widths = [root.shape[1]]
        #: mean over the landmarks l of the uncentred K(x, l), and the mean of that over landmarks x
        self.means: Expansion | None = None
        self.mean = 0.0
        if grams.center:
            raw, ones = grams.corrected(False, None), np.full((grams.n, 1), 1.0 / grams.n)
            self.means = raw.expand(weights, ones)
            self.means.release()
            self.mean = float(raw.combine(weights).matvec(ones).mean())

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LearnedSumPart:
        fit = len(state["kernels"]) == len(state["weights"]) and len(state["widths"]) == 1
        require_sizes(fit, "kernels of the learned sum")
        return super().from_state(state)

    def features(self, X: Any) -> np.ndarray:
        return self.expansion.values(self.expansion.encode(X))

    def diagonals(self, X: Any, features: np.ndarray) -> np.ndarray:
        each = [np.asarray(kernel.diag(X), dtype=np.float64) for kernel in self.kernels]
        raw = self.weights @ np.stack(each)
        if self.means is None:
            return np.asarray(raw[None])
        centred = raw - 2.0 * self.means.values(self.means.encode(X))[:, 0] + self.mean
        rounding = DIAGONAL_ROUNDINGS * np.finfo(np.float64).eps * np.abs(raw)
        # At least the diagonal of the approximation: the difference is a proven error, never < 0.
        return np.asarray(np.maximum(centred, np.sum(features**2, axis=1)) + rounding)[None]


@dataclass
class LearnedSum:
    """A sum of kernels with given weights, its features, and the kernels' shares in a predictor.

    Attributes
    ----------
    features : FeatureMap
        Features of one kernel, the sum.
    grams : Grams
        The kernels of the bank at the landmarks, perhaps centred, not normalised.
    weights : array of shape (p,)
        Weights of the kernels as built.
    root : array of shape (rank, D)
        R.
    """

    features: FeatureMap
    grams: Grams
    weights: np.ndarray
    root: np.ndarray

    def expand(self, shift: np.ndarray, slopes: np.ndarray, sample: Any) -> ShiftedExpansion:
        """The function ``(phi(x) - shift)'slopes`` with the shares of all kernels.

        If features are centred, every kernel's share has mean zero over ``sample``, up to a
        constant that is the same for all kernels and makes their sum exact.
        """
        inner = self.grams.expand(self.weights, self.root @ slopes)
        offsets = np.zeros((self.grams.p, slopes.shape[1]))
        used = np.flatnonzero(self.weights)
        total = shift @ slopes
        if np.any(shift):
            offsets[used] = inner.shares(inner.encode(sample)).mean(axis=0)[used]
        offsets[used] += (total - offsets.sum(axis=0)) / max(len(used), 1)
        return ShiftedExpansion(inner, offsets)


class ShiftedExpansion(Expansion):
    """Another expansion minus a constant for every kernel and output."""

    def __init__(self, inner: Expansion, offsets: np.ndarray) -> None:
        self.n_kernels, self.inner, self.offsets = len(offsets), inner, offsets

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ShiftedExpansion:
        p = state["inner"].n_kernels
        require_sizes(p == len(state["offsets"]) == state["n_kernels"], "offsets of the kernels")
        return super().from_state(state)

    @property
    def encoding(self) -> Hashable:
        return self.inner.encoding

    def encode(self, X: Any) -> Any:
        return self.inner.encode(X)

    def values(self, points: Any) -> np.ndarray:
        return self.inner.values(points) - self.offsets.sum(axis=0)

    def shares(self, points: Any) -> np.ndarray:
        return self.inner.shares(points) - self.offsets

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        return self.inner.gradients(X, steps)

    def release(self) -> None:
        self.inner.release()


def make_learned_sum(
    plan: Plan,
    X: Any,
    weights: np.ndarray,
    approximation: Nystroem,
    budget: MemoryBudget,
    *,
    center: bool,
    n_samples: int,
    n_jobs: int = 1,
) -> LearnedSum | None:
    """Landmarks for the sum of the kernels with these weights, and its features.

    None if the sum has the same value for all pairs of candidates, from which nothing can be said
    about other samples.

    Parameters
    ----------
    plan : Plan
        The plan of a bank that is adapted to its sample.
    X : array, sparse matrix or table of shape (m, d)
        Samples among which landmarks are chosen.
    weights : array of shape (p,)
        Weights of the kernels as built, neither centred nor normalised.
    approximation : Nystroem
    center : bool
        Whether kernels are centred, which moves the origin of the features.
    n_samples : int
        The number of training samples, of which X may hold a part.
    """
    approximation.check()
    kernels = [
        kernel for _, kernel in sorted(kernels_for_landmarks(plan), key=lambda pair: pair[0])
    ]
    rank = approximation.find_rank(n_samples, default_rank(budget))
    random = np.random.default_rng([approximation.random_state, 0])
    m, most = X.shape[0], CANDIDATES_PER_LANDMARK * rank
    candidates = np.arange(m)
    if m > most:
        candidates = np.sort(random.choice(m, most, replace=False))
    columns: Callable[[np.ndarray], np.ndarray]
    among = None
    if any(part.kind == "dense" for part in plan.parts):
        some = ColumnsOfSum(kernels, weights, X[candidates], center, random)
        columns, among, diagonal = some.columns, some.among, some.diagonal
    else:
        pool = _grams(plan, X[candidates], budget, n_jobs, center).combine(weights)
        columns, diagonal = lambda index: pool.rows(index).T, pool.diagonal()
    found = pivoted_cholesky(
        columns,
        diagonal,
        min(rank, len(candidates)),
        block=min(MAX_BLOCK, max(rank // 4, 1)),
        seed=random,
        submatrix=among,
    )
    if not found.rank or (found.rank == 1 and np.ptp(columns(found.pivots)) == 0):
        return None
    pivots = with_one_more(found) if center else found.pivots
    rows = X[candidates[pivots]]
    grams = _grams(plan, rows, budget, n_jobs, center)
    root = inverse_root(grams.combine(weights).dense())
    part = LearnedSumPart(kernels, weights, grams, root)
    return LearnedSum(FeatureMap([part], [np.zeros(1, dtype=np.intp)]), grams, weights, root)


def default_rank(budget: MemoryBudget) -> int:
    """The default number of landmarks: fewer where memory is short, but at least ten."""
    room = int(np.sqrt(budget.bytes / (8 * SQUARE_MATRICES)))
    return max(min(DEFAULT_RANK, room), 10)


def with_one_more(found: PivotedCholesky) -> np.ndarray:
    """The pivots, and the sample farthest from the plane through them, if there is another one.

    Landmarks are centred on their own mean, so r of them span only r - 1 dimensions, and a linear
    kernel would lose one of its columns: the direction from the plane to the origin, which is the
    mean of all. On the plane, ``f(x) = k(x)'K^-1 1 = 1``; at the origin f is zero.
    """
    pivots = found.pivots
    if not 0 < len(pivots) < len(found.left):
        return pivots
    slopes = solve_triangular(found.F[pivots], np.ones(len(pivots)), lower=True)
    distances = np.abs(found.F @ slopes - 1.0)
    distances[pivots] = -1.0
    return np.append(pivots, np.argmax(distances))


class ColumnsOfSum:
    """Columns of a weighted sum of kernels that are evaluated pair by pair.

    The choice of landmarks needs few columns, but centring on the mean of all samples would need
    all, so the origin is the mean of a few samples. Any origin gives a positive semidefinite
    matrix.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        weights: np.ndarray,
        X: Any,
        center: bool,
        random: np.random.Generator,
    ) -> None:
        used = np.flatnonzero(weights)
        self.kernels, self.weights, self.X = [kernels[k] for k in used.tolist()], weights[used], X
        self.means: np.ndarray | None = None
        self.mean = 0.0
        self.diagonal = self._sum(kernel.diag(X) for kernel in self.kernels)
        if center:
            n = X.shape[0]
            origin = np.sort(random.choice(n, min(n, ORIGIN_SAMPLES), replace=False))
            self.means = self.columns(origin).mean(axis=1)
            self.mean = float(self.means[origin].mean())
            self.diagonal = np.maximum(self.diagonal - 2.0 * self.means + self.mean, 0.0)

    def columns(self, index: np.ndarray) -> np.ndarray:
        """Columns of the sum, shape (n, len(index))."""
        return self._block(np.arange(self.X.shape[0]), index)

    def among(self, index: np.ndarray) -> np.ndarray:
        """The sum among some samples, shape (len(index), len(index))."""
        return self._block(index, index)

    def _block(self, index: np.ndarray, other: np.ndarray) -> np.ndarray:
        one, two = self.X[index], self.X[other]
        K = self._sum(kernel(one, two) for kernel in self.kernels)
        if self.means is not None:
            K += self.mean - self.means[index, None] - self.means[other]
        return K

    def _sum(self, values: Iterable[Any]) -> np.ndarray:
        total: Any = 0.0
        for weight, value in zip(self.weights, values, strict=True):
            total = total + weight * np.asarray(value, dtype=np.float64)
        return np.asarray(total)


def _grams(plan: Plan, X: Any, budget: MemoryBudget, n_jobs: int, center: bool) -> Grams:
    plan = assign(replace(plan, n_samples=X.shape[0]), DEFAULT_ENGINE)
    grams = build(plan, X, budget=budget, n_jobs=n_jobs)
    # Not `corrected(False, None)`, which drops kernels that are constant on these few samples.
    return grams.corrected(True, None) if center else grams


class SumOfGrams:
    """Products with a weighted sum of kernels, in the form of grams of one kernel."""

    def __init__(self, grams: Grams, weights: np.ndarray) -> None:
        self.gram = grams.combine(weights)

    def matvecs(self, V: np.ndarray) -> np.ndarray:
        """``sum_k w_k K_k V``, shape (1, n, t)."""
        return self.gram.matvec(V)[None]
