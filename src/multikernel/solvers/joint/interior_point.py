"""Block norms far beyond p = 2: coefficients and weights together, by an interior-point method.

For p > 2 the dual of lp-norm multiple kernel learning (Kloft 2011, Problem II.4) is concave in the
signed coefficients s *and* the weights. With ``c = (p - 2) / p``, which is one at p = inf,

    max_{s, u}  L(s) - 1/2 sum_k a_k(s) u_k^-c,     u >= 0, sum_k u_k = 1,     a_k(s) = s'K_k s

where L is the dual loss, and ``theta_k = u_k^-c`` are the kernel weights. The alternation maximises
over s and over u in turns. With kernels of low rank some a_k and u_k go to zero together, theta_k
to infinity, and a turn brings the logarithms of the weights closer by the factor ``(p - 2) /
(p - 1)``, which tends to one. Newton's method in u alone is no way out: where the loss has corners
the support of the machine changes with every step.

Here both move together, by Newton's method on the problem with soft bounds,

    max  L(s) - 1/2 sum_k a_k u_k^-c + mu (sum_k log u_k + sum_i log alpha_i + log(C_i - alpha_i))

for falling mu, with u kept a little away from the border of the simplex: some tens of linear
systems whatever p, the loss and the ranks are. (The third derivative of ``a u^-c`` is bounded by
its second and that of the logarithm, so that this is a problem for which Newton's method provably
works; Nesterov & Nemirovskii 1994.) All iterates are feasible: weights and coefficients are at any
time a machine, with a primal and a dual value. Once its gap is small the learner trains its own
machine at the same weights, and that one is returned (or, where weights so far apart are too much
for it, the iterate itself, with coefficients for all points).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...problem.regularisers import Regulariser
from ...weighting.joint import regulariser_of
from ...weighting.lp_norm import LpNorm
from ..certificate import CertifiedIterate, Found, Report, Stopped, centred_outputs, certify
from .alternation import find_by_alternation
from .barriers import NoInnerPoint, inner_point, room
from .definiteness import require_psd
from .newton_system import NewtonSystem
from .warm_start import WarmStart

#: What mu is multiplied by once the iterate is near the optimum of the soft problem.
SHRINK = 0.1
#: The alternation goes on as long as every turn makes the gap this much smaller ...
SLOW = 0.7
#: ... and weights are no further apart than this; beyond, machines themselves become slow.
FAR = 1e3
#: Part of the tolerance that is given away to keep weights finite.
SHARE = 0.1
#: Weights far apart may be too much for a learner; after so many machines the iterate, which has
#: its proof, is returned itself.
TRIES = 3
#: Numbers in an array up to which the method is tried; beyond, the alternation has to do.
LARGEST = 5e7


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
    """Weights and machine of lp-norm multiple kernel learning, p > 2, without alignments.

    ::

        while it is quick   alternate machine and weights    -> good enough? return them
        repeat   Newton step in s and u             -> s, theta = u^-c with primal, dual, gap
                 gap below tol: machine at theta    -> good enough? return it
                 step small: mu <- SHRINK mu

    ``history`` has one entry per Newton step and per machine. Losses without an inner point (all
    points of one class, ``nu = 1``) and problems too large for a factorisation are left to the
    alternation.

    Parameters
    ----------
    grams : Grams
        Centred and normalised as the machine is to see them.
    target : Target
    weighting : LpNorm
        Names p, ``tol`` and ``max_iter``, the limit on Newton steps.
    learner : Learner
    summary : Summary, optional
        Not needed; accepted because solvers are called alike.
    warm : WarmStart, optional
        Weights of a similar problem, to be tried first unless they are far apart.
    report : callable, optional
        Told about every entry of the history.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    theta = rule.start()
    usable = theta > 0
    M, (n, t) = int(usable.sum()), target.Y.shape
    large = max(n * n, M * n * t, min(M, n * t) ** 2) > LARGEST
    if large or "dense" not in grams.combine(theta).offers:
        return find_by_alternation(grams, target, weighting, learner, warm=warm, report=report)
    same_bank = warm is not None and len(warm.weights) == len(theta)
    if warm is not None and same_bank and not far_apart(warm.weights[usable]):
        theta = warm.near(theta)
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False)
    tol = weighting.tol
    history: list[dict[str, Any]] = []

    def enough(iterate: CertifiedIterate) -> bool:
        history.append(iterate.entry(learner))
        if report is not None:
            report(history[-1])
        return iterate.meets(tol)

    path = CentralPath(grams, target, weighting.p, rule, learner, tol)
    best: CertifiedIterate | None = None
    wanted, tries = np.inf, 0
    reason = f"stopped after max_iter={weighting.max_iter} steps"
    try:
        while True:
            start = None if best is None else best.coef
            turn = path.machine(theta, gram, learner.fit(gram, target, start=start).coef)
            if enough(turn):
                return turn.found(learner, history)
            slow = best is not None and turn.gap > SLOW * best.gap
            if best is None or turn.gap < best.gap:
                best = turn
            theta = rule.update(turn.theta, turn.a)
            if slow or far_apart(theta[usable]) or len(history) >= weighting.max_iter:
                break
            gram = grams.combine(theta)
        path.begin(best.coef)
        while len(history) < weighting.max_iter:
            here = path.here()
            best = min(best, here, key=lambda iterate: iterate.gap)
            if enough(here) and path.mu <= wanted:
                with warnings.catch_warnings():
                    # Whatever it says of itself, its gap in the joint problem is seen below.
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    coef = learner.fit(here.gram, target, start=path.settled(here)).coef
                machine = path.machine(here.theta, here.gram, coef)
                if enough(machine):
                    return machine.found(learner, history)
                wanted, tries = SHRINK * path.mu, tries + 1
                if tries == TRIES:
                    return here.found(learner, history)
            # What mu leaves open is far below the tolerance; the rest is rounding.
            if path.mu * path.count < 1e-4 * tol * here.regulariser or not path.advance(here):
                spread = np.log10(here.theta[usable].max() / here.theta[usable].min())
                reason = (
                    f"came to a halt at the precision of float64 (its weights spread over "
                    f"{spread:.0f} orders of magnitude)"
                )
                break
    except NoInnerPoint:
        return find_by_alternation(grams, target, weighting, learner, warm=warm, report=report)
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    if not best.meets(tol):
        warnings.warn(
            f"{weighting!r} by the interior-point method {reason} with a relative duality gap of "
            f"{best.relative_gap:.2g} (tol={tol:g}).",
            ConvergenceWarning,
            stacklevel=4,
        )
    return best.found(learner, history)


def far_apart(theta: np.ndarray) -> bool:
    return bool(theta.max() > FAR * theta.min())


class CentralPath:
    """An iterate of the soft problem: coefficients inside their bounds, u inside the simplex."""

    def __init__(
        self,
        grams: Grams,
        target: Target,
        p: float,
        rule: Regulariser,
        learner: Learner,
        tol: float,
    ) -> None:
        self.grams, self.target, self.rule, self.tol = grams, target, rule, tol
        self.learner, self.C = learner, learner.costs(target)
        self.Y, self.mean = centred_outputs(target, learner)
        self.usable = rule.start() > 0
        self.c = 1.0 if np.isinf(p) else (p - 2.0) / p

    def begin(self, coef: np.ndarray) -> None:
        """Set out halfway between a machine's coefficients and the middle of their bounds."""
        intercept = self.learner.fit_intercept
        self.inside = inner_point(self.learner.loss, coef, self.Y, self.C, balanced=intercept)
        a = np.maximum(self.grams.quadratic_forms(self.inside.s).sum(axis=1), 0.0)[self.usable]
        if not np.any(a > 0):
            raise NoInnerPoint("The machine is zero.")
        # The best u for these coefficients, and a little of all
        u = (a / a.max()) ** (1.0 / (1.0 + self.c))
        self.x = 0.9 * u / u.sum() + 0.1 / len(u)
        self.count = len(u) + self.inside.count
        self.mu = 0.5 * float(a @ self.u**-self.c) / self.count

    @property
    def u(self) -> np.ndarray:
        """Inside the simplex, by so much that ``theta = u^-c`` stays small enough to compute with.

        A share of the tolerance, spread over all kernels, costs that share of the regulariser.
        """
        part = SHARE * self.tol
        return part / len(self.x) + (1.0 - part) * self.x

    def here(self) -> CertifiedIterate:
        """The iterate as a machine."""
        theta = np.zeros(self.grams.p)
        theta[self.usable] = self.u**-self.c
        s = self.inside.s
        self.KS = self.grams.matvecs(s)
        a = np.einsum("knt,nt->k", self.KS, s)
        f = np.einsum("k,knt->nt", theta, self.KS)
        return self._certify(theta, self.grams.combine(theta), s, f, a)

    def machine(self, theta: np.ndarray, gram: CombinedGram, coef: np.ndarray) -> CertifiedIterate:
        """A machine of the learner's, of which only what its support takes is computed."""
        a = self.grams.quadratic_forms(coef).sum(axis=1)
        return self._certify(theta, gram, coef, gram.matvec(coef), a)

    def _certify(
        self, theta: np.ndarray, gram: CombinedGram, s: np.ndarray, f: np.ndarray, a: np.ndarray
    ) -> CertifiedIterate:
        return certify(self.target, self.rule, self.learner, theta, gram, s, f, a)

    def settled(self, here: CertifiedIterate) -> np.ndarray:
        """Coefficients for the learner to begin with, as near to its machine as can be."""
        b = here.intercept - self.mean
        free = self.learner.fit_intercept
        return self.inside.settled(here.gram.dense(), b, self.mu, intercept=free)

    def advance(self, here: CertifiedIterate) -> bool:
        """One Newton step from here; False if rounding forbids it."""
        c, mu, inside = self.c, self.mu, self.inside
        # With x > 0 relative to itself, u moves by this much relative to itself.
        ratio = (1.0 - SHARE * self.tol) * self.x / self.u
        w, a = here.theta[self.usable], here.a[self.usable]
        KS = self.KS[self.usable]
        f = np.einsum("k,knt->nt", w, KS)
        half = 0.5 * c * a * w * ratio
        slope, bend = inside.derivatives(mu)
        total = inside.total if self.learner.fit_intercept else None
        try:
            with one_blas_thread(self.grams.n):
                system = NewtonSystem(
                    here.gram.dense(),
                    bend,
                    (c * w * ratio)[:, None, None] * KS,
                    (c + 1.0) * half * ratio + mu,
                    self.x,
                    intercept=total is not None,
                )
                sums = np.zeros(0) if total is None else total - here.coef.sum(axis=0)
                ds, dx = system.solve(-(f + slope), half + mu, sums)
        except LinAlgError:
            return False
        # Along the step the quadratic forms are parabolas.
        linear = 2.0 * np.einsum("knt,nt->k", KS, ds)
        square = self.grams.quadratic_forms(ds).sum(axis=1)[self.usable]
        first = float(np.vdot(ds, f + slope) - dx @ (half + mu))

        def rise(length: float) -> float:
            forms = np.maximum(a + length * linear + length**2 * square, 0.0)
            change = 0.5 * float(w @ (forms * (1.0 + length * ratio * dx) ** -c - a))
            logs = float(np.log1p(length * dx).sum())
            return change - mu * logs + inside.rise(length, mu)

        length = min(inside.aim(ds, mu), room(np.ones_like(dx), dx))
        while rise(length) > 0.1 * length * first:
            length *= 0.5
            if length < 1e-8:
                break
        else:
            inside.move(length)
            self.x = self.x * (1.0 + length * dx)
            self.x /= self.x.sum()
        # -first is the square of Newton's decrement: below mu, the next step would be a full one.
        # Far enough down the way, what counts is to be at the optimum of the soft problem: for
        # large C the primal value is sensitive.
        far = mu * self.count > self.tol * here.regulariser
        if -first < (mu if far else 1e-6 * mu):
            self.mu *= SHRINK
            return True
        return length >= 1e-8
