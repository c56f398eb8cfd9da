"""``multikernel reproduce``.

Every module of the package `experiments` in the source checkout that has a function ``run`` is an
experiment. The first paragraph of its docstring says which table or figure it reproduces. ``run``
takes the keywords ``quick``, ``seed``, ``n_jobs``, ``out`` (a folder, in which a later run
continues an interrupted one) and ``progress``, and returns an ``experiments.record.Record``, which
prints and saves itself. ``python -m experiments.NAME`` has further options.
"""

from __future__ import annotations

import ast
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from .._checkout import import_experiments
from . import options as o
from .common import EXPECTED, Out, command


@command
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Experiment to run.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all experiments, one after the other.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small version: minutes instead of hours.")
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for results; an interrupted run resumes from there."
        ),
    ] = Path("results"),
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """List the tables of the papers that can be recomputed, or recompute them.

    Each table is printed next to the published one, and saved as CSV, Markdown and PNG. Works only
    in a source checkout of multikernel.

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
            # Go on: the other experiments may be able to run, and take hours.
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


def run_one(name: str, *, quick: bool, seed: int, jobs: int, out: Path, say: Out) -> Any:
    """Run an experiment, print and save its record, and return that record."""
    out.mkdir(parents=True, exist_ok=True)
    module = import_experiments(name)
    record = module.run(quick=quick, seed=seed, n_jobs=jobs, out=out, progress=say.chatty)
    say.text(str(record))
    for path in record.save(out):
        say.note(f"wrote {path}")
    return record


def experiments() -> dict[str, str]:
    """Return the names of the experiments and what they reproduce, without importing them."""
    found = {}
    (folder,) = import_experiments().__path__
    for path in sorted(Path(folder).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "run" in functions:
            text = ast.get_docstring(tree) or ""
            found[path.stem] = text.partition("\n\n")[0].replace("\n", " ").rstrip(".")
    return found


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce)
