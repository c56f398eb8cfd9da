"""STATIS: the combination that is best aligned with all kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.weighting.statis import leading_direction


def views(n=40, p=4, noise=1, seed=0):
    """Kernel matrices of p views of the same samples, and of some that are noise."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 3))
    matrices = []
    for k in range(p + noise):
        F = shared @ rng.normal(size=(3, 6)) + 0.5 * rng.normal(size=(n, 6))
        F = rng.normal(size=(n, 6)) if k >= p else F
        matrices.append((1.0 + k) * F @ F.T)
    return matrices


def fit(matrices, weighting="statis", **options):
    bank = mk.precomputed(matrices)
    return mk.ConsensusKernel(bank, weighting, **options).fit(mk.sample_ids(len(matrices[0])))


def combined(model, matrices):
    """The learned kernel of kernels with unit norm, from raw matrices."""
    assert model.normalize == "frobenius"
    centred = [mk.center(K) / np.linalg.norm(mk.center(K)) for K in matrices]
    return sum(w * K for w, K in zip(model.kernel_weights_, centred, strict=True))


def test_weights_are_the_first_eigenvector():
    matrices = views()
    model = fit(matrices, normalize="frobenius")
    A = np.array([[mk.centered_alignment(K, L) for L in matrices] for K in matrices])
    assert_allclose(model.alignments_, A, atol=1e-12)
    values, vectors = np.linalg.eigh(A)
    v = np.abs(vectors[:, -1])
    assert_allclose(model.kernel_weights_, v / v.sum(), atol=1e-12)
    assert_allclose(model.history_[0]["sum_of_squared_alignments"], values[-1])
    assert model.optimality_ < 1e-14
    assert np.argmin(model.kernel_weights_) == 4  # the noise


def test_no_combination_has_a_larger_sum_of_squared_alignments():
    matrices = views(p=3)
    K = combined(fit(matrices, normalize="frobenius"), matrices)
    best = sum(mk.centered_alignment(K, L) ** 2 for L in matrices)
    rng = np.random.default_rng(1)
    unit = [mk.center(L) / np.linalg.norm(mk.center(L)) for L in matrices]
    for _ in range(300):
        other = sum(c * L for c, L in zip(rng.exponential(size=4), unit, strict=True))
        assert sum(mk.alignment(other, L) ** 2 for L in unit) <= best + 1e-12


def test_weights_are_alignments_with_the_consensus_whatever_the_size_of_kernels():
    matrices = views()
    consensus = combined(fit(matrices, normalize="frobenius"), matrices)
    aligned = np.array([mk.centered_alignment(consensus, K) for K in matrices])
    scaled = [10.0**k * K for k, K in enumerate(matrices)]
    for how in ("multiplicative", "trace", "frobenius", None):
        model = fit(scaled, normalize=how)
        assert_allclose(model.kernel_weights_, aligned / aligned.sum(), rtol=1e-9)


def test_copies_share_and_a_constant_kernel_gets_nothing():
    K, L = views(p=2, noise=0)
    with pytest.warns(UserWarning, match="1 of 4 kernels are constant"):
        model = fit([K, K, L, np.ones_like(K)])
    w = model.kernel_weights_
    assert_allclose(w[0], w[1], rtol=1e-12)
    assert w[3] == 0 and np.all(model.alignments_[3] == 0)
    assert_allclose(w.sum(), 1.0)


def test_kernels_with_nothing_in_common_get_equal_weights():
    Q = np.linalg.qr(np.column_stack([np.ones(6), np.random.default_rng(0).normal(size=(6, 3))]))[0]
    matrices = [np.outer(q, q) for q in Q.T[1:4]]
    assert_allclose(fit(matrices).kernel_weights_, 1 / 3, atol=1e-9)


def test_one_kernel():
    assert_allclose(fit(views(p=1, noise=0)).kernel_weights_, [1.0])


@pytest.mark.parametrize("seed", range(20))
def test_direction_with_entries_of_both_signs_against_all_directions(seed):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(3, 3))
    G = G + G.T
    v, optimality = leading_direction(G)
    assert np.all(v >= 0) and optimality < 1e-6
    assert_allclose(np.linalg.norm(v), 1.0)
    s, t = np.meshgrid(np.linspace(0, np.pi / 2, 200), np.linspace(0, np.pi / 2, 200))
    grid = np.stack([np.cos(s) * np.cos(t), np.cos(s) * np.sin(t), np.sin(s)]).reshape(3, -1)
    assert v @ G @ v >= np.einsum("ij,ik,kj->j", grid, G, grid).max() - 1e-12


def test_it_serves_supervised_and_one_class_estimators():
    X = np.random.default_rng(0).normal(size=(40, 3))
    bank = mk.gaussians([0.1, 1.0])
    expected = mk.ConsensusKernel(bank).fit(X).kernel_weights_
    for model in (mk.MultiKernelRegressor(bank, "statis"), mk.MultiKernelOneClass(bank, "statis")):
        model.set_params(center=True).fit(X, X[:, 0])
        assert_allclose(model.kernel_weights_, expected)


def test_sample_weights_are_repetitions():
    X = np.random.default_rng(0).normal(size=(30, 3))
    counts = np.random.default_rng(1).integers(1, 4, size=30)
    bank = mk.gaussians([0.1, 1.0, 3.0])
    model = mk.MultiKernelRegressor(bank, "statis")
    weighted = model.fit(X, X[:, 0], sample_weight=counts).kernel_weights_
    repeated = model.fit(np.repeat(X, counts, axis=0), np.repeat(X[:, 0], counts)).kernel_weights_
    assert_allclose(weighted, repeated, rtol=1e-9)
