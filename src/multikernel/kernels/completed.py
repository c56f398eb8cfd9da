r"""Kernels completed from other views, which predict the feature vectors of absent samples.

For a kernel k and the training samples r that have its columns, the *other* kernels (on other
columns), centred, scaled to unit variance and averaged, make a kernel M, in which views that a
sample lacks count as zero. Ridge regression with M predicts centred feature vectors of kernel k,

    phi_k(x) - m_k = sum_r c_r(x) (phi_k(x_r) - m_k),    c(x) = (M_rr + lambda I)^-1 M_r(x)

which is the conditional mean in the EM algorithm for kernel completion (Tsuda, Akaho and Asai
2003). If no other view of x is known, the prediction is the mean m_k, as in
:class:`multikernel.kernels.observed.Observed`. All values are inner products of feature vectors, so
a positive semidefinite kernel stays so, on training and new samples together.

lambda minimises the exact leave-one-out error of the regression, ``sum_i (P K P)_ii / P_ii^2`` with
``P = (M_rr + lambda I)^-1`` and K the centred kernel matrix.

With sample weights omega, I becomes the diagonal matrix of ``1 / omega``: a weight of two is a
repetition. One copy of a sample is left out, of weight ``min(1, omega_i)``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bank import KernelBank
from .base import Kernel
from .observed import Observed

#: Ridge constants to choose from, for a kernel M of unit variance.
RIDGES = tuple(10.0 ** np.linspace(-3, 2, 11))


@dataclass(frozen=True, eq=False)
class Completion:
    """The regression of one view on the others.

    Attributes
    ----------
    helpers : tuple of Observed
        Kernels on other columns.
    scales : array of shape (n_helpers,)
        Factors that bring the centred helpers to unit variance.
    donors : array of shape (n_reference, n_features)
        The training samples that have the view, with all their columns.
    inverse : array of shape (n_reference, n_reference)
        ``P = (M_rr + lambda diag(1 / omega))^-1``.
    ridge : float
    explained : float
        The leave-one-out share of the variance of the view's kernel that the other views predict:
        at most 1, and negative if they predict worse than the mean does.
    """

    helpers: tuple[Observed, ...]
    scales: np.ndarray
    donors: np.ndarray
    inverse: np.ndarray
    ridge: float
    explained: float

    @classmethod
    def of(
        cls,
        kernel: Observed,
        helpers: tuple[Observed, ...],
        donors: np.ndarray,
        omega: np.ndarray,
    ) -> Completion:
        """Learn scales and ridge constant; ``donors`` are the rows of the reference samples."""
        n = len(donors)
        scales = np.array([_unit_scale(helper, donors, omega) for helper in helpers])
        new = cls(helpers, scales, donors, np.zeros((n, n)), 0.0, 0.0)
        root = np.sqrt(omega)
        values, vectors = np.linalg.eigh(new.similarities(donors) * np.outer(root, root))
        K = centred(kernel, donors, donors) * np.outer(root, root)
        turned = vectors.T @ K @ vectors
        total = float(np.trace(K))
        copy = 1.0 / np.maximum(omega, 1.0)  # the share of a sample that is left out at once
        best: tuple[float, float] | None = None
        for ridge in RIDGES:
            inverse = 1.0 / (np.maximum(values, 0.0) + ridge)
            left_out = np.einsum(
                "ia,ab,ib->i", vectors * inverse, turned, vectors * inverse, optimize=True
            )
            rest = (1.0 - copy) / ridge + copy * ((vectors**2) @ inverse)
            error = float(np.sum(left_out / rest**2))
            if best is None or error < best[0]:
                best = error, ridge
        assert best is not None
        inverse = 1.0 / (np.maximum(values, 0.0) + best[1])
        explained = 1.0 - best[0] / total if total > 0 else 0.0
        vectors *= root[:, None]
        return dataclasses.replace(
            new, inverse=(vectors * inverse) @ vectors.T, ridge=best[1], explained=explained
        )

    def similarities(self, X: np.ndarray) -> np.ndarray:
        """M between samples and donors, shape (n, n_reference)."""
        parts = zip(self.helpers, self.scales, strict=True)
        total = sum(scale * centred(helper, X, self.donors) for helper, scale in parts)
        return np.asarray(total, dtype=np.float64) / len(self.helpers)

    def coefficients(self, X: np.ndarray) -> np.ndarray:
        """c(x) for samples without the view, shape (n, n_reference)."""
        return self.similarities(X) @ self.inverse


@dataclass(frozen=True, repr=False, eq=False)
class Completed(Observed):
    """A kernel that accepts NaN: absent samples are predicted from their other views.

    Attributes
    ----------
    completion : Completion or None
        Shared by the kernels of a view; None places absent samples at the mean. Other attributes
        are those of :class:`Observed`.
    """

    completion: Completion | None = None

    def __repr__(self) -> str:
        return f"Completed({self.label})"

    def places(self, X: Any, has: np.ndarray) -> np.ndarray:
        """Absent samples as combinations of the reference samples, shape (n, n_reference)."""
        assert self.completion is not None
        c = self.completion.coefficients(np.asarray(X)[~has])
        return np.asarray(c + (1.0 - c.sum(axis=1))[:, None] * self.shares)

    def place_coefficients(self, A: np.ndarray, Z: Any, has: np.ndarray) -> np.ndarray:
        if self.completion is None or has.all():
            return super().place_coefficients(A, Z, has)
        return np.asarray(A[:, ~has] @ self.places(Z, has))

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        A, has = self.read(X)
        same = Z is None or Z is X
        B, also = (A, has) if same else self.read(Z)
        if self.completion is None or (has.all() and also.all()):
            return super().__call__(X, Z)
        V = self.places(X, has)
        W = V if same else self.places(Z, also)
        inner = self.kernel(A[has]) if same else self.kernel(A[has], B[also])
        K = np.empty((len(A), len(B)), dtype=inner.dtype)
        K[np.ix_(has, also)] = inner
        right = self.kernel(A[has], self.reference) @ W.T
        K[np.ix_(has, ~also)] = right
        left = right.T if same else V @ self.kernel(self.reference, B[also])
        K[np.ix_(~has, also)] = left
        if not has.all() and not also.all():
            K[np.ix_(~has, ~also)] = V @ self.kernel(self.reference) @ W.T
        return K

    def diag(self, X: Any) -> np.ndarray:
        A, has = self.read(X)
        if self.completion is None or has.all():
            return super().diag(X)
        out = np.empty(len(A))
        out[has] = self.kernel.diag(A[has])
        V = self.places(X, has)
        out[~has] = np.einsum("ir,ir->i", V @ self.kernel(self.reference), V)
        return out


def complete(
    bank: KernelBank,
    X: np.ndarray,
    absent: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> KernelBank:
    """The kernels of a bank of :class:`Observed` ones, completed from each other.

    A kernel for which no sample is absent, or without kernels on other columns, is unchanged.

    Parameters
    ----------
    bank : KernelBank
        As :func:`multikernel.kernels.observed.observe` returns it.
    X : array of shape (n, n_features)
        The training sample, with NaN for what is missing.
    absent : array of bool, shape (p, n)
    sample_weight : array of shape (n,), optional
    """
    omega = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    observed = [kernel for kernel in bank if isinstance(kernel, Observed)]
    found: dict[tuple[int, ...], Completion | None] = {}
    kernels: list[Kernel] = []
    for kernel, lost in zip(bank, absent, strict=True):
        if not isinstance(kernel, Observed) or isinstance(kernel, Completed) or not lost.any():
            kernels.append(kernel)
            continue
        if kernel.columns not in found:
            own = set(kernel.columns)
            helpers = tuple(other for other in observed if own.isdisjoint(other.columns))
            donors, own_omega = X[~lost], omega[~lost]
            helpers = tuple(helper for helper in helpers if _varies(helper, donors, own_omega))
            found[kernel.columns] = (
                Completion.of(kernel, helpers, donors, own_omega) if helpers else None
            )
        values = {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)}
        kernels.append(Completed(**values, completion=found[kernel.columns]))
    return KernelBank(kernels, bank._names)


def centred(kernel: Observed, X: Any, Z: Any) -> np.ndarray:
    """Kernel values centred at the mean of the kernel's reference samples; 0 for absent samples."""
    A, has = kernel.read(X)
    B, also = kernel.read(Z)
    K = np.zeros((len(A), len(B)))
    if has.any() and also.any():
        inner = kernel.kernel(A[has], B[also]).astype(np.float64)
        inner -= kernel.means(A[has])[:, None]
        inner -= kernel.means(B[also])[None, :]
        K[np.ix_(has, also)] = inner + kernel.centre
    return K


def _unit_scale(helper: Observed, donors: np.ndarray, omega: np.ndarray) -> float:
    variance = float(np.diag(centred(helper, donors, donors)) @ omega) / float(omega.sum())
    return 1.0 / variance


def _varies(helper: Observed, donors: np.ndarray, omega: np.ndarray) -> bool:
    """Whether the centred kernel is not zero on the donors."""
    A, has = helper.read(donors)
    if has.sum() < 2:
        return False
    diagonal = helper.kernel.diag(A[has]) - 2.0 * helper.means(A[has]) + helper.centre
    return float(diagonal @ omega[has]) > 1e-10 * float(omega.sum())
