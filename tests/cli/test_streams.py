"""Predictions in chunks, from files and folders to files: the same answers in little memory."""

import numpy as np
import pytest

import multikernel as mk
from multikernel.cli.streams import Score
from multikernel.rows import chunk as chunks
from multikernel.tables import TableModel, read_frame, write_columns
from tests.cli.helpers import answer, fail, make_columns, succeed


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 16)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A classifier of animals and a regressor of their prices."""
    folder = tmp_path_factory.mktemp("models")
    data = folder / "animals.parquet"
    write_columns(make_columns(), data)
    for target in ("kind", "price"):
        other = "price" if target == "kind" else "kind"
        option = ("--C", 1) if target == "kind" else ("--alpha", 0.1)
        succeed("fit", data, "-y", target, "--drop", other, "-k", "linear", "-w", "uniform",
                *option, "-o", folder / f"{target}.skops")  # fmt: skip
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".npz", ".json"])
@pytest.mark.parametrize("target", ["kind", "price"])
def test_chunks_do_not_change_predictions(suffix, target, model, tmp_path, monkeypatch):
    columns = make_columns(100, seed=3)
    write_columns(columns, tmp_path / "new.csv")
    out = tmp_path / f"out{suffix}"
    path = model / f"{target}.skops"
    whole = answer("predict", path, tmp_path / "new.csv")
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 16)
    said = answer("predict", path, tmp_path / "new.csv", "-o", out)
    assert said["rows"] == 100 and said["score"]["name"] == whole["score"]["name"]
    np.testing.assert_allclose(said["score"]["value"], whole["score"]["value"], rtol=1e-12)
    if suffix == ".json":
        return
    found = read_frame(out)
    assert found.names == list(whole["columns"])
    for name, values in whole["columns"].items():
        if isinstance(values[0], str):
            assert found.columns[name].tolist() == values
        else:
            np.testing.assert_allclose(found.columns[name], values, rtol=1e-10)


def test_a_folder_of_files_is_predicted_in_order(model, tmp_path, small_chunks):
    columns = make_columns(60, seed=4)
    parts = [slice(0, 25), slice(25, 26), slice(26, 60)]
    (tmp_path / "new").mkdir()
    for i, rows in enumerate(parts):
        part = {name: values[rows] for name, values in columns.items()}
        write_columns(part, tmp_path / "new" / f"part-{i}.parquet")
    succeed("predict", model / "kind.skops", tmp_path / "new", "-o", tmp_path / "out.csv")
    expected = mk.load(model / "kind.skops").predict(columns)
    assert read_frame(tmp_path / "out.csv").columns["prediction"].tolist() == expected.tolist()


def test_printed_predictions_have_one_header(model, tmp_path, small_chunks):
    write_columns(make_columns(50), tmp_path / "new.csv")
    lines = succeed("predict", model / "price.skops", tmp_path / "new.csv", "-q").stdout.split()
    assert len(lines) == 51 and lines[0] == "prediction"
    assert "prediction" not in lines[1:]


def test_a_gap_far_into_a_file_is_named(model, tmp_path, small_chunks):
    columns = make_columns(100)
    columns["size"][77] = None
    write_columns(columns, tmp_path / "new.csv")
    (tmp_path / "out.csv").write_text("what was there")
    out = tmp_path / "out.csv"
    said = fail("predict", model / "kind.skops", tmp_path / "new.csv", "-o", out, "--force")
    assert "Column 'size' is missing in row 77 of new.csv" in said
    assert (tmp_path / "out.csv").read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv"]


def test_codes_with_leading_zeros_stay_texts(tmp_path, small_chunks):
    """A category is the same in a chunk without letters."""
    code = ["007", "7", "x"] * 20
    price = [1.0, 2.0, 3.0] * 20
    write_columns({"code": code, "price": price}, tmp_path / "a.csv")
    path = tmp_path / "m.skops"
    succeed("fit", tmp_path / "a.csv", "-y", "price", "-k", "linear", "-w", "uniform",
            "--task", "regression", "--alpha", 1e-6, "-o", path)  # fmt: skip
    write_columns({"code": ["007", "7"] * 20}, tmp_path / "new.csv")
    found = answer("predict", path, tmp_path / "new.csv")["columns"]["prediction"]
    np.testing.assert_allclose(found, [1.0, 2.0] * 20, atol=1e-3)


def test_the_score_over_chunks_is_that_of_all(rng):
    truth, answers = 1e6 + rng.normal(size=1000), 1e6 + rng.normal(size=1000)
    model = TableModel(mk.MultiKernelRegressor(), None, "y", "regression", False)
    score = Score(model)
    for start in range(0, 1000, 7):
        score.add(truth[start : start + 7], answers[start : start + 7])
    expected = 1 - np.sum((truth - answers) ** 2) / np.sum((truth - truth.mean()) ** 2)
    np.testing.assert_allclose(score.result()[1], expected, rtol=1e-9)
    score.add(np.array([np.nan]), np.zeros(1))
    assert score.result() is None
