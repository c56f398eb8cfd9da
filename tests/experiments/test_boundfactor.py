"""The bound factor of section 4.4 against its formula, and the learning beside it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import boundfactor
from multikernel.bounds import suggest_p


@pytest.mark.parametrize("beta", boundfactor.BETAS)
@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0])
def test_the_factor_is_the_formula_minimised_by_hand(beta, p):
    w, M, a = boundfactor.blocks(beta), boundfactor.M, 2 / (1 + boundfactor.ALPHA)
    t = np.linspace(max(p, 1 + 1e-9), 2.0, 20_001)
    star = t / (t - 1)
    inner = np.min(star**a * M ** (1 + a * (1 / star - 1)))
    slow = np.sum(w**p) ** (a / p) * inner
    assert boundfactor.factor(beta, p) == pytest.approx(slow, rel=1e-6)


def test_minima_of_the_figure():
    found = [suggest_p(boundfactor.blocks(beta), kind="local") for beta in (2.0, 1.0, 0.5)]
    np.testing.assert_allclose(found, [1.208, 1.391, 2.0], atol=1e-3)


def test_scenarios_of_two_kernels():
    """Figure 4.1: every ball passes through the Bayes hypothesis (1, 2^-beta)."""
    pytest.importorskip("matplotlib")
    axes = boundfactor.draw_scenarios().axes
    for ax, beta in zip(axes, (2.0, 1.0, 0.5), strict=True):
        truth = np.array([1.0, 2.0**-beta])
        best = suggest_p(boundfactor.blocks(beta), kind="local")
        balls = [np.asarray(line.get_xydata()) for line in ax.lines if len(line.get_xdata()) > 2]
        assert len(balls) == len({1.0, best, 2.0})
        for p, ball in zip(sorted({1.0, best, 2.0}), balls, strict=True):
            sizes = (np.abs(ball) ** p).sum(axis=1) ** (1 / p)
            np.testing.assert_allclose(sizes, (truth**p).sum() ** (1 / p), rtol=1e-9)


def test_garbage_test_labels_change_nothing_but_the_score(monkeypatch):
    monkeypatch.setattr(boundfactor, "NORMS", (4 / 3, 2.0))
    monkeypatch.setattr(boundfactor, "COSTS", (0.01, 0.1))
    rng = np.random.default_rng(0)
    X, y, _ = boundfactor.sample(60, 2.0, rng)
    X_val, y_val, _ = boundfactor.sample(100, 2.0, rng)
    X_test, _, clean = boundfactor.sample(100, 2.0, rng)
    rows = boundfactor.learn(2.0, 0, X, y, X_val, y_val, X_test, clean)
    others = boundfactor.learn(2.0, 0, X, y, X_val, y_val, X_test, np.full(100, 7))
    for row, other in zip(rows, others, strict=True):
        assert other.excess == 1.0 > row.excess
        assert (other.C, other.validation_error, other.gap) == (
            row.C,
            row.validation_error,
            row.gap,
        )


def test_tables_and_verdicts(monkeypatch, tmp_path):
    monkeypatch.setattr(boundfactor, "NORMS", (4 / 3, 2.0))
    monkeypatch.setattr(boundfactor, "COSTS", (0.1,))
    monkeypatch.setattr(boundfactor, "N_TRAIN", 60)
    told = boundfactor.run(quick=True, out=tmp_path, n_jobs=1)
    assert len(told.rows) == 2 * len(boundfactor.BETAS)
    assert [claim.ours for claim in told.claims[:6]] == ["yes"] * 6
    text = str(told)
    assert "nan" not in text  # one sample has no standard error
    assert "One sample per scenario, so no standard errors." in text
    pytest.importorskip("matplotlib")
    names = [path.name for path in told.save(tmp_path)]
    assert names[2:] == ["boundfactor-quick.png", "boundfactor-quick-scenarios.png"]
    again = boundfactor.run(quick=True, out=tmp_path, n_jobs=1)
    assert again.rows == told.rows  # taken from the file: seconds are the same
