"""The iterates of the interior-point method, and its Newton steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.regularisers import Regulariser
from ..certificate import CertifiedIterate, centred_outputs, certify
from .barriers import NoInnerPoint, inner_point, room
from .newton_system import NewtonSystem
from .training import TrainingRun

#: Factor by which mu is reduced once the iterate is near the optimum of the barrier problem.
BARRIER_SHRINK = 0.1
#: Fraction of the tolerance spent on a lower bound of u, which keeps the kernel weights finite.
WEIGHT_FLOOR_SHARE = 0.1


class CentralPath:
    """An iterate of the barrier problem: coefficients inside their bounds, u inside the simplex.

    See :mod:`multikernel.solvers.joint.interior_point` for the problem.
    """

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
        """Set the first iterate: strictly feasible, of about the size of the given coefficients."""
        intercept = self.learner.fit_intercept
        self.inside = inner_point(self.learner.loss, coef, self.Y, self.C, balanced=intercept)
        a = np.maximum(self.grams.quadratic_forms(self.inside.s).sum(axis=1), 0.0)[self.usable]
        if not np.any(a > 0):
            raise NoInnerPoint("All coefficients are zero.")
        # The best u for these coefficients, mixed with uniform weights.
        u = (a / a.max()) ** (1.0 / (1.0 + self.c))
        self.x = 0.9 * u / u.sum() + 0.1 / len(u)
        self.count = len(u) + self.inside.count
        self.mu = 0.5 * float(a @ self.u**-self.c) / self.count

    @property
    def u(self) -> np.ndarray:
        """Weights inside the simplex, bounded below so that ``theta = u^-c`` stays finite.

        The lower bound changes the regulariser by the share WEIGHT_FLOOR_SHARE of the tolerance.
        """
        part = WEIGHT_FLOOR_SHARE * self.tol
        return part / len(self.x) + (1.0 - part) * self.x

    def here(self) -> CertifiedIterate:
        """The current iterate, certified."""
        theta = np.zeros(self.grams.p)
        theta[self.usable] = self.u**-self.c
        s = self.inside.s
        self.KS = self.grams.matvecs(s)
        a = np.einsum("knt,nt->k", self.KS, s)
        f = np.einsum("k,knt->nt", theta, self.KS)
        return self._certify(theta, self.grams.combine(theta), s, f, a)

    def certify_coef(
        self, theta: np.ndarray, gram: CombinedGram, coef: np.ndarray
    ) -> CertifiedIterate:
        """The certified iterate with the coefficients of a trained predictor."""
        a = self.grams.quadratic_forms(coef).sum(axis=1)
        return self._certify(theta, gram, coef, gram.matvec(coef), a)

    def certify_trained(
        self, theta: np.ndarray, gram: CombinedGram, trained: TrainingRun
    ) -> CertifiedIterate:
        """`certify_coef` with known products."""
        return self._certify(theta, gram, trained.coef, trained.values, trained.a)

    def state(self) -> dict[str, Any]:
        """The state that `restore` needs after `begin`."""
        return {"x": self.x, "mu": self.mu, "inside": self.inside.point}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the result of `state`."""
        self.x, self.mu, self.inside.point = state["x"], state["mu"], state["inside"]

    def _certify(
        self, theta: np.ndarray, gram: CombinedGram, s: np.ndarray, f: np.ndarray, a: np.ndarray
    ) -> CertifiedIterate:
        return certify(self.target, self.rule, self.learner, theta, gram, s, f, a)

    def settled(self, here: CertifiedIterate) -> np.ndarray:
        """Coefficients close to the optimum at these weights, as a start for the learner."""
        b = here.intercept - self.mean
        free = self.learner.fit_intercept
        return self.inside.settled(here.gram.dense(), b, self.mu, intercept=free)

    def advance(self, here: CertifiedIterate) -> bool:
        """Take one Newton step; False if rounding errors prevent progress."""
        c, mu, inside = self.c, self.mu, self.inside
        # A relative change dx of x changes u, relative to itself, by ratio * dx.
        ratio = (1.0 - WEIGHT_FLOOR_SHARE * self.tol) * self.x / self.u
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
        # Along the step the quadratic forms are second-degree polynomials of the length.
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
        # -first is the square of the Newton decrement; if it is below mu, the next step would be a
        # full step. Once mu is small, the barrier problem is solved more exactly: for large C the
        # primal value is sensitive to errors.
        far = mu * self.count > self.tol * here.regulariser
        if -first < (mu if far else 1e-6 * mu):
            self.mu *= BARRIER_SHRINK
            return True
        return length >= 1e-8
