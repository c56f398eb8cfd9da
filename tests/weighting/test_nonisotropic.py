"""Norms of a matrix with negative entries: hand-computed values, collapses, and a conic oracle."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.problem import nonisotropic
from multikernel.problem.nonisotropic import NonIsotropic, raise_to_minimum
from tests.weighting.test_blocknorm import golden
from tests.weighting.test_joint import NO_BIAS, ridge

#: A path of kernels, each competing with its neighbours: the graph Laplacian plus 0.2 I.
PATH = np.diag([1.2, 2.2, 2.2, 1.2]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)
#: Both signs in the matrix and in its inverse.
MIXED = np.array(
    [[1.0, 0.6, -0.5, 0.0], [0.6, 1.0, 0.1, -0.4], [-0.5, 0.1, 1.0, 0.3], [0.0, -0.4, 0.3, 1.0]]
)
#: Nearly singular, with a large spread of eigenvalues.
STEEP = np.ones((4, 4)) * np.outer([1, -1, 1, -1], [1, -1, 1, -1]) + 0.05 * np.eye(4)
MATRICES = {"path": PATH, "mixed": MIXED, "steep": STEEP}


def test_the_matrices_are_what_they_are_called():
    for E in MATRICES.values():
        assert np.linalg.eigvalsh(E)[0] > 0 and np.any(E < 0)
    assert np.all(np.linalg.inv(PATH) > 0)
    assert np.any(np.linalg.inv(MIXED) < 0)


# -- the small quadratic programs -----------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
def test_the_conjugate_is_the_minimum_above(name, rng):
    E = MATRICES[name]
    for _ in range(20):
        zeta = rng.random(4)
        u = raise_to_minimum(E, zeta)
        v = E @ u
        # Optimality: u >= zeta, E u >= 0, and one of the two is an equality.
        assert np.all(u >= zeta) and np.all(v >= -1e-12)
        np.testing.assert_allclose(v * (u - zeta), 0.0, atol=1e-12)
        # The same from the other side: max over v >= 0 of v'zeta - v'E^-1 v / 2.
        v = np.maximum(v, 0.0)
        other = v @ zeta - 0.5 * v @ np.linalg.solve(E, v)
        np.testing.assert_allclose(0.5 * u @ E @ u, other, rtol=1e-10)
        for _ in range(20):
            higher = zeta + rng.random(4) * rng.integers(0, 2, 4)
            assert higher @ E @ higher >= u @ E @ u - 1e-12


def test_with_a_non_negative_inverse_the_printed_norm_is_the_regulariser(rng):
    """``1/2 v'E^-1 v``, as in the thesis."""
    rule = NonIsotropic(PATH, np.ones(4, dtype=bool))
    for _ in range(10):
        theta, a = rng.random(4), rng.random(4)
        v = theta * np.sqrt(a)
        printed = 0.5 * v @ np.linalg.solve(PATH, v)
        assert rule.primal(theta, a) == pytest.approx(printed, rel=1e-9)


def test_two_samples_by_hand():
    """``E = [[1, -.9], [-.9, 1]]`` and ``zeta = (1, .5) t``: u = (1, .9) t, v = (.19, 0) t.

    The kernels are 1 and 1/4 times ``[[1, -1], [-1, 1]]``. Ridge regression with targets 3 and -3
    has coefficients s and -s, so t = 2 s, the weights are (.19, 0), and ``f = 2 (.19) s = 3 (.38) /
    (.38 + alpha)``.
    """
    E = np.array([[1.0, -0.9], [-0.9, 1.0]])
    np.testing.assert_allclose(raise_to_minimum(E, np.array([1.0, 0.5])), [1.0, 0.9])
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    bank, rule = mk.precomputed([K, K / 4]), mk.NonIsotropicNorm(E, tol=1e-10, max_iter=5000)
    model = mk.MultiKernelRegressor(bank, rule, alpha=0.5, **NO_BIAS)
    model.fit(mk.sample_ids(2), [3.0, -3.0])
    np.testing.assert_allclose(model.kernel_weights_, [0.19, 0.0], atol=1e-8)
    expected = 3.0 * 0.38 / (0.38 + 0.5)
    np.testing.assert_allclose(model.predict(mk.sample_ids(2)), [expected, -expected], rtol=1e-7)


# -- collapses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.05, 0.5, 5.0])
def test_the_elastic_net_is_a_special_case(mu):
    """``1/2 v'(1 1' + mu I) v`` is ``1/2 ||v||_1^2 + mu/2 ||v||_2^2``."""
    matrices, y, _ = golden()
    bank, ids = mk.precomputed(matrices), mk.sample_ids(16)
    E = np.linalg.inv(1.0 + mu * np.eye(4))
    options = {"center": False, "normalize": None}
    tight = {"tol": 1e-8, "max_iter": 5000}
    ours = mk.MultiKernelClassifier(bank, mk.NonIsotropicNorm(E, **tight), **options).fit(ids, y)
    net = mk.MultiKernelClassifier(bank, mk.ElasticNetNorm(1.0, mu, **tight), **options)
    net.fit(ids, y)
    np.testing.assert_allclose(ours.objective_, net.objective_, rtol=1e-7)
    np.testing.assert_allclose(ours.kernel_weights_, net.kernel_weights_, atol=1e-4)


def test_without_negative_entries_both_ways_meet(monkeypatch):
    """The step for coupled kernels finds the optimum of the closed form."""
    matrices, _, target = golden()
    E = np.array([[mk.alignment(K, L) for L in matrices] for K in matrices])
    tight = {"tol": 1e-9, "max_iter": 5000}
    closed = ridge(matrices, target, mk.NonIsotropicNorm(E, **tight), **NO_BIAS)
    monkeypatch.setattr(nonisotropic.NonIsotropic, "is_nonnegative", False)
    general = ridge(matrices, target, mk.NonIsotropicNorm(E, **tight), **NO_BIAS)
    assert general.duality_gap_ <= 1e-9
    np.testing.assert_allclose(general.objective_, closed.objective_, rtol=1e-8)
    np.testing.assert_allclose(general.kernel_weights_, closed.kernel_weights_, rtol=1e-4)


def test_competition_lowers_weights():
    """A more negative entry never raises the conjugate, so the optimum grows."""
    matrices, _, target = golden()
    values = []
    for entry in (0.2, 0.0, -0.2, -0.5, -0.9):
        E = np.eye(4)
        E[0, 1] = E[1, 0] = entry
        rule = mk.NonIsotropicNorm(E, tol=1e-8, max_iter=5000)
        values.append(ridge(matrices, target, rule, **NO_BIAS).objective_)
    assert np.all(np.diff(values) > 0)


def test_a_constant_kernel_is_left_out(rng):
    X = rng.standard_normal((30, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    matrices = [mk.Gaussian(0.2)(X), np.ones((30, 30)), mk.Gaussian(1.0)(X), mk.Linear()(X)]
    keep = [0, 2, 3]
    rule = mk.NonIsotropicNorm(PATH, tol=1e-8, max_iter=5000)
    few = mk.NonIsotropicNorm(PATH[np.ix_(keep, keep)], tol=1e-8, max_iter=5000)
    ids = mk.sample_ids(30)
    with pytest.warns(UserWarning, match="constant on the training data"):
        whole = mk.MultiKernelRegressor(mk.precomputed(matrices), rule).fit(ids, y)
    part = mk.MultiKernelRegressor(mk.precomputed([matrices[k] for k in keep]), few).fit(ids, y)
    assert whole.kernel_weights_[1] == 0
    np.testing.assert_allclose(whole.objective_, part.objective_, rtol=1e-7)


# -- the oracle -----------------------------------------------------------------------------------


def optimum(matrices, y, E, *, loss, C, intercept) -> float:
    """The dual as a conic program: ``u_k >= ||sum_i s_i phi_k(x_i)||``, cost ``1/2 u'E u``."""
    clarabel = pytest.importorskip("clarabel")
    from tests.weighting.test_hierarchical_oracle import Program

    program = Program()
    s = program.variables(len(y), square=1.0 / C if loss == "squared" else 0.0)
    for i, t in zip(s, y, strict=True):
        program.cost[i] = -t
        if loss == "hinge":
            program.at_least(({i: t}, 0.0), ({i: -t}, C))
    if intercept:
        program.demand(clarabel.ZeroConeT(1), (dict.fromkeys(s, 1.0), 0.0))
    u = program.variables(len(matrices))
    for k, K in zip(u, matrices, strict=True):
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-13 * values[-1]
        B = (vectors[:, keep] * np.sqrt(values[keep])).T
        rows = [({k: 1.0}, 0.0), *[(dict(zip(s, row, strict=True)), 0.0) for row in B]]
        program.demand(clarabel.SecondOrderConeT(len(rows)), *rows)
    for row in np.linalg.cholesky(E).T:
        (x,) = program.variables(1, square=1.0)
        program.demand(clarabel.ZeroConeT(1), ({x: -1.0, **dict(zip(u, row, strict=True))}, 0.0))
    return program.solve()


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rank_one", [True, False])
def test_a_conic_solver_finds_the_same_optimum(name, loss, intercept, rank_one):
    pytest.importorskip("clarabel")
    from tests.weighting.test_hierarchical_oracle import fit, problem

    matrices, y, f, _ = problem(1, rank_one)
    target = y if loss == "hinge" else f
    options = {"loss": loss, "C": 2.0, "intercept": intercept}
    value = optimum(matrices[:4], target, MATRICES[name], **options)
    rule = mk.NonIsotropicNorm(MATRICES[name], tol=1e-7, max_iter=5000)
    model, ours = fit(matrices[:4], target, rule, **options)
    assert model.duality_gap_ <= 1e-7
    assert np.all(model.kernel_weights_ >= 0)
    np.testing.assert_allclose(ours, value, rtol=1e-6)
