"""Join several tables of the same samples into one, whose column names show the view."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._options import check_choice


@dataclass
class OneView:
    """A table of one view: a DataFrame, or a sparse matrix with the names of its rows.

    Attributes
    ----------
    data : DataFrame or CSR matrix
        The columns of a DataFrame have the names that they get in the joined table.
    index : pandas Index or None
        The names of the samples; None where samples are known by their order only.
    """

    name: str
    data: Any
    index: Any

    def take(self, samples: Any) -> Any:
        """The rows of these samples, in this order."""
        if self.index is None or self.index.equals(samples):
            return self.data
        rows = self.index.get_indexer(samples)
        if np.any(rows < 0):
            return self.data.reindex(samples)
        return self.data[rows] if sp.issparse(self.data) else self.data.iloc[rows]


def join_views(views: Any, *, missing: str = "drop") -> tuple[Any, dict[str, Any]]:
    """Join several tables of the same samples into one, and return the columns of each view.

    Rows are matched by the index of the tables, or by their order if a table has none. Samples that
    some view lacks are dropped, with a warning that says how many, or kept with NaN; the index of
    the result shows which samples it contains (``y = y.loc[X.index]``).

    Parameters
    ----------
    views : mapping of name to table, DataFrame with two levels of columns, or MuData
        Tables are pandas DataFrames, arrays, sparse matrices, or objects with ``X``, ``obs_names``
        and ``var_names`` as AnnData has them. The outer level of a DataFrame's columns, and the
        modalities of MuData (``mod``), are the views. A single AnnData is one view, called X.

        If every index only counts the rows (0, 1, 2, ...), tables are joined by order, like arrays.

    missing : {"drop", "keep"}, default="drop"
        What to do with samples that are missing from the index of some view. ``"keep"`` fills the
        columns of that view with NaN, for estimators with ``missing="ignore"`` and similar options;
        the samples of the first view come first.

    Returns
    -------
    X : DataFrame, or CSR matrix
        Columns are called ``"view:column"``. A sparse table makes the result a sparse matrix, which
        has no names; all views must then have the same samples.
    views : dict of name to columns
        What :func:`multikernel.per_view` takes: patterns such as ``"rna:*"``, or slices of a sparse
        matrix.

    Examples
    --------
    >>> import pandas as pd
    >>> import multikernel as mk
    >>> rna = pd.DataFrame({"g1": [1.0, 2.0, 3.0], "g2": 0.5}, index=["ann", "bob", "eve"])
    >>> clinic = pd.DataFrame({"age": [61, 48, 70]}, index=["eve", "ann", "bob"])
    >>> X, views = mk.join_views({"rna": rna, "clinic": clinic})
    >>> list(X.columns), list(X["clinic:age"])
    (['rna:g1', 'rna:g2', 'clinic:age'], [48, 70, 61])
    >>> views
    {'rna': 'rna:*', 'clinic': 'clinic:*'}
    >>> bank = mk.per_view(views)
    >>> X, views = mk.join_views({"rna": rna[:2], "clinic": clinic}, missing="keep")
    >>> X.loc["eve"].tolist()
    [nan, nan, 61.0]
    """
    check_choice("join_views", "missing", missing, ("drop", "keep"))
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("join_views returns a pandas DataFrame: pip install pandas") from error
    tables = [_one_view(pd, name, table) for name, table in _by_name(pd, views).items()]
    if all(view.index is None or _counts_rows(pd, view.index) for view in tables):
        for view in tables:
            view.index = None
    samples = _common_samples(tables, keep=missing == "keep")
    parts = [view.take(samples) for view in tables]
    if any(sp.issparse(part) for part in parts):
        return _joined_sparse(tables, parts)
    rows = pd.RangeIndex(len(parts[0])) if samples is None else samples
    joined = pd.concat([part.set_axis(rows, axis=0) for part in parts], axis=1)
    return joined, {view.name: f"{escape(view.name)}:*" for view in tables}


def _by_name(pd: Any, views: Any) -> dict[str, Any]:
    """The tables of the views by name, from any of the accepted containers."""
    if isinstance(getattr(views, "mod", None), Mapping):  # a DataFrame has a method of this name
        views = views.mod
    elif _is_annotated(views):
        views = {"X": views}
    elif isinstance(views, pd.DataFrame):
        if views.columns.nlevels < 2:
            raise ValueError(
                "join_views: this DataFrame has one level of columns, so its views are not known. "
                "Pass a mapping from name to table, or columns with the view as the outer level."
            )
        views = {name: views[name] for name in dict.fromkeys(views.columns.get_level_values(0))}
    if not isinstance(views, Mapping) or not views:
        raise TypeError(
            "join_views takes a mapping with at least one entry, name to table, a DataFrame with "
            f"two levels of columns, or MuData; got {type(views).__name__}."
        )
    for name in views:
        if ":" in str(name):
            raise ValueError(
                f"join_views: the view name {name!r} contains a colon, which separates view and "
                "column in the joined table. Use another name."
            )
    return {str(name): table for name, table in views.items()}


def _is_annotated(table: Any) -> bool:
    return all(hasattr(table, name) for name in ("X", "obs_names", "var_names"))


def _counts_rows(pd: Any, index: Any) -> bool:
    return bool(index.equals(pd.RangeIndex(len(index))))


def _one_view(pd: Any, name: str, table: Any) -> OneView:
    index, columns = None, None
    if _is_annotated(table):
        index, columns, table = pd.Index(table.obs_names), list(table.var_names), table.X
    if isinstance(table, pd.DataFrame):
        index = table.index
        columns = [
            ":".join(map(str, column)) if isinstance(column, tuple) else str(column)
            for column in table.columns
        ]
        data = table.copy(deep=False)
    elif sp.issparse(table):
        data = sp.csr_matrix(table)
    else:
        array = np.asarray(table)
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise ValueError(
                f"View {name!r} must be a table of shape (n_samples, n_columns): a DataFrame, an "
                f"array of numbers, a sparse matrix or AnnData; got {type(table).__name__} of "
                f"shape {array.shape} and type {array.dtype}."
            )
        data = pd.DataFrame(array, index=index)
    if data.shape[1] == 0:
        raise ValueError(f"View {name!r} has no columns.")
    if not sp.issparse(data):
        columns = list(map(str, range(data.shape[1]))) if columns is None else columns
        twice = pd.Index(columns)[pd.Index(columns).duplicated()]
        if len(twice):
            raise ValueError(
                f"View {name!r} has two columns named {twice[0]!r}. Rename one of them."
            )
        if "*" in columns:
            raise ValueError(
                f"View {name!r} has a column named '*', which would be read as a pattern."
            )
        data.columns = [f"{name}:{column}" for column in columns]
    if index is not None and not index.is_unique:
        raise ValueError(
            f"View {name!r} has the sample {index[index.duplicated()][0]!r} more than once in its "
            "index. Keep one row per sample."
        )
    return OneView(name, data, index)


def _common_samples(tables: list[OneView], *, keep: bool) -> Any:
    """Samples of all views (of any with `keep`) in the first view's order; None: join by order."""
    by_order = [view for view in tables if view.index is None]
    named = [view for view in tables if view.index is not None]
    if by_order:
        sizes = {view.name: view.data.shape[0] for view in tables}
        if len(set(sizes.values())) > 1:
            raise ValueError(
                f"View {by_order[0].name!r} has no index of samples, so views are joined by the "
                f"order of their rows; but their numbers of rows differ: {sizes}. Give every table "
                "an index of sample names."
            )
        for view in named[1:]:
            if not view.index.equals(named[0].index):
                raise ValueError(
                    f"View {by_order[0].name!r} has no index of samples, so views are joined by "
                    f"the order of their rows; but the views {named[0].name!r} and {view.name!r} "
                    "have their samples in different orders. Give every table an index of sample "
                    "names, or put the rows into the same order."
                )
        if named:
            warnings.warn(
                f"View {by_order[0].name!r} has no index of samples, so its rows are taken to be "
                f"in the order of those of view {named[0].name!r}. Give every table an index of "
                "sample names to have them matched.",
                UserWarning,
                stacklevel=3,
            )
        return named[0].index if named else None
    samples = named[0].index
    if keep and not any(sp.issparse(view.data) for view in named):
        for view in named[1:]:
            samples = samples.append(view.index[~view.index.isin(samples)])
        return samples
    for view in named[1:]:
        samples = samples[samples.isin(view.index)]
    if len(samples) == 0:
        firsts = ", ".join(f"{view.index[0]!r} of {view.name!r}" for view in named)
        raise ValueError(
            f"The views have no sample in common. The first samples are {firsts}; check the sample "
            "names."
        )
    dropped = {view.name: len(view.index) - len(samples) for view in named}
    if any(dropped.values()):
        if any(sp.issparse(view.data) for view in named):
            raise ValueError(
                f"The views have different samples ({len(samples)} in common; not in all views: "
                f"{dropped}), and a sparse result has no index to tell which are left. Reduce the "
                "tables to the common samples first, or make the sparse tables dense."
            )
        lost = ", ".join(f"{count} of {name!r}" for name, count in dropped.items() if count)
        warnings.warn(
            f"join_views keeps the {len(samples)} samples that are in all views and leaves out "
            f"{lost}.",
            UserWarning,
            stacklevel=3,
        )
    return samples


def _joined_sparse(tables: list[OneView], parts: list[Any]) -> tuple[Any, dict[str, Any]]:
    ends = np.cumsum([part.shape[1] for part in parts])
    for view, part in zip(tables, parts, strict=True):
        if not sp.issparse(part) and any(kind.kind not in "fiub" for kind in part.dtypes):
            raise ValueError(
                f"View {view.name!r} contains text, which a sparse matrix cannot hold."
            )
    joined = sp.hstack(
        [part if sp.issparse(part) else sp.csr_matrix(part.to_numpy(float)) for part in parts],
        format="csr",
    )
    return joined, {
        view.name: slice(int(end) - part.shape[1], int(end))
        for view, part, end in zip(tables, parts, ends, strict=True)
    }
