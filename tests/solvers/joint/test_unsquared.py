"""The unsquared norm: a conic oracle that solves it directly, and its equivalence to the square."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.problem.regularisers import UnsquaredBlockNorm
from multikernel.solvers.certificate import Stopped, certify
from multikernel.solvers.joint import unsquared
from multikernel.solvers.joint.find import find
from multikernel.solvers.joint.unsquared import RootSearch, on_unit_norm, scaled
from multikernel.solvers.joint.warm_start import WarmStart
from tests.solvers.joint.conic_oracle import conic_optimum, factor
from tests.solvers.joint.test_chunking import gaussian_grams, golden_problem
from tests.weighting.test_blocknorm import golden

INF = float("inf")


def problem(loss, C, intercept=True):
    grams, y, z = golden_problem()
    if loss in ("squared", "epsilon"):
        target = Target(z, "regression")
        learner = Ridge(1 / C) if loss == "squared" else SVR(1 / C, epsilon=0.1)
    else:
        target = Target(y, "classification")
        learner = SVM(C) if loss == "hinge" else LogisticRegression(C)
    learner.fit_intercept = intercept
    return grams, target, learner


def norms(grams, found):
    """``||w_k||`` of a result."""
    return found.kernel_weights * np.sqrt(grams.quadratic_forms(found.machine.coef)[:, 0])


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("loss", ["squared", "hinge", "epsilon", "logistic"])
@pytest.mark.parametrize("p", [1, 4 / 3, 2, 4, INF])
def test_against_a_conic_program_of_the_unsquared_norm(p, loss, C):
    pytest.importorskip("clarabel")
    if p == 1:
        pytest.importorskip("highspy")
    grams, target, learner = problem(loss, C)
    features = [factor(K) for K in golden()[0]]
    optimum, v, _ = conic_optimum(features, target.Y[:, 0], C, p, loss, squared=False)
    rule = mk.LpNorm(p, squared=False, tol=1e-6, max_iter=3000)
    found = find(grams, target, rule, learner)
    assert found.machine.gap <= 1e-6
    np.testing.assert_allclose(found.machine.objective / learner.unit, optimum, rtol=1e-6)
    # The gap bounds the error of the objective, and that only roughly the error of w.
    np.testing.assert_allclose(norms(grams, found), v, atol=5e-3 * max(v.max(), 1.0))
    # The certificate holds for what is returned, with the costs that were asked for.
    coef = found.machine.coef
    a = grams.quadratic_forms(coef).sum(axis=1)
    r = INF if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    assert np.linalg.norm(np.sqrt(a), r) <= 0.5 + 1e-14
    values = found.gram.matvec(coef)
    rule = UnsquaredBlockNorm(float(p), np.ones(4, dtype=bool))
    again = certify(target, rule, learner, found.kernel_weights, found.gram, coef, values, a)
    if np.any(coef):
        assert again.relative_gap == pytest.approx(found.machine.gap, abs=1e-12)
    else:
        np.testing.assert_allclose(again.primal, optimum, rtol=1e-6)


def test_the_group_lasso_by_its_optimality_conditions():
    """``C ||Phi_k'(y - f)|| = 1/2`` for blocks in use and at most that for others."""
    pytest.importorskip("highspy")
    grams, target, learner = problem("squared", 1.0, intercept=False)
    found = find(grams, target, mk.L1(squared=False, tol=1e-8, max_iter=3000), learner)
    residual = target.Y - found.gram.matvec(found.machine.coef)
    pull = np.sqrt(grams.quadratic_forms(residual)[:, 0])
    used = found.kernel_weights > 1e-6
    assert 0 < used.sum() < 4
    np.testing.assert_allclose(pull[used], 0.5, rtol=1e-3)
    assert np.all(pull[~used] < 0.5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_the_conversion_of_costs(p, loss):
    """The solution of the squared norm with C solves the unsquared norm with C / (2 W)."""
    grams, target, learner = problem(loss, 2.0)
    square = find(grams, target, mk.LpNorm(p, tol=1e-9, max_iter=3000), learner)
    W = float(np.linalg.norm(norms(grams, square), p))
    other = scaled(target, 1.0 / (2.0 * W))
    plain = find(grams, other, mk.LpNorm(p, squared=False, tol=1e-8, max_iter=3000), learner)
    np.testing.assert_allclose(norms(grams, plain), norms(grams, square), atol=1e-3 * W)
    np.testing.assert_allclose(plain.history[-1]["cost_factor"], 2.0 * W, rtol=1e-3)
    np.testing.assert_allclose(
        plain.gram.matvec(plain.machine.coef), square.gram.matvec(square.machine.coef), atol=2e-3
    )


def test_a_constant_is_optimal_below_a_threshold():
    """Squared loss: w = 0 iff ``C ||Phi'(y - mean)||_{p*} <= 1/2``; both sides of the threshold."""
    grams, _, z = golden_problem()
    p, r = 1.5, 3.0
    pull = np.sqrt(grams.quadratic_forms(z - z.mean())[:, 0])
    threshold = 0.5 / np.linalg.norm(pull, r)
    rule, target = mk.LpNorm(p, squared=False, tol=1e-5), Target(z, "regression")
    below = find(grams, target, rule, Ridge(1.0 / (0.9 * threshold)))
    assert not np.any(below.kernel_weights) and not np.any(below.machine.coef)
    np.testing.assert_allclose(below.machine.intercept, z.mean(), rtol=1e-12)
    assert below.machine.gap <= 1e-5
    above = find(grams, target, rule, Ridge(1.0 / (1.1 * threshold)))
    assert np.all(above.kernel_weights > 0) and above.machine.gap <= 1e-5


def test_several_outputs_weights_and_other_solvers():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    grams, weights = gaussian_grams(X), rng.uniform(0.5, 2.0, 40)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 7.0
    target, learner = Target(Y, "regression", weights), Ridge(0.3)
    found = [
        find(grams, target, mk.LpNorm(1.4, squared=False, tol=1e-6, solver=solver), learner)
        for solver in ("auto", "alternation", "lbfgs", "cutting-planes-wrapper")
    ]
    for one in found:
        assert one.machine.gap <= 1e-6
        np.testing.assert_allclose(one.machine.objective, found[0].machine.objective, rtol=2e-6)
    warm = find(
        grams,
        target,
        mk.LpNorm(1.4, squared=False, tol=1e-6),
        learner,
        warm=WarmStart(found[0].kernel_weights),
    )
    np.testing.assert_allclose(warm.machine.objective, found[0].machine.objective, rtol=2e-6)


def test_in_estimators():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    model = mk.MultiKernelClassifier(weighting=mk.LpNorm(squared=False), C=0.1).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.n_iter_ == len(model.history_)
    assert model.score(X, y) > 0.9
    shares = model.decision_function(X[:5], split=True).sum(axis=1) + model.intercept_
    np.testing.assert_allclose(shares, model.decision_function(X[:5]), rtol=1e-9)
    # With almost no cost of errors the best predictor is the majority.
    model = mk.MultiKernelClassifier(weighting=mk.LpNorm(squared=False), C=1e-6).fit(X, y)
    assert not np.any(model.kernel_weights_)
    assert set(model.predict(X)) == {1}


@pytest.mark.parametrize(("slope", "root"), [(0.0, 3.0), (0.5, -4.0), (0.97, 2.5), (0.2, 40.0)])
def test_the_search_finds_the_root(slope, root):
    search = RootSearch()
    for _ in range(40):
        if abs(search.x - root) < 1e-9:
            break
        search.next(root + slope * (search.x - root))
    assert abs(search.x - root) < 1e-9


def test_the_search_finds_a_root_between_bends():
    """Slope one below zero, none above two: steps stay within what is known about the root."""
    search = RootSearch()
    for _ in range(40):
        search.next(float(np.clip(search.x, 0.0, 2.0) * 0.5 + 0.8) + min(search.x, 0.0) * 0.5)
    assert search.x == pytest.approx(1.6, abs=1e-9)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, INF])
def test_weights_on_the_unit_norm_are_those_of_the_squared_norm(p):
    grams, target, learner = problem("squared", 1.0)
    square = find(grams, target, mk.LpNorm(p, tol=1e-6, max_iter=3000), learner).kernel_weights
    np.testing.assert_allclose(on_unit_norm(7.0 * square, p), square, rtol=1e-6)


def test_interrupted_with_what_was_reached():
    grams, target, learner = problem("squared", 1.0)
    rule = mk.LpNorm(1.5, squared=False, tol=1e-7)

    def interrupt(entry):
        seen.append(entry)
        if len(seen) == 2:
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(Stopped) as caught:
        find(grams, target, rule, learner, report=interrupt)
    best = min(entry["gap"] for entry in seen)
    assert caught.value.found.machine.gap == pytest.approx(best)


def test_says_when_it_did_not_get_there(monkeypatch):
    grams, target, learner = problem("squared", 1.0)
    monkeypatch.setattr(unsquared, "MAX_PROBLEMS", 2)
    with pytest.warns(ConvergenceWarning, match="2 problems of the squared norm") as caught:
        found = find(grams, target, mk.LpNorm(1.5, squared=False, tol=1e-8), learner)
    assert f"gap of {found.machine.gap:.2g}, above tol=1e-08" in str(caught[0].message)


def test_one_class_is_refused():
    grams, y, _ = golden_problem()
    with pytest.raises(ValueError, match="squared=True"):
        find(grams, Target(np.ones_like(y), "one-class"), mk.LpNorm(squared=False), OneClassSVM())
