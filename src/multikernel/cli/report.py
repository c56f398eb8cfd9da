"""``multikernel report``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command, write_report


@command
def report(
    model: o.Model,
    data: o.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the page to this file. \\[default: MODEL with the suffix .html]",
        ),
    ] = None,
    target: o.TargetColumn = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Write an HTML report about a model file.

    DATA are the rows that the model was fitted to, including the target. With other rows, the page
    shows how well the model predicts them.

    [bold]Example[/]

    multikernel report wine.skops wine.csv --out wine.html
    """
    import numpy as np

    from ..tables import find_target, read_frame
    from .problem import as_table_model, load_model, texts_of, without_unlabelled

    say = Out(quiet, as_json)
    out = out or model.with_suffix(".html")
    check_places(out, force=force)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format, encoding=encoding, texts=texts_of(loaded))
        table = as_table_model(loaded, frame, target)
    y, rows = None, np.arange(len(frame))
    notes: list[str] = []
    if not hasattr(table.estimator, "offset_"):
        frame, rows, notes = without_unlabelled(frame, table.target or None, rows)
        y = find_target(frame, table.target or None, table.task).values
    for note in notes:
        say.note(f"Note: {note}")
    about = partial(_about, table, data.name, model, notes, rows)
    title = f"{data.name}: {table.target}"
    page = write_report(
        say, table.estimator, table.features(frame), y, out, title=title, about=about
    )
    say.note(f"Report: {page}")
    say.result({"report": page, "rows": len(frame)})


def _about(table: Any, source: str, model: Path, notes: list[str], rows: Any) -> Any:
    """The summary of the data on the page."""
    from ..report.about import IMPUTED, DataSummary

    return DataSummary(
        source=source,
        target=table.target,
        columns=tuple(table.encoder.names),
        notes=tuple(notes),
        rows=rows + 1,
        model=str(model),
        assumptions=(IMPUTED,) if table.sample_kernels else (),
    )


def register(app: typer.Typer) -> None:
    app.command("report")(report)
