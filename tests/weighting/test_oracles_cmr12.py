"""Cortes, Mohri & Rostamizadeh 2012: oracles of centring, alignment and the two-stage methods."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

import multikernel as mk
from multikernel.weighting.alignment import align_q, alignf
from multikernel.weighting.signed_alignment import alignf_signed
from tests.naive_alignment import (
    alignf_vec,
    center,
    combine,
    fit_given,
    given_grams,
    moments,
    problem,
    rho,
    target_kernel,
)

Y4 = np.array([1.0, 1.0, -1.0, -1.0])


def cross(grams, X):
    """The corrected bank between new points and the training points, shape (p, n_new, n)."""
    between = grams.expand(np.ones(grams.p), np.eye(grams.n))
    return between.shares(between.encode(X)).transpose(1, 0, 2)


def rank_one(*features):
    return [np.outer(f, f).astype(float) for f in features]


def classifier(weighting, normalize=None, **options):
    return mk.MultiKernelClassifier(weighting=weighting, normalize=normalize, **options)


def random_psd(rng, n=9, r=4):
    Z = rng.standard_normal((n, r))
    return Z @ Z.T


# -- centring --------------------------------------------------------------------------------------


def test_centring_projects(rng):
    """CMR12 centring (1): zero row sums, idempotent; equals U K U."""
    K = random_psd(rng)
    Kc = mk.center(K)
    assert_allclose(Kc, center(K), atol=1e-13)
    assert_allclose(Kc.sum(axis=1), 0, atol=1e-13)
    assert_allclose(mk.center(Kc), Kc, atol=1e-14)
    assert np.linalg.norm(Kc - K) > 0.1


def test_centring_forgets_constants_and_additive_parts(rng):
    """CMR12 centring (2): K + c11' + z1' + 1z' centres to the same matrix."""
    K, z = random_psd(rng), rng.standard_normal(9)
    assert_allclose(mk.center(K + 3 + z[:, None] + z[None]), mk.center(K), atol=1e-13)


@pytest.mark.parametrize("normalize", [None, "trace", "frobenius", "multiplicative", "spherical"])
def test_test_transform_of_the_training_points(rng, normalize):
    """CMR12 centring (3): new-point centring of training points is the centred matrix."""
    Ks = [random_psd(rng), random_psd(rng, r=2)]
    grams = given_grams(Ks, True, normalize)
    expected = np.stack([mk.normalize(center(K), normalize) for K in Ks])
    if normalize == "multiplicative":
        # unit variance in feature space, Kloft eq. 3.6: Tr(Kc) / n = 1
        expected = np.stack([center(K) / (np.trace(center(K)) / 9) for K in Ks])
    assert_allclose(grams.block(slice(None)), expected, atol=1e-12)
    assert_allclose(cross(grams, mk.sample_ids(9)), expected, atol=1e-12)


def test_test_points_are_centred_with_training_means(rng):
    """CMR12 2.1: new rows and predictions as sklearn's KernelCenterer makes them."""
    K = random_psd(rng, n=14)
    centerer = KernelCenterer().fit(K[:10, :10])
    expected = centerer.transform(K[10:, :10].copy())
    trace = np.trace(center(K[:10, :10]))
    ids = mk.sample_ids(14)
    grams = given_grams([K], True, None).take(np.arange(10)).corrected(True, "trace")
    assert_allclose(cross(grams, ids[10:])[0], expected / trace, atol=1e-13)
    y = rng.standard_normal(14)
    model = fit_given(mk.MultiKernelRegressor(None, "uniform", 0.1, normalize="trace"), [K], y, 10)
    direct = KernelRidge(alpha=0.1, kernel="precomputed")
    direct.fit(center(K[:10, :10]) / trace, y[:10] - y[:10].mean())
    assert_allclose(
        model.predict(ids[10:]), direct.predict(expected / trace) + y[:10].mean(), atol=1e-11
    )


def test_centring_the_linear_kernel_centres_the_data(rng):
    """CMR12 centring (4): centre(XX') = Xc Xc'."""
    X = rng.standard_normal((8, 3)) + 5
    Xc = X - X.mean(axis=0)
    assert_allclose(mk.center(X @ X.T), Xc @ Xc.T, atol=1e-12)


# -- alignment -------------------------------------------------------------------------------------


def test_alignment_forgets_scale_and_constants(rng):
    """CMR12 alignment (1): rho(cK + d, L) = rho(K, L) for c > 0."""
    K, L = random_psd(rng), random_psd(rng)
    assert mk.centered_alignment(K, L) == pytest.approx(rho(K, L), rel=1e-12)
    assert mk.centered_alignment(3 * K + 5, L) == pytest.approx(rho(K, L), rel=1e-12)
    assert mk.centered_alignment(K, 0.1 * L - 2) == pytest.approx(rho(K, L), rel=1e-12)


@pytest.mark.parametrize(
    ("f", "expected"), [((1, 1, -1, -1), 1.0), ((1, -1, 1, -1), 0.0), ((3, 1, -1, -3), 0.8)]
)
def test_alignment_of_features_is_squared_correlation(f, expected):
    """CMR12 alignment (2): y4 with three features: 1, 0, 0.8."""
    (K,) = rank_one(f)
    assert mk.centered_alignment(K, target_kernel(Y4)) == pytest.approx(expected, abs=1e-15)
    assert np.corrcoef(f, Y4)[0, 1] ** 2 == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("m", [2, 3, 10, 57])
def test_alignment_of_the_identity(rng, m):
    """CMR12 alignment (3): rho(I, yy') = 1 / sqrt(m - 1) for any y."""
    y = rng.standard_normal(m)
    got = mk.centered_alignment(np.eye(m), target_kernel(y))
    assert got == pytest.approx(1 / np.sqrt(m - 1), rel=1e-12)


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.1, 0.905539), (0.25, 0.790569), (0.5, 0.707107)]
)
def test_two_point_example(fraction, expected):
    """CMR12 alignment (4), Fig. 1: A = sqrt(alpha^2 + (1 - alpha)^2) while rho = 1."""
    m = 40
    x = np.where(np.arange(m) < fraction * m, -1.0, 1.0)
    K = np.outer(x, x) + 1
    assert mk.alignment(K, target_kernel(x)) == pytest.approx(expected, abs=5e-7)
    formula = np.sqrt(fraction**2 + (1 - fraction) ** 2)
    assert mk.alignment(K, target_kernel(x)) == pytest.approx(formula, rel=1e-12)
    assert mk.centered_alignment(K, target_kernel(x)) == pytest.approx(1.0, rel=1e-12)
    model = fit_given(classifier("alignf"), [K], x)
    assert model.alignment_ == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_two_point_example_at_the_ends(label):
    """CMR12 REPAIR-1: at alpha = 0 and 1 the centred alignment is undefined."""
    x = np.full(6, label)
    with pytest.raises(ValueError, match="undefined"):
        mk.centered_alignment(np.outer(x, x) + 1, target_kernel(x))


def test_alignment_invariances(rng):
    """CMR12 alignment (5): permutations, y -> -y, y -> y + c."""
    K, y = random_psd(rng), rng.standard_normal(9)
    base = mk.centered_alignment(K, target_kernel(y))
    order = rng.permutation(9)
    permuted = mk.centered_alignment(K[np.ix_(order, order)], target_kernel(y[order]))
    assert permuted == pytest.approx(base, rel=1e-12)
    assert mk.centered_alignment(K, target_kernel(-y)) == pytest.approx(base, rel=1e-12)
    assert mk.centered_alignment(K, target_kernel(y + 4)) == pytest.approx(base, rel=1e-11)


def test_one_sided_centring_is_enough_in_products(rng):
    """CMR12 alignment (6): <Kc, Lc> = <Kc, L> = <K, Lc>, but not <K, L>."""
    K, L = random_psd(rng), random_psd(rng)
    Kc, Lc = mk.center(K), mk.center(L)
    assert np.vdot(Kc, L) == pytest.approx(np.vdot(Kc, Lc), rel=1e-12)
    assert np.vdot(K, Lc) == pytest.approx(np.vdot(Kc, Lc), rel=1e-12)
    assert abs(np.vdot(K, L) - np.vdot(Kc, Lc)) > 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_alignment_of_psd_kernels_is_between_zero_and_one(seed):
    """CMR12 Lemma 3: alignments of kernels lie in [0, 1]."""
    rng = np.random.default_rng(seed)
    K, L = random_psd(rng, r=1 + seed % 4), random_psd(rng, r=1 + seed % 3)
    assert 0 <= mk.centered_alignment(K, L) <= 1
    assert mk.centered_alignment(K, K) == pytest.approx(1.0, rel=1e-12)
    assert mk.centered_alignment(K, -K) == pytest.approx(-1.0, rel=1e-12)


# -- align -----------------------------------------------------------------------------------------


def test_align_on_features(rng):
    """CMR12 align (1): rank-one kernels get squared correlations, dense or rank-one waist."""
    X = rng.standard_normal((15, 4))
    y = np.where(X[:, 0] + rng.standard_normal(15) > 0, 1.0, -1.0)
    expected = np.array([np.corrcoef(f, y)[0, 1] ** 2 for f in X.T])
    expected /= expected.sum()
    dense = fit_given(classifier("align"), rank_one(*X.T), y)
    assert_allclose(dense.kernel_weights_, expected, rtol=1e-10)
    features = mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), "align", normalize="trace")
    assert_allclose(features.fit(X, y).kernel_weights_, expected, rtol=1e-10)


def test_align_and_the_scale_of_a_kernel():
    """CMR12 align (2): weights ignore scales; the combination does only when normalised."""
    Ks, y = problem(1, n=24)
    scaled = [100 * Ks[0], *Ks[1:]]
    new = mk.sample_ids(24)[18:]
    for normalize in (None, "trace", "frobenius"):
        base = fit_given(classifier("align", normalize), Ks, y, 18)
        other = fit_given(classifier("align", normalize), scaled, y, 18)
        assert_allclose(other.kernel_weights_, base.kernel_weights_, rtol=1e-10)
        same = np.allclose(base.decision_function(new), other.decision_function(new), atol=1e-6)
        assert same == (normalize is not None)
    T = target_kernel(y[:18])
    K = combine(base.kernel_weights_, [K[:18, :18] for K in scaled])
    other = fit_given(classifier("align"), scaled, y, 18)
    assert other.alignment_ == pytest.approx(rho(K, T), rel=1e-10)


def test_align_drops_an_orthogonal_kernel():
    """CMR12 align (3): f = (1, -1, 1, -1) is orthogonal to y4 and gets 0."""
    Ks = rank_one((1, -1, 1, -1), (3, 1, -1, -3), (2, 1, -1, -2))
    model = fit_given(classifier("align", "trace"), Ks, Y4)
    assert_allclose(model.kernel_weights_, np.array([0, 0.8, 0.9]) / 1.7, atol=1e-15)
    assert model.kernel_weights_[0] == 0


def test_align_of_identical_kernels():
    """CMR12 align (4): identical kernels get equal weights."""
    Ks, y = problem(2)
    weights = fit_given(classifier("align"), [Ks[0], Ks[1], Ks[0].copy()], y).kernel_weights_
    assert weights[0] == pytest.approx(weights[2], rel=1e-14)
    assert abs(weights[0] - weights[1]) > 1e-3


# -- align-q ---------------------------------------------------------------------------------------


def test_align_q_two_is_a():
    """CMR12 align-q (1): q = 2 gives mu ~ a; Frobenius-normalised it is align."""
    Ks, y = problem(4)
    a, _ = moments(Ks, y)
    model = fit_given(classifier(mk.Align(q=2)), Ks, y)
    assert_allclose(model.kernel_weights_, a / a.sum(), rtol=1e-10)
    two = fit_given(classifier(mk.Align(q=2), "frobenius"), Ks, y)
    plain = fit_given(classifier("align", "frobenius"), Ks, y)
    assert_allclose(two.kernel_weights_, plain.kernel_weights_, rtol=1e-10)


def test_align_q_near_one_takes_the_best():
    """CMR12 align-q (2): q = 1.01 concentrates on the largest a, without overflow."""
    a = np.array([1e200, 2e200, 1.9e200, 0.0])
    mu = align_q(a, 1.01)
    assert_allclose(mu / mu[1], [0.5**100, 1, 0.95**100, 0], rtol=1e-10)
    assert mu[1] > 0.99


@pytest.mark.parametrize("q", [1.01, 1.5, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("Lambda", [1.0, 2.5])
def test_align_q_is_optimal(rng, q, Lambda):
    """CMR12 align-q (3), Prop. 7: constraint active, value Lambda^(1/q) ||a||_q*, maximal."""
    a = rng.uniform(0.1, 2, 6)
    mu = Lambda ** (1 / q) * align_q(a, q)
    assert np.sum(mu**q) == pytest.approx(Lambda, rel=1e-12)
    conjugate = q / (q - 1)
    value = Lambda ** (1 / q) * np.linalg.norm(a, conjugate)
    assert mu @ a == pytest.approx(value, rel=1e-10)
    for _ in range(200):
        other = np.abs(mu * (1 + 0.3 * rng.standard_normal(6)))
        other *= (Lambda / np.sum(other**q)) ** (1 / q)
        assert other @ a <= value * (1 + 1e-12)


def test_align_q_large_is_uniform():
    """CMR12 align-q (4): large q gives equal weights over {a_k > 0}."""
    assert_allclose(align_q(np.array([1.0, 3.0, 0.0]), 1e8), [1, 1, 0], atol=1e-7)
    assert_allclose(align_q(np.array([1.0, 3.0, 0.0]), np.inf), [1, 1, 0])


@pytest.mark.parametrize("q", [1.0, 0.5, -2.0, np.nan])
def test_align_q_needs_q_above_one(q):
    """CMR12 2.4: the problem is posed for q > 1."""
    with pytest.raises(ValueError, match="q must be greater than 1"):
        align_q(np.ones(2), q)


# -- alignf-lin ------------------------------------------------------------------------------------


def independent_bank(seed):
    rng = np.random.default_rng(seed)
    return [random_psd(rng, r=2) for _ in range(4)], rng.standard_normal(9)


@pytest.mark.parametrize("seed", range(6))
def test_alignf_lin(seed):
    """CMR12 alignf-lin (1), (3): M mu ~ a, value sqrt(a'M^-1 a) / ||yc||^2, above alignf."""
    Ks, y = independent_bank(seed)
    a, M = moments(Ks, y)
    mu = alignf_signed(M, a)
    assert_allclose(M @ mu, a, rtol=1e-9)
    norm = np.sum((y - y.mean()) ** 2)
    T = target_kernel(y)
    best = rho(combine(mu, Ks), T)
    assert best == pytest.approx(np.sqrt(a @ np.linalg.solve(M, a)) / norm, rel=1e-10)
    joint = rho(combine(alignf(M, a), Ks), T)
    assert best >= joint - 1e-12
    assert joint >= max(rho(K, T) for K in Ks) - 1e-12


def test_alignf_lin_equals_alignf_when_nonnegative():
    """CMR12 alignf-lin (2): M^-1 a >= 0 makes both the same, end to end too."""
    Ks = rank_one((2, 1, -1, -2), (1, 2, -2, -1))
    free = fit_given(classifier(mk.AlignF(signed=True)), Ks, Y4)
    joint = fit_given(classifier("alignf"), Ks, Y4)
    assert_allclose(free.kernel_weights_, joint.kernel_weights_, atol=1e-12)
    a, M = moments(Ks, Y4)
    assert_allclose(alignf_signed(M, a), alignf(M, a), rtol=1e-10)


# -- alignf ----------------------------------------------------------------------------------------


def check_alignf(Ks, y, M, a, v, value):
    """v by the plain function; weights and alignment through the estimator."""
    got_a, got_M = moments(Ks, y)
    assert_allclose(got_M, M, atol=1e-12)
    assert_allclose(got_a, a, atol=1e-12)
    got = alignf(got_M, got_a)
    assert_allclose(got, v, atol=1e-10)
    assert np.array_equal(got == 0, np.asarray(v) == 0)
    model = fit_given(classifier("alignf"), Ks, y)
    assert_allclose(model.kernel_weights_, np.array(v) / np.sum(v), atol=1e-10)
    assert model.alignment_ == pytest.approx(value, abs=5e-8)


def test_alignf_two_correlated_kernels():
    """CMR12 alignf (1): M = [[100, 64], [64, 100]], v = 36/164 (1, 1), rho .9938837."""
    Ks = rank_one((2, 1, -1, -2), (1, 2, -2, -1))
    assert [rho(K, target_kernel(Y4)) for K in Ks] == pytest.approx([0.9, 0.9])
    check_alignf(Ks, Y4, [[100, 64], [64, 100]], [36, 36], [36 / 164] * 2, 0.9938837)


def test_alignf_drop_out():
    """CMR12 alignf (2): r = .8 <= .98 * .9 drops out, v = (0, .36), rho = .9."""
    Ks = rank_one((3, 1, -1, -3), (2, 1, -1, -2))
    assert rho(*Ks) == pytest.approx(0.98)
    check_alignf(Ks, Y4, [[400, 196], [196, 100]], [64, 36], [0, 0.36], 0.9)


def test_alignf_orthogonal_kernels():
    """CMR12 alignf (3): M = 4I, v = (1, 1), rho = .7071068."""
    Ks = rank_one((1, 0, 0, -1), (0, 1, -1, 0))
    check_alignf(Ks, Y4, 4 * np.eye(2), [4, 4], [1, 1], 0.7071068)


def test_alignf_with_the_target_kernel():
    """CMR12 alignf (4): yy' in the family gets v = 1, the others 0."""
    Ks, y = independent_bank(1)
    Ks.append(target_kernel(y))
    a, M = moments(Ks, y)
    v = alignf(M, a)
    assert_allclose(v, [0, 0, 0, 0, 1], atol=1e-8)
    assert rho(combine(v, Ks), target_kernel(y)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_alignf_optimality(seed):
    """CMR12 alignf (5), Prop. 10: KKT; v'Mv = v'a; rho = ||v||_M / ||yc||^2 (REPAIR-6)."""
    Ks, y = problem(seed, p=8, classes=seed % 2 == 0)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    d, norm = np.sqrt(np.diag(M)), np.sum((y - y.mean()) ** 2)
    slack = (M @ v - a) / (d * norm)  # in units of alignment
    assert np.all(v >= 0)
    assert np.all(slack >= -1e-10)
    assert np.all(np.abs(slack[v > 0]) <= 1e-10)
    assert v @ M @ v == pytest.approx(v @ a, rel=1e-10)
    value = np.sqrt(v @ M @ v) / norm
    assert value == pytest.approx(rho(combine(v, Ks), target_kernel(y)), rel=1e-9)
    model = fit_given(mk.MultiKernelRegressor(None, "alignf", normalize="trace"), Ks, y)
    assert model.alignment_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_alignf_as_nnls_and_as_hard_margin_svm(seed):
    """CMR12 alignf (6): NNLS on vec matrices; the bias-free hard-margin dual."""
    Ks, y = independent_bank(seed)
    a, M = moments(Ks, y)
    v = alignf(M, a)
    assert_allclose(v, alignf_vec(Ks, y), atol=1e-9 * v.max())
    # max 1'b - b'Qb/2 over b >= 0 by coordinate ascent: each step is exact.
    Q = M / np.outer(a, a)
    b = np.zeros(len(a))
    for _ in range(20000):
        for k in range(len(b)):
            b[k] = max(0.0, b[k] + (1 - Q[k] @ b) / Q[k, k])
    assert_allclose(b / a, v, atol=1e-8 * v.max())


def test_alignf_and_the_scale_of_kernels():
    """CMR12 alignf (7): kernel k times c divides v_k by c; the combination stays."""
    Ks, y = problem(5)
    c = np.array([1e-6, 3.0, 1e5, 1.0, 0.2])
    scaled = [s * K for s, K in zip(c, Ks, strict=True)]
    v = alignf(*moments(Ks, y)[::-1])
    w = alignf(*moments(scaled, y)[::-1])
    d = np.array([np.linalg.norm(center(K)) for K in Ks])
    assert_allclose(w * c * d, v * d, atol=1e-9 * np.max(v * d))
    assert_allclose(combine(w, scaled), combine(v, Ks), atol=1e-9)
    new = mk.sample_ids(20)[15:]
    values = [
        fit_given(classifier("alignf", "trace"), bank, y, 15).decision_function(new)
        for bank in (Ks, scaled)
    ]
    assert_allclose(*values, atol=1e-7)


def test_alignf_with_duplicates():
    """CMR12 alignf (8): duplicated kernels change neither fitted matrix nor alignment."""
    Ks, y = problem(6)
    a, M = moments(Ks, y)
    twice = [*Ks, *[K.copy() for K in Ks]]
    b, N = moments(twice, y)
    v, w = alignf(M, a), alignf(N, b)
    assert_allclose(combine(w, twice), combine(v, Ks), atol=1e-9 * np.abs(combine(v, Ks)).max())
    first = fit_given(classifier("alignf", "trace"), Ks, y).alignment_
    second = fit_given(classifier("alignf", "trace"), twice, y).alignment_
    assert second == pytest.approx(first, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_alignf_is_best_end_to_end(seed):
    """CMR12 alignf (9): rho(alignf) >= rho(align), rho(unif), every kernel alone."""
    Ks, y = problem(seed, p=6)
    for normalize in (None, "trace", "frobenius"):
        best = fit_given(classifier("alignf", normalize), Ks, y).alignment_
        for rule in ("align", "uniform"):
            assert best >= fit_given(classifier(rule, normalize), Ks, y).alignment_ - 1e-12
        assert best >= max(rho(K, target_kernel(y)) for K in Ks) - 1e-12


def test_alignf_with_diagonal_M(rng):
    """CMR12 alignf (10): M diagonal gives v_k = a_k / M_kk."""
    diagonal, a = 10.0 ** rng.uniform(-6, 6, 7), rng.uniform(0, 3, 7)
    assert_allclose(alignf(np.diag(diagonal), a), a / diagonal, rtol=1e-10)


# -- unif and the second stage ---------------------------------------------------------------------


def test_unif_with_one_kernel_is_the_learner():
    """CMR12 unif: p = 1 reproduces the single-kernel SVM and ridge regression."""
    Ks, y = problem(7, n=30)
    K, ids = Ks[0], mk.sample_ids(30)
    svm = fit_given(classifier("uniform", center=False), [K], y, 22)
    plain = SVC(kernel="precomputed", tol=1e-10).fit(K[:22, :22], y[:22])
    # libsvm's kernel values are float32
    assert_allclose(
        svm.decision_function(ids[22:]), plain.decision_function(K[22:, :22]), atol=1e-5
    )
    ridge = fit_given(mk.MultiKernelRegressor(None, "uniform", 0.3, normalize=None), [K], y, 22)
    direct = KernelRidge(alpha=0.3, kernel="precomputed")
    centerer = KernelCenterer().fit(K[:22, :22])
    direct.fit(center(K[:22, :22]), y[:22] - y[:22].mean())
    expected = direct.predict(centerer.transform(K[22:, :22].copy())) + y[:22].mean()
    assert_allclose(ridge.predict(ids[22:]), expected, atol=1e-11)


@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf"])
def test_order_of_kernels_and_points_does_not_matter(rng, weighting):
    """CMR12 unif: permutation invariance; the other weightings are equivariant too."""
    Ks, y = problem(8, n=30)
    ids, order = mk.sample_ids(30), rng.permutation(len(Ks))
    base = fit_given(mk.MultiKernelRegressor(None, weighting), Ks, y, 22)
    other = fit_given(mk.MultiKernelRegressor(None, weighting), [Ks[k] for k in order], y, 22)
    assert_allclose(other.kernel_weights_, base.kernel_weights_[order], atol=1e-9)
    assert_allclose(other.predict(ids[22:]), base.predict(ids[22:]), atol=1e-9)
    shuffled = rng.permutation(22)
    third = mk.MultiKernelRegressor(mk.precomputed(Ks), weighting).fit(ids[shuffled], y[shuffled])
    assert_allclose(third.kernel_weights_, base.kernel_weights_, atol=1e-9)
    assert_allclose(third.predict(ids[22:]), base.predict(ids[22:]), atol=1e-9)


@pytest.mark.parametrize("normalize", [None, "frobenius"])
def test_second_stage_ridge_does_not_need_centring(normalize):
    """CMR12 second stage (1): KRR on centred K and y, plus the mean, has a free intercept."""
    Ks, y = problem(9, n=30, classes=False)
    y, ids = y + 10, mk.sample_ids(30)
    scales = [1 / np.linalg.norm(center(K[:22, :22])) if normalize else 1.0 for K in Ks]
    model = mk.MultiKernelRegressor(None, "alignf", 0.4, normalize=normalize)
    model = fit_given(model, Ks, y, 22)
    K = combine(model.kernel_weights_ * scales, Ks)
    # The same with the raw kernel and an unpenalised intercept.
    A = np.ones((23, 23))
    A[:22, :22] = K[:22, :22] + 0.4 * np.eye(22)
    A[22, 22] = 0
    solution = np.linalg.solve(A, np.append(y[:22], 0))
    assert_allclose(model.predict(ids), K[:, :22] @ solution[:22] + solution[22], atol=1e-9)
    # And by centring everything, adding the mean of the labels back.
    Kc = center(K[:22, :22])
    c = np.linalg.solve(Kc + 0.4 * np.eye(22), y[:22] - y[:22].mean())
    assert_allclose(model.predict(ids[:22]), Kc @ c + y[:22].mean(), atol=1e-9)


def test_second_stage_svm_is_invariant_to_centring():
    """CMR12 second stage (2): an SVM with a bias does not see centring."""
    Ks, y = problem(10, n=30)
    ids = mk.sample_ids(30)
    values = [
        fit_given(classifier("alignf", center=c), Ks, y, 22).decision_function(ids)
        for c in (True, False)
    ]
    assert_allclose(*values, atol=1e-8)


def test_scale_of_the_weights_is_the_scale_of_C_and_alpha():
    """CMR12 REPAIR-20: (Lambda K, C) = (K, Lambda C) for SVMs; for KRR it is lambda / Lambda."""
    Ks, y = problem(11, n=30)
    ids, big = mk.sample_ids(30), [7.0 * K for K in Ks]
    one = fit_given(classifier("align", C=2.0), big, y, 22)
    two = fit_given(classifier("align", C=14.0), Ks, y, 22)
    assert_allclose(one.decision_function(ids), two.decision_function(ids), atol=1e-8)
    one = fit_given(mk.MultiKernelRegressor(None, "align", 7.0, normalize=None), big, y, 22)
    two = fit_given(mk.MultiKernelRegressor(None, "align", 1.0, normalize=None), Ks, y, 22)
    assert_allclose(one.predict(ids), two.predict(ids), atol=1e-10)
