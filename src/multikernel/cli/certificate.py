"""``multikernel certificate``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as o
from .common import Out, command


@command
def certificate(
    model: o.Model,
    data: o.Data,
    delta: Annotated[
        float,
        typer.Option(
            "--delta", help="Probability with which the bounds, taken together, may fail."
        ),
    ] = 0.05,
    details: Annotated[
        bool, typer.Option("--details", help="Print every bound, including vacuous ones.")
    ] = False,
    target: o.TargetColumn = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    seed: o.Seed = 0,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Show what theory proves about a model, on the data it was fitted to.

    The data must be the training data, in the same order; that is checked.

    [bold]Example[/]

    multikernel certificate wine.skops wine.csv --delta 0.01
    """
    import numpy as np

    from ..report.about import IMPUTED
    from ..report.findings import find_certificate
    from ..tables import find_target, read_frame
    from .problem import as_table_model, load_model, texts_of, without_unlabelled

    say = Out(quiet, as_json)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format, encoding=encoding, texts=texts_of(loaded))
        table = as_table_model(loaded, frame, target)
    y = None
    if not hasattr(table.estimator, "offset_"):
        frame, _, notes = without_unlabelled(frame, table.target or None, np.arange(len(frame)))
        for note in notes:
            say.note(f"Note: {note}")
        y = find_target(frame, table.target or None, table.task).values
    with say.progress("Computing bounds"):
        found = find_certificate(
            table.estimator,
            table.features(frame),
            y,
            delta,
            unmet=(IMPUTED,) if table.sample_kernels else (),
            random_state=seed,
        )
    say.text(found.verdict)
    if details or not found.vacuous:
        say.text(f"\n{found}")
    else:
        say.note("Use --details to see every bound and what it assumes.")
    say.result(found.to_dict())


def register(app: typer.Typer) -> None:
    app.command("certificate")(certificate)
