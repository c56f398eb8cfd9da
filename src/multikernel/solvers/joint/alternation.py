"""Joint learning by alternating the predictor and the kernel weights (Kloft 2011, Algorithm 3.1).

::

    repeat   s      = optimum of the learner at the combination with weights theta
             certify: primal and dual value from (theta, s)      -> stop when the gap is small
             theta  = the regulariser's update for a_k = s'K_k s
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._journal import PART, Answers, recall
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import CertifiedIterate, Found, Report, Stopped, certify, record
from .definiteness import require_psd
from .training import train_at
from .warm_start import WarmStart


def find_by_alternation(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of a joint problem, by alternation.

    The alternation stops when the gap is small relative to the objective and relative to the
    regulariser (see `CertifiedIterate.meets`). The iterate with the smallest gap is returned; its
    predictor was trained with its weights.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    theta = rule.start()
    if warm is not None:
        theta = warm.near(theta)
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False)
    history: list[dict[str, Any]] = []
    mixed: np.ndarray | None = None
    coef: np.ndarray | None = None
    best: CertifiedIterate | None = None
    try:
        for _ in range(weighting.max_iter):
            coef, values, a = train_at(grams, target, learner, theta, gram, coef, report)
            iterate = certify(target, rule, learner, theta, gram, coef, values, a)
            record(history, iterate.entry(learner), report)
            if best is None or iterate.gap < best.gap:
                best = iterate
            if iterate.meets(weighting.tol):
                break
            a = iterate.a
            if rule.mixing > 0:
                mixed = coef if mixed is None else rule.mixing * mixed + (1 - rule.mixing) * coef
                forms = recall(report, "mix", (mixed,), partial(forms_of, grams, mixed), PART)
                a = np.maximum(forms["a"], 0.0)
            theta = rule.update(theta, a)
            gram.forget()  # free its memory before the next combination needs as much
            gram = grams.combine(theta)
        else:
            assert best is not None
            warnings.warn(
                f"{weighting!r} stopped after max_iter={weighting.max_iter} alternations with "
                f"{best.shortfall(weighting.tol)}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    assert best is not None
    return best.found(learner, history)


def forms_of(grams: Grams, coef: np.ndarray) -> Answers:
    """``a_k = coef' K_k coef``, summed over outputs."""
    return {"a": grams.quadratic_forms(coef).sum(axis=1)}
