"""The raw passes of grams on a device, delegated to their `passes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks import BlockGrams, RawStatistics
from ..protocol import CombinedGram
from .combined import DeviceCombined
from .device import Device, host


class DeviceGrams(BlockGrams):
    """`BlockGrams` whose raw passes run on a device.

    ``passes`` computes them; ``passes.points`` are the samples, of which ``take`` selects some.
    """

    device: Device
    passes: Any

    def raw_statistics(
        self, Yc: np.ndarray | None, products: bool, also_combine: np.ndarray | None = None
    ) -> RawStatistics:
        s = self.passes.statistics(Yc, self.sample_weight, products)
        return RawStatistics(
            row_sums=s.row_sums,
            diagonals=self.raw_diagonals(),
            squares=np.diag(s.products).copy() if products else s.products,
            products=s.products if products else None,
            a=s.a,
            totals=s.totals,
        )

    def raw_centred_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, products: bool
    ) -> np.ndarray:
        return np.asarray(
            self.passes.centred_products(row_means, grand_means, self.sample_weight, products)
        )

    def raw_block(self, rows: slice) -> np.ndarray:
        return np.asarray(self.passes.block(self.passes.points.take(rows)))

    def raw_rows(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        left = self.passes.points.take(self.device.index(index))
        return host(self.passes.combine(kernel_weights, left))

    def raw_combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        return host(self.passes.combine(kernel_weights, self.passes.points))

    def raw_among(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        some = self.passes.on(index, kernel_weights)
        return host(some.combine(kernel_weights, some.points))

    def raw_between(
        self, kernel_weights: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        some = self.passes.to(columns, kernel_weights)
        left = self.passes.points.take(self.device.index(rows))
        return host(some.combine(kernel_weights, left))

    def raw_matvecs(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.matvecs(V))

    def raw_support_matvecs(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.on(support).matvecs(V[support]))

    def raw_combined_matvec(self, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        W = self.device.put(V)
        return host(self.passes.combined_products(kernel_weights, self.passes.points, W))

    def raw_combined_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        return None

    def raw_inner_products(self, G: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.inner_products(G))

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        return DeviceCombined(self, np.asarray(kernel_weights, dtype=np.float64))
