"""Sequences as numbers: letters or words become codes once, and kernels read nothing but codes.

A sequence is a string, read letter by letter (Unicode code points) or word by word, or a list of
tokens. All sequences of a column lie in one array of codes, end to end. An alphabet turns these
into the codes that a kernel compares; a symbol outside of it is *unknown*, code -1, and matches
nothing, not even itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Named alphabets.
ALPHABETS = {
    "dna": "ACGT",
    "rna": "ACGU",
    "protein": "ACDEFGHIKLMNPQRSTVWY",
}
UNITS = ("letter", "word")

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Split a text into words: lower case, maximal runs of letters, digits and underscores.

    Examples
    --------
    >>> words("Don't panic: 42 is the answer!")
    ['don', 't', 'panic', '42', 'is', 'the', 'answer']
    """
    return _WORD.findall(text.lower())


@dataclass(frozen=True, eq=False)
class Sequences:
    """A column of sequences, end to end.

    Attributes
    ----------
    codes : array of int32
        All symbols of all sequences, as indices into ``symbols``.
    offsets : array of int64, shape (n + 1,)
        Where each sequence begins; the last entry is the number of symbols.
    symbols : tuple of str
        The symbols that occur, each once: letters or words.
    """

    codes: np.ndarray
    offsets: np.ndarray
    symbols: tuple[str, ...]

    def state(self) -> dict[str, Any]:
        """The fields, for a model file."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Sequences:
        """Sequences from stored fields; a ValueError if loops would read out of bounds."""
        new = cls(**state)
        codes, offsets = new.codes, new.offsets
        fit = offsets.ndim == codes.ndim == 1 and len(offsets) > 0
        fit = fit and offsets[0] >= 0 and offsets[-1] <= len(codes)
        fit = fit and bool(np.all(np.diff(offsets) >= 0))
        if not fit or np.any((codes < 0) | (codes >= len(new.symbols))):
            raise ValueError("the sizes of its parts do not fit each other: codes of sequences")
        return new

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """One row per sequence, one column."""
        return len(self), 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def __getitem__(self, rows: Any) -> Sequences:
        """Some of the sequences."""
        index = np.arange(len(self))[rows]
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        lengths = self.lengths[index]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.offsets[index] - offsets[:-1], lengths)
        return Sequences(self.codes[moved + np.arange(offsets[-1])], offsets, self.symbols)

    def recoded(self, new: np.ndarray) -> Coded:
        """Codes of another alphabet, given the new code of each symbol."""
        return Coded(new.astype(np.int32)[self.codes], self.offsets)


@dataclass(frozen=True, eq=False)
class Coded:
    """Sequences in the codes of the alphabet that a kernel compares; -1 is unknown."""

    codes: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        """The length of the longest sequence; 0 if there is none."""
        return int(self.lengths.max(initial=0))


def encode(cells: Sequence[Any], unit: str, who: str) -> Sequences:
    """Codes of a column of strings or lists of tokens.

    Parameters
    ----------
    cells : sequence of str, or of lists of str
    unit : {"letter", "word"}
        How strings are read; lists of tokens are taken as they are.
    who : str
        The name of the column in error messages.
    """
    if unit == "letter" and set(map(type, cells)) == {str}:
        return _encode_letters(cells)  # fast path: most columns hold strings only
    tokens = [is_tokens(cell) for cell in cells]
    for row, (cell, listed) in enumerate(zip(cells, tokens, strict=True)):
        if not listed and not isinstance(cell, str):
            raise ValueError(_what_is_wrong(cell, row, who))
    if unit == "word" or any(tokens):
        if any(tokens) and not all(tokens):
            row = tokens.index(not tokens[0])
            raise ValueError(
                f"{who} mixes strings and lists of tokens (rows 0 and {row} differ). "
                "Split the strings, or join the lists."
            )
        return _encode_tokens(cells if any(tokens) else [words(cell) for cell in cells])
    return _encode_letters(cells)


def is_tokens(cell: Any) -> bool:
    """Whether a cell is a list of tokens."""
    return isinstance(cell, (list, tuple)) and all(isinstance(token, str) for token in cell)


def _what_is_wrong(cell: Any, row: int, who: str) -> str:
    missing = cell is None or (isinstance(cell, float) and np.isnan(cell))
    if missing:
        return (
            f"{who}: row {row} is missing ({cell!r}). Drop it, or replace it with the empty string "
            "''."
        )
    hint = "Decode it first, for example with .decode()." if isinstance(cell, bytes) else ""
    return (
        f"{who}: a sequence kernel reads strings or lists of strings; row {row} holds {cell!r} of "
        f"type {type(cell).__name__}. {hint}"
    ).rstrip()


def _encode_letters(cells: Sequence[str]) -> Sequences:
    lengths = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
    # surrogatepass: Python strings may hold lone surrogates, which are not characters
    points = np.frombuffer("".join(cells).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    top = int(points.max(initial=0)) + 1
    used = np.flatnonzero(np.bincount(points, minlength=top))
    code = np.zeros(top, dtype=np.int32)
    code[used] = np.arange(len(used))
    return Sequences(code[points], _offsets(lengths), tuple(map(chr, used.tolist())))


def _encode_tokens(cells: Iterable[Sequence[str]]) -> Sequences:
    lists = list(cells)
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    symbols = sorted({token for tokens in lists for token in tokens})
    code = {symbol: k for k, symbol in enumerate(symbols)}
    flat = (code[token] for tokens in lists for token in tokens)
    codes = np.fromiter(flat, dtype=np.int32, count=int(lengths.sum()))
    return Sequences(codes, _offsets(lengths), tuple(symbols))


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def common_codes(
    X: Sequences,
    Z: Sequences,
    alphabet: tuple[str, ...] | None,
    ignore_case: bool,
    literals: Iterable[str] = (),
) -> tuple[Coded, Coded, dict[str, int]]:
    """Both samples in codes of the same alphabet, and the code of each known symbol.

    Without an alphabet every symbol that occurs is known, and so are the literals. Case is folded
    symbol by symbol.
    """
    given = list(map(fold, X.symbols)) if ignore_case else list(X.symbols)
    other = list(map(fold, Z.symbols)) if ignore_case else list(Z.symbols)
    if alphabet is None:
        own = map(fold, literals) if ignore_case else literals
        known: Iterable[str] = sorted({*given, *other, *own})
    else:
        known = map(fold, alphabet) if ignore_case else alphabet
    code = {symbol: k for k, symbol in enumerate(dict.fromkeys(known))}

    def recode(sample: Sequences, symbols: list[str]) -> Coded:
        new = np.array([code.get(symbol, -1) for symbol in symbols], dtype=np.int32)
        return sample.recoded(new)

    coded = recode(X, given)
    return coded, coded if Z is X else recode(Z, other), code


def fold(symbol: str) -> str:
    """The symbol without its case: upper and lower case give the same."""
    return symbol.casefold()


def check_alphabet(owner: str, alphabet: Any) -> tuple[str, ...] | None:
    """The symbols of an alphabet, from its name, its letters or a sequence of words."""
    if alphabet is None:
        return None
    symbols: tuple[Any, ...]
    if isinstance(alphabet, str):
        symbols = tuple(ALPHABETS.get(alphabet, alphabet))
    else:
        symbols = tuple(alphabet) if isinstance(alphabet, Iterable) else ()
    if not symbols or not all(isinstance(s, str) for s in symbols):
        raise ValueError(
            f"{owner}: alphabet must be one of {', '.join(map(repr, ALPHABETS))}, a string of "
            f"letters, a sequence of words, or None for all that occur; got {alphabet!r}."
        )
    if len(set(symbols)) < len(symbols):
        raise ValueError(f"{owner}: alphabet names a symbol twice; got {alphabet!r}.")
    return symbols
