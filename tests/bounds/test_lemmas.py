"""Lemmas as inequalities: by enumeration, by sums, on random instances, and where tight."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from multikernel import bounds as b
from multikernel.bounds.rademacher import eta

NORMS = [1.0, 1.2, 4 / 3, 2.0, 3.0, 10.0, math.inf]


def partitions(r, largest=None):
    """All ways to write r as a sum of whole numbers above zero, in decreasing order."""
    if r == 0:
        yield []
    for first in range(min(r, largest or r), 0, -1):
        for rest in partitions(r - first, first):
            yield [first, *rest]


def multinomial(counts):
    return Fraction(math.factorial(sum(counts)), math.prod(map(math.factorial, counts)))


# -- Lemma A.2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", range(1, 11))
def test_multinomials_by_enumeration(r):
    """All t of sum r; the largest ratio is (2r - 1)!!, at t = (1, ..., 1)."""
    ratios = []
    for t in partitions(r):
        left, right = b.multinomial_bound(t)
        assert left == pytest.approx(float(multinomial([2 * k for k in t])), rel=1e-12)
        assert right == pytest.approx((23 / 22 * r) ** r * float(multinomial(t)), rel=1e-12)
        assert left <= right
        _, sharp = b.multinomial_bound(t, sharp=True)
        assert left <= sharp * (1 + 1e-12) and sharp <= right
        # Zeros among the counts change nothing.
        assert b.multinomial_bound([0, *t, 0, 0]) == (left, right)
        ratios.append(multinomial([2 * k for k in t]) / multinomial(t))
    assert max(ratios) == math.prod(range(1, 2 * r, 2))
    assert b.multinomial_bound([1] * r, sharp=True) == pytest.approx(
        (float(max(ratios)) * math.factorial(r),) * 2
    )


def test_the_best_constants_of_lemma_a2():
    expected = [1, 0.866, 0.822, 0.800, 0.787, 0.779, 0.772, 0.768]
    for r, constant in enumerate(expected, start=1):
        assert eta(r, sharp=True) == pytest.approx(constant, abs=5e-4)


def test_the_printed_constant_without_its_r_is_too_small():
    """The statement lost the factor r of (eta_0 r)^r; t = (1, 1) shows it: 6 against 2.2."""
    left, right = b.multinomial_bound([1, 1])
    assert left == pytest.approx(6.0)
    assert (23 / 22) ** 2 * 2 < left < right


def test_lemma_a2_gives_the_moments_of_lemma_21(rng):
    """``E (sigma'K sigma)^r`` for K = uu' is a sum over t of multinomials times even powers."""
    u = rng.normal(size=5)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))
    for r in (1, 2, 3, 4):
        exact = np.mean((signs @ u) ** (2 * r))
        counts = [t for t in itertools.product(range(r + 1), repeat=5) if sum(t) == r]
        powers = [math.prod((u**2) ** np.array(t)) for t in counts]
        left = sum(b.multinomial_bound(t)[0] * w for t, w in zip(counts, powers, strict=True))
        right = sum(b.multinomial_bound(t)[1] * w for t, w in zip(counts, powers, strict=True))
        assert exact == pytest.approx(left)
        assert right == pytest.approx(b.moment_bound(float(u @ u), r))


def test_multinomials_that_overflow_are_infinite():
    assert b.multinomial_bound([10**6, 10**6]) == (math.inf, math.inf)
    left, right = b.multinomial_bound([90])
    assert left == 1.0 and right > 1e170


# -- Lemma C.2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1.0, 1.5, 2.0, 3.0, 7.3, 20.0, 40.0, 100.0])
def test_moments_of_a_poisson_variable(s):
    k = np.arange(1, 400)
    summed = math.fsum(np.exp(s * np.log(k) + poisson.logpmf(k, 1.0)))
    assert b.poisson_moment(s) == pytest.approx(summed, rel=1e-10)
    assert summed <= b.poisson_moment_bound(s)
    assert b.poisson_moment_bound(s) == pytest.approx((s + math.e) ** s, rel=1e-12)
    # The constant (2 e s)^s of Lemma 4.3 is what is left of it.
    assert b.poisson_moment_bound(s) <= (2 * math.e * s) ** s * (1 + 1e-12)


def test_poisson_moments_against_draws(rng):
    draws = rng.poisson(1.0, size=400_000).astype(float)
    for s in (1.0, 2.0, 2.5, 3.0):
        error = (draws**s).std() / math.sqrt(len(draws))
        assert abs((draws**s).mean() - b.poisson_moment(s)) <= 4 * error
    assert b.poisson_moment(3.0) == pytest.approx(5.0)  # Bell numbers
    assert b.poisson_moment(4.0) == pytest.approx(15.0)


def test_a_bound_that_overflows_is_infinite():
    assert b.poisson_moment_bound(1e6) == math.inf
    assert math.isfinite(b.poisson_moment_bound(140.0))


# -- moments of signs and of means ----------------------------------------------------------------


@pytest.mark.parametrize("s", [1.0, 1.5, 2.0, 3.0, 5.5])
def test_kahane_moments(s, rng):
    v = rng.standard_normal((8, 3))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    moment = np.mean(np.linalg.norm(signs @ v, axis=1) ** s)
    assert moment <= b.kahane_moment(float(np.sum(v**2)), s) * (1 + 1e-12)
    if s == 2.0:
        assert moment == pytest.approx(b.kahane_moment(float(np.sum(v**2)), s))


def test_poisson_moments():
    bells = {0: 1, 1: 1, 2: 2, 3: 5, 5: 52, 10: 115975}
    for s, bell in bells.items():
        if s > 0:
            assert b.poisson_moment(s) == pytest.approx(bell)
    for s in np.linspace(1, 40, 79):
        assert b.poisson_moment(s) <= (s + math.e) ** s
    slow = sum(j**2.5 / math.factorial(j) for j in range(1, 60)) / math.e
    assert b.poisson_moment(2.5) == pytest.approx(slow)


@pytest.mark.parametrize("s", [0.5, 0.9, 1.5, 2.5, 4.0])
def test_rosenthal_young(s):
    # Averages of n variables that are B with probability q: moments are finite sums.
    for n, q, B in [(3, 0.1, 2.0), (10, 0.5, 1.0), (40, 0.01, 3.0)]:
        moment = sum(
            math.comb(n, k) * q**k * (1 - q) ** (n - k) * (k * B / n) ** s for k in range(n + 1)
        )
        sharp = b.rosenthal_young(q * B, B, n, s, sharp=True)
        assert moment <= sharp * (1 + 1e-12)
        assert sharp <= b.rosenthal_young(q * B, B, n, s)


# -- Lemma C.1 ------------------------------------------------------------------------------------


def blocks(rng, sizes):
    return [rng.normal(size=k) for k in sizes]


@pytest.mark.parametrize("p", NORMS)
def test_block_holder_on_random_blocks(rng, p):
    for _ in range(200):
        sizes = rng.integers(1, 5, size=rng.integers(1, 6))
        v, w = blocks(rng, sizes), blocks(rng, sizes)
        left, right = b.block_holder(v, w, p)
        assert left == pytest.approx(np.concatenate(v) @ np.concatenate(w))
        assert left <= right * (1 + 1e-12)
        assert b.block_holder(v, [-one for one in w], p) == pytest.approx((-left, right))
        norms = [np.linalg.norm(one) for one in w]
        dual = 1.0 if math.isinf(p) else math.inf if p == 1 else p / (p - 1)
        expected = b.block_norm([np.linalg.norm(one) for one in v], p) * b.block_norm(norms, dual)
        assert right == pytest.approx(expected)


@pytest.mark.parametrize("p", [1.0, 1.2, 4 / 3, 2.0, 3.0, 10.0])
def test_block_holder_is_tight(rng, p):
    """``w_m = ||v_m||^(p-2) v_m``: the supremum of linear functions over a ball is attained."""
    v = blocks(rng, [3, 1, 4, 2])
    w = [2.5 * np.linalg.norm(one) ** (p - 2) * one for one in v]
    left, right = b.block_holder(v, w, p)
    assert left == pytest.approx(right, rel=1e-12)
    # For p = infinity all weight lies where the block is largest.
    m = int(np.argmax([np.linalg.norm(one) for one in v]))
    w = [one * (k == m) for k, one in enumerate(v)]
    assert b.block_holder(v, w, math.inf) == pytest.approx((left_of(v[m]),) * 2)


def left_of(block):
    return float(block @ block)


# -- Lemma C.3 ------------------------------------------------------------------------------------

numbers = st.lists(st.floats(0, 1e3), min_size=4, max_size=4)


@given(numbers, numbers, st.sampled_from(NORMS))
def test_sum_of_norms_on_any_vectors(a, c, s):
    left, right = b.sum_of_norms(a, c, s)
    assert left <= right * (1 + 1e-12)
    assert right <= 2 * float(np.linalg.norm(np.add(a, c), s)) * (1 + 1e-12)
    assert left == pytest.approx(np.linalg.norm(a, s) + np.linalg.norm(c, s))


@pytest.mark.parametrize("s", NORMS)
def test_sum_of_norms_is_tight(rng, s):
    a, zeros = rng.random(3), np.zeros(3)
    left, right = b.sum_of_norms([*a, *zeros], [*zeros, *a], s)
    assert left == pytest.approx(right, rel=1e-12)
    # Parallel vectors are the other end: the triangle inequality is an equality, the factor is not.
    left, right = b.sum_of_norms(a, 2 * a, s)
    assert right == pytest.approx(left * (2.0 if math.isinf(s) else 2 ** (1 - 1 / s)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.multinomial_bound([0, 0]), "not all be 0"),
        (lambda: b.multinomial_bound([1.5]), "counts must be an integer"),
        (lambda: b.poisson_moment_bound(0.5), r"s must be a number in \[1, inf\)"),
        (lambda: b.poisson_moment(1e9), r"s must be a number in \[0, 200\]"),
        (lambda: b.block_holder([[1.0]], [[1.0, 2.0]], 2), "same lengths"),
        (lambda: b.block_holder([[1.0]], [[1.0], [2.0]], 2), "same lengths"),
        (lambda: b.sum_of_norms([1.0, -1.0], [1.0, 1.0], 2), "a must be a vector.*none below 0"),
        (lambda: b.sum_of_norms([1.0], [1.0, 1.0], 2), "b must be a vector.*1 entries; got 2"),
        (lambda: b.sum_of_norms([1.0], [1.0], 0.5), "s must be a number"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
