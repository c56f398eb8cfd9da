"""Exponential and Matern kernels: formulas, special cases, definiteness, and the compiled loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

import multikernel as mk
from multikernel.grams.engines import build

X = np.random.default_rng(0).standard_normal((70, 4))
D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_is_that_of_scikit_learn(nu):
    expected = SklearnMatern(length_scale=1.7, nu=nu)(X)
    np.testing.assert_allclose(mk.Matern(nu, 1.7)(X), expected, atol=1e-13)


@pytest.mark.parametrize("power", [0.3, 1.0, 1.5, 2.0])
def test_exponential_is_its_formula_and_positive_definite(power):
    K = mk.Exponential(1.3, power)(X)
    np.testing.assert_allclose(K, np.exp(-((D / 1.3) ** power)), atol=1e-12)
    assert np.linalg.eigvalsh(K)[0] > 0


def test_special_cases_collapse():
    np.testing.assert_allclose(mk.Exponential(2.0)(X), mk.Matern(0.5, 2.0)(X), atol=1e-14)
    np.testing.assert_allclose(mk.Exponential(2.0, 2.0)(X), mk.Gaussian(0.25)(X), atol=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_compiled_loops_agree_with_the_formulas(dtype, tolerance):
    kernels = [
        mk.Exponential(0.7),
        mk.Exponential(2.0, 0.6),
        mk.Exponential(1.1, 2.0),
        mk.Matern(0.5, 3.0),
        mk.Matern(1.5, 0.2),
        mk.Matern(2.5, 40.0),
        mk.Exponential(1e-3),
        mk.Matern(2.5, 1e-3),
        mk.Matern(1.5, 1e5),
    ]
    bank = mk.KernelBank(kernels)
    grams = build(bank.plan(X), X, dtype=dtype)
    assert grams.kind == "shared"
    block = grams.block(slice(0, 70))
    for k, kernel in enumerate(kernels):
        np.testing.assert_allclose(block[k], kernel(X), rtol=0, atol=10 * tolerance)
    weights = np.linspace(0.1, 1.0, len(kernels))
    expected = np.tensordot(weights, np.stack([kernel(X) for kernel in kernels]), axes=1)
    np.testing.assert_allclose(grams.combine(weights).dense(), expected, atol=100 * tolerance)


def test_sparse_inputs_columns_and_files(tmp_path):
    S = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    y = np.asarray(S[:, 0].todense()).ravel() > 0
    bank = mk.KernelBank([mk.Exponential(2.0, columns=[0, 1]), mk.Matern(1.5, 1.0)])
    sparse = mk.MultiKernelClassifier(bank, "uniform").fit(S, y)
    dense = mk.MultiKernelClassifier(bank, "uniform").fit(S.toarray(), y)
    np.testing.assert_allclose(
        sparse.decision_function(S), dense.decision_function(S.toarray()), atol=1e-8
    )
    mk.save(dense, tmp_path / "model.skops")
    again = mk.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(
        again.decision_function(S.toarray()), dense.decision_function(S.toarray())
    )


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="Exponential: power must be at most 2"):
        mk.Exponential(1.0, 2.5)
    with pytest.raises(ValueError, match="Exponential: length"):
        mk.Exponential(0.0)
    with pytest.raises(ValueError, match=r"Matern: nu must be 0\.5, 1\.5 or 2\.5"):
        mk.Matern(1.0)
    with pytest.raises(ValueError, match="Matern: length"):
        mk.Matern(1.5, np.nan)


@pytest.mark.parametrize("kernel", [mk.Exponential(1e200), mk.Periodic(1.0, 1e200)], ids=repr)
def test_a_length_whose_square_overflows(kernel):
    np.testing.assert_array_equal(kernel([[0.0], [3.0]]), np.ones((2, 2)))
