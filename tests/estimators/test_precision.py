"""Sound kernels computed in single precision, and kernels that normalisation makes constant."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.kernels.precomputed import value_precision
from multikernel.solvers.joint.definiteness import NotPSDError


def low_rank(n: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A sample of five columns in single precision, and labels."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 5)) + shift).astype(np.float32)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1, -1)
    return X, y


@pytest.mark.parametrize("n", [10, 40, 100, 200, 300])
@pytest.mark.parametrize("double", [False, True], ids=["as it is", "converted"])
@pytest.mark.parametrize("shift", [0.0, 20.0])
def test_products_in_single_precision_are_positive_semidefinite(n, double, shift):
    for seed in range(4):
        X, y = low_rank(n, seed, shift)
        K = X @ X.T
        K = K.astype(np.float64) if double else K
        bank = mk.precomputed([K])
        for center in (True, False):
            model = mk.MultiKernelClassifier(bank, weighting="uniform", C=100.0, center=center)
            assert model.fit(mk.sample_ids(n), y).score(mk.sample_ids(n), y) > 0.7


def test_given_arrays_in_single_precision_are_accepted():
    X, y = low_rank(100, 0)
    K = np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1))], axis=-1)
    for dtype in (np.float32, np.float64):
        model = mk.MultiKernelClassifier("precomputed", weighting="align", C=10.0)
        assert model.fit(K.astype(dtype), y).score(K.astype(dtype), y) > 0.9


@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf", "lp"])
@pytest.mark.parametrize("memory_budget", [None, "1MB"])
def test_callables_in_single_precision_are_accepted(weighting, memory_budget):
    X, y = low_rank(250, 3)
    bank = mk.gaussians([0.1, 1.0]) + mk.Callable(lambda A, B: A @ B.T, label="product")
    model = mk.MultiKernelClassifier(
        bank, weighting=weighting, dtype="float32", memory_budget=memory_budget
    )
    assert model.fit(X, y).score(X, y) > 0.8


def test_negative_eigenvalues_beyond_rounding_are_refused_in_every_precision():
    X, y = low_rank(60, 1)
    K = X @ X.T
    v = np.random.default_rng(0).standard_normal(60)
    bad = (K - 1e-3 * np.linalg.norm(K) * np.outer(v, v) / (v @ v)).astype(np.float32)
    for given in (bad, bad.astype(np.float64)):
        model = mk.MultiKernelClassifier(mk.precomputed([given]), weighting="uniform")
        with pytest.raises(NotPSDError, match="repair"):
            model.fit(mk.sample_ids(60), y)


def test_the_message_does_not_advise_to_repair_a_sound_matrix():
    X, y = low_rank(60, 1)
    scaled = (X @ X.T).astype(np.float64) / 7.0  # no longer numbers of single precision
    model = mk.MultiKernelClassifier(mk.precomputed([scaled]), weighting="uniform")
    with pytest.raises(NotPSDError, match="pass the matrix as float32") as caught:
        model.fit(mk.sample_ids(60), y)
    assert "repair" not in str(caught.value)


def test_matrix_that_single_precision_left_asymmetric_is_accepted_after_conversion():
    X, y = low_rank(80, 5)
    squares = ((X**2).sum(1)[:, None] - 2 * X @ X.T + (X**2).sum(1)).astype(np.float32)
    K = np.exp(-squares, dtype=np.float32)
    K[np.triu_indices(80, 1)] *= np.float32(1 + 2e-7)
    assert np.abs(K - K.T).max() > 0
    model = mk.MultiKernelClassifier(mk.precomputed([K.astype(np.float64)]), weighting="uniform")
    model.fit(mk.sample_ids(80), y)


def test_precision_is_that_in_which_values_were_computed():
    K = np.random.default_rng(0).random((6, 6))
    eps = {dtype: float(np.finfo(dtype).eps) for dtype in (np.float16, np.float32, np.float64)}
    assert value_precision(K) == eps[np.float64]
    assert value_precision(K.astype(np.float32)) == eps[np.float32]
    assert value_precision(K.astype(np.float32).astype(np.float64)) == eps[np.float32]
    assert value_precision(K.astype(np.float16)) == eps[np.float16]
    assert value_precision(np.eye(3, dtype=int)) == eps[np.float64]
    last = K.astype(np.float32).astype(np.float64)
    last[-1, -1] = 1 / 3
    assert value_precision(last) == eps[np.float64]


# -- kernels that are constant once they are normalised -------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf", "lp"])
@pytest.mark.parametrize("how", ["polynomial", "callable", "precomputed", "linear"])
def test_kernel_of_ones_after_spherical_normalisation_gets_no_weight(seed, weighting, how):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random(40) + 0.1, rng.standard_normal(40)])
    y = np.where(X[:, 1] + 0.3 * rng.standard_normal(40) > 0, 1, -1)
    useful, inputs = mk.gaussians([1.0]), X
    if how == "polynomial":
        bank = useful + mk.Polynomial(degree=3, coef0=0.0, columns=[0])
    elif how == "callable":
        bank = useful + mk.Callable(lambda A, B: np.outer(A[:, 0], B[:, 0]), label="outer")
    elif how == "linear":
        bank = useful + mk.Linear(columns=[0])
    else:
        D = ((X[:, None] - X) ** 2).sum(-1)
        bank = mk.precomputed([np.exp(-D), np.outer(X[:, 0], X[:, 0])])
        inputs = mk.sample_ids(40)
    model = mk.MultiKernelClassifier(bank, weighting=weighting, center=False, normalize="spherical")
    with pytest.warns(UserWarning, match="1 of 2 kernels are constant"):
        model.fit(inputs, y)
    assert model.kernel_weights_[1] == 0.0
    assert model.kernel_weights_[0] > 0
    assert np.ptp(model.decision_function(inputs)) > 0.5


def test_kernel_of_two_signs_is_not_constant_on_the_sphere():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1))
    y = np.where(X[:, 0] > 0, 1, -1)
    outer = mk.Callable(lambda A, B: np.outer(A[:, 0], B[:, 0]), label="outer")
    model = mk.MultiKernelClassifier(
        mk.gaussians([1.0]) + outer, weighting="alignf", center=False, normalize="spherical"
    )
    model.fit(X, y)
    assert model.kernel_weights_[1] > 0.5  # the kernel of the labels themselves
