"""Banks for several views of the same samples: which columns make up a view, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .bank import KernelBank, as_bank, distinct
from .base import Kernel
from .columns import Columns, freeze_columns
from .distances import Exponential
from .vectors import Gaussian, Linear, VectorKernel
from .widths import AtDistance

#: Default kernels of a view, with widths as multiples of the median distance within the view.
VIEW_WIDTHS: tuple[tuple[VectorKernel, float], ...] = (
    (Exponential(), 1.0),
    (Gaussian(), 0.5),
    (Gaussian(), 1.0),
    (Gaussian(), 2.0),
)


def per_view(views: Mapping[str, Any]) -> KernelBank:
    """Kernels for several views of the same samples, named after the views.

    Parameters
    ----------
    views : mapping of name to ``(kernel or kernels, columns)``, or to columns
        The columns of X that make up the view, and what to compute on them. Columns are names,
        patterns of names such as ``"gene_*"``, indices, a boolean mask or a slice.

        A view of columns alone gets five kernels on standardised columns: an exponential, three
        Gaussians and a linear one. Their widths are multiples of the median distance in these
        columns, which is found in the training sample when a model is fitted.

    Returns
    -------
    KernelBank
        The names of its kernels begin with the view, ``"clinical: Linear()"``; the attribute
        ``view_weights_`` of fitted models adds up the weights of a view.

    Examples
    --------
    >>> import multikernel as mk
    >>> bank = mk.per_view({
    ...     "expression": (mk.gaussians([0.01, 0.1]), "gene_*"),
    ...     "clinical": (mk.Linear(), ["age", "stage"]),
    ... })
    >>> bank.names
    ['expression: Gaussian(gamma=0.01)', 'expression: Gaussian(gamma=0.1)', 'clinical: Linear()']
    >>> mk.per_view({"expression": "gene_*"}).names[:2]
    ['expression: Exponential at 1 x median', 'expression: Gaussian at 0.5 x median']
    """
    kernels: list[Kernel] = []
    names: list[str] = []
    if not isinstance(views, Mapping) or not views:
        raise TypeError(
            "per_view takes a mapping with at least one entry, name to (kernel or kernels, "
            f"columns) or to columns; got {views!r}."
        )
    for view, value in views.items():
        for kernel, name in _view_kernels(view, value):
            kernels.append(kernel)
            names.append(f"{view}: {name}")
    return KernelBank(kernels, distinct(names))


def _view_kernels(view: str, value: Any) -> list[tuple[Kernel, str]]:
    """The kernels of one view, on its columns, each with a name."""
    if _is_columns(value):
        try:
            return default_kernels(freeze_columns(value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"View {view!r}: {error}") from None
    try:
        given, columns = value
    except (TypeError, ValueError):
        raise ValueError(
            f"View {view!r} must be a pair (kernel or kernels, columns), or columns alone, such as "
            f"'gene_*', a list of names or a slice; got {value!r}."
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
    placed: list[tuple[Kernel, str]] = []
    for kernel in bank:
        if not hasattr(kernel, "columns") or kernel.columns is not None:
            raise ValueError(
                f"View {view!r}: {kernel!r} cannot be restricted to columns; use kernels on "
                "vectors or sequences that do not select their own."
            )
        placed.append((replace(kernel, columns=columns), repr(kernel)))  # type: ignore[type-var]
    return placed


def default_kernels(columns: Columns) -> list[tuple[Kernel, str]]:
    """Kernels for columns of any scale and number, each with a name; widths are found in fit."""
    placed: list[tuple[Kernel, str]] = [
        (
            AtDistance(kernel, factor, columns=columns, scaling="standard"),
            f"{type(kernel).__name__} at {factor:g} x median",
        )
        for kernel, factor in VIEW_WIDTHS
    ]
    return [*placed, (Linear(columns=columns, scaling="standard"), "Linear()")]


def _is_columns(value: Any) -> bool:
    """Whether a value is a choice of columns, and not a pair of kernels and columns."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, (str, int, np.integer, np.bool_)) for item in value)
    if isinstance(value, (str, slice, range, int, np.integer, np.ndarray)):
        return not isinstance(value, bool)
    # An Index or Series of pandas, or another array of names
    return hasattr(value, "to_numpy")
