"""Stability: formulas, repaired statements that hold, printed ones that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from multikernel import bounds as b

from ..naive_alignment import moments


def ridge(K, y, lam):
    return np.linalg.solve(K + lam * np.eye(len(K)), y)


def test_formulas():
    assert b.ridge_stability(100, 2.0, 3.0, 0.1, 5.0) == pytest.approx(12 / (5 + 10))
    assert b.residual_bound(2.0, 4.0, 0.25) == pytest.approx(2 + 2 * 2 / 0.5)
    root = math.sqrt(math.log(20) / 200)
    args = (0.3, 0.01, 100, 2.0, 0.05)
    assert b.stability_bound(*args) == pytest.approx(0.32 + (4 + 4) * root)
    assert b.stability_bound(*args, replaced=True) == pytest.approx(0.31 + (2 + 4) * root)
    assert b.stability_bound(*args, as_printed=True) == pytest.approx(0.32 + (4 + 2) * root)


def test_printed_loss_bound_fails_for_large_errors():
    # A predictor that does not learn has beta = 0; the risk of y = ±M is M^2 on one label only.
    # With M in place of M^2 the deviation of the mean of squares is not covered.
    M, m, delta = 40.0, 50, 0.05
    rng = np.random.default_rng(0)
    fails = {True: 0, False: 0}
    for _ in range(2000):
        y = np.where(rng.random(m) < 0.5, M, 0.0)
        risk, truth = np.mean(y**2), 0.5 * M**2
        for printed in fails:
            bound = b.stability_bound(risk, 0.0, m, M, delta, as_printed=printed)
            fails[printed] += truth > bound
    assert fails[False] <= 2000 * delta
    assert fails[True] > 2000 * 0.3


@pytest.mark.parametrize("seed", range(20))
def test_theorem_2_2_holds(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        m, d = int(rng.integers(3, 10)), int(rng.integers(1, 6))
        pool = rng.standard_normal((m + 9, d))
        pool /= np.maximum(np.linalg.norm(pool, axis=1, keepdims=True), 1.0)
        y = rng.uniform(-1, 1, m + 9)
        K = pool @ pool.T
        lam0 = 10.0 ** rng.uniform(-2, 1)
        S = np.arange(m)
        T = S.copy()
        T[-1] = m
        new = np.arange(m + 1, m + 9)
        out = [K[np.ix_(new, I)] @ ridge(K[np.ix_(I, I)], y[I], lam0 * m) for I in (S, T)]
        low = min(np.linalg.eigvalsh(K[np.ix_(I, I)])[0] for I in (S, T))
        M = b.residual_bound(1.0, 1.0, lam0)
        bound = b.ridge_stability(m, 1.0, M, lam0, max(low, 0.0))
        assert np.abs(out[0] - out[1]).max() <= bound


def test_learned_ridge_shape_and_its_scaling():
    args = {"m": 50, "p": 9, "R": 1.5, "M": 2.0, "Lambda": 0.7, "lambda_0": 0.3}
    found = b.learned_ridge_stability_shape(**args, smallest_eigenvalue=1.0)
    scale = 1.0 + 15.0
    C0 = 2 * 1.5**2 * 2 + 8 * 0.7 * 1.5**2 * 2 * (1.5**2 / 0.3 + 1)
    C1 = 32 * 0.49 * 2 * 1.5**4 / 0.3
    assert found.constant == pytest.approx(C0)
    assert found.per_root_p == pytest.approx(C1)
    assert found.loss == pytest.approx(2 * 2 * (C0 + 3 * C1) / scale)
    printed = b.learned_ridge_stability_shape(**args, smallest_eigenvalue=1.0, as_printed=True)
    assert printed.prediction_kernel == pytest.approx(
        4 * 0.7 * 2 * 1.5 * ((4 * 0.7 * 2.25 * 3 + 2.25) / 0.3 + 1) / scale
    )
    # Multiplying kernels and ridge by c changes no prediction. As printed the bound falls with c
    # (so that it must fail in the end), repaired it does not change.
    for c in (1e2, 1e8):
        scaled = dict(args, R=1.5 * math.sqrt(c), lambda_0=0.3 * c)
        now = b.learned_ridge_stability_shape(**scaled, smallest_eigenvalue=c)
        assert now.prediction_kernel == pytest.approx(found.prediction_kernel)
        fallen = b.learned_ridge_stability_shape(**scaled, smallest_eigenvalue=c, as_printed=True)
        assert fallen.prediction_kernel == pytest.approx(
            printed.prediction_kernel / math.sqrt(c), rel=1e-6
        )


def two_stage_problem(rng):
    """Kernels fixed in advance, two samples that differ in one point, weights learned on each."""
    m, p, d = int(rng.integers(4, 10)), int(rng.integers(1, 4)), 3
    pool = rng.standard_normal((p, m + 6, d))
    pool /= np.maximum(np.linalg.norm(pool, axis=2, keepdims=True), 1.0)
    Ks = np.einsum("kid,kjd->kij", pool, pool)
    y = rng.uniform(-1, 1, m + 6)
    mu = rng.dirichlet(np.ones(p), size=2)
    return m, Ks, y, mu


def test_theorem_16_repaired_is_never_violated():
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(3000):
        m, Ks, y, mu = two_stage_problem(rng)
        lam0 = 10.0 ** rng.uniform(-2, 1)
        S = np.arange(m)
        T = S.copy()
        T[-1] = m
        new = np.arange(m + 1, m + 6)
        out = []
        for index, weights in ((S, mu[0]), (T, mu[1])):
            K = np.tensordot(weights, Ks, 1)
            alpha = ridge(K[np.ix_(index, index)], y[index], lam0 * m)
            out.append(K[np.ix_(new, index)] @ alpha)
        norms = [max(np.linalg.norm(K[np.ix_(index, index)], 2) for index in (S, T)) for K in Ks]
        for s in (1.0, 2.0):
            bound = b.two_stage_stability(m, 1.0, 1.0, 1.0, lam0, mu[1] - mu[0], norms, s=s)
            worst = max(worst, np.abs(out[0] - out[1]).max() / bound)
    assert 0 < worst < 1


@pytest.mark.parametrize("m", [100, 1000])
def test_theorem_16_as_printed_fails_at_a_new_point(m):
    # Both kernels are the identity on the sample; at x they differ.
    true = math.sqrt(m) / (1 + m)
    at_x = np.full(m, 1 / math.sqrt(m))
    alpha = ridge(np.eye(m), np.ones(m), 1.0 * m)
    assert at_x @ alpha == pytest.approx(true)
    args = (m, 1.0, 1.0, 1.0, 1.0, [1.0, 1.0], [1.0, 1.0])
    printed = b.two_stage_stability(*args, as_printed=True)
    assert printed == pytest.approx(4 / m)
    assert printed < true <= b.two_stage_stability(*args)


@pytest.mark.parametrize(("lam0", "s", "ratio"), [(0.1, 0.6, 1.56), (0.01, 0.65, 3.2)])
def test_theorem_16_as_printed_fails_for_a_fixed_kernel(lam0, s, ratio):
    # Labels do not bound residuals.
    m = 10_000
    X = np.zeros((m, 2))
    X[:-1, 0] = math.sqrt(lam0)
    y = np.ones(m)
    predictions = []
    for last, label in (((-s, math.sqrt(1 - s * s)), 1.0), ((s, math.sqrt(1 - s * s)), -1.0)):
        X[-1], y[-1] = last, label
        w = np.linalg.solve(X.T @ X + lam0 * m * np.eye(2), X.T @ y)
        predictions.append(w)
    moved = np.linalg.norm(predictions[0] - predictions[1])  # the sup over |x| <= 1
    args = (m, 1.0, 1.0, 1.0, lam0, [0.0], [1.0])
    printed = b.two_stage_stability(*args, as_printed=True)
    assert moved / printed == pytest.approx(ratio, rel=0.02)
    assert moved <= b.two_stage_stability(*args)


def test_theorem_17_terms():
    m, total, R2, M, lam0, delta, change = 200, 1.3, 2.0, 0.9, 0.4, 0.05, 0.01
    M1, M2 = 2 * M * (1 + math.sqrt(total * R2 / lam0)), m * change
    root = math.sqrt(math.log(1 / delta) / (2 * m))
    found = b.two_stage_bound(0.2, change, m, total, R2, M, lam0, delta)
    assert found == pytest.approx(0.2 + 2 * M1 * M2 / m + (4 * M1 * M2 + M1**2 / 4) * root)
    beta = M1 * M2 / m
    assert found == pytest.approx(b.stability_bound(0.2, beta, m, M1 / 2, delta))
    printed = b.two_stage_bound(0.2, change, m, total, R2, M, lam0, delta, as_printed=True)
    assert printed == pytest.approx(0.2 + 2 * M1 * M2 / m + (1 + 16 * M2 / M1) * M1 * M2 / 4 * root)


def test_theorem_17_holds_on_a_finite_distribution():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((2, 15, 2))
    A /= np.linalg.norm(A, axis=2, keepdims=True)
    Ks = np.einsum("kid,kjd->kij", A, A)
    y = np.sign(A[0, :, 0])
    m, lam0 = 60, 0.5
    for _ in range(200):
        S = rng.integers(0, 15, m)
        a = np.array([y[S] @ K[np.ix_(S, S)] @ y[S] for K in Ks])
        mu = a / a.sum()
        K = np.tensordot(mu, Ks, 1)
        f = K[:, S] @ ridge(K[np.ix_(S, S)], y[S], lam0 * m)
        change = b.two_stage_stability(m, 1.0, 1.0, 1.0, lam0, [2.0], [float(m)])
        bound = b.two_stage_bound(np.mean((f - y)[S] ** 2), change, m, 1.0, 1.0, 1.0, lam0, 0.05)
        assert np.mean((f - y) ** 2) <= bound


def test_lemma_20_identity(rng):
    for _ in range(50):
        v, w = rng.random(5), rng.random(5)
        slow = w / np.linalg.norm(w) - v / np.linalg.norm(v)
        assert b.weight_change(v, w) == pytest.approx(slow, abs=1e-14)
        assert b.weight_change(v, w, 3.0) == pytest.approx(3 * slow, abs=1e-14)
    # No cancellation: the change of direction from a change of one part in 1e12.
    v = np.array([1.0, 2.0])
    w = v + np.array([1e-12, 0.0])
    exact = 1e-12 * np.array([4.0, -2.0]) / 5**1.5
    assert b.weight_change(v, w) == pytest.approx(exact, rel=1e-4)


def test_proposition_21(rng):
    for _ in range(100):
        X = rng.standard_normal((13, 3))
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
        solved = []
        for rows in (np.arange(12), np.r_[np.arange(11), 12]):
            Ks = [np.exp(-g * ((X[rows, None] - X[None, rows]) ** 2).sum(2)) for g in (0.1, 1, 4)]
            a, M = moments(Ks, y[rows])
            L = np.linalg.cholesky(M)
            v, _ = nnls(L.T, np.linalg.solve(L, a))
            solved.append((M, a, v))
        (M, a, v), (M_new, a_new, v_new) = solved
        left, right = b.alignf_change(M, M_new, a, a_new, v, v_new)
        assert left <= right + 1e-9 * (abs(left) + abs(right))
        bound = b.alignf_change_bound(M, M_new, a, a_new, v_new)
        assert np.linalg.norm(v_new - v) <= bound * (1 + 1e-9)
        largest = max(np.linalg.norm(v), np.linalg.norm(v_new))
        assert np.linalg.norm(b.weight_change(v, v_new)) <= 2 * np.linalg.norm(v_new - v) / largest


def test_monotone():
    def change(m=100, moves=0.5, lam0=0.5):
        return b.two_stage_stability(m, 1.0, 1.0, 1.0, lam0, [moves, moves], [5.0, 3.0])

    assert change(m=1000) < change() < change(m=10)
    assert change(moves=0.0) < change() < change(moves=1.0)
    assert change(lam0=5.0) < change()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.ridge_stability(10, 1.0, 1.0, 0.0), "regularisation"),
        (lambda: b.ridge_stability(10, math.inf, 1.0, 1.0), "bounded kernel"),
        (lambda: b.ridge_stability(10, 1.0, 1.0, 1.0, -1.0), "PSD"),
        (lambda: b.stability_bound(0.1, 0.1, 10, 1.0, 1.0), "delta"),
        (lambda: b.two_stage_stability(10, 1, 1, 1, 1, [1, 1], [1]), "one entry per kernel"),
        (lambda: b.two_stage_stability(10, 0, 1, 1, 1, [1], [1]), "not all zero"),
        (lambda: b.weight_change([0.0], [1.0]), "zero"),
        (lambda: b.alignf_change_bound(np.ones((2, 2)), np.eye(2), [1, 1], [1, 1], [1, 1]), "M"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
