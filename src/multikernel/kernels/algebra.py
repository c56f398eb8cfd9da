"""Sums, products, powers and multiples of kernels are kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any, TypeVar

import numpy as np

from .base import Kernel, check_number

C = TypeVar("C", bound="Composite")


@dataclass(frozen=True, repr=False)
class Composite(Kernel):
    """A kernel built from others, nested sums (or products) flattened: (a + b) + c is a + b + c."""

    parts: tuple[Kernel, ...]

    @classmethod
    def of(cls: type[C], *kernels: Kernel) -> C:
        parts: list[Kernel] = []
        for kernel in kernels:
            parts.extend(kernel.parts if isinstance(kernel, cls) else (kernel,))
        return cls(tuple(parts))

    @property
    def is_psd(self) -> bool:
        return all(part.is_psd for part in self.parts)

    @property
    def is_symmetric(self) -> bool:
        return all(part.is_symmetric for part in self.parts)

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Composite:
        parts = tuple(part.resolve(n_features, feature_names) for part in self.parts)
        return dataclasses.replace(self, parts=parts)


@dataclass(frozen=True, repr=False)
class Sum(Composite):
    """``K1 + K2 + ...``: the features side by side."""

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        return reduce(add, (part(X, Z) for part in self.parts))

    def diag(self, X: Any) -> np.ndarray:
        return reduce(add, (part.diag(X) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Product(Composite):
    """``K1 * K2 * ...``: all products of features."""

    def __repr__(self) -> str:
        return " * ".join(f"({p!r})" if isinstance(p, Sum) else repr(p) for p in self.parts)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        return reduce(mul, (part(X, Z) for part in self.parts))

    def diag(self, X: Any) -> np.ndarray:
        return reduce(mul, (part.diag(X) for part in self.parts))

    @property
    def is_infinitely_divisible(self) -> bool:
        return all(part.is_infinitely_divisible for part in self.parts)


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """``c * K`` with c > 0."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        check_number("A kernel", "the factor it is multiplied by", self.factor, positive=True)

    @classmethod
    def of(cls, factor: float, kernel: Kernel) -> Scaled:
        if isinstance(kernel, Scaled):
            return cls(factor * kernel.factor, kernel.kernel)
        return cls(factor, kernel)

    def __repr__(self) -> str:
        inner = repr(self.kernel)
        return f"{self.factor:g} * " + (f"({inner})" if isinstance(self.kernel, Sum) else inner)

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def is_symmetric(self) -> bool:
        return self.kernel.is_symmetric

    @property
    def is_infinitely_divisible(self) -> bool:
        return self.kernel.is_infinitely_divisible

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Scaled:
        return Scaled(self.factor, self.kernel.resolve(n_features, feature_names))

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        return self.factor * self.kernel(X, Z)

    def diag(self, X: Any) -> np.ndarray:
        return self.factor * self.kernel.diag(X)


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """``K ** a``, entry by entry, for a positive number a.

    An integer power is a product of the kernel with itself. Other powers stay positive semidefinite
    for *infinitely divisible* kernels only: Gaussians and other exponentials of distances, and
    their products, multiples and powers.
    """

    kernel: Kernel
    exponent: float

    def __post_init__(self) -> None:
        check_number(
            f"{self.kernel!r} ** {self.exponent!r}", "the exponent", self.exponent, positive=True
        )
        if float(self.exponent).is_integer():
            object.__setattr__(self, "exponent", int(self.exponent))
        elif not self.kernel.is_infinitely_divisible:
            raise ValueError(
                f"{self.kernel!r} ** {self.exponent!r}: a fractional power of a kernel is positive "
                "semidefinite only if the kernel is infinitely divisible, such as a Gaussian, a "
                "Laplacian, an exponential chi-squared kernel, or products and multiples of "
                "these; this kernel is not known to be. Use an integer exponent."
            )
        else:
            object.__setattr__(self, "exponent", float(self.exponent))

    def __repr__(self) -> str:
        inner = repr(self.kernel)
        simple = not isinstance(self.kernel, (Composite, Scaled, Power))
        return f"{inner if simple else f'({inner})'}**{self.exponent:.6g}"

    @property
    def is_psd(self) -> bool:
        return self.kernel.is_psd

    @property
    def is_symmetric(self) -> bool:
        return self.kernel.is_symmetric

    @property
    def is_infinitely_divisible(self) -> bool:
        return self.kernel.is_infinitely_divisible

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Power:
        return Power(self.kernel.resolve(n_features, feature_names), self.exponent)

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        return self.kernel(X, Z) ** self.exponent

    def diag(self, X: Any) -> np.ndarray:
        return self.kernel.diag(X) ** self.exponent
