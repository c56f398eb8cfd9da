"""Files that were made to do harm, or are much larger than usual."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from multikernel.cli.common import check_places
from multikernel.rows import open_rows
from multikernel.tables import DataError, read_frame
from multikernel.tables import text as text_module
from multikernel.tables.writing import without_formula, write_columns
from tests.cli.helpers import answer, call, fail, make_columns, succeed, write_csv

FORMULAS = ["=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+1+cmd|'x'!A0", "-2+3", "\tx", "--x"]
NUMBERS = ["-1", "+1", "-1.5e-3", "-inf", "-", "+", "a=b", "", 3, -2.5, None]


# -- formulas --------------------------------------------------------------------------------------


def test_formulas_are_made_texts_and_numbers_stay():
    assert [without_formula(text) for text in FORMULAS] == [f"'{text}" for text in FORMULAS]
    assert [without_formula(value) for value in NUMBERS] == NUMBERS


@pytest.fixture
def formulas(tmp_path):
    """Classes, categories and a column whose names a spreadsheet would run."""
    columns = make_columns(60)
    kind = {"ape": FORMULAS[0], "bee": FORMULAS[1], "cat": "-1"}
    columns = {
        FORMULAS[2]: columns["size"],
        "weight": columns["weight"],
        "colour": [f"={colour}" for colour in columns["colour"]],
        "kind": [kind[name] for name in columns["kind"]],
    }
    return write_csv(tmp_path / "formulas.csv", columns)


def test_written_and_printed_tables_hold_no_formulas(formulas, tmp_path):
    model, out, shares = tmp_path / "m.skops", tmp_path / "p.csv", tmp_path / "s.tsv"
    succeed("fit", formulas, "-y", "kind", "--C", 1, "-o", model)
    succeed("predict", model, formulas, "-o", out)
    succeed("explain", model, formulas, "-o", shares)
    printed = succeed("predict", model, formulas).stdout
    for text, mark in ((out.read_text(), ","), (printed, ","), (shares.read_text(), "\t")):
        cells = [cell for row in csv.reader(text.splitlines(), delimiter=mark) for cell in row]
        assert any(cell.startswith("'=") for cell in cells)
        assert [cell for cell in cells if without_formula(cell) != cell] == []
    # Formats that no spreadsheet runs hold what was predicted.
    classes = answer("predict", model, formulas)["columns"]["prediction"]
    assert set(classes) <= {FORMULAS[0], FORMULAS[1], "-1"}


# -- what is no text -------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["\x00", "\x1b[2J", "\x07", "\x7f", "\x1b]0;owned\x07"])
@pytest.mark.parametrize("place", ["name", "label", "number"])
def test_control_characters_are_refused(bad, place, tmp_path):
    columns = make_columns(30)
    if place == "name":
        columns = {f"a{bad}b": columns["size"], **columns}
    elif place == "label":
        columns["kind"][7] = f"ape{bad}"
    else:
        columns["size"][7] = f"1{bad}"
    path = write_csv(tmp_path / "odd.csv", columns)
    said = fail("fit", path, "-y", "kind", "-o", tmp_path / "m.skops")
    assert said.startswith("Error: odd.csv: ") and bad not in said
    assert "control character" in said or "not text" in said
    assert [p.name for p in tmp_path.iterdir()] == ["odd.csv"]


def test_control_characters_of_other_formats_are_refused(tmp_path):
    columns = make_columns(30)
    columns["kind"][3] = "a\x1b[31m"
    np.savez(tmp_path / "odd.npz", **{name: np.array(v) for name, v in columns.items()})
    with pytest.raises(DataError, match="control character"):
        read_frame(tmp_path / "odd.npz")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"a",
        b"a,b",
        b"a,b\n1",
        b'a,b\n"1,2\n',
        b"\xff\xfe",
        b"\x00" * 100,
        b"a,a\n1,2\n",
        b",\n1,2\n",
        b"a,b\n" + b"1," * 50_000 + b"\n",
        b"a\n" + b"9" * 200_000 + b"\n",
        b"\x1f\x8b\x08\x00broken",
        b"PK\x03\x04" + bytes(100),
        b"PAR1" + bytes(50) + b"PAR1",
        b"%PDF-1.4",
        "ä,ö\n1,2\n".encode("latin1"),
        b"a,b\r1,2\r3,4\r",
    ],
    ids=lambda content: repr(content[:8]),
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "xlsx", "parquet", "npz", "libsvm", "feather"])
def test_rubbish_is_one_message_whatever_its_name(content, ending, tmp_path):
    path = tmp_path / f"odd.{ending}"
    path.write_bytes(content)
    done = call("fit", path, "-y", "b", "-o", tmp_path / "m.skops")
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.exception
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# -- large files -----------------------------------------------------------------------------------


@pytest.fixture
def wide(tmp_path):
    """A hundred thousand columns."""
    rng, d = np.random.default_rng(0), 100_000
    X = rng.normal(size=(12, d)).round(2)
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"c{j}" for j in range(d)), "y"])
        writer.writerows([*row, "ab"[i % 2]] for i, row in enumerate(X.tolist()))
    return path


def test_a_hundred_thousand_columns_are_read(wide):
    """Nothing compares every name with every other, which would take an hour."""
    assert len(read_frame(wide).names) == 100_001
    rows = open_rows(wide, "y")
    assert rows.n_rows in (12, None)
    wide.write_text(wide.read_text().replace("c99999,", "c0,", 1))
    with pytest.raises(DataError, match="'c0' appears more than once"):
        read_frame(wide)


@pytest.mark.slow
def test_a_hundred_thousand_columns(wide, tmp_path):
    path, model, out = wide, tmp_path / "m.skops", tmp_path / "p.csv"
    options = ("--C", 1, "-k", "Linear()", "-w", "uniform", "--folds", 2)
    assert answer("fit", path, "-y", "y", "-o", model, *options)["rows"] == 12
    assert answer("predict", model, path, "-o", out)["score"]["value"] > 0.9


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "MAX_LINE", 1000)
    path = tmp_path / "line.csv"
    path.write_text("a,b" + ",1" * 1000)
    with pytest.raises(DataError, match="line of more than 1,000 characters"):
        read_frame(path)


def test_reading_stops_before_memory_ends(tmp_path, monkeypatch):
    class Full:
        available, total = 1e8, 8e9

    monkeypatch.setattr(text_module, "ROWS_BETWEEN_CHECKS", 10)
    monkeypatch.setattr(text_module.psutil, "virtual_memory", lambda: Full)
    path = write_csv(tmp_path / "long.csv", make_columns(30))
    with pytest.raises(DataError, match=r"after 10 rows 0\.1 of 8 GB.*--chunks"):
        read_frame(path)


PREDICT = """
import resource, sys, tracemalloc
from multikernel.cli import app

model, first, *files = sys.argv[1:]

def predict(data):
    try:
        app(["predict", model, data, "--out", data + ".predicted.csv", "--quiet", "--force"])
    except SystemExit as end:
        assert not end.code, end.code

predict(first)  # imports, and whatever stays in memory
"""
TRACED = """
for file in files:
    tracemalloc.start()
    predict(file)
    print(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""
LIMITED = """
used = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmData" in line) * 1024
limit = used + 100 * 10**6
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for file in files:
    predict(file)
"""


def predict_long(tmp_path, script, *blocks):
    """Predict files of so many blocks of 30,000 rows in a process of its own; what it prints."""
    model = tmp_path / "m.skops"
    small = write_csv(tmp_path / "small.csv", make_columns(30_000))
    options = ["--sample", 100, "--alpha", 1, "-k", "Linear()", "-w", "uniform"]
    succeed("fit", small, "-y", "weight", "-o", model, *options, "--drop=kind", "--drop=price")
    lines = small.read_text().splitlines(keepends=True)
    block, files = "".join(lines[1:]), []
    for count in blocks:
        files.append(tmp_path / f"long{count}.csv")
        with files[-1].open("w") as file:
            file.write(lines[0])
            file.writelines(block for _ in range(count))
    done = subprocess.run(
        [sys.executable, "-c", PREDICT + script, model, small, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for path, count in zip(files, blocks, strict=True):
        with Path(f"{path}.predicted.csv").open() as file:
            assert sum(1 for _ in file) == count * 30_000 + 1
    return done.stdout, sum(path.stat().st_size for path in files)


@pytest.mark.slow
def test_longer_files_are_predicted_in_the_same_memory(tmp_path):
    """The peak of what Python allocates: a limit of the system also counts what it set free.

    Whole, the longer file would have 240,000 more cells, each a text of some 50 bytes.
    """
    printed, _ = predict_long(tmp_path, TRACED, 2, 4)
    short, long = map(int, printed.split())
    assert long <= short + 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
@pytest.mark.slow
def test_two_gigabytes_are_predicted_in_a_hundred_megabytes(tmp_path):
    assert predict_long(tmp_path, LIMITED, 2_400)[1] > 2e9


# -- outputs and exit codes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "DATA", "-y", "kind", "--C", "1", "-o", "OUT.skops"),
        ("fit", "DATA", "-y", "kind", "--C", "1", "-o", "new.skops", "--report", "OUT.html"),
        ("predict", "MODEL", "DATA", "-o", "OUT.csv"),
        ("explain", "MODEL", "DATA", "-o", "OUT.csv"),
        ("report", "MODEL", "DATA", "-o", "OUT.html"),
        ("compare", "DATA", "-y", "kind", "--folds", "2", "-w", "uniform", "-o", "OUT.csv"),
        ("bank", "DATA", "-y", "kind", "--picture", "OUT.svg"),
        ("datasets", "wdbc", "-o", "OUT.csv"),
        ("demo", "-o", "OUT.html"),
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
def test_nothing_is_replaced_without_force(words, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, model = trained
    place = tmp_path / next(word for word in words if word.startswith("OUT"))
    place.write_text("precious")
    words = [{"DATA": data, "MODEL": model}.get(word, word) for word in words]
    said = fail(*words)
    assert f"{place.name} exists already" in said and "--force" in said
    assert place.read_text() == "precious" and [p.name for p in tmp_path.iterdir()] == [place.name]
    assert call(*words, "--json").exit_code == 1
    if words[0] in ("predict", "explain", "bank"):
        succeed(*words, "--force")
        assert place.read_text() != "precious"


def test_devices_are_written_to():
    check_places(Path(os.devnull), force=False)


def test_exit_codes_are_the_documented_ones(trained, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    table = text.split("| exit code |")[1].split("\n\n")[0]
    documented = {int(row.split("|")[1]) for row in table.splitlines()[2:]}
    data, model = trained
    seen = {
        call("predict", model, data).exit_code,
        call("predict", model, tmp_path / "no.csv").exit_code,
        call("predict", model).exit_code,
        call("predict", model, data, "--no-such-option").exit_code,
    }

    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("multikernel.files.load", interrupt)
    seen.add(call("predict", model, data).exit_code)
    assert seen == {0, 1, 2, 130}
    assert documented == seen | {143}  # SIGTERM has tests of its own


def test_other_formats_are_written_as_they_are(tmp_path):
    write_columns({"a": FORMULAS}, tmp_path / "a.json")
    assert "=1+1" in (tmp_path / "a.json").read_text()
