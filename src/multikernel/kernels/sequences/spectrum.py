"""Kernels on the k-mers of sequences: spectrum, mismatch and gapped subsequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from ..base import check_number
from . import _subsequence_loops
from .base import SequenceKernel
from .encoding import Coded
from .features import Features, collect, gram, pattern_ids, windows

#: Largest number of gapped patterns that are listed one by one.
MAX_PATTERNS = 1_000_000
#: A group of features: its factor, patterns, and value of one occurrence of each (None: 1).
Group = tuple[float, list[tuple[int, ...]], list[float] | None]


@dataclass(frozen=True, repr=False)
class FeatureKernel(SequenceKernel):
    """A kernel that is a sum of products of explicit sparse features, with factors.

    Subclasses implement :meth:`_groups`; the patterns of a group share their features.
    """

    def _groups(self, size: int, longest: int) -> list[Group]:
        """Groups of patterns for an alphabet of this size and sequences up to this length."""
        raise NotImplementedError

    def _features(self, samples: Sequence[Coded], size: int) -> list[tuple[float, list[Features]]]:
        out = []
        longest = max(sample.longest for sample in samples)
        for factor, patterns, values in self._groups(size, longest):
            ids = pattern_ids(samples, size, patterns)
            each = [
                collect(sample, [found[s] for found in ids], values)
                for s, sample in enumerate(samples)
            ]
            out.append((factor, each))
        return out

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        grams = (
            (factor, gram(each[0], each[-1]))
            for factor, each in self._features([x] if z is x else [x, z], len(code))
        )
        factor, out = next(grams)
        if factor != 1.0:
            out *= factor
        for factor, K in grams:
            out += K if factor == 1.0 else factor * K
        return out

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        out = np.zeros(len(x))
        for factor, (features,) in self._features([x], len(code)):
            out += factor * features.squares()
        return out


@dataclass(frozen=True, repr=False)
class Spectrum(FeatureKernel):
    """The spectrum kernel ``K(x, z) = sum_u c_u(x) c_u(z)`` over all k-mers u.

    ``c_u`` counts the occurrences of u (Leslie, Eskin & Noble 2002). A sequence shorter than k has
    no k-mers: the kernel is zero there, with a warning.

    Parameters
    ----------
    k : int, default=3
        Length of the k-mers.
    blended : bool, default=False
        Add up the spectra of all lengths from 1 to k.
    presence : bool, default=False
        Let ``c_u`` be 1 where u occurs, however often.
    unit : {"letter", "word"}, default="letter"
        How strings are read. A word is a maximal run of letters, digits and underscores, in lower
        case. Lists of tokens are read token by token in either case.
    alphabet : {"dna", "rna", "protein"}, str, sequence of str or None, default=None
        The known symbols; k-mers with other symbols do not count. None accepts all symbols.
    ignore_case : bool, default=False
        Read ``a`` and ``A`` as the same letter.
    columns : str, int or None
        The column of X to read; not needed when there is only one.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Spectrum
    >>> Spectrum(2)(["ACAC", "ACA", "TTT"])
    array([[5., 3., 0.],
           [3., 2., 0.],
           [0., 0., 4.]])
    """

    k: int = 3
    blended: bool = field(default=False, kw_only=True)
    presence: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Spectrum", "k", self.k, positive=True, whole=True)
        object.__setattr__(self, "k", int(self.k))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return 1 if self.blended else self.k

    def _groups(self, size: int, longest: int) -> list[Group]:
        lengths = range(1, min(self.k, longest) + 1) if self.blended else [self.k]
        return [(1.0, [tuple(range(k))], None) for k in lengths]

    def _features(self, samples: Sequence[Coded], size: int) -> list[tuple[float, list[Features]]]:
        found = super()._features(samples, size)
        if not self.presence:
            return found
        return [(factor, [f.presence() for f in each]) for factor, each in found]


@dataclass(frozen=True, repr=False)
class Mismatch(FeatureKernel):
    """The mismatch kernel: a k-mer counts for all k-mers that differ from it in at most m letters.

    ``K(x, z) = sum_u c_u(x) c_u(z)`` over all ``|alphabet|^k`` k-mers u, where ``c_u(x)`` is the
    number of k-mers of x that differ from u in at most m places (Leslie, Eskin, Cohen, Weston &
    Noble 2004). The neighbourhoods are never written out: the number of u near two given k-mers
    depends on their distance alone, and pairs at distance d <= 2m are counted through the patterns
    of k - j letters that they share.

    Parameters
    ----------
    k : int, default=5
    m : int, default=1
        Number of letters in which k-mers may differ; less than k.
    alphabet : {"dna", "rna", "protein"}, str or sequence of str, default="dna"
        Required, because the kernel depends on its size. Letters outside it match nothing.
    unit, ignore_case, columns
        As in :class:`Spectrum`.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Mismatch
    >>> Mismatch(3, 1)(["AAA", "AAC", "CCC"])
    array([[10.,  4.,  0.],
           [ 4., 10.,  2.],
           [ 0.,  2., 10.]])
    """

    k: int = 5
    m: int = 1
    alphabet: Any = field(default="dna", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Mismatch", "k", self.k, positive=True, whole=True)
        check_number("Mismatch", "m", self.m, nonnegative=True, whole=True)
        if self.m >= self.k:
            raise ValueError(f"Mismatch: m must be less than k = {self.k}; got {self.m!r}.")
        if self.alphabet is None:
            raise ValueError(
                "Mismatch: the kernel depends on the size of the alphabet; pass alphabet='dna', "
                "'protein', or the letters."
            )
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "m", int(self.m))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return self.k

    def _groups(self, size: int, longest: int) -> list[Group]:
        # N_d is the number of pairs of k-mers at distance d. Pairs that agree on k - j places,
        # counted once for each choice of these, number P_j = sum_{d <= j} C(k - d, k - j) N_d.
        # Find w such that K = sum_d shared(d) N_d = sum_j w_j P_j.
        reach = min(2 * self.m, self.k)
        shared = np.array([_shared_neighbours(d, self.k, self.m, size) for d in range(reach + 1)])
        T = np.array(
            [
                [comb(self.k - d, self.k - j) if d <= j else 0 for d in range(reach + 1)]
                for j in range(reach + 1)
            ],
            dtype=np.float64,
        )
        w = np.rint(np.linalg.solve(T.T, shared.astype(np.float64)))
        groups: list[Group] = []
        for j in range(reach + 1):
            for left in combinations(range(self.k), self.k - j):
                groups.append((float(w[j]), [left], None))
        return groups

    def _features(self, samples: Sequence[Coded], size: int) -> list[tuple[float, list[Features]]]:
        # All k letters of a k-mer must exist and be known, also those that a pattern leaves open.
        (whole,) = pattern_ids(samples, size, [range(self.k)])
        out = []
        for factor, (pattern,), _ in self._groups(size, max(s.longest for s in samples)):
            each = []
            found = pattern_ids(samples, size, [pattern])[0] if pattern else None
            for s, sample in enumerate(samples):
                ids = np.zeros(len(sample.codes), dtype=np.int64) if found is None else found[s]
                each.append(collect(sample, [np.where(whole[s] >= 0, ids, -1)]))
            out.append((factor, each))
        return out


def _shared_neighbours(d: int, k: int, m: int, size: int) -> int:
    """Number of k-mers that differ in at most m letters from both of two k-mers at distance d."""
    total = 0
    for same in range(m + 1):  # letters changed among the k - d places where the two agree
        ways = comb(k - d, same) * (size - 1) ** same
        for first in range(d + 1):  # places that follow the first k-mer, the second, or neither
            for second in range(d - first + 1):
                neither = d - first - second
                if max(d - first, d - second) + same <= m:
                    total += (
                        ways
                        * comb(d, first)
                        * comb(d - first, second)
                        * (max(size - 2, 0) ** neither)
                    )
    return total


@dataclass(frozen=True, repr=False)
class Subsequence(FeatureKernel):
    """Subsequences with gaps, discounted by the length they span.

    ``K(x, z) = sum_u sum_{i: x[i] = u} sum_{j: z[j] = u} decay^(span(i) + span(j))`` over all u of
    the given length, where i and j are increasing positions and ``span(i)`` runs from the first to
    the last of them (Lodhi et al. 2002). Without a limit on the span a pair takes
    ``length * |x| * |z|`` steps; with a limit the features are explicit and far cheaper.

    Parameters
    ----------
    length : int, default=3
        Symbols in a subsequence.
    decay : float, default=0.5
        In (0, 1].
    span : int or None, default=None
        Longest span that counts, gaps included: the gappy k-mers of a window.
    unit, alphabet, ignore_case, columns
        As in :class:`Spectrum`.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Subsequence
    >>> Subsequence(2, decay=0.5)(["cat", "car", "bat"])
    array([[0.140625, 0.0625  , 0.0625  ],
           [0.0625  , 0.140625, 0.      ],
           [0.0625  , 0.      , 0.140625]])
    """

    length: int = 3
    decay: float = 0.5
    span: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("Subsequence", "length", self.length, positive=True, whole=True)
        check_number("Subsequence", "decay", self.decay, positive=True)
        if self.decay > 1:
            raise ValueError(f"Subsequence: decay must be at most 1; got {self.decay!r}.")
        if self.span is not None:
            check_number("Subsequence", "span", self.span, positive=True, whole=True)
            if self.span < self.length:
                raise ValueError(
                    f"Subsequence: span must be at least length = {self.length}; got {self.span!r}."
                )
            object.__setattr__(self, "span", int(self.span))
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "decay", float(self.decay))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return self.length

    def _groups(self, size: int, longest: int) -> list[Group]:
        assert self.span is not None
        span = min(self.span, longest)
        count = comb(span - 1, self.length - 1)
        if count > MAX_PATTERNS:
            raise ValueError(
                f"{self!r}: {count:.3g} ways to place {self.length} symbols in a span of {span}; "
                f"at most {MAX_PATTERNS:,} are listed. Use a smaller span, or span=None."
            )
        patterns = list(windows(span, self.length))
        return [(1.0, patterns, [self.decay ** (pattern[-1] + 1) for pattern in patterns])]

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        if self.span is not None:
            return super()._pairs(x, z, code)
        out = np.empty((len(x), len(z)))
        _subsequence_loops.pairs(
            x.codes, x.offsets, z.codes, z.offsets, self.length, self.decay, z is x, out
        )
        return out

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        if self.span is not None:
            return super()._diag(x, code)
        out = np.empty(len(x))
        _subsequence_loops.diagonal(x.codes, x.offsets, self.length, self.decay, out)
        return out
