"""Kernels that share the eigenvectors of one matrix (Bousquet & Herrmann 2002, classes (4), (5)).

``K_0 = U diag(lambda) U'`` on all points, labelled or not. Members of the class are
``U diag(g) U'`` with ``g >= 0`` of sum c, and every family is the hull of some spectra:

=============  ==============================  ========================================
spectral (4)   ``c e_i``, all i                every spectrum
polynomial (5) ``c lambda^s / sum lambda^s``    convex increasing ones: the order is kept
=============  ==============================  ========================================

Outside the sample there is no kernel function. The Nystroem extension continues eigenvectors by
``u_i(x) = k(x, .) u_i / lambda_i``, so that a machine ``U diag(g) U'[:, labelled] s`` becomes
``k(x, .) U diag(g / lambda) U'[:, labelled] s``; on the sample both are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ..._threads import one_blas_thread
from .problem import Hull, KernelMatrices, RankOneKernels

#: Eigenvectors with a smaller part of the largest eigenvalue are rounding, not the kernel's.
RANK = 1e-10


class NegativeEigenvalueError(ValueError):
    """A matrix that should be positive semidefinite is not."""


@dataclass(frozen=True)
class KernelSpectrum:
    """Eigenvectors and eigenvalues of one kernel matrix, largest first.

    Attributes
    ----------
    vectors : array of shape (N, r)
        Those whose eigenvalue is not zero to rounding: one 1e-10 of the largest or less.
    values : array of shape (r,)
        Eigenvalues of the matrix as it came.
    trace : float
        c, what the spectra of all members sum to.
    """

    vectors: np.ndarray
    values: np.ndarray
    trace: float

    @classmethod
    def of(cls, K: np.ndarray, trace: float, name: str = "The kernel") -> KernelSpectrum:
        with one_blas_thread(len(K)):
            values, vectors = eigh(K)
        top = float(np.abs(values).max(initial=0.0))
        if values[0] < -1e-8 * top:
            raise NegativeEigenvalueError(
                f"{name} is not positive semidefinite on these points: its smallest eigenvalue is "
                f"{values[0]:.3g}, its largest {values[-1]:.3g}. Spectra of kernels are "
                "non-negative; choose another kernel."
            )
        keep = np.flatnonzero(values > RANK * top)[::-1]
        return cls(vectors[:, keep], values[keep], trace)

    def members(self, family: str, degree: int) -> np.ndarray:
        """The spectra whose hull the family is, shape (p, r), each of sum c."""
        if family == "spectral":
            return self.trace * np.eye(len(self.values))
        # Scaled to a largest eigenvalue of one first: high powers would overflow.
        unit = self.values / self.values[0]
        powers = unit ** np.arange(1, degree + 1)[:, None]
        return np.asarray(self.trace * powers / powers.sum(axis=1, keepdims=True))

    def names(self, family: str, degree: int) -> list[str]:
        if family == "spectral":
            return [f"eigenvector {i + 1}" for i in range(len(self.values))]
        return ["K" if s == 1 else f"K^{s}" for s in range(1, degree + 1)]

    def hull(self, family: str, degree: int, labelled: np.ndarray) -> Hull:
        """The members on the labelled points."""
        V = self.vectors[labelled]
        if family == "spectral":
            return RankOneKernels(np.sqrt(self.trace) * V)
        return KernelMatrices(np.stack([(V * g) @ V.T for g in self.members(family, degree)]))

    def values_at(self, g: np.ndarray, labelled: np.ndarray, s: np.ndarray) -> np.ndarray:
        """``U diag(g) U'[:, labelled] s``: the machine on all points of the sample."""
        return np.asarray(self.vectors @ (g * (self.vectors[labelled].T @ s)))

    def extension(self, g: np.ndarray, labelled: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Coefficients of ``k(., x_j)`` over all points that continue the machine (Nystroem)."""
        return np.asarray(self.vectors @ (g / self.values * (self.vectors[labelled].T @ s)))
