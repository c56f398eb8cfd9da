"""Kernels on vectors: values, columns, symmetry, and what they say when something is wrong."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import multikernel as mk
from tests import naive

CASES = [
    (mk.Linear(), naive.linear),
    (
        mk.Polynomial(3, 0.5, 0.2),
        lambda X, Z: naive.polynomial(X, Z, degree=3, coef0=0.5, gamma=0.2),
    ),
    (mk.Gaussian(0.3), lambda X, Z: naive.gaussian(X, Z, 0.3)),
    (mk.Laplacian(0.3), lambda X, Z: naive.laplacian(X, Z, 0.3)),
    (mk.Sigmoid(0.1, -0.2), lambda X, Z: naive.sigmoid(X, Z, 0.1, -0.2)),
    (mk.Sigmoid(-0.1, 0.3), lambda X, Z: naive.sigmoid(X, Z, -0.1, 0.3)),
    (mk.Callable(naive.gaussian, psd=True), naive.gaussian),
]
KERNELS = [kernel for kernel, _ in CASES]
numbers = st.floats(-5, 5).map(lambda x: round(x, 3))
tables = st.integers(1, 4).flatmap(
    lambda d: arrays(float, st.tuples(st.integers(1, 8), st.just(d)), elements=numbers)
)


@pytest.mark.parametrize("kernel, twin", CASES, ids=lambda c: repr(c)[:20])
def test_values_are_their_twin(kernel, twin, rng):
    X, Z = rng.normal(size=(12, 4)), rng.normal(size=(7, 4))
    np.testing.assert_allclose(kernel(X, Z), twin(X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X), twin(X, X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inputs_of_every_kind(kernel, rng):
    X = np.round(rng.normal(size=(9, 3)), 1)
    want = kernel(X)
    np.testing.assert_allclose(kernel(X.tolist()), want, rtol=1e-12)
    np.testing.assert_allclose(kernel(pd.DataFrame(X, columns=list("abc"))), want, rtol=1e-12)
    whole = np.arange(12).reshape(4, 3) % 5
    np.testing.assert_allclose(kernel(whole), kernel(whole.astype(float)), rtol=1e-12)
    single = kernel(X.astype(np.float32))
    np.testing.assert_allclose(single, want, rtol=1e-4, atol=1e-5)
    if not isinstance(kernel, mk.Callable):
        np.testing.assert_allclose(kernel(sp.csr_matrix(X)), want, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(kernel.diag(sp.csr_matrix(X)), np.diag(want), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(X=tables)
def test_symmetric_psd_and_diag(kernel, X):
    K = kernel(X)
    size = np.abs(K).max()
    np.testing.assert_allclose(K, K.T, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-12, atol=1e-13 * size)
    if kernel.is_psd:
        assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-12 * size * len(K)


@pytest.mark.parametrize("kernel", [mk.Gaussian(1.0), mk.Laplacian(0.5)], ids=repr)
@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_distances_do_not_see_where_the_data_lie(kernel, offset, rng):
    X = (rng.normal(size=(30, 3)) + offset) - offset  # the digits that the offset leaves
    Z = (rng.normal(size=(5, 3)) + offset) - offset
    np.testing.assert_allclose(kernel(X + offset), kernel(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel(X + offset, Z + offset), kernel(X, Z), rtol=0, atol=1e-12)


def test_the_diagonal_of_a_gaussian_is_one(rng):
    X = 100 * rng.normal(size=(40, 6))
    np.testing.assert_array_equal(np.diag(mk.Gaussian(1.0)(X)), np.ones(40))
    np.testing.assert_array_equal(np.diag(mk.Laplacian(1.0)(X)), np.ones(40))


# -- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns, index",
    [
        (2, [2]),
        (-1, [3]),
        ([0, 2], [0, 2]),
        ((3, 1), [3, 1]),
        (np.array([1, 2]), [1, 2]),
        (np.int64(1), [1]),
        (range(1, 3), [1, 2]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (slice(-2, None), [2, 3]),
        ([True, False, False, True], [0, 3]),
        (np.array([False, True, True, False]), [1, 2]),
        ((np.True_, np.False_, np.False_, np.True_), [0, 3]),
        (slice(None), [0, 1, 2, 3]),
        (None, [0, 1, 2, 3]),
        ("b", [1]),
        (["d", "a"], [3, 0]),
        (("a", -1), [0, 3]),
        (["a", -1], [0, 3]),
        (pd.Index(["b", "c"]), [1, 2]),
    ],
    ids=str,
)
def test_columns(columns, index, rng):
    X = rng.normal(size=(6, 4))
    kernel = mk.Gaussian(0.5, columns=columns)
    frame = pd.DataFrame(X, columns=list("abcd"))
    want = naive.gaussian(X[:, index], X[:, index], 0.5)
    np.testing.assert_allclose(kernel(frame), want, rtol=1e-12)
    resolved = kernel.resolve(4, list("abcd"))
    np.testing.assert_allclose(resolved(X), want, rtol=1e-12)
    np.testing.assert_allclose(resolved(sp.csr_matrix(X)), want, rtol=1e-12)
    assert hash(kernel) == hash(mk.Gaussian(0.5, columns=columns))
    assert kernel == mk.Gaussian(0.5, columns=columns)
    plan = mk.KernelBank([kernel]).plan(frame)
    grams = plan.grams(frame, budget=mk.grams.memory.MemoryBudget.of("1GB"))
    np.testing.assert_allclose(grams.block(slice(0, 6))[0], want, rtol=1e-12)


def test_a_frame_with_text_elsewhere(rng):
    frame = pd.DataFrame({"name": list("xyz"), "a": [1.0, 2.0, 3.0], "flag": [True, False, True]})
    K = mk.Linear(columns=["a", "flag"])(frame)
    np.testing.assert_array_equal(K, [[2.0, 2.0, 4.0], [2.0, 4.0, 6.0], [4.0, 6.0, 10.0]])


@pytest.mark.parametrize(
    "columns, error, match",
    [
        ([], ValueError, "at least one column"),
        ([False, False], ValueError, "selects no column"),
        ([0.5], TypeError, r"names \(str\) or indices \(int\); got 0.5"),
        ([True, 2], TypeError, "got True"),
        (1.5, ValueError, "names, indices, a boolean mask, a slice"),
    ],
)
def test_columns_that_cannot_be(columns, error, match):
    with pytest.raises(error, match=match):
        mk.Linear(columns=columns)


def test_columns_that_are_not_there(rng):
    X = rng.normal(size=(5, 3))
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    with pytest.raises(ValueError, match="column index 3 is out of range for X with 3 columns"):
        mk.Linear(columns=[0, 3])(X)
    with pytest.raises(ValueError, match="column index -4 is out of range"):
        mk.Linear(columns=-4)(X)
    with pytest.raises(ValueError, match=r"no column 'wieght'.*Did you mean 'weight'"):
        mk.Linear(columns="wieght")(frame)
    with pytest.raises(ValueError, match=r"by name, but X has no column names.*DataFrame"):
        mk.Linear(columns="age")(X)
    with pytest.raises(ValueError, match="selects none of the 3 columns"):
        mk.Linear(columns=slice(5, 7))(X)


# -- values: printing, comparing, hashing, copying ------------------------------------------------


@pytest.mark.parametrize(
    "kernel, text",
    [
        (mk.Linear(), "Linear()"),
        (mk.Linear(columns=0), "Linear(columns=0)"),
        (mk.Linear(columns="age"), "Linear(columns='age')"),
        (mk.Gaussian(0.5), "Gaussian(gamma=0.5)"),
        (mk.Gaussian(2), "Gaussian(gamma=2)"),
        (mk.Gaussian(1e-8, columns=[0, 2]), "Gaussian(gamma=1e-08, columns=[0, 2])"),
        (mk.Gaussian(1, columns=range(4, 90)), "Gaussian(gamma=1, columns=slice(4, 90))"),
        (mk.Laplacian(columns=slice(2, None)), "Laplacian(gamma=1, columns=slice(2, None))"),
        (
            mk.Linear(columns=[9, 8, 7, 6, 5, 4, 3]),
            "Linear(columns=[9, 8, 7, ... 7 in all])",
        ),
        (mk.Polynomial(), "Polynomial(degree=2, coef0=1, gamma=1)"),
        (mk.Sigmoid(), "Sigmoid(gamma=1, coef0=0)"),
        (mk.Callable(naive.gaussian), "Callable(gaussian)"),
        (mk.Callable(naive.gaussian, label="mine", columns=1), "Callable(mine, columns=1)"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_repr(kernel, text):
    assert repr(kernel) == str(kernel) == kernel.name == text


def test_equality_and_hash():
    assert mk.Gaussian(1) == mk.Gaussian(1.0) == mk.Gaussian(gamma=np.float32(1))
    assert mk.Gaussian(1) != mk.Gaussian(2) and mk.Gaussian(1) != mk.Laplacian(1)
    assert mk.Gaussian(1) != mk.Gaussian(1, columns=0)
    assert len({mk.Gaussian(1), mk.Gaussian(1.0), mk.Laplacian(1), mk.Linear(), mk.Linear()}) == 3
    assert mk.Polynomial(2.0) == mk.Polynomial(2)


@pytest.mark.parametrize("kernel", [*KERNELS, mk.Gaussian(columns=[0, 1])], ids=repr)
def test_copies(kernel):
    assert copy.copy(kernel) is kernel and copy.deepcopy(kernel) is kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(AttributeError):
        kernel.columns = 3


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: mk.Gaussian(0), "Gaussian: gamma must be a positive finite number; got 0"),
        (lambda: mk.Gaussian(-1.0), "gamma must be a positive"),
        (lambda: mk.Gaussian(np.nan), "gamma must be a positive"),
        (lambda: mk.Gaussian("auto"), "got 'auto'"),
        (lambda: mk.Gaussian(True), "got True"),
        (lambda: mk.Laplacian(np.inf), "Laplacian: gamma"),
        (lambda: mk.Polynomial(0), "Polynomial: degree must be a positive whole number"),
        (lambda: mk.Polynomial(2.5), "whole number; got 2.5"),
        (lambda: mk.Polynomial(2, coef0=np.nan), "coef0 must be a finite number"),
        (lambda: mk.Polynomial(2, gamma=0), "Polynomial: gamma"),
        (lambda: mk.Sigmoid(0), r"Sigmoid: gamma must not be 0.*tanh\(coef0\)"),
        (lambda: mk.Sigmoid(np.nan), "Sigmoid: gamma must be a finite number; got nan"),
        (lambda: mk.Sigmoid(-np.inf), "Sigmoid: gamma must be a finite number; got -inf"),
        (lambda: mk.Sigmoid(coef0="x"), "Sigmoid: coef0"),
    ],
)
def test_parameters_that_cannot_be(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_is_psd():
    assert mk.Polynomial(2, 0.0).is_psd and not mk.Polynomial(2, -0.1).is_psd
    assert mk.Linear().is_psd and mk.Laplacian().is_psd and not mk.Sigmoid().is_psd
    assert not mk.Callable(naive.linear).is_psd


# -- callables ------------------------------------------------------------------------------------


def test_callable_sees_its_columns_only(rng):
    seen = []

    def spy(X, Z):
        seen.append((X.shape, Z.shape))
        return X @ Z.T

    X = rng.normal(size=(5, 4))
    mk.Callable(spy, columns=[1, 2])(X, X[:2])
    assert seen == [((5, 2), (2, 2))]


@pytest.mark.parametrize(
    "func, match",
    [
        (lambda X, Z: np.ones((len(X), 3)), r"shape \(5, 5\) .*got shape \(5, 3\)"),
        (lambda X, Z: np.ones(len(X)), r"got shape \(5,\)"),
        (lambda X, Z: 1.0, r"got shape \(\)"),
        (lambda X, Z: np.full((len(X), len(Z)), "a"), "numeric matrix"),
        (lambda X, Z: np.ones((len(X), len(Z)), dtype=complex), "numeric matrix"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), "NaN or infinite"),
        (lambda X, Z: np.full((len(X), len(Z)), np.inf), "NaN or infinite"),
    ],
)
def test_callable_errors(func, match):
    with pytest.raises(ValueError, match=match) as caught:
        mk.Callable(func, label="mine")(np.zeros((5, 2)))
    assert "Callable(mine)" in str(caught.value)


def test_callable_must_be_called():
    with pytest.raises(TypeError, match=r"function of \(X, Z\); got 3"):
        mk.Callable(3)


def test_callable_that_is_not_symmetric_is_refused_by_its_grams(rng):
    X = rng.normal(size=(5, 2))
    bank = mk.KernelBank([mk.Callable(lambda X, Z: X[:, :1] + 2 * Z[:, :1].T, label="lopsided")])
    with pytest.raises(ValueError, match="'Callable\\(lopsided\\)' is not symmetric"):
        bank.plan(X).grams(X, budget=mk.grams.memory.MemoryBudget.of("1GB"))


@pytest.mark.parametrize("made", [sp.csr_matrix, lambda K: K.astype(int), lambda K: K > 0])
def test_callable_results_of_every_kind(made, rng):
    X = rng.integers(-2, 3, size=(6, 3)).astype(float)
    K = mk.Callable(lambda A, B: made(A @ B.T))(X)
    want = made(X @ X.T)
    want = want.toarray() if sp.issparse(want) else want
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, want)


def test_a_sigmoid_of_infinite_slope_is_a_sign():
    with np.errstate(over="raise"):
        K = mk.Sigmoid(1e308)([[3.0], [-2.0]])
    np.testing.assert_array_equal(K, [[1.0, -1.0], [-1.0, 1.0]])
