"""``multikernel demo``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from . import options as o
from .common import Out, check_places, command, write_report


@command
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the report.")] = Path(
        "multikernel-demo.html"
    ),
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Which kernels suit the breast-cancer data? A first look, in less than a minute.

    [bold]Example[/]

    multikernel demo
    """
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from ..estimators import MultiKernelClassifier
    from ..tables import Frame, TargetColumn
    from . import leaderboard
    from .problem import TableProblem
    from .telling import facts, summary_line, weights_table
    from .views import View

    say = Out(quiet, as_json)
    check_places(out, force=force)
    data = load_breast_cancer()
    X, y = data.data, np.asarray(data.target_names)[data.target]
    say.note(f"Breast cancer: {X.shape[0]} tumours, {X.shape[1]} measurements, {len(set(y))} kinds")
    with say.progress("Learning kernel weights"):
        started = time.perf_counter()
        model = MultiKernelClassifier().fit(X, y)
        seconds = time.perf_counter() - started
    if say.chatty:
        say.show(weights_table(model))
        say.show(summary_line(model, seconds))

    # The same data as the other commands see them.
    frame = Frame.of(dict(zip(data.feature_names, X.T, strict=True)))
    target = TargetColumn("kind", y, "classification", "the classes of the data")
    problem = TableProblem(frame, target, [View("", None, ("default",))], (), None)
    methods = leaderboard.weightings(problem, ["loo", "best", "uniform", "align", "alignf"], 0, 1)
    methods += leaderboard.baselines(problem, 0, 1)
    with say.progress("Comparing with other methods", 5 * len(methods)) as advance:
        board = leaderboard.run(problem, methods, folds=5, repeats=1, seed=0, advance=advance)
    if say.chatty:
        say.show(board.table())
        for line in board.conclusions():
            say.show(line)
    page = write_report(
        say,
        model,
        X,
        y,
        out,
        required=False,
        cv_results=board.to_dict(),
        title="Which kernels suit the breast-cancer data?",
    )
    if page is not None:
        say.note(f"Report: {page.resolve()}")
    say.result({"report": page, **facts(model), "leaderboard": board.to_dict()})


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)
