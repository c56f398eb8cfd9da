"""Grams of linear kernels on several columns each: the columns themselves.

``K_k = U_k U_k'`` with the n x d_k columns ``U_k`` of kernel k, centred and normalised. With fewer
columns than samples all passes cost O(n d) or O(n d^2), and no n x n matrix is formed unless it is
requested. Kernels on a single column, dense or sparse, are served by
:mod:`multikernel.grams.rankone`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..kernels.columns import column_moments
from ..kernels.derivatives import to_inputs
from ..kernels.vectors import Linear
from .matrix import MatrixGram
from .memory import MemoryBudget
from .normalise import check_how, inverse_root, scales
from .protocol import Expansion, Grams, Summary, center_targets, require_sizes, target_norm
from .shared import Encoder, Group

#: A centred row counts as zero if its norm is below this fraction of that of the mean row.
CENTRE_ROUNDING = 16 * float(np.finfo(np.float64).eps)


class LinearGrams(Grams):
    """``K_k = s_k U_k U_k'`` with ``U_k = V_k - m_k``; unit rows for the spherical normalisation.

    Parameters
    ----------
    data : array of shape (n, d)
        The columns V_k of all kernels side by side.
    widths : sequence of p int
        The number of columns of each kernel.
    encode : ColumnEncoder
        Makes such columns from new inputs.
    """

    kind = "linear"
    always_psd = True

    def __init__(
        self,
        data: np.ndarray,
        widths: Sequence[int] | np.ndarray,
        encode: ColumnEncoder,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(data.shape[0], names, sample_weight=sample_weight, n_jobs=n_jobs)
        self.data, self.encode, self.budget = data, encode, budget
        self.widths = np.asarray(widths)
        self.owner = np.repeat(np.arange(self.p), self.widths)
        self.starts = np.concatenate([[0], np.cumsum(self.widths)])
        self.omega = np.ones(self.n) if sample_weight is None else sample_weight
        self.means, self.spread, self.power = column_moments(self.data, self.omega)
        self.shift = np.zeros(len(self.owner))
        self.scale = np.ones(self.p)
        self.U = data

    @classmethod
    def evaluate(
        cls,
        kernels: Sequence[Linear],
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        **options: Any,
    ) -> LinearGrams:
        encoder, Z = Encoder.fit(kernels, X, np.float64, move_linear=False)
        offsets, where = encoder.offsets, {group: g for g, group in enumerate(encoder.groups)}
        each = [where[Group.of(kernel)] for kernel in kernels]
        columns = np.concatenate([np.arange(offsets[g], offsets[g + 1]) for g in each])
        widths = [encoder.widths[g] for g in each]
        return cls(Z[:, columns], widths, ColumnEncoder(encoder, columns), names, budget, **options)

    def by_kernel(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Sums over the columns of each kernel."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=axis))

    @property
    def degenerate(self) -> np.ndarray:
        spread, power = self.by_kernel(self.spread), self.by_kernel(self.power)
        return spread <= CENTRE_ROUNDING**2 * power

    @property
    def scales(self) -> np.ndarray:
        return self.scale

    def corrected(self, center: bool, normalize: str | None) -> LinearGrams:
        check_how(normalize)
        new = self.view(center, normalize)
        new.shift = self.means if center else np.zeros_like(self.means)
        U = self.data - new.shift
        norms = None
        if normalize == "spherical":
            U = unit_rows(U, new.shift, self.starts)
        elif normalize == "frobenius":
            norms = np.sqrt(np.diag(self._products(U)))
        as_built = normalize == "trace-first" or not center
        new.scale = scales(
            normalize,
            self.by_kernel(self.power if as_built else self.spread),
            self.by_kernel(self.spread) / self.total_weight,
            norms,
            self.degenerate,
            list(self.names),
        )
        new.U = U * np.sqrt(new.scale)[self.owner]
        return new

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> LinearGrams:
        return LinearGrams(
            self.data[rows],
            self.widths,
            self.encode,
            self.names,
            self.budget,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )

    def points(self, rows: np.ndarray) -> Any:
        return self.data[rows]

    # -- the passes -------------------------------------------------------------------------------

    def _each(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]

    def diagonals(self) -> np.ndarray:
        return self.by_kernel(self.U**2, axis=1).T

    def block(self, index: slice | np.ndarray) -> np.ndarray:
        return np.stack([self.U[index, own] @ self.U[:, own].T for own in self._each()])

    def matvecs(self, V: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        U = self.U if at is None else self.U[at]
        inner = self.U.T @ V
        return np.stack([U[:, own] @ inner[own] for own in self._each()])

    def quadratic_forms(self, V: np.ndarray) -> np.ndarray:
        forms = self.by_kernel((self.U.T @ np.reshape(V, (self.n, -1))) ** 2)
        return forms[:, 0] if np.ndim(V) == 1 else forms

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        return self.by_kernel(np.einsum("nd,nd->d", self.U, G @ self.U))

    def _products(self, U: np.ndarray) -> np.ndarray:
        """``<U_k U_k', U_l U_l'>`` under the sample weights, shape (p, p)."""
        square = (U.T @ (self.omega[:, None] * U)) ** 2
        return self.by_kernel(self.by_kernel(square), axis=1)

    def summary(
        self, Y: np.ndarray, products: bool = True, also_combine: np.ndarray | None = None
    ) -> Summary:
        Yc = center_targets(Y, self.sample_weight)
        U = self.U - self.omega @ self.U / self.total_weight
        M = self._products(U)
        return Summary(
            traces=self.by_kernel(self.omega @ self.U**2),
            norms=np.sqrt(np.diag(M)),
            a=self.by_kernel(np.sum((U.T @ (self.omega[:, None] * Yc)) ** 2, axis=1)),
            M=M if products else None,
            target_norm=target_norm(Yc, self.sample_weight),
        )

    def combine(self, kernel_weights: np.ndarray) -> LinearCombined:
        return LinearCombined(self, np.asarray(kernel_weights, dtype=np.float64))

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        return LinearExpansion(self, np.asarray(kernel_weights, dtype=np.float64), coef)


def unit_rows(U: np.ndarray, shift: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The columns of each kernel, rows scaled to length one; zero for samples at the centre."""
    square = np.add.reduceat(U**2, starts[:-1], axis=1)
    rounding = CENTRE_ROUNDING**2 * np.add.reduceat(shift**2, starts[:-1])
    root = inverse_root(np.where(square > rounding, square, 0.0))
    return U * np.repeat(root, np.diff(starts), axis=1)


class ColumnEncoder:
    """Encode new inputs as the columns of all kernels side by side.

    Parameters
    ----------
    encoder : Encoder
        Selects and scales the columns of each group of kernels.
    columns : int array
        Positions of the columns of all kernels among these.
    """

    def __init__(self, encoder: Encoder, columns: np.ndarray) -> None:
        self.encoder, self.columns = encoder, columns

    def __call__(self, X: Any) -> np.ndarray:
        return self.encoder(X)[:, self.columns]


class LinearCombined(MatrixGram):
    """``U diag(w) U'``: only the columns are held, unless the matrix is requested."""

    fast_products = True

    def __init__(self, grams: LinearGrams, kernel_weights: np.ndarray) -> None:
        self.grams, self.n = grams, grams.n
        self.room, self.n_jobs = grams.budget.bytes, grams.n_jobs
        self.kernel_weights, self.factors = kernel_weights, kernel_weights[grams.owner]
        if np.all(kernel_weights >= 0):  # negative weights have no features
            self.extras = frozenset({"features", "factor"})

    def features(self) -> np.ndarray:
        used = np.flatnonzero(self.factors)
        return np.asarray(self.grams.U[:, used] * np.sqrt(self.factors[used]))

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        U = self.grams.U
        return np.asarray((U * self.factors) @ (U.T @ V))

    def _rows(self, index: np.ndarray) -> np.ndarray:
        U = self.grams.U
        return np.asarray((U[index] * self.factors) @ U.T)

    def _dense(self) -> np.ndarray:
        return self._rows(np.arange(self.n))

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.grams.U**2 @ self.factors)

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Solve by the Woodbury identity with one refinement, if no weight is negative."""
        if "features" not in self.extras:
            return super().solve(ridge, B)
        F = self.features()
        R = F / ridge[:, None]
        small = cho_factor(np.eye(F.shape[1]) + R.T @ F)

        def apply(right: np.ndarray) -> np.ndarray:
            return np.asarray((right.T / ridge).T - R @ cho_solve(small, R.T @ right))

        X = apply(B)
        return X + apply(B - F @ (F.T @ X) - (X.T * ridge).T)

    def lowest_eigenvalue(self, *, rough: bool = False) -> Any:
        if "features" in self.extras:
            return super(MatrixGram, self).lowest_eigenvalue()
        return super().lowest_eigenvalue(rough=rough)

    @cached_property
    def _square(self) -> np.ndarray:
        grams = self.grams
        U = grams.U - grams.omega @ grams.U / grams.total_weight
        return grams._products(U)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        omega = np.ones(self.n) if sample_weight is None else sample_weight
        if not np.array_equal(omega, self.grams.omega):
            return super().centred_norm(sample_weight)
        w = self.kernel_weights
        return float(np.sqrt(max(float(w @ self._square @ w), 0.0)))


class LinearExpansion(Expansion):
    """A linear function of the columns: one coefficient per column and output."""

    def __init__(self, grams: LinearGrams, kernel_weights: np.ndarray, coef: np.ndarray) -> None:
        self.n_kernels = grams.p
        self.encoder, self.columns = grams.encode.encoder, grams.encode.columns
        self.starts, self.shift = grams.starts, grams.shift
        self.spherical = grams.how == "spherical"
        coef = np.asarray(coef, dtype=np.float64).reshape(grams.n, -1)
        factors = (kernel_weights * np.sqrt(grams.scale))[grams.owner]
        self.slopes = factors[:, None] * (grams.U.T @ coef)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        d = len(state["columns"])
        require_sizes(d == len(state["slopes"]) == len(state["shift"]), "slopes of the columns")
        starts = state["starts"]
        fit = len(starts) == state["n_kernels"] + 1 and starts[0] == 0 and starts[-1] == d
        require_sizes(bool(fit and np.all(np.diff(starts) > 0)), "columns of each kernel")
        inside = d == 0 or 0 <= np.min(state["columns"]) <= np.max(state["columns"])
        width = sum(state["encoder"].widths)
        require_sizes(bool(inside and np.max(state["columns"], initial=-1) < width), "columns")
        return super().from_state(state)

    @property
    def encoding(self) -> Hashable:
        return id(self.columns)

    def encode(self, X: Any) -> np.ndarray:
        return ColumnEncoder(self.encoder, self.columns)(X)

    def _used(self, points: np.ndarray) -> np.ndarray:
        U = points - self.shift
        return unit_rows(U, self.shift, self.starts) if self.spherical else U

    def values(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(self._used(points) @ self.slopes)

    def shares(self, points: np.ndarray) -> np.ndarray:
        parts = self._used(points)[:, :, None] * self.slopes
        return np.asarray(np.add.reduceat(parts, self.starts[:-1], axis=1))

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        if self.spherical:
            return super().gradients(X, steps)
        encoder, offsets = self.encoder, self.encoder.offsets
        slopes = np.zeros((offsets[-1], self.slopes.shape[1]))
        np.add.at(slopes, self.columns, self.slopes)
        out = np.zeros((X.shape[0], X.shape[1], slopes.shape[1]))
        for g, group in enumerate(encoder.groups):
            own = np.broadcast_to(
                slopes[offsets[g] : offsets[g + 1]],
                (X.shape[0], offsets[g + 1] - offsets[g], slopes.shape[1]),
            )
            out += to_inputs(own, group.columns, encoder.slopes(X, g), X.shape[1])
        return out
