"""The table: rows from repeated runs, their ratios, one CSV and one Markdown file.

``cpu_s`` is the median of the repetitions, kernels included; ``given_cpu_s`` leaves the evaluation
of the kernels out, for those that evaluate them first. ``ratio`` is the median over the rounds of
this row's time to that of the entry's yardstick in the same round, ``noise`` the standard deviation
of its logarithm. ``speed_up`` is how many times faster than this row ours is, in the method named
under ``against``. ``peak_mb`` is the high-water mark of the process, ``extra_mb`` what lies above
its level before the fit.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from statistics import median, stdev
from typing import Any

import numpy as np

from multikernel._places import write_atomically

from .entries import Entry, limits
from .runner import Outcome

COLUMNS = (
    *(
        "work",
        "entry",
        "data",
        "n",
        "p",
        "stored",
        "who",
        "method",
        "learns",
        "runs",
        "cpu_s",
        "wall_s",
    ),
    *("given_cpu_s", "ratio", "noise", "against", "speed_up", "peak_mb", "extra_mb", "accuracy"),
    *("gap", "support", "machines", "latency_ms", "limit_s", "times_limit", "aim", "note"),
)
Row = dict[str, Any]
Rounds = dict[str, list[Outcome]]


def rows(
    entry: Entry, data: str, shape: tuple[int, int, int], rounds: Rounds, rates: dict[str, float]
) -> list[Row]:
    """The rows of one entry; `shape` is n, the number of kernels and that of stored values."""
    n, p, stored = shape
    times = {
        key: [o.facts["cpu"] for o in outcomes if not o.failure] for key, outcomes in rounds.items()
    }
    yard = times.get(entry.yardstick, [])
    table = []
    for run in entry.runs:
        if run.key not in rounds:
            continue
        row: Row = dict.fromkeys(COLUMNS, "")
        row |= {"work": entry.work, "entry": entry.name, "data": data, "n": n, "p": p}
        row["stored"] = stored if entry.work == "e" else ""
        row |= {"who": run.who, "method": run.method, "learns": "yes" if run.learns else ""}
        row |= {"against": run.against, "runs": len(times[run.key])}
        table.append(row)
        failures = [o.failure for o in rounds[run.key] if o.failure]
        if failures:
            row["note"] = failures[0]
            continue
        facts = {
            name: _median([o.facts.get(name) for o in rounds[run.key]])
            for name in rounds[run.key][0].facts
        }
        logs = [
            float(np.log(t / yard[min(i, len(yard) - 1)]))
            for i, t in enumerate(times[run.key])
            if yard
        ]
        bound = limits(run, n, p, stored, facts, rates)
        extra = [o.facts["peak_mb"] - o.facts["start_mb"] for o in rounds[run.key]]
        row |= {
            "cpu_s": _short(facts["cpu"]),
            "wall_s": _short(facts["wall"]),
            "given_cpu_s": _short(facts["given_cpu"]),
            "ratio": _short(float(np.exp(median(logs)))) if logs else "",
            "noise": f"{stdev(logs):.3f}" if len(logs) > 1 else "",
            "peak_mb": round(facts["peak_mb"]),
            "extra_mb": round(median(extra)),
            "accuracy": f"{facts['accuracy']:.4f}" if "accuracy" in facts else "",
            "gap": f"{facts['gap']:.1e}" if facts.get("gap") is not None else "",
            "support": _short(facts.get("support")),
            "machines": _short(facts.get("machines")),
            "latency_ms": _short(facts.get("latency_ms")),
            "limit_s": _short(bound),
            "times_limit": _short(facts["cpu"] / bound) if bound else "",
            "note": facts.get("note") or "",
        }
    _compare(table)
    return table


def _compare(table: list[Row]) -> None:
    """Speed-ups of ours; against a run that was stopped, at least the time it was given."""
    own = {row["method"]: row for row in table if row["who"] == "ours" and row["cpu_s"]}
    for row in table:
        mine = own.get(row["against"])
        if mine is None:
            continue
        if row["cpu_s"]:
            row["speed_up"] = _short(float(row["cpu_s"]) / float(mine["cpu_s"]))
        elif row["note"].startswith("over "):
            row["speed_up"] = ">" + _short(float(row["note"].split()[1]) / float(mine["cpu_s"]))


def _median(values: list[Any]) -> Any:
    if all(isinstance(v, int | float) for v in values):
        return median(values)
    return values[0]


def _short(value: Any) -> str:
    """Three digits, without exponents for the sizes that occur."""
    if value is None:
        return ""
    number = float(value)
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def save(path: Path, table: Iterable[Row], facts: dict[str, str], words: str) -> None:
    """Write ``path.csv``, with `facts` in comments at its top, and ``path.md`` for readers."""
    table = list(table)
    text = io.StringIO()
    for name, value in facts.items():
        text.write(f"# {name}: {value}\n")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".csv"), text.getvalue())
    parts = ["# Ours and the peers, side by side", words]
    for work in sorted({row["work"] for row in table}):
        chosen = [row for row in table if row["work"] == work]
        parts += [f"## Work ({work})", markdown(chosen, skip=("work",))]
    parts += ["## Made with", "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    write_atomically(path.with_suffix(".md"), "\n\n".join(parts) + "\n")


def read(path: Path) -> tuple[list[Row], dict[str, str]]:
    """What `save` wrote to a CSV file: rows of strings, and facts."""
    lines = path.read_text().splitlines()
    facts = {}
    for line in lines:
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            facts[name] = value
    body = [line for line in lines if not line.startswith("# ")]
    found = list(csv.DictReader(body))
    missing = set(COLUMNS) - set(found[0] if found else COLUMNS)
    if missing:
        raise ValueError(
            f"{path} lacks the columns {', '.join(sorted(missing))}. It was written by another "
            "version of the harness; make it anew with `make bench` or `make bench-quick`."
        )
    return found, facts


def markdown(table: list[Row], skip: tuple[str, ...] = ()) -> str:
    """A table of the columns that are not empty."""
    head = [c for c in COLUMNS if c not in skip and any(row[c] != "" for row in table)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(row[c]) for c in head)} |" for row in table]
    return "\n".join(lines)
