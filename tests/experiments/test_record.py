"""What all experiments rest on: resuming, order, tables beside the printed ones, files."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import t as student

from experiments import record
from experiments.record import (
    Claim,
    Options,
    Record,
    beside,
    better,
    compute,
    distinct,
    markdown,
    select,
    spread,
)


@dataclass(frozen=True)
class Row:
    name: str
    number: int
    value: float
    parts: list[float]


def rows_of(name: str, number: int) -> list[Row]:
    """Several rows per task; at module level, so that other processes find it."""
    return [Row(name, number, number / (i + 3), [float(i), 0.1]) for i in range(number)]


TASKS = [("b", 2), ("a", 3), ("c", 0), ("a", 1)]


class Counting:
    """`rows_of` that remembers what it was asked, and breaks where it is told to."""

    def __init__(self, breaks_at: tuple[str, int] | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.breaks_at = breaks_at

    def __call__(self, name: str, number: int) -> list[Row]:
        if (name, number) == self.breaks_at:
            raise KeyboardInterrupt
        self.asked.append((name, number))
        return rows_of(name, number)


# -- running --------------------------------------------------------------------------------------


def expected(tasks=TASKS):
    return [row for task in tasks for row in rows_of(*task)]


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_rows_come_in_the_order_of_the_tasks(n_jobs, tmp_path):
    assert compute(rows_of, TASKS, Row, n_jobs=n_jobs) == expected()
    path = tmp_path / "deep" / "rows.jsonl"
    assert compute(rows_of, TASKS, Row, path=path, n_jobs=n_jobs) == expected()
    assert compute(rows_of, TASKS, Row, path=path, n_jobs=n_jobs) == expected()


def test_a_task_that_is_asked_for_twice_is_computed_once():
    work = Counting()
    assert compute(work, [*TASKS, *TASKS], Row) == expected()
    assert work.asked == TASKS


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "rows.jsonl"
    first = Counting(breaks_at=("c", 0))
    with pytest.raises(KeyboardInterrupt):
        compute(first, TASKS, Row, path=path)
    assert first.asked == TASKS[:2]
    second = Counting()
    assert compute(second, TASKS, Row, path=path) == expected()
    assert second.asked == TASKS[2:]
    third = Counting()
    assert compute(third, TASKS, Row, path=path) == expected()
    assert third.asked == []
    # Other tasks of the same file are neither lost nor in the way.
    more = [("d", 1), *TASKS[:1]]
    assert compute(third, more, Row, path=path) == expected(more)
    assert third.asked == [("d", 1)]
    assert len(path.read_text().splitlines()) == 5


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_half_a_line_is_computed_again(tmp_path, cut):
    """Cut anywhere: after a character, in the middle, or just before the end of the line."""
    path = tmp_path / "rows.jsonl"
    compute(rows_of, TASKS, Row, path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:cut])
    work = Counting()
    assert compute(work, TASKS, Row, path=path) == expected()
    assert work.asked == TASKS[-1:]
    again = Counting()
    assert compute(again, TASKS, Row, path=path) == expected()
    assert again.asked == []
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_rows_of_another_kind_are_computed_again(tmp_path):
    @dataclass(frozen=True)
    class Other:
        label: str

    path = tmp_path / "rows.jsonl"
    compute(lambda name: [Other(name)], [("a",)], Other, path=path)
    assert compute(lambda name: rows_of(name, 1), [("a",)], Row, path=path) == rows_of("a", 1)


def strange(kind: str) -> list[Row]:
    """Numbers that JSON does not know, or knows under other names."""
    values = {"nan": float("nan"), "inf": float("inf"), "numpy": np.float32(0.1)}
    return [Row(kind, np.int64(3), values[kind], np.array([np.nan, 1e-300]))]  # type: ignore[arg-type]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_not_a_number_and_numbers_of_numpy_survive(tmp_path, n_jobs):
    tasks = [("nan",), ("inf",), ("numpy",)]
    path = tmp_path / "rows.jsonl"
    compute(strange, tasks, Row, path=path, n_jobs=n_jobs)
    nan, inf, small = compute(Counting(), tasks, Row, path=path)
    assert math.isnan(nan.value) and math.isinf(inf.value)
    assert small.value == float(np.float32(0.1))
    assert (nan.number, type(nan.number)) == (3, int)
    assert math.isnan(nan.parts[0]) and nan.parts[1] == 1e-300


def test_what_cannot_be_kept_says_so(tmp_path):
    with pytest.raises(TypeError, match="set cannot be kept in a file of results"):
        compute(
            lambda: [Row("a", 1, 0.0, {1.0})],  # type: ignore[arg-type]
            [()],
            Row,
            path=tmp_path / "rows.jsonl",
        )


def threads(number: int) -> list[Row]:
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    return [Row("t", pool["num_threads"], number, []) for pool in threadpool_info()]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_have_one_thread(n_jobs):
    found = compute(threads, [(0,), (1,)], Row, n_jobs=n_jobs)
    assert found and {row.number for row in found} == {1}


def test_lines_carry_time_and_versions(tmp_path):
    path = tmp_path / "rows.jsonl"
    compute(rows_of, TASKS, Row, path=path)
    line = json.loads(path.read_text().splitlines()[1])
    assert line["task"] == ["a", 3] and line["seconds"] >= 0
    assert line["versions"] == record.versions()
    assert line["versions"]["numpy"] == np.__version__


def test_progress_changes_nothing(capsys):
    assert compute(rows_of, TASKS, Row, progress=True, title="counting") == expected()
    assert "counting" in capsys.readouterr().out


# -- telling --------------------------------------------------------------------------------------


@pytest.fixture
def told():
    def figure():
        made, axes = record.panels(2)
        record.dots(axes[0, 0], ["one", "two"], [np.array([1.0, 2.0]), np.array([np.nan])])
        record.dots(axes[0, 1], ["one", "two"], [np.ones(2)] * 2, [None, (1.0, 0.5)])
        return made

    return Record(
        "counts",
        "Counts",
        [*rows_of("a", 2), replace(rows_of("a", 1)[0], value=float("nan"))],
        {"Numbers": markdown(["a"], [[1]])},
        [Claim("one is less than two", "yes", "no", "1 and 2")],
        "That was all.",
        figure,
    )


def test_three_files_are_written_and_rows_read_back(told, tmp_path):
    paths = told.save(tmp_path / "new")
    assert [path.name for path in paths] == ["counts.csv", "counts.md", "counts.png"]
    with paths[0].open(newline="") as file:
        back = list(csv.DictReader(file))
    assert len(back) == 3
    for text, row in zip(back, told.rows, strict=True):
        assert text["name"] == row.name and int(text["number"]) == row.number
        assert float(text["value"]) == row.value or math.isnan(row.value)
        assert json.loads(text["parts"]) == row.parts
    written = paths[1].read_text()
    assert written.startswith(str(told)) and f"numpy {np.__version__}" in written
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_a_record_is_markdown(told):
    assert str(told).split("\n\n") == [
        "# Counts",
        "## Numbers",
        "| a |\n|---|\n| 1 |",
        "## Claims",
        "| claim | printed | ours | detail |\n|---|---|---|---|\n"
        "| one is less than two | yes | no | 1 and 2 |",
        "That was all.",
    ]
    assert str(told.claims[0]) == "one is less than two: printed yes, ours no (1 and 2)"
    assert str(Claim("a", "yes", "yes")) == "a: printed yes, ours yes"


def test_further_figures_are_files_of_their_own(told, tmp_path):
    paths = replace(told, further_figures={"sizes": told.figure}).save(tmp_path)
    assert [path.name for path in paths[2:]] == ["counts.png", "counts-sizes.png"]
    assert paths[3].read_bytes() == paths[2].read_bytes()


def test_without_a_figure_or_rows(tmp_path):
    paths = Record("empty", "Nothing", []).save(tmp_path)
    assert [path.suffix for path in paths] == [".csv", ".md"]


def test_without_matplotlib_the_tables_are_written(told, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"counts\.png needs matplotlib"):
        assert len(told.save(tmp_path)) == 2


def test_difference_in_printed_deviations():
    assert beside([0.1, 0.2, 0.3], (0.3, 0.05)) == ["0.200 ± 0.100", "0.300 ± 0.050", "-2.0"]
    assert beside([0.25], (0.25, 0.1), 2) == ["0.25 ± 0.00", "0.25 ± 0.10", "+0.0"]
    # no unit to count in
    assert beside([0.1, 0.3], (0.1, 0.0)) == ["0.200 ± 0.141", "0.100 ± 0.000", ""]
    assert beside([0.1, 0.3], None)[1:] == ["", ""]


def test_spread_is_the_deviation_of_a_sample(rng):
    values = rng.normal(size=7)
    deviation = math.sqrt(sum((v - values.mean()) ** 2 for v in values) / 6)
    assert spread(values, 6) == f"{values.mean():.6f} ± {deviation:.6f}"
    assert spread([1.0]) == "1.000 ± 0.000"


def test_significance_against_the_formula(rng):
    for _ in range(50):
        left = rng.normal(size=5)
        right = left + 0.5 * rng.normal(size=5) + 0.3
        apart = left - right
        statistic = apart.mean() / (apart.std(ddof=1) / math.sqrt(5))
        assert better(left, right) == (student(4).cdf(statistic) < 0.1)
        assert not (better(left, right) and better(right, left))


def test_significance_of_differences_without_spread():
    assert better([0.25, 0.5], [0.5, 0.75]) and not better([0.5, 0.75], [0.25, 0.5])
    assert not better([0.1, 0.2], [0.1, 0.2])


# -- options and rows -----------------------------------------------------------------------------


def test_options_say_where_results_are_kept(tmp_path):
    options = Options(quick=True, out=tmp_path)
    assert options.compute(rows_of, TASKS, Row, kept="counts", title="counts") == expected()
    assert [path.name for path in tmp_path.iterdir()] == ["counts.jsonl"]
    again = Counting()
    assert options.compute(again, TASKS, Row, kept="counts", title="counts") == expected()
    assert again.asked == []
    assert options.stem("counts") == "counts-quick" and Options().stem("counts") == "counts"
    assert list(Options(seed=7).seeds(3)) == [7, 8, 9]


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="sead"):
        Options(sead=1)


def test_rows_are_selected_by_all_fields_that_are_named():
    rows = expected()
    for row in rows:
        mine = [r.value for r in rows if (r.name, r.number) == (row.name, row.number)]
        assert select(rows, "value", name=row.name, number=row.number).tolist() == mine
    assert select(rows, "value").tolist() == [row.value for row in rows]
    assert len(select(rows, "value", name="nobody")) == 0
    assert distinct(rows, "name") == list(dict.fromkeys(row.name for row in rows))


# -- the command line of one module ---------------------------------------------------------------


def test_command_line(told, tmp_path, capsys):
    asked = {}

    def run(
        repetitions: int | None = None,
        quick: bool = False,
        seed: int = 0,
        n_jobs: int | None = None,
        *,
        names: Sequence[str] = ("a", "b"),  # noqa: F821
        costs: object = None,
        out: object = None,
        progress: bool = False,
    ) -> Record:
        asked.update(locals())
        return told

    record.main(run, "counts", "Counts", ["--quick", "--out", str(tmp_path), "--names", "b"])
    del asked["told"], asked["asked"]
    assert asked == {
        "repetitions": None,
        "quick": True,
        "seed": 0,
        "n_jobs": -1,
        "names": ["b"],
        "costs": None,
        "out": tmp_path,
        "progress": True,
    }
    said = capsys.readouterr().out
    assert "# Counts" in said and f"wrote {tmp_path / 'counts.csv'}" in said
    record.main(run, "counts", "Counts", ["--repetitions", "7", "--out", str(tmp_path)])
    assert asked["repetitions"] == 7 and asked["names"] == ("a", "b")
    with pytest.raises(SystemExit):
        record.main(run, "counts", "Counts", ["--costs", "3"])
