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
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams
from ...learners.base import Learner
from ...learners.svm import SVM
from ...problem import Machine, Solution, Target
from ...problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, OneClass, Squared
from ...problem.regularisers import Regulariser
from ...weighting.joint import NEWTON_KERNELS, LpNorm
from .cuts import TINY, Model, onto_sphere
from .loop import (
    COARSE_FROM,
    Found,
    Report,
    Stopped,
    combined_alignment,
    harmless,
    near,
    require_psd,
)

#: Part of the gap above the lower bound at which the level lies: the one with the best guarantee.
LEVEL = 1.0 - np.sqrt(0.5)
#: Relative gap from which on a machine is worth its last digits.
NEARLY = 5e-3
#: By how much larger violations of the optimality conditions may be before that.
ROUGH = 10.0
#: Free coefficients up to which a Newton step costs less than the machines it saves.
NEWTON_LIMIT = 5000


@dataclass(frozen=True)
class Judged:
    """Weights and coefficients, whichever way they were found, and what they prove."""

    theta: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    gram: CombinedGram
    a: np.ndarray
    constant: float
    regulariser: float
    primal: float
    dual: float

    def found(
        self, learner: Learner, history: list[dict[str, Any]], gap: float | None = None
    ) -> Found:
        """Weights and machine, with the relative gap proven for them."""
        relative = self.gap / max(abs(self.primal), 1e-300) if gap is None else gap
        objective = self.primal * learner.unit
        machine = Machine(self.coef, self.intercept, objective, relative, len(history))
        return Found(self.theta, machine, self.gram, history)

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    def meets(self, tol: float) -> bool:
        """Small against the objective, and against the regulariser where nearly all is loss."""
        return self.gap <= tol * abs(self.primal) and self.gap <= 10 * tol * self.regulariser


@dataclass(frozen=True)
class Visit(Judged):
    """One machine, trained at its weights."""

    grams: Grams

    @cached_property
    def at_support(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the coefficients s are not zero, and ``K_k s`` there, (p, |support|, t)."""
        return self.grams.support_matvecs(self.coef)


def solve_cutting_planes(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    stabilise: bool = True,
    curvature: bool = True,
    certificate: str = "machine",
    warm: np.ndarray | None = None,
    report: Report | None = None,
) -> Solution:
    """Weights and machine of lp-norm multiple kernel learning, 1 <= p <= 2, by cutting planes.

    ::

        repeat   machine at theta        -> primal and dual value, cut L - theta'a / 2
                 minimum of all cuts     -> lower bound, its point theta_low
                 theta <- theta_low, or the nearest point with all cuts below the level

    Parameters
    ----------
    grams : Grams
        Centred and normalised as the machine is to see them.
    target : Target
    weighting : LpNorm
        Names p and, unless they are given here, ``tol`` and ``max_iter``.
    learner : Learner
        Any with a convex loss; its dual variables need not be exact, the bounds hold anyway.
    tol : float, optional
        Relative duality gap to reach; the gap is also held below ten times this part of the
        regulariser, for the sake of problems that are nearly all loss.
    max_iter : int, optional
        Limit on machines.
    stabilise : bool, default=True
        The level method; False goes to the minimum of the model every time.
    curvature : bool, default=True
        With ``stabilise``, first try the minimum of the quadratic expansion of g at the best
        weights so far, on the set that the cuts leave: near the optimum this is Newton's method.
        A try that brings nothing is followed by steps of the level method.
    certificate : {"machine", "cuts"}, default="machine"
        Where the lower bound of the reported gap comes from: the coefficients of the returned
        machine alone, so that anyone can recompute it from the machine and its weights, or all
        cuts together. The second is reached with about half the machines: the error of one
        machine's bound is of first order in that of the weights, the other's of second order.
    warm : array of shape (p,), optional
        Weights of a similar problem to begin near.
    report : callable, optional
        Told about every machine: its entry in the history.

    Returns
    -------
    Solution
        The machine was trained at exactly the weights returned. ``history`` has one entry per
        machine: objective, gap, active, support as in the alternation, and the best lower and
        upper bounds of the optimum so far.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> from multikernel.grams.memory import MemoryBudget
    >>> from multikernel.learners.svm import SVM
    >>> from multikernel.solvers.joint.cutting_plane import solve_cutting_planes
    >>> from multikernel.problem import Target
    >>> X = np.random.default_rng(0).standard_normal((60, 4))
    >>> y = np.where(X[:, 0] > 0.3 * X[:, 1], 1.0, -1.0)
    >>> bank = mk.per_feature(mk.Gaussian(0.5))
    >>> grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "trace")
    >>> found = solve_cutting_planes(
    ...     grams, Target(y[:, None], "classification"), mk.LpNorm(1.0, tol=1e-6), SVM(C=10.0)
    ... )
    >>> print(np.count_nonzero(found.weights), found.machine.gap < 1e-6)
    2 True
    """
    require_range(weighting.p)
    summary = grams.summary(target.Y, products=False)
    found = find_by_cutting_planes(
        grams,
        target,
        weighting,
        learner,
        tol=tol,
        max_iter=max_iter,
        stabilise=stabilise,
        curvature=curvature,
        certificate=certificate,
        warm=warm,
        report=report,
    )
    alignment = combined_alignment(found, summary, target)
    return Solution(found.weights, found.machine, alignment, summary.alignments, found.history)


def require_range(p: float) -> None:
    if not 1 <= p <= 2:
        raise ValueError(
            f"solve_cutting_planes: cuts bound the optimum for p from 1 to 2; got p={p!r}. "
            "Larger p is solved by interior points."
        )


def find_by_cutting_planes(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    stabilise: bool = True,
    curvature: bool = True,
    certificate: str = "machine",
    warm: np.ndarray | None = None,
    report: Report | None = None,
) -> Found:
    """The bare problem of :func:`solve_cutting_planes`, without alignments."""
    p = weighting.p
    require_range(p)
    if certificate not in ("machine", "cuts"):
        raise ValueError(
            f"solve_cutting_planes: certificate must be 'machine' or 'cuts'; got {certificate!r}."
        )
    tol = weighting.tol if tol is None else tol
    max_iter = weighting.max_iter if max_iter is None else max_iter
    rule = weighting.regulariser(grams, target)
    model = Model(p)
    theta = first_weights(rule, model, warm)
    usable = theta > 0
    gram = grams.combine(theta)
    slack = require_psd(grams, theta, gram, warn=False, quick=True)
    curvature = curvature and stabilise and has_curvature(learner, p, int(usable.sum()))
    # Weights that are only begun with need no machine to the last digit.
    rough = roughly(learner) if isinstance(learner, SVM) and grams.n >= COARSE_FROM else None
    tried, halted = None, False
    lower = -np.inf
    visit: Visit | None = None
    best: Visit | None = None
    top: Visit | None = None
    history: list[dict[str, Any]] = []
    reason = f"stopped after max_iter={max_iter} machines"
    for _ in range(max_iter):
        try:
            if rough is not None:
                visit = train(grams, target, rule, rough, theta, gram)
            if rough is None or visit is None or visit.meets(max(NEARLY, tol)):
                start = None if visit is None else visit.coef
                # After a Newton step it is most likely the last: its norms alone will do.
                last = p > 1 and bool(history)
                visit = train(grams, target, rule, learner, theta, gram, start=start, last=last)
                rough = None
        except KeyboardInterrupt:
            if best is None:
                raise
            raise Stopped(best.found(learner, history)) from None
        if best is None or visit.gap < best.gap:
            best = visit
        if top is None or visit.primal < top.primal:
            top = visit
        answer = best if certificate == "machine" else top
        low = None
        if certificate == "cuts" or not answer.meets(tol):
            low = model.add(visit.constant, visit.a[usable], theta[usable])
        lower = max(lower, visit.dual, -np.inf if low is None else low.value)
        gap = answer.gap if certificate == "machine" else max(top.primal - lower, 0.0)
        # The entry is about this machine; the answer may be an earlier one.
        proven = visit.gap if certificate == "machine" else max(visit.primal - lower, 0.0)
        entry = {
            "objective": visit.primal * learner.unit,
            "gap": proven / max(abs(visit.primal), 1e-300),
            "active": int(np.count_nonzero(theta)),
            "support": int(np.count_nonzero(np.any(visit.coef != 0, axis=1))),
            "lower": lower * learner.unit,
            "upper": top.primal * learner.unit,
        }
        history.append(entry)
        if report is not None:
            report(entry)
        if gap <= tol * abs(answer.primal) and gap <= 10 * tol * answer.regulariser:
            reason = ""
            break
        assert low is not None
        # Newton starts at the lowest objective; where all are as low, at the smallest gap.
        base = best if best.primal - top.primal <= 0.01 * best.gap else top
        point = None
        with one_blas_thread(model.B.shape[1]):
            if curvature and base is not tried:
                tried = base
                U = curvature_root(base, target, learner, single=rough is not None)
                point = newton_point(model, base, U, usable, top.primal, low.theta)
            if point is None and stabilise and np.isfinite(low.value):
                level = low.value + LEVEL * (top.primal - low.value)
                point = model.approach(theta[usable], visit.a[usable], level, low.theta)
        if point is None or np.max(np.abs(point - theta[usable])) <= TINY:
            point = low.theta
        moved = float(np.max(np.abs(point - theta[usable])))
        if rough is not None and moved <= TINY:
            rough = None  # once more at the same weights, to the last digit
            continue
        rough = None
        if moved <= TINY:
            # The machine's own error hides what is left: its cut does not reach its objective.
            reason, halted = "came to a halt at the precision of its machines", True
            break
        theta = np.zeros(grams.p)
        theta[usable] = point
        gram.forget()  # before the next one takes as much
        gram = grams.combine(theta)
    assert best is not None and top is not None
    if halted and top.primal - lower < gap:
        # Where several machines are optimal, only their mixture may prove it.
        answer, gap = top, max(top.primal - lower, 0.0)
    relative = gap / max(abs(answer.primal), 1e-300)
    if relative > tol or not (reason == "" or halted):
        warnings.warn(
            f"{weighting!r} by cutting planes {reason} with a relative duality gap of "
            f"{relative:.2g}, above tol={tol:g}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    found = answer.found(learner, history, relative)
    if not harmless(slack, found, tol, learner.unit):
        require_psd(grams, found.weights, found.gram, warn=False)
    return found


def lead(
    grams: Grams,
    target: Target,
    weighting: LpNorm,
    learner: Learner,
    *,
    warm: np.ndarray | None = None,
) -> np.ndarray | None:
    """Where one machine leads: the weights of a Newton step, and no proof of anything.

    None where there is no such step, at p = 1 among others: there it takes several machines to
    tell which weights are zero.
    """
    rule, model = weighting.regulariser(grams, target), Model(weighting.p)
    theta = first_weights(rule, model, warm)
    usable = theta > 0
    if weighting.p == 1 or not has_curvature(learner, weighting.p, int(usable.sum())):
        return None
    learner = roughly(learner) if isinstance(learner, SVM) else learner
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False, quick=True)
    visit = train(grams, target, rule, learner, theta, gram)
    with one_blas_thread(len(theta)):
        low = model.add(visit.constant, visit.a[usable], theta[usable])
        U = curvature_root(visit, target, learner, single=True)
        point = newton_point(model, visit, U, usable, visit.primal, low.theta)
    if point is None:
        return None
    theta[usable] = point
    return theta


def first_weights(rule: Regulariser, model: Model, warm: np.ndarray | None) -> np.ndarray:
    """The rule's own, or near those of a similar problem, on the sphere; new memory."""
    theta = np.array(rule.start(), dtype=np.float64)
    if warm is not None and len(warm) == len(theta) and np.isfinite(model.q):
        theta = onto_sphere(np.where(theta > 0, near(warm, theta), 0.0), model.q)
    return theta


def has_curvature(learner: Learner, p: float, kernels: int) -> bool:
    """Whether a Newton step can be made, and pays."""
    return (p == 1 or (p < 2 and kernels <= NEWTON_KERNELS)) and isinstance(
        learner.loss, Hinge | Squared | EpsilonInsensitive | Logistic | OneClass
    )


def roughly(learner: SVM) -> SVM:
    """The same machine to few digits, for weights that will not stay."""
    rough = copy(learner)
    rough.exact, rough.tol = False, ROUGH * learner.tol
    return rough


def newton_point(
    model: Model,
    base: Visit,
    U: np.ndarray | None,
    usable: np.ndarray,
    upper: float,
    low: np.ndarray,
) -> np.ndarray | None:
    if U is None:
        return None
    return model.newton(base.theta[usable], base.a[usable], U[:, usable], upper, low)


def train(
    grams: Grams,
    target: Target,
    rule: Regulariser,
    learner: Learner,
    theta: np.ndarray,
    gram: CombinedGram,
    *,
    start: np.ndarray | None = None,
    last: bool = False,
) -> Visit:
    """The machine at theta with primal and dual value of the joint problem.

    Its products with all kernels are there, unless it is said to be the last.
    """
    machine = learner.fit(gram, target, start=start)
    coef = machine.coef
    values = gram.matvec(coef) if machine.values is None else machine.values
    ready = None
    if last and grams.quick_forms:
        a = grams.quadratic_forms(coef).sum(axis=1)
    else:
        ready = support, KS = grams.support_matvecs(coef)
        a = np.einsum("knt,nt->k", KS, coef[support])
    judged = judge(target, rule, learner, theta, gram, coef, values, np.maximum(a, 0.0))
    visit = Visit(**vars(judged), grams=grams)
    if ready is not None:
        visit.__dict__["at_support"] = ready
    return visit


def judge(
    target: Target,
    rule: Regulariser,
    learner: Learner,
    theta: np.ndarray,
    gram: CombinedGram,
    coef: np.ndarray,
    values: np.ndarray,
    a: np.ndarray,
) -> Judged:
    """Primal and dual value of the joint problem; values are ``K s``, ``a_k = s'K_k s``."""
    C, loss = learner.costs(target), learner.loss
    # A free intercept takes up the mean of the outputs; left in, it would cost the dual its digits.
    centred = target.kind == "regression" and learner.fit_intercept
    mean = np.average(target.Y, axis=0, weights=C) if centred else np.zeros(target.Y.shape[1])
    Y = target.Y - mean
    intercept = loss.intercept(values, Y, C) if learner.fit_intercept else 0.0 * mean
    constant = float(loss.dual(coef, Y, C).sum())
    regulariser = rule.primal(theta, a)
    primal = regulariser + float(loss.value(values, Y, C, intercept).sum())
    dual = constant - rule.dual(theta, a)
    b = intercept + mean
    return Judged(theta, coef, b, gram, a, constant, regulariser, primal, dual)


def curvature_root(
    visit: Visit, target: Target, learner: Learner, *, single: bool = False
) -> np.ndarray | None:
    """A U of shape (m, p) with ``U'U`` the second derivative of g at the visit's weights.

    ``(U'U)_kl = (K_k s)_F' N (K_l s)_F``: with theta the free coefficients F move so that their
    part of the optimality conditions still holds, ``(K_FF + E) ds + 1 db = -(K_l s)_F, 1'ds = 0``,
    as long as none meets a bound; E is the curvature of the dual loss (Chapelle and Rakotomamonjy
    2008). Without an intercept there is no db and no sum to keep. None if nothing can move. In
    single precision it is good to some digits, and half the work.
    """
    dtype: type[np.floating[Any]] = np.float32 if single else np.float64
    little = 1e-6 if single else 1e-11
    C = learner.costs(target)
    support, products = visit.at_support
    parts = []
    for j in range(target.Y.shape[1]):
        F, extra = free_part(learner.loss, visit.coef[:, j], C)
        if len(F) < 2:
            continue
        if len(F) > NEWTON_LIMIT:
            return None
        K = visit.gram.among(F, dtype)
        # Repeated points make it singular; so little on the diagonal moves no digit that counts.
        K[np.diag_indices(len(F))] += extra + little * np.trace(K) / len(F)
        at = np.searchsorted(support, F)
        right = np.column_stack([products[:, at, j].T, np.ones(len(F))]).astype(dtype)
        try:
            factor = cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return curvature_root(visit, target, learner) if single else None
        right = solve_triangular(factor, right, lower=True, check_finite=False)
        U, ones = right[:, :-1].astype(np.float64), right[:, -1].astype(np.float64)
        if learner.fit_intercept:
            U = U - np.outer(ones, (ones @ U) / (ones @ ones))
        parts.append(U)
    return np.vstack(parts) if parts else None


def free_part(loss: Loss, s: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients that are not held by a bound, and the curvature of their dual loss."""
    if isinstance(loss, Squared):
        F = np.flatnonzero(s)
        return F, 1.0 / C[F]
    part = np.abs(s) / C
    F = np.flatnonzero((part > 1e-9) & (part < 1.0 - 1e-9))
    if isinstance(loss, Logistic):
        return F, 1.0 / (C[F] * part[F] * (1.0 - part[F]))
    return F, np.zeros(len(F))


# -- the model -------------------------------------------------------------------------------------


def machines_to(history: Sequence[dict[str, Any]], tol: float) -> int | None:
    """How many machines it took to bring the relative gap below tol; None if it never was."""
    return next((i for i, entry in enumerate(history, 1) if entry["gap"] <= tol), None)
