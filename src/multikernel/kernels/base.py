"""The base class of kernels: immutable values that can be called on two samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .algebra import Power, Product, Scaled, Sum


class Kernel:
    """Base class of kernels: immutable objects that can be printed, compared, added and multiplied.

    Subclasses are frozen dataclasses with two methods, ``__call__(X, Z)`` and ``diag(X)``.
    ``K1 + K2``, ``K1 * K2``, ``K**2`` and ``3.0 * K`` are kernels again; so is ``K**0.5`` if every
    power of K is positive semidefinite, as with Gaussians.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.Gaussian(0.5) + 2.0 * mk.Linear() ** 2
    Gaussian(gamma=0.5) + 2 * Linear()**2
    """

    @property
    def name(self) -> str:
        """The kernel's name in a bank: its ``repr`` unless it was given a name."""
        return repr(self)

    @property
    def is_psd(self) -> bool:
        """Whether every Gram matrix of this kernel is known to be positive semidefinite."""
        return False

    @property
    def is_symmetric(self) -> bool:
        """False for a kernel declared to have ``K(x, z) != K(z, x)``; only votes accept it."""
        return True

    @property
    def is_infinitely_divisible(self) -> bool:
        """Whether every positive power, entry by entry, is known to be positive semidefinite."""
        return False

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Gram matrix of shape (n_X, n_Z); ``Z=None`` means ``Z=X``."""
        raise NotImplementedError

    def diag(self, X: Any) -> np.ndarray:
        """The values K(x, x), shape (n_X,)."""
        raise NotImplementedError

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Kernel:
        """The same kernel with its columns as plain indices into X."""
        return self

    # Values are shared, never copied: cloning an estimator must not copy a precomputed matrix.
    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __add__(self, other: object) -> Sum:
        from .algebra import Sum

        return Sum.of(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Product | Scaled:
        from .algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product.of(self, other)
        if is_number(other):
            return Scaled.of(float(other), self)  # type: ignore[arg-type]
        return NotImplemented

    def __rmul__(self, other: object) -> Product | Scaled:
        return self.__mul__(other)

    def __pow__(self, exponent: object) -> Power:
        from .algebra import Power

        if not is_number(exponent):
            raise TypeError(f"{self!r} ** {exponent!r}: the exponent of a kernel must be positive.")
        return Power(self, exponent)  # type: ignore[arg-type]


def known_psd(kernels: Sequence[Kernel]) -> np.ndarray:
    """Mask of the kernels that are positive semidefinite by construction, shape (p,)."""
    return np.array([kernel.is_psd for kernel in kernels], dtype=bool)


#: Smallest positive float64 with full precision (the smallest normal number).
SMALLEST_NUMBER = float(np.finfo(np.float64).tiny)
#: Largest accepted integer parameter; compiled loops count in integers of limited size.
LARGEST_WHOLE_NUMBER = 2**31 - 1


def is_number(value: object) -> bool:
    numbers = (int, float, np.integer, np.floating)
    return isinstance(value, numbers) and not isinstance(value, (bool, np.timedelta64))


def check_number(
    owner: str,
    parameter: str,
    value: object,
    *,
    positive: bool = False,
    nonnegative: bool = False,
    whole: bool = False,
) -> None:
    """Raise an error that names the kernel, the parameter, the expected and the given value."""
    kind = "a positive " if positive else "a "
    kind += "whole number" if whole else "finite number"
    kind += ", zero or larger" if nonnegative else ""
    # Compare Python floats: NumPy would round the limits to the type of a narrower float.
    number = _as_float(value) if is_number(value) else np.nan
    good = bool(np.isfinite(number))
    if good and positive:
        # Subnormal numbers have fewer digits, and their reciprocals overflow.
        good = number >= SMALLEST_NUMBER
        kind += f" of at least {SMALLEST_NUMBER:.3g}" if not good and number > 0 else ""
    if good and nonnegative:
        good = number >= 0
    if good and whole:
        good = number.is_integer() and abs(number) <= LARGEST_WHOLE_NUMBER
        kind += f" of at most {LARGEST_WHOLE_NUMBER}" if number > LARGEST_WHOLE_NUMBER else ""
    if not good:
        raise ValueError(f"{owner}: {parameter} must be {kind}; got {value!r:.200}.")


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return np.inf if value > 0 else -np.inf
