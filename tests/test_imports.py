"""Imports between the folders of the library follow the graph that docs/design.md draws."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import multikernel

ROOT = Path(multikernel.__file__).parent
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
#: Imports inside a function that go against the arrows, each with its reason.
LAZY_UPWARD = {
    ("kernels/bank.py", "grams"),  # KernelBank.plan shows how a bank will be served
}


def drawn() -> dict[str, set[str]]:
    """The lines ``folder -> other, other`` of the design page."""
    block = re.search(r"```text imports\n(.*?)```", DESIGN.read_text(encoding="utf-8"), re.S)
    assert block is not None, "docs/design.md draws no import graph"
    graph = {}
    for line in block[1].strip().splitlines():
        folder, _, others = line.partition("->")
        graph[folder.strip()] = {other.strip() for other in others.split(",") if other.strip()}
    return graph


def folders() -> set[str]:
    return {path.parent.name for path in ROOT.glob("*/__init__.py")}


def imports() -> list[tuple[str, str, bool]]:
    """(file, folder that it imports from, whether inside a function), for other folders only."""
    found = []
    for path in sorted(ROOT.glob("*/**/*.py")):
        parts = path.relative_to(ROOT).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = list(parts[: len(parts) - node.level])
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                target = [*base, *name.split(".")][0]
                if (ROOT / target).is_dir() and target != parts[0]:
                    found.append(("/".join(parts), target, node.col_offset > 0))
    return found


def test_every_folder_is_drawn():
    assert set(drawn()) == folders()


def test_imports_follow_the_arrows():
    graph = drawn()
    wrong = {
        (file, target)
        for file, target, lazy in imports()
        if target not in graph[file.partition("/")[0]]
        and not (lazy and (file, target) in LAZY_UPWARD)
    }
    assert not wrong
    known = {(file, target) for file, target, _ in imports()}
    assert known >= LAZY_UPWARD, "an exception that is no longer needed"


def test_every_arrow_is_used():
    used = {(file.partition("/")[0], target) for file, target, _ in imports()}
    assert {(folder, other) for folder, others in drawn().items() for other in others} == {
        (folder, other) for folder, other in used if other in drawn()[folder]
    }


def test_the_graph_has_no_cycle():
    graph, done = drawn(), set()
    while len(done) < len(graph):
        ready = {folder for folder in set(graph) - done if graph[folder] <= done}
        assert ready, f"cycle among {sorted(set(graph) - done)}"
        done |= ready


@pytest.mark.parametrize("folder", ["grams", "solvers", "learners", "weighting", "problem"])
def test_no_private_module_of_another_folder(folder):
    """Compiled loops are read by their own folder only."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level:
                parts = path.relative_to(ROOT).parts
                full = [*parts[: len(parts) - node.level], *node.module.split(".")]
                private = [part for part in full[1:] if part.startswith("_")]
                assert not private or full[0] == folder, f"{path}:{node.lineno}"
