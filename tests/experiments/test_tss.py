"""Transcription starts: the five kernels, the protocol and the tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import tss


@pytest.fixture(scope="module")
def problem():
    """Random windows; starts have a motif at the start, of the length of the real ones."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(260) % 2, 1, -1)
    windows = ["".join(rng.choice(list("ACGT"), 300)) for _ in y]
    windows = [
        w[:240] + "TATAAA" + w[246:] if t > 0 else w for w, t in zip(windows, y, strict=True)
    ]
    kernels = tss.make_kernels(windows)
    return tss.Problem(list(kernels), np.stack(list(kernels.values())), y, 120, 60)


def test_tables_of_neighbours():
    for table in (tss.TWIST, tss.ENERGY):
        full = tss.both_strands(table)
        assert len(full) == 16 and abs(sum(full.values())) < 1e-9
        assert full["AA"] == full["TT"] and full["CA"] == full["TG"] and full["GA"] == full["TC"]


def test_profiles_are_running_means():
    sequence = "ACGTN" * 20
    values = tss.both_strands(tss.ENERGY)
    steps = [values.get(sequence[i : i + 2], 0.0) for i in range(99)]
    slow = [np.mean(steps[i : i + tss.SMOOTHING]) for i in range(99 - tss.SMOOTHING + 1)]
    np.testing.assert_allclose(tss.profile([sequence], tss.ENERGY)[0], slow, atol=1e-12)


def test_kernels_have_unit_diagonal_and_are_definite(problem):
    assert problem.matrices.shape == (5, 260, 260)
    np.testing.assert_allclose([np.diag(K) for K in problem.matrices], 1.0, rtol=1e-12)
    assert all(np.linalg.eigvalsh(K)[0] > -1e-9 for K in problem.matrices)


def test_garbage_test_labels_change_nothing_but_the_score(problem):
    (row,) = tss.one(problem, 60, 0, "1.33", 0)
    y = problem.y.copy()
    y[180:] = np.random.default_rng(5).choice([-1, 1], 80)
    (other,) = tss.one(replace(problem, y=y), 60, 0, "1.33", 0)
    assert other.auc != row.auc > 0.6
    for field in ("C", "validation_auc", "weights", "block_norms", "gap"):
        assert getattr(other, field) == getattr(row, field)


def test_tables_and_verdicts(problem, tmp_path):
    rows = [
        tss.one(problem, n, r, rule, 0)[0] for n in (30, 60) for r in range(2) for rule in tss.NORMS
    ]
    rows += [tss.one(problem, 60, r, rule, 0)[0] for r in range(2) for rule in problem.names]
    told = tss.tell("x", problem, rows)
    assert "| 30 | 2 |" in str(told) and len(told.claims) == 2 * 2 + 7
    pytest.importorskip("matplotlib")
    assert len(told.save(tmp_path)) == 3


def test_the_windows_are_those_described(data_dir, monkeypatch):
    monkeypatch.setattr(tss, "N_VALIDATION", 20)
    monkeypatch.setattr(tss, "N_TEST", 30)
    found = tss.load(0, quick=True)
    assert found.matrices.shape == (5, 550, 550) and found.n_pool == 500
    assert 0.3 < np.mean(found.y == 1) < 0.45
