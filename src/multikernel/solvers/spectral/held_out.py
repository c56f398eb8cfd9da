"""Leave-one-out decision values of the largest-margin classifiers."""

from __future__ import annotations

import numpy as np

from ...grams.matrix import GivenMatrix
from ...learners.left_out import copies_of, span_rule
from .problem import Labels, Trained


def left_out_margins(K: np.ndarray, labels: Labels, machine: Trained) -> np.ndarray:
    """Leave-one-out values by the span rule, with a fixed kernel matrix, shape (n,).

    A 2-norm margin is a hard margin for the matrix ``K + I/C``; for the sample that is left out,
    the ridge ``I/C`` does not count.
    """
    n = len(labels.y)
    gram = GivenMatrix(K + labels.ridge * np.eye(n) if labels.ridge else K)
    values = gram.matvec(machine.s) + machine.intercept
    box = labels.box if np.isfinite(labels.box) else 10.0 * float(machine.alpha.max())
    return span_rule(
        gram,
        values,
        machine.alpha,
        labels.y,
        np.full(n, max(box, 1e-300)),
        np.ones(n),
        np.arange(n),
        copies_of(gram, labels.y),
        fit_intercept=True,
    )
