"""Kernels on samples that may lack the columns which the kernel reads.

A sample is *absent* for a kernel if all columns that the kernel reads are NaN. Its feature vector
is then the mean of the feature vectors of the training samples that have them,

    phi(x) = m = sum_r v_r phi(x_r),    v_r >= 0,    sum_r v_r = 1.

So ``K(x, z) = sum_r v_r K(x_r, z)`` for absent x, and ``K(x, z) = sum_rs v_r v_s K(x_r, x_s)`` if z
is absent too. All values are inner products of feature vectors: a positive semidefinite kernel
stays so, on training and new samples together. With v proportional to the sample
weights, m is also the mean over *all* training samples, whether they are absent or not. Centring
subtracts it, and the centred rows of absent samples are exactly zero: they carry no information.

A sample that has some of the columns is present, and its missing values are replaced by the means
of the training sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .algebra import Composite, Power, Scaled
from .bank import KernelBank, PerFeature, adapt, distinct, view_of
from .base import Kernel
from .columns import take_columns
from .missing_pattern import MissingPattern
from .vectors import VectorKernel

#: Rows per block when computing kernel values against the reference samples.
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, repr=False, eq=False)
class Observed(Kernel):
    """A kernel that accepts NaN: absent samples are at the mean of the others in feature space.

    Attributes
    ----------
    kernel : Kernel
        Reads an X that holds only the columns in `columns`, in that order.
    columns : tuple of int
        The columns of X that the kernel reads.
    fill : array of shape (n_columns,)
        Values in place of NaN, for samples that have some of the columns.
    reference : array of shape (n_reference, n_columns)
        The training samples that are present, with missing values filled in.
    shares : array of shape (n_reference,)
        Sample weights of the reference samples, with sum one.
    centre : float
        The kernel value of two absent samples.
    label : str
        The name of the kernel in a bank.
    view : str or None
        The name of its view, in a bank of :func:`multikernel.per_view`.
    """

    kernel: Kernel
    columns: tuple[int, ...]
    fill: np.ndarray
    reference: np.ndarray
    shares: np.ndarray
    centre: float
    label: str
    view: str | None = None

    def __repr__(self) -> str:
        return f"Observed({self.label})"

    @property
    def name(self) -> str:
        return self.label

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def is_symmetric(self) -> bool:
        return self.kernel.is_symmetric

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        columns: tuple[int, ...],
        fill: np.ndarray,
        reference: np.ndarray,
        shares: np.ndarray,
        label: str,
        view: str | None = None,
    ) -> Observed:
        """The kernel with these reference samples."""
        new = cls(kernel, columns, fill, reference, shares, 0.0, label, view)
        return dataclasses.replace(new, centre=float(shares @ new.means(reference)))

    def read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The filled columns of X, and a mask of the samples that are present."""
        X = take_columns(X, self.columns)
        missing = np.isnan(X)
        if not missing.any():
            return X, np.ones(X.shape[0], dtype=bool)
        return np.where(missing, self.fill.astype(X.dtype), X), ~missing.all(axis=1)

    def means(self, filled: np.ndarray) -> np.ndarray:
        """Kernel values between present samples and an absent one, shape (n,)."""
        out = np.empty(len(filled))
        for start in range(0, len(filled), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            out[rows] = self.kernel(filled[rows], self.reference) @ self.shares
        return out

    def place_coefficients(self, A: np.ndarray, Z: Any, has: np.ndarray) -> np.ndarray:
        """Coefficients (m, n) of the absent samples of Z as ones of the reference samples."""
        return np.asarray(A[:, ~has].sum(axis=1)[:, None] * self.shares)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        A, has = self.read(X)
        same = Z is None or Z is X
        B, also = (A, has) if same else self.read(Z)
        if has.all() and also.all():
            return self.kernel(A) if same else self.kernel(A, B)
        inner = self.kernel(A[has]) if same else self.kernel(A[has], B[also])
        K = np.full((len(A), len(B)), self.centre, dtype=inner.dtype)
        K[np.ix_(has, also)] = inner
        left = self.means(A[has]) if same or not also.all() else np.zeros(0)
        if not also.all():
            K[np.ix_(has, ~also)] = left[:, None]
        if not has.all():
            K[np.ix_(~has, also)] = left if same else self.means(B[also])
        return K

    def diag(self, X: Any) -> np.ndarray:
        A, has = self.read(X)
        return np.where(has, self.kernel.diag(A), self.centre)


def observe(
    bank: KernelBank,
    X: np.ndarray,
    sample_weight: np.ndarray | None = None,
    feature_names: Sequence[str] | None = None,
    fill: np.ndarray | None = None,
) -> tuple[KernelBank, np.ndarray]:
    """The kernels of a bank as :class:`Observed`, and which samples are absent for each of them.

    Scalings and widths are learned from the samples that are present for a kernel.

    Parameters
    ----------
    bank : KernelBank
        Kernels on numeric columns, or sums, products, multiples and powers of them.
    X : array of shape (n, n_features)
        The training sample, with NaN for what is missing.
    sample_weight : array of shape (n,), optional
    feature_names : sequence of str, optional
    fill : array of shape (n_features,), optional
        Values in place of NaN for samples that have some columns of a kernel; by default the
        means of the columns.

    Returns
    -------
    bank : KernelBank
    absent : array of bool, shape (p, n)
    """
    names = None if feature_names is None else [str(name) for name in feature_names]
    omega = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    missing = np.isnan(X)
    filling = column_means(X, omega) if fill is None else fill
    samples: dict[tuple[int, ...], tuple[np.ndarray, ...]] = {}  # shared by the kernels of a view

    def select(columns: tuple[int, ...], owner: str) -> tuple[np.ndarray, ...]:
        if columns not in samples:
            index = np.array(columns)
            lost = missing[:, index].all(axis=1)
            if lost.all():
                raise ValueError(_nobody_has(owner, columns, names))
            empty = index[missing[:, index].all(axis=0)]
            if len(empty):
                raise ValueError(_empty_columns(owner, empty, names))
            own = X[np.ix_(~lost, index)]
            reference = np.where(np.isnan(own), filling[index].astype(own.dtype), own)
            shares = omega[~lost] / omega[~lost].sum()
            samples[columns] = lost, filling[index], reference, shares
        return samples[columns]

    kernels: list[Kernel] = []
    labels: list[str] = []
    absent: list[np.ndarray] = []
    for entry, given in zip(bank.entries, bank._names or [None] * len(bank.entries), strict=True):
        for kernel in _kernels(entry, X.shape[1], names):
            if isinstance(kernel, Observed):  # from a fitted bank
                absent.append(missing[:, np.array(kernel.columns)].all(axis=1))
                kernels.append(kernel)
                labels.append(kernel.label)
                continue
            placed = kernel.resolve(X.shape[1], names)
            if isinstance(placed, MissingPattern):  # this kernel reads NaN itself
                kernels.append(placed)
                absent.append(np.zeros(len(X), dtype=bool))
                labels.append(given or kernel.name)
                continue
            columns = tuple(sorted(columns_read(placed, X.shape[1])))
            view = None if given is None else view_of(given) or None
            owner = f"Kernel {given or kernel.name!r}" if view is None else f"View {view!r}"
            lost, values, reference, shares = select(columns, owner)
            weights = None if sample_weight is None else omega[~lost]
            own = adapt(_on_own_columns(placed, columns), reference, weights, None)
            label = repr(_with_columns_of(own, kernel))
            if given is not None and kernel is entry:
                label = given
            kernels.append(Observed.of(own, columns, values, reference, shares, label, view))
            labels.append(label)
            absent.append(lost)
    return KernelBank(kernels, distinct(labels)), np.stack(absent)


def column_means(X: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Weighted column means of the values that are not NaN, shape (n_features,); 0 without any."""
    there = ~np.isnan(X)
    totals = omega @ there
    sums = omega @ np.where(there, X, 0.0)
    return np.divide(sums, totals, out=np.zeros(X.shape[1]), where=totals > 0)


def columns_read(kernel: Any, n_features: int) -> set[int]:
    """Indices of the columns that a kernel reads, whose own ``columns`` are indices or None."""
    if isinstance(kernel, Observed):
        return set(kernel.columns)
    if isinstance(kernel, Composite):
        return set().union(*(columns_read(part, n_features) for part in kernel.parts))
    if isinstance(kernel, (Scaled, Power)):
        return columns_read(kernel.kernel, n_features)
    if not isinstance(kernel, VectorKernel):
        raise ValueError(
            "missing='ignore' needs kernels on numeric columns, which may contain NaN; got "
            f"{kernel!r}. Leave it out, or use missing='error' and complete data."
        )
    return set(range(n_features)) if kernel.columns is None else {int(c) for c in kernel.columns}  # type: ignore[union-attr, arg-type]


def _kernels(entry: Any, n_features: int, names: Sequence[str] | None) -> list[Kernel]:
    """The kernels of one entry of a bank."""
    if isinstance(entry, PerFeature):
        columns = entry.indices(n_features, names).tolist()
        shown = columns if names is None else [names[c] for c in columns]
        return [dataclasses.replace(entry.kernel, columns=(c,)) for c in shown]
    if not isinstance(entry, Kernel):
        raise ValueError(
            f"missing='ignore' needs kernels that are known before fit; got {entry!r}. Use kernels "
            "such as mk.Gaussian or mk.at_distances, or complete data."
        )
    return [entry]


def _on_own_columns(kernel: Any, columns: tuple[int, ...]) -> Any:
    """The same kernel for an X that holds these columns only."""
    if isinstance(kernel, Composite):
        parts = tuple(_on_own_columns(part, columns) for part in kernel.parts)
        return dataclasses.replace(kernel, parts=parts)
    if isinstance(kernel, (Scaled, Power)):
        return dataclasses.replace(kernel, kernel=_on_own_columns(kernel.kernel, columns))
    if kernel.columns is None:
        return kernel
    place = {column: j for j, column in enumerate(columns)}
    own = tuple(place[column] for column in kernel.columns)
    whole = own == tuple(range(len(columns)))
    return dataclasses.replace(kernel, columns=None if whole else own)


def _with_columns_of(kernel: Any, given: Any) -> Any:
    """The same kernel with columns as the user wrote them, for its name."""
    if isinstance(kernel, Composite):
        parts = (_with_columns_of(*pair) for pair in zip(kernel.parts, given.parts, strict=True))
        return dataclasses.replace(kernel, parts=tuple(parts))
    if isinstance(kernel, (Scaled, Power)):
        return dataclasses.replace(kernel, kernel=_with_columns_of(kernel.kernel, given.kernel))
    return dataclasses.replace(kernel, columns=given.columns)


def name_columns(columns: Sequence[int], names: Sequence[str] | None, most: int = 5) -> str:
    """A text that lists the first few of some columns, by name if they have names."""
    shown = [str(c) if names is None else repr(str(names[c])) for c in columns[:most]]
    return ", ".join(shown) + (", ..." if len(columns) > most else "")


def _nobody_has(owner: str, columns: Sequence[int], names: Sequence[str] | None) -> str:
    return (
        f"{owner}: no training sample has a value in its columns "
        f"({name_columns(columns, names)}); all are NaN. Leave it out of the bank."
    )


def _empty_columns(owner: str, empty: np.ndarray, names: Sequence[str] | None) -> str:
    return (
        f"{owner}: some of its columns contain only NaN in the training sample: "
        f"{name_columns(empty.tolist(), names)}. Leave these columns out."
    )
