"""From single results to a table: relative errors, wins, ranks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

#: What relative errors are relative to.
REFERENCE = "HistGradientBoosting"
#: Added to errors before they are divided: some are zero.
OFFSET = 1e-3


def mean_errors(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[str], np.ndarray]:
    """Sets, methods, and mean errors over the splits that all methods of a set have finished."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = list(dict.fromkeys(row["set"] for row in rows))
    errors = np.full((len(names), len(methods)), np.nan)
    for i, name in enumerate(names):
        done = [
            {row["split"] for row in rows if row["set"] == name and row["method"] == method}
            for method in methods
        ]
        common = set.intersection(*[some for some in done if some]) if any(done) else set()
        for j, method in enumerate(methods):
            own = [
                row["error"]
                for row in rows
                if row["set"] == name and row["method"] == method and row["split"] in common
            ]
            if own:
                errors[i, j] = np.mean(own)
    return names, methods, errors


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per method, the best first."""
    _, methods, errors = mean_errors(rows)
    against = errors[:, methods.index(REFERENCE)]
    whole = ~np.isnan(errors).any(axis=0)
    ranks = np.array([rankdata(row[whole]) for row in errors]).mean(axis=0)
    out = []
    for j, method in enumerate(methods):
        both = ~np.isnan(errors[:, j]) & ~np.isnan(against)
        mine, theirs = errors[both, j], against[both]
        ratio = (mine + OFFSET) / (theirs + OFFSET)
        different = np.any(mine != theirs)
        seconds = [row["seconds"] for row in rows if row["method"] == method]
        out.append(
            {
                "method": method,
                "sets": int(both.sum()),
                "relative error": float(np.exp(np.log(ratio).mean())),
                "better on": float(np.mean(mine < theirs)),
                "p": float(wilcoxon(np.log(ratio)).pvalue) if different else 1.0,
                "rank": float(ranks[np.flatnonzero(whole).tolist().index(j)])
                if whole[j]
                else float("nan"),
                "seconds": float(np.median(seconds)),
            }
        )
    return sorted(out, key=lambda row: row["relative error"])


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The summary and the errors of every set, as Markdown."""
    lines = [
        f"| method | sets | error relative to {REFERENCE} | better on | p | mean rank | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in summarise(rows):
        rank = "" if np.isnan(row["rank"]) else f"{row['rank']:.1f}"
        lines.append(
            f"| {row['method']} | {row['sets']} | {row['relative error']:.3f} | "
            f"{row['better on']:.0%} | {row['p']:.2g} | {rank} | {row['seconds']:.1f} |"
        )
    names, methods, errors = mean_errors(rows)
    lines += ["", "| set | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name, values in zip(names, errors, strict=True):
        cells = ["" if np.isnan(value) else f"{value:.4f}" for value in values]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
