"""Duality gaps of joint problems from accurate kernel values.

A joint rule may give kernels very large weights (p > 2), so that rounding of kernel values in
single precision, or of the products with rank-one features, changes the objective by far more than
the tolerance. The gap of the result is therefore computed once more from accurate values
(`Grams.accurate`). If it is above the tolerance, the problem is solved again with these.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...weighting.base import Weighting
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import Found, Report, certify
from .find import find
from .warm_start import WarmStart


def find_and_recertify(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> tuple[Found, Grams]:
    """The result of `find` with an accurate gap, and the grams that its predictor belongs to."""
    found = find(grams, target, weighting, learner, summary=summary, warm=warm, report=report)
    accurate = grams.accurate()
    if not isinstance(weighting, JointWeighting) or weighting.certifies_itself:
        return found, grams
    if accurate is grams:
        return found, grams
    checked = recertify(found, accurate, target, weighting, learner, summary)
    tol = weighting.tol
    if checked.machine.gap <= tol or found.machine.gap > tol:
        return checked, grams
    start = None if weighting.fixed_weights else WarmStart(found.kernel_weights)
    again = find(accurate, target, weighting, learner, warm=start, report=report)
    again.history[:0] = found.history
    again = recertify(again, accurate, target, weighting, learner)
    if again.machine.gap > checked.machine.gap:
        again = checked
    if again.machine.gap > tol:
        warnings.warn(
            f"Rounding limits the precision of {weighting!r}: its relative duality gap is "
            f"{again.machine.gap:.2g}, above tol={tol:g}. Raise tol, or choose p nearer to 2.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return again, accurate


def recertify(
    found: Found,
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    summary: Summary | None = None,
) -> Found:
    """The same kernel weights and coefficients, with intercept, objective and gap from `grams`."""
    rule = regulariser_of(weighting, grams, target, summary)
    theta, coef = found.kernel_weights, found.machine.coef
    gram = grams.combine(theta)
    values = gram.matvec(coef)
    a = grams.quadratic_forms(coef).sum(axis=1)
    iterate = certify(target, rule, learner, theta, gram, coef, values, a)
    checked = iterate.found(learner, found.history)
    return replace(checked, machine=replace(checked.machine, values=values))
