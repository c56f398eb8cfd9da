"""Complexities of classes with learned kernels: exact values, bounds above and below."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from multikernel import bounds as b
from multikernel.bounds import montecarlo
from multikernel.bounds.rademacher import conjugate, eta, norm, not_negative

from ..naive_alignment import given_grams

X_F1 = np.array([-1.5, -0.5, 0.0, 0.5, 2.0])
F1 = [np.outer(X_F1, X_F1), np.exp(-((X_F1[:, None] - X_F1) ** 2)), (np.outer(X_F1, X_F1) + 1) ** 2]
TRACES_F1 = [6.75, 5.0, 39.6875]


def random_kernels(rng, p=4, n=8):
    parts = [rng.standard_normal((n, rng.integers(1, n + 1))) for _ in range(p)]
    return [A @ A.T * rng.choice([0.1, 1.0, 5.0]) for A in parts]


def enumerated(kernels, q):
    """Proposition 2.5 by visiting every sign vector."""
    n, r = len(kernels[0]), conjugate(q)
    total = 0.0
    for signs in itertools.product([-1.0, 1.0], repeat=n):
        s = np.array(signs)
        u = np.array([s @ K @ s for K in kernels])
        total += math.sqrt(u.max() if math.isinf(r) else np.sum(u**r) ** (1 / r))
    return total / 2**n / n


@pytest.mark.parametrize(
    ("q", "value"),
    [(1, 1.2402934918), (4 / 3, 1.2423405624), (1.5, 1.2471052374), (2, 1.2676140521)],
)
def test_golden_fixture(q, value):
    found = b.rademacher_lq_exact(F1, q)
    assert found.exact
    assert found.value == pytest.approx(value, abs=2e-10)


@pytest.mark.parametrize(
    ("r", "value"), [(1, 1.4666365355), (2, 1.8419702421), (3, 2.2339281154), (4, 2.5769055986)]
)
def test_golden_trace_bounds(r, value):
    assert b.rademacher_l1(TRACES_F1, 5, r=r) == pytest.approx(value, abs=2e-10)


@pytest.mark.parametrize("q", [1.0, 1.2, 1.5, 2.0, 5.0, math.inf])
def test_exact_against_enumeration(q, rng):
    kernels = random_kernels(rng)
    assert b.rademacher_lq_exact(kernels, q).value == pytest.approx(enumerated(kernels, q))
    assert b.rademacher_lq_exact(kernels, q, radius=3.0).value == pytest.approx(
        3 * enumerated(kernels, q)
    )


def test_drawing_agrees_with_enumeration_and_its_interval_is_never_left(rng, monkeypatch):
    kernels = random_kernels(rng, n=9)
    truth = enumerated(kernels, 1.5)
    monkeypatch.setattr(montecarlo, "ENUMERATE", 0)
    outside = 0
    for seed in range(200):
        found = b.rademacher_lq_exact(kernels, 1.5, n_draws=50, random_state=seed)
        low, high = found.interval(0.9)
        outside += not low <= truth <= high
        assert found.upper(0.01) > found.upper(0.1) > found.value > found.lower(0.1)
    assert outside == 0  # McDiarmid is generous
    assert abs(found.value - truth) < 5 * found.standard_error


def test_grams_and_matrices_give_the_same(rng):
    kernels = random_kernels(rng, n=40)
    bank = given_grams(kernels, False, None)
    for q in (1.0, 2.0):
        of_grams = b.rademacher_lq_exact(bank, q, n_draws=64)
        of_matrices = b.rademacher_lq_exact(kernels, q, n_draws=64)
        assert of_grams.value == pytest.approx(of_matrices.value, rel=1e-10)
        assert of_grams.scale == pytest.approx(of_matrices.scale, rel=1e-10)


def test_the_same_class_in_kloft_words(rng):
    kernels = random_kernels(rng)
    for q, p in [(1.0, 1.0), (2.0, 4 / 3), (math.inf, 2.0)]:
        assert b.rademacher_lq_exact(kernels, q).value == pytest.approx(
            b.rademacher_block_exact(kernels, p).value
        )


def test_structure_of_the_exact_value(rng):
    kernels = random_kernels(rng)
    values = [b.rademacher_lq_exact(kernels, q).value for q in (1, 1.3, 2, 4, math.inf)]
    assert values == sorted(values)  # the classes grow with q
    with_zero = [*kernels, np.zeros((8, 8))]
    for q in (1.0, 2.0):
        assert b.rademacher_lq_exact(with_zero, q).value == pytest.approx(
            b.rademacher_lq_exact(kernels, q).value
        )
    copied = [*kernels, kernels[0]]
    assert b.rademacher_lq_exact(copied, 1).value == pytest.approx(values[0])


def test_equal_kernels_scale_exactly(rng):
    K = random_kernels(rng, p=1)[0]
    one = b.rademacher_lq_exact([K], 2).value
    for p, q in [(3, 2.0), (5, 1.5), (4, math.inf), (7, 1.0)]:
        many = b.rademacher_lq_exact([K] * p, q).value
        assert b.rademacher_equal_kernels(one, p, q) == pytest.approx(many)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    kernels = random_kernels(rng, p=int(rng.integers(1, 7)), n=n)
    traces = [np.trace(K) for K in kernels]
    R2 = max(np.diag(K).max() for K in kernels)
    p = len(kernels)
    for q in (1.0, 4 / 3, 1.7, 2.0, 2.5, math.inf):
        exact = b.rademacher_lq_exact(kernels, q).value
        assert b.rademacher_lower(traces, n, q) <= exact * (1 + 1e-12)
        sharp = b.rademacher_lq(traces, n, q, sharp=True)
        loose = b.rademacher_lq(traces, n, q)
        assert exact <= sharp * (1 + 1e-12)
        assert sharp <= loose * (1 + 1e-12)
        if q > 1:
            assert loose <= b.rademacher_lq_uniform(p, n, q, R2) * (1 + 1e-12)
    for r in range(1, 9):
        for sharp in (True, False):
            bound = b.rademacher_l1(traces, n, r=r, sharp=sharp)
            assert b.rademacher_lq_exact(kernels, 1).value <= bound * (1 + 1e-12)
    if p > 1:
        best = b.rademacher_l1(traces, n)
        assert best <= b.rademacher_l1_traces(traces, n) <= b.rademacher_l1_uniform(p, n, R2)


def test_trace_form_as_printed_is_too_large():
    # SLIP-6: m inside the root. The repaired one still bounds, the printed one is sqrt(m) larger.
    repaired = b.rademacher_l1_traces([9.0, 4.0], 16)
    assert b.rademacher_l1_traces([9.0, 4.0], 16, as_printed=True) == pytest.approx(4 * repaired)
    assert repaired == pytest.approx(math.sqrt(23 / 22 * math.e * 1 * 9) / 16)


@pytest.mark.parametrize("r", range(1, 9))
def test_moment_bound(r, rng):
    K = random_kernels(rng, p=1, n=7)[0]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=7)))
    moment = float(np.mean(np.einsum("si,ij,sj->s", signs, K, signs) ** r))
    sharp = b.moment_bound(np.trace(K), r, sharp=True)
    assert moment <= sharp * (1 + 1e-12) <= b.moment_bound(np.trace(K), r) * (1 + 1e-11)
    if r == 1:
        assert moment == pytest.approx(sharp)
    double = math.prod(range(1, 2 * r, 2))
    assert eta(r, sharp=True) == pytest.approx(double ** (1 / r) / r)


def test_sharp_constants_of_the_digest():
    expected = [1, 0.866, 0.822, 0.800, 0.787, 0.779, 0.772, 0.768]
    assert [round(eta(r, sharp=True), 3) for r in range(1, 9)] == expected


def test_choosing_r_is_free_and_complete(rng):
    for _ in range(20):
        u = rng.random(int(rng.integers(1, 200))) ** 3 * 100
        for sharp in (True, False):
            slow = min(b.rademacher_l1(u, 50, r=r, sharp=sharp) for r in range(1, 40))
            assert b.rademacher_l1(u, 50, sharp=sharp) == pytest.approx(slow)


def test_lower_bound_of_the_hypercube():
    for p, m in [(1, 5), (3, 4), (2, 6)]:
        total = 0.0
        for signs in itertools.product([-1, 1], repeat=p * m):
            total += max(abs(sum(signs[k * m : (k + 1) * m])) for k in range(p))
        assert b.rademacher_lower_l1(p, m) == pytest.approx(total / 2 ** (p * m) / m)
    # of the order sqrt(2 log(2p)/m), and below the bound of Theorem 2.6 for every p
    for p in (2, 10, 1000, 10**6):
        low, high = b.rademacher_lower_l1(p, 4000), b.rademacher_l1_uniform(p, 4000, 1.0)
        assert 0.6 * math.sqrt(2 * math.log(2 * p) / 4000) < low < high
    # One coordinate: E |sum of signs| / m tends to sqrt(2 / (pi m)).
    assert b.rademacher_lower_l1(1, 10**8) == pytest.approx(math.sqrt(2e-8 / math.pi), rel=1e-7)
    with pytest.raises(b.AssumptionError, match=r"m must be at most 1e\+12"):
        b.rademacher_lower_l1(1, 10**13)


@pytest.mark.parametrize(("r", "bound"), [(2, 0.323), (4, 0.457), (6, 0.560)])
def test_linear_class(r, bound, rng):
    assert b.rademacher_linear(1.0, 1.0, 10, r) == pytest.approx(bound, abs=5e-4)
    q = r / (r - 1)
    for _ in range(20):
        points = rng.standard_normal((10, 6))
        points /= np.sum(np.abs(points) ** r, axis=1, keepdims=True) ** (1 / r)
        exact = b.rademacher_linear_exact(points, q)
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
        slow = np.mean(np.sum(np.abs(signs @ points) ** r, axis=1) ** (1 / r)) / 10
        assert exact.value == pytest.approx(slow)
        sharp = b.rademacher_linear(1.0, 1.0, 10, r, sharp=True)
        assert exact.value <= sharp <= b.rademacher_linear(1.0, 1.0, 10, r)


def test_norms_neither_overflow_nor_underflow():
    v = np.array([1e-200, 2e-200])
    assert norm(v, 50.0) == pytest.approx(2e-200)
    assert norm(1e200 * np.array([3.0, 4.0]), 2.0) == pytest.approx(5e200)
    assert norm(np.zeros(3), 2.0) == 0.0
    assert norm(np.array([1.0, 1.0]), 0.5) == pytest.approx(4.0)


@pytest.mark.parametrize("r", [2.0, 2.5, 3.0, 4.0, 6.0, 11.0])
def test_kakades_bound_holds_on_any_points(rng, r):
    q = r / (r - 1)
    for _ in range(20):
        A = rng.standard_normal((10, 4)) * rng.choice([0.1, 1.0, 10.0], size=4)
        X = float(norm(np.abs(A), r, axis=1).max())
        exact = b.rademacher_linear_exact(A, q, W=1.7).value  # all 2^9 signs
        assert exact <= b.rademacher_linear_kakade(X, 1.7, 10, r) * (1 + 1e-12)


def test_theorem_29_against_kakades_bound():
    """The digits of section 2.4.3 at m = 10: Theorem 2.9 is smaller for even r above 2."""
    ours = [b.rademacher_linear(1.0, 1.0, 10, r) for r in (2, 4, 6)]
    theirs = [b.rademacher_linear_kakade(1.0, 1.0, 10, r) for r in (2, 4, 6)]
    assert ours == pytest.approx([0.323, 0.457, 0.560], abs=5e-4)
    assert theirs == pytest.approx([0.316, 0.548, 0.707], abs=5e-4)
    for r in range(4, 40, 2):
        assert b.rademacher_linear(1.0, 1.0, 10, r) < b.rademacher_linear_kakade(1.0, 1.0, 10, r)
    sharp = b.rademacher_linear(1.0, 1.0, 10, 2, sharp=True)
    assert sharp == pytest.approx(theirs[0])


def test_kakades_bound_is_nearly_attained():
    """One point many times, r = 2: E |sum of m signs| is sqrt(2 m / pi)."""
    found = b.rademacher_linear_exact(np.ones((400, 1)), 2.0, n_draws=20_000)
    ratio = found.value / b.rademacher_linear_kakade(1.0, 1.0, 400, 2)
    assert ratio == pytest.approx(math.sqrt(2 / math.pi), abs=0.02)


def test_monotone_in_the_sample_and_the_bank():
    assert b.rademacher_l1_uniform(10, 100, 1.0) > b.rademacher_l1_uniform(10, 1000, 1.0)
    assert b.rademacher_l1_uniform(100, 100, 1.0) > b.rademacher_l1_uniform(10, 100, 1.0)
    assert b.rademacher_lq_uniform(100, 100, 2, 1.0) > b.rademacher_lq_uniform(10, 100, 2, 1.0)


def test_rounding_below_zero_is_clipped_and_more_is_refused():
    values = np.array([[2.0, -1e-9, 0.5], [3.0, 1.0, 0.0]])
    np.testing.assert_array_equal(not_negative(values), np.maximum(values, 0.0))
    with pytest.raises(b.AssumptionError, match="kernel 0 has a quadratic form of -1e-09"):
        not_negative(np.array([[0.05, -1e-9, 0.02], [3.0, 1.0, 0.0]]))
    # A form that should be zero has no larger one beside it; what is forgiven is said.
    alone = np.array([[4.0], [-1e-9]])
    with pytest.raises(b.AssumptionError, match="kernel 1"):
        not_negative(alone)
    np.testing.assert_array_equal(not_negative(alone, np.array([0.0, 2e-9])), [[4.0], [0.0]])
    with pytest.raises(b.AssumptionError, match="kernel 1"):
        not_negative(alone, np.array([2e-9, 0.0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.rademacher_l1([1.0, -1.0], 5), "positive semidefinite"),
        (lambda: b.rademacher_l1([1.0, np.inf], 5), "finite trace"),
        (lambda: b.rademacher_l1_uniform(1, 5, 1.0), "p must be"),
        (lambda: b.rademacher_l1_uniform(3, 5, np.inf), "bounded kernel"),
        (lambda: b.rademacher_lq([1.0], 5, 0.5), "at least 1"),
        (lambda: b.rademacher_l1([1.0], 0), "m must be"),
        (lambda: b.rademacher_linear(1, 1, 5, 3), "even"),
        (lambda: b.rademacher_lq_exact([-np.eye(4)], 1), "positive semidefinite"),
        (lambda: b.rademacher_lq_exact([np.triu(np.ones((3, 3)))], 1), "symmetric"),
        (lambda: b.rademacher_lq_exact([np.eye(3)], 1, radius=0.0), "radius"),
        (lambda: b.rademacher_lq_exact([np.eye(20)], 1).upper(0.0), "delta"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
