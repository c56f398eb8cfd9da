"""``multikernel reproduce``.

Every module of :mod:`multikernel.experiments` that has a function ``run`` is an experiment. Its
text begins with what it reproduces. ``run`` understands the keywords ``quick``, ``seed``,
``n_jobs``, ``out`` (a folder, in which a run goes on where it stopped) and ``progress``, and gives
a :class:`multikernel.experiments.record.Record`, which prints and saves itself. Other options are
those of ``python -m multikernel.experiments.NAME``.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as o
from .common import EXPECTED, Out, command

if TYPE_CHECKING:
    from ..experiments.record import Record


@command
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Which experiment to run.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all of them, one after the other.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: minutes instead of hours.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Folder for results; an interrupted run goes on there."),
    ] = Path("results"),
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """List the tables of the papers that can be computed again, or compute them.

    Each is printed beside what the paper prints, and saved as CSV, Markdown and PNG.

    [bold]Examples[/]

    multikernel reproduce

    multikernel reproduce combinations --quick

    multikernel reproduce --all --out results
    """
    say = Out(quiet, as_json)
    known = experiments()
    if table is None and not everything:
        width = max(map(len, known), default=0)
        say.text("\n".join(f"{name:<{width}}  {title}" for name, title in known.items()))
        say.result({"experiments": known})
        return
    if table is not None and everything:
        raise ValueError(f"Give the name of an experiment or --all; got {table!r} and --all.")
    if table is not None and table not in known:
        raise ValueError(f"There is no experiment {table!r}. Known: {', '.join(known)}.")
    found: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in known if table is None else [table]:
        try:
            record = run_one(name, quick=quick, seed=seed, jobs=jobs, out=out, say=say)
        except EXPECTED as error:
            # The others may have all they need, and hours to run.
            if table is not None:
                raise
            failed[name] = str(error)
            say.note(f"{name} failed: {error}")
            continue
        found[name] = {
            "rows": [asdict(row) for row in record.rows],
            "claims": [asdict(claim) for claim in record.claims],
            "text": str(record),
        }
    if table is not None:
        say.result({"experiment": table, "quick": quick, **found[table]})
        return
    if failed:
        reasons = "".join(f"\n  {name}: {reason}" for name, reason in failed.items())
        raise ValueError(f"{len(failed)} of {len(known)} experiments did not run:{reasons}")
    say.result({"quick": quick, "experiments": found})


def run_one(name: str, *, quick: bool, seed: int, jobs: int, out: Path, say: Out) -> Record:
    """Run an experiment, show it and save it."""
    out.mkdir(parents=True, exist_ok=True)
    module = importlib.import_module(f"multikernel.experiments.{name}")
    found: Record = module.run(quick=quick, seed=seed, n_jobs=jobs, out=out, progress=say.chatty)
    say.text(str(found))
    for path in found.save(out):
        say.note(f"wrote {path}")
    return found


def experiments() -> dict[str, str]:
    """Names of the experiments and what they reproduce, without importing them."""
    from .. import experiments as package

    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        path = Path(package.__path__[0]) / f"{module.name}.py"
        if not path.is_file():
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "run" in functions:
            text = ast.get_docstring(tree) or ""
            found[module.name] = text.partition("\n\n")[0].replace("\n", " ").rstrip(".")
    return found


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce)
