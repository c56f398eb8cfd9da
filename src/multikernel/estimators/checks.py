"""Checks of input before scikit-learn's validation, with better messages."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_consistent_length,
    validate_data,
)

from ..kernels.sequences.table import Table

ENCODE = (
    "Encode text and categories first, for example with TableCodes or "
    "sklearn.preprocessing.OneHotEncoder, or use sequence kernels such as Spectrum(3, "
    "columns=...) on text."
)


def refuse_matrices(X: Any, precomputed: bool, fitting: bool = False) -> None:
    """Refuse kernel matrices where a table was expected, or with the kernel axis first."""
    if precomputed and fitting and isinstance(X, np.ndarray) and X.ndim == 3:
        first, n, last = X.shape
        if n == last != first:
            raise ValueError(
                "With kernels='precomputed', fit takes X of shape (n_samples, n_samples, "
                f"n_kernels), kernel axis last; got shape {X.shape}. If the first axis counts the "
                "kernels, use np.moveaxis(X, 0, -1)."
            )
    listed = isinstance(X, (list, tuple)) and len(X) > 0 and all(np.ndim(K) == 2 for K in X)
    if listed and precomputed:
        raise ValueError(
            "With kernels='precomputed', fit takes X of shape (n_samples, n_samples, n_kernels), "
            f"kernel axis last; got a list of {len(X)} matrices. Use np.stack(matrices, axis=-1), "
            "or mk.precomputed(matrices) with X = mk.sample_ids(n)."
        )
    if not precomputed and (listed or (isinstance(X, np.ndarray) and X.ndim == 3)):
        raise ValueError(
            "Found array with dim 3, expected X of shape (n_samples, n_features). For kernel "
            "matrices use kernels=mk.precomputed(matrices) with X = mk.sample_ids(n), or "
            "kernels='precomputed'."
        )


def refuse_text(X: Any) -> None:
    """Refuse X unless it is one numeric table; the error names columns that are not numeric."""
    views = X if isinstance(X, dict) else getattr(X, "mod", None)
    if isinstance(views, Mapping):
        kind = "a dict with keys" if views is X else f"{type(X).__name__} with the views"
        raise TypeError(
            f"X must be one table with a row per sample; got {kind} {[*views]!r}. If they are "
            "views: X, columns = mk.join_views(views), and kernels=mk.per_view(columns)."
        )
    if hasattr(X, "obs_names") and hasattr(X, "X"):
        raise TypeError(
            f"X must be one table with a row per sample; got {type(X).__name__}. Use its matrix, "
            "X.X, or its table, X.to_df()."
        )
    if isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(row, str) for row in X):
        raise ValueError(
            f"X must be numeric, but its samples are strings, such as {str(X[0])!r}. {ENCODE}"
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "USO" and X.ndim == 2:
        for j in range(X.shape[1]):
            if any(isinstance(v, str) for v in X[:, j]) and not _all_numbers(X[:, j]):
                text = next((v for v in X[:, j].tolist() if not _all_numbers([v])), X[0, j])
                text = str(text) if isinstance(text, str) else text  # without np.str_(...)
                raise ValueError(
                    f"X must be numeric, but column {j} is not: it holds {text!r}. {ENCODE}"
                )
    text = text_columns(X)
    if text:
        named = ", ".join(map(repr, text[:5])) + (", ..." if len(text) > 5 else "")
        raise ValueError(
            f"X must be numeric, but column{'s' if len(text) > 1 else ''} {named} "
            f"{'are' if len(text) > 1 else 'is'} not. {ENCODE}"
        )


def text_columns(X: Any) -> list[str]:
    """Names of the non-numeric columns of a data frame; empty if X is not a data frame."""
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return []
    return [
        str(c)
        for c, kind in zip(X.columns, X.dtypes, strict=True)
        if getattr(kind, "kind", "O") not in "fiub"
        and not getattr(kind, "_is_numeric", False)
        and (getattr(kind, "kind", "O") in "mM" or not _all_numbers(X[c]))
    ]


def check_table(estimator: Any, X: Any, y: Any, reset: bool, **y_options: Any) -> Any:
    """Validated X as a table with sequence columns, and y if it is given."""
    table = Table.of(X)
    name = type(estimator).__name__
    if len(table) == 0:
        raise ValueError(f"{name}: X has 0 samples; at least 1 is needed.")
    alone = isinstance(y, str) and y == "no_validation"
    if not alone:
        y = validate_data(estimator, y=y, **y_options)
        check_consistent_length(table, y)
        if len(table) < 2:
            raise ValueError(f"{name} needs at least 2 samples; got n_samples = {len(table)}.")
    if reset or not is_chunk_of_rows(estimator, X):
        _check_feature_names(estimator, X, reset=reset)
    _check_n_features(estimator, table, reset=reset)
    return table if alone else (table, y)


def is_chunk_of_rows(estimator: Any, X: Any) -> bool:
    """Whether X may be a chunk of the rows of a fit: it carries no names, though the rows do."""
    return (
        getattr(estimator, "_fitted_to_rows", False)
        and isinstance(X, (np.ndarray, Table))
        and len(X.shape) == 2
        and X.shape[1] == estimator.n_features_in_
    )


def check_dtype(dtype: Any) -> np.dtype | None:
    """The dtype for float32 or float64, in any spelling; None for None."""
    if dtype is None:
        return None
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be 'float32', 'float64' or None; got {dtype!r}.")
    return found


def _all_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


#: Limit on the size of numbers, so that sums of their squares do not overflow in float64.
LARGEST_NUMBER = 1e150


def refuse_huge(name: str, values: Any) -> None:
    """Raise ValueError if squares of the numbers may overflow; NaN is checked elsewhere."""
    numbers = values.data if sp.issparse(values) else np.asarray(values)
    if numbers.dtype.kind != "f" or not numbers.size:
        return
    largest = float(np.fmax.reduce(np.abs(numbers), axis=None))
    if LARGEST_NUMBER < largest < np.inf:
        raise ValueError(
            f"{name} holds numbers up to {largest:.3g}, whose squares overflow (the limit is "
            f"{LARGEST_NUMBER:g}). Use other units, or replace codes that mark missing values."
        )


def refuse_extreme(owner: str, parameter: str, value: Any) -> None:
    """Raise ValueError for a positive number whose square may overflow or underflow."""
    if not isinstance(value, Real) or float(value) == 0:
        return
    if not 1.0 / LARGEST_NUMBER <= float(value) <= LARGEST_NUMBER:
        raise ValueError(
            f"{owner}: {parameter} must be a number from {1.0 / LARGEST_NUMBER:g} to "
            f"{LARGEST_NUMBER:g}, because otherwise its square overflows or underflows; got "
            f"{value!r}."
        )


def as_numbers(y: Any) -> np.ndarray:
    """Regression targets of dtype object, as floats."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must be numeric for regression; got objects that are not numbers ({error})."
        ) from None
    if not np.isfinite(numbers).all():
        raise ValueError("y holds missing or infinite values. Leave these samples out.")
    return numbers
