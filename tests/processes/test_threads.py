"""Fits in several Python threads: the same answers, and nothing left behind in the process."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import multikernel as mk
from multikernel import _threads
from multikernel._quiet import ignoring
from multikernel._threads import one_blas_thread

RNG = np.random.default_rng(1)
X = RNG.standard_normal((90, 4))
LABELS = (X[:, 0] * X[:, 1] + 0.2 * RNG.standard_normal(90) > 0).astype(int)
OUTPUT = X[:, 0] ** 2 + 0.1 * RNG.standard_normal(90)
BANK = mk.gaussians([0.05, 0.5, 2.0])

MODELS = [
    (mk.MultiKernelClassifier(), LABELS),
    (mk.MultiKernelClassifier(BANK, mk.LpNorm(p=1.5)), LABELS),
    (mk.MultiKernelClassifier(BANK, mk.LpNorm(p=1.5, squared=False)), LABELS),
    (mk.MultiKernelClassifier(BANK, "alignf", loss="logistic"), LABELS),
    (mk.MultiKernelRegressor(), OUTPUT),
    (mk.MultiKernelRegressor(BANK, mk.LpNorm(p=8), loss="epsilon_insensitive"), OUTPUT),
    (mk.MultiKernelRegressorCV(BANK, ["uniform", "align"], cv=3), OUTPUT),
    (mk.VotedKernelClassifier(BANK), LABELS),
    (mk.KernelEnsembleClassifier(BANK), LABELS),
    (mk.ParzenClassifier(BANK), LABELS),
]


def answers(number):
    model, y = MODELS[number]
    fitted = clone(model).fit(X, y)
    decide = getattr(fitted, "decision_function", fitted.predict)
    return decide(X).tobytes()


def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_fits_at_the_same_time_give_the_same_bits_and_leave_nothing_behind():
    alone = [answers(number) for number in range(len(MODELS))]
    work = list(range(len(MODELS))) * 3
    with threadpool_limits(2, user_api="blas"):
        before, filters = blas_threads(), list(warnings.filters)
        with ThreadPoolExecutor(6) as threads:
            together = list(threads.map(answers, work))
        assert blas_threads() == before
    assert warnings.filters == filters
    wrong = {number for number, found in zip(work, together, strict=True) if found != alone[number]}
    assert not wrong


def test_one_estimator_fitted_and_read_by_many():
    model = mk.MultiKernelClassifier(BANK, "alignf").fit(X, LABELS)
    wanted = model.predict_proba(X)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: model.predict_proba(X), range(12)):
            assert np.array_equal(found, wanted)


def run_in_turns(first, second):
    """Enter one context, then another one in another thread, and leave them in that order."""
    entered, left = threading.Event(), threading.Event()

    def other():
        with second():
            entered.set()
            left.wait(30)

    thread = threading.Thread(target=other)
    with first():
        thread.start()
        assert entered.wait(30)
    left.set()
    thread.join()


def test_the_limit_of_blas_is_taken_back_by_the_last_thread():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        run_in_turns(one_blas_thread, one_blas_thread)
        assert blas_threads() == before
        with one_blas_thread(), one_blas_thread():
            assert set(blas_threads()) <= {1}
        assert blas_threads() == before


class Library:
    """A BLAS library whose user interrupts the n-th change of its number of threads."""

    changes = 0

    def __init__(self, interrupted):
        self.num_threads, self.interrupted = 2, interrupted

    def set_num_threads(self, count):
        Library.changes += 1
        if Library.changes == self.interrupted:
            raise KeyboardInterrupt
        self.num_threads = count


@pytest.mark.parametrize("interrupted", [1, 2, 3, 4])
def test_an_interrupt_while_the_limit_is_set_or_taken_back(interrupted, monkeypatch):
    """One library with a number for the process, one with a number for every thread."""
    libraries = [Library(interrupted), Library(interrupted)]
    monkeypatch.setattr(Library, "changes", 0)
    monkeypatch.setattr(_threads, "_libraries", lambda: (libraries[:1], libraries[1:]))
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        pass
    assert [one.num_threads for one in libraries] == [2, 2]
    with one_blas_thread():
        assert [one.num_threads for one in libraries] == [1, 1]
    assert [one.num_threads for one in libraries] == [2, 2]


def test_a_thread_that_ignores_warnings_ignores_its_own():
    def ignore():
        return ignoring(ConvergenceWarning)

    filters = list(warnings.filters)
    run_in_turns(ignore, ignore)
    assert warnings.filters == filters
    with pytest.warns(ConvergenceWarning) as said:
        with ignoring(ConvergenceWarning):
            warnings.warn("mine", ConvergenceWarning, stacklevel=1)
            other = threading.Thread(
                target=lambda: warnings.warn("theirs", ConvergenceWarning, stacklevel=1)
            )
            other.start()
            other.join()
            with pytest.warns(UserWarning, match="another kind"):
                warnings.warn("another kind", UserWarning, stacklevel=1)
        warnings.warn("later", ConvergenceWarning, stacklevel=1)
    assert [str(one.message) for one in said] == ["theirs", "later"]
