"""Block norms in feature space: a primal barrier method for kernels with explicit features.

With ``K_k = F_k F_k'`` for n x d_k matrices F_k lp-norm multiple kernel learning is

    min_{w, b}  1/2 ||(||w_1||, ..., ||w_M||)||_p^2 + sum_i C_i l(f_i, y_i),   f = sum_k F_k w_k + b

(Kloft 2011, Problem II.3; section 3.2.2 trains such predictors in the primal). If all kernels
together have few columns, an n x n matrix is wasteful. Here w is found by Newton's method: a step
costs O(n d^2) for d columns, and a few dozen steps are enough for any p from 1 to infinity and any
loss.

The norm is an epigraph over power cones, for all p at once: with ``u >= 0`` and ``r = sum_k u_k``,

    ||w||_{2,p} = min r     over     ||w_k|| <= u_k^(1/p) r^(1-1/p)

so the barrier problem for mu > 0, which is convex in (w, b, u), is

    min  1/2 r^2 + loss_mu - mu sum_k log(u_k^(2/p) r^(2-2/p) - ||w_k||^2)
             - mu sum_k (1 - 1/p) log u_k - mu M / p log r

(Nesterov 2006; :mod:`multikernel.solvers.joint.smoothed_losses` for loss_mu). The derivative of the
loss gives feasible coefficients s. With the kernel weights ``||w_k|| / ||F_k's||``, or with
those that belong to s, they give the duality gap that ends the iteration.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._journal import Answers, journal_of
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import Hinge, Logistic, OneClass, SmoothLoss
from ...problem.regularisers import BlockNorm
from ...weighting.base import Weighting
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import CertifiedIterate, Found, Report, Stopped, record
from .alternation import find_by_alternation
from .primal_path import MAX_VARIABLES, PrimalPath
from .smoothed_losses import smoothed
from .training import iterate_from, numbers_of
from .warm_start import WarmStart

#: Factor by which mu is reduced once the iterate is near the optimum of the barrier problem.
BARRIER_SHRINK = 0.1
#: Limit on further values of mu, after the tolerance is reached, to find coefficients at bounds.
MAX_CLEANING_ROUNDS = 3
#: ``"auto"`` uses this method from this many samples on, ...
MIN_AUTO_SAMPLES = 5000
#: ... and with at least this many samples per column and output.
MIN_AUTO_SAMPLES_PER_COLUMN = 50


def is_for(grams: Grams, target: Target, weighting: Weighting, learner: Learner) -> bool:
    """Whether ``solver="auto"`` uses this method: many samples, kernels with few columns.

    With a smooth loss and p up to 2 other solvers are as fast, since linear systems with such
    kernels are cheap as well.
    """
    if not isinstance(weighting, LpNorm) or weighting.solver != "auto" or not weighting.squared:
        return False
    n, t = target.Y.shape
    most = min(n // MIN_AUTO_SAMPLES_PER_COLUMN, MAX_VARIABLES) // t
    if n < MIN_AUTO_SAMPLES or grams.p > most or no_inner_point(target, learner):
        return False
    if isinstance(learner.loss, SmoothLoss) and weighting.p <= 2:
        return False
    if smoothed(learner.loss, target.Y, learner.costs(target)) is None:
        return False
    gram = grams.combine(np.where(grams.degenerate, 0.0, 1.0))
    return "features" in gram.offers and gram.features().shape[1] <= most


def find_by_primal(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of lp-norm learning over kernels with explicit features.

    ::

        repeat   Newton step in (w, b, u)
                 near the optimum for mu:   s = coefficients of the loss   -> primal, dual, gap
                                            mu <- BARRIER_SHRINK mu

    ``history`` has one entry per value of mu. At the end coefficients that tend to a bound are
    moved there and, at p = 1, weights that tend to zero are set to zero. If the gap is then too
    large, up to MAX_CLEANING_ROUNDS smaller values of mu follow.
    Problems without an inner point (all samples in one class, ``nu = 1``) are solved by the
    alternation.

    Parameters
    ----------
    grams : Grams
        Centred and normalised; their combinations offer "features".
    target : Target
    weighting : LpNorm
        Gives p, ``tol`` and ``max_iter``, the limit on Newton steps.
    learner : Learner
        Its loss is used; it is not trained.
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Not used: a barrier method starts far from the boundary.
    report : callable, optional
        Receives every entry of the history.
    """
    if no_inner_point(target, learner):
        return find_by_alternation(grams, target, weighting, learner, report=report)
    rule = regulariser_of(weighting, grams, target, summary)
    assert isinstance(rule, BlockNorm)
    path = PrimalPath(grams, target, rule, learner, float(weighting.p))
    history: list[dict[str, Any]] = []
    best: CertifiedIterate | None = None
    extra = 0
    reason = f"stopped after max_iter={weighting.max_iter} Newton steps"
    journal, first = journal_of(report), 0
    kept = None if journal is None else journal.state("primal")
    if kept is not None:
        first, extra, history = kept["step"], kept["extra"], kept["history"]
        best = None if kept["best"] is None else iterate_from(grams, kept["best"])
        path.restore(kept["path"])
    try:
        for step in range(first, weighting.max_iter):
            if journal is not None:
                state = partial(state_of, step, extra, history, best, path)
                journal.keep("primal", state)
            moved, near = path.advance()
            if moved and not near:
                continue
            iterate = path.certified()
            if best is None or iterate.gap < best.gap:
                best = iterate
            record(history, iterate.entry(learner), report)
            if best.meets(weighting.tol):
                clean = path.cleaned(iterate, weighting.tol)
                extra += 1
                if clean is not None or extra > MAX_CLEANING_ROUNDS or not moved:
                    answer = best if clean is None else clean
                    return answer.found(learner, history)
            if not moved or path.exhausted:
                reason = "stopped at the precision of float64"
                break
            path.mu *= BARRIER_SHRINK
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    if best is None:
        best = path.certified()
        record(history, best.entry(learner), report)
    if best.relative_gap <= weighting.tol:
        return best.found(learner, history)
    warnings.warn(
        f"{weighting!r} by the primal method {reason} with a relative duality gap of "
        f"{best.relative_gap:.2g}, above tol={weighting.tol:g}. Raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return best.found(learner, history)


def state_of(
    step: int,
    extra: int,
    history: list[dict[str, Any]],
    best: CertifiedIterate | None,
    path: PrimalPath,
) -> Answers:
    """The state from which a later process can continue."""
    numbers = None if best is None else numbers_of(best)
    state = {"step": step, "extra": extra, "history": history, "best": numbers}
    return state | {"path": path.state()}


def no_inner_point(target: Target, learner: Learner) -> bool:
    """Whether no coefficients are strictly inside their bounds: a class is missing, or nu = 1."""
    if isinstance(learner.loss, OneClass):
        return float(learner.costs(target).sum()) < 1.0 + 1e-9
    if learner.fit_intercept and isinstance(learner.loss, Hinge | Logistic):
        return bool(np.any(np.abs(target.Y.mean(axis=0)) == 1.0))
    return False
