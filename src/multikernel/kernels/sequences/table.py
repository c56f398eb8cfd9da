"""Tables with columns of numbers and of sequences, the input of kernels on strings.

Each column of sequences is encoded when a kernel first reads it, and the codes are cached: all
kernels of a bank, and all tables cut from this one afterwards, share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ..columns import Columns, freeze_columns, resolve_columns
from .encoding import Sequences, encode, is_tokens


class Table:
    """Columns of numbers (float64) and of sequences (strings or lists of tokens).

    Rows are selected as from an array, ``table[rows]``; kernels read :meth:`numbers` and
    :meth:`sequences`.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        columns: Sequence[np.ndarray],
        names: Sequence[str] | None = None,
        encoded: dict[tuple[int, str], Sequences] | None = None,
    ) -> None:
        self.columns = list(columns)
        self.names = None if names is None else list(names)
        self._encoded = {} if encoded is None else encoded

    @classmethod
    def of(cls, X: Any) -> Table:
        """A table from a DataFrame, an array, a list of strings, or a list of lists of tokens."""
        if isinstance(X, Table):
            return X
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            columns = [_column(X.iloc[:, j].to_numpy()) for j in range(X.shape[1])]
            return cls(columns, [str(name) for name in X.columns])
        if isinstance(X, str):
            raise ValueError(f"X must hold one sequence per sample; got one string, {X[:40]!r}.")
        if isinstance(X, (list, tuple)) and (
            set(map(type, X)) == {str} or all(np.isscalar(v) or is_tokens(v) for v in X)
        ):
            return cls([_column(_objects(X))])
        array = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2:
            raise ValueError(
                "X must be a list of sequences, or a table of shape (n_samples, n_features); got "
                f"shape {array.shape}."
            )
        return cls([_column(array[:, j]) for j in range(array.shape[1])])

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Some rows, as a table; ``table[rows, columns]`` are numbers, as from an array."""
        if isinstance(rows, tuple):
            rows, columns = rows
            return self.numbers(freeze_columns(columns))[rows]
        encoded = {key: sequences[rows] for key, sequences in self._encoded.items()}
        return Table([column[rows] for column in self.columns], self.names, encoded)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numbers(None).astype(dtype or np.float64)

    def numbers(self, columns: Columns) -> np.ndarray:
        """Numeric columns as an array of shape (n, d); a ValueError for text."""
        index = resolve_columns(columns, self.shape[1], self.names, "reading a table")
        chosen = range(self.shape[1]) if index is None else [int(c) for c in index]  # type: ignore[union-attr, arg-type]
        for j in chosen:
            if self.columns[j].dtype == object:
                raise ValueError(
                    f"A kernel on vectors reads column {self._name(j)}, which holds "
                    f"{_shown(self.columns[j])}. Select numeric columns with columns=..., and use "
                    "sequence kernels for text."
                )
        return check_array(np.column_stack([self.columns[j] for j in chosen]), input_name="X")

    def sequences(self, columns: Columns, unit: str, who: str) -> Sequences:
        """One column of sequences, encoded once."""
        index = resolve_columns(columns, self.shape[1], self.names, who)
        if index is None and self.shape[1] == 1:
            index = (0,)
        if index is None or len(index) != 1:  # type: ignore[arg-type]
            raise ValueError(
                f"Kernel {who} reads one column of sequences, but X has {self.shape[1]} columns. "
                "Name it with columns=..."
            )
        j = int(index[0])  # type: ignore[index]
        if (j, unit) not in self._encoded:
            cells = self.columns[j].tolist()
            self._encoded[j, unit] = encode(cells, unit, f"Column {self._name(j)}")
        return self._encoded[j, unit]

    def _name(self, j: int) -> str:
        return repr(self.names[j]) if self.names is not None else str(j)


def _column(values: np.ndarray) -> np.ndarray:
    """A column as float64 where it is numeric, as objects otherwise."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    numeric = all(
        v is None or isinstance(v, (int, float, np.integer, np.floating, np.bool_)) for v in values
    )
    if numeric and values.dtype.kind == "O" and any(v is not None for v in values):
        return values.astype(np.float64)
    return _objects(values)


def _objects(values: Any) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def _shown(column: np.ndarray) -> str:
    return repr(column[0])[:60] if len(column) else "text"
