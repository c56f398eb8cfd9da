"""The second stage of ensembles, against conic programs, closed forms and its own optimality."""

from __future__ import annotations

import warnings

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from multikernel.problem.losses import Hinge, Squared
from multikernel.solvers.ensemble.problem import HypothesisBall, combine_hypotheses

LOSSES = {"hinge": Hinge(), "squared": Squared()}
BALLS = [(q, signed) for q in (1, 2) for signed in (False, True)]


def problem(rng, n=60, p=5, t=1, kind="hinge"):
    """Hypotheses of different quality, two of them nearly the same, one worse than chance."""
    Y = np.where(rng.random((n, t)) < 0.4, 1.0, -1.0)
    if kind == "squared":
        Y = Y + rng.normal(size=(n, t)) + 0.7
    quality = np.linspace(0.9, -0.2, p)[None, :, None]
    H = quality * Y[:, None] + rng.normal(size=(n, p, t))
    H[:, 1] = H[:, 0] + 0.01 * rng.normal(size=(n, t))
    return H, Y, rng.uniform(0.5, 2.0, n)


def conic(H, Y, C, kind, q, signed, radius, intercept):
    """The same problem as a conic program: the smallest loss, by an independent solver."""
    n, p, t = H.shape
    N = n * t
    Z = H.transpose(0, 2, 1).reshape(N, p)
    y, c = Y.ravel(), np.repeat(C, t)
    B = np.tile(np.eye(t), (n, 1)) if intercept else np.zeros((N, t))
    # variables: mu (p), b (t), slack or value (N), bounds on |mu| (p)
    size = p + t + N + p
    P = sp.csc_matrix((size, size))
    linear = np.zeros(size)
    at = slice(p + t, p + t + N)
    if kind == "squared":
        diagonal = np.zeros(size)
        diagonal[at] = c
        P = sp.diags(diagonal).tocsc()
    else:
        linear[at] = c
    rows, right, cones = [], [], []

    def add(mu, b, slack, bound, value, cone):
        blocks = [np.zeros((len(value), k)) for k in (p, t, N, p)]
        for block, given_ in zip(blocks, (mu, b, slack, bound), strict=True):
            if given_ is not None:
                block[:] = given_
        rows.append(np.hstack(blocks))
        right.append(value)
        cones.append(cone(len(value)))

    if not intercept:
        add(None, np.eye(t), None, None, np.zeros(t), clarabel.ZeroConeT)
    if kind == "squared":  # value = y - f
        add(Z, B, np.eye(N), None, y, clarabel.ZeroConeT)
    else:  # slack >= 0, slack >= 1 - y f
        add(None, None, -np.eye(N), None, np.zeros(N), clarabel.NonnegativeConeT)
        add(
            -y[:, None] * Z,
            -y[:, None] * B,
            -np.eye(N),
            None,
            -np.ones(N),
            clarabel.NonnegativeConeT,
        )
    if not signed:
        add(-np.eye(p), None, None, None, np.zeros(p), clarabel.NonnegativeConeT)
    for sign in (1.0, -1.0):
        add(sign * np.eye(p), None, None, -np.eye(p), np.zeros(p), clarabel.NonnegativeConeT)
    if q == 1:
        add(None, None, None, np.ones((1, p)), np.array([radius]), clarabel.NonnegativeConeT)
    else:
        add(
            np.vstack([np.zeros((1, p)), -np.eye(p)]),
            None,
            None,
            None,
            np.r_[radius, np.zeros(p)],
            clarabel.SecondOrderConeT,
        )
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_rel = options.tol_gap_abs = options.tol_feas = 1e-10
    A = sp.csc_matrix(np.vstack(rows))
    solver = clarabel.DefaultSolver(P, linear, A, np.concatenate(right), cones, options)
    return solver.solve().obj_val


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("q", "signed"), BALLS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("radius", [0.3, 1.0, 40.0])
def test_equals_a_conic_program(rng, kind, q, signed, intercept, radius):
    H, Y, C = problem(rng, kind=kind)
    ball = HypothesisBall(q, signed, radius)
    found = combine_hypotheses(H, Y, C, LOSSES[kind], ball, fit_intercept=intercept)
    expected = conic(H, Y, C, kind, q, signed, radius, intercept)
    assert found.gap <= 1e-10
    assert ball.contains(found.weights)
    assert found.objective == pytest.approx(expected, rel=1e-7)
    assert found.bound <= expected * (1 + 1e-7)


@pytest.mark.parametrize("kind", LOSSES)
def test_several_outputs_equal_a_conic_program(rng, kind):
    H, Y, C = problem(rng, n=40, t=3, kind=kind)
    found = combine_hypotheses(H, Y, C, LOSSES[kind], HypothesisBall(2, False, 0.7))
    assert found.intercept.shape == (3,)
    expected = conic(H, Y, C, kind, 2, False, 0.7, True)
    assert found.objective == pytest.approx(expected, rel=1e-7)


def test_outputs_without_intercept_are_more_points(rng):
    H, Y, C = problem(rng, n=30, t=2)
    together = combine_hypotheses(H, Y, C, Hinge(), HypothesisBall(1), fit_intercept=False)
    stacked = np.concatenate([H[:, :, [0]], H[:, :, [1]]])
    alone = combine_hypotheses(
        stacked,
        np.concatenate([Y[:, [0]], Y[:, [1]]]),
        np.r_[C, C],
        Hinge(),
        HypothesisBall(1),
        fit_intercept=False,
    )
    assert together.objective == pytest.approx(alone.objective, rel=1e-8)


# -- closed forms ---------------------------------------------------------------------------------


def orthonormal(rng, n=30, p=4):
    Q = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, p))]))[0][:, 1:]
    y = Q @ np.array([3.0, -2.0, 0.5, 0.1]) + 0.1 * rng.normal(size=n) + 5.0
    return Q, y


def test_orthonormal_hypotheses_are_soft_thresholded(rng):
    Q, y = orthonormal(rng)
    z = Q.T @ y
    # ||soft(z, tau)||_1 = 2 with two weights alive: tau from their sum
    order = np.sort(np.abs(z))[::-1]
    tau = (order[0] + order[1] - 2.0) / 2
    assert order[2] < tau < order[1]
    found = combine_hypotheses(
        Q[:, :, None], y[:, None], np.ones(30), Squared(), HypothesisBall(1, True, 2.0), tol=1e-12
    )
    np.testing.assert_allclose(
        found.weights, np.sign(z) * np.maximum(np.abs(z) - tau, 0), atol=1e-5
    )
    assert np.count_nonzero(found.weights) == 2  # zeros are exact
    assert found.intercept[0] == pytest.approx(y.mean())


def test_orthonormal_hypotheses_are_shrunk_together_in_the_l2_ball(rng):
    Q, y = orthonormal(rng)
    z = Q.T @ y
    for signed, kept in ((True, z), (False, np.maximum(z, 0))):
        found = combine_hypotheses(
            Q[:, :, None],
            y[:, None],
            np.ones(30),
            Squared(),
            HypothesisBall(2, signed, 1.5),
            tol=1e-12,
        )
        np.testing.assert_allclose(found.weights, 1.5 * kept / np.linalg.norm(kept), atol=1e-5)


def test_a_large_ball_leaves_least_squares(rng):
    H, Y, C = problem(rng, kind="squared")
    H = H[:, [0, 2, 3, 4]]
    W = np.sqrt(C)[:, None]
    design = np.column_stack([H[:, :, 0], np.ones(len(H))])
    free = np.linalg.lstsq(W * design, W * Y, rcond=None)[0][:, 0]
    for q in (1, 2):
        found = combine_hypotheses(H, Y, C, Squared(), HypothesisBall(q, True, 50.0), tol=1e-13)
        np.testing.assert_allclose(found.weights, free[:-1], rtol=1e-4, atol=1e-6)
        assert found.intercept[0] == pytest.approx(free[-1], rel=1e-4)
    both = np.column_stack([design, -np.ones(len(H))])  # the intercept may be negative
    positive = nnls(W * both, (W * Y)[:, 0])[0]
    found = combine_hypotheses(H, Y, C, Squared(), HypothesisBall(1, False, 50.0), tol=1e-13)
    np.testing.assert_allclose(found.weights, positive[:-2], rtol=1e-4, atol=1e-6)


def test_a_perfect_hypothesis_is_taken_whole(rng):
    Y = np.where(rng.random((50, 1)) < 0.5, 1.0, -1.0)
    H = np.stack([Y, rng.normal(size=Y.shape)], axis=1)
    for loss in LOSSES.values():
        # the squared loss is flat at its optimum: weights are known to the root of the gap
        found = combine_hypotheses(H, Y, np.ones(50), loss, HypothesisBall(1), tol=1e-13)
        np.testing.assert_allclose(found.weights, [1.0, 0.0], atol=1e-6)
        assert found.objective <= 1e-7 * 50


def test_nothing_to_explain_needs_no_hypothesis():
    H = np.ones((5, 2, 1))
    found = combine_hypotheses(H, np.ones((5, 1)), np.ones(5), Hinge(), HypothesisBall(1))
    assert found.objective == found.gap == 0.0
    assert not found.weights.any()


def test_useless_hypotheses_get_nothing(rng):
    """Without a weight that helps, the weights are zero and the gap says so."""
    Y = np.tile([1.0, -1.0], 20)[:, None]
    H = -Y[:, :, None]
    for loss in LOSSES.values():
        found = combine_hypotheses(H, Y, np.ones(40), loss, HypothesisBall(2, False, 1.0))
        assert abs(found.weights[0]) <= 1e-6 and found.gap <= 1e-10
        turned = combine_hypotheses(
            H, Y, np.ones(40), loss, HypothesisBall(2, True, 1.0), tol=1e-13
        )
        assert turned.weights[0] == pytest.approx(-1.0, abs=1e-6)


# -- relations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOSSES)
def test_larger_families_do_better(rng, kind):
    H, Y, C = problem(rng, kind=kind)

    def loss(q, signed, radius):
        return combine_hypotheses(
            H, Y, C, LOSSES[kind], HypothesisBall(q, signed, radius)
        ).objective

    slack = 1e-7
    assert loss(1, True, 1.0) <= loss(1, False, 1.0) * (1 + slack)
    assert loss(2, False, 1.0) <= loss(1, False, 1.0) * (1 + slack)
    assert loss(1, False, 2.0) <= loss(1, False, 1.0) * (1 + slack)
    each = [
        combine_hypotheses(H[:, [k]], Y, C, LOSSES[kind], HypothesisBall(1)).objective
        for k in range(5)
    ]
    assert loss(1, False, 1.0) <= min(each) * (1 + slack)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("q", "signed"), BALLS)
def test_costs_are_repetitions(rng, kind, q, signed):
    H, Y, _ = problem(rng, n=40, kind=kind)
    counts = rng.integers(1, 4, 40)
    counts[0] = 1
    ball = HypothesisBall(q, signed, 0.8)
    once = combine_hypotheses(H, Y, counts.astype(float), LOSSES[kind], ball)
    rows = np.repeat(np.arange(40), counts)
    often = combine_hypotheses(H[rows], Y[rows], np.ones(len(rows)), LOSSES[kind], ball)
    np.testing.assert_allclose(once.weights, often.weights, rtol=1e-6, atol=1e-9)
    assert once.objective == pytest.approx(often.objective, rel=1e-9)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(sorted(LOSSES)), at=st.integers(0, 3))
@example(seed=1138, kind="hinge", at=3)  # a coefficient rounds to its bound
def test_no_weights_in_the_ball_beat_the_bound(seed, kind, at):
    """The bound is a bound, whether or not the solver was stopped early."""
    rng = np.random.default_rng(seed)
    q, signed = BALLS[at]
    H, Y, C = problem(rng, n=25, p=4, kind=kind)
    ball = HypothesisBall(q, signed, float(rng.uniform(0.1, 5.0)))
    loss = LOSSES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = combine_hypotheses(H, Y, C, loss, ball, max_iter=2)
    found = combine_hypotheses(H, Y, C, loss, ball)
    for _ in range(20):
        mu = rng.normal(size=4)
        mu = mu if signed else np.abs(mu)
        mu *= ball.radius * rng.random() / np.linalg.norm(mu, q)
        F = np.einsum("nkt,k->nt", H, mu)
        value = loss.value(F, Y, C, loss.intercept(F, Y, C)).sum()
        assert value >= found.bound * (1 - 1e-9)
        assert value >= early.bound * (1 - 1e-9)
    assert found.gap <= 1e-10
    assert early.objective >= found.bound * (1 - 1e-9)


def test_the_bound_follows_from_the_coefficients(rng):
    """Whoever doubts the gap can compute it from what comes back."""
    H, Y, C = problem(rng)
    found = combine_hypotheses(H, Y, C, Hinge(), HypothesisBall(1, False, 0.5))
    alpha = found.coef * Y
    assert np.all(alpha >= 0) and np.all(alpha <= C[:, None] * (1 + 1e-12))
    assert abs(found.coef.sum()) <= 1e-12 * C.sum()
    g = np.einsum("nkt,nt->k", H, found.coef)
    assert found.bound == pytest.approx(alpha.sum() - 0.5 * max(g.max(), 0.0), rel=1e-12)


def test_optimality_conditions_of_the_squared_loss(rng):
    """Weights that are alive share the largest gradient; the dead ones stay below it."""
    H, Y, C = problem(rng, kind="squared")
    found = combine_hypotheses(H, Y, C, Squared(), HypothesisBall(1, False, 0.5), tol=1e-13)
    F = np.einsum("nkt,k->nt", H, found.weights) + found.intercept
    gradient = np.einsum("nkt,nt->k", H, C[:, None] * (Y - F))
    alive = found.weights > 0
    assert 0 < np.count_nonzero(alive) < 5
    np.testing.assert_allclose(gradient[alive], gradient.max(), rtol=1e-5)
    assert found.weights.sum() == pytest.approx(0.5, rel=1e-8)


def test_many_hypotheses(rng):
    H, Y, C = problem(rng, n=150, p=300)
    found = combine_hypotheses(H, Y, C, Hinge(), HypothesisBall(1))
    assert found.gap <= 1e-10
    assert np.count_nonzero(found.weights) < 150


# -- refusals -------------------------------------------------------------------------------------


def test_an_early_stop_is_reported(rng):
    H, Y, C = problem(rng)
    with pytest.warns(ConvergenceWarning, match="relative gap of .* above tol"):
        found = combine_hypotheses(H, Y, C, Hinge(), HypothesisBall(1), max_iter=1)
    assert found.gap > 1e-10


def test_bad_input(rng):
    H, Y, C = problem(rng)
    with pytest.raises(ValueError, match="q must be 1 or 2; got 3"):
        HypothesisBall(3)
    for radius in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="radius must be a positive finite number"):
            HypothesisBall(1, False, radius)
    with pytest.raises(ValueError, match=r"shapes \(n, p, t\)"):
        combine_hypotheses(H[:, :, 0], Y, C, Hinge(), HypothesisBall())
    with pytest.raises(ValueError, match="NaN or infinite"):
        combine_hypotheses(np.where(H > 1, np.nan, H), Y, C, Hinge(), HypothesisBall())
    with pytest.raises(ValueError, match="positive and finite"):
        combine_hypotheses(H, Y, 0.0 * C, Hinge(), HypothesisBall())
