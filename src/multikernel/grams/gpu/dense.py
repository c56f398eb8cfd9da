"""Grams of given and evaluated matrices whose passes run on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import DenseGrams
from .device import Device
from .grams import DeviceGrams
from .matrices import MatrixPasses


class DeviceDenseGrams(DeviceGrams, DenseGrams):
    """`DenseGrams` on a device; kernels on new samples are evaluated on the host."""

    _own: MatrixPasses | None = None

    @classmethod
    def on_device(cls, device: Device, grams: DenseGrams) -> DenseGrams:
        """The same matrices, with passes on a device; asymmetric ones stay on the host."""
        if not grams.symmetric:
            return grams
        new = cls.__new__(cls)
        new.__dict__.update(vars(grams), device=device)
        return new

    @property
    def passes(self) -> Any:
        if self._own is None:
            self._own = MatrixPasses(
                self.device, self._read_block, self.p, self.n, self.budget, self.dtype.itemsize
            )
        return self._own

    def _read_block(self, k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self.matrices is None:
            return self._evaluate(k, rows, columns)
        if self._whole and self._read is not None:
            K = self._read[k]
            everything = len(rows) == len(columns) == self.n
            return np.asarray(K if everything else K[np.ix_(rows, columns)])
        return np.asarray(self.matrices[k][np.ix_(self.sample[rows], self.sample[columns])])

    def raw_block(self, rows: slice) -> np.ndarray:
        return DenseGrams.raw_block(self, rows)  # the host has the matrices

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> DenseGrams:
        taken = super().take(rows, sample_weight, copy=copy)
        return DeviceDenseGrams.on_device(self.device, taken)
