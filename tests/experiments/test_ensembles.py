"""Ensembles against kernel learning: what a small run must show, and the table."""

from __future__ import annotations

import pytest

from multikernel.experiments import ensembles
from multikernel.experiments.alignment import PROBLEMS

KINEMATICS = PROBLEMS[0]


@pytest.fixture(scope="module")
def outcomes(data_dir):
    return {
        method: ensembles.run_one(KINEMATICS, method, 200, (0.1,), 0)
        for method in ("unif", "best single", "ensemble l1", "ensemble l1, one stage")
    }


def test_a_vote_beats_the_plain_sum_where_few_kernels_are_good(outcomes):
    assert all(len(found.errors) == 5 for found in outcomes.values())
    assert outcomes["ensemble l1"].errors.mean() < outcomes["unif"].errors.mean()
    assert 0 < outcomes["ensemble l1"].gap <= 1e-10
    assert outcomes["ensemble l1, one stage"].gap <= 1e-3


def test_methods_are_what_they_are_called():
    bank = ensembles.gaussians([1.0])
    for method, options in ensembles.METHODS.items():
        for task, name in (("classification", "C"), ("regression", "alpha")):
            parameters = ensembles.make(method, task, bank, 3.0).get_params()
            assert parameters[name] == 3.0
            assert all(parameters[key] == value for key, value in options.items())


def test_markdown(outcomes):
    lines = ensembles.markdown(list(outcomes.values())).splitlines()
    assert lines[0] == "| | kinematics |"
    assert lines[2] == "| unif, printed | 0.138 ± 0.005 |"
    assert len(lines) == 2 + 2 + 4
