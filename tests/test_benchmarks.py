"""The plumbing of the benchmarks: tables, comparisons, failures. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import aims, check, entries, environments, harness, plots, problems, runner, table
from benchmarks.__main__ import choose, merged
from benchmarks.peers import common
from benchmarks.runner import Outcome

RATES = {"exp32": 1e9, "exp64": 5e8, "flops32": 1e11, "flops64": 5e10, "bytes": 1e10}
ENTRY = entries.all_peers("a1", 100, 4)


def outcome(cpu: float, **facts: Any) -> Outcome:
    said = {"cpu": cpu, "wall": cpu, "given_cpu": None, "start_mb": 100.0, "peak_mb": 150.0}
    return Outcome({**said, "accuracy": 0.9, "support": 10, **facts})


def rounds(**seconds: list[float]) -> table.Rounds:
    """Outcomes of every run of `ENTRY`: a second each, unless said otherwise."""
    named = {name.replace("_", " "): times for name, times in seconds.items()}
    return {
        run.key: [outcome(t) for t in named.get(run.key, [1.0, 1.0, 1.0])] for run in ENTRY.runs
    }


def rows(found: table.Rounds) -> dict[str, table.Row]:
    made = table.rows(ENTRY, "digits", (100, 4, 19_600), found, RATES)
    return {f"{row['who']} {row['method']}": row for row in made}


def test_rows_give_medians_ratios_of_rounds_and_their_noise():
    found = rows(rounds(ours_alignf=[0.1, 0.2, 0.4], sklearn_SVC_on_the_plain_sum=[1.0, 4.0, 2.0]))
    row = found["ours alignf"]
    assert row["cpu_s"] == "0.2"
    # 0.1 / 1, 0.2 / 4 and 0.4 / 2, not the ratio of medians
    assert float(row["ratio"]) == pytest.approx(0.1)
    assert float(row["noise"]) == pytest.approx(np.std(np.log([0.1, 0.05, 0.2]), ddof=1), abs=1e-3)
    assert found["numpy alignf by hand"]["speed_up"] == "5"


def test_a_failing_peer_is_a_row_that_says_so():
    found = rounds(ours_alignf=[0.1])
    found["mklpy CKA"] = [Outcome(failure="over 30 s")]
    found["mklpy PWMK"] = [Outcome(failure="failed to install: no such thing")]
    made = rows(found)
    assert made["mklpy CKA"]["note"] == "over 30 s"
    assert made["mklpy CKA"]["cpu_s"] == ""
    assert made["mklpy CKA"]["speed_up"] == ">300"
    assert made["mklpy PWMK"]["note"] == "failed to install: no such thing"
    assert made["mklpy PWMK"]["speed_up"] == ""
    everything = list(made.values())
    aims.judge(everything)
    assert made["mklpy CKA"]["aim"] == "30 times faster: >300, met"
    assert made["mklpy PWMK"]["aim"] == ""


def test_aims_are_computed_from_the_rows():
    found = rounds(ours_alignf=[0.1], numpy_alignf_by_hand=[2.0])
    found["numpy alignf by hand"] = [outcome(2.0, peak_mb=2000.0, accuracy=0.95)]
    made = rows(found)
    aims.judge(list(made.values()))
    said = made["numpy alignf by hand"]["aim"].split("; ")
    assert said[0] == "30 times faster: 20, not met"
    assert said[1] == "a tenth of the memory: 0.07, met"
    assert said[2] == "accuracy: -0.050, not met"


def test_memory_beyond_imports_is_judged_where_the_tenth_is_missed():
    found = rounds(ours_alignf=[0.1], numpy_alignf_by_hand=[2.0])
    mine, theirs = rows(found)["ours alignf"], rows(found)["numpy alignf by hand"]
    for ours, hand, said in ((20.0, 400.0, "0.05, met"), (80.0, 400.0, "0.20, not met")):
        mine["peak_mb"], mine["extra_mb"] = 250.0, ours
        theirs["peak_mb"], theirs["extra_mb"] = 500.0, hand
        aims.judge([mine, theirs])
        parts = theirs["aim"].split("; ")
        assert parts[1] == "a tenth of the memory: 0.50, not met"
        assert parts[2] == f"a tenth beyond imports: {said}"


def test_tables_are_read_as_they_were_written(tmp_path: Path):
    made = list(rows(rounds()).values())
    facts = {"processor": "a: strange, one", "versions": "numpy 1, scipy 2"}
    table.save(tmp_path / "bench.csv", made, facts, "Words.")
    read, said = table.read(tmp_path / "bench.csv")
    assert said == facts
    assert read == [{name: str(value) for name, value in row.items()} for row in made]
    text = (tmp_path / "bench.md").read_text()
    assert "## Work (a)" in text
    assert "| ours | alignf |" in text
    (tmp_path / "old.csv").write_text("entry,who\na,b\n")
    with pytest.raises(ValueError, match=r"lacks the columns .*ratio.*make bench"):
        table.read(tmp_path / "old.csv")


def test_new_rows_replace_those_of_their_entries_and_no_others(tmp_path: Path):
    path = tmp_path / "bench.csv"
    group = (ENTRY, replace(ENTRY, name="a2"))
    first = list(rows(rounds(ours_L1=[7.0])).values())
    other = [{**row, "entry": "a2"} for row in first]
    assert merged(path, other + first, group)[0]["entry"] == "a1"
    table.save(path, first + other, {}, "")
    again = merged(path, list(rows(rounds(ours_L1=[9.0])).values()), group)
    assert [(r["entry"], r["cpu_s"]) for r in again if r["method"] == "L1"] == [
        ("a1", "9"),
        ("a2", "7"),
    ]


@pytest.mark.parametrize("name", ["bench", "quick"])
def test_committed_tables_parse_and_name_entries_that_exist(name: str):
    path = Path(__file__).parent.parent / "benchmarks" / "results" / f"{name}.csv"
    read, facts = table.read(path)
    known = {entry.name: entry for entry in (*entries.FULL, *entries.QUICK)}
    assert {"processor", "threads", "date", "versions"} <= set(facts)
    for row in read:
        assert f"{row['who']} {row['method']}" in {run.key for run in known[row["entry"]].runs}
        assert row["note"] or float(row["cpu_s"]) > 0
    again = [dict(row) for row in read]
    aims.judge(again)
    assert again == read  # met and not met were computed, not typed


def test_check_names_a_planted_regression_and_nothing_else():
    steady = {"ours_L1": [0.5, 0.52, 0.51], "sklearn_SVC_on_the_plain_sum": [1.0, 1.0, 1.0]}
    old = list(rows(rounds(**steady)).values())
    assert check.compare(old, old) == ([], [])
    slower = list(rows(rounds(**{**steady, "ours_L1": [1.0, 1.05, 1.02]})).values())
    (line,), remarks = check.compare(old, slower)
    assert line.startswith("a1, L1: time to yardstick 0.51 -> 1.02, 2.00 times as slow")
    assert remarks == []
    # The same medians, from rounds that scatter by as much, prove nothing.
    noisy = list(rows(rounds(**{**steady, "ours_L1": [0.3, 1.02, 3.0]})).values())
    assert check.compare(old, noisy) == ([], [])


def test_check_names_memory_accuracy_failures_and_what_it_could_not_compare():
    old = rows(rounds())
    found = rounds()
    found["ours alignf"] = [outcome(1.0, peak_mb=400.0, accuracy=0.8)]
    found["ours L1"] = [Outcome(failure="failed: ValueError: no")]
    new = rows(found)
    del new["ours LpNorm(4/3)"]
    regressions, remarks = check.compare(list(old.values()), list(new.values()))
    assert regressions == [
        "a1, alignf: peak memory 150 -> 400 MB.",
        "a1, alignf: accuracy 0.9000 -> 0.8000.",
        "a1, L1: failed: ValueError: no.",
    ]
    assert remarks == ["a1, ours, LpNorm(4/3): in the committed table, not run now."]


def test_noise_bands_have_a_floor_and_grow_with_the_noise():
    assert check.band() == check.band("", "") == check.band("0.01", "0.01") == check.LEAST
    assert check.band("0.3", "0.4") == pytest.approx(np.exp(check.FACTORS * 0.5))


@pytest.mark.parametrize(
    ("program", "seconds", "expected"),
    [
        ("import json; print('chatter'); print(json.dumps({'cpu': 1}))", 60, ""),
        ("raise RuntimeError('out of luck')", 60, "failed: RuntimeError: out of luck"),
        ("print('done')", 60, "failed: printed no result but 'done'"),
        ("import sys; sys.exit(3)", 60, "failed: signal or exit status 3"),
        ("while True: pass", 1, "over 1 s"),
    ],
)
def test_runs_never_raise(program: str, seconds: float, expected: str):
    # Programs that end get a limit that they stay below on the busiest machine.
    found = runner.parse([sys.executable, "-c", program], seconds=seconds)
    assert found.failure == expected
    assert bool(found.facts) == (expected == "")


def test_a_peer_that_does_not_install_is_reported(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("MULTIKERNEL_BENCH_CACHE", str(tmp_path))
    monkeypatch.setitem(environments.PINS, "nobody", ("no-such-package==1",))
    monkeypatch.setattr(environments, "_FAILED", {})
    calls = []

    def refuse(command: list[str], **_: Any) -> subprocess.CompletedProcess:
        calls.append(command)
        said = "WARNING: slow\nERROR: No matching distribution found for no-such-package==1\n\n"
        return subprocess.CompletedProcess(command, int("pip" in command), "", said)

    monkeypatch.setattr(environments.subprocess, "run", refuse)
    for _ in range(2):
        found = runner.run("nobody", "fit", {}, tmp_path / "problem.npz", 10)
        assert found.failure == (
            "failed to install: ERROR: No matching distribution found for no-such-package==1"
        )
    assert len(calls) == 2  # one environment, one installation; the second run asks neither


def test_the_library_runs_with_what_it_depends_on(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("MULTIKERNEL_BENCH_CACHE", str(tmp_path))
    calls = []

    def install(command: list[str], **_: Any) -> subprocess.CompletedProcess:
        calls.append(command)
        (tmp_path / "own").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments.subprocess, "run", install)
    for peer in ("ours", "sklearn", "numpy"):
        assert environments.python(peer) == tmp_path / "own" / "bin" / "python"
    assert len(calls) == 2
    assert any(pin.startswith("numba") for pin in calls[1])
    assert not any(pin.startswith(("pandas", "matplotlib")) for pin in calls[1])


def test_a_run_in_a_process_of_its_own_measures_time_memory_and_accuracy(
    tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(environments, "python", lambda peer: Path(sys.executable))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)
    problem = common.Problem(X[:150], y[:150], X[150:], y[150:], np.array([0.1, 1.0]))
    path = tmp_path / "problem.npz"
    common.save(path, problem)
    found = runner.run("numpy", "lp-norm", {"norm": 4 / 3, "C": 1.0}, path, 60)
    assert found.failure == ""
    assert found.facts["accuracy"] > 0.85
    assert found.facts["gap"] <= 1e-3
    assert found.facts["peak_mb"] >= found.facts["start_mb"] > 20
    assert found.facts["cpu"] >= found.facts["given_cpu"] >= 0  # clocks of processes may be coarse
    assert found.facts["wall"] > 0
    assert {"numpy", "scikit-learn", "python"} <= set(found.facts["versions"])


def test_problems_survive_the_way_through_a_file(tmp_path: Path):
    problem, _ = problems.documents(50, 300)
    common.save(tmp_path / "p.npz", problem)
    again = common.load(tmp_path / "p.npz")
    assert sp.issparse(again.X)
    assert (again.X != problem.X).nnz == 0
    assert np.array_equal(again.y_test, problem.y_test)
    small = again.part(20)
    assert small.X.shape == (20, 100)
    assert len(small.y_test) == 10


def test_journals_are_used_until_the_code_changes(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("MULTIKERNEL_BENCH_CACHE", str(tmp_path))
    entry = replace(ENTRY, runs=())
    calls = []

    def measure(entry: entries.Entry, *rest: Any) -> dict[str, Any]:
        calls.append(entry.name)
        return {"entry": entry.name, "rows": [], "minutes": 0.5}

    monkeypatch.setattr(harness, "measure", measure)
    monkeypatch.setattr(harness, "fingerprint", lambda: "one")
    list(harness.run_all([entry], 1.0))
    list(harness.run_all([entry], 1.0))
    assert calls == ["a1"]
    assert harness.estimate([entry], "one") == 0
    monkeypatch.setattr(harness, "fingerprint", lambda: "two")
    assert harness.estimate([entry], "two") == 0.5
    list(harness.run_all([entry], 1.0))
    list(harness.run_all([entry], 1.0, fresh=True))
    assert calls == ["a1"] * 3
    assert json.loads(harness.journal(entry).read_text())["fingerprint"] == "two"


def test_limits_count_pairs_once():
    run = entries.ours("L1")
    found = entries.limits(run, 1000, 10, 0, {"support": 1000}, RATES)
    assert found == pytest.approx(10 * 1000 * 1000 / 2 / 1e9)
    alignf = entries.alignf_weights("float64")
    found = entries.limits(alignf, 1000, 10, 0, {}, RATES)
    assert found == pytest.approx(5e6 / 5e8 + 10 * 11 * 5e5 / 5e10)


def test_entries_have_names_of_their_own_and_yardsticks_among_their_runs():
    for group in (entries.FULL, entries.QUICK):
        names = [entry.name for entry in group]
        assert len(set(names)) == len(names)
        for entry in group:
            keys = [run.key for run in entry.runs]
            assert entry.yardstick in keys
            assert len(set(keys)) == len(keys)
            mine = {run.method for run in entry.runs if run.who == "ours"}
            assert all(run.against in mine for run in entry.runs if run.against)
    assert not any(entry.on_request for entry in choose(entries.FULL, None))
    assert [entry.name for entry in choose(entries.FULL, ["c60k"])] == ["c60k"]
    with pytest.raises(SystemExit, match="No entry z"):
        choose(entries.FULL, ["z"])


def test_plots_are_drawn_from_the_rows(tmp_path: Path):
    pytest.importorskip("matplotlib")
    made = []
    for n in (100, 200, 400):
        entry = entries.growth(f"c{n}", "c", n, 5, True)
        found = {run.key: [outcome(1e-6 * n**2)] for run in entry.runs}
        made += table.rows(entry, "digits", (n, 5, 1), found, RATES)
    x, t = plots.series(made, "c", "ours", "LpNorm(4/3)", "cpu_s")
    assert x.tolist() == [100, 200, 400]
    assert aims.exponent(x, t) == pytest.approx(2.0, abs=0.01)
    first, second = plots.draw(made, tmp_path)
    assert first.name == "scaling-n.svg"
    assert "multikernel, lp-norm: n^2.00" in first.read_text()
    assert plots.draw(made, tmp_path / "again")[0].read_bytes() == first.read_bytes()
    assert second.exists()
