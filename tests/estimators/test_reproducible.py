"""The same input gives the same bits, whatever the threads and the memory budget."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighting", ["align", "alignf"])
def test_threads_and_memory_do_not_change_a_bit(rng, weighting, dtype):
    X = rng.standard_normal((400, 6))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400)
    bank = mk.gaussians(np.geomspace(1e-3, 10, 9)) + mk.per_feature(mk.Linear())
    found = []
    for n_jobs, budget in [(1, "2GB"), (2, "2GB"), (1, "40MB"), (2, "40MB")]:
        model = mk.MultiKernelRegressor(
            bank, weighting, dtype=dtype, n_jobs=n_jobs, memory_budget=budget, solver="cholesky"
        ).fit(X, y)
        found.append(
            (
                model.kernel_weights_.tobytes(),
                model.kernel_alignments_.tobytes(),
                model.dual_coef_.tobytes(),
                model.predict(X[:50]).tobytes(),
            )
        )
    assert all(other == found[0] for other in found[1:])
