"""The training targets, in the form that learners and weighting rules read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Target:
    """Labels or outputs of the training sample, with sample weights and class weights.

    Attributes
    ----------
    Y : array of shape (n, t), float64
        One column per predictor. Classification: labels -1 and +1, in one column for two classes
        and one column per class for more. Regression: the outputs.
    kind : {"classification", "regression", "one-class"}
    sample_weight : array of shape (n,) or None
        Sample weights. They multiply the losses and weigh the samples when kernels are centred.
    costs : array of shape (n,) or None
        Additional factors that multiply the losses only (class weights).
    """

    Y: np.ndarray
    kind: str
    sample_weight: np.ndarray | None = None
    costs: np.ndarray | None = None

    @property
    def labels(self) -> np.ndarray:
        """The class of each sample as an integer, for stratified splits."""
        return np.argmax(self.Y, axis=1) if self.Y.shape[1] > 1 else (self.Y[:, 0] > 0).astype(int)

    @cached_property
    def loss_weights(self) -> np.ndarray:
        """The factor of each sample's loss, shape (n,); read-only."""
        factors = np.ones(len(self.Y))
        for part in (self.sample_weight, self.costs):
            if part is not None:
                factors = factors * part
        factors.flags.writeable = False  # all callers share this array
        return factors

    def take(self, rows: np.ndarray) -> Target:
        """The target of some of the samples."""
        return Target(
            self.Y[rows],
            self.kind,
            None if self.sample_weight is None else self.sample_weight[rows],
            None if self.costs is None else self.costs[rows],
        )

    def column(self, j: int) -> Target:
        """The target of output j alone."""
        return replace(self, Y=self.Y[:, j : j + 1])

    def score(self, values: np.ndarray) -> float:
        """Accuracy of decision values (m, t), or minus the mean squared error."""
        if self.kind == "regression":
            errors = np.mean((values - self.Y) ** 2, axis=1)
            return -float(np.average(errors, weights=self.sample_weight))
        if self.Y.shape[1] > 1:
            right = np.argmax(values, axis=1) == np.argmax(self.Y, axis=1)
        else:
            right = (values[:, 0] > 0) == (self.Y[:, 0] > 0)
        return float(np.average(right, weights=self.sample_weight))
