"""A fitted estimator together with the way its data are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .encoding import TableEncoder
from .frame import Frame


@dataclass(frozen=True)
class TableModel:
    """The model that ``multikernel fit`` writes, which predicts from named columns.

    Attributes
    ----------
    estimator : fitted estimator
    encoder : TableEncoder
    target : str
        The column it predicts.
    task : {"classification", "regression"}
    sample_kernels : bool
        Whether widths or scales of its kernels were chosen from the training rows.
    """

    estimator: Any
    encoder: TableEncoder
    target: str
    task: str
    sample_kernels: bool

    def features(self, data: Any) -> Any:
        """X of a frame, a file, a DataFrame or a mapping of columns."""
        return self.encoder(Frame.of(data, self.encoder.as_written))

    def predict(self, data: Any) -> np.ndarray:
        """Predictions for all rows, shape (n,)."""
        return np.asarray(self.estimator.predict(self.features(data)))
