"""Samples on a device, and panels of statistics and kernel values between them in plain torch.

Squared distances come from dot products, ``|x|^2 + |z|^2 - 2 x'z``, which cancels the digits of
pairs that are much closer to each other than to the origin. Such pairs are recomputed from
differences of coordinates, so that every distance keeps its relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _passes
from .._families import KernelFamily
from .._mixtures import TableShape
from .device import Device

#: Pairs with a squared distance below this part of ``|x|^2 + |z|^2`` are recomputed as differences.
NEAR = 2.0**-8
#: Tables with more and shorter intervals than in the compiled loops, so that polynomials have fewer
#: coefficients to look up; the error of ``exp(-gamma d)`` is at most 5e-17.
TABLE = TableShape(bits=7, degree=5)
#: Entries per block of coordinate differences of near pairs.
NEAR_ENTRIES = 2**22

SQUARE, ABSOLUTE, DOT, RATIO = _passes.SQUARE, _passes.ABSOLUTE, _passes.DOT, _passes.RATIO
STATISTIC = {
    _passes.EXP_SQ: SQUARE,
    _passes.EXP_L1: ABSOLUTE,
    _passes.EXP_CHI: RATIO,
    _passes.TABLE_SQ: SQUARE,
    _passes.TABLE_L1: ABSOLUTE,
    _passes.TABLE_CHI: RATIO,
    _passes.EXP_ROOT: SQUARE,
    _passes.EXP_POWER: SQUARE,
    _passes.MATERN_3: SQUARE,
    _passes.MATERN_5: SQUARE,
    _passes.POLY: DOT,
    _passes.TANH: DOT,
}
TABLES = (_passes.TABLE_SQ, _passes.TABLE_L1, _passes.TABLE_CHI)


class DevicePoints:
    """The columns of all groups of some samples, float64 on a device."""

    def __init__(self, device: Device, Z: Any, offsets: np.ndarray) -> None:
        self.device, self.offsets = device, offsets
        self.Z = device.put(Z)
        #: identifies the samples that these were taken from
        self.origin: object = self.Z
        self._norms: dict[int, Any] = {}

    @property
    def n(self) -> int:
        return int(self.Z.shape[0])

    def columns(self, group: int) -> Any:
        return self.Z[:, int(self.offsets[group]) : int(self.offsets[group + 1])]

    def norms(self, group: int) -> Any:
        """``|x|^2`` of every sample in the columns of a group."""
        if group not in self._norms:
            self._norms[group] = (self.columns(group) ** 2).sum(dim=1)
        return self._norms[group]

    def take(self, index: Any) -> DevicePoints:
        """Some of the samples; a slice is a view."""
        new = DevicePoints(self.device, self.Z[index], self.offsets)
        new.origin = self.origin
        if isinstance(index, slice):
            new._norms = {group: norms[index] for group, norms in self._norms.items()}
        return new


def statistic(kind: int, left: DevicePoints, right: DevicePoints, group: int) -> Any:
    """Distances or dot products between samples, shape (left.n, right.n)."""
    A, B = left.columns(group), right.columns(group)
    if kind == DOT:
        return A @ B.T
    if kind == SQUARE:
        return squared_distances(A, B, left.norms(group), right.norms(group))
    out = left.device.zeros(left.n, right.n)
    for a, b in zip(A.T, B.T, strict=True):
        difference = a[:, None] - b
        if kind == ABSOLUTE:
            out += difference.abs_()
        else:
            both = a[:, None] + b
            out += difference.square_().div_(both.where(both > 0, both.new_ones(())))
    return out


def squared_distances(A: Any, B: Any, a_norms: Any, b_norms: Any) -> Any:
    """``||a - b||^2`` of all rows, each with the relative accuracy of a sum of squares."""
    sizes = a_norms[:, None] + b_norms
    out = (A @ B.T).mul_(-2.0).add_(sizes)
    rows, columns = (out < sizes.mul_(NEAR)).nonzero(as_tuple=True)
    step = max(1, NEAR_ENTRIES // max(A.shape[1], 1))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        out[i, j] = (A[i] - B[j]).square_().sum(dim=1)
    return out


def evaluate(family: KernelFamily, k: int, base: Any) -> Any:
    """Values of kernel k at its distances or dot products `base`; a new tensor."""
    kind, (gamma, coef0, degree) = int(family.kind[k]), family.params[k].tolist()
    if kind in (_passes.EXP_SQ, _passes.EXP_L1, _passes.EXP_CHI):
        t = base * -gamma
        return t.expm1_() if family.is_shifted[k] else t.exp_()
    if kind == _passes.POLY:
        return (base * gamma).add_(coef0).pow_(int(degree))
    if kind == _passes.TANH:
        return (base * gamma).add_(coef0).tanh_()
    if kind == _passes.EXP_POWER:
        return base.pow(coef0).mul_(-gamma).exp_()
    t = base.sqrt().mul_(gamma)
    decay = (-t).exp_()
    if kind == _passes.EXP_ROOT:
        return decay
    inner = t / 3.0 + 1.0 if kind == _passes.MATERN_5 else t.new_ones(())
    # Where the exponential underflows to 0, its polynomial factor may overflow: keep the 0.
    return ((inner * t).add_(1.0) * decay).where(decay > 0, decay)


def evaluate_table(table: Any, rate: float, end: float, d: Any) -> Any:
    """A tabulated sum of exponentials; see :mod:`multikernel.grams._mixtures`."""
    import torch

    bits, degree = TABLE
    x = (d * rate).add_(1.0).clamp_(max=end)
    number = x.view(torch.int64)
    place = ((number >> (52 - bits)) - (1023 << bits)) * (degree + 1)
    u = ((number & ((1 << (52 - bits)) - 1)) << bits) | (1023 << 52)
    u = u.view(torch.float64) - 1.0
    value = table[place + degree]
    for k in range(degree - 1, -1, -1):
        value = value * u + table[place + k]
    return value
