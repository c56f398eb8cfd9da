"""Mean, upper bound and a sample of the distances between the points of one group of columns.

*Distance* is the statistic in which exponentials decay: the squared Euclidean distance for
Gaussians, the sum of absolute differences for Laplacians, and the sum of squared differences over
sums for chi-squared kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import one_blas_thread
from ._families import KernelFamily
from ._passes import EXP_CHI, EXP_SQ

Array = NDArray[Any]

#: One in this many points (the farthest from the mean) is compared with all points.
POINTS_PER_REMOTE_POINT = 24
#: Number of pairs of points in `distance_sample`.
SAMPLE_PAIRS = 1024
_CHUNK_ROWS = 4096


class DistanceFacts:
    """Statistics of the distances of a family's points, each computed on first use.

    A distance is identified by the group of columns and the kind of kernel, `EXP_SQ`, `EXP_L1` or
    `EXP_CHI`.
    """

    def __init__(self, family: KernelFamily) -> None:
        self._columns = family.columns
        self._known: dict[tuple[str, int, int], Any] = {}

    def mean(self, group: int, kind: int) -> float:
        """The mean over all pairs of points; of chi-squared distances, over a sample of pairs."""
        return float(self._once(mean_distance, group, kind))

    def bound(self, group: int, kind: int) -> float:
        """A number that no distance exceeds; see `distance_bound`."""
        return float(self._once(distance_bound, group, kind))

    def sample(self, group: int, kind: int) -> NDArray[np.float64]:
        """The distances of a fixed selection of pairs, sorted."""
        return np.asarray(self._once(distance_sample, group, kind))

    def _once(self, function: Any, group: int, kind: int) -> Any:
        key = (function.__name__, group, kind)
        if key not in self._known:
            self._known[key] = function(self._columns(group), kind)
        return self._known[key]


def is_wide(family: KernelFamily, facts: DistanceFacts | None = None) -> NDArray[np.bool_]:
    """Mask of exponential kernels that are nearer to 1 than to 0 at the mean distance.

    These are the kernels that gain from being `shifted` before they are centred. Mean
    distances are taken from `facts` if these are given.

    Returns
    -------
    array of shape (p,)
    """
    facts = DistanceFacts(family) if facts is None else facts
    wide = np.zeros(family.p, dtype=np.bool_)
    for key, members in family.exponentials(range(family.p)).items():
        wide[members] = family.params[members, 0] * facts.mean(*key) < np.log(2.0)
    return wide


def mean_distance(columns: Array, kind: int) -> float:
    """The mean distance over all pairs, a point with itself included; 0 without points.

    For chi-squared distances, which have no short formula for it, the mean of `distance_sample`.
    """
    n = len(columns)
    if n == 0:  # a predictor without support vectors
        return 0.0
    if kind == EXP_CHI:
        return float(distance_sample(columns, kind).mean())
    if kind == EXP_SQ:
        middle, total = columns.mean(axis=0, dtype=np.float64), 0.0
        for start in range(0, n, _CHUNK_ROWS):
            total += float(((columns[start : start + _CHUNK_ROWS] - middle) ** 2).sum())
        return 2.0 * total / n
    # In sorted order, the r-th of n numbers is subtracted n - 1 - r times and added r times.
    ordered = np.sort(columns.astype(np.float64), axis=0)
    ranks = 2.0 * np.arange(n) - (n - 1)
    return 2.0 * float((ranks @ ordered).sum()) / n**2


def distance_bound(columns: Array, kind: int) -> float:
    """A number that no distance between two points exceeds; infinite where distances overflow.

    L1 distances are bounded by twice the radius around the median; they bound chi-squared
    distances, since ``(x - z)^2 / (x + z) <= |x - z|``. Squared distances of the points
    farthest from the mean are computed; two of the other points are no farther apart than twice
    their radius around the mean.
    """
    n = len(columns)
    if kind != EXP_SQ:
        far = np.abs(columns - np.median(columns.astype(np.float64), axis=0)).sum(axis=1)
        return 2.0 * float(far.max()) * (1.0 + 64.0 * float(np.finfo(columns.dtype).eps))
    with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
        Z = columns - columns.mean(axis=0)
        radius = np.einsum("ij,ij->i", Z, Z)
        count = n // POINTS_PER_REMOTE_POINT
        order = np.argpartition(-radius, count)
        remote, rest = order[:count], order[count:]
        found = [4.0 * float(radius[rest].max())]
        for start in range(0, count, 64):
            some = remote[start : start + 64]
            squares = -2.0 * Z[some] @ Z.T
            squares += radius
            found.append(float((squares.max(axis=1) + radius[some]).max()))
    if not np.all(np.isfinite(found)):
        return float("inf")
    # A margin for rounding, in these numbers and in the distances that passes compute.
    return max(found) * (1.0 + 64.0 * float(np.finfo(columns.dtype).eps) * Z.shape[1] ** 0.5)


def distance_sample(columns: Array, kind: int) -> NDArray[np.float64]:
    """Distances of `SAMPLE_PAIRS` pairs of points, sorted; the same pairs in every run."""
    n = len(columns)
    pairs = np.random.default_rng(0).integers(0, n, size=(2, SAMPLE_PAIRS))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = columns[pairs[0]] - columns[pairs[1]]
        if kind == EXP_CHI:
            both = columns[pairs[0]] + columns[pairs[1]]
            each = difference**2 / np.where(both > 0, both, 1.0)
        else:
            each = difference**2 if kind == EXP_SQ else np.abs(difference)
        return np.sort(each.sum(axis=1, dtype=np.float64))
