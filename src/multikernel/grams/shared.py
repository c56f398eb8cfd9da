"""Grams of kernels that are scalar functions of a shared distance or dot product.

All Gaussians on the same columns are functions of one number per pair of points; so are all
Laplacians, all chi-squared kernels, and all polynomials and sigmoids. That number is computed tile
by tile and every kernel is evaluated on the tile while it is in the processor's cache: many
kernels, no kernel matrices in memory.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.base import known_psd as ask_psd
from ..kernels.columns import Columns, take_columns
from ..kernels.derivatives import BASES, CHI_SQUARED, gradient_of_sum, to_inputs
from ..kernels.distances import Exponential, Matern
from ..kernels.histograms import ChiSquared, require_nonnegative
from ..kernels.scaling import Scaling
from ..kernels.vectors import Gaussian, Laplacian, Linear, Polynomial, Sigmoid, VectorKernel
from . import _loops
from ._uncompiled import is_small
from .blocks import BlockGrams, RawCross, RawStatistics
from .memory import MemoryBudget
from .pass_cache import PassCache
from .protocol import require_sizes

#: `BlockGrams.one_pass_limit` of statistics from sums of polynomials, which are float64 for points
#: of either type. The error of the centring identity is about 2e-16 times the ratio (so 2e-12) for
#: float64 kernels; for float32 kernels, whose polynomials are truncated at 1e-9, it is 1e-9 times
#: the square root of the ratio (so 1e-6).
MOMENT_ONE_PASS_LIMIT = {np.dtype(np.float32): 1e6, np.dtype(np.float64): 1e4}


def scalar_function(kernel: VectorKernel) -> tuple[int, tuple[float, float, float]]:
    """The kind of a kernel in the compiled loops, and its (gamma, coef0, degree)."""
    if type(kernel) is Gaussian:
        return _loops.EXP_SQ, (kernel.gamma, 0.0, 1.0)
    if type(kernel) is Laplacian:
        return _loops.EXP_L1, (kernel.gamma, 0.0, 1.0)
    if type(kernel) is Exponential:
        if kernel.power == 2.0:
            return _loops.EXP_SQ, (kernel.length**-2.0, 0.0, 1.0)
        if kernel.power == 1.0:
            return _loops.EXP_ROOT, (1.0 / kernel.length, 0.0, 1.0)
        return _loops.EXP_POWER, (kernel.length**-kernel.power, 0.5 * kernel.power, 1.0)
    if type(kernel) is Matern:
        kind = {0.5: _loops.EXP_ROOT, 1.5: _loops.MATERN_3, 2.5: _loops.MATERN_5}[kernel.nu]
        return kind, (np.sqrt(2.0 * kernel.nu) / kernel.length, 0.0, 1.0)
    if type(kernel) is ChiSquared:
        return _loops.EXP_CHI, (kernel.gamma, 0.0, 1.0)
    if type(kernel) is Linear:
        return _loops.POLY, (1.0, 0.0, 1.0)
    if type(kernel) is Polynomial:
        return _loops.POLY, (kernel.gamma, kernel.coef0, float(kernel.degree))
    if type(kernel) is Sigmoid:
        return _loops.TANH, (kernel.gamma, kernel.coef0, 1.0)
    raise TypeError(f"{kernel!r} is not a function of a distance or a dot product.")


@dataclass(frozen=True)
class Group:
    """Kernels on the same columns whose values follow from the same base statistic."""

    columns: Columns
    scaling: Scaling | None
    base: str

    @classmethod
    def of(cls, kernel: VectorKernel) -> Group:
        base = BASES[type(kernel)]
        scaling = kernel.scaling
        if isinstance(scaling, str):
            raise ValueError(f"{kernel!r} has not learned its scaling yet: use bank.adapt(X).")
        # If the scaling centres the columns, squared distances and dot products share a group
        # without loss of accuracy. Otherwise squared distances have their own, which is centred.
        centred = scaling is not None and scaling.centred
        if base == "squared distances" and centred:
            base = "dot products"
        return cls(kernel.columns, scaling, base)

    def select(self, X: Any) -> np.ndarray:
        Z = take_columns(X, self.columns)
        if self.scaling is not None:
            Z = self.scaling(Z)
        if self.base == CHI_SQUARED:
            require_nonnegative(Z, ChiSquared.__name__, self.columns)
        return np.asarray(Z.toarray() if sp.issparse(Z) else Z)

    def width(self, n_features: int) -> int:
        return n_features if self.columns is None else len(self.columns)  # type: ignore[arg-type]


class SharedGrams(BlockGrams):
    """Grams whose kernels are evaluated tile by tile in compiled passes.

    Parameters
    ----------
    encoded : array of shape (n, D), float32 or float64
        The columns of all groups side by side; its dtype is that of the Gram entries.
    encoder : Encoder
        Makes such an array from new inputs.
    kernels : sequence of p kernels, those of one group next to each other
    """

    kind = "shared"
    #: whether a fit makes few passes; see :class:`multikernel.grams.engines.BuildOptions`
    few_passes = False

    def __init__(
        self,
        encoded: np.ndarray,
        encoder: Encoder,
        kernels: Sequence[VectorKernel],
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        known_psd: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(
            *(len(encoded), names, encoded.dtype, budget),
            sample_weight=sample_weight,
            n_jobs=n_jobs,
        )
        self.encoded, self.encoder, self.kernels = encoded, encoder, list(kernels)
        self._Z: np.ndarray | None = None
        self._known_psd = ask_psd(self.kernels) if known_psd is None else known_psd
        self.shifted = np.zeros(len(self.kernels), dtype=bool)
        self._passes: PassCache | None = None
        # The inputs before rounding to single precision, and which of their rows are used.
        self._inputs: tuple[Any, np.ndarray] | None = None

    @classmethod
    def evaluate(
        cls,
        kernels: Sequence[VectorKernel],
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        dtype: Any = np.float64,
        known_psd: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> SharedGrams:
        encoder, Z = Encoder.fit(kernels, X, dtype)
        options: dict[str, Any] = {"sample_weight": sample_weight, "n_jobs": n_jobs}
        new = cls(Z, encoder, kernels, names, budget, known_psd=known_psd, **options)
        if Z.dtype != np.float64:
            new._inputs = (X, np.arange(len(Z)))
        return new

    @property
    def known_psd(self) -> np.ndarray:
        return self._known_psd

    @property
    def Z(self) -> np.ndarray:
        """The samples from which values are computed, shape (n, D).

        For centred linear kernels the origin does not matter; their values lose the fewest digits
        if it is the mean of the sample.
        """
        if self._Z is None:
            self._Z = self.encoded if self.center else self.encoder.restore(self.encoded)
        return self._Z

    def corrected(self, center: bool, normalize: str | None) -> SharedGrams:
        new = copy.copy(self)
        if self.center != center:
            # Centring removes constants, so exp(-t) - 1 serves as well as exp(-t) and keeps its
            # relative accuracy for kernels so wide that they are almost constant.
            passes = self.passes
            wide = _loops.is_wide(passes.family, passes.facts)
            new.shifted = wide if center else np.zeros_like(self.shifted)
            new._statistics = new._degenerate = new._passes = new._Z = None
            if not self.encoder.moves_dot_products:
                new._passes = passes.with_shifted(new.shifted)
        return super(SharedGrams, new).corrected(center, normalize)  # type: ignore[return-value]

    def accurate(self) -> SharedGrams:
        if self._inputs is None:
            return self
        X, rows = self._inputs
        encoder = replace(self.encoder, dtype=np.dtype(np.float64))
        new = self._on(encoder(X[rows]), encoder, self.sample_weight)
        return new.corrected(self.center, self.how)

    def _on(
        self, encoded: np.ndarray, encoder: Encoder, sample_weight: np.ndarray | None
    ) -> SharedGrams:
        """The same kernels as built, on other points."""
        new = SharedGrams(
            encoded,
            encoder,
            self.kernels,
            self.names,
            self.budget,
            known_psd=self._known_psd,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )
        new.few_passes = self.few_passes
        return new

    @property
    def passes(self) -> PassCache:
        """The cache of the passes over the samples; copies of the grams share it."""
        if self._passes is None:
            family = self.encoder.family(self.Z, self.kernels, self.shifted)
            small = is_small(family, self.budget.bytes, self.few_passes)
            self._passes = PassCache(family, small)
        return self._passes

    def raw_statistics(
        self, Yc: np.ndarray | None, products: bool, also_combine: np.ndarray | None = None
    ) -> RawStatistics:
        # Keep distances if they fit beside the combined matrix.
        if (8.0 + _loops.KEPT_BYTES_PER_ENTRY) * self.n**2 <= self.budget.bytes:
            self.passes.keep_distances = True
        s = _loops.statistics(
            self.passes, Yc, self.sample_weight, products, self.n_jobs, also_combine
        )
        return RawStatistics(
            row_sums=s.row_sums,
            diagonals=s.diagonals,
            squares=np.diag(s.products).copy() if products else s.products,
            products=s.products if products else None,
            a=s.a,
            totals=s.totals,
            combined=s.combined,
        )

    @property
    def one_pass_limit(self) -> float:
        if self.passes.levels is None:
            return super().one_pass_limit
        return MOMENT_ONE_PASS_LIMIT[self.dtype]

    def raw_centred_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, products: bool
    ) -> np.ndarray:
        passes, row_means, grand_means = self._less_one(row_means, grand_means)
        return _loops.centred_products(
            passes, row_means, grand_means, self.sample_weight, products, self.n_jobs
        )

    def _less_one(
        self, row_means: np.ndarray, grand_means: np.ndarray
    ) -> tuple[PassCache, np.ndarray, np.ndarray]:
        """Passes over the same kernels, with 1 subtracted from wide ones, and their row means.

        Centring removes the constant, and wide kernels minus 1 keep their relative accuracy.
        """
        passes = self.passes
        wide = _loops.is_wide(passes.family, passes.facts) & ~self.shifted
        if wide.any():
            passes = passes.with_shifted(self.shifted | wide)
            row_means, grand_means = row_means - wide[:, None], grand_means - wide
        return passes, row_means, grand_means

    def raw_block(self, rows: slice) -> np.ndarray:
        return _loops.block(self.passes, rows, 1)

    def raw_diagonals(self) -> np.ndarray:
        return self.encoder.diagonals(self.Z, self.kernels, self.shifted)

    def removed_diagonals(self) -> np.ndarray:
        removed = np.repeat(self.shifted.astype(np.float64)[:, None], self.n, axis=1)
        if self.center and self.encoder.moves_dot_products:
            plain = self.encoder.diagonals(
                self.encoder.restore(self.encoded), self.kernels, self.shifted
            )
            removed += plain - self.raw_diagonals()
        return removed

    def raw_combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        return _loops.combine(self.passes, kernel_weights, self.n_jobs, np.float64)

    def raw_combine_centred(
        self, kernel_weights: np.ndarray, row_mean: np.ndarray, grand_mean: float
    ) -> np.ndarray:
        means = (row_mean, grand_mean)
        return _loops.combine(self.passes, kernel_weights, self.n_jobs, np.float64, means)

    def raw_rows(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        if self.passes.small:
            return _loops.combine(self.passes, kernel_weights, 1, np.float64)[index]
        Z = np.ascontiguousarray(self.Z[index])
        return _loops.cross_combine(self.passes, Z, kernel_weights, self.n_jobs, np.float64)

    def raw_among(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        if self.passes.small:
            return self.raw_combine(kernel_weights)[np.ix_(index, index)]
        some = self._only(index, kernel_weights)
        return _loops.combine(some, kernel_weights, self.n_jobs, np.float64)

    def raw_between(
        self, kernel_weights: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        if self.passes.small:
            return self.raw_combine(kernel_weights)[np.ix_(rows, columns)]
        some, Z = self._only(columns, kernel_weights), np.ascontiguousarray(self.Z[rows])
        return _loops.cross_combine(some, Z, kernel_weights, self.n_jobs, np.float64)

    def _only(self, index: np.ndarray, kernel_weights: np.ndarray | None = None) -> PassCache:
        """The kernels, or their combination with these weights, on some of the points."""
        return self.passes.on(np.ascontiguousarray(self.Z[index]), kernel_weights)

    def raw_matvecs(self, V: np.ndarray) -> np.ndarray:
        return _loops.matvecs(self.passes, V, self.n_jobs)

    def raw_support_matvecs(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        if self.passes.small:
            return super().raw_support_matvecs(V, support)
        return _loops.matvecs(self._only(support), np.ascontiguousarray(V[support]), self.n_jobs)

    def raw_combined_matvec(self, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        return _loops.combined_matvec(self.passes, kernel_weights, V, self.n_jobs)

    def raw_combined_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        known = self._known_sums(kernel_weights, omega)
        if known is not None:
            return known
        return _loops.combined_sums(self.passes, kernel_weights, omega, self.n_jobs)

    def _known_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        """Row sums and sum of squares of a combination, if earlier polynomial sums give them."""
        known, levels = self._statistics, self.passes.levels
        same = self.has_weights(omega)
        if known is not None and known.totals is not None and levels is not None and same:
            kernel_sums = known.row_sums @ self._omega()
            square = levels.square(kernel_weights, known.totals, kernel_sums)
            return kernel_weights @ known.row_sums, square
        return None

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> SharedCross:
        return SharedCross(self, rows, kernels)

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> SharedGrams:
        new = self._on(np.ascontiguousarray(self.encoded[rows]), self.encoder, sample_weight)
        if self._inputs is not None:
            X, own = self._inputs
            new._inputs = (X, own[rows])
        return new

    def points(self, rows: np.ndarray) -> Any:
        return self.encoded[rows]


@dataclass(frozen=True)
class Encoder:
    """Encode inputs X as the columns of all groups side by side; describe families of kernels.

    Attributes
    ----------
    groups : tuple of Group
    widths : tuple of int
    origins : tuple of arrays or None
        Subtracted from the columns of a group: distances and centred linear kernels do not change
        and have smaller rounding errors. `restore` adds the origins of dot products again.
    """

    groups: tuple[Group, ...]
    widths: tuple[int, ...]
    origins: tuple[np.ndarray | None, ...]
    dtype: Any

    @classmethod
    def fit(
        cls, kernels: Sequence[VectorKernel], X: Any, dtype: Any, *, move_linear: bool = True
    ) -> tuple[Encoder, np.ndarray]:
        """The encoder of a sample, and the encoded sample.

        ``move_linear`` says whether columns that only linear kernels read are moved to their mean.
        """
        owners = [Group.of(kernel) for kernel in kernels]
        groups = tuple(dict.fromkeys(owners))
        selected = [group.select(X).astype(np.float64, copy=False) for group in groups]
        others = {group for group, k in zip(owners, kernels, strict=True) if type(k) is not Linear}

        def is_moved(group: Group) -> bool:
            if group.base == "dot products":
                centred = group.scaling is not None and group.scaling.centred
                return move_linear and group not in others and not centred
            return group.base != CHI_SQUARED

        origins = tuple(
            Z.mean(axis=0) if is_moved(group) else None
            for group, Z in zip(groups, selected, strict=True)
        )
        encoder = cls(groups, tuple(Z.shape[1] for Z in selected), origins, np.dtype(dtype))
        return encoder, encoder._join(selected)

    def _join(self, selected: Sequence[np.ndarray]) -> np.ndarray:
        moved = [
            Z if origin is None else Z - origin
            for Z, origin in zip(selected, self.origins, strict=True)
        ]
        if len(moved) == 1 and moved[0] is not selected[0]:  # new memory already
            return np.ascontiguousarray(moved[0], dtype=self.dtype)
        return np.ascontiguousarray(np.concatenate(moved, axis=1), dtype=self.dtype)

    @property
    def moves_dot_products(self) -> bool:
        """Whether `restore` changes anything."""
        return any(
            group.base == "dot products" and origin is not None
            for group, origin in zip(self.groups, self.origins, strict=True)
        )

    def restore(self, encoded: np.ndarray) -> np.ndarray:
        """Encoded samples for kernels that are not centred: dot products about zero."""
        if not self.moves_dot_products:
            return encoded
        Z, offsets = encoded.copy(), self.offsets
        for g, (group, origin) in enumerate(zip(self.groups, self.origins, strict=True)):
            if group.base == "dot products" and origin is not None:
                Z[:, offsets[g] : offsets[g + 1]] += origin
        return Z

    def __call__(self, X: Any) -> np.ndarray:
        selected = [group.select(X).astype(np.float64, copy=False) for group in self.groups]
        return self._join(selected)

    def slopes(self, X: Any, group: int) -> np.ndarray | float:
        """Derivatives of the columns of a group with respect to the columns of X, shape (m, c)."""
        one = self.groups[group]
        return 1.0 if one.scaling is None else one.scaling.slopes(take_columns(X, one.columns))

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoder:
        new = cls(**state)
        fit = len(new.groups) == len(new.widths) == len(new.origins)
        require_sizes(fit and min(new.widths, default=0) >= 0, "groups of columns")
        return new

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.widths)]).astype(np.int64)

    def family(
        self,
        Z: np.ndarray,
        kernels: Sequence[VectorKernel],
        shifted: np.ndarray,
    ) -> _loops.KernelFamily:
        described = [scalar_function(kernel) for kernel in kernels]
        where = {group: g for g, group in enumerate(self.groups)}
        return _loops.KernelFamily(
            Z=Z,
            offsets=self.offsets,
            group=np.array([where[Group.of(kernel)] for kernel in kernels], dtype=np.int64),
            kind=np.array([kind for kind, _ in described], dtype=np.int64),
            params=np.array([params for _, params in described], dtype=np.float64),
            shifted=shifted,
        )

    def diagonals(
        self, Z: np.ndarray, kernels: Sequence[VectorKernel], shifted: np.ndarray
    ) -> np.ndarray:
        """K_k(x, x) of encoded points, shape (p, m), float64."""
        where = {group: g for g, group in enumerate(self.groups)}
        offsets = self.offsets
        out = np.empty((len(kernels), Z.shape[0]))
        for k, kernel in enumerate(kernels):
            g = where[Group.of(kernel)]
            if shifted[k]:
                out[k] = 0.0  # exp(0) - 1
            elif isinstance(kernel, Gaussian):
                out[k] = 1.0
            else:
                columns = Z[:, offsets[g] : offsets[g + 1]].astype(np.float64)
                out[k] = kernel._diag(columns)
        return out


class SharedCross(RawCross):
    """Kernels between new points and anchors, through the same compiled passes."""

    #: built from the anchors when needed
    _passes: PassCache | None = None
    #: whether the kernels are centred; missing in older model files, which have nothing to restore
    center = False

    def __init__(self, grams: SharedGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        self.p, self.n_anchors = len(kernels), len(rows)
        self.encoder = grams.encoder
        self.kernels = [grams.kernels[k] for k in kernels]
        self.anchors = np.ascontiguousarray(grams.Z[rows])
        self.shifted = grams.shifted[kernels]
        self.center = grams.center
        self.n_jobs = grams.n_jobs

    @property
    def passes(self) -> PassCache:
        if self._passes is None:
            family = self.encoder.family(self.anchors, self.kernels, self.shifted)
            self._passes = PassCache(family, small=True)  # NumPy, unless there are many new points
        return self._passes

    def __getstate__(self) -> dict[str, Any]:
        # The cache holds the anchors again, so it is not saved.
        return {name: value for name, value in self.__dict__.items() if name != "_passes"}

    def state(self) -> dict[str, Any]:
        return self.__getstate__()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SharedCross:
        # The compiled loops rely on these sizes.
        anchors = state["anchors"]
        fit = state["p"] == len(state["kernels"]) == len(state["shifted"])
        require_sizes(fit, "number of kernels")
        fit = anchors.ndim == 2 and anchors.shape[1] == sum(state["encoder"].widths)
        require_sizes(fit and anchors.dtype in (np.float32, np.float64), "columns of the anchors")
        return super().from_state(state)

    def encode(self, X: Any) -> np.ndarray:
        return self.encoder(X)

    def place(self, points: np.ndarray) -> np.ndarray:
        """Encoded samples relative to the same origin as the anchors."""
        return points if self.center else self.encoder.restore(points)

    def block(self, points: np.ndarray) -> np.ndarray:
        return _loops.cross_block(self.passes, self.place(points), self.n_jobs)

    def diagonals(self, points: np.ndarray) -> np.ndarray:
        return self.encoder.diagonals(self.place(points), self.kernels, self.shifted)

    def apply(self, points: np.ndarray, V: np.ndarray) -> np.ndarray:
        return _loops.cross_apply(self.passes, self.place(points), V, self.n_jobs)

    def combined(self, points: np.ndarray, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        points = self.place(points)
        return (
            _loops.cross_combine(self.passes, points, kernel_weights, self.n_jobs, np.float64) @ V
        )

    def gradients(
        self, X: Any, kernel_weights: np.ndarray, V: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        points, offsets = self.place(self.encode(X)), self.encoder.offsets
        out = np.zeros((X.shape[0], X.shape[1], V.shape[1]))
        coef = V.T[:, None, :]
        owners = [Group.of(kernel) for kernel in self.kernels]
        for g, group in enumerate(self.encoder.groups):
            mine = [k for k, owner in enumerate(owners) if owner == group]
            if mine:
                columns = slice(offsets[g], offsets[g + 1])
                own = gradient_of_sum(
                    [self.kernels[k] for k in mine],
                    kernel_weights[mine],
                    points[:, columns],
                    self.anchors[:, columns],
                    coef,
                )
                slopes = self.encoder.slopes(X, g)
                out += to_inputs(own, group.columns, slopes, X.shape[1])
        return out
