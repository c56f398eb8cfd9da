"""How much memory a call takes at its peak."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak_bytes(work: Callable[[], Any]) -> int:
    """Bytes that Python and numpy allocate at most while ``work()`` runs for the second time.

    The first time compiles loops, or loads compiled ones, and imports modules. In a fresh clone
    that takes more memory than the work itself.
    """
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
