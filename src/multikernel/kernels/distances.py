"""Kernels of the Euclidean distance other than the Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .base import check_number
from .vectors import VectorKernel, _squared_distances

#: Values of nu for which a Matern kernel is a polynomial times an exponential.
SMOOTHNESS = (0.5, 1.5, 2.5)


@dataclass(frozen=True, repr=False)
class Exponential(VectorKernel):
    """The exponential kernel ``K(x, z) = exp(-(||x - z|| / length) ** power)``.

    Functions of this kernel need not be smooth, so it often suits tables of measurements better
    than a Gaussian.

    Parameters
    ----------
    length : float, default=1.0
        The positive distance over which the kernel falls to 1/e.
    power : float, default=1.0
        Above 0 and at most 2. With 2 the kernel is ``Gaussian(gamma=1 / length**2)``.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Exponential(length=2.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0821]])
    """

    length: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Exponential", "length", self.length, positive=True)
        check_number("Exponential", "power", self.power, positive=True)
        if self.power > 2:
            raise ValueError(
                f"Exponential: power must be at most 2; got {self.power!r}. Beyond 2 the function "
                "is not positive semidefinite."
            )
        object.__setattr__(self, "length", float(self.length))
        object.__setattr__(self, "power", float(self.power))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def is_infinitely_divisible(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        scaled = _squared_distances(X, Z) / (self.length * self.length)
        return np.exp(-(scaled ** (0.5 * self.power))).astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class Matern(VectorKernel):
    """Matern's kernel of the scaled distance ``a = sqrt(2 nu) ||x - z|| / length``.

    It is ``exp(-a)`` for nu = 1/2 (the exponential kernel), ``(1 + a) exp(-a)`` for nu = 3/2 and
    ``(1 + a + a^2 / 3) exp(-a)`` for nu = 5/2. The larger nu, the smoother the functions.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=1.5
        The smoothness.
    length : float, default=1.0
        The positive scale of distances.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Matern(nu=2.5, length=2.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0635]])
    """

    nu: float = 1.5
    length: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Matern", "length", self.length, positive=True)
        check_number("Matern", "nu", self.nu, positive=True)
        if self.nu not in SMOOTHNESS:
            raise ValueError(
                f"Matern: nu must be 0.5, 1.5 or 2.5; got {self.nu!r}. Between these the kernel "
                "has no simple form; Exponential(length, power) is another family in between."
            )
        object.__setattr__(self, "length", float(self.length))
        object.__setattr__(self, "nu", float(self.nu))

    @property
    def is_psd(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        a = np.sqrt(2.0 * self.nu * _squared_distances(X, Z)) / self.length
        polynomial = {0.5: 1.0, 1.5: 1.0 + a, 2.5: 1.0 + a + a**2 / 3.0}[self.nu]
        return np.asarray(polynomial * np.exp(-a)).astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class RationalQuadratic(VectorKernel):
    """The kernel ``K(x, z) = (1 + ||x - z||^2 / (2 alpha length^2)) ** -alpha``.

    A mixture of Gaussians of all widths. The smaller alpha, the longer the tails; for large alpha
    it is ``Gaussian(gamma=0.5 / length**2)``.

    Parameters
    ----------
    length : float, default=1.0
        The positive scale of distances.
    alpha : float, default=1.0
        Positive; the larger alpha, the less weight wide Gaussians have in the mixture.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.RationalQuadratic(length=5.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.6667]])
    """

    length: float = 1.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("RationalQuadratic", "length", self.length, positive=True)
        check_number("RationalQuadratic", "alpha", self.alpha, positive=True)
        object.__setattr__(self, "length", float(self.length))
        object.__setattr__(self, "alpha", float(self.alpha))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def is_infinitely_divisible(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        # For a huge length the product is infinite, where length**2 would raise OverflowError.
        scaled = _squared_distances(X, Z) / (2.0 * self.alpha * (self.length * self.length))
        # log1p is accurate for a large alpha, where the base is close to 1.
        return np.exp(-self.alpha * np.log1p(scaled)).astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)


@dataclass(frozen=True, repr=False)
class Periodic(VectorKernel):
    """The kernel ``K(x, z) = exp(-2 sum_c sin^2(pi (x_c - z_c) / period) / length^2)``.

    For hours, weekdays, angles and other cyclic columns: values that differ by a multiple of the
    period count as equal. Apply it to these columns alone (``columns=``).

    Parameters
    ----------
    period : float, default=1.0
        Positive, in the unit of the columns.
    length : float, default=1.0
        Positive; the smaller it is, the faster functions may change within a period.
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Periodic(period=24.0)([[23.5]], [[0.5], [12.0]]).round(3)
    array([[0.966, 0.136]])
    """

    period: float = 1.0
    length: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Periodic", "period", self.period, positive=True)
        check_number("Periodic", "length", self.length, positive=True)
        object.__setattr__(self, "period", float(self.period))
        object.__setattr__(self, "length", float(self.length))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def is_infinitely_divisible(self) -> bool:
        return True

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        on_X = self._circles(X)
        on_Z = on_X if X is Z else self._circles(Z)
        distances = _squared_distances(on_X, on_Z)
        return np.exp(-0.5 * distances / (self.length * self.length)).astype(X.dtype, copy=False)

    def _circles(self, X: Any) -> np.ndarray:
        """Every column as a point of the unit circle: chords have length ``2 |sin(angle / 2)|``."""
        X = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
        angles = 2.0 * np.pi * np.remainder(X / self.period, 1.0)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)
