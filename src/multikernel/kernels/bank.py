"""Banks: ordered, named lists of kernels, and the usual ways to make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from .algebra import Composite, Power, Scaled
from .base import Kernel
from .columns import Columns, Standardization, freeze_columns, resolve_columns
from .vectors import Gaussian, Linear, Polynomial, VectorKernel

if TYPE_CHECKING:
    from ..grams.planning import Plan


class Open:
    """An entry of a bank that stands for as many kernels as the data turn out to have."""

    def __copy__(self) -> Open:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Open:
        return self


@dataclass(frozen=True)
class PerFeature(Open):
    """One copy of ``kernel`` per column of X: as many kernels as X turns out to have columns."""

    kernel: VectorKernel
    columns: Columns = None

    def indices(self, n_features: int, feature_names: Sequence[str] | None) -> np.ndarray:
        """The columns that get a kernel of their own."""
        columns = resolve_columns(self.columns, n_features, feature_names, repr(self))
        return np.arange(n_features) if columns is None else np.asarray(columns, dtype=np.intp)


class KernelBank(Sequence[Kernel]):
    """An ordered list of kernels with names; banks add up with ``+``.

    A bank is a value like its kernels: it is never changed, and cloning an estimator shares it.

    Parameters
    ----------
    kernels : iterable of kernels, or a bank
    names : sequence of str, optional
        One per kernel. By default the kernels name themselves, and repeated names get a number.

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
            raise ValueError(f"{len(self.entries)} kernels came with {len(names)} names.")
        self._names: tuple[str, ...] | None = None
        if names is not None:
            self._names = tuple(str(name) for name in names)

    # -- a sequence of kernels ------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the number of kernels depends on the X still to come (``per_feature``)."""
        return any(isinstance(entry, Open) for entry in self.entries)

    def _closed(self) -> tuple[Kernel, ...]:
        if self.is_open:
            raise TypeError(
                "This bank has one kernel per column (or n-gram) of the data it will meet; "
                "bank.plan(X) says which."
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

    # -- meeting data ---------------------------------------------------------------------------

    def adapt(self, X: Any, sample_weight: np.ndarray | None = None) -> KernelBank:
        """The bank with everything learned that its kernels learn from a training sample."""
        entries = [adapt(entry, X, sample_weight) for entry in self.entries]
        if all(new is old for new, old in zip(entries, self.entries, strict=True)):
            return self
        return KernelBank(entries, self._names)

    def plan(self, X: Any, *, engine: str = "cpu", memory_budget: Any = None) -> Plan:
        """Which implementation of the Gram passes would serve which kernels on this X.

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


def adapt(entry: Any, X: Any, sample_weight: np.ndarray | None) -> Any:
    """An entry, or the kernels that it is composed of, after a look at the training sample."""
    if hasattr(entry, "adapt"):
        return entry.adapt(X, sample_weight)
    if isinstance(entry, Composite):
        parts = tuple(adapt(part, X, sample_weight) for part in entry.parts)
        return entry if parts == entry.parts else replace(entry, parts=parts)
    if isinstance(entry, (Scaled, Power)):
        kernel = adapt(entry.kernel, X, sample_weight)
        return entry if kernel is entry.kernel else replace(entry, kernel=kernel)
    return entry


def distinct(names: Sequence[str]) -> list[str]:
    """Number the second and later appearances of a name."""
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
    """A bank from whatever a user may pass as ``kernels=``."""
    return kernels if isinstance(kernels, KernelBank) else KernelBank(kernels)


def gaussians(gammas: Iterable[float], *, columns: Any = None) -> KernelBank:
    """One Gaussian kernel per gamma.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.gaussians([0.1, 1.0]).names
    ['Gaussian(gamma=0.1)', 'Gaussian(gamma=1)']
    """
    if not isinstance(gammas, Iterable) or isinstance(gammas, str):
        raise TypeError(f"gaussians: gammas must be a sequence of numbers; got {gammas!r}.")
    return KernelBank([Gaussian(gamma, columns=columns) for gamma in gammas])


def polynomials(
    degrees: Iterable[int], coef0: float = 1.0, *, gamma: float = 1.0, columns: Any = None
) -> KernelBank:
    """One polynomial kernel per degree.

    Examples
    --------
    >>> import multikernel as mk
    >>> len(mk.polynomials([1, 2, 3]))
    3
    """
    if not isinstance(degrees, Iterable) or isinstance(degrees, str):
        raise TypeError(f"polynomials: degrees must be a sequence of numbers; got {degrees!r}.")
    return KernelBank([Polynomial(d, coef0, gamma, columns=columns) for d in degrees])


def per_feature(kernel: VectorKernel | None = None, *, columns: Any = None) -> KernelBank:
    """One kernel per column of X; linear ones are rank-one and cost no more than the columns.

    Parameters
    ----------
    kernel : kernel on vectors, default=Linear()
        Copied to each column.
    columns : names, indices, slice or None
        Which columns get a kernel; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> bank = mk.per_feature(mk.Linear())
    >>> bank.plan(np.zeros((10, 4))).names
    ['Linear(columns=0)', 'Linear(columns=1)', 'Linear(columns=2)', 'Linear(columns=3)']
    """
    kernel = Linear() if kernel is None else kernel
    if not isinstance(kernel, VectorKernel):
        raise TypeError(
            f"per_feature needs a kernel on vectors such as mk.Linear(); got {kernel!r}."
        )
    if kernel.columns is not None or kernel.scaling is not None:
        raise ValueError(
            f"per_feature gives each copy one column; {kernel!r} selects its own. "
            "Use per_feature(kernel, columns=...)."
        )
    return KernelBank([PerFeature(kernel, freeze_columns(columns))])


def per_view(views: Mapping[str, Any]) -> KernelBank:
    """Kernels for several views of the same samples, named after the views.

    Parameters
    ----------
    views : mapping of name to ``(kernel or kernels, columns)``
        The columns of X that make up the view, and what to compute on them.

    Examples
    --------
    >>> import multikernel as mk
    >>> bank = mk.per_view({
    ...     "expression": (mk.gaussians([0.01, 0.1]), slice(0, 100)),
    ...     "clinical": (mk.Linear(), ["age", "stage"]),
    ... })
    >>> bank.names
    ['expression: Gaussian(gamma=0.01)', 'expression: Gaussian(gamma=0.1)', 'clinical: Linear()']
    """
    kernels: list[Kernel] = []
    names: list[str] = []
    if not isinstance(views, Mapping) or not views:
        raise TypeError(
            "per_view takes a mapping with at least one entry, name to (kernel or kernels, "
            f"columns); got {views!r}."
        )
    for view, value in views.items():
        try:
            given, columns = value
        except (TypeError, ValueError):
            raise ValueError(
                f"View {view!r} must be a pair (kernel or kernels, columns); got {value!r}."
            ) from None
        try:
            bank, columns = as_bank(given), freeze_columns(columns)
        except (TypeError, ValueError) as error:
            raise type(error)(f"View {view!r}: {error}") from None
        if bank.is_open:
            raise ValueError(
                f"View {view!r}: per_feature(...) chooses its own columns. Use "
                "mk.per_feature(kernel, columns=...) and add the banks with +."
            )
        for kernel in bank:
            if not hasattr(kernel, "columns") or kernel.columns is not None:
                raise ValueError(
                    f"View {view!r}: {kernel!r} cannot be given columns; use kernels on vectors "
                    "or sequences that do not select their own."
                )
            placed = _with_columns(kernel, columns)
            kernels.append(placed)
            names.append(f"{view}: {kernel!r}")
    return KernelBank(kernels, distinct(names))


def _with_columns(kernel: Any, columns: Any) -> Any:
    return replace(kernel, columns=freeze_columns(columns))


def default_bank(
    X: Any, *, n_gaussians: int = 7, sample_weight: np.ndarray | None = None
) -> KernelBank:
    """A sensible family for people who do not want to choose.

    Gaussians whose gammas are powers of 4 around the median heuristic
    ``1 / median ||x - z||^2``, a linear kernel and polynomials of degree 2 and 3, all on
    standardised columns (on sparse data the columns are scaled but not centred).

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Numeric and finite.
    n_gaussians : int, default=7
        How many bandwidths, centred on the median heuristic.
    sample_weight : array of shape (n_samples,), optional
        How often each point counts in means, scales and the median.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> bank = mk.default_bank(load_iris().data)
    >>> len(bank)
    10
    >>> bank[3]
    Gaussian(gamma=0.160298, scaling=<mean and scale of 4 columns>)
    """
    from sklearn.utils import check_array

    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    scaling = Standardization.of(X, sample_weight)
    n, d = X.shape
    omega = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    # The median is a rough guide: a thousand evenly spaced rows place it well enough.
    rows = np.unique(np.linspace(0, n - 1, min(n, 1000)).astype(int))
    i, j = np.triu_indices(len(rows), k=1)
    distances = euclidean_distances(scaling(X[rows]), squared=True)[i, j]
    gamma = _inverse_median(distances, (omega[rows][:, None] * omega[rows])[i, j], default=1.0 / d)
    steps = np.arange(n_gaussians) - (n_gaussians - 1) / 2
    kernels: list[Kernel] = [Gaussian(gamma * 4.0**step, scaling=scaling) for step in steps]
    kernels.append(Linear(scaling=scaling))
    kernels += [Polynomial(degree, 1.0, 1.0 / d, scaling=scaling) for degree in (2, 3)]
    names = [_plain_name(kernel) for kernel in kernels]
    return KernelBank(kernels, names)


def _inverse_median(distances: np.ndarray, counts: np.ndarray, default: float) -> float:
    """One over the median of the positive distances, each counted so many times."""
    # Copies of a point are at distance zero up to rounding.
    positive = distances > 1e-12 * distances.max(initial=0.0)
    if not np.any(positive):
        return default
    order = np.argsort(distances[positive], kind="stable")
    reached = np.cumsum(counts[positive][order])
    # A hair below half: equal sums in another order must find the same distance.
    middle = int(np.searchsorted(reached, 0.5 * reached[-1] * (1 - 1e-9)))
    return float(1.0 / distances[positive][order[middle]])


def _plain_name(kernel: Kernel) -> str:
    return repr(replace(kernel, scaling=None))  # type: ignore[type-var]


__all__ = [
    "KernelBank",
    "Open",
    "PerFeature",
    "as_bank",
    "default_bank",
    "distinct",
    "gaussians",
    "per_feature",
    "per_view",
]
