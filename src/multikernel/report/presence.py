"""How many training samples have each view, and the scores of samples without it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..estimators.assessment import scoring_name
from ..kernels.observed import Observed
from .sample import take


def presence_table(estimator: Any, X: Any, y: Any) -> str:
    """A table of the views: how many samples have each, and the scores with and without it.

    The scores are those of ``estimator.score`` on the samples of the report. The table is empty if
    no view was missing in training.
    """
    presence = getattr(estimator, "presence_", None)
    if presence is None or y is None or np.all(presence == 1):
        return ""
    completion = getattr(estimator, "view_completion_", {})
    checked, y = estimator._check_X(X, reset=False), np.asarray(y)
    columns = {
        kernel.view or name: list(kernel.columns)
        for kernel, name in zip(estimator.bank_, estimator.bank_.names, strict=True)
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
            some = np.flatnonzero(those)
            scored = len(some) > 1
            cells.append(
                f"{estimator.score(take(estimator, X, some), y[some]):.3f}" if scored else ""
            )
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
    return (
        "<h3>Missing views</h3><p>The share of training samples that have each view, and the "
        f"{score} on the samples of this report that have it and that lack it.</p>"
        '<div class="scroll"><table class="views"><thead><tr><th scope="col">view</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
