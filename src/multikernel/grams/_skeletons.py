"""A few kernels that stand for many.

Exponentials of one pairwise statistic with rates near each other are nearly the same function:
over the distances of a sample, ``exp(-gamma d)`` with hundreds of rates spans, to the digits of
single precision, some 25 dimensions. A *skeleton* of a bank is a choice of its own kernels with

    K_k = sum_r C_kr K_r  +  what rounding does anyway       (r runs over the skeleton)

for all of its kernels. Whatever is linear in a kernel (sums of rows, products with vectors,
centring) is computed for the skeleton and carried over by C, and so are products of two kernels,
by C on both sides.

An error e in every entry of a narrow kernel, which is nearly the identity, may add up to ``n e``
in a sum of ``1 + ...`` over a row: it is kept below a rounding error of single precision divided
by n. In double precision this cannot be had, for solving for C costs the last three digits, and
every kernel stands for itself.

Products with C are made on one thread of BLAS, whose sums are cut by their number: what comes out
has the same bits on every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import one_blas_thread
from ._mixtures import BITS, MOST_OCTAVES

#: A slot with fewer kernels than this is left alone; so is a bank with more than this part left.
LEAST, WORTH = 24, 0.7
#: Rounding of a number in single precision.
ROUNDING = 6e-8
#: Points of an interval of distances; see :mod:`multikernel.grams._mixtures`.
NODES = 0.5 + 0.5 * np.cos(np.pi * (np.arange(6) + 0.5) / 6)

Array = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """Kernels of one slot, and those among them that stand for all."""

    members: NDArray[np.int64]
    chosen: NDArray[np.int64]
    coefficients: Array  # (members, chosen)


@dataclass(frozen=True)
class Skeleton:
    """Which kernels stand for which.

    Attributes
    ----------
    p : int
        How many kernels there are.
    kernels : array of shape (N,)
        The skeleton, in the order of the bank: kernels that stand for themselves alone, and those
        that were chosen.
    parts : tuple of Part
    """

    p: int
    kernels: NDArray[np.int64]
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, p: int, parts: list[Part]) -> Skeleton:
        left_out = np.concatenate([np.setdiff1d(part.members, part.chosen) for part in parts])
        return cls(p, np.setdiff1d(np.arange(p), left_out), tuple(parts))

    def _at(self, part: Part) -> NDArray[np.int64]:
        """Where in the skeleton the chosen ones of a part are."""
        return np.searchsorted(self.kernels, part.chosen)

    def expand(self, values: Array) -> Array:
        """From numbers of the skeleton, (N, ...), to those of all kernels, (p, ...)."""
        out = np.empty((self.p, *values.shape[1:]))
        out[self.kernels] = values
        flat, given = out.reshape(self.p, -1), values.reshape(len(values), -1)
        with one_blas_thread():
            for part in self.parts:
                flat[part.members] = part.coefficients @ given[self._at(part)]
        return out

    def expand_products(self, products: Array, full: bool) -> Array:
        """From (N, N) to (p, p), or to its diagonal (p,)."""
        half = self.expand(products)
        if full:
            both = self.expand(np.ascontiguousarray(half.T))
            return np.asarray(0.5 * (both + both.T))
        diagonal = np.empty(self.p)
        diagonal[self.kernels] = np.diag(products)
        for part in self.parts:
            diagonal[part.members] = np.einsum(
                "kr,kr->k", part.coefficients, half[np.ix_(part.members, self._at(part))]
            )
        return diagonal

    def reduce(self, weights: Array) -> Array:
        """Weights of the skeleton, (N,), with the same combination as those of all, (p,)."""
        out = np.array(weights[self.kernels], dtype=np.float64)
        with one_blas_thread():
            for part in self.parts:
                out[self._at(part)] = weights[part.members] @ part.coefficients
        return out


def distances(rate: float, farthest: float) -> Array | None:
    """Where functions with rates up to this are compared; None if that is too many places.

    Between its nodes in an interval a sum of such functions is known as well as there: that is
    what the tables of mixtures rest on.
    """
    if not farthest * rate < 2.0 ** (MOST_OCTAVES - 1):
        return None
    octaves = int(np.ceil(np.log2(1.0 + farthest * rate))) + 1
    interval = np.arange(octaves << BITS)
    size = np.exp2(interval >> BITS)
    width = size / (1 << BITS)
    left = size + (interval & ((1 << BITS) - 1)) * width
    d = ((left[:, None] - 1.0 + width[:, None] * NODES) / rate).ravel()
    return np.concatenate([[0.0], d[d <= farthest], [farthest]])


def choose(functions: Array, error: float, most: int) -> tuple[NDArray[np.int64], Array] | None:
    """Columns that span all columns up to an error of entries, and the coefficients.

    Greedily the column that is farthest from the span of those before; None if it takes more
    than ``most`` of them.
    """
    with one_blas_thread():
        return _choose(functions, error, most)


def _choose(functions: Array, error: float, most: int) -> tuple[NDArray[np.int64], Array] | None:
    rest = functions.copy()
    basis = np.empty((most, len(functions)))
    chosen: list[int] = []
    while np.abs(rest).max() > 0.5 * error:
        if len(chosen) == most:
            break
        k = int(np.argmax(np.einsum("dk,dk->k", rest, rest)))
        new = rest[:, k].copy()
        done = basis[: len(chosen)]
        new -= done.T @ (done @ new)
        size = float(np.linalg.norm(new))
        if size == 0.0:
            break
        basis[len(chosen)] = new / size
        rest -= np.outer(basis[len(chosen)], basis[len(chosen)] @ rest)
        chosen.append(k)
    columns = np.sort(np.array(chosen, dtype=np.int64))
    coefficients: Array = np.linalg.lstsq(functions[:, columns], functions, rcond=None)[0]
    coefficients[:, columns] = np.eye(len(columns))
    if np.abs(functions[:, columns] @ coefficients - functions).max() > error:
        return None
    return columns, coefficients
