"""Probabilities of every classifier: proper, consistent, stored; they never change decisions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils.fixes import parse_version

import multikernel as mk

#: The Brier score of scikit-learn is for two classes.
OLD_BRIER_SCORE = parse_version(sklearn.__version__) < parse_version("1.7")

CLASSIFIERS = {
    "hinge": mk.MultiKernelClassifier(),
    "squared": mk.MultiKernelClassifier(loss="squared"),
    "logistic": mk.MultiKernelClassifier(loss="logistic"),
    "loo": mk.MultiKernelClassifier(weighting="loo"),
    "C loo": mk.MultiKernelClassifier(C="loo"),
    "squared loo": mk.MultiKernelClassifier(C="loo", loss="squared"),
    "joint": mk.MultiKernelClassifier(weighting=mk.LpNorm(p=2)),
    "per class": mk.MultiKernelClassifier(multiclass="per_class"),
    "no intercept": mk.MultiKernelClassifier(fit_intercept=False),
    "balanced": mk.MultiKernelClassifier(class_weight="balanced"),
    "search": mk.MultiKernelClassifierCV(Cs=[0.1, 1.0], cv=3),
    "parzen": mk.ParzenClassifier(),
    "voted": mk.VotedKernelClassifier(),
    "voted search": mk.VotedKernelClassifierCV(
        complexity_penalties=[0.01], sparsity_penalties=[0.01, 0.001], cv=3
    ),
    "ensemble": mk.KernelEnsembleClassifier(),
    "ensemble, one stage": mk.KernelEnsembleClassifier(stages=1),
    "spectral": mk.SpectralKernelClassifier(),
    "spectral, 2-norm": mk.SpectralKernelClassifier(margin="2-norm"),
    "spectral, convex": mk.SpectralKernelClassifier(family="convex"),
}


def halves(classes: int):
    X, y = load_breast_cancer(return_X_y=True) if classes == 2 else load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    step = 4 if classes == 2 else 2
    return X[::step], y[::step], X[1::step], y[1::step]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_proper_and_better_than_frequencies(name, classes):
    X, y, new, truth = halves(classes)
    model = copy.deepcopy(CLASSIFIERS[name]).fit(X, y)
    p = model.predict_proba(new)
    assert p.shape == (len(new), classes) and np.all((p >= 0) & (p <= 1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), p, rtol=1e-12)
    frequencies = np.tile(np.bincount(y) / len(y), (len(new), 1))
    assert log_loss(truth, p) < 0.6 * log_loss(truth, frequencies)
    if name != "balanced":
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_calibration_does_not_change_decisions(name):
    X, y, new, _ = halves(3)
    decisions = []
    for method in ("auto", "sigmoid", "isotonic", "temperature"):
        model = copy.deepcopy(CLASSIFIERS[name]).set_params(calibration=method).fit(X, y)
        decisions.append(model.decision_function(new))
        model.predict_proba(new)
        np.testing.assert_array_equal(model.decision_function(new), decisions[0])
        np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_files_and_pickles_keep_the_bits(name, tmp_path):
    X, y, new, _ = halves(3)
    for method in ("auto", "isotonic"):
        model = copy.deepcopy(CLASSIFIERS[name]).set_params(calibration=method).fit(X, y)
        path = tmp_path / "model.skops"
        mk.save(model, path)
        for again in (mk.load(path), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
            assert again.calibration == method


def test_models_of_old_files_say_how_to_get_probabilities():
    X, y, new, _ = halves(2)
    model = mk.MultiKernelClassifier().fit(X, y)
    del model._calibration
    with pytest.raises(NotFittedError, match="Fit it again to get them"):
        model.predict_proba(new)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mk.MultiKernelClassifier().predict_proba(new)


def test_two_classes_of_a_logistic_loss_have_their_own_sigmoid():
    X, y, new, _ = halves(2)
    model = mk.MultiKernelClassifier(loss="logistic").fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(new)[:, 1], expit(model.decision_function(new)), rtol=1e-14
    )
    other = mk.MultiKernelClassifier(loss="logistic", calibration="sigmoid").fit(X, y)
    assert np.abs(other.predict_proba(new) - model.predict_proba(new)).max() > 1e-3


@pytest.mark.parametrize("name", ["hinge", "squared", "loo", "voted", "parzen"])
def test_a_weight_is_a_repetition(name):
    X, y = make_classification(40, 5, n_informative=3, n_classes=3, random_state=0)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    one = copy.deepcopy(CLASSIFIERS[name]).fit(X, y, sample_weight=weights)
    many = copy.deepcopy(CLASSIFIERS[name]).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("name", ["hinge", "squared", "logistic", "voted", "parzen", "spectral"])
def test_the_order_of_the_classes_does_not_matter(name):
    X, y, new, _ = halves(3)
    one = copy.deepcopy(CLASSIFIERS[name]).fit(X, y).predict_proba(new)
    renamed = np.array(["b", "c", "a"])[y]  # alphabetical order: 2, 0, 1
    other = copy.deepcopy(CLASSIFIERS[name]).fit(X, renamed).predict_proba(new)
    np.testing.assert_allclose(other[:, [1, 2, 0]], one, atol=1e-4)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 3.0], [7, 9]])
def test_labels_of_any_type(labels):
    X, y, new, _ = halves(2)
    model = mk.MultiKernelClassifier().fit(X, np.array(labels)[y])
    p = model.predict_proba(new)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(new))


@pytest.mark.parametrize("name", ["hinge", "squared", "logistic", "voted", "ensemble", "spectral"])
def test_classes_with_one_member(name):
    X, y, new, _ = halves(3)
    rare = np.concatenate([np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:1]])
    model = copy.deepcopy(CLASSIFIERS[name]).fit(X[rare], y[rare])
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)


def test_kernel_values_and_rows_on_demand():
    X, y, new, _ = halves(3)
    bank = [mk.Gaussian(0.1), mk.Gaussian(1.0)]
    model = mk.MultiKernelClassifier(bank, "alignf").fit(X, y)
    given = np.stack([kernel(X) for kernel in bank], axis=-1)
    other = mk.MultiKernelClassifier("precomputed", "alignf").fit(given, y)
    seen = np.stack([kernel(new, X) for kernel in bank], axis=-1)
    np.testing.assert_allclose(other.predict_proba(seen), model.predict_proba(new), atol=1e-6)
    tight = mk.MultiKernelClassifier(bank, "alignf", memory_budget=20_000).fit(X, y)
    np.testing.assert_allclose(tight.predict_proba(new), model.predict_proba(new), atol=0.02)


def test_probabilities_are_calibrated_on_noisy_data():
    """Of new samples with probabilities near p, a share of about p is positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6400, 2))
    truth = expit(2.0 * X[:, 0] + np.sin(2.0 * X[:, 1]))
    y = (rng.random(6400) < truth).astype(int)
    # Support vector machines look for the boundary, and know less about probabilities elsewhere.
    for loss, far in (("hinge", 0.15), ("squared", 0.11)):
        model = mk.MultiKernelClassifier(loss=loss)
        p = model.fit(X[:400], y[:400]).predict_proba(X[400:])[:, 1]
        bins = np.clip((10 * p).astype(int), 0, 9)
        gaps = [abs(np.sum((y[400:] - p)[bins == b])) for b in range(10)]
        assert np.sum(gaps) / len(p) < 0.06
        assert np.sqrt(np.mean((p - truth[400:]) ** 2)) < far


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_searches_score_probabilities(scoring, classes):
    if scoring == "neg_brier_score" and classes > 2 and OLD_BRIER_SCORE:
        pytest.skip("scikit-learn before 1.7 has no Brier score of several classes")
    X, y, _, _ = halves(classes)
    folds = StratifiedKFold(3)
    model = mk.MultiKernelClassifierCV(Cs=[0.1, 1.0], cv=folds, scoring=scoring).fit(X, y)
    plain = mk.MultiKernelClassifier(C=model.C_)  # kernels of every training part
    each = cross_val_score(plain, X, y, cv=folds, scoring=scoring)
    np.testing.assert_allclose(model.best_score_, each.mean(), atol=1e-6)
    vote = mk.VotedKernelClassifierCV(
        kernels=mk.gaussians([0.1]),
        complexity="trace",
        complexity_penalties=[0.01],
        sparsity_penalties=[0.001],
        cv=folds,
        scoring=scoring,
    ).fit(X, y)
    plain = mk.VotedKernelClassifier(mk.gaussians([0.1]), "trace", 0.01, 0.001)
    each = cross_val_score(plain, X, y, cv=folds, scoring=scoring)
    np.testing.assert_allclose(vote.best_score_, each.mean(), atol=1e-3)


def test_other_calibrations_are_refused():
    X, y, _, _ = halves(2)
    for name in CLASSIFIERS:
        with pytest.raises(ValueError, match="'calibration' parameter"):
            copy.deepcopy(CLASSIFIERS[name]).set_params(calibration="platt").fit(X, y)
