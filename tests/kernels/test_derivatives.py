"""Derivatives of kernels in their columns, against central differences and by hand."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.kernels.derivatives import (
    BASES,
    central_differences,
    derivative,
    gradient_of_sum,
    weighted_gradient,
)
from multikernel.kernels.scaling import SLOPE_WINDOW, QuantileScaling
from multikernel.kernels.sequences import Spectrum

rng = np.random.default_rng(0)
X, Z = rng.gamma(2.0, size=(15, 4)), rng.gamma(2.0, size=(11, 4))
A = rng.normal(size=(15, 11))
STEPS = np.full(4, 1e-5)


def bell(U, V):
    return np.exp(-0.1 * ((U[:, None] - V[None]) ** 2).sum(axis=2))


def differences(kernel, X, Z, A):
    """The same by two calls of the kernel for each column, whatever it is."""
    out = np.zeros(X.shape)
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = 1e-5
        out[:, j] = np.einsum("mn,mn->m", A, kernel(X + step, Z) - kernel(X - step, Z)) / 2e-5
    return out


KERNELS = [
    mk.Linear(),
    mk.Linear(columns=[2, 0]),
    mk.Polynomial(3, coef0=0.5, gamma=0.3),
    mk.Polynomial(1),
    mk.Sigmoid(gamma=0.1, coef0=-0.2),
    mk.Gaussian(0.2),
    mk.Laplacian(0.3),
    mk.Exponential(1.5),
    mk.Exponential(1.5, power=0.5),
    mk.Exponential(1.5, power=1.5),
    mk.Exponential(1.5, power=2.0),
    mk.Matern(0.5, 2.0),
    mk.Matern(1.5, 2.0),
    mk.Matern(2.5, 2.0),
    mk.ChiSquared(0.4),
    mk.AdditiveChiSquared(columns=[1, 3]),
    mk.Callable(bell, columns=[0, 1]),
    mk.Gaussian(0.2) * mk.Linear(columns=[1]) * mk.Laplacian(0.1),
    2.5 * (mk.Gaussian(0.2) + mk.Polynomial(2, columns=[0, 3])),
    mk.Linear(columns=[1, 2]) ** 3,
    mk.Gaussian(0.2) ** 0.5,
    mk.Callable(bell) * mk.Exponential(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_derivatives_are_those_of_central_differences(kernel):
    found = weighted_gradient(kernel, X, Z, A, STEPS)
    expected = differences(kernel, X, Z, A)
    np.testing.assert_allclose(found, expected, atol=2e-7 * np.abs(expected).max())


def test_every_shared_kernel_has_a_derivative():
    values = np.linspace(0.1, 3.0, 5)
    for kind in BASES:
        one = kind()
        if BASES[kind] != "dot products":
            assert np.all(derivative(one, values) < 0), kind  # kernels fall with the distance
        else:
            assert np.all(derivative(one, values) > 0), kind


def test_values_by_hand():
    x, z, one = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]]), np.ones((1, 1))
    K = np.exp(-0.1 * 13.0)
    found = weighted_gradient(mk.Gaussian(0.1), x, z, one, STEPS)
    np.testing.assert_allclose(found, [[0.4 * K, 0.6 * K]])
    found = weighted_gradient(mk.Polynomial(2), x, z, one, STEPS)  # (1 + 3 + 10)^2
    np.testing.assert_allclose(found, [[2 * 14 * 3, 2 * 14 * 5]])
    found = weighted_gradient(mk.Laplacian(0.2), x, z, one, STEPS)
    np.testing.assert_allclose(found, np.full((1, 2), 0.2 * np.exp(-1.0)))


@pytest.mark.parametrize(
    "kernel", [mk.Exponential(1.5), mk.Exponential(1.0, 0.3), mk.Matern(0.5), mk.Laplacian(0.5)]
)
def test_a_corner_at_the_sample_itself_has_no_direction(kernel):
    # Far from the origin distances are differences of large numbers.
    for shift in (0.0, 1e3):
        own = X + shift
        found = weighted_gradient(kernel, own, own, np.eye(15), STEPS)
        np.testing.assert_array_equal(found, 0.0)
        all_of_them = weighted_gradient(kernel, own, own, np.ones((15, 15)), STEPS)
        expected = differences(kernel, own, own, 1.0 - np.eye(15))
        np.testing.assert_allclose(all_of_them, expected, atol=1e-8)


def test_columns_that_appear_twice_count_twice():
    found = weighted_gradient(mk.Gaussian(0.2, columns=[1, 1]), X, Z, A, STEPS)
    expected = differences(mk.Gaussian(0.2, columns=[1, 1]), X, Z, A)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert np.all(found[:, [0, 2, 3]] == 0)


@pytest.mark.parametrize("kernel", [mk.Gaussian(0.3), mk.Laplacian(0.3), mk.Linear()], ids=repr)
def test_standardised_columns_follow_the_chain_rule(kernel):
    scaled = replace(kernel, scaling="standard").adapt(rng.gamma(2.0, size=(50, 4)))
    found = weighted_gradient(scaled, X, Z, A, STEPS)
    expected = differences(scaled, X, Z, A)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", [mk.Gaussian(0.3), mk.Laplacian(0.3), mk.Linear()], ids=repr)
def test_ranks_follow_the_chain_rule_with_slopes_over_a_window(kernel):
    scaling = QuantileScaling.of(rng.gamma(2.0, size=(50, 4)))
    found = weighted_gradient(replace(kernel, scaling=scaling), X, Z, A, STEPS)
    inner = weighted_gradient(kernel, scaling(X), scaling(Z), A, STEPS)
    np.testing.assert_allclose(found, inner * scaling.slopes(X))


def test_slopes_of_ranks():
    knots, scores = np.array([0.0, 1.0, 3.0, 3.0]), np.array([-1.0, 0.0, 4.0, 4.0])
    scaling = QuantileScaling(knots[None], scores[None])
    h = SLOPE_WINDOW * np.std([0.0, 1.0, 3.0])
    at = np.array([-2.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0])[:, None]
    found = scaling.slopes(at)[:, 0]
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0, 1.5, 2.0, 1.0, 0.0])
    assert 0 < h < 0.5
    constant = QuantileScaling.of(np.ones((5, 1)))
    assert np.all(constant.slopes(np.array([[0.0], [1.0], [2.0]])) == 0)


def test_slopes_of_ranks_do_not_follow_gaps_between_samples():
    column = np.sort(rng.normal(size=100))
    near = np.append(column, column[50] + 1e-9)[:, None]  # two samples all but equal
    slopes = QuantileScaling.of(near).slopes(near)
    assert slopes.max() < 3.0


@pytest.mark.parametrize("kernel", KERNELS[:16], ids=repr)
def test_sparse_inputs_give_the_same(kernel):
    S, T = X * (X > 1), Z * (Z > 1)
    found = weighted_gradient(kernel, sp.csr_matrix(S), sp.csr_matrix(T), A, STEPS)
    expected = weighted_gradient(kernel, S, T, A, STEPS)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_sums_of_kernels_share_one_product():
    kernels = [mk.Gaussian(0.1), mk.Exponential(2.0), mk.Linear(), mk.Laplacian(0.2)]
    factors = np.array([1.0, 2.0, -0.5, 3.0])
    both = np.stack([A, 2 * A])
    found = gradient_of_sum(kernels, factors, X, Z, both)
    each = [f * weighted_gradient(k, X, Z, A, STEPS) for f, k in zip(factors, kernels, strict=True)]
    np.testing.assert_allclose(found[:, :, 0], sum(each), atol=1e-12)
    np.testing.assert_allclose(found[:, :, 1], 2 * found[:, :, 0])


def test_a_step_of_zero_leaves_a_column_out():
    found = central_differences(mk.Callable(bell), X, Z, A, np.array([1e-5, 0.0, 1e-5, 1e-5]))
    assert np.all(found[:, 1] == 0)
    assert np.all(found[:, 0] != 0)


def test_kernels_without_columns_are_refused():
    with pytest.raises(TypeError, match="not a function of numeric columns"):
        weighted_gradient(Spectrum(2), X, Z, A, STEPS)
