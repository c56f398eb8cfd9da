"""Properties of align and alignf that hold for any data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

import multikernel as mk
from multikernel.weighting.alignment import _definite_factor, align_q, alignf
from multikernel.weighting.signed_alignment import alignf_signed
from tests.naive_alignment import (
    alignf_vec,
    center,
    combine,
    fit_given,
    gaussian,
    given_grams,
    moments,
    problem,
    rho,
    target_kernel,
)

# Where M is singular only the proximal term (2^-26) decides, so that rounding is seen through
# eps / 2^-26 = 1.5e-8 per proximal step, and weights of smallest norm are met to about 1e-6.
OPEN = 1e-6


def classifier(weighting, normalize=None):
    return mk.MultiKernelClassifier(weighting=weighting, normalize=normalize)


def check_kkt(Ks, y, v, tol):
    """v >= 0, Mv >= a, complementarity; in units of alignment, for kernels of unit norm."""
    a, M = moments(Ks, y)
    d = np.sqrt(np.diag(M))
    norm = np.sum((y - y.mean()) ** 2)
    slack = (M @ v - a) / (d * norm)
    assert np.all(v >= 0)
    assert np.all(slack >= -tol)
    assert np.all(np.abs(slack[v > 0]) <= tol)
    assert abs((v * d / norm) @ slack) <= tol


def grid(seed, n=40, p=20, low=-12, high=4):
    """Gaussians on a fine grid of widths: condition numbers of M beyond 1e16."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return [gaussian(X, 2.0**g) for g in np.linspace(low, high, p)], y


@pytest.mark.parametrize("seed", range(10))
def test_kkt_on_random_problems(seed):
    Ks, y = problem(seed, n=12 + 2 * seed, p=3 + seed, classes=seed % 2 == 0)
    a, M = moments(Ks, y)
    check_kkt(Ks, y, alignf(M, a), 1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_kkt_on_badly_conditioned_grids(seed):
    Ks, y = grid(seed, p=10 + 3 * seed)
    a, M = moments(Ks, y)
    d = np.sqrt(np.diag(M))
    assert np.linalg.cond(M / np.outer(d, d)) > 1e12
    v = alignf(M, a)
    check_kkt(Ks, y, v, 1e-9)
    assert 0 < np.count_nonzero(v) < len(v)
    best = rho(combine(alignf_vec(Ks, y), Ks), target_kernel(y))
    assert rho(combine(v, Ks), target_kernel(y)) == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_kkt_end_to_end_on_a_grid(seed):
    """Weights of the estimator, from the shared-distance waist, satisfy the same conditions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] > 0.2 * rng.standard_normal(40), 1.0, -1.0)
    gammas = 2.0 ** np.linspace(-10, 4, 15)
    model = mk.MultiKernelClassifier(mk.gaussians(gammas), "alignf", normalize="trace").fit(X, y)
    Ks = [center(gaussian(X, g)) for g in gammas]
    Ks = [K / np.trace(K) for K in Ks]
    a, M = moments(Ks, y)
    mu = model.kernel_weights_
    v = mu * (mu @ a) / (mu @ M @ mu)  # the scale at which v'Mv = v'a
    check_kkt(Ks, y, v, 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_equals_nnls_on_vectors(seed):
    """Where M is well conditioned the weights themselves are those of NNLS on vec matrices."""
    rng = np.random.default_rng(seed)
    Ks = [Z @ Z.T for Z in rng.standard_normal((6, 10, 2))]
    y = rng.standard_normal(10)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    expected = alignf_vec(Ks, y)
    assert_allclose(v, expected, rtol=1e-9, atol=0)
    assert np.array_equal(v == 0, expected == 0)


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_duplicates_share_equally(copies, scale):
    """Copies of a kernel share its weight equally, per kernel of unit norm."""
    Ks, y = problem(1, p=4)
    base = alignf(*moments(Ks, y)[::-1])
    k = int(np.argmax(base))
    bank = [*Ks, *[scale * Ks[k] for _ in range(copies - 1)]]
    v = alignf(*moments(bank, y)[::-1])
    shares = np.append(v[k], v[len(Ks) :] * scale)
    assert_allclose(shares, base[k] / copies, rtol=OPEN)
    assert_allclose(np.delete(v[: len(Ks)], k), np.delete(base, k), rtol=OPEN)
    assert np.array_equal(v[: len(Ks)] == 0, base == 0)


def test_copies_in_the_estimator():
    Ks, y = problem(1, p=4)
    bank = [*Ks, *[K.copy() for K in Ks]]
    weights = fit_given(classifier("alignf", "trace"), bank, y).kernel_weights_
    assert_allclose(weights[4:], weights[:4], rtol=OPEN)
    single = fit_given(classifier("alignf", "trace"), Ks, y).kernel_weights_
    assert_allclose(weights[4:] + weights[:4], single, rtol=OPEN)


@pytest.mark.parametrize("seed", range(8))
def test_sum_of_two_kernels_gives_minimum_norm(seed):
    """K3 = K1 + K2: v + t(1, 1, -1) are all optimal; the returned one has the least norm."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(20) > 0, 1.0, -1.0)
    K, L = gaussian(X, 1.0), X @ X.T
    Ks = [K, L, K + L]
    a, M = moments(Ks, y)
    d = np.sqrt(np.diag(M))
    two = np.linalg.solve(M[:2, :2], a[:2])
    assert np.all(two > 0)
    start, direction = d * np.append(two, 0.0), d * np.array([1.0, 1.0, -1.0])
    # along the line, u >= 0 allows -min(two) <= t <= 0
    t = np.clip(-(start @ direction) / (direction @ direction), -two.min(), 0.0)
    u = alignf(M, a) * d
    assert_allclose(u, start + t * direction, atol=OPEN * u.max())
    for order in ([2, 0, 1], [1, 0, 2], [1, 2, 0]):
        permuted = alignf(M[np.ix_(order, order)], a[order])
        assert_allclose(permuted * d[order], u[order], atol=OPEN * u.max())


def test_permutation_equivariance_with_many_dependences(rng):
    Ks, y = grid(0, p=8)
    Ks = [*Ks, Ks[0] + Ks[5], Ks[7].copy(), 2 * Ks[3] + Ks[5]]
    a, M = moments(Ks, y)
    d = np.sqrt(np.diag(M))
    u = alignf(M, a) * d
    for _ in range(5):
        order = rng.permutation(len(Ks))
        permuted = alignf(M[np.ix_(order, order)], a[order]) * d[order]
        assert_allclose(permuted, u[order], atol=OPEN * u.max())


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e6, 1e12])
def test_scaling_of_base_kernels(factor):
    """Scaling one kernel, or the target, leaves the combination where it was."""
    Ks, y = problem(3)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    assert np.any(v[1:] > 0) and v[0] >= 0
    for k in range(len(Ks)):
        s = np.ones(len(Ks))
        s[k] = factor
        w = alignf(M * np.outer(s, s), a * s)
        assert_allclose(w * s, v, rtol=1e-8, atol=1e-12 * v.max())
        assert np.array_equal(w == 0, v == 0)
    assert_allclose(alignf(M, factor * a), factor * v, rtol=1e-12)


def test_zeros_are_exact():
    Ks, y = grid(1)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    slack = (M @ v - a) / np.sqrt(np.diag(M))
    assert np.all(v[slack > 1e-6 * np.abs(slack).max()] == 0)
    weights = fit_given(classifier("alignf", "trace"), Ks, y).kernel_weights_
    assert np.array_equal(weights > 0, v > 0)
    assert np.sum(weights) == pytest.approx(1.0)


def test_singular_M():
    """Rank one M: the smallest weights with the right sum; a zero row gets weight zero."""
    v = alignf(np.ones((4, 4)), np.full(4, 2.0))
    assert_allclose(v, 0.5, rtol=OPEN)
    M = np.diag([1.0, 0.0, 4.0])
    assert_allclose(alignf(M, np.array([3.0, 0.0, 2.0])), [3, 0, 0.5], rtol=1e-9)
    assert_allclose(alignf_signed(M, np.array([3.0, 0.0, 2.0])), [3, 0, 0.5], rtol=1e-12)
    assert_allclose(alignf_signed(np.ones((4, 4)), np.full(4, 2.0)), 0.5, rtol=1e-12)


def test_kernels_of_single_precision_do_not_stop_alignf():
    """Two copies that rounding made more than equal: M has an eigenvalue of -1e-6."""
    C = np.array([[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]])
    L, prox = _definite_factor(C)
    assert_allclose(L @ L.T, C + prox * np.eye(2), rtol=1e-12)
    assert 1e-6 < prox < 1e-4
    assert_allclose(alignf(C, np.array([1.0, 1.0])), [0.5, 0.5], atol=1e-5)


@pytest.mark.parametrize("q", [1.5, 2.0, 4.0, np.inf])
def test_a_kernel_against_the_target_counts_for_nothing(q):
    """Indefinite kernels may have negative products with the target."""
    mu = align_q(np.array([-3.0, 2.0, 0.5]), q)
    expected = np.r_[0.0, align_q(np.array([2.0, 0.5]), q)]
    assert_allclose(mu, expected, rtol=1e-12)
    # Hölder: mu'a is the dual norm of what is positive, and no mu of norm one reaches more.
    dual = 1.0 if np.isinf(q) else q / (q - 1)
    assert mu @ [-3.0, 2.0, 0.5] == pytest.approx((2.0**dual + 0.5**dual) ** (1 / dual))
    assert not np.any(align_q(np.array([-1.0, 0.0]), q))


def test_nothing_but_constant_kernels_gives_nothing():
    for solve in (alignf, alignf_signed):
        assert not np.any(solve(np.zeros((3, 3)), np.zeros(3)))


def test_one_kernel():
    assert_allclose(alignf(np.array([[4.0]]), np.array([2.0])), [0.5], rtol=1e-12)
    assert_allclose(alignf_signed(np.array([[4.0]]), np.array([2.0])), [0.5], rtol=1e-12)
    Ks, y = problem(0)
    for weighting in ("uniform", "align", "alignf", mk.AlignF(signed=True), mk.Align(q=3)):
        assert_allclose(fit_given(classifier(weighting), Ks[:1], y).kernel_weights_, [1.0])


def test_no_kernel_is_aligned():
    """a = 0: v = 0, and the estimator says that it falls back to uniform weights."""
    assert np.all(alignf(np.eye(3), np.zeros(3)) == 0)
    assert np.all(alignf_signed(np.eye(3), np.zeros(3)) == 0)
    y = np.array([1.0, 1.0, -1.0, -1.0])
    Ks = [np.outer(f, f) for f in ([1.0, -1, 1, -1], [1.0, -1, -1, 1])]
    for weighting in ("align", "alignf", mk.Align(q=2), mk.AlignF(signed=True)):
        with pytest.warns(UserWarning, match="No kernel is aligned"):
            model = fit_given(classifier(weighting), Ks, y)
        assert_allclose(model.kernel_weights_, 0.5)
        assert model.alignment_ == pytest.approx(0.0, abs=1e-15)


def test_constant_kernels_get_nothing():
    """CMR12 P5: a kernel that is constant on the sample has no trace and no weight."""
    Ks, y = problem(2)
    bank = [np.full((20, 20), 3.0), *Ks]
    for weighting in ("uniform", "align", "alignf"):
        with pytest.warns(UserWarning, match="constant on the training data"):
            model = fit_given(classifier(weighting, "trace"), bank, y)
        plain = fit_given(classifier(weighting, "trace"), Ks, y)
        assert model.kernel_weights_[0] == 0
        assert_allclose(model.kernel_weights_[1:], plain.kernel_weights_, rtol=1e-8)


def test_align_is_squared_correlation(rng):
    """Rank-one banks: Pearson correlations squared; sparse and dense columns agree."""
    import scipy.sparse as sp

    X = rng.poisson(0.5, (40, 12)).astype(float)
    y = X[:, 0] - X[:, 3] + rng.standard_normal(40)
    expected = np.array([np.corrcoef(f, y)[0, 1] ** 2 for f in X.T])
    for data in (X, sp.csr_matrix(X)):
        for normalize in ("trace", None):
            model = mk.MultiKernelRegressor(
                mk.per_feature(mk.Linear()), "align", normalize=normalize
            ).fit(data, y)
            assert_allclose(model.kernel_weights_, expected / expected.sum(), rtol=1e-9)


def test_rank_one_moments(rng):
    """M = (Xc'Xc)^2 and a = (Xc'y)^2 entrywise; alignf on features solves with them."""
    X, y = rng.standard_normal((15, 4)), rng.standard_normal(15)
    Xc = X - X.mean(axis=0)
    M, a = (Xc.T @ Xc) ** 2, (Xc.T @ y) ** 2
    got_a, got_M = moments([np.outer(f, f) for f in X.T], y)
    assert_allclose(got_M, M, atol=1e-10)
    assert_allclose(got_a, a, atol=1e-10)
    d = np.sqrt(np.diag(M))
    L = np.linalg.cholesky(M / np.outer(d, d))
    v = nnls(L.T, np.linalg.solve(L, a / d))[0] / d
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Linear()), "alignf", normalize=None)
    assert_allclose(model.fit(X, y).kernel_weights_, v / v.sum(), atol=1e-9)


@pytest.mark.parametrize("weighting", ["align", "alignf", mk.Align(q=1.5)])
def test_two_classes_in_one_or_two_columns(weighting):
    """One-vs-rest columns (y, -y) make 2 yy': the same alignments and the same weights."""
    Ks, y = problem(4)
    grams = given_grams(Ks, True, "trace")
    one, two = grams.summary(y[:, None]), grams.summary(np.column_stack([y, -y]))
    assert_allclose(two.alignments, one.alignments, rtol=1e-12)
    assert_allclose(two.a, 2 * one.a, rtol=1e-12)
    assert two.target_norm == pytest.approx(2 * one.target_norm)
    single = fit_given(mk.MultiKernelRegressor(None, weighting), Ks, y)
    double = fit_given(mk.MultiKernelRegressor(None, weighting), Ks, np.column_stack([y, -y]))
    assert_allclose(double.kernel_weights_, single.kernel_weights_, atol=1e-9)
    assert double.alignment_ == pytest.approx(single.alignment_, rel=1e-10)
    labelled = fit_given(mk.MultiKernelClassifier(None, weighting), Ks, y)
    assert_allclose(labelled.kernel_weights_, single.kernel_weights_, atol=1e-9)


def test_three_classes_align_with_centred_one_hot(rng):
    """More classes: the target kernel is that of the one-vs-rest columns."""
    X = rng.standard_normal((24, 3))
    y = rng.integers(0, 3, 24)
    Ks = [gaussian(X, 0.1), gaussian(X, 2.0), X @ X.T]
    onehot = np.eye(3)[y]
    T = onehot @ onehot.T
    expected = np.array([rho(K, T) for K in Ks])
    model = fit_given(classifier("align", "trace"), Ks, y)
    assert_allclose(model.kernel_weights_, expected / expected.sum(), rtol=1e-9)
    K = combine(model.kernel_weights_, [center(K) / np.trace(center(K)) for K in Ks])
    assert model.alignment_ == pytest.approx(rho(K, T), rel=1e-10)


def test_signed_warns_only_when_not_psd():
    Ks, y = problem(3)
    a, M = moments(Ks, y)
    values = np.linalg.eigvalsh(center(combine(alignf_signed(M, a), Ks)))
    assert values[0] < -0.05 * values[-1]
    with pytest.warns(UserWarning, match="signed combination of kernels is not positive"):
        fit_given(classifier(mk.AlignF(signed=True)), Ks, y)
    # A negative weight alone is no reason to warn: 2I - (a small kernel) is still a kernel.
    f = y - y.mean()
    n = len(y)
    bank = [np.eye(n) + np.outer(f, f), np.eye(n)]
    a, M = moments(bank, y)
    mu = alignf_signed(M, a)
    assert mu[0] > 0 > mu[1]
    assert np.linalg.eigvalsh(center(combine(mu, bank)))[0] > -1e-10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_given(classifier(mk.AlignF(signed=True)), bank, y)
    assert model.alignment_ == pytest.approx(1.0, abs=1e-10)


@st.composite
def banks(draw):
    """A few kernels of any rank, size and likeness, and a target."""
    seed = draw(st.integers(0, 2**32 - 1))
    n, p = draw(st.integers(3, 15)), draw(st.integers(1, 8))
    rng = np.random.default_rng(seed)
    Ks = []
    for _ in range(p):
        Z = rng.standard_normal((n, draw(st.integers(1, 4))))
        K = gaussian(Z, 10.0 ** draw(st.integers(-4, 2))) if draw(st.booleans()) else Z @ Z.T
        Ks.append(K * 10.0 ** draw(st.integers(-5, 5)))
    if draw(st.booleans()):
        Ks.append(Ks[0].copy())
    y = rng.standard_normal(n) if draw(st.booleans()) else np.where(np.arange(n) < n // 2, -1.0, 1)
    return Ks, y


@given(banks())
def test_no_weights_align_better_than_alignf(bank):
    """rho(alignf) >= rho(align), rho(unif), every kernel alone, and random weights."""
    Ks, y = bank
    T = target_kernel(y)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    singles = np.array([rho(K, T) for K in Ks])
    best = rho(combine(v, Ks), T)
    rng = np.random.default_rng(0)
    for w in (np.ones(len(Ks)), singles, *rng.exponential(size=(5, len(Ks)))):
        for sizes in (np.ones(len(Ks)), 1 / np.sqrt(np.diag(M))):
            assert best >= rho(combine(w * sizes, Ks), T) - 1e-9
    assert best >= singles.max() - 1e-9
    check_kkt(Ks, y, v, 1e-8)


@given(banks())
def test_rules_order_in_the_estimator(bank):
    """The reported alignments keep the order alignf >= align, unif, singles."""
    Ks, y = bank
    found = {}
    for rule in ("alignf", "align", "uniform"):
        model = fit_given(mk.MultiKernelRegressor(None, rule, normalize="trace"), Ks, y)
        found[rule] = model.alignment_
        parts = [center(K) / np.trace(center(K)) for K in Ks]
        K = combine(model.kernel_weights_, parts)
        assert model.alignment_ == pytest.approx(rho(K, target_kernel(y)), abs=1e-9)
    singles = [rho(K, target_kernel(y)) for K in Ks]
    assert found["alignf"] >= max(found["align"], found["uniform"], *singles) - 1e-9
