"""``multikernel fit`` in chunks: rows that do not fit into memory, on this machine or a cluster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..rows import Rows, open_rows, sample_rows
from ..rows.files import find_files, first_frame
from ..tables import DataError, Frame, TableEncoder
from .common import Out, counted
from .views import View, build_bank, read_views

#: Rows from which widths of kernels are chosen, for banks that ask for the default ones of a view.
SAMPLE_ROWS = 3000
#: Rows that a report is written on.
REPORT_ROWS = 3000


@dataclass(frozen=True)
class ChunkedProblem:
    """Rows in chunks that are ready to learn from, and the kernels on them."""

    rows: Rows
    encoder: TableEncoder
    bank: Any
    target: str
    sample_kernels: bool


def load_chunks(
    out: Out,
    data: Path,
    *,
    format: str | None,
    target: str | None,
    task: str,
    kernels: Sequence[str] | None,
    views: Path | None,
    impute: str | None,
    categorical: Collection[str] | None,
    drop: Collection[str] | None,
    scheduler: str | None,
    jobs: int,
) -> ChunkedProblem:
    """Open the data and say what they are; this takes a pass, for classes and categories."""
    files = find_files(data, format)
    head = first_frame(files[0], format)
    if target is None:
        raise DataError(
            "Name the column to predict with --target. The columns are "
            f"{', '.join(map(repr, head.names[:20]))}."
        )
    head.require(target, "target column")
    features = head.without([*(drop or ()), target])
    expressions = tuple(kernels or ("default",))
    chosen = [View("", None, expressions)]
    if views is not None:
        chosen = read_views(views, features, expressions)
        used = {name for view in chosen for name in view.columns or ()}
        features = Frame({n: v for n, v in features.columns.items() if n in used})
    texts = [view.columns[0] for view in chosen if view.reads_text and view.columns]
    with out.progress(f"Reading {data.name}"):
        rows = open_rows(
            files,
            target,
            columns=features.names,
            categorical=categorical or (),
            texts=texts,
            impute=impute,
            task=task,
            format=format,
            client=scheduler,
            n_jobs=jobs,
        )
        encoder: TableEncoder = rows.reader.encoder  # type: ignore[attr-defined]
        default = any(view.uses_default for view in chosen)
        X = sample_rows(rows, SAMPLE_ROWS, n_jobs=jobs)[0].X if default else None
        bank = build_bank(chosen, encoder, X)
        if bank is not None and X is not None:
            bank = bank.adapt(X)  # widths and scales of a sample stand for those of all rows
    _describe(out, data, rows, target, len(files))
    return ChunkedProblem(rows, encoder, bank, target, impute is not None or default)


def _describe(out: Out, data: Path, rows: Rows, target: str, n_files: int) -> None:
    files = f"{n_files} files, " if n_files > 1 else ""
    out.note(
        f"{data.name}: {files}{counted(rows.n_rows or 0, 'row')} in "
        f"{counted(len(rows.pieces), 'piece')}, {counted(rows.n_columns, 'column')} to learn from."
    )
    said = str(rows.task).capitalize()
    facts = rows.reader.facts  # type: ignore[attr-defined]
    if rows.task == "classification":
        levels = [f"{name:g}" if isinstance(name, float) else name for name in facts.levels]
        listed = [f"{n} ({s})" for n, s in zip(levels, facts.levels.values(), strict=True)]
        more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
        said += f" with {len(listed)} classes: {', '.join(listed[:8])}{more}"
    out.note(f"{said}; {rows.reason}.")


def make_chunked_estimator(
    problem: ChunkedProblem,
    rules: list[str],
    cost: float | None,
    alpha: float | None,
    approximation: str | None,
    loss: str | None,
    *,
    random_state: int,
    n_jobs: int,
) -> Any:
    """The estimator that the options ask for; leave-one-out chooses what is left open."""
    from .. import estimators
    from .expressions import evaluate_approximation, evaluate_weighting

    classifies = problem.rows.task == "classification"
    unused, name = (alpha, "--alpha") if classifies else (cost, "--C")
    if unused is not None:
        raise ValueError(f"{name} does not apply to {problem.rows.task}.")
    if len(rules) > 1:
        raise ValueError(
            "--chunks takes one --weighting: cross-validation between several needs all rows in "
            f"memory; got {', '.join(rules)}."
        )
    rule = evaluate_weighting(rules[0])
    # The weights of leave-one-out include the constant; other rules have it chosen the same way.
    constant: float | str = 1.0 if rule == "loo" else "loo"
    given = cost if classifies else alpha
    options: dict[str, Any] = {
        "loss": loss or "squared",
        "approximation": evaluate_approximation(approximation or "auto"),
        "random_state": random_state,
        "n_jobs": n_jobs,
        "C" if classifies else "alpha": constant if given is None else given,
    }
    cls = estimators.MultiKernelClassifier if classifies else estimators.MultiKernelRegressor
    return cls(problem.bank, rule, **options)
