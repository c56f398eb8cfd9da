"""Joint learning by cutting planes: a few machines, each of which bounds all weights at once.

For a block norm p in [1, 2] lp-norm multiple kernel learning is, with ``q = p / (2 - p)``,

    min_theta  g(theta),   g(theta) = max_s  L(s) - theta'a(s) / 2,    theta >= 0, ||theta||_q <= 1

where s runs over the signed coefficients that the dual of the machine allows, ``L(s)`` is the dual
loss and ``a_k(s) = s'K_k s`` (Kloft 2011, Problem II.4). A machine trained at any theta is one such
s, and its *cut* ``L - theta'a / 2`` lies below g everywhere and touches it there. The largest of
all cuts is a model of g; its minimum is a lower bound of the optimum:

- p = 1: a linear program, the semi-infinite LP of Sonnenburg et al. 2006; its vertices have exact
  zeros;
- 1 < p < 2: a linear objective over a ball of the q-norm (Kloft 2011, Algorithm D.1, with the
  projection of line 18 repaired);
- p = 2: nothing to choose, every weight is one.

The minimum of the model jumps about in the first rounds. The level method (Lemarechal, Nemirovskii
and Nesterov 1995; for kernels Xu et al. 2009) goes instead from the last weights to the nearest
point at which the model is a given part of the way down.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams, Summary
from ...learners.base import Learner
from ...learners.svm import SVM
from ...problem import Target
from ...problem.regularisers import Regulariser
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import Found, Report, Stopped, certify
from .curvature import TrainedIterate, curvature_root, has_curvature, newton_point
from .cuts import TINY, CutModel, onto_sphere
from .definiteness import gap_allows, require_psd
from .warm_start import WarmStart, mix_with_start

#: Part of the gap above the lower bound at which the level lies: the one with the best guarantee.
LEVEL = 1.0 - np.sqrt(0.5)
#: Relative gap below which a predictor is trained to its last digits.
EXACT_BELOW_GAP = 5e-3
#: Factor on the learner's tolerance before that.
LOOSE_TOLERANCE = 10.0
#: From this many samples on, the first predictor is trained loosely.
MIN_LOOSE_SAMPLES = 800


def find_by_cutting_planes(
    grams: Grams,
    target: Target,
    weighting: Any,
    learner: Learner,
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    stabilise: bool = True,
    curvature: bool = True,
    certificate: str = "machine",
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Weights and predictor of lp-norm multiple kernel learning, 1 <= p <= 2, by cutting planes.

    ::

        repeat   predictor at theta      -> primal and dual value, cut L - theta'a / 2
                 minimum of all cuts     -> lower bound, its point theta_low
                 theta <- theta_low, or the nearest point with all cuts below the level

    Parameters
    ----------
    grams : Grams
        Centred and normalised as the learner is to see them.
    target : Target
    weighting : LpNorm
        Names p and, unless they are given here, ``tol`` and ``max_iter``.
    learner : Learner
        Any with a convex loss; its dual variables need not be exact, the bounds hold anyway.
    tol : float, optional
        Relative duality gap to reach.
    max_iter : int, optional
        Limit on training runs.
    stabilise : bool, default=True
        The level method; False goes to the minimum of the model every time.
    curvature : bool, default=True
        With ``stabilise``, first try the minimum of the quadratic expansion of g at the best
        weights so far, on the set that the cuts leave: near the optimum this is Newton's method.
        A try without progress is followed by steps of the level method.
    certificate : {"machine", "cuts"}, default="machine"
        The source of the lower bound in the reported gap: the coefficients of the returned
        predictor alone, so that anyone can recompute it, or all cuts together. The second needs
        about half the training runs: the error of a single predictor's bound is of first order in
        that of the weights, the other's of second order.
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Weights of a similar problem to begin near.
    report : callable, optional
        Receives the entry of every training run.

    Returns
    -------
    Found
        The predictor was trained at exactly the weights returned. ``history`` has one entry per
        training run: objective, gap, active, support as in the alternation, and the best lower and
        upper bounds of the optimum so far.
    """
    p = weighting.p
    require_range(p)
    if certificate not in ("machine", "cuts"):
        raise ValueError(
            f"Cutting planes: certificate must be 'machine' or 'cuts'; got {certificate!r}."
        )
    tol = weighting.tol if tol is None else tol
    max_iter = weighting.max_iter if max_iter is None else max_iter
    rule = regulariser_of(weighting, grams, target, summary)
    model = CutModel(p)
    theta, gram = first_combination(grams, rule, model, warm)
    usable = theta > 0
    slack = require_psd(grams, theta, gram, warn=False, rough=True)
    curvature = curvature and stabilise and has_curvature(learner, p, int(usable.sum()))
    loose: SVM | None = None
    if isinstance(learner, SVM) and grams.n >= MIN_LOOSE_SAMPLES:
        loose = loosened(learner)
    tried, halted = None, False
    lower = -np.inf
    iterate: TrainedIterate | None = None
    best: TrainedIterate | None = None
    top: TrainedIterate | None = None
    history: list[dict[str, Any]] = []
    reason = f"stopped after max_iter={max_iter} training runs"
    for _ in range(max_iter):
        try:
            if loose is not None:
                iterate = train(grams, target, rule, loose, theta, gram)
            if loose is None or iterate is None or iterate.meets(max(EXACT_BELOW_GAP, tol)):
                start = None if iterate is None else iterate.coef
                iterate = train(grams, target, rule, learner, theta, gram, start=start)
                loose = None
        except KeyboardInterrupt:
            if best is None:
                raise
            raise Stopped(best.found(learner, history)) from None
        if best is None or iterate.gap < best.gap:
            best = iterate
        if top is None or iterate.primal < top.primal:
            top = iterate
        answer = best if certificate == "machine" else top
        low = None
        if certificate == "cuts" or not answer.meets(tol):
            low = model.add(iterate.loss_dual, iterate.a[usable], theta[usable])
        lower = max(lower, iterate.dual, -np.inf if low is None else low.value)
        gap = answer.gap if certificate == "machine" else max(top.primal - lower, 0.0)
        # The entry is about this iterate; the answer may be an earlier one.
        proven = iterate.gap if certificate == "machine" else max(iterate.primal - lower, 0.0)
        history.append(
            {
                **iterate.entry(learner, proven),
                "lower": lower * learner.unit,
                "upper": top.primal * learner.unit,
            }
        )
        if report is not None:
            report(history[-1])
        if answer.meets(tol, gap):
            reason = ""
            break
        assert low is not None
        # Newton starts at the lowest objective; where all are as low, at the smallest gap.
        base = best if best.primal - top.primal <= 0.01 * best.gap else top
        point = None
        with one_blas_thread(model.B.shape[1]):
            if curvature and base is not tried:
                tried = base
                U = curvature_root(base, target, learner, single=loose is not None)
                point = newton_point(model, base, U, usable, top.primal, low.theta)
            if point is None and stabilise and np.isfinite(low.value):
                level = low.value + LEVEL * (top.primal - low.value)
                point = model.approach(theta[usable], iterate.a[usable], level, low.theta)
        if point is None or np.max(np.abs(point - theta[usable])) <= TINY:
            point = low.theta
        moved = float(np.max(np.abs(point - theta[usable])))
        if loose is not None and moved <= TINY:
            loose = None  # once more at the same weights, to the last digit
            continue
        loose = None
        if moved <= TINY:
            # The predictor's own error hides the rest: its cut does not reach its objective.
            reason, halted = "came to a halt at the precision of its predictors", True
            break
        theta = np.zeros(grams.p)
        theta[usable] = point
        gram.forget()  # before the next one takes as much memory
        gram = grams.combine(theta)
    assert best is not None and top is not None
    if halted and top.primal - lower < gap:
        # Where several predictors are optimal, only their mixture may prove it.
        answer, gap = top, max(top.primal - lower, 0.0)
    found = answer.found(learner, history, gap)
    if found.machine.gap > tol or not (reason == "" or halted):
        warnings.warn(
            f"{weighting!r} by cutting planes {reason} with a relative duality gap of "
            f"{found.machine.gap:.2g}, above tol={tol:g}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if not gap_allows(slack, found, tol, learner.unit):
        require_psd(grams, found.weights, found.gram, warn=False)
    return found


def require_range(p: float) -> None:
    if not 1 <= p <= 2:
        raise ValueError(
            f"Cutting planes bound the optimum for p from 1 to 2; got p={p!r}. Larger p is solved "
            "by interior points."
        )


def newton_start(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    warm: WarmStart | None = None,
) -> np.ndarray | None:
    """The weights after one training run and one Newton step: a start, not a certified answer.

    None where there is no such step, for example at p = 1, where it takes several training runs to
    tell which weights are zero.
    """
    p: float = weighting.p  # type: ignore[attr-defined]
    rule, model = regulariser_of(weighting, grams, target), CutModel(p)
    theta, gram = first_combination(grams, rule, model, warm)
    usable = theta > 0
    if p == 1 or not has_curvature(learner, p, int(usable.sum())):
        return None
    learner = loosened(learner) if isinstance(learner, SVM) else learner
    require_psd(grams, theta, gram, warn=False, rough=True)
    iterate = train(grams, target, rule, learner, theta, gram)
    with one_blas_thread(len(theta)):
        low = model.add(iterate.loss_dual, iterate.a[usable], theta[usable])
        U = curvature_root(iterate, target, learner, single=True)
        point = newton_point(model, iterate, U, usable, iterate.primal, low.theta)
    if point is None:
        return None
    theta[usable] = point
    return theta


def first_combination(
    grams: Grams, rule: Regulariser, model: CutModel, warm: WarmStart | None
) -> tuple[np.ndarray, CombinedGram]:
    """The rule's own first weights, or the warm ones, on the sphere; and their combination."""
    theta = np.array(rule.start(), dtype=np.float64)
    if warm is None or len(warm.weights) != len(theta) or not np.isfinite(model.q):
        return theta, grams.combine(theta)
    mixed = np.where(theta > 0, mix_with_start(warm.weights, theta), 0.0)
    theta = onto_sphere(mixed, model.q)
    # Only the length differs if nothing was mixed in: then the known combination is rescaled.
    if warm.gram is not None and np.array_equal(mixed, warm.weights):
        kept = theta > 0
        if np.all(kept == (mixed > 0)):
            return theta, warm.gram.scaled(float(theta.sum() / mixed.sum()))
    return theta, grams.combine(theta)


def loosened(learner: SVM) -> SVM:
    """The same learner to few digits, for weights that will not stay."""
    loose = copy(learner)
    loose.exact, loose.tol = False, LOOSE_TOLERANCE * learner.tol
    return loose


def train(
    grams: Grams,
    target: Target,
    rule: Regulariser,
    learner: Learner,
    theta: np.ndarray,
    gram: CombinedGram,
    *,
    start: np.ndarray | None = None,
) -> TrainedIterate:
    """The predictor at theta, certified, with its products with all kernels."""
    machine = learner.fit(gram, target, start=start)
    coef = machine.coef
    values = gram.matvec(coef) if machine.values is None else machine.values
    support = np.flatnonzero(np.any(coef != 0, axis=1))
    products = grams.matvecs(coef, at=support)
    a = np.einsum("knt,nt->k", products, coef[support])
    certified = certify(target, rule, learner, theta, gram, coef, values, a)
    return TrainedIterate(**vars(certified), support=support, products=products)
