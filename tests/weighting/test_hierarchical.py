"""Two-level norms with exponents on either side of 2: golden values, collapses, properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from multikernel.problem.regularisers import conjugate, norm
from tests.weighting.test_blocknorm import golden

RAW = {"center": False, "normalize": None}
NO_BIAS = {**RAW, "fit_intercept": False}
INF = float("inf")
TIGHT = {"tol": 1e-9, "max_iter": 5000}
#: exponents between and within groups with 2 between them
MIXED = [(4, 1.2), (1.2, 4), (3, 1.05), (1.05, 3), (INF, 1.3), (1.3, INF)]


def ridge(matrices, target, rule, **options):
    model = mk.MultiKernelRegressor(mk.precomputed(matrices), rule, alpha=1.0, **options)
    return model.fit(mk.sample_ids(len(target)), target)


@pytest.mark.parametrize(
    ("p", "q", "optimum"),
    [
        (4 / 3, 1.5, 2.349118199),
        (1.5, 1.2, 2.597735242),
        (1.2, 2, 2.104662070),
        (2, 1.2, 2.480980196),
        (3, 4, 1.478735349),
        (4, 2, 1.712648593),
        (4, 1.2, 2.227245976),
        (1.2, 4, 1.760014812),
    ],
)
def test_the_golden_problem(p, q, optimum):
    matrices, _, target = golden()
    rule = mk.HierarchicalNorm([0, 0, 1, 1], p, q, **TIGHT)
    model = ridge(matrices, target, rule, **NO_BIAS)
    np.testing.assert_allclose(model.objective_ / 2, optimum, rtol=1e-8)
    assert model.duality_gap_ <= 1e-9
    assert model.n_iter_ < 100


# -- collapses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.3, 2, 3, INF])
def test_equal_exponents_are_a_block_norm(p):
    matrices, y, _ = golden()
    for rule in (mk.LpNorm(p, **TIGHT), mk.HierarchicalNorm([[0, 2], [1, 3]], p, p, **TIGHT)):
        model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **RAW)
        model.fit(mk.sample_ids(16), y)
        if isinstance(rule, mk.LpNorm):
            plain = model
    np.testing.assert_allclose(model.objective_, plain.objective_, rtol=1e-7)
    np.testing.assert_allclose(model.kernel_weights_, plain.kernel_weights_, atol=2e-4)


@pytest.mark.parametrize(("p", "q"), MIXED)
def test_one_group_knows_q_only_and_groups_of_one_know_p_only(p, q):
    matrices, y, _ = golden()

    def fit(rule):
        model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **RAW)
        return model.fit(mk.sample_ids(16), y)

    for groups, exponent in (([0] * 4, q), ([0, 1, 2, 3], p)):
        ours = fit(mk.HierarchicalNorm(groups, p, q, **TIGHT))
        plain = fit(mk.LpNorm(exponent, **TIGHT))
        np.testing.assert_allclose(ours.objective_, plain.objective_, rtol=1e-8)
        # A gap of 1e-9 leaves weights its root.
        largest = plain.kernel_weights_.max()
        np.testing.assert_allclose(ours.kernel_weights_, plain.kernel_weights_, atol=1e-4 * largest)


@pytest.mark.parametrize(("p", "q"), [*MIXED, (INF, 1), (1, INF)])
def test_copies_share_the_weight(p, q):
    """Three groups of two equal kernels: the machine of one kernel 2^(2/q*) 3^(2/p*) K."""
    K, y = golden()[0][0], golden()[1]
    rule = mk.HierarchicalNorm([0, 0, 1, 1, 2, 2], p, q)
    model = mk.MultiKernelClassifier(mk.precomputed([K] * 6), rule, **RAW)
    model.fit(mk.sample_ids(16), y)
    expected = 2.0 ** (2 / conjugate(q) - 1) * 3.0 ** (2 / conjugate(p) - 1)
    np.testing.assert_allclose(model.kernel_weights_, expected)
    assert model.n_iter_ == 1


def test_between_its_neighbours():
    """A larger exponent means a smaller norm: optima fall with p and with q, across 2 as well."""
    matrices, _, target = golden()
    exponents = (1.1, 1.6, 2, 3, 8)
    optima = np.array(
        [
            [
                ridge(matrices, target, mk.HierarchicalNorm([0, 1, 0, 1], p, q, tol=1e-7))
                for q in exponents
            ]
            for p in exponents
        ]
    )
    optima = np.vectorize(lambda model: model.objective_)(optima)
    assert np.all(np.diff(optima, axis=0) < 0) and np.all(np.diff(optima, axis=1) < 0)


# -- rate and optimality ---------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [(4, 1.2), (1.2, 4), (3, 1.5), (1.5, 6)])
def test_errors_shrink_at_the_promised_rate(p, q):
    """``max(2 - q, 2 - p)``, conjugates beyond 2, for the weights; the gap goes with its square."""
    matrices, _, target = golden()
    rule = mk.HierarchicalNorm([0, 1, 1, 0], p, q, tol=1e-12, max_iter=300)
    gaps = np.array([entry["gap"] for entry in ridge(matrices, target, rule, **NO_BIAS).history_])
    rate = max(2 - min(exponent, conjugate(exponent)) for exponent in (p, q))
    tail = gaps[(gaps < 1e-4) & (gaps > 1e-10)]
    assert len(tail) >= 4
    assert (tail[-1] / tail[0]) ** (1 / (len(tail) - 1)) <= 1.02 * rate**2


@pytest.mark.parametrize(("p", "q"), MIXED)
def test_the_optimum_satisfies_both_closed_forms(p, q):
    """Weights from w and weights from the dual agree there, and only there."""
    matrices, y, _ = golden()
    labels = np.array([0, 0, 0, 1])
    rule = mk.HierarchicalNorm(labels.tolist(), p, q, tol=1e-11, max_iter=5000)
    model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **RAW)
    model.fit(mk.sample_ids(16), y)
    s = np.zeros(16)
    s[model.support_] = model.dual_coef_[:, 0]
    zeta = np.sqrt([s @ K @ s for K in matrices])
    theta = model.kernel_weights_
    if np.isfinite(p) and np.isfinite(q):
        v = theta * zeta
        u = np.array([norm(v[labels == j], q) for j in (0, 1)])[labels]
        U = norm(u[[0, 3]], p)
        expected = v ** (2 - q) * u ** (q - p) * U ** (p - 2)
        np.testing.assert_allclose(theta, expected, rtol=1e-4, atol=1e-5 * theta.max())
    q_, p_ = conjugate(q), conjugate(p)
    z = np.array([norm(zeta[labels == j], q_) for j in (0, 1)])[labels]
    Z = norm(z[[0, 3]], p_)
    expected = zeta ** (q_ - 2) * z ** (p_ - q_) * Z ** (2 - p_)
    np.testing.assert_allclose(theta, expected, rtol=1e-4, atol=1e-5 * theta.max())


# -- whole fits ------------------------------------------------------------------------------------


@given(
    st.integers(0, 2**31),
    st.floats(1.05, 1.95),
    st.floats(2.05, 20.0),
    st.booleans(),
    st.sampled_from(["squared", "hinge"]),
)
def test_any_small_problem_is_solved(seed, low, high, swap, loss):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 16)), int(rng.integers(2, 8))
    matrices = []
    for _ in range(m):
        B = rng.standard_normal((n, int(rng.integers(1, n + 1))))
        matrices.append(mk.normalize(B @ B.T, "trace") * n * 10.0 ** rng.uniform(-1, 1))
    labels = np.unique(rng.integers(0, 3, m), return_inverse=True)[1].tolist()
    p, q = (high, low) if swap else (low, high)
    rule = mk.HierarchicalNorm(labels, p, q, tol=1e-5, max_iter=1000)
    cost = 10.0 ** rng.uniform(-2, 2)
    y = rng.standard_normal(n)
    bank, ids = mk.precomputed(matrices), mk.sample_ids(n)
    if loss == "squared":
        model = mk.MultiKernelRegressor(bank, rule, alpha=1 / cost, **NO_BIAS).fit(ids, y)
    else:
        y = np.where(y > np.median(y), 1, -1)
        model = mk.MultiKernelClassifier(bank, rule, C=cost, **RAW).fit(ids, y)
    assert 0 <= model.duality_gap_ <= 1e-5


@pytest.mark.parametrize(("p", "q"), [(4, 1.1), (1.1, 4), (INF, 1), (1, INF)])
def test_features_in_groups(p, q, rng):
    """Rank-one kernels, never formed as matrices, agree with the matrices themselves."""
    X = rng.standard_normal((60, 24))
    y = X[:, 0] + X[:, 1] - X[:, 7] + 0.5 * rng.standard_normal(60)
    labels = np.repeat(np.arange(6), 4).tolist()
    rule = mk.HierarchicalNorm(labels, p, q, tol=1e-5, max_iter=1000)
    features = mk.MultiKernelRegressor(mk.per_feature(), rule, alpha=10.0).fit(X, y)
    bank = mk.precomputed([np.outer(x, x) for x in X.T])
    matrices = mk.MultiKernelRegressor(bank, rule, alpha=10.0).fit(mk.sample_ids(60), y)
    assert features.duality_gap_ <= 1e-5 and matrices.duality_gap_ <= 1e-5
    np.testing.assert_allclose(features.objective_, matrices.objective_, rtol=1e-5)
    if q < 2:
        # Of a group only the features that count keep a weight.
        inside = features.kernel_weights_[:4]
        assert inside[:2].min() > 10 * inside[2:].max()


# -- parameters ------------------------------------------------------------------------------------


def test_groups_and_exponents_are_checked():
    matrices, _, target = golden()
    for groups, message in [
        ([0, 0, 1], "each of the 4 kernels"),
        ([[0, 1], [1, 2, 3]], "in two groups"),
        ([[0], [1, 2]], r"\[3\] are in no group"),
    ]:
        with pytest.raises(ValueError, match=message):
            ridge(matrices, target, mk.HierarchicalNorm(groups, 1.5, 1.5))
    with pytest.raises(ValueError, match="q must be at least 1"):
        ridge(matrices, target, mk.HierarchicalNorm([0, 0, 1, 1], 4, 0.5))


def test_a_constant_kernel_takes_no_part():
    """Nor does a group of nothing else count as a group."""
    matrices, _, target = golden()
    constant = np.ones((16, 16))
    with pytest.warns(UserWarning, match="constant on the training data"):
        model = ridge(
            [*matrices, constant, constant],
            target,
            mk.HierarchicalNorm([0, 0, 1, 1, 1, 2], INF, 1.2, **TIGHT),
        )
    plain = ridge(matrices, target, mk.HierarchicalNorm([0, 0, 1, 1], INF, 1.2, **TIGHT))
    np.testing.assert_allclose(model.kernel_weights_[:4], plain.kernel_weights_, rtol=1e-6)
    assert not model.kernel_weights_[4:].any()
