"""Banks by family: grids of widths or degrees, one kernel per column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .bank import KernelBank, PerFeature
from .columns import freeze_columns
from .vectors import Gaussian, Linear, Polynomial, VectorKernel


def gaussians(
    gammas: Iterable[float], *, columns: Any = None, scaling: str | None = None
) -> KernelBank:
    """One Gaussian kernel per gamma.

    Widths refer to the columns as they are. With ``scaling="standard"`` (or ``"quantile"``) every
    column is first scaled to mean 0 and variance 1, using the training sample;
    :func:`multikernel.at_distances` also chooses the widths.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.gaussians([0.1, 1.0]).names
    ['Gaussian(gamma=0.1)', 'Gaussian(gamma=1)']
    """
    if not isinstance(gammas, Iterable) or isinstance(gammas, str):
        raise TypeError(f"gaussians: gammas must be a sequence of numbers; got {gammas!r}.")
    return KernelBank([Gaussian(gamma, columns=columns, scaling=scaling) for gamma in gammas])


def polynomials(
    degrees: Iterable[int],
    coef0: float = 1.0,
    *,
    gamma: float = 1.0,
    columns: Any = None,
    scaling: str | None = None,
) -> KernelBank:
    """One polynomial kernel per degree.

    Examples
    --------
    >>> import multikernel as mk
    >>> len(mk.polynomials([1, 2, 3]))
    3
    """
    if not isinstance(degrees, Iterable) or isinstance(degrees, str):
        raise TypeError(f"polynomials: degrees must be a sequence of numbers; got {degrees!r}.")
    return KernelBank(
        [Polynomial(d, coef0, gamma, columns=columns, scaling=scaling) for d in degrees]
    )


def per_feature(kernel: VectorKernel | None = None, *, columns: Any = None) -> KernelBank:
    """One kernel per column of X; linear ones are rank-one and cost no more than the columns.

    Parameters
    ----------
    kernel : kernel on vectors, default=Linear()
        Copied to each column.
    columns : names, indices, slice or None
        Which columns get a kernel; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> bank = mk.per_feature(mk.Linear())
    >>> bank.plan(np.zeros((10, 4))).names
    ['Linear(columns=0)', 'Linear(columns=1)', 'Linear(columns=2)', 'Linear(columns=3)']
    """
    kernel = Linear() if kernel is None else kernel
    if not isinstance(kernel, VectorKernel):
        raise TypeError(
            f"per_feature needs a kernel on vectors such as mk.Linear(); got {kernel!r}."
        )
    if kernel.columns is not None or kernel.scaling is not None:
        raise ValueError(
            f"per_feature gives each copy one column; {kernel!r} selects its own. "
            "Use per_feature(kernel, columns=...)."
        )
    return KernelBank([PerFeature(kernel, freeze_columns(columns))])
