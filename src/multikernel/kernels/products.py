"""Banks of products and powers of kernels: non-linear combinations for any weighting.

A weighting of the monomials ``K_1^{d_1} ... K_p^{d_p}`` learns a polynomial of the base kernels
with coefficients that are not negative. It is a sum of fixed kernels, so problems that are
convex for sums of kernels stay convex.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any

from .._options import check_flag
from .algebra import Power, Product, Scaled
from .bank import KernelBank, as_bank
from .base import Kernel, check_number
from .vectors import Gaussian, Linear, Polynomial

#: Largest number of kernels in a bank of products, and of factors in all of them together.
LIMIT, MAX_FACTORS = 100_000, 2_000_000


def products(
    bank: Any, degree: int = 2, *, lower: bool = False, repeated: bool = True
) -> KernelBank:
    """Products of the kernels of a bank, of a given degree.

    Products that are kernels of the same family are written as such, ``Gaussian(1) * Gaussian(2)``
    as ``Gaussian(3)``, so they share a distance or dot-product matrix; duplicates are dropped.

    Parameters
    ----------
    bank : KernelBank or list of kernels
        The base kernels.
    degree : int, default=2
        How many kernels are multiplied.
    lower : bool, default=False
        Also products of fewer kernels, down to the kernels themselves: the weighted sums are then
        all polynomials up to the degree without a constant.
    repeated : bool, default=True
        Whether a kernel may be multiplied with itself.

    Returns
    -------
    KernelBank

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.kernels.products import products
    >>> products([mk.Gaussian(1.0), mk.Linear()], degree=2).names
    ['Gaussian(gamma=2)', 'Gaussian(gamma=1) * Linear()', 'Polynomial(degree=2, coef0=0, gamma=1)']
    """
    kernels = _closed(bank, "products")
    check_number("products", "degree", degree, positive=True, whole=True)
    lower = check_flag("products", "lower", lower)
    repeated = check_flag("products", "repeated", repeated)
    degree, p = int(degree), len(kernels)
    if not repeated and degree > p:
        raise ValueError(
            f"products: {p} kernels cannot form a product of {degree} different ones. Use "
            "repeated=True, or a smaller degree."
        )
    degrees = range(1, degree + 1) if lower else [degree]
    count = factors = 0
    for d in degrees:
        more = comb(p + d - 1, d) if repeated else comb(p, d)
        count, factors = count + more, factors + d * more
        if count > LIMIT:
            raise ValueError(
                f"products: more than {LIMIT:,} products of up to {degree} of {p} kernels; at most "
                f"{LIMIT:,} are made. Use fewer kernels or a smaller degree."
            )
        if factors > MAX_FACTORS:
            raise ValueError(
                f"products: products of up to {degree} of {p} kernels have more than "
                f"{MAX_FACTORS:,} factors in all. Use powers for powers of one kernel, or fewer "
                "kernels, or a smaller degree."
            )
    choose = combinations_with_replacement if repeated else combinations
    chosen = [part for d in degrees for part in choose(kernels, d)]
    return KernelBank(list(dict.fromkeys(_product(part) for part in chosen)))


def powers(bank: Any, degrees: Iterable[float]) -> KernelBank:
    """Every kernel of a bank raised to every degree: weighted sums are polynomials of each kernel.

    Parameters
    ----------
    bank : KernelBank or list of kernels
    degrees : iterable of float
        Positive numbers. Fractional ones need kernels whose powers are all positive semidefinite,
        such as Gaussians.

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.kernels.products import powers
    >>> powers([mk.Gaussian(0.5), mk.Linear()], [1, 3]).names
    ['Gaussian(gamma=0.5)', 'Gaussian(gamma=1.5)', 'Linear()',
     'Polynomial(degree=3, coef0=0, gamma=1)']
    >>> powers([3 * mk.Laplacian(1.0)], [0.5]).names
    ['1.73205 * Laplacian(gamma=0.5)']
    """
    kernels = _closed(bank, "powers")
    if not isinstance(degrees, Iterable) or isinstance(degrees, str):
        raise TypeError(f"powers: degrees must be a sequence of numbers; got {degrees!r}.")
    wanted = list(degrees)
    if not wanted:
        raise ValueError("powers: degrees is empty; name at least one.")
    for degree in wanted:
        check_number("powers", "every degree", degree, positive=True)
    made = [_power(kernel, float(degree)) for kernel in kernels for degree in wanted]
    return KernelBank(list(dict.fromkeys(made)))


def _closed(bank: Any, name: str) -> list[Kernel]:
    bank = as_bank(bank)
    if bank.is_open:
        raise ValueError(
            f"{name}: this bank has one kernel per column (or n-gram) of data it has not seen yet. "
            "List the kernels, as in [mk.Linear(columns=j) for j in range(5)]."
        )
    return list(bank)


def _power(kernel: Kernel, degree: float) -> Kernel:
    """The power, written as a kernel of the same family where possible."""
    if degree == 1.0:
        return kernel
    if isinstance(kernel, Scaled):
        try:
            factor = kernel.factor**degree
        except OverflowError:
            factor = float("inf")  # refused by name
        power = _power(kernel.kernel, degree)
        return power if factor == 1.0 else Scaled.of(factor, power)
    if isinstance(kernel, Gaussian):
        return replace(kernel, gamma=_rounded(degree * kernel.gamma))
    polynomial = _as_polynomial(kernel)
    if polynomial is not None and degree.is_integer():
        return replace(polynomial, degree=polynomial.degree * int(degree))
    return Power(kernel, degree)


def _rounded(gamma: float) -> float:
    """Gamma to 14 digits, so that 0.1 + 0.2 and 0.3 give the same kernel."""
    return float(f"{gamma:.14g}")


def _product(parts: tuple[Kernel, ...]) -> Kernel:
    """The product with kernels of one family merged and equal ones gathered into powers."""
    merged: list[Kernel] = []
    counts: list[int] = []
    factor = 1.0
    for part in parts:
        if isinstance(part, Scaled):
            factor, part = factor * part.factor, part.kernel
        for at, other in enumerate(merged):
            together = _merge(other, part) if counts[at] == 1 else None
            if together is not None:
                merged[at] = together
                break
            if other == part:
                counts[at] += 1
                break
        else:
            merged.append(part)
            counts.append(1)
    gathered = [k if m == 1 else Power(k, m) for k, m in zip(merged, counts, strict=True)]
    product = gathered[0] if len(gathered) == 1 else reduce(Product.of, gathered)
    return product if factor == 1.0 else Scaled.of(factor, product)


def _merge(one: Kernel, two: Kernel) -> Kernel | None:
    """The product as a kernel of the same family, or None."""
    # Compare exact types: Laplacian is a subclass of Gaussian, but uses another distance.
    if type(one) is type(two) and isinstance(one, Gaussian) and isinstance(two, Gaussian):
        if _same_view(one, two):
            return replace(one, gamma=_rounded(one.gamma + two.gamma))
        return None
    a, b = _as_polynomial(one), _as_polynomial(two)
    if a is None or b is None or not _same_view(a, b) or (a.coef0, a.gamma) != (b.coef0, b.gamma):
        return None
    return replace(a, degree=a.degree + b.degree)


def _as_polynomial(kernel: Kernel) -> Polynomial | None:
    if isinstance(kernel, Linear):
        return Polynomial(1, 0.0, 1.0, columns=kernel.columns, scaling=kernel.scaling)
    return kernel if isinstance(kernel, Polynomial) else None


def _same_view(one: Any, two: Any) -> bool:
    return bool(one.columns == two.columns and one.scaling == two.scaling)
