"""From a data file to a model file, and from there to predictions, shares and certificates."""

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.model_selection import StratifiedKFold

import multikernel as mk
from multikernel.tables import Frame, TableModel, read_frame, write_columns
from tests.cli.helpers import answer, call, fail, make_columns, succeed, write_csv


def test_fit_says_what_it_found_and_did(animals, tmp_path):
    model = tmp_path / "a.skops"
    done = succeed("fit", animals, "--target", "kind", "--drop", "price", "-o", model, "--folds", 3)
    assert "90 rows, 3 columns to learn from" in done.stderr
    assert "Classification with 3 classes: ape (30), bee (30), cat (30)" in done.stderr
    assert "text values" in done.stderr and f"Model: {model}" in done.stderr
    assert (
        done.stdout.startswith("Accuracy 0.") and "(always answering 'ape': 0.333)" in done.stdout
    )
    assert "Chosen by 3-fold cross-validation: C = " in done.stdout
    assert " from 0.01, 0.1, 1, 10, 100." in done.stdout
    assert f"Next: multikernel predict {model} new.csv" in done.stderr
    loaded = mk.load(model)
    assert isinstance(loaded, TableModel) and loaded.target == "kind"
    assert loaded.encoder.names == ["size", "weight", "colour=blue", "colour=green", "colour=red"]
    assert np.mean(loaded.predict(animals) == make_columns()["kind"]) > 0.9


def test_fit_answers_machines_and_can_be_quiet(animals, tmp_path):
    model = tmp_path / "a.skops"
    said = answer("fit", animals, "-y", "price", "--drop", "kind", "-o", model, "--alpha", 0.1)
    assert said["task"] == "regression" and said["rows"] == 90 and said["model"] == str(model)
    assert len(said["kernels"]) == 13 and {"kernel", "weight", "alignment"} == set(
        said["kernels"][0]
    )
    assert said["duality_gap"] < 1e-6
    done = succeed("fit", animals, "-y", "price", "--drop", "kind", "-o", model, "-q", "--alpha", 1,
                   "--force")  # fmt: skip
    assert done.stdout == "" and done.stderr == ""


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".npz"])
def test_every_format_leads_to_the_same_model(suffix, trained, tmp_path):
    if suffix in (".parquet", ".feather"):
        pytest.importorskip("pyarrow")
    data, model = trained
    other, path = tmp_path / "other.skops", tmp_path / f"animals{suffix}"
    write_columns(make_columns(), path)
    succeed("fit", path, "-y", "kind", "--drop", "price", "-o", other, "--C", 10)
    np.testing.assert_array_equal(mk.load(other).predict(path), mk.load(model).predict(data))
    first, second = mk.load(model).estimator, mk.load(other).estimator
    np.testing.assert_array_equal(first.kernel_weights_, second.kernel_weights_)


def test_fit_is_what_the_library_does(trained):
    data, model = trained
    loaded = mk.load(model)
    frame = read_frame(data)
    X = loaded.encoder(frame)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = mk.MultiKernelClassifierCV(Cs=[10.0], cv=cv, random_state=0)
    ours.fit(X, frame.columns["kind"].tolist())
    np.testing.assert_array_equal(ours.decision_function(X), loaded.estimator.decision_function(X))


def test_libsvm_files_need_no_target(tmp_path):
    X, y = make_classification(60, 6, random_state=0)
    path, model = tmp_path / "a.libsvm", tmp_path / "a.skops"
    dump_svmlight_file(X, y, str(path))
    said = answer("fit", path, "-o", model, "--C", 10)
    assert said["task"] == "classification" and said["classes"] == [0, 1]
    assert answer("predict", model, path)["score"]["value"] > 0.9


def test_missing_values_are_refused_with_counts_and_filled_on_request(columns, tmp_path):
    columns["size"][3] = columns["size"][5] = ""
    columns["colour"][7] = "NA"
    path, model = write_csv(tmp_path / "a.csv", columns), tmp_path / "a.skops"
    message = fail("fit", path, "-y", "kind", "-o", model)
    assert "Missing values in 2 of 4 columns (90 rows): 'size' 2, 'colour' 1" in message
    assert "--impute median" in message and not model.exists()
    succeed("fit", path, "-y", "kind", "-o", model, "--impute", "median", "--C", 1)
    present = [float(v) for v in columns["size"] if v != ""]
    fills = {column.name: column.fill for column in mk.load(model).encoder.columns}
    assert fills["size"] == np.median(present) and fills["colour"] == "green"


def test_categories_can_have_kernels_of_their_own(animals, tmp_path):
    model = tmp_path / "a.skops"
    said = answer("fit", animals, "-y", "kind", "--categories", "kernel", "-o", model, "--C", 1)
    names = [row["kernel"] for row in said["kernels"]]
    assert names[-1] == "colour: Linear()" and names[0].startswith("numbers: Exponential")
    assert set(said["views"]) == {"numbers", "colour"}
    own = mk.load(model).estimator.bank_[-1]
    assert own == mk.Linear(columns=(3, 4, 5))


def test_views_weigh_and_explain_by_view(animals, tmp_path):
    views, model = tmp_path / "views.toml", tmp_path / "a.skops"
    views.write_text("[shape]\ncolumns = ['size', 'weight']\n[look]\ncolumns = ['colour']\n"
                     "kernels = ['linear']\n")  # fmt: skip
    done = succeed("fit", animals, "-y", "kind", "--views", views, "-o", model, "--C", 1)
    assert "Columns in no view are not used: 'price'" in done.stderr
    said = answer("explain", model, animals)
    assert set(said["mean_absolute_view_share"]) == {"shape", "look"}
    shares = said["shares"]
    kernels = [v for k, v in shares.items() if ": " in k]
    np.testing.assert_allclose(
        np.sum(kernels, axis=0) + shares["intercept"], shares["value"], atol=1e-10
    )
    by_view = np.add(shares["view shape"], shares["view look"])
    np.testing.assert_allclose(by_view + shares["intercept"], shares["value"], atol=1e-10)
    assert "Shares by view" in succeed("explain", model, animals, "--rows", 2).stdout


def test_arrays_of_an_archive_are_views(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    path, model = tmp_path / "a.npz", tmp_path / "a.skops"
    np.savez(
        path, good=rng.normal(size=(60, 3)) + 2 * y[:, None], bad=rng.normal(size=(60, 2)), y=y
    )
    said = answer("fit", path, "-y", "y", "-o", model, "--C", 1, "-k", "linear", "-w", "alignf")
    assert [row["kernel"] for row in said["kernels"]] == ["good: Linear()", "bad: Linear()"]
    assert said["views"]["good"] > 0.9


def test_texts_are_read_by_sequence_kernels(tmp_path):
    columns = {"dna": ["ACGTACGT", "TTTTACGA", "ACGTTTGA", "TTTTAAGA"] * 8,
               "gc": [0.5, 0.25, 0.4, 0.2] * 8, "kind": ["a", "b"] * 16}  # fmt: skip
    data, model = write_csv(tmp_path / "a.csv", columns), tmp_path / "a.skops"
    views = tmp_path / "views.toml"
    views.write_text("[sequence]\ncolumns = ['dna']\nkernels = ['Spectrum(k=2)', 'Spectrum(k=3)']\n"
                     "[content]\ncolumns = ['gc']\nkernels = ['gaussian(1)']\n")  # fmt: skip
    succeed("fit", data, "-y", "kind", "--views", views, "-o", model, "--C", 1)
    assert answer("predict", model, data)["score"] == {"name": "accuracy", "value": 1.0}
    table = answer("compare", data, "-y", "kind", "--views", views, "-w", "uniform",
                   "--repeats", 1, "--folds", 2)  # fmt: skip
    assert [row["name"] for row in table["rows"]] == ["uniform", "constant prediction"]


def test_kernels_per_column_are_named_after_it(animals, tmp_path):
    said = answer("fit", animals, "-y", "kind", "--drop", "price", "-o", tmp_path / "a.skops",
                  "-k", "per_feature(linear)", "--C", 1)  # fmt: skip
    assert said["kernels"][1]["kernel"] == "weight: Linear()"
    assert list(said["views"]) == ["size", "weight", "colour=blue", "colour=green", "colour=red"]
    views = tmp_path / "views.toml"
    views.write_text("[shape]\ncolumns = ['size', 'weight']\nkernels = 'per_feature(gaussian(1))'")
    said = answer("bank", animals, "-y", "kind", "--views", views)
    assert said["kernels"][0] == "shape: Gaussian(gamma=1) on size"


def test_several_weightings_are_chosen_among(animals, tmp_path):
    said = answer("fit", animals, "-y", "kind", "-o", tmp_path / "a.skops",
                  "-k", "gaussians([0.1,1])", "-w", "uniform", "-w", "LpNorm(p=1.5)",
                  "--folds", 3, "--C", 1)  # fmt: skip
    assert said["weighting"] in ("uniform", "LpNorm(p=1.5)")
    assert said["C"] == 1.0 and 0.5 < said["best_score"] <= 1.0


@pytest.mark.parametrize("options", [(), ("--C", 1), ("--C", 1, "-w", "l1")])
def test_progress_is_shown_to_those_who_watch(options, animals, tmp_path, monkeypatch):
    from multikernel.cli.common import Out

    monkeypatch.setattr(Out, "shows_progress", property(lambda self: self.chatty))
    model = tmp_path / "a.skops"
    done = succeed("fit", animals, "-y", "kind", "-o", model, "--folds", 2, *options)
    assert done.stdout.startswith("Accuracy 0.")  # progress is not among the results
    assert mk.load(model).estimator.verbose == 0
    if not options:
        assert "cross-validation" in done.stderr and "100%" in done.stderr
    quiet = succeed("fit", animals, "-y", "kind", "-o", model, "--folds", 2, "-q", *options,
                    "--force")  # fmt: skip
    assert quiet.stderr == ""


def test_wrong_options_are_explained(animals, tmp_path):
    model = tmp_path / "a.skops"
    assert "--alpha does not apply to classification" in fail(
        "fit", animals, "-y", "kind", "-o", model, "--alpha", 1
    )
    assert "'alignff' is not known" in fail("fit", animals, "-y", "kind", "-w", "alignff")
    assert "no column 'nose'" in fail("fit", animals, "-y", "kind", "--drop", "nose")
    assert "no folder" in fail(
        "fit", animals, "-y", "kind", "-o", tmp_path / "x" / "a.skops", "--C", 1
    )


# -- predict --------------------------------------------------------------------------------------


def test_predictions_are_printed_as_csv(trained):
    data, model = trained
    rows = list(csv.DictReader(succeed("predict", model, data, "-q").stdout.splitlines()))
    loaded = mk.load(model)
    assert [row["prediction"] for row in rows] == loaded.predict(data).tolist()
    assert list(rows[0]) == ["prediction", *(f"probability_{c}" for c in loaded.estimator.classes_)]
    probabilities = loaded.estimator.predict_proba(loaded.features(data))
    found = [float(row["probability_bee"]) for row in rows]
    np.testing.assert_array_equal(found, probabilities[:, 1])
    assert "accuracy on the target 'kind'" in succeed("predict", model, data).stderr


def test_decisions_are_written_on_request(trained):
    data, model = trained
    said = succeed("predict", model, data, "-q", "--decision").stdout
    rows = list(csv.DictReader(said.splitlines()))
    loaded = mk.load(model)
    decisions = loaded.estimator.decision_function(loaded.features(data))
    np.testing.assert_array_equal([float(row["decision_bee"]) for row in rows], decisions[:, 1])
    assert "--coverage is for regression" in fail("predict", model, data, "--coverage", 0.9)


def test_intervals_are_written_on_request(columns, tmp_path):
    model, data = tmp_path / "m.skops", tmp_path / "n.csv"
    names = ("size", "weight", "price")
    write_csv(data, {name: columns[name] for name in names})
    succeed("fit", data, "-y", "price", "-o", model, "--alpha", 1)
    found = answer("predict", model, data, "--coverage", 0.8)["columns"]
    loaded = mk.load(model)
    lower, upper = loaded.estimator.predict_interval(loaded.features(data), 0.8)
    np.testing.assert_array_equal(found["lower"], lower)
    np.testing.assert_array_equal(found["upper"], upper)
    assert "--decision is for classification" in fail("predict", model, data, "--decision")
    assert "above 0 and below 1" in fail("predict", model, data, "--coverage", 1.5)


def test_a_model_file_without_probabilities_still_predicts(trained, tmp_path):
    data, model = trained
    loaded = mk.load(model)
    del loaded.estimator._calibration
    old = tmp_path / "old.skops"
    mk.save(loaded, old)
    said = succeed("predict", old, data)
    assert "has no probabilities" in said.stderr
    assert said.stdout.splitlines()[0] == "prediction"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz", ".json"])
def test_predictions_are_written_to_files(suffix, trained, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    data, model = trained
    out = tmp_path / f"p{suffix}"
    assert answer("predict", model, data, "--out", out)["rows"] == 90
    if suffix == ".json":
        found = json.loads(out.read_text())["prediction"]
    else:
        found = read_frame(out).columns["prediction"].tolist()
    assert found == mk.load(model).predict(data).tolist()


def test_predict_needs_the_columns_and_no_target(trained, tmp_path):
    _, model = trained
    columns = make_columns()
    new = {name: columns[name][:4] for name in ("weight", "colour", "size")}
    path = write_csv(tmp_path / "new.csv", new)
    assert answer("predict", model, path)["score"] is None
    del new["size"]
    write_csv(path, new)
    assert "The model needs the column 'size'" in fail("predict", model, path)
    new["size"] = ["1", "NA", "2", "3"]
    write_csv(path, new)
    assert "Column 'size' is missing in row 1 of new.csv" in fail("predict", model, path)
    new["size"], new["colour"] = [1, 2, 3, 4], ["pink"] * 4
    write_csv(path, new)
    assert "Note: Column 'colour': 4 rows hold categories" in succeed("predict", model, path).stderr


def test_models_of_the_library_predict_too(animals, tmp_path, columns):
    model, data = tmp_path / "m.skops", tmp_path / "n.csv"
    X = np.column_stack([columns["size"], columns["weight"]])
    mk.save(mk.MultiKernelRegressor().fit(X, columns["price"]), model)
    write_csv(data, {name: columns[name] for name in ("size", "weight", "price")})
    said = answer("predict", model, data, "--target", "price")
    assert said["score"]["name"] == "R²" and said["score"]["value"] > 0.9
    assert "reads 2 unnamed columns, but the data have 3" in fail("predict", model, data)
    mk.save(mk.MultiKernelOneClass().fit(X), model)
    write_csv(data, {name: columns[name] for name in ("size", "weight")})
    assert set(answer("predict", model, data)["columns"]) == {"prediction"}
    found = answer("predict", model, data, "--decision")["columns"]
    assert set(found["prediction"]) <= {-1, 1}
    shares = answer("explain", model, data)["shares"]
    np.testing.assert_allclose(shares["value"], found["decision"], atol=1e-10)


def test_a_file_that_is_no_model_is_told(animals):
    assert "is not a model file" in fail("predict", animals, animals)


# -- explain, certificate, bank --------------------------------------------------------------------


def test_shares_add_up_to_the_decision(trained, tmp_path):
    data, model = trained
    out = tmp_path / "shares.csv"
    said = answer("explain", model, data, "--out", out)
    assert said["rows"] == 90 and said["shares"]["value"] == []
    rows = read_frame(out).columns
    kernels = [v for k, v in rows.items() if k not in ("prediction", "value", "intercept")]
    np.testing.assert_allclose(sum(kernels) + rows["intercept"], rows["value"], atol=1e-10)
    loaded = mk.load(model)
    decisions = loaded.estimator.decision_function(loaded.features(data))
    np.testing.assert_allclose(rows["value"], decisions.max(axis=1), atol=1e-10)
    assert "rows 1 to 3 of 90" in succeed("explain", model, data, "--rows", 3).stdout


def test_certificates_doubt_kernels_that_have_seen_the_sample(animals, tmp_path):
    model = tmp_path / "a.skops"
    plain = (
        "fit",
        animals,
        "-y",
        "kind",
        "--drop",
        "colour",
        "--drop",
        "price",
        "-o",
        model,
        "--C",
        1,
        "--force",
    )
    doubt = "kernels fixed before the sample is seen"
    succeed(*plain)
    said = answer("certificate", model, animals)
    assert said["n_samples"] == 90 and any(doubt in note for note in said["unmet"])
    assert all(not b["proven"] for machine in said["machines"] for b in machine["bounds"])
    succeed(*plain, "-k", "default + Linear()")  # an explicit bank, but made from the sample
    said = answer("certificate", model, animals)
    assert all(not b["proven"] for machine in said["machines"] for b in machine["bounds"])
    succeed(*plain, "-k", "gaussians([0.1, 1])")
    said = answer("certificate", model, animals, "--delta", 0.1)
    assert said["delta"] == 0.1
    given = [b for m in said["machines"] for b in m["bounds"] if b["kernels"] == "as given"]
    assert given and all(b["proven"] for b in given)
    assert (
        "Certificate of MultiKernelClassifier" not in succeed("certificate", model, animals).stdout
    )
    shown = succeed("certificate", model, animals, "--details").stdout
    assert "Certificate of MultiKernelClassifier" in shown


def test_page_and_command_have_one_certificate(animals, tmp_path):
    views = tmp_path / "views.toml"
    views.write_text('[sizes]\ncolumns = ["size", "weight"]\n')  # names no kernels
    model, page = tmp_path / "a.skops", tmp_path / "a.html"
    succeed("fit", animals, "-y", "kind", "--views", views, "-o", model, "--C", 1,
            "--report", page)  # fmt: skip
    said = answer("certificate", model, animals)
    assert said["risk"] is None and said["verdict"].startswith("Nothing is proven")
    text = page.read_text()
    assert "Nothing is proven about new samples" in text and "Proven with" not in text
    shown = succeed("certificate", model, animals, "--details").stdout
    theirs = [line for line in shown.splitlines() if line.startswith("  any weights")]
    ours = [line for line in text.splitlines() if line.startswith("  any weights")]
    assert theirs == ours


def test_certificates_want_the_training_data(trained, tmp_path):
    _, model = trained
    other = write_csv(tmp_path / "b.csv", make_columns(seed=1))
    assert "not the sample that the estimator was fitted to" in fail("certificate", model, other)


def test_the_bank_is_shown_aligned_and_drawn(animals, tmp_path):
    picture = tmp_path / "a.svg"
    done = succeed("bank", animals, "-y", "kind", "--drop", "price", "--picture", picture)
    assert "13 kernels on 90 samples" in done.stdout and "Alignments" in done.stdout
    text = picture.read_text()
    assert text.startswith("<svg") and text.count("<rect") == 170 and "http" not in text[50:]
    said = answer(
        "bank", animals, "-y", "kind", "--drop", "price", "-k", "linear", "-k", "gaussian(1)"
    )
    assert said["kernels"] == ["Linear()", "Gaussian(gamma=1)"]


def test_alignments_are_those_of_the_matrices(animals):
    from multikernel.tables import TableEncoder

    said = answer(
        "bank", animals, "-y", "kind", "--drop", "price", "-k", "linear", "-k", "gaussian(1)"
    )
    frame = Frame.of(animals)
    X = TableEncoder.fit(frame.without(["kind", "price"]))(frame)
    K, L = mk.Linear()(X), mk.Gaussian(1.0)(X)
    expected = mk.centered_alignment(K, L)
    np.testing.assert_allclose(said["alignments"], [[1, expected], [expected, 1]], atol=1e-10)
    labels = np.array(make_columns()["kind"])
    Y = (labels[:, None] == np.unique(labels)).astype(float)
    target = [mk.centered_alignment(K, Y @ Y.T), mk.centered_alignment(L, Y @ Y.T)]
    np.testing.assert_allclose(said["target_alignments"], target, atol=1e-10)


def test_a_bank_needs_no_target_and_draws_svg_only(animals, tmp_path):
    said = answer("bank", animals, "--drop", "kind")
    assert said["target_alignments"] is None and len(said["kernels"]) == 13
    assert "written as SVG" in fail("bank", animals, "--picture", tmp_path / "a.png")


def test_constant_kernels_are_pointed_out(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"a": [1.0] * 9 + [2.0], "b": [3.0] * 10})
    views = tmp_path / "views.toml"
    views.write_text(
        "[a]\ncolumns = ['a']\nkernels = 'linear'\n[b]\ncolumns = ['b']\nkernels = 'linear'"
    )
    done = succeed("bank", path, "--views", views)
    assert "of no use: b: Linear()" in done.stderr


def test_many_kernels_fit_a_narrow_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rng = np.random.default_rng(0)
    path = tmp_path / "a.npz"
    np.savez(path, X=rng.normal(size=(20, 30)), y=np.arange(20) % 2)
    done = succeed("bank", path, "-y", "y", "-k", "per_feature(linear)")
    assert "more kernels: use --picture or --json" in done.stdout
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()[3:]) <= 60


def test_wrong_formats_are_named(animals, tmp_path):
    odd = tmp_path / "data.txt"
    odd.write_bytes(animals.read_bytes())
    assert "not clear from its name" in fail("bank", odd)
    succeed("bank", odd, "--format", "csv", "--drop", "kind")
    assert call("bank", odd, "--format", "xlsx").exit_code == 2


@pytest.mark.parametrize("n", [60, 90, 120])
def test_a_report_on_other_rows_judges_their_predictions(n, tmp_path):
    """Stored held-out predictions belong to the training rows, however many the others are."""
    train = write_csv(tmp_path / "train.csv", make_columns(90))
    model, page = tmp_path / "m.skops", tmp_path / "new.html"
    succeed("fit", train, "-y", "kind", "--C", 1, "-o", model)
    new = write_csv(tmp_path / "new.csv", make_columns(n, seed=1))
    succeed("report", model, new, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert f"{n} samples, which are not the training sample" in text
    assert "not the samples that the model was fitted to" in text
    succeed("report", model, train, "-o", page, "--force")
    assert "held out" in page.read_text(encoding="utf-8")


def test_codes_of_a_category_keep_their_texts(tmp_path):
    z, kind = np.resize(["01", "1", "02", "1.10"], 80), np.resize(["a", "b", "c", "c"], 80)
    columns = {"z": z.tolist(), "more": ["007"] * 80, "size": np.resize(np.arange(7), 80).tolist()}
    data = write_csv(tmp_path / "a.csv", {**columns, "kind": kind.tolist()})
    model, page = tmp_path / "m.skops", tmp_path / "m.html"
    fit = ("fit", data, "-y", "kind", "--C", 1, "-k", "Linear()", "-o", model, "--force")
    assert "'z', 'more' have leading zeros" in succeed(*fit).stderr
    said = succeed(*fit, "--drop", "more", "--categorical", "z").stderr
    assert "zeros" not in said
    encoder = mk.load(model).encoder
    assert encoder.names == ["size", "z=01", "z=02", "z=1", "z=1.10"]
    # Whoever reads data for the model reads them in the same way, even if they look like numbers.
    new = write_csv(tmp_path / "new.csv", {name: v[:2] * 40 for name, v in columns.items()})
    expected = ["a", "b"] * 40
    for options in ((), ("--encoding", "utf-8")):
        done = succeed("predict", model, new, *options, "--json")
        assert json.loads(done.stdout)["columns"]["prediction"] == expected
        assert "did not occur" not in done.stderr
    assert mk.load(model).predict(new).tolist() == mk.load(model).predict(str(new)).tolist()
    assert mk.load(model).predict(new).tolist() == expected
    for command in (("explain", model, new), ("report", model, data, "-o", page),
                    ("certificate", model, data)):  # fmt: skip
        assert "did not occur" not in succeed(*command).stderr
    word = np.resize(["aab", "aba", "bb"], 80).tolist()
    more = write_csv(tmp_path / "words.csv", {"z": z.tolist(), "word": word, "kind": kind.tolist()})
    said = succeed("bank", more, "-y", "kind", "-k", "Spectrum(k=2)", "-k", "Linear()",
                   "--categorical", "z")  # fmt: skip
    assert "Spectrum" in said.stdout  # reads the words, since the codes are categories
    kept = ("--drop", "more", "--categorical", "z")
    assert "zeros" not in succeed("bank", data, "-y", "kind", "-k", "Linear()", *kept).stderr


def test_the_order_of_day_and_month_does_not_depend_on_the_sample(tmp_path):
    days = [f"{1 + i % 12:02d}/{1 + i % 7:02d}/2019" for i in range(59)] + ["01/25/2019"]
    columns = make_columns(60)
    data = write_csv(
        tmp_path / "a.csv", {"day": days, "size": columns["size"], "y": columns["price"]}
    )
    for seed in range(3):  # the only row that shows the order is seldom drawn
        model = tmp_path / f"{seed}.skops"
        said = succeed("fit", data, "-y", "y", "--dates", "--sample", 20, "--alpha", 1,
                       "-k", "Linear()", "--seed", seed, "-o", model)  # fmt: skip
        assert "20 of 60 rows are used" in said.stderr
        (column,) = (c for c in mk.load(model).encoder.columns if c.name == "day")
        assert (column.kind, column.levels) == ("date", ("month",))
