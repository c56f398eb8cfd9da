"""Commands that are stopped: what is left, what is said, and how they go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import multikernel as mk
from multikernel import _journal
from multikernel.cli import leaderboard
from tests.cli.helpers import answer, call, fail, make_columns, succeed, write_csv

FIT = ("--target", "kind", "-k", "gaussians([0.1, 1])", "-w", "LpNorm(p=1.5)", "--folds", "3")
COMPARE = ("--target", "kind", "-k", "gaussians([0.1, 1])", "-w", "uniform", "-w", "alignf")
COMPARE = (*COMPARE, "--no-baselines", "--repeats", "1", "--folds", "3", "--seed", "4")


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "animals.csv", make_columns(60))


@pytest.fixture
def save_always(monkeypatch):
    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(_journal, "SECONDS_PER_SECOND_OF_SAVING", 0.0)


def interrupt_at(patch, owner, name, count):
    """Let a function raise KeyboardInterrupt at a call; what it gives counts the calls."""
    function, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(1)
        if len(calls) == count:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    patch.setattr(owner, name, counted)
    return calls


def test_a_fit_goes_on_and_gives_the_same_model(table, tmp_path, monkeypatch, save_always):
    out, other = tmp_path / "model.skops", tmp_path / "other.skops"
    checkpoint = tmp_path / "model.skops.checkpoint"
    succeed("fit", table, *FIT, "--out", other)
    with monkeypatch.context() as patch:
        interrupt_at(patch, mk.MultiKernelClassifierCV, "_score_cell", 3)
        done = call("fit", table, *FIT, "--out", out)
    assert done.exit_code == 130 and "add --resume to continue" in done.stderr.replace("\n", " ")
    assert checkpoint.exists() and not out.exists()

    said = fail("fit", table, *FIT, "--out", out)
    assert "Continue it with --resume, or start again with --force" in said and checkpoint.exists()
    assert "other values of" in fail("fit", table, *FIT, "--C", "3", "--out", out, "--resume")

    with monkeypatch.context() as patch:
        cells = interrupt_at(patch, mk.MultiKernelClassifierCV, "_score_cell", None)
        succeed("fit", table, *FIT, "--out", out, "--resume")
    assert len(cells) == 1
    assert not checkpoint.exists()
    one, two = mk.load(out).estimator, mk.load(other).estimator
    assert one.checkpoint is None
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    assert np.array_equal(one.kernel_weights_, two.kernel_weights_)
    assert np.array_equal(one.cv_predictions_, two.cv_predictions_)


def test_resume_without_a_checkpoint_begins_at_the_beginning(table, tmp_path):
    done = succeed("fit", table, *FIT, "--out", tmp_path / "a.skops", "--resume")
    assert "There is no checkpoint" in done.stderr


def test_a_short_fit_that_is_interrupted_leaves_nothing(table, tmp_path, monkeypatch):
    interrupt_at(monkeypatch, mk.MultiKernelClassifierCV, "_score_cell", 3)
    done = call("fit", table, *FIT, "--out", tmp_path / "a.skops")
    assert done.exit_code == 130 and "--resume" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [table.name]


def test_a_damaged_checkpoint_is_refused(table, tmp_path):
    (tmp_path / "a.skops.checkpoint").write_bytes(b"PK nothing")
    said = fail("fit", table, *FIT, "--out", tmp_path / "a.skops", "--resume")
    assert "is damaged" in said and "Delete the file" in said


def test_a_comparison_goes_on_with_the_same_scores(table, tmp_path, monkeypatch, save_always):
    out = tmp_path / "scores.csv"
    wanted = answer("compare", table, *COMPARE, "--out", tmp_path / "other.csv")
    with monkeypatch.context() as patch:
        interrupt_at(patch, leaderboard, "score_method", 4)
        assert call("compare", table, *COMPARE, "--out", out).exit_code == 130
    assert (tmp_path / "scores.csv.checkpoint").exists() and not out.exists()
    other = (*COMPARE, "--categories", "kernel", "--out", out, "--resume")
    assert "other values of categories" in fail("compare", table, *other)
    with monkeypatch.context() as patch:
        cells = interrupt_at(patch, leaderboard, "score_method", None)
        found = answer("compare", table, *COMPARE, "--out", out, "--resume")
    assert len(cells) == 6
    for one, two in zip(found["rows"], wanted["rows"], strict=True):
        assert (one["name"], one["scores"]) == (two["name"], two["scores"])
    assert out.read_bytes() == (tmp_path / "other.csv").read_bytes()
    assert not (tmp_path / "scores.csv.checkpoint").exists()


def test_resume_needs_a_place(table):
    assert "give --out or --report" in fail("compare", table, *COMPARE, "--resume")
    said = fail("fit", table, *FIT, "--chunks", "--resume", "--out", table.with_suffix(".skops"))
    assert "--resume cannot be used with --chunks" in said


SCRIPT = """
import os, signal, sys
from multikernel import _journal, _places
from multikernel.cli import main

where, signal_number = sys.argv[1], int(sys.argv[2])
_journal.SAVE_SECONDS = _journal.SECONDS_PER_SECOND_OF_SAVING = 0.0
flush, replace, saves = _journal.Journal.flush, os.replace, []

def flush_and_send(journal):
    flush(journal)
    saves.append(1)
    if where == "fit" and len(saves) == 3:
        os.kill(os.getpid(), signal_number)

def send_and_replace(source, target):
    if where == "write" and str(target).endswith("model.skops"):
        os.kill(os.getpid(), signal_number)
    replace(source, target)

_journal.Journal.flush, _places.os.replace = flush_and_send, send_and_replace
sys.argv = ["multikernel", *sys.argv[3:]]
main()
"""


@pytest.mark.parametrize(
    "where, number, code",
    [
        ("fit", signal.SIGTERM, 143),
        ("write", signal.SIGTERM, 143),
        pytest.param("fit", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("write", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("fit", signal.SIGKILL, -9, marks=pytest.mark.slow),
    ],
)
def test_signals_leave_no_output_or_a_whole_one(table, tmp_path, where, number, code):
    out = tmp_path / "model.skops"
    words = [str(word) for word in ("fit", table, *FIT, "--out", out)]
    command = [sys.executable, "-c", SCRIPT]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, where, str(int(number)), *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code > 0:
        assert ("Terminated." if number == signal.SIGTERM else "Interrupted.") in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {table.name}
    assert left == ({"model.skops.checkpoint"} if where == "fit" else set())
    succeed(*words, *(["--resume"] if where == "fit" else []))
    assert {path.name for path in tmp_path.iterdir()} == {table.name, "model.skops"}
