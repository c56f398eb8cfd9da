"""Derivatives of fitted functions: closed forms against the central differences of the protocol."""

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams.protocol import Expansion
from multikernel.grams.sensitivity import MAX_BLOCK_ROWS, column_sensitivities
from multikernel.kernels.derivatives import reads_ranks

rng = np.random.default_rng(0)
X = rng.gamma(2.0, size=(60, 4))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=60)
STEPS = 1e-5 * X.std(axis=0)
NEW = X[:20] + 0.02 + 0.01 * rng.random((20, 4))

BANKS = {
    "gaussians": mk.gaussians([0.1, 1.0]),
    "laplacian": [mk.Laplacian(0.3), mk.Laplacian(0.1, columns=[1, 3])],
    "exponential": [mk.Exponential(1.0), mk.Exponential(2.0, 1.5)],
    "matern": [mk.Matern(nu, 2.0) for nu in (0.5, 1.5, 2.5)],
    "linear": [mk.Linear(columns=[0, 2]), mk.Linear(columns=[1, 2])],
    "linear, scaled": [mk.Linear(columns=[0, 2], scaling="standard"), mk.Linear(columns=[1, 3])],
    "polynomials": [mk.Polynomial(degree, gamma=0.05) for degree in (1, 2, 3)],
    "chi-squared": [mk.ChiSquared(0.3)],
    "additive": [mk.AdditiveChiSquared()],
    "rank-one": mk.per_feature(mk.Linear()),
    "views": mk.per_view({"a": (mk.Gaussian(0.1), [0, 1]), "b": (mk.Linear(), [2, 3])}),
    "composed": [mk.Gaussian(0.1) * mk.Linear(), mk.Gaussian(0.2) + mk.Polynomial(2)],
    "mixed": mk.gaussians([0.1]) + mk.per_feature(mk.Linear()) + [mk.Linear() * mk.Gaussian(0.1)],
    "smooth": mk.default_bank(X, kind="gaussians"),
    "tables": [k for k in mk.default_bank(X, kind="tables") if not reads_ranks(k)],
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", None])
@pytest.mark.parametrize("name", BANKS)
def test_closed_forms_and_central_differences(name, normalize, fit_intercept):
    model = mk.MultiKernelRegressor(
        BANKS[name], weighting="uniform", normalize=normalize, fit_intercept=fit_intercept
    )
    f = model.fit(X, y)._expansion
    found = f.gradients(NEW, STEPS)
    expected = Expansion.gradients(f, NEW, STEPS)
    assert found.shape == (20, 4, 1)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_predictions_are_what_is_differentiated():
    model = mk.MultiKernelRegressor(mk.default_bank(X, kind="gaussians"), "alignf").fit(X, y)
    found = model._expansion.gradients(NEW, STEPS)[:, :, 0]
    for j in range(4):
        step = np.zeros(4)
        step[j] = 1e-5
        change = (model.predict(NEW + step) - model.predict(NEW - step)) / 2e-5
        np.testing.assert_allclose(found[:, j], change, rtol=1e-6, atol=1e-7)


def test_outputs_with_weights_of_their_own():
    labels = (y > 1).astype(int) + (y > 3)
    bank = mk.default_bank(X, kind="gaussians")
    model = mk.MultiKernelClassifier(bank, multiclass="per_class").fit(X, labels)
    found = model._expansion.gradients(NEW, STEPS)
    assert found.shape == (20, 4, 3)
    expected = Expansion.gradients(model._expansion, NEW, STEPS)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "model",
    [
        mk.KernelEnsembleClassifier(mk.gaussians([0.1, 1.0])),
        mk.VotedKernelClassifier(mk.gaussians([0.1, 1.0])),
        mk.MultiKernelClassifierCV(mk.gaussians([0.1, 1.0]), Cs=[1.0], cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators(model):
    f = model.fit(X, y > 1)._expansion
    expected = Expansion.gradients(f, NEW, STEPS)
    np.testing.assert_allclose(
        f.gradients(NEW, STEPS), expected, atol=1e-6 * np.abs(expected).max() + 1e-12
    )


@pytest.mark.parametrize("wide", [False, True])
def test_sparse_inputs(wide):
    S = X * (X > 1.5)
    # Without room for the columns, sparse kernels are evaluated as matrices.
    options = {"memory_budget": 12_000_000} if wide else {}
    bank = mk.gaussians([0.1]) + mk.Linear() + mk.per_feature(mk.Linear())
    f = mk.MultiKernelRegressor(bank, **options).fit(sp.csr_matrix(S), y)._expansion
    g = mk.MultiKernelRegressor(bank).fit(S, y)._expansion
    found = f.gradients(sp.csr_matrix(S[:9]), STEPS)
    np.testing.assert_allclose(found, g.gradients(S[:9], STEPS), atol=1e-7)
    np.testing.assert_allclose(
        column_sensitivities(f, sp.csr_matrix(S)), column_sensitivities(g, S), rtol=1e-6
    )


def test_sensitivities_by_hand():
    # f = 2 x_0 - x_2: squared slopes 4, 0, 1 times the variances of the columns.
    target = 2 * X[:, 0] - X[:, 2]
    bank = mk.per_feature(mk.Linear())
    f = mk.MultiKernelRegressor(bank, "uniform", alpha=1e-9).fit(X, target)._expansion
    expected = np.array([4.0, 0.0, 1.0, 0.0]) * X.var(axis=0)
    np.testing.assert_allclose(column_sensitivities(f, X), expected, atol=1e-6)


def test_a_weight_of_two_is_a_repetition():
    f = mk.MultiKernelRegressor().fit(X, y)._expansion
    omega = rng.integers(1, 4, size=60)
    np.testing.assert_allclose(
        column_sensitivities(f, X, omega), column_sensitivities(f, np.repeat(X, omega, axis=0))
    )


def test_many_rows_are_read_in_blocks():
    f = mk.MultiKernelRegressor().fit(X, y)._expansion
    many = rng.gamma(2.0, size=(MAX_BLOCK_ROWS + 44, 4))
    slopes = f.gradients(many, STEPS)[:, :, 0]
    expected = np.mean(slopes**2, axis=0) * many.var(axis=0)
    np.testing.assert_allclose(column_sensitivities(f, many), expected)


def test_single_precision():
    options = {"kernels": mk.default_bank(X, kind="gaussians"), "weighting": "alignf"}
    wide = mk.MultiKernelRegressor(**options).fit(X, y)._expansion
    for normalize, rtol in (("multiplicative", 1e-4), ("spherical", 2e-3)):
        double = mk.MultiKernelRegressor(normalize=normalize, **options).fit(X, y)
        single = mk.MultiKernelRegressor(normalize=normalize, dtype="float32", **options)
        single.fit(X, y)
        found = column_sensitivities(single._expansion, X, relative_step=5e-3)
        np.testing.assert_allclose(found, column_sensitivities(double._expansion, X), rtol=rtol)
    assert np.all(column_sensitivities(wide, X) > 0)


def test_constant_columns_count_for_nothing():
    constant = np.column_stack([X, np.full(60, 0.1)])
    f = mk.MultiKernelRegressor(mk.gaussians([0.1])).fit(constant, y)._expansion
    assert column_sensitivities(f, constant)[4] == 0


def test_matrices_have_no_derivatives():
    K = np.stack([kernel(X) for kernel in BANKS["gaussians"]], axis=2)
    f = mk.MultiKernelRegressor(kernels="precomputed").fit(K, y)._expansion
    with pytest.raises(TypeError, match=r"array of matrices.*no derivatives. Pass kernels"):
        f.gradients(K[:3], np.ones(60))
