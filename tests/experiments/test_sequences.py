"""The experiment on string kernels: its bookkeeping, and what a small run must show."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from multikernel.experiments import sequences
from multikernel.kernels.sequences import Spectrum, WeightedDegree

SMALL = sequences.Problem("promoters", "sequence", (Spectrum(1), WeightedDegree(5, shift=3)), 0.4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sequences")


@pytest.fixture(scope="module")
def rows(data_dir: Path, folder: Path) -> list[sequences.Row]:
    return sequences.run([SMALL], splits=2, limit=80, out=folder)


def test_every_rule_and_every_kernel_on_every_split(rows):
    assert len(rows) == 2 * (2 + 1 + len(sequences.RULES))
    assert {(row.n_train, row.n_test) for row in rows} == {(48, 32)}


def test_learned_weights_find_the_kernel_that_knows(rows):
    """Counts of single letters hardly tell promoters; words at their places do."""
    bad = sequences.errors(rows, "promoters", "single", "Spectrum(k=1)").mean()
    good = sequences.hindsight(rows, "promoters")
    assert good == "WeightedDegree(degree=5, shift=3)"
    assert sequences.errors(rows, "promoters", "single", good).mean() < bad - 10
    for rule in ("best", "alignf", "l1"):
        assert sequences.errors(rows, "promoters", rule).mean() < bad - 10


def test_tables(rows, folder):
    with (folder / "sequences.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [float(row["error"]) for row in written] == [row.error for row in rows]
    table = (folder / "sequences.md").read_text()
    values = sequences.errors(rows, "promoters", "uniform")
    assert f"{np.mean(values):.1f} ± {np.std(values):.1f}" in table
    assert "WeightedDegree(degree=5, shift=3)" in sequences.weights_table(rows)


def test_command_line_knows_its_sets(capsys):
    with pytest.raises(SystemExit):
        sequences.main(["--sets", "promotors"])
    assert "unknown sets promotors; known: promoters" in capsys.readouterr().err


def test_banks_of_ngrams(requires_data):
    requires_data("sentiment_books")
    (problem,) = [p for p in sequences.PROBLEMS if p.name == "sentiment_books"]
    rows = sequences.run_ngrams(problem, splits=1, limit=160)
    assert [row.rule for row in rows] == [
        f"per_ngram({n}), {rule}" for n in (1, 2) for rule in ("uniform", "align")
    ]
    assert all(0 <= row.error < 0.6 for row in rows)
    # equal weights keep the order of frequency, learned ones do not
    assert rows[0].weights.startswith("'the'") and "'the'" not in rows[1].weights
    assert sequences.ngrams_table(rows).count("\n") == 5
