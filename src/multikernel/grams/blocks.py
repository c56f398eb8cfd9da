"""Grams read block by block: the passes of the waist over raw blocks and affine corrections.

An implementation supplies raw (uncentred, unnormalised) numbers, :meth:`BlockGrams.raw_block` at
the least, and overrides the raw passes that its structure makes cheaper. Everything about
centring, normalising and prediction is written here, once.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ._dense_loops import recentre
from .matrix import MatrixGram
from .memory import MemoryBudget
from .normalise import Correction, check_how, inverse_root, scales
from .protocol import (
    CombinedGram,
    Expansion,
    Grams,
    Stateful,
    Summary,
    add,
    block_products,
    center_targets,
    centred_square,
    require_sizes,
    target_norm,
)

# The one-pass centring identity loses about eps * ||K||^2 / ||Kc||^2; up to these ratios that is
# 1e-14 in float64 and 1e-5 in float32. Beyond them a second pass centres entries first.
ONE_PASS_LIMIT = {np.dtype(np.float64): 1e2, np.dtype(np.float32): 1.5e2}
#: Assumed error of eigenvalues, in units of the rounding error of the matrix's Frobenius norm. An
#: entry that is a sum of products in single precision is off by several rounding errors.
EIGENVALUE_ROUNDINGS = 16.0
#: If all entries of the first normalised row are this close to 1, the other rows are checked, too.
NEARLY_ONE = 1e-3


@dataclass(frozen=True)
class RawStatistics:
    """Sums over the raw kernels in one pass.

    Attributes
    ----------
    row_sums : array of shape (p, n)
        ``K_k omega``.
    diagonals : array of shape (p, n)
    squares : array of shape (p,)
        ``<K_k, K_k>``.
    products : array of shape (p, p) or None
        ``<K_k, K_l>``.
    a : array of shape (p,) or None
        ``<K_k, Y Y'>`` for centred targets.
    totals : tuple of arrays or None
        Sums from which an implementation derives further products later.
    combined : array of shape (n, n) or None
        The requested raw combination, if this pass could add it up.
    """

    row_sums: np.ndarray
    diagonals: np.ndarray
    squares: np.ndarray
    products: np.ndarray | None
    a: np.ndarray | None
    totals: tuple[np.ndarray, ...] | None = None
    combined: np.ndarray | None = None


class RawCross(Stateful):
    """The raw kernels between new samples and some training samples ("anchors")."""

    n_anchors: int
    p: int
    anchors: Any

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        require_sizes(len(state["anchors"]) == state["n_anchors"], "number of anchors")
        return super().from_state(state)

    def slim(self, diagonals: bool) -> RawCross:
        """An object with the same values that holds less data, for a model file.

        ``diagonals`` says whether `diagonals` will be called.
        """
        return self

    #: the object that encodes new inputs, where several crosses may share it
    encoder: Any = None
    #: maximum number of kernel values to compute at once
    chunk_entries = 2**23

    def encode(self, X: Any) -> Any:
        raise NotImplementedError

    def release(self) -> None:
        """Drop cached training matrices, which only predictions for training samples need."""

    def block(self, points: Any) -> np.ndarray:
        """Shape (p, m, n_anchors)."""
        raise NotImplementedError

    def diagonals(self, points: Any) -> np.ndarray:
        """K_k(x, x) of new samples, shape (p, m)."""
        raise NotImplementedError

    def apply(self, points: Any, V: np.ndarray) -> np.ndarray:
        """``K_k(new, anchors) V``, shape (p, m, t)."""
        return self.block(points) @ V

    def combined(self, points: Any, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``sum_k kernel_weights_k K_k(new, anchors) V``, shape (m, t)."""
        return np.einsum("kmt,k->mt", self.apply(points, V), kernel_weights)

    def gradients(
        self, X: Any, kernel_weights: np.ndarray, V: np.ndarray, steps: np.ndarray
    ) -> np.ndarray | None:
        """Derivatives of `combined` in the columns of X, shape (m, n_features, t), if known."""
        return None


class BlockGrams(Grams):
    """Grams with raw blocks; the module's docstring says which methods a subclass supplies."""

    def __init__(
        self,
        n: int,
        names: Sequence[str],
        dtype: Any,
        budget: MemoryBudget,
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(n, names, sample_weight=sample_weight, n_jobs=n_jobs)
        self.dtype = np.dtype(dtype)
        self.budget = budget
        budget.require(
            3 * 8.0 * self.p * n,
            f"Row sums and means of {self.p} kernels on {n} samples",
            "Raise memory_budget, use fewer kernels, or fewer samples.",
        )
        # No correction as built; `corrected` computes one when it is first needed.
        self._correction: Correction | None = Correction(None, None, np.ones(self.p))
        self._statistics: RawStatistics | None = None
        self._degenerate: np.ndarray | None = None
        self._all_ones: np.ndarray | None = None
        self._raw_rounding: np.ndarray | None = None
        self._centred: np.ndarray | None = None  # products of entries that were centred first

    def removed_diagonals(self) -> np.ndarray:
        """Part of ``K_k[i, i]`` left out of the raw values because centring removes it, (p, n)."""
        return np.zeros((self.p, self.n))

    # -- supplied by a subclass ----------------------------------------------------------

    @abstractmethod
    def raw_block(self, rows: slice) -> np.ndarray:
        """Raw values (p, |rows|, n), a fresh array that may be overwritten."""

    @abstractmethod
    def raw_diagonals(self) -> np.ndarray:
        """Raw K_k[i, i], shape (p, n), float64."""

    @abstractmethod
    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> RawCross:
        """Some raw kernels between new samples and some training samples."""

    def raw_statistics(
        self, Yc: np.ndarray | None, products: bool, also_combine: np.ndarray | None = None
    ) -> RawStatistics:
        """The sums of one pass; ``also_combine`` are raw kernel weights, see `Grams.summary`."""
        omega = self._omega()
        # <K, YY'> weighted is <K, (omega Y)(omega Y)'>.
        OY = None if Yc is None else omega[:, None] * Yc

        def one(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
            K = np.asarray(self.raw_block(rows), dtype=np.float64)
            sums = K @ omega
            a = None
            if OY is not None:
                a = np.einsum("krt,rt->k", K @ OY, OY[rows])
            return sums, block_products(K, K, self.sample_weight, rows, products), a

        parts = self.map(one)
        total = add([part[1] for part in parts])
        return RawStatistics(
            row_sums=np.concatenate([part[0] for part in parts], axis=1),
            diagonals=self.raw_diagonals(),
            squares=np.diag(total).copy() if products else total,
            products=total if products else None,
            a=None if Yc is None else add([part[2] for part in parts]),  # type: ignore[misc]
        )

    def raw_centred_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, products: bool
    ) -> np.ndarray:
        """``<K_kc, K_lc>`` with the entries centred before they are multiplied."""
        centring = Correction(row_means, grand_means, np.ones(self.p))

        def one(rows: slice) -> np.ndarray:
            K = centring.apply(np.asarray(self.raw_block(rows), dtype=np.float64), rows)
            return block_products(K, K, self.sample_weight, rows, products)

        return add(self.map(one))

    def raw_combined_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        """Row sums and sum of squares of a combination under sample weights omega.

        None if reading its rows is at least as fast.
        """
        return None

    def raw_matvecs(self, V: np.ndarray) -> np.ndarray:
        parts = self.map(lambda rows: np.asarray(self.raw_block(rows), dtype=np.float64) @ V)
        return np.concatenate(parts, axis=1)

    def raw_combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        """``sum_k kernel_weights_k K_k``, raw, shape (n, n), float64."""
        out = np.empty((self.n, self.n))

        def one(rows: slice) -> None:
            out[rows] = np.tensordot(kernel_weights, self.raw_block(rows), axes=1)

        self.map(one)
        return out

    def raw_combine_centred(
        self, kernel_weights: np.ndarray, row_mean: np.ndarray, grand_mean: float
    ) -> np.ndarray:
        """`raw_combine` less ``row_mean_i + row_mean_j - grand_mean``."""
        K = self.raw_combine(kernel_weights)
        recentre(K, 1.0, row_mean, grand_mean)
        return K

    def raw_rows(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Rows of ``sum_k kernel_weights_k K_k``, raw, shape (len(index), n), float64."""
        out = np.empty((len(index), self.n))
        for place, i in enumerate(index.tolist()):
            out[place] = np.tensordot(kernel_weights, self.raw_block(slice(i, i + 1)), axes=1)[0]
        return out

    def raw_among(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Rows and columns of ``sum_k kernel_weights_k K_k``, raw, a copy."""
        return self.raw_rows(kernel_weights, index)[:, index]

    def raw_between(
        self, kernel_weights: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Entries of ``sum_k kernel_weights_k K_k``, raw, shape (len(rows), len(columns))."""
        return self.raw_rows(kernel_weights, rows)[:, columns]

    def raw_combined_matvec(self, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        parts = self.map(
            lambda rows: np.tensordot(kernel_weights, self.raw_block(rows), axes=1) @ V
        )
        return np.concatenate(parts, axis=0)

    # -- corrections ------------------------------------------------------------------------------

    def corrected(self, center: bool, normalize: str | None) -> BlockGrams:
        check_how(normalize)
        new = copy.copy(self)
        new.center, new.how = center, normalize
        new._correction = new._all_ones = None
        return new

    def stored(self, center: bool) -> Grams:
        from .stored import StoredGrams

        if not self.budget.allows(2.0 * self.p * self.n**2 * self.dtype.itemsize):
            return self
        return StoredGrams(self.corrected(center, None))

    def _omega(self) -> np.ndarray:
        return np.ones(self.n) if self.sample_weight is None else self.sample_weight

    def has_weights(self, sample_weight: np.ndarray | None) -> bool:
        """Whether these are the sample weights of the grams."""
        own = self.sample_weight
        if own is None or sample_weight is None:
            return own is sample_weight
        return np.array_equal(own, sample_weight)

    def statistics(self, products: bool = False) -> RawStatistics:
        """Raw statistics; computed at the first call, and again only if products are missing."""
        have = self._statistics
        if have is None or (products and have.products is None):
            have = self._pass(None, products, None)
        return have

    def _pass(
        self, Yc: np.ndarray | None, products: bool, also_combine: np.ndarray | None
    ) -> RawStatistics:
        """One pass over the raw kernels; the sums that do not depend on targets are cached."""
        found = self.raw_statistics(Yc, products, also_combine)
        self._refuse_overflow(found)
        self._statistics = replace(found, a=None, combined=None)
        return found

    def _target_statistics(
        self, Yc: np.ndarray, products: bool, also_combine: np.ndarray | None
    ) -> RawStatistics:
        """Statistics with the target products, from one pass if nothing is cached."""
        have = self._statistics
        if have is None or (products and have.products is None):
            return self._pass(Yc, products, also_combine)
        OY = self._omega()[:, None] * Yc
        return replace(have, a=np.einsum("knt,nt->k", self.raw_matvecs(OY), OY))

    def _refuse_overflow(self, stats: RawStatistics) -> None:
        good = np.isfinite(stats.row_sums).all(axis=1) & np.isfinite(stats.squares)
        if not good.all():
            raise ValueError(
                f"Kernel {self.names[int(np.argmin(good))]!r} overflows on the training data. "
                "Standardise the columns of X, or use a smaller gamma or degree."
            )

    def _means(self) -> tuple[np.ndarray, np.ndarray]:
        row_means = self.statistics().row_sums / self.total_weight
        return row_means, row_means @ self._omega() / self.total_weight

    def _centred_traces(self) -> np.ndarray:
        stats = self.statistics()
        _, g = self._means()
        return stats.diagonals @ self._omega() - self.total_weight * g

    def centred_products(self, products: bool) -> np.ndarray:
        """``<K_kc, K_lc>`` of the raw kernels, (p, p), or its diagonal (p,)."""
        stats = self.statistics(products=products)
        if self._centred is not None and (self._centred.ndim == 2 or not products):
            known = self._centred
            return known if products or known.ndim == 1 else np.diag(known)
        r, g = self._means()
        W = self.total_weight
        R = r if self.sample_weight is None else r * np.sqrt(self.sample_weight)
        # <Kc, Lc> = <K, L> - 2 W sum_i omega_i r_K[i] r_L[i] + W^2 g_K g_L
        squares = stats.squares - 2 * W * np.einsum("kn,kn->k", R, R) + (W * g) ** 2
        if np.any(stats.squares > self.one_pass_limit * squares):
            # If products were computed before, they will be needed again.
            full = products or stats.products is not None
            self._centred = self.raw_centred_products(r, g, full)
            return np.diag(self._centred) if full and not products else self._centred
        if not products:
            return squares
        assert stats.products is not None
        return stats.products - 2 * W * (R @ R.T) + W**2 * np.outer(g, g)

    @property
    def one_pass_limit(self) -> float:
        """The largest ``||K||^2 / ||Kc||^2`` for which the one-pass centring identity is used."""
        return ONE_PASS_LIMIT[self.dtype]

    @property
    def value_precisions(self) -> np.ndarray:
        """The relative precision of every kernel's values, shape (p,)."""
        return np.full(self.p, np.finfo(self.dtype).eps)

    @property
    def precision(self) -> float:
        return float(self.value_precisions.max())

    @property
    def rounding(self) -> np.ndarray:
        if self._raw_rounding is None:
            eps = self.value_precisions
            coarse = (eps > np.finfo(np.float64).eps) & ~self.known_psd
            norms = np.zeros(self.p)
            if np.any(coarse):
                norms = np.sqrt(add(self.map(lambda rows: _squares(self.raw_block(rows)))))
            self._raw_rounding = np.where(coarse, EIGENVALUE_ROUNDINGS * eps * norms, 0.0)
        c = self.correction
        longest = 1.0 if c.sphere is None else c.sphere.max(axis=1) ** 2
        return np.asarray(self._raw_rounding * c.scale * longest)

    @property
    def entry_errors(self) -> np.ndarray:
        # Centring subtracts row means that are as large as the raw values.
        c = self.correction
        longest = 1.0 if c.sphere is None else c.sphere.max(axis=1) ** 2
        raw = np.abs(self.statistics().diagonals).max(axis=1) * c.scale * longest
        corrected = np.abs(self.diagonals()).max(axis=1)
        return np.asarray(self.value_precisions * np.maximum(raw, corrected))

    @property
    def degenerate(self) -> np.ndarray:
        constant = self._constant_as_built()
        if self.how == "spherical" and not self.center:
            if self._all_ones is None:
                self._all_ones = self._constant_on_sphere(constant)
            return constant | self._all_ones
        return constant

    def _constant_on_sphere(self, constant: np.ndarray) -> np.ndarray:
        """Mask of kernels with ``K[i, j] = sqrt(K[i, i] K[j, j])``: all ones once normalised.

        The mean of a kernel with a diagonal of ones is 1 only if all entries are.
        """
        sphere = inverse_root(self.statistics().diagonals)
        first = sphere[:, :1] * np.asarray(self.raw_block(slice(0, 1)), dtype=np.float64)[:, 0]
        suspects = np.all(np.abs(first * sphere - 1.0) <= NEARLY_ONE, axis=1) & ~constant
        if not np.any(suspects):
            return suspects
        V = self._omega() * sphere

        def one(rows: slice) -> np.ndarray:
            K = np.asarray(self.raw_block(rows), dtype=np.float64)
            return np.einsum("krn,kr,kn->k", K, V[:, rows], V, optimize=True)

        means = add(self.map(one)) / self.total_weight**2
        return suspects & (np.abs(1.0 - means) <= 2 * 16 * self.value_precisions)

    def _constant_as_built(self) -> np.ndarray:
        if self._degenerate is None:
            stats = self.statistics()
            _, g = self._means()
            size = np.abs(stats.diagonals) @ self._omega() + self.total_weight * np.abs(g)
            eps = 16 * self.value_precisions
            constant = np.abs(self._centred_traces()) <= eps * size
            # An indefinite kernel may have trace zero without being constant: check its norm.
            if np.any(constant & ~self.known_psd):
                norms = np.sqrt(np.maximum(self.centred_products(False), 0.0))
                constant &= self.known_psd | (norms <= eps * np.sqrt(stats.squares))
            self._degenerate = constant
        return self._degenerate

    @property
    def scales(self) -> np.ndarray:
        return self.correction.scale

    @property
    def correction(self) -> Correction:
        """Centring and normalisation as one affine correction."""
        if self._correction is None:
            self._correction = self._make_correction()
        return self._correction

    def _make_correction(self) -> Correction:
        if not self.center and self.how is None:
            return Correction(None, None, np.where(self.degenerate, 0.0, 1.0))
        stats = self.statistics()
        r, g = self._means()
        centred_traces = self._centred_traces()
        traces, diagonals = centred_traces, stats.diagonals - 2 * r + g[:, None]
        if not self.center:
            traces, diagonals = stats.diagonals @ self._omega(), stats.diagonals
        elif self.how == "trace-first":
            traces = (stats.diagonals + self.removed_diagonals()) @ self._omega()
        norms = None
        if self.how == "frobenius":
            squares = self.centred_products(False) if self.center else stats.squares
            norms = np.sqrt(np.maximum(squares, 0.0))
        scale = scales(
            self.how,
            traces,
            centred_traces / self.total_weight,
            norms,
            self.degenerate,
            list(self.names),
        )
        sphere = noise = None
        if self.how == "spherical":
            # A diagonal entry within rounding error belongs to a sample at the centre, which stays
            # there. The rounding error is relative to the terms of the difference.
            noise = np.zeros(self.p)
            if self.center:
                terms = np.abs(stats.diagonals) + 2 * np.abs(r) + np.abs(g)[:, None]
                noise = 16 * self.value_precisions * terms.max(axis=1)
            self._refuse_negative_diagonals(diagonals, noise)
            sphere = inverse_root(np.where(diagonals > noise[:, None], diagonals, 0.0))
        if not self.center:
            return Correction(None, None, scale, sphere, noise)
        return Correction(r, g, scale, sphere, noise)

    def _refuse_negative_diagonals(self, diagonals: np.ndarray, noise: np.ndarray) -> None:
        lowest = np.where(self.degenerate, 0.0, diagonals.min(axis=1))
        for k in np.flatnonzero(lowest < -1e3 * noise).tolist():
            raise ValueError(
                f"Kernel {self.names[k]!r} has a diagonal entry of {lowest[k]:.3g} on the training "
                "data, so it is not positive semidefinite and does not allow 'spherical' "
                "normalisation. Drop the kernel, or repair its matrix."
            )

    # -- the passes -------------------------------------------------------------------------------

    def block(self, index: slice | np.ndarray) -> np.ndarray:
        if isinstance(index, slice):
            raw = self.raw_block(index)
        else:
            everything = self.raw_cross(np.arange(self.n), np.arange(self.p))
            raw = everything.block(self.points(index))
        return self.correction.apply(np.asarray(raw, dtype=np.float64), index)

    def diagonals(self) -> np.ndarray:
        c = self.correction
        known = self._statistics
        d = self.raw_diagonals() if known is None else known.diagonals
        d = d.astype(np.float64)
        if c.row_means is not None and c.grand_means is not None:
            d = d - 2 * c.row_means + c.grand_means[:, None]
        if c.sphere is not None:
            d = d * c.sphere**2
        return d * c.scale[:, None]

    def summary(
        self, Y: np.ndarray, products: bool = True, also_combine: np.ndarray | None = None
    ) -> Summary:
        if self.how == "spherical":  # changes entries, not kernels: no affine statistics
            return super().summary(Y, products)
        if also_combine is not None and not self.budget.allows(8.0 * self.n**2):
            also_combine = None
        Yc = center_targets(Y, self.sample_weight)
        found = self._target_statistics(Yc, products, also_combine)
        assert found.a is not None
        M = self.centred_products(products)
        scale = self.correction.scale
        squares = np.diag(M) if products else M
        combined = None
        if also_combine is not None and found.combined is not None:
            combined = BlockCombined.of_raw(self, also_combine, found.combined)
        return Summary(
            traces=self.diagonals() @ self._omega(),
            norms=np.sqrt(np.maximum(squares, 0.0)) * scale,
            a=found.a * scale,
            M=scale_products(M, scale) if products else None,
            target_norm=target_norm(Yc, self.sample_weight),
            combined=combined,
        )

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        return BlockCombined(self, np.asarray(kernel_weights, dtype=np.float64))

    def matvecs(self, V: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        c = self.correction
        V = np.asarray(V, dtype=np.float64)
        if c.sphere is not None:
            out = np.concatenate(self.map(lambda rows: self.block(rows) @ V), axis=1)
            return out if at is None else out[:, at]
        out = self._raw_matvecs_at(V, at)
        if c.row_means is not None and c.grand_means is not None:
            r = c.row_means if at is None else c.row_means[:, at]
            total = V.sum(axis=0)
            out -= r[:, :, None] * total
            out -= (c.row_means @ V)[:, None, :]
            out += (c.grand_means[:, None] * total)[:, None, :]
        out *= c.scale[:, None, None]
        return out

    def _raw_matvecs_at(self, V: np.ndarray, at: np.ndarray | None) -> np.ndarray:
        if at is None:
            return self.raw_matvecs(V)
        # A sparse predictor evaluated at its own support needs far fewer than n^2 entries.
        support = np.flatnonzero(np.any(V != 0, axis=1))
        if not np.array_equal(at, support):
            return self.raw_matvecs(V)[:, at]
        if not len(support):
            return np.zeros((self.p, 0, V.shape[1]))
        return self.raw_support_matvecs(V, support)

    def raw_support_matvecs(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        """``K_k V`` of the raw kernels at the support, (p, |support|, t); V is zero elsewhere."""
        return self.raw_matvecs(V)[:, support]

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        c = self.correction
        if c.sphere is not None:
            return super().inner_products(G)
        found = self.raw_inner_products(G)
        if c.row_means is not None and c.grand_means is not None:
            margins = G.sum(axis=0) + G.sum(axis=1)
            found = found - c.row_means @ margins + c.grand_means * G.sum()
        return np.asarray(found * c.scale)

    def raw_inner_products(self, G: np.ndarray) -> np.ndarray:
        """``sum_ij G[i, j] K_k[i, j]`` of the raw kernels, shape (p,)."""

        def one(rows: slice) -> np.ndarray:
            return np.einsum(
                "krn,rn->k", np.asarray(self.raw_block(rows), dtype=np.float64), G[rows]
            )

        return add(self.map(one))

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        return BlockExpansion(self, np.asarray(kernel_weights, dtype=np.float64), coef)


class BlockCombined(MatrixGram):
    """``sum_k w_k K_k``: one raw combination and a correction of rank two."""

    #: a raw combination computed by a statistics pass, and the factor still to be applied to it
    _raw: np.ndarray | None = None
    _raw_factor = 1.0

    def __init__(self, grams: BlockGrams, kernel_weights: np.ndarray) -> None:
        self.grams, self.kernel_weights, self.n = grams, kernel_weights, grams.n
        self.room, self.n_jobs = grams.budget.bytes, grams.n_jobs
        self.rounding = float(np.abs(kernel_weights) @ grams.rounding)
        self.precision = grams.precision
        c = grams.correction
        self.raw_weights = kernel_weights * c.scale
        self.row_mean = np.zeros(self.n)
        self.grand_mean = 0.0
        if c.row_means is not None and c.grand_means is not None:
            self.row_mean = self.raw_weights @ c.row_means
            self.grand_mean = float(self.raw_weights @ c.grand_means)
        self.spherical = c.sphere is not None

    @classmethod
    def of_raw(
        cls, grams: BlockGrams, raw_weights: np.ndarray, matrix: np.ndarray
    ) -> BlockCombined | None:
        """The operator of a known raw combination; None if a constant kernel is part of it."""
        scale = grams.correction.scale
        if np.any((raw_weights != 0) & (scale == 0)):
            return None
        new = cls(grams, np.divide(raw_weights, scale, out=np.zeros(grams.p), where=scale > 0))
        new._raw = matrix
        return new

    def scaled(self, factor: float) -> BlockCombined:
        new = BlockCombined(self.grams, factor * self.kernel_weights)
        # An operator may overwrite its matrix, so two of them must not share it.
        new._raw, self._raw = self._raw, None
        new._raw_factor = factor * self._raw_factor
        return new

    def fits(self, copies: int = 1) -> bool:
        return super().fits(copies - (self._raw is not None))

    def forget(self) -> None:
        super().forget()
        self._raw = None

    def _rows(self, index: np.ndarray) -> np.ndarray:
        if self.spherical:
            one = [self.grams.block(slice(i, i + 1)) for i in index.tolist()]
            return np.concatenate(
                [np.tensordot(self.kernel_weights, block, axes=1) for block in one]
            )
        K = self.grams.raw_rows(self.raw_weights, index)
        K -= self.row_mean[index, None]
        K -= self.row_mean[None, :] - self.grand_mean
        return K

    def rows(self, index: slice | np.ndarray) -> np.ndarray:
        if self.spherical and self._matrix is None and isinstance(index, slice):
            return np.tensordot(self.kernel_weights, self.grams.block(index), axes=1)
        return super().rows(index)

    def _submatrix(self, index: np.ndarray) -> np.ndarray:
        if self.spherical:
            return super()._submatrix(index)
        K = self.grams.raw_among(self.raw_weights, index)
        K -= self.row_mean[index, None]
        K -= self.row_mean[index] - self.grand_mean
        return K

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self._matrix is not None or self.spherical or not len(rows):
            return super().entries(rows, columns)
        K = self.grams.raw_between(self.raw_weights, rows, columns)
        K -= self.row_mean[rows, None]
        K -= self.row_mean[columns] - self.grand_mean
        return K

    def _dense(self) -> np.ndarray:
        grams = self.grams
        if self._raw is not None:
            K, self._raw = self._raw, None
            if grams.center:
                recentre(K, self._raw_factor, self.row_mean, self.grand_mean)
            elif self._raw_factor != 1.0:
                K *= self._raw_factor
            return K
        grams.budget.require(
            8.0 * self.n**2,
            f"The combined Gram matrix of {self.n} samples",
            "Raise memory_budget, or use fewer samples.",
        )
        if self.spherical:
            return np.concatenate(grams.map(self.rows), axis=0)
        if not grams.center:
            return grams.raw_combine(self.raw_weights)
        return grams.raw_combine_centred(self.raw_weights, self.row_mean, self.grand_mean)

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        if self.spherical:
            out = np.concatenate(self.grams.map(lambda rows: self.rows(rows) @ V2), axis=0)
        else:
            out = self._centred(self.grams.raw_combined_matvec(self.raw_weights, V2), V2)
        return out.reshape(np.shape(V))

    def _centred(self, out: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Turn ``out``, products with the raw combination, into those with the centred one."""
        total = V.sum(axis=0)
        out -= self.row_mean[:, None] * total
        out -= self.row_mean @ V - self.grand_mean * total
        return out

    def diagonal(self) -> np.ndarray:
        return self.kernel_weights @ self.grams.diagonals()

    def known_centred(self, sample_weight: np.ndarray | None) -> bool:
        grams = self.grams
        return grams.center and not self.spherical and grams.has_weights(sample_weight)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        known = self.grams._statistics
        told = known is not None and known.totals is not None
        if (self._matrix is None or told) and not self.spherical:
            sums = self.grams.raw_combined_sums(self.raw_weights, sample_weight)
            if sums is not None:
                row_sums, square = sums
                total = self.n if sample_weight is None else sample_weight.sum()
                centred = centred_square(row_sums / total, square, sample_weight)
                if square <= self.grams.one_pass_limit * centred:
                    return float(np.sqrt(centred))
        return super().centred_norm(sample_weight)


class BlockExpansion(Expansion):
    """Prediction with affine corrections folded into constants where this is exact.

    With ``s = w scale`` and ``m_k(x)`` the mean of ``K_k(x, .)`` over the training sample,

        f_k(x) = s_k (K_k(x, .) c - m_k(x) 1'c - r_k'c + g_k 1'c).

    Without centring, or with coefficients that sum to zero (every learner with a free intercept),
    m_k(x) drops out, and only samples with a non-zero coefficient are kept. Otherwise, and for
    centred kernels with spherical normalisation, all training samples are.
    """

    def __init__(self, grams: BlockGrams, kernel_weights: np.ndarray, coef: np.ndarray) -> None:
        coef = np.asarray(coef, dtype=np.float64).reshape(grams.n, -1)
        c = grams.correction
        self.n_kernels = grams.p
        self.active = np.flatnonzero((kernel_weights != 0) & (c.scale != 0))
        self.spherical = c.sphere is not None
        if not len(self.active):
            coef = np.zeros_like(coef)  # a function without kernels needs no samples
        centred = c.row_means is not None and len(self.active) > 0
        total = coef.sum(axis=0)
        negligible = 1e-12 * np.abs(coef).sum(axis=0)
        self.needs_means = centred and (self.spherical or bool(np.any(np.abs(total) > negligible)))
        rows = np.arange(grams.n)
        if not self.needs_means:
            rows = np.flatnonzero(np.any(coef != 0, axis=1))
            total = np.zeros_like(total)
        self.rows = rows
        self.cross = grams.raw_cross(rows, self.active)
        self.coef = coef[rows]
        self.weights = kernel_weights[self.active]
        self.scale = c.scale[self.active]
        self.mean_weights = grams._omega() / grams.total_weight if self.needs_means else None
        # -r'c + g 1'c, per kernel and output
        self.offsets = np.zeros((len(self.active), coef.shape[1]))
        self.correction: Correction | None = None
        if self.spherical:
            self.correction = Correction(
                None if c.row_means is None else c.row_means[np.ix_(self.active, rows)],
                None if c.grand_means is None else c.grand_means[self.active],
                self.scale,
                c.sphere[np.ix_(self.active, rows)],  # type: ignore[index]
                c.noise[self.active],  # type: ignore[index]
            )
        elif c.row_means is not None and c.grand_means is not None:
            self.offsets = np.outer(c.grand_means[self.active], total)
            self.offsets -= c.row_means[np.ix_(self.active, rows)] @ self.coef
        self.total = total

    def state(self) -> dict[str, Any]:
        return {**vars(self), "cross": self.cross.slim(diagonals=self.spherical)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BlockExpansion:
        cross, coef, means = state["cross"], state["coef"], state["mean_weights"]
        require_sizes(coef.ndim == 2 and len(coef) == cross.n_anchors, "coefficients and anchors")
        fit = len(state["weights"]) == len(state["scale"]) == len(state["active"]) == cross.p
        require_sizes(fit, "kernel weights and kernels")
        require_sizes(means is None or means.shape == (len(coef),), "weights of means")
        return super().from_state(state)

    @property
    def encoding(self) -> Hashable:
        return id(self.cross if self.cross.encoder is None else self.cross.encoder)

    def encode(self, X: Any) -> Any:
        return self.cross.encode(X)

    def release(self) -> None:
        self.cross.release()

    def _chunks(self, points: Any, width: int) -> list[Any]:
        size = max(1, self.cross.chunk_entries // max(width, 1))
        n = points.shape[0]
        return [points[i : i + size] for i in range(0, n, size)] or [points]

    def values(self, points: Any) -> np.ndarray:
        if self.spherical:
            return self.shares(points).sum(axis=1)
        s = self.weights * self.scale
        V = self.coef
        if self.mean_weights is not None:
            V = np.column_stack([V, self.mean_weights])
        out = []
        for chunk in self._chunks(points, self.cross.n_anchors):
            if len(s) == 1:  # a product with one kernel needs no matrix of kernel values
                f = s[0] * self.cross.apply(chunk, V)[0]
            else:
                f = self.cross.combined(chunk, s, V)
            if self.mean_weights is not None:
                f = f[:, :-1] - f[:, -1:] * self.total
            out.append(f)
        return np.concatenate(out, axis=0) + s @ self.offsets

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        if self.spherical:
            return super().gradients(X, steps)
        coef = self.coef
        if self.mean_weights is not None:
            coef = coef - np.outer(self.mean_weights, self.total)
        out = []
        for chunk in self._chunks(X, self.cross.n_anchors):
            found = self.cross.gradients(chunk, self.weights * self.scale, coef, steps)
            out.append(super().gradients(chunk, steps) if found is None else found)
        return np.concatenate(out)

    def shares(self, points: Any) -> np.ndarray:
        out = []
        for chunk in self._chunks(points, self.cross.n_anchors * len(self.active)):
            out.append(self._spherical(chunk) if self.spherical else self._affine(chunk))
        active = np.concatenate(out, axis=1)
        shares = np.zeros((active.shape[1], self.n_kernels, active.shape[2]))
        shares[:, self.active] = (active * self.weights[:, None, None]).transpose(1, 0, 2)
        return shares

    def _affine(self, points: Any) -> np.ndarray:
        V = self.coef
        if self.mean_weights is None:
            f = self.cross.apply(points, V) + self.offsets[:, None, :]
        else:
            f = self.cross.apply(points, np.column_stack([V, self.mean_weights]))
            f = f[:, :, :-1] - f[:, :, -1:] * self.total + self.offsets[:, None, :]
        return np.asarray(f * self.scale[:, None, None])

    def _spherical(self, points: Any) -> np.ndarray:
        assert self.correction is not None
        if not len(self.active):  # constant kernels only
            return np.zeros((0, points.shape[0], self.coef.shape[1]))
        K = np.asarray(self.cross.block(points), dtype=np.float64)
        means = None if self.mean_weights is None else K @ self.mean_weights
        K = self.correction.apply_new(K, means, self.cross.diagonals(points))
        return K @ self.coef


def _squares(block: np.ndarray) -> np.ndarray:
    """Sums of squares of every kernel in a block (p, r, n), in float64."""
    return np.einsum("krn,krn->k", block, block, dtype=np.float64)


def scale_products(M: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``scale_k scale_l M_kl``, also where a product of two scales overflows."""
    with np.errstate(over="ignore"):
        both = np.outer(scale, scale)
    return M * both if np.isfinite(both).all() else (M * scale) * scale[:, None]
