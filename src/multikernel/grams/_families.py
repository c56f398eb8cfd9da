"""The description of a family of kernels: scalar functions of pairwise statistics of one sample.

A description holds the points and the parameters of the kernels.
:class:`multikernel.grams.pass_cache.PassCache` holds everything that passes compute from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._passes import EXP_CHI, EXP_L1, EXP_SQ

Array = NDArray[Any]

#: Points per side of a tile. The smaller tile keeps the slab in the cache; it is used if one column
#: of the slab (kernels times bytes of an entry) exceeds MAX_SLAB_COLUMN_BYTES.
TILE_POINTS, SMALL_TILE_POINTS, MAX_SLAB_COLUMN_BYTES = 128, 64, 2048


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """Kernels that are scalar functions of pairwise statistics of the same points.

    Parameters
    ----------
    Z : array of shape (n, D)
        The columns of all groups side by side, float32 or float64; this type is the type of the
        arithmetic of Gram entries.  Distances are computed from differences of coordinates, so a
        common shift of the points loses only the digits that Z itself loses.
    offsets : array of shape (n_groups + 1,)
        Group g owns the columns ``offsets[g]:offsets[g + 1]``.
    group : array of shape (p,)
        The group of each kernel, non-decreasing.
    kind : array of shape (p,)
        `EXP_SQ`, `EXP_L1`, `EXP_CHI`, `EXP_ROOT`, `EXP_POWER`, `MATERN_3`, `MATERN_5`, `POLY` or
        `TANH`; in a family that a combination was reduced to
        (:mod:`multikernel.grams._combinations`) also `TABLE_SQ`, `TABLE_L1` and `TABLE_CHI`.
    params : array of shape (p, 3)
        gamma (non-negative for the exponentials), coef0 and degree (an integer >= 1, used by
        `POLY` only) of each kernel; of a table its rate, its end and its place in `tables`.
    shifted : bool or array of shape (p,), default=False
        Evaluate exponential kernels as ``expm1(-gamma d)`` instead of ``exp(-gamma d)``.  Centring
        removes the constant, and a very wide kernel keeps its relative accuracy.  A narrow one
        gains nothing, and most of its raw values would be -1.
    tables : array of shape (n_numbers,) or None
        The polynomials of all tables, one table after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.grams._loops import EXP_SQ, KernelFamily, PassCache, block
    >>> family = KernelFamily(np.array([[0.0], [1.0], [3.0]]), np.array([0, 1]), np.array([0]),
    ...                       np.array([EXP_SQ]), np.array([[0.5, 0.0, 0.0]]))
    >>> block(PassCache(family), slice(0, 1)).round(3)
    array([[[1.   , 0.607, 0.011]]])
    """

    Z: Array
    offsets: NDArray[np.int64]
    group: NDArray[np.int64]
    kind: NDArray[np.int64]
    params: NDArray[np.float64]
    shifted: bool | NDArray[np.bool_] = False
    tables: Array | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.Z.shape[0])

    @property
    def p(self) -> int:
        """Number of kernels."""
        return int(self.kind.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the Gram entries."""
        return self.Z.dtype

    @property
    def tile(self) -> int:
        """Points on a side of a tile; fewer for very many kernels, whose slab is large."""
        small = self.p * self.dtype.itemsize > MAX_SLAB_COLUMN_BYTES
        return SMALL_TILE_POINTS if small else TILE_POINTS

    @property
    def is_shifted(self) -> NDArray[np.bool_]:
        """`shifted` as an array of shape (p,)."""
        return np.broadcast_to(np.asarray(self.shifted, dtype=np.bool_), (self.p,)).copy()

    def columns(self, group: int) -> Array:
        """The columns of one group, shape (n, width)."""
        return self.Z[:, self.offsets[group] : self.offsets[group + 1]]

    def take(self, kernels: NDArray[np.int64]) -> KernelFamily:
        """Some of the kernels, on the same points."""
        return replace(
            self,
            group=self.group[kernels],
            kind=self.kind[kernels],
            params=self.params[kernels],
            shifted=self.is_shifted[kernels],
        )

    def exponentials(self, kernels: Iterable[int]) -> dict[tuple[int, int], NDArray[np.int64]]:
        """The exponentials among the given kernels, by group and kind of kernel."""
        alike: dict[tuple[int, int], list[int]] = {}
        group, kind = self.group.tolist(), self.kind.tolist()
        for k in kernels:
            if kind[k] in (EXP_SQ, EXP_L1, EXP_CHI):
                alike.setdefault((group[k], kind[k]), []).append(k)
        return {key: np.array(members) for key, members in alike.items()}
