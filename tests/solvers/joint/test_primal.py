"""The primal method: a conic oracle for every norm and loss, other solvers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.problem.losses import EpsilonInsensitive, Hinge, Logistic, OneClass, Squared
from multikernel.solvers.certificate import Stopped, certify
from multikernel.solvers.joint import primal, primal_path
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.primal import find_by_primal, is_for
from multikernel.solvers.joint.primal_path import PrimalPath
from multikernel.solvers.joint.smoothed_losses import best_intercept, smoothed
from tests.solvers.joint.conic_oracle import conic_optimum
from tests.solvers.joint.test_chunking import golden_problem

INF = float("inf")
N, WIDTH = 120, 3


def bank(n_features=12, width=WIDTH):
    starts = range(0, n_features, width)
    return mk.KernelBank([mk.Linear(columns=list(range(j, j + width))) for j in starts])


def data(n=N, seed=0, n_features=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    f = X[:, 0] - X[:, 3] + 0.5 * X[:, 7]
    y = np.where(f + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y[:, None], (f + 0.3 * rng.normal(size=n) + 3.0)[:, None]


def corrected(X, kernels=None, center=True, normalize="multiplicative", **options):
    plan = (bank() if kernels is None else kernels).plan(X)
    return plan.grams(X, budget=MemoryBudget.of(None), **options).corrected(center, normalize)


def problem(loss, C, intercept=True):
    X, y, z = data()
    if loss in ("squared", "epsilon"):
        target = Target(z, "regression")
        learner = Ridge(1 / C) if loss == "squared" else SVR(1 / C, epsilon=0.1)
    else:
        target = Target(y, "classification")
        learner = SVM(C) if loss == "hinge" else LogisticRegression(C)
    learner.fit_intercept = intercept
    return corrected(X), target, learner


@pytest.mark.parametrize(("C", "intercept"), [(0.01, True), (1.0, False), (100.0, True)])
@pytest.mark.parametrize("loss", ["squared", "hinge", "epsilon", "logistic"])
@pytest.mark.parametrize("p", [1, 1.1, 4 / 3, 2, 3, 10, INF])
def test_against_a_conic_program(p, loss, C, intercept):
    pytest.importorskip("clarabel")
    grams, target, learner = problem(loss, C, intercept)
    found = find_by_primal(grams, target, mk.LpNorm(p, tol=1e-6), learner)
    assert found.machine.gap <= 1e-6
    features = [grams.combine(alone).features() for alone in np.eye(4)]
    try:
        optimum, norms, _ = conic_optimum(features, target.Y[:, 0], C, p, loss, intercept=intercept)
    except AssertionError:
        # The oracle fails on some power cones; the certificate below is a proof in itself.
        optimum, norms = found.machine.objective / learner.unit, None
    np.testing.assert_allclose(found.machine.objective / learner.unit, optimum, rtol=1e-6)
    coef = found.machine.coef
    a = grams.quadratic_forms(coef).sum(axis=1)
    if norms is not None and (p < np.inf or loss in ("squared", "logistic")):  # else not unique
        ours = found.kernel_weights * np.sqrt(a)
        np.testing.assert_allclose(ours, norms, atol=0.01 * max(norms.max(), 1e-6))
    # The certificate holds for products computed afresh from what is returned.
    again = certify(
        target,
        mk.LpNorm(p).regulariser(grams, target),
        learner,
        found.kernel_weights,
        found.gram,
        coef,
        found.gram.matvec(coef),
        a,
    )
    assert again.relative_gap == pytest.approx(found.machine.gap, abs=1e-12)
    if intercept:
        assert abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()
    if loss == "hinge":
        alpha = coef * target.Y
        assert alpha.min() >= 0 and alpha.max() <= C


@pytest.mark.parametrize("p", [1, 1.5, 4, INF])
@pytest.mark.parametrize("kind", ["hinge", "logistic", "squared"])
def test_several_outputs_and_sample_weights(kind, p):
    X, _, z = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    grams = corrected(X, sample_weight=weights)
    if kind == "squared":
        target, learner = Target(np.hstack([z, X[:, 4:5] ** 2]), "regression", weights), Ridge(0.5)
    else:
        classes = np.argmax(X[:, [0, 3, 7]], axis=1)
        Y = np.where(classes[:, None] == np.arange(3), 1.0, -1.0)
        target = Target(Y, "classification", weights)
        learner = SVM(2.0) if kind == "hinge" else LogisticRegression(2.0)
    ours = find_by_primal(grams, target, mk.LpNorm(p, tol=1e-6), learner)
    assert ours.machine.gap <= 1e-6
    name = {True: "cutting-planes", False: "interior-point"}[p < 2]
    pytest.importorskip("highspy")
    from multikernel.solvers.joint.find import SOLVERS

    theirs = SOLVERS[name](grams, target, mk.LpNorm(p, tol=1e-5), learner)
    rtol = ours.machine.gap + theirs.machine.gap
    np.testing.assert_allclose(ours.machine.objective, theirs.machine.objective, rtol=rtol)


@pytest.mark.parametrize("p", [1, 1.5, 3])
def test_one_class(p):
    X = data()[0] + 2.0
    grams, target = corrected(X, center=False), Target(np.ones((N, 1)), "one-class")
    ours = find_by_primal(grams, target, mk.LpNorm(p, tol=1e-6), OneClassSVM(nu=0.3))
    theirs = find_by_alternation(
        grams, target, mk.LpNorm(p, tol=1e-6, max_iter=5000), OneClassSVM(nu=0.3)
    )
    assert ours.machine.gap <= 1e-6
    np.testing.assert_allclose(ours.machine.objective, theirs.machine.objective, rtol=3e-6)
    np.testing.assert_allclose(ours.machine.coef.sum(), 1.0, rtol=1e-12)


def test_zeros_are_exact_at_p_1_and_few_samples_have_coefficients():
    pytest.importorskip("highspy")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 30))
    y = np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=400) > 0, 1.0, -1.0)[:, None]
    grams, target = corrected(X, bank(30)), Target(y, "classification")
    found = find_by_primal(grams, target, mk.L1(tol=1e-5), SVM(0.1))
    from multikernel.solvers.joint.cutting_plane import find_by_cutting_planes

    exact = find_by_cutting_planes(grams, target, mk.L1(tol=1e-7), SVM(0.1))
    np.testing.assert_array_equal(found.kernel_weights > 0, exact.kernel_weights > 0)
    assert 0 < np.count_nonzero(found.kernel_weights) < 10
    ours, theirs = np.count_nonzero(found.machine.coef), np.count_nonzero(exact.machine.coef)
    assert ours <= theirs + 10 < 400


def test_constant_kernels_single_columns_and_an_engine_with_features():
    X, y, _ = data()
    X[:, 6:9] = 1.0
    kernels = bank() + mk.per_feature(mk.Linear(), columns=[0, 1])
    grams, target = corrected(X, kernels), Target(y, "classification")
    assert type(grams).__name__ == "StackedGrams"
    found = find_by_primal(grams, target, mk.LpNorm(1.5, tol=1e-6), SVM(1.0))
    other = find_by_alternation(grams, target, mk.LpNorm(1.5, tol=1e-6), SVM(1.0))
    np.testing.assert_allclose(found.machine.objective, other.machine.objective, rtol=2e-6)
    assert found.kernel_weights[2] == 0


@pytest.mark.parametrize(
    "loss", [Hinge(), EpsilonInsensitive(0.2), OneClass(), Squared(), Logistic()]
)
def test_derivatives_of_smoothed_losses(loss):
    rng = np.random.default_rng(0)
    Y = np.sign(rng.normal(size=(6, 1)))
    C, Z, mu = rng.uniform(0.5, 2.0, 6), 2.0 * rng.normal(size=(6, 1)), 0.05
    smooth = smoothed(loss, Y, C)
    s, bend = smooth.derivatives(Z, mu)
    slope = approx_fprime(Z.ravel(), lambda z: smooth.value(z[:, None], mu), 1e-6)
    np.testing.assert_allclose(-s.ravel(), slope, atol=1e-5)
    change = (smooth.derivatives(Z + 1e-6, mu)[0] - s) / 1e-6
    np.testing.assert_allclose(-change, bend, atol=1e-4)
    assert smooth.is_feasible(s)
    # The smoothed loss tends to the loss: the barrier costs mu log of the slacks.
    exact = float(loss.value(Z, Y, C).sum())
    assert smooth.value(Z, 1e-9) == pytest.approx(exact, abs=1e-6)


def test_slacks_keep_their_digits_far_from_the_kink():
    smooth = smoothed(Hinge(), np.ones((2, 1)), np.ones(2))
    s, bend = smooth.derivatives(np.array([[1e8], [-1e8]]), 1e-8)
    np.testing.assert_allclose(s[:, 0], [1e-16, 1.0], rtol=1e-7)  # mu / distance, and C
    assert np.all(bend > 0)


def test_the_intercept_balances_the_coefficients():
    rng = np.random.default_rng(0)
    Y, F = np.sign(rng.normal(size=(50, 2)) + 0.5), 5.0 * rng.normal(size=(50, 2))
    for mu in (1.0, 1e-4, 1e-8):
        smooth = smoothed(Hinge(), Y, np.ones(50))
        b = best_intercept(smooth, F, np.zeros(2), mu)
        assert np.all(np.abs(smooth.derivatives(F + b, mu)[0].sum(axis=0)) <= 1e-6)


@pytest.mark.parametrize("p", [1, 1.3, 4, INF])
def test_the_gradient_of_the_barrier_problem(p):
    grams, target, learner = problem("hinge", 1.0)
    path = PrimalPath(grams, target, mk.LpNorm(p).regulariser(grams, target), learner, float(p))
    for _ in range(3):
        path.advance()
    d, mu = path.F.shape[1], path.mu

    def value(x):
        w, b, u = x[:d, None], x[d : d + 1], x[d + 1 :]
        return path._value(w, path.F @ w + b, u, b)

    x = np.concatenate([path.w[:, 0], path.b, path.u])
    s = path.loss.derivatives(path.F @ path.w + path.b, mu)[0]
    gradient = path._gradient(path.w, s, path.u, mu)
    numeric = approx_fprime(x, value, 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-5 * np.abs(numeric).max() + 1e-5)


def test_by_name_in_estimators():
    X, y, z = data(600)
    for p in (1.0, 4 / 3, INF):
        model = mk.MultiKernelClassifier(bank(), mk.LpNorm(p, solver="primal")).fit(X, y[:, 0])
        assert model.duality_gap_ <= 1e-3
        assert model.n_iter_ == len(model.history_) > 1
        assert model.score(X, y[:, 0]) > 0.8
    models = [
        mk.MultiKernelRegressor(bank(), mk.LpNorm(solver=solver)).fit(X, z[:, 0])
        for solver in ("primal", "alternation")
    ]
    rtol = sum(model.duality_gap_ for model in models)
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=rtol)
    plain = mk.MultiKernelRegressor(bank(), mk.LpNorm(solver="primal", squared=False))
    assert plain.fit(X, z[:, 0]).duality_gap_ <= 1e-3


def test_when_auto_uses_it(monkeypatch):
    monkeypatch.setattr(primal, "MIN_AUTO_SAMPLES", 600)
    X, y, z = data(600)
    hinge, ridge = SVM(1.0), Ridge(1.0)
    grams = corrected(X)
    labels, values = Target(y, "classification"), Target(z, "regression")
    for p in (1, 4 / 3, 2, 4, INF):
        assert is_for(grams, labels, mk.LpNorm(p), hinge)
        assert is_for(grams, values, mk.LpNorm(p), ridge) == (p > 2)
    assert not is_for(grams, labels, mk.LpNorm(solver="alternation"), hinge)
    assert not is_for(grams, labels, mk.LpNorm(squared=False), hinge)
    assert not is_for(grams, labels, mk.Uniform(), hinge)
    few = np.arange(599)
    smaller = corrected(X[few])
    assert not is_for(smaller, labels.take(few), mk.LpNorm(), hinge), "599 < MIN_AUTO_SAMPLES"
    wide = corrected(X, bank() + mk.KernelBank([mk.Linear()]))
    assert not is_for(wide, labels, mk.LpNorm(), hinge), "600 samples, 24 columns"
    assert not is_for(corrected(X, mk.gaussians([0.1])), labels, mk.LpNorm(), hinge)
    one = Target(np.ones_like(y), "classification")
    assert not is_for(grams, one, mk.LpNorm(), hinge), "a class is missing"
    model = mk.MultiKernelClassifier(bank(), "lp").fit(X, y[:, 0])
    named = mk.MultiKernelClassifier(bank(), mk.LpNorm(solver="primal")).fit(X, y[:, 0])
    np.testing.assert_array_equal(model.kernel_weights_, named.kernel_weights_)


def test_problems_without_an_inner_point_go_to_the_alternation():
    X, y, _ = data()
    grams = corrected(X)
    found = find_by_primal(grams, Target(np.ones_like(y), "classification"), mk.LpNorm(), SVM(1.0))
    assert not np.any(found.machine.coef)
    raw = corrected(X + 2.0, center=False)
    one = Target(np.ones((N, 1)), "one-class")
    found = find_by_primal(raw, one, mk.LpNorm(), OneClassSVM(nu=1.0))
    np.testing.assert_allclose(found.machine.coef, 1.0 / N, rtol=1e-9)


def test_interrupted_with_what_was_reached():
    grams, target, learner = problem("hinge", 1.0)

    def report(entry):
        if entry["gap"] < 0.1:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        find_by_primal(grams, target, mk.LpNorm(tol=1e-6), learner, report=report)
    assert caught.value.found.machine.gap < 0.1


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"max_iter": 1, "tol": 1e-9}, "max_iter=1 Newton steps"), ({"tol": 1e-15}, "precision")],
)
def test_says_when_it_did_not_get_there(options, reason):
    grams, target, learner = problem("hinge", 1.0)
    rule = mk.LpNorm(INF, **options)
    with pytest.warns(ConvergenceWarning, match="by the primal method stopped") as caught:
        found = find_by_primal(grams, target, rule, learner)
    message = str(caught[0].message)
    assert reason in message
    assert f"gap of {found.machine.gap:.2g}, above tol={rule.tol:g}" in message


def test_refusals(monkeypatch):
    grams, y, _ = golden_problem()
    with pytest.raises(ValueError, match=r"explicit features.*precomputed"):
        find_by_primal(grams, Target(y, "classification"), mk.LpNorm(), SVM(1.0))
    grams, target, learner = problem("hinge", 1.0)
    monkeypatch.setattr(primal_path, "MAX_VARIABLES", 11)
    with pytest.raises(ValueError, match="at most 11 columns"):
        find_by_primal(grams, target, mk.LpNorm(), learner)
