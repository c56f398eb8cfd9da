"""Protein folds: the kernels, the protocol and the tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import proteinfold


@pytest.fixture(scope="module")
def few(data_dir):
    """Three folds with all their proteins."""
    whole = proteinfold.load()
    keep = np.flatnonzero(np.isin(whole.y, (1, 9, 16)))
    matrices = whole.matrices[:, keep][:, :, keep]
    return proteinfold.Problem(
        whole.names, matrices, whole.y[keep], whole.train[keep], whole.copies[keep]
    )


def test_the_set_is_the_one_described(data_dir):
    problem = proteinfold.load()
    assert problem.train.sum() == 311 and (~problem.train).sum() == 383
    assert problem.copies.sum() == 49 and not (problem.copies & problem.train).any()
    assert problem.names[-2:] == ["SW1", "SW2"] and len(problem.names) == 11
    K = problem.matrices
    assert K.shape == (11, 694, 694) and np.isfinite(K).all()
    assert all(np.linalg.eigvalsh(k)[0] > -1e-8 * np.trace(k) for k in K[[0, 9]])


def test_test_proteins_do_not_enter_the_kernels_of_the_others():
    rng = np.random.default_rng(0)
    train = np.arange(20) < 12
    features = {"a": rng.standard_normal((20, 4)), "b": rng.standard_normal((20, 2))}
    scores = {"s": rng.integers(1, 9, (20, 20))}
    scores["s"] = scores["s"] + scores["s"].T + 20 * np.eye(20, dtype=int)
    before = proteinfold.make_kernels(features, scores, train)
    spoilt = {k: np.where(train[:, None], X, 99.0) for k, X in features.items()}
    worse = {"s": np.where(train[:, None] & train, scores["s"], 7)}
    after = proteinfold.make_kernels(spoilt, worse, train)
    np.testing.assert_array_equal(before[:, train][:, :, train], after[:, train][:, :, train])
    assert not np.array_equal(before, after)


@pytest.fixture(autouse=True)
def two_costs(monkeypatch):
    monkeypatch.setattr(proteinfold, "QUICK_COSTS", (1.0, 100.0))


def test_garbage_test_labels_change_nothing_but_the_score(few):
    (row,) = proteinfold.one(few, "1.14", 0, quick=True)
    poisoned = replace(few, y=np.where(few.train, few.y, 999))
    (other,) = proteinfold.one(poisoned, "1.14", 0, quick=True)
    assert other.accuracy == 0 < row.accuracy
    for field in ("C", "cv_accuracy", "predicted", "weights", "block_norms", "gap"):
        assert getattr(other, field) == getattr(row, field)


def test_tables_and_verdicts(few, tmp_path):
    rules = (*proteinfold.QUICK_NORMS, *few.names)
    rows = [proteinfold.one(few, rule, 0, quick=True)[0] for rule in rules]
    right = np.array(rows[0].predicted) == few.y[~few.train]
    assert rows[0].accuracy == pytest.approx(right.mean())
    assert rows[0].accuracy_unseen == pytest.approx(right[~few.copies[~few.train]].mean())
    assert len(rows[0].weights) == 11 and len(rows[-1].weights) == 1
    told = proteinfold.tell("x", few, rows, 0)
    assert "74.4" in str(told) and all(c.ours in ("yes", "no", "undecided") for c in told.claims)
    pytest.importorskip("matplotlib")
    assert [path.suffix for path in told.save(tmp_path)] == [".csv", ".md", ".png"]
