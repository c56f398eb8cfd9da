"""Approximations of kernels by features, as values of the parameter ``approximation``.

``approximation=None`` is exact. An object of this module defines how features are made; what is
learned from features depends on the data only through sums over samples
(:mod:`multikernel.grams.lowrank.sums`).
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator

#: Total number of features that default ranks aim at, for narrow and for wide tables.
FEATURES_OF_NARROW_TABLES, FEATURES_OF_WIDE_TABLES = 2000, 4000
#: Tables with more columns than this are wide.
WIDE_COLUMNS = 50
#: Range of default ranks.
MIN_RANK, MAX_RANK = 40, 1000


class Approximation(BaseEstimator):  # type: ignore[misc]
    """Base class of the approximations; their parameters work with ``clone`` and in grid search."""

    random_state: int

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        value = self.random_state
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise ValueError(
                f"{type(self).__name__}: random_state must be a whole number of at least 0, so "
                f"that every pass makes the same features; got {value!r}."
            )

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 1):
            raise ValueError(
                f"{type(self).__name__}: {name} must be a whole number of at least 1, or None for "
                f"a number that suits the bank; got {value!r}."
            )


class Nystroem(Approximation):
    """Features from landmarks: ``K_k ~ K_k[:, L] K_k[L, L]^+ K_k[L, :]``.

    The landmarks L are training samples, chosen by randomly pivoted Cholesky on the sum of the
    normalised kernels; kernels on the same columns share them. The approximation never exceeds the
    kernel, ``0 <= K_hat <= K`` as matrices, and the trace of the difference is known exactly.

    Linear kernels on few columns, and counts of n-grams, are their own features: they stay exact.

    Parameters
    ----------
    rank : int or None, default=None
        The number of landmarks for the kernels on the same columns; each of these kernels gets up
        to that many features. None aims at 2,000 features in all, or 4,000 for more than 50
        columns. The rules "loo" and "best" use all landmarks (2,000 for None, fewer if memory is
        short) for the sum of kernels, which they learn from part of the rows.
    random_state : int, default=0
        Seed of the choice of landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> way = mk.Nystroem(rank=200)
    >>> model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), approximation=way).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(self, rank: int | None = None, *, random_state: int = 0) -> None:
        self.rank = rank
        self.random_state = random_state

    def check(self) -> None:
        super().check()
        self._check_count("rank")

    def find_rank(self, n_samples: int, default: int) -> int:
        """The number of landmarks for this many samples."""
        rank = min(default, n_samples) if self.rank is None else int(self.rank)
        if rank > n_samples:
            raise ValueError(
                f"Nystroem(rank={rank}) asks for more landmarks than there are samples "
                f"({n_samples}). Use a smaller rank, or approximation=None: the exact fit is "
                "cheaper here."
            )
        return rank


class RandomFeatures(Approximation):
    """Random features, drawn before any sample is seen.

    Kernels of ``x - z`` (Gaussian, Laplacian, exponential, Matern, rational quadratic) get cosines
    and sines of random frequencies, orthogonal to each other where the kernel allows it.
    Polynomials get tensor sketches. Linear kernels on few columns, and counts of n-grams, stay
    exact. Other kernels have no such features: use :class:`Nystroem`.

    Parameters
    ----------
    n_features : int or None, default=None
        Features of each kernel; None aims at 2,000 in all, or 4,000 for more than 50 columns.
    random_state : int, default=0
        Seed of the frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> way = mk.RandomFeatures(n_features=200)
    >>> model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), approximation=way).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    def __init__(self, n_features: int | None = None, *, random_state: int = 0) -> None:
        self.n_features = n_features
        self.random_state = random_state

    def check(self) -> None:
        super().check()
        self._check_count("n_features")


def default_count(n_kernels: int, n_columns: int) -> int:
    """Default number of features of each kernel."""
    wide = n_columns > WIDE_COLUMNS
    total = FEATURES_OF_WIDE_TABLES if wide else FEATURES_OF_NARROW_TABLES
    return int(min(max(total // max(n_kernels, 1), MIN_RANK), MAX_RANK))


def as_approximation(value: Any) -> Approximation | None:
    """The value of a parameter ``approximation``, checked; the caller handles "auto"."""
    if value is None:
        return None
    if not isinstance(value, Approximation):
        raise ValueError(
            "approximation must be None (exact), 'auto', mk.Nystroem(rank=...) or "
            f"mk.RandomFeatures(n_features=...); got {value!r}."
        )
    value.check()
    return value
