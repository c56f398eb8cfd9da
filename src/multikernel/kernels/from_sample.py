"""Check which kernels hold numbers learned from data: scales, ranks, frequencies, repairs."""

from __future__ import annotations

from typing import Any

from .algebra import Composite, Power, Scaled
from .columns import Standardization
from .observed import Observed
from .overlap import LevelCosts, Overlap
from .scaling import QuantileScaling
from .sequences.edit import Repaired
from .sequences.ngrams import Ngrams
from .vectors import VectorKernel


def took_from_sample(entry: Any) -> bool:
    """Whether a kernel, or an entry of a bank, holds numbers that were learned from data.

    Kernels of :func:`multikernel.default_bank` and of :func:`multikernel.learned_scales` hold the
    scales of columns, also inside sums and products. A kernel that has not learned yet, such as one
    of :func:`multikernel.at_distances`, holds none. A learned width alone cannot be distinguished
    from one that the user chose.
    """
    if isinstance(entry, Composite):
        return any(took_from_sample(part) for part in entry.parts)
    if isinstance(entry, (Scaled, Power)):
        return took_from_sample(entry.kernel)
    if isinstance(entry, (Observed, Ngrams, Repaired)):
        return True
    if isinstance(entry, Overlap):
        return isinstance(entry.weights, LevelCosts)
    learned = (Standardization, QuantileScaling)
    return isinstance(entry, VectorKernel) and isinstance(entry.scaling, learned)
