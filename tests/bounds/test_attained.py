"""Samples on which a bound is attained, or so nearly that it holds with no factor to spare.

Random kernels leave a bound much room, and a bound that lost a factor would still hold on them. On
the identity matrix every sign vector has the same quadratic form, the trace: there is no room.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from multikernel import bounds as b
from multikernel.bounds import montecarlo
from multikernel.bounds.families import CLASSES, FunctionClasses, classify, detect, regress
from multikernel.bounds.montecarlo import draw_signs

from ..naive_alignment import given_grams


def double_factorial_root(s):
    """``((2s-1)!!)^(1/s)``: the s-th moment of a quadratic form of trace one, to the power 1/s."""
    return math.prod(range(1, 2 * s, 2)) ** (1 / s)


@pytest.mark.parametrize("q", [1.3, 1.7, 3.0, 6.0])
@pytest.mark.parametrize("p", [2, 60, 500])
def test_many_equal_kernels_need_the_factor_between_norms(q, p):
    """p identities on six points have the complexity ``p^(1/2r) / sqrt(6)``, 1/q + 1/r = 1.

    The bound for a broken r compares the r-norm with the s-norm of an integer s; without the factor
    ``p^(1/r - 1/s)`` it falls below the complexity when there are many kernels.
    """
    m, r = 6, q / (q - 1)
    exact = p ** (0.5 / r) / math.sqrt(m)
    found = b.rademacher_lq_exact([np.eye(m)] * p, q)
    assert found.value == pytest.approx(exact)
    traces = [float(m)] * p
    for sharp in (True, False):
        bound = b.rademacher_lq(traces, m, q, sharp=sharp)
        assert exact <= bound <= b.rademacher_lq_uniform(p, m, q, 1.0, sharp=sharp) * (1 + 1e-12)
        # Above the truth by the root of the moment constant of the next integer, at the most.
        constant = double_factorial_root(math.ceil(r)) if sharp else 23 / 22 * math.ceil(r)
        assert bound <= exact * math.sqrt(constant) * (1 + 1e-12)


@pytest.mark.parametrize("q", [1.03, 1.3, 1.7, 3.0, 6.0])
@pytest.mark.parametrize("sharp", [False, True])
def test_a_broken_exponent_is_compared_with_the_best_integer(q, sharp, rng):
    """``E sqrt(||u||_r) <= sqrt(p^(1/r - 1/s) (sum_k E u_k^s)^(1/s))`` for every integer s >= r."""
    r = q / (q - 1)
    for p in (1, 3, 40):
        u = rng.random(p) ** 3 * 100 + 1e-3
        slow = math.inf
        for s in range(math.ceil(r), math.ceil(r) + 60):
            constant = double_factorial_root(s) if sharp else 23 / 22 * s
            size = float(np.sum((u / u.max()) ** s)) ** (1 / s) * u.max()
            slow = min(slow, math.sqrt(constant * p ** (1 / r - 1 / s) * size) / 50)
        assert b.rademacher_lq(u, 50, q, sharp=sharp) == pytest.approx(slow, rel=1e-12)


def test_integers_are_recognised_and_nothing_else_is():
    # Exponents q = k / (k-1) give r = k up to rounding, which may fall on either side of k.
    u = np.array([3.0, 1.0, 2.0])
    for k in range(2, 40):
        constant = double_factorial_root(k)
        expected = math.sqrt(constant * np.sum(u**k) ** (1 / k)) / 9
        assert b.rademacher_lq(u, 9, k / (k - 1), sharp=True) == pytest.approx(expected, rel=1e-9)
        expected = math.sqrt(constant * 3 ** (1 / k) / 9)
        found = b.rademacher_lq_uniform(3, 9, k / (k - 1), 1.0, sharp=True)
        assert found == pytest.approx(expected, rel=1e-9)
    # r = 3 + 1e-5 is not 3: the identity shows that the bound at 3 would be too small.
    r = 3 + 1e-5
    for call in (
        lambda q: b.rademacher_lq(u, 9, q, sharp=True),
        lambda q: b.rademacher_lq_uniform(3, 9, q, 1.0, sharp=True),
    ):
        assert call(r / (r - 1)) > call(1.5) * 1.05


@pytest.mark.parametrize("m", [1, 5, 8])
def test_one_identity_attains_the_bounds(m):
    exact = 1 / math.sqrt(m)
    for q in (1.0, 1.5, 2.0, math.inf):
        assert b.rademacher_lq_exact([np.eye(m)], q).value == pytest.approx(exact)
    assert b.rademacher_l1([m], m, r=1, sharp=True) == pytest.approx(exact)
    assert b.rademacher_lq([m], m, math.inf, sharp=True) == pytest.approx(exact)
    assert b.rademacher_lq_uniform(1, m, math.inf, 1.0, sharp=True) == pytest.approx(exact)
    assert b.rademacher_block([m], m, 2, sharp=True) == pytest.approx(exact)
    # Points along the axes: ||sum_i sigma_i x_i||_2 = sqrt(m) for all signs.
    points = 3.0 * np.eye(m)
    linear = b.rademacher_linear_exact(points, 2.0, W=0.4)
    assert linear.value == pytest.approx(0.4 * 3.0 * exact)
    assert b.rademacher_linear(3.0, 0.4, m, 2, sharp=True) == pytest.approx(linear.value)


@pytest.mark.parametrize("p", [2.0, 3.0, 10.0, math.inf])
def test_equal_identities_attain_the_block_bound_from_p_2_on(p):
    n, M, D = 6, 7, 1.4
    exact = b.rademacher_block_exact([np.eye(n)] * M, p, radius=D).value
    power = 1.0 if math.isinf(p) else 1 - 1 / p
    assert exact == pytest.approx(D * M**power / math.sqrt(n))
    assert b.rademacher_block([n] * M, n, p, radius=D, sharp=True) == pytest.approx(exact)


def test_two_equal_points_attain_the_lower_bound():
    """Kahane's inequality is an equality for two equal vectors: E|s + s'| = 1, E(s + s')^2 = 2."""
    for p, q in [(1, 1.0), (1, 2.0), (5, 1.5), (3, math.inf)]:
        kernels = [4.0 * np.ones((2, 2))] * p
        exact = b.rademacher_lq_exact(kernels, q).value
        assert b.rademacher_lower([8.0] * p, 2, q) == pytest.approx(exact)


def test_the_identity_attains_the_bound_for_hulls():
    for n in (1, 2, 4):
        exact = b.transductive_exact([np.eye(2 * n)], 3.0, 0.7).value
        assert b.hull_complexity([np.eye(2 * n)], 3.0, n, 0.7) == pytest.approx(exact)
    # A hull is as complex as its worst matrix.
    longest = np.ones((4, 4))
    both = b.hull_complexity([np.eye(4), longest], 3.0, 2, 0.7)
    assert both == b.hull_complexity([longest], 3.0, 2, 0.7)


def test_one_point_attains_the_trace_bound():
    assert b.empirical_complexity([[2.25]]).value == pytest.approx(2.25)
    assert b.trace_complexity(2.25, 1.5, 1) == pytest.approx(2.25)


def test_moments_of_signs():
    """Sharp constants are moments of a normal variable: many equal points come near to them."""
    m = 12
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=m)))
    forms = signs.sum(axis=1) ** 2
    for r in (1, 2, 3):
        moment = float(np.mean(forms**r))
        bound = b.moment_bound(float(m), r, sharp=True)
        assert 0.7 * bound < moment <= bound * (1 + 1e-12)


# -- drawn complexities ---------------------------------------------------------------------------


def random_kernels(rng, p, n):
    return [A @ A.T for A in rng.standard_normal((p, n, n))]


def estimates(rng, n):
    """Each complexity as a function of the rows of the sample that it is taken on."""
    kernels, points = random_kernels(rng, 3, n), rng.standard_normal((n, 4))

    def cut(rows):
        return [K[np.ix_(rows, rows)] for K in kernels]

    yield lambda rows: b.rademacher_lq_exact(cut(rows), 1.5, radius=1.3)
    yield lambda rows: b.rademacher_lq_exact(cut(rows), 1.0)
    yield lambda rows: b.rademacher_block_exact(cut(rows), 1.2, radius=0.6)
    yield lambda rows: b.rademacher_linear_exact(points[rows], 1.7, W=2.5)
    yield lambda rows: b.empirical_complexity(kernels[0][rows])


def test_the_scale_of_drawn_complexities_is_what_one_sign_can_move(rng):
    """``scale = sqrt(sum_i c_i^2) / n`` with ``c_i = sup |f(x_i)|``, the complexity of one point.

    It is what the proven error of a Monte-Carlo complexity is made of.
    """
    n = 5
    for complexity in estimates(rng, n):
        alone = [complexity([i]).value for i in range(n)]
        scale = complexity(list(range(n))).scale
        assert scale == pytest.approx(math.sqrt(sum(c**2 for c in alone)) / n)


def test_the_scale_of_a_transductive_complexity(rng):
    kernels = random_kernels(rng, 3, 6)
    found = b.transductive_exact(kernels, 2.0, 0.7)
    # On 2n points with the factor 1/n: c_i = sqrt(max_k c K_k[i, i] / Tr K_k) / margin.
    squares = [max(2.0 * K[i, i] / np.trace(K) for K in kernels) / 0.49 for i in range(6)]
    assert found.scale == pytest.approx(math.sqrt(sum(squares)) / 3)


def test_the_proven_error_of_drawn_complexities(rng, monkeypatch):
    monkeypatch.setattr(montecarlo, "ENUMERATE", 0)
    K = random_kernels(rng, 1, 7)
    found = b.rademacher_lq_exact(K, 1.0, n_draws=50, radius=2.0)
    assert (found.n_draws, found.exact) == (50, False)
    error = found.scale * math.sqrt(2 * math.log(1 / 0.03) / 50)
    assert found.upper(0.03) == pytest.approx(found.value + error)
    assert found.lower(0.03) == pytest.approx(max(found.value - error, 0.0))
    assert found.interval(0.94) == pytest.approx((found.lower(0.03), found.upper(0.03)))
    half = b.rademacher_lq_exact(K, 1.0, n_draws=50)
    for name in ("value", "standard_error", "scale"):
        assert getattr(found, name) == pytest.approx(2 * getattr(half, name))
    signs = draw_signs(7, 50, 0)
    draws = np.sqrt([s @ K[0] @ s for s in signs.T]) / 7
    assert half.value == pytest.approx(draws.mean())
    assert half.standard_error == pytest.approx(draws.std(ddof=1) / math.sqrt(50))


# -- complexities of certificates -----------------------------------------------------------------


@pytest.mark.parametrize("shifted", [False, True])
def test_certificates_take_complexities_that_bound_the_truth(shifted):
    """The bound from traces and the drawn value of every class, on equal identities.

    An intercept is the weight of one more kernel, the constant kappa^2.
    """
    n, p = 8, 30
    grams = given_grams([4.0 * np.eye(n)] * p, False, None)
    norms, intercepts = np.arange(1.0, p + 1)[:, None], np.array([0.5])
    family = FunctionClasses.of(
        grams, draw_signs(n, 10), "kernels", norms, intercepts, (), shifted=shifted
    )
    kernels = [4.0 * np.eye(n)] * p
    if shifted:
        assert family.kappa == 2.0
        kernels.append(np.full((n, n), family.kappa**2))
    for (exponent, _), (bound, drawn) in zip(CLASSES, family.complexities, strict=True):
        truth = b.rademacher_block_exact(kernels, exponent)
        assert drawn.exact
        assert drawn.value == pytest.approx(truth.value)
        assert drawn.scale == pytest.approx(truth.scale)
        assert truth.value <= bound * (1 + 1e-12)
        radius = np.append(norms, 0.25) if shifted else norms[:, 0]
        expected = np.sum(radius**exponent) ** (1 / exponent)
        assert family.radius(0, exponent) == pytest.approx(expected)
    assert family.complexities[2][0] == pytest.approx(
        b.rademacher_block_exact(kernels, 2.0).value, rel=0.02
    )


def test_what_certificates_speak_about():
    """Losses with a margin m: one where the statement fails, zero beyond the margin, slope 1/m."""
    values = np.array([-3.0, -0.4, 0.0, 0.3, 2.0])
    for m in (0.25, 1.0, 8.0):
        ramp = [min(1.0, max(0.0, 1.0 - v / m)) for v in values]
        assert classify(values).loss(m) == pytest.approx(ramp)
        below = [min(1.0, max(0.0, -v / m)) for v in values]
        assert detect(values, 2.0).loss(m) == pytest.approx(below)
        beyond = [min(1.0, max(0.0, abs(v) / m - 1.0)) for v in values]
        assert regress(values, 1.5).loss(m) == pytest.approx(beyond)
    assert classify(values).error == 0.6 and math.isinf(classify(values).limit)
    # Half of the offset, whichever side of zero it is on.
    for offset in (0.7, -0.7):
        task = detect(values, offset)
        assert task.error == 0.4 and task.limit == 0.35
        assert task.levels == pytest.approx([0.0, 0.0875, 0.175, 0.35])
    assert regress(values, 1.5).error == 0.4 and regress(values, 1.5).limit == 0.75


@pytest.mark.parametrize("ratio", [0.5, 200.0])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_the_grid_of_margins_reaches_the_best_one(ratio, size):
    """All margins equal: below them the loss is zero, and the complexity falls with the margin."""
    n = 8
    grams = given_grams([np.eye(n), 2.0 * np.eye(n)], False, None)
    norms = size * np.array([[0.6], [0.8]])
    family = FunctionClasses.of(
        grams, draw_signs(n, 10), "kernels", norms, np.zeros(1), (), shifted=False
    )
    margins = np.full(n, ratio * size)
    for bound, (p, _) in zip(family.bounds(classify(margins), 0, 0.1, ()), CLASSES, strict=True):
        D = family.radius(0, p)
        # Risk, complexity and confidence, a tenth of a third of delta set aside for the draws.
        complexity = b.rademacher_block_exact([np.eye(n), 2.0 * np.eye(n)], p).value
        for m, value in zip(bound.margins, bound.values, strict=True):
            delta = 0.9 * 0.1 / 3 * b.grid_share(round(2 * math.log2(m / D)))
            slow = b.margin_bound(b.ramp_risk(margins, m), D * complexity, n, m, delta)
            assert value == pytest.approx(slow)
        best = bound.margins[np.argmin(bound.values)]
        assert bound.margin == best
        assert bound.margins[0] < ratio * size < bound.margins[-1]
        assert bound.margins[1:] / bound.margins[:-1] == pytest.approx(math.sqrt(2))
        # The unit of the function does not matter: margins are multiples of its radius.
        powers = 2 * np.log2(bound.margins / D)
        assert powers == pytest.approx(np.round(powers), abs=1e-9)
