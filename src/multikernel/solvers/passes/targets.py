"""Targets of a chunk as columns of numbers; these objects are sent to the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LabelColumns:
    """Labels as -1 and +1: one column for two classes, one per class for more.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    costs : array of shape (n_classes,) or None
        Factors of the sample weights (class weights).
    """

    classes: np.ndarray
    costs: np.ndarray | None = None

    def __call__(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        y = np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        strange = self.classes[codes] != y
        if np.any(strange):
            raise ValueError(
                f"The label {y[strange].tolist()[0]!r} is not among the classes "
                f"{self.classes.tolist()!r}. Name all classes in the first call of partial_fit "
                "(classes=...)."
            )
        factors = None if self.costs is None else self.costs[codes]
        if len(self.classes) == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None], factors
        return np.where(codes[:, None] == np.arange(len(self.classes)), 1.0, -1.0), factors


@dataclass(frozen=True)
class OutputColumns:
    """Outputs of regression; ``n_outputs`` is 0 if y is a vector."""

    n_outputs: int

    def __call__(self, y: Any) -> tuple[np.ndarray, None]:
        Y = np.asarray(y, dtype=np.float64)
        found = 0 if Y.ndim == 1 else Y.shape[1]
        if found != self.n_outputs:
            raise ValueError(
                f"y has {found or 1} output columns (shape {Y.shape}), but earlier rows had "
                f"{self.n_outputs or 1}. All chunks need the same outputs."
            )
        return Y[:, None] if Y.ndim == 1 else Y, None


@dataclass(frozen=True)
class OneColumn:
    """One column of the targets that ``columns`` returns."""

    columns: LabelColumns | OutputColumns
    j: int

    def __call__(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        Y, factors = self.columns(y)
        return Y[:, self.j : self.j + 1], factors
