"""The two baseline rules: uniform weights, and the best single kernel."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting, normalised


class Uniform(Weighting):
    """Equal weights ``mu_k = 1 / p``: the baseline for every other rule.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), weighting="uniform").fit(X, y)
    >>> model.kernel_weights_
    array([0.5, 0.5])
    """

    needs_target = False

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return normalised(np.where(grams.degenerate, 0.0, 1.0))


class BestSingle(Weighting):
    """All weight on the kernel with the best cross-validated score on the training sample.

    Every kernel is tried alone with the learner of the estimator; centring and normalisation are
    computed within each training fold. In a tie the first kernel of the bank is chosen.

    Parameters
    ----------
    cv : int, default=5
        Number of folds, stratified for classification; fewer if a class has fewer samples.
    random_state : int or None, default=0
        Seed of the shuffle before the samples are split into folds.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.gaussians([1e-4, 1.0, 1e4])
    >>> mk.MultiKernelClassifier(bank, weighting=mk.BestSingle()).fit(X, y).kernel_weights_
    array([0., 1., 0.])
    """

    needs_learner = True
    reads_samples = True

    def __init__(self, cv: int = 5, *, random_state: Any = 0) -> None:
        self.cv = cv
        self.random_state = random_state

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        scores = self.scores(grams, target, learner)
        kernel_weights = np.zeros(grams.p)
        kernel_weights[int(np.argmax(scores))] = 1.0
        return kernel_weights

    def scores(self, grams: Grams, target: Target, learner: Learner) -> np.ndarray:
        """Sum of the scores of each kernel over the folds; minus infinity for constant kernels."""
        usable = np.flatnonzero(~grams.degenerate)
        total = np.full(grams.p, -np.inf)
        if len(usable) == 1:
            total[usable] = 0.0
            return total
        total[usable] = 0.0
        for train, test in folds(target, self.cv, self.random_state):
            held = target.take(test)
            sample_weight = None if target.sample_weight is None else target.sample_weight[train]
            part = grams.take(train, sample_weight).corrected(grams.center, grams.how)
            points = grams.points(test)
            for k in usable:
                alone = np.zeros(grams.p)
                alone[k] = 1.0
                machine = learner.fit(part.combine(alone), target.take(train))
                values = part.expand(alone, machine.coef).values(points) + machine.intercept
                total[k] += held.score(values)
        return total


def folds(target: Target, cv: int, random_state: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits (train, test) of the sample; stratified if every class has at least two samples."""
    if not isinstance(cv, Integral) or cv < 2:
        raise ValueError(f"BestSingle: cv must be a whole number of at least 2 folds; got {cv!r}.")
    n = len(target.Y)
    if target.kind == "classification":
        smallest = int(np.bincount(target.labels).min())
        if smallest >= 2:
            split = StratifiedKFold(min(cv, smallest), shuffle=True, random_state=random_state)
            return list(split.split(np.zeros(n), target.labels))
    plain = KFold(min(cv, n), shuffle=True, random_state=random_state)
    return [(train, test) for train, test in plain.split(np.zeros(n))]
