"""Rates: which one is smaller where, and what becomes of them at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from multikernel import bounds as b


def test_local_and_global_rates():
    # Local beats global exactly when M^(1/p)/(p* D) <= sqrt(n), for p with p* <= log M.
    M, p, D = 1000, 1.4, 2.0
    turning = (M ** (1 / p) / (p / (p - 1) * D)) ** 2
    for alpha in (1.5, 2.0, 6.0):
        for n, better in [(int(turning / 2), False), (int(2 * turning), True)]:
            assert (b.local_rate(alpha, M, n, p, D) < b.global_rate(M, n, p, D)) == better
    # alpha near 1: n^(-1/2); alpha large: 1/n.
    ratio = b.local_rate(1 + 1e-9, M, 10**6, p) / b.local_rate(1 + 1e-9, M, 10**4, p)
    assert ratio == pytest.approx(0.1, rel=1e-6)
    ratio = b.local_rate(1e6, M, 10**6, p) / b.local_rate(1e6, M, 10**4, p)
    assert ratio == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 5.0])
@pytest.mark.parametrize("M", [8, 100, 10**5])
@pytest.mark.parametrize("radius", [0.3, 1.0, 4.0])
def test_the_sparse_rate_is_the_smaller_of_both_at_p_one(alpha, M, radius):
    """(4.24) is (4.22) and (4.23) at t* = log M, without the powers of e."""
    power = 2 / (1 + alpha)
    for n in (10, 10**3, 10**6, 10**9):
        local = b.local_rate(alpha, M, n, 1.0, radius) / math.e**power
        globally = b.global_rate(M, n, 1.0, radius) / math.e
        assert b.sparse_rate(alpha, M, n, radius) == pytest.approx(min(local, globally))
        # p below (log M)* changes nothing: the best t is the same.
        below = 1 / (1 - 1 / math.log(M))
        assert b.global_rate(M, n, below, radius) == pytest.approx(math.e * globally)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 50.0])
def test_the_local_rate_wins_beyond_a_number_of_samples_that_does_not_depend_on_alpha(alpha):
    M, D = 500, 2.0
    turning = (M / (D * math.log(M))) ** 2
    before, after = int(turning / 1.5), int(turning * 1.5)
    plain = D * math.log(M)
    assert b.sparse_rate(alpha, M, before, D) == pytest.approx(plain / math.sqrt(before))
    assert b.sparse_rate(alpha, M, after, D) < plain / math.sqrt(after) * (1 - 1e-9)


def test_the_rank_one_rate_is_the_limit_of_both_rates():
    for M, n in [(10, 10**3), (1000, 10**4), (30, 500)]:
        for p in (1.0, 1.3, 2.0):
            limit = min(b.local_rate(1e9, M, n, p), b.global_rate(M, n, p))
            assert b.rank_one_rate(M, n, p) == pytest.approx(limit, rel=1e-6)
            # The inner minimum by hand.
            t = np.linspace(max(p, 1 + 1e-9), 2.0, 20_001)
            star = t / (t - 1)
            inner = np.min(star * M ** (1 / star)) / math.sqrt(n)
            assert b.rank_one_rate(M, n, p) == pytest.approx(min(M / n, inner), rel=1e-6)
    # Where the local rate is smaller, neither p nor the radius matters.
    few = [b.rank_one_rate(10, 10**6, p, D) for p in (1.0, 2.0) for D in (1.0, 7.0)]
    assert few == [1e-5] * 4


def test_the_rank_one_rate_is_tsybakovs_up_to_a_logarithm():
    n = 10**6
    for M in np.unique(np.geomspace(1, 10**9, 200).astype(int)):
        ours, optimal = b.rank_one_rate(int(M), n, 1.0), b.aggregation_rate(int(M), n)
        assert optimal <= ours * (1 + 1e-12)
        assert ours <= 8 * max(1.0, math.log(M)) * optimal
        if 0.7 * math.sqrt(n) >= M:  # before the turn both are M / n
            assert ours == optimal == M / n


def test_aggregation_as_printed():
    """As printed the rate is zero at M = sqrt(n), where M/n is 1/sqrt(n), and undefined below."""
    n = 10**4
    assert b.aggregation_rate(101, n, as_printed=True) < 0.2 * b.aggregation_rate(101, n)
    with pytest.raises(b.AssumptionError, match=r"M > sqrt\(n\); got M = 100"):
        b.aggregation_rate(100, n, as_printed=True)
    # For many functions 1 inside the logarithm is nothing.
    ratio = b.aggregation_rate(10**9, n, as_printed=True) / b.aggregation_rate(10**9, n)
    assert ratio == pytest.approx(1.0, abs=1e-6)


def test_monotone():
    by_n = [b.aggregation_rate(50, n) for n in (10, 10**3, 10**5)]
    assert by_n == sorted(by_n, reverse=True)
    by_M = [b.sparse_rate(2.0, M, 10**4) for M in (8, 50, 10**4)]
    assert by_M == sorted(by_M)
    by_p = [b.rank_one_rate(10**5, 100, p) for p in (1.0, 1.3, 2.0)]
    assert by_p == sorted(by_p)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.sparse_rate(2.0, 7, 100), r"M must be a number in \[8, "),
        (lambda: b.sparse_rate(1.0, 10, 100), "alpha"),
        (lambda: b.rank_one_rate(10, 100, 3.0), r"\[1, 2\]"),
        (lambda: b.aggregation_rate(10, 0), "n must be"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
