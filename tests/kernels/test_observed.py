"""Kernels on samples that lack their columns: values by hand, definiteness, derivatives."""

import dataclasses

import numpy as np
import pytest

import multikernel as mk
from multikernel.kernels.derivatives import weighted_gradient
from multikernel.kernels.observed import Observed, column_means, observe

NAN = np.nan


def with_gaps(rng, n=40, d=6, absent=0.4, single=0.1):
    """Samples of two views of three columns, some without one view, some with single gaps."""
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) < single] = NAN
    for i in range(n):
        if rng.random() < absent:
            X[i, 3 * rng.integers(2) :][:3] = NAN
    return X


BANK = [
    mk.Gaussian(0.3, columns=[0, 1, 2]),
    mk.Linear(columns=slice(3, 6)),
    mk.Polynomial(2, columns=[2, 0]),
    mk.Laplacian(0.5, columns=[3, 4, 5], scaling="standard"),
    mk.Exponential(2.0, columns=[3, 4, 5]) * mk.Gaussian(0.1, columns=[0]) + 2.0 * mk.Linear(),
    mk.Gaussian(0.2, columns=[0, 1, 2], scaling="quantile") ** 0.5,
    *mk.at_distances(mk.Gaussian(), [1.0], columns=[3, 4, 5]),
]


def naive_value(kernel, x, z, reference, shares):
    """Inner product of feature vectors, absent samples at the mean of the reference samples."""
    ends = []
    for one in (x, z):
        whole = np.isnan(one).all()
        ends.append((reference, shares) if whole else (one[None], np.ones(1)))
    (A, a), (B, b) = ends
    return a @ kernel(A, B) @ b


def test_values_by_hand():
    X = np.array([[1.0, 0.0], [3.0, 0.0], [NAN, 0.0]])
    bank, absent = observe(mk.KernelBank([mk.Linear(columns=0)]), X)
    # The mean of 1 and 3 stands for the third sample.
    np.testing.assert_allclose(bank[0](X), np.outer([1, 3, 2], [1, 3, 2]))
    np.testing.assert_allclose(bank[0].diag(X), [1, 9, 4])
    np.testing.assert_array_equal(absent, [[False, False, True]])
    bank, _ = observe(mk.KernelBank([mk.Polynomial(2, coef0=0.0, columns=0)]), X)
    # In the feature x^2 the mean is 5, not the square of the mean of x.
    np.testing.assert_allclose(bank[0](X), np.outer([1, 9, 5], [1, 9, 5]))


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_the_mean_embedding(weighted):
    rng = np.random.default_rng(1)
    X, new = with_gaps(rng), with_gaps(rng, n=8)
    omega = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    index = np.array([0, 1, 2])
    bank, absent = observe(mk.KernelBank([mk.Gaussian(0.3, columns=index)]), X, omega)
    w = np.ones(len(X)) if omega is None else omega
    own, fresh = X[:, index], new[:, index]
    fill = [np.average(c[~np.isnan(c)], weights=w[~np.isnan(c)]) for c in own.T]
    np.testing.assert_allclose(column_means(X, w)[index], fill)
    partly = lambda A: np.where(np.isnan(A) & ~np.isnan(A).all(1)[:, None], fill, A)  # noqa: E731
    has = ~np.isnan(own).all(axis=1)
    np.testing.assert_array_equal(absent[0], ~has)
    assert 3 < has.sum() < len(X) - 3
    reference, shares = partly(own)[has], w[has] / w[has].sum()
    expected = [
        [naive_value(mk.Gaussian(0.3), x, z, reference, shares) for z in partly(own)]
        for x in partly(fresh)
    ]
    np.testing.assert_allclose(bank[0](new, X), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_positive_semidefinite_on_training_and_new_samples_together(seed):
    rng = np.random.default_rng(seed)
    X, new = with_gaps(rng), with_gaps(rng, absent=0.7)
    new[0] = NAN
    bank, _ = observe(mk.KernelBank(BANK), X)
    everyone = np.vstack([X, new])
    for kernel in bank:
        K = kernel(everyone)
        np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.diag(K), kernel.diag(everyone), rtol=1e-10)
        # An exponential takes the root of a distance that is zero up to rounding (1e-16) where a
        # sample meets itself among the reference samples.
        np.testing.assert_allclose(K[:40, 40:], kernel(X, new), rtol=1e-9, atol=1e-8)
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -1e-12 * len(K) * values[-1], kernel


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_rows_of_absent_samples_are_zero(weighted):
    rng = np.random.default_rng(2)
    X, new = with_gaps(rng), with_gaps(rng, n=20, absent=0.8)
    omega = rng.uniform(0.5, 3.0, len(X)) if weighted else np.ones(len(X))
    bank, absent = observe(mk.KernelBank(BANK), X, omega)
    v = omega / omega.sum()
    for kernel, lost in zip(bank, absent, strict=True):
        K, cross = kernel(X), kernel(new, X)
        r = K @ v
        centred = K - r[:, None] - r[None] + v @ r
        size = np.abs(centred).max()
        assert np.abs(centred[lost]).max(initial=0.0) <= 1e-12 * size
        without = np.isnan(new[:, list(kernel.columns)]).all(axis=1)
        rows = cross - (cross @ v)[:, None] - r[None] + v @ r
        assert np.abs(rows[without]).max(initial=0.0) <= 1e-12 * size


def test_scalings_and_widths_are_those_of_the_samples_that_have_the_columns():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 4))
    X[30:, :2] = NAN
    bank, _ = observe(mk.at_distances(mk.Gaussian(), [1.0], columns=[0, 1]), X)
    (expected,) = mk.at_distances(mk.Gaussian(), [1.0], columns=[0, 1]).adapt(X[:30])
    np.testing.assert_allclose(bank[0](X[:30]), expected(X[:30]), rtol=1e-12)
    assert bank.names == [repr(expected)]


def test_complete_data_leave_the_kernel_as_it_is():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(30, 6)), rng.normal(size=(9, 6))
    bank, absent = observe(mk.KernelBank(BANK), X)
    assert not absent.any()
    for kernel, given in zip(bank, mk.KernelBank(BANK).adapt(X), strict=True):
        np.testing.assert_allclose(kernel(Z, X), given(Z, X), rtol=1e-12, atol=1e-14)


def test_linear_kernels_are_filled_with_means():
    rng = np.random.default_rng(5)
    X = with_gaps(rng)
    bank, _ = observe(mk.KernelBank([mk.Linear(columns=[0, 1, 2])]), X)
    own = X[:, :3]
    has = ~np.isnan(own).all(axis=1)
    means = np.nanmean(own, axis=0)
    filled = np.where(np.isnan(own), means, own)
    # The mean of the filled samples that are present, not of the values that are there.
    filled[~has] = filled[has].mean(axis=0)
    np.testing.assert_allclose(bank[0](X), filled @ filled.T, atol=1e-12)


def test_float32_stays_single():
    rng = np.random.default_rng(6)
    X = with_gaps(rng).astype(np.float32)
    bank, _ = observe(mk.KernelBank([mk.Gaussian(0.3, columns=[0, 1, 2])]), X)
    double, _ = observe(mk.KernelBank([mk.Gaussian(0.3, columns=[0, 1, 2])]), X.astype(float))
    assert bank[0](X).dtype == np.float32
    np.testing.assert_allclose(bank[0](X), double[0](X.astype(float)), atol=2e-6)


def test_per_feature_kernels_have_gaps_of_their_own():
    X = np.array([[1.0, NAN], [2.0, 5.0], [NAN, 7.0]])
    bank, absent = observe(mk.per_feature(mk.Linear()), X, None, ["a", "b"])
    assert bank.names == ["Linear(columns='a')", "Linear(columns='b')"]
    np.testing.assert_array_equal(absent, [[False, False, True], [True, False, False]])


def test_a_fitted_bank_is_left_as_it_is():
    rng = np.random.default_rng(7)
    X = with_gaps(rng)
    bank, absent = observe(mk.KernelBank(BANK), X)
    again, also = observe(bank, X)
    assert again == bank
    np.testing.assert_array_equal(absent, also)


@pytest.mark.parametrize("kernel", BANK[:6], ids=repr)
def test_gradient_by_differences(kernel):
    if "quantile" in repr(kernel):
        kernel = dataclasses.replace(
            kernel, kernel=dataclasses.replace(kernel.kernel, scaling=None)
        )
    rng = np.random.default_rng(8)
    X, Z = rng.normal(size=(5, 6)), with_gaps(rng, n=12)
    X[0, :3] = NAN
    bank, _ = observe(mk.KernelBank([kernel]), with_gaps(rng))
    A = rng.normal(size=(5, 12))
    found = weighted_gradient(bank[0], X, Z, A, np.full(6, 1e-5))
    for j in range(6):
        step = np.zeros(6)
        step[j] = 1e-5
        slope = np.sum(A * (bank[0](X + step, Z) - bank[0](X - step, Z)), axis=1) / 2e-5
        np.testing.assert_allclose(found[:, j], slope, atol=2e-6)


def test_errors_name_what_is_missing():
    X = np.array([[1.0, NAN, NAN, 1.0], [2.0, NAN, NAN, 2.0], [0.0, NAN, NAN, NAN]])
    views = mk.per_view({"x": (mk.Linear(), [0]), "scan": (mk.Gaussian(0.1), [1, 2])})
    with pytest.raises(ValueError, match=r"View 'scan': no training sample .*\('b', 'c'\)"):
        observe(views, X, None, ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match=r"Kernel 'Linear\(columns=\[2, 3\]\)': .*NaN.*: 2\. "):
        observe(mk.KernelBank([mk.Linear(columns=[2, 3])]), X)
    with pytest.raises(ValueError, match=r"missing='ignore' needs kernels on numeric columns"):
        observe(mk.precomputed([np.eye(3)]), X)
    assert isinstance(observe(views, np.ones((3, 3)))[0][0], Observed)
