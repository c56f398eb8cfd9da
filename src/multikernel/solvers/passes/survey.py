"""The first pass: the number of rows, the classes, and a small random sample of the rows.

The sample determines what must be known before features can be computed: widths and scales of
kernels, landmarks, and the weights of rules that need samples rather than sums. It consists of the
rows with the largest random keys (Efraimidis & Spirakis 2006), so rows are chosen in proportion to
their weights. The keys depend on the chunks alone, not on which worker reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._checksum import checksum
from ...kernels.sequences.table import Table


@dataclass(frozen=True)
class RowSurvey:
    """The result of a survey of some rows.

    Attributes
    ----------
    n : int
        Rows with a positive weight.
    classes : array or None
        The distinct targets in order; None for regression.
    class_weights : array or None
        Their total weights.
    lowest, highest : arrays of shape (t,) or None
        The range of each output; None for classification.
    X, y, keys, omega : the rows of the sample, their targets, random keys and weights
    size : int
        Largest number of rows in the sample.
    """

    n: int
    classes: np.ndarray | None
    class_weights: np.ndarray | None
    lowest: np.ndarray | None
    highest: np.ndarray | None
    X: Any
    y: np.ndarray
    keys: np.ndarray
    omega: np.ndarray
    size: int

    def some(self, count: int) -> np.ndarray:
        """Positions of at most ``count`` rows: those with the largest keys, a random subsample.

        The first rows may resemble each other, as in files sorted by time or by a column.
        """
        return _largest(self.keys, count)

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Weights with which these rows represent all rows, with the same mean; None if all one.

        A key is above a threshold T < 0 with probability ``1 - exp(omega T)``, by which the weight
        of the row is divided (Horvitz & Thompson 1952): rows that are certain to be chosen keep
        their weight, while others were already chosen in proportion to it.
        """
        if np.all(self.omega == 1.0):
            return None
        omega = self.omega[rows]
        others = np.delete(self.keys, rows)
        if len(others) or self.n > len(self.keys):
            threshold = float(others.max() if len(others) else self.keys[rows].min())
            omega = omega / -np.expm1(omega * threshold) * (len(rows) / self.n)
        return np.asarray(omega)

    def __add__(self, other: RowSurvey) -> RowSurvey:
        keys = np.concatenate([self.keys, other.keys])
        kept = _largest(keys, self.size)
        first = kept[kept < len(self.keys)]
        second = kept[kept >= len(self.keys)] - len(self.keys)
        classes, weights = self.classes, self.class_weights
        lowest, highest = self.lowest, self.highest
        if classes is not None:
            assert other.classes is not None and other.class_weights is not None
            assert weights is not None
            both = np.concatenate([classes, other.classes])
            classes, where = np.unique(both, return_inverse=True)
            weights = np.bincount(where, np.concatenate([weights, other.class_weights]))
        else:
            assert lowest is not None and highest is not None
            assert other.lowest is not None and other.highest is not None
            lowest, highest = np.minimum(lowest, other.lowest), np.maximum(highest, other.highest)
        return RowSurvey(
            self.n + other.n,
            classes,
            weights,
            lowest,
            highest,
            stack_rows(self.X[first], other.X[second]),
            np.concatenate([self.y[first], other.y[second]]),
            keys[kept],
            np.concatenate([self.omega, other.omega])[kept],
            self.size,
        )


@dataclass(frozen=True)
class SurveyOfChunk:
    """Maps a chunk of rows to its survey.

    Attributes
    ----------
    size : int
        Largest number of rows in the sample.
    classification : bool
    """

    size: int
    classification: bool

    def __call__(self, chunk: Any) -> RowSurvey:
        X, y, sample_weight = chunk
        if y is None:
            raise ValueError(
                "The rows have no target. Name the target column when opening them: "
                "open_rows(source, target=...)."
            )
        omega = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        random = np.random.default_rng([checksum(X), len(y)])
        with np.errstate(divide="ignore"):
            # log(u) / omega, the logarithm of u^(1 / omega); rows of weight zero are not chosen.
            keys = np.where(omega > 0, np.log(random.random(len(y))) / omega, -np.inf)
        kept = _largest(keys, self.size)
        classes = weights = lowest = highest = None
        counted = omega > 0
        if self.classification:
            check_labels(y)
            classes, where = np.unique(y[counted], return_inverse=True)
            weights = np.bincount(where, omega[counted], minlength=len(classes))
        else:
            Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)[counted]
            lowest = Y.min(axis=0, initial=np.inf)
            highest = Y.max(axis=0, initial=-np.inf)
        n = int(np.count_nonzero(counted))
        sample = (X[kept], y[kept], keys[kept], omega[kept])
        return RowSurvey(n, classes, weights, lowest, highest, *sample, self.size)


def check_labels(y: np.ndarray) -> None:
    """Raise ValueError for targets that are not labels: every number would become a class."""
    if y.ndim > 1 and y.shape[1] > 1:
        raise ValueError(
            f"A classifier needs one label per row; these rows have {y.shape[1]} target columns. "
            "Fit one classifier per column, or use MultiKernelRegressor for numbers."
        )
    if y.ndim > 1:
        raise ValueError(
            f"A classifier needs one label per row, in an array of shape (n,); the labels of these "
            f"rows have shape {y.shape}. Open the rows with y.ravel()."
        )
    numbers = _numbers_of(y) if y.dtype == object else y
    if numbers is not None and numbers.dtype.kind == "f" and np.any(numbers != np.floor(numbers)):
        value = float(numbers[np.argmax(numbers != np.floor(numbers))])
        raise ValueError(
            f"Unknown label type: the target is continuous ({value:g}), but a classifier needs "
            "classes. Use MultiKernelRegressor, or turn the numbers into classes first."
        )


def _numbers_of(y: np.ndarray) -> np.ndarray | None:
    """Labels that are objects as numbers; None if all are texts, a ValueError for other labels."""
    texts = np.array([isinstance(label, str) for label in y.tolist()], dtype=bool)
    if texts.all():
        return None
    if texts.any():
        raise ValueError(
            f"The labels of these rows are both texts ({y[texts][0]!r}) and others "
            f"({y[~texts][0]!r}). Make them of one kind, for example with y.astype(str)."
        )
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        other = next(label for label in y.tolist() if not isinstance(label, Real))
        raise ValueError(
            f"Labels must be numbers or texts; got {other!r}, a {type(other).__name__}. Convert "
            "them, for example with y.astype(str)."
        ) from None


def _largest(keys: np.ndarray, size: int) -> np.ndarray:
    """Positions of the largest finite keys, in ascending order of position."""
    usable = np.flatnonzero(keys > -np.inf)
    if len(usable) > size:
        usable = usable[np.argpartition(-keys[usable], size)[:size]]
    return np.sort(usable)


def stack_rows(first: Any, second: Any) -> Any:
    """Two sets of rows as one."""
    if isinstance(first, Table):
        both = zip(first.columns, second.columns, strict=True)
        return Table([np.concatenate(pair) for pair in both], first.names)
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    return np.concatenate([first, second])
