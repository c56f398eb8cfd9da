"""Grams of a mixed bank: several implementations side by side."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .matrix import MatrixGram
from .protocol import (
    CentredBlocks,
    CombinedGram,
    Expansion,
    Grams,
    Summary,
    add,
    as_positions,
    block_products,
    require_sizes,
)


class StackedGrams(Grams):
    """Parts that each serve some kernels of the bank.

    Parameters
    ----------
    parts : sequence of Grams on the same sample
    positions : sequence of int arrays
        Positions of each part's kernels in the bank.
    """

    kind = "stacked"

    def __init__(self, parts: Sequence[Grams], positions: Sequence[np.ndarray]) -> None:
        first = parts[0]
        names = [""] * sum(part.p for part in parts)
        for part, where in zip(parts, positions, strict=True):
            for k, name in zip(where, part.names, strict=True):
                names[k] = name
        super().__init__(first.n, names, sample_weight=first.sample_weight, n_jobs=first.n_jobs)
        self.parts = list(parts)
        self.positions = [np.asarray(where) for where in positions]

    def _gather(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Arrays with a leading kernel axis, put in the order of the bank."""
        out = np.empty((self.p, *values[0].shape[1:]), dtype=np.result_type(*values))
        for where, value in zip(self.positions, values, strict=True):
            out[where] = value
        return out

    def _over(self, parts: Sequence[Grams]) -> StackedGrams:
        return StackedGrams(parts, self.positions)

    def corrected(self, center: bool, normalize: str | None) -> StackedGrams:
        new = self._over([part.corrected(center, normalize) for part in self.parts])
        new.center, new.how = center, normalize
        return new

    def accurate(self) -> StackedGrams:
        parts = [part.accurate() for part in self.parts]
        if all(new is old for new, old in zip(parts, self.parts, strict=True)):
            return self
        new = self._over(parts)
        new.center, new.how = self.center, self.how
        return new

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> StackedGrams:
        return self._over([part.take(rows, sample_weight, copy=copy) for part in self.parts])

    def stored(self, center: bool) -> StackedGrams:
        return self._over([part.stored(center) for part in self.parts])

    def points(self, rows: np.ndarray) -> Any:
        return [part.points(rows) for part in self.parts]

    @property
    def degenerate(self) -> np.ndarray:
        return self._gather([part.degenerate for part in self.parts])

    @property
    def known_psd(self) -> np.ndarray:
        return self._gather([part.known_psd for part in self.parts])

    @property
    def rounding(self) -> np.ndarray:
        return self._gather([part.rounding for part in self.parts])

    @property
    def precision(self) -> float:
        return max(part.precision for part in self.parts)

    @property
    def entry_errors(self) -> np.ndarray:
        return self._gather([part.entry_errors for part in self.parts])

    @property
    def scales(self) -> np.ndarray:
        return self._gather([part.scales for part in self.parts])

    def block(self, index: slice | np.ndarray) -> np.ndarray:
        return self._gather([part.block(index) for part in self.parts])

    def diagonals(self) -> np.ndarray:
        return self._gather([part.diagonals() for part in self.parts])

    def matvecs(self, V: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
        return self._gather([part.matvecs(V, at) for part in self.parts])

    def column_products(self, V: np.ndarray) -> np.ndarray:
        return self._gather([part.column_products(V) for part in self.parts])

    def quadratic_forms(self, V: np.ndarray) -> np.ndarray:
        return self._gather([part.quadratic_forms(V) for part in self.parts])

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        return self._gather([part.inner_products(G) for part in self.parts])

    def summary(
        self, Y: np.ndarray, products: bool = True, also_combine: np.ndarray | None = None
    ) -> Summary:
        if products and self.how == "spherical" and len(self.parts) > 1:
            return super().summary(Y, products)
        own = [part.summary(Y, products) for part in self.parts]
        M = None
        if products:
            M = np.empty((self.p, self.p))
            for i, (part, where) in enumerate(zip(self.parts, self.positions, strict=True)):
                M[np.ix_(where, where)] = own[i].M
                for other, there in zip(self.parts[:i], self.positions[:i], strict=True):
                    between = cross_products(part, other)
                    M[np.ix_(where, there)] = between
                    M[np.ix_(there, where)] = between.T
        return Summary(
            traces=self._gather([s.traces for s in own]),
            norms=self._gather([s.norms for s in own]),
            a=self._gather([s.a for s in own]),
            M=M,
            target_norm=own[0].target_norm,
        )

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        kernel_weights = np.asarray(kernel_weights, dtype=np.float64)
        return StackedCombined(
            [
                part.combine(kernel_weights[where])
                for part, where in zip(self.parts, self.positions, strict=True)
                if np.any(kernel_weights[where])
            ],
            kernel_weights,
            self.n,
        )

    def expand(self, kernel_weights: np.ndarray, coef: np.ndarray) -> Expansion:
        kernel_weights = np.asarray(kernel_weights, dtype=np.float64)
        used = [bool(kernel_weights[where].any()) for where in self.positions]
        if not any(used):
            used[0] = True  # one part is needed for the number of new samples
        parts = [
            part.expand(kernel_weights[where], coef) if has_weight else None
            for part, where, has_weight in zip(self.parts, self.positions, used, strict=True)
        ]
        return StackedExpansion(parts, self.positions, self.p)


def cross_products(A: Grams, B: Grams) -> np.ndarray:
    """``<K_kc, L_lc>`` of the kernels of two parts, shape (p_A, p_B)."""
    omega = np.ones(A.n) if A.sample_weight is None else A.sample_weight
    features = B.features()
    if features is not None:
        # <Kc, u u'> = (omega u)' K (omega u) for a centred feature u.
        return A.quadratic_forms(omega[:, None] * features.centred())
    if A.features() is not None:
        return cross_products(B, A).T
    left, right = CentredBlocks(A), CentredBlocks(B)
    both = StackedGrams([A, B], [np.arange(A.p), A.p + np.arange(B.p)])
    parts = both.map(
        lambda rows: block_products(left(rows), right(rows), A.sample_weight, rows, True)
    )
    return add(parts)


class StackedCombined(MatrixGram):
    """The sum of the parts' operators."""

    def __init__(self, parts: Sequence[CombinedGram], kernel_weights: np.ndarray, n: int) -> None:
        self.parts, self.kernel_weights, self.n = parts, kernel_weights, n
        self.room = min((part.room for part in parts), default=float("inf"))
        self.rounding = sum(part.rounding for part in parts)
        self.precision = max((part.precision for part in parts), default=self.precision)
        self.n_jobs = max((part.n_jobs for part in parts), default=1)
        self.on_device = any(part.on_device for part in parts)
        self.fast_products = all(part.fast_products for part in parts)
        if all("features" in part.extras for part in parts):
            self.extras = frozenset({"features"})

    def features(self) -> np.ndarray:
        return np.hstack([np.zeros((self.n, 0)), *(part.features() for part in self.parts)])

    def _rows(self, index: np.ndarray) -> np.ndarray:
        return sum((part.rows(index) for part in self.parts), start=np.zeros((len(index), self.n)))

    def columns(self, index: slice | np.ndarray) -> np.ndarray:
        if self._matrix is not None:
            return self._matrix[:, index]
        size = len(as_positions(index, self.n))
        return sum((part.columns(index) for part in self.parts), start=np.zeros((self.n, size)))

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        return sum((part.matvec(V) for part in self.parts), start=np.zeros(np.shape(V)))

    @property
    def offers(self) -> frozenset[str]:
        return frozenset.intersection(super().offers, *(part.offers for part in self.parts))

    def _dense(self) -> np.ndarray:
        out = np.zeros((self.n, self.n))
        for part in self.parts:
            out += part.dense()
            part.forget()
        return out

    def diagonal(self) -> np.ndarray:
        return sum((part.diagonal() for part in self.parts), start=np.zeros(self.n))

    def known_centred(self, sample_weight: np.ndarray | None) -> bool:
        return all(part.known_centred(sample_weight) for part in self.parts)


class StackedExpansion(Expansion):
    """The sum of the parts' functions.

    Parameters
    ----------
    parts : sequence of Expansion or None
        None for parts whose kernels have no weight; at least one part is not None.
    positions : sequence of int arrays
        Positions of each part's kernels in the bank.
    n_kernels : int
        The size of the bank.
    """

    def __init__(
        self,
        parts: Sequence[Expansion | None],
        positions: Sequence[np.ndarray],
        n_kernels: int,
    ) -> None:
        self.parts, self.positions, self.n_kernels = list(parts), list(positions), n_kernels

    @property
    def encoding(self) -> Hashable:
        return tuple(None if part is None else part.encoding for part in self.parts)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> StackedExpansion:
        parts, positions = state["parts"], state["positions"]
        require_sizes(len(parts) == len(positions), "number of parts")
        used = [part for part in parts if part is not None]
        require_sizes(len(used) > 0, "parts with a weight")
        sizes = [len(where) for where in positions]
        each = zip(parts, sizes, strict=True)
        fit = all(part is None or part.n_kernels == size for part, size in each)
        require_sizes(fit, "kernels of the parts")
        require_sizes(sum(sizes) == state["n_kernels"], "number of kernels")
        return super().from_state(state)

    def encode(self, X: Any) -> Any:
        return [None if part is None else part.encode(X) for part in self.parts]

    def values(self, points: Any) -> np.ndarray:
        each = zip(self.parts, points, strict=True)
        return np.sum([part.values(own) for part, own in each if part is not None], axis=0)

    def shares(self, points: Any) -> np.ndarray:
        each = zip(self.parts, self.positions, points, strict=True)
        found = [(where, part.shares(own)) for part, where, own in each if part is not None]
        n, _, t = found[0][1].shape
        out = np.zeros((n, self.n_kernels, t))
        for where, shares in found:
            out[:, where] = shares
        return out

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        used = [part for part in self.parts if part is not None]
        return np.sum([part.gradients(X, steps) for part in used], axis=0)

    def release(self) -> None:
        for part in self.parts:
            if part is not None:
                part.release()
