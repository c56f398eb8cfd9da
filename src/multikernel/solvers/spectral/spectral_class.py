"""Kernels that share the eigenvectors of one matrix (Bousquet & Herrmann 2002, classes (4), (5)).

``K_0 = U diag(lambda) U'`` on all samples, labelled or not. Members of the class are
``U diag(g) U'`` with ``g >= 0`` of sum c. Each family is the convex hull of some spectra g:

=============  ==============================  =====================================================
spectral (4)   ``c e_i``, all i                all spectra
polynomial (5) ``c lambda^s / sum lambda^s``    convex increasing functions of lambda: same order
=============  ==============================  =====================================================

The members are matrices, not kernel functions. For new samples the Nystroem extension of the
eigenvectors is ``u_i(x) = k(x, .) u_i / lambda_i``. A classifier ``U diag(g) U'[:, labelled] s``
becomes ``k(x, .) U diag(g / lambda) U'[:, labelled] s``, with the same values on the sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ..._threads import one_blas_thread
from .hulls import Hull, KernelMatrices, RankOneKernels

#: Eigenvalues below this fraction of the largest are rounding errors.
MIN_EIGENVALUE_RATIO = 1e-10


class NegativeEigenvalueError(ValueError):
    """A kernel matrix has a negative eigenvalue."""


@dataclass(frozen=True)
class KernelSpectrum:
    """Eigenvectors and eigenvalues of one kernel matrix, largest first.

    Attributes
    ----------
    vectors : array of shape (N, r)
        Eigenvectors with eigenvalues above 1e-10 times the largest.
    values : array of shape (r,)
        Their eigenvalues, not scaled.
    trace : float
        The sum c of the spectrum of every member.
    """

    vectors: np.ndarray
    values: np.ndarray
    trace: float

    @classmethod
    def of(cls, K: np.ndarray, trace: float, name: str = "The kernel") -> KernelSpectrum:
        """The spectrum of K; ``name`` is the subject of the error message."""
        with one_blas_thread(len(K)):
            values, vectors = eigh(K)
        top = float(np.abs(values).max(initial=0.0))
        if values[0] < -1e-8 * top:
            raise NegativeEigenvalueError(
                f"{name} is not positive semidefinite on these samples: its smallest eigenvalue is "
                f"{values[0]:.3g}, its largest {values[-1]:.3g}. Choose another kernel."
            )
        keep = np.flatnonzero(values > MIN_EIGENVALUE_RATIO * top)[::-1]
        return cls(vectors[:, keep], values[keep], trace)

    def members(self, family: str, degree: int) -> np.ndarray:
        """The spectra that span the family, shape (p, r), each of sum c."""
        if family == "spectral":
            return self.trace * np.eye(len(self.values))
        # Scale the largest eigenvalue to one: otherwise high powers may overflow.
        unit = self.values / self.values[0]
        powers = unit ** np.arange(1, degree + 1)[:, None]
        return np.asarray(self.trace * powers / powers.sum(axis=1, keepdims=True))

    def names(self, family: str, degree: int) -> list[str]:
        """The names of the members."""
        if family == "spectral":
            return [f"eigenvector {i + 1}" for i in range(len(self.values))]
        return ["K" if s == 1 else f"K^{s}" for s in range(1, degree + 1)]

    def hull(self, family: str, degree: int, labelled: np.ndarray) -> Hull:
        """The members on the labelled samples."""
        V = self.vectors[labelled]
        if family == "spectral":
            return RankOneKernels(np.sqrt(self.trace) * V)
        return KernelMatrices(np.stack([(V * g) @ V.T for g in self.members(family, degree)]))

    def values_at(self, g: np.ndarray, labelled: np.ndarray, s: np.ndarray) -> np.ndarray:
        """``U diag(g) U'[:, labelled] s``: the decision values of all samples."""
        return np.asarray(self.vectors @ (g * (self.vectors[labelled].T @ s)))

    def extension(self, g: np.ndarray, labelled: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Coefficients of ``k(., x_j)``, j over all samples, of the Nystroem extension."""
        return np.asarray(self.vectors @ (g / self.values * (self.vectors[labelled].T @ s)))
