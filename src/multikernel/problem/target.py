"""The training targets, in the form that learners and weightings read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Target:
    """What is to be predicted, in the form learners and weightings read.

    Attributes
    ----------
    Y : array of shape (n, t), float64
        One column per machine: -1/+1 for classification (one column for two classes, one per
        class for more), the outputs themselves for regression.
    kind : {"classification", "regression"}
    weights : array of shape (n,) or None
        How often each point counts. They multiply losses, and centre and weigh the kernels.
    costs : array of shape (n,) or None
        Further factors of the loss alone (class weights).
    """

    Y: np.ndarray
    kind: str
    weights: np.ndarray | None = None
    costs: np.ndarray | None = None

    @property
    def labels(self) -> np.ndarray:
        """The class of each point as a number, for stratified splits."""
        return np.argmax(self.Y, axis=1) if self.Y.shape[1] > 1 else (self.Y[:, 0] > 0).astype(int)

    @cached_property
    def loss_weights(self) -> np.ndarray:
        """The factor of each sample's loss, shape (n,); not to be written to."""
        factors = np.ones(len(self.Y))
        for part in (self.weights, self.costs):
            if part is not None:
                factors = factors * part
        factors.flags.writeable = False  # all who ask get the same array
        return factors

    def take(self, rows: np.ndarray) -> Target:
        return Target(
            self.Y[rows],
            self.kind,
            None if self.weights is None else self.weights[rows],
            None if self.costs is None else self.costs[rows],
        )

    def column(self, j: int) -> Target:
        """One output of several."""
        return replace(self, Y=self.Y[:, j : j + 1])

    def score(self, values: np.ndarray) -> float:
        """Accuracy of decision values (m, t), or minus the mean squared error."""
        if self.kind == "regression":
            errors = np.mean((values - self.Y) ** 2, axis=1)
            return -float(np.average(errors, weights=self.weights))
        if self.Y.shape[1] > 1:
            right = np.argmax(values, axis=1) == np.argmax(self.Y, axis=1)
        else:
            right = (values[:, 0] > 0) == (self.Y[:, 0] > 0)
        return float(np.average(right, weights=self.weights))
