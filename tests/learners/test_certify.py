"""What is said about a fitted model: intercept, objective and gap from its coefficients alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from multikernel.learners.certify import certified
from multikernel.problem.losses import EpsilonInsensitive, Hinge
from tests.naive_alignment import labels, outputs

EPSILON, C = 0.25, 0.5


def learner(loss, intercept=True, unit=3.0):
    """As much of a learner as is asked about; its own objective is three times the usual one."""
    return SimpleNamespace(
        loss=loss,
        fit_intercept=intercept,
        unit=unit,
        costs=lambda target: C * target.loss_weights,
    )


def case(seed=0, n=12):
    """A kernel, outputs that binary fractions hold exactly, and coefficients of sum zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 3))
    y = np.round(256 * rng.standard_normal(n)) / 256
    coef = rng.uniform(-0.4, 0.4, n)
    return A @ A.T, y, coef - coef.mean()


def tube_objectives(K, y, coef, b):
    """``1/2 c'Kc + C sum_i max(0, |y - Kc - b| - eps)``, ``c'y - eps ||c||_1 - 1/2 c'Kc``."""
    half = 0.5 * coef @ K @ coef
    loss = C * np.sum(np.maximum(0.0, np.abs(y - K @ coef - b) - EPSILON))
    return half + loss, coef @ y - EPSILON * np.abs(coef).sum() - half


def test_objective_and_gap_by_definition():
    K, y, coef = case()
    loss = EpsilonInsensitive(EPSILON)
    found = certified(learner(loss), (K @ coef)[:, None], coef[:, None], outputs(y), 7)
    primal, dual = tube_objectives(K, y, coef, found.intercept[0])
    assert found.objective == pytest.approx(3.0 * primal)
    assert found.gap == pytest.approx((primal - dual) / primal)
    assert found.n_iter == 7
    np.testing.assert_array_equal(found.values[:, 0], K @ coef)
    # No other intercept has a smaller objective.
    for step in (-0.3, -0.01, 0.01, 0.3):
        other = tube_objectives(K, y, coef, found.intercept[0] + step)[0]
        assert other >= primal - 1e-12


def test_without_an_intercept():
    K, y, coef = case()
    coef = coef + 0.05
    loss = EpsilonInsensitive(EPSILON)
    found = certified(learner(loss, False), (K @ coef)[:, None], coef[:, None], outputs(y), 1)
    primal, dual = tube_objectives(K, y, coef, 0.0)
    assert found.intercept[0] == 0.0
    assert found.objective == pytest.approx(3.0 * primal)
    assert found.gap == pytest.approx((primal - dual) / primal)


@pytest.mark.parametrize("shift", [-(2.0**20), 2.0**40])
def test_a_shift_of_the_outputs_moves_the_intercept_and_costs_no_digits(shift):
    K, y, coef = case()
    one = learner(EpsilonInsensitive(EPSILON))
    base = certified(one, (K @ coef)[:, None], coef[:, None], outputs(y), 1)
    moved = certified(one, (K @ coef)[:, None], coef[:, None], outputs(y + shift), 1)
    assert moved.objective == pytest.approx(base.objective, rel=1e-12)
    assert moved.gap == pytest.approx(base.gap, rel=1e-9)
    assert moved.intercept[0] - shift == pytest.approx(base.intercept[0], abs=2.0**-12)


def test_the_gap_is_that_of_the_worst_output_and_the_objective_the_sum():
    K, y, coef = case()
    Y = np.where(np.column_stack([y, -y, np.abs(y) - 0.5]) > 0, 1.0, -1.0)
    coefs = np.abs(np.column_stack([coef, 0.2 * coef, 0.7 * coef])) * Y
    each = [
        certified(learner(Hinge()), (K @ c)[:, None], c[:, None], labels(t), 1)
        for c, t in zip(coefs.T, Y.T, strict=True)
    ]
    together = certified(learner(Hinge()), K @ coefs, coefs, labels(Y), 1)
    assert together.objective == pytest.approx(sum(one.objective for one in each))
    assert together.gap == pytest.approx(max(one.gap for one in each))
    assert min(one.gap for one in each) < together.gap
