"""A kernel that compares which values of two samples are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .vectors import VectorKernel


@dataclass(frozen=True, repr=False)
class MissingPattern(VectorKernel):
    """The share of columns in which both samples have a value, or both lack it.

    ``K(x, z) = (1 + mean_j r_j(x) r_j(z)) / 2`` with ``r_j = 1`` where column j has a value and -1
    where it is NaN: for data whose missing values are informative, such as tests ordered only when
    a doctor suspects something. It needs ``missing="ignore"`` (or ``"complete"``) in the estimator,
    and is meant for a bank that also holds kernels on the values.

    Parameters
    ----------
    columns : str, int, sequence of them, slice or None
        The columns of X the kernel sees; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> mk.MissingPattern()([[1.0, np.nan, 2.0, 3.0]], [[5.0, np.nan, np.nan, 0.0]])
    array([[0.75]])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scaling is not None:
            raise ValueError(
                "MissingPattern reads only which values are missing, so scaling must be None; got "
                f"{self.scaling!r}."
            )

    @property
    def is_psd(self) -> bool:
        return True  # inner products of the vectors r, plus a constant

    def _pairs(self, X: Any, Z: Any) -> np.ndarray:
        parts = (part.toarray() if sp.issparse(part) else part for part in (X, Z))
        R, S = (np.where(np.isnan(part), -1.0, 1.0) for part in parts)
        K = 0.5 + 0.5 * (R @ S.T) / max(R.shape[1], 1)
        return K.astype(X.dtype, copy=False)

    def _diag(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0], dtype=X.dtype)
