"""Tall factors F of kernel matrices on a device, and the inverse of ``F F' + diag(ridge)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ..low_rank_inverse import LowRankInverse
from ..pivoted_cholesky import PivotedCholesky
from .cholesky import factor_in_place, solve_with_factor
from .device import Device, host


class DeviceFactor:
    """The factor of a pivoted Cholesky decomposition, in the memory of a device.

    Columns of the matrix are given as tensors; see :class:`..pivoted_cholesky.GrowingFactor`.
    """

    def __init__(self, device: Device, n: int, rank: int) -> None:
        self.device, self.F, self.k = device, device.empty(n, rank), 0

    def rows(self, index: np.ndarray) -> np.ndarray:
        return host(self.F[self.device.index(index), : self.k])

    def append(self, columns: Any, chosen: np.ndarray, L: np.ndarray) -> np.ndarray:
        torch = self.device.torch
        start, self.k = self.k, self.k + len(chosen)
        known = self.F[:, :start]
        new = columns.addmm(known, known[self.device.index(chosen)].T, alpha=-1.0)
        new = torch.linalg.solve_triangular(self.device.put(L).T, new, upper=True, left=False)
        self.F[:, start : self.k] = new
        return host(torch.linalg.vector_norm(new, dim=1).square_())

    def result(self) -> Any:
        return self.F[:, : self.k]


class DeviceLowRankInverse(LowRankInverse):
    """`LowRankInverse` on a device; it overwrites the factor in place."""

    def __init__(self, device: Device, found: PivotedCholesky, ridge: np.ndarray) -> None:
        self.device, self.rank = device, found.rank
        self.condition = 1.0 + found.error / float(ridge.min())
        self.root: Any = device.put(np.sqrt(ridge))[:, None]
        self.half: Any = found.F.div_(self.root)
        self.small: Any = self.half.T @ self.half
        self.small.diagonal().add_(1.0)
        if not factor_in_place(self.small):
            raise LinAlgError("The matrix of the preconditioner is not positive definite.")

    def solve(self, R: np.ndarray) -> np.ndarray:
        scaled = self.device.put(R) / self.root
        if scaled.shape[1] == 1:  # a product with one vector is faster than with a matrix
            right = (self.half.T @ scaled[:, 0])[:, None]
        else:
            right = self.half.T @ scaled
        inner = solve_with_factor(self.small, right)
        return host((scaled - self.half @ inner) / self.root)
