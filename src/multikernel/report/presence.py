"""How many training samples have each view, and the scores of samples without it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from ..estimators.assessment import scoring_name
from ..kernels.observed import Observed
from .held_out import HeldOut
from .sample import take


def presence_table(estimator: Any, X: Any, y: Any, held_out: HeldOut | None) -> str:
    """A table of the views: how many samples have each, and the scores with and without it.

    The scores are those of held-out predictions, or of ``estimator.score`` where there are none.
    The table is empty if no view was missing in training.
    """
    presence = getattr(estimator, "presence_", None)
    if presence is None or y is None or np.all(presence == 1):
        return ""
    completion = getattr(estimator, "view_completion_", {})
    checked, y = estimator._check_X(X, reset=False), np.asarray(y)
    columns = {
        name: list(kernel.columns)
        for kernel, name in zip(estimator.bank_, estimator._presence_names(), strict=True)
        if isinstance(kernel, Observed)
    }
    rows = []
    for view, share in estimator.view_presence_.items():
        cells = [f"{100 * share:.1f} %"]
        if completion:
            cells.append(f"{completion[view]:.2f}" if view in completion else "")
        lost = np.zeros(len(y), dtype=bool)
        if view in columns:
            lost = np.isnan(checked[:, columns[view]]).all(axis=1)
        for those in (~lost, lost):
            cells.append(_score(estimator, X, y, those, held_out))
        numbers = "".join(f'<td class="num">{cell}</td>' for cell in cells)
        rows.append(f'<tr><th scope="row">{escape(view)}</th>{numbers}</tr>')
    score = scoring_name(None, hasattr(estimator, "classes_"))
    heads = [
        "samples that have it",
        *(["predicted by the others"] if completion else []),
        f"{score} with it",
        f"{score} without",
    ]
    head = "".join(f'<th scope="col" class="num">{name}</th>' for name in heads)
    whose = "predictions for the training samples" if held_out is None else "held-out predictions"
    return (
        "<h3>Missing views</h3><p>The share of training samples that have each view, and the "
        f"{score} of {whose} for samples that have it and for samples that lack it.</p>"
        '<div class="scroll"><table class="views"><thead><tr><th scope="col">view</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _score(
    estimator: Any, X: Any, y: np.ndarray, those: np.ndarray, held_out: HeldOut | None
) -> str:
    """The score on some samples, given by a mask; "" for fewer than two."""
    if held_out is None:
        some = np.flatnonzero(those)
        if len(some) < 2:
            return ""
        return f"{estimator.score(take(estimator, X, some), y[some]):.3f}"
    some = np.flatnonzero(those[held_out.rows])
    if len(some) < 2:
        return ""
    score = accuracy_score if hasattr(estimator, "classes_") else r2_score
    return f"{score(held_out.truth[some], held_out.answers[some]):.3f}"
