"""Passes over tiles in several threads, with results that do not depend on their number.

The grid of tiles depends only on n, p and the type. Threads take *units* of row panels, and the
results of units are added in the order of the units.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

UNITS = 32  # maximum number of units per pass; bounds the memory of partial sums


def tiles_of(n: int, tile: int) -> int:
    return -(-n // tile)


def units(n_tiles: int) -> list[NDArray[np.int64]]:
    """Row panels of the upper triangle, grouped into units of nearly equal work.

    Panel I has ``n_tiles - I`` tiles; panels I and ``n_tiles - 1 - I`` together always have
    ``n_tiles + 1``.
    """
    n_pairs = (n_tiles + 1) // 2
    per_unit = -(-n_pairs // UNITS)
    found = []
    for first in range(0, n_pairs, per_unit):
        pairs = range(first, min(first + per_unit, n_pairs))
        panels = sorted({panel for i in pairs for panel in (i, n_tiles - 1 - i)})
        found.append(np.array(panels, dtype=np.int64))
    return found


def in_order(
    function: Callable[[Any], Result], jobs: Any, n_threads: int | None
) -> Iterator[Result]:
    """Results of ``function(job)`` in the order of the jobs; few are held at a time."""
    if n_threads is None:
        n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        n_threads = max(n_threads, 1)
    if n_threads <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield function(job)
        return
    with ThreadPoolExecutor(min(n_threads, len(jobs))) as pool:
        waiting: deque[Future[Result]] = deque()
        for job in jobs:
            waiting.append(pool.submit(function, job))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
