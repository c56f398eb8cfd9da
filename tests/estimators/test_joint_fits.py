"""Joint learning through the estimators: other losses, one class, separate weights, interrupts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import multikernel as mk
from multikernel.learners.svm import SVM
from tests.weighting.test_blocknorm import golden

RAW = {"center": False, "normalize": None}
INF = float("inf")
TIGHT = {"tol": 1e-8, "max_iter": 3000}


@pytest.mark.parametrize(
    ("p", "optimum"),
    [
        (1, 3.287636969),
        (4 / 3, 2.584708882),
        (2, 1.996477999),
        (4, 1.400523190),
        (INF, 0.876921020),
    ],
)
def test_support_vector_regression(p, optimum):
    matrices, _, target = golden()
    rule = mk.LpNorm(p, **TIGHT)
    model = mk.MultiKernelRegressor(
        mk.precomputed(matrices), rule, loss="epsilon_insensitive", epsilon=0.1, **RAW
    ).fit(mk.sample_ids(16), target)
    np.testing.assert_allclose(model.objective_, optimum, rtol=1e-7)


def test_support_vector_regression_equals_sklearn(rng):
    from sklearn.svm import SVR

    X = rng.standard_normal((80, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80) + 100.0
    model = mk.MultiKernelRegressor(
        [mk.Gaussian(0.5)], "uniform", alpha=0.2, loss="epsilon_insensitive", **RAW
    ).fit(X, y)
    plain = SVR(kernel="rbf", gamma=0.5, C=5.0, epsilon=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-4)
    assert model.duality_gap_ < 1e-10


@pytest.mark.parametrize("p", [1, 4 / 3, 2, 4])
def test_one_class_is_certified_and_bounded(p):
    """The gap by hand, and what nu promises about the sample."""
    matrices, _, _ = golden()
    rule = mk.LpNorm(p, tol=1e-6, max_iter=3000)
    model = mk.MultiKernelOneClass(mk.precomputed(matrices), rule, nu=0.3, **RAW)
    model.fit(mk.sample_ids(16))
    assert model.duality_gap_ <= 1e-6
    s = np.zeros(16)
    s[model.support_] = model.dual_coef_[:, 0]
    np.testing.assert_allclose(s.sum(), 1.0)
    assert np.all(s >= 0) and np.all(s <= 1 / (0.3 * 16) + 1e-12)
    inside = model.decision_function(mk.sample_ids(16))
    assert np.sum(inside < -1e-7) <= 0.3 * 16 <= len(model.support_)
    # At p = 1 the one kernel with the largest form decides: the dual value is -max_k a_k / 2.
    a = np.array([s @ K @ s for K in matrices])
    if p == 1:
        np.testing.assert_allclose(model.objective_, -a.max() / 2, rtol=1e-5)


def test_one_class_equals_sklearn(rng):
    from sklearn.svm import OneClassSVM

    X = rng.standard_normal((60, 2))
    ours = mk.MultiKernelOneClass([mk.Gaussian(0.5)], "uniform", nu=0.2, **RAW).fit(X)
    plain = OneClassSVM(kernel="rbf", gamma=0.5, nu=0.2, tol=1e-9).fit(X)
    new = rng.standard_normal((30, 2)) * 2
    theirs = plain.decision_function(new) / (0.2 * 60)
    np.testing.assert_allclose(ours.decision_function(new), theirs, atol=1e-6)


def test_one_class_refuses_rules_that_need_labels():
    X = load_wine().data
    for rule in ("align", "alignf", "best", mk.AlignmentRegularized()):
        with pytest.raises(ValueError, match="needs targets, and"):
            mk.MultiKernelOneClass(weighting=rule).fit(X)


def test_logistic_regression_equals_sklearn(rng):
    from sklearn.linear_model import LogisticRegression

    X = rng.standard_normal((100, 3))
    y = (X[:, 0] + 0.5 * rng.standard_normal(100) > 0).astype(int)
    for free in (True, False):
        ours = mk.MultiKernelClassifier(
            [mk.Linear()], "uniform", C=0.7, loss="logistic", fit_intercept=free, **RAW
        ).fit(X, y)
        plain = LogisticRegression(C=0.7, fit_intercept=free, tol=1e-12, max_iter=10000).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-5)
        assert ours.duality_gap_ < 1e-9


@pytest.mark.parametrize("p", [1.2, 2, 4])
def test_logistic_loss_with_learned_weights(p):
    matrices, y, _ = golden()
    model = mk.MultiKernelClassifier(
        mk.precomputed(matrices), mk.LpNorm(p, **TIGHT), loss="logistic", **RAW
    ).fit(mk.sample_ids(16), y)
    assert model.duality_gap_ <= 1e-8


def test_svm_without_intercept(rng):
    """Optimality conditions of a machine through the origin."""
    X = rng.standard_normal((50, 3)) + 0.5
    y = np.where(X[:, 0] > 0.5, 1, -1)
    model = mk.MultiKernelClassifier([mk.Gaussian(0.3)], "uniform", fit_intercept=False, **RAW)
    model.fit(X, y)
    np.testing.assert_array_equal(model.intercept_, [0.0])
    s = np.zeros(50)
    s[model.support_] = model.dual_coef_[:, 0]
    margin = y * (mk.Gaussian(0.3)(X) @ s)
    alpha = s * y
    np.testing.assert_allclose(margin[(alpha > 1e-9) & (alpha < 1 - 1e-9)], 1.0, atol=1e-8)
    assert np.all(margin[alpha <= 1e-9] >= 1 - 1e-8)
    assert np.all(margin[alpha >= 1 - 1e-9] <= 1 + 1e-8)
    assert model.duality_gap_ < 1e-9


def test_weights_of_its_own_for_each_class():
    X, y = load_iris(return_X_y=True)
    model = mk.MultiKernelClassifier(weighting="lp", multiclass="per_class").fit(X, y)
    assert model.kernel_weights_.shape == (3, 13)
    assert model.alignment_.shape == (3,)
    for j in range(3):
        alone = mk.MultiKernelClassifier(weighting="lp").fit(X, y == j)
        np.testing.assert_allclose(model.kernel_weights_[j], alone.kernel_weights_, rtol=1e-6)
        np.testing.assert_allclose(
            model.decision_function(X)[:, j], alone.decision_function(X), atol=1e-6
        )
    shares = model.decision_function(X, split=True)
    np.testing.assert_allclose(
        shares.sum(axis=1) + model.intercept_, model.decision_function(X), atol=1e-10
    )


def test_an_interrupt_leaves_the_best_iterate(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    calls = {"n": 0}
    fit = SVM.fit

    def interrupted(self, gram, target, *, start=None):
        calls["n"] += 1
        if calls["n"] == 4:
            raise KeyboardInterrupt
        return fit(self, gram, target, start=start)

    monkeypatch.setattr(SVM, "fit", interrupted)
    model = mk.MultiKernelClassifier(weighting=mk.LpNorm(1.1, tol=1e-9), warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(model.history_) == 3
    assert model.duality_gap_ == min(entry["gap"] for entry in model.history_)
    assert model.score(X, y) > 0.9
    cold = mk.MultiKernelClassifier(weighting=mk.LpNorm(1.1, tol=1e-9))
    calls["n"] = 0
    with pytest.raises(KeyboardInterrupt):
        cold.fit(X, y)
    assert not hasattr(cold, "kernel_weights_")


def test_a_warm_start_begins_near_the_last_weights():
    X, y = load_breast_cancer(return_X_y=True)
    model = mk.MultiKernelClassifier(weighting=mk.LpNorm(1.1, tol=1e-6), warm_start=True)
    first = model.fit(X, y).n_iter_
    model.set_params(C=1.1)
    again = model.fit(X, y)
    cold = mk.MultiKernelClassifier(weighting=mk.LpNorm(1.1, tol=1e-6), C=1.1).fit(X, y)
    np.testing.assert_allclose(again.objective_, cold.objective_, rtol=1e-5)
    assert again.n_iter_ <= min(first, cold.n_iter_)


def test_progress_is_shown(capsys):
    X, y = load_iris(return_X_y=True)
    mk.MultiKernelClassifier(weighting="lp", verbose=1).fit(X, y)
    shown = capsys.readouterr().out
    assert "gap" in shown and "kernels" in shown and "support" in shown


def test_search_walks_joint_rules(rng):
    """Every score of a joint rule is that of a fit by hand on the training part."""
    X, y = load_iris(return_X_y=True)
    rules = [mk.LpNorm(1.5, tol=1e-7), mk.LpNorm(3, tol=1e-7)]
    bank = mk.gaussians([0.1, 1.0])
    search = mk.MultiKernelClassifierCV(bank, rules, Cs=[0.5, 5.0], cv=3).fit(X, y)
    from sklearn.model_selection import StratifiedKFold

    for k, (rule, C) in enumerate((r, c) for r in rules for c in (0.5, 5.0)):
        for f, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            model = mk.MultiKernelClassifier(bank, rule, C).fit(X[train], y[train])
            found = search.cv_results_[f"split{f}_test_score"][k]
            np.testing.assert_allclose(found, model.score(X[test], y[test]))
