"""The non-zero coefficients of a vote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Terms:
    """The coefficients of one function ``f(x) = sum_t coef_t K_kernel_t(x, x_point_t)``.

    Attributes
    ----------
    kernels, points : int arrays of shape (n_terms,)
        Kernel and training sample of each term, ordered by kernel, then by sample.
    coef : array of shape (n_terms,)
        Signed: ``alpha_kj y_j``.
    """

    kernels: np.ndarray
    points: np.ndarray
    coef: np.ndarray

    @classmethod
    def sorted(cls, kernels: np.ndarray, points: np.ndarray, coef: np.ndarray) -> Terms:
        """Terms in the order of their kernels and samples."""
        order = np.lexsort((points, kernels))
        return cls(kernels[order], points[order], coef[order])

    def __len__(self) -> int:
        return len(self.coef)
