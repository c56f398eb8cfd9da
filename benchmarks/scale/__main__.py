"""Measure what is not measured yet, and write the tables.

    python -m benchmarks.scale               # everything that takes minutes
    python -m benchmarks.scale rows 10000000 # one measurement
    python -m benchmarks.scale --tables      # the tables, from the rows that are there

Rows are kept in ``benchmarks/results/scale.jsonl``; a measurement that is there is not repeated
(``--again`` repeats it). Times are CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.machine import cpu_name
from benchmarks.scale.problems import SETS, arguments
from benchmarks.scale.tables import write_tables
from multikernel._places import append_line, whole_lines

RESULTS = Path(__file__).parents[1] / "results" / "scale.jsonl"
#: Without memory for the features of all rows: ``streamed ours 0 10000000`` takes half an hour.
STREAMED = ("ours 0", "ours 500", "RBFSampler+SGD 1000", "Nystroem+SGD 1000")
TASKS = [
    "rows 100000",
    "rows 1000000",
    "exact 20000",
    "exact 20000 casp_rmsd",
    *(f"ours {name} {count}" for name in SETS for count in (0, 500)),
    *(
        f"peer {name} {who} {count}"
        for name in SETS
        for who in ("Nystroem+Ridge", "Nystroem+SGD", "RBFSampler+Ridge")
        for count in (1000,)
    ),
    *(f"streamed {who} 1000000" for who in STREAMED),
]


def known() -> dict[str, dict[str, Any]]:
    """The latest row of every task."""
    return {row["task"]: row for row in map(json.loads, whole_lines(RESULTS))}


def measure(task: str) -> dict[str, Any]:
    """Run a task in a process of its own."""
    code = (
        "import json\n"
        "from benchmarks.scale import measure\n"
        "from benchmarks.scale.problems import arguments\n"
        f"name, *rest = arguments({task!r})\n"
        "print('RESULT', json.dumps(getattr(measure, name)(*rest)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
            return found
    raise SystemExit(f"{task} failed:\n{done.stderr[-3000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="*", help="one measurement, such as: rows 1000000")
    parser.add_argument("--again", action="store_true", help="measure what is there once more")
    parser.add_argument("--tables", action="store_true", help="write the tables only")
    options = parser.parse_args()
    tasks = [" ".join(options.task)] if options.task else TASKS
    for task in [] if options.tables else tasks:
        arguments(task)
        if task in known() and not options.again:
            continue
        row = {"task": task, **measure(task)}
        row |= {
            "date": date.today().isoformat(),
            "cpu": cpu_name(),
            "python": platform.python_version(),
        }
        append_line(RESULTS, json.dumps(row))
        print(task, {k: v for k, v in row.items() if k.endswith(("_s", "error", "ratio", "gb"))})
    write_tables(known())


if __name__ == "__main__":
    main()
