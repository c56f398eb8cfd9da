"""Regularisers of joint problems: conjugacy, and kernels that take no part."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.problem.hierarchy import Hierarchy
from multikernel.problem.nonisotropic import NonIsotropic
from multikernel.problem.regularisers import (
    AlignmentPenalty,
    BlockNorm,
    ElasticNet,
    WeightBall,
)

M = 5
INF = float("inf")


def definite(m):
    """A positive definite matrix without negative entries."""
    A = np.random.default_rng(3).random((m, m))
    return A @ A.T + np.eye(m)


#: Positive definite matrices with negative entries, and their inverses: a graph Laplacian, a matrix
#: whose inverse is nearly that of the sparse norm, and one with both signs in both.
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
COUPLINGS = {
    "Laplacian": np.diag([0.5, 1.5, 2.5, 1.5, 0.5])
    - np.diag([0.4, 1.0, 1.0, 0.4], 1)
    - np.diag([0.4, 1.0, 1.0, 0.4], -1),
    "sparse": np.linalg.inv(1.0 + 0.2 * np.eye(M)),
    "mixed": definite(M) * np.outer(SIGNS, SIGNS),
}


def make(name, keep):
    """A regulariser of five kernels with a mask of those that take part, or of these alone."""
    usable = np.ones(M, dtype=bool)
    if keep is not None and keep.dtype == bool:
        usable, rows = keep, np.arange(M)
    else:
        rows = np.arange(M) if keep is None else keep
        usable = usable[rows]
    kind, *numbers = name
    if kind == "block":
        return BlockNorm(numbers[0], usable)
    if kind == "elastic":
        return ElasticNet(BlockNorm(numbers[0], usable), numbers[1])
    if kind == "matrix":
        E = COUPLINGS[numbers[0]] if numbers else definite(M)
        return NonIsotropic(E[np.ix_(rows, rows)], usable)
    if kind == "ball":
        return WeightBall(0.8, np.linspace(0.1, 0.4, M)[rows], numbers[0], usable)
    if kind == "groups":
        return Hierarchy(np.array([0, 0, 1, 1, 2])[rows], *numbers, usable)
    return AlignmentPenalty(np.linspace(-0.5, 1.0, M)[rows], definite(M)[np.ix_(rows, rows)])


NAMES = [
    *[("block", p) for p in (1.2, 1.5, 2.0, 3.0, INF)],
    *[("elastic", 1.3, 0.7), ("elastic", 1.7, 5.0)],
    *[("matrix", kind) for kind in COUPLINGS],
    *[("matrix",), ("ball", 1.5), ("ball", 2.0), ("ball", 4.0), ("alignment",)],
    *[("groups", 1.3, 1.6), ("groups", 3.0, 4.0), ("groups", 1.4, 3.0), ("groups", 3.0, 1.4)],
]


def settle(rule, a):
    """Weights that the update leaves where they are, for these quadratic forms."""
    theta = rule.start()
    for _ in range(2000):
        before, theta = theta, rule.update(theta, a)
        if np.array_equal(before, theta):
            break
    return theta


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_primal_and_dual_are_conjugate(name, rng):
    """``primal + dual >= theta'a`` for all weights, and equal at the best ones.

    With ``v = theta sqrt(a)`` the right side is ``<v, sqrt(a)>``: the inequality of Fenchel and
    Young, on which every duality gap rests. A primal or a dual that is too small breaks it, one
    that is too large is not attained.
    """
    rule = make(name, None)
    for _ in range(6):
        a = rng.random(M) ** 2 + 1e-3
        theta = rule.update(rule.start(), rng.random(M) + 0.1)  # a ball holds no others
        product = theta @ a
        assert rule.primal(theta, a) + rule.dual(theta, a) >= product - 1e-12 * abs(product)
        best = settle(rule, a)
        total = rule.primal(best, a) + rule.dual(best, a)
        assert total == pytest.approx(best @ a, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if name[0] != "alignment"], ids=str)
def test_kernels_that_take_no_part_leave_no_trace(name, rng):
    """A kernel that is constant on the sample counts for nothing, whatever its form is."""
    usable = np.array([True, True, False, True, False])
    keep = np.flatnonzero(usable)
    masked, alone = make(name, usable), make(name, keep)
    for noise in (0.0, 1e-9, 1e3):
        a = np.where(usable, rng.random(M) + 0.1, noise)
        start = masked.start()
        np.testing.assert_allclose(start[keep], alone.start(), rtol=1e-12)
        theta = masked.update(start, a)
        np.testing.assert_allclose(theta[keep], alone.update(alone.start(), a[keep]), rtol=1e-10)
        assert not np.any(start[~usable]) and not np.any(theta[~usable])
        for value in ("primal", "dual"):
            whole = getattr(masked, value)(theta, a)
            assert whole == pytest.approx(getattr(alone, value)(theta[keep], a[keep]), rel=1e-10)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name[0] not in ("alignment", "elastic")], ids=str
)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_unit_of_the_quadratic_forms_does_not_matter(name, scale, rng):
    rule = make(name, None)
    a = rng.random(M) + 0.1
    once, often = rule.update(rule.start(), a), rule.update(rule.start(), scale * a)
    np.testing.assert_allclose(often, once, rtol=1e-9)
    assert rule.dual(once, scale * a) == pytest.approx(scale * rule.dual(once, a), rel=1e-9)


def test_without_a_machine_the_alignment_alone_decides():
    rule = make(("alignment",), None)
    start = rule.start()
    np.testing.assert_allclose(start, rule.update(np.ones(M), np.zeros(M)), rtol=1e-10)
    # Stationary for theta'c - theta'Q theta, theta >= 0.
    gradient = rule.linear - 2 * rule.Q @ start
    np.testing.assert_allclose(gradient[start > 0], 0.0, atol=1e-10)
    assert np.all(gradient <= 1e-10) and np.any(start == 0)
    # With nothing to align with, all kernels begin, by their own size.
    lonely = AlignmentPenalty(-np.ones(M), rule.Q)
    np.testing.assert_allclose(lonely.start(), 1 / np.diag(rule.Q))


def test_a_group_without_any_quadratic_form_stays_finite():
    """At a saddle point the machine may leave a whole group; it must be able to come back."""
    for rule in (make(("groups", 1.4, 3.0), None), make(("groups", 3.0, 1.4), None)):
        a = np.array([1.0, 0.3, 0.0, 0.0, 2.0])
        theta = rule.start()
        for _ in range(5):
            theta = rule.update(theta, a)
            assert np.all(np.isfinite(theta)) and np.all(theta > 0)
