"""Choose by cross-validation how far leave-one-out weights are moved towards equal weights."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from ..learners.leave_one_out import leave_one_out_errors
from .loo_minimum import (
    MAX_START_STEPS,
    NEGLIGIBLE_STANDARD_ERRORS,
    SizedKernels,
    minimise,
)
from .uniform import folds

#: Shrinkages to compare: shares of the uniform weights.
SHRINKAGES = (1.0, 0.75, 0.5, 0.25, 0.0)
#: Samples are equal if their squared distance is below this fraction of the mean diagonal.
EQUAL_DISTANCE = 1e-9


def choose_shrinkage(sample: SizedKernels, tol: float, seed: int) -> float:
    """The largest shrinkage whose cross-validated error is not clearly above the smallest.

    Weights are learned on each training fold; errors are those of ridge regression trained on it.
    """
    errors = np.zeros((len(SHRINKAGES), len(sample.target.Y)))
    for train, test in folds_of_distinct_samples(sample, seed):
        part = sample.part(train)
        try:
            found = minimise(part, tol=10 * tol, max_iter=MAX_START_STEPS, seed=seed, rough=True)
        except LinAlgError:
            continue  # no weights can be learned on this fold
        target = sample.target.take(test)
        rescale = part.grams.scales[sample.usable] / sample.grams.scales[sample.usable]
        for row, share in enumerate(SHRINKAGES):
            kernel_weights = part.weights(found.shrunken_sizes(share))
            kernel_weights[sample.usable] *= rescale
            K = sample.combine(kernel_weights)
            among = K[np.ix_(train, train)]
            fit = leave_one_out_errors(among, part.problem)
            residual = part.problem.Y - among @ fit.coef
            c = part.problem.costs
            free = part.problem.fit_intercept  # also without an intercept, if kernels are centred
            shift = np.average(residual, axis=0, weights=c) if free else 0.0
            values = K[np.ix_(test, train)] @ fit.coef + shift + part.problem.mean
            errors[row, test] = np.sum((target.Y - values) ** 2, axis=1)
        del part, found  # their matrices, before those of the next fold are computed
    means = [sample.mean_and_spread(own)[0] for own in errors]
    best = errors[int(np.argmin(means))]
    for share, own in zip(SHRINKAGES, errors, strict=True):
        mean, spread = sample.mean_and_spread(own - best)
        if mean <= NEGLIGIBLE_STANDARD_ERRORS * spread / np.sqrt(sample.n_counted):
            return share
    raise AssertionError("The best shrinkage is no worse than itself.")


def folds_of_distinct_samples(
    sample: SizedKernels, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five splits (train, test) with equal samples on the same side.

    A copy of a test sample among the training samples would make learned weights look good. The
    splits depend on the samples only, not on their order, nor on whether a sample of weight two is
    given as two samples.
    """
    first = first_equal_samples(sample)
    some = np.unique(first)
    if len(some) < 2:
        return []
    keys, outputs = sample_keys(sample)[some], sample.target.Y[some].T[::-1]
    if sample.target.kind == "regression":
        some = some[np.lexsort([keys, *outputs])]
    else:  # sort by inputs first: the order of classes must not matter
        some = some[np.lexsort([*outputs, keys])]
    splits = folds(sample.target.take(some), 5, seed)
    return [
        (np.flatnonzero(np.isin(first, some[train])), np.flatnonzero(np.isin(first, some[test])))
        for train, test in splits
    ]


def first_equal_samples(sample: SizedKernels) -> np.ndarray:
    """For every sample, the index of the first sample with the same inputs and targets."""
    K = sample.matrix(np.where(sample.usable, 1.0, 0.0))
    sizes = np.diag(K)
    equal = sizes[:, None] + sizes - 2.0 * K <= EQUAL_DISTANCE * sizes.mean()
    for y in sample.target.Y.T:
        equal &= y[:, None] == y
    np.fill_diagonal(equal, True)
    return np.argmax(equal, axis=1)


def sample_keys(sample: SizedKernels) -> np.ndarray:
    """One number per sample, to sort samples independently of their given order."""
    K = sample.matrix(np.where(sample.usable, 1.0, 0.0))
    # Plain row sums would be zero, because kernels are centred.
    return np.asarray(K @ (sample.problem.costs * np.diag(K)))
