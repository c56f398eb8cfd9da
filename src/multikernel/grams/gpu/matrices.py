"""Passes over kernel matrices that were given or evaluated: on the device, or sent to it in panels.

Matrices are kept on the device in their own precision if they fit half of its budget. Others, such
as memory-mapped files, are read panel by panel; arithmetic is float64 in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from .._loops import Statistics
from ..memory import MemoryBudget
from .device import Device, host

#: Share of the memory budget that matrices on the device may use.
RESIDENT_SHARE = 0.5


class MatrixRows:
    """Some samples, by their positions in the sample."""

    def __init__(self, index: np.ndarray) -> None:
        self.index = index

    @property
    def n(self) -> int:
        return len(self.index)

    def take(self, index: Any) -> MatrixRows:
        chosen = index if isinstance(index, slice) else host(index)
        return MatrixRows(self.index[chosen])


class MatrixPasses:
    """Passes over p matrices on some of their rows and columns.

    Parameters
    ----------
    device : Device
    read : callable
        ``read(k, rows, columns)`` is a block of matrix k, for positions in the sample.
    p, n : int
    budget : MemoryBudget
        Memory of the device.
    itemsize : int
        Bytes of an entry.
    """

    def __init__(
        self,
        device: Device,
        read: Callable[[int, np.ndarray, np.ndarray], np.ndarray],
        p: int,
        n: int,
        budget: MemoryBudget,
        itemsize: int,
    ) -> None:
        self.device, self.read, self.p, self.n = device, read, p, n
        self.budget, self.itemsize = budget, itemsize
        self.points = MatrixRows(np.arange(n))

    @cached_property
    def resident(self) -> Any:
        """All matrices on the device, (p, n, n); None if they do not fit."""
        if self.p * self.n**2 * self.itemsize > RESIDENT_SHARE * self.budget.bytes:
            return None
        torch, everyone = self.device.torch, np.arange(self.n)
        dtype = torch.float32 if self.itemsize == 4 else torch.float64
        out = torch.empty((self.p, self.n, self.n), dtype=dtype, device=self.device.name)
        for k in range(self.p):
            out[k] = self.device.put(self.read(k, everyone, everyone), dtype)
        return out

    def on(self, index: np.ndarray, w: np.ndarray | None = None) -> MatrixPasses:
        """The same kernels on some of the samples; w is ignored, since nothing is tabulated."""
        return _OnSome(self, np.asarray(index))

    def to(self, index: np.ndarray, w: np.ndarray | None = None) -> MatrixPasses:
        """The same kernels between all samples and some of them, which are the columns."""
        return _ToSome(self, np.asarray(index))

    def rough_series(self, w: np.ndarray) -> None:
        """None: there are no faster products in single precision."""

    def _kernel(self, k: int, left: MatrixRows) -> Any:
        """Matrix k at some rows, float64, (left.n, n)."""
        if self.resident is not None:
            return self.resident[k][self.device.index(left.index)].to(self.device.torch.float64)
        return self.device.put(self.read(k, left.index, np.arange(self.n)))

    def _values(self, left: MatrixRows) -> Any:
        out = self.device.empty(self.p, left.n, self.n)
        for k in range(self.p):
            out[k] = self._kernel(k, left)
        return out

    def _panels(self, left: MatrixRows, copies: int) -> list[slice]:
        height = self.device.panel_rows(self.n * copies, self.budget)
        return [slice(i, min(i + height, left.n)) for i in range(0, left.n, height)]

    def statistics(
        self, targets: np.ndarray | None, weights: np.ndarray | None, products: bool
    ) -> Statistics:
        return self._sums(targets, weights, products, None)

    def centred_products(
        self,
        row_means: np.ndarray,
        grand_means: np.ndarray,
        weights: np.ndarray | None,
        products: bool,
    ) -> np.ndarray:
        means = (self.device.put(row_means), self.device.put(grand_means))
        return self._sums(None, weights, products, means).products

    def _sums(
        self,
        targets: np.ndarray | None,
        weights: np.ndarray | None,
        products: bool,
        means: tuple[Any, Any] | None,
    ) -> Statistics:
        device, n, p = self.device, self.n, self.p
        omega = device.put(np.ones(n) if weights is None else weights)
        OY = None
        if targets is not None:
            OY = omega[:, None] * device.put(targets.reshape(n, -1))
        row_sums, a = device.zeros(p, n), device.zeros(p)
        M = device.zeros(p, p) if products else device.zeros(p)
        for rows in self._panels(self.points, p + 2):
            K = self._values(self.points.take(rows))
            if means is not None:
                K -= means[0][:, rows, None]
                K -= means[0][:, None, :]
                K += means[1][:, None, None]
            row_sums[:, rows] = K @ omega
            if OY is not None:
                a += ((K @ OY) * OY[rows]).sum(dim=(1, 2))
            if weights is not None:
                K *= (omega[rows, None] * omega).sqrt_()
            flat = K.reshape(p, -1)
            M += flat @ flat.T if products else (flat * flat).sum(dim=1)
        return Statistics(
            row_sums=host(row_sums),
            diagonals=np.empty((p, 0)),
            a=None if targets is None else host(a),
            products=host(M),
        )

    def block(self, left: MatrixRows) -> np.ndarray:
        out = np.empty((self.p, left.n, self.n))
        for rows in self._panels(left, self.p + 2):
            out[:, rows] = host(self._values(left.take(rows)))
        return out

    def matvecs(self, V: np.ndarray) -> np.ndarray:
        W = self.device.put(V)
        out = np.empty((self.p, self.n, V.shape[1]))
        for rows in self._panels(self.points, self.p + 2):
            out[:, rows] = host(self._values(self.points.take(rows)) @ W)
        return out

    def inner_products(self, G: np.ndarray) -> np.ndarray:
        total = self.device.zeros(self.p)
        for rows in self._panels(self.points, self.p + 2):
            K = self._values(self.points.take(rows))
            total += (K * self.device.put(G[rows])).sum(dim=(1, 2))
        return host(total)

    def combine(
        self,
        w: np.ndarray,
        left: MatrixRows,
        out: Any = None,
        shifts: tuple[Any, Any] | None = None,
    ) -> Any:
        """``sum_k w_k K_k`` at some rows, less ``shifts[0]_i + shifts[1]_j``; (left.n, n)."""
        if out is None:
            out = self.device.empty(left.n, self.n)
        out.zero_()
        for rows in self._panels(left, 3):
            some = left.take(rows)
            for k in np.flatnonzero(w).tolist():
                out[rows].add_(self._kernel(k, some), alpha=float(w[k]))
        if shifts is not None:
            out -= shifts[0][:, None]
            out -= shifts[1]
        return out

    def combined_products(self, w: np.ndarray, left: MatrixRows, V: Any) -> Any:
        out = self.device.empty(left.n, V.shape[1])
        for rows in self._panels(left, 3):
            out[rows] = self.combine(w, left.take(rows)) @ V
        return out


class _OnSome(MatrixPasses):
    """Passes over rows and columns of other passes."""

    def __init__(self, whole: MatrixPasses, index: np.ndarray) -> None:
        def read(k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return whole.read(k, index[rows], index[columns])

        super().__init__(whole.device, read, whole.p, len(index), whole.budget, whole.itemsize)
        self.whole, self.chosen = whole, index

    @cached_property
    def resident(self) -> Any:
        if self.whole.resident is None:
            return None
        chosen = self.device.index(self.chosen)
        return self.whole.resident[:, chosen[:, None], chosen]


class _ToSome(MatrixPasses):
    """Passes over all rows and some columns of other passes."""

    def __init__(self, whole: MatrixPasses, index: np.ndarray) -> None:
        def read(k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return whole.read(k, rows, index[columns])

        super().__init__(whole.device, read, whole.p, len(index), whole.budget, whole.itemsize)
        self.whole, self.chosen = whole, index

    def _kernel(self, k: int, left: MatrixRows) -> Any:
        if self.whole.resident is None:
            return self.device.put(self.read(k, left.index, np.arange(self.n)))
        rows, columns = self.device.index(left.index), self.device.index(self.chosen)
        return self.whole.resident[k][rows[:, None], columns].to(self.device.torch.float64)
