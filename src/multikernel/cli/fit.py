"""``multikernel fit``."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command, command_of, write_report
from .resuming import checkpoint_beside, telling_of

if TYPE_CHECKING:
    from .problem import TableProblem

#: Number of cross-validation folds, unless it is given.
FOLDS = 5


@command
def fit(
    data: o.Data,
    target: o.TargetColumn = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the model to this file.")] = Path(
        "model.skops"
    ),
    kernels: o.Kernels = None,
    weighting: o.Weighting = None,
    views: o.Views = None,
    task: o.Task = o.TaskName.auto,
    cost: Annotated[
        float | None,
        typer.Option(
            "--C", help="Cost of the loss (classification). \\[default: cross-validation]"
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Ridge penalty (regression). \\[default: cross-validation]"),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            help="Score that cross-validation maximises, by its scikit-learn name: "
            "balanced_accuracy, roc_auc, f1, neg_log_loss, ... \\[default: accuracy or R²]",
            show_default=False,
        ),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            "--class-weight",
            help="balanced gives rare classes more weight. Or set the weight of a class, such as "
            "yes=5 (repeatable).",
        ),
    ] = None,
    impute: o.Impute = None,
    categories: o.Categories = o.CategoriesName.onehot,
    categorical: o.Categorical = None,
    dates: o.Dates = False,
    drop: o.Drop = None,
    folds: Annotated[
        int | None,  # None if it is not given, which --chunks has to know
        typer.Option(
            "--folds",
            min=2,
            help=f"Number of cross-validation folds. \\[default: {FOLDS}]",
            show_default=False,
        ),
    ] = None,
    groups: o.Groups = None,
    sample: o.Sample = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    device: o.Device = None,
    chunks: o.Chunks = False,
    scheduler: o.Scheduler = None,
    holdout: o.Holdout = None,
    approximation: o.Approximation = None,
    loss: o.Loss = None,
    report: o.Report = None,
    resume: o.Resume = False,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Learn kernel weights and a predictor from a data file.

    [bold]Examples[/]

    multikernel fit wine.csv --target quality --out wine.skops

    multikernel fit wine.csv -y kind -k "gaussians([0.01, 0.1, 1])" -k linear -w alignf -w l1

    multikernel fit patients.parquet -y outcome --views views.toml --impute median

    multikernel fit rare.xlsx -y failed --class-weight balanced --scoring roc_auc

    multikernel fit folder-of-parquet-files -y energy --chunks --approximation "Nystroem(rank=500)"
    """
    from ..estimators.assessment import assess
    from ..files import save
    from ..tables import TableModel
    from .folds import note_of_small_classes
    from .problem import load_problem
    from .sizes import announce, note_duplicates
    from .telling import tell

    say = Out(quiet, as_json)
    check_places(out, report, force=force)
    checkpoint = checkpoint_beside(say, out, resume, force)
    if chunks or scheduler is not None or data.is_dir():
        from .chunks import fit_chunks, refuse_with_chunks

        refuse_with_chunks(
            {
                "--categories kernel": categories != o.CategoriesName.onehot,
                "--resume": resume,
                "--device": device is not None,
                "--scoring": scoring is not None,
                "--groups": groups is not None,
                "--folds": folds is not None,
                "--dates": dates,
                "--encoding": encoding is not None,
                "--sample": sample is not None,
            }
        )
        fit_chunks(
            say,
            data,
            out,
            report,
            {
                "rules": weighting or ["loo"],
                "cost": cost,
                "alpha": alpha,
                "class_weight": class_weight,
            },
            {"approximation": approximation, "loss": loss, "random_state": seed, "n_jobs": jobs},
            format=format,
            target=target,
            task=task,
            kernels=kernels,
            views=views,
            impute=impute,
            categorical=categorical,
            drop=drop,
            scheduler=scheduler,
            jobs=jobs,
            holdout=holdout,
            seed=seed,
        )
        return
    for value, name in (
        (approximation, "--approximation"),
        (loss, "--loss"),
        (holdout, "--holdout"),
    ):
        if value is not None:
            raise ValueError(f"{name} needs --chunks.")
    folds = FOLDS if folds is None else folds
    problem = load_problem(
        say,
        data,
        format=format,
        encoding=encoding,
        target=target,
        task=task,
        kernels=kernels,
        views=views,
        impute=impute,
        categories=categories,
        categorical=categorical,
        dates=dates,
        drop=drop,
        groups=groups,
        sample=sample,
        seed=seed,
    )
    assert problem.target is not None
    if problem.target.task == "classification" and problem.groups is None:
        small = note_of_small_classes(problem.y, folds)
        if small:
            say.note(f"Note: {small}")
    encoder = problem.encoder(problem.frame)
    X, y = encoder(problem.frame), problem.y
    bank = problem.bank(encoder, X)
    copies = note_duplicates(say, X, problem.y, problem.groups)
    estimator = make_estimator(
        problem,
        bank,
        weighting or ["loo"],
        cost,
        alpha,
        scoring=scoring,
        class_weight=class_weight,
        folds=folds,
        random_state=seed,
        n_jobs=jobs,
        device=device,
    )
    estimate = announce(say, estimator, X, y)
    started = time.perf_counter()
    estimator.set_params(checkpoint=checkpoint)
    with telling_of(say, checkpoint):
        fit_with_progress(say, estimator, X, y, estimate)
    estimator.set_params(checkpoint=None)
    seconds = time.perf_counter() - started
    model = TableModel(
        estimator, encoder, problem.target.name, problem.target.task, problem.sample_kernels
    )
    save(model, out)
    if report is not None:
        about = partial(summary_of, problem, encoder, data.name, out)
        title = f"{data.name}: {problem.target.name}"
        write_report(say, estimator, X, y, report, title=title, about=about)
    found = assess(estimator, y)
    words = ["--target", problem.target.name, *data_words(views, impute, dates, drop, categorical)]
    made = {
        "rows": len(y),
        "task": problem.target.task,
        "reason": problem.target.reason,
        "duplicates": copies,
        "notes": problem.notes,
    }
    judged = [] if groups is None else ["--groups", groups]
    judged += [] if scoring is None else ["--scoring", scoring]
    steps = next_steps(found, data, words, judged, out, report)
    tell(say, estimator, out, report, seconds, made, found, steps)


def data_words(
    views: Path | None,
    impute: str | None,
    dates: bool,
    drop: list[str] | None,
    categorical: list[str] | None,
) -> list[Any]:
    """Options on reading the data, to be repeated in another command."""
    words: list[Any] = [] if views is None else ["--views", views]
    words += [] if impute is None else ["--impute", str(impute)]
    words += ["--dates"] if dates else []
    words += [word for name in drop or () for word in ("--drop", name)]
    return words + [word for name in categorical or () for word in ("--categorical", name)]


def next_steps(
    found: Any,
    data: Path,
    words: list[Any],
    judged: list[Any],
    out: Path,
    report: Path | None,
) -> list[str]:
    """Commands to run next; ``words`` are options on reading data, ``judged`` those on scoring."""
    if found is not None and found.verdict == "nothing":
        line = command_of("compare", data, *words, *judged)
        return [f"Next, check whether another method predicts better: {line}"]
    steps = [command_of("predict", out, "new.csv", "--out", "predictions.csv")]
    if report is None:
        steps.append(command_of("report", out, data, "--out", out.with_suffix(".html")))
    return ["Next: " + steps[0]] + [f"      {step}" for step in steps[1:]]


def summary_of(problem: TableProblem, encoder: Any, source: str, model: Path | str) -> Any:
    """The summary of the data in the report."""
    from ..report.about import IMPUTED, DataSummary

    assert problem.target is not None
    return DataSummary(
        source=source,
        target=problem.target.name,
        columns=tuple(encoder.names),
        notes=problem.notes,
        rows=problem.rows,
        model=str(model),
        assumptions=(IMPUTED,) if problem.sample_kernels else (),
    )


def make_estimator(
    problem: TableProblem,
    bank: Any,
    rules: list[str],
    cost: float | None,
    alpha: float | None,
    *,
    scoring: str | None = None,
    class_weight: list[str] | None = None,
    folds: int,
    random_state: int,
    n_jobs: int,
    device: str | None = None,
) -> Any:
    """The search for these options; even a single candidate is cross-validated, for its score."""
    from .. import estimators
    from .expressions import class_weights, evaluate_weighting
    from .folds import folds_for

    assert problem.target is not None
    classifies = problem.target.task == "classification"
    unused, name = (alpha, "--alpha") if classifies else (cost, "--C")
    if unused is not None:
        raise ValueError(f"{name} does not apply to {problem.target.task}.")
    if class_weight and not classifies:
        raise ValueError("--class-weight does not apply to regression.")
    check_scoring_name(scoring)
    chosen: Any = [evaluate_weighting(rule) for rule in rules]
    value = cost if classifies else alpha
    options: dict[str, Any] = {
        "random_state": random_state,
        "n_jobs": n_jobs,
        "device": device,
        "scoring": scoring,
        "selection": "one-standard-error",
        "cv": folds_for(problem.y, classifies, folds, random_state, problem.groups),
    }
    if value is not None:
        options["Cs" if classifies else "alphas"] = [value]
    rule = chosen if len(chosen) > 1 else chosen[0]
    if classifies:
        weights = class_weights(class_weight, problem.y.tolist())
        return estimators.MultiKernelClassifierCV(bank, rule, class_weight=weights, **options)
    return estimators.MultiKernelRegressorCV(bank, rule, **options)


def check_scoring_name(scoring: str | None) -> None:
    """Raise an error for a scoring that scikit-learn does not have, and suggest similar names."""
    import difflib

    from sklearn.metrics import get_scorer_names

    names = get_scorer_names()
    if scoring is not None and scoring not in names:
        close = difflib.get_close_matches(scoring, names, n=3, cutoff=0.4)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"--scoring {scoring} is not known.{hint}")


def fit_with_progress(
    say: Out, estimator: Any, X: Any, y: Any, estimate: float | None = None
) -> None:
    """Fit, with a bar that follows the clock if the time was estimated, else the fit itself."""
    if say.shows_progress and estimate is not None:
        with say.clock(f"Fitting {len(y):,} rows", estimate):
            estimator.fit(X, y)
        return
    if not say.shows_progress:
        estimator.fit(X, y)
        return
    estimator.set_params(verbose=1)
    with redirect_stdout(sys.stderr):  # progress is not a result
        estimator.fit(X, y)
    estimator.set_params(verbose=0)


def register(app: typer.Typer) -> None:
    app.command("fit")(fit)
