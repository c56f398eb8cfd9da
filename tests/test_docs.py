"""README and the manual keep their word: blocks print what is shown, tables are complete."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import multikernel as mk
from tests import pages
from tests.pages import DOCS, ROOT

PAGES = sorted({*pages.pages("python"), *pages.pages("console")} - {DOCS / "cli.md"})


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_of_a_page_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    if page.name == "gpu.md":
        pytest.importorskip(
            "torch", reason="torch is not installed: pip install 'multikernel[gpu]'"
        )
    monkeypatch.chdir(tmp_path)
    for block, printed in pages.run(page):
        where = f"{name(page)}, line {block.line}"
        if block.shown is None:
            shown = not printed or block.kind == "console"
            assert shown, f"{where}: prints, but no output is shown:\n{printed}"
        else:
            wrong = pages.differences(block.shown, printed)
            update = f"python -m tests.pages --update {name(page)}"
            assert not wrong, f"{where} ({update} writes it anew):\n" + "\n".join(wrong)
    plt.close("all")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("accuracy 0.979", "accuracy  0.977", True),
        ("accuracy 0.979", "accuracy 0.976", False),
        ("3 of 10 kernels", "4 of 10 kernels", False),
        ("1.2e-05 done", "1.4e-05 done", True),
        ("1.2e-05 done", "1.2e-04 done", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\nb", "a", False),
    ],
)
def test_outputs_are_compared_to_the_last_digit_shown(shown, printed, same):
    assert (not pages.differences(shown, printed)) is same


def test_every_guide_page_shows_a_picture_and_an_output():
    for page in sorted((DOCS / "guide").glob("*.md")):
        if page.stem in ("index", "background", "develop"):
            continue
        text = page.read_text(encoding="utf-8")
        assert "![" in text, f"{name(page)} has no picture"
        assert "```output" in text, f"{name(page)} shows no output"


def test_the_reference_names_every_public_object():
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    modules = {"bounds", "plot", "report", "rows", "datasets"}
    assert set(mk.__all__) - listed - modules - {"__version__"} == set()
    assert {f"rows.{n}" for n in mk.rows.__all__} - listed == set()
    assert {f"bounds.{n}" for n in mk.bounds.__all__} - listed == set()


def claims(page):
    """How many claims of a page hold, do not, and are undecided; None without a table of them."""
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| claim \| printed \| ours \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    if not rows:
        return None
    ours = [row.split(" | ")[2] for table in rows for row in table.strip().split("\n")]
    return [ours.count(verdict) for verdict in ("yes", "no", "undecided")]


def test_the_scoreboard_of_the_reproduction_counts_right():
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*\]\(reproduction/(\w+)\.md\) \|(.*)\|$", text, re.MULTILINE)
    experiments = {p.stem for p in (ROOT / "experiments").glob("*.py")}
    found = {p.stem: claims(p) for p in (DOCS / "reproduction").glob("*.md")}
    assert set(found) == {stem for stem, _ in rows} <= experiments
    for stem, row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        assert cells[1] == f"`{stem}`"
        # The claims of "voted" count data sets, those of "spectral" have no printed column.
        if found[stem] is not None and stem != "voted":
            assert [int(cell) for cell in cells[-3:]] == found[stem], stem


def test_targets_and_modules_in_console_blocks_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [*pages.pages("console"), ROOT / "CONTRIBUTING.md"]:
        for block in pages.blocks(page, "console"):
            for target in re.findall(r"^\$ make ([\w-]+)", block.text, re.MULTILINE):
                assert target in targets, f"{name(page)}, line {block.line}: make {target}"
            for module in re.findall(r"python -m (experiments[\w.]*)", block.text):
                assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module


def test_the_table_of_theorems_names_functions_and_tests_that_exist():
    text = (DOCS / "bounds.md").read_text(encoding="utf-8")
    row = r"^\| .+ \| \{func\}`~multikernel\.bounds\.(\w+)` \| (.+) \| `(\w+\.py)::(\w+)` \|$"
    found = re.findall(row, text, re.MULTILINE)
    assert len(found) >= 70
    for function, status, file, test in found:
        source = (ROOT / "tests" / "bounds" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in source and function in source, (function, test)
        parameters = inspect.signature(getattr(mk.bounds, function)).parameters
        assert ("**repaired**" in status) == ("as_printed" in parameters), function


def test_titles_match_the_front_page():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"(?<!!)\[([A-Z][^\[\]]+)\]\(([\w/-]+\.md)\)", text)
    assert len(linked) >= 18
    for shown, target in linked:
        page = (DOCS / target).read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", page, re.MULTILINE)[1]
        assert shown == title, f"{target} is called {title!r} and linked as {shown!r}"


def test_commands_of_the_command_line_page_run(tmp_path, monkeypatch):
    """``wine.csv`` and ``new.csv`` stand for the reader's own files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ("wine.csv", "new.csv")
    for file in names:
        kind = np.arange(48) % 2
        columns = {
            "alcohol": np.round(rng.normal(size=48) + 2 * kind, 3),
            "acids": np.round(rng.normal(size=48), 3),
            "quality": np.where(rng.normal(size=48) > 0, "high", "low"),
            "kind": np.where(kind, "red", "white"),
        }
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    blocks = [block for block, _ in pages.run(DOCS / "cli.md")]
    assert len(blocks) >= 2
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 49
