"""Grams of shared kernels on a device, and their expansions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...kernels.vectors import VectorKernel
from ..blocks import RawCross, RawStatistics
from ..memory import MemoryBudget
from ..protocol import CombinedGram
from ..shared import Encoder, SharedCross, SharedGrams
from .combined import DeviceCombined
from .device import Device, host
from .passes import DevicePasses


class DeviceSharedGrams(SharedGrams):
    """`SharedGrams` whose passes run on a device; arithmetic is float64 for points of any type."""

    device: Device

    @classmethod
    def evaluate_on(
        cls,
        device: Device,
        kernels: Sequence[VectorKernel],
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        **options: Any,
    ) -> DeviceSharedGrams:
        """The kernels on X, with passes on a device."""
        new = cls.evaluate(kernels, X, names, budget, **options)
        assert isinstance(new, DeviceSharedGrams)
        new.device = device
        return new

    def _on(
        self, Z: np.ndarray, encoder: Encoder, sample_weight: np.ndarray | None
    ) -> DeviceSharedGrams:
        new = copy.copy(self)
        SharedGrams.__init__(
            new,
            Z,
            encoder,
            self.kernels,
            self.names,
            self.budget,
            known_psd=self._known_psd,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )
        new.center, new.how = False, None
        return new

    @property
    def passes(self) -> Any:
        if self._passes is None:
            family = self.encoder.family(self.Z, self.kernels, self.shifted)
            passes: Any = DevicePasses(self.device, family, self.budget)
            self._passes = passes
        return self._passes

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
        passes, row_means, grand_means = self._less_one(row_means, grand_means)
        return np.asarray(
            passes.centred_products(row_means, grand_means, self.sample_weight, products)
        )

    def raw_block(self, rows: slice) -> np.ndarray:
        passes = self.passes
        return np.asarray(passes.block(passes.points.take(rows)))

    def raw_rows(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        passes = self.passes
        left = passes.points.take(passes.device.index(index))
        return host(passes.combine(kernel_weights, left))

    def raw_combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        return host(self.passes.combine(kernel_weights, self.passes.points))

    def raw_among(self, kernel_weights: np.ndarray, index: np.ndarray) -> np.ndarray:
        some = self.passes.on(index)
        return host(some.combine(kernel_weights, some.points))

    def raw_matvecs(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.matvecs(V))

    def raw_support_matvecs(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.on(support).matvecs(V[support]))

    def raw_combined_matvec(self, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        passes = self.passes
        W = passes.device.put(V)
        return host(passes.combined_products(kernel_weights, passes.points, W))

    def raw_combined_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        return self._known_sums(kernel_weights, omega)

    def raw_inner_products(self, G: np.ndarray) -> np.ndarray:
        return np.asarray(self.passes.inner_products(G))

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> DeviceSharedCross:
        return DeviceSharedCross(self, rows, kernels)

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        return DeviceCombined(self, np.asarray(kernel_weights, dtype=np.float64))


class DeviceSharedCross(SharedCross):
    """`SharedCross` that computes on a device; a model file stores it as the former."""

    chunk_entries = 2**30

    def __init__(self, grams: DeviceSharedGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        super().__init__(grams, rows, kernels)
        self.device, self.budget = grams.device, grams.budget

    @property
    def passes(self) -> Any:
        if self._passes is None:
            family = self.encoder.family(self.anchors, self.kernels, self.shifted)
            passes: Any = DevicePasses(self.device, family, self.budget)
            self._passes = passes
        return self._passes

    def slim(self, diagonals: bool) -> RawCross:
        plain = SharedCross.__new__(SharedCross)
        state = self.__getstate__()
        plain.__dict__.update({k: v for k, v in state.items() if k not in ("device", "budget")})
        return plain

    def block(self, points: np.ndarray) -> np.ndarray:
        passes = self.passes
        return np.asarray(passes.block(passes.new_points(points)))

    def apply(self, points: np.ndarray, V: np.ndarray) -> np.ndarray:
        passes = self.passes
        return np.asarray(passes.apply(passes.new_points(points), V))

    def combined(self, points: np.ndarray, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        passes = self.passes
        W = self.device.put(V)
        return host(passes.combined_products(kernel_weights, passes.new_points(points), W))
