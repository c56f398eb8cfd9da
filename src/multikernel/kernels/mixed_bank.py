"""The bank for tables with columns of numbers beside columns of categories."""

from __future__ import annotations

from collections.abc import Sequence

from .bank import KernelBank
from .base import Kernel
from .distances import Exponential
from .overlap import Overlap
from .vectors import Laplacian, Linear, VectorKernel
from .widths import ROUGH_FACTORS, AtDistance, at_distances

#: Exponents of the overlap kernel; the smallest is close to a linear kernel on one-hot columns.
OVERLAP_POWERS = (1.0, 1 / 4, 1 / 16)


def mixed_columns_bank(numeric: Sequence[int], categorical: Sequence[int]) -> KernelBank:
    """Kernels on the numeric columns, on the categorical columns, and products of both.

    In a product, numeric and categorical columns contribute to the distance in proportion to how
    many there are of each. Widths and scales are learned from the training sample. The names of
    the kernels begin with ``numbers``, ``categories`` or ``both``, so that the attribute
    ``view_weights_`` of a fitted model shows the weight of each of these three.

    Parameters
    ----------
    numeric, categorical : sequences of int
        Columns of X; categorical columns hold codes.
    """
    kernels: list[tuple[str, Kernel]] = []
    numbers, codes = tuple(numeric), tuple(categorical)
    overlap = Overlap(columns=codes or None)
    powers = [("", overlap), *((f" ** {p:g}", overlap**p) for p in OVERLAP_POWERS[1:])]
    if numbers:
        forms: list[tuple[VectorKernel, str]] = [
            (Exponential(), "standard"),
            (Laplacian(), "quantile"),
        ]
        kernels += [
            (f"numbers: {_name(form, factor, scaling)}", near)
            for form, scaling in forms
            for factor, near in zip(
                ROUGH_FACTORS,
                at_distances(form, ROUGH_FACTORS, scaling=scaling, columns=numbers),
                strict=True,
            )
        ]
        kernels.append(("numbers: Linear()", Linear(scaling="standard", columns=numbers)))
    if codes:
        kernels += [(f"categories: Overlap(){power}", kernel) for power, kernel in powers]
        rare = Overlap(weights="frequency", columns=codes)
        kernels.append(("categories: Overlap(weights='frequency')", rare))
    if numbers and codes:
        share = len(numbers) / (len(numbers) + len(codes))
        for form, scaling in reversed(forms):
            for factor in ROUGH_FACTORS:
                near = AtDistance(form, factor / share, columns=numbers, scaling=scaling)
                both = near * overlap ** ((1 - share) / factor)
                kernels.append((f"both: {_name(form, factor, scaling)}, Overlap()", both))
    return KernelBank([kernel for _, kernel in kernels], [name for name, _ in kernels])


def _name(form: Kernel, factor: float, scaling: str) -> str:
    of = " of ranks" if scaling == "quantile" else ""
    return f"{type(form).__name__}{of} at {factor:g} x median"
