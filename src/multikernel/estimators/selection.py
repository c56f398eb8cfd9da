"""Which candidate of a search is taken, given the scores of all folds."""

from __future__ import annotations

import numpy as np

SELECTIONS = ("best", "one-standard-error")
#: Mean scores that differ by less are the same.
TIE = 1e-12


def select(scores: np.ndarray, selection: str) -> tuple[int, int]:
    """The chosen (weighting, value) of scores of shape (n_splits, n_weightings, n_values).

    Of values with the same score, the one in the middle is taken. ``"one-standard-error"`` takes
    the first weighting whose best mean score is at most one standard error (of the best one's
    scores over the splits) below the best mean score of all; ``"best"`` takes the best.
    """
    mean = scores.mean(axis=0)
    if not np.any(np.isfinite(mean)):
        raise ValueError("Every cross-validation score is NaN; check scoring and the folds.")
    mean = np.where(np.isfinite(mean), mean, -np.inf)
    tops = mean.max(axis=1)
    rule = int(np.argmax(tops))
    if selection == "one-standard-error" and len(scores) > 1:
        of_best = scores[:, rule, middle_of_best(mean[rule])]
        allowed = float(of_best.std(ddof=1)) / np.sqrt(len(of_best))
        rule = int(np.argmax(tops >= tops.max() - allowed))
    return rule, middle_of_best(mean[rule])


def middle_of_best(scores: np.ndarray) -> int:
    """The place of the largest score; of several equal ones, the middle one."""
    best = np.flatnonzero(scores >= scores.max() - TIE * max(1.0, abs(float(scores.max()))))
    return int(best[(len(best) - 1) // 2])
