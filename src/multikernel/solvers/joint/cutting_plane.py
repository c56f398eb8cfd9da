"""Joint learning by cutting planes: each predictor gives a lower bound for all kernel weights.

For a block norm p in [1, 2] lp-norm multiple kernel learning is, with ``q = p / (2 - p)``,

    min_theta  g(theta),   g(theta) = max_s  L(s) - theta'a(s) / 2,    theta >= 0, ||theta||_q <= 1

where s are the feasible signed coefficients, ``L(s)`` is the dual loss and ``a_k(s) = s'K_k s``
(Kloft 2011, Problem II.4). A predictor trained at theta gives one such s. Its *cut* ``L - theta'a /
2`` lies below g everywhere and touches g at theta. The maximum of all cuts is a model of g, and the
minimum of the model is a lower bound of the optimum:

- p = 1: a linear program, the semi-infinite LP of Sonnenburg et al. 2006; its vertices have exact
  zeros;
- 1 < p < 2: a linear objective over a ball of the q-norm (Kloft 2011, Algorithm D.1, with a
  corrected projection in line 18);
- p = 2: all weights are one.

In the first rounds the minimum of the model is far from the optimum and moves erratically. The
level method (Lemarechal, Nemirovskii and Nesterov 1995; for kernels Xu et al. 2009) moves instead
to the nearest point at which the model is below a level between its minimum and the best objective.
"""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._journal import PART, ROUND, Answers, recall
from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams, Summary
from ...learners.base import Learner
from ...learners.svm import SVM
from ...problem import Target
from ...problem.regularisers import Regulariser
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import Found, Report, Stopped, certify, record
from .ball_geometry import ZERO_WEIGHT_RATIO, onto_sphere
from .curvature import TrainedIterate, curvature_root, has_curvature, newton_point
from .cuts import CutModel
from .definiteness import gap_allows, require_psd
from .warm_start import WarmStart, mix_with_start

#: The level, as a fraction of the gap above the lower bound; this value has the best guarantee.
LEVEL_FRACTION = 1.0 - np.sqrt(0.5)
#: Relative gap below which a predictor is trained to full precision.
EXACT_BELOW_GAP = 5e-3
#: Factor of the learner's tolerance above that gap.
LOOSE_TOLERANCE_FACTOR = 10.0
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
    """Kernel weights and predictor of lp-norm learning, 1 <= p <= 2, by cutting planes.

    ::

        repeat   predictor at theta      -> primal and dual value, cut L - theta'a / 2
                 minimum of all cuts     -> lower bound, minimiser theta_low
                 theta <- theta_low, or the nearest point with all cuts below the level

    Parameters
    ----------
    grams : Grams
        Centred and normalised.
    target : Target
    weighting : LpNorm
        Gives p and, unless they are given here, ``tol`` and ``max_iter``.
    learner : Learner
        Any learner with a convex loss. The bounds are valid even if its solution is inexact.
    tol : float, optional
        Relative duality gap to reach.
    max_iter : int, optional
        Limit on training runs.
    stabilise : bool, default=True
        Whether to use the level method; otherwise every step goes to the minimum of the model.
    curvature : bool, default=True
        With ``stabilise``, first try the minimiser of the quadratic expansion of g at the best
        weights so far, within the cuts: Newton's method near the optimum. If it makes no progress,
        steps of the level method follow.
    certificate : {"machine", "cuts"}, default="machine"
        The lower bound in the reported gap. ``"machine"`` uses only the coefficients of the
        returned predictor, so that the gap can be recomputed from the model. ``"cuts"`` uses all
        cuts and needs about half the training runs: the error of a single predictor's bound is
        proportional to the error of the weights, the error of the bound of all cuts to its square.
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Kernel weights of a similar problem.
    report : callable, optional
        Receives the history entry of every training run.

    Returns
    -------
    Found
        The predictor was trained with exactly the returned weights. ``history`` has one entry per
        training run: objective, gap, active and support as for other solvers, and the best lower
        and upper bounds of the optimum so far.
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
                iterate = train(grams, target, rule, loose, theta, gram, report=report)
            if loose is None or iterate is None or iterate.meets(max(EXACT_BELOW_GAP, tol)):
                start = None if iterate is None else iterate.coef
                iterate = train(
                    grams, target, rule, learner, theta, gram, start=start, report=report
                )
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
        # The entry describes this iterate; the answer may be an earlier one.
        proven = iterate.gap if certificate == "machine" else max(iterate.primal - lower, 0.0)
        bounds = {"lower": lower * learner.unit, "upper": top.primal * learner.unit}
        record(history, iterate.entry(learner, proven) | bounds, report)
        if answer.meets(tol, gap):
            reason = ""
            break
        assert low is not None
        # Newton's method starts at the lowest objective or, if that is a near tie, at the
        # smallest gap.
        base = best if best.primal - top.primal <= 0.01 * best.gap else top
        point = None
        with one_blas_thread(model.B.shape[1]):
            if curvature and base is not tried:
                tried = base
                new = partial(
                    newton_answers,
                    *(model, base, target, learner, usable, top.primal, low.theta),
                    single=loose is not None,
                )
                point = recall(report, "newton", (base.theta, low.theta), new, PART)["point"]
            if point is None and stabilise and np.isfinite(low.value):
                level = low.value + LEVEL_FRACTION * (top.primal - low.value)
                point = model.approach(theta[usable], iterate.a[usable], level, low.theta)
        if point is None or np.max(np.abs(point - theta[usable])) <= ZERO_WEIGHT_RATIO:
            point = low.theta
        moved = float(np.max(np.abs(point - theta[usable])))
        if loose is not None and moved <= ZERO_WEIGHT_RATIO:
            loose = None  # train again with the same weights, to full precision
            continue
        loose = None
        if moved <= ZERO_WEIGHT_RATIO:
            # The remaining gap is the error of the predictor: its cut is below its objective.
            reason, halted = "stopped at the precision of its predictors", True
            break
        theta = np.zeros(grams.p)
        theta[usable] = point
        gram.forget()  # free its memory before the next combination needs as much
        gram = grams.combine(theta)
    assert best is not None and top is not None
    if halted and top.primal - lower < gap:
        # If several predictors are optimal, only their cuts together may prove optimality.
        answer, gap = top, max(top.primal - lower, 0.0)
    found = answer.found(learner, history, gap)
    if found.machine.gap > tol or not (reason == "" or halted):
        warnings.warn(
            f"{weighting!r} by cutting planes {reason} with {answer.shortfall(tol, gap)}. "
            "Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if not gap_allows(slack, found, tol, learner.unit):
        require_psd(grams, found.kernel_weights, found.gram, warn=False)
    return found


def require_range(p: float) -> None:
    """Raise ValueError unless ``1 <= p <= 2``."""
    if not 1 <= p <= 2:
        raise ValueError(
            f"Cutting planes are for p from 1 to 2; got p={p!r}. Use solver='interior-point' for "
            "larger p."
        )


def newton_start(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    warm: WarmStart | None = None,
) -> np.ndarray | None:
    """Kernel weights after one training run and one Newton step: a start without certificate.

    The result is None if there is no such step, for example at p = 1, where several training runs
    are needed to find the zero weights.
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
    """The default start, or the warm start scaled to the sphere; and the combination."""
    theta = np.array(rule.start(), dtype=np.float64)
    if warm is None or len(warm.kernel_weights) != len(theta) or not np.isfinite(model.q):
        return theta, grams.combine(theta)
    mixed = np.where(theta > 0, mix_with_start(warm.kernel_weights, theta), 0.0)
    theta = onto_sphere(mixed, model.q)
    # If nothing was mixed in, the weights differ only by a factor: rescale the known combination.
    if warm.gram is not None and np.array_equal(mixed, warm.kernel_weights):
        kept = theta > 0
        if np.all(kept == (mixed > 0)):
            return theta, warm.gram.scaled(float(theta.sum() / mixed.sum()))
    return theta, grams.combine(theta)


def loosened(learner: SVM) -> SVM:
    """The same learner with low precision, for kernel weights that will still change."""
    loose = copy(learner)
    loose.exact, loose.tol = False, LOOSE_TOLERANCE_FACTOR * learner.tol
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
    report: Report | None = None,
) -> TrainedIterate:
    """Train a predictor at theta, certify it, and compute its products with all kernels."""
    products: np.ndarray | None = None

    def run() -> Answers:
        nonlocal products
        machine = learner.fit(gram, target, start=start)
        coef = machine.coef
        values = gram.matvec(coef) if machine.values is None else machine.values
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        products = grams.matvecs(coef, at=support)
        a = np.einsum("knt,nt->k", products, coef[support])
        return {"coef": coef, "values": values, "a": a}

    found = recall(report, "train", (theta, start, loosely(learner)), run, ROUND)
    certified = certify(target, rule, learner, theta, gram, **found)
    return TrainedIterate(**vars(certified), grams=grams, known_products=products)


def loosely(learner: Learner) -> bool:
    """Whether the learner is a support vector machine of low precision, see `loosened`."""
    return isinstance(learner, SVM) and not learner.exact


def newton_answers(
    model: CutModel,
    base: TrainedIterate,
    target: Target,
    learner: Learner,
    usable: np.ndarray,
    upper: float,
    low: np.ndarray,
    *,
    single: bool,
) -> Answers:
    """The point of a Newton step from `base`, or None."""
    U = curvature_root(base, target, learner, single=single)
    return {"point": newton_point(model, base, U, usable, upper, low)}
