"""One rank-one kernel per n-gram: the vocabulary, and the same model as from counted columns."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels.sequences import per_ngram, words
from tests.kernels.naive_sequences import assert_equal, random_strings

GOOD = ["a good book", "very good indeed", "good good fun", "I like this good book", "liked it"]
BAD = ["a bad book", "very bad indeed", "bad bad luck", "I hate this bad book", "hated it"]
TEXTS = GOOD + BAD
y = np.array([1] * 5 + [0] * 5)


def counts(texts, n, **options):
    vectorizer = CountVectorizer(ngram_range=(n, n), token_pattern=r"\w+", **options)
    return vectorizer.fit_transform(texts), vectorizer.get_feature_names_out()


def test_vocabulary_is_the_most_frequent():
    X, names = counts(TEXTS, 2)
    totals = np.asarray(X.sum(axis=0)).ravel()
    order = np.lexsort((names, -totals))[:7]
    plan = per_ngram(2, top=7).plan(TEXTS)
    assert plan.names == list(names[order])
    everything = per_ngram(2, top=None).plan(TEXTS)
    assert sorted(everything.names) == sorted(names)
    assert str(plan) == "7 kernels on 10 samples\n  features  kernels 0..6  counts of 7 n-grams"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("presence", [False, True])
def test_features_are_the_counts(n, presence):
    X, names = counts(TEXTS, n, binary=presence)
    plan = per_ngram(n, top=None, presence=presence).plan(TEXTS)
    V = plan.grams(TEXTS, budget=MemoryBudget.of("1GB")).data
    order = [list(names).index(name) for name in plan.names]
    assert np.array_equal(V.toarray(), X.toarray()[:, order])
    assert V.nnz == X.nnz


def test_few_kernels_with_a_weight_are_complete_grams():
    options = {"unit": "letter", "top": None}
    grams = per_ngram(2, **options).plan(TEXTS).grams(TEXTS, budget=MemoryBudget.of("1GB"))
    grams = grams.corrected(True, "trace")
    weights = np.zeros(grams.p)
    weights[[5, 2]] = 1.0, 3.0
    few, used = grams.nonzero(weights)
    assert list(used) == [2, 5] and few.p == 2
    np.testing.assert_array_equal(few.columns(TEXTS).toarray(), few.data.toarray())
    V = np.arange(10.0)[:, None] ** 2
    np.testing.assert_allclose(few.matvecs(V), grams.matvecs(V)[used], atol=1e-12)
    again = few.take(np.arange(10)).corrected(True, "trace")
    np.testing.assert_allclose(again.matvecs(V), grams.matvecs(V)[used], atol=1e-12)


@pytest.mark.parametrize("weighting", ["align", "uniform", "alignf"])
def test_same_model_as_from_columns(weighting):
    """Two ways to the same rank-one kernels."""
    ours = mk.MultiKernelClassifier(per_ngram(1, top=12), weighting=weighting).fit(TEXTS, y)
    vectorizer = CountVectorizer(vocabulary=ours.kernel_names_, token_pattern=r"\w+")
    X = vectorizer.transform(TEXTS).astype(float)
    theirs = mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), weighting=weighting).fit(X, y)
    np.testing.assert_allclose(ours.kernel_weights_, theirs.kernel_weights_, atol=1e-12)
    new = ["A BAD read!", "good", "", "nothing known here"]
    assert_equal(
        ours.decision_function(new),
        theirs.decision_function(vectorizer.transform(new).astype(float)),
    )
    assert_equal(
        ours.decision_function(new, split=True),
        theirs.decision_function(vectorizer.transform(new).astype(float), split=True),
    )


def test_letters_and_alphabets():
    X = random_strings(30, 20, 30, letters="ACGTN")
    labels = np.array(["AC" in x for x in X])
    bank = per_ngram(2, top=None, unit="letter", alphabet="dna")
    model = mk.MultiKernelClassifier(bank, weighting="align", C=10.0).fit(X, labels)
    assert len(model.kernel_names_) == 16 and all("N" not in n for n in model.kernel_names_)
    assert model.kernel_names_[np.argmax(model.kernel_weights_)] == "AC"
    lower = [x.lower() for x in X]
    folded = per_ngram(2, top=None, unit="letter", alphabet="dna", ignore_case=True)
    both = mk.MultiKernelClassifier(folded, weighting="align", C=10.0).fit(X, labels)
    assert_equal(both.decision_function(lower), model.decision_function(X))


def test_weights_are_repetitions():
    """A text that counts three times counts three times in the vocabulary, too."""
    weights = np.array([1, 3, 0, 2, 1, 1, 1, 2, 1, 4])
    repeated = [t for t, w in zip(TEXTS, weights, strict=True) for _ in range(w)]
    model = mk.MultiKernelClassifier(per_ngram(1, top=5), weighting="align")
    weighted = clone(model).fit(TEXTS, y, sample_weight=weights)
    copied = clone(model).fit(repeated, np.repeat(y, weights))
    assert weighted.kernel_names_ == copied.kernel_names_
    assert weighted.kernel_names_ != clone(model).fit(TEXTS, y).kernel_names_
    np.testing.assert_allclose(weighted.kernel_weights_, copied.kernel_weights_, atol=1e-10)


def test_beside_other_kernels():
    frame = pd.DataFrame({"text": TEXTS, "length": [float(len(t)) for t in TEXTS]})
    bank = (
        mk.gaussians([0.1], columns="length")
        + per_ngram(1, top=6, columns="text")
        + per_ngram(2, top=4, columns="text")
    )
    model = mk.MultiKernelClassifier(bank, weighting="align").fit(frame, y)
    assert len(model.kernel_weights_) == 11
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))
    assert cross_val_score(model, frame, y, cv=5, error_score="raise").shape == (5,)
    search = mk.MultiKernelClassifierCV(bank, Cs=[0.1, 1.0], cv=2).fit(frame, y)
    assert search.predict(frame).shape == (10,)
    shared = model.decision_function(frame, split=True).sum(axis=1) + model.intercept_[0]
    assert_equal(shared, model.decision_function(frame))


def test_bank_of_ngrams_is_a_value():
    bank = per_ngram(2, top=10)
    assert bank == per_ngram(2, top=10) and hash(bank) == hash(per_ngram(2, top=10))
    assert bank != per_ngram(3, top=10)
    assert clone(mk.MultiKernelClassifier(bank)).kernels is bank
    with pytest.raises(TypeError, match=r"which bank\.plan\(X\) shows"):
        len(bank)


def test_errors():
    with pytest.raises(ValueError, match="top must be a positive whole number; got 0"):
        per_ngram(2, top=0)
    with pytest.raises(ValueError, match=r"no sequence of the training sample has 9 words"):
        mk.MultiKernelClassifier(per_ngram(9)).fit(TEXTS, y)


def test_tokeniser():
    assert words("Don't PANIC, it's 42_x!") == ["don", "t", "panic", "it", "s", "42_x"]
    assert words("") == []
    assert words("Ärger über Öl") == ["ärger", "über", "öl"]
