"""How well defaults predict.

    python -m benchmarks.accuracy [--quick] [--splits N] [--sets ...] [--methods ...]
    python -m benchmarks.accuracy --views        sets of several views
    python -m benchmarks.accuracy --table        the table of what has been run
    python -m benchmarks.accuracy --docs         numbers and picture of docs/accuracy.md

Every finished (set, split, method) is a line of benchmarks/results/accuracy.jsonl (another file for
another --max-train), so that a run that was stopped goes on where it was. LightGBM, XGBoost and
CatBoost are installed into an environment of their own, in which all methods run; with --here they
take part where they are installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.progress import track

from benchmarks import environments
from benchmarks.runner import THREADS
from multikernel._places import write_atomically

from . import measure, methods, page, problems, rows, table, tuned, views
from .methods import Maker

#: Splits of every set, in a quick run and otherwise.
QUICK_SPLITS, SPLITS = 3, 10
#: What --methods understands besides names of methods.
GROUPS: dict[str, tuple[str, ...]] = {
    "ours": tuple(methods.OURS),
    "peers": tuple(methods.PEERS),
    "tuned": tuple(tuned.TUNED),
}
TABLES: dict[str, Maker] = {**methods.OURS, **methods.PEERS, **tuned.TUNED}


def chosen(named: list[str] | None, known: Mapping[str, Maker]) -> list[str]:
    """The methods that --methods names, by themselves or as a group; all by default."""
    if not named:
        return list(known)
    names = [name for one in named for name in GROUPS.get(one, (one,))]
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(
            f"--methods: {unknown[0]!r} is not known. "
            f"Groups: {', '.join(GROUPS)}. Methods: {', '.join(map(repr, known))}."
        )
    return names


def run(options: argparse.Namespace) -> None:
    """Measure whatever has no row yet."""
    path = rows.path(options.max_train, quick=options.quick, views=options.views)
    known = views.METHODS if options.views else TABLES
    if options.views:
        sets: tuple[str, ...] = problems.VIEWS
    else:
        sets = problems.QUICK if options.quick else problems.TABLES
    named = options.methods
    if options.quick and not named and not options.views:
        named = list(methods.QUICK)
    splits = options.splits or (QUICK_SPLITS if options.quick else SPLITS)
    work = rows.missing(rows.read(path), options.sets or sets, chosen(named, known), splits)
    for split, name, method in track(work, description="fits"):
        found = measure.run(method, known[method], problems.load(name, split, options.max_train))
        if found is not None:
            rows.append(path, {"set": name, "split": split, "method": method, **found})


def in_environment(arguments: list[str]) -> int:
    """Run this program again, in the environment that has the boosters."""
    root = environments.ROOT
    try:
        python = environments.python("boosters")
    except environments.InstallationError as reason:
        print(f"The boosters could not be installed ({reason}); running without them.")
        python = Path(sys.executable)
    searched = os.pathsep.join([str(root / "src"), str(root)])
    # On one thread, unless the environment says otherwise, seconds of methods are comparable.
    single = {**dict.fromkeys(THREADS, "1"), **os.environ, "PYTHONPATH": searched}
    command = [str(python), "-m", __package__, "--here", *arguments]
    return subprocess.call(command, cwd=root, env=single)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="eight small sets, four methods")
    parser.add_argument("--views", action="store_true", help="the sets of several views")
    parser.add_argument("--splits", type=int, help=f"splits of every set ({SPLITS}, quick: 3)")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument(
        "--methods", nargs="+", help=f"only these methods, or groups: {', '.join(GROUPS)}"
    )
    parser.add_argument("--max-train", type=int, default=problems.MAX_TRAIN)
    parser.add_argument("--table", action="store_true", help="print the table, run nothing")
    parser.add_argument("--docs", action="store_true", help="write docs/accuracy.md, run nothing")
    parser.add_argument("--here", action="store_true", help="use this interpreter's packages")
    options = parser.parse_args()
    if options.docs:
        for made in page.write():
            print(f"Written: {made}")
        return
    if not options.table:
        if not options.here:
            sys.exit(in_environment(sys.argv[1:]))
        run(options)
    path = rows.path(options.max_train, quick=options.quick, views=options.views)
    found = rows.read(path)
    if found:
        text = table.whole(found, views.groups if options.views else table.groups)
        write_atomically(path.with_suffix(".md"), text)
        print(text)


if __name__ == "__main__":
    main()
