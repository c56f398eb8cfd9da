"""Row sums of Chebyshev polynomials of distances, which give the statistics of all kernels.

The same host code launches a Triton program on a GPU, and its equivalent in plain torch elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._levels import DistanceLevel
from .._simd import REST
from ..memory import MemoryBudget
from . import tiles
from .points import SQUARE, STATISTIC, DevicePoints, statistic

#: Targets with at most this many distinct rows are summed by class, at the cost of one vector.
MAX_CLASSES = 12


@dataclass(frozen=True)
class Columns:
    """An order of the samples in which those of a class are adjacent.

    Attributes
    ----------
    order : array of shape (m,)
        The sample at each position; repeated samples are padding.
    real : array of shape (m,)
        Whether a position holds a sample, not padding.
    segments : list of slices
        The positions of each class.
    """

    order: np.ndarray
    real: np.ndarray
    segments: list[slice]

    @classmethod
    def of(cls, labels: np.ndarray, multiple: int) -> Columns:
        """Group the samples by class 0, 1, ..., and pad each class to a multiple of `multiple`."""
        order, real, segments, start = [], [], [], 0
        for label in range(int(labels.max(initial=0)) + 1):
            members = np.flatnonzero(labels == label)
            padding = -len(members) % multiple
            order += [members, np.full(padding, members[-1])]
            real += [np.ones(len(members), bool), np.zeros(padding, bool)]
            segments.append(slice(start, start + len(members) + padding))
            start = segments[-1].stop
        return cls(np.concatenate(order), np.concatenate(real), segments)


@dataclass(frozen=True)
class RowSums:
    """Sums of polynomials for some rows.

    Attributes
    ----------
    places : slice
        The positions of the rows in the order of `Columns`.
    sums : tensor of shape (n_segments, q, high, n_rows)
        ``sum_j w_qj T_m(x_ij)`` over the columns of a segment. From degree `level.degrees` on,
        only their sum over all rows is defined: the total over all pairs.
    """

    places: slice
    sums: Any


def polynomial_rows(
    points: DevicePoints,
    group: int,
    kind: int,
    level: DistanceLevel,
    segments: list[slice],
    W: Any,
    high: int,
    budget: MemoryBudget,
) -> Iterator[RowSums]:
    """Yield the sums for all rows, panel by panel.

    The weights are ``W[0]``, and ``W[0] * W[q]`` for the other rows of W (q, n), of which there are
    at most `tiles.MAX_FACTORS`.
    """
    base = STATISTIC[kind]
    if tiles.uses_programs(points.device):
        yield from _by_programs(points, group, base, level, segments, W, high, budget)
        return
    height = points.device.panel_rows(points.n, budget)
    for start in range(0, points.n, height):
        places = slice(start, min(start + height, points.n))
        d = statistic(base, points.take(places), points, group)
        yield RowSums(places, _twin(d, level, segments, W, high))


def _twin(d: Any, level: DistanceLevel, segments: list[slice], W: Any, high: int) -> Any:
    """The sums of one panel of distances (r, n) in plain torch, (n_segments, q, high, r)."""
    x = 1.0 - d * (2.0 / level.end)
    before = x.new_ones(x.shape) if level.whole else (d < level.end).to(x.dtype)
    now = x * before
    out = x.new_empty((len(segments), len(W), high, len(d)))
    W = W.clone()
    W[1:] *= W[0]
    for m in range(high):
        for s, segment in enumerate(segments):
            out[s, :, m] = W[:, segment] @ before[:, segment].T
        before, now = now, 2.0 * x * now - before
    return out


def _by_programs(
    points: DevicePoints,
    group: int,
    base: int,
    level: DistanceLevel,
    segments: list[slice],
    W: Any,
    high: int,
    budget: MemoryBudget,
) -> Iterator[RowSums]:
    from ._programs import polynomial_sums

    device, n = points.device, points.n
    coordinates = points.columns(group)
    across = coordinates.T.contiguous()
    norms = points.norms(group)
    numbers = device.put(np.array([2.0 / level.end, level.end]))
    by_dots = base == SQUARE and coordinates.shape[1] > tiles.MAX_DIFFERENCE_COLUMNS
    height, width = tiles.panel_shape(n, budget)
    W = W.contiguous()
    # High degrees come from products of two polynomials, which needs weights of 0 or 1.
    half = REST * -(-high // (2 * REST))
    by_products = len(W) == 1 and high <= 2 * level.degrees and bool((W * W == W).all())
    for start in range(0, n, height):
        rows = min(height, n - start)
        found = device.empty(len(segments), len(W), high, rows)
        for s, segment in enumerate(segments):
            # One block more than there are programs, which read slightly past their own sums.
            out = device.zeros(tiles.SPLITS + 1, len(W), high, rows)
            for first in range(segment.start, segment.stop, width):
                columns = min(width, segment.stop - first)
                dots = norms
                if by_dots:
                    some = coordinates[first : first + columns]
                    dots = some @ coordinates[start : start + rows].T
                grid = (rows // tiles.BLOCK_ROWS, tiles.SPLITS)
                polynomial_sums[grid](
                    across,
                    norms,
                    dots,
                    W,
                    out,
                    n,
                    start,
                    rows,
                    first,
                    columns,
                    rows,
                    tiles.split(columns),
                    coordinates.shape[1],
                    numbers,
                    level.degrees,
                    high,
                    half,
                    KIND=base,
                    DOTS=by_dots,
                    WHOLE=level.whole,
                    PRODUCTS=by_products,
                    Q=len(W),
                    BM=tiles.BLOCK_ROWS,
                    BN=tiles.SUM_COLUMNS,
                    num_warps=tiles.warps(),
                    num_stages=1,
                )
            found[s] = out[: tiles.SPLITS].sum(dim=0)
        if by_products:
            for parity in (0, 1):
                found[:, :, half + parity :: 2] *= 2.0
                found[:, :, half + parity :: 2] -= found[:, :, parity : parity + 1]
        yield RowSums(slice(start, start + rows), found)
