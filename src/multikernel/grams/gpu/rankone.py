"""Rank-one kernels whose products with features run on a device."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rankone import RankOneGrams
from .device import Device, host


class DeviceRankOneGrams(RankOneGrams):
    """`RankOneGrams` with its features on a device, dense or as two sparse matrices.

    Sparse features are stored both by rows and by columns, so that each of the two products adds
    up entries in storage order.
    """

    device: Device
    _held: tuple[Any, Any, Any] | None = None

    @classmethod
    def on_device(cls, device: Device, grams: RankOneGrams) -> DeviceRankOneGrams:
        new = cls.__new__(cls)
        new.__dict__.update(vars(grams), device=device)
        return new

    def _tensors(self) -> tuple[Any, Any]:
        """The features (n, p) and their transpose, as tensors, for the present features."""
        if self._held is None or self._held[0] is not self.data:
            V = self.data
            if sp.issparse(V):
                pair = (self._sparse(V.tocsr()), self._sparse(V.T.tocsr()))
            else:
                dense = self.device.put(V)
                pair = (dense, dense.T)
            self._held = (V, *pair)
        return self._held[1], self._held[2]

    def _sparse(self, V: Any) -> Any:
        device, torch = self.device, self.device.torch
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse ")  # beta status, and invariants not checked
            return torch.sparse_csr_tensor(
                device.index(V.indptr),
                device.index(V.indices),
                device.put(V.data),
                size=V.shape,
                device=device.name,
                check_invariants=False,
            )

    def transpose_apply(self, Z: np.ndarray) -> np.ndarray:
        if self.signs or self.extended:
            return super().transpose_apply(Z)
        W = self.device.put(np.asarray(Z, dtype=np.float64))
        return host(self._tensors()[1] @ W) - np.outer(self.shift, Z.sum(axis=0))

    def apply(self, B: np.ndarray, features: Any = None) -> np.ndarray:
        if self.signs or features is not None:
            return super().apply(B, features)
        found = self._tensors()[0] @ self.device.put(np.asarray(B, dtype=np.float64))
        return host(found) - self.shift @ B

    def centred_gram(self, kernels: np.ndarray) -> np.ndarray:
        if self.signs or sp.issparse(self.data):
            return super().centred_gram(kernels)
        device = self.device
        omega = device.put(self.omega)
        U = self._tensors()[0][:, device.index(kernels)] - device.put(self.shift[kernels])
        U = (U - omega @ U / omega.sum()) * omega.sqrt()[:, None]
        return host(U.T @ U)

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> DeviceRankOneGrams:
        taken = RankOneGrams(
            self.data[rows],
            self.columns,
            self.names,
            self.budget,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
        )
        return DeviceRankOneGrams.on_device(self.device, taken)
