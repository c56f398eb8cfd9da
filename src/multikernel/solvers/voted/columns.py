"""The functions a vote is made of: one column ``x -> K_k(x, x_j)`` for each kernel and point.

Voted kernels need three things of a bank on a sample: the products of *all* columns with a vector
(pricing), a few chosen columns, and the function that a few chosen columns make. Nothing here
assumes that a kernel is symmetric unless it is by construction (functions of a distance or of a
dot product): the product of column (k, j) with v is ``sum_i v_i K_k(x_i, x_j)``, that is
``K_k' v``. Kernels are taken as they are, neither centred nor normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...grams.blocks import RawCross
from ...grams.dense import DenseGrams
from ...grams.memory import MemoryBudget
from ...grams.ngrams import NgramGrams
from ...grams.planning import Part, Plan
from ...grams.protocol import Expansion, run_in_order
from ...grams.rankone import RankOneGrams, take_feature_columns
from ...grams.shared import SharedGrams
from ...kernels.base import Kernel
from ...kernels.precomputed import Precomputed
from ...kernels.vectors import Linear

#: Entries of kernel values that a prediction holds at once.
CHUNK = 2**22


class PartColumns(Protocol):
    """The columns of the kernels that one implementation of the waist serves."""

    n: int

    def price(self, V: np.ndarray) -> np.ndarray:
        """``K_k' V`` for every kernel, shape (p, n, t) for V of shape (n, t)."""

    def cross(self, k: int, points: np.ndarray) -> RawCross:
        """One kernel between any points and some training points."""

    def diagonals(self) -> np.ndarray:
        """``K_k(x_i, x_i)``, shape (p, n)."""

    def subset(self, rows: np.ndarray) -> PartColumns:
        """The same kernels on some of the points."""

    def points(self, rows: np.ndarray) -> Any:
        """Training points in the form that :meth:`cross` reads."""


class SharedColumns:
    """Functions of a distance or a dot product: symmetric, so ``K' V`` is ``K V``."""

    def __init__(self, grams: SharedGrams) -> None:
        self.grams, self.n = grams, grams.n

    def price(self, V: np.ndarray) -> np.ndarray:
        return self.grams.raw_matvecs(V)

    def cross(self, k: int, points: np.ndarray) -> RawCross:
        return self.grams.raw_cross(points, np.array([k]))

    def diagonals(self) -> np.ndarray:
        return self.grams.raw_diagonals()

    def subset(self, rows: np.ndarray) -> SharedColumns:
        return SharedColumns(self.grams.take(rows))

    def points(self, rows: np.ndarray) -> Any:
        return self.grams.points(rows)


class DenseColumns:
    """Matrices, given or evaluated, of any kind: always the transposed product."""

    def __init__(self, grams: DenseGrams) -> None:
        self.grams, self.n = grams, grams.n
        self._own: list[np.ndarray] | None = None

    def _matrices(self) -> list[np.ndarray] | None:
        """The matrices of this very sample, copied once where it is a part of the pool."""
        grams = self.grams
        if grams.matrices is None:
            return None
        if self._own is None:
            N = len(grams.matrices[0])
            if np.array_equal(grams.sample, np.arange(N)):
                self._own = list(grams.matrices)
            elif grams.budget.allows(2.0 * grams.p * self.n**2 * 8):
                where = np.ix_(grams.sample, grams.sample)
                self._own = [np.ascontiguousarray(K[where]) for K in grams.matrices]
        return self._own

    def price(self, V: np.ndarray) -> np.ndarray:
        V = np.asarray(V, dtype=np.float64)
        matrices = self._matrices()
        if matrices is not None:
            one = run_in_order(lambda K: np.asarray(K.T @ V), matrices, self.grams.n_jobs)
            return np.stack(one).astype(np.float64, copy=False)
        out = np.zeros((self.grams.p, self.n, V.shape[1]))
        for rows in self.grams.panels():
            K = np.asarray(self.grams.raw_block(rows), dtype=np.float64)
            out += K.transpose(0, 2, 1) @ V[rows]
        return out

    def cross(self, k: int, points: np.ndarray) -> RawCross:
        return self.grams.raw_cross(points, np.array([k]))

    def diagonals(self) -> np.ndarray:
        return self.grams.raw_diagonals()

    def subset(self, rows: np.ndarray) -> DenseColumns:
        return DenseColumns(self.grams.take(rows))

    def points(self, rows: np.ndarray) -> Any:
        return self.grams.points(rows)


class RankOneColumns:
    """``K_k(x, z) = x_k z_k``: products through the feature columns."""

    def __init__(self, grams: RankOneGrams) -> None:
        self.grams, self.n = grams, grams.n

    def price(self, V: np.ndarray) -> np.ndarray:
        inner = np.asarray(self.grams.data.T @ V)
        return np.asarray(self.grams.dense_features().T[:, :, None] * inner[:, None, :])

    def cross(self, k: int, points: np.ndarray) -> RawCross:
        return FeatureCross(self.grams, k, points)

    def diagonals(self) -> np.ndarray:
        return np.asarray(self.grams.dense_features().T ** 2)

    def subset(self, rows: np.ndarray) -> RankOneColumns:
        return RankOneColumns(self.grams.take(rows))

    def points(self, rows: np.ndarray) -> Any:
        return self.grams.points(rows)


class FeatureCross(RawCross):
    """New values of one feature times its values at the anchors."""

    p = 1

    def __init__(self, grams: RankOneGrams, k: int, points: np.ndarray) -> None:
        self.columns, self.k = grams.columns, k
        self.anchors = grams.dense_features(points)[:, k]
        self.n_anchors = len(self.anchors)

    def encode(self, X: Any) -> Any:
        if callable(self.columns):  # features that are made from X, such as counts of n-grams
            return self.columns(X)
        return take_feature_columns(X, self.columns)

    def _values(self, points: Any) -> np.ndarray:
        column = points[:, [self.k]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column)

    def block(self, points: Any) -> np.ndarray:
        return (self._values(points) * self.anchors)[None]

    def apply(self, points: Any, V: np.ndarray) -> np.ndarray:
        return (self._values(points) * (self.anchors @ V))[None]


class KernelColumns:
    """All columns of a bank on a sample, in parts that different implementations serve.

    Parameters
    ----------
    parts : sequence of (positions, PartColumns)
        Where a part's kernels stand in the bank, and the part.
    names : sequence of str
    kernels : sequence of Kernel or None
        The kernels as values, where there are any; ``None`` for given matrices and n-grams.
    """

    def __init__(
        self,
        parts: Sequence[tuple[np.ndarray, PartColumns]],
        names: Sequence[str],
        kernels: Sequence[Kernel | None],
        budget: MemoryBudget,
    ) -> None:
        self.parts = list(parts)
        self.names, self.kernels, self.budget = list(names), list(kernels), budget
        self.n, self.p = self.parts[0][1].n, len(self.names)
        self._home: dict[int, tuple[int, int]] = {}
        for at, (where, _) in enumerate(self.parts):
            self._home |= {int(k): (at, i) for i, k in enumerate(where)}

    @classmethod
    def evaluate(cls, plan: Plan, X: Any, budget: MemoryBudget, n_jobs: int = 1) -> KernelColumns:
        """The columns of a planned bank on X; matrices need not be symmetric."""
        kernels: list[Kernel | None] = [None] * plan.n_kernels
        parts: list[tuple[np.ndarray, PartColumns]] = []
        for part in plan.parts:
            names = [plan.names[k] for k in part.positions]
            parts.append((part.positions, _evaluate_part(part, X, names, budget, n_jobs)))
            if part.features is not None:
                continue
            own = part.kernels or [Linear(columns=(int(c),)) for c in part.columns]
            for k, kernel in zip(part.positions, own, strict=True):
                kernels[k] = kernel
        return cls(parts, plan.names, kernels, budget)

    @classmethod
    def given(
        cls,
        X: np.ndarray,
        rows: np.ndarray,
        names: Sequence[str],
        budget: MemoryBudget,
        n_jobs: int = 1,
    ) -> KernelColumns:
        """Kernel values ``X[i, j, k] = K_k(x_i, x_j)``, symmetric or not."""
        matrices = [X[:, :, k] for k in range(X.shape[2])]
        grams = DenseGrams(matrices, rows, None, None, names, budget, n_jobs=n_jobs)
        positions = np.arange(len(matrices))
        return cls([(positions, DenseColumns(grams))], names, [None] * len(matrices), budget)

    def price(self, V: np.ndarray) -> np.ndarray:
        """``K_k' V`` for every kernel: (p, n) for V of shape (n,), (p, n, t) for (n, t)."""
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        out = np.empty((self.p, self.n, V2.shape[1]))
        # An overflow is found just below, and said in words.
        with np.errstate(over="ignore", invalid="ignore"):
            for where, part in self.parts:
                out[where] = part.price(V2)
        good = np.isfinite(out).all(axis=(1, 2))
        if not good.all():
            self._refuse_overflow(int(np.argmin(good)))
        return out[:, :, 0] if np.ndim(V) == 1 else out

    def take(self, k: int, points: np.ndarray) -> np.ndarray:
        """Columns of kernel k at some points, ``K_k(x_i, x_j)`` of shape (n, len(points))."""
        at, i = self._home[k]
        part = self.parts[at][1]
        with np.errstate(over="ignore", invalid="ignore"):
            block = part.cross(i, points).block(part.points(np.arange(self.n)))[0]
        if not np.isfinite(block).all():
            self._refuse_overflow(k)
        return np.asarray(block, dtype=np.float64)

    def _refuse_overflow(self, k: int) -> None:
        raise ValueError(
            f"Kernel {self.names[k]!r} overflows on the training data. Standardise the columns of "
            "X, or use a smaller gamma or degree."
        )

    def diagonals(self) -> np.ndarray:
        """``K_k(x_i, x_i)``, shape (p, n)."""
        out = np.empty((self.p, self.n))
        for where, part in self.parts:
            out[where] = part.diagonals()
        return out

    def subset(self, rows: np.ndarray) -> KernelColumns:
        """The bank on some of the points; what is evaluated already is used again."""
        parts = [(where, part.subset(rows)) for where, part in self.parts]
        return KernelColumns(parts, self.names, self.kernels, self.budget)

    def points(self, rows: np.ndarray) -> Points:
        """Training points as a :class:`VotedExpansion` reads them."""
        return Points(len(rows), [part.points(rows) for _, part in self.parts])

    def expand(self, terms: Sequence[Terms]) -> VotedExpansion:
        """The functions with these terms, one for each element of the list."""
        return VotedExpansion(self, terms)


def _evaluate_part(
    part: Part, X: Any, names: Sequence[str], budget: MemoryBudget, n_jobs: int
) -> PartColumns:
    if part.features is not None:
        made = part.features(X)
        return RankOneColumns(NgramGrams(made, part.features, names, budget, n_jobs=n_jobs))
    if part.kind == "rank-one":
        features = take_feature_columns(X, part.columns)
        return RankOneColumns(
            RankOneGrams(features, part.columns, names, budget, n_jobs=n_jobs),
        )
    kernels: Any = part.kernels
    if part.kind == "shared":
        return SharedColumns(
            SharedGrams.evaluate(kernels, X, names, budget, dtype=np.float64, n_jobs=n_jobs)
        )
    rows = np.arange(X.shape[0])
    if all(isinstance(kernel, Precomputed) for kernel in kernels):
        ids = [kernel.ids(X) for kernel in kernels]
        matrices = [kernel.matrix for kernel in kernels]
        return DenseColumns(DenseGrams(matrices, ids[0], kernels, None, names, budget))
    evaluated = None
    if budget.allows(2.0 * len(kernels) * X.shape[0] ** 2 * 8):
        evaluated = [kernel(X, X) for kernel in kernels]
    return DenseColumns(
        DenseGrams(evaluated, rows, kernels, X, names, budget, n_jobs=n_jobs),
    )


@dataclass(frozen=True)
class Terms:
    """The non-zero coefficients of one function ``f(x) = sum_t coef_t K_kernel_t(x, x_point_t)``.

    Attributes
    ----------
    kernels, points : int arrays of shape (n_terms,)
        Ordered by kernel, then by point.
    coef : array of shape (n_terms,)
        Signed: ``alpha_kj y_j``.
    """

    kernels: np.ndarray
    points: np.ndarray
    coef: np.ndarray

    @classmethod
    def sorted(cls, kernels: np.ndarray, points: np.ndarray, coef: np.ndarray) -> Terms:
        order = np.lexsort((points, kernels))
        return cls(kernels[order], points[order], coef[order])

    def __len__(self) -> int:
        return len(self.coef)


@dataclass(frozen=True)
class Points:
    """New points in the form that each part of a bank reads."""

    n: int
    parts: list[Any]


class VotedExpansion(Expansion):
    """Functions made of few columns; only their (kernel, point) pairs are ever evaluated."""

    def __init__(self, columns: KernelColumns, terms: Sequence[Terms]) -> None:
        self.n_kernels, self.n_outputs = columns.p, len(terms)
        self.n_parts = len(columns.parts)
        #: kernel, part it belongs to, its values at its own anchors, coefficients (anchors, t)
        self.votes: list[tuple[int, int, RawCross, np.ndarray]] = []
        used = np.unique(np.concatenate([one.kernels for one in terms]))
        for k in used.tolist():
            chosen = [one.kernels == k for one in terms]
            each = [one.points[rows] for one, rows in zip(terms, chosen, strict=True)]
            anchors = np.unique(np.concatenate(each))
            coef = np.zeros((len(anchors), len(terms)))
            for t, (one, rows) in enumerate(zip(terms, chosen, strict=True)):
                coef[np.searchsorted(anchors, one.points[rows]), t] = one.coef[rows]
            at, i = columns._home[k]
            self.votes.append((k, at, columns.parts[at][1].cross(i, anchors), coef))

    def encode(self, X: Any) -> Points:
        parts: list[Any] = [None] * self.n_parts
        for _, at, cross, _ in self.votes:
            if parts[at] is None:
                parts[at] = cross.encode(X)
        return Points(X.shape[0], parts)

    def values(self, points: Points) -> np.ndarray:
        out = np.zeros((points.n, self.n_outputs))
        for _, rows, share in self._shares(points):
            out[rows] += share
        return out

    def shares(self, points: Points) -> np.ndarray:
        out = np.zeros((points.n, self.n_kernels, self.n_outputs))
        for k, rows, share in self._shares(points):
            out[rows, k] = share
        return out

    def _shares(self, points: Points) -> Any:
        for k, at, cross, coef in self.votes:
            size = max(1, CHUNK // max(cross.n_anchors, 1))
            for start in range(0, points.n, size):
                rows = slice(start, min(start + size, points.n))
                yield k, rows, cross.apply(points.parts[at][rows], coef)[0]

    def release(self) -> None:
        for _, _, cross, _ in self.votes:
            cross.release()
