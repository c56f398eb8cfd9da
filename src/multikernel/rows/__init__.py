"""Rows in chunks: where they come from, passes over them, and clusters that make these passes.

>>> import numpy as np
>>> from multikernel.rows import open_rows, reduce_rows
>>> rows = open_rows(np.ones((100_000, 3)))
>>> rows.n_rows, rows.n_columns, len(rows.pieces)
(100000, 3, 7)
>>> reduce_rows(rows, lambda chunk: chunk.X.sum(axis=0), np.add)
array([100000., 100000., 100000.])
"""

from .base import Rows
from .chunk import Chunk
from .opening import open_rows
from .reduction import reduce_rows
from .sampling import hold_out, sample_rows

__all__ = ["Chunk", "Rows", "hold_out", "open_rows", "reduce_rows", "sample_rows"]
