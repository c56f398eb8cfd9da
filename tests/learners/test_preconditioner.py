"""Conjugate gradients with a preconditioner from columns: fewer steps to the same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.grams.low_rank_inverse import LowRankInverse
from multikernel.grams.pivoted_cholesky import pivoted_cholesky
from multikernel.grams.protocol import CombinedGram
from multikernel.learners import preconditioner
from multikernel.learners.preconditioner import find_preconditioner
from multikernel.learners.ridge import Ridge, conjugate_gradients
from multikernel.problem import Target


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(preconditioner, "MIN_SAMPLES", 10)


class Products(CombinedGram):
    """An operator with room for some columns, but not for the matrix."""

    def __init__(self, K, room=np.inf):
        self.K, self.n, self.kernel_weights = K, len(K), np.ones(1)
        self.room, self.read = room, 0

    def fits(self, copies=1):
        return False

    def matvec(self, V):
        self.read += self.n
        return self.K @ V

    def diagonal(self):
        return np.diag(self.K).copy()

    def rows(self, index):
        self.read += len(index)
        return self.K[index]

    def submatrix(self, index, dtype=np.float64):
        return self.K[np.ix_(index, index)].astype(dtype)


def problem(rng, n=300, t=2):
    X = rng.normal(size=(n, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2 + 50.0])[:, :t]
    return K, Y + 0.1 * rng.normal(size=Y.shape)


def test_the_inverse_and_the_bound(rng):
    K, _ = problem(rng)
    ridge = rng.uniform(0.01, 0.1, size=len(K))
    found = pivoted_cholesky(lambda index: K[:, index], np.diag(K), 60)
    P = LowRankInverse(found, ridge)
    explicit = found.F @ found.F.T + np.diag(ridge)
    R = rng.normal(size=(len(K), 3))
    np.testing.assert_allclose(explicit @ P.solve(R), R, atol=1e-9)
    ratios = np.linalg.eigvals(np.linalg.solve(explicit, K + np.diag(ridge))).real
    assert ratios.min() > 1.0 - 1e-8
    assert ratios.max() <= P.condition + 1e-8


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_same_optimum_in_fewer_steps(rng, fit_intercept):
    K, Y = problem(rng)
    ridge = rng.uniform(0.005, 0.02, size=len(K))
    gram, lam = Products(K), 0.01
    P = find_preconditioner(gram, ridge)
    assert 0 < P.rank < len(K)
    plain = conjugate_gradients(gram, Y, ridge, lam, 1e-9, 1000, fit_intercept=fit_intercept)
    fast = conjugate_gradients(
        gram, Y, ridge, lam, 1e-9, 1000, fit_intercept=fit_intercept, preconditioner=P
    )
    assert fast[3] < 0.5 * plain[3]
    for coef, intercept, values, _ in (plain, fast):
        # K c + diag(ridge) c + b = y, and 1'c = 0 if b is free
        np.testing.assert_allclose(values, K @ coef, atol=1e-8)
        np.testing.assert_allclose(values + ridge[:, None] * coef + intercept, Y, atol=1e-5)
        if fit_intercept:
            np.testing.assert_allclose(coef.sum(axis=0), 0.0, atol=1e-6)
        else:
            assert np.all(intercept == 0)


def test_ridge_uses_it_where_the_matrix_does_not_fit(rng):
    K, Y = problem(rng, t=1)
    target = Target(Y, "regression")
    gram = Products(K)
    found = Ridge(0.01, tol=1e-8).fit(gram, target)
    assert found.gap <= 1e-8
    assert gram.read < 25 * len(K)
    exact = np.linalg.solve(
        np.block(
            [[K + 0.01 * np.eye(300), np.ones((300, 1))], [np.ones((1, 300)), np.zeros((1, 1))]]
        ),
        np.append(Y[:, 0], 0.0),
    )
    error = K @ (found.coef[:, 0] - exact[:-1])
    assert np.sqrt(np.mean(error**2)) <= 1e-7 * Y.std()


def test_no_preconditioner_where_it_would_not_pay(rng):
    K, _ = problem(rng)
    ridge = np.ones(len(K))
    assert find_preconditioner(Products(K, room=0.0), ridge) is None  # no memory
    assert find_preconditioner(Products(K), 1e6 * ridge) is None  # nearly diagonal
    cheap = Products(K)
    cheap.fast_products = True
    assert find_preconditioner(cheap, ridge) is None
    assert find_preconditioner(Products(K[:9, :9]), ridge[:9]) is None  # few samples
    # Copies and constant kernels have few pivots.
    assert find_preconditioner(Products(np.ones((50, 50))), ridge[:50] * 1e-3).rank == 1


class RoughProducts(Products):
    """An operator whose rough products have errors of a given size."""

    rough_products = True

    def __init__(self, K, error):
        super().__init__(K)
        self.error, self.rng, self.exact = error, np.random.default_rng(0), 0

    def matvec(self, V):
        self.exact += 1
        return self.K @ V

    def rough_matvec(self, V):
        found = self.K @ V
        return found + self.error * np.abs(found).max() * self.rng.normal(size=np.shape(V))


@pytest.mark.parametrize("error", [1e-7, 1e-4, 10.0])
def test_rough_products_are_checked(rng, error):
    K, Y = problem(rng, t=1)
    gram, ridge = RoughProducts(K, error), np.full(len(K), 0.01)
    coef, _, values, steps = conjugate_gradients(
        gram, Y, ridge, 0.01, 1e-6, 1000, preconditioner=find_preconditioner(gram, ridge)
    )
    np.testing.assert_allclose(values, K @ coef, rtol=0, atol=1e-10)  # not the rough ones
    exact, _, _, _ = conjugate_gradients(Products(K), Y, ridge, 0.01, 1e-10, 1000)
    assert np.sqrt(np.mean((K @ (coef - exact)) ** 2)) <= 2e-6 * Y.std()
    if error < 1e-6:
        assert gram.exact <= 2 < steps  # the steps themselves were rough
    elif error > 1.0:
        assert gram.exact > 2  # useless products are given up
