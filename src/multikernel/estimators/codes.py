"""Encoding of data frames with numbers and categories as numeric arrays for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..kernels.bank import KernelBank
from ..kernels.mixed_bank import mixed_columns_bank
from ..tables.complaints import MAX_LEVELS
from ..tables.frame import as_column, is_text, present

#: Codes of levels that did not occur in the training sample, and of missing categories.
UNSEEN = -1.0
MISSING = -2.0


class TableCodes(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a data frame as numbers and category codes, for kernels on named columns.

    Numeric columns (including nullable and boolean ones) keep their values. Text columns, and all
    columns of a categorical type, become codes 0, 1, 2, ..., which are compared only for equality,
    by :class:`Overlap`. An ordered categorical column of pandas becomes the position of each entry
    in the order, an ordinary number. At prediction, all levels that did not occur in the training
    sample get the code -1. A missing category gets the code -2, a level of its own; missing numbers
    are an error.

    Estimators read data frames with categories in the same way, without this class, unless they
    have sequence kernels; the encoding is in their attribute ``codes_``.

    A column with a single level has no effect: kernels see no difference in it between training
    samples.

    Parameters
    ----------
    categories : sequence of str, default=()
        Numeric columns to treat as categories, such as postcodes.

    Attributes
    ----------
    levels_ : dict of str to tuple of str
        The levels of each category column, in the order of their codes.
    numeric_columns_ : list of int
        Positions of the numeric columns, including ordered categories.
    categorical_columns_ : list of int
        Positions of the category columns.
    feature_names_in_ : array of str
    n_features_in_ : int

    Examples
    --------
    >>> import multikernel as mk
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 45, 27, 52], "job": ["nurse", "clerk", "clerk", None]})
    >>> codes = mk.TableCodes().fit(frame)
    >>> codes.transform(frame)
    array([[31.,  1.],
           [45.,  0.],
           [27.,  0.],
           [52., -2.]])
    >>> codes.transform(pd.DataFrame({"job": ["pilot"], "age": [40]}))
    array([[40., -1.]])
    """

    levels_: dict[str, tuple[str, ...]]
    _orders: dict[str, tuple[str, ...]]

    def __init__(self, categories: Sequence[str] = ()) -> None:
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> TableCodes:
        """Learn which columns are categories, and their levels.

        Parameters
        ----------
        X : DataFrame of pandas or polars
        y : ignored

        Returns
        -------
        self
        """
        found = self._learn(X)
        refuse_gaps(self._encode(found)[:, self.numeric_columns_], self._numeric_names())
        return self

    def _learn(self, X: Any) -> list[FrameColumn]:
        """Learn columns and levels; numbers may be missing."""
        found = read_columns(X)
        if not found or len(found[0].cells) == 0:
            raise ValueError("TableCodes: X must have at least one column and one row.")
        if isinstance(self.categories, str):
            raise TypeError(
                "TableCodes: categories must be a list of names; got the string "
                f"{self.categories!r}."
            )
        names = [column.name for column in found]
        unknown = [str(name) for name in self.categories if str(name) not in names]
        if unknown:
            raise ValueError(f"TableCodes: categories names columns that are not in X: {unknown}.")
        declared = {str(name) for name in self.categories}
        self.levels_, self._orders = {}, {}
        for column in found:
            if column.name in declared or column.declared:
                self.levels_[column.name] = column.levels()
            elif column.order is not None:
                self._orders[column.name] = column.order
            elif is_text(as_column(column.cells)):
                self.levels_[column.name] = self._levels_of_texts(column)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.categorical_columns_ = [j for j, name in enumerate(names) if name in self.levels_]
        self.numeric_columns_ = [j for j, name in enumerate(names) if name not in self.levels_]
        return found

    def transform(self, X: Any) -> np.ndarray:
        """Encode a data frame, whose columns are matched by name, as numbers and codes.

        Parameters
        ----------
        X : DataFrame of pandas or polars
            With the columns of the training sample, in any order.

        Returns
        -------
        array of shape (n_samples, n_features), float64
        """
        out = self._encode(self._find(X))
        refuse_gaps(out[:, self.numeric_columns_], self._numeric_names())
        return out

    def inverse_transform(self, X: np.ndarray) -> Any:
        """Turn codes back into a pandas data frame.

        Categories become strings of a categorical type. Levels that did not occur in the training
        sample are all called ``"unseen"``; missing values are NaN, also in numeric columns.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            As `transform` returns it.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        check_is_fitted(self)
        columns: dict[str, Any] = {}
        for name, values in zip(self.feature_names_in_.tolist(), np.asarray(X).T, strict=True):
            order = self.levels_.get(name) or self._orders.get(name)
            if name not in self.levels_ and name not in self._orders:
                columns[name] = values
                continue
            levels = list(order or ())
            unseen = "unseen"
            while unseen in levels:
                unseen += "_"
            place = np.where(np.isnan(values), MISSING, values).astype(int)
            place[place == int(UNSEEN)] = len(levels)
            columns[name] = pd.Categorical.from_codes(
                np.where(place < 0, -1, place),
                [*levels, unseen] if name in self.levels_ else levels,
                ordered=name in self._orders,
            )
        return pd.DataFrame(columns)

    def _find(self, X: Any) -> list[FrameColumn]:
        """The columns of the training sample in another frame."""
        check_is_fitted(self)
        by_name = {column.name: column for column in read_columns(X)}
        expected = self.feature_names_in_.tolist()
        absent = [name for name in expected if name not in by_name]
        strange = [name for name in by_name if name not in set(expected)]
        if absent or strange:
            raise ValueError(
                "TableCodes: X must have the columns of the training sample."
                + (f" It lacks {_listed(absent)}." if absent else "")
                + (f" It also has {_listed(strange)}; leave them out." if strange else "")
            )
        return [by_name[name] for name in expected]

    def _numeric_names(self) -> list[str]:
        return [str(self.feature_names_in_[j]) for j in self.numeric_columns_]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded columns, the same as those of X."""
        check_is_fitted(self)
        return self.feature_names_in_

    def bank(self) -> KernelBank:
        """Kernels for the columns: on numbers, on categories, and on both.

        Widths and scales are learned from the training sample when a model is fitted.
        """
        check_is_fitted(self)
        return mixed_columns_bank(self.numeric_columns_, self.categorical_columns_)

    def _encode(self, columns: list[FrameColumn]) -> np.ndarray:
        """Numbers and codes; NaN where a number is missing."""
        out = np.empty((len(columns[0].cells), len(columns)))
        for j, column in enumerate(columns):
            if column.name in self.levels_:
                place = {level: float(c) for c, level in enumerate(self.levels_[column.name])}
                words = column.words()
                out[:, j] = [MISSING if w is None else place.get(w, UNSEEN) for w in words]
            elif column.name in self._orders:
                out[:, j] = _places(column, self._orders[column.name])
            else:
                out[:, j] = _numbers(column)
        return out

    def _levels_of_texts(self, column: FrameColumn) -> tuple[str, ...]:
        levels, rows = column.levels(), len(column.cells)
        if not levels:
            raise ValueError(f"TableCodes: column {column.name!r} is empty. Leave it out.")
        if len(levels) > MAX_LEVELS or len(levels) > max(rows / 2, 2):
            raise ValueError(
                f"TableCodes: column {column.name!r} holds {len(levels)} distinct strings in "
                f"{rows} rows, such as {levels[0][:40]!r}: too many for a category. Leave it out, "
                "use a sequence kernel on it, or, if it really is a category, convert the column "
                "to the type 'category'."
            )
        return levels


@dataclass(frozen=True)
class FrameColumn:
    """One column of a data frame.

    Attributes
    ----------
    name : str
    cells : array of objects, shape (n,)
    declared : bool
        Whether its type is an unordered category.
    order : tuple of str or None
        The levels of an ordered category.
    """

    name: str
    cells: np.ndarray
    declared: bool
    order: tuple[str, ...] | None

    def words(self) -> list[str | None]:
        """The entries as strings; None for missing ones."""
        return [_word(cell) for cell in self.cells]

    def levels(self) -> tuple[str, ...]:
        return tuple(sorted({word for word in self.words() if word is not None}))


def refuse_gaps(numbers: np.ndarray, names: list[str]) -> None:
    """Raise an error that names the numeric columns with missing values."""
    counts = np.isnan(numbers).sum(axis=0)
    gaps = [f"{name!r} {count}" for name, count in zip(names, counts, strict=True) if count]
    if gaps:
        raise ValueError(
            f"TableCodes: missing values in columns of numbers: {', '.join(gaps[:20])}. Fill them, "
            "for example with sklearn.impute.SimpleImputer, or leave the columns out. (In "
            "category columns, missing values form a level of their own.)"
        )


def is_frame(X: Any) -> bool:
    """Whether X has named columns with types, as data frames of pandas and polars do."""
    return all(hasattr(X, name) for name in ("columns", "dtypes", "__getitem__"))


def is_category(kind: Any) -> bool:
    """Whether a column type of pandas or polars is categorical."""
    text = str(kind)  # polars types are recognised by name
    return text == "category" or text.startswith(("Categorical", "Enum"))


def read_columns(X: Any) -> list[FrameColumn]:
    """The columns of a data frame of pandas or polars, or of an object with the same methods."""
    if not is_frame(X):
        raise TypeError(
            "TableCodes needs a data frame, whose columns have names and types; got "
            f"{type(X).__name__}. Numeric arrays can go straight to an estimator."
        )
    names = [str(name) for name in X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"TableCodes: X has more than one column {_listed(twice)}.")
    out = []
    for j, (key, kind) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        series = X.iloc[:, j] if hasattr(X, "iloc") else X[key]
        text = str(kind)
        if getattr(kind, "kind", "") in tuple("mMc") or text.startswith(
            ("Date", "Time", "Duration", "List", "Struct", "Array")
        ):
            raise ValueError(
                f"TableCodes: column {names[j]!r} is of type {text}, which is neither a number nor "
                "a category. Convert it to numbers, or leave it out."
            )
        ordered = bool(getattr(kind, "ordered", False))
        declared = is_category(kind)
        order = None
        if declared and ordered:
            order = tuple(str(_word(level)) for level in kind.categories)
        cells = _cells(names[j], series.to_list())
        out.append(FrameColumn(names[j], cells, declared and not ordered, order))
    return out


def _cells(name: str, values: list[Any]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise ValueError(
                f"TableCodes: column {name!r} holds {value!r}; a cell must be a number or a string."
            )
        out[i] = value
    return out


def _word(cell: Any) -> str | None:
    """A level as a string, None if missing; 3 and 3.0 are the same level."""
    cell = present(cell)
    if cell is None:
        return None
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def _numbers(column: FrameColumn) -> np.ndarray:
    values = as_column(column.cells)
    if is_text(values):
        if all(cell is None for cell in values):
            return np.full(len(values), np.nan)
        strange = next(cell for cell in values if cell is not None)
        raise ValueError(
            f"TableCodes: column {column.name!r} must hold numbers, as in the training sample; it "
            f"holds {strange!r}."
        )
    if np.isinf(values).any():
        raise ValueError(f"TableCodes: column {column.name!r} holds infinite values.")
    return values


def _places(column: FrameColumn, order: tuple[str, ...]) -> np.ndarray:
    """Position of each entry in the order learned in fit; NaN for missing entries."""
    place = {level: float(c) for c, level in enumerate(order)}
    words = column.words()
    strange = sorted({word for word in words if word is not None and word not in place})
    if strange:
        raise ValueError(
            f"TableCodes: the ordered column {column.name!r} holds {_listed(strange)}, which the "
            "order learned from the training sample does not include: "
            f"{', '.join(map(repr, order))}."
        )
    return np.array([np.nan if word is None else place[word] for word in words])


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more
