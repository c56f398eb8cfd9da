"""Where the combined matrix does not fit, machines are trained on rows computed on demand."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.blocks import BlockCombined
from multikernel.grams.rankone import RankOneCombined


@pytest.mark.parametrize("weighting", ["alignf", mk.LpNorm(1.0), mk.LpNorm(1.5), mk.LpNorm(4.0)])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_same_machine_without_a_matrix(rng, monkeypatch, weighting, mixed):
    X = rng.standard_normal((250, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(250) > 0, 1, -1)
    bank = mk.gaussians([0.1, 0.5, 2.0])
    if mixed:
        bank = bank + mk.per_feature()
    whole = mk.MultiKernelClassifier(bank, weighting).fit(X, y)

    def refuse(self):
        raise AssertionError("the matrix was formed")

    for kind in (BlockCombined, RankOneCombined):
        monkeypatch.setattr(kind, "_dense", refuse)
    rows = mk.MultiKernelClassifier(bank, weighting, memory_budget="300kB").fit(X, y)
    assert rows.duality_gap_ < 1e-3
    np.testing.assert_allclose(rows.objective_, whole.objective_, rtol=2e-3)
    agree = rows.predict(X) == whole.predict(X)
    assert agree.mean() > 0.98
