"""The unsquared norm, as in the group lasso: ``min 1/2 ||w||_{2,p} + sum_i C_i l(f(x_i), y_i)``.

With the squared norm ``1/2 ||w||^2`` and costs ``c C_i`` the optimality conditions are
``W g + c C l' = 0``, where ``W = ||w||`` and g is a subgradient of the norm. With the unsquared
norm they are ``g / 2 + C l' = 0``. Both problems therefore have the same solution w if ``c = 2 W``
(Kloft 2011, section 2.3.3, where the primal is unsquared and the dual that of the squared norm; in
its terms ``C' = C / (2 W)``). W grows with c, but not faster than c, so c is the root of a monotone
function: a few problems of the squared norm, each started from the last, find it.

The coefficients s of such a problem, multiplied by ``kappa = min(1 / c, 1 / (2 ||Phi's||_{p*}))``,
are feasible for the dual of the unsquared problem, ``max L(s)`` over ``||Phi's||_{p*} <= 1/2``.
With kernel weights ``theta / kappa`` the predictor is the same, so the certificate is that of the
unsquared problem with the given costs, whatever the error of c.

If the norm costs more than any predictor can gain, w = 0 is optimal, and there is no c. Then c
tends to zero, and the scaled coefficients prove that a constant is optimal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..._journal import Answers, Watched, journal_of, recall
from ..._quiet import ignoring
from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import OneClass
from ...problem.regularisers import Regulariser, conjugate, norm
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import CertifiedIterate, Found, Report, Stopped, certify, record
from .warm_start import WarmStart

#: Tolerance of the squared problems, relative to that of the unsquared one.
INNER_TOLERANCE = 0.1
#: Limit on the number of squared problems.
MAX_PROBLEMS = 60
#: Largest change of ``log c`` in a step, unless the root is bracketed.
MAX_LOG_STEP = 3.0
#: Relative gap that proves a constant to be optimal, if tol is not smaller.
CONSTANT_PRECISION = 1e-6


def find_unsquared(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    solve: Callable[..., Found],
    *,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of the unsquared norm.

    ``history`` has one entry per problem of the squared norm; ``cost_factor`` is its c.

    Parameters
    ----------
    weighting : LpNorm
        With ``squared=False``.
    solve : callable
        Solves a problem of the squared norm: `multikernel.solvers.joint.find.find`.
    warm : WarmStart, optional
        Kernel weights of a similar problem.
    report : callable, optional
        Receives the history entry of every problem.
    """
    if isinstance(learner.loss, OneClass):
        raise ValueError(
            "LpNorm(squared=False) needs a loss that can be rescaled; the one-class loss cannot, "
            "because it fixes the sum of its coefficients. Use squared=True."
        )
    rule = regulariser_of(weighting, grams, target)
    squared = clone(weighting).set_params(squared=True, tol=INNER_TOLERANCE * weighting.tol)
    p = float(weighting.p)
    warm = None if warm is None else WarmStart(on_unit_norm(warm.kernel_weights, p))
    search = RootSearch()
    quiet = Watched(None, journal_of(report))
    history: list[dict[str, Any]] = []
    best: CertifiedIterate | None = None
    try:
        for _ in range(MAX_PROBLEMS):
            factor = float(np.exp(search.x))
            with ignoring(ConvergenceWarning):
                # The gap of the unsquared problem is checked below.
                found = solve(
                    grams, scaled(target, factor), squared, learner, warm=warm, report=quiet
                )
            warm = WarmStart(found.kernel_weights)
            # Kept in the journal, since a later process lacks the operator's cached values.
            values = recall(quiet, "values", (factor,), partial(values_of, found))["values"]
            iterate, size = unsquared_iterate(
                grams, target, rule, learner, found, values, factor, p
            )
            constant = constant_iterate(grams, target, rule, learner, iterate)
            precise = constant.gap <= min(weighting.tol, CONSTANT_PRECISION) * abs(constant.primal)
            if precise:
                iterate = constant
            if best is None or iterate.gap < best.gap:
                best = iterate
            record(history, iterate.entry(learner) | {"cost_factor": factor}, report)
            if precise or iterate.meets(weighting.tol):
                return iterate.found(learner, history)
            search.next(np.log(max(2.0 * size, 1e-300)))
    except (KeyboardInterrupt, Stopped):
        # An iterate of an unfinished squared problem is no iterate of the unsquared one.
        if best is None:
            raise KeyboardInterrupt from None
        raise Stopped(best.found(learner, history)) from None
    assert best is not None
    warnings.warn(
        f"{weighting!r} stopped after {MAX_PROBLEMS} problems of the squared norm with "
        f"{best.shortfall(weighting.tol)}. Raise tol.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return best.found(learner, history)


class RootSearch:
    """The root of ``F(x) = x``, where F grows with a slope between 0 and 1; x is ``log c``."""

    def __init__(self) -> None:
        self.x = 0.0
        self.low, self.high = -np.inf, np.inf
        self.last: tuple[float, float] | None = None

    def next(self, value: float) -> None:
        """Move x, given F at the current x: a secant step within the known bracket of the root."""
        rise = value - self.x
        if rise >= 0:
            self.low = max(self.low, self.x)
        else:
            self.high = min(self.high, self.x)
        step = rise
        if self.last is not None and self.last[0] != self.x:
            slope = (rise - self.last[1]) / (self.x - self.last[0])
            # If F(x) - x does not fall, up to rounding, there is no estimate of the root.
            step = -rise / slope if slope < -1e-3 else np.sign(rise) * MAX_LOG_STEP
        self.last = (self.x, rise)
        new = self.x + float(np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP))
        if np.isfinite(self.high - self.low) and not self.low < new < self.high:
            new = 0.5 * (self.low + self.high)
        self.x = new


def scaled(target: Target, factor: float) -> Target:
    """The target with all losses multiplied by a factor."""
    factors = np.full(len(target.Y), factor)
    return replace(target, costs=factors if target.costs is None else factor * target.costs)


def on_unit_norm(theta: np.ndarray, p: float) -> np.ndarray:
    """Weights scaled to ``sum_k theta_k^q = 1``, ``q = p / (2 - p)``, as for the squared norm."""
    if p == 2 or not np.any(theta > 0):
        return np.where(theta > 0, 1.0, 0.0)
    q = -1.0 if np.isinf(p) else p / (2.0 - p)
    used = theta[theta > 0]
    size = norm(used, q) if q > 0 else 1.0 / norm(1.0 / used, -q)
    return theta / size


def unsquared_iterate(
    grams: Grams,
    target: Target,
    rule: Regulariser,
    learner: Learner,
    found: Found,
    values: np.ndarray,
    factor: float,
    p: float,
) -> tuple[CertifiedIterate, float]:
    """The solution of a squared problem as an iterate of the unsquared one, and its norm W.

    ``values`` are ``K coef`` of the solution.
    """
    coef, theta = found.machine.coef, found.kernel_weights
    a = np.maximum(grams.quadratic_forms(coef).sum(axis=1), 0.0)
    dual_norm = norm(np.sqrt(a[~grams.degenerate]), conjugate(p))
    kappa = 1.0 / factor if dual_norm == 0 else min(1.0 / factor, 0.5 / dual_norm)
    gram = grams.combine(theta / kappa)
    iterate = certify(
        target, rule, learner, theta / kappa, gram, kappa * coef, values, kappa**2 * a
    )
    return iterate, norm(theta * np.sqrt(a), p)


def values_of(found: Found) -> Answers:
    """``K coef`` of a solution."""
    return {"values": found.gram.matvec(found.machine.coef)}


def constant_iterate(
    grams: Grams, target: Target, rule: Regulariser, learner: Learner, iterate: CertifiedIterate
) -> CertifiedIterate:
    """The constant predictor, with the lower bound that the coefficients of the iterate prove."""
    zero, nothing = np.zeros(grams.p), np.zeros_like(iterate.coef)
    constant = certify(
        target, rule, learner, zero, grams.combine(zero), nothing, nothing, np.zeros(grams.p)
    )
    return replace(constant, dual=max(iterate.dual, constant.dual))
