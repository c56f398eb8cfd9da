"""Kloft's global bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from multikernel import bounds as b
from multikernel.bounds.rademacher import conjugate

NORMS = (1, 1.1, 4 / 3, 1.5, 2, 4, math.inf)


def test_golden_numbers_of_proposition_4_2():
    traces = [100.0] * 50
    plain = [0.461172, 0.461172, 0.531830, 0.638093, 1.0, 2.171185, 5.0]
    sharp = [0.428064, 0.428064, 0.460578, 0.521001, 0.707107, 1.880302, 5.0]
    assert [round(b.rademacher_block(traces, 100, p), 6) for p in NORMS] == plain
    assert [round(b.rademacher_block(traces, 100, p, sharp=True), 6) for p in NORMS] == sharp


def test_golden_numbers_of_corollary_4_4():
    lam = np.arange(1.0, 101.0) ** -2
    B = float(lam.sum())
    assert pytest.approx(1.634984, abs=1e-6) == B
    traces = [B] * 16
    for p in (1, 4 / 3):
        found = b.rademacher_block_population(traces, 1000, p, B)
        assert found == pytest.approx(0.51833, abs=1e-5)
    assert b.rademacher_block_population(traces, 1000, 2, B) == pytest.approx(0.533327, abs=1e-6)
    for p in (1, 2):
        found = b.rademacher_block_population(traces, 1000, p, B, sharp=True)
        assert found == pytest.approx(0.228735, abs=1e-6)


def slow_block(traces, n, p, sharp):
    """Proposition 4.2 over a fine grid of t."""
    a = np.asarray(traces) / n
    best = math.inf
    for s in np.linspace(1.0, min(conjugate(p), 60.0), 20_001):
        c = max(1.0, s - 1) if sharp else s
        best = min(best, c / n * np.sum(a ** (s / 2)) ** (2 / s))
    return math.sqrt(best)


@pytest.mark.parametrize("p", [1, 1.2, 1.7, 2, 3, math.inf])
@pytest.mark.parametrize("sharp", [False, True])
def test_minimum_over_t_against_a_grid(p, sharp, rng):
    for M in (1, 2, 7, 300):
        traces = rng.random(M) * 10 + 0.01
        found = b.rademacher_block(traces, 20, p, sharp=sharp)
        slow = slow_block(traces, 20, p, sharp)
        assert found <= slow * (1 + 1e-9)
        assert found == pytest.approx(slow, rel=2e-5)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_lie_above_the_exact_complexity(seed):
    rng = np.random.default_rng(seed)
    n, M = int(rng.integers(3, 9)), int(rng.integers(1, 6))
    kernels = []
    for _ in range(M):
        A = rng.standard_normal((n, int(rng.integers(1, n + 1))))
        kernels.append(A @ A.T * rng.choice([0.1, 1.0, 5.0]))
    traces = [np.trace(K) for K in kernels]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    for p in NORMS:
        exact = b.rademacher_block_exact(kernels, p, radius=2.0)
        s = conjugate(p)
        u = np.array([[v @ K @ v for K in kernels] for v in signs])
        u = np.maximum(u, 0.0)
        each = np.sqrt(u.max(axis=1)) if math.isinf(s) else np.sum(u ** (s / 2), 1) ** (1 / s)
        assert exact.value == pytest.approx(2 * each.mean() / n)
        sharp = b.rademacher_block(traces, n, p, radius=2.0, sharp=True)
        assert exact.value <= sharp * (1 + 1e-9)
        assert sharp <= b.rademacher_block(traces, n, p, radius=2.0) * (1 + 1e-9)
    for p in (4 / 3, 1.5, 2):
        earlier = b.rademacher_block_cortes(traces, n, p)
        assert b.rademacher_block(traces, n, p) <= earlier


def test_the_remark_is_the_bound_at_its_own_exponent():
    # Equal traces: s M^(2/s) is smallest at s = 2 log M, with value 2 e log M; the factor 2 is lost
    # in print.
    for M in (2, 10, 1000):
        ours = b.rademacher_block_l1(100.0, M, 100)
        assert ours == pytest.approx(math.sqrt(2 * math.e * math.log(M) * 100) / 100)
        if 2 * math.log(M) >= 1:
            assert b.rademacher_block([100.0] * M, 100, 1) == pytest.approx(ours, rel=1e-9)
        printed = b.rademacher_block_l1(100.0, M, 100, as_printed=True)
        assert printed == pytest.approx(ours / math.sqrt(2))
        assert printed < b.rademacher_block([100.0] * M, 100, 1)


def test_population_bound_holds_on_a_finite_distribution():
    # Atoms with equal probabilities: E R_S by enumeration of all samples of four points.
    rng = np.random.default_rng(5)
    features = [rng.standard_normal((3, 2)) for _ in range(3)]
    Ks = [A @ A.T for A in features]
    n = 4
    samples = list(itertools.product(range(3), repeat=n))
    B = max(np.diag(K).max() for K in Ks)
    traces = [np.diag(K).mean() for K in Ks]
    for p in (1, 4 / 3, 2, 4):
        mean = np.mean(
            [b.rademacher_block_exact([K[np.ix_(S, S)] for K in Ks], p).value for S in samples]
        )
        for sharp in (True, False):
            assert mean <= b.rademacher_block_population(traces, n, p, B, sharp=sharp)


def test_generalisation_bound():
    found = b.generalisation_bound(0.1, 0.05, 200, 0.05, lipschitz=2.0)
    assert found == pytest.approx(0.1 + 0.2 + math.sqrt(8 * math.log(40) / 200))
    sample = b.generalisation_bound(0.1, 0.05, 200, 0.05, empirical=True)
    assert sample == pytest.approx(b.margin_bound(0.1, 0.05, 200, 1.0, 0.05))


def test_monotone():
    traces = [100.0] * 20
    by_p = [b.rademacher_block(traces, 100, p) for p in NORMS]
    assert by_p == sorted(by_p)
    assert b.rademacher_block(traces, 200, 1.5) < b.rademacher_block(traces, 100, 1.5)
    assert b.rademacher_block([100.0] * 200, 100, 1) > b.rademacher_block(traces, 100, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.rademacher_block([1.0, -2.0], 5, 1), "positive semidefinite"),
        (lambda: b.rademacher_block([1.0], 5, 0.9), "at least 1"),
        (lambda: b.rademacher_block([1.0], 5, 1, radius=-1), "size of the class"),
        (lambda: b.rademacher_block_cortes([1.0], 5, 1.7), "integer conjugate"),  # p* = 2.43
        (lambda: b.rademacher_block_cortes([1.0], 5, 1.6), "integer conjugate"),  # p* = 2.67
        (lambda: b.rademacher_block_population([1.0] * 9, 5, 1, math.inf), "bounded kernel"),
        (lambda: b.rosenthal_young(0.5, 1.0, 5, 0.3), "1/2"),
        (lambda: b.generalisation_bound(0.5, 0.1, 5, 2.0), "delta"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
