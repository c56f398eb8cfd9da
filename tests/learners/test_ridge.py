"""Kernel ridge regression with one kernel and a free intercept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

import multikernel as mk
from multikernel.learners.ridge import Ridge, objectives
from tests.naive_alignment import (
    MatrixGram,
    center,
    centring,
    gaussian,
    outputs,
    ridge_with_intercept,
)

SOLVERS = ["cholesky", "cg"]


@pytest.fixture
def data(rng):
    X = rng.standard_normal((30, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(30) + 4
    return gaussian(X, 0.5), y


def machine(K, y, alpha=1.0, weights=None, **options):
    """One fit; conjugate gradients run until the gap is rounding error."""
    return Ridge(alpha, **({"tol": 1e-15} | options)).fit(MatrixGram(K), outputs(y, weights))


def allowed(found, alpha, omega=1.0):
    """How far coefficients may be from the optimum when the gap is rounding error.

    P - D(c) = lam (c - c*)' (K + diag(ridge)) (c - c*); gaps of 64 eps (|P| + |D|) are forgiven.
    """
    noise = 128 * np.finfo(float).eps * found.objective
    return float(np.sqrt(noise / alpha * np.max(np.asarray(omega)) / alpha))


def naive_gap(K, y, lam, coef, b, omega):
    """Relative gap from the two objectives written out.

    Primal: lam c'Kc + sum omega (y - Kc - b)^2. Its dual, by eliminating f and b from the
    Lagrangian of the residuals: lam (2c'y - c'Kc - lam sum c^2 / omega) for 1'c = 0.
    """
    values = K @ coef
    y, b = y - y.mean(), b - y.mean()  # the same numbers, with less rounding
    primal = lam * coef @ values + np.sum(omega * (y - values - b) ** 2)
    dual = lam * (2 * coef @ y - coef @ values - lam * np.sum(coef**2 / omega))
    return (primal - dual) / primal


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 100.0])
def test_against_sklearn_on_the_centred_problem(data, solver, alpha):
    """CMR12 second stage (1): KernelRidge on centred kernel and labels, plus the mean."""
    K, y = data
    reference = KernelRidge(alpha=alpha, kernel="precomputed").fit(center(K), y - y.mean())
    for matrix in (center(K), K):
        found = machine(matrix, y, alpha, solver=solver)
        error = 1e-10 / alpha if solver == "cholesky" else allowed(found, alpha)
        assert_allclose(found.coef[:, 0], reference.dual_coef_, rtol=0, atol=error)
        # y - Kc - b = alpha c: fitted values are that much closer.
        fitted = matrix @ found.coef[:, 0] + found.intercept[0]
        expected = reference.predict(center(K)) + y.mean()
        assert_allclose(fitted, expected, rtol=0, atol=2e-10 + 30 * error * min(alpha, 1.0))
    assert machine(center(K), y, alpha).intercept[0] == pytest.approx(y.mean(), rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_against_the_bordered_system(data, rng, solver):
    """An unpenalised intercept on an uncentred kernel, with and without weights."""
    K, y = data
    for omega in (None, rng.uniform(0.1, 3, 30)):
        coef, b = ridge_with_intercept(K, y, 0.3, omega)
        found = machine(K, y, 0.3, omega, solver=solver)
        error = (
            1e-10 if solver == "cholesky" else allowed(found, 0.3, 1.0 if omega is None else omega)
        )
        assert_allclose(found.coef, coef, rtol=0, atol=error)
        assert_allclose(found.intercept, b, rtol=0, atol=2 * error)


def test_stationarity(data, rng):
    """lam c = omega (y - Kc - b) and 1'c = 0: the residual is the dual variable."""
    K, y = data
    omega = rng.uniform(0.1, 3, 30)
    found = machine(K, y, 0.3, omega)
    residual = y - K @ found.coef[:, 0] - found.intercept[0]
    assert_allclose(0.3 * found.coef[:, 0], omega * residual, atol=1e-12)
    assert abs(found.coef.sum()) < 1e-12
    assert found.objective == pytest.approx(0.3 * found.coef[:, 0] @ (y - y.mean()), rel=1e-10)


def test_the_objective_is_minimal(data, rng):
    """No perturbed function and intercept has a smaller primal objective."""
    K, y = data
    found = machine(K, y, 0.3)

    def primal(c, b):
        return 0.3 * c @ K @ c + np.sum((y - K @ c - b) ** 2)

    best = primal(found.coef[:, 0], found.intercept[0])
    assert found.objective == pytest.approx(best, rel=1e-12)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            c = found.coef[:, 0] + size * rng.standard_normal(30)
            b = found.intercept[0] + size * rng.standard_normal()
            assert primal(c, b) > best


@pytest.mark.parametrize("solver", SOLVERS)
def test_weighted_is_repeated(data, rng, solver):
    K, y = data
    times = rng.integers(1, 4, 30)
    index = np.repeat(np.arange(30), times)
    weighted = machine(K, y, 0.5, times.astype(float), solver=solver)
    repeated = machine(K[np.ix_(index, index)], y[index], 0.5, solver=solver)
    summed = np.bincount(index, repeated.coef[:, 0])
    error = 1e-10 if solver == "cholesky" else 3 * allowed(weighted, 0.5, times)
    assert_allclose(weighted.coef[:, 0], summed, rtol=0, atol=error)
    assert_allclose(weighted.intercept, repeated.intercept, rtol=0, atol=error)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf"])
def test_weighted_is_repeated_end_to_end(rng, weighting):
    X = rng.standard_normal((25, 2))
    y = X[:, 0] ** 2 + 0.3 * rng.standard_normal(25)
    times = rng.integers(0, 4, 25)
    bank = mk.gaussians([0.1, 1.0]) + mk.KernelBank([mk.Linear()])
    new = rng.standard_normal((6, 2))
    one = mk.MultiKernelRegressor(bank, weighting).fit(X, y, sample_weight=times)
    index = np.repeat(np.arange(25), times)
    two = mk.MultiKernelRegressor(bank, weighting).fit(X[index], y[index])
    assert_allclose(one.kernel_weights_, two.kernel_weights_, atol=1e-9)
    assert one.alignment_ == pytest.approx(two.alignment_, rel=1e-9)
    assert_allclose(one.predict(new), two.predict(new), atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e3])
def test_cholesky_is_cg(data, rng, alpha):
    K, y = data
    Y = np.column_stack([y, rng.standard_normal(30)])
    omega = rng.uniform(0.2, 2, 30)
    direct = machine(K, Y, alpha, omega, solver="cholesky")
    iterated = machine(K, Y, alpha, omega, solver="cg")
    error = allowed(iterated, alpha, omega)
    assert_allclose(iterated.coef, direct.coef, rtol=0, atol=error)
    assert_allclose(K @ iterated.coef, K @ direct.coef, rtol=0, atol=1e-6)
    assert_allclose(iterated.intercept, direct.intercept, rtol=0, atol=1e-6)
    assert iterated.objective == pytest.approx(direct.objective, rel=1e-12)
    assert iterated.n_iter > 1


def test_cg_stops_at_its_tolerance(data):
    """A looser tolerance takes fewer steps, and the reported gap is true and below it."""
    K, y = data
    steps = []
    for tol in (1e-1, 1e-4, 1e-8):
        found = machine(K, y, 1e-2, solver="cg", tol=tol)
        assert found.gap <= tol
        true = naive_gap(K, y, 1e-2, found.coef[:, 0], found.intercept[0], np.ones(30))
        assert found.gap == pytest.approx(true, rel=1e-6, abs=1e-12)
        steps.append(found.n_iter)
    assert steps[0] < steps[1] < steps[2]


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_cg_proves_how_far_fitted_values_are_from_the_exact_ones(
    data, rng, tol, fit_intercept, alpha
):
    K, y = data
    Y = np.column_stack([y, 100 + 5 * rng.standard_normal(30)])
    omega = rng.uniform(0.2, 2, 30)
    options = dict(solver="cg", tol=tol, fit_intercept=fit_intercept)
    found = machine(K, Y, alpha, omega, **options)
    exact = machine(K, Y, alpha, omega, solver="cholesky", fit_intercept=fit_intercept)
    error = K @ (found.coef - exact.coef) + found.intercept - exact.intercept
    spread = np.sqrt(np.average((Y - np.average(Y, axis=0, weights=omega)) ** 2, 0, omega))
    assert np.all(np.sqrt(np.average(error**2, 0, omega)) <= tol * spread)
    assert found.gap <= tol
    loose = machine(K, Y, alpha, omega, solver="cg", tol=0.3, fit_intercept=fit_intercept)
    assert loose.n_iter < found.n_iter


def test_cg_warns_when_it_runs_out_of_steps(data):
    K, y = data
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        found = machine(K, y, 1e-4, solver="cg", tol=1e-10, max_iter=3)
    true = naive_gap(K, y, 1e-4, found.coef[:, 0], found.intercept[0], np.ones(30))
    assert found.gap == pytest.approx(true, rel=1e-6)
    assert true > 1e-6


def test_gap_formula(data, rng):
    """The gap is >= 0 at any feasible point, 0 at the optimum, and is P - D written out."""
    K, y = data
    omega, lam = rng.uniform(0.2, 2, 30), 0.4
    best, b = ridge_with_intercept(K, y, lam, omega)
    for size in (0.0, 1e-3, 1.0):
        coef = best[:, 0] + size * centring(30) @ rng.standard_normal(30)
        offset = b[0] + size * rng.standard_normal()
        values = (K @ coef)[:, None]
        primal, dual, _ = objectives(
            values, coef[:, None], np.array([offset]), y[:, None], lam / omega, lam
        )
        expected = naive_gap(K, y, lam, coef, offset, omega)
        assert (primal[0] - dual[0]) / primal[0] == pytest.approx(expected, rel=1e-9, abs=1e-13)
        assert expected >= -1e-13
        assert (expected < 1e-13) == (size == 0)
    assert machine(K, y, lam, omega).gap < 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_outputs_are_independent(data, rng, solver):
    K, y = data
    Y = np.column_stack([y, rng.standard_normal(30), 1e3 * y**2])
    together = machine(K, Y, 0.7, solver=solver)
    alone = [machine(K, column, 0.7, solver=solver) for column in Y.T]
    for j, one in enumerate(alone):
        scale = np.abs(one.coef).max()
        assert_allclose(together.coef[:, j], one.coef[:, 0], atol=1e-7 * scale)
        assert_allclose(together.intercept[j], one.intercept[0], rtol=1e-8)
    assert together.objective == pytest.approx(sum(one.objective for one in alone), rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_huge_alpha_predicts_the_mean(data, solver):
    """alpha -> infinity: f -> 0 like U y / alpha; b is the (weighted) mean."""
    K, y = data
    omega = np.linspace(1, 2, 30)
    found = machine(K, y, 1e12, omega, solver=solver)
    mean = np.average(y, weights=omega)
    assert found.intercept[0] == pytest.approx(mean, rel=1e-10)
    error = 1e-9 if solver == "cholesky" else 1e12 * allowed(found, 1e12, omega)
    assert error < 1e-5
    assert_allclose(1e12 * found.coef[:, 0], omega * (y - mean), rtol=0, atol=error)
    assert found.gap < 1e-12


def test_tiny_alpha_interpolates(data):
    """alpha -> 0 with an invertible kernel: the fit goes through the points."""
    K, y = data
    K = K + 0.1 * np.eye(30)
    found = machine(K, y, 1e-12)
    assert_allclose(K @ found.coef[:, 0] + found.intercept[0], y, atol=1e-9)
    coef, b = ridge_with_intercept(K, y, 1e-12)
    assert_allclose(found.coef, coef, atol=1e-9)
    assert_allclose(found.intercept, b, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_tiny_alpha_on_a_singular_kernel(rng, solver, alpha):
    """A linear kernel of rank 2 has the answer of ridge regression in the primal."""
    X = rng.standard_normal((30, 2))
    Xc = X - X.mean(axis=0)
    y = X @ [1.0, 2.0] + 0.1 * rng.standard_normal(30)
    slopes = np.linalg.solve(Xc.T @ Xc + alpha * np.eye(2), Xc.T @ (y - y.mean()))
    found = machine(Xc @ Xc.T, y, alpha, solver=solver)
    # The coefficients are of size 1 / alpha: products with K lose as many digits.
    error = 1e-14 / alpha + 1e-9
    assert_allclose(Xc @ (Xc.T @ found.coef[:, 0]), Xc @ slopes, atol=error)
    assert found.intercept[0] == pytest.approx(y.mean(), abs=1e-9)


@pytest.mark.parametrize("shift", [1e3, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_shifting_the_target_shifts_the_intercept_only(rng, solver, shift, alpha):
    """The free intercept takes up any mean of y; the function f does not lose digits over it."""
    X = rng.standard_normal((30, 2))
    Xc = X - X.mean(axis=0)
    K = Xc @ Xc.T
    y = np.round(X @ [1.0, 2.0] + 0.1 * rng.standard_normal(30), 3)
    base = machine(K, y, alpha, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        moved = machine(K, y + shift, alpha, solver=solver)
    # Storing y + shift rounds y by eps * shift, no more.
    error = 1e-8 + 100 * np.finfo(float).eps * shift
    assert_allclose(K @ moved.coef, K @ base.coef, atol=error)
    assert_allclose(moved.intercept - shift, base.intercept, atol=error)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_an_intercept(data, rng, solver):
    """``(K + lam Omega^-1) c = y``, and the objective is ``lam y'c``: nothing takes up the mean."""
    K, y = data
    omega = rng.uniform(0.1, 3, 30)
    found = machine(K, y, 0.3, omega, solver=solver, fit_intercept=False)
    expected = np.linalg.solve(K + np.diag(0.3 / omega), y)
    error = 1e-10 if solver == "cholesky" else allowed(found, 0.3, omega)
    assert_allclose(found.coef[:, 0], expected, rtol=0, atol=error)
    assert found.intercept[0] == 0.0
    assert abs(found.coef.sum()) > 1.0
    assert found.objective == pytest.approx(0.3 * y @ expected, rel=1e-9)
    assert found.gap < 1e-12


def test_auto_factors_where_the_operator_can(data):
    K, y = data
    ridge = Ridge(tol=1e-15)
    assert ridge.fit(MatrixGram(K), outputs(y)).n_iter == 1
    assert ridge.fit(MatrixGram(K, optional=()), outputs(y)).n_iter > 1


def test_indefinite_kernels_are_solved_anyway(rng):
    """A symmetric indefinite matrix has a stationary point, which is what is returned."""
    K = rng.standard_normal((12, 12))
    K, y = K + K.T, rng.standard_normal(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = machine(K, y, 0.1)
    coef, b = ridge_with_intercept(K, y, 0.1)
    assert np.linalg.eigvalsh(K)[0] < -1
    assert_allclose(found.coef, coef, atol=1e-9)
    assert_allclose(found.intercept, b, atol=1e-9)
