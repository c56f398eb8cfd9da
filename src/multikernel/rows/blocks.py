"""Rows of dask arrays and dask data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def cut_block(raw: Any, chunk_rows: int) -> Iterator[Any]:
    """Parts of at most ``chunk_rows`` rows of what a block holds."""
    yield raw
