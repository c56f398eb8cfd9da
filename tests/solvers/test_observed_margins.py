"""Margins in the observed views: bounds of the optimum, known collapses, and what is refused."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

import multikernel as mk
from multikernel.grams.engines import build
from multikernel.grams.planning import plan_matrices
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.joint.observed_margins import (
    MarginProblem,
    find_by_observed_margins,
    largest_margin,
    second_derivative,
)

N, P = 40, 3
BANK = mk.per_view({"a": (mk.Gaussian(0.2), slice(0, 3)), "b": (mk.Linear(), slice(3, 6))})


@pytest.fixture
def sample(rng):
    y = np.tile([-1.0, 1.0], N // 2)
    has = rng.random((P, N)) < 0.7
    has[0] |= ~has.any(axis=0)
    matrices = []
    for mask in has:
        F = (rng.normal(size=(N, 4)) + 0.7 * y[:, None]) * mask[:, None]
        F -= mask[:, None] * F.sum(axis=0) / mask.sum()
        matrices.append(F @ F.T / 4)
    grams = build(plan_matrices(N, P), np.stack(matrices, axis=-1)).corrected(False, None)
    return grams, y, has, matrices


def problem_of(sample, rho=0.1, p=2.0, C=1.0):
    grams, y, has, _ = sample
    return MarginProblem(grams, y, np.full(N, C), has, rho, p, True)


def feasible(rng, y, C=1.0):
    alpha = rng.random(N) * C
    up, down = alpha[y > 0].sum(), alpha[y < 0].sum()
    alpha[y > 0] *= min(1.0, down / up)
    alpha[y < 0] *= min(1.0, up / down)
    return alpha


@pytest.mark.parametrize("p", [2.0, 4 / 3])
@pytest.mark.parametrize("rho", [0.0, 0.05, 0.5])
def test_every_point_bounds_every_other(sample, rng, rho, p):
    problem = problem_of(sample, rho, p)
    points = [problem.at(feasible(rng, problem.y)) for _ in range(20)]
    assert max(point.dual for point in points) <= min(point.primal for point in points) + 1e-12


def test_the_primal_value_is_the_problem_as_it_is_written(sample, rng):
    """A slow twin with explicit features of each kernel."""
    _, y, has, matrices = sample
    problem = problem_of(sample, 0.1, 4 / 3)
    point = problem.at(feasible(rng, y))
    norms, f = [], np.zeros(N)
    for theta, K in zip(point.theta, matrices, strict=True):
        values, vectors = np.linalg.eigh(K)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        w = theta * F.T @ (point.alpha * y)
        norms.append(np.linalg.norm(w))
        f += F @ w
    norms = np.array(norms)
    losses = np.maximum(0, 1 + 0.1 * has.T @ norms - y * (f + point.intercept))
    expected = 0.5 * np.sum(norms ** (4 / 3)) ** (2 * 3 / 4) + losses.sum()
    assert point.primal == pytest.approx(expected)
    shifted = [
        np.maximum(0, 1 + 0.1 * has.T @ norms - y * (f + point.intercept + d)).sum()
        for d in (-1e-3, 1e-3)
    ]
    assert min(shifted) >= losses.sum() - 1e-12


@pytest.mark.parametrize("p", [2.0, 1.5, 1.1])
def test_derivatives(sample, rng, p):
    problem = problem_of(sample, 0.05, p)
    alpha, step = feasible(rng, problem.y), 1e-5 * rng.normal(size=N)
    point = problem.at(alpha)
    assert np.all(point.c > 0)
    slope = point.required - problem.y * point.values
    up, down = problem.at(alpha + step), problem.at(alpha - step)
    assert (up.dual - down.dual) / 2 == pytest.approx(slope @ step, rel=1e-4, abs=1e-9)
    c = rng.random(P) + 0.1
    q, h = p / (p - 1), 1e-5
    found = second_derivative(c, q)
    half = lambda c: 0.5 * np.linalg.norm(c, q) ** 2  # noqa: E731
    for i in range(P):
        for j in range(P):
            e, d = h * np.eye(P)[i], h * np.eye(P)[j]
            numeric = half(c + e + d) - half(c + e - d) - half(c - e + d) + half(c - e - d)
            assert numeric / (4 * h**2) == pytest.approx(found[i, j], abs=1e-3, rel=1e-3)
    assert np.linalg.eigvalsh(found).min() > -1e-9


@pytest.mark.parametrize("p", [2.0, 4 / 3])
@pytest.mark.parametrize("margin", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_gap_closes(sample, margin, p, C):
    grams, y, has, _ = sample
    rule = mk.ObservedMargins(margin, p=p, tol=1e-7).for_samples(has)
    target = Target(y[:, None], "classification")
    found = find_by_observed_margins(grams, target, rule, SVM(C))
    assert found.machine.gap <= 1e-7
    assert found.machine.coef.sum() == pytest.approx(0.0, abs=1e-9)
    gaps = [entry["gap"] for entry in found.history]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("p", [2.0, 4 / 3])
def test_without_a_margin_it_is_lp_norm_learning(rng, p):
    X = rng.normal(size=(60, 6))
    y = X[:, 0] + X[:, 4] > 0
    margins = mk.MultiKernelClassifier(BANK, mk.ObservedMargins(0.0, p=p, tol=1e-6)).fit(X, y)
    plain = mk.MultiKernelClassifier(BANK, mk.LpNorm(p, tol=1e-6)).fit(X, y)
    assert margins.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(margins.kernel_weights_, plain.kernel_weights_, rtol=1e-2)


def test_a_complete_sample_has_one_margin_for_all(sample):
    """If all samples have all kernels and there is one kernel, only the scale of C changes."""
    _grams, y, _, matrices = sample
    one = build(plan_matrices(N, 1), matrices[0][:, :, None]).corrected(False, None)
    target = Target(y[:, None], "classification")
    rule = mk.ObservedMargins(0.3, tol=1e-9)
    found = find_by_observed_margins(one, target, rule, SVM(1.0))
    rho = 0.3 * largest_margin(one, y, np.ones(N), np.ones((1, N), dtype=bool))
    # The same predictor up to its scale solves the plain problem with some other C, so that all
    # margins are the same: y f >= 1 + rho ||w|| on the free support vectors.
    f = matrices[0] @ found.machine.coef[:, 0] * found.kernel_weights[0]
    alpha = np.abs(found.machine.coef[:, 0])
    free = (alpha > 1e-6) & (alpha < 1 - 1e-6)
    size = found.kernel_weights[0] * np.sqrt(
        found.machine.coef[:, 0] @ matrices[0] @ found.machine.coef[:, 0]
    )
    reached = y * (f + found.machine.intercept[0])
    assert free.any()
    np.testing.assert_allclose(reached[free], 1 + rho * size, rtol=1e-5)


def gaps_in(X, rng):
    X = X.copy()
    lost = rng.random((len(X), 2)) < 0.3
    lost[lost.all(axis=1), 0] = False
    X[lost[:, 0], :3] = np.nan
    X[lost[:, 1], 3:] = np.nan
    return X


def test_the_estimator(rng, tmp_path):
    y = np.repeat([0, 1, 2], 30)
    X = gaps_in(rng.normal(size=(90, 6)) + y[:, None], rng)
    model = mk.MultiKernelClassifier(BANK, missing="absent").fit(X, y)
    assert model.kernel_weights_.shape == (3, 2)
    assert model.duality_gap_ < 1e-3
    assert model.score(X, y) > 0.6
    assert model.predict_proba(X).shape == (90, 3)
    assert set(model.view_presence_) == {"a", "b"}
    assert "_has_kernels" not in vars(model)
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    other = mk.MultiKernelClassifier(BANK, "lp", missing="absent").fit(X, y)
    assert not np.allclose(other.kernel_weights_, model.kernel_weights_)
    # Kernels whose matrices are not at hand when probabilities are calibrated.
    two = mk.MultiKernelClassifier(BANK, mk.ObservedMargins(0.2), missing="absent")
    assert two.fit(X[:60], y[:60]).predict_proba(X).shape == (90, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_search(rng, n_classes):
    """Every candidate has the scores of the classifier without search, fitted to the same folds."""
    y = np.repeat(np.arange(n_classes), 60 // n_classes)
    X = gaps_in(rng.normal(size=(60, 6)) + y[:, None], rng)
    rules, Cs, folds = [mk.ObservedMargins(0.0), mk.ObservedMargins(0.3)], [0.1, 1.0], 3
    model = mk.MultiKernelClassifierCV(BANK, rules, Cs, cv=folds, missing="absent").fit(X, y)
    expected = [
        cross_val_score(mk.MultiKernelClassifier(BANK, rule, C, missing="absent"), X, y, cv=folds)
        for rule in rules
        for C in Cs
    ]
    found = np.array([model.cv_results_[f"split{f}_test_score"] for f in range(folds)])
    np.testing.assert_allclose(found.T, expected)
    # The margins of the chosen candidate are those of the whole sample.
    chosen = mk.MultiKernelClassifier(BANK, model.weighting_, model.C_, missing="absent").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), chosen.decision_function(X), atol=1e-6)
    assert model.view_presence_ == chosen.view_presence_
    assert model.predict_proba(X).shape == (60, n_classes)
    assert "_has_kernels" not in vars(model)


def test_the_search_scores_probabilities_and_names_a_missing_class(rng):
    y = np.repeat([0, 1, 2], 20)
    X = gaps_in(rng.normal(size=(60, 6)) + y[:, None], rng)
    search = mk.MultiKernelClassifierCV(BANK, Cs=[0.1, 1.0], cv=3, missing="absent")
    search.set_params(scoring="neg_log_loss").fit(X, y)
    assert -1.1 < search.best_score_ < 0  # log(3) is the loss of a guess
    with pytest.raises(ValueError, match=r"fold 0 has no sample of class 0\. Use stratified folds"):
        search.set_params(cv=KFold(3)).fit(X, y)


def test_a_search_among_rules_with_shared_and_separate_weights(rng):
    y = np.repeat([0, 1, 2], 15)
    X = rng.normal(size=(45, 6)) + y[:, None]
    rules = [mk.LpNorm(2), mk.ObservedMargins(0.2), mk.LpNorm(1.5)]
    model = mk.MultiKernelClassifierCV(BANK, rules, [1.0], cv=3).fit(X, y)
    for j, rule in enumerate(rules):
        scores = cross_val_score(mk.MultiKernelClassifier(BANK, rule), X, y, cv=3)
        assert model.cv_results_["mean_test_score"][j] == pytest.approx(scores.mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "squared"}, "needs loss='hinge'"),
        ({"C": "loo"}, "a number for C"),
        ({"weighting": "alignf"}, r"weighting must be mk.ObservedMargins.*got AlignF"),
        ({"weighting": "l1"}, "p above 1"),
        ({"weighting": mk.ObservedMargins(-1.0)}, "margin must be at least 0"),
        ({"weighting": mk.ObservedMargins(p=3.0)}, "p must be above 1"),
    ],
)
def test_what_is_refused(rng, options, message):
    y = np.repeat([0, 1], 20)
    X = gaps_in(rng.normal(size=(40, 6)) + y[:, None], rng)
    with pytest.raises(ValueError, match=message):
        mk.MultiKernelClassifier(BANK, missing="absent", **options).fit(X, y)
    if "C" not in options:
        with pytest.raises(ValueError, match=message):
            mk.MultiKernelClassifierCV(BANK, missing="absent", **options).fit(X, y)
    with pytest.raises(TypeError, match="measures margins"):
        rule = mk.ObservedMargins()
        grams = build(plan_matrices(40, 1), np.eye(40)[:, :, None]).corrected(False, None)
        find_by_observed_margins(
            grams, Target(y[:, None] * 2.0 - 1, "classification"), rule, Ridge()
        )


def test_a_margin_that_no_predictor_keeps(rng):
    y = np.repeat([0, 1], 20)
    X = gaps_in(rng.normal(size=(40, 6)) + y[:, None], rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mk.MultiKernelClassifier(BANK, mk.ObservedMargins(5.0), missing="absent").fit(X, y)
    assert np.all(model.kernel_weights_ == 0)
    assert model.duality_gap_ < 1e-3
