"""The tables of ``benchmarks/results/scale.md`` from measured rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multikernel._places import write_atomically

Known = dict[str, dict[str, Any]]
RESULTS = Path(__file__).parents[1] / "results" / "scale.md"


def write_tables(known: Known) -> None:
    """Write all tables for which there are rows."""
    parts = ["# Learning from features: time, memory and error\n"]
    parts.append("Made by `python -m benchmarks.scale`; CPU seconds on one thread.\n")
    parts += [rows_table(known), exact_table(known), peers_table(known), streamed_table(known)]
    write_atomically(RESULTS, "\n".join(part for part in parts if part))


def rows_table(known: Known) -> str:
    found = sorted(
        (row for task, row in known.items() if task.startswith("rows ")), key=lambda r: r["n"]
    )
    if not found:
        return ""
    lines = [
        "## Rows\n",
        "28 columns, 50 Gaussians with 40 features each, `alignf`, squared loss. *products* is the "
        "time of the matrix products alone, *refit* the slowest of another constant, another rule "
        "and a joint rule from the same sums.\n",
        "| rows | CPU s | of the products | rows / s | refit, part of the pass | peak memory, GB |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        lines.append(
            f"| {row['n']:,} | {row['cpu_s']:.1f} | {row['ratio']:.2f} | "
            f"{row['n'] / row['cpu_s']:,.0f} | {max(row['refits_s']) / row['cpu_s']:.2%} | "
            f"{row['peak_gb']:.2f} |"
        )
    if len(found) > 1:
        slope = exponent(found)
        lines.append(f"\nTime grows with the number of rows to the power {slope:.2f}.")
    return "\n".join(lines) + "\n"


def exponent(found: list[dict[str, Any]]) -> float:
    """The slope of log time over log rows."""
    logs = np.log([[row["n"], row["cpu_s"]] for row in found])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def exact_table(known: Known) -> str:
    found = [row for task, row in known.items() if task.startswith("exact ")]
    if not found:
        return ""
    lines = [
        "## Against the exact fit\n",
        "Three Gaussians on standardised columns (eight generated ones, nine of casp_rmsd), equal "
        "weights, alpha = 1; error on 5,000 further samples.\n",
        "| data | samples | rank | RMSE, features | RMSE, exact | CPU s, features | exact |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        lines.append(
            f"| {row.get('data', 'generated')} | {row['n']:,} | {row['rank']} | "
            f"{row['features_rmse']:.4f} | {row['exact_rmse']:.4f} | "
            f"{row['features_cpu_s']:.1f} | {row['exact_cpu_s']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def peers_table(known: Known) -> str:
    found = [(t.split(), row) for t, row in known.items() if t.startswith(("ours ", "peer "))]
    if not found:
        return ""
    lines = [
        "## Against scikit-learn\n",
        "Ours is `approximation=mk.Nystroem()`, with 2,000 landmarks or fewer, the default bank "
        "and rule, and the squared loss; scikit-learn chooses the width of one Gaussian (4 "
        "values) and the penalty (3) by 3 folds. *one fit* is the time of its last fit alone. "
        "Errors are shares of wrong labels, or root mean squared errors relative to the standard "
        "deviation.\n",
        "| set | method | features | error | CPU s | one fit | peak memory, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for words, row in sorted(found, key=lambda item: (item[0][1], item[0][0], item[0][2])):
        who = "ours" if words[0] == "ours" else words[2]
        once = row.get("one_fit_cpu_s", row["cpu_s"])
        lines.append(
            f"| {words[1]} | {who} | {row['features']:,} | {row['error']:.4f} | "
            f"{row['cpu_s']:.1f} | {once:.1f} | {row['peak_gb']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def streamed_table(known: Known) -> str:
    found = [(t.split(), row) for t, row in known.items() if t.startswith("streamed ")]
    if not found:
        return ""
    lines = [
        "## Against scikit-learn, rows in chunks\n",
        "28 columns, of which six matter, and noise. Ours as above; scikit-learn chooses the width "
        "of one Gaussian and the penalty on 50,000 rows as above, then reads all rows once "
        "(`SGDRegressor.partial_fit`). Errors are those of the function without noise, relative "
        "to its standard deviation.\n",
        "| rows | method | features | error | CPU s | peak memory, GB |",
        "|---|---|---|---|---|---|",
    ]
    for words, row in sorted(found, key=lambda item: (int(item[0][3]), item[0][1:])):
        lines.append(
            f"| {int(words[3]):,} | {words[1]} | {row['features']:,} | {row['error']:.4f} | "
            f"{row['cpu_s']:.1f} | {row['peak_gb']:.2f} |"
        )
    return "\n".join(lines) + "\n"
