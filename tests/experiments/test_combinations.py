"""Tables 2 and 4 of Cortes, Mohri and Rostamizadeh: protocol, bookkeeping, what a run must show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from experiments import combinations
from experiments.alignment import problem_of
from experiments.combinations import METHODS, SETS, Found, Row
from tests.experiments.blind import assert_blind

NAMES = ("kinematics", "german")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("combinations")


@pytest.fixture(scope="module")
def record(data_dir, folder):
    return combinations.run(1, quick=True, names=NAMES, out=folder)


# -- protocol -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_every_point_has_each_part_in_turn(data_dir, name):
    problem = problem_of(name)
    X, y = problem.load(200, 0)
    assert X.shape[0] == 200
    parts = combinations.parts(problem, y, 0)
    assert len(parts) == 5
    for train, choosing, test in parts:
        assert np.array_equal(np.sort(np.concatenate([train, choosing, test])), np.arange(200))
        assert len(train) == pytest.approx(120, abs=2)
        if problem.task == "classification":
            assert np.mean(y[train] == 1) == pytest.approx(np.mean(y == 1), abs=0.01)
    for j in (1, 2):  # choosing, test
        everyone = np.sort(np.concatenate([roles[j] for roles in parts]))
        assert np.array_equal(everyone, np.arange(200))
    again = combinations.parts(problem, y, 0)
    assert all(np.array_equal(a, b) for a, b in zip(parts[2], again[2], strict=True))
    assert not np.array_equal(parts[0][2], combinations.parts(problem, y, 1)[0][2])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", METHODS)
def test_test_points_do_not_influence_training(data_dir, name, method):
    problem = problem_of(name)
    X, y = problem.load(120, 0)
    roles = combinations.parts(problem, y, 0)[1]
    grid = combinations.GRIDS[problem.task][2::4]

    def learn(X, y):
        return combinations.run_fold(problem, method, X, y, roles, grid)

    assert_blind(learn, X, y, roles[0], roles[2], {"error", "test_alignment"})


def test_the_choosing_fold_chooses_and_does_not_train(data_dir):
    """With one value on the grid its labels change nothing but the validation error."""
    problem = problem_of("german")
    X, y = problem.load(120, 0)
    roles = combinations.parts(problem, y, 0)[0]

    def learn(X, y):
        return combinations.run_fold(problem, "alignf", X, y, roles, (1.0,))

    scores = {"validation_error"}
    assert_blind(learn, X, y, roles[0], roles[1], scores)


def test_choice_is_the_smoothest_of_the_best(data_dir):
    """Against all machines of the grid, one by one."""
    problem = problem_of("german")
    X, y = problem.load(150, 0)
    train, choosing, test = roles = combinations.parts(problem, y, 0)[0]
    grid = combinations.GRIDS["classification"]
    found = combinations.run_fold(problem, "unif", X, y, roles, grid)
    Z = problem.prepare(X, train)
    errors = {}
    for C in grid:
        model = mk.MultiKernelClassifier(problem.bank, "uniform", C=C).fit(Z[train], y[train])
        errors[C] = np.mean(model.predict(Z[choosing]) != y[choosing])
        if found["value"] == C:
            assert found["error"] == np.mean(model.predict(Z[test]) != y[test])
    assert found["validation_error"] == min(errors.values())
    assert found["value"] == min(C for C in errors if errors[C] == min(errors.values()))


def test_grids_begin_with_the_smoothest_machine():
    assert list(combinations.GRIDS["classification"]) == sorted(
        combinations.GRIDS["classification"]
    )
    ridges = combinations.GRIDS["regression"]
    assert list(ridges) == sorted(ridges, reverse=True)
    assert combinations.GRIDS["classification"][0] == pytest.approx(1e-2)
    assert ridges[-1] == pytest.approx(1e-4) and ridges[0] == pytest.approx(1e2)


def test_columns_of_german_are_in_the_units_of_the_training_rows(data_dir):
    german = problem_of("german")
    X, _ = german.load(100, 0)
    known = np.arange(60)
    Z = german.prepare(X, known)
    assert Z[known].min() == -1 and Z[known].max() == 1
    assert np.abs(Z[60:]).max() > 1
    kinematics = problem_of("kinematics")
    assert kinematics.prepare(X) is X


# -- machines -------------------------------------------------------------------------------------


def test_one_stage_methods_are_those_of_the_paper():
    regression = combinations.make("one-stage", problem_of("kinematics"), 0.1)
    assert isinstance(regression.weighting, mk.L2Ball) and regression.weighting.radius == 1.0
    assert regression.weighting.center is None and regression.alpha == 0.1
    classifier = combinations.make("one-stage", problem_of("splice"), 0.1)
    assert isinstance(classifier.weighting, mk.L1) and classifier.C == 0.1


def test_a_ridge_is_a_radius(rng):
    """Choosing Lambda with a fixed ridge is choosing the ridge with a fixed Lambda."""
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    bank, new = mk.gaussians([0.1, 1.0]), rng.normal(size=(5, 3))
    one = mk.MultiKernelRegressor(bank, mk.L2Ball(radius=1.0, tol=1e-9), alpha=0.1).fit(X, y)
    two = mk.MultiKernelRegressor(bank, mk.L2Ball(radius=20.0, tol=1e-9), alpha=2.0).fit(X, y)
    np.testing.assert_allclose(one.predict(new), two.predict(new), atol=1e-5)
    np.testing.assert_allclose(20 * one.kernel_weights_, two.kernel_weights_, rtol=1e-3)


@pytest.mark.filterwarnings("error", category=ConvergenceWarning)
def test_alignment_on_other_points_against_the_definition(rng):
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    train, test = np.arange(30), np.arange(30, 50)
    model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0, 5.0]), "align").fit(X[train], y[train])
    K = np.zeros((20, 20))
    for weight, kernel in zip(model.kernel_weights_, model.bank_, strict=True):
        on_train = mk.center(kernel(X[train]))
        K += weight / (np.trace(on_train) / 30) * kernel(X[test])
    expected = mk.centered_alignment(K, np.outer(y[test], y[test]))
    found = combinations.alignment_on(model, X[train], X[test], y[test])
    assert found == pytest.approx(expected, rel=1e-12)
    again = combinations.alignment_on(model, X[train], X[train], y[train])
    assert again == pytest.approx(model.alignment_, rel=1e-9)


# -- results --------------------------------------------------------------------------------------


def test_printed_figures_are_those_of_the_paper():
    assert tuple(combinations.PRINTED_ERRORS) == tuple(combinations.PRINTED_ALIGNMENTS) == SETS
    assert combinations.PRINTED_ERRORS["spambase"][1] == (0.209, 0.028)
    assert combinations.PRINTED_ALIGNMENTS["ionosphere"][3] == (0.278, 0.057)
    better = combinations.PRINTED_BETTER
    # "alignf significantly better than unif everywhere but on spambase, ..."
    assert [s for s in SETS if ("unif", "alignf") not in better[s]] == ["spambase"]
    # "... and than the one-stage method everywhere but on splice"
    assert [s for s in SETS if ("one-stage", "alignf") not in better[s]] == ["splice"]
    assert [len(better[s]) for s in SETS] == [6, 6, 4, 3, 1]
    # what is better has a smaller printed error
    for data in SETS:
        error = dict(zip(METHODS, combinations.PRINTED_ERRORS[data], strict=True))
        assert all(error[column][0] < error[row][0] for row, column in better[data])


def test_rows_are_complete_and_proven(record):
    assert len(record.rows) == 2 * 5 * 4
    for row in record.rows:
        assert row.gap <= 1e-6 and 0 < row.alignment < 1
        assert len(row.weights) == len(problem_of(row.data).bank)
        assert row.value in combinations.GRIDS[problem_of(row.data).task]
    for row in record.rows:
        if row.method == "unif":
            assert np.ptp(row.weights) == 0
        if row.data == "kinematics" and row.method == "one-stage":
            assert np.linalg.norm(row.weights) == pytest.approx(1.0)


def test_alignf_is_best_aligned_on_every_training_part(record):
    best = {(r.data, r.fold): r.alignment for r in record.rows if r.method == "alignf"}
    for row in record.rows:
        assert row.alignment <= best[row.data, row.fold] * (1 + 1e-9)


def test_alignf_beats_unif_on_kinematics(record):
    found = Found(record.rows)
    assert found.values("kinematics", "alignf").shape == (1, 5)
    assert found.values("kinematics", "alignf").mean() < found.values("kinematics", "unif").mean()


def test_tables_and_claims(record, tmp_path):
    text = str(record)
    assert "| kinematics | unif | " in text and "| 0.138 ± 0.005 |" in text
    claims = {claim.text: claim for claim in record.claims}
    below = claims["error of alignf below unif on 2 of 2 sets"]
    assert below.printed == "yes" and below.detail.startswith(
        ("on 2 of 2", "on 1 of 2", "on 0 of 2")
    )
    assert claims["all entries of Table 4"].detail.endswith("of 24 entries as printed")
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def rows_with(errors: dict[str, list[float]]) -> list[Row]:
    """Rows of one set in one draw with these errors."""
    some = Row("kinematics", 0, 0, "unif", 0.0, 0.1, 0.1, 1.0, 0.0, 0.0, [1.0], 0.0)
    return [
        replace(some, method=method, fold=fold, error=error, alignment=1 - error)
        for method in METHODS
        for fold, error in enumerate(errors[method])
    ]


def test_verdicts_follow_the_numbers():
    base = np.array([0.10, 0.12, 0.11, 0.13, 0.12])
    falling = {
        m: (base - 0.01 * i + 0.001 * i * (-1.0) ** np.arange(5)) for i, m in enumerate(METHODS)
    }
    as_printed = Found(rows_with({m: list(v) for m, v in falling.items()}))
    assert as_printed.wins("kinematics", "unif", "alignf") == 1.0
    assert as_printed.wins("kinematics", "alignf", "unif") == 0.0
    said = {claim.text: claim.ours for claim in combinations.claims(as_printed)}
    assert said["error of alignf below unif on 1 of 1 sets"] == "yes"
    assert said["all entries of Table 4"] == "yes"
    other_way = {m: list(falling[n]) for m, n in zip(METHODS, METHODS[::-1], strict=True)}
    said = {claim.text: claim.ours for claim in combinations.claims(Found(rows_with(other_way)))}
    assert said["error of alignf below unif on 1 of 1 sets"] == "no"
    assert said["error of l2-krr below unif in regression"] == "no"
    assert said["all entries of Table 4"] == "no"


def test_finished_folds_are_kept(record, folder, monkeypatch):
    monkeypatch.setattr(combinations, "work", None)
    again = combinations.run(1, quick=True, names=NAMES, out=folder)
    assert again.rows == record.rows and str(again) == str(record)


def test_unknown_sets_are_named():
    with pytest.raises(ValueError, match=r"kinematics, ionosphere, .* got 'kin'"):
        combinations.run(names=["kin"])
