"""Duality gaps from accurate kernel values.

A joint rule may give kernels very large weights (p > 2), so that rounding of kernel values in
single precision, or of the products with rank-one features, changes the objective by far more than
the tolerance. The gap of the result is therefore computed once more from accurate values
(`Grams.accurate`). If it is above the tolerance, the problem is solved again with these.

For two-stage rules this is done only if an estimate says that rounding may matter: with a large C,
coefficients of both signs can be so large that sums of kernel values cancel.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...learners.certify import certified
from ...learners.ridge import Ridge
from ...problem import Target
from ...weighting.base import Weighting
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import Found, Report, Stopped, certify
from .find import find
from .warm_start import WarmStart

#: The predictor of a two-stage rule is kept if its relative gap from accurate values is at most the
#: first; the check is made if the estimated rounding error exceeds the second times the first.
TWO_STAGE_TOL, MIN_CHECKED_PART = 1e-3, 0.1


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
    if not isinstance(weighting, JointWeighting):
        return recheck_two_stage(found, grams, target, weighting, learner, report)
    if weighting.certifies_itself:
        return found, grams
    accurate = grams.accurate()
    if accurate is grams:
        return found, grams
    checked = recertify(found, accurate, target, weighting, learner, summary)
    tol = weighting.tol
    if checked.machine.gap <= tol or found.machine.gap > tol:
        return checked, grams
    start = None if weighting.fixed_weights else WarmStart(found.kernel_weights)
    try:
        again = find(accurate, target, weighting, learner, warm=start, report=report)
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Stopped) and interrupt.found.machine.gap < checked.machine.gap:
            raise Stopped(interrupt.found, accurate) from None
        raise Stopped(checked) from None
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


def recheck_two_stage(
    found: Found,
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    report: Report | None = None,
) -> tuple[Found, Grams]:
    """The result of a two-stage rule, from accurate kernel values if rounding matters."""
    if not rounding_may_matter(found, grams, learner):
        return found, grams
    accurate = grams.accurate()
    if accurate is grams:
        return found, grams
    machine = found.machine
    if machine.chosen is None:  # else C was chosen from the inaccurate values, too
        values = accurate.combine(found.kernel_weights).matvec(machine.coef)
        checked = certified(learner, values, machine.coef, target, machine.n_iter)
        if checked.gap <= TWO_STAGE_TOL:
            checked = replace(checked, left_out=machine.left_out)
            return replace(found, machine=checked), grams
    return find(accurate, target, weighting, learner, report=report), accurate


def rounding_may_matter(found: Found, grams: Grams, learner: Learner) -> bool:
    """Whether rounding of kernel entries may change the objective by more than the tolerance.

    Errors E of the entries change the optimum by ``s'Es / 2``. Errors in one row may be equal (a
    rounded coordinate), errors in different rows are independent, so the change is at most about
    ``|E| ||s||_1 ||s||_2``.
    """
    machine = found.machine
    if grams.precision <= np.finfo(np.float64).eps or not hasattr(learner, "costs"):
        return False
    if isinstance(learner, Ridge) and machine.chosen is not None:
        learner = clone(learner).set_params(alpha=machine.chosen)
    error = float(np.abs(found.kernel_weights) @ grams.entry_errors)
    sizes = np.abs(machine.coef).sum(axis=0) @ np.linalg.norm(machine.coef, axis=0)
    objective = abs(machine.objective) / learner.unit
    return bool(error * sizes > MIN_CHECKED_PART * TWO_STAGE_TOL * objective)
