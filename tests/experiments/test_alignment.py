"""Table 1 of Cortes, Mohri and Rostamizadeh: its bookkeeping, and what a small run must show."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.experiments import alignment


@pytest.fixture(scope="module")
def table(data_dir):
    chosen = [p for p in alignment.PROBLEMS if p.name in ("ionosphere", "splice")]
    return alignment.run(chosen, quick=True, repetitions=2)


def test_centred_alignment_tells_good_kernels(table):
    for column in table.columns:
        assert len(column.studies) == 2
        assert np.all(column.centred > 0.7)


def test_uncentred_alignment_misleads_on_splice(table):
    """The paper's finding: with a negative sign."""
    splice = table.columns[1]
    assert splice.problem.printed == (0.9515, -0.4484)
    assert np.all(splice.uncentred < 0)


def test_text_and_markdown(table):
    lines = str(table).splitlines()
    assert len(lines) == 6
    assert lines[0].split() == ["ionosphere", "(regr.)", "splice", "(class.)"]
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "centred, printed",
        "centred, here",
        "uncentred, printed",
        "uncentred, here",
    ]
    assert "0.9979" in lines[1] and "-0.4484" in lines[3] and "±" in lines[2]
    markdown = table.markdown().splitlines()
    assert markdown[1] == "|---|---|---|" and len(markdown) == 7


def test_kernels_are_those_of_the_paper(table):
    names = table.columns[0].studies[0].names
    assert len(names) == 7 and names[0] == "Gaussian(gamma=0.125)"


def test_german_is_scaled(data_dir):
    german = next(p for p in alignment.PROBLEMS if p.name == "german")
    X, y = german.load(1000, 0)
    assert X.min() == -1.0 and X.max() == 1.0 and X.shape == (1000, 24)
    assert set(y) == {-1, 1}
