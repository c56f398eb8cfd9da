"""The kernels of a bank on the columns of one X: named, and with columns as plain indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bank import KernelBank, PerFeature, distinct, naming_view
from .base import Kernel
from .columns import resolve_columns
from .sequences.ngrams import Ngrams
from .vectors import Linear


@dataclass(frozen=True)
class Placed:
    """Neighbouring kernels of a bank; exactly one of the last three attributes is set.

    Attributes
    ----------
    positions : array of int
        Positions of the kernels in the bank.
    kernels : tuple of kernels
    columns : array of int or None
        Columns of X, for linear kernels that see one column each.
    features : Ngrams or None
        Makes the features of rank-one kernels from X.
    """

    positions: np.ndarray
    kernels: tuple[Kernel, ...] = ()
    columns: np.ndarray | None = None
    features: Ngrams | None = None


def place(
    bank: KernelBank, n_features: int, feature_names: Sequence[str] | None
) -> tuple[list[str], list[Placed]]:
    """The names of all kernels and the kernels themselves, in the order of the bank."""
    names: list[str] = []
    placed: list[Placed] = []
    for entry, name in zip(bank.entries, bank._entry_names(), strict=True):
        start = len(names)
        if isinstance(entry, Ngrams):
            names += entry.names
            features = entry.resolve(n_features, feature_names)
            placed.append(Placed(np.arange(start, len(names)), features=features))
        elif isinstance(entry, PerFeature):
            columns = entry.indices(n_features, feature_names)
            shown = columns if feature_names is None else [feature_names[c] for c in columns]
            if type(entry.kernel) is Linear:
                # A hundred thousand features need names, but no kernel objects.
                head, tail = repr(replace(entry.kernel, columns=(0,))).split("columns=0")
                names += [f"{head}columns={c}{tail}" for c in map(repr, _plain(shown))]
                placed.append(Placed(np.arange(start, len(names)), columns=np.asarray(columns)))
                continue
            copies = [replace(entry.kernel, columns=(c,)) for c in _plain(shown)]
            names += map(repr, copies)
            placed += [
                _place_one(kernel.resolve(n_features, feature_names), k, n_features)
                for k, kernel in enumerate(copies, start)
            ]
        else:
            assert isinstance(entry, Kernel)  # other entries were adapted to the sample before
            names.append(name)
            with naming_view(name):
                kernel = entry.resolve(n_features, feature_names)
            placed.append(_place_one(kernel, start, n_features))
    return distinct(names), placed


def _place_one(kernel: Kernel, position: int, n_features: int) -> Placed:
    column = _single_column(kernel, n_features)
    if column is None:
        return Placed(np.array([position]), (kernel,))
    return Placed(np.array([position]), columns=np.array([column]))


def _single_column(kernel: Kernel, n_features: int) -> int | None:
    """The column of a linear kernel on one unscaled column; None for other kernels."""
    if type(kernel) is not Linear or kernel.scaling is not None:
        return None
    if kernel.columns is None:
        return 0 if n_features == 1 else None
    columns = resolve_columns(kernel.columns, n_features, None, repr(kernel))
    if isinstance(columns, tuple) and len(columns) == 1:
        return int(columns[0])
    return 0 if columns is None and n_features == 1 else None


def _plain(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return values.tolist()  # type: ignore[no-any-return]
    return [v if isinstance(v, str) else int(v) for v in values]
