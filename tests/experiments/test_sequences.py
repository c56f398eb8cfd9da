"""The experiment on string kernels: its bookkeeping, and what a small run must show."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from experiments import sequences
from experiments.record import Record
from multikernel.kernels import precomputed
from multikernel.kernels.sequences import Spectrum, WeightedDegree
from tests.experiments.blind import garbage

SMALL = sequences.Problem("promoters", "sequence", (Spectrum(1), WeightedDegree(5, shift=3)), 0.4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sequences")


@pytest.fixture(scope="module")
def record(data_dir: Path, folder: Path) -> Record:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "problem_of", lambda name: SMALL)
        return sequences.run(2, 80, names=["promoters"], out=folder)


@pytest.fixture(scope="module")
def rows(record: Record) -> list[sequences.Row]:
    return list(record.rows)


def test_every_rule_and_every_kernel_on_every_split(rows):
    assert len(rows) == 2 * (2 + 1 + len(sequences.RULES))
    assert {(row.n_train, row.n_test) for row in rows} == {(48, 32)}


def test_splits_do_not_depend_on_their_number(data_dir):
    _, y = sequences.load(SMALL, 80, 0)
    from sklearn.model_selection import StratifiedShuffleSplit

    cutter = StratifiedShuffleSplit(4, test_size=0.4, random_state=0)
    for split, (train, test) in enumerate(cutter.split(np.zeros(len(y)), y)):
        ours = sequences.cut(SMALL, y, split, 0)
        assert np.array_equal(ours[0], train) and np.array_equal(ours[1], test)


def test_learned_weights_find_the_kernel_that_knows(rows):
    """Counts of single letters hardly tell promoters; words at their places do."""
    bad = sequences.errors(rows, "promoters", "single", "Spectrum(k=1)").mean()
    good = sequences.hindsight(rows, "promoters")
    assert good == "WeightedDegree(degree=5, shift=3)"
    assert sequences.errors(rows, "promoters", "single", good).mean() < bad - 10
    for rule in ("best", "alignf", "l1"):
        assert sequences.errors(rows, "promoters", rule).mean() < bad - 10


def test_tables_and_files(record, rows, tmp_path):
    values = sequences.errors(rows, "promoters", "uniform")
    assert f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}" in str(record)
    assert "WeightedDegree(degree=5, shift=3)" in sequences.weights_table(rows)
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def test_unknown_sets_are_named():
    with pytest.raises(ValueError, match=r"promoters, splice, .* got 'promotors'"):
        sequences.run(names=["promotors"])


def test_banks_of_ngrams(requires_data):
    requires_data("sentiment_books")
    rows = sequences.work("sentiment_books", 0, True, 160, 0)
    assert [row.rule for row in rows] == [
        f"per_ngram({n}), {rule}" for n in (1, 2) for rule in ("uniform", "align")
    ]
    assert all(0 <= row.error < 0.6 for row in rows)
    # equal weights keep the order of frequency, learned ones do not
    assert rows[0].weights.startswith("'the'") and "'the'" not in rows[1].weights
    assert sequences.ngrams_table(rows).count("\n") == 5


def test_test_points_do_not_influence_training(data_dir):
    """Other labels and other sequences at the test points: the same weights, C and best kernel."""
    X, y = sequences.load(SMALL, 80, 0)
    train, test = sequences.cut(SMALL, y, 0, 0)

    def learn(X, y):
        bank = precomputed([kernel(X) for kernel in SMALL.bank], names=["one", "two"])
        rows = sequences.learn("promoters", 0, bank, y, train, test)
        trained = [{**asdict(row), "error": 0.0, "seconds": 0.0} for row in rows]
        return trained, [row.error for row in rows]

    trained, errors = learn(X, y)
    again, wrong = learn(X, garbage(y, test))
    assert again == trained
    np.testing.assert_allclose(np.add(errors, wrong), 1.0)
    elsewhere = list(X)
    for i in test:
        elsewhere[i] = X[i][::-1]
    again, other = learn(elsewhere, y)
    assert again == trained and other != errors
    spoiled, _ = learn(X, garbage(y, train[::3]))
    assert spoiled != trained


def test_vocabularies_do_not_see_test_texts(requires_data):
    requires_data("sentiment_books")
    problem = sequences.problem_of("sentiment_books")
    X, y = sequences.load(problem, 120, 0)
    train, test = sequences.cut(problem, y, 0, 0)

    def learn(X, y):
        texts = np.array(X, dtype=object)
        rows = sequences.learn_ngrams("books", 0, texts, y, train, test)
        return [{**asdict(row), "error": 0.0, "seconds": 0.0} for row in rows]

    elsewhere = list(X)
    for i in test:
        elsewhere[i] = "quite other words " * 50
    assert learn(elsewhere, garbage(y, test)) == learn(X, y)
