"""Column maps that are learned from a training sample and then belong to a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from .columns import Columns, Standardization, resolve_columns, take_columns

#: Number of knots (quantiles of the values) in the map of one column.
N_KNOTS = 129
#: Half-width of the window for slopes of the map, in standard deviations of the knots.
SLOPE_WINDOW = 0.25
#: The names that ``scaling=`` accepts.
SCALINGS = ("standard", "quantile")


@dataclass(frozen=True, repr=False, eq=False)
class QuantileScaling:
    """A map of each selected column to a normal distribution by its ranks, as a hashable value.

    The map is piecewise linear between knots and constant beyond the training sample. The
    result is the same up to interpolation if a column is first transformed by an increasing
    function such as a logarithm, and it has no outliers.

    Attributes
    ----------
    knots : array of shape (d, q)
        Values of the columns in increasing order, padded with the last value.
    scores : array of shape (d, q)
        Values of the map at the knots; mean 0 and variance 1 on the training sample.
    """

    knots: np.ndarray
    scores: np.ndarray

    def __repr__(self) -> str:
        return f"<quantiles of {self.width} columns>"

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.knots)

    @property
    def centred(self) -> bool:
        """Whether the columns have mean zero."""
        return True

    @cached_property
    def _key(self) -> tuple[bytes, bytes]:
        return self.knots.tobytes(), self.scores.tobytes()

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, QuantileScaling) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None = None) -> QuantileScaling:
        """The map learned from the columns of a dense X."""
        if sp.issparse(X):
            raise ValueError(
                "scaling='quantile' would make a sparse X dense. Use scaling='standard', or pass "
                "a dense X."
            )
        X = np.asarray(X, dtype=np.float64)
        omega = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        if not omega.all():  # a value of weight zero may have rank 0 or 1, with an infinite score
            X, omega = X[omega != 0], omega[omega != 0]
        each = [_knots_and_scores(column, omega) for column in X.T]
        q = max(len(knots) for knots, _ in each)
        knots, scores = (
            np.stack([np.append(one, np.full(q - len(one), one[-1])) for one in some])
            for some in zip(*each, strict=True)
        )
        return cls(knots, scores)

    def __call__(self, X: Any) -> np.ndarray:
        if sp.issparse(X):
            raise ValueError("This kernel maps columns to quantiles, which needs a dense X.")
        dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        out = np.empty(X.shape, dtype=dtype)
        for j in range(self.width):
            out[:, j] = np.interp(X[:, j], self.knots[j], self.scores[j])
        return out

    def slopes(self, X: Any) -> np.ndarray:
        """Slopes of the map at the entries of X, shape of X, averaged over a window.

        The slope between two neighbouring knots is unbounded: it is proportional to one over the
        gap between two samples, which may be tiny.
        """
        out = np.zeros(X.shape)
        for j in range(self.width):
            window = SLOPE_WINDOW * float(np.std(np.unique(self.knots[j])))
            if window > 0:
                ends = (X[:, j] + window, X[:, j] - window)
                up, down = (np.interp(x, self.knots[j], self.scores[j]) for x in ends)
                out[:, j] = (up - down) / (2.0 * window)
        return out


def _knots_and_scores(column: np.ndarray, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column (or quantiles of them), and their normal scores."""
    values, where = np.unique(column, return_inverse=True)
    if len(values) == 1:
        return values, np.zeros(1)
    counts = np.bincount(where, omega)
    ranks = (np.cumsum(counts) - 0.5 * counts) / omega.sum()
    if len(values) > N_KNOTS:
        grid = np.linspace(0.0, 1.0, N_KNOTS)
        values = np.unique(np.interp(grid, np.linspace(0.0, 1.0, len(values)), values))
        ranks = np.interp(values, np.unique(column), ranks)
    scores = ndtri(ranks)
    own = np.interp(column, values, scores)
    mean = np.average(own, weights=omega)
    spread = np.sqrt(np.average((own - mean) ** 2, weights=omega))
    return values, (scores - mean) / spread


Scaling = Standardization | QuantileScaling


def learn_scaling(
    how: str,
    columns: Columns,
    X: Any,
    sample_weight: np.ndarray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Scaling:
    """The scaling of this name for some columns of a training sample."""
    if feature_names is None and hasattr(X, "iloc"):
        feature_names = [str(name) for name in X.columns]
    index = resolve_columns(columns, X.shape[1], feature_names, f"with scaling={how!r}")
    selected = take_columns(X, index)
    kind = Standardization if how == "standard" else QuantileScaling
    return kind.of(selected, sample_weight)


def check_scaling(owner: str, scaling: object) -> None:
    """Raise an error unless the scaling is a learned one or a known name."""
    if scaling is None or isinstance(scaling, (Standardization, QuantileScaling)):
        return
    if not isinstance(scaling, str) or scaling not in SCALINGS:
        raise ValueError(
            f"{owner}: scaling must be {', '.join(map(repr, SCALINGS))} or None; got {scaling!r}."
        )
