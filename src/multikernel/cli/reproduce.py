"""``multikernel reproduce``.

Every module of :mod:`multikernel.experiments` that has a function ``run`` is an experiment. Its
text begins with what it reproduces. ``run`` understands the keywords ``quick``, ``seed``,
``n_jobs``, ``out`` (a folder) and ``progress``, and gives a result that prints itself and has
``rows``, a sequence of dataclasses. Other options are those of its ``main``.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as o
from .common import Out, command


@command
def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Which experiment to run.", show_default=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: minutes instead of hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder to keep finished rows in; a run goes on there."),
    ] = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """List the tables of the papers that can be computed again, or compute one.

    [bold]Examples[/]

    multikernel reproduce

    multikernel reproduce toy --quick
    """
    say = Out(quiet, as_json)
    known = experiments()
    if table is None:
        width = max(map(len, known), default=0)
        say.text("\n".join(f"{name:<{width}}  {title}" for name, title in known.items()))
        say.result({"experiments": known})
        return
    if table not in known:
        raise ValueError(f"There is no experiment {table!r}. Known: {', '.join(known)}.")
    module = importlib.import_module(f"multikernel.experiments.{table}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    found = module.run(quick=quick, seed=seed, n_jobs=jobs, out=out, progress=say.chatty)
    say.text(str(found))
    say.result({"experiment": table, "quick": quick, "rows": rows_of(found), "text": str(found)})


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


def rows_of(result: Any) -> list[Any]:
    """The rows of a result as plain dictionaries."""
    rows = getattr(result, "rows", ())
    return [asdict(row) if is_dataclass(row) and not isinstance(row, type) else row for row in rows]


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce)
