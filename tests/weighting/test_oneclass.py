"""One-class learning: golden values and oracles of the form with a cost C; its tie to the nu-form.

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
from tests.weighting.test_blocknorm import golden

n, C = 16, 0.1
IDS = mk.sample_ids(n)
GOLDEN = [(1, 0.562398232), (4 / 3, 0.368768483), (2, 0.191593919), (4, 0.097267070)]


def with_cost(p, C=C, tol=1e-9):
    rule = mk.LpNorm(p, tol=tol, max_iter=3000)
    bank = mk.precomputed(golden()[0])
    return mk.MultiKernelOneClass(bank, rule, C=C, normalize=None).fit(IDS)


def coefficients(model):
    coef = np.zeros(n)
    coef[model.support_] = model.dual_coef_[:, 0]
    return coef


def with_nu(p, nu):
    rule = mk.LpNorm(p, tol=1e-10, max_iter=3000)
    bank = mk.precomputed(golden()[0])
    return mk.MultiKernelOneClass(bank, rule, nu=nu, normalize=None).fit(IDS)


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_golden_problem(p, optimum):
    model = with_cost(p)
    assert model.duality_gap_ <= 1e-9
    np.testing.assert_allclose(model.objective_, optimum, rtol=1e-8)
    if p == 1:
        np.testing.assert_allclose(model.kernel_weights_, [0, 0, 1, 0], atol=1e-8)
    coef = coefficients(model)
    assert np.all(coef >= 0) and np.all(coef <= C * (1 + 1e-12))
    assert model.offset_ == pytest.approx(1.0, abs=2e-9) and model.offset_ < 1.0
    on_margin = (coef > 1e-6 * C) & (coef < (1 - 1e-6) * C)
    assert np.all(model.predict(IDS)[on_margin] == 1)


@pytest.mark.parametrize("p", [1, 4 / 3, 2, 4])
@pytest.mark.parametrize("C", [0.02, 0.1, 1.0])
def test_the_certificate_by_hand(p, C):
    """Primal and dual value from the matrices, and the optimality conditions of every sample."""
    matrices = golden()[0]
    model = with_cost(p, C)
    s, theta = coefficients(model), model.kernel_weights_
    f = sum(t * K @ s for t, K in zip(theta, matrices, strict=True))
    np.testing.assert_allclose(model.score_samples(IDS), f, rtol=1e-10)
    np.testing.assert_allclose(model.decision_function(IDS), f - 1.0, atol=2e-9)
    zeta = np.sqrt([s @ K @ s for K in matrices])
    loss = C * np.maximum(0.0, 1.0 - f).sum()
    primal = 0.5 * np.linalg.norm(theta * zeta, p) ** 2 + loss
    dual = s.sum() - 0.5 * np.linalg.norm(zeta, np.inf if p == 1 else p / (p - 1)) ** 2
    np.testing.assert_allclose(model.objective_, primal, rtol=1e-9)
    assert -1e-12 <= primal - dual <= 1e-8 * primal
    # Inside: no coefficient. Outside: C. Between: on the margin.
    assert np.all(s[f > 1 + 1e-4] <= 1e-12)
    np.testing.assert_allclose(s[f < 1 - 1e-4], C, rtol=1e-6)


@pytest.mark.parametrize("p", [1, 4 / 3, 1.6])
@pytest.mark.parametrize("C", [0.05, 0.3])
def test_a_conic_solver_finds_the_same_optimum(p, C):
    pytest.importorskip("clarabel")
    from tests.solvers.joint.test_qcqp_oracle import conic_optimum

    optimum, weights = conic_optimum(golden()[0], np.ones(n), C, p, intercept=False)
    model = with_cost(p, C)
    np.testing.assert_allclose(model.objective_, optimum, rtol=1e-6)
    if p == 1:
        np.testing.assert_allclose(model.kernel_weights_, weights, atol=1e-4)


@pytest.mark.parametrize(
    ("solver", "at"), [("chunking", 1), ("cutting-planes", 1), ("interior-point", 3)]
)
def test_every_solver_finds_the_golden_optimum(solver, at):
    pytest.importorskip("highspy")
    rule = mk.LpNorm(GOLDEN[at][0], tol=1e-7, max_iter=3000, solver=solver)
    bank = mk.precomputed(golden()[0])
    model = mk.MultiKernelOneClass(bank, rule, C=C, normalize=None).fit(IDS)
    np.testing.assert_allclose(model.objective_, GOLDEN[at][1], rtol=1e-6)


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_nu_form_is_the_same_machine(p, optimum):
    """Oracle O12, for learned weights: A has degree 2 whatever the norm."""
    found = with_cost(p)
    coef = coefficients(found)
    tau = coef.sum()
    model = with_nu(p, tau / (n * C))
    np.testing.assert_allclose(tau + tau**2 * model.objective_, optimum, rtol=1e-7)
    np.testing.assert_allclose(coefficients(model), coef / tau, atol=1e-4)
    np.testing.assert_allclose(model.kernel_weights_, found.kernel_weights_, rtol=1e-4, atol=1e-4)
    # Margins: rho in one form is 1 / tau in the other, unless all points are beyond it.
    if np.any((coef > 1e-6 * C) & (coef < (1 - 1e-6) * C)):
        np.testing.assert_allclose(model.offset_, 1 / tau, rtol=1e-4)
        np.testing.assert_allclose(
            tau * model.decision_function(IDS), found.decision_function(IDS), atol=1e-3
        )


def test_scikit_learn_has_the_same_machine_for_one_kernel(rng):
    from sklearn.svm import OneClassSVM

    X, new = rng.standard_normal((60, 2)), 2 * rng.standard_normal((30, 2))
    ours = mk.MultiKernelOneClass([mk.Gaussian(0.5)], "uniform", C=0.05, normalize=None).fit(X)
    tau = ours.dual_coef_.sum()
    plain = OneClassSVM(kernel="rbf", gamma=0.5, nu=tau / (60 * 0.05), tol=1e-9).fit(X)
    # libsvm's coefficients are at most one.
    np.testing.assert_allclose(
        ours.decision_function(new), 0.05 * plain.decision_function(new), atol=1e-6
    )


def test_a_repeated_sample_is_a_sample_of_twice_the_weight(rng):
    X = rng.standard_normal((40, 2))
    often = np.append(np.arange(40), np.arange(10))
    rule = mk.LpNorm(4 / 3, tol=1e-8)
    model = mk.MultiKernelOneClass(mk.gaussians([0.1, 1.0]), rule, C=0.1)
    weighted = model.fit(X, sample_weight=np.repeat([2.0, 1.0], [10, 30])).decision_function(X)
    np.testing.assert_allclose(model.fit(X[often]).decision_function(X), weighted, atol=1e-5)


def test_large_samples_start_from_a_subsample(rng):
    X = rng.standard_normal((900, 2))
    model = mk.MultiKernelOneClass(mk.gaussians([0.1, 1.0]), "lp", C=0.01).fit(X)
    assert model.duality_gap_ <= 1e-3


def test_nu_and_a_cost_exclude_each_other():
    with pytest.raises(ValueError, match=r"nu=0.1 and C=1.0 belong to two different forms"):
        mk.MultiKernelOneClass(nu=0.1, C=1.0).fit(np.eye(4))
    with pytest.raises(ValueError, match="'C' parameter"):
        mk.MultiKernelOneClass(C=0.0).fit(np.eye(4))


@pytest.mark.parametrize(("p", "optimum"), GOLDEN)
def test_the_golden_values_from_the_estimator_alone(p, optimum):
    """``max_nu tau + tau^2 objective(nu)``, a concave function of ``tau = nu n C``."""

    def value(nu):
        tau = nu * n * C
        return -(tau + tau**2 * with_nu(p, nu).objective_)

    best = minimize_scalar(value, bounds=(0.05, 1.0), method="bounded", options={"xatol": 1e-6})
    np.testing.assert_allclose(-best.fun, optimum, rtol=1e-7)


@pytest.mark.parametrize("weighting", ["uniform", *(mk.LpNorm(p) for p in (1, 4 / 3, 2, 64))])
def test_origin_within_the_sample(rng, weighting):
    """Nothing separates it from the origin: zero is the optimum, and proven to rounding error."""
    X = rng.normal(size=(40, 4))
    bank = [mk.Linear(columns=[j]) for j in range(4)]
    model = mk.MultiKernelOneClass(bank, weighting)
    with pytest.warns(UserWarning, match="origin lies within the sample") as told:
        model.fit(X)
    assert len(told) == 1 and told[0].filename == __file__
    assert model.duality_gap_ == 0.0 and abs(model.objective_) <= 1e-14
    assert np.abs(model.score_samples(X)).max() <= 1e-13
    # Far from the origin there is something to learn, and no warning.
    assert -model.fit(X + 5.0).objective_ > 0.0 and model.duality_gap_ <= 1e-3
