"""Checks of estimators before saving and after loading, and placeholders for omitted matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._archive import ModelFileError
from ..estimators.base import MultiKernelEstimator
from ..estimators.codes import TableCodes
from ..grams.protocol import Expansion
from ..kernels.precomputed import Precomputed
from ..tables.model import TableModel


@dataclass(frozen=True, repr=False, eq=False)
class Absent(Precomputed):
    """Placeholder in a loaded bank for a matrix that was not stored: its name and size."""

    samples: int = 0

    @classmethod
    def of(cls, kernel: Precomputed) -> Absent:
        size = kernel.samples if isinstance(kernel, Absent) else kernel.matrix.shape[0]
        return cls(np.zeros((0, 0)), kernel.label, samples=size)

    def __repr__(self) -> str:
        return f"Precomputed({self.label!r}, {self.samples} samples, not stored)"

    def ids(self, X: Any) -> np.ndarray:
        raise ValueError(
            f"The matrix of the kernel {self.label!r} is not part of the model file, which stores "
            "only what prediction needs. To fit again, or to compute a certificate, make the bank "
            "again with mk.precomputed."
        )


def checked(estimator: Any) -> Any:
    """The estimator; an error if a file cannot hold it or it has not been fitted."""
    if isinstance(estimator, TableModel):
        checked(estimator.estimator)
        return estimator
    if not isinstance(estimator, (MultiKernelEstimator, TableCodes)):
        raise TypeError(
            f"mk.save stores fitted estimators of multikernel; got {type(estimator).__name__}. For "
            "a search, save its best_estimator_. The last step of a pipeline needs inputs that "
            "went through the steps before it: kernels with scaling='standard' need no scaler."
        )
    check_is_fitted(estimator)
    return estimator


def verify(estimator: Any) -> Any:
    """A loaded object; an error if it is not a fitted estimator."""
    if isinstance(estimator, TableModel):
        verify(estimator.estimator)
        return estimator
    if not isinstance(estimator, (MultiKernelEstimator, TableCodes)):
        raise ModelFileError("it holds no estimator.")
    check_is_fitted(estimator)
    if isinstance(estimator, TableCodes):
        return estimator
    if not isinstance(estimator._expansion, Expansion):
        raise ModelFileError(
            "the sizes of its parts do not match: there is no function to predict with."
        )
    return estimator
