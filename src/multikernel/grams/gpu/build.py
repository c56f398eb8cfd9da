"""Builders of the engine "torch"."""

from __future__ import annotations

from typing import Any

from ..engines import BuildOptions
from ..planning import Part
from ..protocol import Grams
from .device import find_device
from .shared import DeviceSharedGrams


def build_part(part: Part, X: Any, options: BuildOptions) -> Grams:
    """The grams of a part on the device that the engine's name asks for."""
    device = find_device(options.device or "cpu")
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
