"""L-BFGS on the smooth dual: golden values, a conic oracle, gradients, and the other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.certificate import Stopped, certify
from multikernel.solvers.joint import lbfgs
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.lbfgs import SmoothDual, find_by_lbfgs
from tests.solvers.joint.conic_oracle import conic_optimum, factor
from tests.solvers.joint.test_chunking import gaussian_grams, golden_problem
from tests.weighting.test_blocknorm import golden

INF = float("inf")
#: Squared loss, C = 1, without and with an intercept (digest of Kloft 2011, golden data set).
SQUARED_OPTIMA = {
    8 / 7: (2.742067576, 2.583357327),
    4 / 3: (2.493060860, 2.365338330),
    1.6: (2.215281772, 2.138468048),
    2: (1.938273930, 1.897978639),
    3: (1.576974981, 1.558489668),
    4: (1.401186220, 1.387783945),
}
#: Groups {1, 2} and {3, 4}, squared loss, no intercept; exponents between and within groups.
HIERARCHICAL_OPTIMA = {
    (4 / 3, 1.5): 2.349118199,
    (1.5, 1.2): 2.597735242,
    (1.2, 2): 2.104662070,
    (2, 1.2): 2.480980196,
    (3, 4): 1.478735349,
    (4, 2): 1.712648593,
    (4, 1.2): 2.227245976,
    (1.2, 4): 1.760014812,
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("p", list(SQUARED_OPTIMA))
def test_golden_optimum_of_the_squared_loss(p, intercept):
    grams, _, z = golden_problem()
    learner, target = Ridge(1.0, fit_intercept=intercept), Target(z, "regression")
    rule = mk.LpNorm(p, tol=1e-9)
    found = find_by_lbfgs(grams, target, rule, learner)
    # The learner's own objective is twice that of the thesis.
    np.testing.assert_allclose(found.machine.objective / 2, SQUARED_OPTIMA[p][intercept], rtol=2e-9)
    assert found.machine.gap <= 1e-9
    assert found.machine.n_iter == len(found.history) <= 40
    # The weights are the closed form of the coefficients (Kloft 2011, Proposition 3.1).
    coef = found.machine.coef
    zeta = np.sqrt(grams.quadratic_forms(coef)[:, 0])
    r = p / (p - 1)
    theta = zeta ** (r - 2) * np.sum(zeta**r) ** ((2 - r) / r)
    np.testing.assert_allclose(found.kernel_weights, theta, rtol=1e-10)
    # The certificate holds for products computed afresh from what is returned.
    again = certify(
        target,
        rule.regulariser(grams, target),
        learner,
        found.kernel_weights,
        found.gram,
        coef,
        found.gram.matvec(coef),
        grams.quadratic_forms(coef).sum(axis=1),
    )
    assert again.relative_gap == pytest.approx(found.machine.gap, abs=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("p", "C"), [(1.1, 1.0), (4 / 3, 30.0), (1.8, 1.0), (5.0, 3.0)])
def test_logistic_loss_against_a_conic_program(p, C, intercept):
    pytest.importorskip("clarabel")
    matrices, y, _ = golden()
    grams, Y, _ = golden_problem()
    optimum, norms, values = conic_optimum(
        [factor(K) for K in matrices], y, C, p, "logistic", intercept=intercept
    )
    found = find_by_lbfgs(
        grams,
        Target(Y, "classification"),
        mk.LpNorm(p, tol=1e-8),
        LogisticRegression(C, fit_intercept=intercept),
    )
    np.testing.assert_allclose(found.machine.objective, optimum, rtol=1e-7)
    coef = found.machine.coef
    ours = found.kernel_weights * np.sqrt(grams.quadratic_forms(coef)[:, 0])
    np.testing.assert_allclose(ours, norms, atol=1e-3 * norms.max())
    fitted = found.gram.matvec(coef)[:, 0] + found.machine.intercept[0]
    np.testing.assert_allclose(fitted, values, atol=2e-3 * np.abs(values).max())


@pytest.mark.parametrize("exponents", list(HIERARCHICAL_OPTIMA))
def test_two_level_norms_on_both_sides_of_two(exponents):
    grams, _, z = golden_problem()
    p, q = exponents
    rule = mk.HierarchicalNorm([[0, 1], [2, 3]], p=p, q=q, tol=1e-8, solver="lbfgs")
    found = find_by_lbfgs(grams, Target(z, "regression"), rule, Ridge(1.0, fit_intercept=False))
    assert found.machine.gap <= 1e-8
    np.testing.assert_allclose(found.machine.objective / 2, HIERARCHICAL_OPTIMA[p, q], rtol=1e-8)


def test_two_level_norm_with_equal_exponents_is_the_block_norm():
    grams, _, z = golden_problem()
    target, learner = Target(z, "regression"), Ridge(1.0)
    two = find_by_lbfgs(
        grams, target, mk.HierarchicalNorm([0, 1, 1, 0], p=1.4, q=1.4, tol=1e-9), learner
    )
    one = find_by_lbfgs(grams, target, mk.LpNorm(1.4, tol=1e-9), learner)
    np.testing.assert_allclose(two.kernel_weights, one.kernel_weights, rtol=1e-9)


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("p", [1.2, 3.0])
def test_several_outputs_and_sample_weights(kind, p):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    grams = gaussian_grams(X)
    weights = rng.uniform(0.5, 2.0, 40)
    if kind == "squared":
        Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 7.0
        target, learner = Target(Y, "regression", weights), Ridge(0.3)
    else:
        classes = np.argmax(X, axis=1)
        Y = np.where(classes[:, None] == np.arange(3), 1.0, -1.0)
        target, learner = Target(Y, "classification", weights), LogisticRegression(2.0)
    rule = mk.LpNorm(p, tol=1e-8, max_iter=2000)
    ours = find_by_lbfgs(grams, target, rule, learner)
    theirs = find_by_alternation(grams, target, rule, learner)
    assert max(ours.machine.gap, theirs.machine.gap) <= 1e-8
    np.testing.assert_allclose(ours.machine.objective, theirs.machine.objective, rtol=2e-8)
    np.testing.assert_allclose(ours.machine.intercept, theirs.machine.intercept, atol=2e-3)
    np.testing.assert_allclose(ours.kernel_weights, theirs.kernel_weights, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "rule", [mk.LpNorm(1.3), mk.LpNorm(4.0), mk.HierarchicalNorm([0, 0, 1, 1], p=1.5, q=3.0)]
)
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_the_gradient(kind, rule, intercept):
    grams, y, z = golden_problem()
    if kind == "squared":
        target, learner = Target(z, "regression"), Ridge(0.5, fit_intercept=intercept)
    else:
        target = Target(y, "classification")
        learner = LogisticRegression(2.0, fit_intercept=intercept)
    dual = SmoothDual(grams, target, rule.regulariser(grams, target), learner)
    x = np.random.default_rng(0).normal(size=16)
    slope = np.linalg.norm(dual.value_and_gradient(x)[1])
    error = check_grad(
        lambda x: dual.value_and_gradient(x)[0], lambda x: dual.value_and_gradient(x)[1], x
    )
    assert error <= 1e-6 * slope


def test_two_passes_give_the_same_as_one(monkeypatch):
    grams, _, z = golden_problem()
    target = Target(z, "regression")
    one = find_by_lbfgs(grams, target, mk.LpNorm(tol=1e-8), Ridge(1.0))
    monkeypatch.setattr(lbfgs, "MAX_PRODUCT_ENTRIES", 0)
    two = find_by_lbfgs(grams, target, mk.LpNorm(tol=1e-8), Ridge(1.0))
    np.testing.assert_allclose(one.machine.coef, two.machine.coef, rtol=1e-6, atol=1e-8)


def test_by_name_in_an_estimator():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4))  # enough samples for a start on a subsample, which is not used
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=900)
    bank = mk.gaussians([0.03, 0.1, 0.3])
    models = [
        mk.MultiKernelRegressor(bank, mk.LpNorm(1.5, solver=solver)).fit(X, y)
        for solver in ("lbfgs", "alternation")
    ]
    assert models[0].duality_gap_ <= 1e-3
    assert models[0].n_iter_ == len(models[0].history_) > 1
    gaps = [model.duality_gap_ for model in models]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=sum(gaps))


def test_interrupted_with_what_was_reached():
    grams, _, z = golden_problem()

    def report(entry):
        if entry["gap"] < 1e-2:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        find_by_lbfgs(
            grams, Target(z, "regression"), mk.LpNorm(tol=1e-9), Ridge(1.0), report=report
        )
    assert caught.value.found.machine.gap < 1e-2


@pytest.mark.parametrize(
    ("p", "alpha", "options", "reason"),
    [
        (1.2, 1.0, {"max_iter": 3, "tol": 1e-9}, "max_iter=3 iterations"),
        (3.0, 1e-3, {"tol": 1e-18}, "at the precision of float64"),
    ],
)
def test_says_when_it_did_not_get_there(p, alpha, options, reason):
    grams, _, z = golden_problem()
    rule = mk.LpNorm(p, **options)
    with pytest.warns(ConvergenceWarning, match="by L-BFGS stopped") as caught:
        found = find_by_lbfgs(grams, Target(z, "regression"), rule, Ridge(alpha))
    message = str(caught[0].message)
    assert reason in message
    assert f"gap of {found.machine.gap:.2g}, above tol={rule.tol:g}" in message


def test_refusals():
    grams, y, z = golden_problem()
    with pytest.raises(ValueError, match="squared or logistic loss"):
        find_by_lbfgs(grams, Target(y, "classification"), mk.LpNorm(1.5), SVM(1.0))
    with pytest.raises(ValueError, match="with a block norm; got L2Ball"):
        find_by_lbfgs(grams, Target(z, "regression"), mk.L2Ball(), Ridge(1.0))
    for p in (1.0, INF):
        with pytest.raises(ValueError, match="above 1 and below infinity"):
            mk.LpNorm(p, solver="lbfgs").method(4)
    with pytest.raises(ValueError, match="p and q above 1 and below infinity"):
        mk.HierarchicalNorm([0, 1], p=1, q=2, solver="lbfgs").method(2)
    with pytest.raises(ValueError, match="solver must be 'auto', 'alternation' or 'lbfgs'"):
        mk.HierarchicalNorm([0, 1], p=1, q=2, solver="chunking").method(2)
