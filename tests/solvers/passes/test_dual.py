"""Lower bounds from the coefficients of several passes, against the coefficients themselves."""

from types import SimpleNamespace

import numpy as np
import pytest

from multikernel.problem.losses import EpsilonInsensitive, Hinge, Logistic
from multikernel.problem.regularisers import BlockNorm
from multikernel.solvers.passes.dual import MAX_COMBINED, PassedDuals
from multikernel.solvers.passes.newton import FixedWeights
from multikernel.solvers.passes.smooth import smooth

LOSSES = [Hinge(), EpsilonInsensitive(0.1), Logistic()]
OWNER = np.array([0, 0, 0, 1, 1])


def passes(rng, loss, intercept, n=60, t=2, steps=6):
    """Coefficients at random points around a good one, and what a pass says of them."""
    Z, C = rng.normal(size=(n, len(OWNER))), rng.uniform(0.5, 2.0, n)
    slopes = rng.normal(size=(len(OWNER), t))
    Y = Z @ slopes + 0.3 * rng.normal(size=(n, t))
    if not isinstance(loss, EpsilonInsensitive):
        Y = np.sign(Y)
    duals, kept = PassedDuals(intercept), []
    for _ in range(steps):
        F = Z @ (slopes + 0.5 * rng.normal(size=slopes.shape))
        s = smooth(loss, F, Y, C, 0.5)[1]
        up, down = np.maximum(s, 0.0), np.minimum(s, 0.0)
        kept.append((up, down))
        alone = duals.add(
            SimpleNamespace(
                up=Z.T @ up,
                down=Z.T @ down,
                total_up=up.sum(axis=0),
                total_down=down.sum(axis=0),
                dual_up=loss.dual(up, Y, C),
                dual_down=loss.dual(down, Y, C),
            )
        )
    return duals, alone, kept, (Z, Y, C)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_combinations_are_feasible_and_bound_the_dual_value_from_below(rng, loss, intercept):
    duals, _, kept, (Z, Y, C) = passes(rng, loss, intercept)
    theta = np.array([0.7, 0.2])
    found = duals.best(theta, OWNER)
    s = np.zeros_like(Y)
    for j in range(Y.shape[1]):
        x = duals._solve(j, theta[OWNER])
        sides = np.column_stack([k[0][:, j] for k in kept] + [k[1][:, j] for k in kept])
        s[:, j] = sides @ x
    assert np.all(np.abs(s) <= C[:, None] * (1 + 1e-12))
    if intercept:
        np.testing.assert_allclose(s.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(found.products, Z.T @ s, atol=1e-10)
    assert found.size >= np.abs(s).sum() - 1e-10
    assert found.loss <= loss.dual(s, Y, C).sum() + 1e-10


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_other_combination_is_better(rng, loss, intercept):
    duals, alone, kept, _ = passes(rng, loss, intercept)
    theta = np.array([0.7, 0.2])
    rule = FixedWeights(theta)
    best = duals.best(theta, OWNER).value(rule, theta, OWNER)
    assert best > alone.value(rule, theta, OWNER)
    draws = rng.dirichlet(np.full(len(kept), 0.3), (300, 2, 2)) * rng.random((300, 2, 1, 1)) ** 0.2
    for draw in draws:
        other = duals._combination(
            [duals._feasible(duals._of_output(j)[1], draw[j].ravel()) for j in range(2)]
        )
        assert other.value(rule, theta, OWNER) <= best + 1e-5 * abs(best)


def test_bounds_hold_for_joint_rules(rng):
    """The minimum over weights with a 2-norm of at most one is below that for each of them."""
    duals, _, _, _ = passes(rng, Hinge(), True)
    theta = np.array([0.6, 0.8])
    found, rule = duals.best(theta, OWNER), BlockNorm(4 / 3, np.ones(2, dtype=bool))
    fixed = found.value(FixedWeights(theta), theta, OWNER)
    assert found.value(rule, theta, OWNER) <= fixed + 1e-12 * abs(fixed)


def test_only_the_last_passes_are_combined(rng):
    duals, alone, _, _ = passes(rng, Hinge(), True, t=1, steps=MAX_COMBINED + 5)
    assert len(duals._passes) == MAX_COMBINED
    np.testing.assert_array_equal(alone.products.shape, (len(OWNER), 1))


def test_passes_without_coefficients_give_the_bound_zero():
    zero = np.zeros((len(OWNER), 1))
    nothing = SimpleNamespace(up=zero, down=zero, total_up=zero[0], total_down=zero[0])
    nothing.dual_up = nothing.dual_down = zero[0]
    duals = PassedDuals(True)
    duals.add(nothing)
    theta = np.ones(2)
    assert duals.best(theta, OWNER).value(FixedWeights(theta), theta, OWNER) == 0.0
