"""Runtimes: what is timed, and what is told of it. No test looks at a clock."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import runtime


def test_the_matrices_are_those_described(data_dir):
    K, y = runtime.matrices(40, 50, 0)
    assert K.shape == (50, 40, 40) and set(y) == {-1, 1}
    # 2 sigma^2 = 1.2^k: all kernels are powers of the first
    np.testing.assert_allclose(K[7], K[0] ** (1.2**-7), rtol=1e-10)


def test_all_norms_reach_the_same_gap(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(runtime, "QUICK_POINTS", (120, 150))
    monkeypatch.setattr(runtime, "QUICK_KERNELS", (5, 10))
    monkeypatch.setattr(runtime, "QUICK_N_POINTS", 120)
    told = runtime.run(quick=True, out=tmp_path)
    assert len(told.rows) == 4 * len(runtime.NORMS)
    assert all(row.gap <= 1e-3 for row in told.rows)
    plain = [row for row in told.rows if row.method == "SVM (p = 2)"]
    assert all(row.kernels_used == row.M for row in plain)
    pytest.importorskip("matplotlib")
    assert len(told.save(tmp_path)) == 3
