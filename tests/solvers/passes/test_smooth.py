"""Smoothed losses: derivatives, bounds of the coefficients, values above the loss."""

import numpy as np

from multikernel.problem.losses import EpsilonInsensitive, Hinge, Logistic
from multikernel.solvers.passes.smooth import smooth


def test_coefficients_of_smoothed_losses_are_their_slopes(rng):
    Y, C = rng.choice([-1.0, 1.0], (50, 1)), rng.random(50)
    F, step = rng.normal(size=(50, 1)), 1e-6
    for loss in (Hinge(), EpsilonInsensitive(0.2), Logistic()):
        value, s, bend = smooth(loss, F, Y, C, 0.3)
        above, below = (smooth(loss, F + e, Y, C, 0.3) for e in (step, -step))
        np.testing.assert_allclose((above[0] - below[0]) / (2 * step), -s, atol=1e-8)
        np.testing.assert_allclose((below[1] - above[1]) / (2 * step), bend, atol=2e-3)
        assert np.all(np.abs(s) <= C[:, None] * (1 + 1e-12)) and np.all(value >= 0)
        assert value.sum() >= loss.value(F, Y, C).sum() - 1e-12
