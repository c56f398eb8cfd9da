"""Mean and upper bound of the distances between samples, computed on the device."""

from __future__ import annotations

from typing import Any

from .._distances import POINTS_PER_REMOTE_POINT, DistanceFacts
from .._families import KernelFamily
from .._passes import EXP_CHI, EXP_SQ
from .points import DevicePoints

#: Entries per block of distances from the points farthest from the mean to all points.
REMOTE_ENTRIES = 2**24


class DeviceFacts(DistanceFacts):
    """`DistanceFacts` of points on a device; the sample of distances is computed on the host."""

    def __init__(self, family: KernelFamily, points: DevicePoints) -> None:
        super().__init__(family)
        self._points = points

    def mean(self, group: int, kind: int) -> float:
        if kind == EXP_CHI:
            return super().mean(group, kind)
        return float(self._on_device("mean", mean_distance, group, kind))

    def bound(self, group: int, kind: int) -> float:
        return float(self._on_device("bound", distance_bound, group, kind))

    def _on_device(self, name: str, function: Any, group: int, kind: int) -> Any:
        key = (name, group, kind)
        if key not in self._known:
            self._known[key] = function(self._points.columns(group), kind)
        return self._known[key]


def mean_distance(Z: Any, kind: int) -> float:
    """The mean over all pairs; see :func:`multikernel.grams._distances.mean_distance`."""
    n = len(Z)
    if n == 0:
        return 0.0
    if kind == EXP_SQ:
        return 2.0 * float(((Z - Z.mean(dim=0)) ** 2).sum()) / n
    ordered = Z.sort(dim=0).values
    ranks = 2.0 * (Z.new_ones(n).cumsum(0) - 1.0) - (n - 1)
    return 2.0 * float((ranks @ ordered).sum()) / n**2


def distance_bound(Z: Any, kind: int) -> float:
    """An upper bound of all distances; see `multikernel.grams._distances.distance_bound`."""
    n, eps = len(Z), 2.0**-52
    if kind != EXP_SQ:
        far = (Z - Z.median(dim=0).values).abs().sum(dim=1)
        return 2.0 * float(far.max()) * (1.0 + 64.0 * eps)
    centred = Z - Z.mean(dim=0)
    radius = (centred**2).sum(dim=1)
    count = n // POINTS_PER_REMOTE_POINT
    order = radius.argsort(descending=True, stable=True)
    remote = order[:count]
    found = 4.0 * float(radius[order[count]])
    step = max(1, REMOTE_ENTRIES // n)
    for start in range(0, count, step):
        some = remote[start : start + step]
        squares = (centred[some] @ centred.T).mul_(-2.0).add_(radius)
        found = max(found, float((squares.max(dim=1).values + radius[some]).max()))
    if not found < float("inf"):
        return float("inf")
    return found * (1.0 + 64.0 * eps * Z.shape[1] ** 0.5)
