"""From single results to tables in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from . import ranks
from .methods import OURS, PEERS
from .ranks import Errors
from .rows import Row
from .tuned import SPACES, TUNED

#: What relative errors are relative to.
REFERENCE = "HistGradientBoosting"
#: The method that is asked about, the first of these that has been run. The second is the rule
#: that the first uses, by its name.
DEFAULTS = ("default", "loo")
#: A method is compared if it has finished this share of the sets that the default has. A run that
#: is under way would otherwise leave few sets that all methods have.
MIN_COVERAGE = 0.75


def default_of(rows: Sequence[Row]) -> str:
    """Which method stands for our default: the one with the most splits."""
    sizes = {m: len({(r["set"], r["split"]) for r in rows if r["method"] == m}) for m in DEFAULTS}
    return max(DEFAULTS, key=lambda method: sizes[method])


def groups(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Methods that are compared with each other, as far as they have been run."""
    mine = default_of(rows)
    wanted = {
        "defaults": [mine, *PEERS],
        "rules": [m for m in OURS if "loss" not in m and (m not in DEFAULTS or m == mine)],
        "losses": [mine, *(m for m in OURS if "loss" in m)],
        "tuned": [mine, "RBF SVM, tuned", *SPACES, *TUNED],
    }
    sets: dict[str, set[str]] = {}
    for row in rows:
        if row.get("error") is not None:
            sets.setdefault(row["method"], set()).add(row["set"])
    least = MIN_COVERAGE * len(sets.get(mine, ()))
    run = {method for method, finished in sets.items() if len(finished) >= least}
    found = {name: [m for m in methods if m in run] for name, methods in wanted.items()}
    if not run & set(TUNED):
        found["tuned"] = []
    return {name: methods for name, methods in found.items() if len(methods) > 1}


# -- one row per method ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """One method over all sets."""

    method: str
    rank: float
    relative_error: float
    win_rate: float
    p: float
    relative_log_loss: float
    seconds: float
    peak_mb: float


def median(rows: Sequence[Row], method: str, key: str) -> float:
    values = [row[key] for row in rows if row["method"] == method and row.get(key) is not None]
    return float(np.median(values)) if values else float("nan")


def summarise(rows: Sequence[Row], methods: Sequence[str], against: str) -> list[Summary]:
    """One row per method, the best rank first; ``against`` is what errors are relative to."""
    errors = Errors.of(rows, methods)
    mean_ranks = ranks.mean_ranks(errors.means)
    pairs = [ranks.compare(errors.column(m), errors.column(against)) for m in methods]
    others = [j for j, method in enumerate(methods) if method != against]
    corrected = np.ones(len(methods))
    corrected[others] = ranks.holm([pairs[j].p_wilcoxon for j in others])
    out = []
    for j, (method, pair) in enumerate(zip(methods, pairs, strict=True)):
        both = Errors.of(rows, [method, against], "log_loss")
        loss = float("nan")
        if both.sets:
            loss = float(np.exp(np.log(both.column(method) / both.column(against)).mean()))
        used = [row for row in rows if row["set"] in errors.sets]
        out.append(
            Summary(
                method,
                float(mean_ranks[j]),
                pair.relative_error,
                pair.win_rate,
                float(corrected[j]),
                loss,
                median(used, method, "seconds"),
                median(used, method, "peak_mb"),
            )
        )
    return sorted(out, key=lambda row: row.rank)


def summary_table(rows: Sequence[Row], methods: Sequence[str], against: str) -> str:
    """`summarise` as Markdown."""

    def cell(value: float, form: str) -> str:
        return "" if np.isnan(value) else format(value, form)

    lines = [
        f"| method | mean rank | error relative to {against} | better on | p | log loss, relative "
        "| seconds | MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in summarise(rows, methods, against):
        own = row.method == against
        lines.append(
            f"| {row.method} | {row.rank:.2f} | {row.relative_error:.3f} | "
            f"{'' if own else format(row.win_rate, '.0%')} | "
            f"{'' if own else p_text(row.p)} | {cell(row.relative_log_loss, '.2f')} | "
            f"{cell(row.seconds, '.2f')} | {cell(row.peak_mb, '.0f')} |"
        )
    return "\n".join(lines)


def p_text(p: float) -> str:
    return f"{p:.2f}" if p >= 0.01 else f"{p:.1g}"


def duel_table(rows: Sequence[Row], methods: Sequence[str], mine: str) -> str:
    """One method against each of the others, on all sets and splits that the two have finished."""
    others = [method for method in methods if method != mine]
    errors = [Errors.of(rows, [mine, other]) for other in others]
    pairs = [ranks.compare(*found.means.T) for found in errors]
    signs = ranks.holm([pair.p_sign for pair in pairs])
    sums = ranks.holm([pair.p_wilcoxon for pair in pairs])
    lines = [
        f"| {mine} against | splits | won, tied, lost | error relative to it | p (signs) "
        "| p (Wilcoxon) | significantly better on | worse on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for other, found, pair, sign, summed in zip(others, errors, pairs, signs, sums, strict=True):
        better = len(ranks.significant(found, other, mine))
        worse = len(ranks.significant(found, mine, other))
        lines.append(
            f"| {other} | {found.splits[0]} | {pair.wins}, {pair.ties}, {pair.losses} | "
            f"{pair.relative_error:.3f} | {p_text(float(sign))} | {p_text(float(summed))} | "
            f"{better} | {worse} |"
        )
    return "\n".join(lines)


def set_table(rows: Sequence[Row], methods: Sequence[str]) -> str:
    """Mean errors of every set; the smallest in bold."""
    errors = Errors.of(rows, methods)
    lines = ["| set | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name, values in zip(errors.sets, errors.means, strict=True):
        cells = [
            f"**{value:.4f}**" if value <= values.min() + ranks.TIE else f"{value:.4f}"
            for value in values
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# -- everything -----------------------------------------------------------------------------------


def extent(errors: Errors) -> str:
    """How much was run, in words."""
    low, high = errors.splits
    splits = f"{low}" if low == high else f"{low} to {high}"
    return f"{len(errors.sets)} sets, {splits} split{'s' if high > 1 else ''} each"


def tests(errors: Errors) -> str:
    """Friedman's test and Nemenyi's difference, in words."""
    k, n = len(errors.methods), len(errors.sets)
    if k < 3 or n < 2:
        return ""
    p = ranks.friedman(errors.means)
    return (
        f"Friedman's test: p = {p_text(p)}. Mean ranks that differ by less than "
        f"{ranks.critical_difference(k, n):.2f} are not told apart (Nemenyi, 5 %)."
    )


def reference_of(methods: Sequence[str]) -> str:
    """What errors of a group are relative to."""
    return REFERENCE if REFERENCE in methods else methods[0]


def section(rows: Sequence[Row], title: str, methods: Sequence[str]) -> str:
    """All tables of a group of methods, empty if no set has all of them."""
    errors = Errors.of(rows, methods)
    if not errors.sets:
        return ""
    against = reference_of(methods)
    parts = [
        f"## {title}",
        f"{extent(errors)}. {tests(errors)}".strip(),
        summary_table(rows, methods, against),
        duel_table(rows, methods, methods[0]),
        set_table(rows, methods),
    ]
    return "\n\n".join(parts)


def failures(rows: Sequence[Row]) -> str:
    lines = [
        f"- {row['method']} on {row['set']}, split {row['split']}: {row['failed']}"
        for row in rows
        if row.get("failed")
    ]
    return "\n".join(["## Failed", "", *lines]) if lines else ""


def whole(
    rows: Sequence[Row],
    grouped: Callable[[Sequence[Row]], Mapping[str, Sequence[str]]],
) -> str:
    """Every group of methods as a section of one page."""
    parts = [section(rows, title, methods) for title, methods in grouped(rows).items()]
    return "\n\n".join([part for part in [*parts, failures(rows)] if part]) + "\n"
