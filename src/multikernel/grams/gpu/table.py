"""A combination of exponentials of one distance: a tabulated function, evaluated pair by pair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..memory import MemoryBudget
from . import tiles
from .points import SQUARE, DevicePoints, evaluate_table, statistic


class Table(NamedTuple):
    """``f(d) = sum_k w_k exp(-gamma_k d)`` as :mod:`multikernel.grams._mixtures` tabulates it.

    Attributes
    ----------
    statistic, group : int
        Name the distance.
    values : tensor
    rate, end : float
    """

    statistic: int
    group: int
    values: Any
    rate: float
    end: float

    def on(self, d: Any) -> Any:
        return evaluate_table(self.values, self.rate, self.end, d)


def table_values(
    table: Table,
    left: DevicePoints,
    right: DevicePoints,
    out: Any,
    shifts: tuple[Any, Any] | None,
    budget: MemoryBudget,
) -> None:
    """Write ``f(d_ij) - shifts[0]_i - shifts[1]_j`` to `out`, shape (left.n, right.n)."""
    if not tiles.uses_programs(left.device):
        height = left.device.panel_rows(8 * right.n, budget)
        for start in range(0, left.n, height):
            rows = slice(start, min(start + height, left.n))
            out[rows] = table.on(statistic(table.statistic, left.take(rows), right, table.group))
            if shifts is not None:
                out[rows] -= shifts[0][rows, None]
                out[rows] -= shifts[1]
        return
    # Programs write columns first: the panel of `right` by `left` is that of `left` by `right`.
    height, width = tiles.panel_shape(max(left.n, right.n), budget)
    for start in range(0, right.n, height):
        rows = slice(start, min(start + height, right.n))
        for first in range(0, left.n, width):
            columns = slice(first, min(first + width, left.n))
            some = None
            if shifts is not None:
                some = (shifts[1][rows], shifts[0][columns])
            _run(table, right.take(rows), left.take(columns), out[columns, rows], None, some)


def table_products(
    table: Table, left: DevicePoints, right: DevicePoints, V: Any, budget: MemoryBudget
) -> Any:
    """``sum_j f(d_ij) V_j``, shape (left.n, t) for at most `tiles.MAX_VECTORS` columns."""
    device = left.device
    out = device.empty(left.n, V.shape[1])
    if not tiles.uses_programs(device):
        height = device.panel_rows(8 * right.n, budget)
        for start in range(0, left.n, height):
            rows = slice(start, min(start + height, left.n))
            d = statistic(table.statistic, left.take(rows), right, table.group)
            out[rows] = table.on(d) @ V
        return out
    height, width = tiles.panel_shape(max(left.n, right.n), budget)
    W = V.T.contiguous()
    for start in range(0, left.n, height):
        rows = slice(start, min(start + height, left.n))
        some = left.take(rows)
        total = device.zeros(V.shape[1], some.n)
        for first in range(0, right.n, width):
            columns = slice(first, min(first + width, right.n))
            parts = device.zeros(tiles.SPLITS, V.shape[1], some.n)
            _run(table, some, right.take(columns), parts, W[:, columns].contiguous(), None)
            total += parts.sum(dim=0)
        out[rows] = total.T
    return out


def _run(
    table: Table,
    rows: DevicePoints,
    columns: DevicePoints,
    out: Any,
    W: Any,
    shifts: tuple[Any, Any] | None,
) -> None:
    """One launch: values to ``out[j, i]``, or with W products to ``out[split, q, i]``."""
    from ._programs import mixture

    device, group = rows.device, table.group
    A, B = rows.columns(group), columns.columns(group)
    numbers = device.put(np.array([table.rate, table.end]))
    by_dots = table.statistic == SQUARE and A.shape[1] > tiles.MAX_DIFFERENCE_COLUMNS
    dots = B @ A.T if by_dots else numbers
    per_split = tiles.split(columns.n)
    grid = (-(-rows.n // tiles.BLOCK_ROWS), tiles.SPLITS)
    row_shift, column_shift = (numbers, numbers) if shifts is None else shifts
    mixture[grid](
        A.T.contiguous(),
        B.T.contiguous(),
        rows.norms(group),
        columns.norms(group),
        dots,
        table.values,
        numbers if W is None else W,
        out,
        row_shift,
        column_shift,
        rows.n,
        columns.n,
        rows.n,
        columns.n,
        rows.n,
        rows.n if W is not None else out.stride(0),
        per_split,
        A.shape[1],
        numbers,
        KIND=table.statistic,
        DOTS=by_dots,
        Q=0 if W is None else len(W),
        SHIFTED=shifts is not None,
        BM=tiles.BLOCK_ROWS,
        BN=tiles.MIXTURE_COLUMNS,
        num_warps=tiles.warps(),
        num_stages=1,
    )
