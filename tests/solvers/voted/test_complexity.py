"""Complexity terms against the obvious formulas, and what they promise each other."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest

import multikernel as mk
from multikernel.solvers.voted.complexity import (
    MAX_WALK_STEPS,
    complexities,
    local,
    monte_carlo,
    spectra,
)
from tests.naive_voted import MIXED, lopsided, make_columns, sample

X, _ = sample(30)
m = 30


def terms(how, kernels, X=X, **options):
    return complexities(how, make_columns(kernels, X), X.shape[1], **options).values


def test_trace():
    kernels = [mk.Polynomial(3), mk.Gaussian(2.0), mk.Linear(columns=[1])]
    expected = []
    for kernel in kernels:
        K = kernel(X)
        expected.append(np.sqrt(np.diag(K).max()) * np.sqrt(np.trace(K)) / m)
    np.testing.assert_allclose(terms("trace", kernels), expected, rtol=1e-12)
    # "useless between normalised kernels": all Gaussians have the same
    np.testing.assert_allclose(terms("trace", mk.gaussians([0.1, 5.0])), 1 / np.sqrt(m))


def test_degree():
    kernels = [mk.Linear(), mk.Polynomial(1), mk.Polynomial(4), mk.Polynomial(3, columns=[0, 2])]
    kernels.append(mk.Polynomial(3, coef0=0.0))
    sizes = [3, comb(4, 1), comb(7, 4), comb(5, 3), comb(5, 3)]
    expected = [k.diag(X).max() * np.sqrt(d) for k, d in zip(kernels, sizes, strict=True)]
    np.testing.assert_allclose(terms("degree", kernels), expected, rtol=1e-12)
    one = terms("degree", [mk.Linear(columns=[1])])
    np.testing.assert_allclose(one, np.max(X[:, 1] ** 2))


def test_gamma_and_sigmoid():
    np.testing.assert_allclose(terms("gamma", mk.gaussians([0.1, 5.0])), [0.1, 5.0])
    laplacians = [mk.Laplacian(0.5), mk.Laplacian(2.0)]
    np.testing.assert_allclose(terms("gamma", laplacians), [0.5, 2.0])
    np.testing.assert_allclose(terms("sigmoid", [mk.Sigmoid(0.3, 1.0)]), [0.3])
    np.testing.assert_allclose(terms("sigmoid", [mk.Sigmoid(-0.3, 1.0)]), [0.3])  # |a|


def test_local():
    kernels = [mk.Gaussian(0.5), mk.Polynomial(2)]
    for s in (1e-3, 0.1, 1e9):
        expected = []
        for kernel in kernels:
            eigenvalues = np.linalg.eigvalsh(kernel(X) / m).clip(0)
            expected.append(np.sqrt(2 / m * np.minimum(s, eigenvalues).sum()))
        found = terms("local", kernels, radius=s)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    # at an infinite radius, the trace
    np.testing.assert_allclose(found[0], np.sqrt(2 / m), rtol=1e-6)
    both = spectra(make_columns(kernels, X))
    assert np.all(local(both, m, 0.01) < local(both, m, 0.1))


def test_monte_carlo_is_the_mean_over_all_signs():
    few = X[:8]
    columns = make_columns(MIXED, few)
    exact = np.zeros(len(MIXED))
    signs = list(itertools.product([-1.0, 1.0], repeat=8))
    for k, kernel in enumerate(MIXED):
        K = kernel(few, few)
        exact[k] = np.mean([np.abs(K.T @ np.array(s)).max() for s in signs]) / 8
    found = monte_carlo(columns, n_draws=4000)
    assert np.all(np.abs(found.values - exact) < 4 * np.ptp(found.intervals, axis=1) / 3.92)
    assert np.sum((found.intervals[:, 0] <= exact) & (exact <= found.intervals[:, 1])) >= 4


def test_intervals_cover_as_often_as_they_say():
    K = make_columns([mk.Gaussian(1.0)], X)
    truth = monte_carlo(K, n_draws=20_000).values[0]
    covered = 0
    for seed in range(200):
        low, high = monte_carlo(K, n_draws=20, random_state=seed).intervals[0]
        covered += low <= truth <= high
    assert 180 <= covered <= 199  # 190 expected, deviation 3


def test_monte_carlo_is_below_the_trace_bound():
    kernels = [*mk.gaussians([0.01, 0.5, 20.0]), *mk.polynomials([1, 4, 8]), mk.Linear()]
    columns = make_columns(kernels, X)
    assert np.all(monte_carlo(columns).values < complexities("trace", columns, 3).values)


def test_monte_carlo_scales_and_does_not_depend_on_batches(monkeypatch):
    kernels = [mk.Gaussian(0.5), 7.0 * mk.Gaussian(0.5), mk.Callable(lopsided)]
    columns = make_columns(kernels, X)
    whole = monte_carlo(columns, n_draws=30).values
    assert whole[1] == pytest.approx(7 * whole[0], rel=1e-12)
    monkeypatch.setattr("multikernel.solvers.voted.complexity.BATCH_BYTES", 4 * 8 * 3 * m)
    np.testing.assert_allclose(monte_carlo(columns, n_draws=30).values, whole, rtol=1e-12)


def test_long_walks_depend_neither_on_batches_nor_on_the_order(monkeypatch, rng):
    weights = rng.uniform(0.5, 1.5, size=m) * MAX_WALK_STEPS
    kernels, order = [mk.Gaussian(0.5), mk.Linear()], rng.permutation(m)
    whole = monte_carlo(make_columns(kernels, X), weights, n_draws=30).values
    other = monte_carlo(make_columns(kernels, X[order]), weights[order], n_draws=30).values
    np.testing.assert_allclose(other, whole, rtol=1e-12)
    monkeypatch.setattr("multikernel.solvers.voted.complexity.BATCH_BYTES", 1)
    split = monte_carlo(make_columns(kernels, X), weights, n_draws=30).values
    np.testing.assert_allclose(split, whole, rtol=1e-12)


@pytest.mark.parametrize("how", ["trace", "local", "monte-carlo"])
def test_weights_are_repetitions_in_any_order(how, rng):
    kernels = [mk.Gaussian(0.5), mk.Polynomial(2), mk.Linear(columns=[0])]
    counts = rng.integers(1, 4, size=m)
    repeated = rng.permutation(np.repeat(np.arange(m), counts))
    weighted = terms(how, kernels, sample_weight=counts.astype(float))
    np.testing.assert_allclose(weighted, terms(how, kernels, X[repeated]), rtol=1e-9)
    # half weights are half points: no error, and between none and one
    halves = np.ones(m)
    halves[:10] = 0.5
    assert np.isfinite(terms(how, kernels, sample_weight=halves)).all()


def test_weights_of_any_size_cost_no_more_memory():
    # Sums of signs grow like the root of their number, and the term is divided by m.
    kernels = [mk.Gaussian(0.5), mk.Linear()]
    columns = make_columns(kernels, X)
    weights = np.arange(1.0, m + 1)
    for factor in (2.0**13, 2.0**40):
        assert factor * weights.sum() > MAX_WALK_STEPS
        few = monte_carlo(columns, weights, n_draws=4000)
        many = monte_carlo(columns, factor * weights, n_draws=4000)
        low, high = many.intervals.T * np.sqrt(factor)
        # Signs of many steps are nearly normal, those of few nearly so.
        np.testing.assert_allclose(many.values * np.sqrt(factor), few.values, rtol=0.05)
        assert np.all(high - low < 0.1 * few.values)


def test_long_walks_by_their_sums_have_the_same_distribution(monkeypatch):
    columns = make_columns([mk.Gaussian(0.5), mk.Linear(), mk.Callable(lopsided)], X)
    weights = np.where(np.arange(m) % 3 == 0, 3.0, 1.0)
    walked = monte_carlo(columns, weights, n_draws=20_000, random_state=1)
    monkeypatch.setattr("multikernel.solvers.voted.complexity.MAX_WALK_STEPS", 0)
    summed = monte_carlo(columns, weights, n_draws=20_000, random_state=2)
    np.testing.assert_allclose(summed.values, walked.values, rtol=0.02)


def test_vectors_are_taken_as_they_are():
    np.testing.assert_array_equal(terms([0.5, 0.0], mk.gaussians([1.0, 2.0])), [0.5, 0.0])


@pytest.mark.parametrize(
    ("how", "kernels", "message"),
    [
        (
            "degree",
            [mk.Polynomial(2), mk.Gaussian(1.0)],
            r"'Gaussian\(gamma=1\)'.*polynomials only",
        ),
        ("gamma", [mk.Gaussian(1.0), mk.Linear()], r"'Linear\(\)'.*Gaussians only.*'auto'"),
        ("gamma", [mk.Gaussian(1.0), mk.Laplacian(1.0)], r"'Laplacian\(gamma=1\)'"),
        ("sigmoid", [mk.Gaussian(1.0)], r"'Gaussian\(gamma=1\)'.*sigmoids only"),
        ("local", [mk.Callable(lopsided)], "lopsided.*not symmetric"),
        ("local", [mk.Sigmoid(1.0, -1.0)], r"Sigmoid.*not positive semidefinite \(eigenvalue -"),
        ("trace", [mk.Sigmoid(1.0, -9.0)], r"Sigmoid.*negative K\(x, x\).*monte-carlo"),
        ([1.0], mk.gaussians([1.0, 2.0]), r"2 finite non-negative numbers.*got \[1\.0\]"),
        ([1.0, -1.0], mk.gaussians([1.0, 2.0]), "non-negative"),
        ([1.0, np.nan], mk.gaussians([1.0, 2.0]), "finite"),
    ],
)
def test_terms_that_do_not_fit(how, kernels, message):
    with pytest.raises(ValueError, match=message):
        terms(how, kernels)


def test_the_estimate_may_exceed_the_trace_term_and_its_expectation_does_not():
    """docs/voted.md: a few draws can be above the bound on what they estimate."""
    ten = X[:10]
    bank = [mk.Gaussian(1e-3), mk.Gaussian(1.0)]
    K = np.array([kernel(ten) for kernel in bank])
    bound = np.sqrt(K.diagonal(axis1=1, axis2=2).max(axis=1) * np.trace(K, axis1=1, axis2=2)) / 10
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 10)).reshape(10, -1)
    expected = np.abs(np.einsum("kij,is->kjs", K, signs)).max(axis=1).mean(axis=1) / 10
    assert np.all(expected <= bound)
    columns = make_columns(bank, ten)
    found = [monte_carlo(columns, n_draws=5, random_state=seed) for seed in range(60)]
    above = np.mean([np.any(one.values > bound) for one in found])
    assert 0 < above < 0.5
    many = monte_carlo(columns, n_draws=4000, random_state=0)
    assert np.all(many.values <= bound)
    np.testing.assert_allclose(many.values, expected, rtol=0.05)
