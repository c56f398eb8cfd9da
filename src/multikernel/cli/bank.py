"""``multikernel bank``."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._places import write_atomically
from . import options as o
from .common import Out, check_places, command

if TYPE_CHECKING:
    import numpy as np


@command
def bank(
    data: o.Data,
    target: o.TargetColumn = None,
    kernels: o.Kernels = None,
    views: o.Views = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Write the alignments to an SVG file.")
    ] = None,
    task: o.Task = o.TaskName.auto,
    impute: o.Impute = None,
    categories: o.Categories = o.CategoriesName.onehot,
    categorical: o.Categorical = None,
    dates: o.Dates = False,
    drop: o.Drop = None,
    sample: o.Sample = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    jobs: o.Jobs = 1,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Show which kernels would be used, and how similar they are.

    Two kernels with an alignment of 1.00 carry the same information; with --target, the alignment
    of each kernel with the target is shown as well.

    [bold]Example[/]

    multikernel bank wine.csv --target quality --picture alignments.svg
    """
    import numpy as np

    from .problem import load_problem

    if picture is not None and picture.suffix.lower() != ".svg":
        raise ValueError(f"Pictures are written as SVG; got {picture.name!r}.")
    say = Out(quiet, as_json)
    check_places(picture, force=force)
    problem = load_problem(
        say,
        data,
        format=format,
        encoding=encoding,
        target=target,
        needs_target=False,
        task=task,
        kernels=kernels,
        views=views,
        impute=impute,
        categories=categories,
        categorical=categorical,
        dates=dates,
        drop=drop,
        sample=sample,
    )
    encoder = problem.encoder(problem.frame)
    X = encoder(problem.frame)
    with say.progress("Aligning kernels"):
        plan, A, with_target = alignments(problem, problem.bank(encoder, X), X, jobs)
    names = plan.names
    say.text(str(plan))
    say.show(_table(names, A, with_target, say.console.width))
    if picture is not None:
        write_atomically(picture, svg(names, A))
        say.note(f"Picture: {picture}")
    degenerate = [name for name, own in zip(names, np.diag(A), strict=True) if own == 0]
    if degenerate:
        say.note(f"Constant on these data, so of no use: {', '.join(degenerate)}")
    say.result(
        {
            "kernels": names,
            "alignments": A,
            "target_alignments": with_target,
            "plan": str(plan),
            "picture": picture,
        }
    )


def alignments(
    problem: Any, kernels: Any, X: Any, n_jobs: int
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The plan, the alignments (p, p) of the kernels with each other, and with the target (p,)."""
    import numpy as np
    from sklearn.preprocessing import label_binarize

    from .._threads import count_threads
    from ..grams.memory import MemoryBudget
    from ..kernels.default_bank import default_bank

    chosen = default_bank(X) if kernels is None else kernels.adapt(X)
    plan = chosen.plan(X)
    grams = plan.grams(X, budget=MemoryBudget.of(None), n_jobs=count_threads(n_jobs))
    Y = np.zeros((X.shape[0], 1))
    if problem.target is not None:
        y = problem.y
        if problem.target.task == "classification":
            y = label_binarize(y, classes=np.unique(y))
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    summary = grams.corrected(True, "multiplicative").summary(Y, products=True)
    assert summary.M is not None
    sizes = np.outer(summary.norms, summary.norms)
    A = np.divide(summary.M, sizes, out=np.zeros_like(summary.M), where=sizes > 0)
    return plan, A, None if problem.target is None else summary.alignments


def _table(names: list[str], A: np.ndarray, with_target: np.ndarray | None, width: int) -> Any:
    """Alignments in per cent on coloured cells, as many as fit the width of the terminal."""
    from rich.table import Table
    from rich.text import Text

    cell, beside, least = 4, 5 + (8 if with_target is not None else 0), 18
    shown = max(1, min(len(names), (width - beside - least) // cell))
    room = max(least, width - beside - cell * shown)
    table = Table(title="Alignments, in %", title_justify="left", box=None, padding=0)
    table.add_column("", justify="right", width=4)
    table.add_column(" kernel", no_wrap=True, overflow="ellipsis", max_width=room)
    if with_target is not None:
        table.add_column("target ", justify="right", width=8)
    for k in range(shown):
        table.add_column(f"{k} ", justify="right", width=cell)
    for k in range(shown):
        cells: list[Any] = [str(k), f" {names[k]}"]
        if with_target is not None:
            cells.append(f"{100 * with_target[k]:.0f} ")
        for l in range(shown):
            ink = "black" if A[k, l] > 0.45 else "white"
            cells.append(Text(f"{100 * A[k, l]:3.0f} ", style=f"{ink} on {_colour(A[k, l])}"))
        table.add_row(*cells)
    if len(names) > shown:
        table.caption = f"{len(names) - shown} more kernels: use --picture or --json"
    return table


def _colour(value: float) -> str:
    """Colour of an alignment, from dark blue at 0 to yellow at 1."""
    ends = ((38, 24, 74), (33, 113, 129), (253, 219, 87))
    t = 2 * min(max(float(value), 0.0), 1.0)
    low, high = ends[min(int(t), 1)], ends[min(int(t), 1) + 1]
    part = t - min(int(t), 1)
    mixed = (round(a + part * (b - a)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{c:02x}" for c in mixed)


def svg(names: list[str], A: np.ndarray) -> str:
    """The alignments as a self-contained SVG picture."""
    p = len(names)
    cell = max(6, min(28, 900 // max(p, 1)))
    left = 12 + 7 * min(max(map(len, names), default=0), 60)
    size = cell * p
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + size + 12} {size + 44}" '
        f'font-family="sans-serif" font-size="{min(12, cell)}">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="18" font-size="14">Centred alignments of {p} kernels</text>',
    ]
    for k, name in enumerate(names):
        y = 28 + k * cell
        shown = escape(name if len(name) <= 60 else f"{name[:57]}...")
        parts.append(
            f'<text x="{left - 6}" y="{y + 0.7 * cell:.1f}" text-anchor="end">{shown}</text>'
        )
        for l in range(p):
            title = f"{escape(name)} and {escape(names[l])}: {A[k, l]:.3f}"
            parts.append(
                f'<rect x="{left + l * cell}" y="{y}" width="{cell}" height="{cell}" '
                f'fill="{_colour(A[k, l])}"><title>{title}</title></rect>'
            )
    return "\n".join([*parts, "</svg>", ""])


def register(app: typer.Typer) -> None:
    app.command("bank")(bank)
