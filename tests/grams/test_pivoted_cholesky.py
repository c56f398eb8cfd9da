"""Randomly pivoted Cholesky: what is left is semidefinite, known exactly, and nearly smallest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikernel.grams.pivoted_cholesky import pivoted_cholesky


def gaussian(X, gamma=0.3):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def run(K, rank, **options):
    return pivoted_cholesky(lambda index: K[:, index], np.diag(K), rank, **options)


@pytest.mark.parametrize("block", [1, 8, 64])
def test_what_is_left(rng, block):
    K = gaussian(rng.normal(size=(150, 3)))
    found = run(K, 40, block=block)
    rest = K - found.F @ found.F.T
    assert found.rank == 40 == len(set(found.pivots))
    np.testing.assert_allclose(np.diag(rest), found.left, atol=1e-12)
    assert np.linalg.eigvalsh(rest)[0] > -1e-12
    assert np.linalg.eigvalsh(rest)[-1] <= found.error + 1e-12
    # The columns that were read are reproduced.
    np.testing.assert_allclose(rest[:, found.pivots], 0.0, atol=1e-12)
    # Its expected trace is within a small factor of the best one of somewhat smaller rank.
    assert found.error <= 2.0 * np.linalg.eigvalsh(K)[::-1][25:].sum()


def test_only_columns_of_accepted_pivots_are_read_with_a_submatrix(rng):
    K = gaussian(rng.normal(size=(120, 2)))
    read = []

    def columns(index):
        read.extend(index)
        return K[:, index]

    found = pivoted_cholesky(
        columns, np.diag(K), 30, block=20, submatrix=lambda index: K[np.ix_(index, index)]
    )
    assert read == list(found.pivots)
    same = run(K, 30, block=20)
    assert np.array_equal(same.pivots, found.pivots)
    np.testing.assert_allclose(same.F, found.F, atol=1e-12)


def test_blocks_have_the_distribution_of_single_pivots():
    """Frequencies of the sets of two pivots, against their exact probabilities."""
    A = np.random.default_rng(3).normal(size=(4, 4))
    K = A @ A.T
    exact = np.zeros((4, 4))
    for i in range(4):
        rest = np.diag(K - np.outer(K[i], K[i]) / K[i, i])
        exact[i] = np.diag(K)[i] / np.trace(K) * np.maximum(rest, 0) / rest.sum()
    counts = np.zeros((4, 4))
    draws = 1500
    rng = np.random.default_rng(0)
    for _ in range(draws):
        i, j = run(K, 2, block=3, seed=rng).pivots
        counts[i, j] += 1
    error = np.sqrt(exact * (1 - exact) / draws)
    assert np.all(np.abs(counts / draws - exact) <= 4.5 * error + 1e-12)


def test_low_rank_ends_early(rng):
    X = np.repeat(rng.normal(size=(7, 2)), 10, axis=0)
    found = run(gaussian(X), 50)
    assert found.rank == 7
    assert found.error < 1e-10
    zero = run(np.zeros((5, 5)), 3)
    assert zero.F.shape == (5, 0) and zero.error == 0


def test_tolerance(rng):
    K = gaussian(rng.normal(size=(100, 2)))
    found = run(K, 100, tol=1e-2, block=4)
    assert found.error <= 1e-2 * np.trace(K)
    assert found.rank < 100


@given(
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    rank=st.integers(1, 40),
    block=st.integers(1, 12),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_any_semidefinite_matrix(n, d, rank, block, scale, seed):
    F = scale * np.random.default_rng(seed).normal(size=(n, d))
    K = F @ F.T
    found = run(K, rank, block=block, seed=seed)
    assert found.rank <= min(rank, n, d)
    rest = K - found.F @ found.F.T
    assert np.linalg.eigvalsh(rest)[0] >= -1e-9 * np.trace(K)
    if rank >= d and n >= d:
        assert np.abs(rest).max() <= 1e-7 * np.trace(K)
