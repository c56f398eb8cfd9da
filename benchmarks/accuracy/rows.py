"""Finished measurements on disk: one line of JSON for every (set, split, method)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from multikernel._places import append_line, whole_lines

from . import problems

RESULTS = Path(__file__).parent.parent / "results"
Row = dict[str, Any]


def path(max_train: int, *, quick: bool = False, views: bool = False) -> Path:
    """The file for one size of the training part: other sizes are other results."""
    size = "" if max_train == problems.MAX_TRAIN else f"-{max_train}"
    return RESULTS / f"accuracy{'-views' if views else ''}{'-quick' if quick else ''}{size}.jsonl"


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in whole_lines(path)]


def append(path: Path, row: Row) -> None:
    append_line(path, json.dumps(row))


def missing(
    rows: Iterable[Row], sets: Iterable[str], methods: Iterable[str], splits: int
) -> list[tuple[int, str, str]]:
    """Triples (split, set, method) without a row; all sets get split 0 before any gets split 1."""
    done = {(row["split"], row["set"], row["method"]) for row in rows}
    sets, methods = list(sets), list(methods)
    work = [(i, name, method) for i in range(splits) for name in sets for method in methods]
    return [one for one in work if one not in done]
