"""The accuracy benchmark: statistics by hand, splits that repeat, one row from a tiny set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.accuracy import (
    findings,
    measure,
    methods,
    page,
    picture,
    problems,
    ranks,
    rows,
    table,
    tuned,
    views,
)


def made_rows(errors: dict[str, dict[str, list[float]]], **facts: Any) -> list[dict[str, Any]]:
    """Rows of sets that were split into 70 training and 30 test samples."""
    return [
        {"set": name, "split": split, "method": method, "error": error, "seconds": 1.0}
        | {"train": 70, "test": 30, "samples": 100, "version": "nothing 1"}
        | facts
        for name, by_method in errors.items()
        for method, values in by_method.items()
        for split, error in enumerate(values)
    ]


def tiny(regression: bool = False, classes: int = 3, n: int = 100) -> problems.Split:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    if not regression:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    at = {"first": slice(0, 2), "second": slice(2, 4)}
    return problems.split(X, y, 0, 60, regression=regression, views=at)


# -- statistics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)]
)
def test_critical_difference_has_the_quantiles_of_the_published_table(k, q):
    # Demšar (2006), Table 5(a), level 0.05.
    found = ranks.critical_difference(k, 20)
    assert found == pytest.approx(q * math.sqrt(k * (k + 1) / 120), rel=5e-4)


def test_critical_difference_of_a_published_example():
    # Demšar (2006), section 3.2.2: four classifiers on 14 sets.
    assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert ranks.critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


def test_mean_ranks_share_ties_and_ignore_rounding():
    means = np.array([[0.1, 0.2, 0.3], [0.2, 0.1 + 1e-15, 0.1], [0.3, 0.1, 0.2]])
    assert ranks.mean_ranks(means) == pytest.approx([7 / 3, 4.5 / 3, 6.5 / 3])


def test_friedman_is_the_formula():
    means = np.random.default_rng(0).random((12, 4))
    found = ranks.mean_ranks(means)
    chi = 12 * 12 / (4 * 5) * (np.sum(found**2) - 4 * 25 / 4)
    assert ranks.friedman(means) == pytest.approx(stats.chi2.sf(chi, 3))


def test_holm_by_hand():
    assert ranks.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert ranks.holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


def test_wins_ties_and_their_tests():
    theirs = np.full(11, 0.2)
    mine = np.array([0.1] * 9 + [0.4, 0.2])
    found = ranks.compare(mine, theirs)
    assert (found.wins, found.ties, found.losses) == (9, 1, 1)
    assert found.win_rate == pytest.approx(9.5 / 11)
    # Signs: 11 of the 1024 sequences have at least nine wins.
    assert found.p_sign == pytest.approx(2 * 11 / 1024)
    logs = 9 * math.log(0.101 / 0.201) + math.log(0.401 / 0.201)
    assert found.relative_error == pytest.approx(math.exp(logs / 11))
    same = ranks.compare(theirs, theirs)
    assert (same.p_sign, same.p_wilcoxon, same.win_rate) == (1.0, 1.0, 0.5)


def test_significance_on_one_set_is_the_corrected_t_test():
    differences = np.array([0.03, 0.05, 0.04, 0.02, 0.06])
    base = np.array([0.2, 0.3, 0.25, 0.2, 0.3])
    found = made_rows({"a": {"bad": list(base + differences), "good": list(base)}})
    errors = ranks.Errors.of(found, ["bad", "good"])
    assert errors.overlaps["a"] == pytest.approx(30 / 70)
    t = 0.04 / math.sqrt((1 / 5 + 3 / 7) * differences.var(ddof=1))
    p = 2 * stats.t.sf(t, 4)
    assert ranks.significant(errors, "bad", "good", level=1.001 * p) == ["a"]
    assert ranks.significant(errors, "bad", "good", level=0.999 * p) == []
    assert ranks.significant(errors, "good", "bad", level=1.001 * p) == []


def test_no_set_is_significant_without_a_difference_or_with_one_split():
    same = made_rows({"a": {"x": [0.1, 0.1], "y": [0.1, 0.1]}, "b": {"x": [0.3], "y": [0.1]}})
    errors = ranks.Errors.of(same, ["x", "y"])
    for corrected in (False, True):
        assert ranks.significant(errors, "x", "y", corrected=corrected) == []


def test_methods_are_compared_on_splits_that_all_have():
    found = made_rows({"a": {"x": [0.1, 0.3, 0.9], "y": [0.2, 0.2]}, "b": {"x": [0.5]}})
    found.append({**found[0], "method": "y", "set": "b", "error": None, "failed": "no"})
    errors = ranks.Errors.of(found, ["x", "y"])
    assert errors.sets == ["a"] and errors.splits == (2, 2)
    assert errors.means == pytest.approx(np.array([[0.2, 0.2]]))
    assert "y on b, split 0: no" in table.failures(found)


def test_methods_that_lie_within_the_difference_are_joined_once():
    values = np.array([1.0, 1.5, 1.8, 3.0, 3.2])
    assert picture.cliques(values, 1.0) == [(0, 2), (3, 4)]
    assert picture.cliques(values, 1.3) == [(0, 2), (2, 3), (3, 4)]
    assert picture.cliques(values, 0.1) == []


# -- tables and pages -----------------------------------------------------------------------------


def three_methods() -> list[dict[str, Any]]:
    return made_rows(
        {
            "a": {"loo": [0.1, 0.12], "HistGradientBoosting": [0.2, 0.22], "linear": [0.3, 0.31]},
            "b": {"loo": [0.2, 0.21], "HistGradientBoosting": [0.1, 0.11], "linear": [0.3, 0.29]},
            "c": {"loo": [0.1, 0.12], "HistGradientBoosting": [0.2, 0.21], "linear": [0.05, 0.05]},
        },
        peak_mb=3.0,
        log_loss=0.5,
    )


def test_summary_orders_by_rank_and_is_relative_to_the_reference():
    found = table.summarise(
        three_methods(), ["loo", "HistGradientBoosting", "linear"], "HistGradientBoosting"
    )
    assert [row.method for row in found] == ["loo", "HistGradientBoosting", "linear"]
    assert [row.rank for row in found] == pytest.approx([5 / 3, 2.0, 7 / 3])
    own = found[1]
    assert (own.relative_error, own.relative_log_loss) == pytest.approx((1.0, 1.0))
    assert found[0].win_rate == pytest.approx(2 / 3)
    assert (own.seconds, own.peak_mb) == (1.0, 3.0)


def test_sentences_count_wins_and_name_losses():
    found = three_methods()
    said = findings.sentences(found, ["loo", "HistGradientBoosting", "linear"])
    assert "smaller mean error on 2 of 3 sets" in said and "67%" in said
    errors = ranks.Errors.of(found, ["loo", "HistGradientBoosting", "linear"])
    lost = findings.losses(errors, "loo").splitlines()[2:]
    assert [line.split(" | ")[0] for line in lost] == ["| c", "| b"]
    assert "| linear | 0.0500 |" in lost[0] and lost[0].endswith("| 1 of 2 |")


def test_the_best_of_several_is_chosen_for_every_set():
    errors = ranks.Errors.of(three_methods(), ["loo", "HistGradientBoosting", "linear"])
    said = findings.against_best(errors, "loo", ["HistGradientBoosting", "linear"])
    assert "wins on 1 of 3 sets" in said


def test_the_default_is_what_has_been_run():
    found = three_methods()
    assert table.default_of(found) == "loo"
    more = [{**row, "method": "default"} for row in found if row["method"] == "loo"]
    assert table.default_of(found + more) == "default"
    assert table.groups(found + more)["defaults"][0] == "default"
    assert "## defaults" in table.whole(found, table.groups)


def test_a_method_that_has_just_begun_does_not_shrink_the_table():
    found = three_methods()
    begun = [{**row, "method": "CatBoost"} for row in found if row["set"] == "a"]
    assert "CatBoost" not in table.groups(found + begun)["defaults"]
    all_sets = [{**row, "method": "CatBoost"} for row in found if row["method"] == "linear"]
    assert "CatBoost" in table.groups(found + all_sets)["defaults"]


def test_blocks_of_the_page_are_replaced_and_missing_ones_named():
    text = "Hand.\n<!-- begin a -->\nold\n<!-- end a -->\nMore.\n"
    once = page.filled(text, {"a": lambda: r"new \1"})
    assert once == "Hand.\n<!-- begin a -->\nnew \\1\n<!-- end a -->\nMore.\n"
    assert page.filled(once, {"a": lambda: r"new \1"}) == once
    with pytest.raises(ValueError, match="no block 'b'"):
        page.filled(text, {"b": str})


def test_the_page_is_what_the_kept_rows_say(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    kept = page.PAGE.read_text()
    monkeypatch.setattr(page, "PAGE", tmp_path / "accuracy.md")
    monkeypatch.setattr(page, "PICTURE", tmp_path / "ranks.svg")
    page.PAGE.write_text(kept)
    page.write()
    assert page.PAGE.read_text() == kept, "run python -m benchmarks.accuracy --docs"
    assert (tmp_path / "ranks.svg").read_text().startswith("<?xml")


# -- problems -------------------------------------------------------------------------------------


def test_a_split_is_the_same_every_time_and_parts_are_apart():
    one, again = problems.load("wdbc", 3, 100), problems.load("wdbc", 3, 100)
    assert np.array_equal(one.X, again.X) and np.array_equal(one.y_new, again.y_new)
    assert one.X.shape == (100, 30) and len(one.y_new) == 469 and one.samples == 569
    assert not np.array_equal(one.X, problems.load("wdbc", 4, 100).X)
    assert np.isfinite(one.X).all() and set(one.y) == {0, 1}


def test_classes_of_the_test_part_alone_are_always_wrong_and_have_no_log_loss():
    y = np.array(["a", "b"] * 50, dtype="U2")
    order = np.random.default_rng(0).permutation(100)
    y[order[-1]] = "aa"  # between the others, in the last test sample
    data = problems.split(np.zeros((100, 1)), y, 0, 70, regression=False)
    assert data.y_new[-1] == problems.UNSEEN and set(data.y) == {0, 1}
    assert data.error(np.maximum(data.y_new, 0)) == pytest.approx(1 / 30)
    even = np.full((30, 2), 0.5)
    assert data.log_loss(even) == pytest.approx(math.log(2))


def test_log_loss_by_hand_and_bounded():
    data = tiny(classes=2)
    sure = np.eye(2)[1 - data.y_new].astype(np.float32)  # always wrong, in single precision
    assert data.log_loss(sure) == pytest.approx(-math.log(1e-15), rel=1e-6)


def test_regression_errors_are_in_standard_deviations_and_shapes_are_checked():
    data = tiny(regression=True)
    assert data.error(np.full(len(data.y_new), data.y_new.mean())) == pytest.approx(1.0)
    assert data.error(data.y_new[:, None]) == 0.0
    with pytest.raises(ValueError, match="one for each test sample"):
        data.error(data.y_new[:3])


def test_missing_entries_become_medians_of_the_training_part():
    X = np.arange(20.0)[:, None]
    order = np.random.default_rng(0).permutation(20)
    X[order[-1]] = np.nan
    data = problems.split(X, X[:, 0] * 0, 0, 14, regression=True)
    assert data.X_new[-1, 0] == np.median(data.X)


# -- measuring ------------------------------------------------------------------------------------


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("method", ["loo", "uniform", "linear", "random forest"])
def test_one_row_of_a_tiny_set(method, regression):
    known = {**methods.OURS, **methods.PEERS}
    found = measure.run(method, known[method], tiny(regression))
    assert found is not None and "failed" not in found
    assert 0 <= found["error"] < 0.6 and found["seconds"] >= 0 and found["predict_seconds"] >= 0
    assert (found["train"], found["test"], found["samples"]) == (60, 40, 100)
    assert found["peak_mb"] is None or 0 <= found["peak_mb"] < 500
    has_probabilities = method in ("linear", "random forest") and not regression
    assert (found["log_loss"] is not None) >= has_probabilities
    assert found["version"].startswith(("multikernel", "sklearn"))


def test_a_method_that_fails_leaves_the_reason():
    class Broken:
        def fit(self, X, y):
            raise RuntimeError("no luck")

    found = measure.run("broken", lambda data: Broken(), tiny())
    assert found is not None and found["error"] is None
    assert found["failed"] == "RuntimeError: no luck"
    assert measure.run("absent", lambda data: None, tiny()) is None


def test_losses_of_classification_do_not_apply_to_regression():
    assert methods.OURS["loo, squared loss"](tiny(regression=True)) is None


def test_classes_with_gaps_are_numbered_from_zero():
    from sklearn.linear_model import LogisticRegression

    data = tiny()
    model = methods.FromZero(LogisticRegression()).fit(data.X, 5 * data.y)
    assert set(model.predict(data.X)) <= {0, 5, 10}
    assert model.predict_proba(data.X).shape == (60, 3)


def test_every_tuned_method_has_the_same_number_of_settings():
    for name in ("random forest", "HistGradientBoosting"):
        for data in (tiny(), tiny(regression=True)):
            search = tuned.TUNED[f"{name}, tuned"](data)
            assert len(search.param_grid) == tuned.SETTINGS and search.param_grid[0] == {}
            assert search.cv.get_n_splits() == tuned.FOLDS
    for data in (tiny(), tiny(regression=True)):
        search = tuned.tuned_ours(data).estimator
        costs = search.alphas if data.regression else search.Cs
        assert len(search.weighting) * len(costs) == tuned.SETTINGS
        assert search.cv.get_n_splits() == tuned.FOLDS
    assert set(tuned.SPACES) <= set(methods.PEERS)


def test_ours_tuned_fits_and_predicts():
    data = tiny()
    assert data.error(tuned.tuned_ours(data).fit(data.X, data.y).predict(data.X_new)) < 0.5


@pytest.mark.parametrize(
    "method", ["per view, loo", "best view, RBF SVM, tuned", "stacking of RBF SVMs"]
)
def test_methods_for_views_find_the_view_that_matters(method):
    found = measure.run(method, views.METHODS[method], tiny())
    assert found is not None and "failed" not in found, found
    assert found["error"] < 0.5


def test_views_have_a_table_of_their_own():
    errors = {"per view, loo": [0.1, 0.1], "concatenation, linear": [0.2, 0.3]}
    found = made_rows({"a": errors, "b": errors})
    text = table.whole(found, views.groups)
    assert "## several views" in text and "| per view, loo | 1.00 | 1.000 |" in text
    assert "| concatenation, linear | 25.0 ± 7.1 | 25.0 ± 7.1 | 1.0 |" in page.several_views(found)


# -- rows on disk ---------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was_and_sizes_have_files_of_their_own(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert rows.read(path) == []
    rows.append(path, {"set": "a", "split": 0, "method": "x"})
    left = rows.missing(rows.read(path), ["a", "b"], ["x", "y"], 2)
    assert left[:3] == [(0, "a", "y"), (0, "b", "x"), (0, "b", "y")] and len(left) == 7
    names = {
        rows.path(size, quick=quick, views=of_views).name
        for size in (500, problems.MAX_TRAIN)
        for quick in (False, True)
        for of_views in (False, True)
    }
    assert len(names) == 8
