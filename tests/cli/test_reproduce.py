"""``multikernel reproduce``: what is listed, run, printed and saved."""

from __future__ import annotations

import csv
from dataclasses import dataclass

import pytest

from experiments import toy
from experiments.record import Claim, Record
from tests.cli.helpers import answer, call, fail, succeed


@dataclass(frozen=True)
class Row:
    error: float


@pytest.fixture
def asked(monkeypatch):
    """What the toy experiment was asked for; it answers at once."""
    options = {}

    def run(**given):
        options.update(given)
        return Record(
            "toy-quick" if given["quick"] else "toy",
            "All as in the paper",
            [Row(0.25), Row(0.5)],
            claims=[Claim("0.25 is less than 0.5", "yes", "yes")],
        )

    monkeypatch.setattr(toy, "run", run)
    return options


def test_experiments_are_found_without_importing_them():
    known = answer("reproduce")["experiments"]
    assert known["toy"].startswith("Kloft's toy experiment")
    assert "Tables 2 and 4" in known["combinations"] and "Table 1" in known["alignment"]
    assert "voted_methods" not in known and "record" not in known
    listed = succeed("reproduce").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(known)
    assert all(known[line.split()[0]] in line for line in listed)


def test_what_does_not_exist_is_named():
    assert "There is no experiment 'toys'" in fail("reproduce", "toys")
    assert "'toy' and --all" in fail("reproduce", "toy", "--all")


def test_an_experiment_is_run_with_its_options(asked, tmp_path):
    folder = tmp_path / "new"
    said = answer("reproduce", "toy", "--quick", "--out", folder, "--seed", 3, "--jobs", 1)
    assert said["rows"] == [{"error": 0.25}, {"error": 0.5}]
    assert said["claims"][0]["ours"] == "yes"
    assert said["text"].startswith("# All as in the paper")
    assert asked == {"quick": True, "seed": 3, "n_jobs": 1, "out": folder, "progress": False}


def test_results_are_printed_and_saved(asked, tmp_path, monkeypatch):
    """Without --out they go to the folder ``results``."""
    monkeypatch.chdir(tmp_path)
    done = succeed("reproduce", "toy")
    assert "| 0.25 is less than 0.5 | yes | yes |" in done.stdout
    with (tmp_path / "results" / "toy.csv").open() as file:
        assert [float(row["error"]) for row in csv.DictReader(file)] == [0.25, 0.5]
    assert "0.25 is less than 0.5" in (tmp_path / "results" / "toy.md").read_text()
    assert "wrote results/toy.md" in done.stderr


def test_all_goes_on_where_one_fails(asked, monkeypatch, tmp_path):
    known = {"spectral": "Figure 1", "toy": "which norm"}
    monkeypatch.setattr("multikernel.cli.reproduce.experiments", lambda: known)

    def no_data(**options):
        raise FileNotFoundError("the data are not here")

    monkeypatch.setattr("experiments.spectral.run", no_data)
    done = call("reproduce", "--all", "--out", tmp_path)
    assert done.exit_code == 1
    assert "1 of 2 experiments did not run:\n  spectral: the data are not here" in done.stderr
    assert (tmp_path / "toy.csv").exists()
    del known["spectral"]
    assert list(answer("reproduce", "--all", "--out", tmp_path)["experiments"]) == ["toy"]


def test_one_that_fails_says_why(monkeypatch, tmp_path):
    def no_data(**options):
        raise FileNotFoundError("the data are not here")

    monkeypatch.setattr(toy, "run", no_data)
    assert "the data are not here" in fail("reproduce", "toy", "--out", tmp_path)
