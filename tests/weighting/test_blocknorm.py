"""lp-norm multiple kernel learning: the golden problem, collapses and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

import multikernel as mk
from multikernel.problem.regularisers import conjugate, norm

INF = float("inf")


def golden() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Sixteen points, four kernels, labels and a regression target; no random numbers."""
    i, j = np.arange(1, 17)[:, None], np.arange(1, 5)[None]
    y = np.where(i[:, 0] % 2 == 1, 1.0, -1.0)
    X = np.sin(i * j + 0.5 * j) + y[:, None] * np.array([0.8, 0.4, 0.1, 0.0])
    matrices = []
    for x in X.T:
        K = np.exp(-2 * (x[:, None] - x[None]) ** 2) + 0.05 * np.eye(16)
        matrices.append(mk.normalize(K, "multiplicative"))
    return matrices, y, X[:, 0] + 0.5 * X[:, 1] ** 2


RAW = {"center": False, "normalize": None}


def classifier(p: float, **options: object) -> mk.MultiKernelClassifier:
    matrices, y, _ = golden()
    rule = mk.LpNorm(p, tol=1e-9, max_iter=3000)
    model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **{**RAW, **options})
    return model.fit(mk.sample_ids(16), y)


def test_golden_kernels():
    matrices, _, _ = golden()
    expected = [0.000455090, 0.001097748, 0.005173079, 1.459977412]
    np.testing.assert_allclose([K[0, 1] for K in matrices], expected, atol=5e-10)


@pytest.mark.parametrize(
    ("p", "optimum", "theta"),
    [
        (1, 5.25195778, [0.656236, 0.343764, 0, 0]),
        (1.01, 5.21272381, [0.65392, 0.35901, 0.00002, 0]),
        (1.05, 5.05893746, [0.67148, 0.38411, 0.01254, 0.00171]),
        (8 / 7, 4.71923805, [0.70616, 0.44866, 0.03929, 0.04144]),
        (4 / 3, 4.12526279, [0.773904, 0.588869, 0.145450, 0.182074]),
        (1.6, 3.44781417, [0.86073, 0.77165, 0.47140, 0.46611]),
        (1.9, 2.86886654, [0.96483, 0.94758, 0.87363, 0.86022]),
        (2, 2.71608278, [1, 1, 1, 1]),
        (3, 1.87107297, [1.25818, 1.46676, 2.14544, 2.32307]),
        (4, 1.54389919, [1.40576, 1.83823, 3.03241, 3.34676]),
        (10, 1.08526549, [1.71088, 2.91204, 5.40806, 6.07714]),
        (INF, 0.85480000, [1.95850, 4.06903, 7.73815, 8.73998]),
    ],
)
def test_hinge_on_the_golden_problem(p, optimum, theta):
    model = classifier(p)
    assert model.duality_gap_ <= 1e-9
    np.testing.assert_allclose(model.objective_, optimum, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.kernel_weights_, theta, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("p", "optimum"),
    [
        (1, 2.789360677),
        (8 / 7, 2.583357327),
        (4 / 3, 2.365338330),
        (1.6, 2.138468048),
        (2, 1.897978639),
        (3, 1.558489668),
        (4, 1.387783945),
        (INF, 0.916727757),
    ],
)
def test_squared_loss_on_the_golden_problem(p, optimum):
    matrices, _, target = golden()
    rule = mk.LpNorm(p, tol=1e-9, max_iter=3000)
    model = mk.MultiKernelRegressor(mk.precomputed(matrices), rule, alpha=1.0, **RAW)
    model.fit(mk.sample_ids(16), target)
    # Ridge regression's own objective has no halves: it is twice that of the table.
    np.testing.assert_allclose(model.objective_ / 2, optimum, rtol=1e-8)


def test_two_points_in_closed_form():
    """One distance d_k per kernel decides everything: the optimum is 2 / ||sqrt(d)||_{p*}^2."""
    matrices = [np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[4.0, 2.0], [2.0, 4.0]])]
    expected = {1: 0.5, 8 / 7: 0.499512907, 4 / 3: 0.485071250, 2: 0.4, 4: 0.302862305}
    for p, optimum in expected.items():
        rule = mk.LpNorm(p, tol=1e-10, max_iter=3000)
        model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, C=1e3, **RAW)
        model.fit(mk.sample_ids(2), [1, -1])
        np.testing.assert_allclose(model.objective_, optimum, rtol=1e-8)


def test_p_two_is_the_plain_sum():
    matrices, y, _ = golden()
    model = classifier(2)
    total = np.sum(matrices, axis=0)
    plain = SVC(kernel="precomputed", tol=1e-10).fit(total, y)
    np.testing.assert_array_equal(model.kernel_weights_, np.ones(4))
    np.testing.assert_allclose(
        model.decision_function(mk.sample_ids(16)), plain.decision_function(total), atol=1e-5
    )


@pytest.mark.parametrize("p", [1, 4 / 3, 3, INF])
def test_identical_kernels_share_the_weight(p):
    K = golden()[0][0]
    y = golden()[1]
    model = mk.MultiKernelClassifier(mk.precomputed([K, K, K]), mk.LpNorm(p), **RAW)
    model.fit(mk.sample_ids(16), y)
    exponent = -1.0 if p == INF else (2 - p) / p
    np.testing.assert_allclose(model.kernel_weights_, 3.0**-exponent)
    assert model.n_iter_ == 1


def test_the_optimum_falls_as_p_grows():
    values = [classifier(p).objective_ for p in (1, 1.2, 1.5, 2, 3, 6, INF)]
    assert np.all(np.diff(values) < 0)


#: Block norms p and norms q of the kernel weights (Kloft 2011).
EXPONENTS = [
    *((1, 1), (64 / 63, 32 / 31), (8 / 7, 4 / 3), (4 / 3, 2), (1.5, 3), (8 / 5, 4), (16 / 9, 8)),
    *((2, INF), (16 / 7, -8), (8 / 3, -4), (3, -3), (4, -2), (INF, -1)),
]


@pytest.mark.parametrize(("p", "q"), EXPONENTS)
def test_theta_norm(p, q):
    rule = mk.LpNorm.from_theta_norm(q, tol=1e-5)
    np.testing.assert_allclose(rule.p, p, rtol=1e-14)
    assert rule.tol == 1e-5
    np.testing.assert_allclose(mk.LpNorm(p).theta_norm, q, rtol=1e-13)
    np.testing.assert_allclose(rule.theta_norm, q, rtol=1e-13)


def test_theta_norm_of_infinite_exponents():
    assert mk.LpNorm.from_theta_norm(-INF).p == 2.0
    assert mk.LpNorm(2).theta_norm == INF
    assert mk.LpNorm.from_theta_norm(-1).p == INF


@pytest.mark.parametrize("q", [0.5, 0.0, -0.5, -0.999, float("nan")])
def test_exponents_without_a_block_norm_are_refused(q):
    with pytest.raises(ValueError, match=r"q must be at least 1 .* or at most -1"):
        mk.LpNorm.from_theta_norm(q)


@pytest.mark.parametrize(("p", "q"), [pair for pair in EXPONENTS if pair[0] != 2])
def test_weights_lie_on_the_boundary_of_their_norm(p, q):
    """``sum_k theta_k^q = 1`` for both signs of q (Kloft 2011, Problem II.4)."""
    theta = classifier(p).kernel_weights_
    theta = theta[theta > 0] if q > 0 else theta
    np.testing.assert_allclose(np.sum(theta**q), 1.0, rtol=1e-6)


def test_bad_p():
    with pytest.raises(ValueError, match="p must be at least 1"):
        classifier(0.5)


@pytest.mark.parametrize("p", [1, 4 / 3, 4, INF])
def test_the_gap_is_a_certificate(p, rng):
    """Primal and dual recomputed by hand from the fitted attributes."""
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    bank = mk.gaussians([0.05, 0.2, 1.0]) + mk.per_feature(mk.Linear())
    model = mk.MultiKernelClassifier(bank, mk.LpNorm(p, tol=1e-4), C=2.0).fit(X, y)
    plan = bank.plan(X)
    from multikernel.grams.memory import MemoryBudget

    grams = plan.grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    s = np.zeros(60)
    s[model.support_] = model.dual_coef_[:, 0]
    K = grams.block(slice(None))
    a = np.einsum("i,kij,j->k", s, K, s)
    theta = model.kernel_weights_
    f = np.einsum("k,kij,j->i", theta, K, s) + model.intercept_[0]
    primal = 0.5 * norm(theta * np.sqrt(a), p) ** 2 + 2.0 * np.maximum(0, 1 - y * f).sum()
    dual = s @ y - 0.5 * norm(np.sqrt(a), conjugate(p)) ** 2
    assert np.all(s * y >= 0) and np.all(s * y <= 2.0) and abs(s.sum()) < 1e-9
    # At p = inf some a_k go to zero, and the root of a rounding error of 1e-17 is 3e-9.
    np.testing.assert_allclose((primal - dual) / primal, model.duality_gap_, atol=1e-8)
    assert 0 <= model.duality_gap_ <= 1e-4


def test_almost_only_loss_still_moves_the_weights(rng):
    """With a tiny C the objective is nearly all loss; the gap must not be held against that."""
    X = rng.standard_normal((50, 20))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mk.MultiKernelClassifier(mk.per_feature(), "l1", C=1e-4).fit(X, y)
    weights = np.sort(model.kernel_weights_)[::-1]
    assert weights[0] > 0.9


def test_multiclass_weights_are_shared():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = mk.MultiKernelClassifier(weighting="lp").fit(X, y)
    assert model.kernel_weights_.shape == (13,)
    assert model.duality_gap_ <= 1e-3
    assert model.score(X, y) > 0.95


def test_a_limit_on_steps_is_reported():
    from sklearn.exceptions import ConvergenceWarning

    matrices, y, _ = golden()
    rule = mk.LpNorm(1, tol=1e-9, max_iter=3)
    model = mk.MultiKernelClassifier(mk.precomputed(matrices), rule, **RAW)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model.fit(mk.sample_ids(16), y)
    assert len(model.history_) == 3
