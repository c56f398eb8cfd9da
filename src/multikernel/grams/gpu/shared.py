"""Grams of shared kernels on a device, and their expansions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...kernels.vectors import VectorKernel
from ..memory import MemoryBudget
from ..shared import Encoder, SharedCross, SharedGrams
from .device import Device, host
from .grams import DeviceGrams
from .passes import DevicePasses


class DeviceSharedGrams(DeviceGrams, SharedGrams):
    """`SharedGrams` whose passes run on a device, in float64 whatever the dtype of the points."""

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
        self, encoded: np.ndarray, encoder: Encoder, sample_weight: np.ndarray | None
    ) -> DeviceSharedGrams:
        new = copy.copy(self)
        SharedGrams.__init__(
            new,
            encoded,
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

    def stored(self, center: bool) -> DeviceSharedGrams:
        return self  # recomputing values costs less than storing them

    @property
    def passes(self) -> Any:
        if self._passes is None:
            family = self.encoder.family(self.Z, self.kernels, self.shifted)
            passes: Any = DevicePasses(self.device, family, self.budget)
            self._passes = passes
        return self._passes

    def raw_centred_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, products: bool
    ) -> np.ndarray:
        passes: Any
        passes, row_means, grand_means = self._less_one(row_means, grand_means)
        return np.asarray(
            passes.centred_products(row_means, grand_means, self.sample_weight, products)
        )

    def raw_combined_sums(
        self, kernel_weights: np.ndarray, omega: np.ndarray | None
    ) -> tuple[np.ndarray, float] | None:
        return self._known_sums(kernel_weights, omega)

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> DeviceSharedCross:
        return DeviceSharedCross(self, rows, kernels)


def _restore(state: dict[str, Any]) -> SharedCross:
    new = SharedCross.__new__(SharedCross)
    new.__dict__.update(state)
    return new


class DeviceSharedCross(SharedCross):
    """`SharedCross` that computes on a device; model files store it as a plain `SharedCross`."""

    chunk_entries = 2**30

    def __init__(self, grams: DeviceSharedGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        super().__init__(grams, rows, kernels)
        self.device, self.budget = grams.device, grams.budget

    @classmethod
    def of(cls, cross: SharedCross, device: Device, budget: MemoryBudget) -> DeviceSharedCross:
        """The same kernels and anchors, computed on a device."""
        new = cls.__new__(cls)
        new.__dict__.update(cross.__getstate__(), device=device, budget=budget)
        return new

    def __reduce__(self) -> Any:
        # Pickles must load on machines without the device, too.
        plain = self.slim(False)
        return _restore, (plain.__getstate__(),)

    @property
    def passes(self) -> Any:
        if self._passes is None:
            family = self.encoder.family(self.anchors, self.kernels, self.shifted)
            passes: Any = DevicePasses(self.device, family, self.budget)
            self._passes = passes
        return self._passes

    def slim(self, diagonals: bool) -> SharedCross:
        state = self.__getstate__()
        return _restore({k: v for k, v in state.items() if k not in ("device", "budget")})

    def block(self, points: np.ndarray) -> np.ndarray:
        passes = self.passes
        return np.asarray(passes.block(passes.new_points(self.place(points))))

    def apply(self, points: np.ndarray, V: np.ndarray) -> np.ndarray:
        passes = self.passes
        return np.asarray(passes.apply(passes.new_points(self.place(points)), V))

    def combined(self, points: np.ndarray, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        passes = self.passes
        W = self.device.put(V)
        return host(
            passes.combined_products(kernel_weights, passes.new_points(self.place(points)), W)
        )
