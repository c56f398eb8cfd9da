"""Numbers and picture of docs/accuracy.md, from the rows that have been kept.

The page is written by hand; blocks between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` are
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from multikernel._places import write_atomically

from . import findings, picture, problems, ranks, rows, table, views
from .ranks import Errors
from .rows import Row

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "accuracy.md"
PICTURE = DOCS / "images" / "accuracy-ranks.svg"
#: Samples of the training parts of the main tables, and of those with more.
MAIN_TRAIN, LARGE_TRAIN = 500, problems.MAX_TRAIN
NOT_RUN = "Not run yet."
#: Sets with few samples for the number of kernels, and the rules that are compared on them.
SMALL = ("sonar", "wdbc", "musk1", "parkinsons")
SHRINKAGES = ("loo", "loo, no shrinkage", "uniform")


def usable(found: Sequence[Row], methods: Sequence[str]) -> bool:
    return len(methods) > 1 and bool(Errors.of(found, methods).sets)


def summary(found: Sequence[Row], name: str) -> str:
    """What was run, the tests, and one line for every method of a group."""
    methods = table.groups(found).get(name, [])
    if not usable(found, methods):
        return NOT_RUN
    errors = Errors.of(found, methods)
    words = f"{table.extent(errors)}. {table.tests(errors)}".strip()
    return f"{words}\n\n{table.summary_table(found, methods, table.reference_of(methods))}"


def against(found: Sequence[Row]) -> str:
    methods = table.groups(found).get("defaults", [])
    if not usable(found, methods):
        return NOT_RUN
    return table.duel_table(found, methods, methods[0])


def answers(found: Sequence[Row]) -> str:
    methods = table.groups(found).get("defaults", [])
    return findings.sentences(found, methods) if usable(found, methods) else NOT_RUN


def lost(found: Sequence[Row]) -> str:
    methods = table.groups(found).get("defaults", [])
    if not usable(found, methods):
        return NOT_RUN
    return findings.losses(Errors.of(found, methods), methods[0])


def single_sets(found: Sequence[Row]) -> str:
    methods = table.groups(found).get("defaults", [])
    return table.set_table(found, methods) if usable(found, methods) else NOT_RUN


def shrinkage(found: Sequence[Row]) -> str:
    """Mean errors on the small sets, with and without shrinkage of the weights."""
    few = [row for row in found if row["set"] in SMALL]
    if not usable(few, SHRINKAGES):
        return NOT_RUN
    errors = Errors.of(few, SHRINKAGES)
    return f"{table.extent(errors)}.\n\n{table.set_table(few, SHRINKAGES)}"


def several_views(found: Sequence[Row]) -> str:
    """Mean error of every method on every set of views, and its CPU seconds."""
    methods = views.groups(found)["several views"]
    if not usable(found, methods):
        return NOT_RUN
    errors = Errors.of(found, methods)
    lines = [
        f"{table.extent(errors)}.",
        "",
        "| method | " + " | ".join(f"{name}, error in %" for name in errors.sets) + " | seconds |",
        "|---" * (len(errors.sets) + 2) + "|",
    ]
    for method in methods:
        cells = []
        for name in errors.sets:
            values = 100 * errors.by_split[name, method]
            spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.1f}{spread}")
        seconds = table.median(found, method, "seconds")
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {seconds:.1f} |")
    return "\n".join(lines)


def versions(found: Sequence[Row]) -> str:
    packages = sorted({row["version"] for row in found if " " in row.get("version", "")})
    return f"Versions: {', '.join(packages)}."


def filled(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """The page with every block replaced; an error names a block that the page does not have."""
    for name, make in blocks.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(
                f"{PAGE.name} has no block {name!r}: add <!-- begin {name} --> and "
                f"<!-- end {name} --> where it belongs."
            )
        content = make()
        text = pattern.sub(lambda m, new=content: f"{m[1]}{new}\n{m[2]}", text)
    return text


def write() -> list[Path]:
    """Bring page and picture up to date."""
    main = rows.read(rows.path(MAIN_TRAIN))
    large = rows.read(rows.path(LARGE_TRAIN))
    of_views = rows.read(rows.path(MAIN_TRAIN, views=True))
    blocks: dict[str, Callable[[], str]] = {
        "defaults": lambda: summary(main, "defaults"),
        "answers": lambda: answers(main),
        "against": lambda: against(main),
        "losses": lambda: lost(main),
        "rules": lambda: summary(main, "rules"),
        "shrinkage": lambda: shrinkage(main),
        "loss functions": lambda: summary(main, "losses"),
        "tuned": lambda: summary(main, "tuned"),
        "large": lambda: summary(large, "defaults"),
        "large answers": lambda: answers(large),
        "views": lambda: several_views(of_views),
        "sets": lambda: single_sets(main),
        "versions": lambda: versions([*main, *large, *of_views]),
    }
    write_atomically(PAGE, filled(PAGE.read_text(), blocks))
    methods = table.groups(main).get("defaults", [])
    if not usable(main, methods):
        return [PAGE]
    errors = Errors.of(main, methods)
    difference = ranks.critical_difference(len(methods), len(errors.sets))
    picture.draw(methods, ranks.mean_ranks(errors.means), difference, PICTURE, bold=methods[0])
    return [PAGE, PICTURE]
