"""One rank-one kernel per n-gram: banks whose vocabulary comes from the training sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..bank import KernelBank, Open
from ..base import check_number
from .encoding import common_codes, encode
from .features import collect, pattern_ids, renumber
from .spectrum import Spectrum


@dataclass(frozen=True)
class PerNgram(Open):
    """One kernel ``K_u(x, z) = c_u(x) c_u(z)`` for each of the most frequent k-mers of a spectrum.

    See :func:`per_ngram`.
    """

    spectrum: Spectrum
    top: int | None = 4000

    def __post_init__(self) -> None:
        if self.top is not None:
            check_number("per_ngram", "top", self.top, positive=True, whole=True)
            object.__setattr__(self, "top", int(self.top))

    def adapt(self, X: Any, sample_weight: np.ndarray | None = None) -> Ngrams:
        """The n-grams that occur most often in a sample; ties are broken alphabetically."""
        n, unit = self.spectrum.k, self.spectrum.unit
        given = self.spectrum.select(X)
        x, _, code = self.spectrum._coded(given, given)
        ((ids,),) = pattern_ids([x], len(code), [range(n)])
        ((found,), count) = renumber([collect(x, [ids])])
        weight = 1.0 if sample_weight is None else np.asarray(sample_weight)[found.rows]
        totals = np.bincount(found.index, found.values * weight, count)
        # One position of each n-gram, to read its symbols there.
        at = np.flatnonzero(ids >= 0)
        _, first = np.unique(ids[at], return_index=True)
        symbols = sorted(code, key=code.__getitem__)
        grams = [tuple(symbols[c] for c in x.codes[p : p + n].tolist()) for p in at[first].tolist()]
        if not grams:
            raise ValueError(
                f"per_ngram: no sequence of the training sample has {n} {unit}s, so there are no "
                "n-grams to make kernels from."
            )
        order = sorted(range(count), key=lambda u: (-totals[u], grams[u]))[: self.top]
        return Ngrams(self.spectrum, tuple(grams[u] for u in order))


@dataclass(frozen=True, repr=False)
class Ngrams(Open):
    """The counts of known n-grams, one rank-one kernel each."""

    spectrum: Spectrum
    grams: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.grams)

    def __repr__(self) -> str:
        return f"Ngrams({self.spectrum!r}, {len(self)} of them)"

    def __getitem__(self, index: np.ndarray) -> Ngrams:
        """Some of the n-grams, in this order."""
        return dataclasses.replace(self, grams=tuple(self.grams[k] for k in index.tolist()))

    @property
    def names(self) -> list[str]:
        """The names of the kernels: their n-grams."""
        joint = " " if self.spectrum.unit == "word" else ""
        return [joint.join(gram) for gram in self.grams]

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Ngrams:
        """The same kernels with their column as a plain index into X."""
        spectrum: Any = self.spectrum.resolve(n_features, feature_names)
        return dataclasses.replace(self, spectrum=spectrum)

    def __call__(self, X: Any) -> sp.csc_matrix:
        """Counts (or presence) of the n-grams, shape (n, p), in O(letters)."""
        spectrum = self.spectrum
        given = spectrum.select(X)
        vocabulary = encode([list(gram) for gram in self.grams], "word", "The vocabulary")
        x, v, code = common_codes(given, vocabulary, spectrum.alphabet, spectrum.ignore_case)
        ((ids, own),) = pattern_ids([x, v], len(code), [range(spectrum.k)])
        own = own[v.offsets[:-1]]
        order = np.argsort(own)
        found = collect(x, [ids])
        place = np.minimum(np.searchsorted(own, found.index, sorter=order), len(own) - 1)
        column = order[place]
        kept = own[column] == found.index
        values = np.ones(int(kept.sum())) if spectrum.presence else found.values[kept]
        entries = (values, (found.rows[kept], column[kept]))
        return sp.csc_matrix(entries, shape=(len(given), len(self)), dtype=np.float64)


def per_ngram(
    n: int = 2,
    top: int | None = 4000,
    *,
    presence: bool = False,
    unit: str = "word",
    alphabet: Any = None,
    ignore_case: bool = False,
    columns: Any = None,
) -> KernelBank:
    """One rank-one kernel ``K_u = c_u c_u'`` for each of the most frequent n-grams u of the sample.

    As in the experiments of Cortes, Mohri & Rostamizadeh: thousands of kernels that cost no more
    than the counts of their n-grams. The vocabulary is chosen in ``fit``, from the training sample
    (sample weights count as repetitions; ties are broken alphabetically).

    Parameters
    ----------
    n : int, default=2
        Words (or letters) in an n-gram.
    top : int or None, default=4000
        How many n-grams get a kernel; all of them for None.
    presence : bool, default=False
        1 where the n-gram occurs instead of its count.
    unit : {"word", "letter"}, default="word"
        What an n-gram consists of. Words are maximal runs of letters, digits and underscores, in
        lower case; lists of tokens, from any tokeniser, are taken as they are.
    alphabet, ignore_case, columns
        As in :class:`Spectrum`.

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.kernels.sequences import per_ngram
    >>> texts = ["very good book", "not good", "a very good read", "not good at all"]
    >>> model = mk.MultiKernelClassifier(per_ngram(2, top=2), weighting="align")
    >>> model.fit(texts, [1, 0, 1, 0]).kernel_names_
    ['not good', 'very good']
    """
    spectrum = Spectrum(
        n,
        presence=presence,
        unit=unit,
        alphabet=alphabet,
        ignore_case=ignore_case,
        columns=columns,
    )
    return KernelBank([PerNgram(spectrum, top)])
