"""The answer of every method: one predictor, the kernel weights, and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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
