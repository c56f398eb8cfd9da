"""Error against the number of rank-one kernels: draws, no look at test texts, tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from experiments import bigrams, rank_one


def made_up(n=120, seed=0, stories=False):
    """Texts some of whose pairs of words tell their rating."""
    rng = np.random.default_rng(seed)
    ratings = rng.permutation(np.tile([1.0, 2.0, 4.0, 5.0], n // 4))
    texts = []
    for rating in ratings:
        telling = [f"is {'good' if rating > 3 else 'bad'}{rng.integers(3)}" for _ in range(2)]
        other = [f"it {rng.choice(list('abcdefgh'))}" for _ in range(6)]
        texts.append(". ".join(rng.permutation([*telling, *other])))
    labels = np.where(ratings > 3, 1.0, -1.0)
    if stories:
        return bigrams.Texts(tuple(texts), labels, labels, np.arange(0, n, 2))
    return bigrams.Texts(tuple(texts), labels, ratings)


@pytest.fixture
def texts(monkeypatch):
    """No data on disk; counts of other tests forgotten."""
    rank_one.make_draw.cache_clear()
    monkeypatch.setattr(bigrams, "load", lambda name: made_up(stories=name == "acq"))
    yield made_up
    rank_one.make_draw.cache_clear()


def test_draws(texts):
    train, test = rank_one.split("acq", 0, 40)
    assert len(set(train)) == 40 and not np.any(train % 2)
    np.testing.assert_array_equal(test, np.arange(1, 120, 2))  # all test stories, never trained on
    train, test = rank_one.split("dvd", 0, 60)
    np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(120))
    same = rank_one.split("dvd", 0, 60)[0]
    np.testing.assert_array_equal(train, same)
    assert not np.array_equal(train, rank_one.split("dvd", 1, 60)[0])
    assert not np.array_equal(train, rank_one.split("kitchen", 0, 60)[0])
    found = rank_one.make_draw("dvd", 0, 60, 12)
    assert found.V.shape == (120, 12)
    # most frequent first, so that fewer kernels are the first columns
    totals = np.asarray(found.V[found.train].sum(axis=0)).ravel()
    assert np.all(np.diff(totals) <= 0)


@pytest.mark.parametrize("method", rank_one.METHODS)
def test_test_labels_and_test_texts_have_no_say(texts, method):
    found = rank_one.make_draw("kitchen", 0, 60, 40)
    folds = KFold(3, shuffle=True, random_state=0)
    clean = rank_one.learn(method, found.V, found.y, found.train, folds)
    poisoned = found.y.copy()
    poisoned[found.test] = np.nan
    dirty = rank_one.learn(method, found.V, poisoned, found.train, folds)
    np.testing.assert_array_equal(dirty.predictions, clean.predictions)
    assert replace(dirty, predictions=0) == replace(clean, predictions=0)
    garbled = found.V.toarray()
    garbled[found.test] = 1e3
    other = rank_one.learn(method, type(found.V)(garbled), found.y, found.train, folds)
    np.testing.assert_array_equal(other.predictions[found.train], clean.predictions[found.train])
    y = found.y[found.test]
    error = np.sqrt(np.mean((clean.predictions[found.test] - y) ** 2))
    assert error < 0.8 * y.std()


def test_the_lasso_is_chosen_by_its_folds(texts):
    """The same by hand: each level on each fold."""
    found = rank_one.make_draw("kitchen", 0, 60, 40)
    folds = KFold(3, shuffle=True, random_state=0)
    y = found.y[found.train]
    errors = np.zeros(len(rank_one.LEVELS))
    for inner, held in folds.split(y):
        own = found.train[inner]
        U = bigrams.trace_one(found.V, own).tocsr()
        path = bigrams.sparse_ridge_path(U[own].tocsc(), y[inner], rank_one.LEVELS)
        for j, model in enumerate(path):
            errors[j] += np.mean((model(U)[found.train[held]] - y[held]) ** 2)
    chosen = rank_one.learn("L1", found.V, found.y, found.train, folds)
    assert chosen.value == rank_one.LEVELS[int(np.argmin(errors))]
    assert chosen.active <= 40 and chosen.gap < 1e-3


def test_run_resumes_and_prints(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(rank_one, "QUICK_SIZES", (10, 40))
    monkeypatch.setattr(rank_one, "QUICK_TEXTS", 50)
    first = rank_one.run(quick=True, names=["acq", "dvd"], out=tmp_path)
    assert len(first.rows) == 2 * 2 * 2 * 3
    path = tmp_path / "rank_one-quick.jsonl"
    kept = path.read_text()
    again = rank_one.run(quick=True, names=["acq", "dvd"], out=tmp_path)
    assert list(again.rows) == list(first.rows) and path.read_text() == kept
    text = str(again)
    assert "L2 is better than the sum from 40 kernels on" in text
    assert {p.suffix for p in again.save(tmp_path)} == {".csv", ".md", ".png"}
    with pytest.raises(ValueError, match=r"names must be among acq, .*got 'earn'"):
        rank_one.run(names=["earn"])


def test_claims_follow_the_rows():
    def rows(errors):
        return [
            rank_one.Row(data, draw, n, method, error, 0.1, 1.0, False, n, 0.0, 0.0)
            for data in rank_one.SETS
            for draw in range(2)
            for n in rank_one.SIZES
            for method, error in zip(rank_one.METHODS, errors, strict=True)
        ]

    as_printed = rank_one.claims(rank_one.Found(rows((1.0, 1.1, 0.9))))
    assert [claim.ours for claim in as_printed] == ["yes"] * 3
    turned = rank_one.claims(rank_one.Found(rows((1.0, 0.9, 1.1))))
    assert [claim.ours for claim in turned] == ["no"] * 3
    assert "0 of 8 (set, N)" in turned[0].detail and "acq 1.100" in turned[0].detail
