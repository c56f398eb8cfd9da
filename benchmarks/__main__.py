"""Ours and the peers, side by side.

    python -m benchmarks [--quick] [--only ENTRY ...] [--fresh] [--own]
    python -m benchmarks --check        ratios of a quick run against the committed table
    python -m benchmarks --plots        draw the plots of the documentation from the table
    python -m benchmarks --list         the entries, with guesses of their minutes

Tables lie in benchmarks/results: bench.csv and bench.md, with --quick quick.csv and quick.md.
Entries that finished are remembered until the code changes, so that a run that was stopped goes on
where it was; --only and --fresh run again.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from . import aims, check, harness, plots, table
from .entries import FULL, QUICK, Entry

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parent.parent / "docs" / "images"
#: CPU seconds that a run may take.
SECONDS, QUICK_SECONDS, REQUEST_SECONDS = 100.0, 30.0, 3600.0
WORDS = (
    "Made by `make bench` (or `make bench-quick`); what the columns mean stands in "
    "`benchmarks/table.py`, what the entries are in `benchmarks/entries.py`, what is aimed at in "
    "`benchmarks/aims.py`. Times are CPU seconds, kernels included."
)


def choose(entries: tuple[Entry, ...], only: list[str] | None) -> list[Entry]:
    if not only:
        return [entry for entry in entries if not entry.on_request]
    unknown = set(only) - {entry.name for entry in entries}
    if unknown:
        sys.exit(
            f"No entry {', '.join(sorted(unknown))}. There are "
            f"{', '.join(entry.name for entry in entries)}."
        )
    return [entry for entry in entries if entry.name in only]


def bench(options: argparse.Namespace) -> None:
    entries = QUICK if options.quick else FULL
    chosen = choose(entries, options.only)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    if any(entry.on_request for entry in chosen):
        seconds = REQUEST_SECONDS
    path = RESULTS / ("quick.csv" if options.quick else "bench.csv")
    before = table.read(path)[1]["versions"] if path.exists() else ""
    done = []
    for one in harness.run_all(
        chosen,
        options.seconds or seconds,
        options.repeats,
        own=options.own,
        fresh=bool(options.fresh or options.only),
    ):
        done.append(one)
        rows = merged(path, [row for one in done for row in one["rows"]], entries)
        table.save(path, rows, harness.facts(done, before), WORDS)
    print(table.markdown(rows))
    print(f"Written: {path} and {path.with_suffix('.md')}")


def merged(path: Path, new: list[table.Row], entries: tuple[Entry, ...]) -> list[table.Row]:
    """New rows among those of a table on disk, in the order of the entries, with their aims."""
    kept = table.read(path)[0] if path.exists() else []
    fresh = {row["entry"] for row in new}
    order = [entry.name for entry in entries]
    rows = [row for row in kept if row["entry"] not in fresh and row["entry"] in order] + new
    rows.sort(key=lambda row: order.index(row["entry"]))
    aims.judge(rows)
    return rows


def compare() -> None:
    path = RESULTS / "quick.csv"
    old, made_with = table.read(path)
    print(f"Against {path}, made on {made_with['processor']}, {made_with['date']}.", flush=True)
    done = list(harness.run_all(QUICK, QUICK_SECONDS, own=True, fresh=True))
    regressions, remarks = check.compare(old, [row for one in done for row in one["rows"]])
    for line in remarks:
        print(f"note: {line}")
    for line in regressions:
        print(f"REGRESSION: {line}")
    if regressions:
        sys.exit(1)
    print("No regression beyond noise.")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", nargs="+", metavar="ENTRY", help="these entries, run again")
    parser.add_argument("--fresh", action="store_true", help="run again what finished before")
    parser.add_argument("--own", action="store_true", help="without peers that are installed apart")
    parser.add_argument("--seconds", type=float, help="CPU seconds that a run may take")
    parser.add_argument("--repeats", type=int, help="rounds")
    parser.add_argument("--check", action="store_true", help="compare a quick run with the table")
    parser.add_argument("--plots", action="store_true", help="draw from the table")
    parser.add_argument("--list", action="store_true", help="the entries")
    options = parser.parse_args()
    # An end from outside goes through `finally`, where the run in progress is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.list:
        for entry in QUICK if options.quick else FULL:
            asked = " (only on request)" if entry.on_request else ""
            print(f"{entry.name:>10}  work {entry.work}  about {entry.minutes:g} min{asked}")
    elif options.check:
        compare()
    elif options.plots:
        for path in plots.draw(table.read(RESULTS / "bench.csv")[0], IMAGES):
            print(f"Written: {path}")
    else:
        bench(options)


if __name__ == "__main__":
    main()
