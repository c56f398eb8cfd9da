"""ConsensusKernel: a learned kernel without labels, and its principal components."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import multikernel as mk
from multikernel.cli.problem import as_table_model
from multikernel.tables import DataError, Frame

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
BANK = mk.gaussians([0.02, 0.2])
RULES = ("uniform", "statis", "full-neighbours", "sparse-neighbours")


def learned_matrix(model, A, B, train):
    """``sum_k mu_k K_k`` of the wine bank, unit variance on the training sample, not centred."""
    total = 0.0
    for gamma, weight in zip((0.02, 0.2), model.kernel_weights_, strict=True):
        variance = np.trace(mk.center(rbf_kernel(train, gamma=gamma))) / len(train)
        total = total + weight / variance * rbf_kernel(A, B, gamma=gamma)
    return total


@pytest.mark.parametrize("rule", RULES)
def test_coordinates_are_those_of_kernel_pca(rule):
    train, new = X[::2], X[1::2]
    model = mk.ConsensusKernel(BANK, rule, n_components=3)
    Z = model.fit_transform(train)
    oracle = KernelPCA(3, kernel="precomputed").fit(learned_matrix(model, train, train, train))
    assert_allclose(model.eigenvalues_, oracle.eigenvalues_, rtol=1e-9)
    expected = oracle.transform(learned_matrix(model, train, train, train))
    assert_allclose(Z, expected, atol=1e-8)
    out_of_sample = oracle.transform(learned_matrix(model, new, train, train))
    assert_allclose(model.transform(new), out_of_sample, atol=1e-8)
    assert_allclose(model.kernel_weights_.sum(), 1.0)
    assert np.all(model.kernel_weights_ >= 0)
    assert 0 < model.explained_variance_ratio_.sum() < 1
    assert model.optimality_ < 1e-7


def test_one_linear_kernel_is_pca():
    model = mk.ConsensusKernel([mk.Linear()], n_components=2, normalize=None).fit(X)
    oracle = PCA(2).fit(X)
    Z = model.transform(X)
    assert_allclose(np.abs(Z), np.abs(oracle.transform(X)), atol=1e-9)
    assert_allclose(model.explained_variance_ratio_, oracle.explained_variance_ratio_)
    assert_allclose(model.kernel_weights_, [1.0])


def test_spherical_kernels_are_centred_again():
    model = mk.ConsensusKernel(BANK, normalize="spherical", n_components=4).fit(X)
    Z = model.transform(X)
    assert_allclose(Z.mean(axis=0), 0.0, atol=1e-10)
    assert_allclose((Z**2).sum(axis=0), model.eigenvalues_, rtol=1e-9)


def test_all_components():
    model = mk.ConsensusKernel(BANK, n_components=None).fit(X)
    Z = model.transform(X)
    assert Z.shape == (len(X), len(X) - 1)
    K = mk.center(learned_matrix(model, X, X, X))
    assert_allclose(Z @ Z.T, K, atol=1e-10)
    assert_allclose(model.explained_variance_ratio_.sum(), 1.0)


def test_signs_do_not_depend_on_the_solver_or_the_run():
    first = mk.ConsensusKernel(BANK).fit_transform(X)
    again = mk.ConsensusKernel(BANK, n_components=30).fit_transform(X)
    assert_allclose(first, again[:, :2], atol=1e-8)


def test_given_matrices_sequences_and_sparse_input():
    K = [rbf_kernel(X, gamma=g) for g in (0.02, 0.2)]
    expected = mk.ConsensusKernel(BANK).fit_transform(X)
    ids = mk.sample_ids(len(X))
    assert_allclose(mk.ConsensusKernel(mk.precomputed(K)).fit_transform(ids), expected, atol=1e-8)
    array = np.stack(K, axis=-1)
    model = mk.ConsensusKernel("precomputed").fit(array)
    assert_allclose(model.transform(array), expected, atol=1e-8)
    assert_allclose(mk.ConsensusKernel(BANK).fit_transform(sp.csr_matrix(X)), expected, atol=1e-8)
    words = np.array(["ACGT", "ACGG", "TTTA", "TTAA", "CCGT", "ACCT"])
    bank = [mk.Spectrum(2), mk.EditSimilarity()]
    assert mk.ConsensusKernel(bank).fit_transform(words).shape == (6, 2)


def test_names_and_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = mk.ConsensusKernel(BANK).set_output(transform="pandas").fit(frame)
    Z = model.transform(frame)
    assert list(Z.columns) == ["consensuskernel0", "consensuskernel1"]
    assert list(model.get_feature_names_out()) == list(Z.columns)
    assert_allclose(Z.to_numpy(), mk.ConsensusKernel(BANK).fit_transform(X))


def test_in_a_pipeline_and_a_search():
    pipeline = make_pipeline(mk.ConsensusKernel(BANK), LogisticRegression())
    grid = {
        "consensuskernel__n_components": [1, 4],
        "consensuskernel__weighting": ["uniform", mk.SparseNeighbours(3)],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["consensuskernel__n_components"] == 4
    assert search.score(X, y) > 0.95
    assert_allclose(clone(search.best_estimator_[0]).n_components, 4)


@pytest.mark.parametrize("rule", RULES)
def test_files(rule, tmp_path):
    model = mk.ConsensusKernel(BANK, rule).fit(X)
    loaded = mk.load(mk.save(model, tmp_path / "m.skops"))
    assert_allclose(loaded.transform(X), model.transform(X), rtol=1e-12)
    assert loaded.get_params()["weighting"] == rule
    assert_allclose(loaded.eigenvalues_, model.eigenvalues_)


# -- bad input ------------------------------------------------------------------------------------


def test_more_components_than_samples():
    with pytest.raises(ValueError, match="n_components=200 must not exceed the number of samples"):
        mk.ConsensusKernel(BANK, n_components=200).fit(X)


def test_more_components_than_the_kernel_has():
    with pytest.warns(UserWarning, match="rank of the learned kernel on this sample is 2"):
        model = mk.ConsensusKernel([mk.Linear()], n_components=4).fit(X[:, :2])
    Z = model.transform(X[:, :2])
    assert Z.shape == (len(X), 4) and np.all(Z[:, 2:] == 0) and np.all(model.eigenvalues_[2:] == 0)
    assert (
        mk.ConsensusKernel([mk.Linear()], n_components=None).fit_transform(X[:, :2]).shape[1] == 2
    )


@pytest.mark.parametrize("weighting", ["alignf", "lp", mk.BestSingle(), "loo"])
def test_rules_that_need_targets(weighting):
    with pytest.raises(ValueError, match="needs targets, and ConsensusKernel has none"):
        mk.ConsensusKernel(BANK, weighting).fit(X)


def test_bad_data():
    with pytest.raises(ValueError, match="Every kernel is constant"):
        mk.ConsensusKernel(BANK).fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="NaN"):
        mk.ConsensusKernel(BANK).fit(np.array([[1.0], [np.nan], [2.0]]))
    with pytest.raises(ValueError, match="at least 2 samples"):
        mk.ConsensusKernel(BANK).fit(X[:1])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        mk.ConsensusKernel([mk.Sigmoid(2.0, 1.0)], normalize=None).fit(X)
    with pytest.raises(ValueError, match="is not known"):
        mk.ConsensusKernel(BANK, "statiss").fit(X)
    with pytest.raises(TypeError, match="ConsensusKernel makes none"):
        mk.ConsensusKernel(BANK).fit(X).certificate(X)


def test_one_constant_kernel_is_left_out():
    matrices = mk.precomputed([X @ X.T, np.ones((len(X), len(X)))])
    for rule in RULES:
        with pytest.warns(UserWarning, match="1 of 2 kernels are constant"):
            model = mk.ConsensusKernel(matrices, rule).fit(mk.sample_ids(len(X)))
        assert_allclose(model.kernel_weights_, [1.0, 0.0])


def test_a_report_needs_predictions(tmp_path):
    iris, kinds = load_iris(return_X_y=True)
    model = mk.ConsensusKernel().fit(iris)
    with pytest.raises(TypeError, match="whose predictions can be compared with targets"):
        mk.report.write_report(model, iris, kinds, tmp_path / "r.html")
    with pytest.raises(TypeError, match="without iterating"):
        mk.plot.convergence(model)
    assert mk.plot.weights(model).has_data() and mk.plot.alignments(model, iris).has_data()
    with pytest.raises(DataError, match="ConsensusKernel, which predicts no target"):
        as_table_model(model, Frame.of({"a": [1.0]}), None)


@pytest.mark.parametrize(
    "model",
    [
        mk.ConsensusKernel(BANK),
        mk.KernelClustering(2, BANK),
        mk.KernelFeatures(n_components=3),
        mk.MultiKernelOneClass(BANK),
    ],
    ids=lambda model: type(model).__name__,
)
def test_attributes_and_tables_of_weights_can_be_listed(model):
    model.fit(X)
    assert "kernel_weights_" in dir(model)
    assert "kernels in use" in model._repr_mimebundle_()["text/html"]
