"""``multikernel predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command


@command
def predict(
    model: o.Model,
    data: o.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for the predictions: .csv .tsv .parquet .npz .json"),
    ] = None,
    target: o.TargetColumn = None,
    format: o.Format = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Predict with a model file.

    Without --out the predictions are printed as CSV. Where the data hold the target as well, the
    score is told.

    [bold]Example[/]

    multikernel predict wine.skops new-wines.csv --out predictions.csv
    """
    from ..tables import read_frame, write_columns
    from .problem import as_table_model, load_model

    say = Out(quiet, as_json)
    check_places(tables=out)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format)
        table = as_table_model(loaded, frame, target)
    with say.progress(f"Predicting {len(frame)} rows"):
        columns = predictions(table.estimator, table.features(frame))
    score = score_of(table, frame, columns["prediction"])
    if out is not None:
        write_columns(columns, out)
        say.note(f"{len(frame)} predictions: {out}")
    else:
        say.text(as_csv(columns))
    if score is not None:
        name, value = score
        say.note(f"{name} on the target {table.target!r} in the data: {value:.4f}")
    say.result(
        {
            "rows": len(frame),
            "out": out,
            "score": None if score is None else {"name": score[0], "value": score[1]},
            **({} if out is not None else {"columns": columns}),
        }
    )


def predictions(estimator: Any, X: Any) -> dict[str, Any]:
    """The answers, and the numbers behind them where there are classes."""
    import numpy as np

    answers = np.asarray(estimator.predict(X))
    if answers.ndim == 2:
        return {"prediction": answers[:, 0]} | {
            f"prediction_{j}": answers[:, j] for j in range(1, answers.shape[1])
        }
    columns: dict[str, Any] = {"prediction": answers}
    if hasattr(estimator, "decision_function"):
        decisions = np.asarray(estimator.decision_function(X))
        if decisions.ndim == 1:
            columns["decision"] = decisions
        else:
            for j, label in enumerate(estimator.classes_):
                columns[f"decision_{label}"] = decisions[:, j]
    return columns


def score_of(table: Any, frame: Any, answers: Any) -> tuple[str, float] | None:
    """Accuracy or R², where the data have the target in every row."""
    import numpy as np

    from ..tables import DataError, find_target

    if table.target not in frame.columns or not hasattr(table.estimator, "score"):
        return None
    try:
        truth = find_target(frame, table.target, table.task).values
    except DataError:
        return None  # unknown or constant: there is nothing to compare with
    if table.task == "classification":
        return "accuracy", float(np.mean(answers.astype(str) == truth.astype(str)))
    rest = float(np.sum((truth - answers) ** 2))
    spread = float(np.sum((truth - truth.mean()) ** 2))
    return "R²", 1.0 - rest / spread if spread > 0 else float("nan")


def as_csv(columns: dict[str, Any]) -> str:
    """Columns as CSV text without a last line break."""
    import csv
    import io

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return file.getvalue().rstrip("\n")


def register(app: typer.Typer) -> None:
    app.command("predict")(predict)
