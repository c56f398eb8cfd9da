"""Features of kernels: landmarks, frequencies, sketches, exact ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.lowrank.features import make_features
from multikernel.grams.lowrank.frequencies import draw, orthogonal_normal, positive_stable
from multikernel.grams.planning import plan

PSD = [
    mk.Gaussian(0.2),
    mk.Laplacian(0.2),
    mk.Matern(2.5, 2.0),
    mk.Exponential(3.0, 1.3),
    mk.RationalQuadratic(2.0),
    mk.Polynomial(2, gamma=0.3),
    mk.Linear(),
    mk.Linear(columns=1),
    mk.Gaussian(0.1, columns=[0, 2]) * mk.Linear(),
    mk.Periodic(3.0, columns=[1]),
]


def approximated(features, X):
    """K_hat_k of every kernel, the slow way."""
    Phi, starts = features(X), features.starts
    return [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(starts)]


def test_landmarks_never_exceed_the_kernel(rng):
    X = rng.standard_normal((80, 3))
    bank = mk.KernelBank(PSD)
    features = make_features(plan(bank, X), X, mk.Nystroem(rank=25))
    Phi, diagonals = features.with_errors(X)
    assert features.error_is_trace and Phi.shape == (80, features.n_features)
    for k, (kernel, K_hat) in enumerate(zip(PSD, approximated(features, X), strict=True)):
        K = kernel(X, X)
        assert np.allclose(diagonals[k], np.diag(K)), kernel
        assert np.linalg.eigvalsh(K - K_hat).min() > -1e-8 * np.trace(K), kernel
        assert features.widths[k] <= 25


def test_all_samples_as_landmarks_are_exact(rng):
    X = rng.standard_normal((40, 3))
    features = make_features(plan(mk.KernelBank(PSD), X), X, mk.Nystroem(rank=40))
    for kernel, K_hat in zip(PSD, approximated(features, X), strict=True):
        assert np.allclose(kernel(X, X), K_hat, atol=1e-8), kernel


def test_kernels_on_the_same_columns_share_landmarks(rng):
    X = rng.standard_normal((80, 3))
    bank = mk.KernelBank([mk.Gaussian(1.0), mk.Laplacian(1.0), mk.Gaussian(1.0, columns=[0, 1])])
    features = make_features(plan(bank, X), X, mk.Nystroem(rank=20))
    assert [list(where) for where in features.positions] == [[0, 1], [2]]


@pytest.mark.parametrize("kernel", PSD[:5], ids=repr)
def test_mean_of_random_features_is_the_kernel(kernel, rng):
    Z = rng.standard_normal((6, 4))
    W = draw(kernel, orthogonal_normal(4, 40_000, rng), rng)
    differences = Z[:, None] - Z[None]
    values = np.cos(differences @ W)
    error = np.abs(values.mean(axis=2) - kernel(Z, Z))
    assert error.max() < 5 * 0.5 / np.sqrt(40_000) * 2


def test_positive_stable_numbers_have_their_laplace_transform(rng):
    for a in (0.3, 0.5, 0.65, 0.9):
        g = positive_stable(a, 40_000, rng)
        for t in (0.3, 1.0, 3.0):
            assert np.mean(np.exp(-g * t)) == pytest.approx(np.exp(-(t**a)), abs=0.02)


def test_orthogonal_blocks(rng):
    W = orthogonal_normal(5, 12, rng)
    inner = W[:, :5].T @ W[:, :5]
    assert np.allclose(inner, np.diag(np.diag(inner))) and W.shape == (5, 12)


def test_sketches_are_unbiased():
    Z = np.random.default_rng(0).standard_normal((4, 3))
    kernel = mk.Polynomial(2, gamma=0.5)
    bank = mk.KernelBank([kernel])
    total = np.zeros((4, 4))
    for seed in range(300):
        way = mk.RandomFeatures(64, random_state=seed)
        total += approximated(make_features(plan(bank, Z), Z, way), Z)[0]
    assert np.allclose(total / 300, kernel(Z, Z), atol=0.05 * kernel(Z, Z).max())


def test_same_features_for_a_row_in_any_chunk(rng):
    X = rng.standard_normal((50, 3))
    for way in (mk.Nystroem(rank=20), mk.RandomFeatures(50)):
        bank = mk.KernelBank(PSD[:7])
        features = make_features(plan(bank, X), X, way)
        assert np.allclose(features(X)[7:9], features(X[7:9]), rtol=0, atol=1e-12)


def test_ngram_counts_stay_exact(rng):
    texts = ["".join(rng.choice(list("acgt"), 20)) for _ in range(30)]
    bank = mk.per_ngram(2, top=10, unit="letter")
    features = make_features(plan(bank, texts), plan_table(texts), mk.Nystroem())
    assert features.n_features == 10
    Phi, diagonals = features.with_errors(plan_table(texts))
    assert np.array_equal(diagonals, Phi.T**2)


def plan_table(texts):
    from multikernel.kernels.sequences.table import Table

    return Table.of(texts)


def test_sequences_by_landmarks(rng):
    texts = ["".join(rng.choice(list("acgt"), 20)) for _ in range(30)]
    table = plan_table(texts)
    kernel = mk.Spectrum(2)
    features = make_features(plan(mk.KernelBank([kernel]), table), table, mk.Nystroem(rank=30))
    assert np.allclose(approximated(features, table)[0], kernel(table, table), atol=1e-8)


@pytest.mark.parametrize(
    ("kernels", "way", "message"),
    [
        ([mk.Sigmoid(0.1)], mk.Nystroem(rank=5), "not known to be positive semidefinite"),
        ([mk.Periodic(1.0)], mk.RandomFeatures(), "Periodic.* has no random features"),
        ([mk.Gaussian(1.0)], mk.Nystroem(rank=51), r"rank=51.*more landmarks.*samples \(50\)"),
        ([mk.Gaussian(1.0)], mk.Nystroem(rank=0), "rank must be a whole number of at least 1"),
        ([mk.Gaussian(1.0)], mk.RandomFeatures(2.5), "n_features must be a whole number"),
        ([mk.Gaussian(1.0)], mk.Nystroem(random_state=None), "random_state must be a whole number"),
    ],
)
def test_bad_input_is_named(kernels, way, message, rng):
    X = rng.standard_normal((50, 2))
    with pytest.raises(ValueError, match=message):
        make_features(plan(mk.KernelBank(kernels), X), X, way)


def test_given_matrices_have_no_features(rng):
    A = rng.standard_normal((20, 3))
    bank = mk.precomputed([A @ A.T])
    X = mk.sample_ids(20)
    with pytest.raises(ValueError, match="is a precomputed matrix"):
        make_features(plan(bank, X), X, mk.Nystroem(rank=5))


def test_a_kernel_that_is_zero_has_a_feature_that_is_zero(rng):
    X = rng.standard_normal((40, 3)) * [1.0, 0.0, 1.0]
    zero = mk.Polynomial(2, coef0=0.0, columns=[1])
    features = make_features(plan(mk.KernelBank([zero, PSD[0]]), X), X, mk.Nystroem(rank=40))
    of_zero, K_hat = approximated(features, X)
    assert features.widths[0] == 1 and not of_zero.any()
    assert np.allclose(PSD[0](X, X), K_hat, atol=1e-8)
