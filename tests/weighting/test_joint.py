"""Joint problems other than the plain lp norm: golden values, collapses, certificates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import multikernel as mk
from multikernel.weighting.lp_norm import SOLVERS
from tests.naive_alignment import given_grams, outputs
from tests.weighting.test_blocknorm import golden

RAW = {"center": False, "normalize": None}
NO_BIAS = {**RAW, "fit_intercept": False}
INF = float("inf")
TIGHT = {"tol": 1e-9, "max_iter": 5000}


def fixture_f1() -> tuple[list[np.ndarray], np.ndarray]:
    """Five points, three kernels: linear, Gaussian, quadratic."""
    x = np.array([-1.5, -0.5, 0.0, 0.5, 2.0])
    kernels = [np.outer(x, x), np.exp(-((x[:, None] - x) ** 2)), (np.outer(x, x) + 1) ** 2]
    return kernels, np.array([-1.0, -1.0, 1.0, 1.0, 1.0])


def ridge(matrices, target, rule, **options):
    model = mk.MultiKernelRegressor(mk.precomputed(matrices), rule, alpha=1.0, **options)
    return model.fit(mk.sample_ids(len(target)), target)


@pytest.mark.parametrize(
    ("p", "optimum"),
    [
        (1, 2.935882978),
        (8 / 7, 2.742067576),
        (4 / 3, 2.493060860),
        (1.6, 2.215281772),
        (2, 1.938273930),
        (3, 1.576974981),
        (4, 1.401186220),
        (INF, 0.922668590),
    ],
)
def test_squared_loss_without_intercept(p, optimum):
    matrices, _, target = golden()
    model = ridge(matrices, target, mk.LpNorm(p, **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(model.objective_ / 2, optimum, rtol=1e-8)
    assert model.intercept_ == 0.0


def test_non_isotropic_norms():
    matrices, _, target = golden()
    diagonal = np.diag([1.0, 2.0, 0.5, 1.0])
    model = ridge(matrices, target, mk.NonIsotropicNorm(diagonal, **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(model.objective_ / 2, 1.81002627, rtol=1e-8)
    np.testing.assert_allclose(model.kernel_weights_, [1, 2, 0.5, 1])
    E = np.array([[mk.alignment(K, L) for L in matrices] for K in matrices])
    model = ridge(matrices, target, mk.NonIsotropicNorm(E, **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(model.objective_ / 2, 1.13791570, rtol=1e-8)
    assert model.duality_gap_ <= 1e-9
    identity = ridge(matrices, target, mk.NonIsotropicNorm(np.eye(4), **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(identity.objective_ / 2, 1.938273930, rtol=1e-8)


def test_by_default_the_norm_is_made_of_alignments(rng):
    """``E_kl`` is the centred alignment of kernels k and l, whatever their size, or zero."""
    X = rng.standard_normal((30, 3))
    matrices = [5.0 * mk.Gaussian(0.1)(X), mk.Gaussian(1.0)(X), np.outer(X[:, 0], X[:, 0])]
    matrices.append(1.0 - mk.Gaussian(0.1)(X))
    E = mk.NonIsotropicNorm().regulariser(given_grams(matrices, True, None), outputs(X[:, 0])).E
    slow = np.array([[mk.centered_alignment(K, L) for L in matrices] for K in matrices])
    assert slow.min() < -0.9
    np.testing.assert_allclose(E, np.maximum(slow, 0.0), atol=1e-10)


def test_which_solver_is_taken():
    """Cutting planes below p = 2, with very many kernels below 4/3; interior points above."""
    for p, n_kernels, solver in [
        (1.0, 10, "cutting-planes"),
        (1.99, 1250, "cutting-planes"),
        (2.0, 10, "alternation"),
        (2.01, 10, "interior-point"),
        (INF, 5000, "interior-point"),
        (1.3, 1251, "cutting-planes"),
        (4 / 3, 1251, "alternation"),
        (1.99, 1251, "alternation"),
    ]:
        assert mk.LpNorm(p).method(n_kernels) == solver, (p, n_kernels)
    for chosen in SOLVERS[1:]:
        if chosen == "interior-point":
            continue
        assert mk.LpNorm(2.0, solver=chosen).method(10) == chosen
    for p, chosen, message in [
        (2.0, "interior-point", "above 2"),
        (2.01, "cutting-planes", "from 1 to 2"),
        (2.01, "cutting-planes-wrapper", "from 1 to 2"),
        (2.01, "cutting-planes-chunking", "from 1 to 2"),
        (1.0, "lbfgs", "above 1 and below infinity"),
        (1.5, "newton", "solver must be one of"),
        (0.9, "auto", "p must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            mk.LpNorm(p, solver=chosen).method(10)


def test_matrices_that_are_no_norm():
    matrices, _, target = golden()
    for E, message in [
        (np.eye(3), "symmetric 4 x 4"),
        (np.eye(4) + np.triu(np.ones((4, 4)), 1), "symmetric 4 x 4"),
        (np.full((4, 4), np.nan), "symmetric 4 x 4"),
        (np.ones((4, 4)), "positive definite"),
        (np.eye(4) - 0.3, "positive definite"),
    ]:
        with pytest.raises(ValueError, match=message):
            ridge(matrices, target, mk.NonIsotropicNorm(E))


def test_elastic_net():
    matrices, y, _ = golden()
    rule = mk.ElasticNetNorm(4 / 3, 0.5, **TIGHT)
    model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **RAW)
    model.fit(mk.sample_ids(16), y)
    np.testing.assert_allclose(model.objective_, 5.00994585, rtol=1e-8)
    # A vanishing squared norm leaves the lp norm; a large one the plain sum, rescaled.
    almost = mk.MultiKernelClassifier(
        mk.precomputed(matrices), mk.ElasticNetNorm(4 / 3, 1e-7, **TIGHT), **RAW
    ).fit(mk.sample_ids(16), y)
    np.testing.assert_allclose(almost.objective_, 4.12526279, rtol=1e-6)
    for mu, expected in [(10, 3.169), (100, 2.763), (1000, 2.721)]:
        large = mk.MultiKernelClassifier(
            mk.precomputed(matrices), mk.ElasticNetNorm(4 / 3, mu, **TIGHT), C=mu, **RAW
        ).fit(mk.sample_ids(16), y)
        np.testing.assert_allclose(large.objective_ / mu, expected, atol=1e-3)


def test_learning_kernel_ridge_regression_in_a_ball():
    """Fixture F1: weights, coefficients and value with and without a centre."""
    kernels, y = fixture_f1()
    rule = mk.L2Ball(1.0, tol=1e-13, max_iter=5000)
    model = ridge(kernels, y, rule, **NO_BIAS)
    np.testing.assert_allclose(model.objective_, 1.5788481589, rtol=1e-10)
    expected = [0.271495643, 0.718361765, 0.6405048715]
    np.testing.assert_allclose(model.kernel_weights_, expected, atol=1e-6)
    coef = [0.041552208, -0.7326570116, 0.6662410692, 0.2435298559, -0.0220275698]
    np.testing.assert_allclose(model.dual_coef_[:, 0], coef, atol=1e-6)
    model = ridge(kernels, y, mk.L2Ball(1.0, 3**-0.5, tol=1e-13, max_iter=5000), **NO_BIAS)
    np.testing.assert_allclose(model.objective_, 1.2551027242, rtol=1e-10)
    expected = [0.7621623458, 1.4546543529, 1.0202746883]
    np.testing.assert_allclose(model.kernel_weights_, expected, atol=1e-6)


def test_the_ball_collapses(rng):
    kernels, y = fixture_f1()
    one = ridge(kernels[:1], y, mk.L2Ball(0.7, 0.3, **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(one.kernel_weights_, [1.0])
    same = ridge([kernels[1]] * 3, y, mk.L2Ball(2.0, 0.1, **TIGHT), **NO_BIAS)
    np.testing.assert_allclose(same.kernel_weights_, 0.1 + 2.0 / 3**0.5)
    # Around zero, the ball of exponent 2 is the block norm with p = 4/3.
    matrices, y16, target = golden()
    ball = ridge(matrices, target, mk.L2Ball(1.0, **TIGHT), **RAW)
    block = ridge(matrices, target, mk.LpNorm(4 / 3, **TIGHT), **RAW)
    np.testing.assert_allclose(ball.objective_, block.objective_, rtol=1e-8)
    hinge = mk.MultiKernelClassifier(mk.precomputed(matrices), mk.L2Ball(1.0, **TIGHT), **RAW)
    np.testing.assert_allclose(hinge.fit(mk.sample_ids(16), y16).objective_, 4.12526279, rtol=1e-7)


def test_l1_ridge_on_the_fixture():
    kernels, y = fixture_f1()
    model = ridge(kernels, y, mk.L1(**TIGHT), **NO_BIAS)
    np.testing.assert_allclose(model.objective_, 1.7910443829, rtol=1e-8)
    np.testing.assert_allclose(model.kernel_weights_, [0, 0.3521334, 0.6478666], atol=1e-4)


@pytest.mark.parametrize("gammas", [(1, 2.0, 0.5), (1, 1.0, 1.5), (0, 0.5, 0.0), (0, 0.25, 0.25)])
def test_alignment_regularised_in_closed_form(gammas):
    """One kernel along the target: -4/(1+mu)^2 - 4 gamma + 2 (gamma' + gamma'') mu = 0 at 1."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    rule = mk.AlignmentRegularized(*gammas, tol=1e-12)
    model = ridge([np.outer(y, y) / 4], y, rule, **NO_BIAS)
    np.testing.assert_allclose(model.kernel_weights_, [1.0], atol=1e-5)


def test_alignment_regularised_tends_to_alignf():
    matrices, y, _ = golden()
    ids = mk.sample_ids(16)
    bank = mk.precomputed(matrices)
    strong = mk.MultiKernelRegressor(bank, mk.AlignmentRegularized(1e4, 1e-9, 5e3)).fit(ids, y)
    two_stage = mk.MultiKernelRegressor(bank, "alignf").fit(ids, y)
    mu = strong.kernel_weights_ / strong.kernel_weights_.sum()
    np.testing.assert_allclose(mu, two_stage.kernel_weights_, atol=1e-3)


def test_alignment_regularised_is_optimal(rng):
    """Gradient conditions of eq. (9), with the machine's own quadratic forms."""
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(40)
    y -= y.mean()
    matrices = [mk.normalize(mk.center(mk.Gaussian(g)(X)), "trace") * 40 for g in (0.1, 1.0, 5.0)]
    gamma, ridge_term, norm_term = 0.01, 0.3, 0.002
    rule = mk.AlignmentRegularized(gamma, ridge_term, norm_term, tol=1e-12, max_iter=5000)
    model = ridge(matrices, y, rule, **NO_BIAS)
    s = np.zeros(40)
    s[model.support_] = model.dual_coef_[:, 0]
    a = np.array([y @ K @ y for K in matrices])
    M = np.array([[np.vdot(K, L) for L in matrices] for K in matrices])
    mu = model.kernel_weights_
    forms = np.array([s @ K @ s for K in matrices])
    gradient = -forms - gamma * a + 2 * (norm_term * M + ridge_term * np.eye(3)) @ mu
    size = np.abs(forms + gamma * a).max()
    assert np.all(gradient > -1e-5 * size)
    np.testing.assert_allclose(gradient[mu > 0], 0.0, atol=1e-5 * size)


@pytest.mark.parametrize(
    "rule",
    [
        mk.ElasticNetNorm(1.0, 0.5),
        mk.L2Ball(1.0),
        mk.L2Ball(1.0, 0.1, q=1.5),
        mk.HierarchicalNorm([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1.2, 2),
        mk.HierarchicalNorm([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 4, 1.2),
        mk.HierarchicalNorm([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1.2, INF),
        mk.NonIsotropicNorm(np.eye(10) + 0.1),
        mk.NonIsotropicNorm(np.eye(10) - 0.09),
        mk.AlignmentRegularized(0.01, 1.0, 0.0),
        mk.LpNorm(1.0),
        mk.LpNorm(1.3),
        mk.LpNorm(8.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["binary", "classes", "regression"])
def test_every_pair_of_loss_and_regulariser_is_certified(rule, kind):
    from sklearn.datasets import load_diabetes, load_iris

    if kind == "regression":
        X, y = load_diabetes(return_X_y=True)
        X, y = X[:120], (y[:120] - y.mean()) / y.std()
        bank = mk.default_bank(X, kind="gaussians")
        model = mk.MultiKernelRegressor(bank, rule).fit(X, y)
    else:
        X, y = load_iris(return_X_y=True)
        rows = y > 0 if kind == "binary" else y >= 0
        bank = mk.default_bank(X[rows], kind="gaussians")
        model = mk.MultiKernelClassifier(bank, rule).fit(X[rows], y[rows])
    assert 0 <= model.duality_gap_ <= 1e-3
    assert np.all(model.kernel_weights_ >= 0)
    assert np.all(np.isfinite(model.kernel_weights_))


def test_wrong_parameters_are_named():
    matrices, _, target = golden()
    for rule, message in [
        (mk.L2Ball(0.0), "radius must be a positive number"),
        (mk.L2Ball(1.0, q=1.0), "q must be greater than 1"),
        (mk.L2Ball(1.0, [1.0, 2.0]), "one per kernel"),
        (mk.L2Ball(1.0, -1.0), "not negative"),
        (mk.ElasticNetNorm(2.0), "at least 1 and below 2"),
        (mk.ElasticNetNorm(1.0, 0.0), "mu must be a positive number"),
        (mk.AlignmentRegularized(gamma_ridge=0.0), "gamma_ridge must be a positive number"),
        (mk.AlignmentRegularized(gamma=-1.0), "gamma must be a non-negative number"),
    ]:
        with pytest.raises(ValueError, match=message):
            ridge(matrices, target, rule)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, int])
def test_parameters_may_be_numbers_of_any_type(kind):
    matrices, _, target = golden()
    for rule, same in [
        (mk.L2Ball(kind(1)), mk.L2Ball(1.0)),
        (
            mk.AlignmentRegularized(kind(1), kind(1), kind(1)),
            mk.AlignmentRegularized(1.0, 1.0, 1.0),
        ),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = ridge(matrices, target, rule)
        expected = ridge(matrices, target, same)
        np.testing.assert_array_equal(found.kernel_weights_, expected.kernel_weights_)
