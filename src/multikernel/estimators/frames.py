"""Data frames with categories as the input of estimators: no preprocessing by the user.

``fit`` encodes a frame with text or category columns by :class:`TableCodes`, which the model keeps
as ``codes_``; new frames are encoded in the same way. After validation, X is an array of numbers
and codes everywhere in the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.bank import PerFeature, as_bank
from ..kernels.learned_scales import LearnedScales
from ..kernels.observed import name_columns
from ..kernels.overlap import Overlap
from ..kernels.vectors import VectorKernel
from .checks import text_columns
from .codes import MISSING, TableCodes, is_category, is_frame
from .importance import leaves


class FrameMixin:
    """Mixin: frames with categories in ``fit`` and at prediction, and the attribute ``codes_``."""

    kernels: Any
    codes_: TableCodes
    feature_names_in_: np.ndarray
    #: whether data frames with categories are accepted; otherwise they are refused with advice
    _reads_categories = True

    @property
    def _is_coded(self) -> bool:
        """Whether the training sample was a frame with categories."""
        return "codes_" in self.__dict__

    def _code_frame(self, X: Any, reset: bool, *, gaps_as_nan: bool) -> np.ndarray | None:
        """Numbers and codes of a frame with categories; None for any other X.

        Missing numbers are NaN. So are missing categories with ``gaps_as_nan``; otherwise they are
        a level of their own.
        """
        if reset:
            self.__dict__.pop("codes_", None)
            precomputed = isinstance(self.kernels, str)
            if precomputed or not self._reads_categories or not has_categories(X):
                return None
            codes = TableCodes()
            columns = codes._learn(X)
            if self.kernels is not None:
                check_kernels(self.kernels, codes)
            self.codes_ = codes
        elif not self._is_coded:
            return None
        elif not is_frame(X):
            raise ValueError(
                f"{type(self).__name__} was fitted to a data frame with categories: X must be a "
                "data frame with the columns "
                f"{_named(self.codes_, range(len(self.feature_names_in_)))}; got "
                f"{type(X).__name__}."
            )
        else:
            columns = self.codes_._find(X)
        out = self.codes_._encode(columns)
        if gaps_as_nan:
            own = self.codes_.categorical_columns_
            out[:, own] = np.where(out[:, own] == MISSING, np.nan, out[:, own])
        return out

    def _fill_codes(self, fill: np.ndarray) -> np.ndarray:
        """Values that replace NaN: means for numbers, and the code of missing categories."""
        if self._is_coded:
            fill = fill.copy()
            fill[self.codes_.categorical_columns_] = MISSING
        return fill


def has_categories(X: Any) -> bool:
    """Whether X is a data frame with a text or category column."""
    if not is_frame(X):
        return False
    return any(is_category(kind) for kind in X.dtypes) or bool(text_columns(X))


def check_kernels(kernels: Any, codes: TableCodes) -> None:
    """Refuse kernels that would treat category codes as numbers."""
    names = codes.feature_names_in_.tolist()
    categorical = set(codes.categorical_columns_)
    for entry in as_bank(kernels).entries:
        for leaf in leaves(entry):
            if isinstance(leaf, LearnedScales):
                read = categorical
            elif isinstance(leaf, PerFeature):
                if isinstance(leaf.kernel, Overlap):
                    continue
                read = categorical & set(leaf.indices(len(names), names).tolist())
            elif isinstance(leaf, VectorKernel) and not isinstance(leaf, Overlap):
                placed: Any = leaf.resolve(len(names), names)
                own = range(len(names)) if placed.columns is None else placed.columns
                read = categorical & {int(c) for c in own}
            else:
                continue
            if read:
                raise ValueError(
                    f"X has category columns ({_named(codes, sorted(read))}), which {leaf!r} would "
                    "treat as numbers. Select the numeric columns with columns=..., use "
                    "mk.Overlap for the others, or use kernels=None, which has kernels for both. "
                    "In per_view, make them a view of their own: {'categories': (mk.Overlap(), "
                    "[...])} with their names."
                )


def _named(codes: TableCodes, columns: Any) -> str:
    return name_columns(list(columns), codes.feature_names_in_.tolist())
