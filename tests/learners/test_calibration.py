"""Sigmoids, step functions and temperatures, against plain minimisation of the same objectives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from multikernel.learners.calibration import (
    METHODS,
    Calibration,
    agree,
    calibrate,
    fit_isotonic,
    fit_sigmoid,
    fit_temperature,
    smoothed_targets,
)


def sample(rng, n=60, shift=0.4):
    decisions = rng.normal(size=n)
    positive = rng.random(n) < expit(2.0 * decisions + shift)
    return decisions, positive, rng.integers(1, 4, n).astype(float)


def platt_objective(theta, decisions, positive, weights):
    z = theta[0] * decisions + theta[1]
    target = smoothed_targets(positive, weights)
    return float(weights @ (np.logaddexp(0, z) - target * z)) / weights.sum()


def test_smoothed_targets_are_those_of_the_paper():
    positive = np.array([True, True, True, False])
    np.testing.assert_allclose(
        smoothed_targets(positive, np.ones(4)), [4 / 5, 4 / 5, 4 / 5, 1 / 3], rtol=1e-15
    )


def test_sigmoid_minimises_the_objective(rng):
    for _ in range(10):
        decisions, positive, weights = sample(rng)
        found = fit_sigmoid(decisions, positive, weights)
        best = minimize(
            platt_objective, found, args=(decisions, positive, weights), method="BFGS", tol=1e-14
        )
        value = platt_objective(found, decisions, positive, weights)
        assert value <= best.fun + 1e-14
        start = minimize(platt_objective, [0.0, 0.0], args=(decisions, positive, weights))
        np.testing.assert_allclose(found, start.x, atol=1e-4)


@pytest.mark.parametrize("size", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_sigmoid_does_not_depend_on_the_unit(rng, size):
    decisions, positive, weights = sample(rng)
    slope, offset = fit_sigmoid(decisions, positive, weights)
    other = fit_sigmoid(size * decisions, positive, weights)
    np.testing.assert_allclose([other[0] * size, other[1]], [slope, offset], rtol=1e-8)


def test_separable_samples_give_finite_parameters_and_certain_probabilities_stay_below_one():
    decisions = np.concatenate([np.full(50, 1e5), np.full(50, -1e5)])
    positive = decisions > 0
    slope, offset = fit_sigmoid(decisions, positive, np.ones(100))
    assert np.isfinite([slope, offset]).all()
    np.testing.assert_allclose(expit(slope * 1e5 + offset), 51 / 52, rtol=1e-8)


def test_equal_decisions_give_the_smoothed_frequency():
    positive = np.arange(10) < 3
    slope, offset = fit_sigmoid(np.full(10, 2.5), positive, np.ones(10))
    assert slope == 0.0
    np.testing.assert_allclose(expit(offset), smoothed_targets(positive, np.ones(10)).mean())


def test_decisions_that_point_the_wrong_way_are_ignored(rng):
    decisions = rng.normal(size=80)
    slope, offset = fit_sigmoid(decisions, decisions < 0, np.ones(80))
    assert slope == 0.0 and np.isfinite(offset)


@pytest.mark.parametrize("present", [True, False])
def test_one_class_alone(present):
    decisions = np.linspace(-1, 1, 12)
    slope, offset = fit_sigmoid(decisions, np.full(12, present), np.ones(12))
    p = expit(slope * decisions + offset)
    assert np.isfinite(p).all() and np.all((p > 0.5) == present)


def test_temperature_minimises_the_objective(rng):
    for k in (2, 3, 5):
        labels = rng.integers(0, k, 90)
        decisions = rng.normal(size=(90, k)) + 1.5 * np.eye(k)[labels]
        weights = rng.integers(1, 4, 90).astype(float)
        counts = np.bincount(labels, weights, minlength=k)[labels]
        target = np.repeat(1 / ((counts + 2) * (k - 1))[:, None], k, axis=1)
        target[np.arange(90), labels] = (counts + 1) / (counts + 2)

        def objective(b, f=decisions, t=target, w=weights):
            return -float(w @ np.sum(t * log_softmax(b * f, axis=1), axis=1)) / w.sum()

        inverse = fit_temperature(decisions, labels, weights)
        best = minimize(lambda b: objective(b[0]), [1.0], method="Nelder-Mead", tol=1e-12)
        np.testing.assert_allclose(inverse, best.x[0], rtol=1e-5)
        assert objective(inverse) <= best.fun + 1e-14


def test_temperature_of_two_classes_is_a_sigmoid_without_offset(rng):
    decisions, positive, weights = sample(rng, shift=0.0)
    inverse = fit_temperature(decisions[:, None], positive.astype(int), weights)
    only_slope = minimize(
        lambda a: platt_objective([a[0], 0.0], decisions, positive, weights), [1.0], tol=1e-12
    )
    np.testing.assert_allclose(inverse, only_slope.x[0], rtol=1e-5)


def test_temperature_of_extreme_samples():
    labels = np.array([0, 1, 2, 0])
    assert fit_temperature(np.zeros((4, 3)), labels, np.ones(4)) == 0.0
    assert fit_temperature(-np.eye(3)[labels], labels, np.ones(4)) == 0.0
    assert np.isfinite(fit_temperature(1e8 * np.eye(3)[labels], labels, np.ones(4)))


def test_isotonic_is_monotone_and_keeps_away_from_zero_and_one(rng):
    decisions, positive, weights = sample(rng)
    knots, levels = fit_isotonic(decisions, positive, weights)
    assert np.all(np.diff(knots) > 0) and np.all(np.diff(levels) >= 0)
    assert levels[0] >= 1 / (weights[~positive].sum() + 2) - 1e-15
    assert levels[-1] <= 1 - 1 / (weights[positive].sum() + 2) + 1e-15


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetitions(rng, method, k):
    n = 50
    labels = rng.integers(0, max(k, 2), n)
    decisions = rng.normal(size=(n, k)) + 0.8 * (labels[:, None] == np.arange(k) + (k == 1))
    weights = rng.integers(1, 4, n)
    one = calibrate(method, decisions, labels, weights.astype(float))
    many = calibrate(method, np.repeat(decisions, weights, axis=0), np.repeat(labels, weights))
    new = rng.normal(size=(30, k))
    np.testing.assert_allclose(one.probabilities(new), many.probabilities(new), atol=1e-9)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_sum_to_one_and_agree_with_their_logarithms(rng, method, k):
    labels = rng.integers(0, max(k, 2), 60)
    decisions = rng.normal(size=(60, k)) + 0.5 * (labels[:, None] == np.arange(k) + (k == 1))
    found = calibrate(method, decisions, labels)
    new = 1e3 * rng.normal(size=(40, k))
    p = found.probabilities(new)
    assert p.shape == (40, max(k, 2)) and np.all(p >= 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    logs = found.log_probabilities(new)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs), p, rtol=1e-12)
    decided = (new[:, 0] > 0).astype(int) if k == 1 else new.argmax(axis=1)
    np.testing.assert_array_equal(p.argmax(axis=1), decided)


@pytest.mark.parametrize("method", METHODS)
def test_order_of_the_classes_does_not_matter(rng, method):
    labels = rng.integers(0, 4, 70)
    decisions = rng.normal(size=(70, 4)) + np.eye(4)[labels]
    order = np.array([2, 0, 3, 1])
    new = rng.normal(size=(20, 4))
    place = np.argsort(order)
    one = calibrate(method, decisions, labels).probabilities(new)
    other = calibrate(method, decisions[:, order], place[labels]).probabilities(new[:, order])
    np.testing.assert_allclose(other, one[:, order], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_is_ruled_out_has_probability_zero(rng, method):
    labels = rng.integers(0, 3, 30)
    found = calibrate(method, np.zeros((30, 3)), labels)  # slopes are zero: 0 times infinity
    p = found.probabilities(np.array([[0.3, -np.inf, 0.1]]))
    assert p[0, 1] == 0.0 and np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(), 1.0)


def test_agreement_is_the_nearest_point_of_the_simplex(rng):
    for _ in range(20):
        p = rng.dirichlet(np.ones(4))
        decided = int(rng.integers(4))
        got = np.exp(agree(np.log(p)[None], np.array([decided])))[0]
        assert got.argmax() == decided
        np.testing.assert_allclose(got.sum(), 1.0, rtol=1e-12)
        cone = [{"type": "ineq", "fun": lambda v, j=j, d=decided: v[d] - v[j]} for j in range(4)]
        sums = {"type": "eq", "fun": lambda v: v.sum() - 1}
        best = minimize(
            lambda v, p=p: np.sum((v - p) ** 2),
            np.full(4, 0.25),
            constraints=[*cone, sums],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(got, best.x, atol=1e-6)


def test_agreement_changes_nothing_else(rng):
    logs = np.log(rng.dirichlet(np.ones(3), size=20))
    np.testing.assert_array_equal(agree(logs, logs.argmax(axis=1)), logs)


def test_identity_is_the_sigmoid_of_the_decision():
    f = np.array([[-3.0], [0.0], [0.5]])
    np.testing.assert_allclose(
        Calibration.identity().probabilities(f)[:, 1], expit(f[:, 0]), rtol=1e-15
    )


def test_other_methods_are_refused():
    with pytest.raises(ValueError, match="must be one of 'sigmoid'"):
        calibrate("beta", np.zeros((3, 1)), np.array([0, 1, 0]))
