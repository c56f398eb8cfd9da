"""``multikernel demo``."""

from __future__ import annotations

import time
from functools import partial
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
    """Show the library at work on data of breast tumours, in less than a minute.

    [bold]Example[/]

    multikernel demo
    """
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import StratifiedKFold

    from ..estimators import MultiKernelClassifierCV
    from ..estimators.assessment import assess
    from ..tables import Frame, TargetColumn
    from . import leaderboard
    from .fit import summary_of
    from .methods import baselines, constant, weightings
    from .problem import TableProblem
    from .telling import facts, show_model
    from .views import View

    say = Out(quiet, as_json)
    check_places(out, force=force)
    data = load_breast_cancer()
    names, y = data.feature_names, np.asarray(data.target_names)[data.target]
    frame = Frame.of(dict(zip(names, data.data.T, strict=True)))
    target = TargetColumn("kind", y, "classification", "the classes of the data")
    # Each of ten quantities was measured on many cells of a tumour.
    views = [
        View(view, tuple(names[first : first + 10]), ("default",))
        for view, first in (("means", 0), ("errors", 10), ("worst", 20))
    ]
    problem = TableProblem(frame, target, views, (), None)
    encoder = problem.encoder(frame)
    X = encoder(frame)
    say.note(
        f"Breast cancer: {X.shape[0]} tumours, malignant or benign; three views: the means, the "
        "standard errors and the worst values of ten quantities."
    )
    with say.progress("Learning kernel weights"):
        started = time.perf_counter()
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model = MultiKernelClassifierCV(problem.bank(encoder, X), "alignf", cv=folds).fit(X, y)
        seconds = time.perf_counter() - started
    if say.chatty:
        show_model(say, model, seconds, assess(model, y))

    methods = weightings(problem, ["alignf", "uniform"], 0, 1)
    methods += [constant(problem), *baselines(problem, 0, 1)]
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
        about=partial(summary_of, problem, encoder, "", ""),
        title="Which measurements tell tumours apart?",
    )
    if page is not None:
        say.note(f"Report: {page.resolve()}")
    say.note("Next, with your own data: multikernel fit data.csv --target y --report report.html")
    say.result({"report": page, **facts(model), "leaderboard": board.to_dict()})


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)
