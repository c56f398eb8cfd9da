"""Sizes of the tiles and panels of Triton programs, and whether programs are used at all."""

from __future__ import annotations

import os

from ..memory import MemoryBudget
from .device import GPU_PANEL_ENTRIES, PANEL_BUDGET_SHARE, Device

#: Rows per program, and per thread: two, which are loaded at once. With fewer threads or rows, the
#: columns of a tile would be split between threads, which would have to exchange sums.
BLOCK_ROWS, THREAD_ROWS = 256, 2
#: Columns of a tile in registers: for sums of polynomials, and for functions of distances.
SUM_COLUMNS, MIXTURE_COLUMNS = 16, 16
#: Rows, columns and coordinates of a tile of dot products in single precision, and its warps.
DOT_ROWS, DOT_COLUMNS, DOT_WIDTH, DOT_WARPS = 128, 64, 32, 4
#: Programs that share the columns of a panel, so that all multiprocessors have work.
SPLITS = 16
#: Rows of a panel.
PANEL_ROWS = 8192
#: With at most this many columns, squared distances come from differences, not dot products.
MAX_DIFFERENCE_COLUMNS = 4
#: Maximum number of vectors per product, and of weights besides the first in polynomial sums.
MAX_VECTORS, MAX_FACTORS = 2, 2


def interpreted() -> bool:
    """Whether Triton interprets its programs, which then run on processors too."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def uses_programs(device: Device) -> bool:
    return device.on_gpu or interpreted()


def dot_precision(device: Device) -> str:
    """How programs multiply in single precision: by three TF32 products, or in plain float32."""
    if interpreted() or device.torch.cuda.get_device_capability(device.name) < (8, 0):
        return "ieee"
    return "tf32x3"


def warps() -> int:
    return max(1, BLOCK_ROWS // (32 * THREAD_ROWS))


def multiple(device: Device) -> int:
    """The samples of a class are padded to a multiple of this number."""
    return BLOCK_ROWS if uses_programs(device) else 1


def panel_shape(n: int, budget: MemoryBudget) -> tuple[int, int]:
    """Rows and columns of a panel, multiples of `BLOCK_ROWS`."""
    entries = min(GPU_PANEL_ENTRIES, int(PANEL_BUDGET_SHARE * budget.bytes / 8))
    height = min(PANEL_ROWS, _up(n))
    width = max(BLOCK_ROWS, entries // height // BLOCK_ROWS * BLOCK_ROWS)
    return height, min(width, _up(n))


def split(columns: int) -> int:
    """Columns of each of the `SPLITS` programs, a multiple of `BLOCK_ROWS`."""
    return _up(-(-columns // SPLITS))


def _up(count: int) -> int:
    return -(-count // BLOCK_ROWS) * BLOCK_ROWS
