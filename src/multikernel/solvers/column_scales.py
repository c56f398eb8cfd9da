"""Column scales from the derivatives of a fitted function.

A round fits ridge regression on the equally weighted kernels of the last round, with the ridge
constant of the smallest leave-one-out error, and measures how much the function changes with each
column: the root of its mean squared derivative over the training samples, for columns of unit
variance. These are the factors of the columns in the kernels of the next round. Every round
rescales the original columns, so its factors replace those of the round before.

Factors are learned from the targets and may overfit. They are therefore validated: learned again on
training folds, where predictions for the test folds are compared with and without the rescaled
kernels. These predictions use equal kernel weights: learning weights in every fold takes far longer
and does not separate useful from useless scales any better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError

from .._threads import one_blas_thread
from ..grams.engines import build
from ..grams.memory import MemoryBudget
from ..grams.planning import make_plan
from ..grams.protocol import Grams
from ..grams.sensitivity import column_sensitivities
from ..kernels.bank import KernelBank
from ..kernels.base import Kernel
from ..kernels.default_bank import default_bank, plain_name
from ..kernels.learned_scales import MIN_SAMPLES, LearnedScales
from ..kernels.rescaled import has_width, rescaled
from ..learners.leave_one_out import best_ridge
from ..learners.ridge import Ridge
from ..problem import Target
from ..weighting.loo_minimum import some_rows
from ..weighting.uniform import folds

#: Learned scales are validated on at most this many samples.
MAX_VALIDATION_SAMPLES = 500
#: Cross-validation folds when scales are validated.
N_FOLDS = 3
#: Rescaled kernels are kept if their gain is larger than this many standard errors.
REQUIRED_STANDARD_ERRORS = 0.5


@dataclass(frozen=True)
class ScaledBank:
    """The result of `learn_bank`.

    Attributes
    ----------
    bank : KernelBank
        The kernels of round 0, and those on learned scales if they are kept.
    factors : array of shape (n_rounds, n_features)
        The factors of the columns in each later round, scaled to a largest of 1.
    gain : float
        Mean squared error without the rescaled kernels minus that with them, relative to the
        variance of the targets, on held-out samples; NaN without validation.
    standard_error : float
        Standard error of the gain.
    """

    bank: KernelBank
    factors: np.ndarray
    gain: float
    standard_error: float

    @property
    def kept(self) -> bool:
        """Whether rescaled kernels are in the bank."""
        return len(self.factors) > 0

    def __str__(self) -> str:
        what = "kernels on learned scales kept" if self.kept else "only round 0 kept"
        if np.isnan(self.gain):
            return f"learned_scales: {what}, not validated"
        return (
            f"learned_scales: {what}; they reduce the validated squared error by {self.gain:.3g} "
            f"(standard error {self.standard_error:.2g}) of the variance of the targets"
        )


def learn_bank(
    how: LearnedScales,
    X: Any,
    target: Target,
    *,
    feature_names: Sequence[str] | None = None,
    budget: MemoryBudget | None = None,
    n_jobs: int = 1,
) -> ScaledBank:
    """The kernels of round 0, and those on learned scales if they predict better."""
    spread = X.max(axis=0) - X.min(axis=0)
    if not (spread.nnz if sp.issparse(spread) else np.any(spread > 0)):
        raise ValueError(
            "learned_scales: every column of X is constant, so there is nothing to scale."
        )
    base = base_kernels(how, X, target.sample_weight, feature_names)
    target = of_unit_variance(target)
    rows = some_rows(target, int(how.max_samples), how.random_state)
    sample = InputsAndTargets(X[rows], target.take(rows), budget or MemoryBudget.of(None), n_jobs)
    with one_blas_thread():  # the number of threads must not change which scales are kept
        return learn_from(sample, base, how)


def learn_from(sample: InputsAndTargets, base: KernelBank, how: LearnedScales) -> ScaledBank:
    """The result of `learn_bank`, from the samples that it selected."""
    none = np.zeros((0, sample.X.shape[1]))
    gain = error = float("nan")
    if how.validate and sample.X.shape[0] < MIN_SAMPLES:
        return ScaledBank(base, none, 0.0, 0.0)  # too few samples to validate
    if how.validate:
        gain, error = validate(base, sample, how)
        if not gain > REQUIRED_STANDARD_ERRORS * error:
            return ScaledBank(base, none, gain, error)
    factors = learn_factors(base, sample, int(how.rounds))
    return ScaledBank(with_rounds(base, factors, sample, how.keep), factors, gain, error)


def of_unit_variance(target: Target) -> Target:
    """Outputs with mean 0 and variance 1, so that their units do not matter; labels as they are."""
    if target.kind != "regression":
        return target
    mean = np.average(target.Y, axis=0, weights=target.sample_weight)
    spread = np.sqrt(np.average((target.Y - mean) ** 2, axis=0, weights=target.sample_weight))
    return replace(target, Y=(target.Y - mean) / np.where(spread > 0, spread, 1.0))


def base_kernels(
    how: LearnedScales,
    X: Any,
    sample_weight: np.ndarray | None,
    feature_names: Sequence[str] | None,
) -> KernelBank:
    """The kernels of round 0, adapted to X (which does not depend on the targets)."""
    if how.base is None:
        base = default_bank(X, kind="tables", sample_weight=sample_weight)
    else:
        base = how.base.adapt(X, sample_weight, feature_names)
    kernels = [kernel.resolve(X.shape[1], feature_names) for kernel in base]
    if not any(has_width(kernel) for kernel in kernels):
        raise ValueError(
            "learned_scales: needs at least one Gaussian, Laplacian, exponential or Matern "
            f"kernel, which can be repeated on rescaled columns; got {base!r}."
        )
    return KernelBank(kernels, base._names)


@dataclass(frozen=True)
class InputsAndTargets:
    """Inputs and targets, with the memory and the number of jobs for computing kernels."""

    X: Any
    target: Target
    budget: MemoryBudget
    n_jobs: int

    def part(self, rows: np.ndarray) -> InputsAndTargets:
        return InputsAndTargets(self.X[rows], self.target.take(rows), self.budget, self.n_jobs)

    def grams(self, kernels: Sequence[Kernel]) -> Grams:
        """Kernels on the sample, centred and of unit variance."""
        plan = make_plan(
            KernelBank(kernels),
            n_samples=self.X.shape[0],
            n_features=self.X.shape[1],
            feature_names=None,
            sparse=sp.issparse(self.X),
            budget=self.budget,
        )
        made = build(
            plan,
            self.X,
            budget=self.budget,
            sample_weight=self.target.sample_weight,
            n_jobs=self.n_jobs,
        )
        return made.corrected(True, "multiplicative")

    def rescaled(self, kernels: Sequence[Kernel], factors: np.ndarray) -> Sequence[Kernel]:
        """The kernels that have a width, on rescaled columns."""
        return rescaled(kernels, factors, self.X, self.target.sample_weight)


def learn_factors(base: Sequence[Kernel], sample: InputsAndTargets, rounds: int) -> np.ndarray:
    """The factors of the columns after each round, shape (n_rounds, n_features)."""
    found: list[np.ndarray] = []
    kernels = sample.rescaled(base, np.ones(sample.X.shape[1]))
    for _ in range(rounds):
        grams = sample.grams(kernels)
        weights = equal_weights(grams)
        if weights is None:
            break
        try:
            alpha, fit = best_ridge(grams.combine(weights), sample.target, True)
        except LinAlgError:
            break
        function = grams.expand(weights, fit.coef / alpha)
        slopes = np.sqrt(column_sensitivities(function, sample.X, sample.target.sample_weight))
        if not slopes.max() > 0:
            break
        found.append(slopes / slopes.max())
        kernels = sample.rescaled(base, found[-1])
    return np.array(found).reshape(-1, sample.X.shape[1])


def with_rounds(
    base: KernelBank, factors: np.ndarray, sample: InputsAndTargets, keep: str
) -> KernelBank:
    """The kernels of round 0, and those on the learned scales of the last round or of all."""
    kernels, names = list(base), list(base.names)
    rounds = list(enumerate(factors, 1))
    for number, one in rounds if keep == "all" else rounds[-1:]:
        later = sample.rescaled(base, one)
        kernels += later
        which = f" of round {number}" if keep == "all" else ""
        names += [f"{plain_name(kernel)}, learned scales{which}" for kernel in later]
    return KernelBank(kernels, names)


def validate(base: KernelBank, sample: InputsAndTargets, how: LearnedScales) -> tuple[float, float]:
    """The gain of rescaled kernels in squared error on held-out samples, and its standard error.

    Both are relative to the variance of the targets. In every fold, scales are learned on the
    training part, and the samples of the test part are predicted by ridge regression on it, with
    equal weights of the kernels.
    """
    part = sample.part(some_rows(sample.target, MAX_VALIDATION_SAMPLES, how.random_state))
    Y, costs = part.target.Y, part.target.loss_weights
    better = np.zeros(len(Y))
    for train, test in folds(part.target, N_FOLDS, how.random_state):
        known, new = part.part(train), part.X[test]
        factors = learn_factors(base, known, int(how.rounds))
        try:
            errors = [
                np.sum((Y[test] - predict(bank, known, new)) ** 2, axis=1)
                for bank in (base, with_rounds(base, factors, known, how.keep))
            ]
        except LinAlgError:
            continue  # its samples count as no gain
        better[test] = errors[0] - errors[1]
    total = costs.sum()
    unit = float(costs @ np.sum((Y - np.average(Y, axis=0, weights=costs)) ** 2, axis=1)) / total
    if not unit > 0:
        return 0.0, 0.0
    gain = float(costs @ better) / total
    spread = float(np.sqrt(costs @ (better - gain) ** 2 / total))
    return gain / unit, spread / np.sqrt(len(Y)) / unit


def equal_weights(grams: Grams) -> np.ndarray | None:
    """Weights that sum to one, zero for constant kernels; None if all are constant."""
    usable = ~grams.degenerate
    return usable / np.count_nonzero(usable) if np.any(usable) else None


def predict(bank: KernelBank, sample: InputsAndTargets, new: Any) -> np.ndarray:
    """Outputs at new inputs of ridge regression with equal weights on a sample."""
    grams = sample.grams(bank)
    weights = equal_weights(grams)
    if weights is None:
        mean = np.average(sample.target.Y, axis=0, weights=sample.target.loss_weights)
        return np.broadcast_to(mean, (new.shape[0], len(mean)))
    gram = grams.combine(weights)
    alpha, _ = best_ridge(gram, sample.target, True)
    machine = Ridge(alpha).fit(gram, sample.target)
    function = grams.expand(weights, machine.coef)
    return function.values(function.encode(new)) + machine.intercept
