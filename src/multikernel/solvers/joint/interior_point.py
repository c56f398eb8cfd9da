"""Block norms with p > 2 by an interior-point method in coefficients and kernel weights.

For p > 2 the dual of lp-norm multiple kernel learning (Kloft 2011, Problem II.4) is concave in the
signed coefficients s *and* the weights. With ``c = (p - 2) / p``, which is one at p = inf,

    max_{s, u}  L(s) - 1/2 sum_k a_k(s) u_k^-c,     u >= 0, sum_k u_k = 1,     a_k(s) = s'K_k s

where L is the dual loss, and ``theta_k = u_k^-c`` are the kernel weights. The alternation maximises
over s and over u in turns. With kernels of low rank some a_k and u_k tend to zero together and
theta_k to infinity. Each round then reduces the error of the logarithms of the weights by the
factor ``(p - 2) / (p - 1)``, which tends to one for large p. Newton's method in u alone does not
help: with piecewise linear losses the support vectors change in every step.

Here s and u move together, by Newton's method on the barrier problem

    max  L(s) - 1/2 sum_k a_k u_k^-c + mu (sum_k log u_k + sum_i log alpha_i + log(C_i - alpha_i))

for decreasing mu, with u kept away from the boundary of the simplex. A few dozen linear
systems are needed, for any p, loss and ranks of the kernels. (The third derivative of ``a u^-c`` is
bounded by its second derivative and that of the logarithm, so Newton's method provably converges;
Nesterov & Nemirovskii 1994.) All iterates are feasible, so each has a primal and a dual value. Once
the gap is small, the learner trains a predictor with these kernel weights, which is returned. If
the learner fails because the weights differ by orders of magnitude, the iterate itself is returned;
then all samples have non-zero coefficients.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._journal import Answers, journal_of
from ..._quiet import ignoring
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import CertifiedIterate, Found, Report, Stopped, record
from .alternation import find_by_alternation
from .barriers import NoInnerPoint
from .central_path import BARRIER_SHRINK, CentralPath
from .definiteness import require_psd
from .training import iterate_from, numbers_of, train_at
from .warm_start import WarmStart

#: The alternation continues while every round reduces the gap to at most this fraction ...
MAX_GAP_RATIO = 0.7
#: ... and the largest kernel weight is at most this many times the smallest. With a larger spread
#: training becomes slow.
MAX_WEIGHT_SPREAD = 1e3
#: Limit on training runs at the end. With a large spread of weights the learner may fail; the
#: iterate, which has its own certificate, is then returned.
MAX_FINAL_FITS = 3
#: Largest number of entries in an array; larger problems are solved by the alternation.
MAX_ARRAY_ENTRIES = 5e7


def find_by_interior_point(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of lp-norm multiple kernel learning, p > 2.

    ::

        while it is fast   alternate predictor and weights     -> return if the gap is small
        repeat   Newton step in s and u                -> s, theta = u^-c with primal, dual, gap
                 gap below tol: train at theta         -> return if its gap is small
                 step small: mu <- BARRIER_SHRINK mu

    ``history`` has one entry per Newton step and per training run. Problems without an inner point
    (all samples in one class, ``nu = 1``) and problems too large for a factorisation are solved by
    the alternation.

    Parameters
    ----------
    grams : Grams
        Centred and normalised.
    target : Target
    weighting : LpNorm
        Gives p, ``tol`` and ``max_iter``, the limit on Newton steps and training runs.
    learner : Learner
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Kernel weights of a similar problem; used unless their spread is large.
    report : callable, optional
        Receives every entry of the history.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    theta = rule.start()
    usable = theta > 0
    M, (n, t) = int(usable.sum()), target.Y.shape
    large = max(n * n, M * n * t, min(M, n * t) ** 2) > MAX_ARRAY_ENTRIES
    if large or "dense" not in grams.combine(theta).offers:
        return find_by_alternation(grams, target, weighting, learner, warm=warm, report=report)
    same_bank = warm is not None and len(warm.kernel_weights) == len(theta)
    if warm is not None and same_bank and not far_apart(warm.kernel_weights[usable]):
        theta = warm.near(theta)
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False)
    tol = weighting.tol
    history: list[dict[str, Any]] = []

    def enough(iterate: CertifiedIterate) -> bool:
        record(history, iterate.entry(learner), report)
        return iterate.meets(tol)

    path = CentralPath(grams, target, weighting.p, rule, learner, tol)
    best: CertifiedIterate | None = None
    wanted, tries = np.inf, 0
    reason = f"stopped after max_iter={weighting.max_iter} steps"
    try:
        while True:
            start = None if best is None else best.coef
            trained = train_at(grams, target, learner, theta, gram, start, report, multiply=True)
            turn = path.certify_trained(theta, gram, trained)
            if enough(turn):
                return turn.found(learner, history)
            slow = best is not None and turn.gap > MAX_GAP_RATIO * best.gap
            if best is None or turn.gap < best.gap:
                best = turn
            theta = rule.update(turn.theta, turn.a)
            if slow or far_apart(theta[usable]) or len(history) >= weighting.max_iter:
                break
            gram.forget()  # free its memory before the next combination needs as much
            gram = grams.combine(theta)
        path.begin(best.coef)
        journal = journal_of(report)
        kept = None if journal is None else journal.state("interior point")
        if kept is not None:
            history[:], wanted, tries = kept["history"], kept["wanted"], kept["tries"]
            best = iterate_from(grams, kept["best"])
            path.restore(kept["path"])
        while len(history) < weighting.max_iter:
            best.gram.forget()
            here = path.here()
            best = min(best, here, key=lambda iterate: iterate.gap)
            if enough(here) and path.mu <= wanted:
                with ignoring(ConvergenceWarning):
                    # Its gap in the joint problem is checked below.
                    coef = learner.fit(here.gram, target, start=path.settled(here)).coef
                last = path.certify_coef(here.theta, here.gram, coef)
                if enough(last):
                    return last.found(learner, history)
                wanted, tries = BARRIER_SHRINK * path.mu, tries + 1
                if tries == MAX_FINAL_FITS:
                    return here.found(learner, history)
            # The error due to mu is far below the tolerance: only rounding errors remain.
            if path.mu * path.count < 1e-4 * tol * here.regulariser or not path.advance(here):
                spread = np.log10(here.theta[usable].max() / here.theta[usable].min())
                reason = (
                    f"stopped at the precision of float64 (its weights spread over {spread:.0f} "
                    "orders of magnitude)"
                )
                break
            if journal is not None:
                state = partial(state_of, history, best, wanted, tries, path)
                journal.keep("interior point", state)
    except NoInnerPoint:
        return find_by_alternation(grams, target, weighting, learner, warm=warm, report=report)
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    if not best.meets(tol):
        warnings.warn(
            f"{weighting!r} by the interior-point method {reason} with {best.shortfall(tol)}. "
            "Raise max_iter or tol, or lower p.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return best.found(learner, history)


def state_of(
    history: list[dict[str, Any]],
    best: CertifiedIterate,
    wanted: float,
    tries: int,
    path: CentralPath,
) -> Answers:
    """The state from which a later process can continue the Newton steps."""
    return {
        "history": history,
        "best": numbers_of(best),
        "wanted": wanted,
        "tries": tries,
        "path": path.state(),
    }


def far_apart(theta: np.ndarray) -> bool:
    """Whether the spread of the kernel weights is too large for fast training."""
    return bool(theta.max() > MAX_WEIGHT_SPREAD * theta.min())
