"""The alternation of learner and weights: which iterate it returns, and when it may stop.

Kernels are given matrices and the learner is ridge regression without an intercept, so that primal
value, dual value and gap of every iterate follow from explicit matrices in a few lines.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.learners.ridge import Ridge
from multikernel.problem.regularisers import BlockNorm
from multikernel.solvers.certificate import Stopped
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.weighting.joint import JointWeighting
from tests.naive_alignment import given_grams, outputs

P = 4 / 3


def problem(seed=5, n=20, p=3):
    """Kernel matrices of full rank, and a target that the first of them explains best."""
    rng = np.random.default_rng(seed)
    features = [rng.standard_normal((n, n)) for _ in range(p)]
    matrices = [A @ A.T / n for A in features]
    return matrices, features[0] @ rng.standard_normal(n) / np.sqrt(n)


@dataclass
class Certificate:
    """Primal, dual and regulariser of ridge regression at given kernel weights."""

    coef: np.ndarray
    regulariser: float
    primal: float
    dual: float

    @property
    def gap(self):
        return self.primal - self.dual


def certify(matrices, y, theta, alpha):
    """``1/2 ||v||_p^2 + sum_i (y_i - f_i)^2 / (2 alpha)`` and its dual, from explicit matrices."""
    K = sum(t * Kk for t, Kk in zip(theta, matrices, strict=True))
    s = np.linalg.solve(K + alpha * np.eye(len(y)), y)
    zeta = np.sqrt([s @ Kk @ s for Kk in matrices])
    conjugate = P / (P - 1)
    regulariser = 0.5 * np.sum((theta * zeta) ** P) ** (2 / P)
    primal = regulariser + np.sum((y - K @ s) ** 2) / (2 * alpha)
    dual = s @ y - 0.5 * alpha * s @ s - 0.5 * np.sum(zeta**conjugate) ** (2 / conjugate)
    return Certificate(s, regulariser, primal, dual)


class Itinerary(BlockNorm):
    """The lp-norm regulariser, with weights that follow a list instead of its own update."""

    def start(self):
        object.__setattr__(self, "ahead", iter(STOPS))
        return next(self.ahead)

    def update(self, theta, a):
        return next(self.ahead)


class Wander(JointWeighting):
    def __init__(self, max_iter=3, tol=1e-9):
        self.max_iter, self.tol = max_iter, tol

    def regulariser(self, grams, target):
        return Itinerary(P, ~grams.degenerate)


#: Far from the optimum, near to it, far away again, further still.
STOPS = [
    np.array([0.1, 0.9, 0.9]),
    np.array([0.95, 0.25, 0.25]),
    np.array([0.2, 0.2, 1.0]),
    np.array([0.05, 1.0, 0.05]),
]


def test_of_gaps_that_fall_and_rise_again_the_smallest_is_returned():
    matrices, y = problem()
    alpha = 0.5
    truth = [certify(matrices, y, theta, alpha) for theta in STOPS]
    gaps = [one.gap for one in truth]
    assert gaps[1] < 0.5 * min(gaps[0], gaps[2])  # the case is what it claims to be
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        found = find_by_alternation(
            given_grams(matrices, False, None),
            outputs(y),
            Wander(),
            Ridge(alpha, fit_intercept=False),
        )
    np.testing.assert_array_equal(found.kernel_weights, STOPS[1])
    np.testing.assert_allclose(found.machine.coef[:, 0], truth[1].coef, rtol=1e-9)
    assert found.machine.gap == pytest.approx(gaps[1] / truth[1].primal, rel=1e-9)
    assert found.machine.objective == pytest.approx(2 * alpha * truth[1].primal, rel=1e-12)
    assert found.machine.n_iter == len(found.history) == 3
    K = sum(t * Kk for t, Kk in zip(STOPS[1], matrices, strict=True))
    np.testing.assert_allclose(found.gram.dense(), K, rtol=1e-12)
    # The history tells every step, not only the best.
    relative = [one.gap / one.primal for one in truth[:3]]
    assert [entry["gap"] for entry in found.history] == pytest.approx(relative, rel=1e-9)


def test_an_interrupt_hands_over_the_best_iterate_so_far():
    matrices, y = problem()

    class Interrupting(Ridge):
        """Ctrl-C comes while the fourth model is trained."""

        def fit(self, gram, target, *, start=None):
            self.fits = getattr(self, "fits", 0) + 1
            if self.fits == 4:
                raise KeyboardInterrupt
            return super().fit(gram, target, start=start)

    learner = Interrupting(0.5, fit_intercept=False)
    with pytest.raises(Stopped) as stopped:
        find_by_alternation(
            given_grams(matrices, False, None), outputs(y), Wander(max_iter=4), learner
        )
    np.testing.assert_array_equal(stopped.value.found.kernel_weights, STOPS[1])
    assert stopped.value.found.machine.n_iter == len(stopped.value.found.history) == 3


@pytest.mark.parametrize("alpha", [1e6, 1e8])
def test_where_nearly_all_is_loss_the_regulariser_decides_when_to_stop(alpha):
    """With a large ridge the first weights have a gap far below tol times the objective."""
    matrices, y = problem()
    grams, target = given_grams(matrices, False, None), outputs(y)
    learner = Ridge(alpha, fit_intercept=False)
    rule = mk.LpNorm(P, tol=1e-5)
    first = certify(matrices, y, rule.start(grams, target, learner), alpha)
    assert first.gap < 0.5 * rule.tol * first.primal
    assert first.gap > 10 * rule.tol * first.regulariser
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = find_by_alternation(grams, target, rule, learner)
    assert len(found.history) > 1
    last = certify(matrices, y, found.kernel_weights, alpha)
    assert last.gap <= 10 * rule.tol * last.regulariser
    # In this limit s = y / alpha, and the weights of the optimum are those of a_k = y'K_k y.
    a = np.array([y @ K @ y for K in matrices])
    best = a ** ((2 - P) / (2 * P - 2))
    best /= np.sum(best ** (P / (2 - P))) ** ((2 - P) / P)
    # The gap grows with the square of the distance from them.
    np.testing.assert_allclose(found.kernel_weights, best, rtol=0, atol=np.sqrt(10 * rule.tol))


@pytest.mark.parametrize("solver", ["alternation", "cutting-planes"])
def test_the_warning_names_the_test_that_fails(solver, rng):
    X, y = rng.normal(size=(80, 4)), rng.integers(0, 2, size=80)
    rule = mk.LpNorm(1.2, solver=solver, tol=1e-4, max_iter=1)
    model = mk.MultiKernelClassifier(mk.gaussians([0.05, 0.1, 1.0]), rule, C=1e-4)
    with pytest.warns(ConvergenceWarning, match=r"of the regulariser, above 10 times tol=0\.0001"):
        model.fit(X, y)
    assert model.duality_gap_ < rule.tol


def test_it_stops_at_the_first_iterate_that_passes_both_tests():
    matrices, y = problem()
    alpha = 2.0
    rule = mk.LpNorm(P, tol=1e-4)
    found = find_by_alternation(
        given_grams(matrices, False, None), outputs(y), rule, Ridge(alpha, fit_intercept=False)
    )
    theta, step = BlockNorm(P, np.ones(3, dtype=bool)).start(), 1
    while True:
        now = certify(matrices, y, theta, alpha)
        if now.gap <= 1e-4 * now.primal and now.gap <= 1e-3 * now.regulariser:
            break
        step += 1
        a = np.array([now.coef @ K @ now.coef for K in matrices])
        v = theta * np.sqrt(a)
        theta = (v / np.sum(v**P) ** (1 / P)) ** (2 - P)
    assert len(found.history) == found.machine.n_iter == step > 2
    np.testing.assert_allclose(found.kernel_weights, theta, rtol=1e-9)
