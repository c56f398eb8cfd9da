"""The result of every method: a predictor, kernel weights, and the duality gap of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Rounding error of a sum over samples, relative to the size of its terms: 64 units of float64.
ROUNDING_UNITS = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Machine:
    """A predictor with one fixed kernel, ``f(x) = K(x, .) coef + intercept``, for t outputs.

    Attributes
    ----------
    coef : array of shape (n, t)
        Signed coefficients; zero except at the support vectors.
    intercept : array of shape (t,)
    objective : float
        Primal objective, summed over outputs.
    gap : float
        Largest relative duality gap of the outputs.
    n_iter : int
    values : array of shape (n, t) or None
        ``K coef``, if the learner has computed it.
    left_out : array of shape (n, t) or None
        The prediction for every sample by a predictor trained without it, if the learner has
        computed it.
    chosen : float or None
        The cost or ridge constant that the learner chose; None if it was given.
    held_out : array of shape (m, t) or None
        Like ``left_out``, but approximate or for a part of the sample; None unless requested.
    """

    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    gap: float
    n_iter: int
    values: np.ndarray | None = None
    left_out: np.ndarray | None = None
    chosen: float | None = None
    held_out: np.ndarray | None = None


@dataclass(frozen=True)
class Solution:
    """The result of every method: kernel weights, a predictor with its gap, and alignments.

    Weights and alignments have a leading axis for outputs if each output has its own kernel
    weights. ``grams`` are the grams that the predictor was trained with, or a list of them.
    """

    kernel_weights: np.ndarray
    machine: Machine
    alignment: float | np.ndarray
    kernel_alignments: np.ndarray
    history: list[Any] = field(default_factory=list)
    grams: Any = None

    @classmethod
    def stack(cls, solutions: Sequence[Solution]) -> Solution:
        """One solution from the solutions of separate problems, one per output."""
        machines = [solution.machine for solution in solutions]
        return cls(
            np.stack([solution.kernel_weights for solution in solutions]),
            Machine(
                np.concatenate([machine.coef for machine in machines], axis=1),
                np.concatenate([machine.intercept for machine in machines]),
                sum(machine.objective for machine in machines),
                max(machine.gap for machine in machines),
                max(machine.n_iter for machine in machines),
                left_out=_side_by_side([machine.left_out for machine in machines]),
                held_out=_side_by_side([machine.held_out for machine in machines]),
            ),
            np.array([solution.alignment for solution in solutions]),
            np.stack([solution.kernel_alignments for solution in solutions]),
            [solution.history for solution in solutions],
            [solution.grams for solution in solutions],
        )


def _side_by_side(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    known = [column for column in columns if column is not None]
    return np.concatenate(known, axis=1) if len(known) == len(columns) else None


def relative_gap(primal: np.ndarray, dual: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``(P - D) / |P|``; differences up to `ROUNDING_UNITS` times the scale count as zero."""
    noise = ROUNDING_UNITS * np.abs(scale)
    gap = np.maximum(primal - dual, 0.0)
    gap = np.where(gap <= noise, 0.0, gap)
    return np.asarray(gap / np.maximum(np.abs(primal), np.maximum(noise, 1e-300)))
