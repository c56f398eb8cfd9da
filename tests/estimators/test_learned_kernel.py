"""LearnedKernel: the kernel of a model for the kernel methods of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC, OneClassSVM

import multikernel as mk

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
A, B = X[:150], X[150:220]
BANK = mk.gaussians([0.003, 0.03, 0.3])
SINGLE = [mk.Linear(columns=[j]) for j in range(6)]


def naive(model, P, Q, train, omega=None):
    """``sum_k mu_k K_k(p, q)``, centred and brought to unit variance on the training sample."""
    omega = np.ones(len(train)) if omega is None else omega
    omega = omega / omega.sum()
    total = 0.0
    for gamma, weight in zip((0.003, 0.03, 0.3), model.kernel_weights_, strict=True):
        K = lambda a, b, g=gamma: rbf_kernel(a, b, gamma=g)  # noqa: E731
        means = {id(p): K(p, train) @ omega for p in (P, Q, train)}
        grand = omega @ K(train, train) @ omega
        variance = 1.0 - grand
        centred = K(P, Q) - means[id(P)][:, None] - means[id(Q)] + grand
        total = total + weight * centred / variance
    return total


def test_values_against_the_definition():
    model = mk.MultiKernelClassifier(BANK).fit(A, y[:150])
    kernel = mk.LearnedKernel(model, A)
    for P, Q in ((A, A), (B, A), (A, B), (B[:30], B[30:])):
        assert_allclose(kernel(P, Q), naive(model, P, Q, A), atol=1e-10)
    assert_allclose(kernel(B), naive(model, B, B, A), atol=1e-10)
    assert_allclose(kernel.diag(B), np.diag(naive(model, B, B, A)), atol=1e-10)
    assert_allclose(kernel.diag(A), np.diag(kernel(A)), atol=1e-12)


def test_sample_weights():
    omega = np.random.default_rng(0).integers(0, 3, size=150).astype(float)
    model = mk.MultiKernelClassifier(BANK).fit(A, y[:150], sample_weight=omega)
    kernel = mk.LearnedKernel(model, A, sample_weight=omega)
    assert_allclose(kernel(B, A), naive(model, B, A, A, omega), atol=1e-10)
    with pytest.raises(ValueError, match="samples of positive weight; got 150"):
        mk.LearnedKernel(model, A)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 0.1, "fit_intercept": True, "normalize": "trace-first"},
        {"center": False, "normalize": "spherical"},
        {"weighting": mk.LpNorm(p=1.2)},
        {"weighting": "uniform", "normalize": None, "center": False},
    ],
)
def test_svc_with_the_kernel_is_the_same_machine(options):
    model = mk.MultiKernelClassifier(BANK, tol=1e-8, **options).fit(A, y[:150])
    kernel = mk.LearnedKernel(model, A)
    machine = SVC(kernel=kernel, C=model.C, tol=1e-10).fit(A, y[:150])
    expected = model.decision_function(B)
    assert_allclose(machine.decision_function(B), expected, atol=1e-5 * np.abs(expected).max())


def test_one_class_machine_without_intercept_needs_the_means():
    model = mk.MultiKernelOneClass(BANK, nu=0.2, tol=1e-8).fit(A)
    machine = OneClassSVM(kernel=mk.LearnedKernel(model, A), nu=0.2, tol=1e-10).fit(A)
    ours, theirs = model.score_samples(B), machine.score_samples(B)
    assert_allclose(theirs / theirs[0], ours / ours[0], rtol=1e-4)


def test_clones_keep_the_model():
    model = mk.MultiKernelClassifier(BANK).fit(A, y[:150])
    machine = SVC(kernel=mk.LearnedKernel(model, A))
    assert clone(machine).kernel is machine.kernel
    assert cross_val_score(machine, X[:220], y[:220], cv=3).mean() > 0.9
    again = pickle.loads(pickle.dumps(machine.kernel))
    assert_allclose(again(B, A), machine.kernel(B, A))


def test_gaussian_process_regression():
    target = X[:150, 0] + np.sin(3 * X[:150, 1])
    model = mk.MultiKernelRegressor(BANK, alpha=0.1).fit(A, target)
    kernel = mk.LearnedKernel(model, A)
    assert kernel.n_dims == 0 and kernel.theta.shape == (0,) and not kernel.is_stationary()
    K, gradient = kernel(A, eval_gradient=True)
    assert gradient.shape == (150, 150, 0)
    process = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None)
    mean = target.mean()
    process.fit(A, target - mean)
    # The mean of a Gaussian process is kernel ridge regression.
    expected = kernel(B, A) @ np.linalg.solve(K + 0.1 * np.eye(150), target - mean)
    found, deviation = process.predict(B, return_std=True)
    assert_allclose(found, expected, atol=1e-8)
    assert_allclose(found + mean, model.predict(B), atol=1e-6)
    cross = kernel(B, A)
    variance = kernel.diag(B) - np.einsum(
        "ij,ji->i", cross, np.linalg.solve(K + 0.1 * np.eye(150), cross.T)
    )
    assert_allclose(deviation**2, variance, atol=1e-8)


def test_sizes_of_signal_and_noise_are_learned():
    target = X[:150, 0] + 0.3 * np.random.default_rng(0).normal(size=150)
    model = mk.MultiKernelRegressor(BANK).fit(A, target)
    kernel = ConstantKernel(1.0) * mk.LearnedKernel(model, A) + WhiteKernel(1.0)
    process = GaussianProcessRegressor(kernel, normalize_y=True).fit(A, target)
    assert process.log_marginal_likelihood_value_ > process.log_marginal_likelihood(kernel.theta)
    assert process.score(B, X[150:220, 0]) > 0.8


def test_sparse_input_sequences_and_given_matrices():
    bank = mk.KernelBank([mk.Linear(), mk.Gaussian(0.03)])
    dense = mk.ConsensusKernel(bank).fit(A)
    sparse = mk.ConsensusKernel(bank).fit(sp.csr_matrix(A))
    expected = mk.LearnedKernel(dense, A)(B)
    assert_allclose(
        mk.LearnedKernel(sparse, sp.csr_matrix(A))(sp.csr_matrix(B)), expected, atol=1e-8
    )
    words = np.array(["ACGT", "ACGG", "TTTA", "TTAA", "CCGT", "ACCT"])
    model = mk.ConsensusKernel([mk.Spectrum(2), mk.WeightedDegree(2)]).fit(words[:5])
    kernel = mk.LearnedKernel(model, words[:5])
    assert not kernel.requires_vector_input
    assert_allclose(kernel(words[3:])[0, 2], kernel(words[3:4], words[5:])[0, 0])
    assert_allclose(kernel(words[:5]), kernel(words[:5], words[:5]), atol=1e-12)
    K = [rbf_kernel(X[:220], gamma=g) for g in (0.003, 0.03, 0.3)]
    ids = mk.sample_ids(220)
    given = mk.ConsensusKernel(mk.precomputed(K)).fit(ids[:150])
    found = mk.LearnedKernel(given, ids[:150])(ids[150:], ids[:150])
    assert_allclose(found, naive(given, B, A, A), atol=1e-9)


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "frobenius"])
@pytest.mark.parametrize(
    ("bank", "kernels"),
    [
        (mk.per_feature(mk.Linear()), SINGLE),
        ([mk.Linear(columns=[0, 1, 2]), mk.Linear(columns=[3, 4])], None),
        ([mk.Linear() * mk.Gaussian(0.1), mk.Polynomial(2)], None),
        (mk.per_feature(mk.Linear()) + mk.gaussians([0.1]), [*SINGLE, mk.Gaussian(0.1)]),
    ],
    ids=["rank one", "linear", "dense", "stacked"],
)
def test_every_engine_leaves_samples_without_weight_out_of_the_statistics(bank, kernels, normalize):
    """Values between new samples, against those of matrices."""
    points = X[:60, :6]
    model = mk.ConsensusKernel(bank, "uniform", normalize=normalize, n_components=1).fit(
        points[:40]
    )
    kernel = mk.LearnedKernel(model, points[:40])
    matrices = [one(points) for one in kernels or bank]
    ids = mk.sample_ids(60)
    given = mk.ConsensusKernel(
        mk.precomputed(matrices), "uniform", normalize=normalize, n_components=1
    ).fit(ids[:40])
    oracle = mk.LearnedKernel(given, ids[:40])
    assert_allclose(kernel(points[40:], points[50:]), oracle(ids[40:], ids[50:]), atol=1e-9)
    assert_allclose(kernel(points[40:]), oracle(ids[40:]), atol=1e-9)


def test_wide_kernels_keep_their_accuracy():
    """Values that centring nearly cancels are computed as the model computes them."""
    model = mk.ConsensusKernel([mk.Gaussian(1e-9)]).fit(A)
    kernel = mk.LearnedKernel(model, A)
    linear = mk.LearnedKernel(mk.ConsensusKernel([mk.Linear()]).fit(A), A)
    assert_allclose(kernel(B[:20], B[20:]), linear(B[:20], B[20:]), atol=1e-4)


def test_bad_input():
    with pytest.raises(NotFittedError):
        mk.LearnedKernel(mk.ConsensusKernel(BANK), A)
    with pytest.raises(TypeError, match="learns one combination of kernels"):
        mk.LearnedKernel(SVC(), A)
    with pytest.raises(TypeError, match="learns one combination of kernels"):
        mk.LearnedKernel(mk.VotedKernelClassifier(BANK).fit(A, y[:150]), A)
    model = mk.ConsensusKernel(BANK).fit(A)
    with pytest.raises(ValueError, match="150 samples of positive weight; got 70"):
        mk.LearnedKernel(model, B)
    with pytest.raises(ValueError, match="gradient can be evaluated only if Y is None"):
        mk.LearnedKernel(model, A)(A, B, eval_gradient=True)
    array = np.stack([A @ A.T], axis=-1)
    with pytest.raises(ValueError, match="kernels='precomputed' cannot"):
        mk.LearnedKernel(mk.ConsensusKernel("precomputed").fit(array), array)
    with pytest.raises(ValueError, match="features"):
        mk.LearnedKernel(model, A)(A[:, :3])
