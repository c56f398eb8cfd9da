"""Is the combination definite: the quick check in single precision, and what it leaves open."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.operators import PSD_TOLERANCE
from multikernel.problem import Machine
from multikernel.solvers.certificate import Found
from multikernel.solvers.joint.definiteness import NotPSDError, gap_allows, require_psd


def spectrum(n: int, lowest: float, seed: int = 0) -> np.ndarray:
    """A matrix with eigenvalues from 1 down to 1e-3, and one at `lowest`."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    K = (Q * np.append(np.geomspace(1.0, 1e-3, n - 1), lowest)) @ Q.T
    return np.asarray((K + K.T) / 2)


def combined(K: np.ndarray):
    bank, ids = mk.precomputed([K]), mk.sample_ids(len(K))
    grams = bank.plan(ids).grams(ids, budget=MemoryBudget.of(None)).corrected(False, None)
    return grams, grams.combine(np.ones(1))


@pytest.mark.parametrize("lowest", [1e-2, 1e-9, 0.0])
def test_quick_check_says_how_far_it_looked(lowest):
    K = spectrum(120, lowest)
    grams, gram = combined(K)
    slack = require_psd(grams, np.ones(1), gram, warn=False, rough=True)
    assert 0 < slack < 1e-4 * np.linalg.norm(K, 2)
    assert np.linalg.eigvalsh(K)[0] >= -slack
    assert require_psd(grams, np.ones(1), gram, warn=False) == 0.0


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("lowest", [-1.0, -1e-2, -1e-3])
def test_both_checks_refuse_what_both_can_see(lowest, rough):
    grams, gram = combined(spectrum(120, lowest))
    with pytest.raises(NotPSDError, match="most negative eigenvalue"):
        require_psd(grams, np.ones(1), gram, warn=False, rough=rough)


def test_single_precision_may_overlook_what_double_precision_refuses():
    K = spectrum(120, -1e-6)
    grams, gram = combined(K)
    slack = require_psd(grams, np.ones(1), gram, warn=False, rough=True)
    assert slack >= 1e-6  # if it was passed over, it is within what was said to be open
    with pytest.raises(NotPSDError):
        require_psd(grams, np.ones(1), gram, warn=False)
    lowest, largest, _ = gram.lowest_eigenvalue()
    assert lowest < -PSD_TOLERANCE * largest


def test_what_is_allowed_is_a_matter_of_coefficients_and_of_what_the_gap_leaves():
    def found(size: float, gap: float) -> Found:
        return Found(np.ones(1), Machine(np.full((4, 1), size), np.zeros(1), 8.0, gap, 1), None, [])

    # 1/2 slack |s|^2 = 2 slack against (tol - gap) 8
    assert gap_allows(3.9e-3, found(1.0, 0.0), 1e-3, 1.0)
    assert not gap_allows(4.1e-3, found(1.0, 0.0), 1e-3, 1.0)
    assert not gap_allows(3.9e-3, found(1.0, 5e-4), 1e-3, 1.0)
    assert not gap_allows(3.9e-3, found(2.0, 0.0), 1e-3, 1.0)
    assert gap_allows(0.0, found(1.0, 1.0), 1e-3, 1.0)  # nothing left open


@pytest.mark.parametrize("rule", [mk.L1(tol=1e-7), mk.LpNorm(4 / 3, tol=1e-7)])
def test_a_fit_that_asks_for_more_digits_is_checked_in_double_precision(rule):
    K = 1e3 * spectrum(120, -1e-6)
    y = np.where(np.random.default_rng(1).standard_normal(120) > 0, 1, -1)
    model = mk.MultiKernelClassifier(mk.precomputed([K]), rule, C=100, center=False, normalize=None)
    with pytest.raises(NotPSDError):
        model.fit(mk.sample_ids(120), y)


def test_low_rank_matrices_rounded_to_single_precision_are_definite(rng):
    X = rng.standard_normal((400, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    K = (X @ X.T).astype(np.float32).astype(np.float64)
    K = (K + K.T) / 2
    assert np.linalg.eigvalsh(K)[0] < -1e-9  # it is not, to the letter
    grams, gram = combined(K)
    assert gram.lowest_eigenvalue().lowest == 0.0  # by the factor, without eigenvalues
    assert require_psd(grams, np.ones(1), gram, warn=False) == 0.0
