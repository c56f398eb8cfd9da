"""Fits that are stopped and taken up again: the same bits as without the stop, for every solver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import multikernel as mk
from multikernel import _checkpoint, _journal
from multikernel._checkpoint import CheckpointError
from multikernel.estimators.voted_search import VotedKernelClassifierCV

RNG = np.random.default_rng(3)
X = RNG.standard_normal((70, 4))
LABELS = (X[:, 0] + 0.3 * RNG.standard_normal(70) > 0).astype(int)
CLASSES = np.digitize(X[:, 0] + 0.2 * RNG.standard_normal(70), [-0.5, 0.5])
OUTPUT = X[:, 0] + 0.2 * RNG.standard_normal(70)
GAPS = X.copy()
GAPS[::3, :2] = np.nan

BANK = mk.gaussians([0.05, 0.3, 1.0, 3.0])
LINEAR = [*(mk.Linear(columns=[i]) for i in range(4)), mk.Linear()]
VIEWS = [mk.Gaussian(0.3, columns=[0, 1]), mk.Gaussian(0.3, columns=[2, 3])]
Machine, Ridge, OneClass = mk.MultiKernelClassifier, mk.MultiKernelRegressor, mk.MultiKernelOneClass
Vote = mk.VotedKernelClassifier
VOTE = {"complexity_penalty": 1e-4, "sparsity_penalty": 1e-3}
GRID = {"complexity_penalties": (0.01, 0.001), "sparsity_penalties": (0.01, 0.001)}


def lp(p, solver="auto", **options):
    return {"weighting": mk.LpNorm(p=p, solver=solver, **options)}


#: Every solver and loop that has something to keep, with an estimator and targets for it.
CASES = {
    "alternation": (Machine(BANK, **lp(1.5, "alternation")), LABELS),
    "alternation, mixed": (Machine(BANK, weighting=mk.ElasticNetNorm()), LABELS),
    "cutting planes": (Machine(BANK, **lp(1.3)), LABELS),
    "cutting planes, l1": (Machine(BANK, weighting="l1"), CLASSES),
    "cutting planes, ridge": (Ridge(BANK, weighting="l2-ball"), OUTPUT),
    "wrapper": (Machine(BANK, **lp(1.2, "cutting-planes-wrapper")), LABELS),
    "penalty cuts": (Machine(BANK, weighting=mk.AlignmentRegularized()), LABELS),
    "interior point, few steps": (Machine(BANK, **lp(8)), LABELS),
    "interior point": (
        Ridge(LINEAR, loss="epsilon_insensitive", **lp(np.inf, "interior-point")),
        OUTPUT,
    ),
    "interior point, one class": (OneClass(LINEAR, **lp(64, "interior-point")), None),
    "chunking": (Machine(BANK, **lp(1.5, "chunking")), LABELS),
    "cutting planes, chunking": (Machine(BANK, **lp(1.5, "cutting-planes-chunking")), LABELS),
    "lbfgs": (Ridge(BANK, **lp(1.5, "lbfgs")), OUTPUT),
    "lbfgs, logistic": (Machine(BANK, loss="logistic", **lp(1.5, "lbfgs")), LABELS),
    "primal": (Machine(LINEAR, **lp(1.5, "primal")), LABELS),
    "unsquared": (Machine(BANK, **lp(1.5, squared=False)), LABELS),
    "unsquared, large p": (Machine(BANK, **lp(8, squared=False)), LABELS),
    "observed margins": (
        Machine(VIEWS, weighting=mk.ObservedMargins(), missing="absent"),
        LABELS,
    ),
    "weights of every class": (Machine(BANK, multiclass="per_class", **lp(1.3)), CLASSES),
    "single precision": (Machine(BANK, dtype="float32", **lp(1.3)), LABELS),
    "leave-one-out": (Machine(), LABELS),
    "one class": (OneClass(BANK), None),
    "search": (
        mk.MultiKernelClassifierCV(
            BANK, ["uniform", "alignf", mk.LpNorm(p=1.3)], (0.1, 1.0), cv=3, multiclass="per_class"
        ),
        CLASSES,
    ),
    "search, probabilities": (
        mk.MultiKernelClassifierCV(BANK, "lp", (0.1, 1.0), cv=2, scoring="neg_log_loss"),
        LABELS,
    ),
    "search, regression": (
        mk.MultiKernelRegressorCV(None, ["loo", mk.LpNorm(p=1.3)], (0.1, 1.0), cv=2),
        OUTPUT,
    ),
    "vote": (Vote(BANK, **VOTE, solver="columns"), CLASSES),
    "vote, descent": (Vote(BANK, **VOTE, solver="descent", max_iter=20), LABELS),
    "vote, search": (VotedKernelClassifierCV(BANK, **GRID, cv=2), LABELS),
}


def fitted(estimator, y, X=X):
    data = GAPS if getattr(estimator, "missing", "error") == "absent" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: some of these problems are hard
        return estimator.fit(data, y)


def all_numbers(model):
    """Digests of all fitted attributes, and of predictions."""
    names = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name) for name in names if name not in ("grams_", "bank_")}
    new = X[:20] if getattr(model, "missing", "error") != "absent" else GAPS[:20]
    found["predictions"] = model.predict(new)
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(new)
    return {name: joblib.hash(value) for name, value in found.items()}


class Killed(BaseException):
    """Stands for the end of a process."""


def stop_after(monkeypatch, saves):
    """Let every step be saved, and end the process at the next save after this many."""
    done = []
    save = Journal_flush

    def flush(journal):
        if saves is not None and len(done) >= saves:
            journal.unsaved = False  # nothing is saved any more
            raise Killed
        save(journal)
        done.append(1)

    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(_journal, "SECONDS_PER_SECOND_OF_SAVING", 0.0)
    monkeypatch.setattr(_journal.Journal, "flush", flush)
    return done


Journal_flush = _journal.Journal.flush


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_fit_ends_with_the_same_bits(name, tmp_path, monkeypatch):
    estimator, y = CASES[name]
    wanted = all_numbers(fitted(clone(estimator), y))
    kept = clone(estimator).set_params(checkpoint=tmp_path / "fit.checkpoint")
    done = stop_after(monkeypatch, None)
    assert all_numbers(fitted(clone(kept), y)) == wanted
    saves = len(done)
    assert saves >= 2 and not list(tmp_path.iterdir())
    stop_after(monkeypatch, max(saves // 2, 1))
    with pytest.raises(Killed):
        fitted(clone(kept), y)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.checkpoint"]
    done = stop_after(monkeypatch, None)
    again = fitted(clone(kept), y)
    assert len(done) <= saves - saves // 2 + 2, "nothing was taken from the checkpoint"
    assert not list(tmp_path.iterdir())
    assert all_numbers(again) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_wherever_it_is_stopped(name, tmp_path, monkeypatch):
    estimator, y = CASES[name]
    wanted = all_numbers(fitted(clone(estimator), y))
    kept = clone(estimator).set_params(checkpoint=tmp_path / "fit.checkpoint")
    done = stop_after(monkeypatch, None)
    fitted(clone(kept), y)
    saves = len(done)
    for stop in range(1, saves, max(1, saves // 12)):
        stop_after(monkeypatch, stop)
        with pytest.raises(Killed):
            fitted(clone(kept), y)
        stop_after(monkeypatch, None)
        assert all_numbers(fitted(clone(kept), y)) == wanted, stop


@pytest.mark.slow
def test_a_fit_that_is_stopped_at_every_step_arrives(tmp_path, monkeypatch):
    estimator, y = CASES["chunking"]
    wanted = all_numbers(fitted(clone(estimator), y))
    kept = clone(estimator).set_params(checkpoint=tmp_path / "fit.checkpoint")
    for _ in range(200):
        stop_after(monkeypatch, 1)
        try:
            assert all_numbers(fitted(clone(kept), y)) == wanted
            return
        except Killed:
            continue
    pytest.fail("it never arrived")


SCRIPT = """
import os, signal, sys
import numpy as np
import multikernel as mk
from multikernel import _journal

_journal.SAVE_SECONDS = _journal.SECONDS_PER_SECOND_OF_SAVING = 0.0
kill_at, path = int(sys.argv[1]), sys.argv[2]
flush, saves = _journal.Journal.flush, []

def flush_and_die(journal):
    flush(journal)
    saves.append(1)
    if len(saves) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

_journal.Journal.flush = flush_and_die
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X[:, 0] * X[:, 1] > 0
model = mk.MultiKernelClassifierCV(
    mk.gaussians([0.1, 1.0]), [mk.LpNorm(p=1.5), "uniform"], (0.5, 2.0), cv=2,
    checkpoint=path,
).fit(X, y)
print(len(saves), model.decision_function(X).tobytes().hex(), model.history_, model.cv_results_)
"""


def run_script(kill_at, path):
    command = [sys.executable, "-c", SCRIPT, str(kill_at), str(path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_killed_processes_are_taken_up_by_others(tmp_path):
    """Two processes are killed with signal 9, a third one ends as one that was left alone."""
    path = tmp_path / "fit.checkpoint"
    for kill_at in (2, 3):
        assert run_script(kill_at, path).returncode == -signal.SIGKILL
        assert path.exists()
    last, alone = run_script(-1, path), run_script(-1, tmp_path / "alone.checkpoint")
    assert last.returncode == alone.returncode == 0, last.stderr + alone.stderr
    saves, result = last.stdout.split(" ", 1)
    all_saves, wanted = alone.stdout.split(" ", 1)
    assert result == wanted
    assert int(saves) < int(all_saves)
    assert list(tmp_path.iterdir()) == []


# -- what a checkpoint belongs to -----------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """An estimator whose fit was stopped, with its checkpoint."""
    estimator = Machine(BANK, **lp(1.5), checkpoint=str(tmp_path / "fit.checkpoint"))
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            fitted(estimator, LABELS)
    return estimator


@pytest.mark.parametrize(
    "change, named",
    [
        ({"C": 2.0}, "C"),
        ({"weighting": mk.LpNorm(p=1.4)}, "weighting"),
        ({"kernels": mk.gaussians([0.05, 0.3, 1.0, 3.1])}, "kernels"),
        ({"class_weight": {0: 1.0, 1: 2.0}}, "class_weight"),
    ],
)
def test_other_parameters_are_refused_by_name(stopped, change, named):
    with pytest.raises(CheckpointError, match=f"other values of {named}\\."):
        fitted(stopped.set_params(**change), LABELS)


def test_other_data_are_refused_by_name(stopped):
    with pytest.raises(CheckpointError, match=r"other values of X\."):
        fitted(stopped, LABELS, X + 1e-9)
    with pytest.raises(CheckpointError, match=r"other values of y\."):
        fitted(stopped, 1 - LABELS)
    with pytest.raises(CheckpointError, match=r"other values of sample_weight\."):
        stopped.fit(X, LABELS, sample_weight=np.full(len(X), 2.0))
    with pytest.raises(CheckpointError, match="other values of estimator"):
        fitted(mk.MultiKernelOneClass(BANK, checkpoint=stopped.checkpoint), None)


def test_what_does_not_change_results_may_change(stopped):
    fitted(stopped.set_params(n_jobs=2, verbose=0, memory_budget="1GB"), LABELS)


def test_a_checkpoint_does_not_travel_with_a_model(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = fitted(Machine(BANK, **lp(1.5), checkpoint=path), LABELS)
    assert model.checkpoint == path
    assert mk.load(mk.save(model, tmp_path / "model.skops")).checkpoint is None


def test_it_is_for_exact_fits():
    model = mk.MultiKernelRegressor(approximation=mk.Nystroem(rank=10), checkpoint="here")
    with pytest.raises(ValueError, match="checkpoint='here' works only for exact fits"):
        model.fit(X, OUTPUT)


def test_the_place_must_be_a_path():
    with pytest.raises(ValueError, match="'checkpoint' parameter"):
        Machine(checkpoint=3).fit(X, LABELS)


def test_an_interrupt_keeps_what_was_done(tmp_path, monkeypatch):
    """Ctrl-C saves at once, also before it is time to."""
    estimator, path = CASES["alternation, mixed"][0], tmp_path / "fit.checkpoint"
    train, runs = mk.MultiKernelClassifier._make_learner, []

    def interrupted(self, C, grams):
        learner = train(self, C, grams)
        fit = learner.fit

        def one_run(*args, **kwargs):
            if len(runs) == 2:
                raise KeyboardInterrupt
            runs.append(1)
            return fit(*args, **kwargs)

        learner.fit = one_run
        return learner

    kept = clone(estimator).set_params(checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr(_checkpoint, "MIN_SECONDS_TO_KEEP", 0.0)
        patch.setattr(mk.MultiKernelClassifier, "_make_learner", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted(kept, LABELS)
    assert path.exists()
    assert all_numbers(fitted(clone(kept), LABELS)) == all_numbers(fitted(clone(estimator), LABELS))
