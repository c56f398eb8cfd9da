"""docs/design.md describes the code that is there: passes of the waist, and files of the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import multikernel
from multikernel.grams.protocol import CombinedGram, Expansion, Grams

ROOT = Path(multikernel.__file__).parent
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
TEXT = DESIGN.read_text(encoding="utf-8")


def listed(title: str) -> dict[str, bool]:
    """Methods of a table under a heading, and whether an engine must supply them."""
    section = TEXT.split(f"### `{title}`", 1)[1].split("\n#", 1)[0]
    rows = re.findall(r"^\| `(\w+)[^|]*` *\| *(\w+) *\|", section, re.M)
    return {name: kind == "required" for name, kind in rows}


@pytest.mark.parametrize("cls", [Grams, CombinedGram, Expansion])
def test_the_tables_list_the_methods_of_the_protocol(cls):
    public = {
        name
        for base in cls.__mro__
        if base.__module__ == cls.__module__
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, (property, classmethod)))
    }
    assert listed(cls.__name__) == {name: name in cls.__abstractmethods__ for name in public}


def test_the_tree_lists_every_module():
    block = re.search(r"```text tree\n(.*?)```", TEXT, re.S)
    assert block is not None
    drawn: dict[str, set[str]] = {}
    folder = ""
    for line in block[1].splitlines():
        found = re.match(r"(\S+/) +(.*?): (.*)$", line)
        if found:
            folder = found[1].rstrip("/")
            drawn[folder] = set()
            line = found[3]
        drawn[folder] |= {name.strip() for name in line.split(",") if name.strip()}
    there: dict[str, set[str]] = {}
    for init in ROOT.rglob("__init__.py"):
        if init.parent == ROOT:
            continue
        name = init.parent.relative_to(ROOT).as_posix()
        there[name] = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
    assert drawn == there


def test_public_names_of_the_page_exist():
    section = TEXT.split("## The public names", 1)[1].split("\n## ", 1)[0]
    names = set(re.findall(r"\bmk\.(\w+)", section))
    assert len(names) > 40
    for name in names:
        assert hasattr(multikernel, name), name
