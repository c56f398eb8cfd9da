"""Ensembles of kernel predictors: one hypothesis per kernel, and their weighted sum.

Cortes, Mohri & Rostamizadeh 2012, section 3.3: ``h = sum_k mu_k h_k`` with ``h_k = sum_i alpha_ik
K_k(x_i, .) + b_k``: each kernel has its own coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...grams.protocol import Expansion, Grams, require_sizes
from ...learners.base import Learner
from ...problem import Machine, Target

Splits = Sequence[tuple[np.ndarray, np.ndarray]]


def train_each(grams: Grams, target: Target, learner: Learner) -> list[Machine]:
    """One predictor per kernel; a constant kernel gives a constant predictor."""
    return [learner.fit(grams.combine(alone), target) for alone in np.eye(grams.p)]


def values_of_each(grams: Grams, machines: Sequence[Machine], points: Any) -> np.ndarray:
    """The values of all predictors at encoded samples, shape (m, p, t)."""
    each = [
        grams.expand(alone, machine.coef).values(points) + machine.intercept
        for alone, machine in zip(np.eye(grams.p), machines, strict=True)
    ]
    return np.stack(each, axis=1)


def out_of_fold(
    grams: Grams,
    target: Target,
    learner: Learner,
    splits: Splits,
    *,
    fold_target: Callable[[np.ndarray, int], Target] | None = None,
    center: bool = True,
    normalize: str | None = None,
) -> np.ndarray:
    """Values of all hypotheses at samples that they were not trained on, shape (n, p, t).

    Every training fold is centred and normalised by its own statistics. Kernel entries come from
    ``grams``, which computes them only once if it was made by
    :meth:`multikernel.grams.protocol.Grams.stored`.

    Parameters
    ----------
    grams : Grams
        Not yet centred or normalised.
    splits : sequence of (train, test)
        Every sample is in exactly one test fold.
    fold_target : callable (train, fold) -> Target, optional
        Returns the target of a training fold, if it is not simply a part of ``target``.
    """
    check_partition(splits, grams.n)
    H = np.empty((grams.n, grams.p, target.Y.shape[1]))
    for fold, (train, test) in enumerate(splits):
        sample_weight = None if target.sample_weight is None else target.sample_weight[train]
        part = grams.take(train, sample_weight).corrected(center, normalize)
        known = target.take(train) if fold_target is None else fold_target(train, fold)
        H[test] = values_of_each(part, train_each(part, known, learner), grams.points(test))
    return H


def check_partition(splits: Splits, n: int) -> None:
    """Raise ValueError unless every sample is in one test fold and never in its training fold."""
    held = np.zeros(n, dtype=int)
    for fold, (train, test) in enumerate(splits):
        held[test] += 1
        if len(train) == 0 or np.intersect1d(train, test).size:
            raise ValueError(
                f"Fold {fold} has no training samples, or some of them are also test samples. An "
                "ensemble needs predictions for samples that were not used in training: use KFold "
                "or StratifiedKFold."
            )
    if np.any(held != 1):
        raise ValueError(
            f"Out-of-fold predictions need every sample in exactly one test fold; "
            f"{np.count_nonzero(held == 0)} samples are in none and {np.count_nonzero(held > 1)} "
            "in several. Use KFold or StratifiedKFold, not random splits."
        )


class EnsembleExpansion(Expansion):
    """The weighted sum of the hypotheses, without intercepts."""

    def __init__(
        self, grams: Grams, machines: Sequence[Machine], kernel_weights: np.ndarray
    ) -> None:
        self.n_kernels = grams.p
        self.n_outputs = machines[0].coef.shape[1]
        self.used = np.flatnonzero(kernel_weights).tolist()
        self.parts = [
            grams.expand(kernel_weights[k] * np.eye(grams.p)[k], machines[k].coef)
            for k in self.used
        ]

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> EnsembleExpansion:
        require_sizes(len(state["parts"]) == len(state["used"]), "number of hypotheses")
        fit = all(part.n_kernels == state["n_kernels"] for part in state["parts"])
        require_sizes(fit, "kernels of the hypotheses")
        return super().from_state(state)

    def encode(self, X: Any) -> Any:
        return X  # each part encodes the samples in `values`, one part at a time

    def values(self, points: Any) -> np.ndarray:
        total = np.zeros((points.shape[0], self.n_outputs))
        for part in self.parts:
            total += part.values(part.encode(points))
        return total

    def shares(self, points: Any) -> np.ndarray:
        out = np.zeros((points.shape[0], self.n_kernels, self.n_outputs))
        for k, part in zip(self.used, self.parts, strict=True):
            out[:, k] = part.values(part.encode(points))
        return out

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        out = np.zeros((X.shape[0], X.shape[1], self.n_outputs))
        for part in self.parts:
            out += part.gradients(X, steps)
        return out

    def release(self) -> None:
        for part in self.parts:
            part.release()
