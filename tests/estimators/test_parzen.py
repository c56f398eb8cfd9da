"""ParzenClassifier and ParzenRegressor: the averages written out, and the theorems about them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

import multikernel as mk
from multikernel.bounds import (
    alignment_predictor,
    good_classifier,
    good_classifier_unnormalised,
    good_regressor,
)
from tests.estimators.cases import BANKS, NORMALIZATIONS, WEIGHTINGS, iris, waves

BANK = mk.gaussians([0.1, 1.0]) + mk.KernelBank([mk.Linear()])
FORMS = ("g", "h", "h_S")


def labelled(seed=0, n=40, share=0.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * y
    return X, y


def prepared(bank, X, normalize="multiplicative"):
    return [mk.normalize(mk.center(kernel(X)), normalize) for kernel in bank]


def combined(model, bank, X):
    """The learned kernel as a matrix, from the plain functions."""
    return np.tensordot(model.kernel_weights_, prepared(bank, X), axes=1)


def written_out(kernel_weights, bank, X, y, new, form, omega=None):
    """The averages over the training sample at new samples, one kernel after the other."""
    omega = np.ones(len(X)) if omega is None else omega
    share = omega / omega.sum()
    K, Knew = np.zeros((len(X), len(X))), np.zeros((len(new), len(X)))
    for weight, kernel in zip(kernel_weights, bank, strict=True):
        k, k_new = kernel(X), kernel(new, X)
        means, grand = k @ share, share @ k @ share
        centred = k - means[:, None] - means + grand
        size = share @ np.diag(centred)  # the variance in feature space
        K += weight * centred / size
        Knew += weight * (k_new - (k_new @ share)[:, None] - means + grand) / size
    values = Knew @ (share * y)
    if form == "g":
        return values
    values = values / np.sqrt(share @ K**2 @ share)
    return values if form == "h" else values / (share @ y**2 - (share @ y) ** 2)


# -- what they predict ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_decisions_are_the_averages(form, share):
    X, y = labelled(share=share)
    new, _ = labelled(seed=1)
    model = mk.ParzenClassifier(BANK, "align", form).fit(X, y)
    for points in (X, new):
        want = written_out(model.kernel_weights_, BANK, X, y, points, form)
        assert_allclose(model.decision_function(points), want, rtol=1e-9, atol=1e-12)
        assert np.array_equal(model.predict(points), np.where(want > 0, 1, -1))
    exact = alignment_predictor(combined(model, BANK, X), y)
    want = {"g": exact.g, "h": exact.h, "h_S": exact.h / exact.variance}[form]
    assert_allclose(model.decision_function(X), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_predictions_are_the_averages(form, fit_intercept):
    X, y = waves()
    y = y + 5.0
    new, _ = waves(seed=4)
    model = mk.ParzenRegressor(BANK, "alignf", form, fit_intercept=fit_intercept).fit(X, y)
    want = written_out(model.kernel_weights_, BANK, X, y, new, form)
    want = want + y.mean() if fit_intercept else want
    assert_allclose(model.predict(new), want, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_every_engine_and_normalisation(bank, normalize):
    """The mean of y h over the sample is alignment times variance: no kernel is needed to check."""
    X, y = iris(classes=2)
    signs = np.where(y == 1, 1.0, -1.0)
    model = mk.ParzenClassifier(BANKS[bank], normalize=normalize).fit(X, y)
    mean = np.mean(signs * model.decision_function(X))
    assert mean == pytest.approx(model.alignment_ * signs.var(), rel=1e-6)


@pytest.mark.parametrize("rule", WEIGHTINGS)
def test_weights_are_those_of_the_rule(rule):
    X, y = iris()
    weighting = WEIGHTINGS[rule]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The signed combination")
        model = mk.ParzenClassifier(BANK, weighting).fit(X, y)
        other = mk.MultiKernelClassifier(BANK, weighting).fit(X, y)
    if rule == "best":  # chosen with the predictor at hand
        assert sorted(model.kernel_weights_.tolist()) == [0.0, 0.0, 1.0]
        return
    assert_allclose(model.kernel_weights_, other.kernel_weights_)
    assert model.alignment_ == pytest.approx(other.alignment_)
    assert_allclose(model.kernel_alignments_, other.kernel_alignments_)


def test_single_features_by_their_correlation():
    X, y = waves()
    model = mk.ParzenRegressor(mk.per_feature(mk.Linear()), "correlation").fit(X, y)
    want = [abs(np.corrcoef(x, y)[0, 1]) for x in X.T]
    assert_allclose(model.kernel_weights_, want / np.sum(want))


@pytest.mark.parametrize("form", FORMS)
def test_classes_against_the_rest(form):
    X, y = iris()
    model = mk.ParzenClassifier(BANK, form=form).fit(X, y)
    decisions = model.decision_function(X)
    for j, name in enumerate(model.classes_):
        signs = np.where(y == name, 1.0, -1.0)
        want = written_out(model.kernel_weights_, BANK, X, signs, X, form)
        assert_allclose(decisions[:, j], want, rtol=1e-8, atol=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[np.argmax(decisions, axis=1)])
    assert model.score(X, y) > 0.8


def test_rare_classes_have_a_chance_with_h_S():
    """Class means, up to factors 1 / (1 - share) that are near one; h multiplies by the share."""
    rng = np.random.default_rng(0)
    sizes = [60, 30, 6]
    y = np.repeat([0, 1, 2], sizes)
    X = rng.normal(size=(len(y), 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y]
    found = {}
    for form in FORMS:
        model = mk.ParzenClassifier(mk.gaussians([0.5]), form=form).fit(X, y)
        found[form] = np.mean(model.predict(X)[y == 2] == 2)
    assert found["h_S"] > 0.8 > found["h"] == found["g"]


@pytest.mark.parametrize("form", FORMS)
def test_sample_weights_are_repetitions(form):
    X, y = labelled(share=0.3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    weighted = mk.ParzenClassifier(BANK, form=form).fit(X, y, sample_weight=times)
    often = mk.ParzenClassifier(BANK, form=form).fit(X[rows], y[rows])
    assert_allclose(weighted.kernel_weights_, often.kernel_weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(weighted.decision_function(X), often.decision_function(X), rtol=1e-8)


def test_the_unit_of_h_is_that_of_the_targets():
    X, y = waves()
    model = mk.ParzenRegressor(BANK).fit(X, y)
    moved = mk.ParzenRegressor(BANK).fit(X, 7.0 * y - 3.0)
    assert_allclose(moved.predict(X), 7.0 * model.predict(X) - 3.0, rtol=1e-9)
    smaller = mk.ParzenRegressor(BANK, form="h_S", fit_intercept=False).fit(X, 7.0 * y)
    same = mk.ParzenRegressor(BANK, form="h_S", fit_intercept=False).fit(X, y)
    assert_allclose(7.0 * smaller.predict(X), same.predict(X), rtol=1e-9)


def test_several_outputs():
    X, Y = waves(outputs=3)
    together = mk.ParzenRegressor(BANK, "uniform").fit(X, Y)
    for j in range(3):
        alone = mk.ParzenRegressor(BANK, "uniform").fit(X, Y[:, j])
        assert_allclose(together.predict(X)[:, j], alone.predict(X), rtol=1e-9, atol=1e-12)
    assert_allclose(together.predict(X).mean(axis=0), Y.mean(axis=0), atol=1e-10)


def test_shares_add_up():
    X, y = iris()
    model = mk.ParzenClassifier(BANK).fit(X, y)
    shares = model.decision_function(X, split=True)
    assert_allclose(shares.sum(axis=1) + model.intercept_, model.decision_function(X), atol=1e-12)
    Z, t = waves()
    model = mk.ParzenRegressor(BANK).fit(Z, t)
    shares = model.predict(Z, split=True)
    assert_allclose(shares.sum(axis=1) + model.intercept_, model.predict(Z), rtol=1e-9)


# -- theorems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_theorems_hold_on_the_sample(seed):
    """Theorems 13 to 15 with the sample as the distribution."""
    X, y = labelled(seed, n=10 + 3 * seed, share=0.2 + 0.06 * seed)
    model = mk.ParzenClassifier(BANK).fit(X, y)
    found = alignment_predictor(combined(model, BANK, X), y)
    assert found.rho == pytest.approx(model.alignment_, rel=1e-8)
    error = np.mean(y * model.decision_function(X) < 0)
    assert error <= good_classifier(found.rho, found.Gamma, found.variance) + 1e-12
    assert error <= good_classifier_unnormalised(found.rho_u, found.R2) + 1e-12
    Z, t = waves(seed=seed)
    t = (t - t.mean()) / t.std()
    regressor = mk.ParzenRegressor(BANK).fit(Z, t)
    squared = np.mean((t - regressor.predict(Z)) ** 2)
    assert squared <= good_regressor(regressor.alignment_) + 1e-12


def test_what_the_objective_says():
    X, y = labelled(share=0.3)
    for form, factor in (("h", y.var()), ("h_S", 1.0)):
        model = mk.ParzenClassifier(BANK, form=form).fit(X, y)
        assert model.objective_ == pytest.approx(-factor * model.alignment_, rel=1e-8)
        assert model.duality_gap_ == 0.0 and model.history_ == [] and model.n_iter_ == 0
        assert_allclose(model.intercept_, 0.0, atol=1e-12)
    g = mk.ParzenClassifier(BANK, form="g").fit(X, y)
    unnormalised = mk.unnormalized_alignment(combined(g, BANK, X), np.outer(y, y))
    assert g.objective_ == pytest.approx(-unnormalised, rel=1e-8)


def test_the_target_kernel_predicts_perfectly():
    """Equality in all theorems: K = yy', balanced."""
    y = np.array([1, 1, -1, -1])
    model = mk.ParzenClassifier([mk.Linear()]).fit(y[:, None], y)
    assert model.alignment_ == pytest.approx(1.0)
    assert_allclose(model.decision_function(y[:, None]), y, atol=1e-12)
    regressor = mk.ParzenRegressor([mk.Linear()]).fit(y[:, None], y.astype(float))
    assert_allclose(regressor.predict(y[:, None]), y, atol=1e-12)


def test_a_certificate_is_computed():
    X, y = labelled(n=60)
    found = mk.ParzenClassifier(mk.gaussians([0.1, 1.0])).fit(X, y).certificate(X, y)
    assert found.machines and found.n_samples == 60
    Z, t = waves()
    found = mk.ParzenRegressor(mk.gaussians([0.1, 1.0])).fit(Z, t).certificate(Z, t)
    assert found.machines and found.duality_gap == 0.0


# -- as estimators --------------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", [mk.ParzenClassifier, mk.ParzenRegressor])
@pytest.mark.parametrize("rule", ["lp", "l1", "l2-ball", mk.AlignmentRegularized()], ids=str)
def test_joint_rules_are_refused(Estimator, rule):
    X, y = iris()
    with pytest.raises(ValueError, match=r"does not train its predictor.*'alignf'"):
        Estimator(BANK, rule).fit(X, y)


@pytest.mark.parametrize("Estimator", [mk.ParzenClassifier, mk.ParzenRegressor])
def test_wrong_parameters_are_named(Estimator):
    X, y = iris()
    with pytest.raises(ValueError, match=r"'form' parameter.*must be a str among"):
        Estimator(BANK, form="k").fit(X, y)
    with pytest.raises(ValueError, match=r"weighting='align_f' is not known.*'alignf'"):
        Estimator(BANK, "align_f").fit(X, y)
    with pytest.raises(ValueError, match="'normalize' parameter"):
        Estimator(BANK, normalize="unit").fit(X, y)
    with pytest.raises(ValueError, match="Every kernel is constant"):
        Estimator(BANK).fit(np.ones_like(X), y)


def test_targets_without_information():
    X, y = iris()
    with pytest.raises(ValueError, match="at least 2 classes"):
        mk.ParzenClassifier(BANK).fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="y is constant"):
        mk.ParzenRegressor(BANK).fit(X, np.zeros(len(y)))
    Y = np.column_stack([y, np.full(len(y), 2.0)])
    assert_allclose(mk.ParzenRegressor(BANK).fit(X, Y).predict(X)[:, 1], 2.0)
    with pytest.raises(ValueError, match=r"target is constant.*form='g'"):
        mk.ParzenRegressor(BANK, form="h_S").fit(X, Y)


def test_given_matrices_and_searches():
    X, y = iris()
    K = np.stack([kernel(X) for kernel in BANK], axis=-1)
    given = mk.ParzenClassifier("precomputed").fit(K, y)
    model = mk.ParzenClassifier(BANK).fit(X, y)
    assert_allclose(given.decision_function(K), model.decision_function(X), rtol=1e-6, atol=1e-9)
    grid = {"form": list(FORMS), "weighting": ["align", "alignf"]}
    search = GridSearchCV(mk.ParzenClassifier(BANK), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    linear = mk.Gaussian(0.5)  # a single kernel will do
    assert mk.ParzenClassifier(linear).fit(X, y).kernel_weights_.tolist() == [1.0]


def test_single_precision():
    X, y = labelled(n=80)
    double = mk.ParzenClassifier(BANK).fit(X, y)
    single = mk.ParzenClassifier(BANK, dtype="float32").fit(X, y)
    assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-4)
