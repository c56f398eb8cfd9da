"""Combinations of exponentials of one distance, evaluated as one function of it.

Between samples whose distances have a known bound D the function is a power series: with
``x = 1 - 2 d / D`` and ``l = gamma D / 2``,

    exp(-gamma d) = exp(-l) sum_j (l x)^j / j!,

whose terms are positive at x = 1 and add up to 1 there, so the rounding error is at most a few
times that of the sum of the weights. Instead of a long series, and for distances from new samples,
a table is used (:mod:`multikernel.grams._mixtures`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln

from ..memory import MemoryBudget
from . import tiles
from .points import SQUARE, DevicePoints, evaluate_table, statistic

#: Maximum number of terms of a series; a table costs less than a longer one.
MAX_TERMS = 64
#: Largest truncation error of a series, relative to the sum of the weights.
LEFT_OUT = 2.0**-60
#: Largest truncation error in single precision.
ROUGH_LEFT_OUT = 2.0**-28


class DistanceFunction(NamedTuple):
    """``f(d) = sum_k w_k exp(-gamma_k d)`` as a table or as a power series.

    Attributes
    ----------
    statistic, group : int
        Identify the distance.
    values : tensor
    rate, end : float
        Scale and end of the table; for a series ``2 / D`` and infinity.
    terms : int
        Number of terms of the series; 0 for a table.
    """

    statistic: int
    group: int
    values: Any
    rate: float
    end: float
    terms: int = 0

    def on(self, d: Any) -> Any:
        if not self.terms:
            return evaluate_table(self.values, self.rate, self.end, d)
        x = (d * -self.rate).add_(1.0)
        value = x.new_zeros(x.shape).add_(self.values[self.terms - 1])
        for j in range(self.terms - 2, -1, -1):
            value.mul_(x).add_(self.values[j])
        return value


def power_series(
    rates: np.ndarray,
    w: np.ndarray,
    shifted: np.ndarray,
    bound: float,
    left_out: float = LEFT_OUT,
) -> np.ndarray | None:
    """Coefficients of the series for distances up to a bound; None if it would be long."""
    l = 0.5 * bound * rates
    if not 0.0 < l.max() < MAX_TERMS:
        return None
    # The rest of the series is the tail of a Poisson distribution; it is zero for l = 0.
    counts = np.arange(1, MAX_TERMS + 1)
    enough = gammainc(counts, l.max()) <= left_out
    if not enough.any():
        return None
    j = np.arange(counts[np.argmax(enough)])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = j[:, None] * np.log(l) - gammaln(j + 1.0)[:, None] - l
    terms = np.exp(np.where(j[:, None] > 0, logs, -l))
    terms[0] = np.where(shifted, np.expm1(-l), terms[0])
    return np.asarray(terms @ w)


def table_values(
    table: DistanceFunction,
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
    # Programs write ``out[column, row]``: here `right` gives their rows, and `left` the columns.
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
    table: DistanceFunction, left: DevicePoints, right: DevicePoints, V: Any, budget: MemoryBudget
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


def rough_products(series: DistanceFunction, points: DevicePoints, V: Any) -> Any:
    """``sum_j f(d_ij) V_j`` over pairs of the points in single precision, shape (n, t)."""
    from ._programs import series_products

    device, torch, group = points.device, points.device.torch, series.group
    Z = points.columns(group)
    # Distances do not depend on the origin, but their rounding errors do.
    Z = (Z - Z.mean(dim=0)) * float(np.sqrt(series.rate))
    norms = Z.square().sum(dim=1).float()
    width = -(-Z.shape[1] // tiles.DOT_WIDTH) * tiles.DOT_WIDTH
    coordinates = torch.zeros((points.n, width), dtype=torch.float32, device=device.name)
    coordinates[:, : Z.shape[1]] = Z
    size = V.abs().amax(dim=0).clamp_(min=np.finfo(np.float64).tiny)
    out = device.zeros(tiles.SPLITS, V.shape[1], points.n)
    grid = (-(-points.n // tiles.DOT_ROWS), tiles.SPLITS)
    series_products[grid](
        coordinates,
        norms,
        series.values,
        (V / size).T.float().contiguous(),
        out,
        points.n,
        tiles.split(points.n),
        width,
        TERMS=series.terms,
        Q=V.shape[1],
        PRECISION=tiles.dot_precision(device),
        BM=tiles.DOT_ROWS,
        BN=tiles.DOT_COLUMNS,
        BK=tiles.DOT_WIDTH,
        num_warps=tiles.DOT_WARPS,
    )
    return out.sum(dim=0).T * size


def _run(
    table: DistanceFunction,
    rows: DevicePoints,
    columns: DevicePoints,
    out: Any,
    W: Any,
    shifts: tuple[Any, Any] | None,
) -> None:
    """Launch a program: values to ``out[j, i]``, or with W products to ``out[split, q, i]``."""
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
        TERMS=table.terms,
        Q=0 if W is None else len(W),
        SHIFTED=shifts is not None,
        BM=tiles.BLOCK_ROWS,
        BN=tiles.MIXTURE_COLUMNS,
        num_warps=tiles.warps(),
        num_stages=1,
    )
