"""``multikernel fit`` in chunks: rows that do not fit into memory, on this machine or a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.assessment import FEW_SAMPLES, assess_held_out
from ..files import save
from ..rows import Chunk, Rows, open_rows, sample_rows
from ..rows.files import find_files, first_frame
from ..rows.sampling import split_rows
from ..tables import DataError, Frame, TableEncoder, TableModel
from ..tables.complaints import tells_target
from .common import Out, command_of, counted, write_report
from .problem import gives_away
from .telling import tell
from .views import View, build_bank, read_views

#: Rows drawn to choose the widths of default kernels, for notes about the columns, and for the
#: report if none are held out.
SAMPLE_ROWS = 3000
#: Rows held out of the fit by default: this share of all rows, up to this maximum.
HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 5000

#: Options that cannot be used with --chunks, and what to do instead.
NEED_ALL_ROWS = {
    "--categories kernel": "Use --views instead.",
    "--resume": "No checkpoint is written with --chunks.",
    "--device": "In Python, device= of an estimator with approximation= multiplies features on the "
    "device.",
    "--scoring": "Parameters are chosen by leave-one-out.",
    "--groups": "Parameters are chosen by leave-one-out over single rows.",
    "--folds": "Parameters are chosen by leave-one-out, and --holdout rows score the model.",
    "--dates": "Convert dates to numbers first.",
    "--encoding": "Convert the files to UTF-8 first.",
    "--sample": "A sample fits into memory: leave out --chunks.",
}


@dataclass(frozen=True)
class ChunkedProblem:
    """Rows in chunks that are ready to learn from, and the kernels on them.

    Attributes
    ----------
    rows : Rows
        The rows to fit, without those held out.
    held_out : Chunk or None
        Rows to score the model on.
    encoder : TableEncoder
    bank : KernelBank or None
    target : str
    sample_kernels : bool
    notes : tuple of str
        What to know about the columns.
    """

    rows: Rows
    held_out: Chunk | None
    encoder: TableEncoder
    bank: Any
    target: str
    sample_kernels: bool
    notes: tuple[str, ...] = ()


def refuse_with_chunks(given: dict[str, bool]) -> None:
    """Raise an error for options that would have no effect."""
    for name, used in given.items():
        if used:
            raise ValueError(f"{name} cannot be used with --chunks. {NEED_ALL_ROWS[name]}")


def fit_chunks(
    say: Out,
    data: Path,
    out: Path,
    report: Path | None,
    choices: dict[str, Any],
    options: dict[str, Any],
    **reading: Any,
) -> None:
    """Fit from rows that are read in chunks."""
    problem = load_chunks(say, data, **reading)
    rows = problem.rows
    estimator = make_chunked_estimator(problem, **choices, **options)
    started = time.perf_counter()
    estimator.set_params(verbose=int(say.shows_progress))
    with redirect_stdout(sys.stderr):  # progress is not a result
        estimator.fit(rows)
    estimator.set_params(verbose=0)
    # The encoder keeps the column names; from now on the estimator gets arrays without names.
    estimator.__dict__.pop("feature_names_in_", None)
    seconds = time.perf_counter() - started
    table = TableModel(
        estimator, problem.encoder, problem.target, str(rows.task), problem.sample_kernels
    )
    save(table, out)
    some = problem.held_out
    found = None if some is None else assess_held_out(estimator, some.X, some.y)
    lost = lost_classes(problem, estimator)
    if lost:
        say.note(f"Note: {lost}")
    if report is not None:
        if some is None:
            some, _ = sample_rows(rows, SAMPLE_ROWS, reading["seed"], n_jobs=reading["jobs"])
        title = f"{data.name}: {problem.target}"
        about = partial(summary_of_chunks, problem, some, out)
        write_report(say, estimator, some.X, some.y, report, title=title, about=about)
    made = {
        "rows": rows.n_rows or 0,
        "held_out": 0 if problem.held_out is None else len(problem.held_out),
        "task": str(rows.task),
        "reason": str(rows.reason),
        "notes": problem.notes,
    }
    steps = []
    if found is None or found.verdict != "nothing":
        steps = ["Next: " + command_of("predict", out, "new.csv", "--out", "predictions.csv")]
    tell(say, estimator, out, report, seconds, made, found, steps)


def summary_of_chunks(problem: ChunkedProblem, some: Chunk, model: Path) -> Any:
    """The summary of the data in the report, for the rows that it shows."""
    from ..report.about import IMPUTED, DataSummary

    return DataSummary(
        target=problem.target,
        columns=tuple(problem.encoder.names),
        notes=problem.notes,
        rows=some.row_numbers() + 1,
        model=str(model),
        assumptions=(IMPUTED,) if problem.sample_kernels else (),
        kept_out=problem.held_out is not None,
    )


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
    holdout: int | None,
    seed: int,
) -> ChunkedProblem:
    """Open the data and describe them; one pass finds classes and categories.

    Another pass draws the rows to hold out, and the rows from which widths are chosen.
    """
    files = find_files(data, format)
    head = first_frame(files[0], format, codes=categorical or ())
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
        default = any(view.uses_default for view in chosen)
        size = rows_to_hold_out(rows.count(n_jobs=jobs), holdout)
        held_out = None
        if size:
            rows, held_out, sample = split_rows(rows, size, seed, SAMPLE_ROWS, n_jobs=jobs)
        else:
            sample, _ = sample_rows(rows, SAMPLE_ROWS, seed, n_jobs=jobs)
        X = sample.X if default else None
        encoder: TableEncoder = rows.reader.encoder  # type: ignore[attr-defined]
        bank = build_bank(chosen, encoder, X)
        if bank is not None and X is not None:
            bank = bank.adapt(X)  # take widths and scales from the sample
    classifies = rows.task == "classification"
    notes = (*head.without(drop or ()).notes, *telling_columns(sample, encoder, target, classifies))
    _describe(out, data, rows, target, len(files))
    for note in notes:
        out.note(f"Note: {note}")
    if held_out is not None:
        out.note(f"{counted(size, 'row')} drawn at random are kept out of the fit to score it.")
    chosen_here = impute is not None or default
    return ChunkedProblem(rows, held_out, encoder, bank, target, chosen_here, notes)


def telling_columns(
    sample: Chunk, encoder: TableEncoder, target: str, classifies: bool
) -> list[str]:
    """Notes about columns that give the target away in a sample of the rows."""
    X = sample.X.columns if encoder.has_texts else sample.X.T
    found = []
    for column in encoder.columns:
        places = encoder.places([column.name])
        if column.kind == "text":
            continue
        levels = np.stack([X[j] for j in places]).astype(float)
        values = levels[0] if column.kind == "number" else levels.argmax(axis=0).astype(float)
        if tells_target(values, sample.y, classifies):
            found.append(gives_away(column.name, target, f"in each of {len(sample):,} random rows"))
    return found


def rows_to_hold_out(n: int, wanted: int | None) -> int:
    """Number of rows, of n, to hold out of the fit."""
    if wanted is None:
        size = min(int(HELD_OUT_SHARE * n), MAX_HELD_OUT)
        return size if size >= FEW_SAMPLES else 0
    if 0 < wanted < FEW_SAMPLES:
        raise DataError(f"--holdout must be 0 or at least {FEW_SAMPLES} rows; got {wanted}.")
    if wanted >= n:
        raise DataError(f"--holdout {wanted} leaves no rows to learn from; there are {n:,}.")
    return wanted


def lost_classes(problem: ChunkedProblem, estimator: Any) -> str:
    """A sentence about classes whose rows are all held out; empty if there are none."""
    if problem.rows.task != "classification":
        return ""
    lost = sorted(set(labels_of(problem.rows)) - set(estimator.classes_.tolist()))
    if not lost:
        return ""
    return (
        f"All rows of {', '.join(map(repr, lost[:5]))} are held out, and the model cannot predict "
        f"{'this class' if len(lost) == 1 else 'these classes'}. --holdout 0 uses all rows."
    )


def labels_of(rows: Rows) -> list[Any]:
    """The classes of all rows, those held out included, as the rows give them."""
    facts = rows.reader.facts  # type: ignore[attr-defined]
    labels: np.ndarray = facts.labels(
        np.array(list(facts.levels), dtype=object if facts.text else float)
    )
    return labels.tolist()


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
    class_weight: list[str] | None,
    approximation: str | None,
    loss: str | None,
    *,
    random_state: int,
    n_jobs: int,
) -> Any:
    """The estimator for these options; leave-one-out chooses parameters that are not given."""
    from .. import estimators
    from .expressions import class_weights, evaluate_approximation, evaluate_weighting

    classifies = problem.rows.task == "classification"
    unused, name = (alpha, "--alpha") if classifies else (cost, "--C")
    if unused is not None:
        raise ValueError(f"{name} does not apply to {problem.rows.task}.")
    if class_weight and not classifies:
        raise ValueError("--class-weight does not apply to regression.")
    if len(rules) > 1:
        raise ValueError(
            "--chunks takes one --weighting: cross-validation between several needs all rows in "
            f"memory; got {', '.join(rules)}."
        )
    rule = evaluate_weighting(rules[0])
    # The weights of "loo" include the constant; for other rules, leave-one-out chooses it.
    constant: float | str = 1.0 if rule == "loo" else "loo"
    given = cost if classifies else alpha
    options: dict[str, Any] = {
        "loss": loss or "squared",
        "approximation": evaluate_approximation(approximation or "auto"),
        "random_state": random_state,
        "n_jobs": n_jobs,
        "C" if classifies else "alpha": constant if given is None else given,
    }
    if not classifies:
        return estimators.MultiKernelRegressor(problem.bank, rule, **options)
    weights = class_weights(class_weight, labels_of(problem.rows))
    return estimators.MultiKernelClassifier(problem.bank, rule, class_weight=weights, **options)
