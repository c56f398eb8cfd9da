"""Bousquet and Herrmann: classes of kernel matrices on 2n points."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from multikernel import bounds as b


def kernels(rng, size, p=3):
    parts = [rng.standard_normal((size, rng.integers(1, size + 1))) for _ in range(p)]
    return [A @ A.T for A in parts]


def signs_of(size):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=size)))


def test_theorem_1_is_attained():
    # The best matrix of trace c is c sigma sigma' / (2n), whatever sigma is: an equality.
    n, c, M = 3, 4.0, 0.7
    value = np.mean([math.sqrt(s @ (c * np.outer(s, s) / (2 * n)) @ s) for s in signs_of(2 * n)])
    assert b.psd_ball_complexity(c, n, M) == pytest.approx(value / (n * M))
    # With unit diagonals, c = 2n, it does not shrink: nothing can be learned.
    assert b.psd_ball_complexity(2.0, 1, 1.0) == b.psd_ball_complexity(2000.0, 1000, 1.0)


@pytest.mark.parametrize("seed", range(40))
def test_theorem_2_holds_and_lies_below_theorem_1(seed):
    rng = np.random.default_rng(seed)
    n, c, M = int(rng.integers(1, 5)), 3.0, 0.5
    Ks = kernels(rng, 2 * n)
    exact = b.transductive_exact(Ks, c, M)
    slow = np.mean(
        [max(math.sqrt(c * (s @ K @ s) / np.trace(K)) for K in Ks) for s in signs_of(2 * n)]
    ) / (n * M)
    assert exact.value == pytest.approx(slow)
    hull = b.hull_complexity(Ks, c, n, M)
    assert exact.value <= hull * (1 + 1e-12)
    assert hull <= b.psd_ball_complexity(c, n, M) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_theorem_3_repaired_holds_for_random_eigenvectors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    V = np.linalg.qr(rng.standard_normal((2 * n, 2 * n)))[0]
    exact = b.transductive_exact([np.outer(v, v) for v in V.T], 2.0, 0.5)
    assert exact.value <= b.spectral_complexity(2.0, n, 0.5)


def test_theorem_3_as_printed_fails():
    V = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
    exact = b.transductive_exact([np.outer(v, v) for v in V], 1.0, 1.0).value
    assert exact == pytest.approx(math.sqrt(2))
    assert b.spectral_complexity(1.0, 1, 1.0, as_printed=True) < exact
    assert b.spectral_complexity(1.0, 1, 1.0) > exact


def test_polynomials_of_a_matrix_lie_in_both_classes(rng):
    A = rng.standard_normal((8, 8))
    K = 100 * A @ A.T
    powers = b.power_kernels(K, 4, 2.0)
    assert all(np.trace(P) == pytest.approx(2.0) for P in powers)
    assert np.allclose(powers[0], K * 2.0 / np.trace(K))
    assert np.allclose(powers[2] / np.trace(powers[2]), K @ K @ K / np.trace(K @ K @ K))
    exact = b.transductive_exact(powers, 2.0, 1.0).value
    assert exact <= b.hull_complexity(powers, 2.0, 4, 1.0)
    spectrum = [np.outer(v, v) for v in np.linalg.eigh(K)[1].T]
    assert exact <= b.transductive_exact(spectrum, 2.0, 1.0).value * (1 + 1e-12)
    one = b.transductive_exact(b.power_kernels(K, 1, 2.0), 2.0, 1.0).value
    assert one == pytest.approx(b.transductive_exact([K], 2.0, 1.0).value)


def test_corollary_1():
    found = b.transductive_bound(0.1, 0.2, 400, 0.05)
    assert found == pytest.approx(0.3 + math.sqrt(math.log(20) / 400) + 0.2)
    assert found < b.transductive_bound(0.1, 0.2, 100, 0.05)
    assert found < b.transductive_bound(0.1, 0.2, 400, 0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.transductive_exact([np.eye(3)], 1.0, 1.0), "2n samples"),
        (lambda: b.transductive_exact([np.eye(4)], 1.0, 0.0), "margin"),
        (lambda: b.transductive_exact([np.zeros((4, 4))], 1.0, 1.0), "trace 0"),
        (lambda: b.hull_complexity([-np.eye(4)], 1.0, 2, 1.0), "positive semidefinite"),
        (lambda: b.hull_complexity([np.eye(4)], 1.0, 3, 1.0), "2n x 2n"),
        (lambda: b.transductive_bound(0.1, 0.1, 10, 0.0), "delta"),
        (lambda: b.psd_ball_complexity(0.0, 5, 1.0), "radius"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
