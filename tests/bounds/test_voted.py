"""Complexity lemmas and risk bounds of voted kernels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from multikernel import bounds as b

from ..naive import gaussian, polynomial, sigmoid


def enumerated(K):
    """Equation (3) by visiting every sign vector."""
    m = len(K)
    total = 0.0
    for signs in itertools.product([-1.0, 1.0], repeat=m):
        total += max(abs(sum(s * k for s, k in zip(signs, column, strict=True))) for column in K.T)
    return total / 2**m / m


def one_sided(columns):
    """``(1/m) E sup_j sum_i sigma_i c_ij`` by visiting every sign vector."""
    m = len(columns)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=m)))
    return float((signs @ columns).max(axis=1).mean()) / m


def test_empirical_complexity_visits_all_signs_of_few_points(rng):
    K = rng.standard_normal((7, 7))
    found = b.empirical_complexity(K)
    assert found.exact
    assert found.value == pytest.approx(enumerated(K), rel=1e-12)
    assert found.interval() == (found.value, found.value)


def test_empirical_complexity_by_drawing_agrees_with_enumeration(rng, monkeypatch):
    from multikernel.bounds import montecarlo

    K = rng.standard_normal((9, 9))
    truth = enumerated(K)
    monkeypatch.setattr(montecarlo, "ENUMERATE", 0)
    for seed in range(20):
        found = b.empirical_complexity(K, n_draws=400, random_state=seed)
        assert not found.exact
        low, high = found.interval(0.99)
        assert low <= truth <= high
        assert abs(found.value - truth) < 6 * found.standard_error


def test_rectangular_functions_are_allowed(rng):
    K = rng.standard_normal((6, 4))
    assert b.empirical_complexity(K).value == pytest.approx(enumerated(K))


@pytest.mark.parametrize("seed", range(50))
def test_lemma_3_never_below_the_exact_value(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10, 3))
    for K in (gaussian(X, X, 0.7), polynomial(X, X, 2), X @ X.T):
        exact = b.empirical_complexity(K).value
        kappa = math.sqrt(np.diag(K).max())
        bound = b.trace_complexity(np.trace(K), kappa, 10)
        assert bound == pytest.approx(kappa * math.sqrt(np.trace(K)) / 10)
        assert exact <= bound * (1 + 1e-12)


def test_lemma_4_counts_features_and_holds(rng):
    # (x.z + 1)^k has one feature for every monomial of degree at most k.
    for N, k in [(1, 3), (3, 2), (4, 5)]:
        monomials = sum(1 for e in itertools.product(range(k + 1), repeat=N) if sum(e) <= k)
        assert math.exp(b.log_feature_dimension(k, N)) == pytest.approx(monomials)
        assert b.degree_penalty(k, N, 2.0) == pytest.approx(4 * math.sqrt(monomials))
    X = rng.standard_normal((10, 3))
    for k in (1, 2, 3):
        K = polynomial(X, X, k)
        kappa = math.sqrt(np.diag(K).max())
        assert b.empirical_complexity(K).value <= b.degree_complexity(k, 3, kappa, 10)
    assert b.degree_penalty(2, 10**6, 1.0) > 1e5
    assert b.degree_penalty(500, 10**6) == math.inf  # no overflow on the way
    assert math.isfinite(b.log_feature_dimension(500, 10**6))


@pytest.mark.parametrize("seed", range(30))
def test_lemma_5_repaired_holds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 2)) * rng.choice([0.1, 1.0, 3.0])
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    for gamma in (0.01, 0.3, 5.0):
        bound = b.gaussian_complexity(gamma, one_sided(squares), 9)
        assert b.empirical_complexity(np.exp(-gamma * squares)).value <= bound


def test_lemma_5_as_printed_fails_when_all_points_coincide():
    K = np.ones((6, 6))
    exact = b.empirical_complexity(K).value
    assert exact > 0.3
    assert b.gaussian_complexity(1.0, 0.0, 6, as_printed=True) == 0.0 < exact
    assert b.gaussian_complexity(1.0, 0.0, 6) >= exact


@pytest.mark.parametrize("seed", range(30))
def test_lemma_6_repaired_holds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 2))
    linear = b.empirical_complexity(X @ X.T).value
    for a, shift in [(0.1, 0.0), (1.0, -0.5), (-2.0, 1.0)]:
        exact = b.empirical_complexity(sigmoid(X, X, a, shift)).value
        assert exact <= b.sigmoid_complexity(a, shift, linear, 9) * (1 + 1e-12)


def test_lemma_6_as_printed_fails_at_the_origin():
    exact = b.empirical_complexity(np.full((6, 6), math.tanh(1.0))).value
    assert b.sigmoid_complexity(1.0, 1.0, 0.0, 6, as_printed=True) == 0.0 < exact
    assert b.sigmoid_complexity(1.0, 1.0, 0.0, 6) >= exact


def test_local_complexity(rng):
    lam = np.sort(rng.random(20))[::-1]
    slow = math.sqrt(2 / 50 * sum(min(0.3, value) for value in lam))
    assert b.local_complexity(lam, 50, 0.3) == pytest.approx(slow)
    assert b.local_complexity(lam, 50) == pytest.approx(math.sqrt(2 * lam.sum() / 50))
    radii = [b.local_complexity(lam, 50, s) for s in (0.01, 0.1, 1.0, np.inf)]
    assert radii == sorted(radii)


def slow_theorem_1(error, rho, alpha, R, m, delta, factor):
    p = len(alpha)
    n = max(1, math.ceil(factor / rho**2 * math.log(rho**2 * m / math.log(p))))
    return (
        error
        + 4 / rho * sum(a * r for a, r in zip(alpha, R, strict=True))
        + 2 / rho * math.sqrt(math.log(p) / m)
        + math.sqrt(n * math.log(p) / m + math.log(2 / delta) / (2 * m))
    )


def test_theorem_1_against_its_formula():
    alpha, R = [0.2, 0.5, 0.3], [0.01, 0.002, 0.03]
    for printed, factor in [(False, 16.0), (True, 4.0)]:
        for rho in (0.1, 0.5, 1.0):
            found = b.voted_risk(0.1, rho, alpha, R, 10_000, 0.05, as_printed=printed)
            assert found == pytest.approx(slow_theorem_1(0.1, rho, alpha, R, 10_000, 0.05, factor))


def test_theorem_2_against_its_formula():
    alpha, R, rho, m, delta = [0.4, 0.6], [0.01, 0.02], 0.7, 50_000, 0.02
    for K in (1.2, 2.0, 5.0):
        ratio, lp = K / (K - 1), math.log(2)
        inside = rho**2 * (1 + ratio) * m / (40 * K * lp)
        printed = ratio * 0.1 + 6 * K / rho * 0.016 + 40 * K * lp / (rho**2 * m)
        n = math.ceil(8 / rho**2 * math.log(inside))
        printed += 5 * K * math.log(2 / delta) / m + 5 * K * n * lp / m
        found = b.local_voted_risk(0.1, rho, alpha, R, m, delta, K=K, as_printed=True)
        assert found == pytest.approx(printed)
        n = math.ceil(32 / rho**2 * math.log(inside))
        c = max(5 * K, 2 * K**2 + 14 * K / 3)
        mine = ratio * 0.1 + 12 * K / rho * 0.016 + 40 * K * lp / (rho**2 * m)
        mine += c * (math.log(2 / delta) + (2 * n - 1) * lp) / m
        found = b.local_voted_risk(0.1, rho, alpha, R, m, delta, K=K)
        assert found == pytest.approx(mine)
        assert found > printed


def test_the_local_bound_is_of_a_faster_rate():
    # With complexities of order 1/m the excess over the error falls like log(m)/m, not 1/sqrt(m).
    def excess(bound, m):
        return bound(0.0, 0.5, [0.5, 0.5], [1.0 / m, 1.0 / m], m, 0.05)

    slow = excess(b.voted_risk, 10**10) / excess(b.voted_risk, 10**8)
    fast = excess(b.local_voted_risk, 10**10) / excess(b.local_voted_risk, 10**8)
    assert slow == pytest.approx(0.1, rel=0.2)
    assert fast < 0.015


def test_theorem_1_is_monotone():
    def risk(error=0.1, rho=0.5, m=10_000, delta=0.05, R=0.01, p=4):
        return b.voted_risk(error, rho, [1 / p] * p, [R] * p, m, delta)

    assert risk(m=1000) > risk(m=10_000) > risk(m=10**6)
    assert risk(delta=0.001) > risk(delta=0.05)
    assert risk(rho=0.1) > risk(rho=0.5)
    assert risk(R=0.1) > risk(R=0.01)
    assert risk(p=64) > risk(p=4)


def test_functions_of_another_size_are_scaled_to_one():
    plain = b.voted_risk(0.1, 0.5, [0.5, 0.5], [0.01, 0.02], 10_000, 0.05)
    scaled = b.voted_risk(0.1, 1.5, [0.5, 0.5], [0.03, 0.06], 10_000, 0.05, bound=3.0)
    assert scaled == pytest.approx(plain)


def test_theorem_1_holds_for_stumps_on_a_finite_distribution():
    # Votes over two families of sign functions on eight atoms; the true risk is a finite sum.
    rng = np.random.default_rng(3)
    atoms = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    H = np.hstack([atoms, atoms[:, :1] * atoms[:, 1:2]])  # three coordinates, one product
    labels = np.where(atoms.sum(axis=1) > 0, 1.0, -1.0)
    m, delta = 4000, 0.05
    complexity = math.sqrt(2 * math.log(2 * 4) / m)  # Massart, of either family
    worst = 0.0
    for _ in range(300):
        S = rng.integers(0, 8, m)
        flips = rng.random(m) < 0.1
        y = np.where(flips, -labels[S], labels[S])
        alpha = rng.dirichlet(np.ones(4))
        f = H @ alpha
        true = np.mean(0.9 * (labels * f <= 0) + 0.1 * (labels * f >= 0))
        for rho in (0.3, 0.9):
            error = np.mean(y * f[S] <= rho)
            weights = [alpha[:3].sum(), alpha[3]]
            bound = b.voted_risk(error, rho, weights, [complexity] * 2, m, delta)
            worst = max(worst, true / bound)
    assert worst < 1


def test_expected_complexity_adds_the_deviation():
    assert b.expected_complexity(0.1, 200, 0.1, 2.0) == pytest.approx(
        0.1 + 2 * math.sqrt(2 * math.log(10) / 200)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.voted_risk(0.1, 0.0, [0.5, 0.5], [0.1, 0.1], 100, 0.05), "margin"),
        (lambda: b.voted_risk(0.1, 0.5, [0.5, 0.5], [0.1, 0.1], 100, 1.0), "delta"),
        (lambda: b.voted_risk(0.1, 0.5, [1.0], [0.1], 100, 0.05), "p > 1"),
        (lambda: b.voted_risk(0.1, 0.5, [0.9, 0.9], [0.1, 0.1], 100, 0.05), "convex hull"),
        (lambda: b.voted_risk(0.1, 0.5, [0.5, 0.5], [0.1, np.nan], 100, 0.05), "Rademacher"),
        (lambda: b.voted_risk(1.1, 0.5, [0.5, 0.5], [0.1, 0.1], 100, 0.05), "margin_error"),
        (lambda: b.local_voted_risk(0.1, 0.5, [0.5, 0.5], [0.1, 0.1], 100, 0.05, K=1), "K > 1"),
        (lambda: b.trace_complexity(1.0, np.inf, 10), "bounded kernel"),
        (lambda: b.trace_complexity(-1.0, 1.0, 10), "positive semidefinite"),
        (lambda: b.local_complexity([0.5, -0.2], 10), "positive semidefinite"),
        (lambda: b.gaussian_complexity(0.0, 1.0, 10), "gamma"),
        (lambda: b.empirical_complexity(np.zeros((0, 0))), "matrix"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
