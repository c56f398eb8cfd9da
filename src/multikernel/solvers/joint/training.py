"""A training run of a joint solver, and its quantities for the certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._journal import ROUND, Answers, recall
from ...grams.protocol import CombinedGram, Grams
from ...learners.base import Learner
from ...problem import Target
from ..certificate import CertifiedIterate, Report


class TrainingRun(NamedTuple):
    """Coefficients (n, t) of a predictor, ``K coef`` and ``a_k = coef' K_k coef``."""

    coef: np.ndarray
    values: np.ndarray
    a: np.ndarray


def train_at(
    grams: Grams,
    target: Target,
    learner: Learner,
    theta: np.ndarray,
    gram: CombinedGram,
    start: np.ndarray | None,
    report: Report | None,
    *,
    multiply: bool = False,
) -> TrainingRun:
    """The predictor at these kernel weights, from the journal or trained.

    ``multiply`` computes ``K coef`` even if the learner has done so.
    """

    def train() -> Answers:
        machine = learner.fit(gram, target, start=start)
        coef, values = machine.coef, machine.values
        if values is None or multiply:
            values = gram.matvec(coef)
        return {"coef": coef, "values": values, "a": grams.quadratic_forms(coef).sum(axis=1)}

    return TrainingRun(**recall(report, "train", (theta, start), train, ROUND))


def numbers_of(iterate: CertifiedIterate) -> dict[str, Any]:
    """The arrays of an iterate, without its operator, which follows from the kernel weights."""
    return {name: value for name, value in vars(iterate).items() if name != "gram"}


def iterate_from(grams: Grams, numbers: dict[str, Any]) -> CertifiedIterate:
    """The iterate with the arrays that `numbers_of` returned."""
    return CertifiedIterate(**numbers, gram=grams.combine(numbers["theta"]))
