"""The waist: the passes through which algorithms read a bank evaluated on one training sample.

Code above the waist defines the kernels; code below it calls only the passes of :class:`Grams`,
:class:`CombinedGram` and :class:`Expansion`. Memory layout, threads and devices belong to the
implementations ("engines", :mod:`multikernel.grams.engines`).

An engine supplies the abstract methods. Every other method has a default that is written in terms
of these, and an engine overrides the defaults that its structure makes cheaper.

Sample weights ``omega`` are part of the sample: every statistic is that of the sample in which
sample i appears ``omega_i`` times. With ``W = sum omega`` the centred kernel is

    Kc[i, j] = K[i, j] - r[i] - r[j] + g,   r = K omega / W,   g = omega' K omega / W^2

and inner products are ``<K, L> = sum_ij omega_i omega_j K[i, j] L[i, j]``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy as shallow_copy
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from .. import _cholesky
from .low_rank_inverse import LowRankInverse
from .normalise import check_how, scales
from .operators import EigenvalueBounds, conjugate_gradients, extreme_eigenvalues
from .pivoted_cholesky import pivoted_cholesky

T = TypeVar("T")

# A panel of rows is the unit in which passes read the bank. Its height depends on the problem
# alone, never on threads or memory, so that sums are the same bits however the work is divided.
PANEL_BYTES = 64 * 2**20
MAX_PANEL_ROWS = 128
#: Columns per block in `CombinedGram.partial_matvec`.
PARTIAL_COLUMNS = 512
#: Rows per panel when computing the norm of a combination.
NORM_PANEL_ROWS = 64
#: Entries are centred before squaring if centring leaves less than this fraction of the square.
CANCELLATION_LIMIT = 1e-4
#: A kernel counts as constant if centring leaves less than this fraction of its trace (rounding).
CONSTANT_TRACE_LIMIT = 16 * float(np.finfo(np.float64).eps)


class Stateful:
    """An object that a model file stores by its attributes."""

    def state(self) -> dict[str, Any]:
        """The attributes to store, no more than prediction needs."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The object with these attributes; a ValueError says what does not fit."""
        new = cls.__new__(cls)
        new.__dict__.update(state)
        return new


def require_sizes(fit: bool, what: str) -> None:
    """Raise ValueError unless the sizes of stored attributes ``fit``; ``what`` names them."""
    if not fit:
        raise ValueError(f"the sizes of its parts do not fit each other: {what}")


@dataclass(frozen=True)
class Summary:
    """Traces, norms and inner products of the normalised kernels; alignment rules read these.

    Attributes
    ----------
    traces : array of shape (p,)
        ``sum_i omega_i K_k[i, i]`` of the kernels as they are handed to a learner.
    norms : array of shape (p,)
        ``||K_kc||_F``, always of the centred kernels.
    a : array of shape (p,)
        ``a_k = <K_kc, Y Y'>``.
    M : array of shape (p, p), or None without ``products``
        ``M_kl = <K_kc, K_lc>``.
    target_norm : float
        ``||(Y Y')_c||_F``; ``||y_c||^2`` for a single target.
    combined : CombinedGram or None
        The combination requested by ``also_combine``, if the same pass could compute it.
    """

    traces: np.ndarray
    norms: np.ndarray
    a: np.ndarray
    M: np.ndarray | None
    target_norm: float
    combined: CombinedGram | None = None

    @property
    def alignments(self) -> np.ndarray:
        """The centred alignment of each kernel with the target; 0 where it is undefined."""
        size = self.norms * self.target_norm
        return np.divide(self.a, size, out=np.zeros_like(self.a), where=size > 0)

    def alignment(self, kernel_weights: np.ndarray) -> float:
        """The centred alignment of ``sum_k kernel_weights_k K_k`` with the target; needs M."""
        if self.M is None:
            raise ValueError("The alignment of a combination needs summary(..., products=True).")
        square = float(kernel_weights @ self.M @ kernel_weights)
        size = np.sqrt(max(square, 0.0)) * self.target_norm
        return float(kernel_weights @ self.a) / size if size > 0 else 0.0


class CombinedGram(ABC):
    """The Gram operator of one combination ``K = sum_k w_k K_k`` on the training sample.

    An engine supplies `matvec` and `diagonal`, or `features` with "features" in `extras`.
    """

    n: int
    #: the kernel weights of the combination, shape (p,)
    kernel_weights: np.ndarray
    #: Bytes that may be allocated for this operator.
    room: float = float("inf")
    #: Threads that products with a matrix in memory may use.
    n_jobs: int = 1
    #: Whether entries are computed on another device, which is fast in large blocks only.
    on_device: bool = False
    #: Whether products cost less than those with a dense matrix, because there are features.
    fast_products: bool = False
    #: Whether `rough_matvec` is faster than `matvec`.
    rough_products: bool = False
    #: Negative eigenvalues down to minus this number count as rounding error (`Grams.rounding`).
    rounding: float = 0.0
    #: Rounding error of the entries, relative to the size of the largest one.
    precision: float = float(np.finfo(np.float64).eps)
    #: Offers of the engine beyond those of every operator, see `offers`.
    extras: frozenset[str] = frozenset()
    _matrix: np.ndarray | None = None

    @property
    def offers(self) -> frozenset[str]:
        """The methods that may be called now; learners compare this with their needs.

        These are the methods with a default, "dense" where there is room for the matrix, and the
        `extras` of the engine: "features" when it has them, "factor" when its `solve` is direct
        and not iterative. An engine leaves out methods that it cannot supply.
        """
        basic = {"matvec", "diagonal", "rows", "columns", "entries", "submatrix"}
        basic |= {"partial_matvec", "solve", "solve_among", "lowest_eigenvalue"}
        return self.extras | basic | ({"dense"} if self.fits() else set())

    def fits(self, copies: int = 1) -> bool:
        """Whether there is room for the matrix, and for further copies of it."""
        needed = copies - (self._matrix is not None)
        return needed <= 0 or 8.0 * needed * self.n**2 <= self.room

    def matvec(self, V: np.ndarray) -> np.ndarray:
        """``K V`` for V of shape (n,) or (n, t), in float64."""
        F = self.features()
        return np.asarray(F @ (F.T @ V))

    def rough_matvec(self, V: np.ndarray) -> np.ndarray:
        """``K V`` in lower precision, if that is faster; for iterations that check their result."""
        return self.matvec(V)

    def diagonal(self) -> np.ndarray:
        """``K[i, i]``, shape (n,)."""
        return np.asarray(np.sum(self.features() ** 2, axis=1))

    def known_centred(self, sample_weight: np.ndarray | None) -> bool:
        """Whether the way K is computed makes its rows sum to zero under these sample weights.

        False if that is not known without computing the sums.
        """
        return False

    def rows(self, index: slice | np.ndarray) -> np.ndarray:
        """Rows of K, in any order, shape (len(index), n)."""
        chosen = as_positions(index, self.n)
        if "features" in self.extras:
            F = self.features()
            return np.asarray(F[chosen] @ F.T)
        units = np.zeros((self.n, len(chosen)))
        units[chosen, np.arange(len(chosen))] = 1.0
        return np.ascontiguousarray(self.matvec(units).T)

    def columns(self, index: slice | np.ndarray) -> np.ndarray:
        """Columns of K, in any order, shape (n, len(index)); by default K is symmetric."""
        return self.rows(index).T

    def submatrix(self, index: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """``K[index][:, index]``, shape (len(index), len(index)); a copy."""
        return self.rows(index)[:, index].astype(dtype, copy=False)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """``K[rows][:, columns]``, shape (len(rows), len(columns)); a copy."""
        return np.asarray(self.rows(rows)[:, columns], dtype=np.float64)

    def partial_matvec(self, index: np.ndarray, V: np.ndarray) -> np.ndarray:
        """``K[:, index] V`` for V of shape (len(index),) or (len(index), t), in float64."""
        out = np.zeros((self.n, *np.shape(V)[1:]))
        for start in range(0, len(index), PARTIAL_COLUMNS):
            part = slice(start, start + PARTIAL_COLUMNS)
            out += self.columns(index[part]) @ V[part]
        return out

    def solve_among(
        self, index: np.ndarray, ridge: float | np.ndarray, B: np.ndarray
    ) -> np.ndarray:
        """The solution X of ``(K[index][:, index] + diag(ridge)) X = B``, by a Cholesky factor.

        Raises LinAlgError if that matrix is not positive definite in double precision.
        """
        A = self.submatrix(index)
        A[np.diag_indices(len(index))] += ridge
        _cholesky.factor(A)
        _cholesky.require_definite(A)
        return _cholesky.solve(A, B)

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The solution X of ``(K + diag(ridge)) X = B``, shape of B; ridge has shape (n,)."""
        return conjugate_gradients(self.matvec, self.diagonal(), ridge, B)

    def low_rank_inverse(self, ridge: np.ndarray, rank: int, **options: Any) -> LowRankInverse:
        """Products with the inverse of ``F F' + diag(ridge)``, where ``K ~ F F'`` has low rank.

        The options are those of :func:`.pivoted_cholesky.pivoted_cholesky`.
        """
        found = pivoted_cholesky(
            self.columns, self.diagonal(), rank, submatrix=self.submatrix, **options
        )
        return LowRankInverse(found, ridge)

    def lowest_eigenvalue(self, *, rough: bool = False) -> EigenvalueBounds:
        """Smallest and largest eigenvalue, or a proof that none is negative beyond rounding.

        With ``rough`` a looser proof is enough, if it is cheaper.
        """
        if "features" in self.extras:  # K = F F'
            return EigenvalueBounds(0.0, float(np.sum(self.diagonal())), True)
        return extreme_eigenvalues(self.matvec, self.n, self.rounding)

    def scaled(self, factor: float) -> CombinedGram:
        """``factor * K``; the operator itself must not be used afterwards."""
        return ScaledGram(self, factor)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        """Frobenius norm of K centred under sample weights, streamed over its rows."""
        omega = np.ones(self.n) if sample_weight is None else sample_weight
        total = omega.sum()
        panels = norm_panels(self.n)
        row_sums, square = np.empty(self.n), 0.0
        for panel in panels:
            K = self.rows(panel)
            row_sums[panel] = K @ omega
            square += float(omega[panel] @ (K**2 @ omega))
        row_means = row_sums / total
        centred = centred_square(row_means, square, sample_weight)
        if centred > CANCELLATION_LIMIT * square:
            return float(np.sqrt(centred))
        return self.norm_of_centred_entries(row_means, omega, panels)

    def norm_of_centred_entries(
        self, row_means: np.ndarray, omega: np.ndarray, panels: Sequence[slice]
    ) -> float:
        """The same norm with every entry centred before it is squared: no cancellation."""
        grand_mean = float(omega @ row_means) / omega.sum()
        square = 0.0
        for panel in panels:
            K = self.rows(panel) - row_means[panel, None] - (row_means - grand_mean)
            square += float(omega[panel] @ (K**2 @ omega))
        return float(np.sqrt(square))

    # -- optional: only where `offers` says so ----------------------------------------------------

    def dense(self) -> np.ndarray:
        """The whole matrix, float64, shape (n, n); it is cached and must not be written to."""
        if self._matrix is None:
            self._matrix = self.rows(slice(0, self.n))
        return self._matrix

    def features(self) -> np.ndarray:
        """A matrix F of shape (n, D) with ``K = F F'``."""
        raise NotImplementedError(f"{type(self).__name__} has no explicit features.")

    def forget(self) -> None:
        """Free cached memory; its contents are computed again when needed."""
        self._matrix = None


class SummedGram(CombinedGram):
    """``sum_k w_k K_k`` through the passes of any grams."""

    def __init__(self, grams: Grams, kernel_weights: np.ndarray) -> None:
        self.grams, self.n = grams, grams.n
        self.kernel_weights = np.asarray(kernel_weights, dtype=np.float64)
        self.rounding = float(np.abs(self.kernel_weights) @ grams.rounding)
        self.precision = grams.precision

    def matvec(self, V: np.ndarray) -> np.ndarray:
        each = self.grams.matvecs(np.reshape(V, (self.n, -1)))
        return np.tensordot(self.kernel_weights, each, axes=1).reshape(np.shape(V))

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.kernel_weights @ self.grams.diagonals())


class ScaledGram(CombinedGram):
    """``factor * K`` of another operator, for a positive factor."""

    def __init__(self, gram: CombinedGram, factor: float) -> None:
        self.gram, self.factor = gram, factor
        self.n, self.room, self.extras = gram.n, gram.room, gram.extras
        self.n_jobs, self.on_device = gram.n_jobs, gram.on_device
        self.fast_products, self.rough_products = gram.fast_products, gram.rough_products
        self.kernel_weights = factor * gram.kernel_weights
        self.rounding, self.precision = factor * gram.rounding, gram.precision

    @property
    def offers(self) -> frozenset[str]:
        return self.gram.offers

    def features(self) -> np.ndarray:
        return np.sqrt(self.factor) * self.gram.features()

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        return self.gram.solve(ridge / self.factor, B) / self.factor

    def solve_among(
        self, index: np.ndarray, ridge: float | np.ndarray, B: np.ndarray
    ) -> np.ndarray:
        return self.gram.solve_among(index, ridge / self.factor, B) / self.factor

    def matvec(self, V: np.ndarray) -> np.ndarray:
        return self.factor * self.gram.matvec(V)

    def rough_matvec(self, V: np.ndarray) -> np.ndarray:
        return self.factor * self.gram.rough_matvec(V)

    def partial_matvec(self, index: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.factor * self.gram.partial_matvec(index, V)

    def rows(self, index: slice | np.ndarray) -> np.ndarray:
        return self.factor * self.gram.rows(index)

    def columns(self, index: slice | np.ndarray) -> np.ndarray:
        return self.factor * self.gram.columns(index)

    def submatrix(self, index: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        found = self.gram.submatrix(index, dtype)
        found *= self.factor  # in place: it is a copy, and keeps its type
        return found

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.factor * self.gram.entries(rows, columns)

    def known_centred(self, sample_weight: np.ndarray | None) -> bool:
        return self.gram.known_centred(sample_weight)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        return self.factor * self.gram.centred_norm(sample_weight)

    def diagonal(self) -> np.ndarray:
        return self.factor * self.gram.diagonal()


class Expansion(Stateful, ABC):
    """A fitted function ``f(x) = sum_k w_k sum_j c_j K_k(x, x_j)``, without the training Grams.

    It holds only what prediction needs: the samples with a coefficient and the kernels with a
    weight. Model files store its `state`, and rebuild it with `from_state` if its class is known to
    them (:func:`multikernel.files.register`).
    """

    n_kernels: int

    @property
    def encoding(self) -> Hashable:
        """A key: expansions with equal keys read the same encoding of new inputs.

        By default an expansion shares its encoding with no other. Keys are compared only while the
        expansions exist, so the id of an object that they hold is a valid key.
        """
        return id(self)

    @abstractmethod
    def encode(self, X: Any) -> Any:
        """New inputs in the form that :meth:`values` and :meth:`shares` read."""

    def values(self, points: Any) -> np.ndarray:
        """f at new samples, shape (n_new, t): the sum of the shares, computed together."""
        return np.asarray(self.shares(points).sum(axis=1))

    @abstractmethod
    def shares(self, points: Any) -> np.ndarray:
        """Each kernel's part of f at new samples, shape (n_new, p, t)."""

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        """Derivatives of f in the columns of X at new samples, shape (n_new, n_features, t).

        By default central differences with these steps (n_features,), at the price of two
        predictions for every column; a step of zero leaves the column out. Implementations with
        exact derivatives ignore the steps.
        """
        from ..kernels.derivatives import stepped_down

        X = np.array(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        out: np.ndarray | None = None
        for j in range(X.shape[1]):
            up, down = X.copy(), X.copy()
            up[:, j] += steps[j]
            down[:, j] = stepped_down(X[:, j], steps[j])
            change = self.values(self.encode(up)) - self.values(self.encode(down))
            if out is None:
                out = np.zeros((*X.shape, change.shape[1]))
            if steps[j] > 0:
                out[:, j] = change / (up[:, j] - down[:, j])[:, None]
        assert out is not None
        return out

    def release(self) -> None:
        """Drop cached training matrices, which only predictions for training samples need."""


class FeatureColumns(Protocol):
    """The features of rank-one kernels ``K_k = u_k u_k'``, scaled and centred as they are used."""

    def products(self, s: np.ndarray) -> np.ndarray:
        """``u_k' s`` of every feature, shape (p,) for s of shape (n,)."""
        ...

    def values(self, beta: np.ndarray) -> np.ndarray:
        """``sum_k beta_k u_k``, shape (n, 1) for beta of shape (p,)."""
        ...

    def columns(self, kernels: np.ndarray) -> tuple[Any, np.ndarray]:
        """Some features as ``columns - shift``: a dense or sparse matrix, and the shifts."""
        ...

    def centred(self) -> np.ndarray:
        """All features with zero weighted mean, dense, shape (n, p): ``K_kc = u u'``."""
        ...


class Grams(ABC):
    """A bank evaluated on one training sample, seen only through passes over it.

    As built, the kernels are neither centred nor normalised; :meth:`corrected` makes a view that
    is.
    """

    #: the kind of kernels that this implementation serves, as a plan prints it
    kind: str = "grams"
    #: whether all kernels of this implementation are positive semidefinite by construction
    always_psd: bool = False
    #: the arguments of :meth:`corrected`
    center: bool = False
    how: str | None = None
    _constant: np.ndarray | None = None
    _scales: np.ndarray | None = None
    #: traces of the kernels as built, needed for ``how = "trace-first"``
    _first_traces: np.ndarray | None = None

    def __init__(
        self,
        n: int,
        names: Sequence[str],
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.n = n
        self.p = len(names)
        self.names = names
        self.sample_weight = sample_weight
        self.n_jobs = n_jobs

    # -- facts --

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights; n without weights."""
        return float(self.n if self.sample_weight is None else self.sample_weight.sum())

    @property
    def degenerate(self) -> np.ndarray:
        """Mask (p,) of kernels that are constant on the sample: centred, they are zero."""
        if self._constant is None:
            self._constant = constant_kernels(self)
        return self._constant

    @property
    def known_psd(self) -> np.ndarray:
        """Mask (p,) of kernels that are positive semidefinite by construction."""
        return np.full(self.p, self.always_psd)

    @property
    def rounding(self) -> np.ndarray:
        """Estimated error of the eigenvalues from rounding of kernel values, shape (p,).

        The default, zero, is for kernels in double precision, whose rounding is covered by the
        relative tolerance of the definiteness check.
        """
        return np.zeros(self.p)

    @property
    def precision(self) -> float:
        """Rounding error of kernel entries, relative to their size: that of float64 by default."""
        return float(np.finfo(np.float64).eps)

    @property
    def entry_errors(self) -> np.ndarray:
        """Estimated rounding error of the entries of every kernel, shape (p,)."""
        return self.precision * np.abs(self.diagonals()).max(axis=1)

    @property
    def scales(self) -> np.ndarray:
        """The factors (p,) by which normalisation multiplies the kernels; 0 for constant ones.

        The default computes them at the first call, from the kernels as they are then. An engine
        that uses it must make this call in `corrected`, after centring and before scaling.
        """
        if self._scales is None:
            self._scales = normalising_scales(self)
        return self._scales

    # -- other views of the sample --

    @abstractmethod
    def corrected(self, center: bool, normalize: str | None) -> Grams:
        """The same kernels centred (or not) and normalised; statistics are computed lazily."""

    def view(self, center: bool, normalize: str | None) -> Self:
        """A copy with these settings; `corrected` must still centre and scale its kernels."""
        check_how(normalize)
        new = shallow_copy(self)
        new.center, new.how = center, normalize
        new._constant, new._scales = self.degenerate, None  # constants stay constant
        if not (self.center or self.how):
            new._first_traces = weighted_traces(self)
        return new

    def accurate(self) -> Grams:
        """The same kernels, centred and normalised as these are, with more accurate values.

        Duality gaps are computed from these where an engine uses single precision, or where sums
        cancel. By default the values are accurate already, and this returns the grams themselves.
        """
        return self

    def stored(self, center: bool) -> Grams:
        """The same grams for many samples of one pool (folds), which `take` selects.

        An implementation that computes kernel values in every pass computes them once and keeps
        them, if they fit in memory. ``center`` says whether the kernels will be centred.
        """
        return self

    @abstractmethod
    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> Grams:
        """The kernels *as built* on some of the samples; computed entries are reused.

        With ``copy`` they are copied to contiguous memory if they fit.
        """

    @abstractmethod
    def points(self, rows: np.ndarray) -> Any:
        """Training samples in the form that an :class:`Expansion` of this bank reads."""

    # -- passes --

    @abstractmethod
    def diagonals(self) -> np.ndarray:
        """``K_k[i, i]``, shape (p, n)."""

    @abstractmethod
    def matvecs(self, V: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        """``K_k V`` for every kernel, shape (p, n, t) for V of shape (n, t).

        With ``at`` only the entries of these samples are computed, shape (p, len(at), t).
        """

    @abstractmethod
    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        """The function with these kernel weights (p,) and coefficients (n, t)."""

    # -- derived passes --

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        """The Gram operator of ``sum_k kernel_weights_k K_k``."""
        return SummedGram(self, kernel_weights)

    def block(self, index: slice | np.ndarray) -> np.ndarray:
        """Rows of every kernel, in any order, shape (p, len(index), n)."""
        chosen = as_positions(index, self.n)
        units = np.zeros((self.n, len(chosen)))
        units[chosen, np.arange(len(chosen))] = 1.0
        return np.ascontiguousarray(self.matvecs(units).transpose(0, 2, 1))

    def summary(
        self, Y: np.ndarray, products: bool = True, also_combine: np.ndarray | None = None
    ) -> Summary:
        """Traces, norms, and inner products with the target and between kernels, in one pass.

        Parameters
        ----------
        Y : array of shape (n, t)
            Targets; they are centred here.
        products : bool, default=True
            Whether to compute the p x p matrix M.
        also_combine : array of shape (p,), optional
            Weights of the kernels *as built*. An engine that can add up this combination in the
            same pass returns it as ``Summary.combined``.
        """
        return streamed_summary(self, center_targets(Y, self.sample_weight), products)

    def column_products(self, V: np.ndarray) -> np.ndarray:
        """``K_k' V`` for every kernel: the products of its columns with V, shape (p, n, t).

        By default kernels are symmetric, and this is :meth:`matvecs`.
        """
        return self.matvecs(V)

    def quadratic_forms(self, V: np.ndarray) -> np.ndarray:
        """``v' K_k v`` for every kernel and every column v of V, shape (p, t); or (p,) for 1-d."""
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        support = np.flatnonzero(np.any(V2 != 0, axis=1))
        forms = np.einsum("knt,nt->kt", self.matvecs(V2, at=support), V2[support])
        return forms[:, 0] if np.ndim(V) == 1 else forms

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        """``sum_ij G[i, j] K_k[i, j]`` for every kernel, shape (p,), for G of shape (n, n)."""
        parts = self.map(lambda rows: np.einsum("krn,rn->k", self.block(rows), G[rows]))
        return add(parts)

    def features(self) -> FeatureColumns | None:
        """The feature columns, if every kernel has rank one; None otherwise."""
        return None

    # -- panels of rows --

    def panels(self) -> list[slice]:
        """The row panels that passes read: a fixed partition of ``range(n)``."""
        height = PANEL_BYTES // max(8 * self.n * self.p, 1)
        height = max(1, min(MAX_PANEL_ROWS, height))
        return [slice(i, min(i + height, self.n)) for i in range(0, self.n, height)]

    def map(self, fn: Callable[[slice], T]) -> list[T]:
        """``fn`` of every panel, possibly in threads; results come in panel order."""
        return run_in_order(fn, self.panels(), self.n_jobs)


# -- shared by the implementations --


def encode_once(expansions: Sequence[Expansion], X: Any) -> list[Any]:
    """New inputs for every expansion; expansions with the same encoding share one result."""
    encoded: dict[Hashable, Any] = {}
    for expansion in expansions:
        if expansion.encoding not in encoded:
            encoded[expansion.encoding] = expansion.encode(X)
    return [encoded[expansion.encoding] for expansion in expansions]


def as_positions(index: slice | np.ndarray, n: int) -> np.ndarray:
    """Row numbers from a slice or from row numbers."""
    return np.arange(n)[index] if isinstance(index, slice) else np.asarray(index)


def run_in_order(fn: Callable[[Any], T], items: Sequence[Any], n_jobs: int) -> list[T]:
    """Map in at most ``n_jobs`` threads, results in the order of the items."""
    if n_jobs <= 1 or len(items) <= 1:
        return [fn(item) for item in items]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(fn, items))


def add(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The sum, always in the same order."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def center_targets(Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    """Targets minus their (weighted) mean, shape (n, t), float64."""
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y.reshape(Y.shape[0], -1)
    return Y - np.average(Y, axis=0, weights=sample_weight)


def target_norm(Yc: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """``||Y Y'||_F`` of centred targets, through the small t x t matrix."""
    weighted = Yc if sample_weight is None else sample_weight[:, None] * Yc
    return float(np.linalg.norm(Yc.T @ weighted))


def norm_panels(n: int) -> list[slice]:
    """The fixed row panels in which norms are summed."""
    return [slice(i, min(i + NORM_PANEL_ROWS, n)) for i in range(0, n, NORM_PANEL_ROWS)]


def centred_square(row_means: np.ndarray, square: float, sample_weight: np.ndarray | None) -> float:
    """The squared norm of a centred matrix from the means of its rows and its squared norm."""
    omega = np.ones(len(row_means)) if sample_weight is None else sample_weight
    total = float(omega.sum())
    grand_mean = float(omega @ row_means) / total
    whole = total * grand_mean
    return square - 2.0 * total * float(omega @ row_means**2) + whole * whole


class CentredBlocks:
    """Centred blocks of any grams, whether or not the grams themselves are centred."""

    def __init__(self, grams: Grams) -> None:
        self.grams = grams
        omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
        total = grams.total_weight
        parts = grams.map(lambda rows: grams.block(rows) @ omega)
        self.row_means = np.concatenate(parts, axis=1) / total
        self.grand_means = self.row_means @ omega / total

    def __call__(self, rows: slice) -> np.ndarray:
        K = np.array(self.grams.block(rows), dtype=np.float64)
        K -= self.row_means[:, rows, None]
        K -= self.row_means[:, None, :]
        K += self.grand_means[:, None, None]
        return K


def streamed_summary(grams: Grams, Yc: np.ndarray, products: bool) -> Summary:
    """The summary of any grams in two passes over their blocks: row means, then products."""
    omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
    centred, OY = CentredBlocks(grams), omega[:, None] * Yc

    def one(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        K = centred(rows)
        a = np.einsum("krt,rt->k", K @ OY, OY[rows])
        return block_products(K, K, grams.sample_weight, rows, products), a

    parts = grams.map(one)
    M = add([part[0] for part in parts])
    return Summary(
        traces=grams.diagonals() @ omega,
        norms=np.sqrt(np.maximum(np.diag(M) if products else M, 0.0)),
        a=add([part[1] for part in parts]),
        M=M if products else None,
        target_norm=target_norm(Yc, grams.sample_weight),
    )


def constant_kernels(grams: Grams) -> np.ndarray:
    """Mask (p,) of kernels, not centred, that are constant up to rounding."""
    omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
    diagonals = grams.diagonals()
    means = grams.quadratic_forms(omega) / grams.total_weight
    size = np.abs(diagonals) @ omega + np.abs(means)
    constant = np.abs(diagonals @ omega - means) <= CONSTANT_TRACE_LIMIT * size
    # An indefinite kernel may have trace zero without being constant, so its norm is checked.
    doubtful = constant & ~grams.known_psd
    if np.any(doubtful):
        centred = CentredBlocks(grams)
        left = squared_norms(grams, centred)
        constant &= grams.known_psd | (left <= CONSTANT_TRACE_LIMIT**2 * squared_norms(grams))
    return constant


def weighted_traces(grams: Grams) -> np.ndarray:
    """``sum_i omega_i K_k[i, i]`` of every kernel, shape (p,)."""
    omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
    return np.asarray(grams.diagonals() @ omega)


def normalising_scales(grams: Grams) -> np.ndarray:
    """The factors (p,) that bring kernels, centred or not, to the size that ``grams.how`` names."""
    omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
    total = grams.total_weight
    traces = weighted_traces(grams)
    variances = (traces - grams.quadratic_forms(omega) / total) / total
    norms = np.sqrt(squared_norms(grams)) if grams.how == "frobenius" else None
    if grams.how == "spherical" and not grams.center:  # a kernel may have become all ones
        grams._constant = grams.degenerate | constant_kernels(grams)
    if grams.how == "trace-first":
        assert grams._first_traces is not None
        traces = grams._first_traces
    return scales(grams.how, traces, variances, norms, grams.degenerate, list(grams.names))


def squared_norms(grams: Grams, read: Callable[[slice], np.ndarray] | None = None) -> np.ndarray:
    """``||K_k||_F^2`` of every kernel, shape (p,); ``read`` replaces `Grams.block`."""

    def one(rows: slice) -> np.ndarray:
        K = grams.block(rows) if read is None else read(rows)
        return block_products(K, K, grams.sample_weight, rows, False)

    return add(grams.map(one))


def block_products(
    K: np.ndarray, L: np.ndarray, sample_weight: np.ndarray | None, rows: slice, full: bool
) -> np.ndarray:
    """Weighted Frobenius products of the kernels in two blocks (p, r, n), (q, r, n)."""
    left = K if sample_weight is None else K * np.outer(sample_weight[rows], sample_weight)
    left = left.reshape(len(K), -1)
    if full:
        return left @ L.reshape(len(L), -1).T
    return np.einsum("ke,ke->k", left, L.reshape(len(L), -1))
