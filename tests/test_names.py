"""One name, one thing: no two classes of the library share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "multikernel"


def places_of_classes(folder: Path) -> dict[str, list[str]]:
    """The files that define a class, for each class name without leading underscores."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(relative))
    return places


def test_no_class_name_occurs_twice():
    twice = {name: files for name, files in places_of_classes(SOURCE).items() if len(files) > 1}
    assert twice == {}


def test_repeated_names_are_found_behind_underscores(tmp_path):
    (tmp_path / "a.py").write_text("class Twice: ...\n")
    (tmp_path / "b.py").write_text("def f():\n    class _Twice: ...\n")
    assert places_of_classes(tmp_path) == {"Twice": ["a.py", "b.py"]}
