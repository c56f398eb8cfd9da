"""The experiment on voted kernels: protocol, no look at test labels, resuming, printing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from multikernel.experiments import voted
from multikernel.experiments.voted_figures import PRINTED, TABLE_1, TABLE_2
from multikernel.experiments.voted_methods import METHODS, Grids

TINY = Grids((1, 3), (0.1, 1.0), (0.1, 1e-3), (0.1, 10.0), (0.1, 10.0))


def sample(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def test_printed_figures_are_those_of_the_paper():
    assert len(PRINTED) == 13
    assert sum(set(TABLE_1) <= set(row) for row in PRINTED.values()) == 11
    assert all(set(TABLE_2) <= set(row) for row in PRINTED.values())
    assert PRINTED["musk"]["VKRD"] == (9.03, 1.39, 108.0)
    assert PRINTED["ml-prove"]["VKRG"] == (19.91, 2.12, 1212.0)
    # "outperforms L2-SVM-uniform on 9 out of 13 datasets"
    assert sum(row["VKRG"][0] < row["L2-unif"][0] for row in PRINTED.values()) == 9


def test_grids_are_those_of_the_paper():
    grids = Grids()
    assert grids.degrees == tuple(range(1, 11))
    np.testing.assert_allclose(grids.gammas, 10.0 ** (np.arange(-4, 5) / 2))
    np.testing.assert_allclose(grids.penalties, 10.0 ** -np.arange(9.0))
    np.testing.assert_allclose(grids.costs, 10.0 ** np.arange(-4.0, 8))
    np.testing.assert_allclose(grids.uniform_costs, 10.0 ** np.arange(-5.0, 8))


def test_roles_rotate():
    parts = voted.folds(53, 0, "ionosphere")
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(53))
    for i in range(5):
        train, validation, test = voted.roles(parts, i)
        np.testing.assert_array_equal(test, parts[i])
        np.testing.assert_array_equal(validation, parts[(i + 1) % 5])
        everyone = np.sort(np.concatenate([train, validation, test]))
        np.testing.assert_array_equal(everyone, np.arange(53))
    again = voted.folds(53, 0, "ionosphere")
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    assert not np.array_equal(parts[0], voted.folds(53, 1, "ionosphere")[0])
    assert not np.array_equal(parts[0], voted.folds(53, 0, "musk")[0])


def test_preparation_sees_training_points_only():
    X, _ = sample()
    X[3, 1] = np.nan
    train = np.arange(36)
    Z = voted.prepare(X, train)
    np.testing.assert_allclose(Z[np.r_[:3, 4:36]].std(axis=0)[0], 0.5, atol=0.1)
    assert Z[3, 1] == 0.0
    far = X.copy()
    far[40:] *= 1e6
    np.testing.assert_array_equal(voted.prepare(far, train)[:40], Z[:40])


@pytest.mark.parametrize("method", list(METHODS))
def test_labels_of_validation_and_test_points_are_not_looked_at(method):
    X, y = sample()
    parts = voted.folds(len(y), 0, "made up")
    _, validation, test = voted.roles(parts, 2)
    clean = voted.run_fold(method, X, y, parts, 2, TINY)
    poisoned = y.copy()
    poisoned[np.concatenate([validation, test])] = np.nan
    dirty = voted.run_fold(method, X, poisoned, parts, 2, TINY)
    np.testing.assert_array_equal(clean.test, dirty.test)
    np.testing.assert_array_equal(clean.validation, dirty.validation)
    np.testing.assert_array_equal(clean.support, dirty.support)
    n_settings = len(clean.settings)
    assert clean.test.shape == (n_settings, len(test)) and len(set(clean.settings)) == n_settings
    assert np.mean((clean.validation > 0) == (y[validation] > 0)) > 0.5


def test_test_labels_do_not_enter_the_choice(monkeypatch):
    X, y = sample()
    monkeypatch.setattr(voted, "load", lambda name: (X, y))
    monkeypatch.setattr(Grids, "quick", classmethod(lambda cls: TINY))
    task = voted.Task("musk", "VKRG", quick=True)
    parts = [voted.run_part(task, i)[2] for i in range(5)]
    chosen, error = voted.choose(parts)
    # By hand, from the decisions.
    cut = voted.folds(len(y), 0, "musk")
    outcomes = [voted.run_fold("VKRG", X, y, cut, i, TINY) for i in range(5)]
    each = [voted.error_of(o.validation, y[cut[(i + 1) % 5]]) for i, o in enumerate(outcomes)]
    mean = np.mean(each, axis=0)
    assert error == mean.min() == mean[chosen]
    tests = [voted.error_of(o.test, y[cut[i]])[chosen] for i, o in enumerate(outcomes)]
    row = voted.assemble(task, parts)
    np.testing.assert_allclose(row.numbers("errors"), 100 * np.array(tests), atol=1e-4)
    # Other errors at the test points change nothing.
    worse = [replace(part, test=1.0 - part.test) for part in parts]
    assert voted.choose(worse) == (chosen, error)


def test_run_resumes_and_prints(tmp_path, monkeypatch):
    calls = []
    original = voted.run_fold

    def run_fold(method, *rest):
        calls.append(method)
        return original(method, *rest)

    monkeypatch.setattr(voted, "load", lambda name: sample(seed=len(name)))
    monkeypatch.setattr(voted, "run_fold", run_fold)
    monkeypatch.setattr(Grids, "quick", classmethod(lambda cls: TINY))
    first = voted.run(["musk"], ["L2", "VKRT"], quick=True, out=tmp_path)
    assert len(calls) == 10
    path = tmp_path / "voted-quick.csv"
    with path.open("a") as file:
        file.write("musk,L1,0,1,12;")  # interrupted
    voted.run_part(voted.Task("musk", "L1", quick=True), 3, tmp_path / "folds")
    both = voted.run(["musk"], ["L2", "VKRT", "L1"], quick=True, out=tmp_path)
    assert calls.count("L1") == 5  # one assignment was there already
    assert both.rows[:2] == first.rows
    assert voted.run(["musk"], ["L2", "VKRT", "L1"], quick=True, out=tmp_path) == both
    assert len(calls) == 15
    text = str(both)
    assert "| musk |" in text and "15.34 (2.23)" in text and "251.8" in text
    assert "VKRT / VKRD against L2, 1 sets" in text and "nothing to compare" in text
    row = both.rows[0]
    away = (row.numbers("errors").mean() - 15.34) / 2.23
    assert f"| 15.34 (2.23) | {away:+.1f} |" in text
    assert len(row.numbers("errors")) == 5 and row.fits == 5 * 4
    with pytest.raises(ValueError, match=r"data must be among.*got 'mask'"):
        voted.run(["mask"])


def test_some_points_only(tmp_path, monkeypatch):
    """A part of the points is drawn, five folds of it, and its rows are kept apart."""
    parts = voted.folds(60, 0, "musk", 35)
    assert [len(part) for part in parts] == [7] * 5
    assert len(np.unique(np.concatenate(parts))) == 35
    monkeypatch.setattr(voted, "load", lambda name: sample())
    monkeypatch.setattr(Grids, "quick", classmethod(lambda cls: TINY))
    some = voted.run(["musk"], ["L2"], quick=True, points=35, out=tmp_path)
    every = voted.run(["musk"], ["L2"], quick=True, out=tmp_path)
    assert [r.points for r in (*some.rows, *every.rows)] == [35, 0]
    wrong = some.rows[0].numbers("errors") * 7 / 100  # out of seven
    np.testing.assert_allclose(wrong, np.round(wrong), atol=1e-4)
    assert voted.run(["musk"], ["L2"], quick=True, points=35, out=tmp_path) == some


def test_files_without_the_number_of_points_are_read(tmp_path):
    path = tmp_path / "voted.csv"
    row = voted.Row("musk", "L2", 0, 0, "1;2;3;4;5", "1;2;3;4;5", "C=1", 3.0, 0, 60, 1.0)
    voted.write_rows(path, [row])
    lines = [line.rsplit(",", 1)[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
    assert voted.read_rows(path) == [row]


def test_real_sets_have_the_printed_sizes(requires_data):
    requires_data("vertebral", "winewhite", "mlprove", "breastcancer")
    sizes = {"vertebral": (310, 6), "ml-prove": (6118, 51), "breastcancer": (699, 9)}
    for name, size in sizes.items():
        X, y = voted.load(name)
        assert X.shape == size and set(y) == {-1.0, 1.0}
    _, y = voted.load("white")
    assert 0.6 < np.mean(y > 0) < 0.7


@pytest.mark.slow
def test_a_quick_run(requires_data):
    requires_data("vertebral")
    result = voted.run(["vertebral"], quick=True)
    for row in result.rows:
        assert row.numbers("errors").mean() < 25
    vkr, svm = result.row("vertebral", "VKRG"), result.row("vertebral", "L2-unif")
    assert vkr.numbers("supports").mean() < svm.numbers("supports").mean() / 3
