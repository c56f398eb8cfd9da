"""Choice of a candidate from the scores of all folds."""

from __future__ import annotations

import numpy as np

SELECTIONS = ("best", "one-standard-error")
#: Mean scores are tied if they differ by less than this, relative to scores above 1.
TIE = 1e-12


def select(scores: np.ndarray, selection: str) -> tuple[int, int]:
    """The chosen (weighting, value) of scores of shape (n_splits, n_weightings, n_values).

    Of values with tied scores, the middle one is taken. ``"one-standard-error"`` takes
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
    """Index of the largest score; of several tied ones, the middle one."""
    best = np.flatnonzero(scores >= scores.max() - TIE * max(1.0, abs(float(scores.max()))))
    return int(best[(len(best) - 1) // 2])
