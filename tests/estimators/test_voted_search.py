"""Cross-validated voted kernels: the same scores as fits one by one, and no leaks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import multikernel as mk
from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import PAPER_GRID, VotedKernelClassifierCV
from tests.estimators.cases import iris, mean_margin, stratified
from tests.naive_voted import MIXED, distance, lopsided, sample

X, y = sample(70, noise=0.6)
X3, y3 = iris()
GRID = (0.1, 1e-3, 1e-6)


@pytest.mark.parametrize("how", ["auto", "trace", "local", [1.0, 0.2]])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_separate_fits(how, classes):
    data, labels = (X, y) if classes == 2 else (X3, y3)
    bank = mk.gaussians([0.2]) + mk.polynomials([3])
    splits = stratified(labels)
    search = VotedKernelClassifierCV(
        bank, how, GRID, GRID, local_radii=(0.01, 0.1), cv=splits, scoring=mean_margin
    ).fit(data, labels)
    results = search.cv_results_
    assert len(results["mean_test_score"]) == 9 * (2 if how == "local" else 1)
    for i in range(0, len(results["mean_test_score"]), 2):
        one = VotedKernelClassifier(
            bank,
            how,
            results["complexity_penalty"][i],
            results["sparsity_penalty"][i],
            local_radius=results["local_radius"][i] if how == "local" else 1.0,
        )
        scores = cross_val_score(one, data, labels, cv=splits, scoring=mean_margin)
        found = [results[f"split{f}_test_score"][i] for f in range(3)]
        np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-6)


def test_the_last_fit_is_the_choice_on_everything():
    search = VotedKernelClassifierCV(list(MIXED), cv=3).fit(X, y)
    assert search.complexity_penalty_ in (0.1, 0.01, 0.001, 0.0001)
    again = VotedKernelClassifier(
        list(MIXED),
        complexity_penalty=search.complexity_penalty_,
        sparsity_penalty=search.sparsity_penalty_,
    ).fit(X, y)
    np.testing.assert_array_equal(search.terms_, again.terms_)
    best = search.cv_results_["mean_test_score"]
    assert search.best_score_ == best.max() == best[search.best_index_]
    tied = np.flatnonzero(best == best.max())
    terms = search.cv_results_["mean_n_terms"]
    assert terms[search.best_index_] == terms[tied].min()
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert search.n_splits_ == 3


def test_the_grid_of_the_paper():
    assert PAPER_GRID[0] == 1.0 and PAPER_GRID[-1] == pytest.approx(1e-8) and len(PAPER_GRID) == 9
    bank = mk.polynomials(range(1, 11))
    search = VotedKernelClassifierCV(bank, "degree", PAPER_GRID, PAPER_GRID, cv=2)
    search.fit(X[:40], y[:40])
    assert len(search.cv_results_["mean_test_score"]) == 81
    assert search.duality_gap_ < 1e-6


def test_validation_labels_are_not_seen():
    """A fold's predictions do not move when the labels it is scored on are spoilt."""
    seen = []

    def listen(model, X, y):
        seen.append(model.decision_function(X).copy())
        return 0.5

    splits = stratified(y)[:1]
    _, test = splits[0]
    spoilt = y.copy()
    spoilt[test] = -spoilt[test]
    for labels in (y, spoilt):
        VotedKernelClassifierCV(list(MIXED), "auto", GRID, GRID, cv=splits, scoring=listen).fit(
            X, labels
        )
    half = len(seen) // 2
    for first, second in zip(seen[:half], seen[half:], strict=True):
        np.testing.assert_array_equal(first, second)


def test_given_matrices_and_weights(rng):
    K = np.stack([lopsided(X, X), distance(X, X)], axis=-1)
    splits = stratified(y)
    given = VotedKernelClassifierCV("precomputed", cv=splits).fit(K, y)
    called = VotedKernelClassifierCV([mk.Callable(lopsided), mk.Callable(distance)], cv=splits)
    called.fit(X, y)
    np.testing.assert_allclose(
        given.cv_results_["mean_test_score"], called.cv_results_["mean_test_score"]
    )
    weights = rng.integers(0, 3, size=len(y)).astype(float)
    kept = np.flatnonzero(weights)
    weighted = clone(called).fit(X, y, sample_weight=weights)
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    inner = [tuple(place[s][place[s] >= 0] for s in split) for split in splits]
    dropped = clone(called).set_params(cv=inner).fit(X[kept], y[kept], weights[kept])
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], dropped.cv_results_["mean_test_score"]
    )


def test_a_class_missing_from_a_fold_is_never_predicted():
    labels = y3.copy()
    rare = np.flatnonzero(labels == 2)[3:]
    keep = np.setdiff1d(np.arange(len(labels)), rare)
    with pytest.warns(UserWarning, match="least populated class"):
        model = VotedKernelClassifierCV(mk.gaussians([0.5]), cv=4).fit(X3[keep], labels[keep])
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"complexity_penalties": []}, r"complexity_penalties .*one or more finite.*got \[\]"),
        ({"sparsity_penalties": [-1.0]}, r"sparsity_penalties .*one or more finite non-negative"),
        ({"sparsity_penalties": ["a"]}, "sparsity_penalties must be"),
        ({"complexity_penalties": [0.0], "sparsity_penalties": [0.0]}, "both contain 0"),
        ({"complexity": "local", "local_radii": [0.0]}, "local_radii must be positive"),
        ({"complexity": "degree"}, "polynomials only"),
        ({"scoring": "nothing"}, "'nothing' is not a valid scoring"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        VotedKernelClassifierCV(mk.gaussians([1.0]), **options).fit(X, y)


def test_one_class_in_a_fold_is_refused():
    order = np.argsort(y)
    splits = [(order[:20], order[20:])]
    with pytest.raises(ValueError, match="training part of fold 0 contains only one class"):
        VotedKernelClassifierCV(mk.gaussians([1.0]), cv=splits).fit(X, y)
