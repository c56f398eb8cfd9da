"""``multikernel fit`` in chunks: folders of files, views, categories, and what cannot be done."""

from importlib.util import find_spec

import numpy as np
import pytest

import multikernel as mk
from multikernel.cli.chunks import rows_to_hold_out
from multikernel.rows import chunk as chunks
from multikernel.rows import hold_out, open_rows, sample_rows
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


def test_some_rows_are_kept_out_to_score_the_model(folder, tmp_path):
    model, page = tmp_path / "m.skops", tmp_path / "m.html"
    fit = ("fit", folder, "-y", "kind", "--drop", "price", *BANK, *RANK, "-o", model, "--force")
    said = succeed(*fit, "--holdout", 90, "--report", page)
    assert "90 rows drawn at random are kept out" in said.stderr and "Accuracy 0." in said.stdout
    assert "better than the baseline" in said.stdout and "multikernel predict" in said.stderr
    html = page.read_text()
    assert "Predictions for 90 samples, drawn at random and kept out of the fit" in html
    assert "support vectors" not in html and "approximate the kernels" in html
    found = answer(*fit, "--holdout", 90)
    assert found["held_out"] == 90 and found["assessment"]["verdict"] == "learned"
    rows = open_rows(folder, "kind", drop=["price"])
    for seed in (0, 3):
        found = answer(*fit, "--holdout", 90, "--seed", seed)
        _, test = hold_out(rows, 90, seed=seed)
        right = mk.load(model).estimator.predict(test.X) == test.y
        assert found["assessment"]["scores"]["accuracy"]["score"] == pytest.approx(right.mean())
    assert mk.load(model).estimator.plan_.n_samples == 210
    # Few rows are all used, unless it is asked for.
    assert answer(*fit)["held_out"] == 0 and answer(*fit)["assessment"] is None
    assert rows_to_hold_out(5000, None) == 500 and rows_to_hold_out(10**6, None) == 5000
    assert "at least 50 rows; got 20" in fail(*fit, "--holdout", 20)
    assert "leaves no rows to learn from; there are 300" in fail(*fit, "--holdout", 300)


def test_noise_in_chunks_is_called_noise(folder, tmp_path):
    rng = np.random.default_rng(1)
    data = tmp_path / "noise.csv"
    write_columns({"a": rng.random(600), "y": rng.permutation(np.arange(600) % 2)}, data)
    said = succeed("fit", data, "--chunks", "-y", "y", *BANK, *RANK, "-o", tmp_path / "m.skops")
    assert "nothing was learned" in said.stdout and "multikernel predict" not in said.stderr


def test_a_class_that_is_held_out_is_named(tmp_path):
    data, model = tmp_path / "rare.csv", tmp_path / "m.skops"
    rng = np.random.default_rng(1)
    X, _ = sample_rows(open_rows(np.arange(600.0)[:, None]), 60)
    kinds = np.array(["a", "b"])[np.arange(600) % 2].astype(object)
    kinds[int(X.X[0, 0])] = "c"  # the rows that will be drawn have known places
    write_columns({"x": rng.random(600), "kind": kinds}, data)
    said = succeed("fit", data, "--chunks", "-y", "kind", *BANK, *RANK, "-o", model)
    assert "All rows of 'c' are held out" in said.stderr and "--holdout 0" in said.stderr
    said = succeed("fit", data, "--chunks", "-y", "kind", *BANK, *RANK, "-o", model, "--force",
                   "--holdout", 0)  # fmt: skip
    assert "held out" not in said.stderr and "c" in mk.load(model).estimator.classes_


def test_classes_that_are_numbers_are_found_in_the_model(rng, tmp_path):
    data = tmp_path / "numbers.csv"
    for kinds in ([0, 1, 2], [0.5, 1.5]):
        write_columns({"x": rng.random(300), "kind": rng.choice(kinds, 300)}, data)
        said = succeed("fit", data, "--chunks", "-y", "kind", "--task", "classification", *BANK,
                       *RANK, "-o", tmp_path / "m.skops", "--force")  # fmt: skip
        assert "held out" not in said.stderr
        data.unlink()


def test_held_out_rows_have_no_part_in_the_medians(rng, tmp_path):
    n, data, model = 600, tmp_path / "gaps.csv", tmp_path / "m.skops"
    held = np.zeros(n, dtype=bool)
    held[sample_rows(open_rows(np.arange(float(n))[:, None]), 400)[1]] = True
    a = np.where(rng.random(n) < 0.2, np.nan, rng.random(n) + 100 * held)
    write_columns({"a": a, "b": rng.random(n), "y": rng.random(n)}, data)
    for bank in (BANK, ()):  # default kernels take their widths from the rest, too
        answer("fit", data, "-y", "y", "--chunks", "--impute", "median", "--holdout", 400, *bank,
               *RANK, "-o", model, "--force")  # fmt: skip
        fills = {column.name: column.fill for column in mk.load(model).encoder.columns}
        assert fills["a"] == np.nanmedian(a[~held])


@pytest.mark.parametrize("options", [(), BANK, ("--holdout", "0", *BANK)])
def test_codes_and_columns_that_give_the_target_away_are_named(options, rng, tmp_path):
    x, kind, data, page = rng.random(600), rng.integers(0, 3, 600), tmp_path / "a.csv", "m.html"
    columns = {"zip": ["0042", "1234"] * 300, "x": x, "km": x, "m": 1000 * x + 5}
    columns |= {"kind": np.array(["a", "b", "c"])[kind], "code": np.array([7, 1, 4])[kind]}
    write_columns(columns, data)
    fit = ("fit", data, "--chunks", *options, *RANK, "-o", tmp_path / "m.skops", "--force")
    said = answer(*fit, "-y", "kind", "--report", tmp_path / page)
    assert len(said["notes"]) == 2 and "'zip' has leading zeros" in said["notes"][0]
    assert "'code' gives 'kind' away" in said["notes"][1] and "--drop code" in said["notes"][1]
    assert "leading zeros" in (tmp_path / page).read_text()
    said = answer(*fit, "-y", "code", "--categorical", "zip", "--drop", "x")
    assert len(said["notes"]) == 1  # codes of a category keep their zeros
    assert "'kind' gives 'code' away" in said["notes"][0] and "random rows" in said["notes"][0]
    encoder = mk.load(tmp_path / "m.skops").encoder
    assert [name for name in encoder.names if "zip" in name] == ["zip=0042", "zip=1234"]
    said = succeed(*fit, "-y", "km", "--drop", "x")
    assert "Note: 'm' gives 'km' away" in said.stderr and "'code' gives" not in said.stderr


def test_codes_in_one_chunk_are_codes_in_all(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 40)
    codes = ["1", "2"] * 60 + ["01", "NA", "1"] * 20
    data, model = tmp_path / "a.csv", tmp_path / "m.skops"
    data.write_text("z,y\n" + "".join(f"{z},{i % 7}.5\n" for i, z in enumerate(codes)))
    answer("fit", data, "--chunks", "-y", "y", "--categorical", "z", "--impute", "median", *BANK,
           *RANK, "-o", model)  # fmt: skip
    table = mk.load(model)
    assert table.encoder.names == ["z=01", "z=1", "z=2"]
    rows = open_rows(data, "y", categorical=["z"], impute="median", chunk_rows=40)
    assert rows.columns == table.encoder.names
    whole = read_frame(data, codes=["z"])
    assert np.array_equal(np.vstack([chunk.X for chunk in rows]), table.encoder(whole))
    # Other texts of the same numbers are no codes.
    data.write_text("z,y\n" + "".join(f"{float(z)},{i}.5\n" for i, z in enumerate("1122" * 30)))
    assert open_rows(data, "y", categorical=["z"], chunk_rows=40).columns == ["z=1", "z=2"]


def test_class_weights_reach_the_fit(folder, tmp_path):
    fit = ("fit", folder, "-y", "kind", "--drop", "price", *BANK, *RANK, "--force")
    bees = []
    for words, value in (([], None), (["balanced"], "balanced"), (["bee=50"], {"bee": 50.0})):
        weights = ["--class-weight", *words] if words else []
        answer(*fit, *weights, "-o", tmp_path / "m.skops")
        model = mk.load(tmp_path / "m.skops").estimator
        assert model.class_weight == value
        found = answer("predict", tmp_path / "m.skops", folder, "-o", tmp_path / "p.csv", "--force")
        assert found["rows"] == 300
        bees.append(np.sum(read_frame(tmp_path / "p.csv").columns["prediction"] == "bee"))
    assert bees[0] == bees[1] < bees[2]  # the classes are of equal size
    assert "one of the classes ape, bee, cat" in fail(*fit, "--class-weight", "dog=2")


@pytest.mark.parametrize(
    "option",
    [
        ("--scoring", "roc_auc"),
        ("--groups", "size"),
        ("--folds", "7"),
        ("--folds", "5"),
        ("--dates",),
        ("--encoding", "latin1"),
        ("--sample", "100"),
        ("--device", "cuda"),
    ],
)
def test_options_without_effect_are_refused(option, folder, tmp_path):
    said = fail("fit", folder, "-y", "kind", *option, "-o", tmp_path / "m.skops")
    assert f"{option[0]} cannot be used with --chunks." in said


def test_options_of_chunks_need_chunks(folder, tmp_path):
    path = folder / "part-0.csv"
    for option in (RANK, ("--loss", "squared"), ("--holdout", "60")):
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
