"""The base class of kernels on sequences: their column, alphabet and shortest sequence."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..._options import check_choice, check_flag
from ..base import Kernel
from ..columns import Columns, freeze_columns, resolve_columns
from .encoding import ALPHABETS, UNITS, Coded, Sequences, check_alphabet, common_codes
from .table import Table


class ShortSequenceWarning(UserWarning):
    """Some sequences are too short for a kernel, which is zero on them."""


@dataclass(frozen=True, repr=False)
class SequenceKernel(Kernel):
    """A kernel on one column of strings or lists of tokens.

    Subclasses implement :meth:`_pairs` and :meth:`_diag` on codes, where equal codes are equal
    symbols and -1 matches nothing.
    """

    _: KW_ONLY
    unit: str = "letter"
    alphabet: Any = None
    ignore_case: bool = False
    columns: Columns = None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_choice(owner, "unit", self.unit, UNITS)
        object.__setattr__(self, "alphabet", check_alphabet(owner, self.alphabet))
        for field in dataclasses.fields(self):
            if isinstance(field.default, bool):
                flag = check_flag(owner, field.name, getattr(self, field.name))
                object.__setattr__(self, field.name, flag)
        columns = freeze_columns(self.columns)
        if isinstance(columns, tuple) and len(columns) > 1:
            raise ValueError(f"{owner}: columns must name one column; got {self.columns!r}.")
        object.__setattr__(self, "columns", columns)

    def __repr__(self) -> str:
        shown = []
        for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only)):
            value = getattr(self, field.name)
            if field.kw_only and value == field.default:
                continue
            if field.name == "alphabet":
                value = _alphabet_name(value)
            if field.name == "columns" and isinstance(value, tuple):
                value = value[0]
            text = f"{value:.6g}" if isinstance(value, float) else repr(value)
            shown.append(f"{field.name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> SequenceKernel:
        columns = resolve_columns(self.columns, n_features, feature_names, repr(self))
        return self if columns == self.columns else dataclasses.replace(self, columns=columns)

    def select(self, X: Any) -> Sequences:
        """The column this kernel reads."""
        if isinstance(X, Sequences):
            return X
        return Table.of(X).sequences(self.columns, self.unit, repr(self))

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        given = self.select(X)
        other = given if Z is None or Z is X else self.select(Z)
        x, z, code = self._coded(given, other)
        self._warn_short(x)
        if z is not x:
            self._warn_short(z)
        if min(x.longest, z.longest) < self.shortest:
            return np.zeros((len(x), len(z)))
        return self._refuse_overflow(self._pairs(x, z, code))

    def diag(self, X: Any) -> np.ndarray:
        given = self.select(X)
        x, _, code = self._coded(given, given)
        if x.longest < self.shortest:
            return np.zeros(len(x))
        return self._refuse_overflow(self._diag(x, code))

    def _coded(self, X: Sequences, Z: Sequences) -> tuple[Coded, Coded, dict[str, int]]:
        return common_codes(X, Z, self.alphabet, self.ignore_case)

    @property
    def shortest(self) -> int:
        """Sequences with fewer symbols than this have no features."""
        return 1

    def _warn_short(self, x: Coded) -> None:
        short = int(np.count_nonzero(x.lengths < self.shortest))
        if short:
            what = "is" if short == 1 else "are"
            warnings.warn(
                f"{self!r}: {short} of {len(x)} sequences {what} shorter than {self.shortest} "
                f"{self.unit}{'s' if self.shortest > 1 else ''}; the kernel is zero there.",
                ShortSequenceWarning,
                stacklevel=3,
            )

    def _refuse_overflow(self, values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all():
            raise ValueError(
                f"{self!r} overflows: some of its values on these sequences are beyond the range "
                "of floating point. Use smaller parameters."
            )
        return values

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        """The Gram matrix, float64; ``z is x`` if both samples are the same.

        ``code`` maps the known symbols to their codes.
        """
        raise NotImplementedError

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        raise NotImplementedError


def _alphabet_name(alphabet: tuple[str, ...] | None) -> Any:
    if alphabet is None:
        return None
    letters = "".join(alphabet)
    for name, known in ALPHABETS.items():
        if letters == known:
            return name
    if all(len(symbol) == 1 for symbol in alphabet):
        return letters
    return alphabet if len(alphabet) <= 6 else (*alphabet[:3], "...")


def readers(kernels: Any) -> Iterator[SequenceKernel]:
    """The sequence kernels in a kernel, bank or list, at any depth; none in other objects."""
    if isinstance(kernels, SequenceKernel):
        yield kernels
    elif isinstance(kernels, (list, tuple)):
        for kernel in kernels:
            yield from readers(kernel)
    else:
        for name in ("entries", "parts", "kernel", "spectrum"):
            inside = getattr(kernels, name, None)
            if isinstance(inside, (tuple, Kernel)):
                yield from readers(inside)


def reads_sequences(kernels: Any) -> bool:
    """Whether a kernel, or any kernel in a bank or list, reads strings."""
    return any(True for _ in readers(kernels))
