"""Entries run, journals written: what finished is not run again until the code changes.

Repetitions are interleaved: a round runs every method of an entry once, and measures the machine's
rates. A process of more than `ONCE` CPU seconds is not repeated. What was too slow for a smaller
problem of the same work is not tried on a larger one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from multikernel._places import write_atomically

from . import environments, machine, problems, runner, table
from .entries import Entry, Run
from .peers import common
from .runner import Outcome

ONCE = 20.0
FOLDER = Path(__file__).parent
SOURCES = (FOLDER.parent / "src" / "multikernel", FOLDER)


def fingerprint() -> str:
    """Changes with the library, the harness, the pins and the processor."""
    digest = hashlib.sha256(machine.cpu_name().encode())
    for folder in SOURCES:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def journal(entry: Entry) -> Path:
    return environments.cache() / "journal" / f"{entry.name.replace(' ', '-')}.json"


def recall(entry: Entry, mark: str) -> dict[str, Any] | None:
    """The journal of an entry that finished with the same code."""
    path = journal(entry)
    if not path.exists():
        return None
    found = dict(json.loads(path.read_text()))
    return found if found["fingerprint"] == mark else None


def estimate(entries: Iterable[Entry], mark: str) -> float:
    """Minutes to go, from earlier journals where there are any."""
    total = 0.0
    for entry in entries:
        if recall(entry, mark) is None:
            path = journal(entry)
            total += json.loads(path.read_text())["minutes"] if path.exists() else entry.minutes
    return total


def measure(
    entry: Entry,
    seconds: float,
    repeats: int | None = None,
    own: bool = False,
    too_slow: Iterable[str] = (),
) -> dict[str, Any]:
    """Run an entry; `own` leaves out what needs an environment of its own."""
    began = time.perf_counter()
    problem, data = problems.MAKERS[entry.maker](entry.n, entry.p)
    shape = (len(problem.y), len(problem.gammas) or problem.X.shape[1], int(problem.X.size))
    chosen = [run for run in entry.runs if not own or run.who in environments.OWN]
    rounds: table.Rounds = {run.key: [] for run in chosen}
    rates: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        common.save(path, problem)
        for number in range(repeats or entry.repeats):
            rates.append(_rates())
            for run in chosen:
                if number and _settled(rounds[run.key]):
                    continue
                if run.key in too_slow:
                    outcome = Outcome(failure=f"over {seconds:g} s on a smaller problem already")
                else:
                    outcome = runner.run(run.who, run.call, run.options, path, seconds, run.threads)
                rounds[run.key].append(outcome)
                _tell(entry, run, number, outcome)
    typical = {name: median(r[name] for r in rates) for name in rates[0]} if rates else {}
    return {
        "entry": entry.name,
        "rows": table.rows(entry, data, shape, rounds, typical),
        "rates": typical,
        "versions": _versions(rounds),
        "minutes": (time.perf_counter() - began) / 60,
        "date": date.today().isoformat(),
    }


def _settled(outcomes: list[Outcome]) -> bool:
    """Failed, or slow enough for one run to tell."""
    return any(o.failure or o.facts["used"] > ONCE for o in outcomes)


def _rates() -> dict[str, float]:
    outcome = runner.parse([sys.executable, str(FOLDER / "machine.py")], 120.0)
    if outcome.failure:
        raise RuntimeError(f"benchmarks/machine.py: {outcome.failure}")
    return dict(outcome.facts)


def _tell(entry: Entry, run: Run, number: int, outcome: Outcome) -> None:
    said = outcome.failure or "  ".join(
        f"{name} {outcome.facts[name]:.4g}"
        for name in ("cpu", "peak_mb", "accuracy", "gap")
        if outcome.facts.get(name) is not None
    )
    print(f"{entry.name:>10}, round {number + 1}: {run.key:<50} {said}", flush=True)


def _versions(rounds: table.Rounds) -> dict[str, str]:
    """Of all peers: ours first, then what others have that differs."""
    found: dict[str, str] = {}
    for key, outcomes in rounds.items():
        for outcome in outcomes:
            for package, version in outcome.facts.get("versions", {}).items():
                name = package
                if found.get(package, version) != version:
                    name = f"{package} of {key.split()[0]}"
                found[name] = version
    return found


def run_all(
    entries: Iterable[Entry],
    seconds: float,
    repeats: int | None = None,
    own: bool = False,
    fresh: bool = False,
) -> Iterator[dict[str, Any]]:
    """The journals of all entries, one after the other, running those that have none."""
    mark = fingerprint()
    mark += " own" if own else ""
    entries = list(entries)
    if not fresh:
        print(f"About {estimate(entries, mark):.0f} minutes to go.", flush=True)
    found: list[dict[str, Any]] = []
    for entry in entries:
        kept = None if fresh else recall(entry, mark)
        if kept is None:
            too_slow = {
                f"{row['who']} {row['method']}"
                for done in found
                for row in done["rows"]
                if row["work"] == entry.work and row["note"].startswith("over ")
            }
            kept = {"fingerprint": mark, **measure(entry, seconds, repeats, own, too_slow)}
            path = journal(entry)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(kept, indent=1))
        found.append(kept)
        yield kept


def facts(journals: list[dict[str, Any]], before: str = "") -> dict[str, str]:
    """What the numbers were made with, for the head of the table.

    `before` are the versions that the table names already, for rows that are not new.
    """
    packages = dict(item.rsplit(" ", 1) for item in before.split(", ") if item)
    for done in journals:
        packages |= done["versions"]
    rates = {
        name: median(done["rates"][name] for done in journals) for name in journals[0]["rates"]
    }
    return {
        "processor": machine.cpu_name(),
        "threads": "1 each, unless the method says otherwise",
        "date": max(done["date"] for done in journals),
        "minutes": f"{sum(done['minutes'] for done in journals):.1f}",
        "float32 exponentials per second": f"{rates['exp32']:.3g}",
        "float64 exponentials per second": f"{rates['exp64']:.3g}",
        "float32 products": f"{rates['flops32'] / 1e9:.3g} Gflop/s",
        "float64 products": f"{rates['flops64'] / 1e9:.3g} Gflop/s",
        "memory": f"{rates['bytes'] / 1e9:.3g} GB/s",
        "versions": ", ".join(f"{name} {version}" for name, version in packages.items()),
    }
