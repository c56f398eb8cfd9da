"""Parzen predictors, and the theorems about them as statements on the sample itself."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.bounds import (
    alignment_predictor,
    good_classifier,
    good_classifier_plain,
    good_classifier_unnormalised,
    good_regressor,
)
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.normalise import center, centered_alignment
from multikernel.kernels.bank import KernelBank
from multikernel.learners.parzen import Parzen
from multikernel.problem import Target
from multikernel.solvers.joint.learn import learn
from multikernel.weighting import AlignF

WEIGHTS = np.array([0.7, 0.3])


def sample(rng, n=40, share=0.5):
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * y
    return X, y


def grams(X, center=True, normalize=None, weights=None):
    bank = mk.gaussians([0.1]) + KernelBank([mk.Linear()])
    raw = bank.plan(X).grams(X, budget=MemoryBudget.of(None), sample_weight=weights)
    return raw.corrected(center, normalize)


def values(machine, gram):
    return gram.matvec(machine.coef) + machine.intercept


def fit(form, X, y, kind="classification", centring=True, weights=None, **options):
    gram = grams(X, centring, weights=weights).combine(WEIGHTS)
    target = Target(y.reshape(len(y), -1), kind, weights)
    machine = Parzen(form, **options).fit(gram, target)
    return machine, values(machine, gram)


def combined(X):
    """The combination as a plain matrix, not centred."""
    return WEIGHTS[0] * mk.Gaussian(0.1)(X) + WEIGHTS[1] * mk.Linear()(X)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.9])
@pytest.mark.parametrize("centring", [True, False])
def test_equals_the_predictors_of_the_theorems(rng, share, centring):
    X, y = sample(rng, share=share)
    slow = alignment_predictor(combined(X), y)
    for form, expected in (("h", slow.h), ("g", slow.g), ("h_S", slow.h / slow.variance)):
        _, f = fit(form, X, y, centring=centring)
        np.testing.assert_allclose(f[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.9])
def test_correlation_with_the_target_is_the_alignment(rng, share):
    """``E[y h] = rho Var y`` and ``E[y h_S] = rho``, exactly, balanced or not (repair 19)."""
    X, y = sample(rng, share=share)
    rho = centered_alignment(combined(X), np.outer(y, y))
    variance = y.var()
    for form, expected in (("h", rho * variance), ("h_S", rho)):
        machine, f = fit(form, X, y)
        assert np.mean(y * f[:, 0]) == pytest.approx(expected, rel=1e-10)
        assert machine.objective == pytest.approx(-expected, rel=1e-10)
        assert machine.gap == 0.0
    # As printed, with E y^2 in place of the variance, h_S would be h here: wrong unless balanced.
    assert (abs(variance - 1.0) < 1e-12) == (share == 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_repaired_theorems_hold_on_the_sample(seed):
    """Theorems 13 to 15, with the sample for the distribution: no probability is left."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 40))
    X, y = sample(rng, n, share=float(rng.uniform(0.15, 0.85)))
    found = alignment_predictor(combined(X), y)
    _, h = fit("h", X, y)
    _, g = fit("g", X, y)
    error = np.mean(y * h[:, 0] < 0)
    assert error == np.mean(y * g[:, 0] < 0)
    slack = 1e-12
    assert error <= good_classifier(found.rho, found.Gamma, found.variance) + slack
    assert error <= good_classifier_plain(found.rho, found.variance) + slack
    assert error <= good_classifier_unnormalised(found.rho_u, found.R2) + slack
    squared = np.mean((y - h[:, 0]) ** 2)
    assert squared <= good_regressor(found.rho, found.variance) + slack


def test_printed_regression_theorem_fails_for_unbalanced_labels():
    """2 (1 - rho) is printed for any labels; with a mean it is not true."""
    y = np.array([1.0] * 9 + [-1.0])
    found = alignment_predictor(np.outer(y, y), y)
    assert found.rho == pytest.approx(1.0)
    gram = (
        (mk.KernelBank([mk.Linear()]))
        .plan(y[:, None])
        .grams(y[:, None], budget=MemoryBudget.of(None))
        .corrected(True, None)
        .combine(np.ones(1))
    )
    machine = Parzen("h").fit(gram, Target(y[:, None], "classification"))
    squared = np.mean((y - values(machine, gram)[:, 0]) ** 2)
    assert squared > good_regressor(1.0, as_printed=True) + 0.1
    assert squared <= good_regressor(found.rho, found.variance)


def test_the_target_kernel_predicts_perfectly():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    gram = grams(np.column_stack([y, 0 * y, 0 * y])).combine(np.array([0.0, 1.0]))
    machine = Parzen("h").fit(gram, Target(y[:, None], "classification"))
    np.testing.assert_allclose(values(machine, gram)[:, 0], y, atol=1e-12)


def test_sample_weights_are_repetitions(rng):
    X, y = sample(rng, 20, share=0.3)
    counts = rng.integers(1, 4, 20)
    rows = np.repeat(np.arange(20), counts)
    for form in ("g", "h", "h_S"):
        weighted = fit(form, X, y, weights=counts.astype(float))[1]
        often = fit(form, X[rows], y[rows])[1]
        np.testing.assert_allclose(weighted[rows], often, atol=1e-12)


def test_several_outputs_are_predicted_each_alone(rng):
    X, y = sample(rng)
    Y = np.column_stack([y, X[:, 0], X[:, 1] + 5.0])
    _, together = fit("h_S", X, Y, "regression", fit_intercept=True)
    for j in range(3):
        alone = fit("h_S", X, Y[:, j], "regression", fit_intercept=True)[1]
        np.testing.assert_allclose(together[:, [j]], alone, atol=1e-12)
    np.testing.assert_allclose(together.mean(axis=0), Y.mean(axis=0), atol=1e-12)


def test_g_is_the_best_direction_of_its_norm(rng):
    """No function of the same norm in feature space agrees better with the target."""
    X, y = sample(rng)
    K = center(combined(X))
    machine, g = fit("g", X, y)
    norm = machine.coef[:, 0] @ K @ machine.coef[:, 0]
    best = np.mean(y * g[:, 0])
    for _ in range(50):
        c = rng.normal(size=len(y))
        c *= np.sqrt(norm / (c @ K @ c))
        assert np.mean(y * (K @ c)) <= best * (1 + 1e-12)


def test_predicts_new_points_with_a_learned_kernel(rng):
    """The learner goes through the loop of any two-stage weighting."""
    X, y = sample(rng, 200)
    prepared = grams(X, normalize="trace")
    target = Target(y[:, None], "classification")
    solution = learn(prepared, target, AlignF(), Parzen("h"))
    new, labels = sample(np.random.default_rng(5), 200)
    expansion = prepared.expand(solution.kernel_weights, solution.machine.coef)
    f = expansion.values(expansion.encode(new)) + solution.machine.intercept
    assert np.mean(np.sign(f[:, 0]) == labels) > 0.7
    known = expansion.values(expansion.encode(X)) + solution.machine.intercept
    assert np.mean(y * known[:, 0]) == pytest.approx(solution.alignment * y.var(), rel=1e-6)


def test_bad_input(rng):
    X, y = sample(rng)
    with pytest.raises(ValueError, match="form must be one of 'g', 'h', 'h_S'; got 'k'"):
        fit("k", X, y)
    with pytest.raises(ValueError, match="kernel is constant"):
        fit("h", np.zeros_like(X), y)
    with pytest.raises(ValueError, match="target is constant"):
        fit("h_S", X, np.ones(len(y)))
