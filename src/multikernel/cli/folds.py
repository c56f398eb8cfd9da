"""The folds of cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from .common import counted

Splits = list[tuple[np.ndarray, np.ndarray]]
#: Number of folds of a training set, on which parameters are chosen.
INNER_FOLDS = 3


def folds_for(y: Any, classifies: bool, folds: int, seed: int, groups: Any = None) -> Any:
    """Shuffled folds: at least two, and at most as many as the smallest class has samples."""
    if groups is not None:
        return grouped_splits(y, classifies, folds, seed, groups)
    if not classifies:
        # R² needs two rows in every part.
        return KFold(max(2, min(folds, len(y) // 2)), shuffle=True, random_state=seed)
    smallest = int(np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(max(2, min(folds, smallest)), shuffle=True, random_state=seed)


def note_of_small_classes(y: Any, folds: int) -> str:
    """A sentence about the smallest class, if it has fewer rows than folds were requested."""
    labels, counts = np.unique(y, return_counts=True)
    small, k = labels[np.argmin(counts)].item(), int(counts.min())
    if k >= folds:
        return ""
    return (
        f"Class {small!r} has {counted(k, 'row')}, so there are {max(2, min(folds, k))} folds "
        f"instead of {folds}. Is it a typing error for another class, or can it be left out?"
    )


def grouped_splits(y: Any, classifies: bool, folds: int, seed: int, groups: Any) -> Splits:
    """Folds that share no group, as row numbers, because model files cannot hold splitters."""
    n_groups = len(np.unique(groups))
    if n_groups < folds:
        raise ValueError(
            f"--groups: {folds} folds need at least as many groups; there are {n_groups}. "
            f"Choose fewer with --folds."
        )
    cls = StratifiedGroupKFold if classifies else GroupKFold
    splitter = cls(folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def repeated_splits(
    y: Any, classifies: bool, folds: int, repeats: int, seed: int, groups: Any = None
) -> Splits:
    """The splits of a comparison: new folds for every repeat."""
    if groups is not None:
        splits = [
            split
            for repeat in range(repeats)
            for split in grouped_splits(y, classifies, folds, seed + repeat, groups)
        ]
        refuse_lone_groups(splits, groups, folds)
        return splits
    cls: Any = RepeatedStratifiedKFold if classifies else RepeatedKFold
    splitter = cls(n_splits=folds, n_repeats=repeats, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def refuse_lone_groups(splits: Splits, groups: Any, folds: int) -> None:
    """Raise an error if a training part holds rows of one group only: it cannot be split again."""
    if all(len(np.unique(groups[train])) > 1 for train, _ in splits):
        return
    n_groups = len(np.unique(groups))
    advice = (
        "compare needs at least three groups; fit can do with two."
        if n_groups == 2
        else f"Use more folds: --folds {folds + 1}."
    )
    raise ValueError(
        f"--groups: with {folds} folds of {n_groups} groups, a training part has rows of one group "
        f"only, but parameters are chosen by cross-validation between its groups. {advice}"
    )


def inner_folds(y: Any, classifies: bool, seed: int, groups: Any = None) -> Any:
    """Folds of a training set to choose parameters on: their number, or splits by group."""
    if groups is None:
        return INNER_FOLDS
    folds = min(INNER_FOLDS, len(np.unique(groups)))
    return grouped_splits(y, classifies, folds, seed, groups)
