"""Banks by family: grids of widths or degrees, one kernel per column, kernels per view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .bank import KernelBank, PerFeature, as_bank, distinct
from .base import Kernel
from .columns import freeze_columns
from .vectors import Gaussian, Linear, Polynomial, VectorKernel


def gaussians(
    gammas: Iterable[float], *, columns: Any = None, scaling: str | None = None
) -> KernelBank:
    """One Gaussian kernel per gamma.

    Widths refer to the columns as they are. With ``scaling="standard"`` (or ``"quantile"``) every
    column is first brought to mean 0 and variance 1, with numbers learned from the training
    sample; :func:`multikernel.at_distances` also chooses the widths.

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


def per_view(views: Mapping[str, Any]) -> KernelBank:
    """Kernels for several views of the same samples, named after the views.

    Parameters
    ----------
    views : mapping of name to ``(kernel or kernels, columns)``
        The columns of X that make up the view, and what to compute on them.

    Examples
    --------
    >>> import multikernel as mk
    >>> bank = mk.per_view({
    ...     "expression": (mk.gaussians([0.01, 0.1]), slice(0, 100)),
    ...     "clinical": (mk.Linear(), ["age", "stage"]),
    ... })
    >>> bank.names
    ['expression: Gaussian(gamma=0.01)', 'expression: Gaussian(gamma=0.1)', 'clinical: Linear()']
    """
    kernels: list[Kernel] = []
    names: list[str] = []
    if not isinstance(views, Mapping) or not views:
        raise TypeError(
            "per_view takes a mapping with at least one entry, name to (kernel or kernels, "
            f"columns); got {views!r}."
        )
    for view, value in views.items():
        try:
            given, columns = value
        except (TypeError, ValueError):
            raise ValueError(
                f"View {view!r} must be a pair (kernel or kernels, columns); got {value!r}."
            ) from None
        try:
            bank, columns = as_bank(given), freeze_columns(columns)
        except (TypeError, ValueError) as error:
            raise type(error)(f"View {view!r}: {error}") from None
        if bank.is_open:
            raise ValueError(
                f"View {view!r}: per_feature(...) chooses its own columns. Use "
                "mk.per_feature(kernel, columns=...) and add the banks with +."
            )
        for kernel in bank:
            if not hasattr(kernel, "columns") or kernel.columns is not None:
                raise ValueError(
                    f"View {view!r}: {kernel!r} cannot be given columns; use kernels on vectors "
                    "or sequences that do not select their own."
                )
            placed = _with_columns(kernel, columns)
            kernels.append(placed)
            names.append(f"{view}: {kernel!r}")
    return KernelBank(kernels, distinct(names))


def view_name(name: str, entry: Any) -> str | None:
    """The view of a kernel, from its name in a bank of `per_view`; None for other names."""
    if getattr(entry, "columns", None) is None or not isinstance(entry, Kernel):
        return None
    own = f": {_with_columns(entry, None)!r}"
    for ending in (name, re.sub(r" #\d+$", "", name)):  # repeated names have a number
        if ending.endswith(own) and len(ending) > len(own):
            return ending[: -len(own)]
    return None


def _with_columns(kernel: Any, columns: Any) -> Any:
    return replace(kernel, columns=freeze_columns(columns))
