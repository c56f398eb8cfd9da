"""The reported gap bounds the true one, recomputed by hand from exact kernels and the model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk


def gap_by_hand(kernels, y, theta, alpha, intercept, C, p):
    """The relative gap of lp-norm learning with the hinge loss, in extended precision.

    ``kernels`` are as used: centred and normalised.
    """
    K = np.asarray(kernels, dtype=np.longdouble)
    s, theta = alpha.astype(np.longdouble), theta.astype(np.longdouble)
    products = np.stack([k @ s for k in K])
    a = np.maximum(products @ s, 0)
    f = theta @ products + intercept
    norms = theta * np.sqrt(a)
    norm = norms.max() if p == np.inf else np.sum(norms**p) ** (1 / np.longdouble(p))
    primal = norm**2 / 2 + C * np.maximum(1 - y * f, 0).sum()
    q = 1.0 if p == np.inf else p / (p - 1)
    dual = np.sum(y * s) - np.sum(a ** (q / 2)) ** (2 / np.longdouble(q)) / 2
    return float((primal - dual) / primal)


def centred_to_unit_variance(K):
    """Centred kernels of unit variance, in extended precision."""
    K = np.asarray(K, dtype=np.longdouble)
    K = K - K.mean(1, keepdims=True) - K.mean(2, keepdims=True) + K.mean((1, 2), keepdims=True)
    return K * K.shape[1] / np.trace(K, axis1=1, axis2=2)[:, None, None]


def returned(model, n):
    s = np.zeros(n)
    s[model.support_] = model.dual_coef_[:, 0]
    return model.kernel_weights_, s, float(np.ravel(model.intercept_)[0])


@pytest.mark.parametrize("p", [4 / 3, 4.0, np.inf])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_gap_in_single_precision_is_a_bound(p, C, seed):
    rng = np.random.default_rng(seed)
    n, gammas = 250, np.geomspace(0.01, 10, 8)
    X = rng.standard_normal((n, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    model = mk.MultiKernelClassifier(
        mk.gaussians(gammas), weighting=mk.LpNorm(p), C=C, dtype="float32"
    )
    model.fit(X, y)
    D = ((X[:, None] - X) ** 2).sum(-1)
    K = centred_to_unit_variance(np.exp(-gammas[:, None, None] * D))
    true = gap_by_hand(K, y, *returned(model, n), C, p)
    assert true <= 1.02 * model.duality_gap_ + 1e-6
    assert model.duality_gap_ <= model.weighting.tol
    # What the model answers for the training sample is what was certified.
    theta, s, b = returned(model, n)
    exact = np.asarray(np.einsum("k,kij,j->i", theta, K, s) + b, dtype=np.float64)
    np.testing.assert_allclose(model.decision_function(X), exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("p", [2.0, 4.0, 8.0, np.inf])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_gap_of_rank_one_kernels_with_large_weights_is_a_bound(p, form):
    rng = np.random.default_rng(3)
    n, columns, C = 120, 30, 10.0
    X = rng.standard_normal((n, columns)) * (rng.random((n, columns)) < 0.5)
    y = np.where(X[:, :3].sum(1) + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    given = sp.csr_matrix(X) if form == "csr" else X
    model = mk.MultiKernelClassifier(mk.per_feature(), weighting=mk.LpNorm(p, tol=1e-6), C=C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given, y)
    U = X.T.astype(np.longdouble)  # products of features in double precision are not enough
    K = centred_to_unit_variance(U[:, :, None] * U[:, None, :])
    theta, coef, intercept = returned(model, n)
    true = gap_by_hand(K, y, theta, coef, intercept, C, p)
    # Weights reach 1e8, and products with K as little as 1e-8: the unit of rounding of a decision
    # value, times its cost, relative to the objective.
    unit = np.finfo(float).eps * theta.max() * np.abs(coef).max()
    assert true <= model.duality_gap_ + 1e-12 + C * unit / model.objective_
