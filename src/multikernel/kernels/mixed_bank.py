"""The bank for tables with columns of numbers beside columns of categories."""

from __future__ import annotations

from collections.abc import Sequence

from .bank import KernelBank
from .base import Kernel
from .distances import Exponential
from .overlap import Overlap
from .vectors import Laplacian, Linear, VectorKernel
from .widths import ROUGH_FACTORS, AtDistance, at_distances

#: Exponents of the overlap kernel; the widest is close to a linear kernel of one-hot columns.
OVERLAP_POWERS = (1.0, 1 / 4, 1 / 16)


def mixed_columns_bank(numeric: Sequence[int], categorical: Sequence[int]) -> KernelBank:
    """Kernels of the numbers, of the categories, and products of both.

    In a product the numbers and the categories have a part in the distance that is proportional
    to how many columns they are. Widths and scales are learned from the training sample.

    Parameters
    ----------
    numeric, categorical : sequences of int
        Columns of X; the latter hold codes.
    """
    kernels: list[Kernel] = []
    numbers, codes = tuple(numeric), tuple(categorical)
    if numbers:
        kernels.extend(at_distances(Exponential(), ROUGH_FACTORS, columns=numbers))
        kernels.extend(
            at_distances(Laplacian(), ROUGH_FACTORS, scaling="quantile", columns=numbers)
        )
        kernels.append(Linear(scaling="standard", columns=numbers))
    if codes:
        overlap = Overlap(columns=codes)
        kernels += [overlap if power == 1 else overlap**power for power in OVERLAP_POWERS]
        kernels.append(Overlap(weights="frequency", columns=codes))
    if numbers and codes:
        share = len(numbers) / (len(numbers) + len(codes))
        forms: list[tuple[VectorKernel, str]] = [
            (Laplacian(), "quantile"),
            (Exponential(), "standard"),
        ]
        for form, scaling in forms:
            for factor in ROUGH_FACTORS:
                near = AtDistance(form, factor / share, columns=numbers, scaling=scaling)
                kernels.append(near * overlap ** ((1 - share) / factor))
    return KernelBank(kernels)
