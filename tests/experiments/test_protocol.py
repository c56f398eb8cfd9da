"""Steps that several experiments share: scaling, folds that take turns, errors, the choice."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from experiments import datasets, protocol


def test_rows_with_a_missing_entry_are_left_out(monkeypatch):
    X = np.array([[1, 2], [np.nan, 3], [4, 5], [6, np.nan]])
    bunch = Bunch(data=X, target=np.array([1, -1, -1, 1]))
    monkeypatch.setattr(datasets, "load", lambda name: bunch)
    complete, y = protocol.load_complete("made up")
    np.testing.assert_array_equal(complete, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(y, [1, -1])


def test_features_are_scaled_by_the_training_rows_alone(rng):
    X, train = rng.normal(2.0, 3.0, size=(30, 4)), np.arange(20)
    X[:, 3] = 7.0
    Z = protocol.standardise(X, train)
    expected = StandardScaler().fit(X[train]).transform(X)
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    assert not np.any(Z[:, 3])
    X[20:] = 1e6
    np.testing.assert_array_equal(protocol.standardise(X, train)[:20], Z[:20])


@pytest.mark.parametrize("n_folds", [3, 5])
def test_each_fold_has_each_role(rng, n_folds):
    folds = np.array_split(rng.permutation(31), n_folds)
    assigned = [protocol.assign(folds, i) for i in range(n_folds)]
    for train, choosing, test in assigned:
        together = np.concatenate([train, choosing, test])
        np.testing.assert_array_equal(np.sort(together), np.arange(31))
        assert np.all(np.diff(train) > 0)
    for role in (1, 2):
        seen = np.concatenate([parts[role] for parts in assigned])
        np.testing.assert_array_equal(np.sort(seen), np.arange(31))


def test_errors():
    y = np.array([1.0, -1.0, 1.0, 1.0])
    assert protocol.error_of(np.array([1.0, 1.0, 1.0, -1.0]), y, "classification") == 0.5
    assert protocol.error_of(y + 2.0, y, "regression") == 2.0


def test_the_first_of_the_best_is_chosen_and_each_is_tried_once():
    tried = []

    def error(model):
        tried.append(model)
        return {"a": 0.3, "b": 0.1, "c": 0.1, "d": 0.2}[model]

    assert protocol.choose(iter("abcd"), error) == ("b", 0.1)
    assert tried == list("abcd")
