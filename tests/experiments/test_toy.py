"""Kloft's toy experiment: its data, its bookkeeping, and what a small run must show."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from experiments import toy, toy_data, toy_norms
from experiments.record import Record
from multikernel import centered_alignment
from tests.experiments.blind import assert_blind


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def record(folder: Path) -> Record:
    return toy.run(repetitions=2, quick=True, out=folder)


@pytest.fixture(scope="module")
def result(record: Record) -> toy.Found:
    return toy.Found([row for row in record.rows if row.p in toy.QUICK_NORMS])


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("informative", toy.LEVELS)
def test_class_means_and_covariance(informative: int, rng: np.random.Generator) -> None:
    X, y = toy_data.make_toy(40_000, informative, rng)
    assert np.sum(y == 1) == np.sum(y == -1) == 20_000
    mean = toy_data.RHO * toy.direction(informative)
    assert np.count_nonzero(mean) == informative
    assert np.linalg.norm(mean) == pytest.approx(1.75)
    for sign in (1, -1):
        part = X[y == sign]
        # 50 means of standard error 1/sqrt(20000): five of them leave room for the largest.
        assert np.abs(part.mean(axis=0) - sign * mean).max() < 5 / np.sqrt(20_000)
        assert np.abs(np.cov(part.T) - np.eye(50)).max() < 0.05


def test_bayes_error_is_that_of_the_mean_direction(rng: np.random.Generator) -> None:
    assert pytest.approx(0.0400592, abs=1e-7) == toy.BAYES_ERROR
    for informative in toy.LEVELS:
        w = toy.direction(informative)
        assert toy.linear_risk(w, 0.0, informative) == pytest.approx(toy.BAYES_ERROR)
        X, y = toy_data.make_toy(20_000, informative, rng)
        error = np.mean(np.sign(X @ w) != y)
        assert error == pytest.approx(toy.BAYES_ERROR, abs=4 * np.sqrt(0.04 * 0.96 / 20_000))


def test_risk_of_any_hyperplane_against_counting(rng: np.random.Generator) -> None:
    X, y = toy_data.make_toy(100_000, 9, rng)
    w, b = rng.standard_normal(50) + 3 * toy.direction(9), 0.7
    error = np.mean(np.sign(X @ w + b) != y)
    assert toy.linear_risk(w, b, 9) == pytest.approx(error, abs=0.006)
    assert toy.linear_risk(np.zeros(50), 1.0, 9) == 0.5


def test_refuses_what_cannot_be_balanced(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="must be even"):
        toy_data.make_toy(11, 4, rng)
    with pytest.raises(ValueError, match="from 1 to 50"):
        toy_data.make_toy(10, 0, rng)


def test_effective_number() -> None:
    assert toy.effective_number(np.ones(50)) == pytest.approx(50)
    assert toy.effective_number(np.array([0.0, 2.0, 0.0])) == pytest.approx(1)


# -- the machines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("informative", [50, 1])
@pytest.mark.parametrize("p", [4.0, float("inf")])
def test_large_norms_stay_finite(p: float, informative: int, rng: np.random.Generator) -> None:
    X, y = toy_data.make_toy(toy_data.N_TRAIN, informative, rng)
    for C in (1e-4, 1e-3):
        model, converged = toy.fit_norm(p, C, X, y)
        assert converged
        assert model.duality_gap_ <= 1e-3
        slopes, intercept = toy.hyperplane(model)
        assert np.all(np.isfinite(model.kernel_weights_)) and np.all(np.isfinite(slopes))
        assert np.isfinite(intercept)


@pytest.mark.parametrize("informative", [50, 4])
def test_largest_norm_against_a_linear_program(informative: int, rng: np.random.Generator) -> None:
    """p = inf is ``min t^2/2 + C sum xi``, ``|w_k| <= t``: a linear program for fixed t.

    At the learned t the program may not find less loss than the learned machine has, up to the
    proven gap.
    """
    X, y = toy_data.make_toy(toy_data.N_TRAIN, informative, rng)
    C = 1e-3
    model, _ = toy.fit_norm(float("inf"), C, X, y)
    slopes, b = toy.hyperplane(model)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    w = slopes * X.std(axis=0)
    b += float(slopes @ X.mean(axis=0))
    t = np.abs(w).max()
    objective = 0.5 * t**2 + C * np.maximum(0, 1 - y * (Z @ w + b)).sum()
    assert objective == pytest.approx(model.objective_, rel=1e-6)
    n = len(y)
    best = linprog(
        np.r_[np.zeros(51), np.ones(n)],
        A_ub=np.c_[-y[:, None] * Z, -y, -np.eye(n)],
        b_ub=-np.ones(n),
        bounds=[(-t, t)] * 50 + [(None, None)] + [(0, None)] * n,
    )
    assert best.status == 0
    lowest = 0.5 * t**2 + C * best.fun
    assert lowest <= objective * (1 + 1e-9)
    assert objective - lowest <= model.duality_gap_ * objective + 1e-9


def test_large_costs_share_a_machine_that_has_no_bounded_coefficient(
    rng: np.random.Generator,
) -> None:
    X, y = toy_data.make_toy(toy_data.N_TRAIN, 50, rng)
    path = list(toy.learn_path(2.0, toy.COSTS, X, y))
    assert [C for C, _, _ in path] == sorted(toy.COSTS)
    shared = [model for _, model, _ in path if model is path[-1][1]]
    assert 1 < len(shared) < len(path)
    anew, _ = toy.fit_norm(2.0, 1.0, X, y)
    X_new, _ = toy_data.make_toy(100, 50, rng)
    np.testing.assert_allclose(
        shared[0].decision_function(X_new), anew.decision_function(X_new), atol=5e-3
    )


# -- results ---------------------------------------------------------------------------------------


def test_rows_are_complete_and_proven(result: toy.Found) -> None:
    assert len(result.rows) == 2 * 3 * 4
    for row in result.rows:
        assert all(np.isfinite(value) for value in vars(row).values())
        assert 0 <= row.model_error <= 2 and 1 <= row.effective_kernels <= 50 + 1e-9
        assert row.C in toy.COSTS[::2]
        # The counted error is a sample of 1000 of the exact one.
        assert row.test_error == pytest.approx(row.risk, abs=0.06)
        if row.unconverged == 0:
            assert row.gap <= row.worst_gap <= 1e-3
    assert all(row.unconverged == 0 for row in result.rows if row.p > 1)


def test_what_the_thesis_found(result: toy.Found) -> None:
    """Two data sets per level with known outcome: this guards against change, it proves nothing."""
    assert min(result.norms, key=lambda p: result.mean(1, p)) == 1.0
    assert result.mean(1, 1.0) == pytest.approx(0.04, abs=0.01)
    assert min(result.norms, key=lambda p: result.mean(50, p)) >= 3
    for level in result.levels:
        assert max(result.norms, key=lambda p: result.mean(level, p)) != 4 / 3
        assert result.mean(level, 4 / 3) < 0.12
    verdicts = {claim.text: claim.ours for claim in result.claims()}
    assert verdicts["p = 4/3 is worst at no level"] == "yes"


# -- alignments and the finer grid of p ------------------------------------------------------------


def test_alignments_are_those_of_the_kernel_matrices() -> None:
    """Squared correlations against the library's centred alignment of rank-one matrices."""
    (level,) = toy_norms.align_features([4], 1, seed=0)
    X = toy_data.make_samples(4, 0, 0)[0][0]
    for k, j in ((0, 1), (2, 3), (3, 40), (10, 49)):
        K, L = (np.outer(X[:, i], X[:, i]) for i in (k, j))
        assert level.mean[k, j] == pytest.approx(centered_alignment(K, L), rel=1e-10)
    pairs = [level.mean[i, j] for i in range(4) for j in range(i)]
    np.testing.assert_allclose(level.among_informative, np.mean(pairs))
    total = level.mean[np.triu_indices(50, 1)].sum()
    np.testing.assert_allclose(level.with_noise, (total - sum(pairs)) / (50 * 49 / 2 - 6))


def test_alignments_have_the_values_of_the_theory() -> None:
    """Population values .188 (k = 4) and .064 (k = 9), and exactly 1/49 by chance."""
    four, nine, one = toy_norms.align_features([4, 9, 1], 60, seed=1)
    assert four.expected == pytest.approx(0.188, abs=1e-3)
    assert nine.expected == pytest.approx(0.064, abs=1e-3)
    # In samples of 50 the informative pairs lie a little above their limit.
    assert four.expected < four.among_informative.mean() < four.expected + 0.04
    for level in (four, nine, one):
        error = level.with_noise.std(ddof=1) / np.sqrt(60)
        assert abs(level.with_noise.mean() - 1 / 49) < 4 * error
    assert np.isnan(one.among_informative).all()
    verdicts = [claim.ours for claim in toy_norms.alignment_claims([four, nine])]
    assert verdicts[:2] == ["yes", "yes"] and verdicts[-1] == "yes"


@pytest.mark.parametrize(
    ("informative", "p"),
    [(1, 1.1465), (4, 1.2468), (9, 1.4116), (18, 1.9585), (28, 7.264), (50, np.inf)],
)
def test_norms_of_the_bound(informative: int, p: float) -> None:
    """k equal blocks out of 50: the conjugate of the best p is ``2 log(50 / k)``."""
    assert toy_norms.bound_p(informative) == pytest.approx(p, rel=1e-3)


def grid_of(errors: dict[float, list[float]], informative: int = 4) -> toy_norms.FineGrid:
    """Made-up test errors of one level."""
    made = toy.Row(0, informative, 0, 1.0, 5, 1.0, 0.1, 0.1, 0.1, 0.1, 5.0, 1e-4, 1e-4, 0, 0.1)
    return toy_norms.FineGrid(
        [
            replace(made, p=p, repetition=r, test_error=error)
            for p, values in errors.items()
            for r, error in enumerate(values)
        ]
    )


def test_verdicts_of_the_fine_grid() -> None:
    wobble = np.array([0.0, 0.01, 0.02, 0.03])
    fine = grid_of(
        {
            2 ** (1 / 3): list(0.05 + wobble),
            4 / 3: list(0.05 + wobble + [0.001, -0.001, 0.0015, -0.001]),
            2.0: list(0.10 + wobble),
        }
    )
    assert fine.winner(4) == 2 ** (1 / 3)
    assert fine.as_good(4) == [2 ** (1 / 3), 4 / 3]
    claims = {claim.text: claim for claim in fine.claims()}
    assert claims["the best p is 1.26 at 92 % noise"].ours == "yes"
    assert claims["the p of the bound works as well as the best at 92 % noise"].ours == "yes"
    swapped = grid_of({2 ** (1 / 3): list(0.10 + wobble), 2.0: list(0.05 + wobble)})
    claims = {claim.text: claim for claim in swapped.claims()}
    assert claims["the best p is 1.26 at 92 % noise"].ours == "no"
    assert claims["the p of the bound works as well as the best at 92 % noise"].ours == "no"


def test_equally_good_needs_small_errors() -> None:
    noisy = grid_of({1.0: [0.04, 0.05, 0.03, 0.04], 1.1: [0.05, 0.02, 0.06, 0.04]}, informative=1)
    quiet = grid_of({1.0: [0.04, 0.05, 0.03, 0.04], 1.1: [0.04, 0.051, 0.029, 0.04]}, 1)
    text = "p from 1 to 1.15 are equally good at 98 % noise"
    assert next(c.ours for c in noisy.claims() if c.text == text) == "undecided"
    assert next(c.ours for c in quiet.claims() if c.text == text) == "yes"


def test_text_and_files(record: Record, tmp_path: Path) -> None:
    text = str(record)
    assert "| noise | p = 1 | p = 4/3 | p = 2 | p = 4 |" in text
    assert "| 98 % |" in text and "nan" not in text
    assert "| p = 1 is best at 98 % noise | yes |" in text
    names = ["toy-quick.csv", "toy-quick.md", "toy-quick.png"]
    names += ["toy-quick-alignments.png", "toy-quick-norms.png"]
    assert [path.name for path in record.save(tmp_path)] == names


def test_finished_machines_are_kept(
    record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def stub(informative, repetition, p, step, seed):  # type: ignore[no-untyped-def]
        asked.append((informative, repetition))
        return [replace(record.rows[0], informative=informative, repetition=repetition, p=p)]

    monkeypatch.setattr(toy, "work", stub)
    assert toy.run(repetitions=2, quick=True, out=folder).rows == record.rows
    assert asked == []
    # Other repetitions and other seeds are other data.
    toy.run(repetitions=3, quick=True, out=folder)
    assert set(asked) == {(k, 2) for k in toy.QUICK_LEVELS}
    toy.run(repetitions=1, quick=True, seed=1, out=folder)
    assert len(asked) == 2 * 3 * 6


def test_parallel_runs_give_the_same_rows(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy, "QUICK_LEVELS", (1,))
    again = toy.run(repetitions=1, quick=True, n_jobs=2)
    mine = [
        replace(row, seconds=0.0)
        for row in record.rows
        if row.repetition < 1 and row.informative == 1
    ]
    assert [replace(row, seconds=0.0) for row in again.rows] == mine


@pytest.mark.parametrize("p", [4 / 3, 2.0])
def test_test_points_do_not_influence_training(p: float) -> None:
    train, held, test = toy.make_samples(4, 0, 0)
    sizes = np.cumsum([0, len(train[1]), len(held[1]), len(test[1])])
    X = np.concatenate([train[0], held[0], test[0]])
    y = np.concatenate([train[1], held[1], test[1]])
    parts = [np.arange(a, b) for a, b in pairwise(sizes)]

    def learn(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
        return toy.learn(p, toy.COSTS[::4], 4, *((X[part], y[part]) for part in parts))

    assert_blind(learn, X, y, parts[0], parts[2], {"test_error"})
