"""Assign kernels to kinds of implementations.

* linear kernels on one column are **rank-one**;
* linear kernels on several columns are **linear**, if X is dense, they have no more columns in all
  than there are samples, and no other kernel of the bank is a function of a distance or a dot
  product;
* kernels that are scalar functions of a distance or a dot product are **shared**, unless X is
  sparse and too wide to be made dense;
* rank-one kernels whose features are made from X, such as counts of n-grams, are **features**;
* an array (n, n, p) of kernel values is **given**;
* all others (callables, composites, precomputed matrices) are **dense**.

:mod:`multikernel.grams.engines` says which engine serves a kind, and builds the grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.bank import KernelBank
from ..kernels.base import Kernel, known_psd
from ..kernels.derivatives import BASES
from ..kernels.placement import place
from ..kernels.precomputed import Precomputed
from ..kernels.sequences.base import reads_sequences
from ..kernels.sequences.table import Table
from ..kernels.vectors import Linear
from .memory import MemoryBudget
from .protocol import Grams
from .shared import Group

#: Maximum fraction of the budget that a sparse X may take when it is made dense for shared loops.
MAX_DENSIFIED_BUDGET_FRACTION = 0.125
NO_COLUMNS = np.array([], dtype=np.intp)
#: The engine of the library itself, which serves all kinds.
DEFAULT_ENGINE = "cpu"


@dataclass(frozen=True)
class Part:
    """Kernels of the bank served by one implementation.

    Attributes
    ----------
    kind : {"shared", "linear", "rank-one", "features", "dense", "given"}
    positions : array of int
        Positions of the kernels in the bank.
    kernels : tuple of kernels
        Empty unless the kind is "shared", "linear" or "dense".
    columns : array of int
        Feature columns of a rank-one part.
    what : str
        Shown when the plan is printed.
    features : callable or None
        Makes the features from X, for the kind "features".
    engine : str
        The engine that serves the part.
    """

    kind: str
    positions: np.ndarray
    kernels: tuple[Kernel, ...]
    columns: np.ndarray
    what: str
    features: Any = None
    engine: str = DEFAULT_ENGINE

    @cached_property
    def known_psd(self) -> np.ndarray:
        """Mask of `kernels` that are positive semidefinite by construction; cached."""
        return known_psd(self.kernels)

    def state(self) -> dict[str, Any]:
        """The fields to store in a model file; the default engine is left out."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.engine == DEFAULT_ENGINE:
            del state["engine"]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Part:
        """A part from stored fields, also from files of earlier versions."""
        kind = state["kind"]
        if state["features"] is not None:
            kind = "features"
        elif kind == "dense" and not state["kernels"]:
            kind = "given"
        return cls(**{**state, "kind": kind})


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
        spans = [f"kernels {_span(part.positions)}" for part in self.parts]
        width = max(len(part.kind) for part in self.parts)
        reach = max(map(len, spans))
        for part, span in zip(self.parts, spans, strict=True):
            engine = "" if part.engine == DEFAULT_ENGINE else f" (engine {part.engine!r})"
            lines.append(f"  {part.kind:<{width}}  {span:<{reach}}  {part.what}{engine}")
        return "\n".join(lines)

    __repr__ = __str__

    def grams(
        self,
        X: Any,
        *,
        budget: MemoryBudget,
        dtype: Any = np.float64,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
        symmetric: bool = True,
    ) -> Grams:
        """Evaluate the plan on its sample; see :func:`multikernel.grams.engines.build`."""
        from .engines import build

        return build(
            self,
            X,
            budget=budget,
            dtype=dtype,
            sample_weight=sample_weight,
            n_jobs=n_jobs,
            symmetric=symmetric,
        )


def plan(bank: KernelBank, X: Any, *, memory_budget: Any = None) -> Plan:
    """Assign every kernel of a bank to a kind of implementation."""
    if reads_sequences(bank):
        X = Table.of(X)
        bank, names = bank.adapt(X), X.names
    else:
        X = X if hasattr(X, "shape") else np.asarray(X)
        names = getattr(X, "columns", None)
        bank = bank.adapt(X)
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
    """The same as :func:`plan`, from the properties of X alone."""
    names, placed = place(bank, n_features, feature_names)
    single = [(one.positions, one.columns) for one in placed if one.columns is not None]
    others = [(int(one.positions[0]), one.kernels[0]) for one in placed if one.kernels]
    shared = [(Group.of(k), at, k) for at, k in others if type(k) in BASES]  # type: ignore[arg-type]
    dense = [(at, k) for at, k in others if type(k) not in BASES]

    groups = list(dict.fromkeys(group for group, _, _ in shared))
    width = sum(group.width(n_features) for group in groups)
    densified = 8.0 * n_samples * width
    if sparse and shared and densified > MAX_DENSIFIED_BUDGET_FRACTION * budget.bytes:
        dense, shared = others, []

    parts: list[Part] = []
    n_columns = sum(group.width(n_features) for group, _, _ in shared)
    all_linear = all(type(kernel) is Linear for _, _, kernel in shared)
    if shared and all_linear and not sparse and n_columns <= n_samples:
        where = np.array([at for _, at, _ in shared])
        what = f"{n_columns} columns of {len(shared)} kernels"
        parts.append(Part("linear", where, tuple(k for _, _, k in shared), NO_COLUMNS, what))
    elif shared:
        rank = {group: g for g, group in enumerate(groups)}
        shared.sort(key=lambda item: (rank[item[0]], item[1]))
        where = np.array([at for _, at, _ in shared])
        what = "; ".join(_describe(group, n_features) for group in groups[:3])
        what += f"; {len(groups) - 3} more groups" if len(groups) > 3 else ""
        parts.append(Part("shared", where, tuple(k for _, _, k in shared), NO_COLUMNS, what))
    if single:
        where, columns = (np.concatenate(each) for each in zip(*single, strict=True))
        parts.append(Part("rank-one", where, (), columns, f"{len(columns)} feature columns"))
    for one in placed:
        if one.features is not None:
            what = f"counts of {len(one.features)} n-grams"
            parts.append(Part("features", one.positions, (), NO_COLUMNS, what, one.features))
    # Given matrices are read in place; kernels that must be evaluated are a part of their own.
    ready = [item for item in dense if isinstance(item[1], Precomputed)]
    other = [item for item in dense if not isinstance(item[1], Precomputed)]
    for items, what in ((ready, "given matrices"), (other, "evaluated matrices")):
        if items:
            where = np.array([position for position, _ in items])
            kept = tuple(kernel for _, kernel in items)
            if items is other and not budget.allows(2.0 * len(items) * n_samples**2 * 8):
                what = "evaluated again in every pass"
            parts.append(Part("dense", where, kept, NO_COLUMNS, what))
    return Plan(n_samples, names, tuple(parts))


def plan_matrices(n_samples: int, n_kernels: int, names: Sequence[str] | None = None) -> Plan:
    """The plan of a given array (N, N, p) of kernel values, for `n_samples` of the N samples."""
    if names is None:
        names = [f"precomputed[{k}]" for k in range(n_kernels)]
    part = Part("given", np.arange(n_kernels), (), NO_COLUMNS, "given matrices")
    return Plan(n_samples, list(names), (part,))


def _describe(group: Group, n_features: int) -> str:
    return f"{group.base} on {group.width(n_features)} columns"


def _span(positions: np.ndarray) -> str:
    order = np.sort(positions)
    if len(order) == 1:
        return str(order[0])
    if np.array_equal(order, np.arange(order[0], order[-1] + 1)):
        return f"{order[0]}..{order[-1]}"
    return f"{len(order)} of {order[0]}..{order[-1]}"
