"""The leaderboard: fair splits, the tests of the papers, and what is left out when it fails."""

import json
import sys
import types

import numpy as np
import pytest
from scipy import stats

import multikernel.report.about as about_module
from multikernel.cli import leaderboard, methods
from multikernel.cli.leaderboard import Leaderboard, LeaderboardRow, paired_t
from multikernel.cli.methods import Method
from multikernel.cli.problem import TableProblem
from multikernel.cli.views import View
from multikernel.tables import Frame, find_target, read_frame
from tests.cli.helpers import answer, fail, make_columns, succeed, write_csv


def test_paired_tests_are_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.1, 1, 30), rng.normal(0, 1, 30)
    expected = stats.ttest_rel(a, b, alternative="greater").pvalue
    assert paired_t(a - b) == pytest.approx(expected)
    assert paired_t(a - b) + paired_t(b - a) == pytest.approx(1.0)
    # The correction for overlap draws p-values towards a half.
    assert abs(paired_t(a - b, 0.25) - 0.5) < abs(paired_t(a - b) - 0.5)
    assert paired_t(np.zeros(5)) == 1.0
    assert paired_t(np.full(5, 0.1)) == 0.0 and paired_t(np.full(5, -0.1)) == 1.0


def board(test="corrected", **scores):
    rows = tuple(
        LeaderboardRow(name, "weighting", np.array(values), 0.1) for name, values in scores.items()
    )
    return Leaderboard("accuracy", True, 5, 1, rows, test)


def test_verdicts_follow_the_corrected_test():
    base = np.array([0.8, 0.82, 0.78, 0.81, 0.79])
    small = np.array([0.01, 0.0, 0.02, 0.005, 0.01])
    plain, found = (board(test, uniform=base, up=base + small) for test in ("paper", "corrected"))
    assert plain.verdict(plain.row("up")) == "better (p < 0.05)"
    assert found.verdict(found.row("up")) == "better (p < 0.1)"
    values = found.to_dict()
    assert values["test"] == "corrected" and values["rows"][1]["verdict"] == "better (p < 0.1)"


def test_the_winner_of_noise_is_not_crowned():
    base = np.array([0.8, 0.82, 0.78, 0.81, 0.79])
    near = base + np.array([0.02, -0.01, 0.0, 0.02, -0.01])
    found = board("corrected", l1=near, uniform=base)
    assert found.recommended.name == "uniform"
    (said,) = found.conclusions()
    assert "l1 has the best mean" in said and "does not differ significantly from uniform" in said
    assert found.to_dict()["recommended"] == "uniform"
    clear = board("corrected", l1=base + 0.05 + 0.1 * (near - base), uniform=base)
    assert clear.recommended.name == "l1" and clear.conclusions() == ["l1 is better than uniform."]
    rival = LeaderboardRow("random forest", "scikit-learn", base - 0.1 + (near - base), 0.1)
    three = Leaderboard("accuracy", True, 5, 1, (*found.rows, rival))
    assert three.conclusions()[-1] == "uniform is better than random forest, the best other model."


def test_verdicts_say_direction_and_level():
    base = np.array([0.8, 0.82, 0.78, 0.81, 0.79])
    noise = np.array([0.01, -0.01, 0.0, 0.02, 0.0])
    found = board(uniform=base, up=base + 0.05 + noise, near=base + noise, down=base - 0.05 - noise)
    assert found.verdict(found.row("up")) == "better (p < 0.05)"
    assert found.verdict(found.row("down")) == "worse (p < 0.05)"
    assert found.verdict(found.row("near")) == "" == found.verdict(found.row("uniform"))
    assert [found.mark(row) for row in found.rows] == ["", "++", "", "--"]
    small = np.array([0.01, 0.0, 0.02, -0.005, 0.01])
    p = stats.ttest_1samp(small, 0, alternative="greater").pvalue
    assert 0.05 < p < 0.1
    found = board("paper", uniform=base, up=base + small)
    assert found.verdict(found.row("up")) == "better (p < 0.1)" and found.mark(found.rows[1]) == "+"


def test_errors_count_the_other_way():
    base = np.array([1.0, 1.1, 0.9, 1.05])
    rows = (
        LeaderboardRow("uniform", "weighting", base, 0.1),
        LeaderboardRow("b", "weighting", base * 0.5, 0.1),
    )
    found = Leaderboard("RMSE", False, 4, 1, rows)
    assert found.verdict(rows[1]).startswith("better")


@pytest.mark.parametrize("target", ["kind", pytest.param("price", marks=pytest.mark.slow)])
def test_compare_ranks_all_methods(target, animals):
    other = {"kind": "price", "price": "kind"}[target]
    said = answer("compare", animals, "-y", target, "--drop", other,
                  "--folds", 2, "--repeats", 1, "-k", "gaussians([0.1, 1])")  # fmt: skip
    rows = said["rows"]
    names = {row["name"] for row in rows}
    assert set(methods.RULES) <= names
    assert {"random forest", "gradient boosting", "constant prediction"} <= names
    assert len(names) == len(methods.RULES) + 5
    assert not [row for row in rows if "error" in row]
    means = [row["mean"] for row in rows]
    best_first = sorted(means, reverse=said["greater_is_better"])
    assert means == best_first and said["metric"] == ("accuracy" if target == "kind" else "RMSE")
    for row in rows:
        assert len(row["scores"]) == 2 and row["seconds"] > 0
        if row["name"] != "uniform":
            p = row["against_uniform"]
            assert p["p_better"] + p["p_worse"] == pytest.approx(1.0) or p["p_better"] in (0, 1)


def test_compare_measures_regression_by_its_errors(animals):
    said = answer("compare", animals, "-y", "price", "--drop", "kind", "-w", "uniform",
                  "-w", "align", "--folds", 2, "--repeats", 1)  # fmt: skip
    assert said["metric"] == "RMSE" and not said["greater_is_better"]
    errors = {row["name"]: row["mean"] for row in said["rows"]}
    assert list(errors.values()) == sorted(errors.values())
    assert errors["ridge regression"] < 0.3 and {"SVR, tuned RBF", "random forest"} <= set(errors)


def test_compare_shows_a_table_and_writes_scores(animals, tmp_path):
    out = tmp_path / "scores.csv"
    done = succeed("compare", animals, "-y", "kind", "-w", "uniform", "-w", "LpNorm(p=1.5)",
                   "--no-baselines", "--folds", 2, "--repeats", 2, "--out", out)  # fmt: skip
    assert "accuracy, 2-fold cross-validation, 2 times" in done.stdout
    assert "LpNorm" in done.stdout and "t-test" in done.stdout
    assert len(read_frame(out)) == 4
    assert "is not known" in fail("compare", animals, "-y", "kind", "-w", "nothing")


def problem(**columns):
    frame = Frame.of(columns)
    target = find_target(frame, "y")
    return TableProblem(frame.without(["y"]), target, [View("", None, ("default",))], (), "median")


def test_everything_is_learned_from_the_training_part():
    parts = []

    class Spy:
        def fit(self, X, y):
            parts.append(X[:, 0])
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    a = np.arange(20.0) ** 2
    a[3] = -1.0  # marks the row whose second entry is missing
    b = np.where(a < 0, np.nan, a)
    spy = Method("spy", "weighting", lambda bank, X, cv: Spy())
    data = problem(b=b, y=np.arange(20) % 2)
    leaderboard.run(data, [spy], folds=4, repeats=1, seed=0, advance=lambda name: None)
    fills = set()
    for filled in parts:
        assert len(filled) == 15
        known = np.intersect1d(filled, a)
        if len(known) < 15:  # the row with the gap is in this part
            (fill,) = set(filled) - set(known) or {np.median(known)}
            assert fill == np.median(known)
            fills.add(fill)
    assert len(fills) > 1  # every training part has a median of its own


@pytest.mark.parametrize("error", [ValueError, NotImplementedError])
def test_a_method_that_fails_does_not_stop_the_others(error):
    class Broken:
        def fit(self, X, y):
            raise error("no good\nsecond line")

    class Constant:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.ones(len(X), dtype=int)

    compared = [Method("broken", "weighting", lambda b, X, cv: Broken()),
               Method("uniform", "weighting", lambda b, X, cv: Constant())]  # fmt: skip
    found = leaderboard.run(problem(a=np.arange(20.0), y=np.arange(20) % 2), compared, folds=2,
                            repeats=1, seed=0, advance=lambda name: None)  # fmt: skip
    assert [row.name for row in found.rows] == ["uniform", "broken"]
    assert found.rows[1].error == "no good" and found.row("broken") is None
    assert found.row("uniform").mean == 0.5
    entries = found.to_dict()["rows"]
    assert entries[1]["error"] == "no good" and json.dumps(entries)
    found.table()


def with_constant(uniform, constant, **others):
    rows = [LeaderboardRow("uniform", "weighting", uniform, 0.1)]
    rows += [LeaderboardRow(name, "scikit-learn", values, 0.1) for name, values in others.items()]
    rows.append(LeaderboardRow(methods.CONSTANT, "constant", constant, 0.1))
    return Leaderboard("accuracy", True, 5, 1, tuple(sorted(rows, key=lambda row: -row.mean)))


def test_a_constant_prediction_is_the_least_to_beat():
    base = np.array([0.6, 0.62, 0.58, 0.61, 0.59])
    noise = np.array([0.02, -0.02, 0.0, 0.02, -0.02])
    nothing = "By accuracy, no method is clearly better than a constant prediction."
    assert with_constant(base + noise, base).conclusions() == [nothing]
    assert with_constant(base - 0.1, base, forest=base - noise).conclusions() == [nothing]
    one = with_constant(base + noise, base, forest=base + 0.2 + noise / 2).conclusions()
    assert one == [
        "uniform is not clearly better than a constant prediction.",
        "forest is better than uniform on these data.",
    ]
    both = with_constant(base + 0.2 + noise, base, forest=base + 0.2).conclusions()
    assert both == ["uniform does not differ significantly from forest, the best other model."]


def test_noise_is_not_learned(tmp_path):
    rng = np.random.default_rng(3)
    data = tmp_path / "noise.csv"
    rows = [f"{a:.3f},{b:.3f},{'yn'[int(c > 0.6)]}" for a, b, c in rng.random((60, 3))]
    data.write_text("\n".join(["a,b,y", *rows]))
    done = succeed("compare", data, "-y", "y", "-w", "uniform", "--folds", 4, "--repeats", 2)
    assert "no method is clearly better than a constant" in " ".join(done.stdout.split())


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc_ovr", "neg_log_loss"])
def test_compare_by_another_score(scoring, animals):
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score

    said = answer("compare", animals, "-y", "kind", "--drop", "price", "-w", "uniform",
                  "--folds", 3, "--repeats", 1, "--scoring", scoring)  # fmt: skip
    rows = {row["name"]: row for row in said["rows"]}
    assert said["greater_is_better"] and said["metric"] != "accuracy"
    assert rows["uniform"]["mean"] > rows["constant prediction"]["mean"]
    failed = {name for name, row in rows.items() if "error" in row}
    # SVC has no probabilities; others do not lose their lines.
    assert failed == (set() if scoring == "balanced_accuracy" else {"SVC, tuned RBF"})
    frame = read_frame(animals)
    target = find_target(frame, "kind")
    forest = methods.baselines(problem_of(frame, target), 0, 1)[2].make(None, None, None)
    X = problem_of(frame, target).encoder(frame.without(["kind", "price"]))(
        frame.without(["kind", "price"])
    )
    splits = RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=0)
    expected = cross_val_score(forest, X, target.values, cv=splits, scoring=get_scorer(scoring))
    np.testing.assert_allclose(rows["random forest"]["scores"], expected)


def problem_of(frame, target):
    return TableProblem(
        frame.without(["kind", "price"]), target, [View("", None, ("default",))], (), None
    )


def test_unknown_scores_are_refused_before_anything_is_read(animals):
    said = fail("compare", animals, "-y", "kind", "--scoring", "balanced_acuracy")
    assert "Did you mean balanced_accuracy" in said


def test_rows_of_a_group_stay_together(tmp_path):
    rng = np.random.default_rng(5)
    patients = np.repeat(np.arange(12), 6)
    place = rng.standard_normal((12, 8))[patients] + 0.01 * rng.standard_normal((72, 8))
    ill = rng.permutation(np.arange(12) % 2)[patients]  # nothing but the patient tells
    data = tmp_path / "visits.csv"
    rows = [f"p{p},{','.join(map(str, values))},{'ny'[y]}"
            for p, values, y in zip(patients, place, ill, strict=True)]  # fmt: skip
    data.write_text("\n".join(["patient,a,b,c,d,e,f,g,h,ill", *rows]))
    command = ["compare", data, "-y", "ill", "-w", "uniform", "--folds", 3, "--repeats", 2]
    apart = answer(*command, "--drop", "patient")
    together = answer(*command, "--groups", "patient")
    means = [{row["name"]: row["mean"] for row in one["rows"]} for one in (apart, together)]
    assert means[0]["uniform"] > 0.95 > 0.8 > means[1]["uniform"]
    assert len(together["rows"][0]["scores"]) == 6
    assert "at least as many groups" in fail(*command[:-4], "--folds", 13, "--groups", "patient")


@pytest.mark.parametrize(
    ("n_groups", "advice"), [(2, "at least three groups"), (3, "more folds: --folds 3")]
)
def test_one_group_to_train_on_is_refused(n_groups, advice, rng, tmp_path):
    data = write_csv(
        tmp_path / "visits.csv",
        {"a": rng.random(60), "ill": np.arange(60) // 6 % 2, "patient": np.arange(60) % n_groups},
    )
    said = fail("compare", data, "-y", "ill", "--groups", "patient", "--folds", 2)
    assert f"2 folds of {n_groups} groups" in said and advice in said


def test_a_large_class_is_mentioned(tmp_path):
    assert leaderboard.remark_on_classes(np.array(["a"] * 9 + ["b"]), None).startswith("90% of")
    assert leaderboard.remark_on_classes(np.array(["a"] * 9 + ["b"]), "roc_auc") == ""
    assert leaderboard.remark_on_classes(np.arange(10) % 2, None) == ""


# -- reports --------------------------------------------------------------------------------------


@pytest.fixture
def reports(monkeypatch):
    """Stands in for the report writer, and keeps what it is given."""
    given = []
    module = types.ModuleType("multikernel.report")

    def write_report(estimator, X, y, path, *, cv_results=None, title=None, about=None):
        given.append(
            {"estimator": estimator, "cv_results": cv_results, "title": title, "n": len(y)}
        )
        path.write_text("<!doctype html>")
        return path

    module.write_report = write_report
    monkeypatch.setitem(sys.modules, "multikernel.report.about", about_module)
    monkeypatch.setitem(sys.modules, "multikernel.report", module)
    return given


def test_reports_get_the_fitted_model_and_the_leaderboard(animals, tmp_path, reports):
    page = tmp_path / "page.html"
    done = succeed("compare", animals, "-y", "kind", "-w", "uniform", "--no-baselines",
                   "--folds", 2, "--repeats", 1, "--report", page)  # fmt: skip
    assert f"Report: {page}" in done.stderr and page.exists()
    (given,) = reports
    assert given["cv_results"]["rows"][0]["name"] == "uniform"
    assert given["title"] == "animals.csv: kind" and given["n"] == 90
    assert given["estimator"].kernel_weights_ is not None
    model = tmp_path / "m.skops"
    succeed("fit", animals, "-y", "kind", "--C", 1, "-o", model, "--report", page, "--force")
    assert len(reports) == 2


def test_a_report_that_cannot_be_written_is_an_error_where_it_was_asked_for(
    animals, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "multikernel.report", None)
    message = fail("fit", animals, "-y", "kind", "--C", 1, "-o", tmp_path / "m.skops",
                   "--report", tmp_path / "p.html")  # fmt: skip
    assert "multikernel[report]" in message


def test_the_demo_runs_alone_and_names_its_report(tmp_path, reports, monkeypatch):
    monkeypatch.setattr(methods, "baselines", lambda *args: [])
    monkeypatch.setattr(methods, "weightings", _one_weighting(methods.weightings))
    page = tmp_path / "demo.html"
    done = succeed("demo", "--out", page)
    *_, named, following = done.stderr.replace("\n", " ").partition("Next, with your own data: ")
    assert str(page) in done.stderr and page.exists()
    assert named and following.startswith("multikernel fit data.csv --target y")
    assert "569 tumours" in done.stderr and "What was learned" in done.stdout
    assert done.stdout.startswith("Accuracy 0.9") and "By view: worst 76%, " in done.stdout
    assert reports[0]["cv_results"]["metric"] == "accuracy"


def test_the_demo_does_without_the_report(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "multikernel.report", None)
    monkeypatch.setattr(methods, "baselines", lambda *args: [])
    monkeypatch.setattr(methods, "weightings", _one_weighting(methods.weightings))
    said = answer("demo", "--out", tmp_path / "demo.html")
    assert said["report"] is None and len(said["kernels"]) == 39
    assert said["leaderboard"]["rows"][0]["mean"] > 0.95


@pytest.mark.slow
def test_the_whole_demo(tmp_path):
    said = answer("demo", "--out", tmp_path / "demo.html")
    assert len(said["leaderboard"]["rows"]) == 7
    assert not [row for row in said["leaderboard"]["rows"] if "error" in row]


def _one_weighting(original):
    def chosen(problem, rules, seed, n_jobs):
        return original(problem, ["uniform"], seed, n_jobs)

    return chosen


def test_columns_of_the_tests_tell_the_kinds_apart():
    assert set(make_columns()["kind"]) == {"ape", "bee", "cat"}


def test_folds_read_dates_as_the_whole_table(tmp_path):
    days = ["01/02/2019", "05/06/2019", "07/03/2019"] * 10 + ["25/12/2019"]
    columns = {"day": days, "a": list(range(31)), "y": [float(i * i) for i in range(31)]}
    path = write_csv(tmp_path / "a.csv", columns)
    succeed(
        "compare", path, "-y", "y", "--dates", "-w", "uniform", "--folds", "3", "--repeats", "1"
    )
