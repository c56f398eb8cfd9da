"""What a learning problem is and what its answer looks like, the same for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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

    @property
    def loss_weights(self) -> np.ndarray:
        """The factor of each point's loss, shape (n,)."""
        factors = np.ones(len(self.Y))
        for part in (self.weights, self.costs):
            if part is not None:
                factors = factors * part
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


@dataclass(frozen=True)
class Machine:
    """A predictor with one fixed kernel, ``f(x) = K(x, .) coef + intercept``.

    Attributes
    ----------
    coef : array of shape (n, t)
        Signed coefficients; zero off the support vectors.
    intercept : array of shape (t,)
    objective : float
        Primal objective, summed over outputs.
    gap : float
        Relative duality gap, the largest over outputs.
    n_iter : int
    values : array of shape (n, t) or None
        ``K coef`` where it was computed anyway.
    """

    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    gap: float
    n_iter: int
    values: np.ndarray | None = None


@dataclass(frozen=True)
class Solution:
    """The answer of every method: kernel weights, machine, and what is proven about them.

    Weights and alignments have a leading axis when every output has kernel weights of its own.
    """

    weights: np.ndarray
    machine: Machine
    alignment: float | np.ndarray
    kernel_alignments: np.ndarray
    history: list[Any] = field(default_factory=list)

    @classmethod
    def stack(cls, solutions: Sequence[Solution]) -> Solution:
        """Separate problems, one per output, as one."""
        machines = [solution.machine for solution in solutions]
        return cls(
            np.stack([solution.weights for solution in solutions]),
            Machine(
                np.concatenate([machine.coef for machine in machines], axis=1),
                np.concatenate([machine.intercept for machine in machines]),
                sum(machine.objective for machine in machines),
                max(machine.gap for machine in machines),
                max(machine.n_iter for machine in machines),
            ),
            np.array([solution.alignment for solution in solutions]),
            np.stack([solution.kernel_alignments for solution in solutions]),
            [solution.history for solution in solutions],
        )


def relative_gap(primal: np.ndarray, dual: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``(P - D) / |P|``, with rounding of size ``eps * scale`` forgiven."""
    noise = 64 * np.finfo(np.float64).eps * np.abs(scale)
    gap = np.maximum(primal - dual, 0.0)
    gap = np.where(gap <= noise, 0.0, gap)
    return np.asarray(gap / np.maximum(np.abs(primal), np.maximum(noise, 1e-300)))
