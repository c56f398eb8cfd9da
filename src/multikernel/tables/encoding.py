"""From named columns to the numbers that kernels read: one-hot categories, filled gaps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .complaints import MAX_LEVELS, UnusableData, are_number_codes, examine, order_of
from .frame import DataError, Frame, as_texts, is_text, missing
from .numbers import as_days, day_order, is_plain_number, looks_like_dates

WHEN_FITTING = "Fill them with --impute median, leave columns out with --drop, or repair the data."
WHEN_FITTED = (
    "The model was fitted to data without missing values and has nothing to fill them with: "
    "repair the data, or fit again with --impute median."
)
MODEL_NEEDS = "The model needs the column {name!r}, which the data lack."


@dataclass(frozen=True)
class Column:
    """One column of the data and how it is read.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "category", "text"}
        A date is the number of days since 1970.
    levels : tuple of str
        Levels of a category; each becomes a column of zeros and ones. Of dates such as 28.2.2019,
        what comes first: ("day",) or ("month",).
    fill : float, str or None
        Replaces missing entries; None refuses them.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def width(self) -> int:
        return len(self.levels) if self.kind == "category" else 1

    @property
    def as_written(self) -> bool:
        """Whether to read the column as texts even if they look like numbers, such as "007"."""
        return self.kind in ("date", "text") or not all(map(is_plain_number, self.levels))


@dataclass(frozen=True)
class TableEncoder:
    """Encodes a :class:`Frame` as X, new rows in the same way as training rows.

    Columns of numbers come first, then categories one-hot, then texts. X is an array, a CSR matrix
    for LIBSVM files, or a table where there are texts.

    Attributes
    ----------
    columns : tuple of Column
    sparse_width : int or None
        Number of features of a LIBSVM file; None for other data.
    """

    columns: tuple[Column, ...]
    sparse_width: int | None = None
    first_index: int = 1

    @classmethod
    def fit(
        cls,
        frame: Frame,
        *,
        categorical: Iterable[str] = (),
        texts: Iterable[str] = (),
        impute: str | None = None,
        dates: bool | Mapping[str, str] = False,
    ) -> TableEncoder:
        """Learn how to read the columns.

        Parameters
        ----------
        frame : Frame
            The columns without the target.
        categorical : iterable of str
            Numeric columns to treat as categories.
        texts : iterable of str
            Text columns for kernels on sequences.
        impute : {"median"} or None
            Fill missing numbers with the median, missing categories with the most frequent one;
            None refuses them.
        dates : bool or mapping
            Read columns of dates as days since 1970; with False they are refused. A mapping of
            names to "day" or "month" says what comes first, if these are some of the rows of a
            table (:func:`day_orders`); else it is found in these rows.
        """
        if frame.sparse is not None:
            return cls((), int(frame.sparse.shape[1]), frame.first_index)
        if not frame.columns:
            raise DataError("No columns are left to learn from besides the target.")
        if impute not in (None, "median"):
            raise DataError(f"impute must be 'median' or nothing; got {impute!r}.")
        for name in (*categorical, *texts):
            frame.require(name)
        kinds = {"categorical": set(categorical), "texts": set(texts)}
        wrong = examine(frame, **kinds, impute=impute, dates=dates)
        if wrong:
            raise UnusableData(wrong)
        found = [
            _describe(
                name,
                values,
                name in kinds["categorical"],
                name in kinds["texts"],
                impute,
                order_of(dates, name),
            )
            for name, values in frame.columns.items()
        ]
        order = {"number": 0, "date": 0, "category": 1, "text": 2}
        return cls(tuple(sorted(found, key=lambda column: order[column.kind])))

    # -- what X looks like ------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        if self.sparse_width is not None:
            return [f"x{self.first_index + j}" for j in range(self.sparse_width)]
        out: list[str] = []
        for column in self.columns:
            if column.kind == "category":
                out += [f"{column.name}={level}" for level in column.levels]
            else:
                out.append(column.name)
        return out

    @property
    def as_written(self) -> frozenset[str]:
        """The columns to read as texts from files that hold nothing but text."""
        return frozenset(column.name for column in self.columns if column.as_written)

    @property
    def has_texts(self) -> bool:
        return any(column.kind == "text" for column in self.columns)

    def places(self, names: Iterable[str]) -> tuple[int, ...]:
        """Positions in X of some columns of the data."""
        if self.sparse_width is not None:
            index = {name: j for j, name in enumerate(self.names)}
            return tuple(index[name] for name in names)
        starts = np.concatenate([[0], np.cumsum([column.width for column in self.columns])])
        where = {c.name: (int(starts[i]), c.width) for i, c in enumerate(self.columns)}
        return tuple(j for name in names for j in range(where[name][0], sum(where[name])))

    # -- making it --------------------------------------------------------------------------------

    def __call__(self, frame: Frame, *, allow_missing: bool = False) -> Any:
        """X of these rows; ``allow_missing`` leaves missing numbers without a filling as NaN."""
        if self.sparse_width is not None:
            return self._widen(frame)
        for column in self.columns:
            frame.require(column.name, message=MODEL_NEEDS)
        if not allow_missing:
            refuse_missing(frame, [c.name for c in self.columns if c.fill is None], WHEN_FITTED)
        parts = [self._one(column, frame.columns[column.name]) for column in self.columns]
        if not self.has_texts:
            return np.column_stack(parts)
        from ..kernels.sequences.table import Table

        flat = [
            part if part.dtype == object else part[:, j]
            for part in parts
            for j in range(1 if part.dtype == object else part.shape[1])
        ]
        return Table(flat, self.names)

    def _one(self, column: Column, values: np.ndarray) -> np.ndarray:
        if column.kind == "date":
            try:
                values = as_days(values, *column.levels)
            except (ValueError, TypeError) as error:
                raise DataError(f"Column {column.name!r} must hold dates: {error}") from None
        if column.kind in ("number", "date"):
            if is_text(values):
                strange = next((v for v in values if v is not None), None)
                raise DataError(f"Column {column.name!r} must hold numbers; it holds {strange!r}.")
            if column.fill is not None:
                values = np.where(np.isnan(values), column.fill, values)
            if np.isinf(values).any():
                raise DataError(f"Column {column.name!r} holds infinite values.")
            return np.asarray(values)[:, None]
        words = as_words(values)
        if column.fill is not None:
            words = as_texts([column.fill if word is None else word for word in words])
        if column.kind == "text":
            return words
        index = {level: j for j, level in enumerate(column.levels)}
        codes = np.array([index.get(word, -1) for word in words])
        if np.any(codes < 0):
            new = sorted({word for word, code in zip(words, codes, strict=True) if code < 0})
            warnings.warn(
                f"Column {column.name!r}: {int(np.sum(codes < 0))} rows hold categories that did "
                f"not occur in the training data ({', '.join(map(repr, new[:3]))}); they are "
                "treated as unknown.",
                UserWarning,
                stacklevel=3,
            )
        return (codes[:, None] == np.arange(len(column.levels))).astype(np.float64)

    def _widen(self, frame: Frame) -> Any:
        if frame.sparse is None:
            raise DataError("The model was fitted on a LIBSVM file and reads only such files.")
        import scipy.sparse as sp

        X, width = frame.sparse, self.sparse_width or 0
        if frame.first_index < self.first_index:
            raise DataError(
                "The features are numbered from 0 here, but from 1 in the training data."
            )
        if frame.first_index > self.first_index:  # feature 0 does not occur in these rows
            X = sp.hstack([sp.csr_matrix((X.shape[0], 1)), X], format="csr")
        if X.shape[1] > width:
            if X[:, width:].nnz:
                raise DataError(
                    f"The file has features beyond number {width - 1 + self.first_index}, the last "
                    "one in the training data."
                )
            return X[:, :width]
        missing_columns = sp.csr_matrix((X.shape[0], width - X.shape[1]))
        return sp.hstack([X, missing_columns], format="csr") if X.shape[1] < width else X


def refuse_missing(frame: Frame, names: Iterable[str], advice: str) -> None:
    """Raise a DataError with the number of missing entries per column, if there are any."""
    counts = {name: int(missing(frame.columns[name]).sum()) for name in names}
    counts = {name: count for name, count in counts.items() if count}
    if counts:
        listed = ", ".join(f"{name!r} {count}" for name, count in list(counts.items())[:20])
        more = f" and {len(counts) - 20} more columns" if len(counts) > 20 else ""
        raise DataError(
            f"Missing values in {len(counts)} of {len(list(frame.columns))} columns "
            f"({len(frame)} rows): {listed}{more}. {advice}"
        )


def _describe(
    name: str,
    values: np.ndarray,
    categorical: bool,
    text: bool,
    impute: str | None,
    order: str,
) -> Column:
    """How to read a column that `examine` found no problem with."""
    absent = missing(values)
    if text:
        return Column(name, "text", (), "" if impute else None)
    dated = is_text(values) and not categorical and looks_like_dates(values)
    if dated or (not is_text(values) and not categorical):
        order = (order or day_order(values)) if dated else ""
        numbers = as_days(values, order) if dated else values
        fill = float(np.median(numbers[~absent])) if impute else None
        return Column(name, "date" if dated else "number", (order,) if order else (), fill)
    words = [word for word in as_words(values) if word is not None]
    levels, counts = np.unique(words, return_counts=True)
    found = dict(zip(map(str, levels.tolist()), counts.tolist(), strict=True))
    text = is_text(values) and not are_number_codes(found, categorical)
    return describe_category(name, found, len(values), text, impute)


def day_orders(frame: Frame) -> dict[str, str]:
    """What comes first in the dates of columns such as 28.2.2019, "day" or "month", by column."""
    orders = {}
    for name, values in frame.columns.items():
        if is_text(values) and looks_like_dates(values):
            with suppress(ValueError):  # not clear: an error when the column is read
                orders[name] = day_order(values)
    return {name: order for name, order in orders.items() if order}


def describe_category(
    name: str, levels: Mapping[str, int], n_rows: int, text: bool, impute: str | None
) -> Column:
    """A category with these sorted levels and their counts; an error if there are too many."""
    if len(levels) > MAX_LEVELS or (text and len(levels) > max(n_rows / 2, 2)):
        many = f"more than {MAX_LEVELS}" if len(levels) > MAX_LEVELS else str(len(levels))
        raise DataError(
            f"Column {name!r} holds {many} distinct text values in {n_rows} rows, such as "
            f"{next(iter(levels))[:40]!r}: too many for a category. Leave it out with --drop "
            f"{name}, or use a sequence kernel on it in a views file."
        )
    fill = max(levels, key=lambda level: levels[level]) if impute else None
    return Column(name, "category", tuple(levels), fill)


def as_words(values: np.ndarray) -> np.ndarray:
    """Categories as texts; whole numbers without a decimal point."""
    if is_text(values):
        return values
    return as_texts(
        [None if v != v else int(v) if float(v).is_integer() else v for v in values.tolist()]
    )
