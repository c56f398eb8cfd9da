"""Values without samples, in closed form, against training again without them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.matrix import GivenMatrix
from multikernel.learners import left_out
from multikernel.learners.left_out import (
    PartOfGram,
    chosen_samples,
    copies_of,
    span_rule,
    squared_spans,
    values_without_all,
)
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.parzen import Parzen
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.problem import Target


class Solvable(GivenMatrix):
    """A matrix with a direct solver."""

    extras = frozenset({"factor"})

    def solve(self, ridge, B):
        return np.linalg.solve(self.dense() + np.diag(ridge), B)


def gaussian(X, gamma=0.2):
    squares = np.sum(X**2, axis=1)
    return np.exp(-gamma * (squares[:, None] + squares - 2 * X @ X.T))


def problem(n=40, seed=0, flip=0.15, weights=False):
    X, y = make_classification(n, 5, flip_y=flip, random_state=seed)
    omega = np.random.default_rng(seed).integers(1, 4, n).astype(float) if weights else None
    return gaussian(X), Target(np.where(y == 1, 1.0, -1.0)[:, None], "classification", omega)


def without(learner, K, target, i):
    """The value at sample i after training with one copy of it left out."""
    n = len(K)
    omega = np.ones(n) if target.sample_weight is None else target.sample_weight.copy()
    omega[i] -= 1
    rest = np.flatnonzero(omega > 0)
    part = Target(target.Y[rest], "classification", omega[rest])
    machine = learner.fit(Solvable(K[np.ix_(rest, rest)]), part)
    return float(K[i, rest] @ machine.coef[:, 0] + machine.intercept[0])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_ridge_is_exact(weights, fit_intercept):
    K, target = problem(weights=weights)
    learner = Ridge(0.7, fit_intercept=fit_intercept)
    gram = Solvable(K)
    machine = learner.fit(gram, target)
    rows = np.arange(0, 40, 3)
    found = learner.left_out(gram, target, machine, rows)[:, 0]
    np.testing.assert_allclose(found, [without(learner, K, target, i) for i in rows], atol=1e-10)


@pytest.mark.parametrize("weights", [True, False])
def test_logistic_is_close(weights):
    K, target = problem(60, weights=weights)
    learner = LogisticRegression(1.0)
    gram = Solvable(K)
    machine = learner.fit(gram, target)
    rows = np.arange(60)
    found = learner.left_out(gram, target, machine, rows)[:, 0]
    exact = np.array([without(learner, K, target, i) for i in rows])
    inside = machine.values[:, 0] + machine.intercept
    assert np.abs(found - exact).max() < 0.1 * np.abs(inside - exact).max()


@pytest.mark.parametrize("weights", [True, False])
def test_ridge_without_an_intercept_is_exact_on_a_kernel_centred_without_the_sample(weights):
    K, target = problem(weights=weights)
    n, learner = len(K), Ridge(0.7, fit_intercept=False)
    omega = np.ones(n) if target.sample_weight is None else target.sample_weight

    def centred(weights):
        to_mean = np.eye(n) - weights / weights.sum()
        return to_mean @ K @ to_mean.T

    gram = Solvable(centred(omega))
    found = learner.left_out(gram, target, learner.fit(gram, target), np.arange(n))[:, 0]
    exact = [without(learner, centred(omega - np.eye(n)[i]), target, i) for i in range(n)]
    np.testing.assert_allclose(found, exact, atol=1e-10)


def centred(K, weights):
    to_mean = np.eye(len(K)) - weights / weights.sum()
    return to_mean @ K @ to_mean.T


def centred_values(learner, K, target):
    """Values of all samples without them, by training again, and inside the sample."""
    n = len(K)
    omega = np.ones(n) if target.sample_weight is None else target.sample_weight
    gram = Solvable(centred(K, omega))
    machine = learner.fit(gram, target)
    found = learner.left_out(gram, target, machine, np.arange(n))[:, 0]
    again = [without(learner, centred(K, omega - np.eye(n)[i]), target, i) for i in range(n)]
    return found, np.array(again), (gram.matvec(machine.coef) + machine.intercept)[:, 0]


def noise(n, weights, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([-1.0, 1.0], n // 2))
    omega = rng.integers(1, 4, n).astype(float) if weights else None
    K = gaussian(rng.normal(size=(n, 3)), 20.0)
    return K, Target(y[:, None], "classification", omega)


@pytest.mark.parametrize("C", [0.3, 10.0])
@pytest.mark.parametrize("weights", [True, False])
def test_logistic_without_an_intercept_is_centred_without_the_sample(weights, C):
    for K, target in (problem(40, weights=weights), noise(40, weights)):
        found, exact, inside = centred_values(LogisticRegression(C, fit_intercept=False), K, target)
        assert np.abs(found - exact).max() < 0.2 * np.abs(inside - exact).max()
        assert np.abs(found - exact).mean() < 0.06 * np.abs(inside - exact).mean()


@pytest.mark.parametrize("C", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("weights", [True, False])
def test_span_rule_without_an_intercept_is_centred_without_the_sample(weights, C):
    K, target = noise(40, weights)
    found, exact, inside = centred_values(SVM(C, fit_intercept=False), K, target)
    if weights:  # of copies that share a multiplier, the others take over what is left out
        assert np.abs(found - exact).mean() < 0.25 * np.abs(inside - exact).mean()
        return
    # The values depend on the labels only as those of training again do.
    y = target.Y[:, 0]
    assert np.abs(found - exact).max() < 0.06
    assert abs(np.mean(y * (found - exact))) < 0.002
    K, target = problem(40)
    found, exact, inside = centred_values(SVM(C, fit_intercept=False), K, target)
    assert np.corrcoef(found, exact)[0, 1] > 0.8


def test_span_rule_without_free_support_vectors_does_not_show_the_label():
    y = np.repeat([-1.0, 1.0], 20)
    target = Target(y[:, None], "classification")
    gram = Solvable(centred(np.eye(40), np.ones(40)))
    for fit_intercept in (True, False):
        learner = SVM(0.3, fit_intercept=fit_intercept)
        machine = learner.fit(gram, target)
        found = learner.left_out(gram, target, machine, np.arange(40))[:, 0]
        np.testing.assert_allclose(found, machine.intercept[0], atol=1e-12)


def test_parzen_is_exact_but_for_the_size():
    for weights in (False, True):
        K, target = problem(30, weights=weights)
        learner = Parzen("g")
        gram = Solvable(K)
        machine = learner.fit(gram, target)
        rows = np.arange(30)
        found = learner.left_out(gram, target, machine, rows)[:, 0]
        np.testing.assert_allclose(
            found, [without(learner, K, target, i) for i in rows], atol=1e-12
        )
        for form in ("h", "h_S"):
            scaled = Parzen(form)
            other = scaled.left_out(gram, target, scaled.fit(gram, target), rows)[:, 0]
            factor = scaled.fit(gram, target).coef[0, 0] / machine.coef[0, 0]
            np.testing.assert_allclose(other, factor * found, rtol=1e-9)


def kinds(machine, C):
    """0 for no support vectors, 1 for free ones, 2 for those at their bounds."""
    alpha = np.abs(machine.coef[:, 0])
    return (alpha > 1e-8 * C).astype(int) + (alpha >= C * (1 - 1e-8))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_span_rule_is_exact_where_no_other_multiplier_reaches_or_leaves_its_bounds(fit_intercept):
    learner = SVM(1.0, fit_intercept=fit_intercept)
    checked = 0
    for seed in range(4):
        X, y = make_classification(60, 5, flip_y=0.1, random_state=seed)
        K = gaussian(X, 1.0)
        gram, target = Solvable(K), Target(np.where(y == 1, 1.0, -1.0)[:, None], "classification")
        machine = learner.fit(gram, target)
        found = learner.left_out(gram, target, machine, np.arange(60))[:, 0]
        for i in np.flatnonzero(machine.coef[:, 0]):
            rest = np.delete(np.arange(60), i)
            again = learner.fit(Solvable(K[np.ix_(rest, rest)]), target.take(rest))
            if np.array_equal(kinds(again, 1.0), kinds(machine, 1.0)[rest]):
                exact = K[i, rest] @ again.coef[:, 0] + again.intercept[0]
                np.testing.assert_allclose(found[i], exact, atol=1e-6)
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_span_rule_is_close_to_training_again(weights, fit_intercept):
    K, target = problem(80, weights=weights)
    learner = SVM(1.0, fit_intercept=fit_intercept)
    gram = Solvable(K)
    machine = learner.fit(gram, target)
    rows = np.arange(80)
    found = learner.left_out(gram, target, machine, rows)[:, 0]
    exact = np.array([without(learner, K, target, i) for i in rows])
    inside = machine.values[:, 0] + machine.intercept
    assert np.corrcoef(found, exact)[0, 1] > 0.985
    assert np.mean(np.abs(found - exact)) < 0.6 * np.mean(np.abs(inside - exact))
    # Other samples take over a part of what is left out, which the rule does not know: it errs on
    # the safe side.
    y = target.Y[:, 0]
    assert np.mean(y * found) < np.mean(y * exact) < np.mean(y * inside)


def test_span_rule_is_exact_if_the_free_support_vectors_stay():
    # Samples that are no support vectors change nothing. Of the others there is one in each class,
    # both free, at distance two: the span of the one is the other.
    X = np.array([[0.0, 0.0], [2.0, 0.0], [9.0, 0.0]])
    y = np.array([-1.0, 1.0, 1.0])
    K = X @ X.T
    gram, target = Solvable(K), Target(y[:, None], "classification")
    learner = SVM(10.0)
    machine = learner.fit(gram, target)
    np.testing.assert_allclose(np.abs(machine.coef[:, 0]), [0.5, 0.5, 0.0], atol=1e-9)
    found = learner.left_out(gram, target, machine, np.arange(3))[:, 0]
    np.testing.assert_allclose(found[2], 8.0, atol=1e-8)
    # the distance of one from the other, squared, is 4: f changes by 0.5 * 4
    np.testing.assert_allclose(found[:2], [-1.0 + 2.0, 1.0 - 2.0], atol=1e-6)


def test_squared_spans_are_distances(rng):
    X = rng.normal(size=(12, 20))
    gram = GivenMatrix(X @ X.T)
    free, asked = np.arange(5), np.arange(12)
    for fit_intercept in (True, False):
        found = squared_spans(gram, np.arange(12), free, asked, fit_intercept=fit_intercept)
        for i in range(12):
            others = X[[j for j in free if j != i]]
            origin = others[0] if fit_intercept else 0.0
            basis = (others[1:] - origin if fit_intercept else others).T
            gap = X[i] - origin
            rest = gap - basis @ np.linalg.lstsq(basis, gap, rcond=None)[0]
            np.testing.assert_allclose(found[i], rest @ rest, rtol=1e-6)


def test_repeated_samples_and_weights_agree():
    K, target = problem(30, weights=True)
    copies = np.repeat(np.arange(30), target.sample_weight.astype(int))
    learner = SVM(1.0)
    gram, many = Solvable(K), Solvable(K[np.ix_(copies, copies)])
    repeated = Target(target.Y[copies], "classification")
    one = learner.left_out(gram, target, learner.fit(gram, target), np.arange(30))
    two = learner.left_out(many, repeated, learner.fit(many, repeated), np.arange(len(copies)))
    np.testing.assert_allclose(two, one[copies], atol=1e-5)


def test_copies_are_found_by_label(rng):
    X = rng.normal(size=(10, 3))
    rows = np.array([0, 1, 2, 3, 0, 4, 1, 0])
    labels = np.array([1.0, 1, -1, 1, 1, -1, -1, -1])
    group = copies_of(GivenMatrix(gaussian(X[rows])), labels)
    same = group[:, None] == group
    expected = (rows[:, None] == rows) & (labels[:, None] == labels)
    np.testing.assert_array_equal(same, expected)


@pytest.mark.parametrize("narrow", [1.0, 1e6])
@pytest.mark.parametrize("limit", [1, 5, 500])
def test_copies_are_found_in_a_few_columns(rng, monkeypatch, narrow, limit):
    """The whole matrix is multiplied only if the probed columns do not settle the question."""
    monkeypatch.setattr(left_out, "PROBED_COLUMNS", 7)
    monkeypatch.setattr(left_out, "MAX_ALIKE", limit)
    X, products = rng.normal(size=(60, 3)), []
    for rows in (np.arange(60), np.r_[np.arange(50), 3, 3, np.arange(8)]):
        labels = np.where(rows % 3 == 0, 1.0, -1.0)
        gram = GivenMatrix(gaussian(narrow * X[rows]))
        matvec = gram.matvec
        monkeypatch.setattr(gram, "matvec", lambda v, of=matvec: products.append(1) or of(v))
        group = copies_of(gram, labels)
        np.testing.assert_array_equal(group[:, None] == group, rows[:, None] == rows)
        if len(np.unique(rows)) == 60 and limit == 500:
            assert not products


@pytest.mark.parametrize("n", [200, 2100])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [mk.Gaussian(0.3), mk.Polynomial(2, coef0=1.0)], ids=str)
def test_copies_are_found_in_every_precision(rng, n, center, dtype, kernel):
    rows = np.r_[np.arange(n - 50), rng.permutation(n - 50)[:50]]
    X = rng.normal(size=(n, 5)).astype(dtype)[rows]
    grams = engines.build(mk.KernelBank([kernel]).plan(X), X, dtype=np.dtype(dtype))
    group = copies_of(grams.corrected(center, "multiplicative").combine(np.ones(1)), np.ones(n))
    np.testing.assert_array_equal(group[:, None] == group, rows[:, None] == rows)


def test_machines_without_free_support_vectors_or_with_equal_samples_are_no_trouble():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    for K in (np.ones((4, 4)), np.zeros((4, 4)), np.eye(4)):
        gram, target = Solvable(K), Target(y[:, None], "classification")
        learner = SVM(1.0)
        machine = learner.fit(gram, target)
        found = learner.left_out(gram, target, machine, np.arange(4))
        assert np.isfinite(found).all()
    none = span_rule(
        Solvable(np.eye(4)),
        np.zeros(4),
        np.ones(4),
        y,
        np.ones(4),
        np.ones(4),
        np.arange(4),
        np.arange(4),
        fit_intercept=True,
    )
    np.testing.assert_allclose(none, -y)  # all at their bounds: the span is empty


def test_a_part_of_a_large_sample_keeps_the_weights_of_the_classes():
    labels = np.repeat([0, 1, 2], [900, 90, 10])
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    rows, weights = chosen_samples(Target(Y, "classification"), 100)
    counts = np.bincount(labels[rows])
    np.testing.assert_array_equal(counts, [90, 50, 10])
    np.testing.assert_allclose(np.bincount(labels[rows], weights), [900, 90, 10])
    assert np.all(np.diff(rows) > 0)
    rows, weights = chosen_samples(Target(Y, "classification"), 1000)
    np.testing.assert_array_equal(rows, np.arange(1000))


@pytest.mark.parametrize("learner", [Ridge(0.5, solver="cg", tol=1e-10), LogisticRegression(1.0)])
def test_samples_are_left_out_together_if_systems_are_not_solved_directly(learner):
    K, target = problem(60)
    rows = np.array([1, 5, 20])
    gram = GivenMatrix(K)  # offers no factor
    machine = learner.fit(gram, target)
    found = learner.left_out(gram, target, machine, rows)
    rest = np.setdiff1d(np.arange(60), rows)
    again = learner.fit(Solvable(K[np.ix_(rest, rest)]), target.take(rest))
    expected = K[np.ix_(rows, rest)] @ again.coef + again.intercept
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(values_without_all(learner, gram, target, rows), expected, atol=1e-6)


def test_a_part_of_an_operator_is_the_operator_of_the_part(rng):
    K = gaussian(rng.normal(size=(15, 2)))
    rows = np.array([2, 3, 7, 11])
    part = PartOfGram(GivenMatrix(K), rows)
    V = rng.normal(size=(4, 2))
    np.testing.assert_allclose(part.matvec(V), K[np.ix_(rows, rows)] @ V)
    np.testing.assert_allclose(part.diagonal(), np.diag(K)[rows])
    np.testing.assert_allclose(part.values_everywhere(V), K[:, rows] @ V)
    assert "dense" not in part.offers
