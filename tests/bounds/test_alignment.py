"""Concentration of the alignment, and the predictors that a high alignment promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import multikernel as mk
from multikernel import bounds as b

from ..naive_alignment import center, rho


def population(rng, N=5):
    """Two kernels on N equally likely atoms, and their population-centred matrices."""
    kernels = []
    for _ in range(2):
        A = rng.standard_normal((N, 3))
        kernels.append(A @ A.T)
    return kernels, [center(K) for K in kernels]


def sample_product(K, L, S):
    m = len(S)
    return float(np.sum(center(K[np.ix_(S, S)]) * center(L[np.ix_(S, S)]))) / m**2


@pytest.mark.parametrize("m", [2, 3, 4])
def test_expected_product_is_exact(m, rng):
    (K, L), (Kc, Lc) = population(rng)
    every = [sample_product(K, L, S) for S in itertools.product(range(5), repeat=m)]
    found = b.expected_product(
        np.mean(Kc * Lc),
        np.mean(np.diag(Kc) * np.diag(Lc)),
        np.diag(Kc).mean(),
        np.diag(Lc).mean(),
        m,
    )
    assert found == pytest.approx(np.mean(every), rel=1e-10)
    R2, R2_other = np.diag(K).max(), np.diag(L).max()
    bias = abs(found - np.mean(Kc * Lc))
    assert bias <= b.product_bias(m, R2, R2_other, sharp=True)
    assert b.product_bias(m, R2, R2_other, sharp=True) < b.product_bias(m, R2, R2_other)


def test_one_point_moves_little():
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(2000):
        N, m = 12, int(rng.integers(2, 9))
        A = rng.standard_normal((N, 2))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        C = rng.standard_normal((N, 3))
        C /= np.linalg.norm(C, axis=1, keepdims=True)
        K, L = A @ A.T, C @ C.T
        S = rng.integers(0, N, m)
        T = S.copy()
        T[0] = rng.integers(0, N)
        moved = abs(sample_product(K, L, S) - sample_product(K, L, T))
        worst = max(worst, moved / b.product_perturbation(m))
    assert 0 < worst < 1


def test_values_of_proposition_11():
    assert b.product_concentration(50, 0.05) == pytest.approx(4.969549, abs=1e-6)
    assert b.product_concentration(800, 0.05) == pytest.approx(1.174887, abs=1e-6)
    assert b.product_concentration(50, 0.05, 2.0, 3.0) == pytest.approx(6 * 4.969549, rel=1e-6)


def gaussian_population(rng, N=60):
    X = rng.standard_normal((N, 3))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return K, y


def test_concentration_is_never_violated_and_the_rate_is_right():
    rng = np.random.default_rng(4)
    K, y = gaussian_population(rng)
    L = np.outer(y, y)
    Kc, Lc = center(K), center(L)
    truth, a, c = rho(K, L), np.mean(Kc**2), np.mean(Lc**2)
    delta = 0.05
    quantiles = []
    for m in (25, 100, 400):
        deviations = []
        for _ in range(250):
            S = rng.integers(0, 60, m)
            Ks, ys = mk.center(K[np.ix_(S, S)]), y[S] - y[S].mean()
            product, square, other = ys @ Ks @ ys, np.sum(Ks**2), np.sum(ys**2) ** 2
            off = abs(product / m**2 - np.mean(Kc * Lc))
            assert off <= b.product_concentration(m, delta)
            deviations.append(abs(product / math.sqrt(square * other) - truth))
            low, high = b.alignment_interval(product / m**2, square / m**2, other / m**2, m, delta)
            assert low <= truth <= high
        assert max(deviations) <= b.alignment_concentration(m, delta, a, c)
        quantiles.append(np.quantile(deviations, 0.95))
    slope = np.polyfit(np.log([25, 100, 400]), np.log(quantiles), 1)[0]
    assert -0.7 < slope < -0.3


def test_theorem_12_repaired_and_as_printed():
    m, delta, a, c = 500, 0.02, 0.3, 0.8
    root = math.sqrt(math.log(6 / delta) / (2 * m))
    assert b.alignment_concentration(m, delta, a, c) == pytest.approx(18 / 0.3 * (3 / m + 4 * root))
    found = b.alignment_concentration(m, delta, a, c, 2.0, 1.5)
    assert found == pytest.approx(18 * max(4 / 0.3, 2.25 / 0.8) * (3 / m + 4 * root))
    printed = b.alignment_concentration(m, delta, a, c, 2.0, 1.5, as_printed=True)
    assert printed == pytest.approx(18 * 3.0 / 0.3 * (3 / m + 8 * root))
    # With R' small the printed beta misses what the kernel's own norm needs.
    args = (m, delta, 0.3, 0.1, 1.0, 0.01)
    assert b.alignment_concentration(*args, as_printed=True) < b.alignment_concentration(*args)
    # beta >= 1: apart from its small term 54/m the bound says something from 12,410 points on, or
    # 49,637 with the printed 8.
    for n, printed, says in [
        (12_409, False, False),
        (12_410, False, True),
        (49_636, True, False),
        (49_637, True, True),
    ]:
        value = b.alignment_concentration(n, 0.05, 1.0, 1.0, as_printed=printed)
        assert (value - 54 / n < 1) == says


def test_interval_narrows_and_ends_up_informative():
    widths = []
    for m in (10**4, 10**6, 10**8):
        low, high = b.alignment_interval(0.5, 0.6, 0.9, m, 0.05)
        assert 0 <= low <= 0.5 / math.sqrt(0.54) <= high <= 1
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.05
    wide = b.alignment_interval(0.5, 0.6, 0.9, 10**8, 0.05, pairs=1000)
    assert wide[1] - wide[0] > widths[2]


def test_unnormalised_range_and_its_counter_example(rng):
    y = np.array([2.0, -2.0])
    found = b.alignment_predictor(np.outer(y, y) / 4, y)
    assert found.rho_u == pytest.approx(4.0)
    assert pytest.approx(1.0) == found.R2
    assert b.unnormalised_range(1.0, 2.0, as_printed=True)[1] == 2.0 < found.rho_u
    assert b.unnormalised_range(1.0, 2.0) == (0.0, 4.0)
    for _ in range(200):
        A, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
        found = b.alignment_predictor(A @ A.T, y)
        low, high = b.unnormalised_range(found.R2, np.abs(y).max())
        assert low - 1e-12 <= found.rho_u <= high


def test_predictors_against_loops(rng):
    A, y = rng.standard_normal((7, 2)), rng.choice([-1.0, 1.0], 7)
    y[0] = -y[1]
    P = rng.dirichlet(np.ones(7))
    K = A @ A.T
    found = b.alignment_predictor(K, y, P)
    mean = [sum(P[j] * K[i, j] for j in range(7)) for i in range(7)]
    grand = sum(P[i] * mean[i] for i in range(7))
    Kc = np.array([[K[i, j] - mean[i] - mean[j] + grand for j in range(7)] for i in range(7)])
    square = sum(P[i] * P[j] * Kc[i, j] ** 2 for i in range(7) for j in range(7))
    g = [sum(P[j] * y[j] * Kc[i, j] for j in range(7)) for i in range(7)]
    assert found.g == pytest.approx(np.array(g))
    assert found.h == pytest.approx(np.array(g) / math.sqrt(square))
    assert found.Gamma >= 1
    assert P @ (y * found.h) == pytest.approx(found.rho * found.variance)


def test_theorems_13_to_15_hold_on_every_finite_population():
    rng = np.random.default_rng(9)
    for _ in range(2000):
        n = int(rng.integers(3, 8))
        A = rng.standard_normal((n, int(rng.integers(1, 4))))
        y = rng.choice([-1.0, 1.0], n)
        y[0] = -y[1]
        P = rng.dirichlet(np.full(n, 0.5)) * 0.999 + 0.001 / n
        f = b.alignment_predictor(A @ A.T, y, P)
        error = P @ (y * f.h < -1e-12)
        assert error <= b.good_classifier(f.rho, f.Gamma, f.variance) + 1e-9
        assert error <= b.good_classifier_plain(f.rho, f.variance) + 1e-9
        assert error <= b.good_classifier_unnormalised(max(f.rho_u, 0), f.R2) + 1e-9
        assert P @ (y - f.h) ** 2 <= b.good_regressor(f.rho, f.variance) + 1e-9


def test_printed_theorems_fail_for_unbalanced_labels():
    x, y, P = np.array([-0.01, -1.0, 1.0]), np.array([1.0, -1, 1]), np.array([0.9, 0.045, 0.055])
    f = b.alignment_predictor(np.outer(x, x), y, P)
    error = P @ (y * f.h < 0)
    assert error == pytest.approx(0.9)
    printed = b.good_classifier(f.rho, f.Gamma, f.variance, as_printed=True)
    assert printed == pytest.approx(0.851, abs=1e-3)
    assert printed < error <= b.good_classifier(f.rho, f.Gamma, f.variance)
    # Two points, unequal parts: rho = 1, and yet h* misses the mean of y.
    y, P = np.array([1.0, -1.0]), np.array([0.8, 0.2])
    f = b.alignment_predictor(np.outer(y, y) + 1, y, P)
    assert f.rho == pytest.approx(1.0)
    risk = P @ (y - f.h) ** 2
    assert b.good_regressor(f.rho, f.variance, as_printed=True) == pytest.approx(0.0, abs=1e-12)
    assert 0 < risk <= b.good_regressor(f.rho, f.variance)


def test_equality_for_the_target_kernel():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    f = b.alignment_predictor(np.outer(y, y), y)
    assert f.h == pytest.approx(y)
    assert b.good_classifier(f.rho, f.Gamma) == pytest.approx(0.0)
    assert b.good_regressor(f.rho) == pytest.approx(0.0)


def test_golden_fixture():
    x = np.array([-1.5, -0.5, 0.0, 0.5, 2.0])
    y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    kernels = [np.outer(x, x), np.exp(-((x[:, None] - x) ** 2)), (np.outer(x, x) + 1) ** 2]
    found = [b.alignment_predictor(K, y) for K in kernels]
    expected = [0.6019900498, 0.5312534176, 0.4113341485]
    assert [f.rho for f in found] == pytest.approx(expected, abs=1e-9)
    assert [f.Gamma for f in found] == pytest.approx(
        [1.6413500086, 1.3500353171, 1.8348318135], abs=1e-9
    )
    assert [np.mean(y * f.h) for f in found] == pytest.approx(
        [0.5779104478, 0.5100032808, 0.3948807825], abs=1e-9
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.product_concentration(10, 0.0), "delta"),
        (lambda: b.product_concentration(10, 0.5, math.inf), "bounded kernel"),
        (lambda: b.alignment_concentration(10, 0.5, 0.0, 1.0), "undefined"),
        (lambda: b.alignment_predictor(np.ones((3, 3)), [1.0, -1.0, 1.0]), "undefined"),
        (lambda: b.alignment_predictor(np.eye(3), [1.0, 1.0, 1.0]), "undefined"),
        (lambda: b.good_classifier(-0.1, 1.0), r"\[0, 1\]"),
        (lambda: b.good_classifier(0.5, 1.0, 1.5), "Var y"),
        (lambda: b.good_classifier(0.5, 0.0), "Gamma"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
