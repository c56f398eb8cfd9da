"""Excess risk: the fixed point, algebraic spectra, rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from multikernel import bounds as b


def test_golden_numbers():
    found = [b.algebraic_excess_risk((1, 2), 16, 10**6, p, 1.0, 0.05) for p in (1, 1.2, 4 / 3, 2)]
    assert [round(x, 6) for x in found] == [0.255407, 0.255407, 0.255407, 0.265852]


def test_formula_against_loops():
    d, alpha, M, n, B, delta, D, F, L = 2.0, 1.7, 5, 10_000, 3.0, 0.02, 1.5, 0.8, 1.2
    z, kappa = math.log(1 / delta), alpha / (alpha - 1)

    def at(s, kappa, range_B):
        lead = 186 * math.sqrt(kappa) * (d * D**2 * L**2 * s**2) ** (1 / (1 + alpha))
        lead *= F ** ((alpha - 1) / (alpha + 1)) * M ** (1 + 2 / (1 + alpha) * (1 / s - 1))
        lead *= n ** (-alpha / (1 + alpha))
        size = D * L * M ** (1 / s)
        return lead + 47 * math.sqrt(B) * size * s / n + (22 * range_B * size + 27 * F) * z / n

    options = {"radius": D, "bernstein": F, "lipschitz": L}
    slow = min(at(s, kappa, math.sqrt(B)) for s in np.linspace(2, 3, 2001))
    found = b.algebraic_excess_risk((d, alpha), M, n, 1.5, B, delta, **options)
    assert found == pytest.approx(slow, rel=1e-7)
    # As printed the factor is the root of a negative number below alpha = 3.
    with pytest.raises(b.AssumptionError, match="root"):
        b.algebraic_excess_risk((d, alpha), M, n, 1.5, B, delta, as_printed=True)
    alpha = 4.0
    printed = min(at(s, (3 - 4) / (1 - 4), B) for s in np.linspace(2, 3, 2001))
    found = b.algebraic_excess_risk((d, 4.0), M, n, 1.5, B, delta, as_printed=True, **options)
    assert found == pytest.approx(printed, rel=1e-7)


@pytest.mark.parametrize("M", [2, 16, 1000])
def test_the_infinite_range_of_p_1_is_cut_without_loss(M):
    """At p = 1 the exponent t* may be any number from 2 on; the best is of the order of log M."""

    def at(s):
        lead = 186 * math.sqrt(2) * s ** (2 / 3) * M ** (1 + 2 / 3 * (1 / s - 1)) * n ** (-2 / 3)
        return lead + 47 * M ** (1 / s) * s / n + (22 * M ** (1 / s) + 27) * math.log(20) / n

    n = 10**6
    slow = min(at(s) for s in np.linspace(2, 60, 58_001))
    found = b.algebraic_excess_risk((1.0, 2.0), M, n, 1.0, 1.0, 0.05)
    assert found == pytest.approx(slow, rel=1e-7)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 4.0])
@pytest.mark.parametrize("n", [10**3, 10**5])
def test_theorem_4_11_dominates_the_lemma_it_comes_from(alpha, n):
    M, p, B = 4, 1.5, 1.0
    # Truncated tails: what is cut off only makes the lemma smaller.
    spectra = [np.arange(1.0, 3001.0) ** -alpha] * M
    fixed = b.fixed_point_bound(spectra, n, p, B)
    lemma = b.excess_risk(
        fixed, n, 0.05, bernstein=1.0, lipschitz=1.0, width=2 * math.sqrt(B) * M ** (1 - 1 / p)
    )
    assert lemma <= b.algebraic_excess_risk((1.0, alpha), M, n, p, B, 0.05)


def test_fixed_points():
    assert b.fixed_point(lambda r: 3.0) == pytest.approx(3.0)
    for a, c in [(0.5, 2.0), (1e-4, 1e-6), (100.0, 0.0)]:
        root = (a + 2 * c + math.sqrt(a * a + 4 * a * c)) / 2
        assert b.fixed_point(lambda r, a=a, c=c: math.sqrt(a * r) + c) == pytest.approx(root)
    with pytest.raises(b.AssumptionError, match="sub-root"):
        b.fixed_point(lambda r: 2 * r + 1)


def test_lemma_4_10_is_the_fixed_point_of_the_truncated_bound(rng):
    spectra = [np.sort(rng.random(6))[::-1] for _ in range(3)]
    n, p, B, D, F, L = 200, 4 / 3, 2.0, 1.2, 0.7, 1.5
    h = [2, 1, 0]
    options = {"radius": D, "bernstein": F, "lipschitz": L}
    found = b.fixed_point_bound(spectra, n, p, B, h, **options)

    def psi(r):
        local = b.local_rademacher_truncated(spectra, n, r / (4 * L**2), p, B, h, radius=D)
        return 2 * F * L * local

    assert b.fixed_point(psi) == pytest.approx(found, rel=1e-9)
    # The lemma's own sum of terms is above it (the sign of the inequality is printed reversed).
    s = 4.0
    tails = np.array([e[k:].sum() for e, k in zip(spectra, h, strict=True)])
    size = np.sum(tails ** (s / 2)) ** (2 / s)
    lemma = 4 * F**2 * sum(h) / n + 8 * F * L * math.sqrt(math.e * s**2 * D**2 / n * size)
    lemma += 4 * math.sqrt(B * math.e) * D * F * L * 3 ** (1 / s) * s / n
    assert found <= lemma
    assert b.fixed_point_bound(spectra, n, p, B, **options) <= b.fixed_point_bound(
        spectra, n, p, B, [1, 1, 1], **options
    )


def test_the_best_number_of_leading_directions_is_looked_for():
    """Spectra of different lengths; the best number lies beyond the end of the shortest."""
    spectra = [np.array([3.0, 0.5]), np.full(30, 2.0), 1.0 / np.arange(1.0, 26.0)]
    args = (10**5, 1.5, 1.0)
    each = [b.fixed_point_bound(spectra, *args, [k] * 3) for k in range(31)]
    assert b.fixed_point_bound(spectra, *args) == min(each)
    assert np.argmin(each) > 2


def test_decay_from_spectra():
    spectra = [3.0 * np.arange(1.0, 51.0) ** -1.5, np.arange(1.0, 51.0) ** -2.5]
    d, alpha = b.algebraic_decay(spectra)
    assert alpha == pytest.approx(1.5)
    assert d == pytest.approx(3.0)
    for e in spectra:
        assert np.all(e <= d * np.arange(1.0, 51.0) ** -alpha * (1 + 1e-9))
    with pytest.raises(b.AssumptionError, match="alpha > 1"):
        b.algebraic_decay([np.arange(1.0, 51.0) ** -0.5])
    # Only the upper half tells the slope: the lower half of a sample's spectrum falls too fast.
    j = np.arange(1.0, 41.0)
    d, alpha = b.algebraic_decay([np.where(j <= 20, j**-2, 1e-3 * j**-2)])
    assert alpha == pytest.approx(2.0)
    assert d == pytest.approx(1.0)


def test_monotone():
    def risk(n=10**5, p=1.5, M=16, delta=0.05, B=1.0):
        return b.algebraic_excess_risk((1.0, 2.0), M, n, p, B, delta)

    assert risk(n=10**6) < risk() < risk(M=64)
    assert risk(delta=0.5) < risk() < risk(B=4.0)
    assert risk(p=1) <= risk() <= risk(p=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.algebraic_excess_risk((1, 1), 2, 9, 1, 1, 0.1), "alpha > 1"),
        (lambda: b.algebraic_excess_risk((1, 2), 2, 9, 3, 1, 0.1), r"\[1, 2\]"),
        (lambda: b.algebraic_excess_risk((1, 2), 2, 9, 1, math.inf, 0.1), "bounded kernel"),
        (lambda: b.algebraic_excess_risk((1, 2), 2, 9, 1, 1, 0), "delta"),
        (lambda: b.fixed_point_bound([[1.0]], 9, 1, 1.0), r"\(1, 2\]"),
        (lambda: b.fixed_point_bound([[1.0]], 9, 1.5, 1.0, [1, 1]), "one number per kernel"),
        (lambda: b.excess_risk(1, 9, 0.1, bernstein=0, lipschitz=1, width=1), "Bernstein"),
        (lambda: b.global_rate(5, 10, 3), r"\[1, 2\]"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
