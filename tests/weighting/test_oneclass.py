"""One-class learning: golden values of the form with a cost C, and what the nu-form makes of them.

The unsigned hinge loss without intercept (Kloft 2011, section 2.3.4) has the dual

    max 1's - A(s) / 2    over 0 <= s <= C,      A(s) = ||sqrt(a)||_{p*}^2, homogeneous of degree 2

which is a support vector machine on a sample of +1 only. With ``s = tau sigma``, ``tau = 1's``, it
is ``max_tau tau - tau^2 min A(sigma) / 2`` over ``0 <= sigma <= C / tau``, ``1'sigma = 1``: for
fixed tau the nu-form with ``nu = tau / (n C)``, whose optimum is ``-A / 2``. So the best nu gives
the same kernel weights, and coefficients in proportion.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.joint.learn import learn
from tests.weighting.test_blocknorm import golden

n, C = 16, 0.1
IDS = mk.sample_ids(n)
GOLDEN = [(1, 0.562398232), (4 / 3, 0.368768483), (2, 0.191593919), (4, 0.097267070)]


def with_cost(p):
    """The form with a cost, by the machinery of joint learning."""
    plan = mk.precomputed(golden()[0]).plan(IDS)
    grams = plan.grams(IDS, budget=MemoryBudget.of(None)).corrected(False, None)
    target = Target(np.ones((n, 1)), "classification")
    rule = mk.LpNorm(p, tol=1e-9, max_iter=3000)
    return learn(grams, target, rule, SVM(C, fit_intercept=False))


def with_nu(p, nu):
    rule = mk.LpNorm(p, tol=1e-10, max_iter=3000)
    bank = mk.precomputed(golden()[0])
    return mk.MultiKernelOneClass(bank, rule, nu=nu, normalize=None).fit(IDS)


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_golden_problem(p, optimum):
    found = with_cost(p)
    assert found.machine.gap <= 1e-9
    np.testing.assert_allclose(found.machine.objective, optimum, rtol=1e-8)
    if p == 1:
        np.testing.assert_allclose(found.kernel_weights, [0, 0, 1, 0], atol=1e-8)
    coef = found.machine.coef[:, 0]
    assert np.all(coef >= 0) and np.all(coef <= C * (1 + 1e-12))


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_nu_form_is_the_same_machine(p, optimum):
    """Oracle O12, for learned weights: A has degree 2 whatever the norm."""
    found = with_cost(p)
    coef = found.machine.coef[:, 0]
    tau = coef.sum()
    model = with_nu(p, tau / (n * C))
    np.testing.assert_allclose(tau + tau**2 * model.objective_, optimum, rtol=1e-7)
    sigma = np.zeros(n)
    sigma[model.support_] = model.dual_coef_[:, 0]
    np.testing.assert_allclose(sigma, coef / tau, atol=1e-4)
    np.testing.assert_allclose(model.kernel_weights_, found.kernel_weights, rtol=1e-4, atol=1e-4)
    # Margins: rho in one form is 1 / tau in the other, unless all points are beyond it.
    if np.any((coef > 1e-6 * C) & (coef < (1 - 1e-6) * C)):
        np.testing.assert_allclose(model.offset_, 1 / tau, rtol=1e-4)


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_golden_values_from_the_estimator_alone(p, optimum):
    """``max_nu tau + tau^2 objective(nu)``, a concave function of ``tau = nu n C``."""

    def value(nu):
        tau = nu * n * C
        return -(tau + tau**2 * with_nu(p, nu).objective_)

    best = minimize_scalar(value, bounds=(0.05, 1.0), method="bounded", options={"xatol": 1e-6})
    np.testing.assert_allclose(-best.fun, optimum, rtol=1e-7)
