"""Report what was learned: sentences and tables for the terminal, values for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .common import Out


def tell(
    say: Out,
    estimator: Any,
    out: Path,
    report: Path | None,
    seconds: float,
    made: dict[str, Any],
    found: Any = None,
    steps: Sequence[str] = (),
) -> None:
    """Print what was learned, as text or as JSON.

    ``made`` holds further values for JSON, ``found`` is an assessment, and ``steps`` are commands
    to run next.
    """
    if say.chatty:
        show_model(say, estimator, seconds, found)
    say.note(f"Model: {out}" + (f"   Report: {report}" if report else ""))
    for line in steps:
        say.note(line)
    say.result(
        {
            "model": out,
            "report": report,
            "seconds": seconds,
            **made,
            "assessment": None if found is None else found.to_dict(),
            **facts(estimator),
        }
    )


def show_model(say: Out, estimator: Any, seconds: float, found: Any = None) -> None:
    """Print the assessment, the weights of kernels and views, and the chosen parameters."""
    if found is not None:
        say.show(found.headline)
        for remark in found.remarks:
            say.show(remark)
    say.show(weights_table(estimator))
    for line in (
        views_line(estimator),
        summary_line(estimator, seconds),
        choice_line(estimator),
    ):
        if line:
            say.show(line)


def facts(estimator: Any) -> dict[str, Any]:
    """Kernel weights, views and other values of a fitted estimator, for JSON."""
    rows = kernel_rows(estimator)
    out = {
        "estimator": type(estimator).__name__,
        "kernels": rows,
        "views": view_weights(rows),
        "support_vectors": len(estimator.support_),
        "duality_gap": estimator.duality_gap_,
        "objective": estimator.objective_,
        "engine": getattr(estimator, "engine_", None),
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


def view_weights(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The sum of the kernel weights of every view; empty without views."""
    from ..kernels.bank import view_of

    views: dict[str, float] = {}
    for row in rows:
        view = view_of(row["kernel"])
        if view:
            views[view] = views.get(view, 0.0) + row["weight"]
    return views


def views_line(estimator: Any, most: int = 12) -> str:
    """The share of every view, the largest first; empty without at least two views."""
    views = view_weights(kernel_rows(estimator))
    total = sum(map(abs, views.values()))
    if len(views) < 2 or not total:
        return ""
    ordered = sorted(views.items(), key=lambda item: -abs(item[1]))
    shown = ", ".join(f"{view} {weight / total:.0%}" for view, weight in ordered[:most])
    return f"By view: {shown}{', ...' if len(ordered) > most else ''}."


def weights_table(estimator: Any, most: int = 25) -> Any:
    """A table of the kernels with the largest weights, and of a few without weight."""
    from rich.table import Table

    rows = kernel_rows(estimator)
    total = sum(abs(row["weight"]) for row in rows) or 1.0
    # Weights that differ by rounding only stay in the order of the bank.
    rows = sorted(rows, key=lambda row: -round(abs(row["weight"]) / total, 9))
    used = sum(row["weight"] != 0 for row in rows)
    most = min(most, max(used + 3, 10))
    shown = rows[:most]
    title = "What was learned" + (f" ({most} of {len(rows)} kernels)" if len(rows) > most else "")
    table = Table(title=title, title_justify="left")
    table.add_column("kernel", overflow="fold")
    table.add_column("alignment", justify="right")
    table.add_column("share", justify="right")
    table.add_column("", no_wrap=True, min_width=24)
    for row in shown:
        bar = "█" * round(24 * abs(row["weight"]) / total)
        share = f"{row['weight'] / total:.1%}" if row["weight"] else "0"
        table.add_row(row["kernel"], f"{row['alignment']:.3f}", share, bar)
    return table


def summary_line(estimator: Any, seconds: float) -> str:
    """Numbers of kernels and samples used, the accuracy of the solution, and the time."""
    import numpy as np

    used = int(np.count_nonzero(np.atleast_2d(estimator.kernel_weights_).any(axis=0)))
    support, n = len(estimator.support_), estimator.plan_.n_samples
    all_or = "all" if support == n else f"{support} of"
    gap = float(estimator.duality_gap_)
    solved = "solved to optimality" if gap < 1e-3 else f"relative duality gap {gap:.0e}"
    made = getattr(estimator, "approximation_", None)
    if made is not None:
        vectors = f"{made.n_features} features approximate the kernels; "
    elif hasattr(estimator, "classes_"):
        vectors = f"{all_or} {n} samples are support vectors; "
    else:
        vectors = f"{n} samples; "
    said = (
        f"{used} of {len(estimator.kernel_names_)} kernels used; {vectors}{solved}; "
        f"{seconds:.1f} s."
    )
    return said if made is None else f"{said}\n{made}"


def choice_line(estimator: Any) -> str:
    """What cross-validation chose, and from which candidates; empty if there was no choice."""
    if not hasattr(estimator, "cv_results_"):
        return ""
    name = "C" if hasattr(estimator, "C_") else "alpha"
    grid = list(dict.fromkeys(float(v) for v in estimator.cv_results_[name]))
    rules = list(dict.fromkeys(map(str, estimator.cv_results_["weighting"])))
    parts = []
    if len(grid) > 1:
        tried = ", ".join(f"{value:g}" for value in grid)
        parts.append(f"{name} = {getattr(estimator, f'{name}_'):g} from {tried}")
    if len(rules) > 1:
        among = f"weighting {estimator.weighting_} from {', '.join(rules)}"
        if estimator.selection == "one-standard-error":
            among += " (the first one within one standard error of the best)"
        parts.append(among)
    if not parts:
        return ""
    return f"Chosen by {estimator.n_splits_}-fold cross-validation: {'; '.join(parts)}."
