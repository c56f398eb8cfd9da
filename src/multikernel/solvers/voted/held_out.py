"""Decision values of votes at samples that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...learners.left_out import chosen_samples
from ...problem import Target
from .columns import KernelColumns
from .problem import VotedProblem, solve

N_FOLDS = 5
#: Largest sample that is cut into folds; of larger ones, about this many samples are held out once.
MAX_CROSS_FITTED_SAMPLES = 1000
#: Samples of one label count as copies if their keys differ by less, relative to the largest key.
KEY_PRECISION = 1e-9


def held_out_votes(
    columns: KernelColumns,
    target: Target,
    penalties: np.ndarray,
    problems: Callable[[KernelColumns, Target], list[VotedProblem]],
    *,
    tol: float,
    max_iter: int,
) -> np.ndarray:
    """Values of votes, trained with these penalties, at samples they did not see, shape (m, t).

    The samples are those of ``chosen_samples(target, MAX_CROSS_FITTED_SAMPLES)``. A class whose
    samples are all copies of one sample cannot be held out: without it there is nothing to learn
    about this class. The values of its samples are those of votes that saw them.

    Parameters
    ----------
    problems : callable
        Returns the binary problems of a part of the sample.
    """
    rows = chosen_samples(target, MAX_CROSS_FITTED_SAMPLES)[0]
    tests = [rows]
    if len(rows) == columns.n:
        tests = folds_of_copies(columns, target)
    elif len(np.unique(np.delete(target.labels, rows))) < len(np.unique(target.labels)):
        # All samples of a rare class were chosen: hold out half of each class at a time.
        order = rows[np.argsort(target.labels[rows], kind="stable")]
        tests = [np.sort(order[::2]), np.sort(order[1::2])]
    held_out = np.empty((columns.n, target.Y.shape[1]))
    for test in tests:
        others = np.setdiff1d(np.arange(columns.n), test)
        kept = test[~np.isin(target.labels[test], target.labels[others])]
        train = np.sort(np.concatenate([others, kept]))
        part = columns.subset(train)
        points = columns.grams.points(test)
        for j, problem in enumerate(problems(part, target.take(train))):
            found = solve(problem, penalties, tol=tol, max_iter=max_iter)
            held_out[test, j] = part.expand([found.terms]).values(points)[:, 0] + found.intercept
    return held_out[rows]


def folds_of_copies(columns: KernelColumns, target: Target) -> list[np.ndarray]:
    """Test parts of a partition in which copies of a sample stay together.

    Samples are ordered by class and by their mean kernel values, and dealt out to the folds in
    turn, so that the partition depends neither on their order nor on how often one is repeated.
    """
    labels = target.labels
    omega = np.ones(columns.n) if target.sample_weight is None else target.sample_weight
    # Weights that depend on the class keep the sums from vanishing for centred samples.
    share = np.bincount(labels, omega)[labels] / omega.sum()
    products = columns.price(omega * (1.0 + share) / omega.sum())
    size = np.abs(products).max(axis=1)
    key = np.divide(products, size[:, None], where=size[:, None] > 0, out=np.zeros_like(products))
    key = key.sum(axis=0)
    precision = KEY_PRECISION * max(float(np.abs(key).max()), 1e-300)
    groups = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        members = members[np.argsort(key[members], kind="stable")]
        numbers = np.concatenate([[0], np.cumsum(np.diff(key[members]) > precision)])
        groups.append((members, numbers))
    apart = any(numbers[-1] > 0 for _, numbers in groups)
    fold = np.empty(columns.n, dtype=int)
    for members, numbers in groups:
        # If all keys are equal, they do not show which samples are copies.
        fold[members] = (numbers if apart else np.arange(len(members))) % N_FOLDS
    tests = [np.flatnonzero(fold == f) for f in range(N_FOLDS)]
    return [test for test in tests if 0 < len(test) < columns.n]
