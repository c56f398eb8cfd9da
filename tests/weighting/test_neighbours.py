"""Rules that keep neighbourhoods, against their definitions written out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.weighting.neighbours import least_on_simplex, neighbour_counts
from tests.weighting.test_statis import fit, views


def naive_counts(matrices, k):
    """``W_ij``: the kernels in which i is among the k nearest of j, or j among those of i."""
    n = len(matrices[0])
    W = np.zeros((n, n))
    for K in matrices:
        near = np.zeros((n, n), dtype=bool)
        for i in range(n):
            distances = [K[i, i] - 2 * K[i, j] + K[j, j] for j in range(n)]
            others = sorted((j for j in range(n) if j != i), key=lambda j: distances[j])
            near[i, others[:k]] = True
        W += near | near.T
    return W


def naive_matrices(matrices, k):
    """S of ``sum_ij W_ij ||D_i - D_j||^2`` and G of ``sum_ij (W_ij - w) <D_i, D_j>``."""
    W = naive_counts(matrices, k)
    n, p = len(W), len(matrices)
    unit = [mk.center(K) / np.linalg.norm(mk.center(K)) for K in matrices]
    mean = W.sum() / (n * (n - 1))
    S, G = np.zeros((p, p)), np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            for i in range(n):
                for j in range(n):
                    if i != j:
                        D, E = unit[a], unit[b]
                        S[a, b] += W[i, j] * (D[i] - D[j]) @ (E[i] - E[j])
                        G[a, b] += (W[i, j] - mean) * D[i] @ E[j]
    return S, G


def best_by_supports(S):
    """The minimum of ``v'Sv`` on the simplex: the best of the solutions for every support."""
    best, where = np.inf, None
    p = len(S)
    for size in range(1, p + 1):
        for support in combinations(range(p), size):
            part = S[np.ix_(support, support)]
            v = np.linalg.lstsq(part, np.ones(size), rcond=None)[0]
            v = v / v.sum()
            if np.all(v >= -1e-12) and v @ part @ v < best:
                best, where = v @ part @ v, np.zeros(p)
                where[list(support)] = v
    return where, best


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [True, False])
def test_equal_distances_are_equal_whatever_rounding_does(dtype, center):
    """Columns of few different values, none of them exact in binary; the first samples count."""
    levels = np.random.default_rng(0).integers(0, 5, (60, 3))
    X = 0.1 * levels + 0.3
    plan = mk.per_feature(mk.Linear()).plan(X)
    grams = plan.grams(X, budget=MemoryBudget.of(None), dtype=dtype)
    found = neighbour_counts(grams.corrected(center, "multiplicative"), np.arange(3), 4)
    # Differences of whole numbers are exact, and sorting is stable.
    exact = [x[:, None] * x[None] for x in levels.T.astype(float)]
    assert np.array_equal(found.toarray(), naive_counts(exact, 4))


@pytest.mark.parametrize("k", [1, 5])
def test_full_is_the_first_eigenvector_of_the_agreement_of_neighbours(k):
    matrices = views(n=25)
    model = fit(matrices, mk.FullNeighbours(k), normalize="frobenius")
    _, G = naive_matrices(matrices, k)
    v = np.abs(np.linalg.eigh(G)[1][:, -1])
    assert_allclose(model.kernel_weights_, v / v.sum(), atol=1e-10)
    assert model.optimality_ < 1e-13
    assert np.all(model.kernel_weights_ > 0)
    assert np.argmin(model.kernel_weights_) == 4  # the noise


@pytest.mark.parametrize("k", [1, 5])
def test_sparse_minimises_the_differences_between_neighbours(k):
    matrices = views(n=25)
    model = fit(matrices, mk.SparseNeighbours(k), normalize="frobenius")
    S, _ = naive_matrices(matrices, k)
    expected, best = best_by_supports(S)
    v = model.kernel_weights_
    assert_allclose(v @ S @ v, best, rtol=1e-8)
    assert_allclose(v, expected, atol=1e-6)
    # The conditions of Karush, Kuhn and Tucker.
    slope = S @ v
    assert np.all(slope >= best * (1 - 1e-7))
    assert_allclose(slope[v > 0], best, rtol=1e-7)
    assert model.optimality_ < 1e-7


@pytest.mark.parametrize("seed", range(10))
def test_quadratic_program_on_the_simplex_against_scipy(seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(4, 6)) + 0.5
    S = F.T @ F  # singular
    v, gap = least_on_simplex(S)
    assert np.all(v >= 0) and gap < 1e-7
    assert_allclose(v.sum(), 1.0)
    found = minimize(
        lambda u: u @ S @ u,
        np.full(6, 1 / 6),
        jac=lambda u: 2 * S @ u,
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1, "jac": lambda u: np.ones(6)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert v @ S @ v <= found.fun + 1e-8 * np.trace(S)


def test_a_kernel_without_differences_between_neighbours_takes_all():
    labels = np.repeat([0, 1], 10)
    blocks = (labels[:, None] == labels).astype(float)
    noise = np.random.default_rng(0).normal(size=(20, 20))
    # Every kernel has the same neighbourhoods, those inside a block.
    model = fit([blocks, blocks * 100 + noise @ noise.T], mk.SparseNeighbours(3), n_components=1)
    assert_allclose(model.kernel_weights_, [1.0, 0.0], atol=1e-6)


def test_minimum_on_the_sphere_is_a_single_kernel():
    """Why "full" does not minimise the differences: the claim of its docstring."""
    S, _ = naive_matrices(views(n=20), 3)
    assert np.all(S >= 0)
    directions = np.abs(np.random.default_rng(0).normal(size=(5, 5000)))
    directions /= np.linalg.norm(directions, axis=0)
    values = np.einsum("ij,ik,kj->j", directions, S, directions)
    assert values.min() >= S.diagonal().min()


def test_all_samples_as_neighbours_say_nothing():
    model = fit(views(n=12), mk.FullNeighbours(50), normalize="frobenius")
    assert_allclose(model.kernel_weights_, 0.2)


@pytest.mark.parametrize("rule", [mk.FullNeighbours, mk.SparseNeighbours])
def test_weights_do_not_depend_on_the_size_of_kernels_as_given(rule):
    matrices = views(n=25)
    scaled = [10.0**k * K for k, K in enumerate(matrices)]
    first = fit(matrices, rule()).kernel_weights_
    assert_allclose(fit(scaled, rule()).kernel_weights_, first, rtol=1e-7, atol=1e-12)


def test_sparse_finds_the_same_kernel_with_every_normalisation():
    matrices = views(n=25)
    found = []
    for how, size in (("frobenius", np.linalg.norm), ("trace", np.trace)):
        model = fit(matrices, "sparse-neighbours", normalize=how)
        centred = [mk.center(K) / size(mk.center(K)) for K in matrices]
        K = sum(w * C for w, C in zip(model.kernel_weights_, centred, strict=True))
        found.append(K / np.linalg.norm(K))
    assert_allclose(found[0], found[1], atol=1e-7)


@pytest.mark.parametrize("rule", [mk.FullNeighbours, mk.SparseNeighbours])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3"])
def test_bad_n_neighbors(rule, value):
    with pytest.raises(ValueError, match=r"n_neighbors must be a (positive )?whole number"):
        fit(views(n=12), rule(value))


def test_sample_weights_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), "full-neighbours").fit(X, X[:, 0])
    assert_allclose(model.kernel_weights_.sum(), 1.0)
    with pytest.raises(ValueError, match="does not support sample_weight"):
        model.fit(X, X[:, 0], sample_weight=np.arange(1.0, 21.0))
