"""Protein localisation: motif kernels, the protocol and the tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments import localisation


@pytest.fixture(scope="module")
def problem(data_dir):
    return localisation.load(24, 0)


def test_there_are_sixteen_patterns_and_four_parts(problem):
    assert len(set(localisation.PATTERNS)) == 16 and len(localisation.PARTS) == 4
    assert all(pattern[0] == 0 and max(pattern) < 5 for pattern in localisation.PATTERNS)
    assert len(set(problem.names)) == 64 and problem.matrices.shape == (64, 96, 96)
    assert Counter(problem.y) == {
        c: 24 for c in ("chloroplast", "mitochondrial", "other", "secretory")
    }


def test_motif_kernels_count_motifs():
    sequences = ["MKTAYIAKQR", "MKTAYMKTAY", "MK"]
    kernels = localisation.make_kernels(sequences)
    counts = [Counter(localisation.motifs(s, (0, 1, 3))) for s in sequences]
    assert not counts[2]
    dot = np.array([[sum(a[w] * b[w] for w in a) for b in counts] for a in counts])
    size = np.sqrt(np.maximum(np.diag(dot), 1))
    np.testing.assert_allclose(kernels["all xx.x."], dot / np.outer(size, size), rtol=1e-12)


def test_parts_are_disjoint_thirds(problem):
    parts = localisation.thirds(problem.y, 0, 0)
    assert sorted(np.concatenate(parts)) == list(range(96))
    assert all(Counter(problem.y[part]) == dict.fromkeys(np.unique(problem.y), 8) for part in parts)


def test_loss_is_that_of_the_correlation_of_counts():
    y = np.array(["a", "a", "b", "b", "b"])
    decisions = np.array([[1.0], [-1.0], [1.0], [-1.0], [-1.0]])
    TP, TN, FP, FN = 1, 2, 1, 1
    mcc = (TP * TN - FP * FN) / np.sqrt((TP + FP) * (TP + FN) * (TN + FP) * (TN + FN))
    assert localisation.losses(decisions, y, np.array(["a"])) == [pytest.approx(100 * (1 - mcc))]


def test_garbage_test_labels_change_nothing_but_the_score(problem, monkeypatch):
    monkeypatch.setattr(localisation, "COSTS", (0.5, 4.0))
    # the parts are those of the true labels
    parts = localisation.thirds(problem.y, 0, 0)
    monkeypatch.setattr(localisation, "thirds", lambda y, split, seed: parts)
    (row,) = localisation.one(problem, 0, "1.14", 0)
    y = problem.y.copy()
    y[parts[2]] = np.random.default_rng(0).permutation(y[parts[2]])
    (other,) = localisation.one(replace(problem, y=y), 0, "1.14", 0)
    assert other.losses != row.losses
    for field in ("C", "validation_loss", "weights", "block_norms", "gap"):
        assert getattr(other, field) == getattr(row, field)
    assert row.loss_by_test <= row.loss


def test_tables_and_verdicts(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(localisation, "COSTS", (1.0,))
    rows = [
        localisation.one(problem, s, rule, 0)[0]
        for s in range(2)
        for rule in localisation.QUICK_NORMS
    ]
    told = localisation.tell("x", problem, rows)
    assert "11.85 ± 0.60" in str(told) and len(told.claims) == 5
    pytest.importorskip("matplotlib")
    assert len(told.save(tmp_path)) == 3
