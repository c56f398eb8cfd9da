"""Builders of the engine "torch"."""

from __future__ import annotations

from typing import Any

from ..engines import BuildOptions, build_on_host
from ..planning import Part
from ..protocol import Grams
from .dense import DeviceDenseGrams
from .device import find_device
from .rankone import DeviceRankOneGrams
from .shared import DeviceSharedGrams


def build_part(part: Part, X: Any, options: BuildOptions) -> Grams:
    """The grams of a part, on the device of the options.

    Kernels of other kinds than "shared" are evaluated on the host first, then moved.
    """
    device = find_device(options.device or "cpu")
    if part.kind == "shared":
        kernels: Any = part.kernels
        return DeviceSharedGrams.evaluate_on(
            device,
            kernels,
            X,
            options.names,
            options.budget,
            dtype=options.dtype,
            known_psd=part.known_psd,
            **options.common,
        )
    grams: Any = build_on_host(part, X, options)
    if part.kind == "rank-one":
        return DeviceRankOneGrams.on_device(device, grams)
    return DeviceDenseGrams.on_device(device, grams)
