"""Table 1 of Cortes, Mohri and Rostamizadeh: its bookkeeping, and what a small run must show."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import alignment
from experiments.alignment import Found, problem_of
from multikernel.study import alignment_study
from tests.experiments.blind import garbage


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("alignment")


@pytest.fixture(scope="module")
def record(data_dir, folder):
    return alignment.run(2, quick=True, names=["ionosphere", "splice"], out=folder)


def test_centred_alignment_tells_good_kernels(record):
    found = Found(record.rows)
    for data in ("ionosphere", "splice"):
        centred = found.correlations(data, "centered")
        assert len(centred) == 2 and np.all(centred > 0.7)


def test_uncentred_alignment_misleads_on_splice(record):
    """The paper's finding: with a negative sign."""
    assert problem_of("splice").printed == (0.9515, -0.4484)
    assert np.all(Found(record.rows).correlations("splice", "uncentered") < 0)
    assert (
        record.claims[-1].text
        == "uncentred alignment is negatively correlated with accuracy on splice"
    )
    assert record.claims[-1].ours == "yes"


def test_correlations_are_those_of_the_study(record):
    splice = problem_of("splice")
    X, y = splice.load(300, 1)
    grid = alignment.GRIDS["classification"][::2]
    study = alignment_study(splice.bank, X, y, task="classification", grid=grid, random_state=1)
    found = Found(record.rows)
    assert found.correlations("splice", "centered")[1] == pytest.approx(study.correlation)
    uncentred = found.correlations("splice", "uncentered")[1]
    assert uncentred == pytest.approx(study.correlation_uncentered)


def test_text_and_files(record, tmp_path):
    lines = str(record).splitlines()
    assert "|  | ionosphere (regr.) | splice (class.) |" in lines
    (printed,) = [line for line in lines if line.startswith("| centered, printed")]
    assert printed == "| centered, printed | 0.9979 | 0.9515 |"
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def test_kernels_are_those_of_the_paper(record):
    names = [row.kernel for row in record.rows if row.data == "ionosphere" and row.draw == 0]
    assert len(names) == 7 and names[0] == "Gaussian(gamma=0.125)"
    sizes = [len(problem.bank) for problem in alignment.PROBLEMS]
    assert sizes == [7, 7, 8, 6, 7]


def test_german_is_scaled(data_dir):
    german = problem_of("german")
    X, y = german.load(1000, 0)
    Z = german.prepare(X)
    assert Z.min() == -1.0 and Z.max() == 1.0 and Z.shape == (1000, 24)
    assert set(y) == {-1, 1}


def test_finished_draws_are_kept(record, folder, monkeypatch):
    monkeypatch.setattr(alignment, "work", None)
    again = alignment.run(2, quick=True, names=["ionosphere", "splice"], out=folder)
    assert str(again) == str(record)


# -- no look at test points -----------------------------------------------------------------------


def cut_in_three(name):
    problem = problem_of(name)
    X, y = problem.load(150, 0)
    return problem, X, y, np.arange(90), np.arange(90, 120), np.arange(120, 150)


def test_machines_do_not_see_test_labels(data_dir):
    """With all test labels turned over, what was right is wrong, point by point."""
    problem, X, y, train, _, test = cut_in_three("splice")

    def study(y):
        options = {"task": "classification", "grid": 1.0, "cv": [(train, test)]}
        return alignment_study(problem.bank, X, y, **options)

    clean, poisoned = study(y), study(garbage(y, test))
    np.testing.assert_allclose(poisoned.scores, 1.0 - clean.scores, atol=1e-12)
    assert np.array_equal(poisoned.centered, clean.centered)
    assert np.array_equal(poisoned.uncentered, clean.uncentered)


@pytest.mark.parametrize("name", ["splice", "kinematics"])
def test_alignments_do_not_see_points_that_are_held_out(data_dir, name):
    """Both splits train on the same points; the others choose and score in turn."""
    problem, X, y, train, one, two = cut_in_three(name)
    splits = [(np.r_[train, one], two), (np.r_[train, two], one)]

    def study(X, y):
        options = {"task": problem.task, "grid": (0.1, 10.0), "cv": splits}
        return alignment_study(problem.bank, X, y, **options)

    clean = study(X, y)
    elsewhere = X.copy()
    elsewhere[two] = X[two][::-1] * 2.0 + 1.0
    # Distances of all points are taken once, from a common origin, which other features move.
    for poisoned, rounding in ((study(X, garbage(y, two)), 0.0), (study(elsewhere, y), 1e-12)):
        np.testing.assert_allclose(poisoned.centered, clean.centered, rtol=rounding)
        np.testing.assert_allclose(poisoned.uncentered, clean.uncentered, rtol=rounding)
        assert not np.allclose(poisoned.scores, clean.scores, rtol=1e-6)
    assert not np.array_equal(study(X, garbage(y, train[::3])).centered, clean.centered)
