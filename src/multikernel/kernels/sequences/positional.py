"""Kernels that compare sequences position by position: weighted degree, windows, oligos."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from ..._mirror import mirror
from ..base import check_number
from . import _bits, _oligo_loops
from .base import SequenceKernel
from .encoding import Coded
from .features import pattern_ids


def _packed(x: Coded, z: Coded, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bits of x, sequence by sequence, and of z, word by word across sequences."""
    n_planes = max(1, (size - 1).bit_length())
    longest = max(x.longest, z.longest, 1)
    n_words = -(-longest // 64)
    bits = _bits.planes(x.codes, x.offsets, n_planes, n_words)
    other = bits if z is x else _bits.planes(z.codes, z.offsets, n_planes, n_words)
    padded = -(-len(z) // _bits.LANES) * _bits.LANES
    across = np.zeros((n_planes + 1, n_words, padded), dtype=np.uint64)
    across[:, :, : len(z)] = other.transpose(1, 2, 0)
    return bits, across


def _uniform(*samples: Coded) -> bool:
    """Whether all sequences have the same length and no unknown symbol."""
    lengths = np.concatenate([sample.lengths for sample in samples])
    known = all(int(sample.codes.min(initial=0)) >= 0 for sample in samples)
    return known and len(lengths) > 0 and int(lengths.min()) == int(lengths.max())


@dataclass(frozen=True, repr=False)
class WeightedDegree(SequenceKernel):
    """The weighted degree kernel: equal d-mers at equal positions, d up to ``degree``.

    ``K(x, z) = sum_d beta_d sum_i [x[i:i+d] = z[i:i+d]]`` with
    ``beta_d = 2 (degree - d + 1) / (degree (degree + 1))`` (Rätsch & Sonnenburg 2004). With a shift
    S, d-mers that lie up to S positions apart count as well: for s = 1..S,
    ``[x[i+s:i+s+d] = z[i:i+d]] + [x[i:i+d] = z[i+s:i+s+d]]`` is added with the factor
    ``1 / (2 (s + 1))`` (Rätsch, Sonnenburg & Schölkopf 2005). Positions count from the beginning of
    each sequence, and a d-mer that would reach beyond the end of its own sequence matches nothing.
    With a shift the longer sequence is therefore read up to S positions beyond the shorter one,
    which keeps the kernel positive semidefinite.

    Parameters
    ----------
    degree : int, default=10
    shift : int, default=0
    unit, alphabet, ignore_case, columns
        As in :class:`Spectrum`. Unknown letters match nothing.

    Examples
    --------
    >>> from multikernel.kernels.sequences import WeightedDegree
    >>> WeightedDegree(2)(["ACGT", "ACCT", "TACG"]).round(3)
    array([[3.667, 2.333, 0.   ],
           [2.333, 3.667, 0.667],
           [0.   , 0.667, 3.667]])
    >>> WeightedDegree(2, shift=1)(["ACGT", "TACG"]).round(3)
    array([[3.667, 0.667],
           [0.667, 3.667]])
    >>> WeightedDegree(1, shift=2)(["A"], ["CCA", "CCCA"])  # 1 / (2 (2 + 1)), and too far
    array([[0.16666667, 0.        ]])
    """

    # The coefficients of the shifts keep the kernel positive semidefinite for every S: the symbol
    # 1 + sum_{s <= S} cos(s t) / (s + 1) of their Toeplitz matrix is positive (Rogosinski, Szegő).

    degree: int = 10
    shift: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("WeightedDegree", "degree", self.degree, positive=True, whole=True)
        check_number("WeightedDegree", "shift", self.shift, nonnegative=True, whole=True)
        object.__setattr__(self, "degree", int(self.degree))
        object.__setattr__(self, "shift", int(self.shift))

    @property
    def is_psd(self) -> bool:
        return True

    def _shifts(self, longest: int) -> tuple[np.ndarray, np.ndarray]:
        """Shifts and the factors of their sums, for sequences up to this length."""
        most = min(self.shift, longest)  # further apart nothing can match
        shifts = np.arange(-most, most + 1)
        factors = np.where(shifts == 0, 1.0, 0.5 / (np.abs(shifts) + 1))
        return shifts, factors * 2.0 / (self.degree * (self.degree + 1))

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        bits, across = _packed(x, z, len(code))
        masked = self.shift > 0 or not _uniform(x, z)
        out = np.empty((len(x), len(z)))
        shifts, factors = self._shifts(max(x.longest, z.longest))
        _bits.degree_sums(bits, across, len(z), self.degree, shifts, factors, z is x, masked, out)
        if z is x:
            mirror(out)
        return out

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        out = np.empty(len(x))
        _bits.degree_diagonal(x.codes, x.offsets, self.degree, *self._shifts(x.longest), out)
        return out


@dataclass(frozen=True, repr=False)
class LocalityImproved(SequenceKernel):
    """Matches in windows around each position, weighted towards the middle.

    ``K(x, z) = (sum_p win_p(x, z)^inner)^outer`` with
    ``win_p = sum_{|j| <= half} w_j [x[p+j] = z[p+j]]``, weights ``w_j`` proportional to
    ``half + 1 - |j|`` that sum to one, and positions off the ends matching nothing (Zien, Rätsch,
    Mika, Schölkopf, Lengauer & Müller 2000). Sequences are compared from their beginnings.

    Parameters
    ----------
    half : int, default=3
        Positions on each side of the middle of a window, at most 7.
    inner : int, default=3
        Number of letters of a window that are considered together.
    outer : int, default=1
        Number of windows that are considered together.
    unit, alphabet, ignore_case, columns
        As in :class:`Spectrum`. Unknown letters match nothing.

    Examples
    --------
    >>> from multikernel.kernels.sequences import LocalityImproved
    >>> LocalityImproved(half=1, inner=2)(["ACGT", "ACCT"]).round(4)
    array([[3.125, 1.625],
           [1.625, 3.125]])
    """

    half: int = 3
    inner: int = 3
    outer: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("LocalityImproved", "half", self.half, nonnegative=True, whole=True)
        if self.half > 7:
            raise ValueError(
                "LocalityImproved: half must be at most 7 (windows of 15 letters); got "
                f"{self.half!r}. Use WeightedDegree for longer ranges."
            )
        check_number("LocalityImproved", "inner", self.inner, positive=True, whole=True)
        check_number("LocalityImproved", "outer", self.outer, positive=True, whole=True)
        for name in ("half", "inner", "outer"):
            object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def is_psd(self) -> bool:
        return True

    def _table(self) -> np.ndarray:
        """The value of a window for every pattern of matches in it."""
        width = 2 * self.half + 1
        w = self.half + 1.0 - np.abs(np.arange(width) - self.half)
        patterns = (np.arange(2**width)[:, None] >> np.arange(width)) & 1
        return np.asarray((patterns @ (w / w.sum())) ** self.inner)

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        bits, across = _packed(x, z, len(code))
        out = np.empty((len(x), len(z)))
        _bits.window_sums(
            bits, x.lengths, across, z.lengths, self.half, self._table(), self.outer, z is x, out
        )
        if z is x:
            mirror(out)
        return out

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        w = self.half + 1.0 - np.abs(np.arange(2 * self.half + 1) - self.half)
        w /= w.sum()
        known = (x.codes >= 0).astype(np.float64)
        out = np.empty(len(x))
        for i in range(len(x)):
            one = known[x.offsets[i] : x.offsets[i + 1]]
            inside = np.convolve(one, w)[self.half : self.half + len(one)] if len(one) else one
            out[i] = np.sum(inside**self.inner)
        with np.errstate(over="ignore"):  # the caller refuses overflow
            return np.asarray(out**self.outer)


@dataclass(frozen=True, repr=False)
class Oligo(SequenceKernel):
    """Equal k-mers at nearby positions.

    ``K(x, z) = sqrt(pi) sigma sum_u sum_{p in u(x)} sum_{q in u(z)} exp(-(p - q)^2 / (4 sigma^2))``
    over all k-mers u, where u(x) are the positions of u in x (Meinicke, Tech, Morgenstern & Merkl
    2004). Small sigma gives a kernel like the weighted degree kernel, which requires equal
    positions; large sigma gives one like the spectrum kernel, which ignores positions.

    Parameters
    ----------
    k : int, default=3
    sigma : float, default=1.0
        How many positions apart equal k-mers may be.
    unit, alphabet, ignore_case, columns
        As in :class:`Spectrum`.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Oligo
    >>> Oligo(2, sigma=1.0)(["ACGT", "TACG"]).round(3)
    array([[5.317, 2.761],
           [2.761, 5.317]])
    """

    k: int = 3
    sigma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Oligo", "k", self.k, positive=True, whole=True)
        check_number("Oligo", "sigma", self.sigma, positive=True)
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "sigma", float(self.sigma))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return self.k

    def _table(self, *samples: Coded) -> np.ndarray:
        longest = max(sample.longest for sample in samples)
        with np.errstate(over="ignore"):  # zero at an infinite distance
            far = np.arange(longest + 1) / (2.0 * self.sigma)
            return np.asarray(sqrt(pi) * self.sigma * np.exp(-(far**2)))

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        (ids,) = pattern_ids([x] if z is x else [x, z], len(code), [range(self.k)])
        left = _Occurrences.of(x, ids[0])
        right = left if z is x else _Occurrences.of(z, ids[1])
        _, numbers = np.unique(np.concatenate([left.kmers, right.kmers]), return_inverse=True)
        kmers, others = numbers[: len(left.kmers)], numbers[len(left.kmers) :]
        order = np.argsort(others, kind="stable")
        starts = np.searchsorted(others[order], np.arange(numbers.max(initial=0) + 2))
        holders = right.rows[order].astype(np.uint32)
        out = np.zeros((len(x), len(z)))
        _oligo_loops.scatter(
            kmers,
            left.at,
            left.offsets,
            starts,
            holders,
            right.at[order],
            self._table(x, z),
            z is x,
            out,
        )
        if z is x:
            mirror(out)
        return out

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        out = np.empty(len(x))
        ((ids,),) = pattern_ids([x], len(code), [range(self.k)])
        found = _Occurrences.of(x, ids)
        _oligo_loops.diagonal(found.kmers, found.at, found.offsets, self._table(x), out)
        return out


@dataclass(frozen=True, eq=False)
class _Occurrences:
    """All k-mers in order, by number, sequence and position; offsets are where sequences begin."""

    kmers: np.ndarray
    rows: np.ndarray
    at: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, x: Coded, ids: np.ndarray) -> _Occurrences:
        rows = np.repeat(np.arange(len(x)), x.lengths)
        at = np.arange(len(ids)) - x.offsets[rows]
        kept = ids >= 0
        offsets = np.searchsorted(rows[kept], np.arange(len(x) + 1))
        return cls(ids[kept], rows[kept], at[kept].astype(np.int32), offsets)
