"""Joint learning by L-BFGS on the smooth dual (Kloft 2011, section 2.3.3).

With a smooth loss and a block norm 1 < p < inf the dual of the joint problem,

    max_s  D(s) = L(s) - R*(a(s)),     a_k(s) = s'K_k s,     1's = 0 if there is an intercept,

has the gradient ``u(s) - K_theta s``. Here L is the dual loss, ``u_i`` the decision value at which
the loss has the coefficient s_i, and ``theta_k = 2 dR*/da_k`` are the kernel weights that belong to
s (the thesis prints the exponent p/2 where p*/2 is meant). No predictor is trained: one evaluation
of D and its gradient is one product of every kernel with s.

The variables are decision values v, not coefficients: ``s_i = -C_i l'(v_i + b, y_i)``, with the b
that minimises the loss. Every v then gives a feasible s, also for the logistic loss, whose
coefficients have bounds, and the constraint on their sum needs no projection. For the squared loss
the map is affine. Each iterate (theta, s) has a primal and a dual value, and the loop ends when the
gap between them is small.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from ..._journal import PART, Answers, recall
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import SmoothLoss
from ...problem.regularisers import SmoothRegulariser
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import (
    CertifiedIterate,
    Found,
    Report,
    Stopped,
    centred_outputs,
    certify,
    record,
)
from .definiteness import require_psd
from .warm_start import WarmStart

#: Past steps used to estimate the second derivative.
MEMORY_STEPS = 20
#: The iteration ends after this many steps with relative gaps below ROUNDING_GAP: only rounding
#: errors change such gaps.
MAX_IDLE_STEPS, ROUNDING_GAP = 100, 1e-12
#: Largest number of entries of the products of all kernels with s. Above it, two passes (for the
#: quadratic forms, then for the combination) avoid this array.
MAX_PRODUCT_ENTRIES = 5e7


def find_by_lbfgs(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of a joint problem with a smooth loss and a smooth conjugate.

    The iterate with the smallest gap is returned. All of its coefficients are non-zero.

    Parameters
    ----------
    grams : Grams
        Centred and normalised.
    target : Target
    weighting : JointWeighting
        A rule whose regulariser has ``dual_weights``; gives ``tol`` and ``max_iter``, the limit on
        iterations.
    learner : Learner
        With the squared or the logistic loss; it is not trained.
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Not used: the variables are decision values, not kernel weights.
    report : callable, optional
        Receives the history entry of every iteration.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    if not isinstance(learner.loss, SmoothLoss) or not isinstance(rule, SmoothRegulariser):
        raise ValueError(
            f"L-BFGS solves smooth duals: the squared or logistic loss with a block norm; got "
            f"{weighting!r} with {type(learner.loss).__name__.lower()}. Use solver='auto'."
        )
    theta = rule.start()
    require_psd(grams, theta, grams.combine(theta), warn=False)
    dual = SmoothDual(grams, target, rule, learner, report)
    history: list[dict[str, Any]] = []
    best: CertifiedIterate | None = None

    def after_step(x: np.ndarray) -> None:
        nonlocal best
        iterate = dual.certified(x)
        if best is None or iterate.gap < best.gap:
            best = iterate
        record(history, iterate.entry(learner), report)
        if iterate.meets(weighting.tol):
            raise Reached
        gaps = [entry["gap"] for entry in history[-MAX_IDLE_STEPS:]]
        if len(gaps) == MAX_IDLE_STEPS and max(gaps) <= ROUNDING_GAP:
            raise Stalled

    reason = f"stopped after max_iter={weighting.max_iter} iterations"
    x = np.zeros(target.Y.size)
    try:
        after_step(x)
        while len(history) <= weighting.max_iter:
            before = len(history)
            x = minimize(
                dual.value_and_gradient,
                x,
                jac=True,
                method="L-BFGS-B",
                callback=after_step,
                options={
                    "maxcor": MEMORY_STEPS,
                    "maxiter": weighting.max_iter + 1 - before,
                    "maxfun": 100 * weighting.max_iter,
                    "maxls": 50,
                    "ftol": 0.0,
                    "gtol": 0.0,
                },
            ).x
            if len(history) == before:
                # The line search fails even along the gradient.
                reason = "stopped at the precision of float64"
                break
    except Reached:
        reason = ""
    except Stalled:
        reason = "stopped at the precision of float64"
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    assert best is not None
    if reason and best.relative_gap > weighting.tol:
        warnings.warn(
            f"{weighting!r} by L-BFGS {reason} with a relative duality gap of "
            f"{best.relative_gap:.2g}, above tol={weighting.tol:g}. Raise max_iter or tol, or use "
            "solver='auto'.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return best.found(learner, history)


class Reached(Exception):
    """The tolerance is reached."""


class Stalled(Exception):
    """The gap has fallen to rounding error without reaching the tolerance."""


class SmoothDual:
    """``-D`` and its gradient in scaled decision values ``x = sqrt(d) v``.

    d is the curvature of the loss at the start. For the squared loss ``d = C``, and the second
    derivative is ``I + C^(1/2) R*'' C^(1/2)``, which has no small eigenvalues.
    """

    def __init__(
        self,
        grams: Grams,
        target: Target,
        rule: SmoothRegulariser,
        learner: Learner,
        report: Report | None = None,
    ) -> None:
        self.grams, self.target, self.rule, self.learner = grams, target, rule, learner
        self.report = report
        assert isinstance(learner.loss, SmoothLoss)
        self.loss: SmoothLoss = learner.loss
        self.C = learner.costs(target)
        self.Y, _ = centred_outputs(target, learner)
        few = grams.p * self.Y.size <= MAX_PRODUCT_ENTRIES
        self.one_pass = few and grams.features() is None
        start = np.zeros_like(self.Y)
        self.root = np.sqrt(self.loss.curvatures(start, self.Y, self.C, self._intercept(start)))
        self.at: np.ndarray | None = None
        self.unit = 1.0
        self._evaluate(np.zeros(self.Y.size))
        self.unit = max(abs(self.value), 1e-300)
        self.at = None

    def _intercept(self, values: np.ndarray) -> np.ndarray:
        if not self.learner.fit_intercept:
            return np.zeros(self.Y.shape[1])
        return self.loss.intercept(values, self.Y, self.C)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """``-D`` and its gradient, in units of ``|D|`` at the start."""
        self._evaluate(x)
        return self.value, self.gradient

    def certified(self, x: np.ndarray) -> CertifiedIterate:
        """The coefficients and kernel weights at x, with both bounds of the optimum."""
        self._evaluate(x)
        gram = self.grams.combine(self.theta)
        return certify(
            self.target, self.rule, self.learner, self.theta, gram, self.s, self.f, self.a
        )

    def _evaluate(self, x: np.ndarray) -> None:
        if self.at is not None and np.array_equal(x, self.at):
            return
        self.at = x.copy()
        Y, C, loss = self.Y, self.C, self.loss
        v = x.reshape(Y.shape) / self.root
        b = self._intercept(v)
        s = loss.coefficients(v, Y, C, b)
        if self.learner.fit_intercept:
            size = np.abs(s)
            s = s - s.sum(axis=0) * size / np.maximum(size.sum(axis=0), 1e-300)
        found = recall(self.report, "evaluate", (s,), partial(self._passes, s), PART)
        a, f = found["a"], found["f"]
        theta = self.rule.dual_weights(a)
        error = v + b - f
        d = loss.curvatures(v, Y, C, b)
        if self.learner.fit_intercept:
            # The best intercept compensates a constant added to v: no slope in this direction.
            error = error - np.einsum("nt,nt->t", d, error) / np.maximum(d.sum(axis=0), 1e-300)
        self.s, self.a, self.theta, self.f = s, a, theta, f
        value = self.rule.dual(theta, a) - float(loss.dual(s, Y, C).sum())
        self.value = value / self.unit
        self.gradient = (d * error / self.root).ravel() / self.unit

    def _passes(self, s: np.ndarray) -> Answers:
        """``a_k = s'K_k s``, and the values f of the predictor with the best weights for them."""
        if self.one_pass:
            products = self.grams.matvecs(s)
            a = np.maximum(np.einsum("knt,nt->k", products, s), 0.0)
            f = np.einsum("k,knt->nt", self.rule.dual_weights(a), products)
        else:
            a = np.maximum(self.grams.quadratic_forms(s).sum(axis=1), 0.0)
            f = self.grams.combine(self.rule.dual_weights(a)).matvec(s)
        return {"a": a, "f": f}
