"""``multikernel compare``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command, write_report
from .resuming import checkpoint_beside, telling_of


@command
def compare(
    data: o.Data,
    target: o.TargetColumn = None,
    kernels: o.Kernels = None,
    weighting: Annotated[
        list[str] | None,
        typer.Option(
            "--weighting", "-w", help="Weightings to compare. \\[default: all]", show_default=False
        ),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines/--no-baselines", help="Also compare with scikit-learn models."),
    ] = True,
    views: o.Views = None,
    task: o.Task = o.TaskName.auto,
    impute: o.Impute = None,
    categories: o.Categories = o.CategoriesName.onehot,
    categorical: o.Categorical = None,
    dates: o.Dates = False,
    drop: o.Drop = None,
    sample: o.Sample = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            help="Score to choose parameters and to compare by, by its scikit-learn name: "
            "balanced_accuracy, roc_auc, r2, ... \\[default: accuracy or RMSE]",
            show_default=False,
        ),
    ] = None,
    folds: o.Folds = 5,
    groups: o.Groups = None,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=1,
            help="Number of times to repeat the cross-validation with new folds.",
        ),
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the scores of all splits to this file."),
    ] = None,
    report: o.Report = None,
    test: Annotated[
        o.TestName,
        typer.Option(
            "--test",
            help="Significance test: corrected for overlapping training sets (Nadeau and "
            "Bengio), or the uncorrected test of the papers.",
        ),
    ] = o.TestName.corrected,
    format: o.Format = None,
    encoding: o.Encoding = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    resume: o.Resume = False,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Compare weightings with each other and with common alternatives.

    Runs repeated (stratified) cross-validation on the same splits; parameters are chosen on the
    training sets only. Differences from the uniform combination and from the best single kernel are
    tested at p = 0.05 and 0.1, with a t-test corrected for overlapping training sets. A constant
    prediction shows what can be reached without learning.

    [bold]Examples[/]

    multikernel compare wine.csv --target quality

    multikernel compare wine.csv -y kind -w uniform -w alignf --repeats 10 --out scores.csv

    multikernel compare visits.csv -y outcome --groups patient --scoring balanced_accuracy
    """
    from .._checkpoint import journal_in
    from . import leaderboard, methods
    from .expressions import evaluate_weighting
    from .fit import check_scoring_name
    from .problem import load_problem
    from .sizes import note_duplicates

    say = Out(quiet, as_json)
    check_scoring_name(scoring)
    check_places(report, tables=out, force=force)
    checkpoint = checkpoint_beside(say, out or report, resume, force)
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
    rules: list[Any] = [evaluate_weighting(rule) for rule in weighting or methods.RULES]
    compared = methods.weightings(problem, rules, seed, jobs, scoring)
    compared.append(methods.constant(problem))
    if baselines and any(view.reads_text for view in problem.views):
        say.note("Some columns hold text, so the scikit-learn models are left out.")
    elif baselines:
        compared += methods.baselines(problem, seed, jobs, scoring)
    encoded = problem.encoder(problem.frame)(problem.frame)
    note_duplicates(say, encoded, problem.y, problem.groups)
    parts = {
        "methods": [method.name for method in compared],
        "kernels": kernels,
        "categories": str(categories),
        "views": None if views is None else views.read_bytes(),
        **{"folds": folds, "repeats": repeats, "seed": seed, "y": problem.y},
        **{"scoring": scoring, "groups": problem.groups},
        "data": encoded,
    }
    with (
        telling_of(say, checkpoint),
        journal_in(checkpoint, parts) as journal,
        say.progress("Comparing", len(compared) * folds * repeats) as advance,
    ):
        board = leaderboard.run(
            problem,
            compared,
            folds=folds,
            repeats=repeats,
            seed=seed,
            advance=advance,
            n_jobs=jobs,
            test=test.value,
            scoring=scoring,
            journal=journal,
        )
    winner = board.recommended
    if winner is None:
        raise ValueError(f"No weighting could be fitted: {board.rows[-1].error}")
    say.show(board.table())
    for line in board.conclusions():
        say.show(line)
    if problem.target is not None and problem.target.task == "classification":
        remark = leaderboard.remark_on_classes(problem.y, scoring)
        if remark:
            say.note(f"Note: {remark}")
    if out is not None:
        from ..tables import write_columns

        write_columns({row.name: row.scores for row in board.rows if not row.error}, out)
        say.note(f"Scores: {out}")
    if report is not None:
        rule = next(rule for rule in rules if str(rule) == winner.name)
        _report(say, problem, rule, board, report, data.name, seed, jobs, scoring)
    say.result({"report": report, "out": out, **board.to_dict()})


def _report(
    say: Out,
    problem: Any,
    rule: Any,
    board: Any,
    path: Path,
    name: str,
    seed: int,
    jobs: int,
    scoring: str | None,
) -> None:
    """Write a report on the recommended weighting, fitted to all rows, with the leaderboard."""
    from .fit import summary_of
    from .folds import inner_folds
    from .methods import weightings

    encoder = problem.encoder(problem.frame)
    X = encoder(problem.frame)
    with say.progress(f"Fitting {rule}"):
        (method,) = weightings(problem, [rule], seed, jobs, scoring)
        classifies = problem.target.task == "classification"
        cv = inner_folds(problem.y, classifies, seed, problem.groups)
        estimator = method.make(problem.bank(encoder, X), X, cv).fit(X, problem.y)
    title = f"{name}: {problem.target.name}"
    about = partial(summary_of, problem, encoder, name, "")
    write_report(
        say, estimator, X, problem.y, path, cv_results=board.to_dict(), title=title, about=about
    )
    say.note(f"Report: {path}")


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)
