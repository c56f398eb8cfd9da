"""The experiment on voted kernels: protocol, no look at test labels, resuming, printing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import voted
from experiments.voted_figures import PRINTED, TABLE_1, TABLE_2
from experiments.voted_methods import METHODS, Grids

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
    rows = [voted.work("musk", "VKRG", i, True, 0, 0)[0] for i in range(5)]
    chosen, error = voted.choose(rows)
    # By hand, from the decisions.
    cut = voted.folds(len(y), 0, "musk")
    outcomes = [voted.run_fold("VKRG", X, y, cut, i, TINY) for i in range(5)]
    each = [voted.error_of(o.validation, y[cut[(i + 1) % 5]]) for i, o in enumerate(outcomes)]
    mean = np.mean(each, axis=0)
    assert error == mean.min() == mean[chosen]
    tests = [voted.error_of(o.test, y[cut[i]])[chosen] for i, o in enumerate(outcomes)]
    found = voted.assemble(rows)
    np.testing.assert_allclose(found.errors, 100 * np.array(tests), atol=1e-4)
    # Other errors at the test points change nothing.
    worse = [replace(row, test=[1.0 - error for error in row.test]) for row in rows]
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

    def run(methods):
        return voted.run(quick=True, data=["musk"], methods=methods, out=tmp_path)

    first = run(["L2", "VKRT"])
    assert len(calls) == 10
    path = tmp_path / "voted.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:40])  # interrupted
    both = run(["L2", "VKRT", "L1"])
    assert len(calls) == 16 and calls.count("L1") == 5  # one assignment of VKRT again
    plain = [replace(row, seconds=0.0) for row in both.rows[:2]]
    assert plain == [replace(row, seconds=0.0) for row in first.rows]
    assert str(run(["L2", "VKRT", "L1"])) == str(both) and len(calls) == 16
    text = str(both)
    assert "| musk |" in text and "15.34 ± 2.23" in text and "251.8" in text
    assert "VKRT or VKRD has a smaller error than L2 |" in text and "VKRG has a smaller" not in text
    row = both.rows[0]
    away = (np.mean(row.errors) - 15.34) / 2.23
    assert f"| 15.34 ± 2.23 | {away:+.1f} |" in text
    assert len(row.errors) == 5 and row.fits == 5 * 4
    written = {path.name for path in both.save(tmp_path)}
    assert written == {"voted-quick.csv", "voted-quick.md", "voted-quick.png"}
    with pytest.raises(ValueError, match=r"data must be among.*got 'mask'"):
        voted.run(data=["mask"])
    with pytest.raises(ValueError, match=r"methods must be among.*got 'VKRX'"):
        voted.run(methods=["VKRX"])


def test_claims():
    """Two sets by hand: on one the vote is far ahead, on the other far behind."""
    found = [
        voted.Chosen(data, method, errors, [support] * 5, "", 1.0, 0, 5, 1.0, 0)
        for data, method, errors, support in (
            ("musk", "L2-unif", [5.0, 5.1, 4.9, 5.2, 5.0], 100),
            ("musk", "VKRG", [1.0, 1.2, 1.1, 0.9, 1.0], 5),
            ("pima", "L2-unif", [2.0, 2.1, 2.2, 2.1, 2.0], 30),
            ("pima", "VKRG", [4.0, 4.3, 4.2, 4.1, 4.1], 20),
        )
    ]
    one = voted.compare(found, ["VKRG"], "L2-unif")
    assert (one.better, one.worse, one.ahead, one.behind) == (1, 1, ["musk"], ["pima"])
    np.testing.assert_allclose(one.factors, [1.5, 20.0])  # in the order of the paper
    assert voted.compare(found, ["VKRT"], "L2") is None
    verdicts = {claim.text: claim.ours for claim in voted.claims(found)}
    assert verdicts == {
        "VKRG has a smaller error than L2-unif": "on 1 of 2",
        "votes are never significantly worse than support vector machines": "no",
        "votes are sparser, often by up to 10 times": "yes",
    }


def test_some_points_only(tmp_path, monkeypatch):
    """A part of the points is drawn, five folds of it, and its rows are kept apart."""
    parts = voted.folds(60, 0, "musk", 35)
    assert [len(part) for part in parts] == [7] * 5
    assert len(np.unique(np.concatenate(parts))) == 35
    monkeypatch.setattr(voted, "load", lambda name: sample())
    monkeypatch.setattr(Grids, "quick", classmethod(lambda cls: TINY))

    def run(points):
        return voted.run(quick=True, data=["musk"], methods=["L2"], points=points, out=tmp_path)

    some, every = run(35), run(0)
    assert [r.points for r in (*some.rows, *every.rows)] == [35, 0]
    wrong = np.array(some.rows[0].errors) * 7 / 100  # out of seven
    np.testing.assert_allclose(wrong, np.round(wrong), atol=1e-4)
    assert run(35).rows == some.rows


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
    rows = {row.method: row for row in voted.run(quick=True, data=["vertebral"]).rows}
    assert set(rows) == set(PRINTED["vertebral"])
    assert all(np.mean(row.errors) < 25 for row in rows.values())
    assert np.mean(rows["VKRG"].supports) < np.mean(rows["L2-unif"].supports) / 3
