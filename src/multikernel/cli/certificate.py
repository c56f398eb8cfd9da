"""``multikernel certificate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from . import options as o
from .common import Out, command


@command
def certificate(
    model: o.Model,
    data: o.Data,
    delta: Annotated[
        float, typer.Option("--delta", help="All bounds hold at once but for this probability.")
    ] = 0.05,
    target: o.TargetColumn = None,
    format: o.Format = None,
    seed: o.Seed = 0,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Tell what theory proves about a model, on the data it was fitted to.

    The data must be the training data, in the same order; that is checked.

    [bold]Example[/]

    multikernel certificate wine.skops wine.csv --delta 0.01
    """
    from ..report.findings import find_certificate
    from ..tables import find_target, read_frame
    from .problem import as_table_model, load_model

    say = Out(quiet, as_json)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format)
        table = as_table_model(loaded, frame, target)
    y = None
    if not hasattr(table.estimator, "offset_"):
        y = find_target(frame, table.target or None, table.task).values
    with say.progress("Computing bounds"):
        found = find_certificate(
            table.estimator, table.features(frame), y, delta, random_state=seed
        )
    if table.sample_kernels:
        found = _with_doubt(found)
    say.text(str(found))
    say.result(found.to_dict())


def _with_doubt(found: Any) -> Any:
    """The same certificate for kernels whose widths, scales or fillings came from the sample."""
    note = (
        "kernels fixed before the sample is seen; default kernels take their widths and scales "
        "from it, and imputation its medians (name kernels with --kernels to have this met)"
    )

    def doubt(unmet: tuple[str, ...]) -> tuple[str, ...]:
        known = any(text.startswith("kernels fixed before the sample") for text in unmet)
        return unmet if known else (note, *unmet)

    machines = tuple(
        replace(
            machine,
            bounds=tuple(replace(bound, unmet=doubt(bound.unmet)) for bound in machine.bounds),
        )
        for machine in found.machines
    )
    alignments = tuple(replace(one, unmet=doubt(one.unmet)) for one in found.alignments)
    return replace(found, machines=machines, alignments=alignments)


def register(app: typer.Typer) -> None:
    app.command("certificate")(certificate)
