"""``multikernel fit`` in chunks: folders of files, views, categories, and what cannot be done."""

from importlib.util import find_spec

import numpy as np
import pytest

import multikernel as mk
from multikernel.rows import chunk as chunks
from multikernel.tables import read_frame, write_columns
from tests.cli.helpers import answer, fail, make_columns, succeed

pytest.importorskip("pyarrow")
RANK = ("--approximation", "Nystroem(rank=30)")
BANK = ("-k", "gaussians([0.1, 1])", "-w", "alignf")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of three files."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 40)
    columns = make_columns(300)
    (tmp_path / "animals").mkdir()
    for i in range(3):
        part = {name: values[100 * i : 100 * (i + 1)] for name, values in columns.items()}
        write_columns(part, tmp_path / "animals" / f"part-{i}.csv")
    return tmp_path / "animals"


def test_a_folder_gives_a_model_and_predictions(folder, tmp_path):
    model = tmp_path / "price.skops"
    said = answer("fit", folder, "-y", "price", "--drop", "kind", *BANK, *RANK, "-o", model)
    assert said["rows"] == 300 and said["task"] == "regression"
    names = [row["kernel"] for row in said["kernels"]]
    assert names == ["Gaussian(gamma=0.1)", "Gaussian(gamma=1)"]
    assert "feature names" not in succeed("predict", model, folder).stderr
    found = answer("predict", model, folder, "-o", tmp_path / "out.parquet")
    assert found["rows"] == 300 and found["score"]["value"] > 0.95
    loaded = mk.load(model)
    expected = loaded.predict(make_columns(300))
    predictions = read_frame(tmp_path / "out.parquet").columns["prediction"]
    np.testing.assert_allclose(predictions, expected, rtol=1e-9)
    assert loaded.encoder.names == ["size", "weight", "colour=blue", "colour=green", "colour=red"]


def test_classes_come_with_probabilities(folder, tmp_path):
    model = tmp_path / "kind.skops"
    said = succeed("fit", folder, "-y", "kind", "--drop", "price", *BANK, *RANK, "-o", model)
    assert "3 files, 300 rows in 3 pieces, 5 columns" in said.stderr
    assert "Classification with 3 classes: ape (100), bee (100), cat (100)" in said.stderr
    assert "features approximate the kernels" in said.stdout
    found = answer("predict", model, folder)
    assert found["score"]["value"] > 0.8
    probabilities = {f"probability_{name}" for name in ("ape", "bee", "cat")}
    assert set(found["columns"]) == {"prediction", *probabilities}
    answer("fit", folder, "-y", "kind", "--drop", "price", *BANK, *RANK, "--loss", "logistic",
           "--C", 1, "-o", model, "--force")  # fmt: skip
    assert answer("predict", model, folder)["score"]["value"] > 0.8


def test_a_file_in_chunks_with_views(folder, tmp_path):
    views = tmp_path / "views.toml"
    views.write_text(
        '[body]\ncolumns = ["size", "weight"]\nkernels = ["default"]\n'
        '[look]\ncolumns = ["colour"]\nkernels = "Linear()"\n'
    )
    said = answer("fit", folder / "part-0.csv", "-y", "kind", "--chunks", "--views", views,
                  "-w", "uniform", *RANK, "-o", tmp_path / "m.skops")  # fmt: skip
    assert set(said["views"]) == {"body", "look"}
    assert said["rows"] == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-y", "prize"), "no target column 'prize'. Did you mean 'price'"),
        ((), "Name the column to predict with --target"),
        (("-y", "price", "-w", "alignf", "-w", "l1"), "takes one --weighting"),
        (("-y", "price", "--C", "1"), "--C does not apply to regression"),
        (
            ("-y", "price", "--categories", "kernel"),
            "--categories kernel cannot be used with --chunks",
        ),
        (("-y", "price", "--approximation", "Nystrom(5)"), "'Nystrom' is not known. Did you mean"),
        pytest.param(
            ("-y", "price", "--scheduler", "tcp://127.0.0.1:9"),
            "No scheduler answers at",
            marks=pytest.mark.skipif(find_spec("distributed") is None, reason="no distributed"),
        ),
    ],
)
def test_what_cannot_be_done_is_told(options, message, folder, tmp_path, monkeypatch):
    if "--scheduler" in options:
        cluster = pytest.importorskip("multikernel.rows.cluster")
        monkeypatch.setattr(cluster, "CONNECT_WAIT", "0.5s")
    assert message in fail("fit", folder, *options, "-o", tmp_path / "m.skops")


def test_options_of_chunks_need_chunks(folder, tmp_path):
    path = folder / "part-0.csv"
    for option in (RANK, ("--loss", "squared")):
        said = fail("fit", path, "-y", "price", *option, "-o", tmp_path / "m.skops")
        assert f"{option[0]} needs --chunks" in said


@pytest.mark.slow
def test_a_scheduler_by_its_address(folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    options = ("-y", "price", "--drop", "kind", *BANK, *RANK)
    answer("fit", folder, *options, "-o", tmp_path / "here.skops")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as local:
        address = local.scheduler_address
        answer("fit", folder, *options, "--scheduler", address, "-o", tmp_path / "there.skops")
    here, there = (mk.load(tmp_path / name).estimator for name in ("here.skops", "there.skops"))
    assert np.array_equal(here.kernel_weights_, there.kernel_weights_)
    assert here.intercept_ == there.intercept_
