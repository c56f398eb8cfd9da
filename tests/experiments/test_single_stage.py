"""One stage against two: parameters in their units, rows, verdicts, and no look at test points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import multikernel as mk
from experiments import single_stage
from experiments.alignment import problem_of
from experiments.combinations import parts
from experiments.single_stage import Found, Row, Setting, Statistics, claims, make, settings
from tests.experiments.blind import assert_blind


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("single_stage")


@pytest.fixture(scope="module")
def record(data_dir, folder):
    return single_stage.run(quick=True, names=["ionosphere"], out=folder)


# -- parameters -----------------------------------------------------------------------------------


def waves(rng, n=50):
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) + 1.0


BANK = mk.gaussians([0.05, 0.5, 5.0])


def test_statistics_are_those_of_alignf(rng):
    X, y = waves(rng)
    statistics = Statistics.of([kernel(X) for kernel in BANK], y)
    model = mk.MultiKernelRegressor(BANK, "alignf").fit(X, y)
    v = statistics.v / statistics.v.sum()
    np.testing.assert_allclose(v, model.kernel_weights_, atol=1e-6)
    alignment = np.sqrt(statistics.v @ statistics.M @ statistics.v) / statistics.size
    assert alignment == pytest.approx(model.alignment_, rel=1e-8)
    assert statistics.same_kernel(v, 3 * v) == pytest.approx(1.0)


def test_units_of_the_parameters(rng):
    """The reward is the size of the alignment terms at t v, relative to the loss at zero."""
    X, y = waves(rng)
    statistics = Statistics.of([kernel(X) for kernel in BANK], y)
    M, v = statistics.M, statistics.v
    a = np.array([np.vdot(mk.center(np.outer(y, y)), K) for K in _prepared(X)])
    for setting in (Setting(0.1, 1.0, 0.1), Setting(10.0, 0.01, 1.0)):
        given = statistics.penalties(setting)
        t = 1.0 / (setting.ridge * v.sum())
        best = given["gamma_norm"] * t**2 * v @ M @ v - given["gamma"] * t * v @ a
        assert best == pytest.approx(-setting.reward * np.sum((y - y.mean()) ** 2), rel=1e-6)
        ratio = given["gamma_ridge"] / given["gamma_norm"]
        assert ratio == pytest.approx(setting.smoothing * np.diag(M).mean())


def _prepared(X):
    return [mk.normalize(mk.center(kernel(X)), "multiplicative") for kernel in BANK]


def test_a_large_reward_gives_the_machine_of_alignf(rng):
    X, y = waves(rng)
    statistics = Statistics.of([kernel(X) for kernel in BANK], y)
    for ridge in (10.0, 0.01):
        one = make(BANK, Setting(ridge, 1e6, 1e-8), statistics).fit(X, y)
        two = make(BANK, Setting(ridge), statistics).fit(X, y)
        np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-3)


def test_grids():
    alignf, one = settings("alignf", 1), settings("one-stage", 1)
    assert len(alignf) == 13 and len(one) == 13 * 3 * 4
    assert [s.ridge for s in alignf] == list(single_stage.RIDGES)
    assert all(s.reward > 0 and s.smoothing > 0 for s in one)
    assert [s.ridge for s in one] == sorted((s.ridge for s in one), reverse=True)
    assert len(settings("one-stage", 3)) == 5 * 12


# -- results --------------------------------------------------------------------------------------


def test_rows_are_complete(record):
    assert len(record.rows) == 5 * 2
    for row in record.rows:
        assert sum(row.weights) == pytest.approx(1.0) and len(row.weights) == 7
        assert 0 < row.alignment < 1 and 0 < row.same_kernel <= 1 + 1e-9
        if row.method == "alignf":
            assert row.same_kernel == pytest.approx(1.0, abs=1e-6)
            assert row.reward == row.smoothing == 0
        else:
            assert row.reward in single_stage.REWARDS
            assert row.smoothing in single_stage.SMOOTHINGS


def test_both_stages_learn_nearly_the_same_kernel(record):
    found = Found(record.rows)
    assert found.values("ionosphere", "one-stage", "same_kernel").mean() > 0.97
    errors = [found.values("ionosphere", method).mean() for method in single_stage.METHODS]
    assert max(errors) < 0.55 and abs(errors[0] - errors[1]) < 0.05


def test_text_and_files(record, tmp_path):
    text = str(record)
    assert "| ionosphere | alignf | " in text and "| 0.444 ± 0.034 |" in text
    assert "| data | method | 2^-3 |" in text
    assert len(record.claims) == 2
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def test_the_figure_has_a_point_for_each_kernel_and_fold(record):
    (ax,) = record.figure().axes
    _, *kernels = ax.lines  # the first is the diagonal
    assert len(kernels) == 7 and all(len(line.get_xdata()) == 5 for line in kernels)
    two = Found(record.rows).values("ionosphere", "alignf", "weights")[0]
    np.testing.assert_array_equal([line.get_xdata() for line in kernels], two.T)


def rows_with(errors, weights):
    """Rows of one set in one draw with these errors and weights."""
    some = Row("kinematics", 0, 0, "alignf", 0, 0, 1.0, 0, 0, 0, 0.2, 1.0, [1.0], 0)
    return [
        replace(some, method=method, fold=fold, error=error, weights=weights[method])
        for method in single_stage.METHODS
        for fold, error in enumerate(errors[method])
    ]


def test_verdicts_follow_the_numbers():
    base = np.array([0.10, 0.12, 0.11, 0.13, 0.12])
    noise = 0.001 * (-1.0) ** np.arange(5)
    alike = {"alignf": [0.8, 0.2, 0.0], "one-stage": [0.75, 0.2, 0.05]}
    apart = {"alignf": [0.8, 0.2, 0.0], "one-stage": [0.3, 0.3, 0.4]}
    same = {"alignf": base, "one-stage": base + noise}
    less = {"alignf": base, "one-stage": base - 0.01 + noise}
    for errors, weights, expected in (
        (same, alike, ["yes", "yes"]),
        (less, alike, ["no", "yes"]),
        (same, apart, ["yes", "no"]),
    ):
        found = Found(rows_with(errors, weights))
        assert [claim.ours for claim in claims(found)] == expected
    cosines = Found(rows_with(same, apart)).cosines("kinematics")
    by_hand = (0.8 * 0.3 + 0.2 * 0.3) / np.sqrt(0.68 * 0.34)
    np.testing.assert_allclose(cosines, by_hand)


def test_finished_folds_are_kept(record, folder, monkeypatch):
    monkeypatch.setattr(single_stage, "work", None)
    again = single_stage.run(quick=True, names=["ionosphere"], out=folder)
    assert str(again) == str(record)


def test_unknown_sets_are_named():
    with pytest.raises(
        ValueError, match="names must be among kinematics, ionosphere; got 'german'"
    ):
        single_stage.run(names=["german"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_look_at_test_points(data_dir):
    problem = problem_of("ionosphere")
    X, y = problem.load(120, 0)
    roles = parts(problem, y, 0)[0]

    def learn(X, y):
        one = single_stage.run_fold(problem, X, y, roles, 6)
        return {f"{row['method']} {name}": v for row in one for name, v in row.items()
                if name != "seconds"}  # fmt: skip

    scores = [f"{method} error" for method in single_stage.METHODS]
    assert_blind(learn, X, y, roles[0], roles[2], scores)
