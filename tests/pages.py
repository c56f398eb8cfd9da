"""Run the blocks of README and the manual, and compare what they print with what is shown.

A page is one script, from its first block to its last. A block ``output`` behind a block ``python``
is what that block prints. In a block ``console`` the lines that begin with ``$`` are commands, of
which those of multikernel are run, in the same folder. Commands that take long (`LONG`) have tests
of their own: only their options are checked here.

``python -m tests.pages --update [PAGE ...]`` writes what the Python blocks print into the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: commands that are not run for a page
LONG = ("demo", "compare", "reproduce", "datasets")
FENCE = re.compile(r"^```(\w[\w-]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    text: str
    line: int  # of its first line, counted from 1
    start: int  # of the fence, in characters
    end: int
    #: the block "output" behind it
    shown: str | None = None


def pages(kind: str) -> list[Path]:
    """README and every page of the manual that has a block of a kind."""
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    kept = [p for p in found if not {"generated", "_build"} & set(p.relative_to(ROOT).parts)]
    return [page for page in kept if blocks(page, kind)]


def blocks(page: Path, *kinds: str) -> list[Block]:
    """The blocks of some kinds, each with the output that is shown behind it."""
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    found = []
    for index, match in enumerate(fences):
        if match[1] not in kinds:
            continue
        after = fences[index + 1] if index + 1 < len(fences) else None
        adjacent = after is not None and not text[match.end() : after.start()].strip()
        shown = after[2] if after is not None and adjacent and after[1] == "output" else None
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(match[1], match[2], line, match.start(), match.end(), shown))
    return found


def run(page: Path, name: str = "page") -> Iterator[tuple[Block, str]]:
    """Run the Python and the commands of a page; yield every block with what it printed."""
    module = types.ModuleType(name)  # dataclasses look up the module that they are defined in
    sys.modules[name] = module
    try:
        for block in blocks(page, "python", "console"):
            if block.kind == "console":
                yield block, "".join(run_command(line) for line in commands(block))
                continue
            # Empty lines in front, so that a traceback names the line of the page.
            code = "\n" * (block.line - 1) + block.text
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)
            yield block, printed.getvalue()
    finally:
        del sys.modules[name]


def commands(block: Block) -> list[list[str]]:
    """The words of every command of multikernel in a block, without comments."""
    found = re.findall(r"^\$ multikernel (.*)$", block.text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in found]


def run_command(words: list[str]) -> str:
    """What a command prints on the standard output; it must succeed."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from multikernel.cli import app

    if words[0] in LONG:
        options = get_command(app).commands[words[0]].params  # type: ignore[attr-defined]
        known = {name for option in options for name in option.opts}
        unknown = [word for word in words if word.startswith("-") and word not in known]
        assert not unknown, f"multikernel {words[0]} has no option {unknown}"
        return ""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"multikernel {' '.join(words)}: {done.output}{done.exception}"
    return done.stdout


def differences(shown: str, printed: str) -> list[str]:
    """Lines that do not agree. Numbers may differ by two units of the last digit that is shown.

    Spaces at the ends of lines do not matter, and a line ``...`` stands for any lines.
    """
    left, right = (
        [line.rstrip() for line in text.strip("\n").split("\n")] for text in (shown, printed)
    )
    if "..." in left:
        cut = left.index("...")
        tail = len(left) - cut - 1
        right = right[:cut] + ["..."] + (right[-tail:] if tail else [])
    wrong = [
        f"shown:   {a}\nprinted: {b}" for a, b in zip(left, right, strict=False) if not agree(a, b)
    ]
    if len(left) != len(right):
        wrong.append(f"{len(left)} lines are shown and {len(right)} were printed")
    return wrong


def agree(shown: str, printed: str) -> bool:
    """Whether two lines are the same but for the last digits of their numbers."""
    words = [" ".join(part.split()) for part in NUMBER.split(shown)]
    if words != [" ".join(part.split()) for part in NUMBER.split(printed)]:
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    for text, other in pairs:
        digits = text.partition("e")[0].partition(".")[2]
        exponent = int(text.partition("e")[2] or 0)
        unit = 10.0 ** (exponent - len(digits)) if digits or "e" in text else 0.0
        values = [float(number.replace("−", "-")) for number in (text, other)]
        if abs(values[0] - values[1]) > 2.001 * unit:
            return False
    return True


def update(page: Path) -> None:
    """Write what the Python blocks of a page print behind them."""
    text = page.read_text(encoding="utf-8")
    results = [pair for pair in run(page) if pair[0].kind == "python" or pair[0].shown is not None]
    for block, printed in reversed(results):
        rest = text[block.end :]
        if block.shown is not None:
            rest = rest[re.match(r"\s*```output\n.*?^```$", rest, re.S | re.M).end() :]  # type: ignore[union-attr]
        lines = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))
        middle = f"\n\n```output\n{lines}\n```" if lines else ""
        text = text[: block.end] + middle + rest
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--update", action="store_true", required=True)
    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("ignore")
    chosen = [page.resolve() for page in parser.parse_args().pages] or pages("python")
    for page in chosen:
        print(page.relative_to(ROOT), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                update(page)
            finally:
                os.chdir(here)


if __name__ == "__main__":
    main()
