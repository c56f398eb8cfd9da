"""Ctrl-C anywhere in a fit: an interrupt that says what is left, and nothing else is left."""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info

import multikernel as mk
from multikernel import _checkpoint
from multikernel.solvers.joint.learn import Interrupted
from tests.estimators.test_checkpoint import BANK, CASES, GAPS, LABELS, X, all_numbers, fitted

LIBRARY = str(Path(mk.__file__).parent)

MODELS = {
    **CASES,
    "rank one": (mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), "l1"), LABELS),
    "logistic": (mk.MultiKernelClassifier(BANK, "alignf", loss="logistic"), LABELS),
    "least squares": (mk.MultiKernelClassifier(BANK, "best", loss="squared"), LABELS),
    "approximation": (mk.MultiKernelClassifier(BANK, approximation=mk.Nystroem(rank=20)), LABELS),
    "ensemble": (mk.KernelEnsembleClassifier(BANK), LABELS),
    "spectral": (mk.SpectralKernelClassifier(BANK[0]), LABELS),
    "convex hull": (mk.SpectralKernelClassifier(BANK, family="convex"), LABELS),
    "parzen": (mk.ParzenClassifier(BANK), LABELS),
    "clustering": (mk.KernelClustering(2, BANK, random_state=0), None),
    "consensus": (mk.ConsensusKernel(BANK), None),
}


def send_at(count):
    """Send the signal at a call of a function of the library; what it gives counts the calls.

    It is sent while the function begins, wherever that is: in solvers, passes and contexts. Python
    ignores what is raised while it closes a generator, so that generators do not count.
    """
    calls = [0]

    def watch(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(LIBRARY):
            if code.co_flags & inspect.CO_GENERATOR:
                return
            calls[0] += 1
            if calls[0] == count:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(watch)
    return calls


def surroundings():
    blas = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    return blas, list(warnings.filters), threading.active_count(), np.geterr()


@pytest.fixture(autouse=True)
def python_handles_the_signal():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    sys.setprofile(None)
    signal.signal(signal.SIGINT, before)


def fit_with_signal(model, y, count):
    calls = send_at(count)
    try:
        return fitted(model, y), calls[0]
    finally:
        sys.setprofile(None)


def check_interrupts(name, parts):
    model, y = MODELS[name]
    fitted(clone(model), y)  # whatever is made once in a process
    before = surroundings()
    done, calls = fit_with_signal(clone(model), y, -1)
    new = GAPS if getattr(model, "missing", "error") == "absent" else X
    answer = "predict" if hasattr(done, "predict") else "transform"
    wanted = getattr(done, answer)(new)
    for part in parts:
        one = clone(model)
        with pytest.raises(KeyboardInterrupt) as caught:
            fit_with_signal(one, y, max(int(part * calls), 1))
        assert surroundings() == before
        said = str(caught.value)
        if isinstance(caught.value, Interrupted):
            assert "relative duality gap of" in said and "The estimator is not fitted" in said
        else:
            assert not said
        with pytest.raises(NotFittedError):
            getattr(one, answer)(new)
        # The model of an earlier fit is gone as well, not mixed with the new one.
        again = fitted(clone(model), y)
        with pytest.raises(KeyboardInterrupt):
            fit_with_signal(again, y, max(int(part * calls), 1))
        try:
            left = getattr(again, answer)(new)
        except NotFittedError:
            pass
        else:
            assert np.array_equal(left, wanted), "a mixture of two fits"
        assert np.array_equal(getattr(fitted(one, y), answer)(new), wanted)


#: The others are in the slow tests.
SOME = ("cutting planes", "chunking", "lbfgs", "vote, descent", "clustering")


@pytest.mark.parametrize("name", SOME)
def test_somewhere_in_the_fit(name):
    check_interrupts(name, [0.7])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_at_many_places(name):
    check_interrupts(name, np.linspace(0.02, 0.99, 12))


JOINT = [
    name if name in SOME else pytest.param(name, marks=pytest.mark.slow)
    for name, (model, _) in CASES.items()
    if hasattr(model, "warm_start") and name != "weights of every class"
]


@pytest.mark.parametrize("name", JOINT)
def test_the_best_iterate_stays_where_it_is_asked_for(name):
    """With warm_start=True a certified model is left, and the message says how good it is."""
    model, y = CASES[name]
    model = clone(model).set_params(warm_start=True)
    _, calls = fit_with_signal(clone(model), y, -1)
    for part in (0.5, 0.75, 0.9):
        one = clone(model)
        try:
            fit_with_signal(one, y, int(part * calls))
        except Interrupted as caught:
            assert "The estimator keeps the best result so far" in str(caught)
            assert f"{one.duality_gap_:.2g}" in str(caught)
            new = GAPS if one.missing == "absent" else X
            assert np.all(np.isfinite(one.predict(new).astype(float)))
            assert np.all(one.kernel_weights_ >= 0) and one.duality_gap_ >= 0
            assert len(one.history_) >= 1
        except KeyboardInterrupt:
            with pytest.raises(NotFittedError):
                one.predict(X)


def test_a_checkpoint_is_named_in_the_message(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "MIN_SECONDS_TO_KEEP", 0.0)
    model, y = CASES["alternation, mixed"]
    kept = clone(model).set_params(checkpoint=tmp_path / "fit.checkpoint")
    _, calls = fit_with_signal(clone(kept), y, -1)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit_with_signal(clone(kept), y, int(0.6 * calls))
    assert "fit.checkpoint; the next fit continues from it." in caught.value.__notes__[0]
    assert all_numbers(fitted(kept, y)) == all_numbers(fitted(clone(model), y))
