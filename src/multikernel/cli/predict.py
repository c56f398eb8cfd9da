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
    decision: Annotated[
        bool, typer.Option("--decision", help="Also write the decision values of a classifier.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            help="Also write the ends of intervals that hold the outputs of a regression with "
            "this probability, such as 0.9.",
        ),
    ] = None,
    target: o.TargetColumn = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Predict with a model file.

    Classes come with their probabilities. Without --out the predictions are printed as CSV. Where
    the data hold the target as well, the score is told.

    [bold]Example[/]

    multikernel predict wine.skops new-wines.csv --out predictions.csv
    """
    from ..tables import read_frame, write_columns
    from .problem import as_table_model, load_model

    say = Out(quiet, as_json)
    check_places(tables=out)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format, encoding=encoding)
        table = as_table_model(loaded, frame, target)
    with say.progress(f"Predicting {len(frame)} rows"):
        columns = predictions(
            table.estimator, table.features(frame), decision=decision, coverage=coverage
        )
    if table.task == "classification" and not any(c.startswith("probab") for c in columns):
        say.note("This model file holds no probabilities; fit the model again to get them.")
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


def predictions(
    estimator: Any, X: Any, *, decision: bool = False, coverage: float | None = None
) -> dict[str, Any]:
    """The answers, with probabilities of classes, and on request decisions or intervals."""
    import numpy as np
    from sklearn.exceptions import NotFittedError

    answers = np.asarray(estimator.predict(X))
    columns = by_output("prediction", answers)
    if hasattr(estimator, "predict_proba"):
        try:
            probabilities = estimator.predict_proba(X)
        except NotFittedError:  # a file of an earlier version
            probabilities = np.empty((len(answers), 0))
        for label, column in zip(estimator.classes_, probabilities.T, strict=False):
            columns[f"probability_{label}"] = column
    if decision:
        columns |= decisions_of(estimator, X)
    if coverage is not None:
        if not hasattr(estimator, "predict_interval"):
            raise ValueError(
                f"--coverage is for regression; this model is a {type(estimator).__name__}. "
                "Classes come with probabilities instead."
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
