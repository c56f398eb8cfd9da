"""The step of two-level norms by itself: properties, a slow twin, optimality of each level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikernel.problem.hierarchy import Hierarchy, norms, shares
from multikernel.problem.regularisers import conjugate, norm

INF = float("inf")
EXPONENTS = st.sampled_from([1.0, 1.05, 1.3, 1.9, 2.0, 2.1, 3.0, 8.0, INF])


@st.composite
def hierarchies(draw):
    """A hierarchy of up to nine kernels, some of them of no use, with weights and forms."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    m = draw(st.integers(1, 9))
    usable = rng.random(m) < 0.8
    usable[rng.integers(m)] = True
    labels = np.unique(rng.integers(0, 4, m), return_inverse=True)[1]
    rule = Hierarchy(labels, draw(EXPONENTS), draw(EXPONENTS), usable)
    span = draw(st.sampled_from([0.1, 3.0, 30.0]))
    a = np.where(rng.random(m) < 0.2, 0.0, 10.0 ** rng.uniform(-span, span, m))
    theta = np.where(usable, 10.0 ** rng.uniform(-2, 2, m), 0.0)
    return rule, theta, a


@given(hierarchies())
def test_weak_duality_of_the_norms(case):
    """Fenchel and Young: ``primal + dual >= theta'a`` for all weights, on which the gap rests."""
    rule, theta, a = case
    assert rule.primal(theta, a) + rule.dual(theta, a) >= (theta @ a) * (1 - 1e-12)


@given(hierarchies())
def test_every_step_gives_weights(case):
    rule, theta, a = case
    new = rule.update(theta, a)
    assert np.all(np.isfinite(new)) and np.all(new >= 0)
    assert not np.any(new[~rule.usable])
    again = rule.update(new, a)
    assert np.all(np.isfinite(again)) and np.all(again >= 0)
    start = rule.start()
    assert np.all((start > 0) == rule.usable) and np.all(np.isfinite(start))


@given(hierarchies())
def test_steps_do_not_depend_on_order_or_scale(case):
    rule, theta, a = case
    new = rule.update(theta, a)
    order = np.random.default_rng(0).permutation(len(a))
    relabelled = (rule.labels.max() - rule.labels)[order]
    moved = Hierarchy(relabelled, rule.p, rule.q, rule.usable[order])
    np.testing.assert_allclose(moved.update(theta[order], a[order]), new[order], rtol=1e-9)
    np.testing.assert_allclose(rule.update(theta, 16.0 * a), new, rtol=1e-9)


@given(hierarchies())
def test_norms_of_groups_one_by_one(case):
    """The slow twin: a mask and a norm for each group."""
    rule, _, a = case
    group = rule.group
    values = a[rule.usable]
    masks = [group == j for j in range(group.max() + 1)]
    slow = [norm(values[mask], rule.p) for mask in masks]
    np.testing.assert_allclose(norms(values, group, rule.p), slow, rtol=1e-12)
    positive = values + 1e-3 * values.max() + 1.0
    for mask in masks:
        part = positive[mask]
        r = rule.q if rule.q <= 2 else conjugate(rule.q)
        power = 2 - rule.q if rule.q <= 2 else r - 2
        np.testing.assert_allclose(
            shares(positive, group, rule.q)[mask], (part / norm(part, r)) ** power, rtol=1e-11
        )


@pytest.mark.parametrize(("p", "q"), [(4, 1.2), (1.2, 4), (INF, 1.0), (1.0, INF)])
def test_a_step_leaves_each_level_best_for_the_other(p, q):
    """No weights of one level, the other fixed, do better on the same machine."""
    rng = np.random.default_rng(3)
    labels = np.array([0, 0, 0, 1, 1, 2])
    rule = Hierarchy(labels, p, q, np.ones(6, dtype=bool))
    a = rng.random(6) + 0.1
    theta = rng.random(6) + 0.1
    new = rule.update(theta, a)

    def split(t):
        """``theta = eta kappa`` by the normalisation of kappa, group by group."""
        r = -1.0 if np.isinf(q) else q / (2 - q)
        eta = np.array([np.sum(t[labels == j] ** r) ** (1 / r) for j in range(3)])
        return eta, t / eta[labels]

    (eta, kappa), (new_eta, new_kappa) = split(theta), split(new)
    v = theta * np.sqrt(a)

    def cost(level, e, k):
        """``sum v^2 / theta`` is least where the level is minimised, ``theta'a`` elsewhere."""
        t = e[labels] * k
        return np.sum(v**2 / t) if level <= 2 else t @ a

    for _ in range(300):
        other_eta, other_kappa = split(np.exp(rng.normal(size=6)))
        r = -1.0 if np.isinf(p) else p / (2 - p)
        other_eta /= np.sum(other_eta**r) ** (1 / r)
        assert cost(p, new_eta, kappa) <= cost(p, other_eta, kappa) * (1 + 1e-12)
        assert cost(q, eta, new_kappa) <= cost(q, eta, other_kappa) * (1 + 1e-12)
