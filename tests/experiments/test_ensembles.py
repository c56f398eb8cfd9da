"""Ensembles against kernel learning: what a small run must show, and the table."""

from __future__ import annotations

import pytest

from experiments import ensembles
from experiments.alignment import GRIDS, problem_of
from experiments.combinations import parts
from tests.experiments.blind import assert_blind

KINEMATICS = problem_of("kinematics")
SOME = ("unif", "best single", "ensemble l1", "ensemble l1, one stage")


@pytest.fixture(scope="module")
def rows(data_dir):
    X, y = KINEMATICS.load(200, 0)
    return [
        ensembles.Row(
            "kinematics",
            method,
            fold,
            **ensembles.run_fold(KINEMATICS, method, X, y, roles, (0.1,)),
        )
        for method in SOME
        for fold, roles in enumerate(parts(KINEMATICS, y, 0))
    ]


def test_a_vote_beats_the_plain_sum_where_few_kernels_are_good(rows):
    mean = {method: ensembles.errors(rows, "kinematics", method).mean() for method in SOME}
    assert mean["ensemble l1"] < mean["unif"]
    gap = {method: max(row.gap for row in rows if row.method == method) for method in SOME}
    assert 0 < gap["ensemble l1"] <= 1e-10
    assert gap["ensemble l1, one stage"] <= 1e-3


def test_methods_are_what_they_are_called():
    for method, options in ensembles.METHODS.items():
        for name, parameter in (("german", "C"), ("kinematics", "alpha")):
            parameters = ensembles.make(method, problem_of(name), 3.0).get_params()
            assert parameters[parameter] == 3.0
            assert all(parameters[key] == value for key, value in options.items())


def test_table_and_claims(rows):
    lines = ensembles.table(rows).splitlines()
    assert lines[0] == "|  | kinematics |"
    assert lines[2] == "| unif, printed | 0.138 ± 0.005 |"
    assert len(lines) == 2 + 1 + 4
    claims = {claim.text: claim for claim in ensembles.claims(rows)}
    assert "error of alignf below unif on all sets" not in claims  # alignf was not run
    assert claims["error of ensemble l1 below best single on all sets"].printed == "open"


@pytest.mark.parametrize("name", ["kinematics", "german"])
@pytest.mark.parametrize("method", ensembles.METHODS)
def test_test_points_do_not_influence_training(data_dir, name, method):
    problem = problem_of(name)
    X, y = problem.load(100, 0)
    roles = parts(problem, y, 0)[2]
    grid = GRIDS[problem.task][1::3]

    def learn(X, y):
        return ensembles.run_fold(problem, method, X, y, roles, grid)

    assert_blind(learn, X, y, roles[0], roles[2], {"error"})


def test_a_run_is_saved_and_kept(data_dir, tmp_path, monkeypatch):
    options = {"quick": True, "names": ["german"], "methods": ["unif", "alignf"], "out": tmp_path}
    record = ensembles.run(**options)
    assert len(record.rows) == 2 * 5
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]
    monkeypatch.setattr(ensembles, "work", None)
    assert str(ensembles.run(**options)) == str(record)
    with pytest.raises(ValueError, match=r"methods must be among unif, alignf.* got 'alignff'"):
        ensembles.run(methods=["alignff"])
