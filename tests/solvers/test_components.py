"""Coordinates of one kernel, against scikit-learn's kernel PCA and the formula of Nystrom."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.solvers.components import landmark_components, principal_components


def gram_of(X, center=False):
    grams = (
        mk.gaussians([0.05, 0.5])
        .plan(X)
        .grams(X, budget=MemoryBudget.of(None))
        .corrected(center, "multiplicative")
    )
    return grams.combine(np.array([0.3, 0.7]))


def sample(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4))


@pytest.mark.parametrize(("n", "count"), [(60, 5), (400, 5), (60, 60)])
def test_principal_components_are_those_of_kernel_pca(n, count):
    gram = gram_of(sample(n))
    found = principal_components(gram, count)
    K = gram.dense()
    oracle = KernelPCA(min(count, n - 1), kernel="precomputed", eigen_solver="dense").fit(K)
    r = min(count, n - 1)
    assert_allclose(found.values[:r], oracle.eigenvalues_[:r], rtol=1e-8, atol=1e-8)
    Z = K @ found.coef - found.offset
    some = slice(0, min(r, 20))
    assert_allclose(Z[:, some], oracle.transform(K)[:, some], atol=1e-6)
    assert_allclose(found.total, np.trace(mk.center(K)))


def test_all_components_reproduce_the_centred_kernel():
    gram = gram_of(sample(50))
    found = principal_components(gram)
    Z = gram.dense() @ found.coef - found.offset
    assert Z.shape == (50, 49)
    assert_allclose(Z @ Z.T, mk.center(gram.dense()), atol=1e-12)
    assert_allclose(found.shares.sum(), 1.0)
    plain = principal_components(gram, 50, center=False)
    Z = gram.dense() @ plain.coef
    assert_allclose(Z @ Z.T, gram.dense(), atol=1e-12)
    assert np.all(plain.offset == 0)


def test_products_alone_give_the_same_components():
    X = sample(60)
    full = principal_components(gram_of(X), 4)
    gram = gram_of(X)
    gram.room = 0.0  # no room for the matrix
    assert not gram.fits()
    streamed = principal_components(gram, 4)
    assert_allclose(streamed.values, full.values, rtol=1e-10)
    assert_allclose(streamed.coef, full.coef, atol=1e-8)


@pytest.mark.parametrize("center", [True, False])
def test_products_alone_give_all_components_but_one(center):
    gram = gram_of(sample(30))
    gram.room = 0.0
    found = principal_components(gram, 30, center=center)
    assert len(found.values) == 29  # the most that Lanczos iterations give
    full = principal_components(gram_of(sample(30)), 30, center=center)
    Z = gram.dense() @ found.coef - found.offset
    assert_allclose((Z**2).sum(axis=0), full.values[:29], atol=1e-10)


def test_landmarks_are_the_approximation_of_nystrom():
    gram = gram_of(sample(80))
    found = landmark_components(gram, 15, np.random.default_rng(0), per_component=1)
    landmarks = np.flatnonzero(np.any(found.coef != 0, axis=1))
    assert len(landmarks) == 15
    K = gram.dense()
    Z = K @ found.coef
    part = K[:, landmarks]
    expected = part @ np.linalg.solve(K[np.ix_(landmarks, landmarks)], part.T)
    assert_allclose(Z @ Z.T, expected, atol=1e-10)
    assert_allclose((Z**2).sum(axis=0), found.values)  # uncorrelated, by size
    assert np.all(np.diff(found.values) <= 0)


def test_more_landmarks_come_closer_to_the_best_components():
    gram = gram_of(sample(80))
    best = principal_components(gram, 15, center=False)
    rng, shares = np.random.default_rng(0), []
    for per_component in (1, 2, 4, 6):
        found = landmark_components(gram, 15, rng, per_component)
        assert found.coef.shape == (80, 15)
        assert np.count_nonzero(np.any(found.coef != 0, axis=1)) == min(15 * per_component, 80)
        Z = gram.dense() @ found.coef
        assert_allclose((Z**2).sum(axis=0), found.values, rtol=1e-8)
        assert np.all(found.values <= best.values * (1 + 1e-9))
        shares.append(found.shares.sum())
    assert shares == sorted(shares)
    assert_allclose(shares[-1], best.shares.sum())  # all samples are landmarks


def test_landmarks_stop_at_the_rank():
    X = sample(30)
    grams = (
        mk.KernelBank([mk.Linear()])
        .plan(X)
        .grams(X, budget=MemoryBudget.of(None))
        .corrected(True, None)
    )
    gram = grams.combine(np.ones(1))
    found = landmark_components(gram, 20, np.random.default_rng(0))
    assert found.rank == 4
    Z = gram.dense() @ found.coef
    assert_allclose(Z @ Z.T, gram.dense(), atol=1e-10)
