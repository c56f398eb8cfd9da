"""Runtimes: what is timed, and what is told of it. No test looks at a clock."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

from experiments import runtime
from experiments.runtime_curves import Curve, Curves, Row, tell
from multikernel.kernels import sample_ids
from multikernel.weighting.lp_norm import SOLVERS


def test_the_matrices_are_those_described(data_dir):
    K, y = runtime.matrices(40, 50, 0)
    assert K.shape == (50, 40, 40) and set(y) == {-1, 1}
    # 2 sigma^2 = 1.2^k: all kernels are powers of the first
    np.testing.assert_allclose(K[7], K[0] ** (1.2**-7), rtol=1e-10)


# -- methods --------------------------------------------------------------------------------------


def test_every_solver_of_the_library_is_timed_or_named(data_dir):
    wanted, refused = runtime.methods()
    labels = [method.label for method in wanted]
    assert len(set(labels)) == len(labels)
    assert labels[:2] == ["SVM, sum given", "SVM"]
    assert {"on the fly, p = 1", "on the fly, p = 4/3"} <= set(labels)
    timed = {method.solver for method in wanted} | {text.split(" ")[0] for text in refused}
    assert timed == set(SOLVERS)
    # Each has the norms that it is for.
    assert {m.p for m in wanted if m.solver == "interior-point"} == {4.0}
    assert {m.p for m in wanted if m.solver == "cutting-planes"} == {1.0, 4 / 3}
    assert {m.p for m in wanted if m.solver == "alternation"} == {1.0, 4 / 3, 4.0}


def test_solvers_that_do_not_apply_are_named_with_the_reason(data_dir, monkeypatch):
    monkeypatch.setattr(runtime, "SOLVERS", ("auto", "alternation", "made-up"))
    wanted, refused = runtime.methods()
    assert {m.solver for m in wanted} == {"auto", "alternation"}
    (reason,) = refused
    assert reason.startswith("made-up (LpNorm: solver must be one of")


def test_a_solver_for_smooth_losses_is_timed_with_the_logistic_loss(data_dir, monkeypatch):
    def refusal(method, K, y):
        return "" if method.solver == "alternation" or method.loss == "logistic" else "not smooth"

    monkeypatch.setattr(runtime, "SOLVERS", ("auto", "alternation", "smooth"))
    monkeypatch.setattr(runtime, "_refusal", refusal)
    wanted, refused = runtime.methods()
    labels = [method.label for method in wanted]
    assert "smooth, p = 4/3, logistic loss" in labels and not refused
    # and beside it the default solver with that loss
    assert "auto, p = 4/3, logistic loss" in labels


def test_the_problem_on_the_fly_is_that_of_the_matrices(data_dir):
    K, y = runtime.matrices(150, 10, 0)
    X, again = runtime.images(150, 0)
    assert np.array_equal(y, again)
    for p in (1.0, 4 / 3):
        whole = runtime.Method("auto", p).model(150, 10, K).fit(sample_ids(150), y)
        rows = runtime.Method("auto", p, "images").model(150, 10, None).fit(X, y)
        assert rows.objective_ == pytest.approx(whole.objective_, rel=2e-3)
        np.testing.assert_allclose(rows.kernel_weights_, whole.kernel_weights_, atol=0.1)


def test_the_sum_that_is_given_is_that_of_the_kernels(data_dir):
    K, y = runtime.matrices(120, 8, 0)
    ids = sample_ids(120)
    given = runtime.Method("auto", 2.0, "sum").model(120, 8, K.sum(axis=0)[None]).fit(ids, y)
    assert given.kernel_weights_.shape == (1,)


# -- timing ---------------------------------------------------------------------------------------


def test_a_fit_beyond_its_time_is_stopped():
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(runtime.OutOfTime), runtime.time_limit(0.05):
        started = time.perf_counter()
        while time.perf_counter() - started < 60:
            pass
    assert signal.getsignal(signal.SIGPROF) is before
    with runtime.time_limit(60.0):
        pass
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0.0


@pytest.fixture
def small(data_dir, monkeypatch):
    monkeypatch.setattr(runtime, "SOLVERS", ("auto", "alternation", "cutting-planes"))
    monkeypatch.setattr(runtime, "QUICK_POINTS", (120, 150))
    monkeypatch.setattr(runtime, "QUICK_KERNELS", (5, 10))
    monkeypatch.setattr(runtime, "QUICK_N_POINTS", 120)
    monkeypatch.setattr(runtime, "SHORT_FITS", 1)


def test_methods_reach_the_same_gap(small, tmp_path):
    told = runtime.run(quick=True, out=tmp_path)
    assert len(told.rows) == 4 * 9
    # The alternation at p = 1 may need more than its 500 machines.
    late = {"alternation, p = 1"}
    assert all(row.gap <= 1e-3 for row in told.rows if row.method not in late)
    plain = [row for row in told.rows if row.method == "SVM"]
    assert all(row.kernels_used == row.M for row in plain)
    assert all(claim.ours in ("yes", "no", "undecided") for claim in told.claims)
    again = runtime.run(quick=True, out=tmp_path)
    assert again.rows == told.rows  # taken from the file: seconds are the same
    pytest.importorskip("matplotlib")
    assert len(told.save(tmp_path)) == 3


def test_stopped_methods_are_not_tried_with_larger_sizes(small, monkeypatch):
    real = runtime.one

    def one(experiment, n, M, solver, *rest):
        (row,) = real(experiment, n, M, solver, *rest)
        if solver == "alternation":
            return [Row(experiment, n, M, row.method, 10.0, 0, float("nan"), 0, 0, row.seed)]
        return [row]

    monkeypatch.setattr(runtime, "one", one)
    told = runtime.run(quick=True)
    tried = [(row.experiment, row.size) for row in told.rows if row.method == "alternation, p = 1"]
    assert tried == [("points", 120), ("kernels", 5)]
    assert "alternation, p = 4/3 at n = 120" in told.notes
    assert "| alternation, p = 1 | > 10 |  |  |" in str(told)
    pytest.importorskip("matplotlib")
    told.figure()


def test_long_fits_are_timed_on_one_sample(small, monkeypatch):
    def one(experiment, n, M, solver, p, given, loss, limit, seed):
        method = runtime.Method(solver, p, given, loss).label
        seconds = 20.0 if solver == "alternation" else 1.0
        return [Row(experiment, n, M, method, seconds, 1, 1e-4, M, 10, seed)]

    monkeypatch.setattr(runtime, "one", one)
    monkeypatch.setattr(runtime, "QUICK_REPETITIONS", 3)
    told = runtime.run(quick=True)
    seeds = {row.method: {r.seed for r in told.rows if r.method == row.method} for row in told.rows}
    assert seeds["alternation, p = 4/3"] == {0} and seeds["SVM"] == {0, 1, 2}
    # but at every size
    assert len([row for row in told.rows if row.method == "alternation, p = 4/3"]) == 4


# -- telling --------------------------------------------------------------------------------------


def rows_of(method, times, experiment="points", gap=1e-4):
    """Made-up fits; a time of None was stopped after 60 seconds."""
    nan = float("nan")
    return [
        Row(experiment, n, 50, method, 60.0, 0, nan, 0, 0, 0)
        if seconds is None
        else Row(experiment, n, 50, method, seconds, 3, gap, 50, 100, 0)
        for n, seconds in times.items()
    ]


def test_curves_are_medians_and_their_growth():
    rows = rows_of("a", {100: 1.0, 200: 4.0, 400: None})
    rows += rows_of("a", {100: 3.0, 200: 12.0}) + rows_of("a", {100: 2.0, 200: 8.0})
    curve = Curve.of(rows, "points", "a")
    assert curve.seconds.tolist() == [2.0, 8.0, 60.0]
    assert curve.stopped.tolist() == [False, False, True]
    assert curve.exponent == pytest.approx(2.0)  # the stopped fit has no time
    assert [curve.cell(n) for n in (100, 400, 800)] == ["2", "> 60", ""]
    short = Curve.of(rows_of("b", {100: 1.0}, gap=0.01), "points", "b")
    assert short.cell(100) == "1*" and np.isnan(short.exponent)


@pytest.mark.parametrize(
    ("slow", "fast", "ours"),
    [
        ({100: 1.0, 200: 4.0}, {100: 2.0, 200: 1.0}, "yes"),  # the largest size decides
        ({100: 1.0, 200: 1.1}, {100: 1.0, 200: 1.0}, "undecided"),
        ({100: 1.0, 200: 1.0}, {100: 1.0, 200: 2.0}, "no"),
        ({100: 1.0, 200: None}, {100: 1.0, 200: 2.0}, "yes"),  # stopped: slower by 30 or more
        ({100: 1.0, 200: 2.0}, {100: 1.0, 200: None}, "no"),
        ({100: 2.0, 200: None}, {100: 1.0, 200: None}, "yes"),  # the largest that tells
        ({100: 1.0}, {100: 0.5, 200: 1.0}, "yes"),
    ],
)
def test_verdicts_on_times(slow, fast, ours):
    curves = Curves(rows_of("a", slow) + rows_of("b", fast), "points", ["a", "b"])
    (claim,) = curves.slower("a is slower", "a", "b")
    assert claim.ours == ours
    assert curves.slower("a is slower", "a", "missing") == []


def test_claims_about_kernels():
    rows = rows_of("SVM, sum given", {100: 0.1, 200: 0.1})
    rows += [
        Row("kernels", 1000, M, method, seconds, 3, 1e-4, M, 100, 0)
        for method, times in {
            "SVM, sum given": {100: 0.10, 1000: 0.11},
            "chunking, p = 1": {100: 10.0, 1000: 50.0},
            "chunking, p = 4/3": {100: 1.0, 1000: 20.0},
        }.items()
        for M, seconds in times.items()
    ]
    told = tell("t", "T", rows, list(dict.fromkeys(row.method for row in rows)), 60.0, ["x (no)"])
    verdicts = {claim.text: claim.ours for claim in told.claims}
    assert verdicts["the time of the SVM hardly depends on M"] == "yes"
    key = "analytic chunking is much slower for p = 1 than for p = 4/3 (growing M)"
    assert verdicts[key] == "yes"
    key = "1,000 kernels on 1,000 samples in less than three minutes, by chunking"
    assert verdicts[key] == "yes"
    assert "do not apply: x (no)" in told.notes
