"""What people get wrong, and models that others have made."""

import json

import numpy as np
import pytest

import multikernel as mk
from tests.cli.helpers import answer, call, fail, succeed, write_csv

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
GENES = np.array(["ACGTAC", "TTGTAC", "ACGTTT", "GGGTAC", "CCGTAA"] * 8)


@pytest.fixture
def table(tmp_path):
    columns = {f"x{j}": X[:, j].tolist() for j in range(3)} | {"y": y.tolist()}
    return write_csv(tmp_path / "table.csv", columns)


# -- wrong commands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("fit", "a.csv", "--bogus"), "--bogus"),
        (("fit",), "Missing argument"),
        (("no-such-command",), "no-such-command"),
        (("--bogus",), "--bogus"),
        (("fit", "a.csv", "--folds", "1"), "folds"),
    ],
)
def test_usage_errors_are_json_where_json_is_asked_for(arguments, message):
    done = call(*arguments, "--json")
    assert done.exit_code == 2
    assert message in json.loads(done.stdout)["error"]
    plain = call(*arguments)
    assert plain.exit_code == 2 and plain.stdout == "" and "Error" in plain.stderr


WITH_PLACES = [
    ("fit", "{data}", "-y", "y", "--out"),
    ("fit", "{data}", "-y", "y", "--report"),
    ("compare", "{data}", "-y", "y", "--out"),
    ("compare", "{data}", "-y", "y", "--report"),
    ("predict", "no.skops", "{data}", "--out"),
    ("explain", "no.skops", "{data}", "--out"),
    ("bank", "{data}", "--picture"),
    ("datasets", "wdbc", "--out"),
    ("demo", "--out"),
]


@pytest.mark.parametrize("arguments", WITH_PLACES, ids=lambda a: f"{a[0]} {a[-1]}")
def test_places_that_cannot_be_written_are_refused_before_any_work(
    arguments, table, tmp_path, monkeypatch
):
    def refuse(*args, **kwargs):
        raise AssertionError("data were read")

    # In this order: the second module, if it is imported here, takes its function from the first.
    monkeypatch.setattr("multikernel.cli.problem.read_frame", refuse)
    monkeypatch.setattr("multikernel.tables.read_frame", refuse)
    suffix = ".svg" if arguments[-1] == "--picture" else ".csv"
    place = tmp_path / "nowhere" / f"file{suffix}"
    message = fail(*(str(a).format(data=table) for a in arguments), place)
    assert "There is no folder" in message and "nowhere" in message


@pytest.mark.parametrize("name", ["scores.xyz", "scores", "scores.svm", "scores.parquet.gz"])
def test_formats_that_cannot_be_written_are_refused_before_any_work(name, table, tmp_path):
    message = fail("compare", table, "-y", "y", "--out", tmp_path / name)
    assert "Cannot write a table to a file like" in message and ".csv" in message
    assert list(tmp_path.iterdir()) == [table]


def test_a_folder_without_data_files_is_refused(tmp_path):
    assert f"The folder '{tmp_path}' holds no data files" in fail("fit", tmp_path, "-y", "y")


def test_new_gaps_are_told_what_a_fitted_model_can_do(table, tmp_path):
    model = tmp_path / "m.skops"
    succeed("fit", table, "-y", "y", "--C", 1, "--out", model)
    lines = table.read_text().splitlines()
    lines[3] = "," + lines[3].partition(",")[2]
    table.write_text("\n".join(lines))
    message = fail("predict", model, table)
    assert "'x0' is missing in row 2 of table.csv" in message
    assert "fit again with --impute median" in message
    assert "--drop" not in message


def test_a_warning_is_said_once(tmp_path):
    kind = ["a"] * 19 + ["b"] * 20 + ["rare"]
    path = write_csv(tmp_path / "rare.csv", {"x": X[:, 0].tolist(), "kind": kind})
    options = ("--repeats", 1, "--no-baselines", "-w", "uniform", "-w", "align")
    said = succeed("compare", path, "-y", "kind", *options).stderr
    notes = [line for line in said.splitlines() if line.startswith("Note: ")]
    assert notes and len(set(notes)) == len(notes)


def test_a_comparison_that_nothing_survives_is_an_error(tmp_path):
    path = write_csv(tmp_path / "c.csv", {"x": X[:, 0].tolist(), "y": [5.0] * 40})
    options = ("--task", "regression", "--no-baselines", "--repeats", 1)
    report = tmp_path / "page.html"
    message = fail("compare", path, "-y", "y", *options, "--report", report)
    assert "No weighting could be fitted: y is constant" in message and not report.exists()
    few = write_csv(tmp_path / "few.csv", {"x": [1, 2, 3, 4], "y": [0, 1, 0, 1]})
    assert "5 folds need at least as many rows; there are 4" in fail("compare", few, "-y", "y")


def test_libraries_get_as_many_threads_as_jobs():
    from threadpoolctl import threadpool_info

    from multikernel.cli import leaderboard, methods
    from multikernel.cli.problem import TableProblem
    from multikernel.cli.views import View
    from multikernel.tables import Frame, TargetColumn

    seen = []

    class Spy:
        def fit(self, X, y):
            seen.append({pool["num_threads"] for pool in threadpool_info()})
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    target = TargetColumn("y", y, "classification", "")
    problem = TableProblem(
        Frame.of({"x": X[:, 0]}), target, [View("", None, ("default",))], (), None
    )
    spy = methods.Method("spy", "weighting", lambda bank, X, cv: Spy())
    leaderboard.run(problem, [spy], folds=2, repeats=1, seed=0, advance=lambda name: None)
    assert seen and all(threads == {1} for threads in seen)


# -- models of the library ------------------------------------------------------------------------

GAUSSIANS = mk.gaussians([0.1, 1.0])
MODELS = {
    "one-class": lambda: mk.MultiKernelOneClass(GAUSSIANS).fit(X),
    "voted": lambda: mk.VotedKernelClassifier(GAUSSIANS).fit(X, y),
    "ensemble": lambda: mk.KernelEnsembleClassifier(GAUSSIANS).fit(X, y),
    "ensemble, regression": lambda: mk.KernelEnsembleRegressor(GAUSSIANS).fit(X, X[:, 0]),
    "powers": lambda: mk.SpectralKernelClassifier(mk.Gaussian(0.5)).fit(X, y),
    "hull": lambda: mk.SpectralKernelClassifier(GAUSSIANS, family="convex").fit(X, y),
    "search": lambda: mk.MultiKernelClassifierCV(GAUSSIANS, cv=3).fit(X, y),
    "averages": lambda: mk.ParzenClassifier(GAUSSIANS).fit(X, y),
    "averages, regression": lambda: mk.ParzenRegressor(GAUSSIANS).fit(X, X[:, 0]),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_predicts_and_explains(name, table, tmp_path):
    model = MODELS[name]()
    path = mk.save(model, tmp_path / "m.skops")
    said = answer("predict", path, table, "-y", "y")["columns"]
    np.testing.assert_array_equal(said["prediction"], model.predict(X))
    shares = answer("explain", path, table, "-y", "y")["shares"]
    value = (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)
    np.testing.assert_allclose(shares["value"], value, rtol=1e-7, atol=1e-9)
    rest = {"prediction", "value", "intercept"}
    total = sum(np.array(shares[name]) for name in shares if name not in rest)
    np.testing.assert_allclose(total + shares["intercept"], value, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["one-class", "voted", "search", "averages"])
def test_models_with_bounds_are_certified(name, table, tmp_path):
    path = mk.save(MODELS[name](), tmp_path / "m.skops")
    assert answer("certificate", path, table, "-y", "y")["n_samples"] == 40


@pytest.mark.parametrize("name, why", [("ensemble", "no certificate"), ("powers", "bound_")])
def test_models_without_bounds_say_why(name, why, table, tmp_path):
    path = mk.save(MODELS[name](), tmp_path / "m.skops")
    assert why in fail("certificate", path, table, "-y", "y")


def test_models_on_sequences_read_a_column_of_texts(tmp_path):
    model = mk.MultiKernelClassifier([mk.Spectrum(2), mk.Spectrum(3)]).fit(GENES, y)
    path = mk.save(model, tmp_path / "m.skops")
    table = write_csv(tmp_path / "genes.csv", {"gene": GENES.tolist(), "y": y.tolist()})
    said = answer("predict", path, table, "-y", "y")
    np.testing.assert_array_equal(said["columns"]["prediction"], model.predict(GENES))
    assert said["score"]["value"] == pytest.approx(model.score(GENES, y))
    assert "Spectrum(k=" in succeed("explain", path, table, "-y", "y").stdout
    assert answer("certificate", path, table, "-y", "y")["n_samples"] == 40
