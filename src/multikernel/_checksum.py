"""A checksum of arrays, sparse matrices and tables of strings."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def checksum(values: Any, start: int = 0) -> int:
    """CRC-32 of all values, continued from ``start``; None leaves it unchanged."""
    found = start
    for array in _buffers(values):
        found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return found


def _buffers(values: Any) -> Iterator[np.ndarray]:
    if values is None:
        return
    if sp.issparse(values):
        yield from (values.indptr, values.indices, values.data)
    elif hasattr(values, "columns"):  # a Table
        for column in values.columns:
            yield from _buffers(column)
    elif values.dtype.kind in "OUS":
        texts = "\x1f".join(map(str, values.ravel().tolist()))
        yield np.frombuffer(texts.encode(), dtype=np.uint8)
    else:
        yield values
