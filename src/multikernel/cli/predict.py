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
        typer.Option(
            "--out",
            "-o",
            help="Write the predictions to this file: .csv .tsv .parquet .npz .json",
        ),
    ] = None,
    decision: Annotated[
        bool, typer.Option("--decision", help="Also write the decision values of a classifier.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            help="Also write prediction intervals (regression) that contain the true output with "
            "this probability, such as 0.9.",
        ),
    ] = None,
    target: o.TargetColumn = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Predict with a model file.

    Classifiers also return probabilities. Without --out the predictions are printed as CSV. If the
    data contain the target, the score is printed as well. Rows are read, predicted and written in
    chunks, so files of any length, and folders of files, need little memory.

    [bold]Example[/]

    multikernel predict wine.skops new-wines.csv --out predictions.csv
    """
    from ..tables import DataError
    from .problem import load_model, open_new_rows
    from .streams import PredictionFile, Score

    say = Out(quiet, as_json)
    check_places(tables=out, force=force)
    with say.progress(f"Reading {model.name}"):
        table, chunks, n_rows = open_new_rows(load_model(model), data, format, target, encoding)
    score, done = Score(table), 0
    with (
        PredictionFile(say, out) as file,
        say.progress(f"Predicting {n_rows or ''} rows", total=n_rows) as advance,
    ):
        for X, y in chunks:
            columns = predictions(table.estimator, X, decision=decision, coverage=coverage)
            file.write(columns)
            score.add(y, columns["prediction"])
            done += X.shape[0]
            advance("", X.shape[0])
    if not done:
        raise DataError(f"{data.name} holds no rows.")
    if table.task == "classification" and not any(c.startswith("probab") for c in columns):
        say.note("This model file has no probabilities; fit the model again to get them.")
    if out is not None:
        say.note(f"{done} predictions: {out}")
    found = score.result()
    if found is not None:
        name, value = found
        say.note(f"{name} on the target {table.target!r} of these data: {value:.4f}")
    say.result(
        {
            "rows": done,
            "out": out,
            "score": None if found is None else {"name": found[0], "value": found[1]},
            **({} if out is not None else {"columns": file.gathered()}),
        }
    )


def predictions(
    estimator: Any, X: Any, *, decision: bool = False, coverage: float | None = None
) -> dict[str, Any]:
    """Columns of predictions and class probabilities, on request also decisions or intervals."""
    import numpy as np
    from sklearn.exceptions import NotFittedError

    answers = np.asarray(estimator.predict(X))
    columns = by_output("prediction", answers)
    if hasattr(estimator, "predict_proba"):
        try:
            probabilities = estimator.predict_proba(X)
        except NotFittedError:  # a model file of an earlier version
            probabilities = np.empty((len(answers), 0))
        for label, column in zip(estimator.classes_, probabilities.T, strict=False):
            columns[f"probability_{label}"] = column
    if decision:
        columns |= decisions_of(estimator, X)
    if coverage is not None:
        if not hasattr(estimator, "predict_interval"):
            raise ValueError(
                f"--coverage is for regression; this model is a {type(estimator).__name__}. "
                "Classifiers return probabilities instead."
            )
        lower, upper = estimator.predict_interval(X, coverage)
        columns |= by_output("lower", lower) | by_output("upper", upper)
    return columns


def by_output(name: str, values: Any) -> dict[str, Any]:
    """One column for each output."""
    if values.ndim == 1:
        return {name: values}
    return {name if j == 0 else f"{name}_{j}": values[:, j] for j in range(values.shape[1])}


def decisions_of(estimator: Any, X: Any) -> dict[str, Any]:
    """Decision values, one column for two classes and one per class for more."""
    import numpy as np

    if not hasattr(estimator, "decision_function"):
        raise ValueError(
            f"--decision is for classification; this model is a {type(estimator).__name__}, which "
            "has no decision values."
        )
    decisions = np.asarray(estimator.decision_function(X))
    if decisions.ndim == 1:
        return {"decision": decisions}
    return {f"decision_{label}": decisions[:, j] for j, label in enumerate(estimator.classes_)}


def register(app: typer.Typer) -> None:
    app.command("predict")(predict)
