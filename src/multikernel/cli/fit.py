"""``multikernel fit``."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command, write_report

if TYPE_CHECKING:
    from .problem import TableProblem


@command
def fit(
    data: o.Data,
    target: o.TargetColumn = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the model.")] = Path(
        "model.skops"
    ),
    kernels: o.Kernels = None,
    weighting: o.Weighting = None,
    views: o.Views = None,
    task: o.Task = o.TaskName.auto,
    cost: Annotated[
        float | None,
        typer.Option("--C", help="Cost of the loss (classification). [default: cross-validation]"),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Ridge (regression). [default: cross-validation]"),
    ] = None,
    impute: o.Impute = None,
    categories: o.Categories = o.CategoriesName.onehot,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    folds: o.Folds = 5,
    format: o.Format = None,
    seed: o.Seed = 0,
    jobs: o.Jobs = 1,
    device: o.Device = None,
    report: o.Report = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Learn which kernels to trust, and a predictor, from a data file.

    [bold]Examples[/]

    multikernel fit wine.csv --target quality --out wine.skops

    multikernel fit wine.csv -y kind -k "gaussians([0.01, 0.1, 1])" -k linear -w alignf -w l1

    multikernel fit patients.parquet -y outcome --views views.toml --impute median
    """
    from ..files import save
    from ..tables import TableModel
    from .problem import load_problem

    say = Out(quiet, as_json)
    check_places(out, report)
    problem = load_problem(
        say,
        data,
        format=format,
        target=target,
        task=task,
        kernels=kernels,
        views=views,
        impute=impute,
        categories=categories,
        categorical=categorical,
        drop=drop,
    )
    assert problem.target is not None
    encoder = problem.encoder(problem.frame)
    X, y = encoder(problem.frame), problem.y
    bank = problem.bank(encoder, X)
    estimator = make_estimator(
        problem,
        bank,
        weighting or ["loo"],
        cost,
        alpha,
        folds=folds,
        random_state=seed,
        n_jobs=jobs,
        device=device,
    )
    started = time.perf_counter()
    fit_with_progress(say, estimator, X, y)
    seconds = time.perf_counter() - started
    model = TableModel(
        estimator, encoder, problem.target.name, problem.target.task, problem.sample_kernels
    )
    save(model, out)
    if report is not None:
        write_report(say, estimator, X, y, report, title=f"{data.name}: {problem.target.name}")
    if say.chatty:
        say.show(weights_table(estimator))
        say.show(summary_line(estimator, seconds))
    say.note(f"Model: {out}" + (f"   Report: {report}" if report else ""))
    say.result(
        {
            "model": out,
            "report": report,
            "rows": len(y),
            "seconds": seconds,
            "task": problem.target.task,
            "reason": problem.target.reason,
            **facts(estimator),
        }
    )


def make_estimator(
    problem: TableProblem,
    bank: Any,
    rules: list[str],
    cost: float | None,
    alpha: float | None,
    *,
    folds: int,
    random_state: int,
    n_jobs: int,
    device: str | None = None,
) -> Any:
    """The estimator that the options ask for; what is left open is left to cross-validation."""
    from .. import estimators
    from .expressions import evaluate_weighting

    assert problem.target is not None
    classifies = problem.target.task == "classification"
    unused, name = (alpha, "--alpha") if classifies else (cost, "--C")
    if unused is not None:
        raise ValueError(f"{name} is not for {problem.target.task}.")
    chosen: Any = [evaluate_weighting(rule) for rule in rules]
    value = cost if classifies else alpha
    options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "device": device}
    if value is not None and len(chosen) == 1:
        if classifies:
            return estimators.MultiKernelClassifier(bank, chosen[0], C=value, **options)
        return estimators.MultiKernelRegressor(bank, chosen[0], alpha=value, **options)
    grid: dict[str, Any] = {}
    if value is not None:
        grid["Cs" if classifies else "alphas"] = [value]
    options |= {"cv": folds_for(problem.y, classifies, folds, random_state), **grid}
    cls = estimators.MultiKernelClassifierCV if classifies else estimators.MultiKernelRegressorCV
    return cls(bank, chosen if len(chosen) > 1 else chosen[0], **options)


def fit_with_progress(say: Out, estimator: Any, X: Any, y: Any) -> None:
    """Fit; a search shows its own bar and a joint rule its own iterations, others get a clock."""
    from ..weighting import JointWeighting, as_weighting

    rule = estimator.weighting
    joint = not isinstance(rule, list) and isinstance(as_weighting(rule), JointWeighting)
    if not say.shows_progress or not (joint or hasattr(estimator, "cv")):
        with say.progress(f"Fitting {len(y)} rows"):
            estimator.fit(X, y)
        return
    estimator.set_params(verbose=1)
    with redirect_stdout(sys.stderr):  # what it says are remarks
        estimator.fit(X, y)
    estimator.set_params(verbose=0)


def folds_for(y: Any, classifies: bool, folds: int, seed: int) -> Any:
    """Shuffled folds, no more than the smallest class has points (but two)."""
    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold

    if not classifies:
        return KFold(min(folds, len(y)), shuffle=True, random_state=seed)
    smallest = int(np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(max(2, min(folds, smallest)), shuffle=True, random_state=seed)


# -- telling what was learned ---------------------------------------------------------------------


def facts(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator says about itself, for machines."""
    from ..kernels.bank import view_of

    rows = kernel_rows(estimator)
    views: dict[str, float] = {}
    for row in rows:
        view = view_of(row["kernel"])
        if view:
            views[view] = views.get(view, 0.0) + row["weight"]
    out = {
        "estimator": type(estimator).__name__,
        "kernels": rows,
        "views": views,
        "support_vectors": len(estimator.support_),
        "duality_gap": estimator.duality_gap_,
        "objective": estimator.objective_,
        "engine": estimator.engine_,
    }
    for name in ("C_", "alpha_", "weighting_", "best_score_", "alignment_"):
        if hasattr(estimator, name):
            out[name.rstrip("_")] = getattr(estimator, name)
    if hasattr(estimator, "classes_"):
        out["classes"] = estimator.classes_
    return out


def kernel_rows(estimator: Any) -> list[dict[str, Any]]:
    """Weight and alignment of every kernel; mean weights where each class has its own."""
    import numpy as np

    weights = np.atleast_2d(estimator.kernel_weights_).mean(axis=0)
    alone = np.asarray(estimator.kernel_alignments_, dtype=float)
    alone = np.atleast_2d(alone).mean(axis=0)
    return [
        {"kernel": name, "weight": float(w), "alignment": float(a)}
        for name, w, a in zip(estimator.kernel_names_, weights, alone, strict=True)
    ]


def weights_table(estimator: Any, most: int = 25) -> Any:
    """Kernels with their weights; of many, the heaviest."""
    from rich.table import Table

    rows = kernel_rows(estimator)
    shown = rows
    if len(rows) > most:
        shown = sorted(rows, key=lambda row: -abs(row["weight"]))[:most]
    largest = max((abs(row["weight"]) for row in shown), default=0.0) or 1.0
    total = sum(abs(row["weight"]) for row in rows) or 1.0
    title = "What was learned" + (f" ({most} of {len(rows)} kernels)" if len(rows) > most else "")
    table = Table(title=title, title_justify="left")
    table.add_column("kernel")
    table.add_column("alignment", justify="right")
    table.add_column("weight", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for row in shown:
        bar = "█" * round(24 * abs(row["weight"]) / largest)
        weight = f"{row['weight']:.4g}" if row["weight"] else "0"
        share = f"{abs(row['weight']) / total:.1%}"
        table.add_row(row["kernel"], f"{row['alignment']:.3f}", weight, share, bar)
    return table


def summary_line(estimator: Any, seconds: float) -> str:
    """One or two sentences about the fit."""
    import numpy as np

    used = int(np.count_nonzero(np.atleast_2d(estimator.kernel_weights_).any(axis=0)))
    parts = [
        f"{used} of {len(estimator.kernel_names_)} kernels have a weight, "
        f"{len(estimator.support_)} points a coefficient; proven relative duality gap below "
        f"{max(estimator.duality_gap_, 1e-14):.0e}; {seconds:.1f} s."
    ]
    if estimator.device is not None:
        parts.append(f"Computed by {estimator.engine_}.")
    if hasattr(estimator, "best_score_"):
        value = (
            f"C = {estimator.C_:g}" if hasattr(estimator, "C_") else f"alpha = {estimator.alpha_:g}"
        )
        score = "accuracy" if hasattr(estimator, "classes_") else "R²"
        parts.append(
            f"Chosen by cross-validation: {estimator.weighting_}, {value} "
            f"({score} {estimator.best_score_:.4f})."
        )
    return "\n".join(parts)


def register(app: typer.Typer) -> None:
    app.command("fit")(fit)
