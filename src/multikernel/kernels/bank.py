"""Banks: ordered, named lists of kernels, and the usual ways to make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from .algebra import Composite, Power, Scaled
from .base import Kernel
from .columns import Columns, UnknownColumn, resolve_columns
from .vectors import VectorKernel

if TYPE_CHECKING:
    from ..grams.planning import Plan


class Open:
    """An entry of a bank whose number of kernels depends on the data."""

    def __copy__(self) -> Open:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Open:
        return self


@dataclass(frozen=True)
class PerFeature(Open):
    """One copy of ``kernel`` per column of X; their number depends on X."""

    kernel: VectorKernel
    columns: Columns = None

    def indices(self, n_features: int, feature_names: Sequence[str] | None) -> np.ndarray:
        """The columns that get a kernel of their own."""
        columns = resolve_columns(self.columns, n_features, feature_names, repr(self))
        return np.arange(n_features) if columns is None else np.asarray(columns, dtype=np.intp)


class KernelBank(Sequence[Kernel]):
    """An ordered list of kernels with names; banks add up with ``+``.

    Like its kernels, a bank is immutable, and cloning an estimator shares it.

    Parameters
    ----------
    kernels : iterable of kernels, or a bank
    names : sequence of str, optional
        One per kernel. By default each kernel is named after itself, and repeated names get a
        number.

    Examples
    --------
    >>> import multikernel as mk
    >>> bank = mk.KernelBank([mk.Linear()]) + mk.gaussians([0.1, 1.0])
    >>> len(bank)
    3
    >>> bank.names
    ['Linear()', 'Gaussian(gamma=0.1)', 'Gaussian(gamma=1)']
    """

    def __init__(
        self,
        kernels: Any,
        names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(kernels, (Kernel, Open)):
            kernels = [kernels]
        if isinstance(kernels, (str, Mapping)) or not isinstance(kernels, Iterable):
            raise TypeError(
                "kernels must be a kernel, a list of kernels, a bank, 'precomputed' or None; got "
                f"{kernels!r} of type {type(kernels).__name__}. Wrap a function in mk.Callable, "
                "make kernels from classes with mk.Gaussian(gamma=0.5), and use mk.per_view for "
                "a dict of views."
            )
        if isinstance(kernels, (list, tuple)) and any(isinstance(k, KernelBank) for k in kernels):
            # Banks in a list are joined: [mk.gaussians([...]), mk.Linear()]
            kernels = reduce(add, [as_bank(k) for k in kernels])
        if isinstance(kernels, KernelBank):
            names = kernels._names if names is None else names
            kernels = kernels.entries
        self.entries: tuple[Kernel | Open, ...] = tuple(kernels)
        for entry in self.entries:
            if not isinstance(entry, (Kernel, Open)):
                raise TypeError(
                    f"A bank holds kernels such as mk.Gaussian(gamma=0.5); got {entry!r} of type "
                    f"{type(entry).__name__}. Wrap a function in mk.Callable, and matrices in "
                    "mk.precomputed."
                )
        if not self.entries:
            raise ValueError("A bank needs at least one kernel; got none.")
        if names is not None and len(names) != len(self.entries):
            raise ValueError(f"Got {len(names)} names for {len(self.entries)} kernels.")
        self._names: tuple[str, ...] | None = None
        if names is not None:
            self._names = tuple(str(name) for name in names)

    # -- a sequence of kernels ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the number of kernels depends on an X not seen yet (``per_feature``)."""
        return any(isinstance(entry, Open) for entry in self.entries)

    def _closed(self) -> tuple[Kernel, ...]:
        if self.is_open:
            raise TypeError(
                "The kernels of this bank depend on data it has not seen yet: one per column (or "
                "n-gram), which bank.plan(X) shows, or kernels learned in fit, which the "
                "attribute bank_ of the fitted model holds."
            )
        return self.entries  # type: ignore[return-value]

    def __len__(self) -> int:
        return len(self._closed())

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._closed())

    def __getitem__(self, index: Any) -> Any:
        kernels = self._closed()
        if isinstance(index, slice):
            return KernelBank(kernels[index], self._names and self._names[index])
        return kernels[index]

    def __add__(self, other: object) -> KernelBank:
        if isinstance(other, (Kernel, list, tuple)):
            other = KernelBank(other)
        if not isinstance(other, KernelBank):
            return NotImplemented
        names = None
        if self._names is not None or other._names is not None:
            names = [*self._entry_names(), *other._entry_names()]
        return KernelBank(self.entries + other.entries, names)

    def __radd__(self, other: object) -> KernelBank:
        if isinstance(other, (Kernel, list, tuple)):
            return KernelBank(other) + self
        return NotImplemented

    def _entry_names(self) -> list[str]:
        if self._names is not None:
            return list(self._names)
        return [e.name if isinstance(e, Kernel) else repr(e) for e in self.entries]

    @property
    def names(self) -> list[str]:
        """One name per kernel, all different."""
        self._closed()
        return distinct(self._entry_names())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KernelBank)
            and self.entries == other.entries
            and self._names == other._names
        )

    def __hash__(self) -> int:
        return hash((self.entries, self._names))

    def __copy__(self) -> KernelBank:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelBank:
        return self

    def __repr__(self) -> str:
        shown = self._entry_names()
        if len(shown) > 12:
            shown = [*shown[:5], f"... {len(shown) - 6} more ...", shown[-1]]
        return f"KernelBank([{', '.join(shown)}])"

    # -- on given data --------------------------------------------------------------------------

    def adapt(
        self,
        X: Any,
        sample_weight: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> KernelBank:
        """The bank with its kernels adapted to a training sample.

        ``feature_names`` are the names of the columns of X, if X itself does not have them.
        """
        entries = []
        for entry, name in zip(self.entries, self._entry_names(), strict=True):
            with naming_view(name):
                entries.append(adapt(entry, X, sample_weight, feature_names))
        if all(new is old for new, old in zip(entries, self.entries, strict=True)):
            return self
        return KernelBank(entries, self._names)

    def plan(self, X: Any, *, engine: str = "cpu", memory_budget: Any = None) -> Plan:
        """The plan for this X: which implementation of the Gram passes computes which kernels.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        engine : str, default="cpu"
            As in :class:`multikernel.MultiKernelClassifier`.
        memory_budget : int, str or None, default=None
            Bytes, or text such as ``"4GB"``; None for 60 % of the free memory.

        Examples
        --------
        >>> import numpy as np
        >>> import multikernel as mk
        >>> bank = mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear())
        >>> print(bank.plan(np.zeros((100, 3))))
        5 kernels on 100 samples
          shared    kernels 0..1  squared distances on 3 columns
          rank-one  kernels 2..4  3 feature columns
        """
        from ..grams.engines import assign
        from ..grams.planning import plan

        return assign(plan(self, X, memory_budget=memory_budget), engine)


def adapt(
    entry: Any, X: Any, sample_weight: np.ndarray | None, feature_names: Sequence[str] | None
) -> Any:
    """An entry of a bank, with all kernels in it adapted to the training sample."""
    if isinstance(entry, VectorKernel):
        return entry.adapt(X, sample_weight, feature_names)
    if hasattr(entry, "adapt"):
        return entry.adapt(X, sample_weight)
    if isinstance(entry, Composite):
        parts = tuple(adapt(part, X, sample_weight, feature_names) for part in entry.parts)
        return entry if parts == entry.parts else replace(entry, parts=parts)
    if isinstance(entry, (Scaled, Power)):
        kernel = adapt(entry.kernel, X, sample_weight, feature_names)
        return entry if kernel is entry.kernel else replace(entry, kernel=kernel)
    return entry


def view_of(name: str) -> str:
    """The view of a kernel: the part of its name before the colon; empty without one."""
    view, colon, _ = name.partition(": ")
    return view if colon else ""


@contextmanager
def naming_view(name: str) -> Iterator[None]:
    """Add the view to errors about unknown columns, if the kernel of this name has a view."""
    try:
        yield
    except UnknownColumn as error:
        if not view_of(name):
            raise
        raise UnknownColumn(f"View {view_of(name)!r}: {error}") from None


def distinct(names: Sequence[str]) -> list[str]:
    """Make names distinct: every appearance of a repeated name gets a number."""
    if len(set(names)) == len(names):
        return list(names)
    counts = Counter(names)
    seen: Counter[str] = Counter()
    taken = {name for name, count in counts.items() if count == 1}
    out = []
    for name in names:
        new = name
        while counts[name] > 1 and (new == name or new in taken):
            seen[name] += 1
            new = f"{name} #{seen[name]}"
        taken.add(new)
        out.append(new)
    return out


def as_bank(kernels: Any) -> KernelBank:
    """A bank from the ``kernels=`` argument of an estimator."""
    return kernels if isinstance(kernels, KernelBank) else KernelBank(kernels)
