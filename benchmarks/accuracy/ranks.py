"""Tests over data sets: ranks, critical differences, win rates, corrected resampled t-tests.

Friedman's test asks whether mean ranks differ at all, Nemenyi's critical difference which of them
do (Demšar 2006). Two methods are compared by signs and by Wilcoxon's test over the sets, and on one
set over its splits by the t-test of Nadeau and Bengio (2003).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range, wilcoxon

from multikernel.cli.leaderboard import paired_t

from .rows import Row

#: Added to errors before they are divided: some are zero.
OFFSET = 1e-3
#: Differences of mean errors below this are ties: one number computed in two ways.
TIE = 1e-12
LEVEL = 0.05


@dataclass(frozen=True)
class Errors:
    """Errors of some methods on the sets and splits that all of them have finished.

    Attributes
    ----------
    sets, methods : lists of str
    by_split : dict from (set, method) to array of shape (splits,)
    overlaps : dict from set to float
        ``n_test / n_train`` if both parts make up the set: the term that Nadeau and Bengio add to
        ``1 / splits``. It stands for the share of test samples that two splits have in common, and
        is computed from that share where training parts are smaller.
    """

    sets: list[str]
    methods: list[str]
    by_split: dict[tuple[str, str], np.ndarray]
    overlaps: dict[str, float]

    @classmethod
    def of(cls, rows: Sequence[Row], methods: Sequence[str], key: str = "error") -> Errors:
        """What ``rows`` have in common for these methods; ``key`` names another measure."""
        found: dict[tuple[str, str], dict[int, float]] = {}
        overlaps: dict[str, float] = {}
        for row in rows:
            if row["method"] in methods and row.get(key) is not None:
                found.setdefault((row["set"], row["method"]), {})[row["split"]] = row[key]
                shared = row["test"] / row["samples"]
                overlaps[row["set"]] = shared / (1.0 - shared)
        by_split = {}
        sets = []
        for name in dict.fromkeys(row["set"] for row in rows):
            done = [found.get((name, method), {}) for method in methods]
            common = sorted(set.intersection(*map(set, done))) if done else []
            if common:
                sets.append(name)
                for method, values in zip(methods, done, strict=True):
                    by_split[name, method] = np.array([values[split] for split in common])
        return cls(sets, list(methods), by_split, overlaps)

    @property
    def means(self) -> np.ndarray:
        """Mean errors, shape (sets, methods)."""
        return np.array(
            [[self.by_split[name, m].mean() for m in self.methods] for name in self.sets]
        ).reshape(len(self.sets), len(self.methods))

    @property
    def splits(self) -> tuple[int, int]:
        """The smallest and largest number of splits of a set."""
        numbers = [len(self.by_split[name, self.methods[0]]) for name in self.sets]
        return min(numbers), max(numbers)

    def column(self, method: str) -> np.ndarray:
        """Mean errors of one method, shape (sets,)."""
        return self.means[:, self.methods.index(method)]


# -- all methods ----------------------------------------------------------------------------------


def mean_ranks(means: np.ndarray) -> np.ndarray:
    """Mean rank of every column, 1 for the smallest; equal entries share their ranks."""
    return np.asarray(rankdata(np.round(means, 12), axis=1).mean(axis=0))


def friedman(means: np.ndarray) -> float:
    """p-value of the hypothesis that all columns have the same distribution of ranks."""
    return float(friedmanchisquare(*np.round(means, 12).T).pvalue)


def critical_difference(n_methods: int, n_sets: int, level: float = LEVEL) -> float:
    """Nemenyi's: mean ranks that differ by less are not told apart.

    ``q sqrt(k (k + 1) / (6 N))``, where q is the quantile of the studentised range over sqrt(2).
    """
    q = studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """p-values corrected for their number, by Holm's method."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    grown = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty_like(p)
    out[order] = np.minimum(grown, 1.0)
    return out


# -- two methods ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One method against another over the sets.

    Attributes
    ----------
    wins, ties, losses : int
        Sets on which the mean error is smaller, equal, larger.
    relative_error : float
        Geometric mean of the ratios of errors; below 1 where the first is better.
    p_sign, p_wilcoxon : float
        Two-sided p-values of the signs and of the logarithms of the ratios.
    """

    wins: int
    ties: int
    losses: int
    relative_error: float
    p_sign: float
    p_wilcoxon: float

    @property
    def win_rate(self) -> float:
        """Share of sets won, a tie being half a win."""
        return (self.wins + self.ties / 2) / (self.wins + self.ties + self.losses)


def compare(mine: np.ndarray, theirs: np.ndarray) -> Comparison:
    """Compare mean errors of two methods on the same sets."""
    ties = np.abs(mine - theirs) <= TIE
    wins = int(np.sum((mine < theirs) & ~ties))
    losses = int(np.sum((mine > theirs) & ~ties))
    logs = np.where(ties, 0.0, np.log((mine + OFFSET) / (theirs + OFFSET)))
    decided = wins + losses
    return Comparison(
        wins,
        int(ties.sum()),
        losses,
        float(np.exp(logs.mean())),
        float(binomtest(wins, decided).pvalue) if decided else 1.0,
        float(wilcoxon(logs).pvalue) if decided else 1.0,
    )


def significant(
    errors: Errors, worse: str, better: str, *, corrected: bool = False, level: float = LEVEL
) -> list[str]:
    """Sets on which ``worse`` has the larger error, by two-sided corrected t-tests over splits.

    ``corrected`` counts the sets as well, by Holm's method.
    """
    p_values, larger = [], []
    for name in errors.sets:
        differences = errors.by_split[name, worse] - errors.by_split[name, better]
        larger.append(bool(differences.mean() > 0))
        overlap = errors.overlaps[name]
        if len(differences) > 1:
            one_sided = min(paired_t(differences, overlap), paired_t(-differences, overlap))
        else:
            one_sided = 0.5
        p_values.append(min(2.0 * one_sided, 1.0))
    p = holm(p_values) if corrected else np.array(p_values)
    return [name for name, q, yes in zip(errors.sets, p, larger, strict=True) if q < level and yes]
