"""A combination that will be asked for, so that a pass over the bank can bring it along."""

from __future__ import annotations

import numpy as np

#: Weights that differ by this part are the same.
SAME = 1e-13


class Expected:
    """Weights of raw kernels, (p,), and their combination once a pass has left it here."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights
        self.matrix: np.ndarray | None = None

    def combination(self, weights: np.ndarray) -> tuple[np.ndarray, float] | None:
        """The combination if it is here and the weights are a multiple of those expected.

        With it comes the number that it still has to be multiplied by.
        """
        if self.matrix is None:
            return None
        factor = float(weights.sum() / self.weights.sum())
        if not np.allclose(factor * self.weights, weights, rtol=SAME, atol=0.0):
            return None
        return self.matrix, 1.0 if abs(factor - 1.0) <= SAME else factor
