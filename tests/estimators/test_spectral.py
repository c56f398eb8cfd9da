"""The spectral classifier: transduction, labels, families, new points, messages."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import multikernel as mk
from multikernel.estimators.spectral import FAMILIES, SpectralKernelClassifier
from multikernel.solvers.spectral.problem import NotSeparableError
from multikernel.solvers.spectral.spectral_class import NegativeEigenvalueError

BANK = [mk.Gaussian(0.5), mk.Gaussian(5.0), mk.Linear()]


def model(family: str = "polynomial", **options) -> SpectralKernelClassifier:
    single = family in ("polynomial", "spectral")
    return SpectralKernelClassifier(mk.Gaussian(2.0) if single else BANK, family, **options)


@pytest.fixture(scope="module")
def moons() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_moons(90, noise=0.1, random_state=0)
    return X, y, np.arange(90) < 50


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("margin", ["1-norm", "2-norm", "hard"])
def test_every_family_learns_with_a_proof(moons, family, margin):
    X, y, known = moons
    one = model(family, C=10.0, margin=margin, tol=1e-3)
    found = one.transduce(X[known], y[known], X[~known])
    assert one.duality_gap_ <= 1e-3
    if family != "spectral":  # which overfits
        assert np.mean(found == y[~known]) >= 0.9
    assert one.kernel_weights_.sum() == pytest.approx(1.0)
    assert len(one.kernel_names_) == len(one.kernel_weights_)
    assert one.trace_ == 90.0
    assert one.bound_ == pytest.approx(np.sqrt(90.0) / (one.margin_ * 50))
    np.testing.assert_array_equal(one.transduction_[:50], y[known])
    np.testing.assert_array_equal(one.transduction_[50:], found)


@pytest.mark.parametrize("family", FAMILIES)
def test_prediction_continues_transduction(moons, family):
    """On the points of the fit the extension is the machine itself."""
    X, y, known = moons
    one = model(family, C=3.0)
    found = one.transduce(X[known], y[known], X[~known])
    np.testing.assert_array_equal(one.predict(X[~known]), found)
    shares = one.decision_function(X, split=True)
    whole = one.decision_function(X)
    np.testing.assert_allclose(shares.sum(axis=1) + one.intercept_, whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_with_unlabelled_points_is_transduction(moons, family):
    X, y, known = moons
    marked = np.where(known, y, -1)
    shuffled = np.random.default_rng(0).permutation(len(y))
    a, b = model(family), model(family).fit(X[shuffled], marked[shuffled])
    found = a.transduce(X[known], y[known], X[~known])
    back = np.empty(len(y), dtype=int)
    back[shuffled] = b.transduction_
    np.testing.assert_array_equal(back[~known], found)
    np.testing.assert_array_equal(back[known], y[known])
    np.testing.assert_allclose(a.objective_, b.objective_, rtol=2e-4)
    np.testing.assert_array_equal(b.classes_, [0, 1])
    assert set(shuffled[b.support_]) <= set(np.flatnonzero(known))


def test_the_convex_family_is_l1_norm_learning(moons):
    X, y, _ = moons
    ours = model("convex", tol=1e-7).fit(X, y)
    scales = ours.trace_ / np.array([np.trace(kernel(X)) for kernel in BANK])
    bank = [float(scale) * kernel for scale, kernel in zip(scales, BANK, strict=True)]
    theirs = mk.MultiKernelClassifier(
        bank, mk.L1(tol=1e-7), center=False, normalize=None, C=1.0
    ).fit(X, y)
    np.testing.assert_allclose(ours.objective_, theirs.objective_, rtol=1e-6)
    np.testing.assert_allclose(ours.kernel_weights_, theirs.kernel_weights_, atol=1e-3)
    new = X + 0.05
    np.testing.assert_allclose(
        ours.decision_function(new), theirs.decision_function(new), atol=1e-2
    )


@pytest.mark.parametrize(
    ("family", "solver"),
    [
        ("polynomial", "cutting_plane"),
        ("polynomial", "conic"),
        ("convex", "cutting_plane"),
        ("convex", "conic"),
        pytest.param("spectral", "gradient", marks=pytest.mark.slow),
        ("spectral", "conic"),
        ("linear", "conic"),
    ],
)
def test_solvers_agree(moons, family, solver):
    pytest.importorskip("clarabel")
    X, y, known = moons
    rows = np.r_[0:25, 50:65]
    part = X[rows], np.where(known, y, -1)[rows]
    auto = model(family, tol=1e-3).fit(*part)
    other = model(family, solver=solver, tol=1e-3).fit(*part)
    np.testing.assert_allclose(other.objective_, auto.objective_, rtol=2e-3)


def test_degree_one_is_the_kernel_alone(moons):
    X, y, _ = moons
    ours = model(degree=1).fit(X, y)
    theirs = mk.MultiKernelClassifier(mk.Gaussian(2.0), "uniform", center=False, normalize=None)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.fit(X, y).decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(ours.spectrum_, ours.eigenvalues_)


def test_the_order_is_kept_and_the_bound_shrinks_with_the_class(moons):
    X, y, known = moons
    marked = np.where(known, y, -1)
    alone = model(degree=1, margin="hard").fit(X, marked)
    poly = model(degree=4, margin="hard").fit(X, marked)
    free = model("spectral", margin="hard").fit(X, marked)
    assert free.bound_ < poly.bound_ <= alone.bound_ * (1 + 1e-4)
    assert np.all(np.diff(poly.spectrum_) <= 1e-12)
    assert np.any(np.diff(free.spectrum_) > 0)


def test_the_trace_scales_the_kernel_and_not_the_hard_margin_bound(moons):
    X, y, _ = moons
    one, other = (model(margin="hard", trace=c).fit(X, y) for c in (1.0, 1e3))
    assert one.bound_ == pytest.approx(other.bound_, rel=1e-3)
    assert other.spectrum_.sum() == pytest.approx(1e3)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("family", ["polynomial", "spectral", "convex"])
def test_alignment_as_the_criterion(moons, family):
    X, y, known = moons
    marked = np.where(known, y, -1)
    aligned = model(family, criterion="alignment").fit(X, marked)
    margin = model(family).fit(X, marked)
    assert aligned.optimality_ <= 1e-8
    assert aligned.duality_gap_ <= 1e-6
    assert aligned.alignment_ >= margin.alignment_ - 1e-9
    assert margin.objective_ <= aligned.objective_ * (1 + 1e-4)


def test_more_classes(moons):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rng = np.random.default_rng(0)
    marked = np.where(rng.uniform(size=len(y)) < 0.5, y, -1)
    for family in FAMILIES:
        one = SpectralKernelClassifier(
            mk.Gaussian(0.3) if family in ("polynomial", "spectral") else BANK, family, C=10.0
        ).fit(X, marked)
        p = len(one.kernel_names_)
        assert one.kernel_weights_.shape == (3, p)
        assert one.margin_.shape == one.bound_.shape == one.alignment_.shape == (3,)
        assert one.decision_function(X).shape == (150, 3)
        hidden = marked == -1
        np.testing.assert_array_equal(one.predict(X[hidden]), one.transduction_[hidden])
        if family != "spectral":
            assert np.mean(one.transduction_[hidden] == y[hidden]) > 0.9


def test_names_as_labels_sparse_points_and_pickles(moons):
    X, y, known = moons
    names = np.array(["moon", "other"])[y]
    one = model("convex")
    found = one.transduce(X[known], names[known], X[~known])
    assert set(found) <= {"moon", "other"}
    sparse = model("convex").transduce(sp.csr_matrix(X[known]), names[known], X[~known])
    np.testing.assert_array_equal(found, sparse)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_matrices_that_are_given(moons):
    X, y, known = moons
    matrices = [kernel(X) for kernel in BANK]
    ids = mk.sample_ids(len(y))
    marked = np.where(known, y, -1)
    given = SpectralKernelClassifier(mk.precomputed(matrices), "convex").fit(ids, marked)
    usual = model("convex").fit(X, marked)
    np.testing.assert_allclose(given.kernel_weights_, usual.kernel_weights_, atol=1e-6)


def test_the_engine_is_that_of_the_last_fit(moons):
    X, y, _ = moons
    found = model().fit(X, y)
    assert found.engine_ == "cpu"


def test_named_columns_are_scaled(moons):
    X, y, _ = moons
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = mk.Gaussian(0.5, columns=["a", "b"], scaling="standard")
    found = SpectralKernelClassifier(named).fit(frame, y)
    same = SpectralKernelClassifier(mk.Gaussian(0.5, scaling="standard")).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(frame), same.decision_function(X), atol=1e-10
    )


def test_the_default_kernel_serves_in_cross_validation():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(SpectralKernelClassifier(), X, y, cv=3).mean() > 0.9


# -- messages --------------------------------------------------------------------------------------


def test_minus_one_and_one_are_refused_and_told_where_to_go(moons):
    X, y, known = moons
    signs = 2 * y - 1
    with pytest.raises(ValueError, match=r"-1 marks an unlabelled sample.*transduce"):
        model().fit(X, signs)
    found = model().transduce(X[known], signs[known], X[~known])
    assert set(found) <= {-1, 1}
    with pytest.raises(ValueError, match="all of y is -1"):
        model().fit(X, np.full(len(y), -1))
    with pytest.raises(ValueError, match="only one class"):
        model().fit(X, np.where(y == 1, 3, -1))


def test_families_and_their_kernels(moons):
    X, y, _ = moons
    with pytest.raises(ValueError, match=r"single kernel; got 3.*family='convex'"):
        SpectralKernelClassifier(BANK).fit(X, y)
    with pytest.raises(TypeError, match=r"mk.precomputed\(matrices\)"):
        SpectralKernelClassifier("precomputed").fit(X, y)
    with pytest.raises(ValueError, match=r"Use 'auto' or one of \['cutting_plane', 'conic'\]"):
        model("linear", solver="gradient").fit(X, y)
    with pytest.raises(ValueError, match="does not solve family='spectral' with margin='2-norm'"):
        model("spectral", margin="2-norm", solver="lp").fit(X, y)
    with pytest.raises(ValueError, match=r"AlignF\(signed=True\)"):
        model("linear", criterion="alignment").fit(X, y)
    with pytest.raises(NegativeEigenvalueError, match=r"Sigmoid.*not positive semidefinite"):
        SpectralKernelClassifier(mk.Sigmoid(5.0, -1.0) + mk.Linear()).fit(X, y)
    with pytest.raises(ValueError, match=r"Kernel 'Linear.*has trace 0"):
        SpectralKernelClassifier([mk.Gaussian(1.0), mk.Linear(columns=[2])], "convex").fit(
            np.column_stack([X, np.zeros(len(X))]), y
        )


def test_points_that_cannot_be_separated(moons):
    X, y, _ = moons
    for family, criterion in (("polynomial", "margin"), ("convex", "alignment")):
        with pytest.raises(NotSeparableError, match="margin='hard' requires it"):
            one = model(family, criterion=criterion, margin="hard")
            one.fit(np.vstack([X, X[:1]]), np.append(y, 1 - y[0]))


def test_what_does_not_converge_says_so(moons):
    X, y, known = moons
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol"):
        model("convex", C=100.0, max_iter=1, tol=1e-6).fit(X, np.where(known, y, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model("convex", C=100.0, tol=1e-6).fit(X, np.where(known, y, -1))


def test_bounds_for_kernels_named_before_the_sample_are_not_claimed(moons):
    X, y, _ = moons
    with pytest.raises(TypeError, match="transductive_bound"):
        model().fit(X, y).certificate(X, y)


def test_too_many_points_for_the_memory(moons):
    X, y, _ = moons
    with pytest.raises(MemoryError, match="leave out some of the unlabelled samples"):
        model(memory_budget=50_000).fit(X, y)
