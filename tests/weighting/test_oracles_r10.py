"""Rostamizadeh 2010: the golden fixture F1 and the oracles of centring, align and alignf."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.weighting.alignment import align_q, alignf
from multikernel.weighting.signed_alignment import alignf_signed
from tests.naive_alignment import (
    alignf_vec,
    combine,
    fit_given,
    given_grams,
    moments,
    problem,
    rho,
    target_kernel,
)

# F1: five points, three kernels, unnormalised; the sixth point is the test point x = 1.
X6 = np.array([-1.5, -0.5, 0.0, 0.5, 2.0, 1.0])
Y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
POOL = [
    np.outer(X6, X6),
    np.exp(-((X6[:, None] - X6[None]) ** 2)),
    (np.outer(X6, X6) + 1) ** 2,
]
F1 = [K[:5, :5].copy() for K in POOL]
RHO = [0.6019900498, 0.5312534176, 0.4113341485]
A = [19.36, 4.5718385904, 38.88]
M = np.array(
    [
        [44.89, 7.4199985103, 105.3825],
        [7.4199985103, 3.2143697311, 30.6537979474],
        [105.3825, 30.6537979474, 387.775625],
    ]
)
LIN = np.array([0.2476373571, 0.9628676375, -0.1075251226])
V = np.array([0.317214431, 0.6900600025, 0.0])
MU = np.array([0.4176739344, 0.9085969868, 0.0])

# Values are printed to ten decimals.
PRINTED = {"rtol": 0, "atol": 1e-9}


def classifier(weighting, normalize=None, center=True):
    return mk.MultiKernelClassifier(weighting=weighting, normalize=normalize, center=center)


def unit(v):
    return v / np.linalg.norm(v)


def test_f1_traces():
    """F1: traces, of the matrices and from the waist."""
    expected = [6.75, 5.0, 39.6875]
    assert_allclose([np.trace(K) for K in F1], expected, **PRINTED)
    assert_allclose(given_grams(F1, False, None).summary(Y).traces, expected, **PRINTED)


def test_f1_single_alignments():
    """F1: centred and uncentred alignment of each kernel."""
    T = target_kernel(Y)
    assert_allclose([mk.centered_alignment(K, T) for K in F1], RHO, **PRINTED)
    assert_allclose([mk.alignment(K, T) for K in F1], [0.6, 0.3529875303, 0.3086428259], **PRINTED)
    assert_allclose(given_grams(F1, True, None).summary(Y).alignments, RHO, **PRINTED)


@pytest.mark.parametrize("k", range(3))
def test_f1_alignment_of_one_kernel_end_to_end(k):
    """F1: a bank of one kernel reports that kernel's centred alignment."""
    for weighting in ("uniform", "align", "alignf"):
        model = fit_given(classifier(weighting), [F1[k]], Y)
        assert model.kernel_weights_ == pytest.approx([1.0])
        assert model.alignment_ == pytest.approx(RHO[k], abs=1e-9)


@pytest.mark.parametrize("center", [True, False])
def test_f1_a_and_M(center):
    """F1: a and M, whether or not the kernels handed to the learner are centred."""
    summary = given_grams(F1, center, None).summary(Y)
    assert_allclose(summary.a, A, **PRINTED)
    assert_allclose(summary.M, M, **PRINTED)
    assert_allclose(summary.norms, np.sqrt(np.diag(M)), **PRINTED)
    assert summary.target_norm == pytest.approx(4.8, abs=1e-12)  # m Var(y) = 5 * 0.96


def test_f1_alignf_lin():
    """F1: ALIGNF-LIN, with its negative weight (SLIP-4) and its warning."""
    a, gram = moments(F1, Y)
    assert_allclose(unit(alignf_signed(gram, a)), LIN, **PRINTED)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = fit_given(classifier(mk.AlignF(signed=True)), F1, Y)
    assert_allclose(unit(model.kernel_weights_), LIN, **PRINTED)
    assert model.alignment_ == pytest.approx(0.7798732698, abs=1e-9)
    assert np.sqrt(a @ np.linalg.solve(gram, a)) / 4.8 == pytest.approx(0.7798732698, abs=1e-9)


def test_f1_alignf():
    """F1: ALIGNF v, mu, alignment and Mv - a; the zero is exact."""
    a, gram = moments(F1, Y)
    v = alignf(gram, a)
    assert_allclose(v, V, **PRINTED)
    assert v[2] == 0
    assert_allclose(unit(v), MU, **PRINTED)
    assert_allclose(gram @ v - a, [0, 0, 15.7018096671], **PRINTED)
    assert np.sqrt(a @ v) / 4.8 == pytest.approx(0.6351985395, abs=1e-9)
    model = fit_given(classifier("alignf"), F1, Y)
    assert_allclose(unit(model.kernel_weights_), MU, **PRINTED)
    assert model.kernel_weights_[2] == 0
    assert model.alignment_ == pytest.approx(0.6351985395, abs=1e-9)


@pytest.mark.parametrize(
    ("weighting", "normalize", "expected"),
    [
        ("uniform", None, 0.4867359493),
        ("align", None, 0.5063683150),
        ("uniform", "trace", 0.5690329820),
        ("align", "trace", 0.5847108557),
        ("uniform", "frobenius", 0.5614089794),
        ("align", "frobenius", 0.5777801026),
    ],
)
def test_f1_alignment_of_combinations(weighting, normalize, expected):
    """F1: rho of unif and align on raw, trace-1 and Frobenius-1 kernels (SLIP-3)."""
    for estimator in (classifier(weighting, normalize), mk.MultiKernelRegressor(None, weighting)):
        estimator.set_params(normalize=normalize)
        model = fit_given(estimator, F1, Y)
        assert model.alignment_ == pytest.approx(expected, abs=1e-9)
        parts = [mk.center(K) for K in F1]
        parts = [mk.normalize(K, normalize) for K in parts]
        K = combine(model.kernel_weights_, parts)
        assert mk.centered_alignment(K, target_kernel(Y)) == pytest.approx(expected, abs=1e-9)
        if weighting == "align":
            assert_allclose(model.kernel_weights_, np.array(RHO) / np.sum(RHO), **PRINTED)


@pytest.mark.parametrize("normalize", [None, "trace", "frobenius", "multiplicative"])
def test_f1_alignf_is_the_same_for_every_scaling(normalize):
    """F1: alignf's alignment does not depend on how the kernels are normalised."""
    model = fit_given(classifier("alignf", normalize), F1, Y)
    assert model.alignment_ == pytest.approx(0.6351985395, abs=1e-9)


def test_f1_centred_test_row():
    """F1: the centred row of x = 1 for K1, from the waist and as a prediction."""
    row = np.array([-1.44, -0.54, -0.09, 0.36, 1.71])
    bank = mk.precomputed(POOL[:1])
    ids = mk.sample_ids(6)
    grams = given_grams(POOL[:1], True, None).take(np.arange(5)).corrected(True, None)
    between = grams.expand(np.ones(1), np.eye(5))
    assert_allclose(between.values(between.encode(ids[5:]))[0], row, **PRINTED)
    model = mk.MultiKernelRegressor(bank, "uniform", alpha=0.7, normalize=None)
    model.fit(ids[:5], Y)
    coef = np.zeros(5)
    coef[model.support_] = model.dual_coef_[:, 0]
    assert model.predict(ids[5:])[0] == pytest.approx(row @ coef + Y.mean(), abs=1e-12)


# -- section 5.1 ----------------------------------------------------------------------------------


def test_align_of_identical_kernels_is_uniform():
    """R10 align: p identical kernels = unif."""
    K = F1[1]
    model = fit_given(classifier("align", "trace"), [K, K.copy(), K.copy()], Y)
    assert_allclose(model.kernel_weights_, 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_align_and_alignf_ignore_sign_and_shift_of_the_target(sign, shift):
    """R10 align, alignf: y -> -y and y -> y + c (and any scale) change nothing."""
    Ks, y = problem(3, classes=False)
    for weighting in ("align", "alignf"):
        base = fit_given(mk.MultiKernelRegressor(None, weighting), Ks, y)
        other = fit_given(mk.MultiKernelRegressor(None, weighting), Ks, sign * 3 * y + shift)
        assert_allclose(other.kernel_weights_, base.kernel_weights_, atol=1e-9)
        assert other.alignment_ == pytest.approx(base.alignment_, rel=1e-10)


def test_align_equals_alignf_for_orthogonal_unit_kernels():
    """R10 align: <K_kc, K_lc> = 0 and Frobenius-1 kernels (M = I) give alignf."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.column_stack([np.ones(12), rng.standard_normal((12, 5))]))[0][:, 1:]
    Ks = [4.0**k * np.outer(f, f) for k, f in enumerate(basis.T)]
    y = np.where(rng.standard_normal(12) > 0, 1.0, -1.0)
    align = fit_given(classifier("align", "frobenius"), Ks, y)
    joint = fit_given(classifier("alignf", "frobenius"), Ks, y)
    assert_allclose(joint.kernel_weights_, align.kernel_weights_, atol=1e-9)
    assert np.ptp(align.kernel_weights_) > 0.1


def test_align_q_limits_end_to_end():
    """R10 align: q -> infinity is uniform, q -> 1+ the best kernel, q = 2 proportional to a."""
    a = np.array(A)
    fitted = {
        q: fit_given(classifier(mk.Align(q=q)), F1, Y).kernel_weights_ for q in (1.001, 2, 1e9)
    }
    assert_allclose(fitted[1e9], 1 / 3, rtol=1e-6)
    assert_allclose(fitted[1.001], [0, 0, 1], atol=1e-12)
    assert_allclose(fitted[2], a / a.sum(), atol=1e-9)
    assert_allclose(align_q(a, np.inf), 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_alignf_dominates(seed):
    """R10 alignf: max(unif, align, singles) <= alignf <= lin, equal when M^-1 a >= 0; NNLS."""
    Ks, y = problem(seed)
    T = target_kernel(y)
    a, gram = moments(Ks, y)
    v = alignf(gram, a)
    best = rho(combine(v, Ks), T)
    others = [rho(K, T) for K in Ks]
    others += [rho(combine(w, Ks), T) for w in (np.ones(len(Ks)), np.array(others))]
    assert best >= max(others) - 1e-12
    free = alignf_signed(gram, a)
    assert rho(combine(free, Ks), T) >= best - 1e-12
    assert best == pytest.approx(rho(combine(alignf_vec(Ks, y), Ks), T), abs=1e-11)


def test_alignf_equals_lin_when_lin_is_nonnegative():
    """R10 alignf: equality with the closed form when M^-1 a >= 0."""
    a, gram = moments(F1[:2], Y)
    free = np.linalg.solve(gram, a)
    assert np.all(free > 0)
    assert_allclose(alignf_signed(gram, a), free, rtol=1e-10)
    assert_allclose(alignf(gram, a), free, rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_alignf_two_kernels_closed_form(seed):
    """R10 alignf: D = m11 m22 - m12^2; a kernel drops out iff rho_2 <= c rho_1."""
    rng = np.random.default_rng(seed)
    Ks = [rng.standard_normal((8, 2)), rng.standard_normal((8, 3))]
    Ks = [Z @ Z.T for Z in Ks]
    y = rng.standard_normal(8)
    a, gram = moments(Ks, y)
    D = gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2
    expected = np.array(
        [gram[1, 1] * a[0] - gram[0, 1] * a[1], gram[0, 0] * a[1] - gram[0, 1] * a[0]]
    )
    expected /= D
    T, c = target_kernel(y), rho(*Ks)
    single = [rho(K, T) for K in Ks]
    for k in (0, 1):
        assert (expected[k] <= 0) == (single[k] <= c * single[1 - k])
        if expected[k] <= 0:
            expected = np.zeros(2)
            expected[1 - k] = a[1 - k] / gram[1 - k, 1 - k]
            break
    v = alignf(gram, a)
    assert_allclose(v, expected, rtol=1e-9)
    assert np.array_equal(v == 0, expected == 0)


def test_target_kernel_in_the_family():
    """R10 alignf: K_Y itself takes all weight and reaches alignment 1."""
    model = fit_given(classifier("alignf", "trace"), [*F1, target_kernel(Y)], Y)
    assert_allclose(model.kernel_weights_, [0, 0, 0, 1], atol=1e-9)
    assert model.alignment_ == pytest.approx(1.0, abs=1e-12)


def test_centring_facts():
    """R10 centring: idempotent, zero row sums, linear, unchanged by c and f(x) + f(x')."""
    for K in F1:
        Kc = mk.center(K)
        assert_allclose(Kc.sum(axis=0), 0, atol=1e-13)
        assert_allclose(mk.center(Kc), Kc, atol=1e-14)
        f = np.sin(X6[:5])
        assert_allclose(mk.center(K + 7 + f[:, None] + f[None]), Kc, atol=1e-13)
    mixed = mk.center(F1[0] + 2 * F1[2])
    assert_allclose(mixed, mk.center(F1[0]) + 2 * mk.center(F1[2]), atol=1e-13)
    assert np.linalg.norm(mk.center(target_kernel(Y))) == pytest.approx(5 * np.var(Y))


def test_ridge_facts_on_f1():
    """R10 2.1: value y'alpha (times lambda here), residual lambda alpha, on centred labels."""
    lam = 0.5
    model = fit_given(mk.MultiKernelRegressor(None, "alignf", lam, normalize=None), F1, Y)
    coef = np.zeros(5)
    coef[model.support_] = model.dual_coef_[:, 0]
    residual = Y - model.predict(mk.sample_ids(5))
    assert_allclose(residual, lam * coef, atol=1e-12)
    assert model.objective_ == pytest.approx(lam * (Y - Y.mean()) @ coef, rel=1e-12)
    K = combine(model.kernel_weights_, [mk.center(K) for K in F1])
    yc = Y - Y.mean()
    assert_allclose(coef, np.linalg.solve(K + lam * np.eye(5), yc), atol=1e-12)
