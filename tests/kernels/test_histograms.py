"""Chi-squared kernels: values, columns of zeros, sparse input, and columns they cannot read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel

import multikernel as mk
from multikernel.kernels.histograms import chi_squared_distances
from tests import naive

KERNELS = [mk.ChiSquared(0.3), mk.AdditiveChiSquared()]
TWINS = [lambda X, Z: naive.chi_squared(X, Z, 0.3), naive.additive_chi_squared]
CASES = list(zip(KERNELS, TWINS, strict=True))
counts = st.integers(1, 4).flatmap(
    lambda d: arrays(float, st.tuples(st.integers(1, 7), st.just(d)), elements=st.integers(0, 5))
)


def histograms(rng, n, d=6):
    """Counts of which many are zero, one row of zeros and one column of zeros."""
    X = rng.poisson(0.8, size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, d))
    X[n // 2], X[:, d // 2] = 0.0, 0.0
    return X


@pytest.mark.parametrize(("kernel", "twin"), CASES, ids=lambda c: repr(c)[:20])
def test_values_are_their_twin(kernel, twin, rng):
    X, Z = histograms(rng, 12), histograms(rng, 7)
    np.testing.assert_allclose(kernel(X, Z), twin(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), twin(X, X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(twin(X, X)), rtol=1e-12)


def test_values_are_those_of_scikit_learn(rng):
    X, Z = histograms(rng, 12), histograms(rng, 7)
    for gamma in (0.01, 1.0, 3.0):
        np.testing.assert_allclose(mk.ChiSquared(gamma)(X, Z), chi2_kernel(X, Z, gamma), rtol=1e-13)
    np.testing.assert_allclose(chi_squared_distances(X, Z), -additive_chi2_kernel(X, Z))


def test_values_by_hand():
    x, z = [[1.0, 0.0, 3.0, 0.0]], [[3.0, 0.0, 3.0, 2.0]]
    # 4/4 + nothing + 0 + 2
    np.testing.assert_allclose(mk.ChiSquared(0.5)(x, z), np.exp([[-1.5]]))
    # 2*3/4 + nothing + 2*9/6 + 0
    np.testing.assert_allclose(mk.AdditiveChiSquared()(x, z), [[4.5]])
    assert mk.ChiSquared()([[0.0, 0.0]])[0, 0] == 1.0
    assert mk.AdditiveChiSquared()([[0.0, 0.0]])[0, 0] == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inputs_of_every_kind(kernel, rng):
    X, Z = histograms(rng, 12), histograms(rng, 7)
    want = kernel(X, Z)
    np.testing.assert_allclose(kernel(X.tolist(), Z.tolist()), want, rtol=1e-12)
    frames = (pd.DataFrame(A, columns=list("abcdef")) for A in (X, Z))
    np.testing.assert_allclose(kernel(*frames), want, rtol=1e-12)
    X.flags.writeable = False
    np.testing.assert_array_equal(kernel(X, Z), want)
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, rtol=1e-5, atol=1e-6)
    for other in (Z, sp.csr_matrix(Z), sp.csc_matrix(Z).tocsr()):
        np.testing.assert_allclose(kernel(sp.csr_matrix(X), other), want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(sp.csr_matrix(X)), kernel.diag(X), rtol=1e-12)
    assert kernel(X[:0], Z).shape == (0, 7) and kernel(sp.csr_matrix(X)[:0], Z).shape == (0, 7)
    np.testing.assert_allclose(np.diag(kernel(sp.csr_matrix(X))), kernel.diag(X), rtol=1e-15)


def test_sparse_rows_with_repeated_or_explicit_zero_entries(rng):
    dense = histograms(rng, 5)
    kernel = mk.ChiSquared(0.4)
    rows, columns = dense.nonzero()
    half = dense[rows, columns] / 2
    both = (np.concatenate([rows, rows]), np.concatenate([columns, columns]))
    doubled = sp.coo_matrix((np.concatenate([half, half]), both), shape=dense.shape)
    repeated = sp.csr_matrix(dense.shape)
    repeated.data, repeated.indices, repeated.indptr = _rows_of(doubled)
    np.testing.assert_allclose(kernel(repeated), kernel(dense), rtol=1e-12)
    stored = sp.csr_matrix(np.where(dense == 0, 9.0, dense))
    stored.data[stored.data == 9.0] = 0.0
    np.testing.assert_allclose(kernel(stored), kernel(dense), rtol=1e-12)


def _rows_of(entries):
    """CSR arrays of a COO matrix, its repeated entries kept and unsorted."""
    order = np.argsort(entries.row, kind="stable")
    starts = np.searchsorted(entries.row[order], np.arange(entries.shape[0] + 1))
    return entries.data[order], entries.col[order], starts


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(X=counts)
def test_symmetric_psd_and_diag(kernel, X):
    K = kernel(X)
    size = max(np.abs(K).max(), 1.0)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-12, atol=1e-13)
    assert np.all(K >= 0)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * size * len(K)


def test_what_is_known_of_them():
    assert mk.ChiSquared().is_psd and mk.AdditiveChiSquared().is_psd
    assert mk.ChiSquared().is_infinitely_divisible
    assert not mk.AdditiveChiSquared().is_infinitely_divisible
    assert repr(mk.ChiSquared(0.5, columns=[0, 2])) == "ChiSquared(gamma=0.5, columns=[0, 2])"
    assert repr(mk.AdditiveChiSquared()) == "AdditiveChiSquared()"
    assert mk.ChiSquared(0.5) != mk.Gaussian(0.5) and mk.ChiSquared(0.5) != mk.Laplacian(0.5)
    with pytest.raises(ValueError, match="ChiSquared: gamma must be a positive finite number"):
        mk.ChiSquared(0.0)


def test_powers_and_products_stay_in_the_family(rng):
    X = histograms(rng, 6)
    assert list(mk.powers([mk.ChiSquared(2.0)], [0.25, 3])) == [
        mk.ChiSquared(0.5),
        mk.ChiSquared(6.0),
    ]
    (product,) = mk.products([mk.ChiSquared(1.0), mk.ChiSquared(2.0)], repeated=False)
    assert product == mk.ChiSquared(3.0)
    (mixed,) = mk.products([mk.ChiSquared(1.0), mk.Gaussian(1.0)], repeated=False)
    np.testing.assert_allclose(mixed(X), mk.ChiSquared(1.0)(X) * mk.Gaussian(1.0)(X))
    np.testing.assert_allclose((mk.ChiSquared(2.0) ** 0.3)(X), mk.ChiSquared(0.6)(X), rtol=1e-13)


# -- negative values ------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("columns", "named"), [(None, "3"), ([1, 3], "3"), (slice(1, None), "3"), (-1, "-1")]
)
@pytest.mark.parametrize("kind", [mk.ChiSquared, mk.AdditiveChiSquared])
def test_a_negative_value_is_named(kind, columns, named, made):
    X = np.ones((5, 4))
    X[2, 3] = -0.25
    kernel = kind(columns=columns)
    with pytest.raises(ValueError) as caught:
        kernel(made(np.ones((2, 4))), made(X))
    message = str(caught.value)
    assert message.startswith(f"Kernel {kernel!r} needs non-negative values")
    assert f"column {named} of X holds -0.25 (row 2)" in message
    with pytest.raises(ValueError, match=r"holds -0\.25"):
        kernel.diag(made(X))
    assert kind(columns=[0, 1])(made(X)).shape == (5, 5)


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_estimators_name_it_too(made, rng):
    X, y = histograms(rng, 30), np.arange(30) % 2
    bank = [mk.ChiSquared(0.1), mk.ChiSquared(1.0)]
    bad = X.copy()
    bad[7, 1] = -3.0
    with pytest.raises(ValueError, match=r"Kernel ChiSquared .* column 1 of X holds -3 \(row 7\)"):
        mk.MultiKernelClassifier(bank).fit(made(bad), y)
    model = mk.MultiKernelClassifier(bank).fit(made(X), y)
    with pytest.raises(ValueError, match="column 1 of X holds -3"):
        model.predict(made(bad))
    # The column is not read by kernels that do not see it.
    mk.MultiKernelClassifier([mk.ChiSquared(columns=[0, 2])]).fit(made(bad), y)


# -- banks and estimators -------------------------------------------------------------------------


def test_banks_per_view_and_per_feature(rng):
    X, y = histograms(rng, 40), np.arange(40) % 2
    bank = mk.per_view({"counts": (mk.ChiSquared(0.2), [0, 1]), "rest": (mk.Linear(), [4, 5])})
    assert bank.names == ["counts: ChiSquared(gamma=0.2)", "rest: Linear()"]
    assert mk.MultiKernelClassifier(bank).fit(X, y).predict(X).shape == (40,)
    each = mk.per_feature(mk.ChiSquared(0.2), columns=[0, 1, 2])
    assert mk.MultiKernelClassifier(each, "uniform").fit(X, y).kernel_weights_.shape == (3,)


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", None])
def test_fits_are_those_of_the_matrices(made, normalize, rng):
    """Kernels by formula, and the same as given matrices, at old and new samples."""
    X = histograms(rng, 60)
    y = np.where(X[:, 0] > X[:, 1], 1, -1)
    bank = [mk.ChiSquared(0.1), mk.ChiSquared(2.0), mk.AdditiveChiSquared(columns=[0, 1])]
    matrices = mk.precomputed([kernel(X) for kernel in bank])
    ids = mk.sample_ids(60)
    rule = mk.LpNorm(1.5, tol=1e-8)
    keep = np.flatnonzero(X[:, :2].sum(axis=1) > 0)  # spherical normalisation divides by K(x, x)
    train, new = keep[:30], keep[30:]
    ours = mk.MultiKernelClassifier(bank, rule, normalize=normalize).fit(made(X)[train], y[train])
    given = mk.MultiKernelClassifier(matrices, rule, normalize=normalize).fit(ids[train], y[train])
    np.testing.assert_allclose(ours.kernel_weights_, given.kernel_weights_, rtol=1e-5)
    for some in (train, new):
        np.testing.assert_allclose(
            ours.decision_function(made(X)[some]), given.decision_function(ids[some]), atol=1e-6
        )


def test_their_diagonals_are_known_to_be_constant(rng):
    from multikernel.bounds.sample import has_constant_diagonal

    assert has_constant_diagonal(mk.ChiSquared(0.3) ** 0.5)
    assert not has_constant_diagonal(mk.AdditiveChiSquared())
