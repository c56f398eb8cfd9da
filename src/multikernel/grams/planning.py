"""Which implementation of the waist serves which kernels: decided here and nowhere else.

* linear kernels on one column are **rank-one**;
* kernels that are scalar functions of a distance or a dot product are **shared**, unless X is
  sparse and too wide to be written out;
* all others (callables, composites, precomputed matrices) are **dense**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.bank import KernelBank, PerFeature, distinct
from ..kernels.base import Kernel
from ..kernels.columns import resolve_columns
from ..kernels.precomputed import Precomputed
from ..kernels.sequences.base import readers, reads_sequences
from ..kernels.sequences.ngrams import Ngrams
from ..kernels.sequences.table import Table
from ..kernels.vectors import Linear, VectorKernel
from .dense import DenseGrams
from .memory import MemoryBudget
from .ngrams import NgramGrams
from .protocol import Grams
from .rankone import RankOneGrams, take_feature_columns
from .shared import BASES, Group, SharedGrams
from .stacked import StackedGrams

#: A sparse X is written out for the shared loops if that takes at most this part of the budget.
DENSIFY = 0.125


@dataclass(frozen=True)
class Part:
    """Kernels of the bank served by one implementation.

    Attributes
    ----------
    kind : {"shared", "rank-one", "dense"}
    positions : array of int
        Where the kernels stand in the bank.
    kernels : tuple of kernels
        Empty for rank-one parts, which are described by their columns.
    columns : array of int
        Feature columns of a rank-one part.
    what : str
        For people.
    features : callable or None
        What makes the features of a rank-one part from X; None where they are columns of X.
    """

    kind: str
    positions: np.ndarray
    kernels: tuple[Kernel, ...]
    columns: np.ndarray
    what: str
    features: Any = None


@dataclass(frozen=True, repr=False)
class Plan:
    """How a bank is served on a sample; printing it shows a table."""

    n_samples: int
    names: list[str]
    parts: tuple[Part, ...]

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        lines = [f"{self.n_kernels} kernels on {self.n_samples} samples"]
        kinds = [part.kind for part in self.parts]
        spans = [f"kernels {_span(part.positions)}" for part in self.parts]
        for part, kind, span in zip(self.parts, kinds, spans, strict=True):
            width, reach = max(map(len, kinds)), max(map(len, spans))
            lines.append(f"  {kind:<{width}}  {span:<{reach}}  {part.what}")
        return "\n".join(lines)

    __repr__ = __str__

    def grams(
        self,
        X: Any,
        *,
        budget: MemoryBudget,
        dtype: Any = np.float64,
        weights: np.ndarray | None = None,
        n_jobs: int = 1,
        symmetric: bool = True,
    ) -> Grams:
        """Evaluate the plan on its sample.

        With ``symmetric=False`` kernels that are evaluated as matrices need not be symmetric.
        """
        text = list(readers([(*part.kernels, part.features) for part in self.parts]))
        X = Table.of(X) if text else _as_matrix(X)
        for kernel in text:
            kernel.select(X)  # encoded here and once; rows of the table share it
        options: dict[str, Any] = {"weights": weights, "n_jobs": n_jobs}
        built: list[Grams] = []
        for part in self.parts:
            names = self.names
            if not np.array_equal(part.positions, np.arange(self.n_kernels)):
                names = [self.names[k] for k in part.positions]
            if part.features is not None:
                made = part.features(X)
                built.append(NgramGrams(made, part.features, names, budget, **options))
            elif part.kind == "rank-one":
                V = take_feature_columns(X, part.columns)
                built.append(RankOneGrams(V, part.columns, names, budget, **options))
            elif part.kind == "shared":
                kernels: Any = part.kernels
                built.append(
                    SharedGrams.evaluate(kernels, X, names, budget, dtype=dtype, **options)
                )
            else:
                built.append(
                    DenseGrams.evaluate(
                        part.kernels, X, names, budget, symmetric=symmetric, **options
                    )
                )
        positions = [part.positions for part in self.parts]
        if len(built) == 1 and np.array_equal(positions[0], np.arange(self.n_kernels)):
            return built[0]
        return StackedGrams(built, positions)


def plan(bank: KernelBank, X: Any, *, memory_budget: Any = None) -> Plan:
    """Assign every kernel of a bank to an implementation."""
    if reads_sequences(bank):
        X = Table.of(X)
        bank, names = bank.adapt(X), X.names
    else:
        X = X if hasattr(X, "shape") else np.asarray(X)
        names = getattr(X, "columns", None)
    return make_plan(
        bank,
        n_samples=X.shape[0],
        n_features=X.shape[1],
        feature_names=None if names is None else [str(name) for name in names],
        sparse=sp.issparse(X),
        budget=MemoryBudget.of(memory_budget),
    )


def make_plan(
    bank: KernelBank,
    *,
    n_samples: int,
    n_features: int,
    feature_names: Sequence[str] | None,
    sparse: bool,
    budget: MemoryBudget,
) -> Plan:
    """See :func:`plan`; this one is told the facts about X."""
    names: list[str] = []
    rank_one: list[tuple[np.ndarray, np.ndarray]] = []  # positions, columns
    shared: list[tuple[int, VectorKernel]] = []
    dense: list[tuple[int, Kernel]] = []
    ngrams: list[tuple[int, Ngrams]] = []
    given = bank._entry_names()
    for entry, name in zip(bank.entries, given, strict=True):
        if isinstance(entry, Ngrams):
            ngrams.append((len(names), entry.resolve(n_features, feature_names)))
            names.extend(entry.names)
            continue
        if isinstance(entry, PerFeature):
            columns = entry.indices(n_features, feature_names)
            shown = columns if feature_names is None else [feature_names[c] for c in columns]
            start = len(names)
            if type(entry.kernel) is Linear:
                # A hundred thousand features need names, but no kernels of their own.
                head, tail = repr(replace(entry.kernel, columns=(0,))).split("columns=0")
                names += [f"{head}columns={c}{tail}" for c in map(repr, _plain(shown))]
                rank_one.append((np.arange(start, len(names)), np.asarray(columns)))
                continue
            copies = [replace(entry.kernel, columns=(c,)) for c in _plain(shown)]
            names.extend(map(repr, copies))
            resolved: list[Kernel] = [k.resolve(n_features, feature_names) for k in copies]
        else:
            assert isinstance(entry, Kernel)  # everything else was adapted to the sample
            start = len(names)
            names.append(name)
            resolved = [entry.resolve(n_features, feature_names)]
        for position, kernel in enumerate(resolved, start):
            column = _single_column(kernel, n_features)
            if column is not None:
                rank_one.append((np.array([position]), np.array([column])))
            elif type(kernel) in BASES:
                shared.append((position, kernel))  # type: ignore[arg-type]
            else:
                dense.append((position, kernel))

    groups = list(dict.fromkeys(Group.of(kernel) for _, kernel in shared))
    width = sum(group.width(n_features) for group in groups)
    if sparse and shared and 8.0 * n_samples * width > DENSIFY * budget.bytes:
        dense, shared = sorted(dense + shared, key=lambda item: item[0]), []  # type: ignore[operator]

    parts: list[Part] = []
    nothing = np.array([], dtype=np.intp)
    if shared:
        rank = {group: g for g, group in enumerate(groups)}
        shared.sort(key=lambda item: (rank[Group.of(item[1])], item[0]))
        where = np.array([position for position, _ in shared])
        what = "; ".join(_describe(group, n_features) for group in groups[:3])
        what += f"; {len(groups) - 3} more groups" if len(groups) > 3 else ""
        parts.append(Part("shared", where, tuple(kernel for _, kernel in shared), nothing, what))
    if rank_one:
        where, columns = (np.concatenate(each) for each in zip(*rank_one, strict=True))
        parts.append(Part("rank-one", where, (), columns, f"{len(columns)} feature columns"))
    for start, entry in ngrams:
        where = np.arange(start, start + len(entry))
        what = f"counts of {len(entry)} n-grams"
        parts.append(Part("rank-one", where, (), nothing, what, entry))
    # Matrices that are there are read in place; kernels that must be evaluated are kept apart.
    ready = [item for item in dense if isinstance(item[1], Precomputed)]
    other = [item for item in dense if not isinstance(item[1], Precomputed)]
    for items, what in ((ready, "given matrices"), (other, "evaluated matrices")):
        if items:
            where = np.array([position for position, _ in items])
            kept = tuple(kernel for _, kernel in items)
            if items is other and not budget.allows(2.0 * len(items) * n_samples**2 * 8):
                what = "evaluated again in every pass"
            parts.append(Part("dense", where, kept, nothing, what))
    return Plan(n_samples, distinct(names), tuple(parts))


def plan_matrices(n_samples: int, n_kernels: int) -> Plan:
    """The plan of an array (n, n, p) of kernel values that somebody else has computed."""
    names = [f"precomputed[{k}]" for k in range(n_kernels)]
    nothing = np.array([], dtype=np.intp)
    part = Part("dense", np.arange(n_kernels), (), nothing, "given matrices")
    return Plan(n_samples, names, (part,))


def _single_column(kernel: Kernel, n_features: int) -> int | None:
    """The column of a linear kernel that sees just one."""
    if type(kernel) is not Linear or kernel.scaling is not None:
        return None
    if kernel.columns is None:
        return 0 if n_features == 1 else None
    columns = resolve_columns(kernel.columns, n_features, None, repr(kernel))
    if isinstance(columns, tuple) and len(columns) == 1:
        return int(columns[0])
    return 0 if columns is None and n_features == 1 else None


def _describe(group: Group, n_features: int) -> str:
    return f"{group.base} on {group.width(n_features)} columns"


def _plain(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return values.tolist()  # type: ignore[no-any-return]
    return [v if isinstance(v, str) else int(v) for v in values]


def _span(positions: np.ndarray) -> str:
    order = np.sort(positions)
    if len(order) == 1:
        return str(order[0])
    if np.array_equal(order, np.arange(order[0], order[-1] + 1)):
        return f"{order[0]}..{order[-1]}"
    return f"{len(order)} of {order[0]}..{order[-1]}"


def _as_matrix(X: Any) -> Any:
    if hasattr(X, "iloc"):
        return X.to_numpy()
    return X if sp.issparse(X) else np.asarray(X)
