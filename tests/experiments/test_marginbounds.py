"""Figures 2.1 to 2.3: reference values, the ball, the protocol."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import marginbounds


@pytest.mark.parametrize(
    ("m", "p", "l1", "l2", "sbd"),
    [
        (36_000, 10, 0.17962, 0.16126, 14.355),
        (36_000, 36_000, 0.32041, 1.07550, 21.128),
        (1_000_000, 63_096, 0.06328, 0.23406, 5.691),
        (15_000_000, 247, 0.01192, 0.01606, 1.081),
        (15_000_000, 15_000_000, 0.01921, 0.23361, 18.388),
    ],
)
def test_reference_values(m, p, l1, l2, sbd):
    found = [marginbounds.allowance(bound, m, p) for bound in ("L1", "L2", "SBD")]
    np.testing.assert_allclose(found, [l1, l2, sbd], rtol=5e-4)


def test_weights_are_correlations():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 4)), np.where(rng.random(50) < 0.3, -1, 1)
    slow = [abs(np.corrcoef(X[:, k], y)[0, 1]) for k in range(4)]
    np.testing.assert_allclose(marginbounds.weights(X, y), slow / np.sum(slow), rtol=1e-12)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    X = rng.random((300, 12))
    y = np.where(
        X[:, :4].sum(axis=1) - X[:, 4:8].sum(axis=1) + 0.3 * rng.standard_normal(300) > 0, 1, -1
    )
    return X, y, np.arange(200), np.arange(200, 300)


def test_the_machine_has_the_norm_that_the_margin_means(blobs):
    X, y, train, test = blobs
    for norm in marginbounds.NORMS:
        (row,) = marginbounds.learn(norm, 0, X, y, train, test)
        assert row.size == pytest.approx(5.0, rel=0.02)
        assert row.bound == row.margin_loss + marginbounds.allowance(norm, 200, 12)
        assert row.train_error <= row.margin_loss
        assert (row.p, row.m) == (12, 200)


def test_garbage_test_labels_change_nothing_but_the_score(blobs):
    X, y, train, test = blobs
    (row,) = marginbounds.learn("L1", 0, X, y, train, test)
    poisoned = y.copy()
    poisoned[test] = 7
    (other,) = marginbounds.learn("L1", 0, X, poisoned, train, test)
    assert other.test_error == 1.0 > row.test_error
    for field in ("C", "size", "train_error", "margin_loss", "bound"):
        assert getattr(other, field) == getattr(row, field)


def test_tables_and_verdicts(data_dir, monkeypatch, tmp_path):
    monkeypatch.setattr(marginbounds, "QUICK_KERNELS", (50, 100))
    monkeypatch.setattr(marginbounds, "QUICK_N_TRAIN", 200)
    told = marginbounds.run(quick=True, out=tmp_path, n_jobs=1)
    assert {(row.norm, row.p, row.m) for row in told.rows} == {
        (norm, p, 200) for norm in ("L1", "L2") for p in (50, 100)
    }
    assert [claim.ours for claim in told.claims[:7]] == ["yes"] * 7
    pytest.importorskip("matplotlib")
    assert len(told.save(tmp_path)) == 3
