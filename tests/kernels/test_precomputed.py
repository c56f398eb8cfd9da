"""Precomputed kernels: matrices that nobody copies, samples by number."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels.precomputed import check_kernel_matrix


def psd(rng, n=8):
    A = rng.normal(size=(n, 3))
    return A @ A.T


def test_values_are_those_of_the_matrix(rng):
    K = psd(rng)
    kernel = mk.precomputed([K])[0]
    np.testing.assert_array_equal(kernel(mk.sample_ids(8)), K)
    np.testing.assert_array_equal(kernel([[3], [1]], [[0], [7], [3]]), K[[3, 1]][:, [0, 7, 3]])
    np.testing.assert_array_equal(kernel.diag([[2], [2], [5]]), K.diagonal()[[2, 2, 5]])
    np.testing.assert_array_equal(kernel(np.array([3.0, 1.0])), K[np.ix_([3, 1], [3, 1])])
    np.testing.assert_array_equal(kernel(pd.DataFrame({"id": [1, 2]})), K[1:3, 1:3])


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, np.float32, np.float16, np.float64])
def test_types(dtype):
    K = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 2]]).astype(dtype)
    kernel = mk.precomputed([K])[0]
    assert kernel.matrix is K
    values = kernel(mk.sample_ids(3))
    assert values.dtype == (dtype if dtype in (np.float32, np.float64) else np.float64)
    np.testing.assert_array_equal(values, K.astype(float))
    assert kernel.diag(mk.sample_ids(3)).dtype == np.float64


def test_nothing_is_copied(rng):
    stack = np.stack([psd(rng), psd(rng), np.eye(8)])
    before = stack.copy()
    bank = mk.precomputed(stack)
    y = np.array([0, 1] * 4)
    model = mk.MultiKernelClassifier(bank, weighting="uniform")
    for held in (bank, copy.deepcopy(bank), clone(model).kernels, clone(clone(model)).kernels):
        for kernel, K in zip(held, stack, strict=True):
            assert np.shares_memory(kernel.matrix, stack)
            np.testing.assert_array_equal(kernel.matrix, K)
    fitted = clone(model).fit(mk.sample_ids(8), y)
    assert all(np.shares_memory(k.matrix, stack) for k in fitted.bank_)
    cross_val_score(model, mk.sample_ids(8), y, cv=2)
    np.testing.assert_array_equal(stack, before)


def test_equality_is_that_of_the_matrix_shown(rng):
    K = psd(rng)
    bank = mk.precomputed([K])
    assert mk.precomputed([K]) == bank and hash(mk.precomputed([K])) == hash(bank)
    assert mk.precomputed(K[None]) == bank
    assert mk.precomputed([K.copy()]) != bank
    assert mk.precomputed([K], ["other"]) != bank
    back = pickle.loads(pickle.dumps(bank))
    np.testing.assert_array_equal(back[0].matrix, K)


def test_names(rng):
    Ks = [psd(rng), np.eye(8)]
    assert mk.precomputed(Ks).names == ["precomputed[0]", "precomputed[1]"]
    assert mk.precomputed(Ks, ["a", "b"]).names == ["a", "b"]
    assert mk.precomputed(Ks, ["a", "a"]).names == ["a #1", "a #2"]
    assert repr(mk.precomputed(Ks, ["a", "b"])) == "KernelBank([a, b])"
    assert repr(mk.precomputed(Ks, ["a", "b"])[0]) == "Precomputed('a', 8 samples)"
    with pytest.raises(ValueError, match="Got 1 names for 2 matrices"):
        mk.precomputed(Ks, ["a"])


@pytest.mark.parametrize(
    "matrices, match",
    [
        ([], "at least one matrix"),
        (np.eye(3), r"precomputed\(\[K\]\)"),
        ([np.eye(3), np.eye(4)], r"precomputed\[1\].*\(3 x 3\); got shape \(4, 4\)"),
        ([np.ones((3, 4))], "square"),
        ([np.ones(3)], "square"),
        ([np.array([[1.0, 2.0], [3.0, 1.0]])], "not symmetric.*reaches 1 .*K.T"),
        ([np.array([[1, 2], [3, 1]])], "not symmetric"),
        ([np.array([[True, True], [False, True]])], "not symmetric"),
        ([np.array([[1.0, 5.0], [0.0, 1.0]], dtype=np.float32)], "not symmetric"),
        ([np.array([[1.0, 5.0], [0.0, 1.0]], dtype=np.float16)], "not symmetric"),
        ([np.array([[1.0, np.nan], [np.nan, 1.0]])], "NaN or infinite"),
        ([np.array([[np.inf, 0.0], [0.0, 1.0]])], "NaN or infinite"),
        ([np.array([["a", "b"], ["b", "a"]])], "expected numbers"),
        ([np.eye(2) * 1j], "expected numbers"),
    ],
)
def test_what_is_no_kernel_matrix(matrices, match):
    with pytest.raises(ValueError, match=match):
        mk.precomputed(matrices)


def test_rounding_is_no_asymmetry(rng):
    K = psd(rng, 600)  # more rows than one block of the check
    K[3, 580] *= 1 + 1e-14
    mk.precomputed([K])
    K[3, 580] += 1e-6
    with pytest.raises(ValueError, match="not symmetric"):
        mk.precomputed([K])


@pytest.mark.parametrize(
    "X, match",
    [
        ([[0], [8]], "knows samples 0 to 7; X holds ids from 0 to 8"),
        ([[-1], [2]], "ids from -1 to 2"),
        ([[0.5]], "whole numbers"),
        ([[np.nan]], "whole numbers"),
        ([[0, 1]], r"one column of sample ids.*mk.sample_ids\(8\)"),
        ([["a"]], "one column of sample ids"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_ids_that_are_not_there(X, match):
    kernel = mk.precomputed([np.eye(8)], ["mine"])[0]
    for use in (kernel, kernel.diag):
        with pytest.raises(ValueError, match=match) as caught:
            use(X)
        assert "'mine'" in str(caught.value)


def test_ids_are_checked_when_grams_are_made_and_when_new_points_come():
    bank = mk.precomputed([np.eye(5)])
    budget = MemoryBudget.of("1GB")
    with pytest.raises(ValueError, match="knows samples 0 to 4"):
        bank.plan(mk.sample_ids(6)).grams(mk.sample_ids(6), budget=budget)
    grams = bank.plan(mk.sample_ids(5)).grams(mk.sample_ids(5), budget=budget)
    expansion = grams.corrected(True, "trace").expand(np.ones(1), np.ones((5, 1)))
    with pytest.raises(ValueError, match="knows samples 0 to 4"):
        expansion.encode([[5]])


def test_sample_ids():
    ids = mk.sample_ids(4)
    assert ids.shape == (4, 1) and ids.dtype.kind == "i"
    np.testing.assert_array_equal(ids[:, 0], np.arange(4))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ">f8", np.int64, bool])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 31, 32, 33, 70])
def test_every_entry_is_looked_at_once_and_compared_with_its_mirror_image(rng, n, dtype):
    A = rng.integers(0, 2, (n, n))
    whole = np.stack([np.zeros((n, n)), A | A.T, np.ones((n, n))], axis=-1).astype(dtype)
    K = whole[:, :, 1]  # not contiguous
    check_kernel_matrix(K, "given")
    check_kernel_matrix(np.asfortranarray(K), "given")
    for _ in range(10 if n > 1 else 0):
        i, j = rng.integers(0, n, 2)
        if i != j:
            off = K.copy()
            off[i, j] = not off[i, j]
            with pytest.raises(ValueError, match="reaches 1 with"):
                check_kernel_matrix(off, "given")
        if np.dtype(dtype).kind == "f":
            for value in (np.nan, np.inf, -np.inf):
                off = K.copy()
                off[i, j] = off[j, i] = value
                with pytest.raises(ValueError, match="NaN or infinite"):
                    check_kernel_matrix(off, "given")


def test_rounding_is_forgiven_and_the_largest_difference_is_said(rng):
    K = rng.normal(size=(100, 100))
    K = 1e3 * (K + K.T)
    K[70, 3] *= 1 + 1e-13
    check_kernel_matrix(K, "given")
    K[70, 3] += 0.5
    said = re.escape(f"reaches 0.5 with entries up to {np.abs(K).max():.3g}")
    with pytest.raises(ValueError, match=said):
        check_kernel_matrix(K, "given")
