"""Move fitted functions, such as those of loaded models, to a device."""

from __future__ import annotations

from copy import copy

from ..blocks import BlockExpansion
from ..protocol import Expansion
from ..separate import SeparateExpansions
from ..shared import SharedCross
from ..stacked import StackedExpansion
from .device import device_budget, find_device
from .shared import DeviceSharedCross


def move(expansion: Expansion, device: str) -> Expansion:
    """The same function on a device; parts that can only run on the host stay there."""
    new = copy(expansion)
    if isinstance(new, (StackedExpansion, SeparateExpansions)):
        new.parts = [part and move(part, device) for part in new.parts]
    elif isinstance(new, BlockExpansion) and isinstance(new.cross, SharedCross):
        where = find_device(device)
        if isinstance(new.cross, DeviceSharedCross) and new.cross.device == where:
            return expansion
        new.cross = DeviceSharedCross.of(new.cross, where, device_budget(where, None))
    return new
