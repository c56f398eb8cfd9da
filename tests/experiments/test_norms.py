"""Kernel weights, machines along C, and verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import norms
from multikernel import MultiKernelClassifier, precomputed, sample_ids
from multikernel.weighting import LpNorm


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3, 2))
    y = np.where(X[:, 0, 0] + 0.3 * X[:, 1, 0] > 0, 1, -1)
    return np.einsum("ikd,jkd->kij", X, X), y


def test_weights_of_several_classes(sample):
    K, _ = sample
    y = np.arange(K.shape[1]) % 3
    ids = sample_ids(len(y))
    ((_, model),) = norms.machines(precomputed(K), 1.5, (1.0,), ids, y)
    assert model.kernel_weights_.shape == (3, 3)
    assert norms.weights_of(model).sum() == pytest.approx(1.0)


def test_larger_costs_are_skipped_only_where_they_change_nothing(sample):
    K, y = sample
    ids = sample_ids(len(y))
    path = list(norms.machines(precomputed(K), 2.0, (10.0, 0.1, 1e4, 1e5), ids, y))
    assert [C for C, _ in path] == [0.1, 10.0, 1e4, 1e5]
    fresh = MultiKernelClassifier(precomputed(K), LpNorm(2.0), C=1e5, multiclass="per_class")
    np.testing.assert_allclose(
        path[-1][1].decision_function(ids), fresh.fit(ids, y).decision_function(ids), rtol=1e-9
    )
    assert path[0][1] is not path[1][1] and path[2][1] is path[3][1]


def test_verdicts_need_two_standard_errors():
    assert norms.ahead("a", np.array([1.0, 1.1, 0.9]), np.zeros(3)).ours == "yes"
    assert norms.ahead("a", np.zeros(3), np.array([1.0, 1.1, 0.9])).ours == "no"
    assert norms.ahead("a", np.array([1.0, -1.1, 0.9]), np.zeros(3)).ours == "undecided"
    assert norms.ahead("a", np.array([1.0]), np.zeros(1)).ours == "undecided"
    assert norms.ahead("a", np.zeros(2), np.zeros(2)).ours == "undecided"
