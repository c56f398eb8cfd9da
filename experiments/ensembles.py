"""Ensembles against kernel learning, on the sets of Cortes, Mohri and Rostamizadeh 2012, Table 2.

The paper describes ensembles (section 3.3) and leaves the comparison open; unif and alignf are
printed. Sets, kernels and draws are those of :mod:`.alignment`, folds, scaling and scores those of
:mod:`.combinations`. One draw of rows and folds; three values of C or the ridge.

Run ``python -m experiments.ensembles --help``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multikernel.estimators.classifier import MultiKernelClassifier
from multikernel.estimators.ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from multikernel.estimators.regressor import MultiKernelRegressor

from .alignment import GRIDS, SETS, Problem, problem_of
from .combinations import METHODS as PRINTED_METHODS
from .combinations import PRINTED_ERRORS, learn_fold, parts
from .record import (
    Claim,
    Options,
    Record,
    distinct,
    dots,
    key_above,
    main,
    markdown,
    panels,
    require_known,
    select,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Ensembles against kernel learning (Cortes, Mohri and Rostamizadeh 2012, section 3.3)"

METHODS: dict[str, dict[str, Any]] = {
    "unif": {"weighting": "uniform"},
    "alignf": {"weighting": "alignf"},
    "best single": {"weighting": "best"},
    "ensemble l1": {"norm": "l1"},
    "ensemble l2": {"norm": "l2"},
    "ensemble l1, signed": {"norm": "l1", "signed": True},
    "ensemble l1, one stage": {"norm": "l1", "stages": 1},
}


@dataclass(frozen=True)
class Row:
    """One method on one fold."""

    data: str
    method: str
    fold: int
    error: float
    #: the chosen C or ridge, and its error on the fold that chooses
    value: float
    validation_error: float
    weights: list[float]
    #: relative duality gap of the second stage
    gap: float
    #: CPU time for the whole grid
    seconds: float


def make(method: str, problem: Problem, value: float) -> Any:
    """The estimator that a method is."""
    options = METHODS[method]
    one_kernel = "weighting" in options
    if problem.task == "classification":
        classifier: Any = MultiKernelClassifier if one_kernel else KernelEnsembleClassifier
        return classifier(problem.bank, C=value, **options)
    regressor: Any = MultiKernelRegressor if one_kernel else KernelEnsembleRegressor
    return regressor(problem.bank, alpha=value, **options)


def run_fold(
    problem: Problem,
    method: str,
    X: np.ndarray,
    y: np.ndarray,
    roles: Sequence[np.ndarray],
    grid: Sequence[float],
) -> dict[str, Any]:
    """One method on one fold: all fields of a row that follow from learning."""
    model, _, found = learn_fold(make, problem, method, X, y, roles, grid)
    return {**found, "gap": float(getattr(model, "weights_gap_", 0.0))}


def work(name: str, method: str, fold: int, rows: int, first: int, seed: int) -> list[Row]:
    """One method on one fold; every second value of the grid, beginning with the given one."""
    problem = problem_of(name)
    X, y = problem.load(rows, seed)
    roles = parts(problem, y, seed)[fold]
    found = run_fold(problem, method, X, y, roles, GRIDS[problem.task][first::2])
    return [Row(name, method, fold, **found)]


def errors(rows: Sequence[Row], data: str, method: str) -> np.ndarray:
    """Of all folds."""
    return select(rows, "error", data=data, method=method)


def table(rows: Sequence[Row]) -> str:
    """Errors, mean ± standard deviation over the folds, with what is printed."""
    sets, methods = _names(rows)
    lines = []
    for at, method in enumerate(PRINTED_METHODS):
        if method in methods:
            cells = ("{:.3f} ± {:.3f}".format(*PRINTED_ERRORS[data][at]) for data in sets)
            lines.append([f"{method}, printed", *cells])
    lines += [[m, *(spread(errors(rows, data, m)) for data in sets)] for m in methods]
    return markdown(["", *sets], lines)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What is printed of unif and alignf, and what the paper leaves open."""
    sets, methods = _names(rows)
    out = []
    for left, right, printed in (
        ("alignf", "unif", "yes"),
        ("ensemble l1", "best single", "open"),
        ("ensemble l1", "alignf", "open"),
        ("ensemble l1, one stage", "unif", "open"),
    ):
        if left in methods and right in methods:
            holds = [
                data
                for data in sets
                if errors(rows, data, left).mean() < errors(rows, data, right).mean()
            ]
            ours = "yes" if len(holds) == len(sets) else "no"
            detail = f"on {len(holds)} of {len(sets)}: {', '.join(holds) or 'none'}"
            out.append(Claim(f"error of {left} below {right} on all sets", printed, ours, detail))
    return out


def _names(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    return distinct(rows, "data"), distinct(rows, "method")


def draw_figure(rows: Sequence[Row]) -> Figure:
    """Errors of all methods, one panel per set."""
    sets, methods = _names(rows)
    figure, axes = panels(len(sets), sharey=True)
    for ax, data in zip(axes[0], sets, strict=True):
        at = dict(zip(PRINTED_METHODS, PRINTED_ERRORS[data], strict=True))
        ours = [errors(rows, data, method) for method in methods]
        dots(ax, methods, ours, [at.get(method) for method in methods])
        ax.set_title(f"{data}, error", fontsize="medium")
    key_above(figure, axes[0, -1])
    return figure


def run(
    *, names: Sequence[str] = SETS, methods: Sequence[str] = tuple(METHODS), **common: Any
) -> Record:
    """All methods on all sets; quick: 300 rows, and two or three values of C or the ridge.

    Parameters
    ----------
    names, methods : sequences of str
        Which sets and methods.
    **common
        See `record.Options`.
    """
    options = Options(**common)
    require_known("methods", methods, METHODS)
    size, first = (300, 2) if options.quick else (1000, 1)
    tasks = [
        (problem_of(name).name, method, fold, size, first, options.seed)
        for name in names
        for method in methods
        for fold in range(5)
    ]
    rows = options.compute(work, tasks, Row, kept="ensembles", title="ensembles")
    gap = max(row.gap for row in rows)
    seconds = sum(row.seconds for row in rows)
    return Record(
        options.stem("ensembles"),
        TITLE,
        rows,
        {"Error, mean ± standard deviation over five folds": table(rows)},
        claims(rows),
        f"Largest relative duality gap of a second stage: {gap:.1e}. {seconds:.0f} s of CPU time.",
        lambda: draw_figure(rows),
    )


if __name__ == "__main__":
    main(run, "ensembles", TITLE)
