"""Rank-one kernels on reviews: protocol, no look at test labels, resuming, tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import bigrams, sentiment

GOOD, BAD = ("very good", "really nice", "works well"), ("very bad", "not good", "broke down")


def made_up(n=100, seed=0):
    """Reviews whose pairs of words tell their rating, among pairs that tell nothing."""
    rng = np.random.default_rng(seed)
    ratings = rng.permutation(np.tile([1.0, 2.0, 4.0, 5.0], n // 4))
    texts = []
    for rating in ratings:
        telling = [str(rng.choice(GOOD if rating > 3 else BAD)) for _ in range(rng.integers(1, 4))]
        other = [f"it {rng.choice(list('abcdef'))}" for _ in range(6)]
        texts.append(". ".join(rng.permutation([*telling, *other])))
    return bigrams.Texts(tuple(texts), np.where(ratings > 3, 1.0, -1.0), ratings)


def test_printed_figures_are_those_of_the_papers():
    assert set(sentiment.PRINTED_ERRORS) == set(sentiment.PRINTED_ALIGNMENTS)
    assert set(sentiment.PRINTED_ERRORS) == {
        (t, m) for t, ms in sentiment.METHODS.items() for m in ms
    }
    assert sentiment.PRINTED_ERRORS["regression", "align"][3] == (1.312, 0.012)
    assert sentiment.PRINTED_ERRORS["classification", "l1-svm"][1] == (0.292, 0.025)
    assert sentiment.PRINTED_ERRORS["regression", sentiment.AROUND][0] == (1.414, 0.020)
    assert sentiment.PRINTED_ALIGNMENTS["classification", "align"][2] == (0.063, 0.004)
    assert sum(map(len, sentiment.PRINTED_BETTER.values())) == 3 * 8 - 1


def test_roles_rotate():
    ratings = made_up().ratings
    assigned = sentiment.parts(ratings, 3)
    tests = np.concatenate([test for _, _, test in assigned])
    np.testing.assert_array_equal(np.sort(tests), np.arange(100))
    for i, (train, choosing, test) in enumerate(assigned):
        assert (len(train), len(choosing), len(test)) == (60, 20, 20)
        everyone = np.sort(np.concatenate([train, choosing, test]))
        np.testing.assert_array_equal(everyone, np.arange(100))
        np.testing.assert_array_equal(choosing, assigned[(i + 1) % 5][2])
        # stratified by rating
        np.testing.assert_array_equal(np.unique(ratings[test], return_counts=True)[1], 5)
    again = sentiment.parts(ratings, 3)
    assert all(np.array_equal(a[2], b[2]) for a, b in zip(assigned, again, strict=True))
    assert not np.array_equal(assigned[0][2], sentiment.parts(ratings, 4)[0][2])


@pytest.mark.parametrize(
    ("task", "method"), [(task, m) for task, methods in sentiment.METHODS.items() for m in methods]
)
def test_test_labels_and_test_texts_have_no_say(task, method):
    found = made_up()
    y = found.labels if task == "classification" else found.ratings
    roles = sentiment.parts(found.ratings, 0)[1]
    train, choosing, test = roles
    grid = sentiment.grid_of(method, task)[::3]
    V = bigrams.count_bigrams(found.texts, train, 30)
    clean, lowest = sentiment.choose(method, task, V, y, roles, grid)
    poisoned = y.copy()
    poisoned[test] = np.nan
    dirty, same = sentiment.choose(method, task, V, poisoned, roles, grid)
    assert (dirty.value, same) == (clean.value, lowest)
    np.testing.assert_array_equal(dirty.predictions, clean.predictions)
    np.testing.assert_array_equal(dirty.weights, clean.weights)
    # Labels of the choosing fold enter the choice, and nothing else.
    poisoned[choosing] = np.nan
    each = list(sentiment.models(method, V, poisoned, train, grid))
    (chosen,) = [model for model in each if model.value == clean.value]
    np.testing.assert_array_equal(chosen.predictions, clean.predictions)
    # Neither do other texts: the vocabulary is that of the training folds.
    texts = list(found.texts)
    for i in test:
        texts[i] = "garbage in garbage out " * 50
    W = bigrams.count_bigrams(texts, train, 30)
    other, _ = sentiment.choose(method, task, W, y, roles, grid)
    np.testing.assert_array_equal(other.weights, clean.weights)
    np.testing.assert_array_equal(other.predictions[choosing], clean.predictions[choosing])
    # And something was learned.
    guess = np.full(len(test), y[train].mean())
    if task == "classification":
        assert sentiment.error_of(clean.predictions[test], y[test], task) < 0.25
    else:
        errors = [sentiment.error_of(f, y[test], task) for f in (clean.predictions[test], guess)]
        assert errors[0] < 0.75 * errors[1]


def test_labels_are_centred_and_kernels_are_not():
    """Ridge regression as the paper has it, from its formula."""
    found = made_up()
    train = sentiment.parts(found.ratings, 0)[0][0]
    V = bigrams.count_bigrams(found.texts, train, 20)
    U = bigrams.trace_one(V, train).toarray()
    (model,) = sentiment.models("unif", V, found.ratings, train, [0.01])
    K = U @ U[train].T / 20
    mean = found.ratings[train].mean()
    alpha = np.linalg.solve(K[train] + 0.01 * np.eye(len(train)), found.ratings[train] - mean)
    np.testing.assert_allclose(model.predictions, K @ alpha + mean)
    (model,) = sentiment.models("align", V, found.ratings, train, [0.01])
    squares = np.corrcoef(U[train].T, found.ratings[train])[-1, :-1] ** 2
    np.testing.assert_allclose(model.weights, squares / squares.sum(), atol=1e-14)
    K = (U * model.weights) @ U[train].T
    y = found.ratings[train] - mean
    centred = K[train] - K[train].mean(axis=0) - K[train].mean(axis=1)[:, None] + K[train].mean()
    aligned = y @ centred @ y / np.linalg.norm(centred) / (y @ y)
    sparse = bigrams.trace_one(V, train)
    found_there = sentiment.alignment_on(sparse, model.weights, train, found.ratings)
    assert found_there == pytest.approx(aligned)


def test_run_resumes_and_prints(tmp_path, monkeypatch):
    calls = []

    def load(name):
        calls.append(name)
        return made_up(seed=len(name))

    monkeypatch.setattr(bigrams, "load", load)
    first = sentiment.run(quick=True, names=["dvd"], out=tmp_path)
    assert len(calls) == 10 and len(first.rows) == 5 * (4 + 3)
    path = tmp_path / "sentiment-quick.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:40])  # interrupted
    again = sentiment.run(quick=True, names=["dvd"], out=tmp_path)
    assert len(calls) == 11
    timeless = [[replace(row, seconds=0.0) for row in found.rows] for found in (first, again)]
    assert timeless[0] == timeless[1]
    text = str(again)
    assert "1.438 ± 0.033" in text and "0.292 ± 0.025" in text
    assert "regression: error of align below unif on all sets" in text
    names = {p.name for p in again.save(tmp_path)}
    assert names == {f"sentiment-quick.{end}" for end in ("csv", "md", "png")}
    with pytest.raises(ValueError, match=r"names must be among books, .*got 'cds'"):
        sentiment.run(names=["cds"])


def test_claims_follow_the_rows():
    def rows(shift):
        return [
            sentiment.Row(
                data,
                task,
                fold,
                method,
                error * (1 + 0.01 * fold),
                0.1,
                0.1,
                1.0,
                0.0,
                9,
                9,
                0.0,
                0.0,
            )
            for data in sentiment.SETS
            for task, methods in sentiment.METHODS.items()
            for fold in range(5)
            for method, error in zip(methods, shift[task], strict=True)
        ]

    as_printed = {"regression": (1.4, 1.3, 1.3, 1.2), "classification": (0.2, 0.3, 0.1)}
    found = sentiment.claims(sentiment.Found(rows(as_printed)))
    assert [claim.ours for claim in found[:7]] == ["yes"] * 7
    turned = {"regression": (1.2, 1.3, 1.3, 1.4), "classification": (0.1, 0.05, 0.3)}
    found = sentiment.claims(sentiment.Found(rows(turned)))
    assert [claim.ours for claim in found[:7]] == ["no"] * 7
    assert found[0].detail.startswith("0 of 4, not on books, dvd")
