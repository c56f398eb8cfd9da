"""``multikernel datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._checkout import import_experiments
from . import options as o
from .common import Out, check_places, command


@command
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Data set to describe.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write the data set to this file, with the target in column 'y'."
        ),
    ] = None,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """List the data sets from the literature, describe one, or write it to a file.

    Works only in a source checkout of multikernel, like [bold]reproduce[/].

    [bold]Examples[/]

    multikernel datasets

    multikernel datasets ionosphere --out ionosphere.csv
    """
    import numpy as np

    library = import_experiments("datasets")
    say = Out(quiet, as_json)
    if name is None:
        if out is not None:
            raise ValueError("Name the data set to write: multikernel datasets NAME --out FILE.")
        place = library.folder()
        say.note(f"Local folder: {place or f'none (set {library.VARIABLE} to use one)'}")
        say.text("\n".join(library.names()))
        say.result({"datasets": library.names(), "folder": place})
        return
    check_places(tables=out, force=force)
    with say.progress(f"Loading {name}"):
        bunch = library.load(name)
    say.text(bunch.DESCR)
    if out is not None:
        from ..tables import write_columns

        if hasattr(bunch.data, "tocsr"):
            raise ValueError(
                f"{name} is sparse; load it in Python with mk.datasets.load({name!r})."
            )
        if hasattr(bunch.data, "columns"):
            columns = {str(column): bunch.data[column].tolist() for column in bunch.data.columns}
        else:
            columns = dict(zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True))
        write_columns({**columns, "y": bunch.target}, out)
        say.note(f"Written: {out}")
    shape = bunch.data.shape
    say.result(
        {
            "name": name,
            "samples": shape[0],
            "features": shape[1],
            "task": bunch.task,
            "views": None if not bunch.views else list(bunch.views),
            "source": bunch.source,
            "out": out,
        }
    )


def register(app: typer.Typer) -> None:
    app.command("datasets")(datasets)
