"""l1 learning over kernels of rank one: a sparse linear function.

With ``K_k = u_k u_k'`` a predictor is ``f = sum_k beta_k u_k + b``, and multiple kernel learning
with block norm p = 1 is

    min 1/2 ||beta||_1^2 + sum_i C_i l(f_i, y_i),           theta_k = |beta_k| / ||beta||_1

(Kloft 2011, Problem II.3, where the parts ``w_k`` of the predictor are numbers). Cutting planes
need about one training run for every relevant kernel, of which there may be thousands. Here

- piecewise linear losses are linear programs at a few levels (:mod:`multikernel.solvers.levels`),
- the squared loss is non-negative least squares: with ``beta = sigma x, x >= 0`` the objective is
  half of ``||sqrt(C) (y - U sigma x)||^2 + (1'x)^2``, after centring, which removes b,

both over a working set of features, and both exact. For any feasible s, the values ``|u_k's|`` show
which features are missing from the working set; they cost one pass over all features.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...grams.memory import MemoryBudgetError
from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import EpsilonInsensitive, Hinge, Squared
from ...problem.regularisers import Regulariser
from ...weighting.base import Weighting
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import (
    CertifiedIterate,
    Found,
    Report,
    Stopped,
    certify,
    history_entry,
    record,
    relative_to,
)
from ..levels import LEVEL_PRECISION
from .cutting_plane import find_by_cutting_planes
from .restricted import (
    MIN_RELATIVE_VIOLATION,
    LeastSquares,
    Levels,
    RestrictedProblem,
    SingleOutputLosses,
    Step,
)
from .warm_start import WarmStart

#: Number of features in the first working set.
FIRST_FEATURES = 200
#: Largest number of features that are added at once.
MAX_NEW_FEATURES = 200
#: Relative gap that counts as zero: the precision of a linear program.
PROGRAM_PRECISION = 1e-8


def is_for(grams: Grams, target: Target, weighting: Weighting, learner: Learner) -> bool:
    """Whether this solver applies: l1, kernels of rank one, one output, a suitable loss."""
    return (
        isinstance(weighting, LpNorm)
        and weighting.solver == "auto"
        and weighting.p == 1
        and grams.features() is not None
        and target.Y.shape[1] == 1
        and isinstance(learner.loss, Hinge | EpsilonInsensitive | Squared)
    )


def find_by_features(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of l1 learning over kernels of rank one.

    ::

        repeat   restricted problem     -> beta, s, upper bound
                 |u_k's| of all k       -> lower bound, missing features
                 until none is missing and the restricted problem is solved

    Parameters
    ----------
    grams : Grams
        Grams with `features`.
    target : Target
        One output.
    weighting : LpNorm
        With p = 1.
    learner : Learner
        With hinge, epsilon-insensitive or squared loss.
    warm : WarmStart, optional
        Kernel weights of a similar problem; its features are in the first working set.
    report : callable, optional
        Receives the history entry of every restricted problem.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> from multikernel.grams.memory import MemoryBudget
    >>> from multikernel.learners.svm import SVM
    >>> from multikernel.solvers.joint.features import find_by_features
    >>> from multikernel.problem import Target
    >>> X = np.random.default_rng(0).standard_normal((60, 500))
    >>> y = np.where(X[:, 0] > 0.3 * X[:, 1], 1.0, -1.0)
    >>> bank = mk.per_feature(mk.Linear())
    >>> grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "trace")
    >>> target = Target(y[:, None], "classification")
    >>> found = find_by_features(grams, target, mk.L1(), SVM(C=60.0))
    >>> print(np.count_nonzero(found.kernel_weights), found.machine.gap < 1e-8)
    40 True
    """
    tol, usable = weighting.tol, ~grams.degenerate
    rule = regulariser_of(weighting, grams, target)
    features, problem = grams.features(), SingleOutputLosses(target, learner)
    assert features is not None
    pull = np.where(usable, np.abs(features.products(problem.first())), -1.0)
    restricted: RestrictedProblem
    if isinstance(problem.loss, Squared):
        restricted = LeastSquares(features, grams.p, problem)
    else:
        restricted = Levels(features, grams.p, problem, float(pull.max()))
    n_first = min(FIRST_FEATURES, grams.p)
    inside = usable & (pull >= np.partition(pull, -n_first)[-n_first])
    if warm is not None and len(warm.kernel_weights) == grams.p:
        inside |= usable & (warm.kernel_weights > 0)
    restricted.add(np.flatnonzero(inside))

    history: list[dict[str, Any]] = []
    last: Step | None = None
    lower = -np.inf
    try:
        for _ in range(weighting.max_iter):
            step = restricted.step()
            if step is None:
                break
            last = step
            z = np.where(usable, np.abs(features.products(step.s)), 0.0)
            lower = max(lower, problem.dual(step.s) - 0.5 * float(z.max()) ** 2)
            gap = relative_to(step.upper, max(step.upper - lower, 0.0))
            entry = history_entry(step.upper * learner.unit, gap, step.beta, step.s)
            record(history, entry, report)
            missing = np.flatnonzero(~inside & (z > (1.0 + MIN_RELATIVE_VIOLATION) * step.level))
            if len(missing) > MAX_NEW_FEATURES:
                missing = missing[np.argpartition(-z[missing], MAX_NEW_FEATURES)[:MAX_NEW_FEATURES]]
            if gap <= LEVEL_PRECISION**2 or (step.settled and not len(missing)):
                break
            if len(missing):
                inside[missing] = True
                restricted.add(missing)
        if last is not None:
            answer = certify_step(grams, target, rule, learner, last)
            if not good(answer, tol):
                machine = learner.fit(answer.gram, target, start=answer.coef)
                trained = certify_step(grams, target, rule, learner, last, machine.coef)
                answer = min(answer, trained, key=lambda iterate: iterate.gap)
            record(history, answer.entry(learner), report)
            if good(answer, tol):
                return answer.found(learner, history)
    except KeyboardInterrupt:
        if last is None:
            raise
        answer = certify_step(grams, target, rule, learner, last)
        raise Stopped(answer.found(learner, history)) from None
    return hand_over(grams, target, weighting, learner, answer if last else None, history, report)


def certify_step(
    grams: Grams,
    target: Target,
    rule: Regulariser,
    learner: Learner,
    step: Step,
    coef: np.ndarray | None = None,
) -> CertifiedIterate:
    """The iterate with weights proportional to ``|beta|``, certified over all kernels."""
    size = float(np.abs(step.beta).sum())
    theta = np.abs(step.beta) / size if size > 0 else rule.start()
    coef = step.s[:, None] if coef is None else coef
    gram = grams.combine(theta)
    a = grams.quadratic_forms(coef).sum(axis=1)
    return certify(target, rule, learner, theta, gram, coef, gram.matvec(coef), a)


def good(answer: CertifiedIterate, tol: float) -> bool:
    """Whether the answer meets the tolerance, also if the regulariser is zero.

    If the best function is constant, the gap cannot be relative to the regulariser.
    """
    return answer.meets(tol) or answer.gap <= min(tol, PROGRAM_PRECISION) * abs(answer.primal)


def hand_over(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    answer: CertifiedIterate | None,
    history: list[dict[str, Any]],
    report: Report | None,
) -> Found:
    """Continue with cutting planes if the answer is not good enough and memory suffices."""
    warm = None if answer is None else WarmStart(answer.theta)
    try:
        found = find_by_cutting_planes(grams, target, weighting, learner, warm=warm, report=report)
    except MemoryBudgetError:
        if answer is None:
            raise
        own = answer.found(learner, history)
        warnings.warn(
            f"{weighting!r} by linear programs stopped with a relative duality gap of "
            f"{own.machine.gap:.2g}, above tol={weighting.tol:g}, and cutting planes do not fit "
            "into memory_budget. Raise memory_budget or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return own
    history.extend(found.history)
    if answer is not None and answer.gap < found.machine.gap * abs(answer.primal):
        return answer.found(learner, history)
    return replace(found, history=history)
