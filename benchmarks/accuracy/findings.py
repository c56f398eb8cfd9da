"""What the rows say, in sentences: where the default wins, and where it loses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import ranks, table
from .ranks import Errors
from .rows import Row

TREES = ("LightGBM", "XGBoost", "CatBoost")
KERNEL_MACHINE = "RBF SVM, tuned"
#: A set is named among the losses if the error is larger than the best one by this part.
NAMED_LOSS = 1.05


def listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def against_one(errors: Errors, mine: str, other: str) -> str:
    """A sentence on how the default fares against one method."""
    pair = ranks.compare(errors.column(mine), errors.column(other))
    ties = f" (and ties on {pair.ties})" if pair.ties else ""
    return (
        f"Against **{other}** at its default, ours has the smaller mean error on {pair.wins} of "
        f"{len(errors.sets)} sets{ties}: a win rate of {pair.win_rate:.0%}, p = "
        f"{table.p_text(pair.p_sign)} by signs and {table.p_text(pair.p_wilcoxon)} by Wilcoxon's "
        f"test. Its error is {pair.relative_error:.2f} times as large (geometric mean)."
    )


def against_best(errors: Errors, mine: str, others: Sequence[str]) -> str:
    """A sentence on the default against the best of several methods, chosen set by set."""
    best = np.min([errors.column(other) for other in others], axis=0)
    pair = ranks.compare(errors.column(mine), best)
    names = f"{', '.join(others[:-1])} and {others[-1]}"
    ties = f" (and ties on {pair.ties})" if pair.ties else ""
    return (
        f"Against **the best of {names}**, all at their defaults and the best chosen for every set "
        f"by its test error, which favours them, ours wins on {pair.wins} of {len(errors.sets)} "
        f"sets{ties}: {pair.win_rate:.0%}, p = {table.p_text(pair.p_sign)} by signs and "
        f"{table.p_text(pair.p_wilcoxon)} by Wilcoxon's test; relative error "
        f"{pair.relative_error:.2f}."
    )


def on_single_sets(errors: Errors, mine: str, other: str) -> str:
    """A sentence on the sets where two methods differ by the corrected t-test."""
    worse = ranks.significant(errors, mine, other)
    surely = ranks.significant(errors, mine, other, corrected=True)
    better = ranks.significant(errors, other, mine)
    held = f"{listed(surely)} after Holm's correction for the number of sets" if worse else ""
    return (
        f"Set by set (corrected resampled t-test, two-sided, 5 %), ours is significantly worse "
        f"than **{other}** on {len(worse)} of {len(errors.sets)} sets"
        f"{': ' + listed(worse) + ' (' + held + ')' if worse else ''}; significantly better on "
        f"{len(better)}{': ' + listed(better) if better else ''}."
    )


def losses(errors: Errors, mine: str) -> str:
    """Sets where another method is clearly better, the largest loss first."""
    means = errors.means
    own = means[:, errors.methods.index(mine)]
    best = means.argmin(axis=1)
    ratios = (own + ranks.OFFSET) / (means.min(axis=1) + ranks.OFFSET)
    lines = []
    for i in np.argsort(-ratios):
        if ratios[i] < NAMED_LOSS:
            break
        winner = errors.methods[best[i]]
        name = errors.sets[i]
        better = [
            errors.methods[j] for j in np.argsort(means[i], kind="stable") if means[i, j] < own[i]
        ]
        sure = name in ranks.significant(errors, mine, winner)
        lines.append(
            f"| {name} | {own[i]:.4f} | {winner} | {means[i, best[i]]:.4f} | "
            f"{'yes' if sure else 'no'} | {len(better)} of {len(errors.methods) - 1} |"
        )
    head = [
        "| set | our error | best method | its error | significant | methods that beat ours |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *lines]) if lines else "No method is better by 5 % on any set."


def sentences(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """The questions of the page, answered from all splits that the methods in question have."""
    mine = table.default_of(rows)
    found = []
    if table.REFERENCE in methods:
        errors = Errors.of(rows, [mine, table.REFERENCE])
        found.append(against_one(errors, mine, table.REFERENCE))
    trees = [name for name in TREES if name in methods]
    if len(trees) > 1:
        found.append(against_best(Errors.of(rows, [mine, *trees]), mine, trees))
    if KERNEL_MACHINE in methods:
        errors = Errors.of(rows, [mine, KERNEL_MACHINE])
        found.append(on_single_sets(errors, mine, KERNEL_MACHINE))
    return "\n".join(f"- {sentence}" for sentence in found)
