"""Losses against their conjugates, computed the slow way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from multikernel.problem.losses import EpsilonInsensitive, Hinge, Logistic, OneClass, Squared, kink

LOSSES = [Hinge(), Squared(), EpsilonInsensitive(0.3), Logistic()]


def targets(loss, rng, n):
    labels = isinstance(loss, (Hinge, Logistic))
    return np.where(rng.random(n) < 0.5, 1.0, -1.0) if labels else rng.standard_normal(n)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_by_brute_force(loss, rng):
    """``-C l*(-s/C, y) = min_t C l(t, y) + s t`` on a fine grid of t."""
    t = np.linspace(-60, 60, 240001)
    C = np.array([0.7])
    for y in targets(loss, rng, 6):
        for share in (0.05, 0.4, 0.95):
            s = share * C[0] * (np.sign(y) if isinstance(loss, (Hinge, Logistic)) else 1.0)
            grid = np.array([loss.value(np.array([[v]]), np.array([[y]]), C)[0] for v in t[::400]])
            coarse = t[::400][np.argmin(grid + s * t[::400])]
            # Piecewise linear losses have their minimum at a kink.
            fine = np.append(coarse + np.linspace(-0.3, 0.3, 6001), [y - 0.3, y, y + 0.3])
            values = np.array([loss.value(np.array([[v]]), np.array([[y]]), C)[0] for v in fine])
            expected = np.min(values + s * fine)
            found = loss.dual(np.array([[s]]), np.array([[y]]), C)[0]
            np.testing.assert_allclose(found, expected, atol=2e-6)


DEFINITIONS = {
    Hinge: lambda t, y: max(0.0, 1.0 - t * y),
    Squared: lambda t, y: (y - t) ** 2 / 2,
    EpsilonInsensitive: lambda t, y: max(0.0, abs(y - t) - 0.3),
    Logistic: lambda t, y: math.log(1.0 + math.exp(-t * y)),
}


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_values_by_definition(loss, rng):
    """``sum_i C_i l(f_i + b, y_i)`` of each column, with an intercept of its own."""
    F, C, b = rng.standard_normal((9, 2)), rng.random(9) + 0.1, np.array([0.7, -1.3])
    Y = np.column_stack([targets(loss, rng, 9) for _ in range(2)])
    one = DEFINITIONS[type(loss)]
    slow = [sum(C[i] * one(F[i, j] + b[j], Y[i, j]) for i in range(9)) for j in range(2)]
    np.testing.assert_allclose(loss.value(F, Y, C, b), slow, rtol=1e-12)
    without = [sum(C[i] * one(F[i, j], Y[i, j]) for i in range(9)) for j in range(2)]
    np.testing.assert_allclose(loss.value(F, Y, C), without, rtol=1e-12)


def test_value_of_the_one_class_problem(rng):
    """``-rho + sum_i C_i max(0, rho - f_i)`` with b = -rho."""
    F, C, rho = rng.standard_normal((9, 2)), rng.random(9), np.array([0.4, -0.2])
    slow = [-rho[j] + sum(C[i] * max(0.0, rho[j] - F[i, j]) for i in range(9)) for j in range(2)]
    np.testing.assert_allclose(OneClass().value(F, np.ones((9, 2)), C, -rho), slow, rtol=1e-12)


@pytest.mark.parametrize("loss", [*LOSSES, OneClass()], ids=repr)
def test_intercepts_are_minimisers(loss, rng):
    for _ in range(20):
        F = rng.standard_normal((9, 2))
        Y = np.column_stack([targets(loss, rng, 9) for _ in range(2)])
        C = rng.random(9) + 0.1
        if isinstance(loss, OneClass):
            C = C / C.sum() / 0.4
        b = loss.intercept(F, Y, C)
        best = loss.value(F, Y, C, b)
        for step in (1e-3, 1e-2, 0.1, 1.0):
            for direction in (-1, 1):
                assert np.all(loss.value(F, Y, C, b + direction * step) >= best - 1e-12)


def test_a_flat_bottom_gives_its_middle():
    assert kink(np.array([0.0, 2.0]), np.array([1.0, 1.0]), 1.0) == 1.0
    assert kink(np.array([0.0, 2.0]), np.array([1.0, 3.0]), 2.0) == 2.0
    assert kink(np.array([5.0]), np.array([1.0]), 3.0) == 5.0
