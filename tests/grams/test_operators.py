"""Eigenvalues of operators that are known by their products only."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.grams.operators import PSD_TOLERANCE, extreme_eigenvalues


def operator(eigenvalues: np.ndarray):
    """A matrix with these eigenvalues."""
    n = len(eigenvalues)
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))
    return (Q * eigenvalues) @ Q.T


@pytest.mark.parametrize("lowest", [-0.5, -1e-3, -1e-5, -1e-7])
def test_a_negative_eigenvalue_is_found_among_many_at_zero(lowest):
    """Low rank: nearly all eigenvalues are zero, where a tolerance relative to them never ends."""
    K = operator(np.concatenate([[5.0, 3.0, 1.0], np.zeros(296), [lowest]]))
    found = extreme_eigenvalues(lambda v: K @ v, 300)
    assert found.largest == pytest.approx(5.0, rel=1e-2)
    assert found.lowest == pytest.approx(lowest, rel=0.05, abs=0.2 * PSD_TOLERANCE * 5.0)
    assert not found.proven


def test_a_semidefinite_operator_of_low_rank_has_no_negative_eigenvalue_beyond_rounding():
    K = operator(np.concatenate([[5.0, 3.0, 1.0], np.zeros(297)]))
    assert extreme_eigenvalues(lambda v: K @ v, 300).lowest >= -PSD_TOLERANCE * 5.0


def test_what_counts_as_rounding_sets_the_precision():
    K = operator(np.concatenate([[5.0], 1e-4 * np.random.default_rng(1).standard_normal(299)]))
    calls = []
    extreme_eigenvalues(lambda v: calls.append(1) or K @ v, 300)
    exact = len(calls)
    calls.clear()
    extreme_eigenvalues(lambda v: calls.append(1) or K @ v, 300, rounding=1e-2)
    assert len(calls) < exact
