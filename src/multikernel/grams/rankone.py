"""Grams of rank-one kernels ``K_k = v_k v_k'``: the feature columns themselves, dense or sparse.

Centring a rank-one kernel centres its feature, so that thousands to millions of kernels cost no
more than passes over the columns, and no n x n or p x p object is formed unless it is requested.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..kernels.columns import column_moments
from .matrix import MatrixGram
from .memory import MemoryBudget
from .normalise import check_how, scales
from .protocol import Expansion, Grams, Summary, center_targets, require_sizes, target_norm

#: Ratio of raw to centred sum of squares beyond which sparse features are centred explicitly.
MEAN_TO_SPREAD_LIMIT = 1e2
#: Maximum fraction of kernels with non-zero weight for which their features are copied.
MAX_COPIED_SHARE = 0.125
#: Number of entries of the features converted to extended precision at once.
EXTENDED_ENTRIES = 2**20


class RankOneGrams(Grams):
    """``K_k = s_k u_k u_k'`` with ``u_k = v_k - m_k`` (``m_k = 0`` without centring).

    Parameters
    ----------
    features : array or CSC matrix of shape (n, p)
        The columns v_k.
    columns : array of shape (p,)
        Their positions in X, for new samples.
    """

    kind = "rank-one"

    def __init__(
        self,
        features: Any,
        columns: np.ndarray,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(features.shape[0], names, sample_weight=sample_weight, n_jobs=n_jobs)
        self.data = features
        self.columns = columns
        self.budget = budget
        self.omega = np.ones(self.n) if sample_weight is None else sample_weight
        self.means, self.spread, self.power = self._moments()
        # Features are used as v - shift; the spherical normalisation uses only the sign.
        self.shift = np.zeros(self.p)
        self.scale = np.ones(self.p)
        self.signs = False
        self.extended = False  # whether products with features are summed in extended precision

    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weighted mean, centred sum of squares and raw sum of squares of every column."""
        return column_moments(self.data, self.omega)

    @property
    def degenerate(self) -> np.ndarray:
        # Features are centred before they are squared: rounding leaves eps^2 of the power, not eps.
        constant = self.spread <= (16 * np.finfo(np.float64).eps) ** 2 * self.power
        return constant | self.one_sign if self.signs and not self.center else constant

    @property
    def one_sign(self) -> np.ndarray:
        """Mask (p,) of features with one sign: the kernel of their signs is constant."""
        low, high = column_ranges(self.data)
        return (low > 0) | (high < 0)

    @property
    def known_psd(self) -> np.ndarray:
        return np.ones(self.p, dtype=bool)

    def corrected(self, center: bool, normalize: str | None) -> RankOneGrams:
        check_how(normalize)
        new = copy.copy(self)
        new.center, new.how = center, normalize
        new.signs = normalize == "spherical"
        new.shift = self.means if center else np.zeros(self.p)
        traces = self.spread if center else self.power
        # The Frobenius norm of a rank-one matrix is its trace.
        new.scale = scales(
            normalize,
            self.power if normalize == "trace-first" else traces,
            self.spread / self.total_weight,
            traces,
            new.degenerate,
            list(self.names),
        )
        return new

    # -- products with the features as used, u_k ------------------------------------------------

    def nonzero(self, kernel_weights: np.ndarray) -> tuple[RankOneGrams, slice | np.ndarray]:
        """The kernels with non-zero weight and their positions, if these are few; else all."""
        used = np.flatnonzero(kernel_weights)
        if len(used) > MAX_COPIED_SHARE * self.p:
            return self, slice(None)
        few = copy.copy(self)
        few.p, few.data = len(used), self.data[:, used]
        few.names = [self.names[k] for k in used.tolist()]
        for name in ("columns", "means", "spread", "power", "shift", "scale"):
            setattr(few, name, getattr(self, name)[used])
        return few, used

    def transpose_apply(self, Z: np.ndarray) -> np.ndarray:
        """``u_k' z`` for every kernel, shape (p, t)."""
        if self.signs:
            return self._signs(self.data).T @ Z
        if self.extended:
            return self._extended_transpose_apply(Z)
        return np.asarray(self.data.T @ Z) - np.outer(self.shift, Z.sum(axis=0))

    def _extended_transpose_apply(self, Z: np.ndarray) -> np.ndarray:
        """The same sums in extended precision, rounded once at the end.

        Where a kernel has a large weight, ``u_k' z`` of the optimal coefficients is a small
        difference of large terms.
        """
        long = np.asarray(Z, dtype=np.longdouble)
        out = np.empty((self.p, Z.shape[1]))
        width = max(1, EXTENDED_ENTRIES // max(self.n, 1))
        for start in range(0, self.p, width):
            some = slice(start, start + width)
            V = self.data[:, some].astype(np.longdouble)
            out[some] = V.T @ long - np.outer(self.shift[some], long.sum(axis=0))
        return out

    def accurate(self) -> RankOneGrams:
        if self.extended:
            return self
        new = copy.copy(self)
        new.extended = True
        return new

    def apply(self, B: np.ndarray, features: Any = None) -> np.ndarray:
        """``sum_k u_k b_k`` for B of shape (p, t), on the sample or on other points."""
        V = self.data if features is None else features
        if self.signs:
            return self._signs(V) @ B
        return np.asarray(V @ B) - self.shift @ B

    def _signs(self, features: Any) -> np.ndarray:
        V = features.toarray() if sp.issparse(features) else np.asarray(features)
        return signs(V - self.shift, self.shift)

    def dense_features(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """The features as used, shape (n_rows, p)."""
        V = self.data[rows]
        if sp.issparse(V):
            self.budget.require(
                8.0 * V.shape[0] * self.p,
                f"Writing out {V.shape[0]} x {self.p} sparse features",
                "Raise memory_budget, or use a method that does not need dense features.",
            )
        if self.signs:
            return self._signs(V)
        return (V.toarray() if sp.issparse(V) else np.asarray(V)) - self.shift

    # -- the passes -------------------------------------------------------------------------------

    def block(self, index: slice | np.ndarray) -> np.ndarray:
        U = self.dense_features()
        return (U[index].T * self.scale[:, None])[:, :, None] * U.T[:, None, :]

    def diagonals(self) -> np.ndarray:
        return np.asarray((self.dense_features() ** 2 * self.scale).T)

    @property
    def scales(self) -> np.ndarray:
        return self.scale

    def summary(
        self, Y: np.ndarray, products: bool = True, also_combine: np.ndarray | None = None
    ) -> Summary:
        Yc = center_targets(Y, self.sample_weight)
        if self.signs:
            return self._summary_of_features(Yc, products)
        # Centred targets make the centring of the features drop out of u' omega y.
        a = np.sum(np.asarray(self.data.T @ (self.omega[:, None] * Yc)) ** 2, axis=1)
        return Summary(
            traces=(self.spread if self.center else self.power) * self.scale,
            norms=self.spread * self.scale,
            a=a * self.scale,
            M=self._products() if products else None,
            target_norm=target_norm(Yc, self.sample_weight),
        )

    def _products(self) -> np.ndarray:
        """``M_kl = (u_k' u_l)^2`` of the centred features, shape (p, p)."""
        self.budget.require(
            8.0 * self.p**2 * 3,
            f"The {self.p} x {self.p} products of rank-one kernels",
            "Use weighting='align', which needs no products, or raise memory_budget.",
        )
        root = np.sqrt(self.scale)
        return (self.centred_gram(np.arange(self.p)) * np.outer(root, root)) ** 2

    def centred_gram(self, kernels: np.ndarray) -> np.ndarray:
        """``u_k' u_l`` of centred features that are not yet scaled."""
        omega, W = self.omega, self.total_weight
        if sp.issparse(self.data) and not self.signs:
            chosen = self.data[:, kernels]
            V = chosen.multiply(np.sqrt(omega)[:, None]).tocsc()
            means = self.means[kernels]
            C = np.asarray((V.T @ V).todense()) - W * np.outer(means, means)
            # This cancels if a mean is large against the spread. Such columns are nearly full, so
            # they are centred explicitly before they are multiplied.
            full = np.flatnonzero(self.power[kernels] > MEAN_TO_SPREAD_LIMIT * self.spread[kernels])
            if len(full):
                U = omega[:, None] * (chosen[:, full].toarray() - means[full])
                C[full] = np.asarray(chosen.T @ U).T
                C[:, full] = C[full].T
                C[np.ix_(full, full)] = U.T @ (chosen[:, full].toarray() - means[full])
            return C
        U = self.dense_features()[:, kernels]
        U = (U - omega @ U / W) * np.sqrt(omega)[:, None]
        return np.asarray(U.T @ U)

    def _summary_of_features(self, Yc: np.ndarray, products: bool) -> Summary:
        U = RankOneFeatures(self).centred()
        raw = self.dense_features()
        return Summary(
            traces=self.omega @ raw**2 * self.scale,
            norms=self.omega @ U**2,
            a=np.sum((U.T @ (self.omega[:, None] * Yc)) ** 2, axis=1),
            M=self._products() if products else None,
            target_norm=target_norm(Yc, self.sample_weight),
        )

    def features(self) -> RankOneFeatures:
        return RankOneFeatures(self)

    def combine(self, kernel_weights: np.ndarray) -> RankOneCombined:
        return RankOneCombined(self, np.asarray(kernel_weights, dtype=np.float64))

    def matvecs(self, V: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        inner = self.transpose_apply(V) * self.scale[:, None]
        U = self.dense_features(slice(None) if at is None else at)
        return np.asarray(U.T[:, :, None] * inner[:, None, :])

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        U = self.dense_features()
        return np.asarray(np.einsum("np,np->p", U, G @ U) * self.scale)

    def quadratic_forms(self, V: np.ndarray) -> np.ndarray:
        forms = self.transpose_apply(V.reshape(self.n, -1)) ** 2 * self.scale[:, None]
        return forms[:, 0] if V.ndim == 1 else forms

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        return RankOneExpansion(self, kernel_weights, self._inner(kernel_weights, coef))

    def _inner(self, kernel_weights: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """``u_k' coef``, shape (p, t); may be zero for kernels without a weight."""
        coef = np.asarray(coef, dtype=np.float64).reshape(self.n, -1)
        grams, used = self.nonzero(kernel_weights)
        inner = np.zeros((self.p, coef.shape[1]))
        inner[used] = grams.transpose_apply(coef)
        return inner

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> RankOneGrams:
        return type(self)(
            self.data[rows],
            self.columns,
            self.names,
            self.budget,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )

    def points(self, rows: np.ndarray) -> Any:
        return self.data[rows]


class RankOneFeatures:
    """The features as used, scaled: ``K_k = u_k u_k'``; see `FeatureColumns`."""

    def __init__(self, grams: RankOneGrams) -> None:
        self.grams, self.root = grams, np.sqrt(grams.scale)

    def products(self, s: np.ndarray) -> np.ndarray:
        return self.grams.transpose_apply(s[:, None])[:, 0] * self.root

    def values(self, beta: np.ndarray) -> np.ndarray:
        return self.grams.apply((self.root * beta)[:, None])

    def columns(self, kernels: np.ndarray) -> tuple[Any, np.ndarray]:
        grams, root = self.grams, self.root[kernels]
        V, shift = grams.data[:, kernels], grams.shift[kernels]
        flat = np.any(grams.power[kernels] > MEAN_TO_SPREAD_LIMIT * grams.spread[kernels])
        if sp.issparse(V) and not grams.signs and not flat:
            return V.multiply(root[None, :]).tocsc(), shift * root
        U = (V.toarray() if sp.issparse(V) else np.asarray(V)) - shift
        return (signs(U, shift) if grams.signs else U) * root, np.zeros(len(kernels))

    def centred(self) -> np.ndarray:
        grams = self.grams
        U = grams.dense_features()
        U = U - grams.omega @ U / grams.total_weight
        return np.asarray(U * self.root)


class RankOneCombined(MatrixGram):
    """``U diag(w s) U'``: only the features are held, unless the matrix is requested."""

    fast_products = True

    def __init__(self, grams: RankOneGrams, kernel_weights: np.ndarray) -> None:
        self.grams, self.n = grams, grams.n
        self.room, self.n_jobs = grams.budget.bytes, grams.n_jobs
        self.kernel_weights, self.factors = kernel_weights, kernel_weights * grams.scale
        # Negative weights have no features, and sparse columns would have to be made dense.
        if np.all(kernel_weights >= 0) and not sp.issparse(grams.data):
            self.extras = frozenset({"features"})

    def features(self) -> np.ndarray:
        used = np.flatnonzero(self.factors)
        grams, where = self.grams.nonzero(self.factors)
        U = grams.dense_features()
        U = U if isinstance(where, np.ndarray) else U[:, used]
        return np.asarray(U * np.sqrt(self.factors[used]))

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        inner = self.grams.transpose_apply(V2) * self.factors[:, None]
        return self.grams.apply(inner).reshape(np.shape(V))

    def _rows(self, index: np.ndarray) -> np.ndarray:
        grams, used = self._nonzero
        U = grams.dense_features(index)
        return grams.apply((U * self.factors[used]).T).T

    @cached_property
    def _nonzero(self) -> tuple[RankOneGrams, slice | np.ndarray]:
        return self.grams.nonzero(self.factors)

    def _dense(self) -> np.ndarray:
        grams = self.grams
        grams.budget.require(
            8.0 * self.n**2,
            f"The combined Gram matrix of {self.n} samples",
            "Raise memory_budget, or use fewer samples.",
        )
        V = grams.data
        if not sp.issparse(V) or grams.signs:
            U = grams.dense_features()
            return np.asarray((U * self.factors) @ U.T)
        scaled = V.multiply(self.factors[None, :]).tocsr()
        K = np.asarray((scaled @ V.T.tocsr()).todense())
        # (V - 1 m') F (V - 1 m')' with F = diag(factors)
        half = np.asarray(V @ (self.factors * grams.shift)).ravel()
        K -= half[:, None]
        K -= half[None, :] - float(self.factors @ grams.shift**2)
        return K

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.grams.dense_features() ** 2 @ self.factors)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        used = np.flatnonzero(self.factors)
        omega = np.ones(self.n) if sample_weight is None else sample_weight
        own = np.array_equal(omega, self.grams.omega)  # the features are centred with these
        if not own or self._matrix is not None or len(used) > min(self.n, 5000):
            return super().centred_norm(sample_weight)
        # ||U F U'||_F^2 = <C F, F C> for C = U'U of the features that have a weight.
        C = self.grams.centred_gram(used)
        CF = C * self.factors[used]
        return float(np.sqrt(max(float(np.vdot(CF, CF.T)), 0.0)))


class RankOneExpansion(Expansion):
    """A linear function of the features: one coefficient per kernel and output."""

    def __init__(self, grams: RankOneGrams, kernel_weights: np.ndarray, inner: np.ndarray) -> None:
        self.n_kernels = grams.p
        slopes = (kernel_weights * grams.scale)[:, None] * inner
        self.active = np.flatnonzero(np.any(slopes != 0, axis=1))
        self.slopes = slopes[self.active]
        self.shift = grams.shift[self.active]
        self.signs = grams.signs
        self.columns = grams.columns

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        n = len(state["active"])
        require_sizes(n == len(state["slopes"]) == len(state["shift"]), "slopes of the features")
        return super().from_state(state)

    @property
    def encoding(self) -> Hashable:
        return id(self.columns)

    def encode(self, X: Any) -> Any:
        return take_feature_columns(X, self.columns)

    def _active(self, points: Any) -> Any:
        return points if len(self.active) == self.n_kernels else points[:, self.active]

    def values(self, points: Any) -> np.ndarray:
        points = self._active(points)
        if self.signs:
            return self._used(points) @ self.slopes
        return np.asarray(points @ self.slopes) - self.shift @ self.slopes

    def _used(self, points: Any) -> np.ndarray:
        U = (points.toarray() if sp.issparse(points) else np.asarray(points)) - self.shift
        return signs(U, self.shift) if self.signs else U

    def shares(self, points: Any) -> np.ndarray:
        U = self._used(self._active(points))
        shares = np.zeros((U.shape[0], self.n_kernels, self.slopes.shape[1]))
        shares[:, self.active] = U[:, :, None] * self.slopes
        return shares

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        slopes = np.zeros((X.shape[1], self.slopes.shape[1]))
        if not self.signs:  # signs are constant between jumps
            np.add.at(slopes, self.columns[self.active], self.slopes)
        return np.broadcast_to(slopes, (X.shape[0], *slopes.shape))


def signs(U: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Signs of centred features; 0 for a sample at the centre up to rounding."""
    return np.where(np.abs(U) <= 16 * np.finfo(np.float64).eps * np.abs(shift), 0.0, np.sign(U))


def column_ranges(V: Any) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of every column of an array or a CSC matrix."""
    if sp.issparse(V):
        return V.min(axis=0).toarray().ravel(), V.max(axis=0).toarray().ravel()
    return V.min(axis=0), V.max(axis=0)


def take_feature_columns(X: Any, columns: np.ndarray) -> Any:
    """Columns of X as float64, dense or CSC."""
    whole = len(columns) == X.shape[1] and np.array_equal(columns, np.arange(X.shape[1]))
    if sp.issparse(X):
        V = X.tocsc()
        V = (V if whole else V[:, columns]).astype(np.float64)
        V.sum_duplicates()
        return V
    return np.asarray(X if whole else X[:, columns], dtype=np.float64)
