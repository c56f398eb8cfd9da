"""The Python of the manual runs: a page is one script, from its first block to its last."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    DOCS / "start.md",
    DOCS / "guide.md",
    DOCS / "extending.md",
    DOCS / "coming-from.md",
    *sorted(page for page in (DOCS / "guide").glob("*.md") if "```python" in page.read_text()),
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the line that it begins on."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found, f"{page.name} has no Python to run"
    module = types.ModuleType("page")  # dataclasses look up the module that they are defined in
    monkeypatch.setitem(sys.modules, "page", module)
    for line, code in found:
        # Empty lines in front, so that a traceback names the line of the page.
        code = "\n" * (line - 1) + code
        exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)
    plt.close("all")
