"""How much the predictions of a fitted model depend on each column of X."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..grams.planning import Plan
from ..grams.protocol import Expansion
from ..grams.sensitivity import column_sensitivities, exchange_sensitivities
from ..kernels.algebra import Composite, Power, Scaled
from ..kernels.base import Kernel
from ..kernels.derivatives import has_derivative, reads_ranks
from ..kernels.observed import Observed
from ..kernels.overlap import Overlap
from ..kernels.scaling import SLOPE_WINDOW
from ..kernels.vectors import VectorKernel
from .checks import check_dtype

#: Maximum number and size (bytes) of the training samples over which derivatives are averaged.
MAX_SAMPLES = 1000
MAX_SAMPLE_BYTES = 2**24
#: Maximum number of columns that are changed one by one: for columns with two values, and without
#: analytic derivatives when a model is saved.
MAX_MOVED_COLUMNS = 50
#: Exchanging values needs a prediction for every sample and column: maximum number of samples, and
#: of training samples of a model whose importances are computed when it is saved.
MAX_EXCHANGED_SAMPLES, MAX_STORED_EXCHANGE_SAMPLES = 500, 2000


class ColumnImportance:
    """Mixin: the attribute ``column_importance_`` of fitted models."""

    _expansion: Expansion
    grams_: Plan
    dtype: Any

    @property
    def column_importance_(self) -> np.ndarray:
        """Sensitivity of the predictions to each column, as shares of the total, (n_features,).

        The mean squared derivative of the decision function (or of the predicted outputs) in the
        column, over the training samples, times the variance of the column, so that units do not
        matter; summed over classes or outputs, and divided by the total. All zero if the function
        is constant. The average is over at most 1,000 evenly spaced training samples. It is
        computed on first access.

        If a kernel reads category codes (:class:`Overlap`), which have no derivatives, or one of at
        most 50 columns has only two values (such as 0 and 1, between which derivatives mean
        nothing), the importance of every column is half the mean squared change of the function
        when the value of a sample in that column is replaced by that of another sample. For a
        linear function this is the same number. The average is over at most 500 evenly spaced
        samples.
        """
        check_is_fitted(self)
        if "_column_importance" not in self.__dict__:
            self._column_importance = self._importance()
        return self._column_importance.copy()

    def _importance(self) -> np.ndarray:
        name = type(self).__name__
        for part in self.grams_.parts:
            if part.kind in ("given", "features"):
                raise AttributeError(
                    f"{name} has no column_importance_: X holds "
                    + ("kernel values" if part.kind == "given" else "sequences")
                    + ", not numeric columns."
                )
            without = next((k for k in part.kernels if not sees_columns(k)), None)
            if without is not None:
                raise AttributeError(
                    f"{name} has no column_importance_: the kernel {without!r} is not a function "
                    "of numeric columns."
                )
        kept = self.__dict__.get("_importance_sample")
        if kept is None:
            raise AttributeError(
                f"This {name} has no column_importance_: it was loaded from a model file without "
                "it, or this kind of estimator does not keep the data it needs. Access "
                "column_importance_ before saving the model to include it in the file."
            )
        X, sample_weight = kept
        if self._reads_codes() or (X.shape[1] <= MAX_MOVED_COLUMNS and has_two_values(X)):
            rows = np.linspace(0, X.shape[0] - 1, MAX_EXCHANGED_SAMPLES).astype(int)
            rows = np.unique(rows)
            weights = None if sample_weight is None else sample_weight[rows]
            X = X[rows].toarray() if sp.issparse(X) else X[rows]
            return as_shares(exchange_sensitivities(self._expansion, X, weights))
        step = float(np.finfo(check_dtype(self.dtype) or X.dtype).eps ** (1 / 3))
        if any(reads_ranks(kernel) for part in self.grams_.parts for kernel in part.kernels):
            step = SLOPE_WINDOW  # smaller steps would fall into gaps between samples
        found = column_sensitivities(self._expansion, X, sample_weight, relative_step=step)
        return as_shares(found)

    def _reads_codes(self) -> bool:
        return any(reads_codes(kernel) for part in self.grams_.parts for kernel in part.kernels)

    def _keep_for_importance(self, X: Any, sample_weight: np.ndarray | None) -> None:
        """Copy the training samples that `column_importance_` will average over."""
        for name in ("_column_importance", "_importance_sample"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if not (sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)):
            return
        fits = MAX_SAMPLE_BYTES // max(8 * X.shape[1], 1)
        count = X.shape[0] if sp.issparse(X) else max(1, min(X.shape[0], fits))
        rows = np.unique(np.linspace(0, X.shape[0] - 1, min(count, MAX_SAMPLES)).astype(int))
        weights = None if sample_weight is None else sample_weight[rows]
        self._importance_sample = (X[rows], weights)

    def _importance_is_cheap(self) -> bool:
        """Whether importances are fast enough to be computed when a model is saved."""
        few = self._importance_sample[0].shape[1] <= MAX_MOVED_COLUMNS
        if self._reads_codes():
            return few and self.grams_.n_samples <= MAX_STORED_EXCHANGE_SAMPLES
        kernels = [kernel for part in self.grams_.parts for kernel in part.kernels]
        known = all(has_derivative(kernel) for kernel in kernels)
        spherical = getattr(self, "normalize", None) == "spherical"
        return few or (known and not spherical)

    def _stored_attributes(self) -> dict[str, Any]:
        """The attributes for a model file, with the importance and without training samples."""
        if self.__dict__.get("_importance_sample") is not None and self._importance_is_cheap():
            with suppress(AttributeError):  # its kernels do not read numeric columns
                self._column_importance = self.column_importance_
        return {**vars(self), "_importance_sample": None}


def as_shares(values: np.ndarray) -> np.ndarray:
    """Values divided by their sum; unchanged if the sum is zero."""
    total = values.sum()
    return values / total if total > 0 else values


def has_two_values(X: Any) -> bool:
    """Whether a column of a dense table has exactly two values."""
    if sp.issparse(X) or len(X) < 3:
        return False
    low, high = X.min(axis=0), X.max(axis=0)
    both = np.all((low == X) | (high == X), axis=0)
    return bool(np.any(both & (low < high)))


def sees_columns(kernel: Kernel) -> bool:
    """Whether a kernel, however composed, is a function of columns of numbers or codes."""
    return all(isinstance(leaf, VectorKernel) for leaf in leaves(kernel))


def reads_codes(kernel: Kernel) -> bool:
    """Whether a kernel compares category codes, for which derivatives are not defined."""
    return any(isinstance(leaf, Overlap) for leaf in leaves(kernel))


def leaves(kernel: Any) -> list[Any]:
    """The elementary kernels that a kernel is composed of."""
    if isinstance(kernel, Composite):
        return [leaf for part in kernel.parts for leaf in leaves(part)]
    if isinstance(kernel, (Scaled, Power, Observed)):
        return leaves(kernel.kernel)
    return [kernel]
